"""Writes with conditions or updates on large items: evaluated without the engine's lock.

The first attempt of such a write finds the record and ends (`EvaluateFirst`). Then the condition and the update are
evaluated while others read and write, and the request begins again (`evaluating_first`): if the record is unchanged, the
result is used; otherwise it is evaluated again. The event loop's thread raises `TakesLong` instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from isotone import limits
from isotone.engine.layout import item_of
from isotone.errors import ApiError
from isotone.operations.long_requests import raise_if_long
from isotone.values.attribute_validation import Item

if TYPE_CHECKING:
    from isotone.operations.item_writes import ItemChange, Sized, StateBefore

T = TypeVar("T")

LARGE: Final = 4 * limits.KB
"""From this many bytes of a record on, the work of a write is counted."""

# Bytes times nodes of expressions that are evaluated within some milliseconds
_QUICK: Final = 1_000_000
_PARSED: Final = 128 * limits.KB  # bytes of an item that are parsed within some milliseconds
_ATTEMPTS: Final = 10

NOTHING: Final = (None, None)
"""The state of an item that does not exist."""


class Evaluated(NamedTuple):
    """The result of a write: its new item (None if it is deleted) or its error. It is valid if the record is still the
    same.

    `item` is the parsed record, if the write needs it again for index entries.
    """

    record: bytes
    item: Item | None
    table: Any
    new: Sized | None
    error: ApiError | None


class _EvaluatedHere(threading.local):
    known: dict[tuple[str, bytes], Evaluated] | None = None
    insists = False


evaluated_here: Final = _EvaluatedHere()
"""What this thread has evaluated for its request that begins again."""


class EvaluateFirst(ApiError):
    """Ends a transaction that has written nothing, so that changes can be evaluated. It never reaches callers.

    It is an `ApiError` so that a group takes it as the result of one request, which `Api.send_many` then sends alone.
    """

    def __init__(self, changes: list[tuple[ItemChange, bytes]]) -> None:
        super().__init__()
        self.changes = changes


def evaluate(change: ItemChange, record: bytes) -> Evaluated:
    """Evaluate a change of a record. Needs neither the store nor the engine."""
    item: Item | None = item_of(record)
    try:
        new = change.new_item((record, item))
    except ApiError as error:
        # With its traceback, the error would keep the item alive until the client has received it.
        return Evaluated(record, None, change.table, None, error.with_traceback(None))
    if change.only_checks or not change.table.indexes:
        item = None
    return Evaluated(record, item, change.table, new, None)


def evaluating_first(run: Callable[[], T], ended: EvaluateFirst) -> T:
    """Execute a request that `EvaluateFirst` has ended: evaluate its changes, and begin again."""
    if evaluated_here.known is not None:
        raise ended  # `run` itself comes here: the loop below evaluates what is missing
    changes = ended.changes
    known: dict[tuple[str, bytes], Evaluated] = {}
    evaluated_here.known = known
    try:
        for _ in range(_ATTEMPTS):
            for change, record in changes:
                known[change.table.tree, change.key] = evaluate(change, record)
            try:
                return run()
            except EvaluateFirst as again:
                changes = again.changes
        # Others keep changing the item, so evaluate it in the transaction.
        evaluated_here.insists = True
        return run()
    finally:
        evaluated_here.known = None
        evaluated_here.insists = False
        known.clear()  # the traceback of an error would keep it


def state_before(change: ItemChange, record: bytes) -> StateBefore:
    """The state before a change of a large record. Raises `TakesLong` or `EvaluateFirst` if it is evaluated elsewhere."""
    size = len(record)
    if (size <= _PARSED and size * change.nodes <= _QUICK) or evaluated_here.insists:
        return record, item_of(record)
    raise_if_long(True)
    known = (
        None
        if evaluated_here.known is None
        else evaluated_here.known.get((change.table.tree, change.key))
    )
    if known is not None and known.record == record and known.table is change.table:
        return known.record, known.item
    raise EvaluateFirst([(change, record)])


def known_result(change: ItemChange, record: bytes) -> Evaluated | None:
    """The result that was evaluated for this record, if any."""
    assert evaluated_here.known is not None
    known = evaluated_here.known.get((change.table.tree, change.key))
    return known if known is not None and known.record is record else None
