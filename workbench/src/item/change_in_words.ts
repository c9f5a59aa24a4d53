/** What a change did to an item, in a line: its new and former values, or which item came and went. */

import type { Item, TableInfo } from "../api";
import { own, same, shortMoment, shortText } from "../values";
import { entityOf, givenFields, recognizedBy } from "./edit_calls";

const MOST = 2; // fields; the others are counted

export function changeInWords(table: TableInfo, before: Item | null, after: Item | null): string {
  const item = after ?? before;
  if (!item) return "";
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);
  const kind = recognizedBy(table.name, item);
  const which = [kind, ...keys.map((each) => shortText(own(item, each), 60))].filter(Boolean).join(" ");
  if (!before || !after || keys.some((each) => !same(own(before, each), own(after, each)))) return which;
  const entity = entityOf(table.name, kind);
  const names = entity ? givenFields(entity, true).map((each) => each.attribute) : [...Object.keys(before), ...Object.keys(after)];
  const changed = [...new Set([...names, ...Object.keys(before).filter((each) => !own(after, each))])].filter((each) => !same(own(before, each), own(after, each)));
  if (!changed.length) return which;
  const shown = changed.slice(0, MOST).map((each) => `${each} ${valueOf(before, each)} → ${valueOf(after, each)}`);
  return [...shown, ...(changed.length > MOST ? [`${changed.length - MOST} more`] : [])].join(", ");
}

function valueOf(item: Item, name: string): string {
  const value = own(item, name);
  if (value === undefined) return "not set";
  const text = shortText(value, 40);
  return shortMoment(text) ?? (text === "" ? "empty text" : text);
}
