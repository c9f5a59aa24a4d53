/** The snapshots of a table, or of all: take one, see when and how large it is, compare with it, delete it. */

import { useEffect, useRef, useState } from "preact/hooks";

import { call, CallError, type ListedTable, type TableInfo } from "../api";
import { go, href, route } from "../router";
import { session, tables } from "../session";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";
import { useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { count, plural, size } from "../values";
import { ComparisonView } from "./comparison_view";
import { JobLine } from "./job_line";
import { agoOf, ended, listSnapshots, NOW, timeOf, titleOf, type Snapshot, type Snapshots, type Taking } from "./snapshot_calls";
import "../styles/snapshots.css";

/** The tab of a table. */
export function TableSnapshotsPage({ table }: { table: TableInfo }) {
  const { query } = useStore(route);
  return query["from"] ? (
    <ComparisonView key={table.name} table={table.name} path={["t", table.name, "snapshots"]} />
  ) : (
    <SnapshotList table={table} />
  );
}

/** The page of all tables; a table that is gone is compared here. */
export function SnapshotsPage() {
  const { query } = useStore(route);
  const table = query["table"];
  return table && query["from"] ? <ComparisonView key={table} table={table} path={["snapshots"]} /> : <SnapshotList table={null} />;
}

/** The address of a comparison. */
function comparisonOf(name: string, snapshot: Snapshot, all: ListedTable[]): [string[], Record<string, string>] {
  return all.some((each) => each.name === name)
    ? [["t", name, "snapshots"], { from: snapshot.id, to: NOW }]
    : [["snapshots"], { table: name, from: snapshot.id, to: NOW }];
}

function SnapshotList({ table }: { table: TableInfo | null }) {
  const all = useStore(tables) ?? [];
  const found = useStore(session);
  const [listed, setListed] = useState<Snapshots | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [taking, setTaking] = useState<Taking | null>(null);
  const [takeError, setTakeError] = useState<CallError | null>(null);
  const [name, setName] = useState("");
  const [isWhole, setWhole] = useState(table === null);
  const [deleting, setDeleting] = useState<Snapshot | null>(null);
  const [chosen, setChosen] = useState(0);
  const input = useRef<HTMLInputElement>(null);
  const rows = useRef<HTMLUListElement>(null);

  const read = () => listSnapshots().then(
    (answer) => {
      setListed(answer);
      setError(null);
      return answer;
    },
    (failure: CallError) => void setError(failure),
  );
  const follow = async (begin: () => Promise<Taking | null>) => {
    setTakeError(null);
    let done: Taking;
    try {
      const first = await begin();
      if (!first) return;
      done = await ended(first, async () => (await call<{ taking: Taking | null }>("snapshot_taking")).taking, setTaking);
    } catch (failure) {
      return setTakeError(failure as CallError);
    } finally {
      setTaking(null);
    }
    if (done.state === "failed") setTakeError(new CallError("No snapshot", done.fault));
    if (done.state === "stopped") notify("Stopped: no snapshot was kept");
    if (done.state === "done") {
      notify(`The snapshot has ${plural(done.items, "item")}`);
      setName("");
      setChosen(0);
    }
    await read();
    if (done.state === "done") rows.current?.focus(); // Enter compares it
  };
  useEffect(() => {
    void follow(async () => (await read())?.taking ?? null);
  }, [table?.name]);

  const take = () => follow(() => call<Taking>("snapshot_take", { name, tables: isWhole ? null : [table!.name] }));
  const remove = async (snapshot: Snapshot) => {
    setDeleting(null);
    try {
      await call("snapshot_delete", { id: snapshot.id });
      notify(`${titleOf(snapshot)} was deleted`);
    } catch (failure) {
      notify((failure as Error).message, { failed: true });
    }
    await read();
  };

  const shown = (listed?.snapshots ?? []).filter((each) => !table || each.tables.some((one) => one.name === table.name));
  const elsewhere = (listed?.snapshots.length ?? 0) - shown.length;
  const hasAccounts = new Set(shown.map((each) => each.account)).size > 1;
  const current = shown[Math.min(chosen, shown.length - 1)];
  const move = (step: number) => {
    const next = Math.max(0, Math.min(shown.length - 1, chosen + step));
    setChosen(next);
    rows.current?.children[next]?.scrollIntoView({ block: "nearest" });
  };
  const open = (snapshot: Snapshot | undefined) => {
    const first = snapshot && (table?.name ?? snapshot.tables[0]?.name);
    if (first) go(...comparisonOf(first, snapshot, all));
  };
  useShortcuts([
    { keys: ["j", "ArrowDown"], title: "Next snapshot", run: () => move(1) },
    { keys: ["k", "ArrowUp"], title: "Previous snapshot", run: () => move(-1) },
    { keys: ["Enter"], title: "Compare with now", run: () => open(current) },
    { keys: ["n"], title: "Name a new snapshot", run: () => input.current?.focus() },
    { keys: ["Backspace", "Delete"], title: "Delete the snapshot", run: () => current && setDeleting(current) },
  ]);

  const kept = isWhole ? all : table ? [table] : [];
  const items = kept.reduce((sum, each) => sum + (each.items ?? 0), 0);
  const bytes = kept.reduce((sum, each) => sum + (each.bytes ?? 0), 0);
  return (
    <div class="document snapshots">
      <section>
        <form
          class="query-line take"
          onSubmit={(event) => {
            event.preventDefault();
            if (!taking) void take();
          }}
        >
          <input ref={input} aria-label="Name of the snapshot" placeholder="Name, e.g. before the migration" maxLength={100} value={name} autocomplete="off" onInput={(event) => setName(event.currentTarget.value)} />
          {table && (
            <select aria-label="What it keeps" value={isWhole ? "all" : "one"} onChange={(event) => setWhole(event.currentTarget.value === "all")}>
              <option value="one">{table.name}</option>
              <option value="all">all {count(all.length)} tables</option>
            </select>
          )}
          <button class="primary" disabled={taking !== null || !listed || !kept.length}>Take a snapshot</button>
        </form>
        <p class="quiet">
          {isWhole ? `${all.length === 1 ? "The table" : `All ${count(all.length)} tables`}` : table?.name}: {plural(items, "item")}, about {size(bytes)}
          {found?.remote ? `, read once for about ${plural(Math.ceil(bytes / 4096), "unit")}` : ""}.{" "}
          {listed && (listed.moment
            ? "It shows a single moment: what is written while it is taken is not in it."
            : "This engine cannot read tables as of a single moment. They are scanned: each item is as it was when it was read, so stop writers if items must be consistent with each other.")}
        </p>
        {taking && <JobLine job={taking} what={`Reading ${taking.table || "the tables"}`} onStop={() => call("snapshot_stop")} />}
        {takeError && <Failure error={takeError} />}
      </section>
      {error ? (
        <Failure error={error} onRetry={() => void read()} />
      ) : !listed ? (
        <section>
          <div class="bone" />
          <div class="bone" />
          <div class="bone" />
        </section>
      ) : shown.length ? (
        <section aria-label="Snapshots">
          <ul class="snapshot-list" ref={rows} tabIndex={-1}>
            {shown.map((each, place) => (
              <li key={each.id} class={each === current ? "snapshot current" : "snapshot"} onMouseEnter={() => setChosen(place)}>
                <SnapshotEntry snapshot={each} table={table} all={all} hasAccounts={hasAccounts} onDelete={() => setDeleting(each)} />
              </li>
            ))}
          </ul>
        </section>
      ) : (
        <section>
          <div class="empty wide">
            <h2>{elsewhere ? `None of the ${plural(elsewhere, "snapshot")} has ${table?.name}` : "No snapshot yet"}</h2>
            <p>
              A snapshot keeps the items as they are now. Take one before a migration, an import or an experiment. Then compare: what was
              added, removed and changed is shown in the order of the keys, with the values before and after, and can be put back, one item
              or all of them.
            </p>
          </div>
        </section>
      )}
      {listed && <Place listed={listed} />}
      {deleting && (
        <Dialog title="Delete the snapshot" onClose={() => setDeleting(null)}>
          <h2>Delete {titleOf(deleting)}?</h2>
          <p>
            Its file, with {plural(deleting.tables.reduce((sum, each) => sum + each.items, 0), "item")} of {plural(deleting.tables.length, "table")}, is
            deleted. This cannot be undone. The tables themselves stay as they are.
          </p>
          <div class="actions">
            <button onClick={() => setDeleting(null)}>Keep</button>
            <button class="danger" autoFocus onClick={() => void remove(deleting)}>Delete</button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

const SHOWN = 12; // tables of a snapshot

interface EntryProps {
  snapshot: Snapshot;
  table: TableInfo | null;
  all: ListedTable[];
  /** Whether the snapshots listed are of several accounts. */
  hasAccounts: boolean;
  onDelete: () => void;
}

function SnapshotEntry({ snapshot, table, all, hasAccounts, onDelete }: EntryProps) {
  const [isWhole, setWhole] = useState(false);
  const ofTable = snapshot.tables.find((each) => each.name === table?.name);
  const items = ofTable?.items ?? snapshot.tables.reduce((sum, each) => sum + each.items, 0);
  const seconds = Math.round(snapshot.ended - snapshot.began);
  const listed = isWhole ? snapshot.tables : snapshot.tables.slice(0, SHOWN);
  return (
    <>
      <div class="snapshot-what">
        <strong>{titleOf(snapshot)}</strong>
        <span class="quiet numbers">
          <time title={new Date(snapshot.began * 1000).toISOString()}>
            {snapshot.name ? `${timeOf(snapshot.began)}, ` : ""}
            {agoOf(snapshot.began)}
          </time>
          {" · "}
          {plural(items, "item")}
          {" · "}
          <span title="on the disk">{size(snapshot.bytes)}</span>
          {table && snapshot.tables.length > 1 && ` · with ${plural(snapshot.tables.length - 1, "other table")}`}
          {snapshot.foreign && <span title="Taken of another database, which uses the same folder"> · of {snapshot.target}</span>}
          {hasAccounts && ` · account ${snapshot.account}`}
          {!snapshot.moment && <span title="Items may be of different moments"> · scanned{seconds > 1 ? ` over ${seconds} s` : ""}</span>}
        </span>
        {!table && (
          <span class="snapshot-tables">
            <span class="quiet">Compare</span>
            {listed.map((each) => (
              <a class="more-link" key={each.name} href={href(...comparisonOf(each.name, snapshot, all))} title={`Compare ${each.name}`}>
                {each.name} <small>{count(each.items)}</small>
              </a>
            ))}
            {listed.length < snapshot.tables.length && (
              <button class="link" onClick={() => setWhole(true)}>{count(snapshot.tables.length - listed.length)} more</button>
            )}
          </span>
        )}
      </div>
      <div class="snapshot-tools">
        {table && <a class="button" href={href(...comparisonOf(table.name, snapshot, all))}>Compare<span class="unseen"> with {titleOf(snapshot)}</span></a>}
        <button class="danger" onClick={onDelete}>Delete<span class="unseen"> {titleOf(snapshot)}</span></button>
      </div>
    </>
  );
}

function Place({ listed }: { listed: Snapshots }) {
  const { place, unreadable } = listed;
  return (
    <section class="quiet place">
      {place.temporary ? (
        <p>
          The database is in memory, so its snapshots are in a temporary folder{place.bytes ? `, ${size(place.bytes)}` : ""}. They are deleted when the
          workbench ends.
        </p>
      ) : (
        <p>
          Snapshots are Isotone files in <code>{place.path}</code>{place.bytes ? `, ${size(place.bytes)}` : ""}; {size(place.free)} are free.{" "}
          <code>isotone diff</code>,{" "}
          <code>isotone scan</code> and <code>isotone copy</code> can read them, too.
        </p>
      )}
      {unreadable.length > 0 && <p class="wrong">These descriptions cannot be read: {unreadable.join(", ")}</p>}
    </section>
  );
}
