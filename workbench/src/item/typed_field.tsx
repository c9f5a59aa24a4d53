/** The input of a field in an entity's form, by its type: dates, times, choices, numbers with bounds, lists, maps. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { AttributeValue, Input, Typed } from "../api";
import { useStore } from "../store";
import { plural, wrongNumber } from "../values";
import { instantOf, wallTime, zone, zones } from "./instants";
import { NameInput } from "./name_input";
import { Remove, ValueEditor } from "./value_editor";

interface Props {
  /** The accessible name: the field, and the place in it. */
  label: string;
  input: Input;
  value: Typed;
  onChange: (value: Typed) => void;
  invalid?: boolean;
  /** The id of what says what is wrong. */
  describedBy?: string;
}

const NUMBERS = ["integer", "decimal", "float"];

/** A value to begin with: of a new element, of an optional value that is set. */
export function emptyOf(input: Input): Typed {
  switch (input.kind) {
    case "boolean":
      return false;
    case "choice":
      return input.choices?.[0] ?? "";
    case "list":
    case "set":
      return [];
    case "map":
      return {};
    case "tuple":
      return (input.items ?? []).map(emptyOf);
    case "record":
      return Object.fromEntries((input.members ?? []).map((each) => [each.name, each.required ? emptyOf(each) : null]));
    case "raw":
      return { S: "" };
    default:
      return "";
  }
}

/** Whether an element or a member that must have a value has none yet; an empty text is a value. */
export function hasEmpty(input: Input, value: Typed): boolean {
  const parts: [Input, Typed][] =
    input.kind === "record" ? (input.members ?? []).filter((each) => each.required).map((each) => [each, (value as Record<string, Typed> | null)?.[each.name] ?? null])
    : input.kind === "tuple" ? (input.items ?? []).map((each, place) => [each, (value as Typed[] | null)?.[place] ?? null])
    : input.item ? Object.values((value ?? {}) as Record<string, Typed>).map((each) => [input.item!, each])
    : [];
  if (value === null) return false;
  return parts.some(([each, one]) => (isPlain(each) ? each.kind !== "text" && !each.optional && (one === null || one === "") : hasEmpty(each, one)));
}

/** Whether the type has an input of one line, so that an empty one means that there is no value. */
export function isPlain(input: Input): boolean {
  return !["list", "set", "map", "tuple", "record", "raw"].includes(input.kind);
}

const KINDS: Partial<Record<Input["kind"], string>> = {
  integer: "whole number", decimal: "number", float: "number", boolean: "true or false", instant: "date and time",
  raw: "any value",
};

/** A type in words, for people. */
export function kindOf(input: Input): string {
  const inner = input.item ? kindOf(input.item) : "";
  const said =
    input.kind === "choice" ? `one of ${input.choices?.length}`
    : input.kind === "list" || input.kind === "set" ? `${input.kind} · ${inner}`
    : input.kind === "map" ? `map · ${inner}`
    : input.kind === "record" ? (input.of ?? "record")
    : (KINDS[input.kind] ?? input.kind);
  return input.optional ? `${said}, optional` : said;
}

/** What a number may be, in words; empty if it may be any. */
export function boundsOf({ min, above, max, below, scale, shortest, longest, pattern }: Input): string {
  const low = min ?? (above === undefined ? undefined : `more than ${above}`);
  const high = max ?? (below === undefined ? undefined : `less than ${below}`);
  const said: string[] = [];
  if (min !== undefined && max !== undefined) said.push(`${min} to ${max}`);
  else if (low !== undefined || high !== undefined)
    said.push([min !== undefined ? `at least ${min}` : low, max !== undefined ? `at most ${max}` : high].filter(Boolean).join(", "));
  if (scale !== undefined) said.push(plural(scale, "decimal place"));
  if (shortest !== undefined || longest !== undefined) said.push(`${shortest ?? 0} to ${longest ?? "any number of"} characters`);
  if (pattern !== undefined) said.push(pattern);
  return said.join("; ");
}

/** What is wrong with a number before it is sent; the model has the last word. */
export function wrongTyped(input: Input, value: Typed): string | null {
  if (!NUMBERS.includes(input.kind) || typeof value !== "string" || value === "") return null;
  const wrong = wrongNumber(value);
  if (wrong) return wrong;
  if (input.kind === "integer" && !/^[+-]?\d+$/.test(value.trim())) return "not a whole number";
  const number = Number(value);
  if (input.min !== undefined && number < Number(input.min)) return `less than ${input.min}`;
  if (input.max !== undefined && number > Number(input.max)) return `more than ${input.max}`;
  const places = /\.(\d*?)0*$/.exec(value.trim())?.[1]?.length ?? 0;
  if (input.scale !== undefined && places > input.scale) return `more than ${plural(input.scale, "decimal place")}`;
  return null;
}

export function TypedField(props: Props) {
  const { input, value, onChange, label } = props;
  if (isPlain(input)) return <Plain {...props} />;
  if (value === null)
    return (
      <button type="button" class="link" onClick={() => onChange(emptyOf(input))}>
        Set {label}
      </button>
    );
  return (
    <div class="typed-nested">
      <Nested {...props} />
      {(input.optional || input.kind === "raw") && (
        <button type="button" class="link" onClick={() => onChange(null)}>
          Unset {label}
        </button>
      )}
    </div>
  );
}

function Plain({ label, input, value, onChange, invalid, describedBy }: Props) {
  const text = typeof value === "string" ? value : "";
  const wrong = wrongTyped(input, value);
  const shared = {
    "aria-label": label,
    "aria-invalid": invalid || wrong !== null,
    "aria-describedby": describedBy,
  };
  const give = (next: string) => onChange(next === "" ? null : next);
  switch (input.kind) {
    case "boolean":
    case "choice": {
      const choices = input.kind === "boolean" ? ["true", "false"] : (input.choices ?? []);
      const chosen = value === null ? "" : String(value);
      return (
        <select
          {...shared}
          value={chosen}
          onChange={(event) => {
            const next = event.currentTarget.value;
            onChange(next === "" ? null : input.kind === "boolean" ? next === "true" : next);
          }}
        >
          {(value === null || input.optional) && <option value="">{input.optional ? "not set" : "choose"}</option>}
          {chosen !== "" && !choices.includes(chosen) && <option value={chosen}>{chosen} (not allowed)</option>}
          {choices.map((each) => (
            <option key={each}>{each}</option>
          ))}
        </select>
      );
    }
    case "instant":
      return <InstantInput shared={shared} value={text} onText={give} />;
    case "date":
    case "time":
      return <ClockInput shared={shared} type={input.kind} value={input.kind === "time" ? text.slice(0, 12) : text} onText={give} />;
    case "text":
      return (
        <span class="typed-text">
          <textarea
            {...shared}
            rows={Math.min(8, 1 + Math.floor(text.length / 46) + (text.match(/\n/g)?.length ?? 0))}
            spellcheck={false}
            placeholder={value === null ? (input.optional ? "not set" : "") : "empty text"}
            value={text}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
          {input.optional && value !== null && (
            <button type="button" class="icon" aria-label={`Unset ${label}`} title="Unset" onClick={() => onChange(null)}>
              ✕
            </button>
          )}
        </span>
      );
    default:
      return (
        <span class="typed-line">
          <input
            {...shared}
            inputMode={input.kind === "integer" ? "numeric" : NUMBERS.includes(input.kind) ? "decimal" : "text"}
            spellcheck={false}
            autocomplete="off"
            placeholder={input.kind === "duration" ? "1d 2h 30m 5s" : input.kind === "bytes" ? "Base64" : input.optional ? "not set" : ""}
            value={text}
            onInput={(event) => give(event.currentTarget.value)}
          />
          {wrong && <span class="wrong">{wrong}</span>}
        </span>
      );
  }
}

const LAST = { date: "9999-12-31", time: undefined, "datetime-local": "9999-12-31T23:59:59" }; // a year of four digits

interface ClockProps {
  shared: object;
  type: "date" | "time" | "datetime-local";
  step?: string;
  value: string;
  onText: (text: string) => void;
}

/** A picker of the browser, whose value is empty until all its parts are given: left half filled, it says so. */
function ClockInput({ shared, type, step, value, onText }: ClockProps) {
  const [isPartial, setPartial] = useState(false);
  return (
    <>
      <input
        {...shared}
        type={type}
        step={step ?? (type === "time" ? "1" : undefined)}
        max={LAST[type]}
        value={value}
        onInput={(event) => {
          setPartial(false);
          onText(event.currentTarget.value);
        }}
        onBlur={(event) => setPartial(event.currentTarget.validity.badInput)}
      />
      {isPartial && (
        <span class="wrong" role="alert">
          incomplete: give all its parts
        </span>
      )}
    </>
  );
}

function InstantInput({ shared, value, onText }: { shared: object; value: string; onText: (text: string) => void }) {
  const name = useStore(zone);
  const wall = wallTime(value, name);
  return (
    <span class="typed-instant">
      {value !== "" && wall === "" ? (
        <input {...shared} value={value} onInput={(event) => onText(event.currentTarget.value)} />
      ) : (
        <ClockInput
          shared={shared}
          type="datetime-local"
          step={wall.includes(".") ? "0.001" : "1"}
          value={wall}
          onText={(next) => onText(next === "" ? "" : instantOf(next, name, value))}
        />
      )}
      {value === "" && (
        <button type="button" class="link" onClick={() => onText(new Date().toISOString().replace(/\.\d+/, ""))}>
          Now
        </button>
      )}
      <small>{name === "UTC" ? "UTC" : `${name}${value === "" ? "" : `, ${value}`}`}</small>
    </span>
  );
}

/** The zone of all moments in a form. */
export function ZoneChoice() {
  const name = useStore(zone);
  return (
    <label class="zone">
      Times in{" "}
      <select aria-label="Time zone" value={name} onChange={(event) => zone.set(event.currentTarget.value)}>
        {zones().map((each) => (
          <option key={each}>{each}</option>
        ))}
      </select>
    </label>
  );
}

/** Whether a value of the type has a moment in it. */
export function hasInstant(input: Input): boolean {
  const inner = [input.item, ...(input.items ?? []), ...(input.members ?? [])];
  return input.kind === "instant" || inner.some((each) => each !== undefined && hasInstant(each));
}

function Nested({ label, input, value, onChange }: Props) {
  switch (input.kind) {
    case "list":
    case "set":
      return <Elements label={label} input={input} value={value as Typed[]} onChange={onChange} />;
    case "tuple": {
      const list = value as Typed[];
      return (
        <div class="nested">
          {(input.items ?? []).map((each, place) => (
            <div class="nested-row" key={place}>
              <span class="quiet">{place}</span>
              <TypedField label={`${label}[${place}]`} input={each} value={list[place] ?? null} onChange={(next) => onChange(put(list, place, next))} />
            </div>
          ))}
        </div>
      );
    }
    case "map":
      return <Members label={label} input={input} value={value as Record<string, Typed>} onChange={onChange} />;
    case "record": {
      const members = value as Record<string, Typed>;
      return (
        <div class="nested">
          {(input.members ?? []).map((each) => (
            <div class="nested-member" key={each.name}>
              <span class="attribute-name">
                {each.name} {each.required && <small>required</small>} <small>{boundsOf(each)}</small>
              </span>
              <TypedField
                label={`${label}.${each.name}`}
                input={each.required ? each : { ...each, optional: true }}
                value={members[each.name] ?? null}
                onChange={(next) => onChange({ ...members, [each.name]: next })}
              />
            </div>
          ))}
        </div>
      );
    }
    default:
      return <ValueEditor label={label} value={value as AttributeValue} onChange={(next) => onChange(next as Typed)} />;
  }
}

function put(list: Typed[], place: number, value: Typed): Typed[] {
  return list.map((each, at) => (at === place ? value : each));
}

function Elements({ label, input, value, onChange }: { label: string; input: Input; value: Typed[]; onChange: (value: Typed) => void }) {
  const item = input.item!;
  const move = (place: number, by: number) => {
    const next = [...value];
    [next[place], next[place + by]] = [next[place + by]!, next[place]!];
    onChange(next);
  };
  const rows = useRef<HTMLDivElement>(null);
  const [added, setAdded] = useState(0);
  useEffect(() => {
    if (added) rows.current?.querySelector<HTMLElement>(":scope > .nested-row:last-of-type :is(input, select, textarea)")?.focus();
  }, [added]);
  return (
    <div class="nested" ref={rows}>
      {value.map((each, place) => (
        <div class="nested-row" key={place}>
          <span class="quiet">{place}</span>
          <TypedField label={`${label}[${place}]`} input={item} value={each} onChange={(next) => onChange(put(value, place, next ?? (isPlain(item) && !item.optional ? "" : next)))} />
          {input.kind === "list" && place > 0 && (
            <button type="button" class="icon" aria-label={`Move ${label}[${place}] up`} title="Up" onClick={() => move(place, -1)}>
              ↑
            </button>
          )}
          <Remove label={`${label}[${place}]`} onClick={() => onChange(value.filter((_, at) => at !== place))} />
        </div>
      ))}
      <button
        type="button"
        class="link"
        onClick={() => {
          onChange([...value, emptyOf(item)]);
          setAdded(added + 1);
        }}
      >
        Add to {label}
      </button>
    </div>
  );
}

function Members({ label, input, value, onChange }: { label: string; input: Input; value: Record<string, Typed>; onChange: (value: Typed) => void }) {
  const entries = Object.entries(value);
  const item = input.item!;
  const ids = useRef(new Map<string, number>());
  const idOf = (name: string) => ids.current.get(name) ?? (ids.current.set(name, ids.current.size), ids.current.get(name)!);
  const replace = (place: number, name: string, next: Typed) => {
    ids.current.set(name, idOf(entries[place]![0]));
    onChange(Object.fromEntries(entries.map((each, at) => (at === place ? [name, next] : each))));
  };
  const fresh = () => {
    let number = entries.length + 1;
    while (`name${number}` in value) number += 1;
    return `name${number}`;
  };
  const rows = useRef<HTMLDivElement>(null);
  const [added, setAdded] = useState(0);
  useEffect(() => {
    if (added) rows.current?.querySelector<HTMLInputElement>(":scope > .nested-row:last-of-type .member-name")?.select();
  }, [added]);
  return (
    <div class="nested" ref={rows}>
      {entries.map(([name, each], place) => (
        <div class="nested-row" key={idOf(name)}>
          <NameInput label={`Name in ${label}`} name={name} taken={entries.map(([one]) => one)} onName={(next) => replace(place, next, each)} />
          <TypedField label={`${label}.${name}`} input={item} value={each} onChange={(next) => replace(place, name, next ?? (isPlain(item) && !item.optional ? "" : next))} />
          <Remove label={`${label}.${name}`} onClick={() => onChange(Object.fromEntries(entries.filter((_, at) => at !== place)))} />
        </div>
      ))}
      <button
        type="button"
        class="link"
        onClick={() => {
          onChange({ ...value, [fresh()]: emptyOf(item) });
          setAdded(added + 1);
        }}
      >
        Add to {label}
      </button>
    </div>
  );
}

/** A value in one line, to compare it with another. */
export function typedText(value: Typed | undefined): string {
  if (value === null || value === undefined) return "not set";
  if (typeof value === "string") return value === "" ? "empty text" : value;
  return JSON.stringify(value);
}
