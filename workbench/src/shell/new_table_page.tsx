/** New table: from its keys and indexes, or from a CSV or JSON Lines file, whose columns are proposed as keys. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { call, CallError, execute, type ListedTable, type Request, type TableInfo } from "../api";
import { go, useIsLeft } from "../router";
import { refreshTables, session, tables } from "../session";
import { useStore } from "../store";
import { ACCEPTED } from "../transfer/files_page";
import { columnsOf, endingOf, upload } from "../transfer/transfers";
import { TransferView, useTransfer } from "../transfer/transfer_view";
import { Failure } from "./failure";
import { notify } from "./notices";
import "../styles/transfer.css";

type KeyType = "S" | "N" | "B";
interface KeyDraft {
  name: string;
  type: KeyType;
}
interface IndexDraft {
  name: string;
  partition: KeyDraft;
  sort: KeyDraft;
}

const TYPES: [KeyType, string][] = [["S", "text"], ["N", "number"], ["B", "binary"]];
const NAME = /^[a-zA-Z0-9_.-]{3,255}$/;
const NONE: KeyDraft = { name: "", type: "S" };
const AGAIN = 300; // milliseconds between two looks at a table that is being made
const MOST_INDEXES = 20;

export function NewTablePage() {
  const writable = useStore(session)?.writable ?? false;
  const all = useStore(tables);
  const [name, setName] = useState("");
  const [partition, setPartition] = useState<KeyDraft>({ name: "pk", type: "S" });
  const [sort, setSort] = useState<KeyDraft>({ name: "sk", type: "S" });
  const [indexes, setIndexes] = useState<IndexDraft[]>([]);
  const [hasStream, setStream] = useState(false);
  const [file, setFile] = useState<File | null>(null);
  const [error, setError] = useState<CallError | null>(null);
  const [making, setMaking] = useState(false);
  const importing = useTransfer();
  const isLeft = useIsLeft();
  const wrong = faultOf(name, partition, sort, indexes, all ?? []);

  const choose = async (chosen: File | null) => {
    setFile(chosen);
    if (!chosen) return;
    const columns = await columnsOf(chosen);
    const key = columns.find((each) => /^(pk|id|key)$/i.test(each.name)) ?? columns[0];
    if (key) setPartition({ name: key.name, type: key.type });
    const second = columns.find((each) => /^sk$|^sort/i.test(each.name));
    setSort(columns.length ? (second ?? NONE) : sort);
    setIndexes([]);
    if (!name) setName(chosen.name.replace(/\.(jsonl|ndjson|json|csv)?(\.gz)?$/i, "").replace(/[^a-zA-Z0-9_.-]/g, "-"));
  };
  const make = async () => {
    setError(null);
    setMaking(true);
    try {
      await execute("CreateTable", requestOf(name, partition, sort, indexes, hasStream));
      await untilActive(name);
      const done = file && (await importing.run((watch, signal) => upload(file, name, {}, watch, signal)));
      await refreshTables();
      if (isLeft.current || (file && (!done || done.bad))) return; // what was wrong with it stays to be read
      notify(`${name} was made`);
      go(["t", name, "items"]);
    } catch (failure) {
      setError(failure as CallError);
    } finally {
      setMaking(false);
    }
  };

  return (
    <div class="document new-table">
      <p class="quiet lead">
        Items with the same partition key are one collection, in the order of their sort key; a query reads a range of it. Several kinds
        of items can share a table: then call the keys <code>pk</code> and <code>sk</code>, and write them as <code>CUSTOMER#ann</code> and{" "}
        <code>ORDER#2026-01-11</code>.
      </p>
      <form onSubmit={(event) => { event.preventDefault(); if (!wrong) void make(); }}>
        <Row title="Name">
          <input aria-label="Name of the table" value={name} placeholder="Orders" spellcheck={false} autocomplete="off" autoFocus onInput={(event) => setName(event.currentTarget.value)} />
        </Row>
        <Row title="Partition key"><KeyInput label="Partition key" draft={partition} onDraft={setPartition} /></Row>
        <Row title="Sort key"><KeyInput label="Sort key" draft={sort} onDraft={setSort} placeholder="none: one item for each key" /></Row>
        {indexes.map((each, place) => {
          const put = (change: Partial<IndexDraft>) => setIndexes(indexes.map((one, at) => (at === place ? { ...one, ...change } : one)));
          return (
            <Row key={place} title={place ? "" : "Indexes"}>
              <div class="new-index">
                <input aria-label={`Name of index ${place + 1}`} value={each.name} placeholder="by_status" spellcheck={false} onInput={(event) => put({ name: event.currentTarget.value })} />
                <KeyInput label={`Partition key of index ${place + 1}`} draft={each.partition} onDraft={(partition) => put({ partition })} placeholder="partition key" />
                <KeyInput label={`Sort key of index ${place + 1}`} draft={each.sort} onDraft={(sort) => put({ sort })} placeholder="sort key, if any" />
                <button type="button" class="icon" aria-label={`Remove index ${place + 1}`} onClick={() => setIndexes(indexes.filter((_, at) => at !== place))}>✕</button>
              </div>
            </Row>
          );
        })}
        <Row title={indexes.length ? "" : "Indexes"}>
          <button type="button" disabled={indexes.length >= MOST_INDEXES} onClick={() => setIndexes([...indexes, { name: `GSI${indexes.length + 1}`, partition: { name: `GSI${indexes.length + 1}PK`, type: "S" }, sort: { name: `GSI${indexes.length + 1}SK`, type: "S" } }])}>
            + Index
          </button>
          <span class="quiet"> the same items by other keys; more can be added later</span>
        </Row>
        <Row title="Stream">
          <label class="query-line">
            <input type="checkbox" checked={hasStream} onChange={(event) => setStream(event.currentTarget.checked)} /> keep the changes of a day, with old and new items
          </label>
        </Row>
        <Row title="Items">
          <input type="file" aria-label="File with items" accept={ACCEPTED} onChange={(event) => void choose(event.currentTarget.files?.[0] ?? null)} />
          <span class="quiet"> optional: CSV or JSON lines; its columns are proposed as keys</span>
        </Row>
        <Row title="">
          <button class="primary" disabled={!writable || wrong !== null || making || (file !== null && endingOf(file.name) === null)}>
            {making ? "Making the table…" : file ? "Create and import" : "Create"}
          </button>
          {wrong && name !== "" && !making && !importing.done && <span class="wrong">{wrong}</span>}
          {file && endingOf(file.name) === null && <span class="wrong">{file.name} is not a .jsonl or .csv file, plain or gzipped (.gz)</span>}
          {!writable && <span class="quiet">Safe mode: click the lock at the bottom left to allow changes.</span>}
        </Row>
      </form>
      {error && <Failure error={error} />}
      <TransferView running={importing} />
      {importing.done && (
        <p><button class="primary" onClick={() => go(["t", name, "items"])}>Open {name}</button></p>
      )}
    </div>
  );
}

function Row({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="new-row">
      <span class="new-title">{title}</span>
      <div class="query-line">{children}</div>
    </div>
  );
}

function KeyInput({ label, draft, onDraft, placeholder }: { label: string; draft: KeyDraft; onDraft: (draft: KeyDraft) => void; placeholder?: string }) {
  return (
    <span class="new-key">
      <input aria-label={label} value={draft.name} placeholder={placeholder ?? ""} spellcheck={false} autocomplete="off" onInput={(event) => onDraft({ ...draft, name: event.currentTarget.value })} />
      <select aria-label={`Type of ${label.toLowerCase()}`} value={draft.type} disabled={!draft.name} onChange={(event) => onDraft({ ...draft, type: event.currentTarget.value as KeyType })}>
        {TYPES.map(([type, title]) => <option key={type} value={type}>{title}</option>)}
      </select>
    </span>
  );
}

/** Why no table can be made of this; null if one can. */
function faultOf(name: string, partition: KeyDraft, sort: KeyDraft, indexes: IndexDraft[], all: ListedTable[]): string | null {
  if (!NAME.test(name)) return "a name has 3 to 255 characters: a–z, A–Z, 0–9, _, - and .";
  if (all.some((each) => each.name === name)) return `there is a table ${name} already`;
  if (!partition.name) return "a table needs a partition key";
  if (partition.name === sort.name) return "partition key and sort key need different names";
  const types = new Map<string, KeyType>();
  for (const each of [partition, sort, ...indexes.flatMap((index) => [index.partition, index.sort])]) {
    if (each.name && (types.get(each.name) ?? each.type) !== each.type) return `${each.name} has two types`;
    types.set(each.name, each.type);
  }
  for (const each of indexes) {
    if (!NAME.test(each.name)) return `the index ${each.name} needs a name of 3 to 255 characters: a–z, A–Z, 0–9, _, - and .`;
    if (!each.partition.name) return `the index ${each.name} needs a partition key`;
    if (each.partition.name === each.sort.name) return `the keys of the index ${each.name} need different names`;
  }
  return new Set(indexes.map((each) => each.name)).size < indexes.length ? "two indexes have the same name" : null;
}

function requestOf(name: string, partition: KeyDraft, sort: KeyDraft, indexes: IndexDraft[], hasStream: boolean): Request {
  const schema = (one: KeyDraft, other: KeyDraft) => [
    { AttributeName: one.name, KeyType: "HASH" },
    ...(other.name ? [{ AttributeName: other.name, KeyType: "RANGE" }] : []),
  ];
  const keys = [partition, sort, ...indexes.flatMap((each) => [each.partition, each.sort])].filter((each) => each.name);
  const types = new Map(keys.map((each) => [each.name, each.type]));
  return {
    TableName: name,
    KeySchema: schema(partition, sort),
    AttributeDefinitions: [...types].map(([key, type]) => ({ AttributeName: key, AttributeType: type })),
    BillingMode: "PAY_PER_REQUEST",
    ...(indexes.length
      ? { GlobalSecondaryIndexes: indexes.map((each) => ({ IndexName: each.name, KeySchema: schema(each.partition, each.sort), Projection: { ProjectionType: "ALL" } })) }
      : {}),
    ...(hasStream ? { StreamSpecification: { StreamEnabled: true, StreamViewType: "NEW_AND_OLD_IMAGES" } } : {}),
  };
}

async function untilActive(name: string): Promise<void> {
  for (;;) {
    const { table } = await call<{ table: TableInfo | null }>("table", { table: name });
    if (table?.status === "ACTIVE") return;
    if (table === null) throw new CallError("ResourceNotFoundException", `The table ${name} is gone`);
    await new Promise((done) => setTimeout(done, AGAIN));
  }
}
