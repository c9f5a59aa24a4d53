/** The tab PartiQL: statements, what they cost before and after, their items; asks where an error is, and underlines it. */

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { call, execute, unitsOf, type CallError, type Executed, type Item, type TableInfo } from "../api";
import { isFocusFree } from "../focus";
import { CopyDialog } from "../query/copy_dialog";
import { Explained } from "../query/explain_dialog";
import { history, remember } from "../query/history";
import { HistoryDialog } from "../query/history_dialog";
import { change, href, route } from "../router";
import { models, tables } from "../session";
import { keyName } from "../shortcuts";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { count, own, plural } from "../values";
import { Value } from "../collection/collection_view";
import type { Editor } from "./editor";

const PAGE = 200;

interface Place {
  line: number;
  column: number;
  length: number;
}

export function PartiqlPage({ table }: { table: TableInfo }) {
  const { query } = useStore(route);
  const all = useStore(tables);
  const model = own(useStore(models), table.name)?.model ?? null;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const [answer, setAnswer] = useState<{ statement: string; items: Item[]; last: Executed; units: number | null } | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [running, setRunning] = useState(false);
  const [explaining, setExplaining] = useState<string | null>(null);
  const [dialog, setDialog] = useState<"copy" | "history" | null>(null);
  useStore(history);
  const runner = useRef<() => void>(() => undefined);
  const initial = query["statement"] ?? example(table);

  const names = useMemo(() => {
    const keys = [table, ...table.indexes].flatMap((each) => [...each.keys.partition, ...each.keys.sort]);
    const fields = model?.entities.flatMap((each) => each.fields.map((field) => field.attribute)) ?? [];
    const indexes = (all ?? []).flatMap((each) => [each.name]);
    return { tables: indexes, attributes: [...new Set([...keys.map((each) => each.name), ...fields])] };
  }, [table, model, all]);

  useLayoutEffect(() => {
    let closed = false;
    const focused = document.activeElement;
    void import("./editor").then(({ makeEditor }) => {
      if (closed || !host.current) return;
      editor.current = makeEditor(host.current, initial, () => runner.current());
      editor.current.setNames(names);
      // Who has gone elsewhere while it was loaded keeps the keyboard.
      if (document.activeElement === focused || isFocusFree()) editor.current.focus();
    });
    return () => {
      closed = true;
      editor.current?.destroy();
      editor.current = null;
    };
  }, []);
  useEffect(() => editor.current?.setNames(names), [names]);
  useEffect(() => {
    if (query["statement"] && editor.current && editor.current.text() !== query["statement"]) editor.current.setText(query["statement"]);
  }, [query["statement"]]);

  const addressOf = (text: string) => href(["t", table.name, "partiql"], { statement: text });
  const statement = () => (editor.current?.text() ?? initial).trim().replace(/;\s*$/, "");
  /** Marks the place of a fault in the statement; all of it if the message names no part. */
  const underline = async (text: string, problem: CallError) => {
    const { place } = await call<{ place: Place | null }>("statement_fault", { statement: text, message: problem.message }).catch(
      () => ({ place: null }),
    );
    const shift = editor.current?.text().indexOf(text) ?? -1;
    if (shift !== 0) return; // it was changed meanwhile, or begins with an empty line
    const [first = ""] = text.split("\n");
    editor.current?.mark({ ...(place ?? { line: 1, column: 1, length: first.length }), message: problem.message });
  };
  const explain = () => {
    const text = statement();
    if (!text) return;
    editor.current?.mark(null);
    setExplaining(text);
  };
  const run = async (next?: string) => {
    const text = next && answer ? answer.statement : statement();
    if (!text || running) return;
    setRunning(true);
    setError(null);
    setExplaining(null);
    editor.current?.mark(null);
    try {
      const request = { Statement: text, ReturnConsumedCapacity: "INDEXES", ...(next ? { NextToken: next } : {}), ...(/^\s*select/i.test(text) ? { Limit: PAGE } : {}) };
      const last = await execute("ExecuteStatement", request);
      const items = [...(next && answer ? answer.items : []), ...(last.response.Items ?? [])];
      const units = unitsOf(last.response);
      setAnswer({ statement: text, items, last, units: units === null ? null : units + (next ? (answer?.units ?? 0) : 0) });
      if (editor.current) change({ statement: text }, { replace: true }); // unless another view is shown by now
      remember(addressOf(text), text);
    } catch (failure) {
      const problem = failure as CallError;
      setError(problem);
      await underline(text, problem);
    } finally {
      setRunning(false);
    }
  };
  runner.current = () => void run();

  return (
    <div class="partiql">
      <div class="editor-host" ref={host} />
      <div class="query-line statement-tools">
        <button class="primary" disabled={running} onClick={() => void run()}>
          Run <kbd>{keyName("Mod+Enter")}</kbd>
        </button>
        <button onClick={explain}>Explain</button>
        <button onClick={() => setDialog("copy")}>Copy as</button>
        <button onClick={() => setDialog("history")}>Saved queries</button>
        <span class="space" />
        {answer && !error && (
          <span class="quiet numbers">
            {plural(answer.items.length, "item")}
            {answer.units !== null && ` · ${answer.units.toFixed(1)} units`} · {answer.last.milliseconds.toFixed(0)} ms
          </span>
        )}
      </div>
      <div class="results">
        {error && <Failure error={error} />}
        {explaining && (
          <div class="explain-panel">
            <Explained given={{ statement: explaining }} onFault={(problem) => void underline(explaining, problem)} />
          </div>
        )}
        {!error && !explaining && answer && <Results items={answer.items} />}
        {!error && !explaining && answer?.last.response.NextToken && (
          <button class="more" disabled={running} onClick={() => void run(answer.last.response.NextToken)}>
            Read more
          </button>
        )}
        {!error && !explaining && !answer && (
          <p class="quiet hint">
            A statement with the partition key in WHERE is a query; any other reads the whole table. “Explain” shows which
            before it runs.
          </p>
        )}
      </div>
      {dialog === "copy" && <CopyDialog action="ExecuteStatement" request={{ Statement: statement() }} onClose={() => setDialog(null)} />}
      {dialog === "history" && <HistoryDialog words={statement()} address={addressOf(statement())} onClose={() => setDialog(null)} />}
    </div>
  );
}

function Results({ items }: { items: Item[] }) {
  const names = useMemo(() => [...new Set(items.flatMap((each) => Object.keys(each)))], [items]);
  if (!items.length) return <p class="quiet hint">The statement returned no items.</p>;
  return (
    <div class="result-scroll" tabIndex={0} role="region" aria-label="Items">
      <table class="grid result">
        <thead>
          <tr>
            {names.map((each) => (
              <th scope="col" key={each}>{each}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map((item, place) => (
            <tr key={place}>
              {names.map((each) => {
                const value = own(item, each);
                return <td key={each}>{value && <Value value={value} />}</td>;
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {items.length >= 1000 && <p class="quiet">{count(items.length)} items are shown.</p>}
    </div>
  );
}

function example(table: TableInfo): string {
  return `SELECT * FROM "${table.name}"`;
}
