"""Vector search: the ten nearest of 100,000 vectors of 384 dimensions, and what an index adds to a write.

    python -m bench vectors

All figures are processor time, of all threads, so that another program on the machine adds little. The vectors have
random elements with six digits after the point. A *first* search reads the partition from the file; the others
have it in memory. *Python* is the same without NumPy.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import isotone
from bench.measuring import Effort, Row, Target
from isotone.engine.vector_scores import numpy_if_installed

SEARCH, FIRST, PUT = "ten nearest vectors", "ten nearest vectors, first search", "put of a vector"
TARGETS = (Target(SEARCH, "NumPy", "at most", 100),)
DIMENSIONS = 384
_PUTS = 1000
_TABLE: dict[str, Any] = {
    "TableName": "vectors",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
_INDEX: dict[str, Any] = {
    "IndexName": "near",
    "VectorAttribute": {"AttributeName": "v"},
    "Dimensions": DIMENSIONS,
    "DistanceFunction": "COSINE",
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}


def _elements(chance: random.Random) -> list[dict[str, str]]:
    return [{"N": f"{chance.gauss(0, 1):.6f}"} for _ in range(DIMENSIONS)]


def _items(count: int, seed: int) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    return ({"p": {"S": f"{number:06}"}, "v": {"L": _elements(chance)}} for number in range(count))


def _spent(call: Callable[[], object]) -> float:
    """The seconds of processor time that a call takes."""
    began = time.process_time()
    call()
    return time.process_time() - began


@contextmanager
def _without_numpy() -> Iterator[None]:
    kept = sys.modules.get("numpy")
    sys.modules["numpy"] = None  # type: ignore[assignment] # so that importing it fails
    numpy_if_installed.cache_clear()
    try:
        yield
    finally:
        del sys.modules["numpy"]
        if kept is not None:
            sys.modules["numpy"] = kept
        numpy_if_installed.cache_clear()


def _fill(path: Path, count: int) -> None:
    with isotone.open(path, durability="none") as database:
        client = database.client()
        client.create_table(**_TABLE, VectorIndexes=[_INDEX])
        batch: list[dict[str, Any]] = []
        for item in _items(count, 1):
            batch.append({"PutRequest": {"Item": item}})
            if len(batch) == 25:
                client.batch_write_item(RequestItems={"vectors": batch})
                batch = []
        assert not batch


def _searches(path: Path, subject: str, effort: Effort, calls: int, count: int) -> list[Row]:
    """Milliseconds of the first search of an open file, and of those after it."""
    first, others = [], []
    chance = random.Random(2)
    for _ in range(effort.rounds):
        with isotone.open(path, durability="none") as database:
            client = database.client()

            def search(query: list[dict[str, str]], client: isotone.Client = client) -> None:
                found = client.search_vectors(
                    TableName="vectors", IndexName="near", SearchVector=query, TopK=10
                )
                assert len(found["SearchResults"]) == 10

            first.append(_spent(partial(search, _elements(chance))) * 1000)
            spent = [_spent(partial(search, _elements(chance))) for _ in range(calls)]
            others.append(sum(spent) / calls * 1000)
    extra = {"vectors": count}
    return [
        Row(FIRST, subject, "ms", first, extra=extra),
        Row(SEARCH, subject, "ms", others, extra=extra),
    ]


def _writes(effort: Effort) -> list[Row]:
    """Microseconds of a put into a table in memory, with and without a vector index."""
    rows = []
    for subject, indexes in (("no index", {}), ("a vector index", {"VectorIndexes": [_INDEX]})):
        samples = []
        for turn in range(effort.rounds):
            items = list(_items(_PUTS, turn))
            with isotone.open(":memory:") as database:
                client = database.client()
                client.create_table(**_TABLE, **indexes)

                def put_all(items: list[Any] = items, client: isotone.Client = client) -> None:
                    for item in items:
                        client.put_item(TableName="vectors", Item=item)

                samples.append(_spent(put_all) / _PUTS * 1e6)
        rows.append(Row(PUT, subject, "µs", samples))
    return rows


def run(effort: Effort) -> list[Row]:
    count = effort.items // 10
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.db"
        _fill(path, count)
        if numpy_if_installed() is None:
            rows = [Row(SEARCH, "NumPy", "ms", absent="NumPy is not installed")]
        else:
            rows = _searches(path, "NumPy", effort, 20, count)
        with _without_numpy():
            rows += _searches(path, "Python", effort, 1, count)
    return rows + _writes(effort)
