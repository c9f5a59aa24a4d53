"""One implementation runs over stores that wait and over stores that are awaited."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Store, Table, errors, field
from isotone.model.steps import Steps
from isotone.structures.operation import Batches, S, Structure, iteration, operation


class Tally(Entity):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)

    primary = Key("TALLY", name).sort("TALLY")


class Tallies(Structure[S]):
    """Counts by name."""

    def __init__(self, store: S, table: Table) -> None:
        super().__init__(store, table)
        self.tallies = self.kept(Tally)

    @operation
    def add(self, name: str, by: int = 1) -> Steps[int]:
        """Count up."""
        return (yield from self._add(name, by))

    @operation
    def add_twice(self, name: str) -> Steps[int]:
        yield from self._add(name, 1)
        return (yield from self._add(name, 1))

    def _add(self, name: str, by: int) -> Steps[int]:
        yield from self.calls.create_tables(self.table)
        changed = yield from self.calls.upsert(self.tallies, Tally.count.add(by), name=name)
        return changed.count

    @iteration
    def rounds(self, name: str, times: int) -> Batches[int]:
        def one() -> Steps[list[int]]:
            return [(yield from self._add(name, 1))]

        seen: list[int] = []
        while len(seen) < times:
            seen += yield one()


def test_over_a_store_it_gives_the_result(memory: Store) -> None:
    tallies = Tallies(memory, Table("tallies"))
    assert (tallies.add("a"), tallies.add("a", by=4), tallies.add_twice("a")) == (1, 5, 7)
    assert list(tallies.rounds("b", 3)) == [1, 2, 3]


def test_over_an_async_store_it_is_awaited() -> None:
    async def program() -> tuple[int, list[int]]:
        async with isotone.aconnect() as store:
            tallies = Tallies(store, Table("tallies"))
            await tallies.add("a")
            return await tallies.add_twice("a"), [each async for each in tallies.rounds("b", 3)]

    assert asyncio.run(program()) == (3, [1, 2, 3])


def test_an_iteration_reads_only_what_is_asked_for(memory: Store) -> None:
    tallies = Tallies(memory, Table("tallies"))
    assert next(tallies.rounds("a", 10)) == 1
    assert tallies.add("a") == 2


def test_an_error_comes_out_of_both(memory: Store) -> None:
    tallies = Tallies(memory, Table("tallies"))
    with pytest.raises(errors.IsotoneError):
        tallies.add("a" * 3000)
    with pytest.raises(errors.IsotoneError):
        list(tallies.rounds("a" * 3000, 1))


def test_it_keeps_its_documentation_and_signature(memory: Store) -> None:
    assert Tallies.add.__doc__ == "Count up."
    bound = Tallies(memory, Table("tallies")).add
    assert bound.__doc__ == "Count up."
    assert "by" in inspect.signature(bound).parameters


def test_a_table_has_one_class_of_each_kind(memory: Store) -> None:
    one, other = Table("tallies"), Table("others")
    assert Tallies(memory, one).tallies is Tallies(memory, one).tallies
    assert Tallies(memory, one).tallies is not Tallies(memory, other).tallies


def test_what_it_is_made_with_is_a_store_and_a_table(memory: Store) -> None:
    wrong: Any = "shop.db"
    with pytest.raises(errors.UsageError, match="is made with a store"):
        Tallies(wrong, Table("tallies"))
    with pytest.raises(errors.UsageError, match="is no table; write table=Tallies"):
        Tallies(memory, wrong)
