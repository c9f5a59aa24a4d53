"""Counts are collected while a transaction is open, and are what the store says when it is not."""

from __future__ import annotations

from isotone.engine.tree_counts import COUNTS, TreeCounts
from isotone.storage.memory import MemoryStore


def store() -> MemoryStore:
    made = MemoryStore()
    with made.transaction():
        made.create_tree(COUNTS)
    return made


def test_what_is_flushed_is_there_for_others() -> None:
    shared = store()
    ours, others = TreeCounts(shared), TreeCounts(shared)
    with shared.transaction():
        ours.add("t1", 1, 100)
        ours.add("t1", 1, 50)
        ours.add("t1", -1, -100)
        assert ours.of("t1") == (1, 50)
        assert others.of("t1") == (0, 0)
        ours.flush()
    assert not ours.changed
    assert others.of("t1") == (0, 0)  # as it was when it looked
    others.forget()
    assert others.of("t1") == (1, 50)


def test_what_is_forgotten_before_it_is_flushed_has_not_been() -> None:
    shared = store()
    ours = TreeCounts(shared)
    ours.add("t1", 1, 100)
    assert ours.changed
    ours.forget()
    assert not ours.changed
    assert ours.of("t1") == (0, 0)


def test_a_dropped_tree_counts_nothing() -> None:
    shared = store()
    ours = TreeCounts(shared)
    with shared.transaction():
        ours.add("t1", 1, 100)
        ours.flush()
    with shared.transaction():
        ours.add("t1", 1, 100)
        ours.drop("t1")
        ours.flush()
    assert ours.of("t1") == (0, 0)
    assert list(shared.range(COUNTS, b"", None)) == []
