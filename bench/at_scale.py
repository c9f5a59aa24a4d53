"""Does latency grow with the table? One partition of 10,000 items, and one of 1,000,000, in files."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import isotone
from bench import peers, requests
from bench.in_process import cycled
from bench.measuring import Effort, Row, Target, alternately

GET, QUERY = "GetItem in a file, by size of table", "Query Limit=10 in a file, by size of table"
SMALL = 10_000
SMALL_NAME, LARGE_NAME = "10,000 items", "large table"
TARGETS = (
    Target(GET, LARGE_NAME, "at most", 1.5, SMALL_NAME),
    Target(QUERY, LARGE_NAME, "at most", 1.5, SMALL_NAME),
)


def _key(number: int) -> dict[str, Any]:
    return {"pk": {"S": "ONE"}, "sk": {"S": f"{number:09}"}}


def fill(client: Any, items: int) -> None:
    """Batches of 25, in an order that leaves the b-tree as random inserts do."""
    numbers = list(range(items))
    random.Random(3).shuffle(numbers)
    for first in range(0, items, 25):
        batch = [
            {
                "PutRequest": {
                    "Item": {**_key(number), "total": {"N": str(number)}, "note": {"S": "x" * 100}}
                }
            }
            for number in numbers[first : first + 25]
        ]
        client.batch_write_item(RequestItems={requests.TABLE: batch})


def calls(client: Any, items: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """A GetItem of some item at each call, and a Query that begins at some item."""
    chosen = random.Random(4)
    picked = [chosen.randrange(items - 10) for _ in range(5000)]
    gets = [{"TableName": requests.TABLE, "Key": _key(number)} for number in picked]
    queries = [
        {
            "TableName": requests.TABLE,
            "KeyConditionExpression": "pk = :pk AND sk >= :sk",
            "ExpressionAttributeValues": {":pk": {"S": "ONE"}, ":sk": {"S": f"{number:09}"}},
            "Limit": 10,
        }
        for number in picked
    ]
    assert len(client.query(**queries[0])["Items"]) == 10
    return (
        cycled(lambda request: client.get_item(**request), gets),
        cycled(lambda request: client.query(**request), queries),
    )


def run(effort: Effort) -> list[Row]:
    gets: dict[str, Callable[[], object]] = {}
    queries: dict[str, Callable[[], object]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=peers.data_folder())))
        for name, items in ((SMALL_NAME, SMALL), (LARGE_NAME, effort.items)):
            path = folder / f"{items}.db"
            with isotone.open(path, durability="none") as database:
                database.client().create_table(**requests.SCHEMA)
                fill(database.client(), items)
            client = stack.enter_context(isotone.open(path)).client()
            gets[name], queries[name] = calls(client, items)
        rows = alternately(GET, gets, effort) + alternately(QUERY, queries, effort)
    return [_told(row, effort) for row in rows]


def _told(row: Row, effort: Effort) -> Row:
    """The row with the real size of the large table beside it."""
    if row.subject == SMALL_NAME:
        return row
    return Row(row.measure, row.subject, row.unit, row.samples, extra={"items": effort.items})
