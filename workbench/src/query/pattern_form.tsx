/** Access patterns: a key of the model as a form, with its components in order. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { call, type AttributeValue, type CallError, type Entity, type Parameter, type Pattern, type Request, type TableInfo } from "../api";
import { hue } from "../collection/hues";
import { Failure } from "../shell/failure";
import { typeOf } from "../values";
import { HAS_ZONE, IS_DAY, isEndOfDay, isWholeDay, timesInWords } from "./times_asked";
import { fromQuery, toQuery, valuesOf, type Filter, type FilterOperator, type SortOperator, type View } from "./view";

const OPERATORS = ["==", "<", "<=", ">", ">=", "between", "begins_with"];

interface Props {
  view: View;
  entity: Entity;
  pattern: Pattern;
  /** `given` is what stands in the form, for the address. */
  onShow: (view: View, code: string | null, given: string) => void;
  /** What the address has of the form. */
  given: string | undefined;
  /** Set to a function that returns what the form asks for now. */
  asked: { current: PatternAsked };
  /** What was asked last: an untouched form asks for the same. */
  sent: { view: View; code: string | null };
  /** What stands in the form behind its button: the filters, and the direction. */
  children: ComponentChildren;
  filters: Filter[];
}

export type PatternAsked = () => Promise<{ view: View; code: string | null } | null>;

interface Answer {
  request: Request;
  /** null if the model cannot say the filters. */
  code: string | null;
}

/** What is typed into the form: a text and an operator for each component, and the end of a span. */
interface Typed {
  texts: Record<string, string>;
  operators: Record<string, string>;
  seconds: Record<string, string>;
}

export function PatternForm({ view, entity, pattern, given, onShow, asked, sent, children, filters }: Props) {
  const [typed, setTyped] = useState<Typed>(() => typedOf(given));
  useLayoutEffect(() => setTyped(typedOf(given)), [given]); // before anybody can type
  const { texts, operators, seconds } = typed;
  const [error, setError] = useState<CallError | null>(null);
  const [missing, setMissing] = useState<string | null>(null);
  useEffect(() => {
    setError(null); // it spoke of what stood there before
    setMissing(null);
  }, [typed, JSON.stringify(filters)]);
  const form = useRef<HTMLFormElement>(null);
  // Whoever has just chosen the pattern goes on with its first value; not by arrow keys, which pass by other patterns.
  useEffect(() => {
    if (!view.partition && !document.querySelector("select.patterns:focus-visible")) form.current?.querySelector<HTMLElement>("input, select")?.focus();
  }, [entity.name, pattern.name]);
  const set = (name: string, text: string) => setTyped({ ...typed, texts: { ...texts, [name]: text } });

  const isDayOf = (each: Parameter) => each.zone !== "" && isWholeDay(operators[each.name] ?? "==", texts[each.name] ?? "");
  const ask = async (): Promise<{ view: View; code: string | null } | null> => {
    setError(null);
    const unset = pattern.group.filter((each) => !texts[each.name]).map((each) => each.name);
    const open = pattern.order.find((each) => texts[each.name] && operators[each.name] === "between" && !seconds[each.name]);
    const wanted = unset.length ? `Give ${unset.join(" and ")}.` : open ? `Give the end of ${open.name}, too.` : null;
    setMissing(wanted);
    if (wanted) return null;
    const equal = Object.fromEntries(pattern.group.map((each) => [each.name, texts[each.name]!]));
    let range = {};
    for (const each of pattern.order) {
      const text = texts[each.name] ?? "";
      if (text === "") break;
      const operator = isDayOf(each) ? "between" : (operators[each.name] ?? "==");
      if (operator === "==") {
        equal[each.name] = text;
        continue;
      }
      const values = operator === "between" ? [text, isDayOf(each) ? text : (seconds[each.name] ?? "")] : [text];
      range = { component: each.name, operator, values };
      break;
    }
    try {
      const given = { table: view.table.name, entity: entity.name, pattern: pattern.name, equal, ...range };
      const answer = await call<Answer>("pattern", { ...given, filters, descending: view.descending, origin: location.origin });
      return { view: { ...viewOf(view, pattern, answer.request), filters }, code: answer.code };
    } catch (failure) {
      setError(failure as CallError);
      return null;
    }
  };
  const run = async () => {
    const found = await ask();
    if (found) onShow(found.view, found.code, JSON.stringify(typed));
  };
  asked.current = async () => (Object.values(texts).some(Boolean) ? ask() : { view: { ...sent.view, filters }, code: filters.length ? null : sent.code });

  const words = pattern.order.map((each) => timesInWords(each, operators[each.name] ?? "==", [texts[each.name] ?? "", seconds[each.name] ?? ""])).find(Boolean);
  let open: string | null = null; // what the component after it needs, as a range ends the key
  return (
    <form
      ref={form}
      class="pattern-form"
      aria-label={`${entity.name}.${pattern.name}`}
      onSubmit={(event) => {
        event.preventDefault();
        void run();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || !(event.target instanceof HTMLSelectElement)) return;
        event.preventDefault(); // as in a field for text
        void run();
      }}
    >
      {pattern.group.map((each) => (
        <label key={each.name}>
          <span class={hue(view.table.name, each.name)}>{each.name}</span>
          <Field parameter={each} clock="00:00" text={texts[each.name] ?? ""} onText={(text) => set(each.name, text)} />
        </label>
      ))}
      {pattern.order.map((each) => {
        const after = open;
        const enabled = after === null;
        const operator = operators[each.name] ?? "==";
        if (isDayOf(each)) open ??= `${each.name} with a time`;
        else if (operator !== "==" || !texts[each.name]) open ??= `${each.name} =`;
        return (
          <label key={each.name} class={enabled ? "" : "later"} title={enabled ? undefined : `The key has another value before it: this needs ${after}`}>
            <span class={hue(view.table.name, each.name)}>
              {each.name}
              {each.descending !== view.descending && <small> descending</small>}
            </span>
            <span class="line">
              <select
                aria-label={`Operator for ${each.name}`}
                disabled={!enabled}
                value={operator}
                onChange={(event) => setTyped({ ...typed, operators: { ...operators, [each.name]: event.currentTarget.value } })}
              >
                {OPERATORS.map((name) => (
                  <option key={name} value={name}>
                    {name === "==" ? "=" : name.replace("_", " ")}
                  </option>
                ))}
              </select>
              <Field parameter={each} clock={isDayOf(each) ? "all day" : isEndOfDay(operator, 0) ? "24:00" : "00:00"} text={texts[each.name] ?? ""} onText={(text) => set(each.name, text)} after={after} />
              {operator === "between" && (
                <>
                  <span class="operator">and</span>
                  <Field parameter={each} label={`${each.name}, to`} clock="24:00" text={seconds[each.name] ?? ""} onText={(text) => setTyped({ ...typed, seconds: { ...seconds, [each.name]: text } })} />
                </>
              )}
            </span>
          </label>
        );
      })}
      <button class="primary">Run</button>
      {words && <span class="quiet times-asked">{words}</span>}
      {children}
      {missing && (
        <span class="wrong" role="alert">
          {missing}
        </span>
      )}
      {error && <Failure error={error} />}
    </form>
  );
}

/** The conditions that stand in the form: `ordered_on >= 2026-11-01`. */
export function conditionsOf(pattern: Pattern, given: string): string[] {
  const { texts, operators, seconds } = typedOf(given);
  const conditions = pattern.group.map(({ name }) => `${name} = ${texts[name] ?? ""}`);
  for (const { name } of pattern.order) {
    if (!texts[name]) break;
    const operator = operators[name] ?? "==";
    conditions.push(`${name} ${operator === "==" ? "=" : operator} ${texts[name]}${operator === "between" ? ` and ${seconds[name] ?? ""}` : ""}`);
    if (operator !== "==") break;
  }
  return conditions;
}

/** The component that the items are in the order of: the first that is not the same in all. */
export function orderedBy(pattern: Pattern, given: string | undefined): Parameter | undefined {
  const { texts, operators } = typedOf(given);
  return pattern.order.find(({ name }) => !texts[name] || (operators[name] ?? "==") !== "==") ?? pattern.order.at(-1);
}

/** What stands in the form of a pattern without the range: its whole item collection. */
export function groupOf(pattern: Pattern, given: string): string {
  const { texts } = typedOf(given);
  return JSON.stringify({ texts: Object.fromEntries(pattern.group.map(({ name }) => [name, texts[name] ?? ""])) });
}

/** A condition on the attribute of a field, with its values as they are stored. */
export type Condition = [attribute: string, operator: string, values: AttributeValue[]];

/** The address of a form that was sent: of the request of a pattern, and the conditions in its key and in its filter. */
export function sentQuery(table: TableInfo, entity: Entity, pattern: Pattern, request: Request, conditions: Condition[], filtered: Condition[]): Record<string, string> {
  const typed: Typed = { texts: {}, operators: {}, seconds: {} };
  const left = [...conditions];
  for (const { name } of [...pattern.group, ...pattern.order]) {
    const attribute = entity.fields.find((each) => each.name === name)?.attribute;
    const place = left.findIndex(([each, operator]) => each === attribute && OPERATORS.includes(operator === "=" ? "==" : operator));
    if (place < 0) break;
    const [[, operator, values]] = left.splice(place, 1) as [Condition];
    const [text, second] = values.map((each) => String(each[typeOf(each)]));
    typed.texts[name] = text!;
    if (operator === "=") continue;
    typed.operators[name] = operator;
    if (second !== undefined) typed.seconds[name] = second;
    break;
  }
  const filters = [...left, ...filtered].map(([attribute, operator, values]) => ({ attribute, operator: operator as FilterOperator, values }));
  return { ...toQuery({ ...viewOf(fromQuery(table, {}), pattern, request), filters }), given: JSON.stringify(typed) };
}

/** The address may be of anybody: only texts are taken from it. */
function typedOf(given: string | undefined): Typed {
  let found: unknown = null;
  try {
    found = JSON.parse(given ?? "null");
  } catch {
    // an address that was cut
  }
  const textsIn = (name: string) => {
    const members: unknown = (found as Record<string, unknown> | null)?.[name];
    const entries = typeof members === "object" && members !== null ? Object.entries(members) : [];
    return Object.fromEntries(entries.filter(([, text]) => typeof text === "string")) as Record<string, string>;
  };
  return { texts: textsIn("texts"), operators: textsIn("operators"), seconds: textsIn("seconds") };
}

/** `clock` is the time of a day that is typed without one; `after`, what must be given before this one: `status =`. */
function Field(props: { parameter: Parameter; clock: string; label?: string; text: string; onText: (text: string) => void; after?: string | null }) {
  const { parameter, text, onText, after = null } = props;
  const disabled = after !== null;
  const label = props.label ?? parameter.name;
  if (parameter.choices.length)
    return (
      <select aria-label={label} value={text} disabled={disabled} onChange={(event) => onText(event.currentTarget.value)}>
        <option value="">{after !== null ? `needs ${after}` : "choose"}</option>
        {parameter.choices.map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    );
  const { zone } = parameter;
  return (
    <span class={zone ? "typed moment" : "typed"}>
      <input
        aria-label={label}
        placeholder={after !== null ? `needs ${after}` : zone ? "2026-09-01" : (TYPES[parameter.type] ?? parameter.type)}
        title={zone && `A time such as 2026-09-01T12:00; without a zone it is taken as ${zone}`}
        value={text}
        disabled={disabled}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => onText(event.currentTarget.value)}
      />
      {zone && text && !HAS_ZONE.test(text) && <span class="quiet">{IS_DAY.test(text) ? `${props.clock} ${zone}` : zone}</span>}
    </span>
  );
}

const TYPES: Record<string, string> = { str: "text", date: "2026-09-01", int: "whole number", Decimal: "number", float: "number" };

const CONDITION =
  /begins_with\(\s*(?<prefixed>[^,\s]+)\s*,\s*(?<prefix>:\w+)\s*\)|(?<between>\S+)\s+BETWEEN\s+(?<low>:\w+)\s+AND\s+(?<high>:\w+)|(?<name>[^\s()]+)\s*(?<operator><=|>=|=|<|>)\s*(?<value>:\w+)/g;

/** The view that shows what a request of the model reads. */
function viewOf(view: View, pattern: Pattern, request: Request): View {
  const names = (request["ExpressionAttributeNames"] ?? {}) as Record<string, string>;
  const values = (request["ExpressionAttributeValues"] ?? {}) as Record<string, AttributeValue>;
  const index = view.table.indexes.find((each) => each.name === pattern.index) ?? null;
  const keys = (index ?? view.table).keys;
  const partition: AttributeValue[] = [];
  let sort: View["sort"] = null;
  for (const { groups } of String(request["KeyConditionExpression"]).matchAll(CONDITION)) {
    if (!groups) continue;
    const written = groups["prefixed"] ?? groups["between"] ?? groups["name"] ?? "";
    const name = names[written] ?? written;
    const operator = (groups["prefix"] ? "begins_with" : groups["low"] ? "between" : groups["operator"]) as SortOperator;
    const given = [groups["prefix"], groups["low"], groups["high"], groups["value"]].filter(Boolean).map((each) => values[each!]!);
    const place = keys.partition.findIndex((each) => each.name === name);
    if (place >= 0) partition[place] = given[0]!;
    else if (given.length === valuesOf(operator)) sort = { operator, values: given };
  }
  const descending = request["ScanIndexForward"] === false;
  return { ...view, index, partition, sort, filters: [], descending, start: null };
}
