/** In the same item collection: which children and siblings can be added to an item, with what values, and the next number. */

import { execute, type Entity, type Item, type Pattern, type Request, type TableInfo } from "../api";
import { primaryKey } from "../query/view";
import { own } from "../values";
import { entitiesOf, type Form, type Values } from "./edit_calls";

export interface BesideIt {
  kind: Entity;
  values: Values;
  /** The text before the first component of the sort key that has no value yet. */
  prefix: string;
  /** Of a kind whose sort key has no component, there is one item in a collection. */
  isSingle: boolean;
}

/** The kinds whose items stand in the same item collection as an entity, with what its form gives them: the components of
 * the partition key, and those with which both sort keys begin, but for the last one of theirs. */
export function besideIt(table: TableInfo, entity: Entity, form: Form): BesideIt[] {
  const its = primaryOf(entity);
  return entitiesOf(table.name).flatMap((kind) => {
    const theirs = primaryOf(kind);
    if (!its || !theirs || partitionOf(table, theirs) !== partitionOf(table, its)) return [];
    const isSingle = !theirs.order.length;
    if (isSingle && (kind.name === entity.name || !table.keys.sort.length)) return [];
    const shared = sharedBy(table, theirs, its).slice(0, theirs.order.length - 1);
    const given = [...theirs.group.map((each, place) => [each.name, its.group[place]!.name]), ...shared];
    const values = Object.fromEntries(given.map(([name, from]) => [name!, form.values[from!] ?? null]));
    return [{ kind, isSingle, values, prefix: prefixOf(table, theirs, shared, form) }];
  });
}

/** Whether other items of a collection may belong to one of this kind. */
export function mayHaveBelow(table: TableInfo, entity: Entity): boolean {
  const its = primaryOf(entity);
  if (!its || table.keys.sort[0]?.type !== "S") return false;
  return entitiesOf(table.name).some((kind) => {
    const theirs = primaryOf(kind);
    if (!theirs || kind.name === entity.name || partitionOf(table, theirs) !== partitionOf(table, its)) return false;
    return theirs.order.length > its.order.length && sharedBy(table, theirs, its).length === its.order.length;
  });
}

/** The items that belong to one, and stay if it goes from its key: those whose keys begin with its own; for the single item of
 * its kind in a collection, all others. By their ids, at most `MANY`. Raises `CallError`. */
export async function itemsBelow(table: TableInfo, entity: Entity, form: Form, item: Item, signal: AbortSignal): Promise<Set<string>> {
  const its = primaryOf(entity);
  const sort = table.keys.sort[0];
  if (!its || sort?.type !== "S") return new Set();
  const idOf = (one: Item) => JSON.stringify(primaryKey(table, one));
  const of = async (prefix: string) => {
    const request = within(table, item, prefix);
    const names = { ...(request["ExpressionAttributeNames"] as Record<string, string>), "#s": sort.name };
    const given = { ...request, ExpressionAttributeNames: names, ProjectionExpression: "#p, #s", Limit: MANY };
    return ((await execute("Query", given, { signal })).response.Items ?? []).map(idOf);
  };
  if (!its.order.length) {
    const isAlone = besideIt(table, entity, form).length === 0;
    return new Set(isAlone ? [] : (await of("")).filter((each) => each !== idOf(item)));
  }
  const longer = besideIt(table, entity, form).filter(({ kind, prefix }) => {
    const shared = sharedBy(table, primaryOf(kind)!, its);
    return shared.length === its.order.length && primaryOf(kind)!.order.length > shared.length && prefix.startsWith(String(item[sort.name]!["S"]));
  });
  return new Set((await Promise.all(longer.map(({ prefix }) => of(prefix)))).flat());
}

export const MANY = 101;

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
export async function withNextNumber(table: TableInfo, { kind, values, prefix }: BesideIt, item: Item): Promise<Values> {
  const open = primaryOf(kind)!.order.filter((each) => !Object.hasOwn(values, each.name));
  const [last] = open;
  const field = kind.fields.find((each) => each.name === last?.name);
  // A number that alone finds an item by an index is not counted within the collection: the next one may be another's.
  const isFoundAlone = kind.patterns.some((each) => each.index !== null && each.group.length === 1 && each.group[0]!.name === last?.name);
  if (!last || !field || open.length > 1 || last.type !== "int" || isFoundAlone) return values;
  const request = { ...within(table, item, prefix), ScanIndexForward: last.descending, Limit: 1 };
  const found = (await execute("Query", request)).response.Items?.[0]?.[field.attribute]?.["N"];
  const next = found === undefined ? (field.input.min ?? "1") : String(BigInt(String(found)) + 1n);
  const isFree = field.input.max === undefined || Number(next) <= Number(field.input.max);
  return isFree ? { ...values, [field.name]: next } : values;
}

/** The Query of an item's collection, from the sort keys that begin with a text. */
function within(table: TableInfo, item: Item, prefix: string): Request {
  const [partition, sort] = [table.keys.partition[0]!, table.keys.sort[0]!];
  const request: Request = {
    TableName: table.name,
    KeyConditionExpression: "#p = :p",
    ExpressionAttributeNames: { "#p": partition.name },
    ExpressionAttributeValues: { ":p": item[partition.name]! },
    ReturnConsumedCapacity: "INDEXES",
  };
  if (sort.type === "S" && prefix) {
    request["KeyConditionExpression"] += " AND begins_with(#s, :s)";
    Object.assign(request["ExpressionAttributeNames"]!, { "#s": sort.name });
    Object.assign(request["ExpressionAttributeValues"]!, { ":s": { S: prefix } });
  }
  return request;
}

/** The components with which two sort keys begin, in pairs of their names: as long as both have the same texts and types. */
function sharedBy(table: TableInfo, theirs: Pattern, its: Pattern): [theirs: string, its: string][] {
  const sort = table.keys.sort[0]?.name ?? "";
  const typeOf = (pattern: Pattern, name: string) => pattern.order.find((each) => each.name === name)?.type;
  const pairs: [string, string][] = [];
  for (const [place, [text, component]] of (theirs.form[sort] ?? []).entries()) {
    const [otherText, other] = its.form[sort]?.[place] ?? [null, null];
    const isSame = component === null || other == null ? component === other && text === otherText : typeOf(theirs, component) === typeOf(its, other);
    if (!isSame) break;
    if (component !== null) pairs.push([component, other!]);
  }
  return pairs;
}

/** The text of a sort key before its first component that another item does not give. */
function prefixOf(table: TableInfo, pattern: Pattern, shared: [theirs: string, its: string][], form: Form): string {
  const sort = table.keys.sort[0]?.name ?? "";
  const [last, same] = shared.at(-1) ?? [null, null];
  const parts = form.keys.find((each) => each.index === null)?.parts[sort] ?? [];
  const given = same === null ? [] : parts.slice(0, parts.findIndex(([, component]) => component === same) + 1);
  const rest = (pattern.form[sort] ?? []).slice(last === null ? 0 : pattern.form[sort]!.findIndex(([, component]) => component === last) + 1);
  const end = rest.findIndex(([, component]) => component !== null);
  return [...given, ...rest.slice(0, end < 0 ? rest.length : end)].map(([text]) => text).join("");
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
