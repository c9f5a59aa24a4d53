"""Structural checks: what a store must be, whatever is in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import apsw

from isotone.storage.interface import Store
from isotone.storage.statements import Statements

_MOST_PROBLEMS = 100


def check(store: Store) -> list[str]:
    """What is wrong with a store, inside and as seen through its interface; empty where nothing is.

    Reads everything, and keeps nothing in memory.
    """
    problems = store.check()
    with store.snapshot():
        for tree in store.trees():
            problems.extend(_check_tree(store, tree))
    return problems


def _check_tree(store: Store, tree: str) -> Iterable[str]:
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


def check_file(execute: Any, texts: Mapping[str, Statements], trees: Iterable[str]) -> list[str]:
    """What SQLite finds wrong with its file, and tables that are not as we make them."""
    try:
        found = [row[0] for row in execute(f"PRAGMA integrity_check({_MOST_PROBLEMS})")]
        made = dict(execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall())
    except apsw.Error as error:
        return [f"the file cannot be read: {error}"]
    problems = [problem for problem in found if problem != "ok"]
    wanted = {texts[tree].create for tree in trees}
    problems += [
        f"table {name} is not one that Isotone makes"
        for name, sql in made.items()
        if sql not in wanted
    ]
    return problems
