/** Counts the reads and writes of this page by shape, as the server counts those of programs. A reload begins again. */

import type { Executed, Request } from "../api";
import type { ServedQuery } from "../metrics/metrics_calls";

const MOST = 200; // shapes; more are not counted
const COUNTED = ["Query", "Scan", "GetItem", "PutItem", "UpdateItem", "DeleteItem", "ExecuteStatement"];
const LITERALS = /'(?:[^']|'')*'|\b\d+(?:\.\d+)?\b/g;

interface Counted {
  query: ServedQuery;
  seconds: number[];
}

const counted = new Map<string, Counted>();

export function noteRequest(action: string, request: Request, { response, milliseconds }: Executed, units: number): void {
  if (!COUNTED.includes(action)) return;
  const shape = shapeOf(action, request);
  const name = JSON.stringify(shape);
  let found = counted.get(name);
  if (!found) {
    if (counted.size >= MOST) return;
    const { Limit: _, ...whole } = request; // the page's own
    counted.set(name, (found = { query: { ...shape, calls: 0, units: 0, read: 0, returned: 0, p99: 0, request: whole, isOwn: true }, seconds: [] }));
  }
  const { query, seconds } = found;
  query.calls += 1;
  query.units += units;
  query.read += response.ScannedCount ?? 0;
  query.returned += response.Count ?? 0;
  seconds.push(milliseconds / 1000);
  seconds.sort((one, other) => one - other);
  query.p99 = seconds[Math.ceil(0.99 * seconds.length) - 1]!;
}

export function ownQueries(): ServedQuery[] {
  return [...counted.values()].map(({ query }) => query);
}

function shapeOf(action: string, request: Request) {
  const names = (request["ExpressionAttributeNames"] ?? {}) as Record<string, string>;
  const text = (member: string) => String(request[member] ?? "").replace(/#\w+/g, (name) => names[name] ?? name).replace(/:\w+/g, "?");
  return {
    action,
    table: String(request["TableName"] ?? ""),
    index: String(request["IndexName"] ?? ""),
    key: text("KeyConditionExpression"),
    filter: text("FilterExpression"),
    projection: text("ProjectionExpression"),
    condition: text("ConditionExpression"),
    update: text("UpdateExpression"),
    statement: String(request["Statement"] ?? "").replace(LITERALS, "?"),
    parts: "",
  };
}
