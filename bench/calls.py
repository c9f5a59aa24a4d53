"""How many functions Python calls for one operation, in a database in memory.

A count does not depend on the machine, and is the same in every new process. `cProfile` counts functions in
Python and those in C that Python calls, the one that makes the operation included; what a C function does
inside is not counted. Each operation runs twenty times before it is counted, which fills most caches; the
mean of the next twenty is the figure.

For some requests only the functions in Python are counted (`sys.setprofile`), of one call after twenty others: the
client's, or those of the server for a request as botocore sends it, from the bytes that arrive to those that leave.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import msgspec

import isotone
from bench import requests
from bench.measuring import Effort, Row, Target
from bench.wired import WiredServer
from isotone import Attr, Entity, Global, Key, Table, field
from isotone.structures import SortedSet

MEASURE = "functions called"
IN_PYTHON = "functions in Python called"
TIMES = 20
WANTED = {
    "store.get": 51,
    "store.put": 127,
    "store.update": 198,
    "store.page of 25": 255,
    "zscore": 71,
    "zrank among 300": 299,
    "zincrby with ranks among 300": 1210,
    "PutItem with an index": 107,
}
WANTED_IN_PYTHON = {
    "HTTP GetItem": 33,
    "client.put_item with an index": 73,
    "store.page of 25": 107 + 25,  # one for each item
    "zincrby with ranks among 300": 600,
}
TARGETS = tuple(
    Target(measure, name, "at most", bound)
    for measure, wanted in ((MEASURE, WANTED), (IN_PYTHON, WANTED_IN_PYTHON))
    for name, bound in wanted.items()
)

shop = Table("shop")
music = Table("music", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[str] = field(default="OPEN")
    total: Attr[int] = field(default=0)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)


@contextmanager
def operations() -> Iterator[dict[str, Callable[[], object]]]:
    """Every operation that is counted; each call of a write writes something new."""
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(shop, music)
        for number in range(1, 60):
            store.put(Order(customer="ann", number=number))
        plain, ranked = SortedSet(store, "plain"), SortedSet(store, "ranked", ranked=True)
        for each in (plain, ranked):
            each.create_table()
            each.zadd({f"song:{number}": number for number in range(300)})
        query = Order.primary.where(Order.customer == "ann")
        numbers = count(100)
        songs = iter([_put_song(number) for number in range(4 * TIMES)])
        yield {
            "store.get": lambda: store.get(Order, customer="ann", number=5),
            "store.put": lambda: store.put(Order(customer="bob", number=next(numbers))),
            "store.update": lambda: store.update(
                Order, Order.total.add(1), customer="ann", number=5
            ),
            "store.page of 25": lambda: store.page(query, size=25),
            "zscore": lambda: plain.zscore("song:150"),
            "zrank among 300": lambda: ranked.zrank("song:150"),
            "zincrby with ranks among 300": lambda: ranked.zincrby(1, "song:150"),
            "PutItem with an index": lambda: database.send("PutItem", next(songs)),
        }


@contextmanager
def requests_of_clients() -> Iterator[dict[str, Callable[[], object]]]:
    """The requests whose functions in Python are counted; each put moves the item's entry in the index."""
    with isotone.open() as database:
        database.execute("CreateTable", requests.SCHEMA)
        database.execute("CreateTable", requests.INDEXED_SCHEMA)
        server, put_item = WiredServer(database), database.client().put_item
        receive = server.connect().data_received
        database.execute("PutItem", requests.put(1))
        get = requests.raw("GetItem", requests.get(1), 8000)
        versions = iter([_order(version) for version in range(2 * TIMES)])
        yield {
            "HTTP GetItem": lambda: receive(get),
            "client.put_item with an index": lambda: put_item(**next(versions)),
        }
        server.close()


def _order(version: int) -> Any:
    put = requests.put(1, version)
    put["Item"]["customer"]["S"] = f"customer-{version}"
    return {**put, "TableName": requests.INDEXED}


def _put_song(number: int) -> bytes:
    """A request as it comes over HTTP."""
    item = {
        "PK": {"S": "ARTIST#a"},
        "SK": {"S": f"SONG#{number:03}"},
        "GSI1PK": {"S": "SONGS"},
        "GSI1SK": {"S": f"{number:03}"},
    }
    return msgspec.json.encode({"TableName": music.name, "Item": item})


def counted(operation: Callable[[], object]) -> float:
    """The mean number of functions that one call of an operation calls."""
    for _ in range(TIMES):
        operation()
    profile = cProfile.Profile()
    profile.enable()
    for _ in range(TIMES):
        operation()
    profile.disable()
    total: int = pstats.Stats(profile).total_calls  # type: ignore[attr-defined]
    return (total - 1) / TIMES  # one call ends the profile


def counted_in_python(operation: Callable[[], object]) -> int:
    """The number of functions in Python that one call of an operation calls."""
    for _ in range(TIMES):
        operation()
    calls = -1  # the operation is made by a function of this file

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    operation()
    sys.setprofile(None)
    return calls


def run(effort: Effort) -> list[Row]:
    with operations() as known, requests_of_clients() as sent:
        return [
            *(Row(MEASURE, name, "", [counted(each)]) for name, each in known.items()),
            *(
                Row(IN_PYTHON, name, "", [counted_in_python({**known, **sent}[name])])
                for name in WANTED_IN_PYTHON
            ),
        ]
