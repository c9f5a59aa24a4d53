"""One implementation runs over stores that wait and over stores that are awaited."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal

import pytest

import isotone
from isotone import Attr, Entity, Key, Store, Table, errors, field
from isotone.model import Steps
from isotone.structures import (
    Adjacency,
    Counter,
    Feed,
    Idempotency,
    Leaderboard,
    Lock,
    Queue,
    TimeSeries,
    Unique,
)
from isotone.structures.argument_checks import require_non_negative, require_positive, validated
from isotone.structures.structure import Batches, S, Structure, iteration, operation


class Tally(Entity):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)

    primary = Key("TALLY", name).sort("TALLY")


class Tallies(Structure[S]):
    """Counts by name."""

    def __init__(self, store: S, table: Table) -> None:
        super().__init__(store, table)
        self.tallies = self.bind(Tally)

    @operation
    def add(self, name: str, by: int = 1) -> Steps[int]:
        """Count up."""
        return (yield from self._add(name, by))

    @operation
    def add_twice(self, name: str) -> Steps[int]:
        yield from self._add(name, 1)
        return (yield from self._add(name, 1))

    @operation
    def weigh(self, name: str, by: int) -> Steps[int]:
        return (yield from self._add(name, by + 0))

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


def test_a_structure_keeps_its_documentation_and_signature(memory: Store) -> None:
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
    with pytest.raises(errors.UsageError, match="takes a store, not"):
        Tallies(wrong, Table("tallies"))
    with pytest.raises(errors.UsageError, match="is not a table; write table=Tallies"):
        Tallies(memory, wrong)


class Named(Tallies[S]):
    """With options of many types."""

    def __init__(
        self,
        store: S,
        name: str,
        *,
        hold: float = 1.0,
        window: Literal["hour", "day"] | timedelta = "day",
        order: Callable[[str], str] = str,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or Table(name))
        self.end = hold + 1

    @validated
    def told(self, each: str, to: Mapping[str, int] | None = None) -> str:
        """What is no operation."""
        return each


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": 3}, "Named(name=3): name takes str, not int"),
        ({"hold": "60"}, "Named(hold='60'): hold takes float, not str"),
        ({"hold": True}, "Named(hold=True): hold takes float, not bool"),
        ({"hold": None}, "Named(hold=None): hold takes float, not None"),
        (
            {"window": "daily"},
            "Named(window='daily'): window takes 'hour' | 'day' | timedelta, not 'daily'",
        ),
        ({"order": "up"}, "order takes Callable[[str], str], not str"),
    ],
)
def test_options_of_a_wrong_type_are_named(
    memory: Store, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(errors.UsageError, match=re.escape(said)):
        Named(memory, **{"name": "tallies", **options})


def test_options_of_the_right_type_are_taken(memory: Store) -> None:
    for window in ("hour", timedelta(hours=3)):
        Named(memory, "tallies", hold=60, window=window, order=str.casefold)


def test_an_argument_of_a_wrong_type_is_named_once_it_is_in_the_way(memory: Store) -> None:
    slip: Any = Tallies(memory, Table("tallies"))
    with pytest.raises(errors.UsageError, match=r"Tallies.rounds\(times='3'\): times takes int"):
        slip.rounds("a", "3")
    with pytest.raises(
        errors.UsageError, match=r"Tallies.weigh\(by=\[1\]\): by takes int, not list"
    ):
        slip.weigh("a", [1])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        slip.add()


def test_what_is_no_operation_looks_at_its_arguments_as_well(memory: Store) -> None:
    named: Any = Named(memory, "tallies")
    assert named.told("a", to={"a": 1}) == "a"
    assert named.told.__doc__ == "What is no operation."
    with pytest.raises(errors.UsageError, match=r"Named.told\(each=5\): each takes str, not int"):
        named.told(5)
    with pytest.raises(errors.UsageError, match=r"to takes Mapping.*, not str"):
        named.told("a", "b")


@pytest.mark.parametrize("wrong", [-1, -0.1, float("nan"), float("inf"), 1e30, "5", timedelta(1)])
def test_a_length_of_time_is_one(wrong: Any) -> None:
    for check in (require_positive, require_non_negative):
        check(hold=1, delay=0.5, idle=None)
        with pytest.raises(errors.UsageError, match=r"^hold must be .* a century, not "):
            check(delay=5, hold=wrong)


def test_a_length_of_time_may_be_none() -> None:
    require_non_negative(delay=0)
    with pytest.raises(errors.UsageError, match=r"hold must be more than 0 seconds, .* not 0"):
        require_positive(hold=0)


def test_a_structure_is_shown_by_its_name_and_its_table(memory: Store) -> None:
    table = Table("all", indexes={**Queue.layout().indexes, **Adjacency.layout().indexes})
    made: dict[str, Structure] = {
        "Queue('mails', table='queues')": Queue(memory, "mails"),
        "Queue('mails', table='all')": Queue(memory, "mails", table=table),
        "Lock('report', table='locks')": Lock(memory, "report"),
        "Counter('visits', table='counters')": Counter(memory, "visits"),
        "Adjacency('takes', table='all')": Adjacency(memory, "takes", table=table),
        "Unique('email', table='unique')": Unique(memory, "email"),
        "Idempotency('payments', table='idempotency')": Idempotency(memory, "payments"),
        "TimeSeries('cpu', table='time-series')": TimeSeries(memory, "cpu"),
        "Leaderboard('daily', table='leaderboards')": Leaderboard(memory, "daily"),
        "Leaderboard(table='leaderboards')": Leaderboard(memory),
        "Feed('main', table='feeds')": Feed(memory),
    }
    assert {repr(each): each for each in made.values()} == made


def test_a_forgotten_await_is_reported_by_its_name() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            tallies: Any = Tallies(store, Table("tallies"))
            with pytest.raises(errors.UsageError, match=r"Tallies.weigh\(by=\[1\]\): by takes int"):
                await tallies.weigh("a", [1])
            with pytest.warns(RuntimeWarning, match="'Tallies.add' was never awaited"):
                tallies.add("a")

    asyncio.run(program())
