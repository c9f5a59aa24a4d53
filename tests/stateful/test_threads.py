"""Threads of one program, and another process, read and write one file at the same time.

The oracle is naive: each pair of items has one writer, which notes the number that it is about to write, and the one that
was acknowledged. A read must find a number between the last that was acknowledged before it began and the last that was
begun before it ended; a read of one moment must find the same number in both items.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.effort import LONG

import isotone

SECONDS = 20.0 if LONG else 1.5
WRITERS = 3
READERS = 4
NAME = "tab"
INDEX = {
    "IndexName": "by_owner",
    "KeySchema": [{"AttributeName": "owner", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
OTHER_INDEX = {
    "IndexName": "by_number",
    "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


class Pairs:
    """The table with one pair of items for each writer, and what is known of each pair."""

    def __init__(self, database: isotone.Database) -> None:
        self.database = database
        self.begun = [0] * WRITERS
        self.acknowledged = [0] * WRITERS
        database.execute(
            "CreateTable",
            {
                "TableName": NAME,
                "AttributeDefinitions": [
                    {"AttributeName": "p", "AttributeType": "S"},
                    {"AttributeName": "s", "AttributeType": "S"},
                    {"AttributeName": "owner", "AttributeType": "S"},
                ],
                "KeySchema": [
                    {"AttributeName": "p", "KeyType": "HASH"},
                    {"AttributeName": "s", "KeyType": "RANGE"},
                ],
                "GlobalSecondaryIndexes": [INDEX],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        for pair in range(WRITERS):
            self.write(database, pair)

    def write(self, database: isotone.Database, pair: int) -> None:
        number = self.begun[pair] = self.begun[pair] + 1
        puts = [
            {
                "Put": {
                    "TableName": NAME,
                    "Item": {**key, "owner": key["p"], "n": {"N": str(number)}},
                }
            }
            for key in keys_of(pair)
        ]
        database.execute("TransactWriteItems", {"TransactItems": puts})
        self.acknowledged[pair] = number

    def read(self, read: Read, pair: int, *, of_one_moment: bool) -> None:
        """Read a pair, and compare what was found with what may be there."""
        low = self.acknowledged[pair]
        found = [int(item["n"]["N"]) for item in read(self.database, pair)]
        high = self.begun[pair]
        assert len(found) == 2
        assert all(low <= number <= high for number in found), (low, found, high)
        assert found[0] == found[1] or not of_one_moment, found


Read = Callable[[isotone.Database, int], list[dict[str, Any]]]


def keys_of(pair: int) -> list[dict[str, Any]]:
    return [{"p": {"S": str(pair)}, "s": {"S": each}} for each in "ab"]


def by_items(database: isotone.Database, pair: int) -> list[dict[str, Any]]:
    return [
        database.execute("GetItem", {"TableName": NAME, "Key": key})["Item"]
        for key in keys_of(pair)
    ]


def by_query(database: isotone.Database, pair: int, **more: Any) -> list[dict[str, Any]]:
    name = "owner" if more else "p"
    request = {
        "TableName": NAME,
        "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": name},
        "ExpressionAttributeValues": {":p": {"S": str(pair)}},
        **more,
    }
    found: list[dict[str, Any]] = database.execute("Query", request)["Items"]
    return found


def by_index(database: isotone.Database, pair: int) -> list[dict[str, Any]]:
    return by_query(database, pair, IndexName="by_owner")


def by_transaction(database: isotone.Database, pair: int) -> list[dict[str, Any]]:
    gets = [{"Get": {"TableName": NAME, "Key": key}} for key in keys_of(pair)]
    answer = database.execute("TransactGetItems", {"TransactItems": gets})
    return [each["Item"] for each in answer["Responses"]]


def by_batch(database: isotone.Database, pair: int) -> list[dict[str, Any]]:
    answer = database.execute("BatchGetItem", {"RequestItems": {NAME: {"Keys": keys_of(pair)}}})
    found: list[dict[str, Any]] = answer["Responses"][NAME]
    return found


def by_scan(database: isotone.Database, pair: int) -> list[dict[str, Any]]:
    items = database.execute("Scan", {"TableName": NAME})["Items"]
    return [item for item in items if item["p"] == {"S": str(pair)}]


READS: dict[Read, bool] = {
    by_items: False,
    by_query: True,
    by_index: True,
    by_transaction: True,
    by_batch: True,
    by_scan: True,
}
"""Whether each reads at one moment."""


@contextmanager
def at_work(work: list[Callable[[], None]]) -> Iterator[Callable[[], None]]:
    """Repeat each function in a thread of its own until the block ends; the block gets a check that none has failed."""
    stopping = threading.Event()

    def repeat(one: Callable[[], None]) -> None:
        while not stopping.is_set():
            one()

    with ThreadPoolExecutor(len(work)) as pool:
        running = [pool.submit(repeat, each) for each in work]

        def check() -> None:
            for each in running:
                if each.done():
                    each.result()

        try:
            yield check
        finally:
            stopping.set()
        for each in running:
            each.result()


@pytest.mark.parametrize("durability", ["disk", "none"])
def test_a_read_finds_what_was_acknowledged_and_nothing_that_was_not_begun(
    tmp_path: Path, durability: Any
) -> None:
    path = tmp_path / "a.db"
    with (
        isotone.open(path, durability=durability) as database,
        isotone.open(path, durability=durability) as other,  # as another process
    ):
        pairs = Pairs(database)
        chosen = random.Random(7)

        def read() -> None:
            kind = chosen.choice(list(READS))
            pairs.read(kind, chosen.randrange(WRITERS), of_one_moment=READS[kind])

        def change_indexes() -> None:
            """Background work, and a catalog that changes, also by rolling back."""
            change_index(database, {"Create": OTHER_INDEX})
            database.finish_maintenance()
            change_index(other, {"Delete": {"IndexName": OTHER_INDEX["IndexName"]}})
            time.sleep(0.05)

        writers = [database] * (WRITERS - 1) + [other]
        work = [
            lambda each=each, pair=pair: pairs.write(each, pair)
            for pair, each in enumerate(writers)
        ]  # type: ignore[misc]
        work += [read] * READERS + [change_indexes]

        def is_enough() -> bool:
            return bool(database.engine.readers._opened) and min(pairs.acknowledged) > 3

        with at_work(work) as check:
            began = time.monotonic()
            # on a busy machine it takes longer until each has had a turn
            while (took := time.monotonic() - began) < SECONDS or not (is_enough() or took > 60):
                time.sleep(0.05)
                check()
        assert is_enough()
        assert database.check() == []


def change_index(database: isotone.Database, change: dict[str, Any]) -> None:
    attributes = [{"AttributeName": "n", "AttributeType": "N"}]
    request: dict[str, Any] = {"TableName": NAME, "GlobalSecondaryIndexUpdates": [change]}
    if "Create" in change:
        request["AttributeDefinitions"] = attributes
    database.execute("UpdateTable", request)
