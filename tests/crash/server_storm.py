"""A storm of writes over HTTP, and what must be in the file when it is over.

Every worker has a connection of its own and waits for each answer, so that at any moment it knows of
each of its writes whether it was acknowledged, and of at most one request that it may have been carried
out or not. `Storm.verify` reads everything back and holds it against that knowledge; then what was open
is known too, and the storm can go on.

    items      overwritten, deleted and written in batches, with a content that follows from the version;
               a global index and a local one move with every version
    counters   added to by everybody
    transfers  transactions that move an amount between two accounts and leave a receipt: each balance
               is the sum of the receipts, or a transaction was done by half
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from random import Random
from typing import Any, Final, Self
from urllib.parse import urlsplit

import msgspec

from isotone import Database
from isotone.errors import ApiError

ABSENT: Final = 0  # the version of an item that is not there
WORKERS: Final = 8
_KEYS: Final = 25  # items that one worker writes again and again
_COUNTERS: Final = 3
_ACCOUNTS: Final = 4
_HEADERS: Final = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Date": "20260111T000000Z",
    "Authorization": "AWS4-HMAC-SHA256 Credential=any/20260111/eu-west-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=any",
}

Request = dict[str, Any]
Call = Callable[..., Request]


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, body: Request) -> None:
        super().__init__(status, body)
        self.status = status
        self.code = str(body["__type"]).split("#")[-1]
        self.message = str(body.get("message", body.get("Message", "")))


class Gone(Exception):
    """The server went away before it answered."""


class Caller:
    """One connection to a server; not to be shared by threads."""

    def __init__(self, url: str, timeout: float = 30) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self._connection = HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, operation: str, **request: Any) -> Request:
        """Send a request and wait; raises `Refused` or `Gone`, anything else is a broken answer."""
        headers = {**_HEADERS, "X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        try:
            self._connection.request("POST", "/", msgspec.json.encode(request), headers)
            response = self._connection.getresponse()
        except (ConnectionError, HTTPException) as error:
            self.close()
            raise Gone from error
        answer: Request = msgspec.json.decode(response.read())
        if response.status != 200:
            raise Refused(response.status, answer)
        return answer

    def pages(self, operation: str, **request: Any) -> Iterator[Request]:
        """The items of all pages."""
        while True:
            page = self(operation, **request)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def close(self) -> None:
        self._connection.close()


class Program:
    """A database in this process, called like a server."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def __call__(self, operation: str, **request: Any) -> Request:
        try:
            answer = self.database.send(operation, msgspec.json.encode(request))
        except ApiError as error:
            raise Refused(error.status, error.body()) from None
        decoded: Request = msgspec.json.decode(answer)
        return decoded


def create_table(call: Call, table: str) -> None:
    """A table with a local and a global index."""
    names = {"pk": "S", "sk": "S", "version": "N", "shade": "S"}
    call(
        "CreateTable",
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind} for name, kind in names.items()
        ],
        KeySchema=_keys("pk", "sk"),
        LocalSecondaryIndexes=[
            {
                "IndexName": "by_version",
                "KeySchema": _keys("pk", "version"),
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_shade",
                "KeySchema": _keys("shade", "version"),
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )


def _keys(partition: str, sort: str) -> list[Request]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def key(partition: str, sort: object) -> Request:
    return {"pk": {"S": partition}, "sk": {"S": str(sort)}}


def item_of(partition: str, sort: object, version: int) -> Request:
    """The item that a version of a key is; a few of them are large."""
    return {
        **key(partition, sort),
        "version": {"N": str(version)},
        "shade": {"S": f"shade{version % 5}"},
        "body": {"S": f"{partition}.{version} " * (900 if version % 17 == 0 else 5)},
    }


def _place(item: Request) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


class Storm:
    """What all workers together know of one file.

    With `may_fail`, a request may be answered with `InternalServerError`, after which nobody knows whether it was executed.
    """

    def __init__(self, seed: int, table: str = "Storm", *, may_fail: bool = False) -> None:
        self.table = table
        self.may_fail = may_fail
        self.is_over = False
        self.acknowledged = 0
        self.open = 0
        """Requests that ended without an answer."""
        self._lock = threading.Lock()
        self._progress = threading.Condition(self._lock)
        self._workers = [_Worker(self, number, seed) for number in range(WORKERS)]
        self._counted: Counter[int] = Counter()
        self._tried: Counter[int] = Counter()

    def rage(self, url: str, until: Callable[[], object], *others: str) -> None:
        """Let every worker write until its server is gone, or the storm `is_over`; `until` makes it so. With `others`,
        the workers are spread over several servers of one database.
        """
        urls = (url, *others)
        self.is_over = False
        with Caller(url) as call:
            if self.table not in call("ListTables")["TableNames"]:
                create_table(call, self.table)
        threads = [
            threading.Thread(target=worker.run, args=(urls[number % len(urls)],))
            for number, worker in enumerate(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            until()
        finally:
            for thread in threads:
                thread.join()
        failures = [worker.failure for worker in self._workers if worker.failure]
        if failures:
            raise failures[0]

    def wait_for(self, more: int) -> None:
        """Wait until so many more writes are acknowledged than there were, however long the machine takes."""
        with self._progress:
            wanted = self.acknowledged + more
            while self.acknowledged < wanted:
                assert self._progress.wait(60), (
                    f"{wanted - self.acknowledged} of {more} are missing"
                )

    def acknowledge(self) -> None:
        with self._progress:
            self.acknowledged += 1
            self._progress.notify_all()

    def verify(self, url: str) -> None:
        """Read everything back; what must be there is, and nothing else is."""
        with Caller(url) as call:
            found = self._read(call)
        self._verify_counters(found)
        receipts = [item for worker in self._workers for item in worker.verify(found)]
        balances = dict.fromkeys(range(_ACCOUNTS), 0)
        for receipt in receipts:
            balances[int(receipt["from"]["N"])] -= int(receipt["amount"]["N"])
            balances[int(receipt["to"]["N"])] += int(receipt["amount"]["N"])
        for number, balance in balances.items():
            account = found.pop(("account", str(number)), {"balance": {"N": "0"}})
            assert int(account["balance"]["N"]) == balance, "a transaction was done by half"
        assert not found

    def _read(self, call: Caller) -> dict[tuple[str, str], Request]:
        """Every item by its key; the global index must have the same ones."""
        found = {
            _place(item): item
            for item in call.pages("Scan", TableName=self.table, ConsistentRead=True)
        }
        by_shade = [
            item
            for shade in range(5)
            for item in call.pages(
                "Query",
                TableName=self.table,
                IndexName="by_shade",
                KeyConditionExpression="shade = :s",
                ExpressionAttributeValues={":s": {"S": f"shade{shade}"}},
            )
        ]
        assert {_place(item): item for item in by_shade} == {
            place: item for place, item in found.items() if "shade" in item
        }
        return found

    def _verify_counters(self, found: dict[tuple[str, str], Request]) -> None:
        for number in range(_COUNTERS):
            counter = found.pop(("counter", str(number)), {"count": {"N": "0"}})
            count = int(counter["count"]["N"])
            assert self._counted[number] <= count <= self._tried[number]
            self._counted[number] = self._tried[number] = count

    def trying_to_count(self, number: int) -> None:
        with self._lock:
            self._tried[number] += 1

    def counted(self, number: int, told: int) -> None:
        with self._lock:
            self._counted[number] = max(self._counted[number], told)

    def left_open(self) -> None:
        with self._lock:
            self.open += 1


class _Worker:
    """One connection's writes. Only the counters and the accounts are shared with others."""

    def __init__(self, storm: Storm, number: int, seed: int) -> None:
        self._storm = storm
        self._table = storm.table
        self._name = f"worker{number}"
        self._random = Random(f"{seed}-{number}")
        self._version = 0
        self._known: dict[int, int] = dict.fromkeys(range(_KEYS), ABSENT)
        self._maybe: dict[int, int] = {}
        self._receipts: set[int] = set()
        self._maybe_receipt: int | None = None
        self._call: Caller
        self.failure: BaseException | None = None

    def run(self, url: str) -> None:
        self._call = Caller(url)
        steps = (
            *(self._put, self._put, self._count, self._transfer, self._delete, self._batch),
            *(self._insert_by_statement, self._delete_by_statement),
        )
        try:
            while not self._storm.is_over:
                self._version += 1
                self._random.choice(steps)()
                self._storm.acknowledge()
        except Gone:
            self._storm.left_open()
        except Refused as refused:
            if self._storm.may_fail and refused.code == "InternalServerError":
                self._storm.left_open()
            else:
                self.failure = refused
        except BaseException as failure:  # noqa: BLE001 - `rage` raises it
            self.failure = failure
        finally:
            self._call.close()

    def _write(self, versions: dict[int, int], operation: str, **request: Any) -> None:
        self._maybe = versions
        answer = self._call(operation, **request)
        assert not answer.get("UnprocessedItems")
        self._known.update(versions)
        self._maybe = {}

    def _put(self) -> None:
        number = self._random.randrange(_KEYS)
        item = item_of(self._name, number, self._version)
        self._write({number: self._version}, "PutItem", TableName=self._table, Item=item)

    def _delete(self) -> None:
        number = self._random.randrange(_KEYS)
        self._write(
            {number: ABSENT}, "DeleteItem", TableName=self._table, Key=key(self._name, number)
        )

    def _insert_by_statement(self) -> None:
        absent = [number for number, version in self._known.items() if version == ABSENT]
        if not absent:
            self._delete_by_statement()
            return
        number = self._random.choice(absent)
        item = item_of(self._name, number, self._version)
        value = ", ".join(f"'{name}': ?" for name in item)
        self._write(
            {number: self._version},
            "ExecuteStatement",
            Statement=f'INSERT INTO "{self._table}" VALUE {{{value}}}',
            Parameters=[*item.values()],
        )

    def _delete_by_statement(self) -> None:
        numbers = self._random.sample(range(_KEYS), 2)
        names = " AND ".join(f'"{name}" = ?' for name in key(self._name, 0))
        statements = [
            {
                "Statement": f'DELETE FROM "{self._table}" WHERE {names}',
                "Parameters": [*key(self._name, number).values()],
            }
            for number in numbers
        ]
        self._write(
            dict.fromkeys(numbers, ABSENT), "ExecuteTransaction", TransactStatements=statements
        )

    def _batch(self) -> None:
        numbers = self._random.sample(range(_KEYS), 4)
        items = [item_of(self._name, number, self._version) for number in numbers]
        requests = {self._table: [{"PutRequest": {"Item": item}} for item in items]}
        self._write(dict.fromkeys(numbers, self._version), "BatchWriteItem", RequestItems=requests)

    def _count(self) -> None:
        number = self._random.randrange(_COUNTERS)
        self._storm.trying_to_count(number)
        answer = self._call(
            "UpdateItem",
            TableName=self._table,
            Key=key("counter", number),
            UpdateExpression="ADD #c :one",
            ExpressionAttributeNames={"#c": "count"},
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        self._storm.counted(number, int(answer["Attributes"]["count"]["N"]))

    def _transfer(self) -> None:
        giver, taker = self._random.sample(range(_ACCOUNTS), 2)
        amount = self._random.randint(1, 100)
        receipt = {
            **key(f"{self._name}.receipts", self._version),
            "from": {"N": str(giver)},
            "to": {"N": str(taker)},
            "amount": {"N": str(amount)},
        }
        self._maybe_receipt = self._version
        self._call(
            "TransactWriteItems",
            TransactItems=[
                self._movement(giver, -amount),
                {"Put": {"TableName": self._table, "Item": receipt}},
                self._movement(taker, amount),
            ],
        )
        self._receipts.add(self._version)
        self._maybe_receipt = None

    def _movement(self, account: int, amount: int) -> Request:
        return {
            "Update": {
                "TableName": self._table,
                "Key": key("account", account),
                "UpdateExpression": "ADD balance :a",
                "ExpressionAttributeValues": {":a": {"N": str(amount)}},
            }
        }

    def verify(self, found: dict[tuple[str, str], Request]) -> list[Request]:
        """Take what is ours out of `found`; the receipts."""
        for number, version in self._known.items():
            item = found.pop((self._name, str(number)), None)
            there = int(item["version"]["N"]) if item else ABSENT
            assert there in (version, self._maybe.get(number, version)), (self._name, number)
            assert item is None or item == item_of(self._name, number, there)
            self._known[number] = there
        self._maybe = {}
        ours = [place for place in found if place[0] == f"{self._name}.receipts"]
        numbers = {int(number) for _, number in ours}
        assert self._receipts <= numbers <= self._receipts | {self._maybe_receipt}
        self._receipts, self._maybe_receipt = numbers, None
        return [found.pop(place) for place in ours]
