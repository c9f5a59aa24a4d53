/** Draws the rows of a view that can be seen; selects items by click, `x` and arrows; folds the library's own records. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { IndexInfo } from "../api";
import { useShortcuts } from "../shortcuts";
import { groupOf } from "../query/pattern_form";
import { keysOf, toQuery, type View } from "../query/view";
import { href, route } from "../router";
import { models } from "../session";
import { remembered, useStore } from "../store";
import { count, own, plural, shortMoment, shortText, typed } from "../values";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";
import { arrangements, KEYS, move as moveColumn, resize } from "./column_settings";
import { ColumnsDialog } from "./columns_dialog";
import { Handle } from "./handle";
import { entityHue } from "./hues";
import { KeyText } from "./key_text";
import { inOneLine, ITEM, STACKED, TOUCHED, type Row } from "./rows";
import { next as nextSorting, sortedSlot, type Sorting } from "./sorting";
import { CollectionWindow, type Entry, type Slot, type Totals } from "./window";

const OVERSCAN = 400; // pixels beyond the visible ones that are drawn
const AHEAD = 900; // pixels before the end at which the next page is read

/** The column of the check boxes. */
const TICK = matchMedia("(pointer: coarse)").matches ? 44 : 36;

/** Whether the library's own records are shown among the items of a table. */
const showsOwn = remembered<boolean>("own records", false, (value) => typeof value === "boolean");

/** Where an item covers the list: a tap opens it, as there is nothing beside. */
const OPENS_AT_ONCE = "(max-width: 900px), (hover: none)";

interface Props {
  view: View;
  /** The selected item, by its id. */
  selected: string | null;
  /** `attribute` is that of the value that was clicked. */
  onSelect: (entry: Entry | null, attribute?: string) => void;
  onOpen: (entry: Entry) => void;
  onTotals?: (totals: Totals, window: CollectionWindow) => void;
  /** Items that are not in this index are shown as left out. */
  compareWith?: IndexInfo | null;
  /** Whether this pane listens to the keyboard. */
  keyboard?: boolean;
  /** Changes when everything is to be read again. */
  version?: number;
  /** Whether an item is shown beside the list. */
  isItemOpen?: boolean;
  checked?: ReadonlyMap<string, Entry>;
  onCheck?: (entry: Entry, checked: boolean) => void;
}

interface Placed {
  slot: Slot;
  top: number;
}

interface Block {
  group: string;
  entry: Entry;
  top: number;
  bottom: number;
}

export function CollectionView(props: Props) {
  const { view, selected, onSelect, onOpen, compareWith = null, version = 0 } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const [drawn, redraw] = useState(0);
  const [sorting, setSorting] = useState<Sorting | null>(null);
  const [arranging, setArranging] = useState(false);
  const arranged = useStore(arrangements);
  const known = useStore(models);
  const folds = !useStore(showsOwn) && view.partition === null;
  const [shown, setShown] = useState({ top: 0, height: 900, width: 1200 });
  const address = JSON.stringify(toQuery(view)) + view.table.name;

  const data = useMemo(() => {
    const made = new CollectionWindow(view, () => redraw((number) => number + 1), true, folds);
    const keys = keysOf(view);
    made.columns.hide([...keys.partition, ...keys.sort].map((each) => each.name));
    return made;
  }, [address, version, folds]);

  useMemo(() => data.columns.arrange(), [data, arranged, known]);
  useEffect(() => setSorting(null), [address]);

  // Where one was, when the same view is read again: the place in the list is kept, also if its item is gone.
  const was = useRef({ address, place: 0, top: 0 });
  useEffect(() => {
    const isSame = was.current.address === address;
    was.current = { address, place: isSame ? was.current.place : 0, top: isSame ? shown.top : 0 };
    void data.loadAfter();
    scroller.current?.scrollTo(0, 0);
    return () => data.close();
  }, [data]);
  useLayoutEffect(() => {
    if (!was.current.top || !data.slots.length) return;
    scroller.current?.scrollTo(0, was.current.top);
    was.current.top = 0;
  });

  useEffect(() => props.onTotals?.(data.totals, data), [data, data.totals, data.atEnd, data.loading, data.error]);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () =>
      setShown((now) => ({ ...now, height: element.clientHeight, width: element.clientWidth }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  // Pages that were put before the first one must not move what is seen.
  useLayoutEffect(() => {
    if (!data.added || !scroller.current) return;
    scroller.current.scrollTop += data.added;
    data.added = 0;
  });

  const stacked = shown.width < 560;
  const itemHeight = stacked ? STACKED : matchMedia("(pointer: coarse)").matches ? TOUCHED : ITEM;
  useLayoutEffect(() => data.layOutAgain(itemHeight), [data, itemHeight]);
  const slots = useMemo(() => (sorting ? [sortedSlot(data.slots, data.columns, sorting)] : data.slots), [data, data.slots, drawn, sorting, itemHeight]);
  const placed: Placed[] = [];
  let height = 0;
  for (const slot of slots) {
    placed.push({ slot, top: height });
    height += slot.height;
  }
  const from = shown.top - OVERSCAN;
  const to = shown.top + shown.height + OVERSCAN;
  const near = placed.filter(({ slot, top }) => top + slot.height > from && top < to);
  const rows = near.flatMap(({ slot, top }) =>
    slot.rows
      .filter((row) => top + row.top + row.height > from && top + row.top < to)
      .map((row) => ({ row, top: top + row.top })),
  );

  useEffect(() => {
    for (const { slot } of near) if (!slot.entries) void data.restore(slot);
    if (data.paused !== "after" && height - (shown.top + shown.height) < AHEAD) void data.loadAfter();
    if (data.paused !== "before" && shown.top < AHEAD && (data.slots.length || data.atEnd)) void data.loadBefore();
  });

  const entries = slots.flatMap((slot) => slot.entries ?? []);
  const place = entries.findIndex((each) => each.id === selected);
  if (place >= 0) was.current.place = place;
  const { checked, onCheck } = props;
  const lastChecked = useRef<string | null>(null); // the item that was checked last: Shift extends from there
  const check = (entry: Entry, isChecked: boolean) => {
    lastChecked.current = entry.id;
    onCheck?.(entry, isChecked);
  };
  /** Checks the items from the last checked or selected one to this one. */
  const checkTo = (entry: Entry) => {
    const start = entries.findIndex((each) => each.id === (lastChecked.current ?? selected ?? entry.id));
    const end = entries.indexOf(entry);
    const [first, last] = start < 0 ? [end, end] : [Math.min(start, end), Math.max(start, end)];
    for (const each of entries.slice(first, last + 1)) if (!each.outside || each === entry) onCheck?.(each, true);
    lastChecked.current = entry.id;
  };
  const loaded = entries.filter((each) => !each.outside);
  const areAllChecked = loaded.length > 0 && loaded.every((each) => checked?.has(each.id));
  const checkAll = () => {
    for (const each of loaded) onCheck?.(each, !areAllChecked);
  };
  const move = (step: number, extending = false) => {
    const first = entries.findIndex((each) => !each.outside);
    const wanted = place >= 0 ? place + step : Math.max(first, was.current.place + Math.min(0, step)); // what stands where one was
    const next = entries[Math.max(0, Math.min(entries.length - 1, wanted))];
    if (!next) return;
    if (extending) checkTo(next);
    onSelect(next);
    reveal(next);
  };
  const reveal = (entry: Entry) => {
    const element = scroller.current;
    if (!element) return;
    for (const { slot, top } of placed) {
      const row = slot.rows.find((each) => each.kind === "item" && each.entry.id === entry.id);
      if (!row) continue;
      const at = top + row.top;
      if (at - 60 < element.scrollTop) element.scrollTop = at - 60;
      else if (at + row.height + 20 > element.scrollTop + element.clientHeight)
        element.scrollTop = at + row.height + 20 - element.clientHeight;
    }
  };
  const current = entries[place];
  useShortcuts(
    props.keyboard === false
      ? []
      : [
          { keys: ["j", "ArrowDown"], title: "Next item; with Shift, select both", run: (event) => move(1, event?.shiftKey) },
          { keys: ["k", "ArrowUp"], title: "Previous item; with Shift, select both", run: (event) => move(-1, event?.shiftKey) },
          ...(onCheck
            ? [
                { keys: ["x", " "], title: "Select the item, for several at once", run: () => (current ? check(current, !checked?.has(current.id)) : notify("Go to an item first, with j and k or a click")) },
                { keys: ["a"], title: "Select all items that are loaded, or none", run: checkAll },
              ]
            : []),
          { keys: ["Enter"], title: "Open the item", run: () => current && onOpen(current) },
          { keys: ["o"], title: "Arrange the columns, sort", run: () => setArranging(true) },
          { keys: ["PageDown"], title: "Down a screen", run: () => scroller.current?.scrollBy(0, shown.height - 60) },
          { keys: ["PageUp"], title: "Up a screen", run: () => scroller.current?.scrollBy(0, 60 - shown.height) },
          { keys: ["Home"], title: "To the top", run: () => scroller.current?.scrollTo(0, 0) },
          { keys: ["End"], title: "To the end of what is loaded", run: () => scroller.current?.scrollTo(0, height) },
        ],
  );

  const keys = keysOf(view);
  const hasSort = keys.sort.length > 0;
  const ofKeys = data.columns.keyWidths(shown.width, onCheck ? TICK - 12 : 0, props.isItemOpen ?? false);
  const widths = stacked
    ? { "--partition": "0px", "--sort": "100%" }
    : { "--partition": hasSort ? `${ofKeys.partition}px` : "0px", "--sort": `${ofKeys.sort}px` };
  const sort = (entity: string | null, name: string) => setSorting(nextSorting(sorting, entity, name));
  // Beside the names of the keys, as a line of its own would move the name that is clicked again for the other direction.
  const sortedBy = sorting && (
    <>
      <span class="what">
        Sorted by <code>{sorting.name}</code>, {sorting.descending ? "descending" : "ascending"}: the {plural(entries.length, "item")} that {entries.length === 1 ? "is" : "are"} loaded.
      </span>{" "}
      <button class="link" onClick={() => setSorting(null)}>
        As stored
      </button>
    </>
  );
  const hidden = data.columns.hiddenCount;
  const blocks = blocksOf(near, from, to);
  const empty = !entries.length && !data.loading && !data.error && data.atEnd && data.atStart;

  return (
    <div class={`collection${stacked ? " stacked" : ""}${hasSort ? "" : " no-sort"}${onCheck ? " checkable" : ""}`} style={{ ...widths, "--item": `${itemHeight}px`, "--tick": `${TICK}px` }}>
      <div class="collection-keys">
        {onCheck && (
          <label class="tick-all" title="Select all items that are loaded (a)">
            <input
              type="checkbox"
              aria-label="Select all items that are loaded"
              disabled={!loaded.length}
              checked={areAllChecked}
              ref={(box) => {
                if (box) box.indeterminate = !areAllChecked && (checked?.size ?? 0) > 0;
              }}
              onChange={checkAll}
            />
          </label>
        )}
        <div class="partition-name" aria-hidden="true">
          <KeyName kind="Partition key" names={keys.partition.map((each) => each.name)} />
          {!stacked && hasSort && <Handle width={ofKeys.partition} onResize={(width) => resize(view.table.name, KEYS, "partition", width)} />}
        </div>
        {hasSort && (
          <div class="sort-name" aria-hidden="true">
            <KeyName kind="Sort key" names={keys.sort.map((each) => each.name)} />
            <span class="direction-mark">{view.descending ? "↑ descending" : "↓ ascending"}</span>
            {!stacked && <Handle width={ofKeys.sort} onResize={(width) => resize(view.table.name, KEYS, "sort", width)} />}
          </div>
        )}
        {sortedBy && !stacked ? <p class="sorted-by">{sortedBy}</p> : <div class="attributes-name" aria-hidden="true">Attributes</div>}
        <span class="space" />
        {hidden > 0 && <span class="hidden-count">{count(hidden)} hidden</span>}
        <button class="link arrange" title="Arrange the columns, sort (o)" onClick={() => setArranging(true)}>
          Columns
        </button>
      </div>
      {sortedBy && stacked && <p class="above sorted-by">{sortedBy}</p>}
      {data.ownRecords.size > 0 && view.partition === null && (
        <p class="above own-records" title="The library's own: they hold unique values and the forms of keys">
          {plural(data.ownRecords.size, "internal record")} {data.ownRecords.size === 1 ? "is" : "are"} {folds ? "folded" : "shown"}{data.atEnd ? "" : " so far"}.{" "}
          <button class="link" onClick={() => showsOwn.update((shows) => !shows)}>
            {folds ? "Show" : "Fold"} {data.ownRecords.size === 1 ? "it" : "them"}
          </button>
        </p>
      )}
      {data.paused === "before" && (
        <p class="above">
          <Paused data={data} onGoOn={() => void data.loadBefore()} />
        </p>
      )}
      <div
        class="scroller"
        ref={scroller}
        tabIndex={0}
        role="listbox"
        aria-multiselectable={onCheck ? true : undefined}
        aria-label={`Items of ${view.table.name}${view.index ? `, index ${view.index.name}` : ""}`}
        aria-activedescendant={current ? domId(current) : undefined}
        onScroll={(event) => {
          const { scrollTop } = event.currentTarget;
          requestAnimationFrame(() => setShown((now) => (now.top === scrollTop ? now : { ...now, top: scrollTop })));
        }}
      >
        <div class="canvas" style={{ height: `${height + 64}px`, minWidth: stacked ? "100%" : `${data.columns.width + ofKeys.partition + ofKeys.sort + 20}px` }}>
          <div class="partitions" style={{ height: `${height}px`, marginBottom: `${-height}px` }} aria-hidden="true">
            {blocks.map((block) => (
              <div
                class="partition"
                key={`${block.group}${block.top}`}
                style={{ top: `${block.top}px`, height: `${block.bottom - block.top}px` }}
              >
                <PartitionLabel view={view} entry={block.entry} />
              </div>
            ))}
          </div>
          {rows.map(({ row, top }) =>
            row.kind === "head" ? (
              <HeadRow key={`h${row.entry.id}`} row={row} top={top} view={view} data={data} stacked={stacked} sorting={sorting} onSort={sort} />
            ) : (
              <ItemRow
                key={row.entry.id}
                row={row}
                top={top}
                view={view}
                data={data}
                stacked={stacked}
                room={shown.width - (onCheck ? TICK : 12)}
                selected={row.entry.id === selected}
                checked={checked?.has(row.entry.id) ?? false}
                onCheck={onCheck && check}
                onCheckTo={checkTo}
                leftOut={compareWith !== null && isLeftOut(row.entry, compareWith)}
                leftOutOf={compareWith?.name ?? ""}
                onSelect={onSelect}
                onOpen={onOpen}
              />
            ),
          )}
          <div class="foot" style={{ top: `${height}px` }}>
            <Foot data={data} />
          </div>
        </div>
        {!entries.length && data.loading && <Skeleton />}
      </div>
      {arranging && <ColumnsDialog table={view.table.name} columns={data.columns} keyWidths={stacked ? null : hasSort ? ofKeys : { sort: ofKeys.sort }} sorting={sorting} onSort={setSorting} onClose={() => setArranging(false)} />}
      {data.error && (
        <div class="over">
          <Failure error={data.error} onRetry={() => data.retry()} />
        </div>
      )}
      {empty && (
        <div class="over">
          <Nothing view={view} scanned={data.totals.scanned} hasOthers={!data.isCollectionEmpty} folded={folds ? data.ownRecords.size : 0} />
        </div>
      )}
    </div>
  );
}

function KeyName({ kind, names }: { kind: string; names: string[] }) {
  return (
    <>
      <span class="key-kind">{kind}</span> <code>{names.join(" · ")}</code>
    </>
  );
}

function PartitionLabel({ view, entry }: { view: View; entry: Entry }) {
  const keys = keysOf(view);
  const open = { ...toQuery({ ...view, sort: null, start: null, filters: [] }), pk: JSON.stringify(entry.partition.map(typed)) };
  return (
    <div class="partition-label">
      {keys.partition.map((each, place) => (
        <a
          key={each.name}
          href={href(["t", view.table.name, "items"], open)}
          tabIndex={-1}
          title="Open this item collection"
        >
          <KeyText table={view.table.name} value={entry.partition[place]} segments={entry.keys[each.name]} />
        </a>
      ))}
    </div>
  );
}

interface HeadProps {
  row: Row;
  top: number;
  view: View;
  data: CollectionWindow;
  stacked: boolean;
  sorting: Sorting | null;
  onSort: (entity: string | null, name: string) => void;
}

/** The name of an entity, and those of its attributes above their columns: clicked to sort, dragged to move and to resize.
 * The keyboard has the dialog of columns for all of that. */
function HeadRow({ row, top, view, data, stacked, sorting, onSort }: HeadProps) {
  const { entry } = row;
  const columns = data.columns.of(entry.entity);
  const table = view.table.name;
  return (
    <div
      class={`row head${entry.outside ? " outside" : ""}${row.starts ? " starts" : ""}`}
      style={{ top: `${top}px`, height: `${row.height}px` }}
      aria-hidden="true"
    >
      <div class="sort-cell">
        {stacked && row.starts && <PartitionLabel view={view} entry={entry} />}
        {entry.outside ? (
          <span class="outside-label">outside the range</span>
        ) : (
          entry.entity !== null && (
            <span class={`entity ${entityHue(table, entry.entity)}`}>{entry.entity}</span>
          )
        )}
      </div>
      <div class="attributes">
        {columns.map((each) => {
          const sorted = sorting?.entity === entry.entity && sorting.name === each.name ? sorting : null;
          return (
            <span
              class={`name${sorted ? " sorted" : ""}`}
              key={each.name}
              style={{ left: `${each.left}px`, width: `${each.width}px` }}
              title={`${each.name}: click to sort, drag to move`}
              draggable
              onClick={() => onSort(entry.entity, each.name)}
              onDragStart={(event) => event.dataTransfer?.setData("text/x-column", JSON.stringify([entry.entity, each.name]))}
              onDragOver={(event) => event.dataTransfer?.types.includes("text/x-column") && event.preventDefault()}
              onDrop={(event) => {
                event.preventDefault();
                const [entity, name] = JSON.parse(event.dataTransfer?.getData("text/x-column") || "[]") as [string | null, string];
                if (entity === entry.entity && name !== each.name) moveColumn(table, entity, data.columns.names(entity), name, each.name);
              }}
            >
              {each.name}
              {sorted && (sorted.descending ? " ↓" : " ↑")}
              <Handle width={each.width} onResize={(width) => resize(table, entry.entity, each.name, width)} />
            </span>
          );
        })}
      </div>
    </div>
  );
}

interface ItemRowProps {
  row: Row;
  top: number;
  view: View;
  data: CollectionWindow;
  stacked: boolean;
  /** The width for the first values below a key. */
  room: number;
  selected: boolean;
  leftOut: boolean;
  leftOutOf: string;
  checked: boolean;
  onCheck: ((entry: Entry, checked: boolean) => void) | undefined;
  /** Checks all items from the last checked one to this one. */
  onCheckTo: (entry: Entry) => void;
  onSelect: (entry: Entry, attribute?: string) => void;
  onOpen: (entry: Entry) => void;
}

function ItemRow({ row, top, view, data, stacked, room, selected, leftOut, leftOutOf, checked, onCheck, onCheckTo, onSelect, onOpen }: ItemRowProps) {
  const { entry } = row;
  const { item } = entry;
  const keys = keysOf(view);
  const table = view.table.name;
  // A box for the mouse and the finger; the row itself says whether it is checked.
  const tick = onCheck && (
    <span
      class="tick"
      aria-hidden="true"
      onClick={(event) => {
        event.stopPropagation();
        if (event.shiftKey) onCheckTo(entry);
        else onCheck(entry, !checked);
      }}
    />
  );
  const marked = (selected ? " selected" : "") + (leftOut ? " left-out" : "") + (entry.outside ? " outside" : "");
  return (
    <div
      class={`row item${marked}${checked ? " checked" : ""}`}
      id={domId(entry)}
      role="option"
      aria-selected={selected}
      aria-checked={onCheck ? checked : undefined}
      style={{ top: `${top}px`, height: `${row.height}px` }}
      onMouseDown={(event) => {
        if (event.shiftKey || event.detail > 1) event.preventDefault(); // they select items, not text
      }}
      onClick={(event) => {
        if (onCheck && (event.metaKey || event.ctrlKey)) onCheck(entry, !checked);
        else if (onCheck && event.shiftKey) onCheckTo(entry);
        else if (matchMedia(OPENS_AT_ONCE).matches) onOpen(entry);
        else onSelect(entry, (event.target as Element).closest<HTMLElement>(".value")?.dataset["attribute"]);
      }}
    >
      <span class="unseen">{entry.partition.map((each) => shortText(each)).join(" ")}</span>
      {stacked && tick}
      <div class="sort-cell" title={keyTitle(entry, keys.sort.length ? keys.sort : keys.partition)}>
        {!stacked && tick}
        {entry.findings.length > 0 && (
          <span class="misfit-mark" role="img" aria-label={`Does not fit its model: ${entry.findings.join("; ")}`} title={`Does not fit its model:\n${entry.findings.join("\n")}`}>
            ⚠
          </span>
        )}
        {keys.sort.length
          ? keys.sort.map((each) => (
              <KeyText key={each.name} table={table} value={item[each.name]} segments={entry.keys[each.name]} />
            ))
          : keys.partition.map((each) => (
              <KeyText key={each.name} table={table} value={item[each.name]} segments={entry.keys[each.name]} />
            ))}
      </div>
      {stacked && <FirstValues entry={entry} data={data} view={view} room={room} />}
      <div class="attributes">
        {!stacked && data.columns.of(entry.entity).map((each) => {
          const value = own(item, each.name);
          if (value === undefined) return null;
          const segments = own(entry.keys, each.name);
          return (
            <span class="value" key={each.name} data-attribute={each.name} style={{ left: `${each.left}px`, width: `${each.width}px` }}>
              {segments && segments.length > 1 ? (
                <KeyText table={table} value={value} segments={segments} />
              ) : (
                <Value value={value} />
              )}
            </span>
          );
        })}
        {leftOut && <span class="left-out-label">not in {leftOutOf}</span>}
      </div>
    </div>
  );
}

export function Value({ value }: { value: Item[string] }) {
  const type = Object.keys(value)[0] ?? "NULL";
  const text = shortText(value, 80);
  const moment = type === "S" ? shortMoment(text) : null;
  return (
    <span class={`v v-${type}`} title={moment === null ? undefined : text}>
      {moment ?? text}
    </span>
  );
}

/** The first values of an item, in the order of its columns, without those that can be read in its key already. */
function FirstValues({ entry, data, view, room }: { entry: Entry; data: CollectionWindow; view: View; room: number }) {
  const keys = keysOf(view);
  const segments = [...keys.partition, ...keys.sort].flatMap((each) => own(entry.keys, each.name) ?? []);
  const entity = own(models.value, view.table.name)?.model?.entities.find((each) => each.name === entry.entity);
  const pattern = entity?.patterns.find((each) => each.index === (view.index?.name ?? null));
  const parts = [...(pattern?.group ?? []), ...(pattern?.order ?? [])];
  // Descending, a value is subtracted: 2026-12-18 is 7973-87-81.
  const seen = new Set(segments.map(([, component]) => component).filter((name) => !parts.some((each) => each.name === name && each.descending)));
  const tested = view.filters.map((each) => each.attribute); // what was searched for comes first
  const unseen = data.columns.of(entry.entity).filter((each) => !seen.has(each.name));
  const columns = [...unseen.filter((each) => tested.includes(each.name)), ...unseen.filter((each) => !tested.includes(each.name))];
  const fields = entity?.fields.map((each) => each.attribute);
  const present = columns.filter((each) => own(entry.item, each.name) !== undefined);
  const inLine = inOneLine(fields ? columns.filter((each) => fields.includes(each.name)) : columns, room); // other keys say them again
  const shown = present.filter((each) => inLine.includes(each));
  return (
    <div class="first-values">
      {shown.map((each) => (
        <span key={each.name}>
          <small>{each.name}</small> <Value value={entry.item[each.name]!} />
        </span>
      ))}
      {present.length > shown.length && <small>+{present.length - shown.length}</small>}
    </div>
  );
}

/** The whole of a key that its column may cut. */
function keyTitle(entry: Entry, attributes: { name: string }[]): string {
  return attributes.map((each) => shortText(own(entry.item, each.name), 2048)).join(" ");
}

type Item = Entry["item"];

function Foot({ data }: { data: CollectionWindow }) {
  const loaded = data.totals.returned - (data.folds ? data.ownRecords.size : 0);
  if (data.error || (!loaded && !data.paused)) return null;
  if (data.paused === "after") return <Paused data={data} onGoOn={() => void data.loadAfter()} />;
  if (data.loading === "after") return <span>Reading…</span>;
  if (data.atEnd) return <span>End · {plural(loaded, "item")}</span>;
  return <span>{count(loaded)} items read</span>;
}

function Paused({ data, onGoOn }: { data: CollectionWindow; onGoOn: () => void }) {
  return (
    <span>
      {data.view.filters.length ? "The filter kept" : "Not folded:"} {count(data.totals.returned - (data.folds ? data.ownRecords.size : 0))} of {plural(data.totals.scanned, "item")} read so far.{" "}
      <button class="link" onClick={onGoOn}>
        Read on
      </button>
    </span>
  );
}

function Skeleton() {
  return (
    <div class="skeleton" aria-hidden="true">
      {Array.from({ length: 12 }, (_, place) => (
        <div class="bone" key={place} />
      ))}
    </div>
  );
}

interface NothingProps {
  view: View;
  scanned: number;
  /** Whether the item collection has items beside the range. */
  hasOthers: boolean;
  folded: number;
}

function Nothing({ view, scanned, hasOthers, folded }: NothingProps) {
  const { pattern: chosen, given } = useStore(route).query;
  const entities = own(models.value, view.table.name)?.model?.entities ?? [];
  const patterns = entities.flatMap((each) => each.patterns.filter((one) => `${each.name}.${one.name}` === chosen));
  const pattern = given ? patterns.find((each) => each.index === (view.index?.name ?? null)) : undefined;
  const name = view.index ? `index ${view.index.name}` : "this table";
  if (folded && !view.filters.length)
    return (
      <div class="empty">
        <h2>No item is in {name} yet</h2>
        <p>All that it has are internal records of the library: the forms of its keys, and unique values.</p>
      </div>
    );
  if (view.filters.length && scanned)
    return (
      <div class="empty">
        <h2>No item passes the filter</h2>
        <p>
          {plural(scanned, "item")} were read, and paid for, before the filter dropped them. A key that contains the
          attribute would read only what matches.
        </p>
      </div>
    );
  if (view.sort && hasOthers)
    return (
      <div class="empty">
        <h2>This range has no items</h2>
        <p>Others are before or after it, in the same item collection.</p>
        <a class="button" href={href(["t", view.table.name, "items"], { ...toQuery({ ...view, sort: null }), ...(pattern && { pattern: chosen, given: groupOf(pattern, given!) }) })}>
          Show the collection
        </a>
      </div>
    );
  if (view.partition)
    return (
      <div class="empty">
        <h2>No item has this partition key</h2>
        {pattern ? (
          <p>Keys are compared exactly, with upper and lower case.</p>
        ) : (
          <p>
            Keys are compared exactly, with upper and lower case, and a text with its whole padding: <code>ISSUE#7</code>{" "}
            is not <code>ISSUE#00007</code>.
          </p>
        )}
        <a class="button" href={href(["t", view.table.name, "items"], view.index ? { index: view.index.name } : {})}>
          Show all items
        </a>
      </div>
    );
  return (
    <div class="empty">
      <h2>Nothing is in {name} yet</h2>
      {view.index ? (
        <p>
          An index has an entry for each item with its key attributes{" "}
          <code>{[...view.index.keys.partition, ...view.index.keys.sort].map((each) => each.name).join(", ")}</code>. An
          item without them is left out: such an index is called sparse.
        </p>
      ) : (
        <p>
          Write an item with “New item” (<kbd>n</kbd>), <a class="more-link" href={href(["t", view.table.name, "files"])}>import a file</a>, or use
          any AWS SDK or <code>isotone put</code>.
        </p>
      )}
    </div>
  );
}

function isLeftOut(entry: Entry, index: IndexInfo): boolean {
  return [...index.keys.partition, ...index.keys.sort].some((each) => own(entry.item, each.name) === undefined);
}

function domId(entry: Entry): string {
  let hash = 5381;
  for (let place = 0; place < entry.id.length; place += 1) hash = (hash * 33 + entry.id.charCodeAt(place)) | 0;
  return `item-${hash >>> 0}`;
}

/** The partitions of the loaded pages that can be seen, each with its whole known height: its label stays in view. */
function blocksOf(placed: Placed[], from: number, to: number): Block[] {
  const blocks: Block[] = [];
  for (const { slot, top } of placed)
    for (const row of slot.rows) {
      const at = top + row.top;
      const last = blocks.at(-1);
      if (last && last.group === row.entry.group) last.bottom = at + row.height;
      else blocks.push({ group: row.entry.group, entry: row.entry, top: at, bottom: at + row.height });
    }
  return blocks.filter((block) => block.bottom > from && block.top < to);
}
