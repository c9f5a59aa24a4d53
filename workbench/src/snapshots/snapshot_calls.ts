/** The calls about snapshots (`isotone/workbench/snapshots.py`), with their types. */

import { call, CallError, type Item } from "../api";
import { Store } from "../store";

const AGAIN = 300; // milliseconds between two looks at a job

export interface Job {
  state: "waiting" | "running" | "done" | "failed" | "stopped";
  fault: string;
  items: number;
  of_items: number;
  share: number;
  seconds_left: number | null;
  units: number;
}
export interface Taking extends Job {
  id: string;
  name: string;
  table: string;
}
export interface Snapshot {
  id: string;
  name: string;
  began: number;
  ended: number;
  /** Whether all of it is of one moment. */
  moment: boolean;
  /** The database of which it was taken. */
  target: string;
  /** Whether that is another one than the page shows. */
  foreign: boolean;
  /** The account of its tables. */
  account: string;
  file: string;
  bytes: number;
  tables: { name: string; items: number; bytes: number }[];
}
export interface Snapshots {
  snapshots: Snapshot[];
  unreadable: string[];
  moment: boolean;
  taking: Taking | null;
  place: { path: string; temporary: boolean; bytes: number; free: number };
}
export type Kind = "added" | "removed" | "changed";
export interface Comparison extends Job {
  id: number;
  table: string;
  from: string;
  to: string;
  at: number;
  /** The table does not exist any more. */
  gone: boolean;
  /** How the definitions differ: indexes, expiry. */
  notes: string[];
  keys: string[];
  counts: Record<Kind | "all" | "same" | "before" | "after", number> | null;
  attributes: [name: string, items: number][];
}
/** The type of a value, and its beginning as text. */
export type Short = [type: string, text: string] | null;
export interface Row {
  number: number;
  kind: Kind;
  key: Item;
  attributes: [name: string, before: Short, after: Short][];
  more: number;
}
export interface Difference {
  number: number;
  kind: Kind;
  key: Item;
  before: Item | null;
  after: Item | null;
  changed: string[];
}
export interface PutBack extends Job {
  undo: boolean;
  written: number;
  refused: number;
  refused_first: [number: number, key: string][];
  notes: string[];
}

/** Which items are put back: some by their numbers, or a list of them. */
export type What = { numbers: number[] } | { list: string };
/** What was put back last, by table: it can be undone as long as the page is open. */
export const lastPutBack = new Store<ReadonlyMap<string, { id: number; what: What; written: number }>>(new Map());
/** What is being put back, by table: it goes on while other views are shown. */
export const puttingBack = new Store<ReadonlyMap<string, { id: number; job: PutBack }>>(new Map());

/** A map with another value; null: without it. */
export function changed<V>(all: ReadonlyMap<string, V>, name: string, value: V | null): ReadonlyMap<string, V> {
  const next = new Map(all);
  if (value === null) next.delete(name);
  else next.set(name, value);
  return next;
}

export const NOW = "now";

export function listSnapshots(): Promise<Snapshots> {
  return call<Snapshots>("snapshots");
}

/** Asks again until a job is over; `watch` gets each answer. */
export async function ended<T extends Job>(first: T, again: () => Promise<T | null>, watch: (now: T) => void): Promise<T> {
  let now = first;
  watch(now);
  while (now.state === "running") {
    await new Promise((done) => setTimeout(done, AGAIN));
    const next = await again();
    if (!next) throw new CallError("Ended", "The workbench was started again, or the snapshot was deleted meanwhile.");
    now = next;
    watch(now);
  }
  return now;
}

/** The name of a snapshot, or its time if it has none. */
export function titleOf(snapshot: Snapshot): string {
  return snapshot.name || timeOf(snapshot.began);
}

export function timeOf(seconds: number): string {
  const then = new Date(seconds * 1000);
  const options: Intl.DateTimeFormatOptions = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" };
  if (then.getFullYear() !== new Date().getFullYear()) options.year = "numeric";
  return then.toLocaleString("en-GB", options);
}

/** How long ago, in words. */
export function agoOf(seconds: number): string {
  const minutes = Math.round((Date.now() / 1000 - seconds) / 60);
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${minutes} min ago`;
  if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h ago`;
  return `${Math.round(minutes / 1440)} days ago`;
}
