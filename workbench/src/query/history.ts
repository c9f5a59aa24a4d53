/** Recent and saved queries: kept in the browser, or the saved ones in the team's file (`--queries`).
 *
 * The saved ones are in a file of the team instead, where the workbench was started with one. */

import { call } from "../api";
import { session } from "../session";
import { remembered, Store } from "../store";

export interface Kept {
  /** The address of the view. */
  address: string;
  words: string;
  /** What is asked for, by the keys as they are stored; if left out, the words. */
  asks?: string;
  name?: string;
}

const MOST = 60;

const isList = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each?.address === "string");

export const history = remembered<Kept[]>("history", [], isList);
const own = remembered<Kept[]>("saved", [], isList);
const ofTeam = new Store<Kept[]>([]);

/** The name of the team's file; null if each browser keeps its own. */
export function teamFile(): string | null {
  return session.value?.queries ?? null;
}

/** Where the saved queries are. */
export function saved(): Store<Kept[]> {
  return teamFile() === null ? own : ofTeam;
}

/** Reads the file of the team again. Raises `CallError`. */
export async function readSaved(): Promise<void> {
  if (teamFile() !== null) await inFile("queries", {});
}

export function remember(address: string, words: string, asks = words): void {
  // One that asks for the same is the same, also if it was filled in otherwise.
  const others = (all: Kept[]) => all.filter((each) => each.address !== address && (each.asks ?? each.words) !== asks);
  history.update((all) => [{ address, words, asks }, ...others(all)].slice(0, MOST));
}

export async function save(address: string, words: string, name: string): Promise<void> {
  if (teamFile() !== null) return inFile("save_query", { name, words, address });
  own.update((all) => [{ address, words, name }, ...all.filter((each) => each.name !== name)]);
}

export async function forget(name: string): Promise<void> {
  if (teamFile() !== null) return inFile("forget_query", { name });
  own.update((all) => all.filter((each) => each.name !== name));
}

/** A change of the file, and what is in it then. An address that is none of a view is left out. */
async function inFile(name: string, given: object): Promise<void> {
  const { queries } = await call<{ queries: Kept[] }>(name, given);
  ofTeam.set(queries.filter((each) => each.address.startsWith("#/")));
}
