/** An item in a form: each attribute with its type. Keys of an item that exists stay as they are. */

import { useState } from "preact/hooks";

import type { AttributeValue, Item, TableInfo } from "../api";
import { faultOf, freshName, Remove, ValueEditor } from "./value_editor";

interface Props {
  table: TableInfo;
  item: Item;
  isNew: boolean;
  saving: boolean;
  onSave: (item: Item) => void;
  /** Shows what it costs to save the item. */
  onCost: (item: Item) => void;
  onCancel: () => void;
}

export function ItemForm({ table, item, isNew, saving, onSave, onCost, onCancel }: Props) {
  const [rows, setRows] = useState<[string, AttributeValue][]>(() => Object.entries(item));
  const [text, setText] = useState<string | null>(null); // the item as JSON, while it is edited so
  const keys = [...table.keys.partition, ...table.keys.sort];
  const isKey = (name: string) => keys.some((each) => each.name === name);
  const put = (place: number, name: string, value: AttributeValue) =>
    setRows(rows.map((each, at) => (at === place ? [name, value] : each)));
  const wrong = text === null ? wrongRows(rows) : parsed(text).wrong;
  const give = (take: (item: Item) => void) => {
    if (text !== null) {
      const { item: found } = parsed(text);
      if (found) take(found);
    } else if (!wrong) take(Object.fromEntries(rows));
  };
  const save = () => give(onSave);
  return (
    <form
      class="item-form"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) {
          event.preventDefault();
          save();
        }
      }}
    >
      <div class="inspected">
        {text !== null ? (
          <textarea class="json" aria-label="The item as DynamoDB JSON" spellcheck={false} rows={24} value={text} onInput={(event) => setText(event.currentTarget.value)} />
        ) : (
          rows.map(([name, value], place) => {
            const key = keys.find((each) => each.name === name);
            const fixed = key && !isNew;
            return (
              <div class={`edited${isKey(name) ? " of-key" : ""}`} key={place}>
                <div class="line">
                  {key ? (
                    <span class="attribute-name">
                      {name} <small>key{fixed ? ", fixed" : ""}</small>
                    </span>
                  ) : (
                    <>
                      <input class="member-name" aria-label="Attribute name" value={name} onChange={(event) => put(place, event.currentTarget.value, value)} />
                      <Remove label={name} onClick={() => setRows(rows.filter((_, at) => at !== place))} />
                    </>
                  )}
                </div>
                {fixed ? (
                  <code>{String(Object.values(value)[0])}</code>
                ) : (
                  <ValueEditor
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
      </div>
      <div class="form-foot">
        {wrong && <span class="wrong">{wrong}</span>}
        <button
          type="button"
          onClick={() => {
            if (text === null) setText(JSON.stringify(Object.fromEntries(rows), null, 2));
            else {
              const { item: found } = parsed(text);
              if (!found) return;
              setRows(Object.entries(found));
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
        <button class="primary" disabled={saving || wrong !== null} title="⌘↵">
          {isNew ? "Create" : "Save"}
        </button>
      </div>
    </form>
  );
}

function wrongRows(rows: [string, AttributeValue][]): string | null {
  const names = rows.map(([name]) => name);
  if (names.includes("")) return "an attribute has no name";
  if (new Set(names).size < names.length) return "two attributes have the same name";
  for (const [name, value] of rows) {
    const fault = faultOf(value);
    if (fault) return `${name}: ${fault}`;
  }
  return null;
}

function parsed(text: string): { item: Item | null; wrong: string | null } {
  try {
    const found = JSON.parse(text) as Item;
    const isItem = typeof found === "object" && found !== null && Object.values(found).every((each) => typeof each === "object" && each !== null && Object.keys(each).length === 1);
    if (!isItem) return { item: null, wrong: 'write each attribute with its type, as {"S": "text"}' };
    const wrong = wrongRows(Object.entries(found));
    return { item: wrong ? null : found, wrong };
  } catch (error) {
    return { item: null, wrong: (error as Error).message };
  }
}
