/** What is connected: the session, its tables, their models. */

import { call, type CallError, type Model, type Session, type TableInfo } from "./api";
import { Store } from "./store";

export const session = new Store<Session | null>(null);
export const tables = new Store<TableInfo[] | null>(null);
export const failure = new Store<CallError | null>(null);
export const models = new Store<Record<string, Model>>({});

export async function start(): Promise<void> {
  void call<Session>("session").then(
    (found) => session.set(found),
    (error: CallError) => failure.set(error),
  );
  await refreshTables();
}

export async function refreshTables(): Promise<void> {
  try {
    const found = await call<{ tables: TableInfo[] }>("tables");
    tables.set(found.tables);
    failure.set(null);
  } catch (error) {
    failure.set(error as CallError);
  }
}

const FEW = 100; // items; what is inferred of fewer may change with the next one

/** Counts change with every write; one table is asked for without the others. */
export async function refreshTable(name: string): Promise<void> {
  const { table } = await call<{ table: TableInfo | null }>("table", { table: name });
  const known = models.value[name];
  if (known && !known.loaded && (known.sampled ?? 0) < FEW && table?.items !== known.sampled) {
    asked.delete(name);
    loadModel(name);
  }
  tables.update((all) => {
    const others = (all ?? []).filter((each) => each.name !== name);
    const found = table === null ? others : [...others, table];
    return found.sort((one, other) => (one.name < other.name ? -1 : 1));
  });
}

const asked = new Set<string>();

/** Asks for the entities of a table, once. */
export function loadModel(table: string): void {
  if (asked.has(table)) return;
  asked.add(table);
  call<Model>("model", { table }).then(
    (found) => models.update((all) => ({ ...all, [table]: found })),
    () => asked.delete(table),
  );
}

export async function unlock(writable: boolean): Promise<void> {
  const answer = await call<{ writable: boolean }>("unlock", { writable });
  session.update((current) => current && { ...current, writable: answer.writable });
}
