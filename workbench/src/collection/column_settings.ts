/** How a user has arranged the columns of a table: order, widths, and which are hidden; kept in the browser. */

import { remembered } from "../store";

export interface Arrangement {
  /** The names that were moved, in their order; others follow. */
  order: string[];
  hidden: string[];
  /** In pixels. */
  widths: Record<string, number>;
}

export const NARROWEST = 48;
export const WIDEST = 900;

const NOTHING: Arrangement = { order: [], hidden: [], widths: {} };
/** The name of the key columns, beside those of the entities. */
export const KEYS = "keys of the view";

export const arrangements = remembered<Record<string, Arrangement>>("columns", {}, isArrangements);

function isArrangements(value: unknown): boolean {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) &&
    Object.values(value).every((each: Arrangement) => Array.isArray(each?.order) && Array.isArray(each.hidden) && typeof each.widths === "object" && each.widths !== null)
  );
}

function keyOf(table: string, entity: string | null): string {
  return `${table}\n${entity ?? ""}`;
}

export function arrangementOf(table: string, entity: string | null): Arrangement {
  const key = keyOf(table, entity);
  return Object.hasOwn(arrangements.value, key) ? arrangements.value[key]! : NOTHING;
}

export function arrange(table: string, entity: string | null, change: Partial<Arrangement>): void {
  arrangements.update((all) => ({ ...all, [keyOf(table, entity)]: { ...arrangementOf(table, entity), ...change } }));
}

export function resize(table: string, entity: string | null, name: string, width: number): void {
  const fitting = Math.round(Math.min(WIDEST, Math.max(NARROWEST, width)));
  arrange(table, entity, { widths: { ...arrangementOf(table, entity).widths, [name]: fitting } });
}

/** Puts a column before another one; before null is at the end. `shown` are the names in their present order. */
export function move(table: string, entity: string | null, shown: string[], name: string, before: string | null): void {
  const rest = shown.filter((each) => each !== name);
  const place = before === null ? rest.length : rest.indexOf(before);
  arrange(table, entity, { order: [...rest.slice(0, place), name, ...rest.slice(place)] });
}

export function toggle(table: string, entity: string | null, name: string): void {
  const { hidden } = arrangementOf(table, entity);
  arrange(table, entity, { hidden: hidden.includes(name) ? hidden.filter((each) => each !== name) : [...hidden, name] });
}

export function reset(table: string, entity: string | null): void {
  arrange(table, entity, NOTHING);
}
