from __future__ import annotations

import pytest

from isotone.errors import UsageError
from isotone.storage import integrity
from isotone.storage.interface import Store
from isotone.storage.memory import MemoryStore


def filled(entries: dict[bytes, bytes]) -> MemoryStore:
    store = MemoryStore()
    with store.transaction():
        store.create_tree("t")
        for key, value in entries.items():
            store.put("t", key, value)
    return store


def content(store: Store) -> dict[bytes, bytes]:
    assert integrity.check(store) == []
    return dict(store.range("t", b"", None))


def test_a_fork_and_its_parent_go_separate_ways() -> None:
    parent = filled({b"a": b"1", b"b": b"2"})
    child = parent.fork()
    grandchild = child.fork()
    with parent.transaction():
        parent.put("t", b"a", b"parent")
    with child.transaction():
        child.delete("t", b"b")
        child.put("t", b"c", b"child")
    assert content(parent) == {b"a": b"parent", b"b": b"2"}
    assert content(child) == {b"a": b"1", b"c": b"child"}
    assert content(grandchild) == {b"a": b"1", b"b": b"2"}


def test_a_rollback_in_a_fork_leaves_the_parent_alone() -> None:
    parent = filled({b"a": b"1", b"b": b"2"})
    child = parent.fork()
    with child.transaction() as transaction:
        child.put("t", b"a", b"child")
        child.delete("t", b"b")
        child.drop_tree("t")
        child.create_tree("t")
        transaction.rollback()
    assert content(child) == content(parent) == {b"a": b"1", b"b": b"2"}


def test_a_fork_copies_no_tree_before_it_is_written() -> None:
    parent = filled({b"a": b"1"})
    child = parent.fork()
    assert child._trees["t"] is parent._trees["t"]
    with child.transaction():
        child.put("t", b"b", b"2")
    assert child._trees["t"] is not parent._trees["t"]


def test_a_fork_inside_a_transaction_is_refused() -> None:
    store = filled({})
    with store.transaction(), pytest.raises(UsageError, match="fork"):
        store.fork()


def test_the_check_finds_a_lost_key() -> None:
    store = filled({b"a": b"1", b"b": b"2"})
    store._trees["t"].keys.remove(b"a")
    assert store.check() == ["tree t: the sorted keys are not the keys of its 2 values"]
