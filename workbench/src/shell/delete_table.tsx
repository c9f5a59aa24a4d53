/** Deletes a table (tab Keys), once its name is typed: nothing undoes it. */

import { useState } from "preact/hooks";

import { execute, type CallError, type TableInfo } from "../api";
import { go } from "../router";
import { refreshTables, session } from "../session";
import { useStore } from "../store";
import { plural } from "../values";
import { Dialog } from "./dialog";
import { Failure } from "./failure";
import { notify } from "./notices";

export function DeleteTable({ table }: { table: TableInfo }) {
  const writable = useStore(session)?.writable ?? false;
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  const [error, setError] = useState<CallError | null>(null);
  const [deleting, setDeleting] = useState(false);
  const close = () => {
    setOpen(false);
    setText("");
    setError(null);
  };
  const send = async () => {
    setDeleting(true);
    setError(null);
    try {
      await execute("DeleteTable", { TableName: table.name });
      go(["structures"]);
      await refreshTables();
      notify(`${table.name} was deleted`);
    } catch (failure) {
      setError(failure as CallError);
    } finally {
      setDeleting(false);
    }
  };
  return (
    <section>
      <button class="danger" disabled={!writable || table.protected} title={table.protected ? "Its deletion protection is on" : ""} onClick={() => setOpen(true)}>
        Delete the table
      </button>
      {isOpen && (
        <Dialog title={`Delete ${table.name}`} onClose={close}>
          <h2>Delete {table.name}?</h2>
          <p>Its {plural(table.items, "item")} and indexes are deleted, too, and nothing undoes it. An export of it is under Files.</p>
          <form onSubmit={(event) => { event.preventDefault(); if (text === table.name) void send(); }}>
            <div class="query-line">
              <input autoFocus aria-label="Name of the table" placeholder={table.name} value={text} spellcheck={false} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
              <span class="quiet">type its name</span>
            </div>
            <div class="actions">
              <button type="button" onClick={close}>Keep</button>
              <button class="danger" disabled={deleting || text !== table.name}>Delete</button>
            </div>
          </form>
          {error && <Failure error={error} />}
        </Dialog>
      )}
    </section>
  );
}
