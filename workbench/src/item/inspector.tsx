/** One item: its keys, its attributes with their types; editing, copying, deleting. */

import { useState } from "preact/hooks";

import type { CallError, Item, TableInfo } from "../api";
import { entityHue } from "../collection/hues";
import { KeyText } from "../collection/key_text";
import type { Entry } from "../collection/window";
import { CopyDialog } from "../query/copy_dialog";
import { ExplainDialog } from "../query/explain_dialog";
import { primaryKey } from "../query/view";
import { useShortcuts } from "../shortcuts";
import { Failure, notify } from "../shell/messages";
import { own, TYPES, typeOf } from "../values";
import { isKeyChanged, make, requestOf, undoOf, type Change, type Sent } from "./changes";
import { ItemForm } from "./item_form";
import { Consequences, consequencesOf } from "./raw_edits";
import { Tree } from "./tree";

/** An index may show a part of an item: while the whole is read, and why it could not be; null: it is whole. */
export type Part = "reading" | CallError | null;

/** Each item has an inspector of its own: give it the item's id as key. */
interface Props {
  table: TableInfo;
  /** What is shown; null for a new item. */
  entry: Entry | null;
  part: Part;
  writable: boolean;
  onClose: () => void;
  /** After a change was made: what the item is now, null if it is gone. */
  onChanged: (id: string | null, item: Item | null) => void;
}

export function Inspector({ table, entry, part, writable, onClose, onChanged }: Props) {
  const [mode, setMode] = useState<"view" | "edit" | "copy" | "delete">(entry ? "view" : "edit");
  const [draft, setDraft] = useState<Item | null>(entry ? null : blank(table));
  const [error, setError] = useState<CallError | null>(null);
  const [saving, setSaving] = useState(false);
  const [doubted, setDoubted] = useState<Change | null>(null); // what breaks something, until it is confirmed
  const [costing, setCosting] = useState<Sent | null>(null);
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);

  const send = async (change: Change, done: string, undone = false) => {
    setSaving(true);
    setError(null);
    setDoubted(null);
    try {
      const made = await make(change);
      const shown = change.after ?? change.before!;
      onChanged(change.before ? idOf(table, change.before) : null, change.after);
      setMode("view");
      setDraft(null);
      const undo = { title: "Undo", run: () => void send(undoOf(made), "Undone", true) };
      notify(done, undone ? {} : { action: undo });
      if (!change.before) onChanged(idOf(table, shown), change.after);
    } catch (failure) {
      if (undone) notify(`It cannot be undone: ${(failure as Error).message}`, { failed: true });
      else setError(failure as CallError);
    } finally {
      setSaving(false);
    }
  };
  const isEditable = writable && part === null;
  const why = !writable ? "Safe mode" : part ? "The index has only part of the item" : "";
  /** `began` is what the form was filled with: what else became of the item meanwhile stays. */
  const changeTo = (after: Item, began: Item): Change => {
    const change: Change = { table, before: draft ? null : began, after };
    if (isKeyChanged(change)) change.before = null;
    return change;
  };
  const broken = (change: Change) => consequencesOf([{ ...change, entity: entry?.entity ?? null }]);
  const showCost = (change: Change) => {
    const sent = requestOf(change);
    if (sent) setCosting(sent);
    else notify("Nothing is changed yet, so nothing would be written");
  };
  const save = (after: Item, began: Item) => {
    const change = changeTo(after, began);
    if (!requestOf(change)) setMode("view");
    else if (broken(change).length) setDoubted(change);
    else void send(change, change.before ? "Saved" : "Created");
  };
  useShortcuts(
    entry && writable
      ? [
          { keys: ["i"], title: "Edit the item", run: () => isEditable && setMode("edit") },
          { keys: ["Backspace", "Delete"], title: "Delete the item", run: () => setMode("delete") },
        ]
      : [],
  );

  return (
    <aside class="inspector" aria-label="Item">
      <header>
        {draft ? <strong>New item</strong> : entry?.entity && <span class={`entity ${entityHue(table.name, entry.entity)}`}>{entry.entity}</span>}
        <span class="space" />
        {mode === "view" && entry && (
          <>
            <button disabled={!isEditable} title={why || "Edit (i)"} onClick={() => setMode("edit")}>Edit</button>
            <button
              disabled={!isEditable}
              title={why}
              onClick={() => {
                setDraft(entry.item);
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
      {part === "reading" ? <p class="quiet part">The index has only part of this item; the rest is being read.</p> : part && <Failure error={part} />}
      {mode === "delete" && entry && (
        <div class="confirm" role="alertdialog" aria-label="Delete the item">
          <p>Delete this item? It can be undone for a while.</p>
          <Consequences of={broken({ table, before: entry.item, after: null })} />
          <div class="actions">
            <button onClick={() => showCost({ table, before: entry.item, after: null })}>Cost</button>
            <button onClick={() => setMode("view")}>Keep</button>
            <button class="danger" autoFocus disabled={saving} onClick={() => void send({ table, before: entry.item, after: null }, "Deleted")}>
              Delete
            </button>
          </div>
        </div>
      )}
      {doubted && (
        <div class="confirm" role="alertdialog" aria-label="Save without the model">
          <p>This edit bypasses the model of {entry?.entity}:</p>
          <Consequences of={broken(doubted)} />
          <p>In a program, <code>store.update</code> keeps all of this right. <code>isotone verify</code> finds items that contradict their model.</p>
          <div class="actions">
            <button autoFocus onClick={() => setDoubted(null)}>Back</button>
            <button class="danger" disabled={saving} onClick={() => void send(doubted, "Saved")}>Save anyway</button>
          </div>
        </div>
      )}
      {mode === "edit" ? (
        <ItemForm
          key={(entry?.id ?? "") + (draft ? "new" : "")}
          table={table}
          item={draft ?? entry!.item}
          isNew={draft !== null}
          saving={saving}
          onSave={save}
          onCost={(item, began) => showCost(changeTo(item, began))}
          onCancel={() => {
            if (!entry) return onClose();
            setDraft(null);
            setError(null);
            setDoubted(null);
            setMode("view");
          }}
        />
      ) : (
        entry && (
          <div class="inspected">
            {[...keys, ...Object.keys(entry.item).filter((name) => !keys.includes(name))].map((name) => (
              <div class={`attribute${keys.includes(name) ? " of-key" : ""}`} key={name}>
                <div class="attribute-name">
                  {name} <small>{entry.item[name] ? TYPES[typeOf(entry.item[name])] : ""}</small>
                </div>
                {(own(entry.keys, name)?.length ?? 0) > 1 && entry.item[name] ? (
                  <KeyText table={table.name} value={entry.item[name]} segments={entry.keys[name]} />
                ) : (
                  <Tree value={entry.item[name]} />
                )}
              </div>
            ))}
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

function idOf(table: TableInfo, item: Item): string {
  return JSON.stringify(primaryKey(table, item));
}

function blank(table: TableInfo): Item {
  const all = [...table.keys.partition, ...table.keys.sort];
  return Object.fromEntries(all.map((each) => [each.name, { [each.type]: "" }]));
}
