from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tests.model.orders import Order, order, shop

import isotone
from isotone import Stats, aconnect, connect
from isotone.backends.interface import Request, Response
from isotone.errors import ProvisionedThroughputExceededException


class Counting:
    """A backend that notes how many requests it answers at the same time, and may fail."""

    def __init__(self, database: isotone.Database) -> None:
        self._backend = database
        self._together = threading.Barrier(2)
        self._lock = threading.Lock()
        self.answered = 0
        self.fails = False

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "Scan":
            if self.fails:
                raise ProvisionedThroughputExceededException("slow down")
            with self._lock:
                self.answered += 1
                is_one_of_the_first = self.answered <= 2
            if is_one_of_the_first:
                self._together.wait(5)  # continues only when the other request is under way
        return self._backend.execute(operation, request)


@pytest.fixture
def backend() -> Iterator[Counting]:
    with isotone.open() as database:
        store = connect(database)
        store.create_tables(shop)
        for number in range(40):
            store.put(order(number, f"c{number % 11}"))
        yield Counting(database)


def test_segments_are_read_at_the_same_time(backend: Counting) -> None:
    found = [each.number for each in connect(backend).scan(Order.primary.scan(), segments=2)]
    assert sorted(found) == list(range(40))


def test_segments_are_awaited_at_the_same_time(backend: Counting) -> None:
    async def scan() -> list[int]:
        store = aconnect(backend)
        return [each.number async for each in store.scan(Order.primary.scan(), segments=2)]

    assert sorted(asyncio.run(scan())) == list(range(40))


def test_a_scan_that_is_left_early_ends(backend: Counting) -> None:
    scan = connect(backend).scan(Order.primary.scan().page_size(2), segments=2)
    next(scan)
    scan.close()  # type: ignore[attr-defined]
    assert backend.answered < 40


def test_a_failure_arrives(backend: Counting) -> None:
    backend.fails = True
    with pytest.raises(ProvisionedThroughputExceededException):
        list(connect(backend).scan(Order.primary.scan(), segments=4))

    async def scan() -> None:
        async for _ in aconnect(backend).scan(Order.primary.scan(), segments=4):
            pass

    with pytest.raises(ProvisionedThroughputExceededException):
        asyncio.run(scan())


def test_the_costs_of_the_segments_add_up(backend: Counting) -> None:
    told: list[Stats] = []
    scan = Order.primary.scan().page_size(5)
    assert len(list(connect(backend).scan(scan, segments=2, progress=told.append))) == 40
    last = told[-1]
    assert (last.scanned, last.returned) == (41, 40)  # the record of the keys is read, too
    assert (last.requests, last.units) == (backend.answered, backend.answered / 2)
    assert last.bytes == 4096 * last.requests
