/** The calls that save, delete, repair and undo items through their entities (`isotone/workbench/editing.py`). */

import { call, type Entity, type Item, type TableInfo, type Typed } from "../api";
import { models } from "../session";
import { own } from "../values";
import type { Sent } from "./changes";

export type Values = Record<string, Typed>;

/** One key as typed values give it: its attributes in parts, or why it has none. */
export interface DraftKey {
  name: string;
  index: string | null;
  parts: Record<string, [text: string, component: string | null][]>;
  fault: string | null;
  left_out: string | null;
}
export interface Draft {
  faults: Record<string, string>;
  missing: string[];
  computed: Values;
  keys: DraftKey[];
}
export interface Finding {
  kind: string;
  name: string | null;
  meaning: string;
  found: string | null;
  declared: string | null;
  advice: string;
  notice: boolean;
  /** By writing the item again, by setting the field, by removing the attribute; null if none of these does it. */
  repair: "write" | "field" | "remove" | null;
}
/** A stored item in the form of its entity. */
export interface Form extends Draft {
  entity: string;
  values: Values;
  findings: Finding[];
  /** Attributes that the entity does not declare. */
  unknown: string[];
}
export interface Refusal {
  code: string;
  message: string;
  fields: Record<string, string>;
  /** Whether somebody else has changed the item; `item` is what it is now, null if it is gone. */
  changed: boolean;
  item: Item | null;
  /** The key of the item that already has the key or the unique value. */
  taken_by: Item | null;
}
export interface Preview {
  after: Item | null;
  refused: string | null;
  fields: Record<string, string>;
}

/** A write that the model refused. */
export class Refused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.message);
  }
}

/** The entities of a table, if the user's own model declares them; otherwise items are edited as attributes. */
export function entitiesOf(table: string): Entity[] {
  const known = own(models.value, table);
  return known?.loaded ? (known.model?.entities ?? []) : [];
}

export function entityOf(table: string, name: string | null | undefined): Entity | null {
  return entitiesOf(table).find((each) => each.name === name) ?? null;
}

/** The entity that an item's tag names; null if the model has none. */
export function recognizedBy(table: string, item: Item): string | null {
  const tag = own(models.value, table)?.model?.tag;
  return entityOf(table, tag === undefined ? null : (own(item, tag)?.["S"] as string | undefined))?.name ?? null;
}

/** The fields that people give: all, or those that may be changed of an entity that is there. */
export function givenFields(entity: Entity, isNew: boolean): Entity["fields"] {
  return entity.fields.filter((each) => each.set_by === null && (isNew || each.fixed === null));
}

export function readForm(table: TableInfo, item: Item, signal?: AbortSignal): Promise<Form> {
  return call("edit_form", { table: table.name, item }, signal);
}

export function readDraft(table: TableInfo, entity: string, values: Values, item: Item | null, signal: AbortSignal): Promise<Draft> {
  return call("edit_draft", { table: table.name, entity, values, item }, signal);
}

/** What items become. */
export function preview(table: TableInfo, entity: string, values: Values, items: Item[]): Promise<{ previews: Preview[] }> {
  return call("edit_preview", { table: table.name, entity, values, items });
}

/** What `save` would send. */
export function requestToSave(table: TableInfo, entity: string, values: Values, item: Item | null): Promise<Sent> {
  return call("edit_request", { table: table.name, entity, values, item });
}

/** What `remove` would send. */
export function requestToRemove(table: TableInfo, item: Item): Promise<Sent> {
  return call("edit_request", { table: table.name, item, delete: true });
}

async function written(name: string, given: object): Promise<Item | null> {
  const answer = await call<{ item: Item | null; refused?: Refusal }>(name, given);
  if (answer.refused) throw new Refused(answer.refused);
  return answer.item;
}

/** Creates an entity, or changes one as it was read; the item afterwards. */
export async function save(table: TableInfo, entity: string, values: Values, item: Item | null): Promise<Item> {
  return (await written("edit_save", { table: table.name, entity, values, item }))!;
}

export async function remove(table: TableInfo, item: Item): Promise<void> {
  await written("edit_delete", { table: table.name, item });
}

/** What stands for items that an undo brought back: their versions and times are new. The change before that one is undone
 * from these. */
const broughtBack = new Map<string, Item>();

function nameOf(table: TableInfo, item: Item): string {
  return JSON.stringify([table.name, Object.entries(item).sort(([one], [other]) => (one < other ? -1 : 1))]);
}

/** An item as the last undo left it. */
export function latestOf(table: TableInfo, item: Item): Item {
  let latest = item;
  for (const seen = new Set<Item>(); !seen.has(latest); ) {
    seen.add(latest);
    latest = broughtBack.get(nameOf(table, latest)) ?? latest;
  }
  return latest;
}

/** Undoes a change of an item, from what it is now to what it was; null stands for no item. */
export async function undo(table: TableInfo, item: Item | null, before: Item | null): Promise<Item | null> {
  const now = await written("edit_undo", { table: table.name, item: item && latestOf(table, item), before });
  if (before && now) broughtBack.set(nameOf(table, before), now);
  return now;
}

export async function repair(table: TableInfo, item: Item, without: string[]): Promise<Item> {
  return (await written("edit_repair", { table: table.name, item, without }))!;
}
