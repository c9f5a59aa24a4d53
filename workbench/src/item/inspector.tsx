/** One item: its keys, its attributes with their types. */

import type { TableInfo } from "../api";
import { entityHue } from "../collection/hues";
import { KeyText } from "../collection/key_text";
import type { Entry } from "../collection/window";
import { TYPES, typeOf } from "../values";
import { Tree } from "./tree";

export function Inspector({ table, entry, onClose }: { table: TableInfo; entry: Entry; onClose: () => void }) {
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);
  const others = Object.keys(entry.item).filter((name) => !keys.includes(name));
  return (
    <aside class="inspector" aria-label="Item">
      <header>
        {entry.entity && <span class={`entity ${entityHue(table.name, entry.entity)}`}>{entry.entity}</span>}
        <span class="space" />
        <button class="icon" aria-label="Close the item" onClick={onClose}>
          ✕
        </button>
      </header>
      <div class="inspected">
        {[...keys, ...others].map((name) => (
          <div class={`attribute${keys.includes(name) ? " of-key" : ""}`} key={name}>
            <div class="attribute-name">
              {name} <small>{entry.item[name] ? TYPES[typeOf(entry.item[name])] : ""}</small>
            </div>
            {entry.keys[name] && entry.item[name] ? (
              <KeyText table={table.name} value={entry.item[name]} segments={entry.keys[name]} />
            ) : (
              <Tree value={entry.item[name]} />
            )}
          </div>
        ))}
      </div>
    </aside>
  );
}
