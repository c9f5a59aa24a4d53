/** The sheet of access patterns, computed by the server for the sizes and rates that are typed. */

import { useEffect, useState } from "preact/hooks";

import { call, type CallError } from "../api";
import { change, route } from "../router";
import { Failure } from "../shell/failure";
import { useStore } from "../store";
import { give } from "../transfer/transfers";
import { count } from "../values";
import type { Design, Sheet, SheetRow, SizedEntity, Sizes } from "./design_calls";

const RATE_BEFORE = "a second"; // the column before which the calls a second are typed
const BESIDE_NAME = new Set(["pattern", "key", "index"]); // are in the head of the row
const CALLS = "calls a second";
const NUMBERS = new Set(["items", "of", "units", RATE_BEFORE, "cost a month", "hottest key"]);
const HOT = / HOT$/;

export function SheetSection({ design }: { design: Design }) {
  const { query } = useStore(route);
  const [sheet, setSheet] = useState<Sheet | null>(null);
  const [isBusy, setBusy] = useState(true);
  const [error, setError] = useState<CallError | null>(null);
  const typed = typedIn(query);
  const asked = JSON.stringify(typed);
  useEffect(() => {
    if (design.unsampled) return;
    const over = new AbortController();
    setBusy(true);
    call<Sheet>("design_sheet", { part: design.part, ...(JSON.parse(asked) as object) }, over.signal)
      .then((found) => (setSheet(found), setError(null)), (failed: CallError) => !over.signal.aborted && setError(failed))
      .finally(() => !over.signal.aborted && setBusy(false));
    return () => over.abort();
  }, [design, asked]);
  const file = `${design.part.replace(/\W+/g, "-")}-patterns`;
  return (
    <section>
      <div class="section-head">
        <h2>Access patterns</h2>
        <button disabled={!sheet} onClick={() => give(new Blob([sheet!.csv + "\n"], { type: "text/csv" }), `${file}.csv`)}>Download CSV</button>
        <button disabled={!sheet} onClick={() => give(new Blob([sheet!.markdown + "\n"], { type: "text/markdown" }), `${file}.md`)}>Download Markdown</button>
      </div>
      {design.unsampled ? <p class="wrong">{design.unsampled}</p> : <SizesForm design={design} typed={typed} sheet={sheet} />}
      {error && <Failure error={error} />}
      {sheet && <Rows sheet={sheet} typed={typed} asked={design.asked} isBusy={isBusy} />}
      {!sheet && !error && !design.unsampled && <div aria-busy="true"><div class="bone" /><div class="bone" /><div class="bone" /></div>}
    </section>
  );
}

function typedIn(query: Record<string, string>): Sizes {
  return { items: textsOf(query["items"]), per: textsOf(query["per"]), rates: textsOf(query["rates"]), reads: query["reads"] ?? "", writes: query["writes"] ?? "" };
}

/** What the address has by name; whatever else somebody wrote into it is nothing. */
function textsOf(given: string | undefined): Record<string, string> {
  try {
    const found: unknown = JSON.parse(given ?? "{}");
    const isObject = typeof found === "object" && found !== null;
    return isObject ? Object.fromEntries(Object.entries(found).map(([name, text]) => [name, String(text)])) : {};
  } catch {
    return {};
  }
}

/** Puts a text into the address: undefined takes it out, so that the size is again what the command line gave. */
function type(kind: "items" | "per" | "rates", typed: Sizes, name: string, text: string, given: string): void {
  const next = { ...typed[kind] };
  if (text === given) delete next[name];
  else next[name] = text;
  change({ [kind]: Object.keys(next).length ? JSON.stringify(next) : null });
}

function SizesForm({ design, typed, sheet }: { design: Design; typed: Sizes; sheet: Sheet | null }) {
  return (
    <div class="sizes" role="group" aria-label="Sizes">
      {design.entities.map((each) => <EntitySize key={each.name} entity={each} design={design} typed={typed} count={sheet?.entities[each.name]} />)}
      <Calls name="reads" typed={typed.reads} asked={design.asked.reads} />
      <Calls name="writes" typed={typed.writes} asked={design.asked.writes} />
    </div>
  );
}

function EntitySize({ entity, design, typed, count: found }: { entity: SizedEntity; design: Design; typed: Sizes; count: number | undefined }) {
  const isPer = (entity.parent !== null || entity.is_grouped) && !(entity.name in design.asked.items);
  const kind = isPer ? "per" : "items";
  const given = design.asked[kind][entity.name] ?? "";
  const of = !isPer ? "in all" : entity.parent === null ? "in each partition" : `of each ${entity.parent}`;
  return (
    <label class="size">
      <span><strong>{entity.name}</strong> <small>{of}</small></span>
      <input
        value={typed[kind][entity.name] ?? given}
        placeholder={isPer ? "1..10" : "100"}
        spellcheck={false}
        autocomplete="off"
        onChange={(event) => type(kind, typed, entity.name, event.currentTarget.value.trim(), given)}
      />
      <small class="counted">{found === undefined ? "\u00a0" : `${count(Math.round(found))} ${Math.round(found) === 1 ? "item" : "items"}`}</small>
    </label>
  );
}

function Calls({ name, typed, asked }: { name: "reads" | "writes"; typed: string; asked: string }) {
  return (
    <label class="size">
      <span><strong>{name}</strong> <small>of each pattern</small></span>
      <input
        value={typed || asked}
        inputMode="decimal"
        autocomplete="off"
        onChange={(event) => change({ [name]: event.currentTarget.value.trim() === asked ? null : event.currentTarget.value.trim() })}
      />
      <small class="counted">a second</small>
    </label>
  );
}

function Rows({ sheet, typed, asked, isBusy }: { sheet: Sheet; typed: Sizes; asked: Sizes; isBusy: boolean }) {
  return (
    <>
      <div class="scrolls picture sheet" tabIndex={0} role="group" aria-label="Access patterns" aria-busy={isBusy}>
        <table class="grid">
          <thead>
            <tr>
              <th scope="col">pattern</th>
              {sheet.columns.filter((each) => !BESIDE_NAME.has(each)).map((each) => (
                <>
                  {each === RATE_BEFORE && <th scope="col" class="number">{CALLS}</th>}
                  <th key={each} scope="col" class={NUMBERS.has(each) ? "number" : ""}>{titleOf(each)}</th>
                </>
              ))}
            </tr>
          </thead>
          <tbody>
            {sheet.rows.map((row) => <Row key={row.name} sheet={sheet} row={row} typed={typed} asked={asked} />)}
          </tbody>
        </table>
      </div>
      <ul class="summary" aria-live="polite">
        {sheet.summary.map((each) => <li key={each} class={each.startsWith("hot:") ? "hot" : ""}>{each}</li>)}
      </ul>
    </>
  );
}

function titleOf(column: string): string {
  return column === RATE_BEFORE ? "units a second" : column;
}

function Row({ sheet, row, typed, asked }: { sheet: Sheet; row: SheetRow; typed: Sizes; asked: Sizes }) {
  const given = asked.rates[row.name] ?? "";
  const cell = (name: string) => row.cells[sheet.columns.indexOf(name)] ?? "";
  return (
    <tr class={row.is_hot ? "hot" : ""}>
      <th scope="row">
        {row.name} <small>{cell("index")}</small>
        <KeyText text={cell("key")} />
      </th>
      {row.cells.map((text, place) => {
        const column = sheet.columns[place]!;
        if (BESIDE_NAME.has(column)) return null;
        return (
          <>
            {column === RATE_BEFORE && (
              <td class="number" data-label={CALLS}>
                <input
                  class="rate"
                  value={typed.rates[row.name] ?? given}
                  placeholder={String(row.rate)}
                  inputMode="decimal"
                  autocomplete="off"
                  aria-label={`Calls a second of ${row.name}`}
                  onChange={(event) => type("rates", typed, row.name, event.currentTarget.value.trim(), given)}
                />
              </td>
            )}
            <td key={column} class={NUMBERS.has(column) ? "number" : column} data-label={titleOf(column)}>
              {HOT.test(text) ? <>{text.replace(HOT, "")} <strong class="hot-mark">HOT</strong></> : text}
            </td>
          </>
        );
      })}
    </tr>
  );
}

/** A condition on a key: the fields in it stand out. */
function KeyText({ text }: { text: string }) {
  return (
    <code>
      {text.split(/(\{[^}]*\})/).map((part, place) => (part.startsWith("{") ? <b key={place}>{part}</b> : part))}
    </code>
  );
}
