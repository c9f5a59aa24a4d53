/** One item at the right: its keys, its attributes with their types; Edit (`i`), copy, Delete.
 *
 * Items of a loaded model are edited through their entities; their raw attributes behind a switch. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { CallError, Entity, Item, Segment, TableInfo } from "../api";
import { entityHue } from "../collection/hues";
import { KeyText } from "../collection/key_text";
import type { Entry } from "../collection/window";
import { CopyDialog } from "../query/copy_dialog";
import { ExplainDialog } from "../query/explain_dialog";
import { primaryKey } from "../query/view";
import { focusList } from "../focus";
import { href } from "../router";
import { useShortcuts } from "../shortcuts";
import { Failure } from "../shell/failure";
import { notify, tellSafeMode } from "../shell/notices";
import { own, typed, TYPES, typeOf } from "../values";
import { Below } from "./below";
import { besideIt, missing, withNextNumber, type BesideIt } from "./beside_it";
import { changedNames, isKeyChanged, make, requestOf, undoOf, type Change, type Sent } from "./changes";
import { changeInWords } from "./change_in_words";
import { entitiesOf, entityOf, givenFields, latestOf, readForm, Refused, remove, repair, requestToRemove, undo, type Form, type Values } from "./edit_calls";
import { EntityEditor } from "./entity_editor";
import { Findings } from "./findings";
import { ItemForm } from "./item_form";
import { ItemLink } from "./item_link";
import { KindChoice } from "./kind_choice";
import { offerBack, type LeftForm, type Typed } from "./left_forms";
import { Consequences, consequencesOf } from "./raw_edits";
import { Tree } from "./tree";

/** An index may show a part of an item: while the whole is read, and why it could not be; null: it is whole. */
export type Part = "reading" | CallError | null;

/** The attribute to edit at once; each double click on its value is another one. */
export interface Aim {
  attribute: string;
}

/** Each item has an inspector of its own: give it the item's id as key. */
interface Props {
  table: TableInfo;
  /** What is shown; null for a new item. */
  entry: Entry | null;
  aimed?: Aim | null;
  part: Part;
  writable: boolean;
  /** Whether its keys work; with several items selected they are of those. */
  keyboard: boolean;
  /** The kind that a new item is to have, if it was chosen elsewhere, and what it begins with. */
  kind?: string | null;
  given?: Values | null;
  /** What was typed into its form before that was left. */
  typed?: Typed | null;
  /** The name of the table that the page shows. */
  page: string;
  /** Begins a new item of a kind that stands beside this one; null where none can be made. */
  onNew: ((kind: string, given: Values) => void) | null;
  onClose: () => void;
  /** After a change was made: what the item is now, null if it is gone. */
  onChanged: (id: string | null, item: Item | null) => void;
}

/** What a new item begins with: a kind, or nothing yet; an item that is duplicated gives its values. */
interface Beginning {
  kind: string | null;
  values: Values | null;
  raw: Item | null;
}

export function Inspector({ table, entry: latest, aimed = null, part, writable, keyboard, kind = null, given = null, typed: typedBefore = null, page, onNew, onClose, onChanged }: Props) {
  const [mode, setMode] = useState<"view" | "edit" | "copy" | "delete">(latest && !typedBefore ? "view" : "edit");
  // A form stays with what it was filled with: what somebody else has changed meanwhile is told when it is saved.
  const held = useRef(latest);
  if (mode !== "edit") held.current = latest;
  const entry = held.current;
  const [again, setAgain] = useState(typedBefore); // until the form goes
  const [address] = useState(location.hash);
  const [beginning, setBeginning] = useState<Beginning | null>(entry ? null : { kind, values: given, raw: null });
  const [error, setError] = useState<CallError | null>(null);
  const [taken, setTaken] = useState<Item | null>(null); // a new item's key that another one has
  const [saving, setSaving] = useState(false);
  const [doubted, setDoubted] = useState<Change | null>(null); // what breaks something, until it is confirmed
  const [costing, setCosting] = useState<Sent | null>(null);
  const [form, setForm] = useState<{ of: Item; form: Form } | null>(null);
  const [isRaw, setRaw] = useState(Boolean(typedBefore?.raw));
  const kinds = entitiesOf(table.name);
  const entity = entityOf(table.name, entry?.entity);
  const created = beginning && entityOf(table.name, beginning.kind);
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);
  const item = entry?.item ?? null;

  // The form, and what does not fit the model, of what is shown.
  useEffect(() => {
    if (!entity || !item || part !== null) return;
    const cancel = new AbortController();
    readForm(table, item, cancel.signal).then(
      (found) => setForm({ of: item, form: found }),
      (failure: CallError) => cancel.signal.aborted || setError(failure),
    );
    return () => cancel.abort();
  }, [item, entity?.name, part]);
  const shown = form && form.of === item ? form.form : null;
  // What was just written is not recognized yet; its form has the parts of its keys.
  const segments = (name: string): Segment[] | undefined =>
    own(entry?.keys ?? {}, name) ?? shown?.keys.map((each) => own(each.parts, name)).find(Boolean)?.map(([text, component]) => [text, component, null]);
  const [beside, setBeside] = useState<{ of: Form; kinds: BesideIt[] } | null>(null);
  const besideShown = beside && beside.of === shown ? beside.kinds : [];
  useEffect(() => {
    if (!shown || !entity || !item || !writable || !onNew) return;
    const cancel = new AbortController();
    const all = besideIt(table, entity, shown);
    missing(table, all, item, cancel.signal).then(
      (kinds) => setBeside({ of: shown, kinds }),
      () => cancel.signal.aborted || setBeside({ of: shown, kinds: all }), // what is there already is then refused
    );
    return () => cancel.abort();
  }, [shown]);
  const [opening, setOpening] = useState<BesideIt | null>(null);
  const createBeside = (each: BesideIt) => {
    setOpening(each);
    withNextNumber(table, each, item!)
      .then((values) => onNew?.(each.kind.name, values), (failure: Error) => notify(failure.message, { failed: true }))
      .finally(() => setOpening(null));
  };

  const send = async (change: Change, done: string, undone = false) => {
    setSaving(true);
    setError(null);
    setTaken(null);
    setDoubted(null);
    try {
      const made = await make(change);
      const after = change.after ?? change.before!;
      onChanged(change.before ? idOf(table, change.before) : null, change.after);
      view();
      const action = { title: "Undo", run: () => void send(undoOf(made), "Undone", true) };
      const detail = changeInWords(table, change.before, change.after);
      notify(done, undone ? { detail } : { action, detail });
      if (!change.before) onChanged(idOf(table, after), change.after);
    } catch (failure) {
      const isTaken = !change.before && (failure as CallError).code === "ConditionalCheckFailedException";
      if (undone) notify(`It cannot be undone: ${(failure as Error).message}`, { failed: true });
      else if (isTaken) setTaken(primaryKey(table, change.after!));
      else setError(failure as CallError);
    } finally {
      setSaving(false);
    }
  };
  const view = () => {
    setMode("view");
    setBeginning(null);
    setRaw(false);
    setAgain(null);
  };
  const left = (found: Typed) => {
    const isNew = beginning !== null;
    const form: LeftForm = { ...found, page, table, address, entry: isNew ? null : entry, kind: isNew ? beginning.kind : (entry?.entity ?? null), given: beginning?.values ?? null };
    offerBack(form);
  };
  /** Tells that an item was written through its entity, and offers to undo it. */
  const written = (done: string, before: Item | null, after: Item | null) => {
    setError(null);
    view();
    onChanged(before ? idOf(table, before) : null, after);
    // The entity would not write what did not fit it; that comes back as it was stored.
    const isMisfit = before !== null && shown !== null && shown.findings.some((each) => !each.notice);
    const back = () =>
      (isMisfit ? putBack(after, before) : undo(table, after, before)).then(
        (now) => {
          onChanged(after ? idOf(table, after) : null, now);
          notify("Undone", { detail: changeInWords(table, after, now) });
        },
        (failure: Error) => {
          if (after && failure instanceof Refused && failure.refusal.changed) onChanged(idOf(table, after), failure.refusal.item);
          notify(`It cannot be undone: ${failure.message}`, { failed: true });
        },
      );
    notify(done, { action: { title: "Undo", run: () => void back() }, detail: changeInWords(table, before, after) });
  };
  /** Writes an item as it was stored, past its entity; not where that would leave a key or a unique value behind. */
  const putBack = async (after: Item | null, before: Item): Promise<Item | null> => {
    const now = after && latestOf(table, after);
    const change: Change = { table, before: now, after: before };
    const unique = entity?.fields.filter((each) => each.unique).map((each) => each.attribute) ?? [];
    const touched = !now || isKeyChanged(change) ? Object.keys(before) : changedNames(change);
    if (isKeyChanged(change) || unique.some((each) => touched.includes(each))) return undo(table, after, before);
    await make(change);
    return before;
  };
  const through = async (write: () => Promise<void>) => {
    setSaving(true);
    setError(null);
    try {
      await write();
    } catch (failure) {
      if (failure instanceof Refused && failure.refusal.changed) onChanged(idOf(table, item!), failure.refusal.item);
      setError(failure instanceof Refused ? ({ code: failure.refusal.code, message: failure.message } as CallError) : (failure as CallError));
      setMode("view");
    } finally {
      setSaving(false);
    }
  };
  // What had the focus is gone after an edit; the list goes on from the item's row.
  useEffect(() => {
    if (mode === "view") focusList();
  }, [mode]);
  useEffect(() => focusList, []);
  const isEditable = writable && part === null;
  // A key, and what the library sets, is only shown.
  const isGiven = (name: string) => (entity ? givenFields(entity, false).some((each) => each.attribute === name) : !keys.includes(name));
  useEffect(() => {
    if (aimed && isEditable && isGiven(aimed.attribute)) setMode("edit");
  }, [aimed, isEditable]);
  const why = !writable ? "Safe mode" : part ? "The index has only part of the item" : "";
  /** `began` is what the form was filled with: what else became of the item meanwhile stays. */
  const changeTo = (after: Item, began: Item): Change => {
    const change: Change = { table, before: beginning ? null : began, after };
    if (isKeyChanged(change)) change.before = null;
    return change;
  };
  const broken = (change: Change) => consequencesOf([{ ...change, entity: entry?.entity ?? null }]);
  const showCost = (change: Change) => {
    const sent = requestOf(change);
    if (sent) setCosting(sent);
    else notify("Nothing is changed yet, so nothing would be written");
  };
  const showCostOfRemoval = () => {
    if (!entity) return showCost({ table, before: entry!.item, after: null });
    requestToRemove(table, entry!.item).then(setCosting, (failure: Error) => notify(failure.message, { failed: true }));
  };
  const save = (after: Item, began: Item) => {
    const change = changeTo(after, began);
    if (!requestOf(change)) setMode("view");
    else if (broken(change).length) setDoubted(change);
    else void send(change, change.before ? "Saved" : "Created");
  };
  const cancel = () => {
    if (!entry) return onClose();
    setError(null);
    setTaken(null);
    setDoubted(null);
    view();
  };
  useShortcuts(
    entry && keyboard
      ? [
          { keys: ["i"], title: "Edit the item", run: () => (isEditable ? setMode("edit") : writable ? notify(why) : tellSafeMode()) },
          { keys: ["Backspace", "Delete"], title: "Delete the item", run: () => (writable ? setMode("delete") : tellSafeMode()) },
        ]
      : [],
  );
  const isChoosing = beginning !== null && kinds.length > 0 && beginning.kind === null && !isRaw;
  const tag = created?.name ?? (beginning ? null : entry?.entity);

  return (
    <aside class="inspector" aria-label="Item">
      <header>
        {beginning && <strong>{tag ? "New" : "New item"}</strong>}
        {tag && <span class={`entity ${entityHue(table.name, tag)}`} title={tag}>{tag}</span>}
        {mode === "edit" && isRaw && <span class="mark">raw</span>}
        <span class="space" />
        {mode === "view" && entry && (
          <>
            <button disabled={!isEditable} title={why || "Edit (i)"} onClick={() => setMode("edit")}>Edit</button>
            <button
              disabled={!isEditable || (entity !== null && !shown)}
              title={why}
              onClick={() => {
                setBeginning({ kind: entity?.name ?? null, values: shown && entity ? copied(shown, entity) : null, raw: entry.item });
                setRaw(!entity);
                setMode("edit");
              }}
            >
              Duplicate
            </button>
            <button onClick={() => setMode("copy")}>Copy as</button>
            <button class="danger" disabled={!writable} onClick={() => setMode("delete")}>Delete</button>
          </>
        )}
        <button class="icon" aria-label="Close the item" onClick={onClose}>
          ✕
        </button>
      </header>
      {error && <Failure error={error} />}
      {taken && (
        <div class="failure refusal" role="alert">
          <strong>Not created</strong>
          <p>The table has an item with this key already.</p>
          <p><ItemLink table={table} of={taken}>Show the item that is there</ItemLink></p>
        </div>
      )}
      {part === "reading" ? <p class="quiet part">The index has only part of this item; the rest is being read.</p> : part && <Failure error={part} />}
      {mode === "delete" && entry && (
        <div class="confirm" role="alertdialog" aria-label="Delete the item">
          <p>Delete this item? Undo brings it back, until the page is loaded again.</p>
          {entity && shown && <Below table={table} entity={entity} form={shown} item={entry.item} />}
          {!entity && <Consequences of={broken({ table, before: entry.item, after: null })} />}
          <div class="actions">
            <button onClick={showCostOfRemoval}>Cost</button>
            <button onClick={() => setMode("view")}>Keep</button>
            <button
              class="danger"
              autoFocus
              disabled={saving || (entity !== null && part !== null)}
              onClick={() => {
                if (!entity) return void send({ table, before: entry.item, after: null }, "Deleted");
                void through(async () => {
                  await remove(table, entry.item);
                  written("Deleted", entry.item, null);
                });
              }}
            >
              Delete
            </button>
          </div>
        </div>
      )}
      {doubted && (
        <div class="confirm" role="alertdialog" aria-label="Save without the model">
          <p>This edit bypasses the model of {entry?.entity}:</p>
          <Consequences of={broken(doubted)} />
          <p>The form of {entry?.entity} keeps all of this right; so does <code>store.update</code> in a program.</p>
          <div class="actions">
            <button autoFocus onClick={() => setDoubted(null)}>Back</button>
            <button class="danger" disabled={saving} onClick={() => void send(doubted, "Saved")}>Save anyway</button>
          </div>
        </div>
      )}
      {mode === "edit" && isChoosing ? (
        <KindChoice
          table={table.name}
          kinds={kinds}
          onChoose={(name) => setBeginning({ kind: name, values: null, raw: null })}
          onRaw={() => setRaw(true)}
        />
      ) : mode === "edit" && !isRaw && (created || (entity && !beginning)) ? (
        created || shown ? (
          <EntityEditor
            key={created ? `new ${created.name}` : "edit"}
            table={table}
            entity={created ?? entity!}
            item={beginning ? null : item}
            form={beginning ? null : shown}
            given={beginning?.values ?? null}
            typed={again?.values ?? null}
            onLeft={(values) => left({ values, raw: null })}
            aimed={beginning ? null : aimed}
            onSaved={(before, after) => written(before ? "Saved" : "Created", before, after)}
            onTheirs={(now) => {
              view();
              onChanged(idOf(table, item!), now);
            }}
            onRaw={() => setRaw(true)}
            onCancel={cancel}
          />
        ) : (
          <div class="inspected"><div class="bone" /><div class="bone" /></div>
        )
      ) : mode === "edit" ? (
        <>
          {(entity || created) && <RawWarning entity={(entity ?? created)!.name} isNew={beginning !== null} onBack={() => setRaw(false)} />}
          <ItemForm
            key={(entry?.id ?? "") + (beginning ? "new" : "")}
            table={table}
            item={beginning ? (beginning.raw ?? blank(table)) : entry!.item}
            isNew={beginning !== null}
            typed={again?.raw ?? null}
            onLeft={(raw) => left({ values: null, raw })}
            aimed={beginning ? null : aimed}
            saving={saving}
            refusal={beginning || error?.code !== "ConditionalCheckFailedException" ? null : error}
            onSave={save}
            onCost={(item, began) => showCost(changeTo(item, began))}
            onCancel={cancel}
          />
        </>
      ) : (
        entry && (
          <div class="inspected">
            {shown && (
              <Findings
                findings={shown.findings}
                isEditable={isEditable}
                working={saving}
                onEdit={() => setMode("edit")}
                onRepair={(without) =>
                  void through(async () => {
                    written("Repaired", entry.item, await repair(table, entry.item, without));
                  })
                }
              />
            )}
            {!entity && entry.findings.length > 0 && (
              <section class="misfit" aria-label="What does not fit the model">
                <strong>It does not fit the model</strong>
                <ul>{entry.findings.map((each) => <li key={each}>{each}</li>)}</ul>
              </section>
            )}
            {inOrder(entry.item, keys, entity).map((name) => (
              <div class={`attribute${keys.includes(name) ? " of-key" : ""}`} key={name}>
                <div class="attribute-name">
                  {name} <small>{entry.item[name] ? TYPES[typeOf(entry.item[name])] : ""}</small>
                </div>
                {(segments(name)?.length ?? 0) > 1 && entry.item[name] ? (
                  <KeyText table={table.name} value={entry.item[name]} segments={segments(name)} />
                ) : (
                  <Tree value={entry.item[name]} />
                )}
              </div>
            ))}
            {besideShown.length > 0 && writable && onNew && (
              <div class="beside-it" role="group" aria-label="In the same item collection">
                <span class="quiet">In the same item collection:</span>
                {besideShown.map((each) => (
                  <button key={each.kind.name} aria-busy={opening === each} onClick={() => createBeside(each)}>
                    + {each.kind.name}
                  </button>
                ))}
                <a class="more-link" href={href(["t", table.name, "items"], { pk: JSON.stringify(table.keys.partition.map((each) => typed(entry.item[each.name]!))) })}>
                  Show the collection
                </a>
              </div>
            )}
          </div>
        )
      )}
      {mode === "copy" && entry && (
        <CopyDialog action="GetItem" request={{ TableName: table.name, Key: primaryKey(table, entry.item) }} onClose={() => setMode("view")} />
      )}
      {costing && <ExplainDialog given={costing} onClose={() => setCosting(null)} />}
    </aside>
  );
}

/** The attributes as they are listed: keys, the fields of the entity, the rest. Items that were written have another order. */
function inOrder(item: Item, keys: string[], entity: Entity | null): string[] {
  const first = [...keys, ...(entity?.fields.map((each) => each.attribute).filter((name) => Object.hasOwn(item, name)) ?? [])];
  const rest = Object.keys(item).filter((name) => !first.includes(name));
  return [...new Set([...first, ...(entity ? rest.sort() : rest)])];
}

/** What raw editing bypasses, before anything is typed. */
function RawWarning({ entity, isNew, onBack }: { entity: string; isNew: boolean; onBack: () => void }) {
  return (
    <div class="raw-warning" role="note">
      <p>
        <strong>Raw attributes bypass the model of {entity}.</strong> Nothing is validated; index keys and computed fields are not made, the version is not
        raised, and unique values are not held{isNew ? "" : ". Saving says what a change breaks"}.
      </p>
      <button type="button" class="link" onClick={onBack}>
        Back to the form of {entity}
      </button>
    </div>
  );
}

/** The values of an item for another one: those that people give. */
function copied(form: Form, entity: NonNullable<ReturnType<typeof entityOf>>): Values {
  return Object.fromEntries(givenFields(entity, true).map((each) => [each.name, form.values[each.name] ?? null]));
}

function idOf(table: TableInfo, item: Item): string {
  return JSON.stringify(primaryKey(table, item));
}

function blank(table: TableInfo): Item {
  const all = [...table.keys.partition, ...table.keys.sort];
  return Object.fromEntries(all.map((each) => [each.name, { [each.type]: "" }]));
}
