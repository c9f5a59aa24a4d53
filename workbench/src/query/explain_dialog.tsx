/** What a request reads and costs, before it runs; what it wastes, and what else could answer it. */

import { useEffect, useState } from "preact/hooks";

import { call, type CallError, type Request } from "../api";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/messages";
import { count } from "../values";

interface Cost {
  requests: number;
  items_read: number;
  items_returned: number;
  units: number;
  exact: boolean;
  basis: string;
}
interface Explanation {
  title: string;
  operation: string;
  index: string | null;
  reads: string;
  key_range: { attribute: string; operator: string; values: string[] }[];
  direction: string | null;
  order: string;
  filter: string;
  advice: string;
  notes: string[];
  estimate: Cost;
  measured: Cost | null;
  alternatives: { name: string; why_not: string; cost: Cost | null }[];
  writes: { index: string | null; change: string; units: number }[];
}

type Given = { action: string; request: Request } | { statement: string };

export function ExplainDialog({ given, onClose }: { given: Given; onClose: () => void }) {
  return (
    <Dialog title="Explain" className="explain" onClose={onClose}>
      <Explained given={given} />
      <div class="actions">
        <button autoFocus onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

export function Explained({ given }: { given: Given }) {
  const [found, setFound] = useState<Explanation | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  useEffect(() => {
    setFound(null);
    call<{ explanation: Explanation }>("explain", given).then((answer) => setFound(answer.explanation), setError);
  }, [JSON.stringify(given)]);
  if (error) return <Failure error={error} />;
  if (!found) return <div class="explained"><div class="bone" /><div class="bone" /><div class="bone" /></div>;
  const { estimate } = found;
  const wasted = estimate.items_read - estimate.items_returned;
  return (
    <div class="explained">
      <h2>{found.title}</h2>
      <dl>
        {found.reads && <Line name="reads" text={found.reads} />}
        {found.key_range.length > 0 && (
          <Line name="stored" text={found.key_range.map((each) => `${each.attribute} ${each.operator} ${each.values.join(" and ")}`).join(", ")} code />
        )}
        {found.direction && <Line name="direction" text={`${found.direction}${found.order ? `: ${found.order}` : ""}`} />}
        {found.filter && <Line name="filter" text={found.filter} />}
      </dl>
      <div class="facts">
        <Fact name={estimate.exact ? "units" : "units, about"} value={String(Math.round(estimate.units * 100) / 100)} />
        <Fact name="items read" value={count(estimate.items_read)} />
        <Fact name="returned" value={count(estimate.items_returned)} />
        <Fact name={estimate.requests === 1 ? "request" : "requests"} value={count(estimate.requests)} />
      </div>
      {estimate.items_read > 0 && (
        <div class="bar" role="img" aria-label={`${estimate.items_returned} of ${estimate.items_read} items that are read are returned`}>
          <span style={{ width: `${(100 * estimate.items_returned) / estimate.items_read}%` }} />
        </div>
      )}
      <p class="quiet">{estimate.basis && `Estimated from ${estimate.basis}.`} {wasted > 0 && `${count(wasted)} items are read and dropped.`}</p>
      {found.advice && <p class="save-by"><strong>Save by</strong> {found.advice}</p>}
      {found.alternatives.length > 0 && (
        <>
          <h3>Considered</h3>
          <table class="grid">
            <tbody>
              {found.alternatives.map((each) => (
                <tr key={each.name}>
                  <th scope="row">{each.name}</th>
                  <td>{each.why_not}</td>
                  <td class="number">{each.cost ? `${Math.round(each.cost.units * 100) / 100} units` : ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </>
      )}
      {found.writes.length > 0 && (
        <table class="grid">
          <tbody>
            {found.writes.map((each) => (
              <tr key={each.index ?? ""}>
                <th scope="row">{each.index ?? "the table"}</th>
                <td>{each.change}</td>
                <td class="number">{each.units} units</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {found.notes.map((each) => (
        <p class="quiet" key={each}>{each}</p>
      ))}
    </div>
  );
}

function Line({ name, text, code = false }: { name: string; text: string; code?: boolean }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{code ? <code>{text}</code> : text}</dd>
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <div class="fact">
      <span>{name}</span>
      <strong>{value}</strong>
    </div>
  );
}
