/** The types that attributes were seen to have: what a filter on one of them compares with. */

import type { AttributeType, Item } from "../api";
import { typeOf } from "../values";

const DEEPEST = 4; // members of members whose types are kept

/** By table and path, the types with how often each was seen. */
const seen = new Map<string, Map<string, Map<AttributeType, number>>>();

export function noteTypes(table: string, items: Item[]): void {
  let paths = seen.get(table);
  if (!paths) seen.set(table, (paths = new Map()));
  for (const item of items) note(paths, "", item, DEEPEST);
}

function note(paths: Map<string, Map<AttributeType, number>>, before: string, members: Item, depth: number): void {
  for (const [name, value] of Object.entries(members)) {
    const path = before + name;
    const type = typeOf(value);
    let types = paths.get(path);
    if (!types) paths.set(path, (types = new Map()));
    types.set(type, (types.get(type) ?? 0) + 1);
    if (type === "M" && depth > 1) note(paths, `${path}.`, value[type] as Item, depth - 1);
  }
}

/** The types of an attribute in the items that were read so far; the most frequent one first. */
export function typesSeen(table: string, path: string): AttributeType[] {
  const types = seen.get(table)?.get(path);
  return types ? [...types].sort(([, one], [, other]) => other - one).map(([type]) => type) : [];
}

/** The names of a table's attributes that were seen. */
export function namesSeen(table: string): string[] {
  return [...(seen.get(table)?.keys() ?? [])];
}
