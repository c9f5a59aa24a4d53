/** The tab Stream: the changes of a table as they happen, each with its differences; Space pauses. */

import { useEffect, useRef, useState } from "preact/hooks";

import { call, execute, type CallError, type Change, type Item, type TableInfo } from "../api";
import { refreshTable, session } from "../session";
import { Failure } from "../shell/failure";
import { useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { own, plural, same, shortText } from "../values";

const MOST = 500;

interface Changes {
  records: Change[];
  position: object;
}

export function StreamPage({ table }: { table: TableInfo }) {
  const [begun, setBegun] = useState({ number: 0, fromStart: false });
  if (!table.stream) return <NoStream table={table} />;
  const again = () => setBegun(({ number }) => ({ number: number + 1, fromStart: true }));
  return <Tail key={`${table.stream} ${begun.number}`} table={table} fromStart={begun.fromStart} onFromStart={again} />;
}

/** The changes of one stream from one beginning. */
function Tail({ table, fromStart, onFromStart }: { table: TableInfo; fromStart: boolean; onFromStart: () => void }) {
  const [records, setRecords] = useState<Change[]>([]);
  const [error, setError] = useState<CallError | null>(null);
  const [paused, setPaused] = useState(false);
  const [total, setTotal] = useState(0);
  const [attempt, setAttempt] = useState(0);
  const position = useRef<object | null>(null);
  useShortcuts([{ keys: [" "], title: "Pause", run: () => setPaused((now) => !now) }]);

  useEffect(() => {
    if (paused) return;
    const cancel = new AbortController();
    const follow = async () => {
      while (!cancel.signal.aborted) {
        try {
          const given = { stream: table.stream, position: position.current, from_start: fromStart };
          const found = await call<Changes>("changes", given, cancel.signal);
          if (cancel.signal.aborted) return;
          position.current = found.position;
          setError(null);
          if (!found.records.length) continue;
          setTotal((number) => number + found.records.length);
          setRecords((all) => [...found.records.reverse(), ...all].slice(0, MOST));
        } catch (failure) {
          if (cancel.signal.aborted) return;
          setError(failure as CallError);
          return;
        }
      }
    };
    void follow();
    return () => cancel.abort();
  }, [paused, attempt]);

  return (
    <div class="stream">
      <div class="query-line stream-tools">
        <span class={`dot${paused || error ? "" : " live"}`} aria-hidden="true" />
        <span aria-live="polite">{paused ? "Paused" : error ? "Stopped" : "Listening"}</span>
        <button onClick={() => setPaused(!paused)}>{paused ? "Go on" : "Pause"}</button>
        <button onClick={onFromStart}>From the start</button>
        <button onClick={() => setRecords([])} disabled={!records.length}>Clear</button>
        <span class="space" />
        <span class="quiet numbers">{plural(total, "change")}</span>
      </div>
      {error && <Failure error={error} onRetry={() => setAttempt((number) => number + 1)} />}
      {records.length ? (
        <ol class="changes">
          {records.map((each) => (
            <ChangeRow key={each.eventID + each.dynamodb.SequenceNumber} table={table} change={each} />
          ))}
        </ol>
      ) : (
        !error && (
          <div class="over">
            <div class="empty">
              <h2>Waiting for a change</h2>
              <p>Write to the table from anywhere: each change appears here, with what it changed.</p>
            </div>
          </div>
        )
      )}
    </div>
  );
}

const KINDS = { INSERT: "inserted", MODIFY: "modified", REMOVE: "removed" };

function ChangeRow({ table, change }: { table: TableInfo; change: Change }) {
  const { Keys, NewImage, OldImage, ApproximateCreationDateTime } = change.dynamodb;
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => shortText(Keys[each.name]));
  const expired = change.userIdentity?.PrincipalId === "dynamodb.amazonaws.com";
  return (
    <li class={`change ${change.eventName.toLowerCase()}`}>
      <time>{new Date(ApproximateCreationDateTime * 1000).toLocaleTimeString()}</time>
      <span class="change-kind">{expired ? "expired" : KINDS[change.eventName]}</span>
      <span class="change-key key">{keys.join("  ·  ")}</span>
      <span class="change-what">
        <Difference before={OldImage} after={NewImage} keys={Object.keys(Keys)} />
      </span>
    </li>
  );
}

function Difference({ before, after, keys }: { before: Item | undefined; after: Item | undefined; keys: string[] }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after ?? {})])]
    .map((name) => ({ name, was: own(before ?? {}, name), is: own(after ?? {}, name) }))
    .filter(({ name, was, is }) => !keys.includes(name) && !same(was, is))
    .slice(0, 12);
  return (
    <>
      {names.map(({ name, was, is }) => (
        <span class="difference" key={name}>
          <small>{name}</small> {was && <del>{shortText(was, 60)}</del>} {is && <ins>{shortText(is, 60)}</ins>}
        </span>
      ))}
    </>
  );
}

function NoStream({ table }: { table: TableInfo }) {
  const found = useStore(session);
  const [error, setError] = useState<CallError | null>(null);
  const enable = async () => {
    const specification = { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" };
    try {
      await execute("UpdateTable", { TableName: table.name, StreamSpecification: specification });
      await refreshTable(table.name);
    } catch (failure) {
      setError(failure as CallError);
    }
  };
  return (
    <div class="over">
      <div class="empty">
        <h2>{table.name} has no stream</h2>
        <p>
          A stream records each change of a table in order, for 24 hours. Workers, feeds and this page read it; it changes
          nothing in the table.
        </p>
        {error && <Failure error={error} />}
        <button class="primary" disabled={!found?.writable} onClick={() => void enable()}>
          Enable the stream
        </button>
      </div>
    </div>
  );
}
