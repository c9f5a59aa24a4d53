/** A comparison with a snapshot, or of two: counts, the list, one difference; Put back (`b`), and its undo (`u`).
 *
 * The address says what is compared: `from` a snapshot, `to` another one or `now`, and which list and place is shown. */

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import { call, CallError } from "../api";
import { change, href, route, useIsLeft } from "../router";
import { refreshTable, refreshTables, session, tables } from "../session";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";
import { useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { count, own, plural } from "../values";
import { DifferenceDetails } from "./difference_details";
import { DifferenceList, SIGNS } from "./difference_list";
import { DifferenceRows, type Shown } from "./difference_rows";
import { JobLine } from "./job_line";
import {
  changed, ended, lastPutBack, listSnapshots, NOW, puttingBack, timeOf, titleOf,
  type Comparison, type Kind, type PutBack, type Snapshot, type What,
} from "./snapshot_calls";

const KINDS: Kind[] = ["added", "removed", "changed"];
const NONE = new Set<number>();

interface Props {
  table: string;
  /** Where this view is, without what is compared. */
  path: string[];
}

export function ComparisonView({ table, path }: Props) {
  const { query } = useStore(route);
  const from = query["from"] ?? "";
  const to = query["to"] || NOW;
  const found = useStore(session);
  const info = (useStore(tables) ?? []).find((each) => each.name === table);
  const [snapshots, setSnapshots] = useState<Snapshot[] | null>(null);
  const [comparison, setComparison] = useState<Comparison | null>(null);
  const [isAsked, setAsked] = useState(false); // whether the server has said that there is none yet
  const [error, setError] = useState<CallError | null>(null);
  const [told, setTold] = useState<PutBack | null>(null); // of the comparison before, too
  const latest = useRef("");

  const compare = async (given: object) => {
    const wanted = `${from} ${to} ${table}`;
    latest.current = wanted;
    const send = async (more: object) => (await call<{ comparison: Comparison | null }>("comparison", { from, to, table, ...more })).comparison;
    const watch = (now: Comparison) => latest.current === wanted && setComparison(now);
    setError(null);
    try {
      const first = await send(given);
      if (latest.current !== wanted) return;
      setAsked(true);
      if (!first) return;
      const done = await ended(first, () => send({}), watch);
      if (latest.current === wanted && done.state === "failed") setError(new CallError("Not compared", done.fault));
    } catch (failure) {
      if (latest.current === wanted) setError(failure as CallError);
    }
  };
  useEffect(() => {
    listSnapshots().then((listed) => setSnapshots(listed.snapshots), (failure: CallError) => setError(failure));
  }, []);
  useEffect(() => {
    setComparison(null);
    setAsked(false);
    setTold(null);
    // A server may charge for what is read: there a comparison with the present is begun by hand.
    if (found) void compare(to !== NOW ? { start: true } : found.remote ? {} : { again: true });
    return () => void (latest.current = "");
  }, [from, to, table, found?.target]);

  const of = (snapshots ?? []).filter((each) => each.tables.some((one) => one.name === table) || each.id === from || each.id === to);
  const isRunning = comparison?.state === "running";
  const isDone = comparison?.state === "done" && comparison.counts !== null;
  const show = (next: { from?: string; to?: string }) => change({ ...next, list: "", n: "" });
  return (
    <div class="comparison">
      <div class="query-bar">
        <div class="query-line">
          <a class="more-link" href={href(path)}>Snapshots</a>
          <label class="pick">
            <span>from</span>
            <select aria-label="Compare from" value={from} onChange={(event) => show({ from: event.currentTarget.value })}>
              {of.map((each) => <option key={each.id} value={each.id}>{optionOf(each)}</option>)}
              {snapshots && !of.some((each) => each.id === from) && <option value={from}>{from}</option>}
            </select>
          </label>
          <label class="pick">
            <span>to</span>
            <select aria-label="Compare to" value={to} onChange={(event) => show({ to: event.currentTarget.value })}>
              <option value={NOW}>now</option>
              {of.map((each) => <option key={each.id} value={each.id}>{optionOf(each)}</option>)}
            </select>
          </label>
          {path[0] !== "t" && <strong>{table}</strong>}
          <span class="space" />
          {isDone && to === NOW && (
            <span class="quiet as-of">as of {timeOf(comparison.at)}</span>
          )}
          {isDone && to === NOW && <button title="Compare again (r)" onClick={() => void compare({ again: true })}>Compare again</button>}
        </div>
      </div>
      {isRunning && (
        <JobLine job={comparison} what="Comparing" onStop={() => call("comparison_stop", { id: comparison.id })} />
      )}
      {told && <Told job={told} onClose={() => setTold(null)} />}
      {error ? (
        <div class="over">
          <Failure error={error} onRetry={() => void compare({ start: true })} />
        </div>
      ) : comparison?.state === "stopped" ? (
        <Message title="Stopped">
          <button class="primary" onClick={() => void compare({ start: true })}>Compare</button>
        </Message>
      ) : isAsked && !comparison ? (
        <Message title={`Compare ${table} with the snapshot?`}>
          <p>
            This reads the whole table once, for about {plural(Math.ceil((info?.bytes ?? 0) / 4096), "unit")}.
          </p>
          <button class="primary" autoFocus onClick={() => void compare({ start: true })}>Compare</button>
        </Message>
      ) : isDone ? (
        <Compared key={comparison.id} comparison={comparison} from={snapshots?.find((each) => each.id === from) ?? null} onAgain={() => void compare({ again: true })} onTold={setTold} />
      ) : (
        <div class="skeleton" aria-hidden="true">
          {Array.from({ length: 8 }, (_, place) => <div class="bone" key={place} />)}
        </div>
      )}
    </div>
  );
}

function optionOf(snapshot: Snapshot): string {
  return snapshot.name ? `${snapshot.name} (${timeOf(snapshot.began)})` : timeOf(snapshot.began);
}

function Message({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="over">
      <div class="empty">
        <h2>{title}</h2>
        {children}
      </div>
    </div>
  );
}

interface ComparedProps {
  comparison: Comparison;
  from: Snapshot | null;
  onAgain: () => void;
  /** What somebody should read of items that were put back. */
  onTold: (job: PutBack | null) => void;
}

function Compared({ comparison, from, onAgain, onTold }: ComparedProps) {
  const { query } = useStore(route);
  const found = useStore(session);
  const undoable = useStore(lastPutBack).get(comparison.table) ?? null;
  const running = useStore(puttingBack).get(comparison.table) ?? null;
  const counts = comparison.counts!;
  const list = query["list"] || "all";
  const total = list.startsWith("=")
    ? (comparison.attributes.find(([name]) => `=${name}` === list)?.[1] ?? 0)
    : (own(counts, list) ?? 0);
  const place = Math.max(0, Math.min(total - 1, Number(query["n"]) || 0));
  const [, redraw] = useState(0);
  const [isOpen, setOpen] = useState(() => matchMedia("(min-width: 1101px)").matches);
  const [checked, setChecked] = useState<Set<number>>(NONE);
  const [done, setDone] = useState<Set<number>>(NONE);
  const [asking, setAsking] = useState(false);
  const [text, setText] = useState("");
  const search = useRef<HTMLInputElement>(null);

  const rows = useMemo(
    () => new DifferenceRows(comparison, list, total, !comparison.gone, () => redraw((number) => number + 1)),
    [comparison.id, list, total],
  );
  useEffect(() => () => rows.close(), [rows]);
  const wasRunning = useRef(running !== null); // begun in a view that was left
  useEffect(() => {
    if (running || !wasRunning.current) return;
    wasRunning.current = false;
    onAgain();
  }, [running !== null]);
  const isLeft = useIsLeft();

  const isPresent = comparison.to === NOW;
  const canPutBack = isPresent && (found?.writable ?? false) && running === null;
  const reason = found?.writable ? "" : "Safe mode: click the lock at the bottom left to allow changes";
  const setPlace = (next: number) => change({ n: next ? String(next) : "" }, { replace: true });
  const current = rows.at(place);
  const isDone = (row: Shown) => done.has(row.number);

  const send = async (id: number, what: What, undo = false) => {
    setAsking(false);
    onTold(null);
    const watch = (job: PutBack | null) => puttingBack.update((all) => changed(all, comparison.table, job && { id, job }));
    try {
      const first = await call<PutBack>("put_back", { id, ...what, undo });
      const over = await ended(first, () => call<PutBack>("put_back_progress", { id }), watch);
      watch(null);
      tell(over, id, what, undo);
    } catch (failure) {
      watch(null);
      notify((failure as Error).message, { failed: true });
    }
    await (comparison.gone ? refreshTables() : refreshTable(comparison.table));
  };
  const tell = (over: PutBack, id: number, what: What, undo: boolean) => {
    const left = over.refused ? `; ${plural(over.refused, "item was", "items were")} left alone` : "";
    const stopped = over.state === "stopped" ? ", then it was stopped" : "";
    if (over.state === "failed") notify(`${plural(over.written, "item")} written, then: ${over.fault}`, { failed: true });
    if (over.refused || over.notes.length) onTold(over);
    lastPutBack.update((all) => changed(all, comparison.table, undo || !over.written ? null : { id, what, written: over.written }));
    const undoing = { title: "Undo", run: () => void send(id, what, true) };
    if (undo) notify(`${plural(over.written, "item is", "items are")} as before${left}`);
    else if (over.state !== "failed")
      notify(`${plural(over.written, "item was", "items were")} put back${stopped}${left}`, over.written ? { action: undoing } : { failed: true });
    if (isLeft.current) return; // whoever returns compares again
    setChecked(NONE);
    if (id !== comparison.id || "list" in what || over.state !== "done" || over.refused > over.refused_first.length) return onAgain();
    const alone = new Set(over.refused_first.map(([number]) => number));
    const written = what.numbers.filter((each) => !alone.has(each));
    setDone((now) => new Set(undo ? [...now].filter((each) => !written.includes(each)) : [...now, ...written]));
  };
  const putBack = () => {
    if (checked.size) void send(comparison.id, { numbers: [...checked] });
    else if (current && !isDone(current)) void send(comparison.id, { numbers: [current.number] });
  };
  const check = (row: Shown) =>
    setChecked((all) => {
      const next = new Set(all);
      if (!next.delete(row.number) && !isDone(row)) next.add(row.number);
      return next;
    });
  const find = async () => {
    let at: number | null = place + 1;
    try {
      while (at !== null && at < total) {
        const answer: { place: number | null; next: number | null } = await call("comparison_find", { id: comparison.id, list, text, at });
        if (answer.place !== null) return setPlace(answer.place);
        at = answer.next;
      }
      notify(`No key further down has “${text}”`, { failed: true });
    } catch (failure) {
      notify((failure as Error).message, { failed: true });
    }
  };

  useShortcuts([
    { keys: ["r"], title: "Compare again", run: onAgain },
    { keys: ["b"], title: "Put back what is selected, or the item", run: () => canPutBack && putBack() },
    { keys: ["q"], title: "Find a key", run: () => search.current?.focus() },
    { keys: ["u"], title: "Undo the last put back", run: () => undoable && canPutBack && void send(undoable.id, undoable.what, true) },
    {
      keys: ["Escape"],
      title: "Close the difference, select nothing",
      run: () => (checked.size ? setChecked(NONE) : setOpen(false)),
    },
  ]);
  const title = from ? (from.name ? `“${from.name}”` : titleOf(from)) : "the snapshot";
  return (
    <>
      <nav class="lists" aria-label="Kinds of differences">
        {(["all", ...KINDS] as const).map((each) => (
          <a
            key={each}
            class={`list ${each}`}
            href={href(route.value.path, { ...query, list: each === "all" ? "" : each, n: "" })}
            aria-current={list === each ? "true" : undefined}
          >
            {each !== "all" && <span class="difference-sign" aria-hidden="true">{SIGNS[each]}</span>}
            <strong>{count(counts[each])}</strong> {each === "all" ? "differ" : each}
          </a>
        ))}
        <span class="quiet same-count">{count(counts.same)} are the same</span>
        {comparison.attributes.length > 0 && (
          <span class="attribute-lists">
            {comparison.attributes.map(([name, items]) => (
              <a
                key={name}
                class="list attribute-list"
                href={href(route.value.path, { ...query, list: list === `=${name}` ? "" : `=${name}`, n: "" })}
                aria-current={list === `=${name}` ? "true" : undefined}
                title={`Items in which ${name} differs`}
              >
                <code>{name}</code> {count(items)}
              </a>
            ))}
          </span>
        )}
      </nav>
      {comparison.gone && <p class="note">The table {comparison.table} no longer exists. Putting items back creates it again, with its keys, indexes and settings.</p>}
      {comparison.notes.map((each) => (
        <p class="note" key={each}>The table itself differs: {each.replace("only in the source", "only in the snapshot").replace("only in the target", isPresent ? "new since" : "only in the other one")}</p>
      ))}
      {total > 0 && (
        <div class="difference-tools">
          <form class="query-line find" onSubmit={(event) => { event.preventDefault(); if (text) void find(); }}>
            <input ref={search} type="search" aria-label="Find a key" placeholder="Find a key" value={text} onInput={(event) => setText(event.currentTarget.value)} />
          </form>
          {isPresent && (
            <>
              <button class={checked.size ? "primary" : ""} disabled={!canPutBack || !checked.size} title={reason || "Put back the selected (b)"} onClick={putBack}>
                Put back {checked.size ? plural(checked.size, "item") : "selected"}
              </button>
              {checked.size > 0 && <button onClick={() => setChecked(NONE)}>Select nothing</button>}
              <button disabled={!canPutBack} title={reason} onClick={() => setAsking(true)}>
                Put {list === "all" ? "all" : `these ${count(total)}`} back…
              </button>
            </>
          )}
          {undoable && <button disabled={!canPutBack} title="Undo (u)" onClick={() => void send(undoable.id, undoable.what, true)}>Undo: {plural(undoable.written, "item")}</button>}
          {reason && isPresent && <span class="quiet">{reason}</span>}
          <span class="space" />
          <span class="quiet numbers">{count(place + 1)} of {count(total)}</span>
        </div>
      )}
      {running && (
        <JobLine job={running.job} what={running.job.undo ? "Undoing" : "Putting back"} onStop={() => call("comparison_stop", { id: running.id })} />
      )}
      {total > 0 ? (
        <div class="panes">
          <section class="pane" aria-label="Differences">
            <DifferenceList
              comparison={comparison}
              rows={rows}
              place={place}
              onPlace={setPlace}
              onOpen={() => setOpen(true)}
              checked={checked}
              onCheck={check}
              done={isDone}
              onAgain={onAgain}
            />
          </section>
          {isOpen && current && (
            <DifferenceDetails
              key={current.number}
              comparison={comparison}
              row={current}
              canPutBack={canPutBack}
              reason={reason}
              isDone={isDone(current)}
              onPutBack={() => void send(comparison.id, { numbers: [current.number] })}
              onClose={() => setOpen(false)}
            />
          )}
        </div>
      ) : (
        <div class="nothing-differs">
          <div class="empty">
            <h2>{counts.all ? "Nothing of this kind differs" : "Nothing differs"}</h2>
            <p>
              {counts.all
                ? "Choose another list above."
                : `${plural(counts.same, "item is", "items are")} the same in ${title} and ${isPresent ? "now" : "in the other snapshot"}.`}
            </p>
            {undoable && <button disabled={!canPutBack} onClick={() => void send(undoable.id, undoable.what, true)}>Undo: {plural(undoable.written, "item")}</button>}
          </div>
        </div>
      )}
      {asking && (
        <PutBackDialog
          comparison={comparison}
          list={list}
          total={total}
          title={title}
          onClose={() => setAsking(false)}
          onPutBack={() => void send(comparison.id, { list })}
        />
      )}
    </>
  );
}

function Told({ job, onClose }: { job: PutBack; onClose: () => void }) {
  return (
    <div class="failure told" role="alert">
      {job.refused > 0 && (
        <>
          <strong>{plural(job.refused, "item was", "items were")} left alone</strong>
          <p>They were changed after the comparison, so they were not overwritten. Compare again to see them as they are now.</p>
          <ul class="refused">
            {job.refused_first.map(([number, key]) => <li key={number}><code>{key}</code></li>)}
          </ul>
        </>
      )}
      {job.notes.length > 0 && (
        <>
          <strong>The table was created again, but not all of it</strong>
          <ul>
            {job.notes.map((each) => <li key={each}>{each.replace("the target", "the table")}</li>)}
          </ul>
        </>
      )}
      <button onClick={onClose}>Close</button>
    </div>
  );
}

interface DialogProps {
  comparison: Comparison;
  list: string;
  total: number;
  title: string;
  onClose: () => void;
  onPutBack: () => void;
}

function PutBackDialog({ comparison, list, total, title, onClose, onPutBack }: DialogProps) {
  const counts = comparison.counts!;
  const isOf = (kind: Kind) => list === "all" || list === kind;
  return (
    <Dialog title="Put items back" onClose={onClose}>
      <h2>Put {plural(total, "item")} of {comparison.table} back to {title}?</h2>
      {list.startsWith("=") ? (
        <p>All changed attributes of these items get their former values, not only <code>{list.slice(1)}</code>.</p>
      ) : (
        <ul class="plan">
          {isOf("added") && counts.added > 0 && <li class="added">{plural(counts.added, "item")} added since: <strong>will be deleted</strong></li>}
          {isOf("removed") && counts.removed > 0 && <li class="removed">{plural(counts.removed, "item")} removed since: <strong>will be written again</strong></li>}
          {isOf("changed") && counts.changed > 0 && <li class="changed">{plural(counts.changed, "item")} changed: <strong>will get their former values</strong></li>}
        </ul>
      )}
      {comparison.gone && <p>The table is created again first, with its keys, indexes and settings.</p>}
      <p class="quiet">
        An item that was changed after the comparison is left alone and listed. You can undo this while the page is open.
        Streams and workers see each write.
      </p>
      <div class="actions">
        <button onClick={onClose}>Keep as it is</button>
        <button class="danger" autoFocus onClick={onPutBack}>Put {plural(total, "item")} back</button>
      </div>
    </Dialog>
  );
}
