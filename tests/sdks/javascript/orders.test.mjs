// The JavaScript SDK, v3: the plain client, and the document client on natural values.
// ISOTONE_URL is the server; ISOTONE_JS the folder in which the SDK is installed. The keys are those of the environment.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { before, after, describe, test } from "node:test";

const require = createRequire(`${process.env.ISOTONE_JS}/`);
const sdk = require("@aws-sdk/client-dynamodb");
const lib = require("@aws-sdk/lib-dynamodb");
const { FetchHttpHandler } = require("@smithy/fetch-http-handler");

const TableName = `Orders-${randomUUID()}`;
const CUSTOMERS = ["ann", "böb"];
const STATUSES = ["open", "paid", "sent"];
const COUNT = 23;
const PRECISE = "12345678901234567890.123456789012345678";

const newClient = (settings = {}) =>
  new sdk.DynamoDBClient({
    ...settings,
    endpoint: process.env.ISOTONE_URL,
    region: "eu-west-1",
    credentials: {
      accessKeyId: process.env.AWS_ACCESS_KEY_ID,
      secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY,
      sessionToken: process.env.AWS_SESSION_TOKEN,
    },
  });
const client = newClient();
const documents = lib.DynamoDBDocumentClient.from(client, {
  marshallOptions: { allowImpreciseNumbers: false },
});
const precise = lib.DynamoDBDocumentClient.from(newClient(), {
  unmarshallOptions: { wrapNumbers: true },
});

const order = (number) => ({
  customer: CUSTOMERS[number % 2],
  placed_at: `2026-01-${String(number + 1).padStart(2, "0")}`,
  status: STATUSES[number % 3],
  amount: (number % 5) * 10.25 - 12,
  paid: number % 3 > 0,
  note: null,
  photo: new Uint8Array([number, 0, 255]),
  tags: new Set([`t${number}`, "gift", "☃"]),
  sizes: new Set([number, -0.5]),
  blobs: new Set([new Uint8Array([number, 128])]),
  basket: Array.from({ length: number % 3 }, (_, line) => ({ sku: `sku-${line}`, quantity: line })),
});
const ORDERS = Array.from({ length: COUNT }, (_, number) => order(number));
const keyOf = ({ customer, placed_at }) => ({ customer, placed_at });
const byTime = (a, b) => (a.placed_at < b.placed_at ? -1 : 1);
const times = (items) => items.map((item) => item.placed_at);

const keys = (partition, sort) => [
  { AttributeName: partition, KeyType: "HASH" },
  { AttributeName: sort, KeyType: "RANGE" },
];

const definition = {
  TableName,
  BillingMode: "PAY_PER_REQUEST",
  AttributeDefinitions: [
    { AttributeName: "customer", AttributeType: "S" },
    { AttributeName: "placed_at", AttributeType: "S" },
    { AttributeName: "status", AttributeType: "S" },
    { AttributeName: "amount", AttributeType: "N" },
  ],
  KeySchema: keys("customer", "placed_at"),
  LocalSecondaryIndexes: [
    {
      IndexName: "by_amount",
      KeySchema: keys("customer", "amount"),
      Projection: { ProjectionType: "ALL" },
    },
  ],
  GlobalSecondaryIndexes: [
    {
      IndexName: "by_status",
      KeySchema: keys("status", "placed_at"),
      Projection: { ProjectionType: "KEYS_ONLY" },
    },
  ],
};

async function everything(pages) {
  const found = [];
  for await (const page of pages) found.push(...page.Items);
  return found;
}

const query = (request, pageSize = 3) =>
  everything(lib.paginateQuery({ client: documents, pageSize }, { TableName, ...request }));

before(async () => {
  const made = await client.send(new sdk.CreateTableCommand(definition));
  assert.ok(made.TableDescription.CreationDateTime instanceof Date);
  await sdk.waitUntilTableExists({ client, maxWaitTime: 10, minDelay: 1 }, { TableName });
  for (const item of ORDERS) {
    await documents.send(new lib.PutCommand({ TableName, Item: item }));
  }
});

after(async () => {
  await client.send(new sdk.DeleteTableCommand({ TableName }));
  await sdk.waitUntilTableNotExists({ client, maxWaitTime: 10, minDelay: 1 }, { TableName });
  await assert.rejects(
    client.send(new sdk.DescribeTableCommand({ TableName })),
    (error) => error instanceof sdk.ResourceNotFoundException && error.$fault === "client",
  );
  client.destroy();
  precise.destroy();
});

test("a table's name is taken, and listed", async () => {
  await assert.rejects(
    client.send(new sdk.CreateTableCommand(definition)),
    sdk.ResourceInUseException,
  );
  const names = [];
  for await (const page of sdk.paginateListTables({ client, pageSize: 1 }, {})) {
    names.push(...page.TableNames);
  }
  assert.ok(names.includes(TableName));
});

test("every type comes back", async () => {
  for (const item of ORDERS) {
    const found = await documents.send(
      new lib.GetCommand({ TableName, Key: keyOf(item), ConsistentRead: true }),
    );
    assert.deepEqual(found.Item, item);
  }
});

test("through fetch, as in browsers, which asks for gzip", async () => {
  const browser = newClient({ requestHandler: new FetchHttpHandler() });
  const fetched = lib.DynamoDBDocumentClient.from(browser);
  const Item = { ...keyOf(order(51)), text: "☃ many words ".repeat(2000) };
  await fetched.send(new lib.PutCommand({ TableName, Item }));
  const found = await fetched.send(new lib.GetCommand({ TableName, Key: keyOf(Item) }));
  assert.deepEqual(found.Item, Item);
  await fetched.send(new lib.DeleteCommand({ TableName, Key: keyOf(Item) }));
  browser.destroy();
});

test("numbers keep 38 digits", async () => {
  const Item = { ...keyOf(order(50)), number: lib.NumberValue.from(PRECISE) };
  await documents.send(new lib.PutCommand({ TableName, Item }));
  const found = await precise.send(new lib.GetCommand({ TableName, Key: keyOf(Item) }));
  assert.equal(found.Item.number.toString(), PRECISE);
  await documents.send(new lib.DeleteCommand({ TableName, Key: keyOf(Item) }));
});

describe("conditions", () => {
  const Item = order(60);

  after(() => documents.send(new lib.DeleteCommand({ TableName, Key: keyOf(Item) })));

  test("hold once", async () => {
    const put = new lib.PutCommand({
      TableName,
      Item,
      ConditionExpression: "attribute_not_exists(customer)",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    });
    await documents.send(put);
    await assert.rejects(documents.send(put), (error) => {
      assert.ok(error instanceof sdk.ConditionalCheckFailedException);
      assert.equal(error.message, "The conditional request failed");
      assert.equal(error.$metadata.httpStatusCode, 400);
      assert.equal(error.$metadata.attempts, 1);
      assert.equal(error.Item.status.S, Item.status);
      return true;
    });
  });

  test("guard updates", async () => {
    const changed = await documents.send(
      new lib.UpdateCommand({
        TableName,
        Key: keyOf(Item),
        UpdateExpression: "SET #s = :new, basket = list_append(basket, :line) ADD visits :one",
        ConditionExpression: "#s = :old",
        ExpressionAttributeNames: { "#s": "status" },
        ExpressionAttributeValues: {
          ":new": "sent",
          ":old": Item.status,
          ":line": [{ sku: "late" }],
          ":one": 1,
        },
        ReturnValues: "UPDATED_NEW",
      }),
    );
    const basket = [...Item.basket, { sku: "late" }];
    assert.deepEqual(changed.Attributes, { status: "sent", visits: 1, basket });
  });
});

for (const forward of [true, false]) {
  const ordered = (items) => (forward ? items : items.toReversed());

  test(`query page by page, forward: ${forward}`, async () => {
    for (const customer of CUSTOMERS) {
      const request = {
        KeyConditionExpression: "customer = :c",
        ExpressionAttributeValues: { ":c": customer },
        ScanIndexForward: forward,
      };
      const expected = ORDERS.filter((item) => item.customer === customer);
      assert.deepEqual(await query(request), ordered(expected));
      const local = await query({ ...request, IndexName: "by_amount" }, 1);
      const byAmount = expected.toSorted((a, b) => a.amount - b.amount || byTime(a, b));
      assert.deepEqual(local, ordered(byAmount));
    }
  });

  test(`query a global index, forward: ${forward}`, async () => {
    const found = await query({
      IndexName: "by_status",
      KeyConditionExpression: "#s = :s AND placed_at > :t",
      ExpressionAttributeNames: { "#s": "status" },
      ExpressionAttributeValues: { ":s": "sent", ":t": "2026-01-05" },
      ScanIndexForward: forward,
    });
    const expected = ORDERS.filter((o) => o.status === "sent" && o.placed_at > "2026-01-05");
    assert.deepEqual(times(found), times(ordered(expected)));
  });
}

test("scan in parallel", async () => {
  const segment = (Segment) =>
    everything(
      lib.paginateScan({ client: documents, pageSize: 2 }, { TableName, Segment, TotalSegments: 4 }),
    );
  const parts = await Promise.all([0, 1, 2, 3].map(segment));
  assert.deepEqual(parts.flat().toSorted(byTime), ORDERS);
});

test("batches", async () => {
  const more = Array.from({ length: 20 }, (_, number) => order(70 + number));
  const write = (requests) =>
    documents.send(new lib.BatchWriteCommand({ RequestItems: { [TableName]: requests } }));
  const written = await write(more.map((Item) => ({ PutRequest: { Item } })));
  assert.deepEqual(written.UnprocessedItems, {});
  const Keys = [...more, order(99)].map(keyOf);
  const found = await documents.send(
    new lib.BatchGetCommand({ RequestItems: { [TableName]: { Keys } } }),
  );
  assert.deepEqual(found.Responses[TableName].toSorted(byTime), more);
  await write(more.map((item) => ({ DeleteRequest: { Key: keyOf(item) } })));
});

test("transactions", async () => {
  const put = { Put: { TableName, Item: order(61) } };
  const check = {
    ConditionCheck: {
      TableName,
      Key: keyOf(order(1)),
      ConditionExpression: "attribute_not_exists(customer)",
      ReturnValuesOnConditionCheckFailure: "ALL_OLD",
    },
  };
  const write = (...TransactItems) =>
    documents.send(new lib.TransactWriteCommand({ TransactItems }));
  await assert.rejects(write(put, check), (error) => {
    assert.ok(error instanceof sdk.TransactionCanceledException);
    assert.match(error.message, /specific reasons \[None, ConditionalCheckFailed\]$/);
    const [nothing, failed] = error.CancellationReasons;
    assert.equal(nothing.Code, "None");
    assert.equal(failed.Code, "ConditionalCheckFailed");
    assert.equal(failed.Item.placed_at.S, order(1).placed_at);
    return true;
  });
  await write(put);
  const read = await documents.send(
    new lib.TransactGetCommand({
      TransactItems: [61, 62].map((number) => ({ Get: { TableName, Key: keyOf(order(number)) } })),
    }),
  );
  assert.deepEqual(read.Responses[0].Item, order(61));
  assert.equal(read.Responses[1].Item, undefined);
  await write({ Delete: { TableName, Key: keyOf(order(61)) } });
});

test("expiry and tags", async () => {
  const setting = { Enabled: true, AttributeName: "expires" };
  await client.send(
    new sdk.UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification: setting }),
  );
  const expiry = await client.send(new sdk.DescribeTimeToLiveCommand({ TableName }));
  assert.equal(expiry.TimeToLiveDescription.AttributeName, "expires");
  const { Table } = await client.send(new sdk.DescribeTableCommand({ TableName }));
  const ResourceArn = Table.TableArn;
  const Tags = [{ Key: "team", Value: "shop" }];
  await client.send(new sdk.TagResourceCommand({ ResourceArn, Tags }));
  const tagged = await client.send(new sdk.ListTagsOfResourceCommand({ ResourceArn }));
  assert.deepEqual(tagged.Tags, Tags);
});

test("many calls at once count exactly", async () => {
  const Key = keyOf(order(62));
  const add = async () => {
    const answer = await documents.send(
      new lib.UpdateCommand({
        TableName,
        Key,
        UpdateExpression: "ADD visits :one",
        ExpressionAttributeValues: { ":one": 1 },
        ReturnValues: "UPDATED_NEW",
      }),
    );
    return answer.Attributes.visits;
  };
  const visits = await Promise.all(Array.from({ length: 200 }, add));
  assert.deepEqual(
    visits.toSorted((a, b) => a - b),
    Array.from({ length: 200 }, (_, index) => index + 1),
  );
  await documents.send(new lib.DeleteCommand({ TableName, Key }));
});

test("statements", async () => {
  const statement = `SELECT placed_at FROM "${TableName}" WHERE customer = ? ORDER BY placed_at`;
  const found = await documents.send(
    new lib.ExecuteStatementCommand({ Statement: statement, Parameters: ["ann"] }),
  );
  const expected = ORDERS.filter((item) => item.customer === "ann").toSorted(byTime);
  assert.deepEqual(times(found.Items), times(expected));
  const Key = keyOf(order(70));
  const insert = `INSERT INTO "${TableName}" VALUE {'customer': ?, 'placed_at': ?}`;
  const [customer, placed_at] = [Key.customer, Key.placed_at];
  const one = { Statement: insert, Parameters: [customer, placed_at] };
  await documents.send(new lib.ExecuteTransactionCommand({ TransactStatements: [one] }));
  const batch = await documents.send(new lib.BatchExecuteStatementCommand({ Statements: [one] }));
  assert.equal(batch.Responses[0].Error.Code, "DuplicateItem");
  await documents.send(new lib.DeleteCommand({ TableName, Key }));
});

test("backups", async () => {
  const made = await client.send(
    new sdk.CreateBackupCommand({ TableName, BackupName: "nightly" }),
  );
  const { BackupArn } = made.BackupDetails;
  const TargetTableName = `${TableName}-restored`;
  await client.send(new sdk.RestoreTableFromBackupCommand({ TargetTableName, BackupArn }));
  await sdk.waitUntilTableExists({ client, maxWaitTime: 20, minDelay: 1 }, { TableName: TargetTableName });
  const copy = await documents.send(
    new lib.ScanCommand({ TableName: TargetTableName, Select: "COUNT" }),
  );
  const source = await documents.send(new lib.ScanCommand({ TableName, Select: "COUNT" }));
  assert.equal(copy.Count, source.Count);
  await client.send(new sdk.DeleteBackupCommand({ BackupArn }));
  await client.send(new sdk.DeleteTableCommand({ TableName: TargetTableName }));
});

test("a refusal says what it is", async () => {
  await assert.rejects(
    client.send(new sdk.GetItemCommand({ TableName, Key: { customer: { S: "ann" } } })),
    {
      name: "ValidationException",
      message: "The provided key element does not match the schema",
    },
  );
});
