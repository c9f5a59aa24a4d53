/** An entity in a form: inputs, faults, keys. Changed is what differs from the item; Mod+Enter saves, Esc cancels. */

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import type { CallError, Entity, Field, Item, TableInfo, Typed } from "../api";
import { hue } from "../collection/hues";
import { takeOver } from "../focus";
import { keyName, useShortcuts } from "../shortcuts";
import { Failure } from "../shell/failure";
import { own, plural } from "../values";
import { Below } from "./below";
import { givenFields, readDraft, type Draft, type DraftKey, type Form, type Values } from "./edit_calls";
import type { Aim } from "./inspector";
import { ItemLink } from "./item_link";
import { NameFaults, useNameFaults } from "./name_input";
import { boundsOf, hasEmpty, hasInstant, isPlain, kindOf, TypedField, typedText, wrongTyped, ZoneChoice } from "./typed_field";
import { faultOf } from "./value_editor";

const PAUSE = 250; // milliseconds without typing after which the draft is asked for

interface Props {
  table: TableInfo;
  entity: Entity;
  /** The item that is edited, with its form; null for a new one. */
  item: Item | null;
  form: Form | null;
  /** What a new one begins with, of an item that is duplicated. */
  given: Values | null;
  /** What was typed before the form was left. */
  typed: Values | null;
  aimed: Aim | null;
  saving: boolean;
  /** Whether somebody else has changed the item: what becomes of both changes is decided above the form. */
  isUndecided: boolean;
  /** What was refused, by field. */
  refused: Record<string, string>;
  /** The item that has the refused values. */
  takenBy: Item | null;
  onSave: (values: Values) => void;
  /** What is changed so far, and whether any of it was typed. */
  onValues: (values: Values, isTyped: boolean) => void;
  onCost: (values: Values) => void;
  onRaw: () => void;
  onCancel: () => void;
}

/** Enter in an input of one line saves, too. Esc cancels only while nothing is changed; otherwise it leaves the input. */
export function EntityForm({ table, entity, item, form, given, typed, aimed, saving, isUndecided, refused, takenBy, onSave, onValues, onCost, onRaw, onCancel }: Props) {
  const isNew = item === null;
  const fields = useMemo(() => givenFields(entity, isNew), [entity, isNew]);
  const before = useMemo<Values>(
    () => Object.fromEntries(fields.map((each) => [each.name, isNew ? each.default : (form?.values[each.name] ?? null)])),
    [fields, form],
  );
  const [begun] = useState<Values>(() => ({ ...before, ...picked(given, fields) }));
  const [values, setValues] = useState<Values>(() => ({ ...begun, ...picked(typed, fields) }));
  const [answer, setAnswer] = useState<{ draft: Draft; of: string } | null>(null);
  const [failure, setFailure] = useState<CallError | null>(null);
  const [again, setAgain] = useState(0); // the draft is asked for again
  const [tried, setTried] = useState(false);
  const [stale, setStale] = useState<Record<string, Typed>>({}); // the values of which `refused` speaks
  const names = useNameFaults();

  const changed = Object.fromEntries(
    fields.filter((each) => JSON.stringify(values[each.name]) !== JSON.stringify(before[each.name])).map((each) => [each.name, values[each.name]!]),
  ) as Values;
  const sent = JSON.stringify(changed);
  useEffect(() => setStale(values), [refused]);
  const isTyped = isNew ? JSON.stringify(values) !== JSON.stringify(begun) : sent !== "{}";
  useLayoutEffect(() => onValues(changed, isTyped), [sent, isTyped]); // before the form may go
  useEffect(() => {
    const cancel = new AbortController();
    const timer = setTimeout(() => {
      readDraft(table, entity.name, changed, item, cancel.signal).then(
        (found) => {
          setAnswer({ draft: found, of: sent });
          setFailure(null);
        },
        (error: CallError) => cancel.signal.aborted || setFailure(error),
      );
    }, answer ? PAUSE : 0);
    return () => {
      clearTimeout(timer);
      cancel.abort();
    };
  }, [sent, table.name, entity.name, item, again]);

  const draft = answer?.draft ?? form;
  /** What is stored already keeps nobody from changing another field. */
  const isWrong = (field: Field) => (!item || field.name in changed) && wrongTyped(field.input, values[field.name] ?? null) !== null;
  const faultAt = (field: Field): string | null => {
    const name = field.name;
    const now = values[name] ?? null;
    if (isWrong(field)) return null; // said in the input
    if (field.input.kind === "raw" && now !== null) {
      const wrong = faultOf(now as Item[string]);
      if (wrong) return wrong;
    }
    if (isUnfilled(field)) return tried ? "something in it is empty: fill it in, or remove it" : null;
    if (!(name in changed) && form && own(form.faults, name)) return form.faults[name]!; // that of what is stored
    if (own(refused, name) && JSON.stringify(stale[name]) === JSON.stringify(now)) return refused[name]!;
    if (answer?.of === sent && own(answer.draft.faults, name)) return answer.draft.faults[name]!;
    if (tried && draft?.missing.includes(name) && (now === null || now === "")) return "is missing";
    return null;
  };
  const isUnfilled = (field: Field) => hasEmpty(field.input, values[field.name] ?? null);
  const taken = takenBy && fields.filter((each) => own(refused, each.name) && faultAt(each) === refused[each.name]).at(-1);
  const wrong = fields.filter((each) => faultAt(each) !== null || isWrong(each));
  const blocks = fields.some(isWrong) || names.fault !== null;
  const count = Object.keys(changed).length;
  const isWhole = answer?.of === sent && !answer.draft.missing.length;
  const rows = useRef<HTMLDivElement>(null);
  /** Goes to a field with a fault; the text of the fault is shown, too, also if it was beyond the edge. */
  const goTo = (field: Field | undefined) => {
    const row = field && rows.current?.querySelector(`[data-field="${CSS.escape(field.name)}"]`);
    row?.querySelector<HTMLElement>("input, select, textarea")?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  };
  useEffect(() => goTo(fields.find((each) => Object.hasOwn(refused, each.name))), [refused]);
  useEffect(() => {
    const isOpen = (each: Field) => (!isNew ? !each.identifies : !given || (each.required && (values[each.name] ?? "") === ""));
    const ofKey = given ? fields.filter((each) => each.identifies).at(-1) : undefined; // a duplicate needs another key
    const isFaulty = (each: Field) => form !== null && own(form.faults, each.name) !== undefined;
    const first = fields.find((each) => each.attribute === aimed?.attribute) ?? fields.find(isFaulty) ?? fields.find(isOpen) ?? ofKey ?? fields[0];
    if (first) rows.current?.querySelector<HTMLElement>(`[data-field="${CSS.escape(first.name)}"] :is(input, select, textarea)`)?.focus();
  }, [aimed]);
  // What is wrong is said below the field, which the foot of the form may cover.
  useEffect(() => {
    const row = document.activeElement?.closest("[data-field]");
    if (wrong.some((each) => each.name === row?.getAttribute("data-field"))) row!.scrollIntoView({ block: "nearest" });
  }, [wrong.map((each) => each.name).join()]);
  const submit = useRef(() => undefined as void);
  submit.current = () => {
    setTried(true);
    if (blocks) return goTo(wrong[0]);
    const unfilled = fields.find(isUnfilled);
    if (unfilled) return goTo(unfilled);
    if (saving || isUndecided) return;
    if (!isNew && !count) return onCancel();
    onSave(changed);
  };
  const later = () => setTimeout(() => submit.current()); // a name is taken over when its field is left
  useShortcuts([{ keys: ["Mod+Enter"], title: isNew ? "Create the item" : "Save the item", run: later }]);
  const maintained = entity.fields.filter((each) => each.set_by !== null || (!isNew && each.fixed !== null));

  return (
    <form
      class="item-form entity-form"
      aria-label={isNew ? `New ${entity.name}` : `Edit ${entity.name}`}
      data-typed={isTyped || undefined}
      onFocusIn={(event) => delete event.currentTarget.dataset["left"]}
      onSubmit={(event) => {
        event.preventDefault();
        later();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          if (!count) onCancel(); // what was typed is not lost by a key
          else if (event.target instanceof HTMLElement) {
            event.target.blur();
            event.currentTarget.dataset["left"] = "";
          }
          return;
        }
        if (event.key !== "Enter" || !(event.metaKey || event.ctrlKey)) return;
        event.preventDefault();
        takeOver(event.target);
        later();
      }}
    >
      <div class="inspected" ref={rows}>
        <NameFaults.Provider value={names.tell}>
          <Keys table={table.name} keys={draft?.keys ?? []} />
          {item && form && fields.some((each) => each.identifies && each.name in changed) && <Below table={table} entity={entity} form={form} item={item} isMoved />}
          {fields.some((each) => hasInstant(each.input)) && <ZoneChoice />}
          {fields.map((field) => (
            <FieldRow
              key={field.name}
              field={field}
              isChanged={!isNew && field.name in changed}
              value={values[field.name] ?? null}
              before={before[field.name] ?? null}
              fault={faultAt(field)}
              onChange={(next) => setValues((all) => ({ ...all, [field.name]: next }))}
            >
              {field === taken && <p><ItemLink table={table} of={takenBy!}>Show the {entity.name} that has it</ItemLink></p>}
            </FieldRow>
          ))}
        </NameFaults.Provider>
        {maintained.length > 0 && (
          <section class="maintained" aria-label="Set by the library">
            <h2>Set by the library</h2>
            <dl>
              {maintained.map((each) => (
                <div key={each.name}>
                  <dt>
                    <code>{each.name}</code> <small>{each.set_by ?? "fixed once it is created"}</small>
                  </dt>
                  <dd>{shownOf(each, draft, form)}</dd>
                </div>
              ))}
            </dl>
          </section>
        )}
        {failure && <Failure error={failure} onRetry={() => setAgain((number) => number + 1)} />}
        <p class="raw-switch">
          <button type="button" class="link" onClick={onRaw}>
            {isNew ? "Write a raw item instead" : "Edit its raw attributes instead"}
          </button>
        </p>
      </div>
      <div class="form-foot">
        {(tried || blocks) && wrong.length > 0 && (
          <span class="wrong" role="alert">
            {plural(wrong.length, "field")} to put right: {wrong.map((each) => each.name).join(", ")}
          </span>
        )}
        <button type="button" disabled={!count || wrong.length > 0 || fields.some(isUnfilled) || (isNew && !isWhole)} title="What the table and each index are charged for it" onClick={() => onCost(changed)}>
          Cost
        </button>
        {!isNew && <span class="quiet">{count ? `${plural(count, "field")} changed` : "nothing changed yet"}</span>}
        <span class="space" />
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <button class="primary" disabled={saving || blocks || isUndecided} title={isUndecided ? "Somebody else changed it: decide above what is kept" : keyName("Mod+Enter")}>
          {isNew ? "Create" : "Save"}
        </button>
      </div>
    </form>
  );
}

/** What is taken over of other values: of an item that is duplicated, of a form that was left. */
function picked(given: Values | null, fields: Field[]): Values {
  if (!given) return {};
  return Object.fromEntries(fields.filter((each) => Object.hasOwn(given, each.name)).map((each) => [each.name, given[each.name]!]));
}

function shownOf(field: Field, draft: Draft | null, form: Form | null): string {
  if (field.set_by === "computed" && draft && Object.hasOwn(draft.computed, field.name)) return typedText(draft.computed[field.name]);
  const value = form?.values[field.name];
  return value === undefined || value === null ? "—" : typedText(value);
}

interface RowProps {
  field: Field;
  isChanged: boolean;
  value: Typed;
  before: Typed;
  fault: string | null;
  onChange: (value: Typed) => void;
  /** Below what is wrong. */
  children?: ComponentChildren;
}

export function FieldRow({ field, isChanged, value, before, fault, onChange, children }: RowProps) {
  const id = `fault-${field.name}`;
  const bounds = boundsOf(field.input);
  return (
    <div class={`edited field${isChanged ? " changed" : ""}`} data-field={field.name}>
      <div class="attribute-name">
        <code>{field.name}</code> <small title={field.type}>{kindOf(field.input)}</small>
        {field.required && <span class="mark required">required</span>}
        {field.identifies && <span class="mark" title="The primary key is made from it">key</span>}
        {field.keys.length > 0 && !field.identifies && <span class="mark" title={`Keys that are made from it: ${field.keys.join(", ")}`}>index</span>}
        {field.unique && <span class="mark" title="No other entity may have the same value">unique</span>}
        {isChanged && (
          <button type="button" class="link back" title={`It was: ${typedText(before)}`} onClick={() => onChange(before)}>
            Put back
          </button>
        )}
      </div>
      {(field.about || bounds) && <p class="about">{[field.about, bounds].filter(Boolean).join(" · ")}</p>}
      <TypedField
        label={field.name}
        input={field.input}
        value={value}
        invalid={fault !== null}
        {...(fault === null ? {} : { describedBy: id })}
        onChange={(next) => onChange(next === null && !field.input.optional && !field.required && isPlain(field.input) && field.default === "" ? "" : next)}
      />
      {fault && (
        <p class="wrong" id={id} role="alert">
          {fault}
        </p>
      )}
      {children}
    </div>
  );
}

function Keys({ table, keys }: { table: string; keys: DraftKey[] }) {
  if (!keys.length) return null;
  return (
    <section class="draft-keys" aria-label="Keys">
      <h2>Keys</h2>
      <dl>
        {keys.map((key) => (
          <div key={key.name}>
            <dt>
              {key.name} <small>{key.index ?? "table"}</small>
            </dt>
            <dd>
              {key.left_out ? (
                <span class="quiet">not in this index: {key.left_out}</span>
              ) : key.fault ? (
                <span class="wrong">{key.fault}</span>
              ) : (
                Object.entries(key.parts).map(([attribute, parts]) => (
                  <code class="draft-key" key={attribute} title={attribute}>
                    {parts.map(([text, component], place) => (
                      <span key={place} class={component === null ? "literal" : hue(table, component)}>
                        {text}
                      </span>
                    ))}
                  </code>
                ))
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
