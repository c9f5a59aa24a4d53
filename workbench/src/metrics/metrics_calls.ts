/** Polls /metrics, /hotkeys and /queries every two seconds while they are shown; computes rates and percentiles. */

import { call, CallError, type Request, type Session } from "../api";
import { brief } from "../charts/scale";
import { Store } from "../store";

/** A reading: each series by its name and labels, as Prometheus writes them. */
export interface Reading {
  at: number;
  values: Map<string, number>;
}
export interface HotKey {
  table: string;
  key: string;
  reads: number;
  writes: number;
}
export interface HotKeys {
  seconds: number;
  requests: number;
  looked_at: number;
  keys: HotKey[];
}

export const EVERY = 2_000; // milliseconds
const KEPT = 150; // readings: five minutes

/** They stay while other views are shown, so that a look elsewhere does not lose them. */
export const readings = new Store<Reading[]>([]);

/** Why there is nothing to show. */
export class NoPage extends Error {}

async function page(session: Session, name: "metrics" | "hotkeys" | "queries", signal: AbortSignal): Promise<string> {
  if (!session.endpoint) {
    const { text, reason } = await call<{ text: string | null; reason: string }>("server_page", { name }, signal);
    if (text === null) throw new NoPage(reason);
    return text;
  }
  let response: Response;
  try {
    response = await fetch(`/${name}`, { signal });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new CallError("Disconnected", "The server does not answer. Is it still running?");
  }
  if (!response.ok) throw new NoPage(`This server shows /${name} to clients on its own machine only.`);
  return response.text();
}

export async function readMetrics(session: Session, signal: AbortSignal): Promise<void> {
  const values = parsed(await page(session, "metrics", signal));
  readings.update((all) => [...all, { at: Date.now(), values }].slice(-KEPT));
}

export async function readHotKeys(session: Session, signal: AbortSignal): Promise<HotKeys> {
  return JSON.parse(await page(session, "hotkeys", signal)) as HotKeys;
}

/** Requests of one shape, and what they have cost since the server started. */
export interface ServedQuery {
  action: string;
  table: string;
  index: string;
  key: string;
  filter: string;
  projection: string;
  condition: string;
  update: string;
  statement: string;
  /** What a batch or transaction does. */
  parts: string;
  calls: number;
  units: number;
  read: number;
  returned: number;
  p99: number;
  request: Request | null;
  /** Whether it is of this page, which counts its own. */
  isOwn?: boolean;
}
export interface ServedQueries {
  seconds: number;
  queries: ServedQuery[];
}

export async function readQueries(session: Session, signal: AbortSignal): Promise<ServedQueries> {
  return JSON.parse(await page(session, "queries", signal)) as ServedQueries;
}

export function duration(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds < 0.001) return `${brief(seconds * 1e6)} µs`;
  return seconds < 1 ? `${brief(seconds * 1e3)} ms` : `${brief(seconds)} s`;
}

export function parsed(text: string): Map<string, number> {
  const values = new Map<string, number>();
  for (const line of text.split("\n")) {
    const end = line.lastIndexOf(" ");
    if (end > 0 && !line.startsWith("#")) values.set(line.slice(0, end), Number(line.slice(end + 1)));
  }
  return values;
}

const sums = new WeakMap<Reading, Map<string, Map<string, number>>>();

/** The value of each action in a series with the label `action`. A reading is gone through once for each name. */
export function byAction(reading: Reading, name: string): Map<string, number> {
  let known = sums.get(reading);
  if (!known) sums.set(reading, (known = new Map()));
  let found = known.get(name);
  if (!found) known.set(name, (found = summed(reading, name)));
  return found;
}

function summed(reading: Reading, name: string): Map<string, number> {
  const found = new Map<string, number>();
  for (const [key, value] of reading.values) {
    const match = key.startsWith(`${name}{`) && /action="([^"]*)"/.exec(key);
    if (match) found.set(match[1]!, (found.get(match[1]!) ?? 0) + value);
  }
  return found;
}

export interface Sample {
  labels: Record<string, string>;
  value: number;
}

/** The values of a series with their labels. Names of tables and indexes need no escapes. */
export function samples(reading: Reading, name: string): Sample[] {
  const found: Sample[] = [];
  for (const [key, value] of reading.values)
    if (key.startsWith(`${name}{`))
      found.push({ labels: Object.fromEntries([...key.matchAll(/(\w+)="([^"]*)"/g)].map((each) => [each[1]!, each[2]!])), value });
  return found;
}

/** What a table, or one of its indexes, has consumed, and how far the readers of its stream are behind. */
export interface TableUse {
  region: string;
  table: string;
  index: string;
  read: number;
  written: number;
  lag: number | null; // seconds, of the shard that is furthest behind
}

export const OTHERS = "(other)"; // stands for tables without a series of their own, and for those that are deleted

/** Each table and index that was used since the server began, the most used first. */
export function tableUses(reading: Reading): TableUse[] {
  const uses = new Map<string, TableUse>();
  const of = (region = "", table = "", index = "") => {
    const key = `${region}/${table}/${index}`;
    const known = uses.get(key) ?? { region, table, index, read: 0, written: 0, lag: null };
    uses.set(key, known);
    return known;
  };
  for (const { labels, value } of samples(reading, "isotone_consumed_read_units_total")) of(labels.region, labels.table, labels.index).read = value;
  for (const { labels, value } of samples(reading, "isotone_consumed_write_units_total")) of(labels.region, labels.table, labels.index).written = value;
  for (const { labels, value } of samples(reading, "isotone_stream_lag_seconds")) {
    const use = of(labels.region, labels.table);
    use.lag = Math.max(use.lag ?? 0, value);
  }
  return [...uses.values()].sort((one, other) => other.read + other.written - one.read - one.written);
}

/** By how much a sum grew in each second before a reading; null for the first one. A server that began again counts from 0. */
export function rates(all: Reading[], value: (reading: Reading) => number): (number | null)[] {
  return all.map((each, place) => {
    const before = all[place - 1];
    if (!before) return null;
    return Math.max(0, value(each) - value(before)) / (Math.max(1, each.at - before.at) / 1000);
  });
}

/** A histogram's counts up to each bound, of one action or of all, between two readings. */
export function histogram(reading: Reading, before: Reading | undefined, name: string, action?: string): [bound: number, count: number][] {
  const sums = new Map<number, number>();
  const add = (from: Reading, sign: number) => {
    for (const [key, value] of from.values) {
      if (!key.startsWith(`${name}_bucket{`) || (action !== undefined && !key.includes(`action="${action}"`))) continue;
      const bound = Number(/le="([^"]*)"/.exec(key)![1]!.replace("+Inf", "Infinity"));
      sums.set(bound, (sums.get(bound) ?? 0) + sign * value);
    }
  };
  add(reading, 1);
  if (before) add(before, -1);
  const sorted = [...sums].sort(([one], [other]) => one - other);
  return sorted.map(([bound, below], place) => [bound, Math.max(0, below - (sorted[place - 1]?.[1] ?? 0))]);
}

const WINDOW = 5; // readings: ten seconds
const recent = new WeakMap<Reading, { before: Reading | undefined; buckets: [number, number][] }>();

/** The histogram of the ten seconds before each reading; those that were made before are kept. */
export function recentHistograms(all: Reading[], name: string): [bound: number, count: number][][] {
  return all.map((each, place) => {
    const before = all[Math.max(0, place - WINDOW)];
    const known = recent.get(each);
    if (known && known.before === before) return known.buckets;
    const buckets = place ? histogram(each, before, name) : [];
    recent.set(each, { before, buckets });
    return buckets;
  });
}

/** The value below which a share of the histogram lies, as Prometheus estimates it; null without values. */
export function quantile(buckets: [bound: number, count: number][], share: number): number | null {
  const all = buckets.reduce((sum, [, count]) => sum + count, 0);
  if (!all) return null;
  let below = 0;
  let lower = 0;
  for (const [bound, count] of buckets) {
    if (below + count >= all * share) return bound === Infinity ? lower : lower + ((bound - lower) * (all * share - below)) / count;
    below += count;
    lower = bound;
  }
  return lower;
}
