/** What can be made beside an item, in its collection: the kinds, the values that the item gives them, the next number. */

import { execute, type Entity, type Item, type Pattern, type Request, type TableInfo } from "../api";
import { own } from "../values";
import { entitiesOf, type Values } from "./edit_calls";

export interface BesideIt {
  kind: Entity;
  values: Values;
  /** Of a kind whose sort key has no component, there is one item in a collection. */
  isSingle: boolean;
}

/** The kinds whose items stand in the same item collection as those of an entity. */
export function besideIt(table: TableInfo, entity: Entity, values: Values): BesideIt[] {
  const its = primaryOf(entity);
  return entitiesOf(table.name).flatMap((kind) => {
    const theirs = primaryOf(kind);
    if (!its || !theirs || partitionOf(table, theirs) !== partitionOf(table, its)) return [];
    const isSingle = !theirs.order.length;
    if (isSingle && (kind.name === entity.name || !table.keys.sort.length)) return [];
    return [{ kind, isSingle, values: Object.fromEntries(theirs.group.map((each, place) => [each.name, values[its.group[place]!.name] ?? null])) }];
  });
}

/** Those that can be made: all but the single ones that are there already. Raises `CallError`. */
export async function missing(table: TableInfo, all: BesideIt[], item: Item, signal: AbortSignal): Promise<BesideIt[]> {
  const areThere = await Promise.all(all.map((each) => (each.isSingle ? isThere(table, each.kind, item, signal) : false)));
  return all.filter((_, place) => !areThere[place]);
}

async function isThere(table: TableInfo, kind: Entity, item: Item, signal: AbortSignal): Promise<boolean> {
  const [partition, sort] = [table.keys.partition[0]!.name, table.keys.sort[0]!.name];
  const Key = { [partition]: item[partition]!, [sort]: { S: literalsOf(primaryOf(kind)!, sort) } };
  const request = { TableName: table.name, Key, ProjectionExpression: "#p", ExpressionAttributeNames: { "#p": partition }, ReturnConsumedCapacity: "INDEXES" };
  return (await execute("GetItem", request, { signal })).response.Item !== undefined;
}

/** The values of a new item beside one; with the next number, if whole numbers tell those of its kind apart. Raises `CallError`. */
export async function withNextNumber(table: TableInfo, { kind, values }: BesideIt, item: Item): Promise<Values> {
  const theirs = primaryOf(kind)!;
  const [last] = theirs.order;
  const field = kind.fields.find((each) => each.name === last?.name);
  if (!last || !field || theirs.order.length > 1 || last.type !== "int") return values;
  const [partition, sort] = [table.keys.partition[0]!, table.keys.sort[0]!];
  const request: Request = {
    TableName: table.name,
    KeyConditionExpression: "#p = :p",
    ExpressionAttributeNames: { "#p": partition.name },
    ExpressionAttributeValues: { ":p": item[partition.name]! },
    ScanIndexForward: last.descending,
    Limit: 1,
    ReturnConsumedCapacity: "INDEXES",
  };
  const prefix = literalsOf(theirs, sort.name);
  if (sort.type === "S" && prefix) {
    request["KeyConditionExpression"] += " AND begins_with(#s, :s)";
    Object.assign(request["ExpressionAttributeNames"]!, { "#s": sort.name });
    Object.assign(request["ExpressionAttributeValues"]!, { ":s": { S: prefix } });
  }
  const found = (await execute("Query", request)).response.Items?.[0]?.[field.attribute]?.["N"];
  const next = found === undefined ? (field.input.min ?? "1") : String(BigInt(String(found)) + 1n);
  const isFree = field.input.max === undefined || Number(next) <= Number(field.input.max);
  return isFree ? { ...values, [field.name]: next } : values;
}

function primaryOf(entity: Entity): Pattern | undefined {
  return entity.patterns.find((each) => each.index === null);
}

/** The text of a key attribute before its first component. */
function literalsOf(pattern: Pattern, attribute: string): string {
  const parts = pattern.form[attribute] ?? [];
  const first = parts.findIndex(([, component]) => component !== null);
  return parts.slice(0, first < 0 ? parts.length : first).map(([text]) => text).join("");
}

/** The form of the partition key, whatever its components are called. */
function partitionOf(table: TableInfo, pattern: Pattern): string {
  const parts = table.keys.partition.flatMap((each) => own(pattern.form, each.name) ?? []);
  return JSON.stringify([pattern.group.length, parts.map(([text, component]) => (component === null ? text : null))]);
}
