"""A value has one owner at a time, also beside other writes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.effort import examples
from tests.structures.simulation import Repeating, Requests

import isotone
from isotone import Attr, Entity, Key, ManualClock, Store, Table, errors, field
from isotone.structures import Unique


class User(Entity):
    user_id: Attr[str] = field()
    name: Attr[str] = field()

    primary = Key("USER", user_id).sort("USER")


def test_a_unique_value_is_taken_and_given_everywhere(
    store: Store, clock: ManualClock, table_name: str
) -> None:
    names = Unique(store, "username", normal=str.casefold, table=Unique.layout(table_name))
    names.create_table()
    names.reserve("Ann", "user:1")
    names.reserve("ANN", "user:1")
    assert names.owner_of("ann") == "user:1"
    with pytest.raises(errors.NotUnique, match="'ann' is taken by user:1") as taken:
        names.reserve("ann", "user:2")
    assert (taken.value.field, taken.value.value, taken.value.owner) == (
        *("username", "ann", "user:1"),
    )
    assert not names.release("ann", "user:2")
    names.transfer("ann", "user:1", "user:2")
    with pytest.raises(errors.NotUnique, match="user:2"):
        names.transfer("ann", "user:1", "user:3")
    assert names.release("ann", "user:2")
    assert not names.release("ann", "user:2")
    with pytest.raises(errors.NotFound, match="username 'ann' has no owner"):
        names.transfer("ann", "user:2", "user:3")
    names.reserve("bob", "user:1", seconds=60)
    clock.advance(61)
    assert names.owner_of("bob") is None
    names.reserve("bob", "user:2")
    assert names.owner_of("bob") == "user:2"


def test_a_unique_value_is_made_with_the_writes_beside_it(store: Store, table_name: str) -> None:
    table = Table(table_name)
    kept = type("User", (User,), {}, table=table)
    names = Unique(store, "username", table=table)
    store.create_tables(table)

    def sign_up(who: str, name: str) -> None:
        with store.transaction() as together:
            together.create(kept(user_id=who, name=name))
            names.within(together).reserve(name, owner=who)

    def rename(who: str, old: str, new: str) -> None:
        with store.transaction() as together:
            together.update(kept, User.name.set(new), user_id=who)
            names.within(together).release(old, owner=who)
            names.within(together).reserve(new, owner=who)

    sign_up("1", "ann")
    with pytest.raises(errors.TransactionFailed) as failed:
        sign_up("2", "ann")
    taken = failed.value.reasons[1]
    assert isinstance(taken, errors.NotUnique)
    assert (str(taken), taken.owner) == ("username 'ann' is taken by 1", "1")
    assert store.get(kept, user_id="2") is None
    rename("1", "ann", "anna")
    sign_up("2", "ann")
    with pytest.raises(errors.TransactionFailed):
        rename("2", "ann", "anna")
    with store.transaction() as together:
        names.within(together).transfer("ann", "2", "3")
        names.within(together).transfer("anna", "1", "2")
    assert [names.owner_of(each) for each in ("ann", "anna")] == ["3", "2"]


class Owners(RuleBasedStateMachine):
    """Three owners, three values, and time."""

    values, owners = st.sampled_from("ab"), st.sampled_from("123")

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.store = isotone.connect(clock=self.clock)
        self.names = Unique(self.store, "n", normal=str.lower)
        self.names.create_table()
        self.naive: dict[str, tuple[str, float]] = {}

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def owner(self, value: str) -> str | None:
        owner, until = self.naive.get(value, (None, 0.0))
        return owner if until > self.clock.now() else None

    @rule(value=values, owner=owners, seconds=st.sampled_from([None, 10]), loud=st.booleans())
    def reserve(self, value: str, owner: str, seconds: float | None, loud: bool) -> None:
        written = value.upper() if loud else value
        if self.owner(value) in (None, owner):
            self.names.reserve(written, owner, seconds=seconds)
            until = float("inf") if seconds is None else self.clock.now() + seconds
            self.naive[value] = (owner, until)
        else:
            with pytest.raises(errors.NotUnique):
                self.names.reserve(written, owner, seconds=seconds)

    @rule(value=values, owner=owners)
    def release(self, value: str, owner: str) -> None:
        had = self.owner(value) == owner
        gone = self.names.release(value, owner)
        assert gone or not had
        if had:
            del self.naive[value]

    @rule(value=values, owner=owners, to=owners)
    def transfer(self, value: str, owner: str, to: str) -> None:
        if self.owner(value) == owner:
            self.names.transfer(value, owner, to)
            self.naive[value] = (to, float("inf"))
        elif self.naive.get(value) == (to, float("inf")):
            self.names.transfer(value, owner, to)
        else:
            with pytest.raises((errors.NotUnique, errors.NotFound)):
                self.names.transfer(value, owner, to)

    @rule()
    def wait(self) -> None:
        self.clock.advance(6)

    @invariant()
    def each_has_the_owner_that_is_expected(self) -> None:
        for value in "ab" if hasattr(self, "names") else "":
            assert self.names.owner_of(value) == self.owner(value)


TestOwners = Owners.TestCase
TestOwners.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


@pytest.mark.parametrize("seconds", [0, -5, float("nan"), 1e30])
def test_nothing_is_reserved_for_no_time(memory: Store, seconds: float) -> None:
    names = Unique(memory, "n")
    names.create_table()
    with pytest.raises(errors.UsageError, match="seconds must be more than 0"):
        names.reserve("a", "1", seconds=seconds)
    with (
        pytest.raises(errors.UsageError, match="seconds must be more than 0"),
        memory.transaction() as together,
    ):
        names.within(together).reserve("a", "1", seconds=seconds)
    wrong: Any = memory
    with pytest.raises(errors.UsageError, match="tx takes Transaction, not Store"):
        names.within(wrong)


def test_one_of_many_threads_gets_it(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "u.db", durability="none") as store:
        names = Unique(store, "n")
        names.create_table()

        def take(number: int) -> str | None:
            try:
                names.reserve("ann", str(number))
            except errors.NotUnique:
                return None
            return str(number)

        with ThreadPoolExecutor(8) as pool:
            winners = [each for each in pool.map(take, range(40)) if each]
        assert winners == [names.owner_of("ann")]


def test_an_answer_that_is_lost_does_no_harm(memory: Store) -> None:
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        names = Unique(repeating, "n")
        Unique(memory, "n").create_table()
        names.reserve("ann", "1")
        assert names.owner_of("ann") == "1"
        names.transfer("ann", "1", to="2")
        assert names.owner_of("ann") == "2"


def test_a_unique_value_costs_as_documented(clock: ManualClock) -> None:
    requests = Requests()
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        names = Unique(store, "n")
        names.create_table()
        requests.taken()
        names.reserve("ann", "1")
        assert requests.taken() == {"PutItem": 1}
        names.transfer("ann", "1", "2")
        assert requests.taken() == {"UpdateItem": 1}
        names.release("ann", "2")
        assert requests.taken() == {"DeleteItem": 1}
        names.owner_of("ann")
        assert requests.taken() == {"GetItem": 1}


def test_awaited() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            names = Unique(store, "n")
            await names.create_table()
            async with store.transaction() as together:
                names.within(together).reserve("ann", "1")
            with pytest.raises(errors.NotUnique):
                await names.reserve("ann", "2")
            assert await names.release("ann", "1")

    asyncio.run(program())
