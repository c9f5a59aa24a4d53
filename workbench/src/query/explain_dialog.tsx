/** What a request reads and costs: estimated before it runs, and measured; what it wastes, and what else could answer it. */

import { useEffect, useRef, useState } from "preact/hooks";

import { call, isDescribed, type CallError, type Request } from "../api";
import { href } from "../router";
import { loadModel, models, refreshTable, session, tables } from "../session";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { count, own, plural } from "../values";
import { ExplainedDrawing, type DrawnView } from "./explained_drawing";
import { sentQuery, type Condition } from "./pattern_form";

interface CostBound {
  requests: number;
  items_read: number;
  items_returned: number;
  units: number;
}
interface Cost extends CostBound {
  exact: boolean;
  basis: string;
  /** Of an estimate that is not exact: the least and the most that it can be; null if no most is known. */
  low: CostBound | null;
  high: CostBound | null;
}
interface Explanation {
  title: string;
  operation: string;
  table: string;
  reads: string;
  key_range: { attribute: string; operator: string; values: string[] }[];
  direction: string | null;
  order: string;
  filter: string;
  advice: string;
  notes: string[];
  estimate: Cost;
  measured: Cost | null;
  wasted_units: number;
  alternatives: Other[];
  writes: { index: string | null; change: string; units: number }[];
  drawing: { views: DrawnView[] } | null;
  /** The single writes of a transaction. */
  parts: Explanation[];
  spent: number;
}

/** Another way to answer; of an access pattern, with what it sends, and the conditions in its key and in its filter. */
interface Other {
  name: string;
  why_not: string;
  cost: Cost | null;
  request: Request | null;
  conditions: Condition[];
  filters: Condition[];
}

type Given = { action: string; request: Request } | { statement: string };

export function ExplainDialog({ given, onClose }: { given: Given; onClose: () => void }) {
  return (
    <Dialog title="Explain" className="explain" onClose={onClose}>
      <Explained given={given} onGo={onClose} />
      <div class="actions">
        <button autoFocus onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

interface Props {
  given: Given;
  onFault?: (error: CallError) => void;
  /** Somebody goes to the form of an access pattern. */
  onGo?: () => void;
}

export function Explained({ given, onFault, onGo }: Props) {
  const [found, setFound] = useState<Explanation | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [measuring, setMeasuring] = useState(false);
  const [refused, setRefused] = useState<CallError | null>(null);
  const asked = useRef(new AbortController()); // what is asked of this request; answers to another are not shown
  useEffect(() => {
    const cancel = (asked.current = new AbortController());
    setFound(null);
    setMeasuring(false);
    setError(null);
    setRefused(null);
    call<{ explanation: Explanation }>("explain", given, cancel.signal).then(
      (answer) => setFound(answer.explanation),
      (failure: CallError) => {
        if (cancel.signal.aborted) return;
        setError(failure);
        onFault?.(failure);
      },
    );
    return () => cancel.abort();
  }, [JSON.stringify(given)]);
  const answer = found?.alternatives.some((each) => each.request) ? found.table : "";
  useEffect(() => {
    if (!answer) return;
    loadModel(answer); // a page without a table has none yet
    if (!tables.value?.some((each) => each.name === answer && isDescribed(each))) void refreshTable(answer);
  }, [answer]);
  const measure = () => {
    const { signal } = asked.current;
    setMeasuring(true);
    setRefused(null);
    call<{ explanation: Explanation }>("explain", { ...given, run: true }, signal)
      .then((answer) => setFound(answer.explanation), (failure: CallError) => signal.aborted || setRefused(failure))
      .finally(() => signal.aborted || setMeasuring(false));
  };
  if (error) return <Failure error={error} />;
  if (!found) return <div class="explained"><div class="bone" /><div class="bone" /><div class="bone" /></div>;
  const { estimate, measured } = found;
  const cost = measured ?? estimate;
  const isWrite = found.writes.length > 0;
  return (
    <div class="explained">
      <h2>{found.title}</h2>
      <dl>
        {found.reads && <Line name="reads" text={found.reads} />}
        {found.key_range.length > 0 && <Line name={isWrite ? "key" : "stored"} text={found.key_range.map(conditionOf).join(" AND ")} code />}
        {found.direction && <Line name="direction" text={`${found.direction}${found.order ? `: ${found.order}` : ""}`} />}
        {found.filter && <Line name="filter" text={found.filter} />}
      </dl>
      <Costs rows={[["estimate", estimate], ...(measured ? [["measured", measured] as [string, Cost]] : [])]} isWrite={isWrite} />
      <p class="quiet basis">The estimate is from {estimate.basis}.</p>
      {!isWrite && (
        <div class="query-line">
          {!measured && (
            <button disabled={measuring} onClick={measure} title="Sends the request, and shows what the engine charges for it">
              {measuring ? "Measuring…" : "Measure"}
            </button>
          )}
          {found.filter && cost.items_read > 0 && (
            <span class={cost.items_returned < cost.items_read ? "waste" : "quiet"}>
              {cost.exact ? "" : "About "}{plural(cost.items_read - cost.items_returned, "item")} of {count(cost.items_read)} {cost.items_read - cost.items_returned === 1 ? "is" : "are"} read and dropped: {units(found.wasted_units)} of {units(cost.units)} {cost.units === 1 ? "unit" : "units"}
            </span>
          )}
        </div>
      )}
      {refused && <Failure error={refused} />}
      {!isWrite && cost.items_read > 0 && found.filter && (
        <div class="bar" role="img" aria-label={`${cost.items_returned} of ${cost.items_read} items that are read are returned`}>
          <span style={{ width: `${(100 * cost.items_returned) / cost.items_read}%` }} />
        </div>
      )}
      {found.advice && <p class="cheaper"><strong>Cheaper:</strong> <Advice table={found.table} text={found.advice} others={found.alternatives} onGo={onGo} /></p>}
      {isWrite && (
        <>
          <h3>Written</h3>
          <table class="grid">
            <tbody>
              {writesOf(found).map(([part, each], place) => (
                <tr key={place}>
                  <th scope="row">
                    {each.index ?? part.table}
                    {part !== found && <> <small>{part.key_range.map(conditionOf).join(" AND ")}</small></>}
                  </th>
                  <td>{CHANGES[each.change] ?? each.change}</td>
                  <td class="number">{plural(each.units, "unit")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {found.drawing && <ExplainedDrawing views={found.drawing.views} />}
      {found.alternatives.length > 0 && (
        <>
          <h3>Considered</h3>
          <table class="grid">
            <tbody>
              {found.alternatives.map((each) => (
                <tr key={each.name}>
                  <th scope="row"><Alternative table={found.table} name={each.name} others={found.alternatives} onGo={onGo} /></th>
                  <td colSpan={each.cost ? 1 : 2}>{each.why_not}</td>
                  {each.cost && <td class="number">{about(each.cost)}{units(each.cost.units)} {each.cost.units === 1 ? "unit" : "units"}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {found.notes.map((each) => (
        <p class="quiet" key={each}>{each}</p>
      ))}
      {found.spent > 0 && session.value?.target.startsWith("dynamodb") && <p class="quiet">The estimate itself cost {plural(Math.round(found.spent * 10) / 10, "unit")}.</p>}
    </div>
  );
}

/** Advice that begins with an access pattern leads to what it finds. */
function Advice({ table, text, others, onGo }: { table: string; text: string; others: Other[]; onGo: Props["onGo"] }) {
  const [, name, rest] = /^(\S+ \((?:index|table) [^)]+\))(.*)$/s.exec(text) ?? [];
  return name === undefined ? <>{text}</> : <><Alternative table={table} name={name} others={others} onGo={onGo} />{rest!.replace(/^ (?=answers )/, ", which ")}</>;
}

/** Another way to answer. An access pattern that can answer leads to what it finds, with its form as if somebody had sent it. */
function Alternative({ table, name, others, onGo }: { table: string; name: string; others: Other[]; onGo: Props["onGo"] }) {
  const [pattern, place] = name.split(/ (?=\()/);
  const [entity, key] = pattern!.split(".");
  const known = own(useStore(models), table)?.model?.entities.find((each) => each.name === entity);
  const way = known?.patterns.find((each) => each.name === key);
  const described = useStore(tables)?.find((each) => each.name === table);
  const other = others.find((each) => each.name === name);
  if (!known || !way || !described || !isDescribed(described) || !other?.request) return <>{name}</>;
  const sent = sentQuery(described, known, way, other.request, other.conditions, other.filters);
  return (
    <>
      <a class="more-link" href={href(["t", table, "items"], { pattern, index: way.index ?? undefined, ...sent })} onClick={onGo}>
        {pattern}
      </a>{" "}
      {place}
    </>
  );
}

/** Each write with its item: those of a transaction are of several, which share most indexes that they leave alone. */
function writesOf(found: Explanation): [part: Explanation, write: Explanation["writes"][number]][] {
  if (!found.parts.length) return found.writes.map((each) => [found, each]);
  return found.parts.flatMap((part) => part.writes.filter((each) => each.units > 0).map((each): [Explanation, typeof each] => [part, each]));
}

const CHANGES: Record<string, string> = {
  insert: "a new entry",
  replace: "the entry is replaced",
  move: "the entry moves: one is deleted, one written",
  remove: "the entry is deleted",
  none: "nothing changes",
};

function Costs({ rows, isWrite }: { rows: [name: string, cost: Cost][]; isWrite: boolean }) {
  return (
    <div class="scrolls" tabIndex={0} role="group" aria-label="Cost">
      <table class="grid costs">
        <thead>
          <tr>
            <td />
            <th scope="col" class="number">requests</th>
            {!isWrite && <th scope="col" class="number">items read</th>}
            {!isWrite && <th scope="col" class="number">returned</th>}
            <th scope="col" class="number">units</th>
            <th scope="col">from</th>
          </tr>
        </thead>
        <tbody>
          {rows.flatMap(([name, cost]) => [
            <tr key={name} class={name}>
              <th scope="row">{name}</th>
              <td class="number">{about(cost)}{count(cost.requests)}</td>
              {!isWrite && <td class="number">{about(cost)}{count(cost.items_read)}</td>}
              {!isWrite && <td class="number">{about(cost)}{count(cost.items_returned)}</td>}
              <td class="number"><strong>{about(cost)}{units(cost.units)}</strong></td>
              <td class="quiet">{cost.basis}</td>
            </tr>,
            ...(cost.exact ? [] : [bound("at least", cost.low), bound("at most", cost.high)]),
          ])}
        </tbody>
      </table>
    </div>
  );
}

/** The row of an end of an estimate's interval. */
function bound(name: string, figures: CostBound | null) {
  return (
    <tr key={name} class="bound quiet">
      <th scope="row">{name}</th>
      <td class="number">{figures && count(figures.requests)}</td>
      <td class="number">{figures && count(figures.items_read)}</td>
      <td class="number">{figures && count(figures.items_returned)}</td>
      <td class="number">{figures ? units(figures.units) : "?"}</td>
      <td class="quiet">{figures ? "" : "unknown: the engine does not count its items"}</td>
    </tr>
  );
}

function about(cost: Cost): string {
  return cost.exact ? "" : "~";
}

function units(number: number): string {
  return count(Math.round(number * 100) / 100);
}

function conditionOf({ attribute, operator, values }: Explanation["key_range"][number]): string {
  if (operator === "BETWEEN") return `${attribute} BETWEEN ${values[0]} AND ${values[1]}`;
  if (operator === "IN") return `${attribute} IN (${values.join(", ")})`;
  return operator === "begins_with" ? `begins_with(${attribute}, ${values[0]})` : `${attribute} ${operator} ${values[0]}`;
}

function Line({ name, text, code = false }: { name: string; text: string; code?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{code ? <code>{text}</code> : text}</dd>
    </div>
  );
}
