/** Download (`s`): what a view shows, or the whole table, as a CSV or JSON lines file. */

import { useState } from "preact/hooks";

import { call, type CallError, type Item, type TableInfo } from "../api";
import type { Entry } from "../collection/window";
import { Dialog } from "../shell/dialog";
import { Failure } from "../shell/failure";
import { notify } from "../shell/notices";
import { plural } from "../values";
import { download, give } from "./transfers";
import { TransferView, useTransfer } from "./transfer_view";

/** The rows that a view has loaded, in their order, and the attributes in that of its columns. */
export interface ShownRows {
  entries: Entry[];
  first: string[];
  /** Whether the view has more. */
  isPart: boolean;
}

const FORMATS: [ending: "csv" | "jsonl", title: string][] = [["csv", "CSV"], ["jsonl", "JSON lines"]];

export function SaveDialog({ table, rows, onClose }: { table: TableInfo; rows: ShownRows; onClose: () => void }) {
  const exporting = useTransfer();
  const [error, setError] = useState<CallError | null>(null);
  const saveRows = (ending: string) =>
    rowsFile(rows.entries.map((each) => each.item), rows.first, ending).then(
      (text) => {
        give(new Blob([text]), `${table.name}-rows.${ending}`);
        notify(`Downloaded ${plural(rows.entries.length, "row")} as ${table.name}-rows.${ending}`);
        onClose();
      },
      (failure: CallError) => setError(failure),
    );
  const saveTable = (ending: string) =>
    exporting.run((watch, signal) => download(table.name, ending, watch, signal)).then((done) => {
      if (!done) return;
      notify(`Downloaded ${plural(done.items, "item")} as ${table.name}.${ending}`);
      onClose();
    });
  return (
    <Dialog title="Download" className="save" onClose={onClose}>
      <h2>Download as a file</h2>
      <Choice
        title={`The ${plural(rows.entries.length, "row")} that ${rows.entries.length === 1 ? "is" : "are"} loaded`}
        about={rows.isPart ? "Scroll on to load more of the view." : "All of this view."}
        disabled={!rows.entries.length}
        onChoose={(ending) => void saveRows(ending)}
      />
      <Choice
        title="The whole table"
        about={`All ${plural(table.items, "item")}, read once, strongly consistent, for about ${plural(Math.ceil(table.bytes / 4096), "unit")}: twice what a scan in this view takes.`}
        disabled={exporting.isRunning}
        onChoose={(ending) => void saveTable(ending)}
      />
      <p class="quiet">
        A name such as <code>total:N</code> in the first line of CSV says that its values are numbers, as the cells do not: an import reads the types back.
      </p>
      {error && <Failure error={error} />}
      <TransferView running={exporting} />
      <div class="actions">
        <button onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

function Choice({ title, about, disabled, onChoose }: { title: string; about: string; disabled: boolean; onChoose: (ending: string) => void }) {
  return (
    <div class="save-choice" role="group" aria-label={title}>
      <span>
        <strong>{title}</strong>
        <small>{about}</small>
      </span>
      {FORMATS.map(([ending, name]) => (
        <button key={ending} disabled={disabled} onClick={() => onChoose(ending)}>
          {name}
        </button>
      ))}
    </div>
  );
}

/** Items as a file that an import takes; the columns of CSV begin with the given attributes. */
async function rowsFile(items: Item[], first: string[], ending: string): Promise<string> {
  return (await call<{ text: string }>("rows_file", { items, first, ending })).text;
}
