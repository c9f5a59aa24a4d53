/** Runs exports and imports: uploads or downloads a file, polls the progress, finds the columns of a CSV file. */

import { call } from "../api";

export const ENDINGS = ["jsonl", "csv", "jsonl.gz", "csv.gz"];
const PART = 1 << 19; // bytes of an upload's part
const AGAIN = 300; // milliseconds between two looks at a transfer

export interface Transfer {
  id: number;
  kind: "import" | "export";
  table: string;
  state: "waiting" | "running" | "done" | "failed" | "stopped";
  fault: string;
  size: number;
  items: number;
  of_items: number;
  share: number;
  seconds_left: number | null;
  units: number;
  bad: number;
  bad_rows: string[];
}

export interface Watched {
  /** What is done now. */
  step: string;
  share: number;
  transfer: Transfer;
}

/** The ending of a file's name that says what is in it; null for others. */
export function endingOf(name: string): string | null {
  const lower = name.toLowerCase().replace(/\.(ndjson|json)(\.gz)?$/, (_, __, zipped: string | undefined) => `.jsonl${zipped ?? ""}`);
  return [...ENDINGS].reverse().find((each) => lower.endsWith(`.${each}`)) ?? null;
}

async function ended(transfer: Transfer, watch: (now: Watched) => void, step: string, signal: AbortSignal): Promise<Transfer> {
  let now = transfer;
  while (now.state === "running") {
    watch({ step, share: now.share, transfer: now });
    await new Promise((done) => setTimeout(done, AGAIN));
    now = await call<Transfer>(signal.aborted ? "transfer_end" : "transfer", { id: now.id });
  }
  return now;
}

/** Exports a table, and gives its file to the browser's downloads. */
export async function download(table: string, ending: string, watch: (now: Watched) => void, signal: AbortSignal): Promise<Transfer> {
  const done = await ended(await call<Transfer>("export", { table, ending }), watch, "Reading the table", signal);
  if (done.state !== "done") return done;
  if (signal.aborted) return { ...done, state: "stopped" }; // and it has no file any more
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  while (offset < done.size && !signal.aborted) {
    const { data } = await call<{ data: string }>("export_part", { id: done.id, offset });
    const part = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
    parts.push(part);
    offset += part.length;
    watch({ step: "Downloading", share: offset / done.size, transfer: done });
  }
  await call("transfer_end", { id: done.id });
  if (signal.aborted) return { ...done, state: "stopped" };
  give(new Blob(parts), `${table}.${ending}`);
  return done;
}

/** Gives a file to the browser's downloads. */
export function give(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** Uploads a file, and writes its items into a table; with `keys` a missing table is made. */
export async function upload(
  file: File,
  table: string,
  keys: { key?: string; sort_key?: string },
  watch: (now: Watched) => void,
  signal: AbortSignal,
): Promise<Transfer> {
  const begun = await call<Transfer>("import", { table, ending: endingOf(file.name), ...keys });
  for (let offset = 0; offset < file.size && !signal.aborted; offset += PART) {
    watch({ step: "Uploading", share: offset / file.size, transfer: begun });
    const bytes = new Uint8Array(await file.slice(offset, offset + PART).arrayBuffer());
    await call("import_part", { id: begun.id, data: base64(bytes) });
  }
  if (signal.aborted) {
    await call("transfer_end", { id: begun.id });
    return { ...begun, state: "stopped" };
  }
  const done = await ended(await call<Transfer>("import_run", { id: begun.id }), watch, "Writing the items", signal);
  if (done.state === "done" && !signal.aborted) await call("transfer_end", { id: done.id });
  return done;
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (let place = 0; place < bytes.length; place += 0x8000) text += String.fromCharCode(...bytes.subarray(place, place + 0x8000));
  return btoa(text);
}

/** The names of the columns, or of the first item's attributes, with the type of key that their values could be. */
export async function columnsOf(file: File): Promise<{ name: string; type: "S" | "N" }[]> {
  const ending = endingOf(file.name);
  if (ending === null || ending.endsWith(".gz")) return [];
  const [first = ""] = (await file.slice(0, 65_536).text()).replace(/^\ufeff/, "").split(/\r?\n/, 1);
  if (ending === "csv") {
    return cells(first)
      .map((cell) => /^(.+?)(?::([A-Z]+))?$/.exec(cell))
      .filter((each) => each !== null)
      .map((each) => ({ name: each[1]!, type: each[2] === "N" ? ("N" as const) : ("S" as const) }));
  }
  try {
    const found = JSON.parse(first) as Record<string, unknown>;
    const item = (typeof found["Item"] === "object" && found["Item"] !== null ? found["Item"] : found) as Record<string, unknown>;
    return Object.entries(item).map(([name, value]) => {
      const isNumber = typeof value === "number" || (typeof value === "object" && value !== null && "N" in value);
      return { name, type: isNumber ? ("N" as const) : ("S" as const) };
    });
  } catch {
    return [];
  }
}

/** The cells of a line of CSV. */
function cells(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((each) => each[1]?.replace(/""/g, '"') ?? each[2] ?? "");
}
