"""An estimate names the least and the most that a read can cost; what it then costs lies between them."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from tests.effort import LONG

import isotone
from isotone import Database, Global, Local, Number, Table
from isotone.advisor import Cost
from isotone.values.types import AttributeValue

ASKED = 200 if LONG else 50
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
RAW = Table(
    "raw",
    partition="pk",
    sort="sk",
    indexes={
        "by_status": Global("status", "sk", projection="KEYS_ONLY"),
        "by_score": Local(Number("score"), projection=("status",)),
    },
)


def counted(rng: random.Random, number: int) -> str:
    return f"ORDER#{number:06}"


def timed(rng: random.Random, number: int) -> str:
    moment = BEGAN + timedelta(minutes=47 * number + rng.randrange(40))
    return f"AT#{moment:%Y-%m-%dT%H:%M:%S}Z#{rng.randrange(1000):03}"


def hashed(rng: random.Random, number: int) -> str:
    return "".join(rng.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=12))


def named(rng: random.Random, number: int) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=8))


KINDS: tuple[Callable[[random.Random, int], str], ...] = (counted, timed, hashed, named)


class Contents(NamedTuple):
    """A table's items: the sort keys of each partition, in order."""

    database: Database
    sorts: dict[str, list[str]]


@pytest.fixture(scope="module")
def contents() -> Iterator[Contents]:
    """Collections of 1 to 1,500 items with keys of each kind; most items are small, some collections have large ones."""
    rng = random.Random(7)
    sorts: dict[str, list[str]] = {}
    with isotone.open(":memory:") as database:
        with isotone.connect(database, check_keys=False) as store:
            store.create_tables(RAW)
        for group in range(48):
            make = KINDS[group % len(KINDS)]
            body = rng.choice([20, 60, 400, 1500])
            sizes = rng.choice([1, 30, 300, 1500])
            partition = f"{make.__name__}#{group}"
            sorts[partition] = sorted({make(rng, number) for number in range(sizes)})
            for sort in sorts[partition]:
                item: dict[str, AttributeValue] = {
                    "pk": {"S": partition},
                    "sk": {"S": sort},
                    "status": {"S": rng.choice(["OPEN", "PAID", "PAID", "PAID"])},
                    "score": {"N": str(rng.randrange(1000))},
                    "body": {"S": "x" * rng.randrange(body, 2 * body)},
                }
                database.execute("PutItem", {"TableName": "raw", "Item": item})
        yield Contents(database, sorts)


def any_range(rng: random.Random, sorts: list[str], name: str) -> tuple[str, list[str]]:
    low, high = sorted(rng.choices(sorts, k=2))
    return rng.choice(
        [
            ("", []),
            (f" AND {name} > {{}}", [low]),
            (f" AND {name} <= {{}}", [high]),
            (f" AND {name} BETWEEN {{}} AND {{}}", [low, high]),
            (f" AND begins_with({name}, {{}})", [low[: rng.randrange(1, 12)]]),
        ]
    )


def any_request(rng: random.Random, contents: Contents) -> Any:
    """A query, a scan, or one of them as a statement."""
    sorts, index, key = contents.sorts, "", "pk"
    partition = rng.choice(list(sorts))
    of_range, values = any_range(rng, sorts[partition], "sk")
    kind = rng.randrange(10)
    if kind in (0, 1):
        index, key, partition = "by_status", "status", rng.choice(["OPEN", "PAID"])
    if kind == 2:
        index, of_range, values = "by_score", " AND score > {}", []
    filtered = rng.random() < 0.3 and not index
    if rng.random() < 0.5:
        return as_statement(rng, sorts, (index, key, partition), of_range, values, filtered)
    names = [f":v{number}" for number in range(len(values) or of_range.count("{}"))]
    known = {name: {"S": value} for name, value in zip(names, values, strict=False)}
    if index == "by_score":
        known[":v0"] = {"N": str(rng.randrange(1000))}
    request: dict[str, Any] = {"TableName": "raw", "ReturnConsumedCapacity": "TOTAL"}
    request |= {"IndexName": index} if index else {}
    condition = f"{key} = :p{of_range.format(*names)}".replace("status", "#s")
    if kind == 9:
        condition, known = "", {}
    else:
        request |= {"KeyConditionExpression": condition, "ScanIndexForward": rng.random() < 0.5}
        known[":p"] = {"S": partition}
    if filtered:
        request["FilterExpression"] = "score < :least"
        known[":least"] = {"N": str(rng.randrange(1000))}
    request |= {"ExpressionAttributeValues": known} if known else {}
    request |= {"ExpressionAttributeNames": {"#s": "status"}} if "#s" in condition else {}
    return ("Query" if condition else "Scan"), request


def as_statement(
    rng: random.Random,
    sorts: dict[str, list[str]],
    place: tuple[str, str, str],
    of_range: str,
    values: list[str],
    filtered: bool,
) -> str:
    index, key, partition = place
    source = f'raw."{index}"' if index else "raw"
    shown = [f"'{value}'" for value in values] or [str(rng.randrange(1000))]
    if key == "pk" and rng.random() < 0.2:
        several = ", ".join(f"'{each}'" for each in rng.sample(list(sorts), k=3))
        return f"SELECT * FROM raw WHERE pk IN [{several}]"
    if key == "pk" and rng.random() < 0.1:
        return f"SELECT * FROM raw WHERE score > {rng.randrange(1000)}"
    columns = "pk, sk" if index else "*"
    condition = f"\"{key}\" = '{partition}'{of_range.format(*shown)}"
    condition += f" AND score < {rng.randrange(1000)}" if filtered else ""
    return f"SELECT {columns} FROM {source} WHERE {condition}"


def is_between(estimate: Cost, measured: Cost) -> bool:
    least, most = estimate.least, estimate.most
    names = ("units", "items_read", "items_returned", "requests")
    return all(
        getattr(least, name) <= getattr(measured, name)
        and (most is None or getattr(measured, name) <= getattr(most, name))
        for name in names
    )


@pytest.mark.parametrize("engine", ["isotone", "dynamodb"])
def test_costs_lie_in_the_intervals_of_their_estimates(contents: Contents, engine: str) -> None:
    """An engine that throttles allows less reading for an estimate, so that long ranges are extrapolated."""
    rng = random.Random(1)
    outside, far, inexact = [], [], 0
    with isotone.connect(contents.database, check_keys=False, engine=engine) as store:
        for _ in range(ASKED):
            request = any_request(rng, contents)
            explained = isotone.explain(store, request, run=True, sample=300)
            estimate, measured = explained.estimate, explained.measured
            assert measured is not None
            inexact += not estimate.exact
            if not is_between(estimate, measured):
                outside.append(f"{request}: {estimate} but {measured}")
            if abs(estimate.units - measured.units) > 0.25 * measured.units:
                far.append(f"{request}: {estimate} but {measured}")
    allowed = ASKED * 5 // 100
    assert len(outside) <= allowed, f"{len(outside)}:\n" + "\n".join(outside)
    assert len(far) <= allowed, f"{len(far)}:\n" + "\n".join(far)
    assert inexact > 5  # or the intervals would not be tried


def test_a_long_range_is_counted_and_not_guessed() -> None:
    """Collections that the sample lacks: a guess from the sample would be a request's first items, or none."""
    with isotone.connect(":memory:", check_keys=False) as store:
        store.create_tables(RAW)
        for group, count in (("a", 400), ("b", 1500), *((f"c{n}", 10) for n in range(40))):
            for number in range(count):
                item = {"pk": {"S": group}, "sk": {"S": f"{number:05}"}, "body": {"S": "x" * 60}}
                store.backend.execute("PutItem", {"TableName": "raw", "Item": item})
        for group, count in (("a", 400), ("b", 1500)):
            statement = f"SELECT * FROM raw WHERE pk = '{group}'"
            explained = isotone.explain(store, statement, run=True, sample=100)
            measured = explained.measured
            assert measured is not None
            assert explained.estimate.exact
            assert explained.estimate.items_returned == measured.items_returned == count
            assert explained.estimate.units == measured.units


def test_an_interval_is_named_in_every_form() -> None:
    with isotone.connect(":memory:", check_keys=False) as store:
        store.create_tables(RAW)
        for number in range(500):
            item = {"pk": {"S": str(number)}, "sk": {"S": "a"}, "body": {"S": "x" * 300}}
            store.backend.execute("PutItem", {"TableName": "raw", "Item": item})
        explained = isotone.explain(store, "SELECT * FROM raw", sample=50)
    estimate = explained.estimate
    assert not estimate.exact
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low.units < estimate.units < estimate.high.units
    lines = [line.split() for line in str(explained).splitlines()]
    least = next(line for line in lines if line[:2] == ["at", "least"])
    most = next(line for line in lines if line[:2] == ["at", "most"])
    assert (least[3], most[3]) == ("450", "550")
    assert explained.to_dict()["estimate"]["low"]["items_read"] == 450
    assert "at least" in explained.html()
