/** The tab Lint: lint's findings in a table, each with its reason, its cost and what to do. */

import { useEffect, useState } from "preact/hooks";

import { call, type CallError, type TableInfo } from "../api";
import { Failure } from "./failure";

interface Finding {
  code: string;
  level: string;
  place: { file: string; line: number; table: string; index: string; key: string; name: string };
  reason: string;
  cost: string;
  fix: string;
}
interface Report {
  findings: Finding[];
  suppressed: unknown[];
  checked: string[];
}

export function LintPage({ table }: { table: TableInfo }) {
  const [report, setReport] = useState<Report | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const read = () => {
    setError(null);
    call<Report>("lint", { table: table.name }).then(setReport, setError);
  };
  useEffect(read, [table.name]);
  if (error)
    return (
      <div class="over">
        <Failure error={error} onRetry={read} />
      </div>
    );
  if (!report)
    return (
      <div class="document">
        <div class="bone" />
        <div class="bone" />
        <div class="bone" />
      </div>
    );
  if (!report.findings.length)
    return (
      <div class="over">
        <div class="empty">
          <h2>Nothing found</h2>
          <p>
            Keys, indexes and a sample of the items of {table.name} were checked: widths and cases of keys, hot and large
            partitions, unused indexes, items near the limit. <code>isotone lint</code> does the same in CI. Items that do not fit the model have the mark ⚠ in the list; <code>isotone verify</code> finds them all.
          </p>
        </div>
      </div>
    );
  return (
    <div class="document">
      <ul class="findings">
        {report.findings.map((each, place) => (
          <li key={place} class={`finding ${each.level}`}>
            <h2>
              <code>{each.code}</code> {each.reason}
            </h2>
            <dl>
              <dt>where</dt>
              <dd>{placeOf(each)}</dd>
              <dt>cost</dt>
              <dd>{each.cost}</dd>
              <dt>fix</dt>
              <dd>{each.fix}</dd>
            </dl>
          </li>
        ))}
      </ul>
    </div>
  );
}

function placeOf({ place }: Finding): string {
  if (place.file) return `${place.file}:${place.line}`;
  const where = [place.table, place.index].filter(Boolean).join(" · ");
  return [where || place.name, place.key].filter(Boolean).join(" ");
}
