/** The form of an item without a model: attributes with their types, or DynamoDB JSON. Keys stay as they are. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { AttributeValue, CallError, Item, TableInfo } from "../api";
import { takeOver } from "../focus";
import { keyName } from "../shortcuts";
import { isObject, wrongForm } from "../values";
import type { Aim } from "./inspector";
import { guardPage } from "./left_forms";
import { NameFaults, NameInput, useNameFaults } from "./name_input";
import { faultOf, freshName, Remove, ValueEditor } from "./value_editor";

interface Props {
  table: TableInfo;
  item: Item;
  isNew: boolean;
  /** What was typed before the form was left. */
  typed: Item | null;
  /** Takes what is typed and not saved, when the form goes. */
  onLeft: (item: Item) => void;
  aimed: Aim | null;
  saving: boolean;
  /** Somebody else has changed what this item changes: it is saved again only after another edit. */
  refusal: CallError | null;
  /** `began` is the item that the form was filled with. */
  onSave: (item: Item, began: Item) => void;
  /** Shows what it costs to save the item. */
  onCost: (item: Item, began: Item) => void;
  onCancel: () => void;
}

export function ItemForm({ table, item, isNew, typed, onLeft, aimed, saving, refusal, onSave, onCost, onCancel }: Props) {
  const began = useRef(item);
  const [rows, setRows] = useState<[string, AttributeValue][]>(() => Object.entries(typed ?? item));
  const names = useNameFaults();
  const [text, setText] = useState<string | null>(null); // the item as JSON, while it is edited so
  const form = useRef<HTMLFormElement>(null);
  const now = text === null ? Object.fromEntries(rows) : (parsed(text).item ?? Object.fromEntries(rows));
  const unsaved = useRef<(() => void) | null>(null);
  unsaved.current = saving || JSON.stringify(now) === JSON.stringify(began.current) ? null : () => onLeft(now);
  useEffect(() => {
    const release = guardPage(() => unsaved.current !== null);
    return () => {
      release();
      unsaved.current?.();
    };
  }, []);
  useEffect(() => {
    const editor = aimed && form.current?.querySelector(`[data-field="${CSS.escape(aimed.attribute)}"] .value-editor`);
    (editor?.querySelector<HTMLElement>("input, textarea, select:not(:first-child)") ?? editor?.querySelector("select"))?.focus();
  }, [aimed]);
  const keys = [...table.keys.partition, ...table.keys.sort];
  const isKey = (name: string) => keys.some((each) => each.name === name);
  const put = (place: number, name: string, value: AttributeValue) =>
    setRows(rows.map((each, at) => (at === place ? [name, value] : each)));
  const wrong = text === null ? (names.fault ?? wrongRows(rows)) : parsed(text).wrong;
  const give = (take: (item: Item, began: Item) => void) => {
    if (wrong || saving) return;
    take(text === null ? Object.fromEntries(rows) : parsed(text).item!, began.current);
  };
  const written = text ?? JSON.stringify(rows);
  const [refused, setRefused] = useState<string | null>(null);
  useEffect(() => setRefused(refusal && written), [refusal]);
  const isRefused = refusal !== null && refused === written;
  // A name is taken over when its field is left, so the item is made after what that changes is drawn.
  const save = useRef(() => undefined as void);
  save.current = () => {
    if (!isRefused) give(onSave);
  };
  const submit = () => setTimeout(() => save.current());
  return (
    <form
      ref={form}
      class="item-form"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
          event.preventDefault();
          takeOver(event.target);
          submit();
        }
      }}
    >
      <div class="inspected">
        <NameFaults.Provider value={names.tell}>
          {text !== null ? (
            <textarea class="json" aria-label="The item as DynamoDB JSON" spellcheck={false} rows={24} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          ) : (
            rows.map(([name, value], place) => {
              const key = keys.find((each) => each.name === name);
              const fixed = key && !isNew;
              return (
                <div class={`edited${isKey(name) ? " of-key" : ""}`} key={place} data-field={name}>
                  <div class="line">
                    {key ? (
                      <span class="attribute-name">
                        {name} <small>key{fixed ? ", fixed" : ""}</small>
                      </span>
                    ) : (
                      <>
                        <NameInput
                          label="Attribute name"
                          name={name}
                          taken={rows.map(([each]) => each)}
                          onName={(next) => put(place, next, value)}
                        />
                        <Remove label={name} onClick={() => setRows(rows.filter((_, at) => at !== place))} />
                      </>
                    )}
                  </div>
                  {fixed ? (
                    <code>{String(Object.values(value)[0])}</code>
                  ) : (
                    <ValueEditor
                      key={name}
                      label={name}
                      value={value}
                      onChange={(next) => put(place, name, next)}
                      {...(key ? { types: [key.type] } : {})}
                    />
                  )}
                </div>
              );
            })
          )}
          {text === null && (
            <button type="button" class="link" onClick={() => setRows([...rows, [freshName(Object.fromEntries(rows)), { S: "" }]])}>
              Add an attribute
            </button>
          )}
        </NameFaults.Provider>
      </div>
      <div class="form-foot">
        {wrong && <span class="wrong">{wrong}</span>}
        <button
          type="button"
          disabled={text === null ? names.fault !== null : parsed(text).item === null}
          onClick={() => {
            if (text === null) setText(JSON.stringify(Object.fromEntries(rows), null, 2));
            else {
              setRows(Object.entries(parsed(text).item!));
              setText(null);
            }
          }}
        >
          {text === null ? "JSON" : "Form"}
        </button>
        <button type="button" disabled={wrong !== null} title="What the table and each index are charged for it" onClick={() => give(onCost)}>
          Cost
        </button>
        <span class="space" />
        <button type="button" onClick={onCancel}>Cancel</button>
        <button class="primary" disabled={saving || wrong !== null || isRefused} title={isRefused ? "Somebody else changed it: cancel, and edit what it is now" : keyName("Mod+Enter")}>
          {isNew ? "Create" : "Save"}
        </button>
      </div>
    </form>
  );
}

function wrongRows(rows: [string, AttributeValue][]): string | null {
  if (rows.some(([name]) => name === "")) return "an attribute has no name";
  for (const [name, value] of rows) {
    const fault = faultOf(value);
    if (fault) return `${name}: ${fault}`;
  }
  return null;
}

function parsed(text: string): { item: Item | null; wrong: string | null } {
  try {
    const found = JSON.parse(text) as Item;
    if (!isObject(found)) return { item: null, wrong: 'write each attribute with its type, as {"name": {"S": "text"}}' };
    for (const [name, value] of Object.entries(found)) {
      const fault = wrongForm(value);
      if (fault) return { item: null, wrong: `${name}: ${fault}` };
    }
    const wrong = wrongRows(Object.entries(found));
    return { item: wrong ? null : found, wrong };
  } catch (error) {
    return { item: null, wrong: (error as Error).message };
  }
}
