/** Changes of raw items: each on the condition that the item is still as it was read, and each with its undo. */

import { execute, type Item, type Request, type TableInfo } from "../api";
import { primaryKey } from "../query/view";
import { own, same } from "../values";

export interface Change {
  table: TableInfo;
  /** What was read; null for a new item. */
  before: Item | null;
  /** What is wanted; null to delete it. */
  after: Item | null;
}

export interface Sent {
  action: string;
  request: Request;
}

export function isKeyChanged(change: Change): boolean {
  if (!change.before || !change.after) return false;
  return JSON.stringify(primaryKey(change.table, change.before)) !== JSON.stringify(primaryKey(change.table, change.after));
}

/** The attributes that differ after a change of an item, without its key. */
export function changedNames({ table, before, after }: Change): string[] {
  const key = primaryKey(table, before!);
  const names = new Set([...Object.keys(before!), ...Object.keys(after!)]);
  return [...names].filter((each) => !Object.hasOwn(key, each) && !same(own(before!, each), own(after!, each)));
}

/** The request for a change; null if nothing changes. */
export function requestOf(change: Change): Sent | null {
  const { table, before, after } = change;
  const name = table.keys.partition[0]!.name;
  if (!before && after) {
    const request = { TableName: table.name, Item: after };
    return { action: "PutItem", request: { ...request, ...conditions([["attribute_not_exists", name]]) } };
  }
  if (!before) return null;
  const key = primaryKey(table, before);
  if (!after) {
    const unchanged = Object.keys(before).filter((each) => !Object.hasOwn(key, each)).slice(0, 90);
    const request = { TableName: table.name, Key: key };
    const tests: Test[] = [["attribute_exists", name], ...unchanged.map((each): Test => ["=", each, before[each]!])];
    return { action: "DeleteItem", request: { ...request, ...conditions(tests), ReturnValues: "ALL_OLD" } };
  }
  const changed = changedNames(change);
  if (!changed.length) return null;
  const tests: Test[] = [["attribute_exists", name]];
  for (const each of changed) {
    const value = own(before, each);
    tests.push(value ? ["=", each, value] : ["attribute_not_exists", each]);
  }
  const made = conditions(tests);
  const attributes = made["ExpressionAttributeNames"] as Record<string, string>;
  const values = (made["ExpressionAttributeValues"] ?? {}) as Item;
  const set: string[] = [];
  const remove: string[] = [];
  for (const each of changed) {
    const placeholder = Object.keys(attributes).find((one) => attributes[one] === each)!;
    const next = own(after, each);
    if (next) {
      const value = `:n${set.length}`;
      values[value] = next;
      set.push(`${placeholder} = ${value}`);
    } else remove.push(placeholder);
  }
  const update = [set.length ? `SET ${set.join(", ")}` : "", remove.length ? `REMOVE ${remove.join(", ")}` : ""];
  const request: Request = { TableName: table.name, Key: key, UpdateExpression: update.join(" ").trim(), ...made };
  if (Object.keys(values).length) request["ExpressionAttributeValues"] = values;
  return { action: "UpdateItem", request: { ...request, ReturnConsumedCapacity: "INDEXES" } };
}

type Test = [operator: string, name: string, value?: Item[string]];

function conditions(tests: Test[]): Request {
  const names: Record<string, string> = {};
  const values: Item = {};
  const texts = tests.map(([operator, name, value], place) => {
    const known = Object.keys(names).find((each) => names[each] === name);
    const placeholder = known ?? `#c${place}`;
    names[placeholder] = name;
    if (!value) return `${operator}(${placeholder})`;
    values[`:c${place}`] = value;
    return `${placeholder} ${operator} :c${place}`;
  });
  const made: Request = { ConditionExpression: texts.join(" AND "), ExpressionAttributeNames: names };
  if (Object.keys(values).length) made["ExpressionAttributeValues"] = values;
  return made;
}

export function undoOf({ table, before, after }: Change): Change {
  return { table, before: after, after: before };
}

/** Makes a change, and returns it with the whole item that was deleted: an index may have shown a part of it.
 *
 * Raises `CallError`: `ConditionalCheckFailedException` if the item was changed meanwhile. */
export async function make(change: Change): Promise<Change> {
  const sent = requestOf(change);
  if (!sent) return change;
  const { response } = await execute(sent.action, sent.request);
  return change.after ? change : { ...change, before: response.Attributes ?? change.before };
}

/** Makes many changes, a few at a time; those that fail do not stop the others. */
export function makeAll(changes: Change[], progress: (done: number) => void): Promise<{ made: Change[]; failed: [Change, Error][] }> {
  return forAll(changes, make, progress);
}

/** Does something with many, a few at a time: what came of each, and those that failed. */
export async function forAll<T, R>(all: T[], act: (one: T) => Promise<R>, progress: (done: number) => void): Promise<{ made: R[]; failed: [T, Error][] }> {
  const made: R[] = [];
  const failed: [T, Error][] = [];
  const waiting = [...all];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        made.push(await act(next));
      } catch (error) {
        failed.push([next, error as Error]);
      }
      progress(made.length + failed.length);
    }
  };
  await Promise.all(Array.from({ length: 6 }, work));
  return { made, failed };
}
