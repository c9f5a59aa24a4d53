/** The bar for several selected items: edit fields, set an attribute, delete; progress, and the words of its Undo.
 *
 * Items of a loaded model are written through their entities. */

import { useState } from "preact/hooks";

import type { AttributeValue, Entity, Item, TableInfo } from "../api";
import type { Entry } from "../collection/window";
import { notify } from "../shell/notices";
import { useShortcuts } from "../shortcuts";
import { plural } from "../values";
import { BelowAll } from "./below";
import { BulkEdit } from "./bulk_edit";
import { forAll, make, makeAll, undoOf, type Change } from "./changes";
import { entityOf, remove, save, undo, type Values } from "./edit_calls";
import { NameFaults, useNameFaults } from "./name_input";
import { Consequences, consequencesOf } from "./raw_edits";
import { faultOf, ValueEditor } from "./value_editor";

interface Props {
  table: TableInfo;
  entries: Entry[];
  writable: boolean;
  /** Whether an index shows only part of each item. */
  isPartial: boolean;
  /** Whether all that is loaded is selected, and there is more. */
  isMore: boolean;
  onClear: () => void;
  onChanged: () => void;
}

export function BatchBar({ table, entries, writable, isPartial, isMore, onClear, onChanged }: Props) {
  const [mode, setMode] = useState<"edit" | "set" | "delete" | null>(null);
  const [name, setName] = useState("");
  const [value, setValue] = useState<AttributeValue>({ S: "" });
  const [done, setDone] = useState<number | null>(null);
  const names = useNameFaults();
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);

  const isModelled = (entry: Entry) => entityOf(table.name, entry.entity) !== null;
  const anyModelled = entries.some(isModelled);

  /** Runs writes through the model; `back` undoes one of them. */
  const run = async <T, R>(all: T[], act: (one: T) => Promise<R>, back: ((one: R) => Promise<unknown>) | null, what: string) => {
    setMode(null);
    setDone(0);
    const { made, failed } = await forAll(all, act, setDone);
    setDone(null);
    onClear();
    onChanged();
    const lost = failed.length ? `; ${failed.length} failed: ${failed[0]![1].message}` : "";
    const action = { title: "Undo", run: () => void run(made, back!, null, "Undone:") };
    notify(`${what} ${plural(made.length, "item")}${lost}`, back && made.length ? { action } : { failed: failed.length > 0 });
  };
  type Written = [before: Item, after: Item | null];
  const takeBack = ([before, after]: Written) => undo(table, after, before);
  const apply = (entity: Entity, values: Values, chosen: Entry[]) =>
    void run(chosen, async ({ item }): Promise<Written> => [item, await save(table, entity.name, values, item)], takeBack, "Changed");
  const deleteAll = () =>
    void run(
      entries,
      async (entry): Promise<() => Promise<unknown>> => {
        if (isModelled(entry)) {
          await remove(table, entry.item);
          return () => takeBack([entry.item, null]);
        }
        const made = await make({ table, before: entry.item, after: null });
        return () => make(undoOf(made));
      },
      (back) => back(),
      "Deleted",
    );

  const send = async (changes: Change[], what: string, undone = false) => {
    setDone(0);
    const { made, failed } = await makeAll(changes, setDone);
    setDone(null);
    setMode(null);
    onClear();
    onChanged();
    const lost = failed.length ? `; ${failed.length} failed: ${failed[0]![1].message}` : "";
    const undo = { title: "Undo", run: () => void send(made.map(undoOf), "Undone:", true) };
    notify(`${what} ${plural(made.length, "item")}${lost}`, undone || !made.length ? { failed: failed.length > 0 } : { action: undo });
  };
  const changesTo = (after: (item: Item) => Item | null) =>
    entries.map(({ item, entity }) => ({ table, before: item, after: after(item), entity }));
  const wanted = mode === "set" ? (name ? changesTo((item) => ({ ...item, [name]: value })) : []) : changesTo(() => null);
  const canEdit = anyModelled && writable && !isPartial;
  const canDelete = writable && !(anyModelled && isPartial);
  useShortcuts([
    ...(canEdit ? [{ keys: ["i"], title: "Edit fields of the selected items", run: () => setMode("edit") }] : []),
    ...(canDelete ? [{ keys: ["Backspace", "Delete"], title: "Delete the selected items", run: () => setMode("delete") }] : []),
  ]);
  const broken = mode === "set" || (mode === "delete" && !anyModelled) ? consequencesOf(wanted) : [];

  return (
    <div class="batch" role="region" aria-label="Selected items">
      <span><strong>{plural(entries.length, "item")} selected</strong>{isMore && ", all that are loaded so far"}</span>
      {done !== null ? (
        <progress max={entries.length} value={done} aria-label="Progress" />
      ) : mode === "set" ? (
        <>
          <input autoFocus aria-label="Attribute" placeholder="attribute" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <NameFaults.Provider value={names.tell}>
            <ValueEditor label="the attribute" value={value} onChange={setValue} />
          </NameFaults.Provider>
          <button class="primary" disabled={!name || names.fault !== null || keys.includes(name) || faultOf(value) !== null} onClick={() => void send(wanted, "Changed")}>
            {broken.length ? "Set anyway" : "Set"}
          </button>
          <button key="cancel" onClick={() => setMode(null)}>Cancel</button>
          {keys.includes(name) && <span class="wrong">a key cannot be changed</span>}
        </>
      ) : mode === "delete" ? (
        <div class="line" role="alertdialog" aria-label="Delete the selected items">
          <span>Delete {entries.length === 1 ? "it" : "them"}?</span>
          <button class="danger" autoFocus onClick={deleteAll}>Delete {entries.length}</button>
          <button onClick={() => setMode(null)}>Keep</button>
          <BelowAll table={table} entries={entries.filter(isModelled)} />
        </div>
      ) : (
        <>
          {mode === "edit" && <BulkEdit table={table} entries={entries} onApply={apply} onClose={() => setMode(null)} />}
          {anyModelled && <button class="primary" disabled={!canEdit} title={isPartial ? "The index has only part of the items" : "Edit fields (i)"} onClick={() => setMode("edit")}>Edit fields</button>}
          <button disabled={!writable} onClick={() => setMode("set")}>{anyModelled ? "Set a raw attribute" : "Set an attribute"}</button>
          <button class="danger" disabled={!canDelete} onClick={() => setMode("delete")}>Delete</button>
          <button onClick={onClear}>Clear</button>
        </>
      )}
      {broken.length > 0 && <Consequences of={broken} />}
    </div>
  );
}
