/** Sends requests to the sample tables of the demo, as a program would, so that there is something to see. */

import { useState } from "preact/hooks";

import type { AttributeValue, Item } from "../api";
import { execute, isDescribed } from "../api";
import { session, tables } from "../session";
import { notify } from "../shell/notices";
import { useStore } from "../store";
import { count } from "../values";

const REQUESTS = 600;
const AT_ONCE = 4;
const TABLES = ["github", "orders", "shop", "tickets"];

export function SampleLoad() {
  const all = useStore(tables);
  const writable = useStore(session)?.writable ?? false;
  const [done, setDone] = useState<number | null>(null);
  const run = async () => {
    const found = (all ?? []).filter(isDescribed).filter((each) => TABLES.includes(each.name));
    if (!found.length) return notify("The sample tables are gone", { failed: true });
    setDone(0);
    const keys: { table: string; names: string[]; item: Item }[] = [];
    const look = async () => {
      for (const table of found) {
        const names = [...table.keys.partition, ...table.keys.sort].map((each) => each.name);
        const { response } = await execute("Scan", { TableName: table.name, Limit: 40 });
        for (const item of response.Items ?? []) keys.push({ table: table.name, names, item });
      }
      if (!keys.length) throw new Error("The sample tables are empty");
    };
    let left = REQUESTS;
    const work = async () => {
      while (left-- > 0) {
        // The first keys are asked for most, as it is in life.
        const { table, names, item } = keys[Math.floor(keys.length * Math.random() ** 4)]!;
        const key = Object.fromEntries(names.map((name) => [name, item[name] as AttributeValue]));
        if (left % 3) await send("GetItem", { TableName: table, Key: key });
        else if (left % 2) await send("Query", queryOf(table, names[0]!, item));
        else await send("PutItem", { TableName: table, Item: item });
        setDone(REQUESTS - Math.max(0, left));
      }
    };
    try {
      await look();
      await Promise.all(Array.from({ length: AT_ONCE }, work));
      notify(`${count(REQUESTS)} requests were sent: the page shows them at its next reading`);
    } catch (error) {
      notify((error as Error).message, { failed: true });
    } finally {
      setDone(null);
    }
  };
  return (
    <p class="query-line">
      <button disabled={done !== null || !writable} title={writable ? "" : "Safe mode"} onClick={() => void run()}>
        {done === null ? "Send sample requests" : `Sending ${count(done)} of ${count(REQUESTS)}`}
      </button>
      <span class="quiet">reads and writes the sample tables over HTTP, as a program would; items are written back unchanged</span>
    </p>
  );
}

function queryOf(table: string, name: string, item: Item): object {
  return {
    TableName: table,
    KeyConditionExpression: "#p = :p",
    ExpressionAttributeNames: { "#p": name },
    ExpressionAttributeValues: { ":p": item[name] },
    Limit: 10,
  };
}

/** One action over the DynamoDB API of this server, which accepts any key of a client. */
async function send(action: string, request: object): Promise<void> {
  const response = await fetch("/", {
    method: "POST",
    headers: {
      "Content-Type": "application/x-amz-json-1.0",
      "X-Amz-Target": `DynamoDB_20120810.${action}`,
      "X-Amz-Date": "20260101T000000Z",
      Authorization:
        "AWS4-HMAC-SHA256 Credential=demo/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=" + "0".repeat(64),
    },
    body: JSON.stringify(request),
  });
  if (!response.ok) throw new Error(`the server refused ${action} with status ${response.status}`);
}
