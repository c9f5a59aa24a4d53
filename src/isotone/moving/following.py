"""Follows a table's stream from a noted position, and applies each change to a copy; `ChangesLost` after 24 hours.

    position = note_position(source, "Orders")          # before the copy begins; enables the stream if there is none
    …                                                   # copy all pages, with consistent reads
    follower = Follower(source, "Orders", position, writer, save)
    while not follower.is_caught_up:
        follower.step()                                 # a page of each shard

Why this ends with an exact copy: a page is read after the position was noted, with a consistent read. So each key in
the copy is at least as new as the position, and every later change of it is in the stream after the position. The changes
of a key are in one shard or its children, which are read in order, parents first. All of them are applied again, so the
last one wins, whatever the page had. A put or delete that is repeated has the same result, and so has a page of
changes that a killed process repeats from the saved position.

Shards that were closed when the position was noted have only older changes, and are skipped. An open shard is read from
its oldest record: up to a few hours of changes are applied again, which costs writes but changes nothing in the end.

A source that is restored to an earlier state counts its changes from there again, so a position may be ahead of new changes.
Therefore the change that was applied last is read again, before a shard counts as read: it must still be the same.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from typing import Any, Final

import msgspec

from isotone.backends.interface import Backend
from isotone.errors import (
    ChangesLost,
    ExpiredIteratorException,
    LimitExceededException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    UsageError,
    ValidationException,
)
from isotone.moving.item_identity import key_text
from isotone.moving.table_making import stream_request, wait_until_active
from isotone.moving.target_checks import KEPT_KEYS
from isotone.tables.batch_reads import read_items
from isotone.tables.batches import BatchEntry, BatchWriter, delete, put
from isotone.tables.definition import TableDefinition, read_definition
from isotone.tables.pace import Pace, Stopped
from isotone.tables.progress import Meter
from isotone.values.json import with_empty_maps
from isotone.values.types import Item

_VIEW: Final = "NEW_IMAGE"  # the view type of a stream that a copy enables itself
_WITH_IMAGES: Final = ("NEW_IMAGE", "NEW_AND_OLD_IMAGES")
_LAST_PAGES: Final = 3  # consecutive last pages after which an open shard counts as read
# seconds; a short page with a change this recent is at the end of a busy shard
_RECENT: Final = 10.0
_RECORDS_A_PAGE: Final = 1000
_MAX_WAIT: Final = 120.0  # seconds to wait until a stream is enabled
_KEYS_A_READ: Final = 100
_KEPT: Final = 24 * 3600.0  # seconds for which a stream keeps changes
_SAVE: Final = 60.0  # seconds between two saves of the position in a stream without changes


class StreamPosition(msgspec.Struct):
    """The position from which a stream is read on.

    `after` has the last applied sequence number of each shard, `waiting` the shards without any applied record, and
    `done` the shards that need not be read any more. Every change in `waiting` shards is later than `noted`, by this
    machine's clock; 0 if that is not known. `written` are keys of the items that were put last. `marks` has what tells
    the last applied change of each shard from any other.
    """

    arn: str
    view: str
    waiting: list[str] = msgspec.field(default_factory=list)
    after: dict[str, str] = msgspec.field(default_factory=dict)
    done: list[str] = msgspec.field(default_factory=list)
    applied: int = 0
    noted: float = 0.0
    written: list[Item] = msgspec.field(default_factory=list)
    marks: dict[str, str] = msgspec.field(default_factory=dict)


class _Shard(msgspec.Struct, frozen=True):
    id: str
    parent: str | None
    is_closed: bool


def note_position(
    backend: Backend, definition: TableDefinition, *, sleep: Callable[[float], object] = time.sleep
) -> StreamPosition:
    """The position in a table's stream before any later change; enables the stream if there is none."""
    name, noted = definition.name, time.time()
    if definition.table.stream is None:
        backend.execute("UpdateTable", stream_request(name, _VIEW))
        definition = wait_until_active(backend, name, sleep=sleep)
    arn = _wait_until_enabled(backend, name, sleep)
    shards = _shards(backend, arn)
    return StreamPosition(
        arn,
        definition.table.stream or _VIEW,
        waiting=[shard.id for shard in shards if not shard.is_closed],
        done=[shard.id for shard in shards if shard.is_closed],
        noted=noted,
    )


def _wait_until_enabled(backend: Backend, name: str, sleep: Callable[[float], object]) -> str:
    pause, until = 0.05, time.monotonic() + _MAX_WAIT
    while time.monotonic() < until:
        found = read_definition(backend, name)
        arn = found.table.stream_arn if found else None
        if arn:
            answer = backend.execute("DescribeStream", {"StreamArn": arn})
            if answer["StreamDescription"].get("StreamStatus") == "ENABLED":
                return arn
        if sleep(pause):
            raise Stopped
        pause = min(pause * 2, 2.0)
    raise UsageError(f"the stream of table {name!r} was not enabled in {_MAX_WAIT:.0f} s")


def _shards(backend: Backend, arn: str) -> list[_Shard]:
    found: list[_Shard] = []
    request: dict[str, Any] = {"StreamArn": arn}
    while True:
        try:
            response = backend.execute("DescribeStream", request)
        except ResourceNotFoundException:
            raise _lost(arn, "the stream was deleted") from None
        description = response["StreamDescription"]
        if description.get("StreamStatus") in ("DISABLING", "DISABLED"):
            raise _lost(arn, "the stream was disabled")
        for each in description.get("Shards", ()):
            is_closed = "EndingSequenceNumber" in (each.get("SequenceNumberRange") or {})
            found.append(_Shard(each["ShardId"], each.get("ParentShardId"), is_closed))
        last = description.get("LastEvaluatedShardId")
        if last is None:
            return found
        request = {**request, "ExclusiveStartShardId": last}


def _lost(arn: str, why: str) -> ChangesLost:
    return ChangesLost(
        f"changes of {arn} are lost: {why} before they were applied; a stream keeps them for 24 hours; "
        "delete the target table and copy again"
    )


def _restored(arn: str) -> ChangesLost:
    return ChangesLost(
        f"{arn} does not have the change any more that was applied last: the source was restored to an earlier state; delete "
        "the target table and copy again"
    )


class Follower:
    """Applies the changes in one table's stream to its copy. One thread calls `step`; a pool reads the shards."""

    def __init__(
        self,
        source: Backend,
        definition: TableDefinition,
        position: StreamPosition,
        writer: BatchWriter,
        *,
        pace: Pace,
        meter: Meter,
        save: Callable[[], None],
        pool: Executor,
    ) -> None:
        self.position = position
        self._source = source
        self._definition = definition
        self._names = definition.table.key.names
        self._writer = writer
        self._pace = pace
        self._meter = meter
        self._save = save
        self._pool = pool
        self._iterators: dict[str, str] = {}
        self._at_end: dict[str, int] = {}  # how many pages in a row were the last of their shard
        self._newest = 0.0  # the time of the last applied change
        self._shards: list[_Shard] = []
        self._shards_are_stale = True
        self._lock = threading.Lock()

    @property
    def is_caught_up(self) -> bool:
        """Whether every shard was read to its end several times in a row; a growing stream has no certain end."""
        return not self._shards_are_stale and all(
            shard.id in self.position.done or self._at_end.get(shard.id, 0) >= _LAST_PAGES
            for shard in self._shards
        )

    def start_over(self) -> None:
        """Make `is_caught_up` false until every shard is read to its end again."""
        self._at_end.clear()
        self._shards_are_stale = True

    def step(self) -> int:
        """Apply a page of each shard that is not read to its end; returns the number of changes."""
        began = time.time()
        if self._shards_are_stale or self._is_at_end():
            self._list_shards()
        ready = [shard for shard in self._shards if self._is_ready(shard)]
        applied = sum(self._pool.map(self._advance, ready))
        self._note_empty(began)
        now = time.time()
        self._meter.lag = 0.0 if self.is_caught_up else max(now - (self._newest or now), 0.0)
        return applied

    def _note_empty(self, began: float) -> None:
        """Record that the waiting shards had no changes yet, if all of them were read to their end."""
        position = self.position
        if all(self._at_end.get(each) for each in position.waiting):
            is_due = began - position.noted > _SAVE
            position.noted = began
            if is_due:
                self._save()

    def _is_at_end(self) -> bool:
        return all(self._at_end.get(each.id) for each in self._shards if self._is_ready(each))

    def _list_shards(self) -> None:
        found = _shards(self._source, self.position.arn)
        ids = {shard.id for shard in found}
        unread = {*self.position.waiting, *self.position.after} - {*self.position.done}
        if unread - ids:
            raise _lost(self.position.arn, "a shard was deleted")
        for _ in self._pool.map(self._check_last, [*self.position.marks]):
            pass
        self._shards = found
        self._shards_are_stale = False

    def _check_last(self, shard: str) -> None:
        """Raise `ChangesLost` if a shard has another change where the last applied one was."""
        arn, after = self.position.arn, self.position.after.get(shard)
        if after is None:
            return
        kind = {"ShardIteratorType": "AT_SEQUENCE_NUMBER", "SequenceNumber": after}
        try:
            found = self._source.execute(
                "GetShardIterator", {"StreamArn": arn, "ShardId": shard, **kind}
            )
            request = {"ShardIterator": found["ShardIterator"], "Limit": 1}
            records = self._pace.execute(self._source, "GetRecords", request)["Records"]
        except ValidationException:  # the stream has not come so far
            raise _restored(arn) from None
        except (TrimmedDataAccessException, ResourceNotFoundException, LimitExceededException):
            return  # it cannot be read now, which says nothing about it
        if records and self._mark(records[0]) != self.position.marks[shard]:
            raise _restored(arn)

    def _mark(self, record: Mapping[str, Any]) -> str:
        """What tells a change from another one with the same sequence number."""
        change = record["dynamodb"]
        key = key_text(change["Keys"], self._names)
        text = f"{change['SequenceNumber']} {change.get('ApproximateCreationDateTime')} "
        return hashlib.blake2b(text.encode() + key, digest_size=8).hexdigest()

    def _is_ready(self, shard: _Shard) -> bool:
        """Whether a shard must be read now: it is not done, and its parent is done or dropped."""
        if shard.id in self.position.done:
            return False
        ids = {each.id for each in self._shards}
        return shard.parent is None or shard.parent not in ids or shard.parent in self.position.done

    def _advance(self, shard: _Shard) -> int:
        page = self._read(shard)
        records: list[Mapping[str, Any]] = page["Records"]
        if records:
            cost = self._apply(records)
            self._meter.add(changes=len(records), write_units=cost)
        following = page.get("NextShardIterator")
        with self._lock:
            if records:
                changes = [record["dynamodb"] for record in records]
                self.position.after[shard.id] = changes[-1]["SequenceNumber"]
                self.position.marks[shard.id] = self._mark(records[-1])
                self.position.applied += len(records)
                self._newest = max(
                    self._newest, float(changes[-1].get("ApproximateCreationDateTime") or 0)
                )
            is_last = not records or (
                len(records) < _RECORDS_A_PAGE and time.time() - self._newest <= _RECENT
            )
            self._at_end[shard.id] = self._at_end.get(shard.id, 0) + 1 if is_last else 0
            if following is None:
                self.position.done.append(shard.id)
                self.position.after.pop(shard.id, None)
                self.position.marks.pop(shard.id, None)
                self._iterators.pop(shard.id, None)
                self._shards_are_stale = True  # its children may exist now
            else:
                self._iterators[shard.id] = following
            if shard.id in self.position.waiting and (records or following is None):
                self.position.waiting.remove(shard.id)
            if records or following is None:
                self._save()
        return len(records)

    def _read(self, shard: _Shard) -> dict[str, Any]:
        attempt = 0
        while True:
            iterator = self._iterators.get(shard.id) or self._iterator(shard)
            try:
                return self._pace.execute(
                    self._source,
                    "GetRecords",
                    {"ShardIterator": iterator, "Limit": _RECORDS_A_PAGE},
                )
            except ExpiredIteratorException:
                self._iterators.pop(shard.id, None)
            except LimitExceededException:  # the throttling error of streams
                attempt += 1
                self._pace.throttled(attempt)
            except TrimmedDataAccessException:
                raise _lost(self.position.arn, "they were dropped") from None

    def _iterator(self, shard: _Shard) -> str:
        after, noted = self.position.after.get(shard.id), self.position.noted
        if shard.id in self.position.waiting and noted and time.time() - noted > _KEPT:
            # Its first changes may be dropped: the oldest remaining one does not tell whether there
            # were earlier ones.
            raise _lost(self.position.arn, "they were dropped")
        kind = {"ShardIteratorType": "TRIM_HORIZON"}
        if after is not None:
            kind = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
        try:
            response = self._source.execute(
                "GetShardIterator", {"StreamArn": self.position.arn, "ShardId": shard.id, **kind}
            )
        except (TrimmedDataAccessException, ResourceNotFoundException):
            raise _lost(self.position.arn, "they were dropped") from None
        found: str = response["ShardIterator"]
        return found

    def _apply(self, records: list[Mapping[str, Any]]) -> float:
        """Write the last state of each key on a page; returns the units."""
        last: dict[bytes, Mapping[str, Any]] = {}
        for record in records:
            last[key_text(record["dynamodb"]["Keys"], self._names)] = record
        keys = {text: record["dynamodb"]["Keys"] for text, record in last.items()}
        if self.position.view in _WITH_IMAGES:
            entries = [_entry(record) for record in last.values()]
        else:
            entries = self._present([*keys.values()])
        units = self._writer.write(entries)
        put_keys = [
            key for key, entry in zip(keys.values(), entries, strict=True) if "PutRequest" in entry
        ]
        with self._lock:
            earlier = [
                key for key in self.position.written if key_text(key, self._names) not in keys
            ]
            self.position.written = [*earlier, *put_keys][-KEPT_KEYS:]
        return units

    def _present(self, keys: list[Item]) -> list[BatchEntry]:
        """The entries that bring keys to their current state at the source, for a stream without images."""
        entries: list[BatchEntry] = []
        for at in range(0, len(keys), _KEYS_A_READ):
            wanted = keys[at : at + _KEYS_A_READ]
            items = read_items(self._source, self._definition.name, wanted, self._pace)
            found = {key_text(item, self._names): item for item in items}
            for key in wanted:
                item = found.get(key_text(key, self._names))
                entries.append(delete(key) if item is None else put(item))
        return entries


def _entry(record: Mapping[str, Any]) -> BatchEntry:
    change = record["dynamodb"]
    if record["eventName"] == "REMOVE":
        return delete(change["Keys"])
    return put(with_empty_maps(change["NewImage"]))
