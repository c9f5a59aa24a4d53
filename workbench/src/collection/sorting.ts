/** Sorts the loaded items by one attribute, within each item collection; the order ends with the view. */

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
  if (type === "N") return compareNumbers(one[type] as string, other[type] as string);
  if (type === "S") return compareTexts(one[type] as string, other[type] as string);
  if (type === "B") return compareTexts(atob(one[type] as string), atob(other[type] as string));
  return compareTexts(shortText(one), shortText(other));
}

/** Exactly, with all of up to 38 digits, of which JavaScript's own numbers keep 16. */
function compareNumbers(one: string, other: string): number {
  const roughly = Number(one) - Number(other);
  if (roughly !== 0) return roughly;
  const difference = scaled(one) - scaled(other);
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

const SMALLEST = 200; // decimal places that suffice for every number of DynamoDB

function scaled(text: string): bigint {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(text)!;
  return BigInt(`${sign}${whole}${fraction}`) * 10n ** BigInt(SMALLEST + Number(exponent) - fraction.length);
}

/** In the order of their code points, as DynamoDB; JavaScript's own puts those above U+FFFF before U+E000. */
function compareTexts(one: string, other: string): number {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  return (one.codePointAt(at) ?? -1) - (other.codePointAt(at) ?? -1);
}
