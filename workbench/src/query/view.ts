/** Builds each Query and Scan request of a view: its filter, key range and order, as the address of the page says them. */

import type { AttributeValue, IndexInfo, Item, KeyAttribute, Keys, Request, TableInfo } from "../api";
import { typed, typeOf, untyped } from "../values";

export type SortOperator = "=" | "<" | "<=" | ">" | ">=" | "between" | "begins_with";
export type FilterOperator =
  | "="
  | "<>"
  | "<"
  | "<="
  | ">"
  | ">="
  | "between"
  | "begins_with"
  | "contains"
  | "exists"
  | "missing";

export interface Filter {
  attribute: string;
  operator: FilterOperator;
  values: AttributeValue[];
}

export interface View {
  table: TableInfo;
  index: IndexInfo | null;
  /** The partition's values; null for a scan. */
  partition: AttributeValue[] | null;
  sort: { operator: SortOperator; values: AttributeValue[] } | null;
  filters: Filter[];
  descending: boolean;
  /** The sort key to begin at. What is before it can still be reached by scrolling up. */
  start: AttributeValue | null;
}

export const SORT_OPERATORS: SortOperator[] = ["=", "<", "<=", ">", ">=", "between", "begins_with"];
export const FILTER_OPERATORS: FilterOperator[] = [
  "=", "<>", "<", "<=", ">", ">=", "between", "begins_with", "contains", "exists", "missing",
];

export function valuesOf(operator: SortOperator | FilterOperator): number {
  return operator === "between" ? 2 : operator === "exists" || operator === "missing" ? 0 : 1;
}

export function keysOf(view: Pick<View, "table" | "index">): Keys {
  return (view.index ?? view.table).keys;
}

/** The names of all key attributes of a table and its indexes. */
export function keyNames(table: TableInfo): string[] {
  const all = [table, ...table.indexes].flatMap((each) => [...each.keys.partition, ...each.keys.sort]);
  return [...new Set(all.map((each) => each.name))];
}

/** The key of an item in a view: of the table, and of the index. A request can begin after it. */
export function positionOf(view: View, item: Item): Item {
  const attributes = [...view.table.keys.partition, ...view.table.keys.sort];
  if (view.index) attributes.push(...view.index.keys.partition, ...view.index.keys.sort);
  const found = attributes.filter((each) => Object.hasOwn(item, each.name)).map((each) => [each.name, item[each.name]!]);
  return Object.fromEntries(found) as Item;
}

export function primaryKey(table: TableInfo, item: Item): Item {
  const names = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);
  return Object.fromEntries(names.filter((name) => Object.hasOwn(item, name)).map((name) => [name, item[name]!])) as Item;
}

// In the address

export function toQuery(view: View): Record<string, string> {
  const query: Record<string, string> = {};
  if (view.index) query["index"] = view.index.name;
  if (view.partition) query["pk"] = JSON.stringify(view.partition.map(typed));
  if (view.sort) query["sk"] = JSON.stringify([view.sort.operator, ...view.sort.values.map(typed)]);
  if (view.filters.length)
    query["filter"] = JSON.stringify(
      view.filters.map((each) => [each.attribute, each.operator, ...each.values.map((value) => JSON.stringify(value))]),
    );
  if (view.descending) query["order"] = "desc";
  if (view.start) query["at"] = typed(view.start);
  return query;
}

export function fromQuery(table: TableInfo, query: Record<string, string>): View {
  const index = table.indexes.find((each) => each.name === query["index"]) ?? null;
  const keys = (index ?? table).keys;
  const partition = strings(query["pk"]).map(untyped);
  const [operator, ...values] = strings(query["sk"]);
  const bounds = values.map(untyped);
  const isWhole = partition.length === keys.partition.length && partition.every(Boolean);
  const isRange =
    isWhole &&
    SORT_OPERATORS.includes(operator as SortOperator) &&
    bounds.length === valuesOf(operator as SortOperator) &&
    bounds.every(Boolean);
  return {
    table,
    index,
    partition: isWhole ? (partition as AttributeValue[]) : null,
    sort: isRange ? { operator: operator as SortOperator, values: bounds as AttributeValue[] } : null,
    filters: filtersOf(query["filter"]),
    descending: isWhole && query["order"] === "desc",
    start: isWhole ? untyped(query["at"]) : null,
  };
}

function strings(text: string | undefined): string[] {
  const found = parsed(text);
  return Array.isArray(found) ? found.filter((each) => typeof each === "string") : [];
}

function filtersOf(text: string | undefined): Filter[] {
  const found = parsed(text);
  if (!Array.isArray(found)) return [];
  return found
    .filter((each) => Array.isArray(each) && FILTER_OPERATORS.includes(each[1] as FilterOperator))
    .map(([attribute, operator, ...values]) => ({
      attribute: String(attribute),
      operator: operator as FilterOperator,
      values: values.map((value: string) => parsed(value)).filter(isValue),
    }))
    .filter((each) => each.values.length === valuesOf(each.operator));
}

function parsed(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}

function isValue(value: unknown): value is AttributeValue {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Requests

export interface Reading {
  /** Items of a page. */
  limit: number;
  after?: Item | null;
  /** Against the direction of the view. */
  backwards?: boolean;
  /** Without the range of the sort key and without filters: what is around the range. */
  whole?: boolean;
}

export function actionOf(view: View): "Query" | "Scan" {
  return view.partition ? "Query" : "Scan";
}

/** The request for a page of a view. */
export function requestOf(view: View, reading: Reading): Request {
  const writer = new Writer();
  const request: Request = { TableName: view.table.name };
  if (view.index) request["IndexName"] = view.index.name;
  const forwards = !view.descending !== Boolean(reading.backwards);
  if (view.partition) {
    const keys = keysOf(view);
    const conditions = keys.partition.map((each, place) =>
      writer.compare(each.name, "=", [view.partition![place]!]),
    );
    conditions.push(...sortConditions(view, reading, keys.sort[0], writer));
    request["KeyConditionExpression"] = conditions.join(" AND ");
    if (!forwards) request["ScanIndexForward"] = false;
  }
  if (view.filters.length && !reading.whole)
    request["FilterExpression"] = view.filters
      .map((each) => writer.compare(each.attribute, each.operator, each.values))
      .join(" AND ");
  Object.assign(request, writer.members());
  if (reading.limit) request["Limit"] = reading.limit;
  if (reading.after) request["ExclusiveStartKey"] = reading.after;
  request["ReturnConsumedCapacity"] = "INDEXES";
  return request;
}

/** A sort key takes one condition, so a start is only given where there is no range. */
function sortConditions(view: View, reading: Reading, key: KeyAttribute | undefined, writer: Writer): string[] {
  if (!key || reading.whole) return [];
  if (view.sort) return [writer.compare(key.name, view.sort.operator, view.sort.values)];
  if (view.start && !reading.backwards && !reading.after)
    return [writer.compare(key.name, view.descending ? "<=" : ">=", [view.start])];
  return [];
}

/** Writes expressions: every name and every value has a placeholder, so none can be mistaken for syntax. */
class Writer {
  private names: Record<string, string> = {};
  private values: Record<string, AttributeValue> = {};

  compare(attribute: string, operator: SortOperator | FilterOperator, values: AttributeValue[]): string {
    const name = this.name(attribute);
    const texts = values.map((value) => this.value(value));
    switch (operator) {
      case "between":
        return `${name} BETWEEN ${texts[0]} AND ${texts[1]}`;
      case "begins_with":
      case "contains":
        return `${operator}(${name}, ${texts[0]})`;
      case "exists":
        return `attribute_exists(${name})`;
      case "missing":
        return `attribute_not_exists(${name})`;
      default:
        return `${name} ${operator} ${texts[0]}`;
    }
  }

  members(): Request {
    const members: Request = {};
    if (Object.keys(this.names).length) members["ExpressionAttributeNames"] = this.names;
    if (Object.keys(this.values).length) members["ExpressionAttributeValues"] = this.values;
    return members;
  }

  /** The placeholder of a path. Dots separate members; a name with other characters is one member. */
  private name(path: string): string {
    return path
      .split(".")
      .map((part) => {
        const known = Object.entries(this.names).find(([, name]) => name === part);
        if (known) return known[0];
        const placeholder = `#n${Object.keys(this.names).length}`;
        this.names[placeholder] = part;
        return placeholder;
      })
      .join(".");
  }

  private value(value: AttributeValue): string {
    const placeholder = `:v${Object.keys(this.values).length}`;
    this.values[placeholder] = value;
    return placeholder;
  }
}

/** The request in words: `pk = REPO#a and sk begins_with ISSUE#`; of an access pattern, what was typed into its form. */
export function queryInWords(view: View, typed: { pattern: string; conditions: string[] } | null = null): string {
  const key = typed?.pattern ?? view.index?.name;
  const where = key === undefined ? view.table.name : `${view.table.name} · ${key}`;
  const conditions = typed ? [...typed.conditions] : keyInWords(view);
  for (const each of view.filters)
    conditions.push(`${each.attribute} ${each.operator} ${each.values.map(plain).join(" and ")}`.trim());
  return `${where}: ${conditions.length ? conditions.join(", ") : "all items"}${view.descending ? ", descending" : ""}`;
}

function keyInWords(view: View): string[] {
  const keys = keysOf(view);
  const conditions = (view.partition ?? []).map((value, place) => `${keys.partition[place]?.name} = ${plain(value)}`);
  if (view.sort)
    conditions.push(`${keys.sort[0]?.name} ${view.sort.operator} ${view.sort.values.map(plain).join(" and ")}`);
  return conditions;
}

function plain(value: AttributeValue): string {
  return String(value[typeOf(value)]);
}
