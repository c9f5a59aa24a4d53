/** The input of a raw value in an item without a model: numbers stay texts, a line for each element of a set, documents. */

import { useRef } from "preact/hooks";

import type { AttributeType, AttributeValue, Item } from "../api";
import { TYPES, typeOf, wrongNumber } from "../values";
import { wrongText } from "../query/typed_input";
import { NameInput } from "./name_input";

interface Props {
  label: string;
  value: AttributeValue;
  onChange: (value: AttributeValue) => void;
  /** Types that the value may have; all if not given. */
  types?: AttributeType[];
}

const EMPTY: Record<AttributeType, unknown> = {
  S: "", N: "0", B: "", BOOL: false, NULL: true, SS: [""], NS: ["0"], BS: [""], L: [], M: {},
};

export function ValueEditor({ label, value, onChange, types }: Props) {
  const type = typeOf(value);
  const fault = faultOf(value);
  const before = useRef<Partial<Record<AttributeType, AttributeValue>>>({}); // whoever returns to a type finds it again
  return (
    <div class="value-editor">
      <select
        aria-label={`Type of ${label}`}
        value={type}
        disabled={types?.length === 1}
        onChange={(event) => {
          const next = event.currentTarget.value as AttributeType;
          before.current[type] = value;
          onChange(before.current[next] ?? converted(value, next));
        }}
      >
        {(types ?? (Object.keys(TYPES) as AttributeType[])).map((each) => (
          <option key={each} value={each}>
            {TYPES[each]}
          </option>
        ))}
      </select>
      <Body label={label} value={value} onChange={onChange} />
      {fault && <span class="wrong">{fault}</span>}
      {type === "S" && hasSeveralEnds(value["S"] as string) && (
        <span class="quiet">Mixed line endings: edit the item as JSON to keep them.</span>
      )}
    </div>
  );
}

function Body({ label, value, onChange }: Props) {
  const type = typeOf(value);
  switch (type) {
    case "S": {
      const text = value["S"] as string;
      return (
        <textarea
          aria-label={label}
          rows={Math.min(8, 1 + Math.floor(text.length / 42) + (text.match(/\n/g)?.length ?? 0))}
          spellcheck={false}
          value={text}
          onInput={(event) => onChange({ S: withEndsOf(text, event.currentTarget.value) })}
        />
      );
    }
    case "N":
    case "B":
      return (
        <input
          aria-label={label}
          aria-invalid={faultOf(value) !== null}
          inputMode={type === "N" ? "decimal" : "text"}
          spellcheck={false}
          value={value[type] as string}
          onInput={(event) => onChange({ [type]: event.currentTarget.value })}
        />
      );
    case "BOOL":
      return (
        <select aria-label={label} value={String(value["BOOL"])} onChange={(event) => onChange({ BOOL: event.currentTarget.value === "true" })}>
          <option>true</option>
          <option>false</option>
        </select>
      );
    case "NULL":
      return <span class="quiet">null</span>;
    case "SS":
    case "NS":
    case "BS":
      return <SetElements label={label} list={value[type] as string[]} onChange={(list) => onChange({ [type]: list })} wrong={faultOf(value) !== null} />;
    case "L": {
      const list = value["L"] as AttributeValue[];
      return (
        <div class="nested">
          {list.map((each, place) => (
            <div class="nested-row" key={place}>
              <span class="quiet">{place}</span>
              <ValueEditor
                label={`${label}[${place}]`}
                value={each}
                onChange={(next) => onChange({ L: list.map((one, at) => (at === place ? next : one)) })}
              />
              <Remove label={`${label}[${place}]`} onClick={() => onChange({ L: list.filter((_, at) => at !== place) })} />
            </div>
          ))}
          <button type="button" class="link" onClick={() => onChange({ L: [...list, { S: "" }] })}>
            Add an element
          </button>
        </div>
      );
    }
    case "M":
      return <Members label={label} item={value["M"] as Item} onChange={(next) => onChange({ M: next })} />;
  }
}

interface SetProps {
  label: string;
  list: string[];
  onChange: (list: string[]) => void;
  wrong: boolean;
}

/** One element a line; an element that has several lines makes each a field of its own. */
function SetElements({ label, list, onChange, wrong }: SetProps) {
  const apart = useRef(false);
  apart.current ||= list.some((each) => /[\r\n]/.test(each));
  if (!apart.current)
    return (
      <textarea
        aria-label={`${label}, one element a line`}
        aria-invalid={wrong}
        rows={Math.min(8, Math.max(2, list.length))}
        spellcheck={false}
        value={list.join("\n")}
        onInput={(event) => onChange(event.currentTarget.value.split("\n"))}
      />
    );
  return (
    <div class="nested">
      {list.map((each, place) => (
        <div class="nested-row" key={place}>
          <textarea
            aria-label={`${label}, element ${place + 1}`}
            aria-invalid={wrong}
            rows={Math.min(8, each.split("\n").length)}
            spellcheck={false}
            value={each}
            onInput={(event) => onChange(list.map((one, at) => (at === place ? withEndsOf(each, event.currentTarget.value) : one)))}
          />
          <Remove label={`${label}, element ${place + 1}`} onClick={() => onChange(list.filter((_, at) => at !== place))} />
        </div>
      ))}
      <button type="button" class="link" onClick={() => onChange([...list, ""])}>
        Add an element
      </button>
    </div>
  );
}

function hasSeveralEnds(text: string): boolean {
  return text.includes("\r") && /[\r\n]/.test(text.replace(/\r\n/g, ""));
}

/** What was typed, with the line ends that the text had: a field has only `\n`. */
function withEndsOf(text: string, typed: string): string {
  return text.includes("\r\n") ? typed.replace(/\n/g, "\r\n") : typed;
}

function Members({ label, item, onChange }: { label: string; item: Item; onChange: (item: Item) => void }) {
  const entries = Object.entries(item);
  const put = (place: number, name: string, value: AttributeValue) =>
    onChange(Object.fromEntries(entries.map((each, at) => (at === place ? [name, value] : each))));
  return (
    <div class="nested">
      {entries.map(([name, each], place) => (
        <div class="nested-row" key={place}>
          <NameInput label={`Name in ${label}`} name={name} taken={Object.keys(item)} onName={(next) => put(place, next, each)} />
          <ValueEditor key={name} label={`${label}.${name}`} value={each} onChange={(next) => put(place, name, next)} />
          <Remove
            label={`${label}.${name}`}
            onClick={() => onChange(Object.fromEntries(entries.filter((_, at) => at !== place)))}
          />
        </div>
      ))}
      <button type="button" class="link" onClick={() => onChange({ ...item, [freshName(item)]: { S: "" } })}>
        Add a member
      </button>
    </div>
  );
}

export function Remove({ label, onClick }: { label: string; onClick: () => void }) {
  return (
    <button type="button" class="icon" aria-label={`Remove ${label}`} onClick={onClick}>
      ✕
    </button>
  );
}

export function freshName(item: Item): string {
  let number = 1;
  while (`name${number}` in item) number += 1;
  return `name${number}`;
}

/** What is wrong with a value, however deep; null if it can be sent. */
export function faultOf(value: AttributeValue): string | null {
  const type = typeOf(value);
  const inner = value[type];
  switch (type) {
    case "N":
      return wrongNumber(inner as string);
    case "B":
      return wrongText("B", inner as string);
    case "SS":
    case "NS":
    case "BS": {
      const list = inner as string[];
      if (new Set(list).size < list.length) return "an element occurs twice";
      if (!list.length || list.includes("")) return "an element is empty";
      return type === "SS" ? null : (list.map((each) => wrongText(type[0]!, each)).find(Boolean) ?? null);
    }
    case "L":
      return (inner as AttributeValue[]).map(faultOf).find(Boolean) ?? null;
    case "M":
      return Object.values(inner as Item).map(faultOf).find(Boolean) ?? null;
    default:
      return null;
  }
}

/** The value in another type, with as much of it as the type can have. */
function converted(value: AttributeValue, type: AttributeType): AttributeValue {
  const from = typeOf(value);
  const inner = value[from];
  const isText = typeof inner === "string";
  if (type === "S" && isText) return { S: inner };
  if (type === "N" && isText) return { N: wrongNumber(inner) ? "0" : inner };
  if (["SS", "NS", "BS"].includes(type) && isText) return { [type]: [inner] };
  if (type === "L") return { L: [value] };
  return { [type]: EMPTY[type] };
}
