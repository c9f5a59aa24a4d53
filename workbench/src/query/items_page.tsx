/** The items of a table: the query above, the collection below, one item at the right. */

import { useEffect, useMemo, useState } from "preact/hooks";

import type { TableInfo } from "../api";
import { CollectionView } from "../collection/collection_view";
import type { CollectionWindow, Entry, Totals } from "../collection/window";
import { Inspector } from "../item/inspector";
import { change, route } from "../router";
import { useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { count } from "../values";
import { QueryBar } from "./query_bar";
import { fromQuery, toQuery, type View } from "./view";

export function ItemsPage({ table }: { table: TableInfo }) {
  const { query } = useStore(route);
  const view = useMemo(() => fromQuery(table, query), [table.name, JSON.stringify(query), table.indexes.length]);
  const beside = table.indexes.find((each) => each.name === query["beside"]) ?? null;
  const [selected, setSelected] = useState<Entry | null>(null);
  const [open, setOpen] = useState(false);
  const [version, setVersion] = useState(0);
  const [totals, setTotals] = useState<{ totals: Totals; window: CollectionWindow } | null>(null);

  const show = (next: View) => change({ ...cleared, ...toQuery(next), beside: query["beside"] });
  const address = JSON.stringify(toQuery(view));
  useEffect(() => setSelected(null), [address]);
  useShortcuts(
    [
      { keys: ["r"], title: "Read again", run: () => setVersion((number) => number + 1) },
      { keys: ["Escape"], title: "Close the item", run: () => setOpen(false) },
      {
        keys: ["d"],
        title: "Turn the direction",
        run: () => view.partition && show({ ...view, descending: !view.descending, start: null }),
      },
    ],
    [address],
  );

  return (
    <div class={`items-page${open && selected ? " with-item" : ""}`}>
      <QueryBar view={view} onShow={show} onRefresh={() => setVersion((number) => number + 1)} />
      <div class="panes">
        <section class="pane">
          <CollectionView
            view={view}
            version={version}
            selected={selected?.id ?? null}
            onSelect={(entry) => {
              setSelected(entry);
              if (entry) setOpen(true);
            }}
            onOpen={(entry) => {
              setSelected(entry);
              setOpen(true);
            }}
            onTotals={(sum, window) => setTotals({ totals: sum, window })}
            compareWith={beside}
          />
        </section>
        {beside && (
          <section class="pane">
            <CollectionView
              view={{ ...view, index: beside, partition: null, sort: null, start: null, descending: false }}
              version={version}
              selected={selected?.id ?? null}
              keyboard={false}
              onSelect={(entry) => setSelected(entry)}
              onOpen={(entry) => {
                setSelected(entry);
                setOpen(true);
              }}
            />
          </section>
        )}
        {open && selected && (
          <Inspector table={table} entry={selected} onClose={() => setOpen(false)} />
        )}
      </div>
      <Status totals={totals?.totals ?? null} view={view} />
    </div>
  );
}

const cleared = { index: "", pk: "", sk: "", filter: "", order: "", at: "", pattern: "" };

/** What the view has cost so far. */
function Status({ totals, view }: { totals: Totals | null; view: View }) {
  const all = (view.index ?? view.table).items;
  return (
    <footer class="status" aria-live="off">
      {totals && (
        <>
          <span>
            <strong>{count(totals.returned)}</strong>
            {view.partition ? "" : ` of ${count(Math.max(all, totals.returned))}`} items
          </span>
          {totals.scanned > totals.returned && (
            <span class="waste">{count(totals.scanned)} read, {count(totals.scanned - totals.returned)} dropped by the filter</span>
          )}
          {totals.units !== null && <span title="Read capacity units, eventually consistent">{totals.units.toFixed(1)} RCU</span>}
          <span>{totals.milliseconds.toFixed(0)} ms in {count(totals.requests)} {totals.requests === 1 ? "request" : "requests"}</span>
        </>
      )}
    </footer>
  );
}
