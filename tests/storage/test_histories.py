"""Every store, driven by the same random history, is what a dict of dicts would be."""

from __future__ import annotations

import copy
import tempfile
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.effort import examples
from tests.postgres_server import needs_postgres, shared
from tests.storage import integrity

from isotone.storage.interface import NoSuchTree, OrderedStore
from isotone.storage.memory import MemoryStore
from isotone.storage.sqlite import SQLiteStore

TREES = st.sampled_from(["a", "sqlite_b", "0"])
# Few distinct bytes, so that keys collide, share prefixes and lie at both ends.
SHORT = st.lists(st.sampled_from([b"\x00", b"a", b"b", b"\xff"]), max_size=3).map(b"".join)
# Some about as long as a key may be in an index of PostgreSQL.
KEYS = SHORT | st.builds(lambda size, end: b"a" * size + end, st.integers(2498, 2500), SHORT)
VALUES = st.binary(max_size=3) | st.integers(0, 3).map(lambda size: bytes(20_000 * size))
Model = dict[str, dict[bytes, bytes]]


def entries(model: Model, tree: str, low: bytes, high: bytes | None, reverse: bool):
    found = [
        (key, value)
        for key, value in model[tree].items()
        if low <= key and (high is None or key < high)
    ]
    return sorted(found, reverse=reverse)


class Stores(RuleBasedStateMachine):
    """The model is copied whole at each `begin`, so that a rollback needs no cleverness."""

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.model: Model = {}
        self.former: list[Model] = []
        self.open: list[list] = []

    @initialize()
    def start(self) -> None:
        folder = self.cleanup.enter_context(tempfile.TemporaryDirectory())
        self.file = Path(folder) / "store.db"
        self.stores: list[OrderedStore] = [
            MemoryStore(),
            SQLiteStore(":memory:"),
            self.opened(),
        ]
        self.begin()
        self.create_or_drop("a")

    def opened(self) -> OrderedStore:
        """The store that is opened again and again."""
        return SQLiteStore(self.file, durability="none")

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()
        self.cleanup.close()

    @rule()
    def begin(self) -> None:
        if len(self.open) == 5:
            return
        transactions = [store.transaction() for store in self.stores]
        for transaction in transactions:
            transaction.__enter__()
        self.open.append(transactions)
        self.former.append(copy.deepcopy(self.model))

    @precondition(lambda self: self.open)
    @rule(how=st.sampled_from(["keep", "keep", "rollback", "exception"]))
    def end(self, how: str) -> None:
        former = self.former.pop()
        if how != "keep":
            self.model = former
        for transaction in self.open.pop():
            if how == "rollback":
                transaction.rollback()
            raised = (ValueError, ValueError(), None) if how == "exception" else (None,) * 3
            assert not transaction.__exit__(*raised)

    @precondition(lambda self: self.open)
    @rule(tree=TREES)
    def create_or_drop(self, tree: str) -> None:
        if tree in self.model:
            del self.model[tree]
        else:
            self.model[tree] = {}
        for store in self.stores:
            (store.create_tree if tree in self.model else store.drop_tree)(tree)

    @precondition(lambda self: self.open and self.model)
    @rule(data=st.data(), new=st.dictionaries(KEYS, VALUES, min_size=1, max_size=12))
    def put(self, data: st.DataObject, new: dict[bytes, bytes]) -> None:
        tree = self.some_tree(data)
        self.model[tree].update(new)
        for store in self.stores:
            for key, value in new.items():
                store.put(tree, key, value)

    @precondition(lambda self: self.open and self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        tree = self.some_tree(data)
        key = self.some_key(data, tree)
        self.model[tree].pop(key, None)
        for store in self.stores:
            store.delete(tree, key)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def get(self, data: st.DataObject) -> None:
        tree = self.some_tree(data)
        key = self.some_key(data, tree)
        for store in self.stores:
            assert store.get(tree, key) == self.model[tree].get(key)

    @precondition(lambda self: self.model)
    @rule(
        data=st.data(),
        reverse=st.booleans(),
        limit=st.none() | st.integers(0, 3),
        expected=st.none() | st.integers(1, 3),
    )
    def range(
        self, data: st.DataObject, reverse: bool, limit: int | None, expected: int | None
    ) -> None:
        tree = self.some_tree(data)
        low, high = self.some_key(data, tree), self.some_key(data, tree)
        if data.draw(st.integers(0, 3)):
            low, high = min(low, high), max(low, high)
        bound = data.draw(st.sampled_from([high, high, None]))
        wanted = entries(self.model, tree, low, bound, reverse)[:limit]
        for store in self.stores:
            assert list(islice(store.range(tree, low, bound, reverse=reverse), limit)) == wanted
            values = store.values(tree, low, bound, reverse=reverse, expected=expected)
            assert list(islice(chain.from_iterable(values), limit)) == [
                value for _, value in wanted
            ]

    @rule(tree=TREES)
    def use_a_tree_that_is_not_there(self, tree: str) -> None:
        if tree in self.model:
            return
        for store in self.stores:
            with pytest.raises(NoSuchTree):
                store.get(tree, b"")
            with pytest.raises(NoSuchTree):
                store.range(tree, b"", None)
            with pytest.raises(NoSuchTree):
                store.values(tree, b"", None)

    def some_tree(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(sorted(self.model)))

    def some_key(self, data: st.DataObject, tree: str) -> bytes:
        there = sorted(self.model[tree]) or [b""]
        return data.draw(st.sampled_from(there) | KEYS)

    @precondition(lambda self: not self.open)
    @rule()
    def reopen(self) -> None:
        self.stores.pop().close()
        self.stores.append(self.opened())

    @invariant()
    def same_trees_and_sound(self) -> None:
        for store in getattr(self, "stores", ()):
            assert store.trees() == sorted(self.model)
            assert store.check() == []
            assert not store.changed_elsewhere()

    @precondition(lambda self: not self.open)
    @invariant()
    def same_entries(self) -> None:
        for store in getattr(self, "stores", ()):
            assert integrity.check(store) == []
            for tree in self.model:
                for reverse in (False, True):
                    found = list(store.range(tree, b"", None, reverse=reverse))
                    assert found == entries(self.model, tree, b"", None, reverse)


def test_all_stores_keep_the_same_history() -> None:
    run(Stores, examples(60))


def run(machine: type[Stores], histories: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=histories,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )


class WithPostgres(Stores):
    """As `Stores`, with a store in PostgreSQL in place of the file."""

    def opened(self) -> OrderedStore:
        from isotone.storage.postgres import PostgresStore

        if not hasattr(self, "address"):
            self.address = shared().new_address()
        return PostgresStore(self.address)


@needs_postgres
def test_postgres_keeps_the_same_history() -> None:
    run(WithPostgres, examples(15))
