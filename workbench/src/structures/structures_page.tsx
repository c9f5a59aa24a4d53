/** The structures of all tables as what they are: ranks, a board, the states of a queue, a timeline. Read only. */

import { useEffect, useState } from "preact/hooks";

import { call, type CallError } from "../api";
import { useRepeated } from "../repeated";
import { change, href, route } from "../router";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { count, plural } from "../values";
import "../styles/structures.css";

interface Found {
  kind: "set" | "leaderboard" | "queue" | "feed" | "worker";
  table: string;
  name: string;
  items: number;
}
interface Listed {
  structures: Found[];
  sample: number;
  /** Tables that may not be scanned. */
  denied: string[];
}
type Row = Record<string, string | number | boolean | null>;
interface Structure extends Found {
  rows: Row[];
  is_whole: boolean;
  /** The most items of the table that were looked at. */
  sample: number;
  /** Whether the lowest score is the first one. */
  lowest?: boolean;
  window?: string;
  about?: string;
  counts?: Record<string, number>;
  lag?: number | null;
  /** Whether a stream has dropped changes that a worker has not seen. */
  is_lost?: boolean;
  shards?: number;
  finished?: number;
  dead?: Row[];
  dead_letters?: number;
}

const KINDS = { set: "Sorted set", leaderboard: "Leaderboard", queue: "Queue", feed: "Feed", worker: "Worker" };
/** What may be missing where a table has more items than were looked at. */
const PARTS = {
  set: "the shards",
  queue: "the messages",
  feed: "the posts",
  worker: "the shards and dead letters",
};
const ORDERS: [order: string, title: string][] = [["highest", "Highest first"], ["lowest", "Lowest first"]];
const STATES = ["ready", "delayed", "in flight", "dead"];
const EVERY = 2_000; // milliseconds between two readings of what is shown

export function StructuresPage() {
  const { path, query } = useStore(route);
  const [, kind, table, name] = path;
  const order = query["order"] ?? "";
  const [all, setAll] = useState<Listed | null>(null);
  const [shown, setShown] = useState<Structure | null>(null);
  const [failure, setFailure] = useState<CallError | null>(null);
  const [missing, setMissing] = useState<CallError | null>(null); // why there is no list

  const list = () => {
    setMissing(null);
    call<Listed>("structures").then(setAll, setMissing);
  };
  useEffect(list, []);
  useRepeated(
    EVERY,
    async (signal) => {
      setShown((now) => (now && now.kind === kind && now.table === table && now.name === (name ?? "") ? now : null));
      if (!kind || !table) {
        setFailure(null);
        return false;
      }
      try {
        const found = await call<Structure>("structure", { kind, table, name: name ?? "", order }, signal);
        if (signal.aborted) return false;
        setShown(found);
        setFailure(null);
      } catch (error) {
        if (!signal.aborted) setFailure(error as CallError);
      }
      return !signal.aborted;
    },
    [kind, table, name, order],
  );

  return (
    <div class="structures">
      <nav class="structure-list" aria-label="Structures">
        {all?.structures.map((each) => (
          <a
            key={`${each.kind}/${each.table}/${each.name}`}
            href={href(["structures", each.kind, each.table, each.name])}
            aria-current={each.kind === kind && each.table === table && each.name === (name ?? "") ? "page" : undefined}
          >
            <small>{KINDS[each.kind]}</small>
            <strong>{each.name || each.table}</strong>
            <small>{plural(each.items, "item")} in {each.table}</small>
          </a>
        ))}
      </nav>
      <div class="structure" tabIndex={-1}>
        {missing && <Failure error={missing} onRetry={list} />}
        {failure && <Failure error={failure} />}
        {!kind && all && (
          <div class="empty">
            <h2>{all.structures.length ? "Choose a structure" : "No structures were found"}</h2>
            <p>
              Sorted sets, leaderboards, queues, feeds and workers of <code>isotone.structures</code> are shown here as what they
              are, while other programs use them. They are looked for in the first {count(all.sample)} items of each table.
            </p>
            {all.denied.length > 0 && <p>These tables may not be scanned with your credentials: {all.denied.join(", ")}.</p>}
          </div>
        )}
        {shown && (
          <>
            <header>
              <h2>{shown.name || shown.table}</h2>
              <p class="quiet">
                {KINDS[shown.kind]} in <a href={href(["t", shown.table, "items"])}>{shown.table}</a>
                {shown.window && `, window ${shown.window}`}
                {shown.about && `, ${shown.about}`}
                {!shown.is_whole && shown.kind !== "leaderboard" && `; only ${PARTS[shown.kind]} in the table's first ${count(shown.sample)} items`}
              </p>
            </header>
            {(shown.kind === "set" || shown.kind === "leaderboard") && shown.rows.length > 0 && (
              <div class="chips" role="group" aria-label="Order">
                {ORDERS.map(([each, title]) => (
                  <button
                    key={each}
                    class={(each === "lowest") === shown.lowest ? "chip current" : "chip"}
                    aria-pressed={(each === "lowest") === shown.lowest}
                    onClick={() => change({ order: each })}
                  >
                    {title}
                  </button>
                ))}
              </div>
            )}
            {shown.kind === "worker" && shown.rows.length > 0 ? <Worker shown={shown} /> : shown.rows.length === 0 ? (
              <p>Nothing of this name is there now; it may have been deleted. <a class="more-link" href={href(["structures"])}>All structures</a></p>
            ) : shown.kind === "queue" ? <Queue shown={shown} /> : shown.kind === "feed" ? <Feed rows={shown.rows} /> : <Ranks shown={shown} />}
          </>
        )}
      </div>
    </div>
  );
}

function Ranks({ shown }: { shown: Structure }) {
  const scores = shown.rows.map((row) => Math.abs(Number(row["score"])));
  const most = Math.max(...scores, Number.MIN_VALUE);
  return (
    <ol class="ranks">
      {shown.rows.map((row, place) => (
        <li key={String(row["member"])} class={Number(row["rank"]) <= 3 ? "leading" : ""}>
          <span class="rank">{row["rank"]}</span>
          <span class="member">{row["member"]}</span>
          <span class="track"><span style={{ width: `${(100 * scores[place]!) / most}%` }} /></span>
          <span class="score">{row["score"]}</span>
          {row["count"] !== undefined && <small>{plural(Number(row["count"]), "event")}</small>}
        </li>
      ))}
    </ol>
  );
}

function Queue({ shown }: { shown: Structure }) {
  return (
    <div class="lanes">
      {STATES.map((state) => (
        <section key={state} class={`lane lane-${state.replace(" ", "-")}`}>
          <h3>
            {state} <span>{count(shown.counts?.[state] ?? 0)}</span>
          </h3>
          {shown.rows.filter((row) => row["state"] === state).map((row) => (
            <article key={String(row["entry"])}>
              <strong>{row["body"]}</strong>
              <small>
                {state === "ready" ? "since" : state === "dead" ? "died" : "due"} {String(row["due"]).slice(0, 19).replace("T", " ")}
                {Number(row["attempts"]) > 0 && `, ${plural(Number(row["attempts"]), "delivery", "deliveries")}`}
              </small>
              {row["reason"] && <small class="reason">{row["reason"]}</small>}
            </article>
          ))}
        </section>
      ))}
    </div>
  );
}

function Feed({ rows }: { rows: Row[] }) {
  return (
    <ol class="timeline">
      {rows.map((row, place) => (
        <li key={place}>
          <strong>{row["author"]}</strong> <time>{String(row["at"]).slice(0, 19).replace("T", " ")}</time>
          <p>{row["content"]}</p>
        </li>
      ))}
    </ol>
  );
}

function Worker({ shown }: { shown: Structure }) {
  const dead = shown.dead ?? [];
  return (
    <>
      <section class="facts" aria-label="In short">
        <div class={shown.lag ? "fact bad" : "fact"}><span>behind</span><strong>{lagOf(shown.lag ?? null)}</strong></div>
        <div class="fact"><span>{shown.shards === 1 ? "shard" : "shards"}</span><strong>{count(shown.shards ?? 0)}</strong></div>
        <div class="fact"><span>finished shards</span><strong>{count(shown.finished ?? 0)}</strong></div>
        <div class={shown.dead_letters ? "fact bad" : "fact"}><span>dead letters</span><strong>{count(shown.dead_letters ?? 0)}</strong></div>
      </section>
      {shown.is_lost && (
        <p class="reason" role="alert">
          The stream keeps changes for a day, and has dropped some after the checkpoint of a shard: this worker may never see them.
        </p>
      )}
      {(shown.shards ?? 0) > shown.rows.length && <p class="quiet">Only {count(shown.rows.length)} of its shards are shown.</p>}
      <div class="scrolls" tabIndex={0} role="group" aria-label="Shards">
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">shard</th>
              <th scope="col">held by</th>
              <th scope="col" class="number">changes waiting</th>
              <th scope="col" class="number">behind</th>
              <th scope="col" class="number">crashes</th>
            </tr>
          </thead>
          <tbody>
            {shown.rows.map((row) => (
              <tr key={String(row["shard"])}>
                <th scope="row"><code>{row["shard"]}</code></th>
                <td>{row["owner"] ?? <span class="quiet">nobody</span>}</td>
                <td class="number">{count(Number(row["waiting"]))}{row["is_more"] ? " or more" : ""}</td>
                <td class="number">{lagOf(row["lag"] === null ? null : Number(row["lag"]))}</td>
                <td class="number">{count(Number(row["crashes"]))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {dead.length > 0 && (
        <section>
          <h3>Dead letters</h3>
          <ul class="dead-letters">
            {dead.map((row, place) => (
              <li key={place}>
                <strong>{row["handler"]}</strong> <time>{String(row["failed"]).slice(0, 19).replace("T", " ")}</time>{" "}
                <small>{plural(Number(row["attempts"]), "attempt")}</small>
                <p><code>{row["keys"]}</code></p>
                <p class="reason">{row["error"]}</p>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

/** How far behind, in the largest whole unit. */
function lagOf(seconds: number | null): string {
  if (seconds === null) return "not known";
  if (seconds < 1) return seconds ? "under 1 s" : "nothing";
  if (seconds < 120) return `${Math.round(seconds)} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
