"""Writes many items in batches: repeats what is throttled or unprocessed, and in the end raises `BatchIncomplete`.

    writer = BatchWriter(backend, "Orders", pace)
    units = writer.write([put(item) for item in items] + [delete(key)])

    yield from write_batch([("Orders", put(order)), ("Customers", delete(key))])

A batch has at most 25 entries, each with another key. The service writes as much of it as throughput allows and returns
the rest, which is sent again after a pause. A `BatchWriter` writes to one table at a pace, from many threads. If the
backend can commit several requests at once (`send_many` of a database in this process), it gets all batches of a call
together, so the call waits for the disk once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.backends.interface import Backend, Response
from isotone.backends.request_retries import THROTTLES, is_transient
from isotone.errors import BatchIncomplete, ProvisionedThroughputExceededException
from isotone.tables.pace import Pace, units_of
from isotone.tables.retries import PACED, THROTTLING
from isotone.tables.scan import ItemOrJson, decoded, json_length
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

BatchEntry = dict[str, Any]
"""An entry of BatchWriteItem."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


def put(item: ItemOrJson) -> BatchEntry:
    """The entry that puts an item, which may be in JSON."""
    return {"PutRequest": {"Item": item}}


def delete(key: Item) -> BatchEntry:
    """The entry that deletes the item with a key."""
    return {"DeleteRequest": {"Key": key}}


def write_batch(entries: Sequence[tuple[str, BatchEntry]]) -> Steps[None]:
    """Write up to 25 entries, each with its table.

    Raises `BatchIncomplete` with the entries that the service keeps leaving unprocessed."""
    pending: dict[str, list[BatchEntry]] = {}
    for table, entry in entries:
        pending.setdefault(table, []).append(entry)
    attempt = 0
    while left := (yield from _unprocessed_of(pending)):
        attempt = attempt + 1 if _count(left) == _count(pending) else 0
        pending = left
        if attempt == THROTTLING.attempts:
            raise BatchIncomplete(
                f"after {attempt} attempts that wrote nothing, {_count(left)} of {len(entries)} "
                "entries of a batch are not written; the table has too little throughput",
                [entry for each in left.values() for entry in each],
            )
        yield THROTTLING.pause(max(attempt, 1))


def _count(pending: Mapping[str, Sequence[BatchEntry]]) -> int:
    return sum(map(len, pending.values()))


def _unprocessed_of(pending: dict[str, list[BatchEntry]]) -> Steps[dict[str, list[BatchEntry]]]:
    """Send one request; returns the unprocessed entries."""
    try:
        return _unprocessed((yield Call("BatchWriteItem", {"RequestItems": pending})))
    except THROTTLES:
        return pending


def _unprocessed(response: Response) -> dict[str, list[BatchEntry]]:
    left: dict[str, list[BatchEntry]] = response.get("UnprocessedItems") or {}
    return left


class BatchWriter:
    """Writes into one table, from any thread."""

    def __init__(self, backend: Backend, table: str, pace: Pace, *, shared_by: int = 1) -> None:
        self._backend = backend
        self._send_many = getattr(backend, "send_many", None)
        self._takes_json = getattr(backend, "takes_json", False)
        self._table = table
        self._pace = pace
        self._size = pace.affordable(1.0, limits.BATCH_WRITE_ITEMS, shared_by)

    def write(self, entries: Sequence[BatchEntry]) -> float:
        """Write all entries and return the units; no two may have the same key.

        Raises the service's error for an entry that it refuses; others may already have been written.
        """
        units, attempt = 0.0, 0
        left: list[BatchEntry] = list(entries)
        failure: Exception | None = None
        while left:
            batches = [left[at : at + self._size] for at in range(0, len(left), self._size)]
            if self._send_many is not None and failure is None:
                cost, refused, failure = self._write_together(batches)
            else:  # on failure, one by one, to raise the cause: a full disk, a read-only file
                cost, refused = self._write_each(batches)
                failure = None
            units += cost
            attempt = attempt + 1 if len(refused) == len(left) else 1
            left = refused
            if attempt > PACED.attempts:
                raise ProvisionedThroughputExceededException(
                    f"nothing of {attempt} batches for table {self._table} was processed"
                )
            if left:
                self._pace.throttled(attempt)
        return units

    def _write_together(
        self, batches: list[list[BatchEntry]]
    ) -> tuple[float, list[BatchEntry], Exception | None]:
        """Write batches in one transaction; returns the units, the entries that were not processed, and why."""
        assert self._send_many is not None
        self._pace.wait()
        requests = [("BatchWriteItem", _encode(self._request(batch))) for batch in batches]
        units, left = 0.0, list[BatchEntry]()
        failure: Exception | None = None
        for batch, answer in zip(batches, self._send_many(requests), strict=True):
            if isinstance(answer, Exception):
                if not is_transient(answer):
                    raise answer
                failure = answer
                left += batch
                continue
            response = _decode(answer)
            units += _cost(batch, response)
            left += self._left(response)
        self._pace.spend(units)
        return units, left, failure

    def _write_each(self, batches: list[list[BatchEntry]]) -> tuple[float, list[BatchEntry]]:
        units, left = 0.0, list[BatchEntry]()
        for batch in batches:
            if not self._takes_json:
                batch = [_plain(entry) for entry in batch]
            write = partial(self._backend.execute, "BatchWriteItem", self._request(batch))
            response = self._pace.send(write, partial(_cost, batch))
            units += _cost(batch, response)
            left += self._left(response)
        return units, left

    def _request(self, batch: list[BatchEntry]) -> dict[str, Any]:
        return {"RequestItems": {self._table: batch}, "ReturnConsumedCapacity": "TOTAL"}

    def _left(self, response: Response) -> list[BatchEntry]:
        return _unprocessed(response).get(self._table, [])


def _cost(batch: list[BatchEntry], response: Response) -> float:
    """The units of a batch; an estimate if the engine does not report them."""
    units = units_of(response)
    if units is not None:
        return units
    sizes = (json_length(next(iter(next(iter(each.values())).values()))) for each in batch)
    return float(sum(max(1, -(-size // limits.WRITE_UNIT)) for size in sizes))


def _plain(entry: BatchEntry) -> BatchEntry:
    """An entry with its item as a dict, for a backend that does not take JSON."""
    if "PutRequest" not in entry:
        return entry
    return put(decoded(entry["PutRequest"]["Item"]))
