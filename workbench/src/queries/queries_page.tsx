/** The most expensive queries of the server, by shape: where to look for waste without a suspicion. Each with Explain. */

import { Fragment } from "preact";
import { useState } from "preact/hooks";

import type { CallError, Item, Request, Session } from "../api";
import { brief } from "../charts/scale";
import { duration, EVERY, NoPage, readQueries, type ServedQueries, type ServedQuery } from "../metrics/metrics_calls";
import { ExplainDialog } from "../query/explain_dialog";
import { useRepeated } from "../repeated";
import { href } from "../router";
import { session as sessionStore } from "../session";
import { Failure } from "../shell/failure";
import { remembered, useStore } from "../store";
import { count, plural } from "../values";
import { ownQueries } from "./own_queries";

const ORDERS: { name: string; title: string; of: (query: ServedQuery) => number }[] = [
  { name: "units", title: "Units", of: (query) => query.units },
  { name: "dropped", title: "Dropped", of: dropped },
  { name: "calls", title: "Calls", of: (query) => query.calls },
  { name: "p99", title: "p99", of: (query) => query.p99 },
];
const OF_STATEMENTS = ["BatchExecuteStatement", "ExecuteTransaction"]; // each of whose statements is explained alone
const SHOWN = 50;
const WASTEFUL = 0.65; // of the items read; a filter that drops more has an index that is cheaper, as a rule

const showsOwn = remembered<boolean>("own-queries", false, (value) => typeof value === "boolean");

export function QueriesPage() {
  const session = useStore(sessionStore);
  const [found, setFound] = useState<ServedQueries | null>(null);
  const [failure, setFailure] = useState<CallError | NoPage | null>(null);
  const withOwn = useStore(showsOwn);
  const [order, setOrder] = useState(ORDERS[0]!);
  const [explained, setExplained] = useState<{ action: string; request: Request } | null>(null);
  useRepeated(
    EVERY,
    async (signal) => {
      if (!session) return false;
      try {
        const read = await readQueries(session, signal);
        if (!signal.aborted) setFound(read);
        setFailure(null);
      } catch (error) {
        if (signal.aborted) return false;
        setFailure(error as CallError | NoPage);
        return !(error instanceof NoPage);
      }
      return !signal.aborted;
    },
    [session?.target],
  );
  if (failure instanceof NoPage) return <NoQueries session={session!} reason={failure.message} />;
  if (failure && !found) return <div class="over"><Failure error={failure} /></div>;
  if (!found) return <div class="document"><div class="bone" /><div class="bone" /><div class="bone" /></div>;
  const isEndpoint = session?.endpoint ?? false; // else those of this page reach the server, too, which counts them
  const queries = [...found.queries, ...(withOwn && isEndpoint ? ownQueries() : [])];
  const sorted = queries.sort((one, other) => order.of(other) - order.of(one));
  const units = queries.reduce((sum, each) => sum + each.units, 0);
  const calls = queries.reduce((sum, each) => sum + each.calls, 0);
  return (
    <div class="document queries" tabIndex={0} role="region" aria-label="Queries">
      {failure && <Failure error={failure} />}
      <header>
        <h2>Most expensive queries</h2>
        <p class="quiet">
          {plural(calls, "request")} for {count(Math.round(units))} units in {ago(found.seconds)}. Requests that differ only in their values are one line.{" "}
          {!isEndpoint
            ? "Those of this workbench reach the server like all others, and are counted."
            : withOwn
              ? "What you have read in this page since it was loaded is marked; edits through forms are not counted."
              : "The requests of this workbench itself are not counted."}
        </p>
        {isEndpoint && (
          <label class="line">
            <input type="checkbox" checked={withOwn} onChange={(event) => showsOwn.set(event.currentTarget.checked)} /> with this workbench’s own
          </label>
        )}
        {sorted.length > 1 && (
          <div class="chips" role="group" aria-label="Sort by">
            {ORDERS.map((each) => (
              <button
                key={each.name}
                class={each === order ? "chip current" : "chip"}
                aria-pressed={each === order}
                onClick={() => setOrder(each)}
              >
                {each.title}
              </button>
            ))}
          </div>
        )}
      </header>
      {sorted.length === 0 ? (
        <Nothing isEndpoint={isEndpoint} />
      ) : (
        <div class="scrolls" tabIndex={0} role="group" aria-label="Queries by shape">
          <table class="grid shapes">
            <thead>
              <tr>
                <th scope="col">query</th>
                <th scope="col" class="number">units</th>
                <th scope="col" class="number">calls</th>
                <th scope="col" class="number">units a call</th>
                <th scope="col" class="number">read</th>
                <th scope="col" class="number">dropped</th>
                <th scope="col" class="number">p99</th>
                <th scope="col"><span class="unseen">Explain</span></th>
              </tr>
            </thead>
            <tbody>
              {sorted.slice(0, SHOWN).map((each) => (
                <Shape key={JSON.stringify([each.isOwn ?? false, ...shapeOf(each)])} query={each} all={units} onExplain={setExplained} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {sorted.length > SHOWN && <p class="quiet">and {count(sorted.length - SHOWN)} more</p>}
      {explained && <ExplainDialog given={explained} onClose={() => setExplained(null)} />}
    </div>
  );
}

interface ShapeProps {
  query: ServedQuery;
  all: number;
  onExplain: (given: { action: string; request: Request }) => void;
}

function Shape({ query, all, onExplain }: ShapeProps) {
  const share = all ? query.units / all : 0;
  const lost = query.read ? dropped(query) / query.read : 0;
  return (
    <tr>
      <th scope="row">
        <span class="what">
          <span class="action">{query.action === "ExecuteStatement" ? "PartiQL" : query.action}</span> <Place query={query} /> {query.isOwn && <span class="mark">this workbench</span>}
        </span>
        {ownRecordOf(query) && <span class="part">{ownRecordOf(query)}</span>}
        {partsOf(query).map(([name, text]) => (
          <span class="part" key={name}>
            {name && <span class="quiet">{name} </span>}
            <code>{text}</code>
          </span>
        ))}
      </th>
      <td class="number" data-label="units">
        <strong>{query.units < 1000 ? brief(query.units) : count(Math.round(query.units))}</strong>
        <span class="share" role="img" aria-label={`${Math.round(100 * share)} % of all units`}>
          <span style={{ width: `${100 * share}%` }} />
        </span>
      </td>
      <td class="number" data-label="calls">{count(query.calls)}</td>
      <td class="number" data-label="units a call">{brief(query.units / Math.max(query.calls, 1))}</td>
      <td class="number" data-label="read">{query.read ? count(query.read) : "–"}</td>
      <td class={lost >= WASTEFUL ? "number waste" : "number"} data-label="dropped" title={lost ? "Items that are read, paid for and dropped by the filter" : undefined}>
        {lost ? `${count(dropped(query))} · ${Math.floor(100 * lost)} %` : "–"}
      </td>
      <td class="number" data-label="p99">{duration(query.p99)}</td>
      <td class="explaining">
        {query.request && !OF_STATEMENTS.includes(query.action) && (
          <button onClick={() => onExplain({ action: query.action, request: fromItsStart(query.request!) })} title="What it reads and costs, and what would answer it for less">
            Explain
          </button>
        )}
      </td>
    </tr>
  );
}

function Place({ query }: { query: ServedQuery }) {
  if (query.table === "(other)") return <>the cheapest, together</>;
  if (!query.table) return null;
  const tables = query.table.split(", "); // of a batch or transaction
  if (tables.length > 1)
    return (
      <>
        {tables.map((each, place) => (
          <Fragment key={each}>
            {place > 0 && ", "}
            <a href={href(["t", each, "items"])}>{each}</a>
          </Fragment>
        ))}
      </>
    );
  return (
    <a href={href(["t", query.table, "items"], { index: query.index || undefined })}>
      {query.index ? `${query.table} · ${query.index}` : query.table}
    </a>
  );
}

const OWN_RECORD = /^_(?:keys|unique|widening|rewriting)(?=#|$)/; // as in isotone/inference/sampling.py

/** The library reads records of its own, which no program asks for: what the request that stands for the shape has read. */
function ownRecordOf({ action, request, calls }: ServedQuery): string {
  const values = action === "GetItem" ? Object.values((request?.["Key"] ?? {}) as Item) : [];
  const record = values.map((each) => OWN_RECORD.exec(String(each["S"]))?.[0]).find(Boolean);
  return record ? `${calls > 1 ? "the last one read " : ""}the library’s own record ${record}` : "";
}

function partsOf(query: ServedQuery): [name: string, text: string][] {
  const parts: [string, string][] = [
    ["", query.statement],
    ["", query.key],
    ["filter", query.filter],
    ["update", query.update],
    ["if", query.condition],
    ["returns", query.projection],
    ["", query.parts],
  ];
  return parts.filter(([, text]) => text);
}

function shapeOf(query: ServedQuery): string[] {
  return [query.action, query.table, query.index, ...partsOf(query).flat()];
}

/** The request without the position of its page: what is explained is the whole read. */
function fromItsStart(request: Request): Request {
  const { ExclusiveStartKey: _, NextToken: __, ReturnConsumedCapacity: ___, ...rest } = request as Record<string, unknown>;
  return rest as Request;
}

function dropped(query: ServedQuery): number {
  return Math.max(0, query.read - query.returned);
}

function ago(seconds: number): string {
  if (seconds < 120) return plural(Math.round(seconds), "second");
  return seconds < 7200 ? plural(Math.round(seconds / 60), "minute") : plural(Math.round(seconds / 3600), "hour");
}

function Nothing({ isEndpoint }: { isEndpoint: boolean }) {
  return (
    <div class="metrics-none">
      <h2>No program has sent a request yet</h2>
      <p>
        What arrives over HTTP is counted here: from AWS SDKs, the AWS CLI, Isotone elsewhere{isEndpoint ? "; what you read in this workbench is not" : ""}. Run your program for a while; what
        costs most then stands first. In a terminal, <code>isotone top {location.origin}</code> shows the same.
      </p>
    </div>
  );
}

function NoQueries({ session, reason }: { session: Session; reason: string }) {
  const isFile = !session.target.includes("://") && session.target !== ":memory:";
  return (
    <div class="over">
      <div class="empty wide">
        <h2>Requests to {session.target} are not counted here</h2>
        {isFile ? (
          <p>
            This workbench opened the file itself. <code>isotone serve {session.target}</code> counts what each shape of request costs: send
            your program's requests to it, and open the workbench that it has.
          </p>
        ) : (
          <>
            <p>{reason}</p>
            <p>
              {session.target.startsWith("dynamodb")
                ? "AWS does not say what a query costs it. Let your program observe its requests with isotone.at_end, or its requests ask for ReturnConsumedCapacity."
                : "A server that isotone serve runs counts what each shape of request costs; open its own workbench, or one on its machine."}
            </p>
          </>
        )}
      </div>
    </div>
  );
}
