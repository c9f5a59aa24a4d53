/** The calls of the Python side (`isotone/workbench/calls.py`), with their types; notices that it does not answer. */

import { noteRequest } from "./queries/own_queries";
import { Store } from "./store";

export type AttributeType = "S" | "N" | "B" | "BOOL" | "NULL" | "SS" | "NS" | "BS" | "L" | "M";
/** A value in DynamoDB JSON: `{"S": "text"}`. */
export type AttributeValue = { [type: string]: unknown };
export type Item = Record<string, AttributeValue>;
export type Request = Record<string, unknown>;

export interface KeyAttribute {
  name: string;
  type: "S" | "N" | "B";
}
export interface Keys {
  partition: KeyAttribute[];
  sort: KeyAttribute[];
}
export interface IndexInfo {
  name: string;
  kind: "global" | "local";
  keys: Keys;
  items: number;
  bytes: number;
  status: string;
  projection: string;
  included: string[];
}
export interface TableInfo {
  name: string;
  status: string;
  keys: Keys;
  items: number;
  bytes: number;
  indexes: IndexInfo[];
  stream: string | null;
  stream_view: string | null;
  billing: string;
  protected: boolean;
}
/** A table as the list has it: of a very long list, some are described when they are opened. */
export type ListedTable = { name: string } & Partial<TableInfo>;

export function isDescribed(table: ListedTable): table is TableInfo {
  return table.keys !== undefined;
}
export interface Session {
  target: string;
  engine: string;
  remote: boolean;
  /** Whether the server of the page has the engine's API, too. */
  endpoint: boolean;
  writable: boolean;
  version: string;
  models: string[];
  /** The models whose design is shown; `live`: their module is followed while it is edited. */
  design: { name: string; live: boolean } | null;
  /** The name of the file of saved queries; null if the browser keeps them. */
  queries: string | null;
  /** The name of the workload that can be simulated. */
  workload: string | null;
  /** Whether there is a guided tour. */
  tour: boolean;
}
/** A part of a stored key: its text, its component (null: a literal), its value where that differs. */
export type Segment = [text: string, component: string | null, value: string | null];
/** The entity of an item, and the segments of its key attributes. */
export type Recognized = [entity: string | null, keys: Record<string, Segment[]>];

export interface Capacity {
  CapacityUnits?: number;
  ReadCapacityUnits?: number;
  WriteCapacityUnits?: number;
  Table?: { CapacityUnits?: number };
  GlobalSecondaryIndexes?: Record<string, { CapacityUnits?: number }>;
  LocalSecondaryIndexes?: Record<string, { CapacityUnits?: number }>;
}
export interface Response {
  Items?: Item[];
  Item?: Item;
  Attributes?: Item;
  Count?: number;
  ScannedCount?: number;
  LastEvaluatedKey?: Item;
  NextToken?: string;
  ConsumedCapacity?: Capacity | Capacity[];
  [member: string]: unknown;
}
export interface Executed {
  response: Response;
  milliseconds: number;
  recognized?: Recognized[] | null;
  legend?: Legend;
  /** What `isotone verify` would find in each item, if a loaded model declares them. */
  findings?: string[][];
}
/** The names of a table's model, in the order in which it declares them. */
export interface Legend {
  entities: string[];
  components: string[];
  /** The names that the library's own records have in the place of an entity's. */
  own: string[];
}

export interface Parameter {
  name: string;
  type: string;
  descending: boolean;
  choices: string[];
  /** The zone of a time that is typed without one; empty for what is no time. */
  zone: string;
}
export interface Pattern {
  name: string;
  index: string | null;
  sparse: boolean;
  form: Record<string, [string, string | null][]>;
  group: Parameter[];
  order: Parameter[];
}
/** What a form shows and sends of a value: texts, also of numbers and times, and lists and maps of them. */
export type Typed = string | boolean | null | Typed[] | { [name: string]: Typed };

/** The input of a type (`isotone/workbench/typed_inputs.py`). */
export interface Input {
  kind:
    | "text" | "integer" | "decimal" | "float" | "boolean" | "choice" | "instant" | "date" | "time" | "duration" | "bytes" | "id"
    | "list" | "set" | "map" | "tuple" | "record" | "raw";
  optional?: boolean;
  min?: string;
  above?: string;
  max?: string;
  below?: string;
  /** The decimal places that a number may have. */
  scale?: number;
  shortest?: number;
  longest?: number;
  pattern?: string;
  choices?: string[];
  item?: Input;
  items?: Input[];
  of?: string;
  members?: (Input & { name: string; required: boolean })[];
}
export interface Field {
  name: string;
  attribute: string;
  type: string;
  input: Input;
  required: boolean;
  /** How the library sets it; null if people do. */
  set_by: string | null;
  /** Why it cannot be changed later; null if it can. */
  fixed: string | null;
  /** The keys that are made from it. */
  keys: string[];
  identifies: boolean;
  unique: boolean;
  about: string | null;
  default: Typed;
}

export interface Entity {
  name: string;
  about: string;
  fields: Field[];
  patterns: Pattern[];
  raw_edits: RawEdits;
}
/** What breaks when an item of the entity is written without its model. */
export interface RawEdits {
  attributes: Record<string, string[]>;
  always: string[];
  deleted: string[];
}
export interface Model {
  model: { table: string; tag: string; entities: Entity[] } | null;
  loaded: boolean;
  source: string | null;
  sampled: number | null;
}
export interface Snippet {
  name: string;
  language: string;
  text: string;
}
export interface Change {
  eventID: string;
  eventName: "INSERT" | "MODIFY" | "REMOVE";
  userIdentity?: { PrincipalId?: string };
  dynamodb: {
    ApproximateCreationDateTime: number;
    Keys: Item;
    NewImage?: Item;
    OldImage?: Item;
    SequenceNumber: string;
  };
}

/** An error of the engine, of the workbench, or of the connection to it. */
export class CallError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly members: Record<string, unknown> = {},
  ) {
    super(message);
  }
}

/** Whether the workbench's server has answered the last call. */
export const reachable = new Store(true);

/** Calls `api/NAME`. Raises `CallError`. */
export async function call<T>(name: string, given: object = {}, signal?: AbortSignal): Promise<T> {
  let answer: Record<string, unknown>;
  try {
    const response = await fetch(`api/${name}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Isotone-Workbench": "1" },
      body: JSON.stringify(given),
      signal: signal ?? null,
    });
    answer = (await response.json()) as Record<string, unknown>;
    reachable.set(true);
  } catch (error) {
    if (signal?.aborted) throw error;
    reachable.set(false);
    throw new CallError("Disconnected", "The workbench's server does not answer. Is it still running?");
  }
  const failure = (answer["error"] ?? answer["__type"]) as Record<string, string> | string | undefined;
  if (typeof failure === "string") throw new CallError("Refused", String(answer["Message"] ?? failure));
  if (failure) throw new CallError(failure["code"] ?? "Error", failure["message"] ?? "", failure);
  return answer as T;
}

/** Sends one action of the DynamoDB API. With `keys`, the items are recognized; `whole` ones are compared with their entities. */
export async function execute(
  action: string,
  request: Request,
  options: { keys?: string[]; whole?: boolean; signal?: AbortSignal } = {},
): Promise<Executed> {
  const answer = await call<Executed>("execute", { action, request, keys: options.keys, whole: options.whole }, options.signal);
  noteRequest(action, request, answer, unitsOf(answer.response) ?? 0);
  return answer;
}

/** The units that a response says it consumed; null if it does not say. */
export function unitsOf(response: Response): number | null {
  const consumed = response.ConsumedCapacity;
  if (consumed === undefined) return null;
  const each = Array.isArray(consumed) ? consumed : [consumed];
  return each.reduce((sum, one) => sum + (one.CapacityUnits ?? 0), 0);
}
