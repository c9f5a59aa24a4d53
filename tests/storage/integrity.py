"""The integrity check of a store, whatever is in it: its own check, and what its interface shows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from isotone.storage.interface import OrderedStore


def check(store: OrderedStore) -> list[str]:
    """What is wrong with a store; empty if nothing is. Reads everything, and keeps nothing in memory."""
    problems = store.check()
    with store.snapshot():
        for tree in store.trees():
            problems.extend(_check_tree(store, tree))
    return problems


def _check_tree(store: OrderedStore, tree: str) -> Iterable[str]:
    forwards = sum(1 for _ in store.range(tree, b"", None))
    backwards = sum(1 for _ in store.range(tree, b"", None, reverse=True))
    if forwards != backwards:
        yield f"tree {tree}: {forwards} entries forwards, {backwards} backwards"
    for (low, _), (high, _) in pairwise(store.range(tree, b"", None)):
        if low >= high:
            yield f"tree {tree}: key {low.hex()} comes before {high.hex()}"
    for key, value in store.range(tree, b"", None):
        if store.get(tree, key) != value:
            yield f"tree {tree}: get and range differ at key {key.hex()}"
