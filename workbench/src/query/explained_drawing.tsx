/** The item collections that a request reads, as `isotone.explain` draws them: the range, and what is beside it. */

import { useEffect } from "preact/hooks";

import { entityHue, hue } from "../collection/hues";
import { loadModel, models } from "../session";
import { useStore } from "../store";
import { count, plural } from "../values";
import "../styles/drawing.css";

interface KeyPart {
  text: string;
  field: string;
}
interface DrawnItem {
  row: "item";
  sort: KeyPart[];
  kind: string;
  attributes: [name: string, value: string][];
  state: "" | "returned" | "dropped";
}
interface Gap {
  row: "gap";
  /** null: an unknown number; 0: the place of a range in which there are none. */
  items: number | null;
  read: number;
  /** The items that there are at least, if their number is unknown. */
  least: number;
}
export interface DrawnView {
  table: string;
  title: string;
  subtitle: string;
  partition_name: string;
  sort_name: string;
  direction: "forward" | "backward" | null;
  hidden: number | null;
  collections: { partition: KeyPart[]; rows: (DrawnItem | Gap)[] }[];
}

export function ExplainedDrawing({ views }: { views: DrawnView[] }) {
  useStore(models); // the colours are those of its names: a page without a table has none yet
  useEffect(() => views.forEach((each) => loadModel(each.table)), [views]);
  return (
    <>
      {views.flatMap((view, number) =>
        view.collections.map((collection, place) => (
          <figure class="drawing" key={`${number}/${place}`}>
            <figcaption>
              <span class="drawing-place">
                <strong>{view.title}</strong> {view.subtitle}
              </span>
              <span class="drawing-partition">
                <small>{view.partition_name}</small> <Key table={view.table} parts={collection.partition} />
              </span>
            </figcaption>
            <div class="drawing-rows" role="list">
              {collection.rows.map((row, at) =>
                row.row === "gap" ? <Left key={at} gap={row} isFiltered={collection.rows.some(isDropped)} /> : <Item key={at} view={view} item={row} begins={begins(collection.rows, at, view)} />,
              )}
            </div>
          </figure>
        )),
      )}
      {views.map((view, number) => view.hidden !== 0 && (view.hidden !== null || !view.direction) && view.collections.length > 0 && (
        <p class="quiet" key={number}>
          {view.hidden === null ? "There are more collections." : `${plural(view.hidden, "more collection")} ${view.direction ? "not read" : "not shown"}.`}
        </p>
      ))}
    </>
  );
}

function Item({ view, item, begins }: { view: DrawnView; item: DrawnItem; begins: boolean }) {
  const state = item.state === "returned" ? "read" : item.state === "dropped" ? "read dropped" : "";
  const title = item.state === "returned" ? "read and returned" : item.state ? "read, and dropped by the filter" : "not read";
  return (
    <div role="listitem" class={`drawn ${state}`}>
      <span class="drawn-mark" title={title}>
        {begins && (view.direction === "backward" ? "↑" : "↓")}
      </span>
      <span class="drawn-key">
        <Key table={view.table} parts={item.sort} />
      </span>
      {item.kind && <span class={`entity ${entityHue(view.table, item.kind)}`}>{item.kind}</span>}
      <span class="drawn-values">{item.attributes.map(([name, value]) => `${name}: ${value}`).join("   ")}</span>
      {item.state === "dropped" && <span class="drawn-dropped">read, dropped</span>}
    </div>
  );
}

function isDropped(row: DrawnItem | Gap): boolean {
  return row.row === "item" && row.state === "dropped";
}

/** Hidden items. Where a filter drops some, nobody knows which: they have the colour of neither. */
function Left({ gap, isFiltered }: { gap: Gap; isFiltered: boolean }) {
  const read = gap.items === null || !gap.items ? "" : gap.read === 0 ? ", not read" : gap.read === gap.items ? ", read too" : `, ${count(gap.read)} of them read`;
  const text = gap.items === null ? (gap.read ? "more items, read too" : gap.least ? "more items" : "perhaps more items") : gap.items === 0 ? "the range: no item is in it" : `${count(gap.items)} more${read}`;
  return (
    <div role="listitem" class={!isFiltered && (gap.items === 0 || (gap.items === null && gap.read) || (gap.items && gap.read === gap.items)) ? "drawn gap read" : "drawn gap"}>
      <span class="drawn-mark" />
      <span class="drawn-key">⋯ {text}</span>
    </div>
  );
}

function Key({ table, parts }: { table: string; parts: KeyPart[] }) {
  return (
    <span class="key">
      {parts.map((part, place) => (
        <span key={place} class={part.field ? hue(table, part.field) : "literal"} title={part.field || undefined}>
          {part.text}
        </span>
      ))}
    </span>
  );
}

/** Whether the reading begins at a row. */
function begins(rows: (DrawnItem | Gap)[], at: number, view: DrawnView): boolean {
  if (!view.direction) return false;
  const isRead = (row: DrawnItem | Gap | undefined) => row?.row === "item" && row.state !== "";
  const before = view.direction === "backward" ? rows.slice(at + 1) : rows.slice(0, at);
  return isRead(rows[at]) && !before.some(isRead);
}
