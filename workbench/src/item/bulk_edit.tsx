/** Edit fields of several entities of one kind: shows what each item becomes before anything is written. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { CallError, Entity, Item, TableInfo } from "../api";
import { KeyText } from "../collection/key_text";
import type { Entry } from "../collection/window";
import { primaryKey } from "../query/view";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/failure";
import { own, plural, same, shortText } from "../values";
import { entitiesOf, givenFields, preview, type Preview, type Values } from "./edit_calls";
import { FieldRow } from "./entity_form";
import { NameFaults, useNameFaults } from "./name_input";
import { emptyOf, hasInstant, isPlain, wrongTyped, ZoneChoice } from "./typed_field";

const SHOWN = 200; // items whose changes are listed
const AT_ONCE = 100; // items of one preview

interface Props {
  table: TableInfo;
  entries: Entry[];
  onApply: (entity: Entity, values: Values, entries: Entry[]) => void;
  onClose: () => void;
}

interface Previewed {
  entry: Entry;
  preview: Preview;
}

export function BulkEdit({ table, entries, onApply, onClose }: Props) {
  const kinds = entitiesOf(table.name)
    .map((entity) => ({ entity, own: entries.filter((each) => each.entity === entity.name) }))
    .filter((each) => each.own.length);
  const [kind, setKind] = useState(kinds[0]?.entity.name ?? "");
  const chosen = kinds.find((each) => each.entity.name === kind);
  const [values, setValues] = useState<Values>({});
  const [previews, setPreviews] = useState<Previewed[] | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [working, setWorking] = useState(false);
  const names = useNameFaults();
  const rows = useRef<HTMLDivElement>(null);
  const [added, setAdded] = useState<string | null>(null); // the field that was chosen last: its value is given next
  useEffect(() => {
    if (added !== null) rows.current?.querySelector<HTMLElement>(`[data-field="${CSS.escape(added)}"] :is(input, select, textarea)`)?.focus();
  }, [added]);
  if (!chosen) return null;
  const fields = givenFields(chosen.entity, false).filter((each) => !each.identifies);
  const set = fields.filter((each) => Object.hasOwn(values, each.name));
  const blocks = !set.length || names.fault !== null || set.some((each) => wrongTyped(each.input, values[each.name] ?? null));
  const change = (next: Values) => {
    setValues(next);
    setPreviews(null);
  };
  const look = async () => {
    setWorking(true);
    setError(null);
    try {
      const found: Previewed[] = [];
      for (let at = 0; at < chosen.own.length; at += AT_ONCE) {
        const part = chosen.own.slice(at, at + AT_ONCE);
        const answer = await preview(table, chosen.entity.name, values, part.map((each) => each.item));
        found.push(...part.map((entry, place) => ({ entry, preview: answer.previews[place]! })));
      }
      setPreviews(found);
    } catch (failure) {
      setError(failure as CallError);
    } finally {
      setWorking(false);
    }
  };
  const ready = previews?.filter((each) => each.preview.after && changesOf(table, each).length > 0) ?? [];
  const refused = previews?.filter((each) => each.preview.refused) ?? [];
  const faults = refused[0]?.preview.fields ?? {};
  const others = entries.length - chosen.own.length;
  return (
    <Dialog title="Edit the selected items" className="bulk" onClose={onClose}>
      <h2>Edit {plural(chosen.own.length, "selected item")}</h2>
      {kinds.length > 1 && (
        <label class="line">
          Of kind
          <select value={kind} onChange={(event) => { setKind(event.currentTarget.value); change({}); }}>
            {kinds.map((each) => (
              <option key={each.entity.name} value={each.entity.name}>
                {each.entity.name} ({each.own.length})
              </option>
            ))}
          </select>
        </label>
      )}
      {others > 0 && <p class="quiet">{plural(others, "selected item")} of another kind {others === 1 ? "stays" : "stay"} as {others === 1 ? "it is" : "they are"}.</p>}
      <div class="bulk-fields" ref={rows}>
        {set.some((each) => hasInstant(each.input)) && <ZoneChoice />}
        <NameFaults.Provider value={names.tell}>
          {set.map((field) => (
            <div class="bulk-field" key={field.name}>
              <FieldRow
                field={field}
                isChanged={false}
                value={values[field.name] ?? null}
                before={null}
                fault={own(faults, field.name) ?? null}
                onChange={(next) => change({ ...values, [field.name]: next })}
              />
              <button type="button" class="icon" aria-label={`Leave ${field.name} as it is`} title="Leave it as it is" onClick={() => { setAdded(null); change(Object.fromEntries(Object.entries(values).filter(([name]) => name !== field.name))); }}>
                ✕
              </button>
            </div>
          ))}
        </NameFaults.Provider>
        <select
          aria-label="Set a field"
          value=""
          autoFocus
          onChange={(event) => {
            const field = fields.find((each) => each.name === event.currentTarget.value);
            if (field) {
              change({ ...values, [field.name]: field.input.optional || isPlain(field.input) ? null : emptyOf(field.input) });
              setAdded(field.name);
            }
            event.currentTarget.value = "";
          }}
        >
          <option value="">{set.length ? "Set another field…" : "Set a field…"}</option>
          {fields.filter((each) => !Object.hasOwn(values, each.name)).map((each) => (
            <option key={each.name}>{each.name}</option>
          ))}
        </select>
      </div>
      {error && <Failure error={error} />}
      {previews && (
        <>
          <p>
            <strong>{plural(ready.length, "item")}</strong> {ready.length === 1 ? "changes" : "change"}
            {refused.length > 0 && <span class="wrong">; {plural(refused.length, "item")} would be refused</span>}
            {previews.length > ready.length + refused.length && `; ${plural(previews.length - ready.length - refused.length, "item")} already as wanted`}
          </p>
          <ul class="bulk-previews" tabIndex={0} aria-label="What changes">
            {[...refused, ...ready].slice(0, SHOWN).map((each) => (
              <li key={each.entry.id}>
                <Key table={table} entry={each.entry} />
                {each.preview.refused ? (
                  <span class="wrong">{each.preview.refused}</span>
                ) : (
                  <span class="change-what">
                    {changesOf(table, each).map(([name, before, after]) => (
                      <span key={name}>
                        <small>{name}</small> <del>{shortText(before, 40)}</del> {after && <ins>{shortText(after, 40)}</ins>}
                      </span>
                    ))}
                  </span>
                )}
              </li>
            ))}
          </ul>
          {ready.length + refused.length > SHOWN && <p class="quiet">The first {SHOWN} are shown.</p>}
        </>
      )}
      <div class="actions">
        <button onClick={onClose}>Cancel</button>
        {previews && ready.length > 0 ? (
          <button class="primary" onClick={() => onApply(chosen.entity, values, ready.map((each) => each.entry))}>
            Change {plural(ready.length, "item")}
          </button>
        ) : (
          <button class="primary" disabled={blocks || working} onClick={() => void look()}>
            Preview
          </button>
        )}
      </div>
    </Dialog>
  );
}

/** The attributes that an edit changes, except those of every write. */
function changesOf(table: TableInfo, { entry, preview: { after } }: Previewed): [string, Item[string] | undefined, Item[string] | undefined][] {
  if (!after) return [];
  const key = primaryKey(table, entry.item);
  const names = [...new Set([...Object.keys(entry.item), ...Object.keys(after)])];
  const maintained = new Set(
    entitiesOf(table.name).find((each) => each.name === entry.entity)?.fields.filter((each) => each.set_by === "raised by each write" || each.set_by === "set by each write").map((each) => each.attribute),
  );
  return names
    .filter((name) => !Object.hasOwn(key, name) && !maintained.has(name) && !same(own(entry.item, name), own(after, name)))
    .map((name) => [name, own(entry.item, name), own(after, name)]);
}

function Key({ table, entry }: { table: TableInfo; entry: Entry }) {
  const names = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);
  return (
    <span class="bulk-key">
      {names.map((name) => (
        <KeyText key={name} table={table.name} value={entry.item[name]} segments={own(entry.keys, name)} />
      ))}
    </span>
  );
}
