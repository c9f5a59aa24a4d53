/** The tab Files: all items of a table as a download, and a file whose items are imported into it. */

import { useState } from "preact/hooks";

import type { TableInfo } from "../api";
import { href } from "../router";
import { refreshTable, session } from "../session";
import { useStore } from "../store";
import { count, plural, size } from "../values";
import { download, endingOf, upload } from "./transfers";
import { TransferView, useTransfer } from "./transfer_view";

const FORMATS: [ending: string, title: string][] = [
  ["jsonl", "JSON lines"],
  ["csv", "CSV"],
  ["jsonl.gz", "JSON lines, gzip"],
  ["csv.gz", "CSV, gzip"],
];
export const ACCEPTED = ".jsonl,.ndjson,.json,.csv,.gz";

export function FilesPage({ table }: { table: TableInfo }) {
  const found = useStore(session);
  const writable = found?.writable ?? false;
  const [ending, setEnding] = useState("jsonl");
  const [file, setFile] = useState<File | null>(null);
  const exporting = useTransfer();
  const importing = useTransfer();
  const units = Math.ceil(table.bytes / 4096);
  return (
    <div class="document files">
      <section>
        <h2>Export</h2>
        <p class="quiet">
          All {plural(table.items, "item")}, about {size(table.bytes)}, are read once, strongly consistent, for {plural(units, "unit")}; the browser then saves the file.
          Up to 256 MB; <code>isotone export</code> writes larger ones.
        </p>
        <form class="query-line" onSubmit={(event) => { event.preventDefault(); void exporting.run((watch, signal) => download(table.name, ending, watch, signal)); }}>
          <select aria-label="Format" value={ending} onChange={(event) => setEnding(event.currentTarget.value)}>
            {FORMATS.map(([value, title]) => <option key={value} value={value}>{title}</option>)}
          </select>
          <button class="primary" disabled={exporting.isRunning}>Export</button>
        </form>
        <TransferView running={exporting} />
      </section>
      <section>
        <h2>Import</h2>
        <p class="quiet">
          Each row is written as an item; one with the key of an existing item replaces it. CSV has names in its first line, with types
          where a column is not text: <code>total:N</code>. A row that does not fit is left out, and shown below.
        </p>
        <form
          class="query-line"
          onSubmit={(event) => {
            event.preventDefault();
            if (!file) return;
            void importing.run((watch, signal) => upload(file, table.name, {}, watch, signal)).then(() => void refreshTable(table.name));
          }}
        >
          <input type="file" aria-label="File to import" accept={ACCEPTED} disabled={!writable} onChange={(event) => setFile(event.currentTarget.files?.[0] ?? null)} />
          <button class="primary" disabled={!writable || !file || endingOf(file.name) === null || importing.isRunning}>Import</button>
          {!writable && <span class="quiet">Safe mode: click the lock at the bottom left to allow changes.</span>}
          {file && endingOf(file.name) === null && <span class="wrong">{file.name} is not a .jsonl or .csv file, plain or gzipped (.gz)</span>}
        </form>
        <TransferView running={importing} />
        {importing.done?.state === "done" && (
          <p><a class="more-link" href={href(["t", table.name, "items"])}>See the {count(table.items)} items</a></p>
        )}
      </section>
      <p class="quiet">
        Files stay between the browser and its server, which deletes its copy: a page cannot name a file of this machine.
      </p>
    </div>
  );
}
