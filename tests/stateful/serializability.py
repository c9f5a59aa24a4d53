"""Whether a history of transactions is serializable, and agrees with the clock (`violation`).

Each transaction notes which version of a key it has read, and which it has written; versions of a key count from 0, and
the item of each names the transaction that wrote it. So the order of the writes of a key is known, and with it what must
come before what:

    who wrote a version      before who read it, and before who wrote the next one
    who read a version       before who wrote the next one
    who has ended            before who began later, in any process

There is an order of all transactions that explains everything if, and only if, this has no circle.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter

import msgspec

Version = tuple[str, int]
"""A key, and a number of its versions."""


class Transaction(msgspec.Struct):
    """What one transaction has seen and done, by key."""

    name: str
    session: str
    """Whoever made it, one after the other."""
    began: float
    ended: float
    reads: dict[str, tuple[int, str]] = {}
    """The number of the version, and who wrote it; "" for one that is not known."""
    writes: dict[str, int | None] = {}
    """The number of the version; None if the transaction has not learnt it."""


def violation(history: Iterable[Transaction]) -> str:
    """What no serial order explains; empty if there is one that does."""
    transactions = {each.name: each for each in history}
    writers: dict[Version, str] = {}
    for each in transactions.values():
        for version, writer in _writers_known_from(each):
            known = writers.setdefault(version, writer)
            if known != writer:
                return f"{known} and {writer} have both written the version {version}"
    before: TopologicalSorter[str] = TopologicalSorter()
    for each in transactions.values():
        for key, (number, _) in each.reads.items():
            _order(before, writers.get((key, number)), each.name)
            _order(before, each.name, writers.get((key, number + 1)))
    for (key, number), writer in writers.items():
        _order(before, writers.get((key, number - 1)), writer)
    for earlier, later in _by_time(transactions.values()):
        _order(before, earlier, later)
    try:
        before.prepare()
    except CycleError as error:
        return "no order: " + "; ".join(
            str(transactions.get(name, name)) for name in reversed(error.args[1])
        )
    return ""


def _writers_known_from(transaction: Transaction) -> Iterator[tuple[Version, str]]:
    for key, (number, writer) in transaction.reads.items():
        if writer:
            yield (key, number), writer
    for key, written in transaction.writes.items():
        if written is not None:
            yield (key, written), transaction.name


def _order(before: TopologicalSorter[str], earlier: str | None, later: str | None) -> None:
    if earlier is not None and later is not None and earlier != later:
        before.add(later, earlier)


def _by_time(transactions: Iterable[Transaction]) -> Iterator[tuple[str, str]]:
    """Each transaction after the last one of each session that had ended when it began."""
    sessions: dict[str, list[Transaction]] = {}
    for each in sorted(transactions, key=lambda each: each.ended):
        sessions.setdefault(each.session, []).append(each)
    for ended in sessions.values():
        moments = [each.ended for each in ended]
        for later in (each for session in sessions.values() for each in session):
            last = bisect_left(moments, later.began)
            if last:
                yield ended[last - 1].name, later.name
