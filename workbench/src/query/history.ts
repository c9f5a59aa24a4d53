/** The queries of this browser: those that were run, and those that were saved under a name. */

import { remembered } from "../store";

export interface Kept {
  /** The address of the view. */
  address: string;
  words: string;
  name?: string;
}

const MOST = 60;

const isList = (value: unknown) => Array.isArray(value) && value.every((each) => typeof each?.address === "string");

export const history = remembered<Kept[]>("history", [], isList);
export const saved = remembered<Kept[]>("saved", [], isList);

export function remember(address: string, words: string): void {
  history.update((all) => [{ address, words }, ...all.filter((each) => each.address !== address)].slice(0, MOST));
}

export function save(address: string, words: string, name: string): void {
  saved.update((all) => [{ address, words, name }, ...all.filter((each) => each.name !== name)]);
}

export function forget(name: string): void {
  saved.update((all) => all.filter((each) => each.name !== name));
}
