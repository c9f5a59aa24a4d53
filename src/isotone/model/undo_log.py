"""`undo=`: the undo log of a rewrite (each item before and after, as JSON lines), and `store.undo`.

    {"table": "shop", "items": [{"key": {"PK": {"S": "ORDER#1"}, …}, "before": {…}, "after": {…}}], "sum": 2861450718}

A line has the items of one write as DynamoDB JSON, and the CRC of what stands before the sum. It reaches the disk before
the write is sent. `undo` reads the lines from last to first and restores each line's items in one transaction, on the
condition that they are still as the rewrite left them.

Other lines have the key of the item in which the rewrite saves its position. `undo` deletes that item before it
restores anything, because a rewrite that continued there would skip the restored items.

    {"table": "shop", "items": [], "position": {"PK": {"S": "_rewriting#Order"}, …}, "sum": 1127433041}

A damaged line ends an undo with its number. It may be taken out by hand, and its items then stay as they are: so each
line stands for itself, and a line that is missing is not noticed. Lines of earlier versions have no sum.
"""

from __future__ import annotations

import os
import re
import threading
from array import array
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

import msgspec

from isotone.crc import crc32
from isotone.errors import (
    ConditionalCheckFailedException,
    Contended,
    InProgress,
    TransactionCanceledException,
    TransactionConflictException,
    UsageError,
)
from isotone.file_lock import WITHOUT_LOCKS, check_in_place, lock
from isotone.model.expression_trees import absent, unchanged
from isotone.model.writing.executor import reasons_of
from isotone.model.writing.item_rewrite import Touched
from isotone.output_paths import OutputPath, check_output, errors_name, is_database
from isotone.tables.retries import CONTENTION, RetryNeeded, write_when_free
from isotone.tables.steps import Call, Steps
from isotone.text_table import pluralized
from isotone.values.types import Item, is_same_item


class _UndoneChange(msgspec.Struct):
    key: Item
    before: Item | None
    after: Item | None


class _LogLine(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    table: str
    items: list[_UndoneChange]
    position: Item | None = None
    sum: int | None = None


_BEGIN: Final = b'{"table":'
_IS_POSITION: Final = re.compile(rb'\{"table":"[^"]*","items":\[\],"position":').match
_SUM: Final = b',"sum":'
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(_LogLine).decode


class UndoLog:
    """An undo log opened for writing; lines are appended to those of an earlier run."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open or create the file. Raises `UsageError` for a file that is not an undo log, and leaves it unchanged."""
        check_undo_log(path)
        self._lock = threading.Lock()  # several segments write at the same time
        self._path = path
        self._file = Path(path).open("ab")  # noqa: SIM115 - closed by __exit__
        _lock(
            self._file, path
        )  # first, so that a line being written by another process is not taken for a torn one
        self._drop_torn_line(Path(path))
        self._is_synced = True
        self._positions: set[bytes] = set()

    def _drop_torn_line(self, path: Path) -> None:
        """Remove a partial line that a killed process left; its write was never sent."""
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - 1))
            while size and file.read(1) != b"\n":
                size -= 1
                file.seek(max(0, size - 1))
        self._file.truncate(size)
        self._size = size

    def add(self, table: str, touched: Sequence[Touched]) -> None:
        """Add the items of a write that is about to be sent."""
        line = _summed(_LogLine(table, [_UndoneChange(*each) for each in touched]))
        with self._lock:
            self._write(line)

    def add_position(self, table: str, key: Item) -> None:
        """Add the key of the item that stores the rewrite's position; only once."""
        line = _summed(_LogLine(table, [], key))
        with self._lock:
            if line not in self._positions:
                self._write(line)
                self._positions.add(line)

    def _write(self, line: bytes) -> None:
        with errors_name(self._path):
            self._file.write(line)
        self._size += len(line)
        self._is_synced = False

    def sync(self) -> None:
        """Wait until all lines are on disk, in the file that has the log's name."""
        with self._lock:
            if not self._is_synced:
                with errors_name(self._path):
                    self._file.flush()
                    os.fsync(self._file.fileno())
                check_in_place(self._file, self._path, self._size)
                self._is_synced = True

    def add_and_sync(self, table: str, touched: Sequence[Touched]) -> None:
        """Add the items of a write, and wait until the line is on disk."""
        self.add(table, touched)
        self.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with errors_name(self._path):
            self._file.close()


def _lock(file: BinaryIO, path: str | PathLike[str]) -> None:
    """Lock an undo log until it is closed; raises `InProgress` if another rewrite or undo holds it."""
    try:
        lock(file)
    except OSError as error:
        if error.errno in WITHOUT_LOCKS:
            return
        file.close()
        raise InProgress(
            f"another rewrite or undo uses the undo log {str(path)!r}: wait until it is done, or give another file"
        ) from None


def undo_log_output(path: str | PathLike[str]) -> OutputPath:
    """The output path of an undo log, to which lines are appended."""
    return OutputPath("--undo-log (undo=)", path, is_appended=True)


def check_undo_log(path: str | PathLike[str]) -> None:
    """Raise `UsageError` for a file to which a rewrite must not append."""
    check_output(undo_log_output(path))
    _check_is_log(Path(path))


def _check_is_log(path: Path) -> None:
    """Raise `UsageError` for a file whose first line is not an undo log's."""
    if not path.exists():
        return
    with path.open("rb") as file:
        line = file.readline()
    if not line.endswith(b"\n") and line.startswith(_BEGIN[: len(line)]):
        return  # the line is torn
    try:
        _decoded(line)
    except ValueError as error:
        raise _no_log(path, error) from None


def _no_log(path: Path, reason: object) -> UsageError:
    return UsageError(
        f"{str(path)!r} is not an undo log ({reason}); give the file that rewrite(undo=…) wrote"
    )


def _summed(line: _LogLine) -> bytes:
    """The bytes of a line, with its sum."""
    content = _encode(line)[:-1]
    return b"%b%b%d}\n" % (content, _SUM, crc32(content))


def _decoded(text: bytes) -> _LogLine:
    """Raises `ValueError` for a text that is not a line of an undo log."""
    line = _decode(text)
    if line.sum not in (None, crc32(text.rpartition(_SUM)[0])):
        raise ValueError("it does not have its checksum")
    if not all(each.key for each in line.items) or not (line.items or line.position):
        raise ValueError("it has no key")
    return line


@dataclass(frozen=True, slots=True)
class Undone:
    """The progress of an undo: how many writes were undone, and how many were not.

    `changed` counts writes that were left as they are because their items have changed since; `unmade` counts writes
    that were never made, or were already undone. `examples` has keys of changed items.
    """

    restored: int = 0
    changed: int = 0
    unmade: int = 0
    examples: tuple[Item, ...] = ()

    @property
    def seen(self) -> int:
        """The number of writes read from the log."""
        return self.restored + self.changed + self.unmade

    def to_json(self) -> str:
        """The result as a JSON text."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return f"{pluralized(self.restored, 'item')} restored, {self.changed:,} changed since and left, {self.unmade:,} as before"


UndoProgress = Callable[[Undone], None]

_EXAMPLES: Final = 5


def undo(path: str | PathLike[str], progress: UndoProgress | None = None) -> Steps[Undone]:
    """See `Operations.undo`."""
    if not Path(path).is_file():
        raise UsageError(
            f"there is no undo log {str(path)!r}; give the file that rewrite(undo=…) wrote"
        )
    if is_database(path):
        raise _no_log(Path(path), "it is a database")
    done = Undone()
    with Path(path).open("rb") as file:
        _lock(file, path)
        if not _BEGIN.startswith(file.read(len(_BEGIN))):
            raise _no_log(Path(path), "its first line does not begin like one")
        file.seek(0)
        starts, positions = _lines(file)
        for start in positions:
            line = _line_at(file, start, Path(path))
            yield from write_when_free(
                Call("DeleteItem", {"TableName": line.table, "Key": line.position})
            )
        for start in reversed(starts):
            line = _line_at(file, start, Path(path))
            outcome = yield from _undo(line)
            done = replace(done, **{outcome: getattr(done, outcome) + 1})
            if outcome == "changed" and len(done.examples) < _EXAMPLES:
                done = replace(done, examples=(*done.examples, line.items[0].key))
            if progress is not None:
                progress(done)
    return done


def _lines(file: BinaryIO) -> tuple[array[int], Collection[int]]:
    """The offsets of lines with writes, and of each different line with a position."""
    starts = array("Q")
    positions: dict[bytes, int] = {}
    place = 0
    for text in file:
        if text.endswith(b"\n"):  # otherwise the line is torn, and its write was never sent
            if _IS_POSITION(text):
                positions[text] = place
            else:
                starts.append(place)
        place += len(text)
    return starts, positions.values()


def _line_at(file: BinaryIO, start: int, path: Path) -> _LogLine:
    file.seek(start)
    try:
        return _decoded(file.readline())
    except ValueError as error:
        raise UsageError(
            f"line {_number_of(file, start):,} of the undo log {str(path)!r} is damaged ({error}): take the line out to "
            "restore what the lines before it have; its own items stay as they are"
        ) from None


def _number_of(file: BinaryIO, start: int) -> int:
    """The number of the line that starts at a place."""
    file.seek(0)
    number = 1
    while file.tell() < start:
        file.readline()
        number += 1
    return number


def _undo(line: _LogLine) -> Steps[str]:
    """Undo one write; returns the name of the counter in `Undone` for the result."""
    return CONTENTION.run(
        partial(_attempt, line),
        lambda attempts: Contended(
            f"others changed {line.items[0].key} during each of {attempts} attempts; try again later"
        ),
        lost=(RetryNeeded, TransactionConflictException),
    )


def _attempt(line: _LogLine) -> Steps[str]:
    actions = [_restoring(line.table, each) for each in line.items]
    try:
        if len(actions) == 1:
            ((kind, members),) = actions[0].items()
            yield Call(f"{kind}Item", members)
        else:
            yield Call("TransactWriteItems", {"TransactItems": actions})
    except (ConditionalCheckFailedException, TransactionCanceledException) as error:
        if not any(reasons_of(error)):
            raise
        current = yield from _current(line)
        if _is_as_before([*zip(current, line.items, strict=True)]):
            return "restored" if error.follows_lost_answer else "unmade"
        if all(_is_as(item, each.after) for item, each in zip(current, line.items, strict=True)):
            raise RetryNeeded from None
        return "changed"
    return "restored"


def _restoring(table: str, change: _UndoneChange) -> dict[str, Any]:
    """The action that restores an item."""
    members: dict[str, Any] = {"TableName": table}
    names = {*(change.before or ()), *(change.after or ())}
    if change.after is None:
        members["ConditionExpression"] = absent(next(iter(change.key)))
    else:
        members["ConditionExpression"] = unchanged(sorted(names), change.after)
    if change.before is None:
        return {"Delete": {**members, "Key": change.key}}
    return {"Put": {**members, "Item": change.before}}


def _current(line: _LogLine) -> Steps[list[Item | None]]:
    items: list[Item | None] = []
    for each in line.items:
        request = {"TableName": line.table, "Key": each.key, "ConsistentRead": True}
        items.append((yield Call("GetItem", request)).get("Item"))
    return items


def _is_as_before(found: list[tuple[Item | None, _UndoneChange]]) -> bool:
    """Whether a write was not made, or is undone: what it would have made may be there from another write."""
    return all(
        _is_as(item, each.before) or (each.before is None and not _is_as(item, each.after))
        for item, each in found
    )


def _is_as(item: Item | None, wanted: Item | None) -> bool:
    if item is None or wanted is None:
        return item is wanted
    return is_same_item(item, wanted)
