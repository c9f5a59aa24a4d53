"""Writes with conditions or updates on large items: evaluated optimistically, without the engine's lock.

Such a write does not fit into a turn of an event loop (`effort`). `evaluating_ahead` executes it in another thread. The
first attempt finds the item and ends. Then the condition and the update are evaluated while the lock is free. Then the
request begins again: if the record is unchanged, the evaluated result is used; otherwise it is evaluated again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from isotone import limits
from isotone.effort import give_way, spend, this_thread
from isotone.engine.layout import item_of
from isotone.errors import ApiError
from isotone.values.attribute_validation import Item

if TYPE_CHECKING:
    from isotone.engine.engine import Engine
    from isotone.operations.item_writes import ItemChange, Sized, Stored

T = TypeVar("T")

LARGE: Final = 4 * limits.KB
"""From this many bytes of a record or of values on, the work of a write is estimated."""

_EACH: Final = 0.01  # microseconds per byte that is parsed or that a function reads
_AHEAD: Final = 500.0  # microseconds of work that justify beginning again
_ATTEMPTS: Final = 10

NOTHING: Final = (None, None)
"""The state of an item that does not exist."""


class Evaluated(NamedTuple):
    """The result of a write: its new item (None if it is deleted) or its error. It is valid if the record is still the
    same.

    `item` is the parsed record, if the write needs it again for index entries.
    """

    record: bytes | None
    item: Item | None
    table: Any
    new: Sized | None
    error: ApiError | None


class _Ahead(threading.local):
    known: dict[tuple[str, bytes], Evaluated] | None = None
    insists = False


ahead: Final = _Ahead()
"""What this thread has evaluated for its current request; None if it evaluates in the transaction."""


class EvaluateFirst(ApiError):
    """Ends a transaction that has written nothing, so that changes can be evaluated. It never reaches callers."""

    def __init__(self, changes: list[tuple[ItemChange, bytes | None]]) -> None:
        super().__init__()
        self.changes = changes


def evaluate(change: ItemChange, record: bytes | None) -> Evaluated:
    """Evaluate a change of a record. Needs neither the store nor the engine."""
    item = None if record is None else item_of(record)
    give_way()
    try:
        new = change.new_item((record, item))
    except ApiError as error:
        # With its traceback, the error would keep the item alive until the client has received it.
        return Evaluated(record, None, change.table, None, error.with_traceback(None))
    if change.only_checks or not change.table.indexes:
        item = None
    return Evaluated(record, item, change.table, new, None)


def evaluating_ahead(run: Callable[[], T]) -> T:
    """Execute a request, and evaluate its long changes while the engine's lock is free."""
    known: dict[tuple[str, bytes], Evaluated] = {}
    ahead.known = known
    try:
        for _ in range(_ATTEMPTS):
            try:
                return run()
            except EvaluateFirst as first:
                changes = first.changes
            for change, record in changes:
                known[change.table.tree, change.key] = evaluate(change, record)
        ahead.insists = True  # others keep changing the item, so evaluate it in the transaction
        return run()
    finally:
        ahead.known = None
        ahead.insists = False
        while known:  # one by one, because freeing a large item takes milliseconds
            known.popitem()


def stored(change: ItemChange, record: bytes | None) -> Stored:
    """The state before a long change. Raises `Postponed` or `EvaluateFirst` if it must be evaluated elsewhere."""
    weight, size = 1, 0
    if change.effort is not None:
        weight, size = 1 + change.effort.weight, change.effort.work
    work = (size + (0 if record is None else weight * len(record))) * _EACH
    if ahead.known is None:
        spend(work)
        return record, None if record is None else item_of(record)
    known = ahead.known.get((change.table.tree, change.key))
    if known is not None and known.record == record and known.table is change.table:
        return known.record, known.item
    if work < _AHEAD or ahead.insists:
        return record, None if record is None else item_of(record)
    raise EvaluateFirst([(change, record)])


def read_all(engine: Engine, changes: Iterable[ItemChange | None]) -> list[Stored]:
    """The states before several changes of one request; None stays None."""
    found: list[Stored] = []
    missing: list[tuple[ItemChange, bytes | None]] = []
    for change in changes:
        try:
            found.append(NOTHING if change is None else change.read(engine))
        except EvaluateFirst as first:
            missing += first.changes
    if missing:
        raise EvaluateFirst(missing)
    return found


def known_result(change: ItemChange, record: bytes | None) -> Evaluated | None:
    """The result evaluated ahead for this record, if any."""
    assert ahead.known is not None
    known = ahead.known.get((change.table.tree, change.key))
    return known if known is not None and known.record is record else None


def can_be_interrupted() -> bool:
    """Whether a change in this thread may end the transaction to be evaluated elsewhere."""
    return this_thread.turn.is_bounded or ahead.known is not None
