/** The session (safe mode on or off), the list of tables with their counts, and their models; when each is read again. */

import { call, CallError, isDescribed, type Legend, type ListedTable, type Model, type Session, type TableInfo } from "./api";
import { learn } from "./collection/hues";
import { Store } from "./store";
import { own } from "./values";

export const session = new Store<Session | null>(null);
export const tables = new Store<ListedTable[] | null>(null);
/** Why the session or the tables could not be read, or read again. */
export const failure = new Store<CallError | null>(null);
export const models = new Store<Record<string, Model>>({});
/** Why a table has no model. */
export const modelFailures = new Store<Record<string, CallError>>({});

/** Reads the list of tables, and the session until there is one. */
export async function refreshTables(): Promise<void> {
  try {
    await Promise.all([session.value ? null : call<Session>("session").then((found) => session.set(found)), listTables()]);
    failure.set(null);
  } catch (error) {
    failure.set(error as CallError);
  }
}

async function listTables(): Promise<void> {
  const found = (await call<{ tables: ListedTable[] }>("tables")).tables;
  const known = new Map((tables.value ?? []).map((each) => [each.name, each]));
  tables.set(found.map((each) => (isDescribed(each) ? each : (known.get(each.name) ?? each))));
  const names = new Set(found.map((each) => each.name));
  for (const gone of [...asked].filter((each) => !names.has(each))) forgetModel(gone);
}

const FEW = 100; // items; what is inferred of fewer may change with the next one

let ofTable: CallError | null = null; // why one table could not be read

/** Counts change with every write; one table is asked for without the others. */
export async function refreshTable(name: string): Promise<void> {
  let table: TableInfo | null;
  try {
    ({ table } = await call<{ table: TableInfo | null }>("table", { table: name }));
  } catch (error) {
    failure.set((ofTable = error as CallError));
    return;
  }
  if (failure.value === ofTable) failure.set(null);
  const known = own(models.value, name);
  if (table === null) forgetModel(name);
  else if (known && !known.loaded && (known.sampled ?? 0) < FEW && table.items !== known.sampled) {
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
  modelFailures.update(({ [table]: _, ...others }) => others);
  call<Model>("model", { table }).then(
    (found) => {
      if (!asked.has(table)) return;
      if (found.model) learn(table, legendOf(found.model));
      models.update((all) => ({ ...all, [table]: found }));
    },
    (error: CallError) => {
      asked.delete(table);
      modelFailures.update((all) => ({ ...all, [table]: error }));
    },
  );
}

/** The names of a model that have colours, as they also come with items. */
function legendOf({ entities }: NonNullable<Model["model"]>): Pick<Legend, "entities" | "components"> {
  const components = entities.flatMap((each) => each.patterns).flatMap((each) => [...each.group, ...each.order]);
  return { entities: entities.map((each) => each.name), components: components.map((each) => each.name) };
}

/** A new version of a module has other entities. */
export function forgetModels(): void {
  asked.clear();
  models.set({});
  modelFailures.set({});
}

/** Another table may get the name of one that is gone. */
function forgetModel(table: string): void {
  asked.delete(table);
  models.update(({ [table]: _, ...others }) => others);
}

export async function unlock(writable: boolean): Promise<void> {
  const answer = await call<{ writable: boolean }>("unlock", { writable });
  session.update((current) => current && { ...current, writable: answer.writable });
}
