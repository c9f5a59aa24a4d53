/** An item collection with what a question read of it: items in the order of their keys, the range marked. */

import type { Item, Segment } from "../api";
import { entityHue } from "../collection/hues";
import { KeyText } from "../collection/key_text";
import { go } from "../router";
import { count, plural, shortText } from "../values";
import type { Drawn, DrawnItem, Gap } from "./tour_calls";
import "../styles/drawing.css";

export function Drawing({ drawn }: { drawn: Drawn }) {
  const [partition, sort] = drawn.keys as [string, string | undefined];
  const first = drawn.rows.find(isItem);
  const alone = !drawn.is_scan && sort !== undefined; // one partition: its key stands above
  return (
    <figure class="drawing">
      <figcaption>
        <span class="drawing-place">
          {drawn.index ? (
            <>
              index <strong>{drawn.index}</strong> of {drawn.table}
            </>
          ) : (
            <>
              table <strong>{drawn.table}</strong>
            </>
          )}
        </span>
        {alone && first && (
          <span class="drawing-partition">
            <small>{partition}</small> <Key table={drawn.table} segments={first.keys[partition]} />
          </span>
        )}
        <span class="space" />
        <span class="drawing-count">
          {plural(drawn.total, "item")}
          {drawn.is_whole ? "" : " and more"}, <strong>{count(drawn.read)} read</strong>
        </span>
        <button class="link" onClick={() => go(["t", drawn.table, "items"], { index: drawn.index })}>
          Browse it
        </button>
      </figcaption>
      <div class="drawing-rows" role="list">
        {drawn.rows.map((row, place) =>
          isItem(row) ? (
            <Row
              key={place}
              drawn={drawn}
              row={row}
              shown={alone ? [sort] : drawn.keys}
              edge={edgeOf(drawn.rows, place)}
            />
          ) : (
            <div key={place} role="listitem" class={row.read === row.gap ? "drawn gap read" : "drawn gap"}>
              <span class="drawn-mark" />
              <span class="drawn-key">
                ⋯ {count(row.gap)} more{row.read === 0 ? ", not read" : row.read === row.gap ? ", read too" : `, ${count(row.read)} of them read`}
              </span>
            </div>
          ),
        )}
      </div>
    </figure>
  );
}

function Row({ drawn, row, shown, edge }: { drawn: Drawn; row: DrawnItem; shown: string[]; edge: string }) {
  const state = row.returned ? "read" : row.read ? "read dropped" : "";
  const begins = row.read && edge.includes(drawn.backwards ? "last" : "first");
  return (
    <div role="listitem" class={`drawn ${state} ${edge}`}>
      <span class="drawn-mark" title={row.returned ? "read and returned" : row.read ? "read, and dropped by the filter" : "not read"}>
        {begins && (drawn.backwards ? "↑" : "↓")}
      </span>
      <span class="drawn-key">
        {shown.map((name) => (
          <Key key={name} table={drawn.table} segments={row.keys[name]} />
        ))}
      </span>
      {row.entity && <span class={`entity ${entityHue(drawn.table, row.entity)}`}>{row.entity}</span>}
      <span class="drawn-values">{summary(row.attributes, row.keys)}</span>
      {row.read && !row.returned && <span class="drawn-dropped">read, dropped</span>}
    </div>
  );
}

function Key({ table, segments }: { table: string; segments: Segment[] | null | undefined }) {
  return segments ? <KeyText table={table} value={{ S: "" }} segments={segments} /> : null;
}

function isItem(row: DrawnItem | Gap): row is DrawnItem {
  return "keys" in row;
}

function edgeOf(rows: (DrawnItem | Gap)[], place: number): string {
  const is = (row: DrawnItem | Gap | undefined) => row !== undefined && (isItem(row) ? row.read : row.read > 0);
  const first = is(rows[place]) && !is(rows[place - 1]) ? "first" : "";
  const last = is(rows[place]) && !is(rows[place + 1]) ? "last" : "";
  return `${first} ${last}`;
}

/** The attributes that the shown keys do not have already, or have in another form: padded, or stored backwards. */
function summary(attributes: Item, keys: Record<string, Segment[] | null>): string {
  const known = new Set(Object.values(keys).flatMap((segments) => (segments ?? []).filter(([, , meaning]) => meaning === null).map(([, component]) => component)));
  return Object.entries(attributes)
    .filter(([name]) => !known.has(name))
    .map(([name, value]) => `${name}: ${shortText(value, 34)}`)
    .join("   ");
}
