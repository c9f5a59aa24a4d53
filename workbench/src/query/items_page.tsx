/** The items of a table: query above, collection below, one item at the right, tables beside; `r`, `n`, `s`, `d`. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { CallError, execute, type Item, type TableInfo } from "../api";
import { CollectionView } from "../collection/collection_view";
import type { CollectionWindow, Entry, Totals } from "../collection/window";
import { BatchBar } from "../item/batch_bar";
import { SaveDialog, type ShownRows } from "../transfer/save_dialog";
import { recognizedBy, type Values } from "../item/edit_calls";
import { Inspector, type Aim, type Part } from "../item/inspector";
import { takenUp, type Typed } from "../item/left_forms";
import { change, route } from "../router";
import { refreshTable, session } from "../session";
import { useShortcuts } from "../shortcuts";
import { tellSafeMode } from "../shell/notices";
import { useStore } from "../store";
import { count, own, plural, same } from "../values";
import { QueryBar } from "./query_bar";
import { besideOf, SidePane, type Beside } from "./side_pane";
import { fromQuery, keysOf, primaryKey, toQuery, type View } from "./view";

export function ItemsPage({ table }: { table: TableInfo }) {
  const { query } = useStore(route);
  const writable = useStore(session)?.writable ?? false;
  const view = useMemo(() => fromQuery(table, query), [table, JSON.stringify(query)]);
  const beside = table.indexes.find((each) => each.name === query["beside"]) ?? null;
  const others = useMemo(() => besideOf(query["with"]), [query["with"]]);
  const [selected, setSelected] = useState<Entry | null>(null);
  const [other, setOther] = useState<TableInfo | null>(null); // the table of what is selected, if it is one beside
  const clicked = useRef<(() => void) | null>(null); // opens what the first of two clicks was on: the item that it shows may cover that
  const [aimed, setAimed] = useState<Aim | null>(null);
  const [open, setOpen] = useState<"item" | "new" | null>(null);
  const [begun, setBegun] = useState<{ kind: string | null; given: Values | null; number: number }>({ kind: null, given: null, number: 0 }); // a new item
  const create = (kind: string | null, given: Values | null = null) => {
    setBegun(({ number }) => ({ kind, given, number: number + 1 }));
    setOpen("new");
  };
  const wanted = query["new"];
  useEffect(() => {
    if (!wanted) return;
    if (writable) create(wanted);
    change({ new: "" }, { replace: true });
  }, [wanted]);
  const isSaving = query["save"] !== undefined;
  useEffect(() => {
    if (!isSaving) return;
    setSaving(true);
    change({ save: "" }, { replace: true });
  }, [isSaving]);
  const [checked, setChecked] = useState<Map<string, Entry>>(new Map());
  const [version, setVersion] = useState(0);
  const [stale, setStale] = useState(false); // whether the selected item is to be taken from what is read again
  const [totals, setTotals] = useState<Totals | null>(null);
  const [saving, setSaving] = useState(false);
  const shown = useRef<CollectionWindow | null>(null);

  const again = () => {
    setStale(true);
    setVersion((number) => number + 1);
  };
  const address = JSON.stringify(toQuery(view));
  const show = (next: View, given?: string) => {
    if (JSON.stringify(toQuery(next)) === address) again(); // it is sent once more: what is stored may have changed
    change({ ...cleared, ...toQuery(next), given, pattern: query["pattern"], beside: next.index ? "" : query["beside"] });
  };
  const check = (entry: Entry, isChecked: boolean) =>
    setChecked((all) => {
      const next = new Map(all);
      if (isChecked) next.set(entry.id, entry);
      else next.delete(entry.id);
      return next;
    });
  useEffect(() => {
    setOther(null);
    setSelected(null);
    setChecked(new Map());
  }, [address]);
  // An index may have a part of the item; what is edited, copied, duplicated and deleted is the whole. It is kept apart from what
  // is selected: a click on the row selects the part again.
  const projection = other ? "" : ((view.index ?? beside)?.projection ?? "ALL"); // of a table beside, the whole is always read
  const shownId = open === "item" ? selected?.id : undefined;
  const [whole, setWhole] = useState<{ id: string; item: Item | null; failure: CallError | null } | null>(null);
  const part: Part = !shownId || projection === "ALL" ? null : whole?.id === shownId ? whole.failure : "reading";
  const entry = selected && whole?.item && whole.id === selected.id ? { ...selected, item: whole.item } : selected;
  useEffect(() => {
    setWhole(null);
    if (!selected || !shownId || projection === "ALL") return;
    const cancel = new AbortController();
    const own = other ?? table;
    const request = { TableName: own.name, Key: primaryKey(own, selected.item), ConsistentRead: true, ReturnConsumedCapacity: "INDEXES" };
    execute("GetItem", request, { signal: cancel.signal }).then(
      ({ response }) => {
        if (cancel.signal.aborted) return;
        const gone = new CallError("ItemIsGone", "The table has no such item any more; the index will follow.");
        setWhole({ id: shownId, item: response.Item ?? null, failure: response.Item ? null : gone });
      },
      (failure: CallError) => cancel.signal.aborted || setWhole({ id: shownId, item: null, failure }),
    );
    return () => cancel.abort();
  }, [shownId, projection, other?.name, version]);
  useShortcuts(
    [
      { keys: ["r"], title: "Read again", run: again },
      { keys: ["n"], title: "New item", run: () => (writable ? create(null) : tellSafeMode()) },
      { keys: ["s"], title: "Download the rows or the table as a file", run: () => setSaving(true) },
      {
        keys: ["Escape"],
        title: "Close the item",
        run: () => {
          setOpen(null);
          setChecked(new Map());
        },
      },
      {
        keys: ["d"],
        title: "Turn the direction",
        run: () => view.partition && show({ ...view, descending: !view.descending, start: null }, query["given"]),
      },
    ],
  );

  const onChanged = (id: string | null, item: Item | null) => {
    void refreshTable((other ?? table).name);
    if (other) {
      again();
      if (!item || JSON.stringify(primaryKey(other, item)) !== id) setSelected(null);
      else setWhole({ id, item, failure: null });
      return;
    }
    if (id === null || !item) {
      again();
      if (!item) setSelected(null);
      return;
    }
    if (JSON.stringify(primaryKey(table, item)) !== id) {
      again(); // it has moved to another key
      return openMade(item);
    }
    setWhole((now) => (now?.id === id ? { id, item, failure: null } : now));
    const before = shown.current?.entries.find((each) => each.id === id)?.item;
    const keys = keysOf(view);
    const asked = [...keys.partition, ...keys.sort].map((each) => each.name).concat(view.filters.map((each) => each.attribute));
    if (!before || asked.some((name) => !same(own(before, name), own(item, name)))) {
      again(); // it may have another place in the list, or none
      setSelected((now) => (now?.id === id ? { ...now, item } : now));
      return;
    }
    shown.current?.replace(id, item);
    setSelected(shown.current?.entries.find((each) => each.id === id) ?? null);
  };
  const select = (entry: Entry | null, of: TableInfo | null = null, attribute?: string) => {
    if (entry) clicked.current ??= () => openItem(entry, of, attribute);
    setOther(of);
    setSelected(entry);
    setAimed(null);
    // A table beside would move away under a double click, if the first one made room for the item.
    const hasRoom = of === null && matchMedia("(min-width: 1101px)").matches;
    setOpen((now) => (entry && (now === "item" || hasRoom) ? "item" : now));
  };
  /** Shows what was just made, also where the view does not have it. */
  const openMade = (item: Item | null) => {
    setOpen(item ? "item" : null);
    if (!item) return;
    setAimed(null);
    const id = JSON.stringify(primaryKey(table, item));
    const partition = table.keys.partition.map((each) => item[each.name]!);
    setSelected({ item, id, entity: recognizedBy(table.name, item), keys: {}, group: "", partition, outside: false, findings: [] });
  };
  const formLeft = useStore(takenUp);
  const typed = useRef<Typed | null>(null);
  const [returns, setReturns] = useState(0); // of forms that were left
  useEffect(() => void (typed.current = null), [returns]); // the inspector has it
  useEffect(() => {
    if (formLeft?.page !== table.name) return;
    takenUp.set(null);
    typed.current = formLeft;
    setReturns((number) => number + 1);
    if (!formLeft.entry) return create(formLeft.kind, formLeft.given);
    openItem(formLeft.entry, formLeft.table.name === table.name ? null : formLeft.table);
  }, [formLeft]);
  const openItem = (entry: Entry, of: TableInfo | null = null, attribute?: string) => {
    setOther(of);
    setSelected(entry);
    setAimed(attribute === undefined ? null : { attribute });
    setOpen("item");
  };

  return (
    <div class="items-page">
      <QueryBar view={view} onShow={show} onNew={() => create(null)} onSave={() => setSaving(true)} writable={writable} />
      {saving && <SaveDialog table={table} rows={rowsOf(view, shown.current)} onClose={() => setSaving(false)} />}
      {checked.size > 0 && (
        <BatchBar table={table} entries={[...checked.values()]} writable={writable} isPartial={((view.index ?? beside)?.projection ?? "ALL") !== "ALL"} isMore={isPartOf(shown.current, checked)} onClear={() => setChecked(new Map())} onChanged={() => { again(); void refreshTable(table.name); }} />
      )}
      <div
        class="panes"
        onClickCapture={(event) => {
          if (event.detail === 1) clicked.current = null;
        }}
        onDblClick={() => clicked.current?.()}
      >
        <section class="pane" aria-label={view.index?.name ?? "Table"}>
          <CollectionView
            view={view}
            version={version}
            selected={other ? null : (selected?.id ?? null)}
            onSelect={(each, attribute) => select(each, null, attribute)}
            onOpen={(each) => openItem(each)}
            onTotals={(sum, window) => {
              shown.current = window;
              setTotals(sum);
              const now = stale && !other ? window.entries.find((each) => each.id === selected?.id) : undefined;
              if (now && !window.loading) {
                setStale(false);
                setSelected(now);
              }
            }}
            compareWith={view.index ? null : beside}
            isItemOpen={open === "new" || (open === "item" && selected !== null)}
            checked={checked}
            onCheck={check}
          />
        </section>
        {beside && !view.index && (
          <section class="pane" aria-label={beside.name}>
            <CollectionView
              view={{ ...view, index: beside, partition: null, sort: null, start: null, descending: false }}
              version={version}
              selected={other ? null : (selected?.id ?? null)}
              keyboard={false}
              onSelect={(each, attribute) => select(each, null, attribute)}
              onOpen={(each) => openItem(each)}
            />
          </section>
        )}
        {others.map((each, place) => (
          <SidePane
            key={place}
            beside={each}
            version={version}
            selected={other?.name === each.table ? (selected?.id ?? null) : null}
            onChange={(next) => {
              const kept = others.map((one, at) => (at === place ? next : one)).filter((one): one is Beside => one !== null);
              if (next === null) select(null);
              change({ with: kept.length ? JSON.stringify(kept) : "" });
            }}
            onSelect={(of, entry, attribute) => select(entry, of, attribute)}
            onOpen={(of, entry) => openItem(entry, of)}
          />
        ))}
        {(open === "new" || (open === "item" && selected)) && (
          <Inspector
            key={open === "new" ? `new ${begun.number}` : `${other?.name ?? ""} ${selected!.id} ${returns}`}
            page={table.name}
            typed={typed.current}
            table={open === "new" ? table : (other ?? table)}
            entry={open === "new" ? null : entry}
            aimed={open === "new" ? null : aimed}
            kind={open === "new" ? begun.kind : null}
            given={open === "new" ? begun.given : null}
            onNew={other ? null : create}
            part={open === "new" ? null : part}
            writable={writable}
            keyboard={checked.size === 0}
            onClose={() => setOpen(null)}
            onChanged={(id, item) => {
              onChanged(id, item);
              if (open === "new") openMade(item);
            }}
          />
        )}
      </div>
      <Status totals={totals} view={view} />
    </div>
  );
}

/** Whether all items that are loaded are checked, and the view has more. */
function isPartOf(window: CollectionWindow | null, checked: ReadonlyMap<string, Entry>): boolean {
  if (!window || (window.atEnd && window.atStart)) return false;
  return window.entries.every((each) => each.outside || checked.has(each.id));
}

/** What the view shows: without what is beside its range, and with the attributes in the order of its columns. */
function rowsOf(view: View, window: CollectionWindow | null): ShownRows {
  const keys = [view.table.keys, ...(view.index ? [view.index.keys] : [])].flatMap((each) => [...each.partition, ...each.sort]);
  const columns = window?.columns.entities.flatMap((entity) => window.columns.names(entity)) ?? [];
  return {
    entries: window?.entries.filter((each) => !each.outside) ?? [],
    first: [...new Set([...keys.map((each) => each.name), ...columns])],
    isPart: window !== null && !(window.atEnd && window.atStart),
  };
}

const cleared = { given: "", index: "", pk: "", sk: "", filter: "", order: "", at: "" };

/** What the view has cost so far. */
function Status({ totals, view }: { totals: Totals | null; view: View }) {
  const all = (view.index ?? view.table).items;
  return (
    <footer class="status">
      {totals && (
        <>
          <span>
            <strong>{count(totals.returned)}</strong>
            {view.partition || view.filters.length ? (totals.returned === 1 ? " item" : " items") : ` of ${plural(Math.max(all, totals.returned), "item")}`}
          </span>
          {totals.scanned > totals.returned && (
            <span class="waste">
              {count(totals.scanned)} read, {count(totals.scanned - totals.returned)} dropped by the filter
            </span>
          )}
          {totals.units !== null && <span title="Read capacity units, eventually consistent: half of one for each 4 KB, of each request rounded up">{totals.units.toFixed(1)} RCU</span>}
          <span>
            {totals.milliseconds.toFixed(0)} ms in {count(totals.requests)} {totals.requests === 1 ? "request" : "requests"}
          </span>
        </>
      )}
    </footer>
  );
}
