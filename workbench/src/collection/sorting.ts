/** The loaded items in the order of one attribute, within each item collection; the order ends with the view. */

import type { AttributeValue } from "../api";
import { own, shortText, typeOf } from "../values";
import { layOut, type Columns } from "./rows";
import type { Entry, Slot } from "./window";

export interface Sorting {
  entity: string | null;
  name: string;
  descending: boolean;
}

/** The next state when a column is asked for: ascending, descending, as stored. */
export function next(now: Sorting | null, entity: string | null, name: string): Sorting | null {
  if (now?.entity !== entity || now.name !== name) return { entity, name, descending: false };
  return now.descending ? null : { ...now, descending: true };
}

/** One slot of all loaded items in their new order. */
export function sortedSlot(slots: Slot[], columns: Columns, sorting: Sorting): Slot {
  const byGroup = new Map<string, Map<string | null, Entry[]>>();
  for (const entry of slots.flatMap((slot) => (slot.outside ? [] : (slot.entries ?? [])))) {
    let kinds = byGroup.get(entry.group);
    if (!kinds) byGroup.set(entry.group, (kinds = new Map()));
    const list = kinds.get(entry.entity);
    if (list) list.push(entry);
    else kinds.set(entry.entity, [entry]);
  }
  const by = sorting.descending ? -1 : 1;
  const entries = [...byGroup.values()].flatMap((kinds) =>
    [...kinds].flatMap(([entity, list]) =>
      entity === sorting.entity ? [...list].sort((one, other) => by * compare(own(one.item, sorting.name), own(other.item, sorting.name))) : list,
    ),
  );
  return { entries, read: null, outside: false, loading: false, ...layOut(entries, null, columns) };
}

/** By value where both have the same type; items without the attribute come last in ascending order. */
export function compare(one: AttributeValue | undefined, other: AttributeValue | undefined): number {
  if (!one || !other) return one ? -1 : other ? 1 : 0;
  const [type, another] = [typeOf(one), typeOf(other)];
  if (type !== another) return type < another ? -1 : 1;
  if (type === "N") return Number(one[type]) - Number(other[type]);
  const [text, later] = type === "S" ? [one[type] as string, other[type] as string] : [shortText(one), shortText(other)];
  return text < later ? -1 : text > later ? 1 : 0;
}
