/** The progress and the outcome of an export or an import, with the rows that were refused. */

import { useRef, useState } from "preact/hooks";

import { CallError } from "../api";
import { useIsLeft } from "../router";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";
import { count, plural, size } from "../values";
import type { Transfer, Watched } from "./transfers";
import "../styles/transfer.css";

type Work = (watch: (now: Watched) => void, signal: AbortSignal) => Promise<Transfer>;

export interface Running {
  now: Watched | null;
  done: Transfer | null;
  error: CallError | null;
  isRunning: boolean;
  /** Does the work; returns what came of it, null if that is a failure. */
  run: (work: Work) => Promise<Transfer | null>;
  stop: () => void;
}

/** The state of one transfer of a page. */
export function useTransfer(): Running {
  const [now, setNow] = useState<Watched | null>(null);
  const [done, setDone] = useState<Transfer | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const controller = useRef<AbortController | null>(null);
  const isLeft = useIsLeft(); // the transfer goes on while another view is shown
  const run = async (work: Work) => {
    controller.current = new AbortController();
    setDone(null);
    setError(null);
    setNow(null);
    setRunning(true);
    try {
      const ended = await work(setNow, controller.current.signal);
      if (ended.fault) setError(new CallError(ended.kind === "import" ? "Import failed" : "Export failed", ended.fault));
      setDone(ended);
      if (isLeft.current) notify(summaryOf(ended), { failed: ended.state !== "done" });
      return ended.state === "done" ? ended : null;
    } catch (failure) {
      setError(failure as CallError);
      if (isLeft.current) notify((failure as CallError).message, { failed: true });
      return null;
    } finally {
      setRunning(false);
    }
  };
  return { now, done, error, isRunning, run, stop: () => controller.current?.abort() };
}

function summaryOf({ kind, table, state, fault, items, bad }: Transfer): string {
  const what = kind === "import" ? `Import into ${table}` : `Export of ${table}`;
  if (state !== "done") return `${what}: ${fault || state}`;
  return `${what}: ${plural(items, "item")}${bad ? `, and ${plural(bad, "row")} that could not be written` : ""}`;
}

export function TransferView({ running }: { running: Running }) {
  const { now, done, error, isRunning } = running;
  return (
    <div class="transfer" aria-live="polite">
      {isRunning && (
        <>
          <p>
            {now?.step ?? "Starting"}
            {now && now.transfer.items > 0 && `: ${count(now.transfer.items)}${now.transfer.of_items ? ` of about ${count(now.transfer.of_items)}` : ""} items`}
            {now?.transfer.seconds_left && now.transfer.seconds_left > 1 ? `, ${Math.round(now.transfer.seconds_left)} s left` : ""}
          </p>
          <div class="query-line">
            <progress value={now?.share ?? 0} max={1} aria-label={now?.step ?? "Starting"} />
            <button onClick={running.stop}>Stop</button>
          </div>
        </>
      )}
      {error && <Failure error={error} />}
      {!isRunning && done?.state === "stopped" && !done.fault && <p>Stopped{done.kind === "import" && ": what was written until then stays"}.</p>}
      {!isRunning && done?.state === "done" && (
        <p>
          <strong>{plural(done.items, "item")}</strong> {done.kind === "import" ? `in ${done.table}` : `of ${done.table}, ${size(done.size)}`}
          {done.units > 0 && <span class="quiet">, for {plural(Math.round(done.units * 10) / 10, "unit")}</span>}
        </p>
      )}
      {!isRunning && done && done.bad > 0 && (
        <section>
          <h3>{plural(done.bad, "row")} could not be written</h3>
          <ul class="bad-rows">
            {done.bad_rows.map((each, place) => <li key={place}>{toldOf(each)}</li>)}
          </ul>
        </section>
      )}
    </div>
  );
}

function toldOf(line: string): string {
  try {
    const found = JSON.parse(line) as { row?: number; number?: number; reason?: string; text?: string };
    return `row ${found.row ?? found.number ?? "?"}: ${found.reason ?? ""} ${found.text ? `(${found.text})` : ""}`;
  } catch {
    return line;
  }
}
