/** The query bar: table or index, partition, range, filters, direction, Jump; opens Explain, Copy as, Saved queries. */

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { AttributeType, AttributeValue, Request, TableInfo } from "../api";
import { focusList } from "../focus";
import { change, href, route } from "../router";
import { models, tables } from "../session";
import { useShortcuts } from "../shortcuts";
import { useStore } from "../store";
import { own, typeOf } from "../values";
import { namesSeen, typesSeen } from "./attribute_types";
import { CopyDialog } from "./copy_dialog";
import { ExplainDialog } from "./explain_dialog";
import { remember } from "./history";
import { HistoryDialog } from "./history_dialog";
import { conditionsOf, orderedBy, PatternForm, type PatternAsked } from "./pattern_form";
import { withBeside } from "./side_pane";
import { comparedText, isWholeDay, timesInWords, timesOf } from "./times_asked";
import { textOf, TypedInput, wrongText } from "./typed_input";
import {
  actionOf,
  FILTER_OPERATORS,
  queryInWords,
  keysOf,
  requestOf,
  SORT_OPERATORS,
  toQuery,
  valuesOf,
  type Filter,
  type FilterOperator,
  type SortOperator,
  type View,
} from "./view";

interface Props {
  view: View;
  /** `given` is what stands in the form of an access pattern. */
  onShow: (view: View, given?: string) => void;
  onNew: () => void;
  onSave: () => void;
  writable: boolean;
}

interface DraftFilter {
  attribute: string;
  operator: FilterOperator;
  type: string;
  /** Whether the type was chosen; otherwise it follows from the attribute. */
  isChosen: boolean;
  texts: string[];
}

interface Draft {
  partition: string[];
  operator: SortOperator;
  sort: string[];
  filters: DraftFilter[];
}

export function QueryBar({ view, onShow, onNew, onSave, writable }: Props) {
  const { query } = useStore(route);
  const model = own(useStore(models), view.table.name)?.model ?? null;
  const [draft, setDraft] = useState<Draft>(() => draftOf(view));
  /** What may be saved: what stands in the form, also before it is sent, unless it has a fault. */
  const [savable, setSavable] = useState<{ words: string; address: string } | null>(null);
  /** What is explained or copied, in the same way. */
  const [asked, setAsked] = useState<{ what: "copy" | "explain"; view: View; code: string | null } | null>(null);
  const patternAsked = useRef<PatternAsked>(async () => null);
  const [expanded, setExpanded] = useState(false); // in a narrow window
  const expand = useRef<HTMLButtonElement>(null);
  /** Shows the view. In a narrow window what was sent makes room for what it found. */
  const send = (next: View, given?: string) => {
    if (expanded) expand.current?.focus(); // what had the focus is hidden
    setExpanded(false);
    onShow(next, given);
  };
  // Whoever opens a pattern gives its values next.
  const begins = Boolean(query["pattern"]) && !view.partition;
  useLayoutEffect(() => {
    if (begins) setExpanded(true);
  }, [begins, query["pattern"]]);
  const [code, setCode] = useState<string | null>(null);
  const [tried, setTried] = useState(false);
  const [added, setAdded] = useState<number | null>(null); // the place of the filter that was added last
  const address = JSON.stringify(requestOf(view, { limit: 1 }));
  useEffect(() => {
    setDraft(draftOf(view));
    setTried(false);
    setAdded(null);
  }, [address]);
  useShortcuts(
    [
      { keys: ["e"], title: "Explain the query", run: () => void ask("explain") },
      { keys: ["c"], title: "Copy the query as code", run: () => void ask("copy") },
      { keys: ["h"], title: "Save the query; saved and recent queries", run: () => keep() },
      { keys: ["q"], title: "To the query", run: () => document.querySelector<HTMLElement>(".query-form input, .pattern-form :is(input, select)")?.focus() },
    ],
  );

  const [entityName, patternName] = (query["pattern"] ?? "").split(/\.(?=[^.]*$)/);
  const entity = model?.entities.find((each) => each.name === entityName);
  const pattern = entity?.patterns.find((each) => each.name === patternName);

  const keys = keysOf(view);
  const sortKey = keys.sort[0];
  const fault = pattern ? faultIn(draft.filters) : faultOf(view, draft);
  const run = () => {
    setTried(true);
    if (fault) return;
    const next = viewOf(view, draft, timesOf(model));
    setCode(null);
    send(next);
    remember(hashOf(), queryInWords(next));
  };
  const words = (next: View, given: string | undefined) =>
    queryInWords(next, entity && pattern && given && next.partition ? { pattern: `${entity.name}.${pattern.name}`, conditions: conditionsOf(pattern, given) } : null);
  const keep = () => {
    const next = entity || fault ? view : viewOf(view, draft, timesOf(model));
    const isSent = JSON.stringify(requestOf(next, { limit: 1 })) === address;
    setSavable({ words: words(next, query["given"]), address: isSent ? hashOf() : href(["t", view.table.name, "items"], toQuery(next)) });
  };
  const reset = (index: View["index"]) =>
    onShow({ ...view, index, partition: null, sort: null, start: null, descending: false, filters: [] });
  const ask = async (what: "copy" | "explain") => {
    if (entity && pattern) {
      if (fault) return setTried(true);
      const found = await patternAsked.current();
      if (found) setAsked({ what, ...found });
    } else if (fault) {
      setTried(true);
    } else {
      const next = viewOf(view, draft, timesOf(model));
      const isSent = JSON.stringify(requestOf(next, { limit: 1 })) === address;
      setAsked({ what, view: next, code: isSent ? code : null });
    }
  };

  // Of both forms.
  const addFilter = (
    <button
      type="button"
      onClick={() => {
        setDraft({ ...draft, filters: [...draft.filters, { attribute: "", operator: "=", type: "S", isChosen: false, texts: ["", ""] }] });
        setAdded(draft.filters.length);
      }}
    >
      + Filter
    </button>
  );
  const order = pattern && orderedBy(pattern, query["given"]);
  const direction = (
    <button
      type="button"
      class="direction"
      aria-pressed={view.descending}
      title="Turn the direction (d)"
      onClick={() => onShow({ ...view, descending: !view.descending, start: null }, query["given"])}
    >
      {view.descending ? "↑" : "↓"} {order ? `${order.name} ${order.descending !== view.descending ? "descending" : "ascending"}` : view.descending ? "Descending" : "Ascending"}
    </button>
  );
  const filterLines = draft.filters.map((each, place) => (
    <FilterLine
      key={place}
      filter={each}
      table={view.table.name}
      hasFocus={place === added}
      isTime={timesOf(model).includes(each.attribute)}
      names={model?.entities.flatMap((one) => one.fields.map((field) => field.attribute)) ?? []}
      onChange={(filter) => setDraft({ ...draft, filters: draft.filters.map((one, at) => (at === place ? filter : one)) })}
      onRemove={() => {
        const filters = draft.filters.filter((_, at) => at !== place);
        const next = { ...draft, filters };
        setDraft(next);
        if (view.filters.length <= filters.length || (pattern ? faultIn(filters) : faultOf(view, next))) return;
        onShow(pattern ? { ...view, filters: filtersOf(next, timesOf(model)) } : viewOf(view, next, timesOf(model)), query["given"]);
      }}
    />
  ));
  const told = tried && fault && (
    <span class="wrong" role="alert">
      {fault}
    </span>
  );

  return (
    <div
      class={expanded ? "query-bar expanded" : "query-bar"}
      onKeyDown={(event) => {
        const field = event.target as HTMLElement;
        if (event.key !== "Escape" || !field.matches("input, select") || field.closest("dialog")) return; // a dialog closes
        event.preventDefault();
        field.blur();
        focusList();
      }}
    >
      <div class="query-line">
        <div class="chips" role="group" aria-label="Table or index">
          {[null, ...view.table.indexes].map((index) => (
            <button
              key={index?.name ?? ""}
              class={index?.name === view.index?.name ? "chip current" : "chip"}
              aria-pressed={index?.name === view.index?.name}
              onClick={() => reset(index)}
            >
              {index?.name ?? "Table"}
            </button>
          ))}
        </div>
        {model && (
          <select
            class="patterns"
            aria-label="Access pattern"
            value={query["pattern"] ?? ""}
            onChange={(event) => change({ pattern: event.currentTarget.value, given: "" })}
          >
            <option value="">Access patterns</option>
            {model.entities.map((each) => (
              <optgroup key={each.name} label={each.name}>
                {each.patterns.map((one) => (
                  <option key={one.name} value={`${each.name}.${one.name}`}>
                    {each.name}.{one.name} · {[...one.group, ...one.order].map((part) => part.name).join(", ") || "all"}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        )}
        {!(pattern?.index ?? view.index) && <Beside table={view.table} chosen={query["beside"] ?? ""} />}
        <span class="space" />
        <button class="expand" ref={expand} aria-expanded={expanded} onClick={() => setExpanded(!expanded)}>
          Query
        </button>
        <div class="query-tools">
          <button onClick={() => void ask("explain")} title="What it reads and costs (e)">Explain</button>
          <button onClick={() => void ask("copy")} title="As code that runs (c)">Copy as</button>
          <button onClick={keep} title="Save this query, or go back to a saved or recent one (h)">Saved queries</button>
          <button onClick={onSave} title="The rows, or the whole table, as a file of CSV or JSON lines (s)">Download</button>
        </div>
        <button class="new-item" onClick={onNew} disabled={!writable} title={writable ? "Write an item (n)" : "Safe mode"}>New item</button>
      </div>

      {entity && pattern ? (
        <PatternForm
          key={query["pattern"]}
          view={view}
          entity={entity}
          pattern={pattern}
          asked={patternAsked}
          sent={{ view, code }}
          given={query["given"]}
          filters={filtersOf(draft, timesOf(model))}
          onShow={(next, text, given) => {
            setTried(true);
            if (fault) return;
            send(next, given);
            setCode(text);
            remember(hashOf(), words(next, given), queryInWords(next));
          }}
        >
          {addFilter}
          {query["given"] && view.partition && sortKey && direction}
          {filterLines}
          {told}
        </PatternForm>
      ) : (
        <form
          class="query-form"
          aria-label="Query"
          onSubmit={(event) => {
            event.preventDefault();
            run();
          }}
        >
          {keys.partition.map((each, place) => (
            <label key={each.name}>
              <code>{each.name}</code>
              <span class="operator">=</span>
              <TypedInput
                label={`Partition key ${each.name}`}
                type={each.type}
                text={draft.partition[place] ?? ""}
                placeholder="any partition"
                onText={(text) => setDraft({ ...draft, partition: replaced(draft.partition, place, text) })}
              />
            </label>
          ))}
          {sortKey && (
            <label class={draft.partition.every(Boolean) || sortTexts(draft).length ? "" : "later"}>
              <code>{sortKey.name}</code>
              <select
                aria-label={`Operator for ${sortKey.name}`}
                value={draft.operator}
                onChange={(event) => setDraft({ ...draft, operator: event.currentTarget.value as SortOperator })}
              >
                {SORT_OPERATORS.filter((each) => each !== "begins_with" || sortKey.type !== "N").map((each) => (
                  <option key={each} value={each}>
                    {each.replace("_", " ")}
                  </option>
                ))}
              </select>
              <TypedInput
                label={`Sort key ${sortKey.name}`}
                type={sortKey.type}
                text={draft.sort[0] ?? ""}
                placeholder="any"
                onText={(text) => setDraft({ ...draft, sort: replaced(draft.sort, 0, text) })}
              />
              {draft.operator === "between" && (
                <>
                  <span class="operator">and</span>
                  <TypedInput
                    label={`Upper bound of ${sortKey.name}`}
                    type={sortKey.type}
                    text={draft.sort[1] ?? ""}
                    onText={(text) => setDraft({ ...draft, sort: replaced(draft.sort, 1, text) })}
                  />
                </>
              )}
            </label>
          )}
          <button class="primary">{draft.partition.every(Boolean) ? "Query" : "Scan"}</button>
          {addFilter}
          {!view.partition && (
            <span class="quiet">
              A scan reads partitions in hash order, which has no direction. Enter {keys.partition.map((each) => each.name).join(" and ")} to read one
              partition{sortKey ? ", in either direction and from any key" : ""}.
            </span>
          )}
          {view.partition && sortKey && (
            <>
              {direction}
              {!view.sort && <Jump view={view} onShow={onShow} />}
            </>
          )}
          {filterLines}
          {told}
        </form>
      )}
      {asked?.what === "copy" && (
        <CopyDialog
          action={actionOf(asked.view)}
          request={wholeRequestOf(asked.view)}
          pattern={asked.code}
          onClose={() => setAsked(null)}
        />
      )}
      {savable && <HistoryDialog {...savable} onClose={() => setSavable(null)} />}
      {asked?.what === "explain" && (
        <ExplainDialog
          given={{ action: actionOf(asked.view), request: requestOf(asked.view, { limit: 0 }) }}
          onClose={() => setAsked(null)}
        />
      )}
    </div>
  );
}

/** The request as a program sends it: for all pages, and without the cost that the page shows. */
function wholeRequestOf(view: View): Request {
  const { ReturnConsumedCapacity: _, ...request } = requestOf(view, { limit: 0 });
  return request;
}

function hashOf(): string {
  return location.hash;
}

/** What stands beside the table: one of its indexes, and other tables, each of which has its own way to be closed. */
function Beside({ table, chosen }: { table: TableInfo; chosen: string }) {
  const others = (useStore(tables) ?? []).filter((each) => each.name !== table.name);
  if (!table.indexes.length && !others.length) return null;
  return (
    <select
      class="patterns beside"
      aria-label="Index or table beside the table"
      value={chosen}
      onChange={(event) => {
        const { value, selectedOptions } = event.currentTarget;
        if (!selectedOptions[0]?.dataset["table"]) return change({ beside: value });
        event.currentTarget.value = chosen;
        withBeside(value);
      }}
    >
      <option value="">Beside: none</option>
      {table.indexes.map((each) => (
        <option key={each.name} value={each.name}>
          Beside: {each.name}
        </option>
      ))}
      {others.length > 0 && (
        <optgroup label="Tables">
          {others.map((each) => (
            <option key={each.name} value={each.name} data-table={each.name}>
              {each.name}
            </option>
          ))}
        </optgroup>
      )}
    </select>
  );
}

function Jump({ view, onShow }: { view: View; onShow: (view: View) => void }) {
  const key = keysOf(view).sort[0]!;
  const start = textOf(view.start);
  const [text, setText] = useState(start);
  useEffect(() => setText(start), [start]);
  const wrong = text ? wrongText(key.type, text) : null;
  return (
    <span class="jump typed">
      <input
        aria-label={`Jump to ${key.name}`}
        aria-invalid={wrong !== null}
        placeholder={`Jump to ${key.name}`}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault();
          if (!wrong) onShow({ ...view, start: text ? { [key.type]: text } : null });
        }}
      />
      {wrong && <span class="wrong">{wrong}</span>}
    </span>
  );
}

const VALUE_TYPES = ["S", "N", "BOOL", "B", "NULL"];

interface FilterProps {
  filter: DraftFilter;
  table: string;
  names: string[];
  /** Whether its attribute is a time of the model. */
  isTime: boolean;
  /** Whether its attribute gets the focus when it is added. */
  hasFocus: boolean;
  onChange: (filter: DraftFilter) => void;
  onRemove: () => void;
}

function FilterLine({ filter, table, names, isTime, hasFocus, onChange, onRemove }: FilterProps) {
  const many = valuesOf(filter.operator);
  const attribute = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (hasFocus) attribute.current?.focus();
  }, []);
  const types = comparable(typesSeen(table, filter.attribute), filter.operator);
  const change = (next: DraftFilter) => {
    const type = comparable(typesSeen(table, next.attribute), next.operator).find((each) => VALUE_TYPES.includes(each));
    onChange(next.isChosen || !type ? next : { ...next, type });
  };
  return (
    <span class="filter-line">
      <span class="quiet">filter</span>
      <input
        ref={attribute}
        aria-label="Attribute"
        placeholder="attribute"
        list="attribute-names"
        value={filter.attribute}
        onInput={(event) => change({ ...filter, attribute: event.currentTarget.value, isChosen: false })}
      />
      <datalist id="attribute-names">
        {[...new Set([...names, ...namesSeen(table)])].map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <select aria-label="Operator" value={filter.operator} onChange={(event) => change({ ...filter, operator: event.currentTarget.value as FilterOperator })}>
        {FILTER_OPERATORS.map((each) => (
          <option key={each} value={each}>
            {each.replace("_", " ")}
          </option>
        ))}
      </select>
      {many > 0 && (
        <select aria-label="Type" value={filter.type} onChange={(event) => onChange({ ...filter, type: event.currentTarget.value, isChosen: true })}>
          {VALUE_TYPES.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      )}
      {Array.from({ length: many }, (_, place) => (
        <input
          key={place}
          aria-label="Value"
          value={filter.texts[place] ?? ""}
          disabled={filter.type === "NULL"}
          placeholder={filter.type === "BOOL" ? "true or false" : ""}
          aria-invalid={Boolean(filter.texts[place]) && wrongValue(filter.type, filter.texts[place]!) !== null}
          onInput={(event) => onChange({ ...filter, texts: replaced(filter.texts, place, event.currentTarget.value) })}
        />
      ))}
      <button type="button" class="icon" aria-label="Remove the filter" onClick={onRemove}>
        ✕
      </button>
      {isTime && filter.type === "S" && <span class="quiet">{timesInWords({ name: filter.attribute, zone: "UTC" }, filter.operator, filterTexts(filter))}</span>}
      {many > 0 && types.length > 0 && !types.includes(filter.type) && (
        <span class="waste" role="status">
          In the items read so far, {filter.attribute} is {types.join(" or ")}, never {filter.type}.
        </span>
      )}
    </span>
  );
}

/** The types of values with which an attribute of these types can be compared: `contains` takes an element of a set. */
function comparable(types: AttributeType[], operator: FilterOperator): string[] {
  if (operator !== "contains") return types;
  return types.some((each) => each === "L") ? [] : types.map((each) => (each.length === 2 && each.endsWith("S") ? each[0]! : each));
}

function replaced(texts: string[], place: number, text: string): string[] {
  const copy = [...texts];
  copy[place] = text;
  return copy;
}

function draftOf(view: View): Draft {
  return {
    partition: keysOf(view).partition.map((_, place) => textOf(view.partition?.[place])),
    operator: view.sort?.operator ?? "=",
    sort: (view.sort?.values ?? []).map(textOf),
    filters: view.filters.map((each) => ({
      attribute: each.attribute,
      operator: each.operator,
      type: each.values[0] ? typeOf(each.values[0]) : "S",
      isChosen: true,
      texts: each.values.map(textOf),
    })),
  };
}

/** Why the form cannot be asked; null if it can. Nothing that is written in it is left out. */
function faultOf(view: View, draft: Draft): string | null {
  const keys = keysOf(view);
  const names = keys.partition.map((each) => each.name).join(" and ");
  const given = keys.partition.filter((_, place) => draft.partition[place]);
  for (const [place, each] of keys.partition.entries()) {
    const wrong = draft.partition[place] && wrongText(each.type, draft.partition[place]);
    if (wrong) return `${each.name}: ${wrong}`;
  }
  if (given.length && given.length < keys.partition.length) return `a query needs ${names}`;
  const sortKey = keys.sort[0];
  const texts = sortTexts(draft);
  if (sortKey && texts.length) {
    if (!given.length) return `${sortKey.name} narrows one partition: enter ${names}, or empty ${sortKey.name}`;
    const wrong = texts.map((text) => wrongText(sortKey.type, text)).find(Boolean);
    if (wrong) return `${sortKey.name}: ${wrong}`;
    if (texts.length < valuesOf(draft.operator)) return `${sortKey.name} between needs both bounds`;
  }
  return faultIn(draft.filters);
}

function faultIn(filters: DraftFilter[]): string | null {
  for (const each of filters) {
    const values = filterTexts(each);
    if (!each.attribute && values.some(Boolean)) return "a filter needs the name of an attribute";
    const wrong = each.attribute && values.map((text) => wrongValue(each.type, text)).find(Boolean);
    if (wrong) return `${each.attribute}: ${wrong}`;
  }
  return null;
}

/** The view that a form without fault asks for; `times` are the attributes in which a day may be all of it. */
function viewOf(view: View, draft: Draft, times: string[]): View {
  const keys = keysOf(view);
  const isQuery = keys.partition.every((_, place) => draft.partition[place]);
  const partition = keys.partition.map((each, place) => ({ [each.type]: draft.partition[place] ?? "" }));
  const sortKey = keys.sort[0];
  const texts = sortTexts(draft);
  return {
    ...view,
    partition: isQuery ? partition : null,
    sort: isQuery && sortKey && texts.length ? { operator: draft.operator, values: texts.map((text) => ({ [sortKey.type]: text })) } : null,
    filters: filtersOf(draft, times),
    descending: isQuery && view.descending,
    start: null,
  };
}

function filtersOf(draft: Draft, times: string[]): Filter[] {
  return draft.filters
    .filter((each) => each.attribute)
    .map((each) => {
      const { attribute, type } = each;
      const isTime = type === "S" && times.includes(attribute);
      const given = filterTexts(each);
      const isDay = isTime && isWholeDay(each.operator, given[0] ?? "");
      const operator = isDay ? "between" : each.operator;
      const texts = isDay ? [given[0]!, given[0]!] : given;
      return { attribute, operator, values: texts.map((text, place) => valueOf(type, isTime ? comparedText(operator, place, text) : text)) };
    });
}

/** The bounds of the range that are given. */
function sortTexts(draft: Draft): string[] {
  return draft.sort.slice(0, valuesOf(draft.operator)).filter(Boolean);
}

function filterTexts(filter: DraftFilter): string[] {
  return Array.from({ length: valuesOf(filter.operator) }, (_, place) => filter.texts[place] ?? "");
}

function wrongValue(type: string, text: string): string | null {
  if (type === "NULL") return null;
  if (type === "BOOL") return ["true", "false"].includes(text) ? null : "true or false";
  return wrongText(type, text);
}

function valueOf(type: string, text: string): AttributeValue {
  if (type === "NULL") return { NULL: true };
  return type === "BOOL" ? { BOOL: text === "true" } : { [type]: text };
}
