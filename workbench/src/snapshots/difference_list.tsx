/** What differs, in the order of the keys: a line for each item. Draws only the lines that can be seen. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { KeyText } from "../collection/key_text";
import { Failure } from "../shell/failure";
import { useShortcuts } from "../shortcuts";
import { count, own } from "../values";
import type { DifferenceRows, Shown } from "./difference_rows";
import type { Comparison, Kind, Short } from "./snapshot_calls";

const ROW = 30;
const STACKED_ROW = 66;
const NARROW = 620;
const HIGHEST = 8_000_000; // pixels; browsers draw no element that is much higher
const OVERSCAN = 6;

export const SIGNS: Record<Kind, string> = { added: "+", removed: "−", changed: "~" };

interface Props {
  comparison: Comparison;
  rows: DifferenceRows;
  /** Which one is selected. */
  place: number;
  onPlace: (place: number) => void;
  onOpen: () => void;
  checked: Set<number>;
  onCheck: (row: Shown) => void;
  /** What was put back meanwhile. */
  done: (row: Shown) => boolean;
  /** The comparison may be closed: another window has begun a new one. */
  onAgain: () => void;
}

export function DifferenceList({ comparison, rows, place, onPlace, onOpen, checked, onCheck, done, onAgain }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const [shown, setShown] = useState({ top: 0, height: 600, width: 1000 });
  const isStacked = shown.width < NARROW;
  const row = isStacked ? STACKED_ROW : ROW;
  const whole = rows.size * row;
  const canvas = Math.min(whole, HIGHEST);
  const inView = shown.height / row;
  // Of a list higher than the canvas, a pixel of the scroll bar is more than a pixel of the list.
  const first = canvas > shown.height ? (shown.top / (canvas - shown.height)) * (rows.size - inView) : 0;
  const from = Math.max(0, Math.floor(first) - OVERSCAN);
  const to = Math.min(rows.size, Math.ceil(first + inView) + OVERSCAN);

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const measure = () => setShown((now) => ({ ...now, height: element.clientHeight, width: element.clientWidth }));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);
  useEffect(() => rows.want(from, to));
  useLayoutEffect(() => reveal(place), [rows, isStacked, place]);

  const reveal = (wanted: number) => {
    const element = scroller.current;
    if (!element || canvas <= element.clientHeight) return;
    const seen = element.clientHeight / row;
    const begins = (element.scrollTop / (canvas - element.clientHeight)) * (rows.size - seen);
    let start = begins;
    if (wanted < begins + 1) start = wanted - 1;
    else if (wanted > begins + seen - 2) start = wanted - seen + 2;
    if (start !== begins) element.scrollTop = (Math.max(0, start) / (rows.size - seen)) * (canvas - element.clientHeight);
  };
  const move = (wanted: number) => onPlace(Math.max(0, Math.min(rows.size - 1, wanted)));
  const current = rows.at(place);
  const checkBetween = (one: number, other: number) => {
    for (let at = Math.min(one, other); at <= Math.max(one, other); at += 1) {
      const between = rows.at(at);
      if (between && !checked.has(between.number)) onCheck(between);
    }
  };
  useShortcuts([
    { keys: ["j", "ArrowDown"], title: "Next difference", run: () => move(place + 1) },
    { keys: ["k", "ArrowUp"], title: "Previous difference", run: () => move(place - 1) },
    { keys: ["Enter"], title: "Open the difference", run: onOpen },
    { keys: ["x"], title: "Select the difference", run: () => current && onCheck(current) },
    { keys: ["PageDown"], title: "Down a screen", run: () => move(place + Math.floor(inView) - 1) },
    { keys: ["PageUp"], title: "Up a screen", run: () => move(place - Math.floor(inView) + 1) },
    { keys: ["Home"], title: "To the first difference", run: () => move(0) },
    { keys: ["End"], title: "To the last difference", run: () => move(rows.size - 1) },
  ]);

  const places = Array.from({ length: Math.max(0, to - from) }, (_, number) => from + number);
  const [partition, ...sort] = comparison.keys;
  return (
    <div class={`differences${isStacked ? " stacked-differences" : ""}${sort.length ? "" : " no-sort-key"}`}>
      <div class="difference-row difference-head" aria-hidden="true">
        <span />
        <span>
          <span class="key-kind">Partition key</span> <code>{partition}</code>
        </span>
        {sort.length > 0 && (
          <span>
            <span class="key-kind">Sort key</span> <code>{sort.join(" · ")}</code>
          </span>
        )}
        <span class="key-kind">What differs</span>
      </div>
      <div
        class="scroller"
        ref={scroller}
        tabIndex={0}
        role="listbox"
        aria-multiselectable="true"
        aria-label={`What differs in ${comparison.table}`}
        aria-activedescendant={current ? `difference-${current.number}` : undefined}
        onScroll={(event) => {
          const { scrollTop } = event.currentTarget;
          requestAnimationFrame(() => setShown((now) => (now.top === scrollTop ? now : { ...now, top: scrollTop })));
        }}
      >
        <div class="canvas" style={{ height: `${canvas}px` }}>
          {places.map((each) => {
            const found = rows.at(each);
            const top = shown.top + (each - first) * row;
            if (!found)
              return (
                <div class="difference-row" key={`b${each}`} style={{ top: `${top}px`, height: `${row}px` }} aria-hidden="true">
                  <span />
                  <div class="bone" />
                </div>
              );
            const before = each > from ? rows.at(each - 1) : null;
            return (
              <DifferenceRow
                key={found.number}
                row={found}
                comparison={comparison}
                style={{ top: `${top}px`, height: `${row}px` }}
                isSelected={each === place}
                isChecked={checked.has(found.number)}
                isDone={done(found)}
                repeats={!isStacked && before !== null && sameKey(before, found, partition!)}
                onSelect={({ shiftKey, metaKey, ctrlKey }) => {
                  onPlace(each);
                  if (shiftKey) checkBetween(place, each);
                  else if (metaKey || ctrlKey) onCheck(found);
                }}
                onOpen={() => {
                  onPlace(each);
                  onOpen();
                }}
                onCheck={() => onCheck(found)}
              />
            );
          })}
        </div>
      </div>
      {rows.error && (
        <div class="over">
          <Failure error={rows.error} onRetry={rows.error.code === "Disconnected" ? () => rows.retry() : onAgain} />
        </div>
      )}
      <p class="unseen" aria-live="polite">{count(rows.size)} differences</p>
    </div>
  );
}

function sameKey(one: Shown, other: Shown, name: string): boolean {
  return JSON.stringify(one.key[name]) === JSON.stringify(other.key[name]);
}

interface RowProps {
  row: Shown;
  comparison: Comparison;
  style: Record<string, string>;
  isSelected: boolean;
  isChecked: boolean;
  isDone: boolean;
  /** It has the partition of the row above. */
  repeats: boolean;
  /** Selects it also for putting back: with Ctrl or ⌘ this one, with Shift all from the last one. */
  onSelect: (event: MouseEvent) => void;
  onOpen: () => void;
  onCheck: () => void;
}

function DifferenceRow({ row, comparison, style, isSelected, isChecked, isDone, repeats, onSelect, onOpen, onCheck }: RowProps) {
  const [partition, ...sort] = comparison.keys;
  const key = (name: string) => <KeyText key={name} table={comparison.table} value={row.key[name]} segments={own(row.segments, name)} />;
  return (
    <div
      id={`difference-${row.number}`}
      class={`difference-row difference ${row.kind}${isSelected ? " selected" : ""}${isChecked ? " checked" : ""}${isDone ? " done" : ""}`}
      role="option"
      aria-selected={isSelected}
      style={style}
      onMouseDown={(event) => event.shiftKey && event.preventDefault()} // it selects items, not text
      onClick={onSelect}
      onDblClick={onOpen}
    >
      <span class="difference-sign" title={isChecked ? "Selected" : "Select (x)"} onClick={(event) => { event.stopPropagation(); onCheck(); }}>
        <span class="unseen">{row.kind}: </span>
        <span aria-hidden="true">{isChecked ? "✓" : SIGNS[row.kind]}</span>
      </span>
      <span class={repeats ? "difference-key repeated" : "difference-key"}>{key(partition!)}</span>
      {sort.length > 0 && <span class="difference-key">{sort.map(key)}</span>}
      <span class="difference-what">
        {isDone ? (
          <span class="put-back">put back</span>
        ) : (
          <>
            {row.attributes.map(([name, before, after]) => (
              <span class="difference-attribute" key={name}>
                <small>{name}</small> {before && <Before short={before} kind={row.kind} />} {before && after && <span class="arrow" aria-label="to">→</span>}{" "}
                {after && <After short={after} kind={row.kind} />}
              </span>
            ))}
            {row.more > 0 && <small>and {row.more} more</small>}
          </>
        )}
      </span>
    </div>
  );
}

function Before({ short, kind }: { short: NonNullable<Short>; kind: Kind }) {
  return kind === "changed" ? <del title={short[0]}>{short[1] || "“”"}</del> : <span class={`v v-${short[0]}`}>{short[1]}</span>;
}

function After({ short, kind }: { short: NonNullable<Short>; kind: Kind }) {
  return kind === "changed" ? <ins title={short[0]}>{short[1] || "“”"}</ins> : <span class={`v v-${short[0]}`}>{short[1]}</span>;
}
