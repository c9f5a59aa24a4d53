"""Warnings point at the line of the program, however deep in the library they begin."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from tests.headroom import forget_notices

import isotone
from isotone import Attr, Entity, HeadroomWarning, Key, Table, WastefulRead, field

shelf = Table("shelf")


class Book(Entity, table=shelf):
    number: Attr[int] = field(max=999, alert=0.5)
    text: Attr[str] = field(default="")

    primary = Key("BOOKS").sort("BOOK", number)


@pytest.fixture(autouse=True)
def _as_a_new_process() -> None:
    forget_notices()


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_a_number_that_comes_near_its_width() -> None:
    with isotone.connect() as store:
        store.create_tables(shelf)
        with pytest.warns(HeadroomWarning) as caught:
            store.put(Book(number=500))
        expected = line() - 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, expected)


def test_a_wasteful_read() -> None:
    with isotone.connect() as store:
        store.create_tables(shelf)
        store.put_many(Book(number=number, text="x" * 2_000) for number in range(100))
        with pytest.warns(WastefulRead) as caught:
            store.all(Book.primary.where().filter(Book.text == "y"))
        expected = line() - 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, expected)


def test_an_awaited_call() -> None:
    async def put() -> int:
        async with isotone.aconnect() as store:
            await store.create_tables(shelf)
            await store.put(Book(number=500))
            return line() - 1

    with pytest.warns(HeadroomWarning) as caught:
        expected = asyncio.run(put())
    assert (caught[0].filename, caught[0].lineno) == (__file__, expected)
