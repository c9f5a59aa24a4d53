/** What can be done with several items at once: set or remove an attribute, delete. All of it can be undone. */

import { useState } from "preact/hooks";

import type { AttributeValue, Item, TableInfo } from "../api";
import type { Entry } from "../collection/window";
import { notify } from "../shell/messages";
import { plural } from "../values";
import { makeAll, undoOf, type Change } from "./changes";
import { NameFaults, useNameFaults } from "./name_input";
import { Consequences, consequencesOf } from "./raw_edits";
import { faultOf, ValueEditor } from "./value_editor";

interface Props {
  table: TableInfo;
  entries: Entry[];
  writable: boolean;
  onClear: () => void;
  onChanged: () => void;
}

export function BatchBar({ table, entries, writable, onClear, onChanged }: Props) {
  const [mode, setMode] = useState<"set" | "delete" | null>(null);
  const [name, setName] = useState("");
  const [value, setValue] = useState<AttributeValue>({ S: "" });
  const [done, setDone] = useState<number | null>(null);
  const names = useNameFaults();
  const keys = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);

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
  const broken = mode ? consequencesOf(wanted) : [];

  return (
    <div class="batch" role="region" aria-label="Selected items">
      <strong>{plural(entries.length, "item")} selected</strong>
      {done !== null ? (
        <progress max={entries.length} value={done} aria-label="Progress" />
      ) : mode === "set" ? (
        <>
          <input aria-label="Attribute" placeholder="attribute" value={name} onInput={(event) => setName(event.currentTarget.value)} />
          <NameFaults.Provider value={names.tell}>
            <ValueEditor label="the attribute" value={value} onChange={setValue} />
          </NameFaults.Provider>
          <button class="primary" disabled={!name || names.fault !== null || keys.includes(name) || faultOf(value) !== null} onClick={() => void send(wanted, "Changed")}>
            {broken.length ? "Set anyway" : "Set"}
          </button>
          <button onClick={() => setMode(null)}>Cancel</button>
          {keys.includes(name) && <span class="wrong">a key cannot be changed</span>}
        </>
      ) : mode === "delete" ? (
        <>
          <span>Delete them?</span>
          <button class="danger" onClick={() => void send(wanted, "Deleted")}>Delete {entries.length}</button>
          <button onClick={() => setMode(null)}>Keep</button>
        </>
      ) : (
        <>
          <button disabled={!writable} onClick={() => setMode("set")}>Set an attribute</button>
          <button class="danger" disabled={!writable} onClick={() => setMode("delete")}>Delete</button>
          <button onClick={onClear}>Clear</button>
        </>
      )}
      {broken.length > 0 && <Consequences of={broken} />}
    </div>
  );
}
