"""The background work of imports and bulk operations: from the objects of a bucket to the items of a table.

A slice reads and checks a piece of an object without the lock, and then writes its items, and the position after
them, in one transaction. So every record is written exactly once, whenever the process is killed. Files are kept open
between slices. A reader that is behind the job, because another process went on with it, reads on to its position.

A record that is not an item, or does not fit the table, is counted and reported; the others are written. What cannot
be read further (a damaged file, a line without end) is one error, and the rest of that object is left out.

    aws-dynamodb/imports/<id>/error            a folder has CloudWatch's log of an import here, one JSON each line
    <prefix>/AWSDynamoDB/<id>/output.json      the report of a bulk operation
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from isotone import limits
from isotone.engine import backfill, items, transfers
from isotone.engine.engine import Engine
from isotone.engine.index_entries import Entry
from isotone.engine.layout import item_of, pack, size_of
from isotone.engine.table_indexes import SecondaryIndex, Table
from isotone.engine.transfers import Failure, Load
from isotone.engine.vector_index import VectorIndex
from isotone.errors import ApiError
from isotone.exchange.compression import damage, decompressed
from isotone.exchange.item_files import CsvOptions, ItemFile, Put, Record, Unreadable
from isotone.exchange.objects import ObjectStore, ObjectStoreError
from isotone.operations.capacity import vector_write_bytes
from isotone.operations.item_validation import check_item
from isotone.operations.request_expressions import Binding, Matches, bound
from isotone.operations.transfer_requests import job_arn
from isotone.values.attribute_validation import Item, canonical_item

SLICE: Final = 1000  # records read and written in one transaction

LOG_BUCKET: Final = "aws-dynamodb"
_FAILED: Final = Failure(
    "ItemValidationError",
    "Some of the items failed validation checks and were not imported. "
    "Please check CloudWatch error logs for more details.",
)
# The files that an export has beside its data.
_NOT_DATA: Final = re.compile(
    r"(?:.*/)?AWSDynamoDB/[0-9A-Za-z-]+/(?:_started|manifest-(?:summary|files)\.(?:json|md5|checksum))"
)

_encode: Final = msgspec.json.Encoder().encode


class Readers:
    """The open files of the jobs that this process works on, one for each job."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, tuple[int, int, ItemFile]] = {}

    def at(self, engine: Engine, objects: ObjectStore, job: Load, key: str) -> ItemFile:
        """The file of the job's present object, at its position."""
        process, number, file = self._open.get(job.id, (0, -1, None))
        # A process that was forked shares the position in the file with its parent.
        if file is not None and process == os.getpid() and number == job.object:
            if file.position == job.position:
                return file
            if file.position < job.position:
                file.skip_to(job.position)
                return file
        self.close(job.id)
        place = _source(job)
        raw = objects.open(place["S3Bucket"], key)
        try:
            file = ItemFile(
                decompressed(raw, _compression(job)), _format(job), _csv_options(engine, job)
            )
        except BaseException:
            raw.close()
            raise
        self._open[job.id] = (os.getpid(), job.object, file)
        if job.position > file.position:
            file.skip_to(job.position)
        return file

    def close(self, identity: str) -> None:
        """Close the file of a job, if one is open."""
        _, _, file = self._open.pop(identity, (0, 0, None))
        if file is not None:
            file.close()

    def close_all(self) -> None:
        """Close all files."""
        for identity in list(self._open):
            self.close(identity)


def step(engine: Engine, objects: ObjectStore, readers: Readers, job: Load) -> None:
    """Do a slice of an import or a bulk operation."""
    try:
        _step(engine, objects, readers, job)
    except ObjectStoreError as error:
        _end(engine, job, "FAILED", Failure(error.code, error.message))
    finally:
        # Another thread may end the job between two slices, by cancelling it.
        with engine.reading:
            now = transfers.find(engine, job.id)
        if now is None or now.ended is not None:
            readers.close(job.id)


def _step(engine: Engine, objects: ObjectStore, readers: Readers, job: Load) -> None:
    if job.status == "CANCELLING":
        _report(engine, objects, job)
        _end(engine, job, "CANCELLED", Failure("Cancelled", "The bulk operation was cancelled."))
    elif not job.known:
        _list_objects(engine, objects, job)
    else:
        with engine.reading:
            listed = transfers.objects_of(engine, job.id)
            table = _table(engine, job)
        if table is None:
            message = f"Requested resource not found: Table: {job.table} not found"
            _end(engine, job, "FAILED", Failure("ResourceNotFoundException", message))
        elif job.object < len(listed):
            _load(engine, objects, readers, job, table, listed)
        else:
            _finish(engine, objects, job)


def _table(engine: Engine, job: Load) -> Table | None:
    """The table to fill; None if it was deleted."""
    table = engine.catalog.find(job.table)
    return table if table is not None and table.schema.id == job.table_id else None


def _source(job: Load) -> dict[str, Any]:
    source: dict[str, Any] = job.request[
        "InputS3Configuration" if job.is_bulk else "S3BucketSource"
    ]
    return source


def _format(job: Load) -> Any:
    return (_source(job) if job.is_bulk else job.request)["InputFormat"]


def _compression(job: Load) -> Any:
    return (_source(job) if job.is_bulk else job.request).get("InputCompressionType", "NONE")


def _csv_options(engine: Engine, job: Load) -> CsvOptions:
    given = job.request.get("InputFormatOptions", {}).get("Csv", {})
    definitions = job.request.get("TableCreationParameters", {}).get("AttributeDefinitions", ())
    types = {each["AttributeName"]: each["AttributeType"] for each in definitions}
    return CsvOptions(types, given.get("Delimiter", ","), given.get("HeaderList"))


def _list_objects(engine: Engine, objects: ObjectStore, job: Load) -> None:
    source = _source(job)
    prefix = source.get("S3KeyPrefix", "")
    found = [
        (each.key, each.size)
        for each in objects.list(source["S3Bucket"], prefix)
        if not _NOT_DATA.fullmatch(each.key)
    ]
    if not found:
        where = f"s3://{source['S3Bucket']}/{prefix}"
        raise ObjectStoreError("S3NoSuchKey", f"There are no objects whose keys begin with {where}")
    if len(found) > limits.IMPORT_OBJECTS:
        raise ObjectStoreError(
            "TooManyObjects", f"There are more than {limits.IMPORT_OBJECTS} objects: {len(found)}"
        )
    with engine.writing:
        if transfers.find(engine, job.id) == job:
            transfers.save_objects(engine, job.id, found)
            total = sum(size for _, size in found)
            transfers.save(engine, msgspec.structs.replace(job, known=True, total=total))


# Read


class _Prepared(NamedTuple):
    """An item to put at a key: its record, and its place in its object.

    It is kept parsed only if something else is to be written with it; `matches` is its condition.
    """

    key: bytes
    number: int
    record: bytes
    item: Item | None
    matches: Matches | None


class _Refused(NamedTuple):
    """A record that is not written."""

    number: int
    message: str
    item: Item | None = None
    existing: Item | None = None
    kind: str = "ERROR"


class _Piece:
    """A piece of an object: the items to put, and what cannot be put."""

    __slots__ = ("count", "last", "position", "prepared", "refused")

    def __init__(self) -> None:
        self.prepared: list[_Prepared] = []
        self.refused: list[_Refused] = []
        self.count = 0
        self.position = 0
        self.last = False


def _load(
    engine: Engine,
    objects: ObjectStore,
    readers: Readers,
    job: Load,
    table: Table,
    listed: transfers.Listing,
) -> None:
    key, size = listed[job.object]
    piece = _read(engine, objects, readers, job, table, key)
    with engine.writing:
        if transfers.find(engine, job.id) != job or _table(engine, job) is not table:
            return  # another process went on with it, or the table was changed: look again
        usage = _Usage(job.usage) if job.is_bulk else None
        refused = piece.refused + _write(engine, table, piece.prepared, usage)
        errors = sum(each.kind == "ERROR" for each in refused)
        lines = b"".join(_line(engine, job, key, each) for each in refused if _is_wanted(job, each))
        if lines:
            transfers.stage(engine, job.id, job.staged, lines)
        transfers.save(
            engine,
            msgspec.structs.replace(
                job,
                object=job.object + piece.last,
                position=0 if piece.last else piece.position,
                index=0 if piece.last else job.index + piece.count,
                items=job.items + piece.count,
                errors=job.errors + errors,
                size=job.size + piece.position - job.position,
                read=job.read + (size if piece.last else 0),
                staged=job.staged + bool(lines),
                usage=job.usage if usage is None else usage.sizes,
            ),
        )
    if piece.last:
        readers.close(job.id)


def _read(
    engine: Engine,
    objects: ObjectStore,
    readers: Readers,
    job: Load,
    table: Table,
    key: str,
) -> _Piece:
    """The next records of an object, checked. What cannot be read is an error, and ends the object."""
    piece = _Piece()
    needs_item = job.is_bulk or bool(table.indexes)
    piece.position = job.position
    try:
        file = readers.at(engine, objects, job, key)
        # Each record is made before the next is read: a parsed item lives for a moment only.
        for record in file.read(SLICE):
            _prepare(table, piece, job.index + piece.count, record, needs_item)
            piece.count += 1
        piece.position, piece.last = file.position, file.ended
    except damage() as error:
        readers.close(job.id)
        message = f"The object cannot be read: {error}"
        piece.refused.append(_Refused(job.index + piece.count, message))
        piece.count += 1
        piece.last = True
    # Items with equal keys keep their order, so the last one remains.
    piece.prepared.sort(key=itemgetter(0))
    return piece


def _prepare(table: Table, piece: _Piece, number: int, record: Record, needs_item: bool) -> None:
    if isinstance(record, Unreadable):
        piece.refused.append(_Refused(number, record.message))
        return
    try:
        item, size = canonical_item(record.item)
        check_item(table, item, size)
        matches = None if record.condition_expression is None else _condition(table, record)
        key = table.keyspace.key(item)
        kept = item if needs_item else None
        piece.prepared.append(_Prepared(key, number, pack(item, size), kept, matches))
    except ApiError as error:
        piece.refused.append(_Refused(number, error.message, record.item))


def _condition(table: Table, record: Put) -> Matches | None:
    binding = Binding(record.expression_attribute_names, record.expression_attribute_values)
    compiled = binding.condition(record.condition_expression)
    binding.check()
    binding.check_keys(table)
    return bound(compiled, binding.values)


# Write


class _Usage:
    """The bytes that a bulk operation writes to its table and to each index."""

    __slots__ = ("sizes",)

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = dict(sizes)

    def write(self, old_size: int, new_size: int) -> None:
        self._add("table", max(old_size, new_size))

    def write_entry(
        self, index: SecondaryIndex | VectorIndex, before: Entry | None, after: Entry | None
    ) -> None:
        if isinstance(index, VectorIndex):
            self._add(f"vector/{index.name}", int(vector_write_bytes(before, after)))
            return
        sizes = (size_of(None if entry is None else entry.record) for entry in (before, after))
        self._add(f"{index.kind}/{index.name}", max(sizes))

    def _add(self, place: str, size: int) -> None:
        self.sizes[place] = self.sizes.get(place, 0) + size


def _write(
    engine: Engine, table: Table, prepared: Sequence[_Prepared], usage: _Usage | None
) -> list[_Refused]:
    """Put the items whose conditions are true; returns the others."""
    is_plain = usage is None and not (table.stream or table.history or table.replication)
    new = [(each.key, each.record, each.item) for each in prepared]
    if is_plain and items.add(engine, table, new):
        return []
    refused: list[_Refused] = []
    for key, number, record, parsed, matches in prepared:
        item = item_of(record) if parsed is None else parsed
        old = engine.store.get(table.tree, key)
        old_item = None
        if matches is not None:
            old_item = None if old is None else item_of(old)
            if not matches(old_item or {}):
                message = "The conditional request failed"
                kind = "CONDITION_CHECK_FAILURE"
                refused.append(_Refused(number, message, item, old_item, kind))
                continue
        items.put(engine, table, key, old, old_item, item, size_of(record), usage)
    return refused


def _is_wanted(job: Load, refused: _Refused) -> bool:
    return not job.is_bulk or refused.kind in job.request["OutputS3Configuration"]["OutputType"]


def _line(engine: Engine, job: Load, key: str, refused: _Refused) -> bytes:
    """The line of a log or a report that tells of one record."""
    pointer = {"bucket": _source(job)["S3Bucket"], "key": key, "itemIndex": refused.number}
    line: dict[str, Any] = {"itemS3Pointer": pointer}
    if job.is_bulk:
        line |= {"bulkOperationArn": job_arn(engine, job), "outputType": refused.kind}
        images = (("item", refused.item), ("existingItem", refused.existing))
        line |= {name: image for name, image in images if image is not None}
    else:
        line["importArn"] = job_arn(engine, job)
    return _encode({**line, "errorMessages": [refused.message]}) + b"\n"


# End


def _finish(engine: Engine, objects: ObjectStore, job: Load) -> None:
    _report(engine, objects, job)
    if not job.errors:
        _end(engine, job, "COMPLETED")
    elif job.is_bulk:
        _end(engine, job, "COMPLETED_WITH_ERRORS")
    else:
        _end(engine, job, "FAILED", _FAILED)


def _report(engine: Engine, objects: ObjectStore, job: Load) -> None:
    """Write what was kept of records that were not written: the same file, however often."""
    with engine.reading:
        content = b"".join(transfers.staged(engine, job.id))
    if job.is_bulk:
        output = job.request["OutputS3Configuration"]
        prefix = str(output.get("S3KeyPrefix", "")).rstrip("/")
        key = f"{prefix}/AWSDynamoDB/{job.id}/output.json".lstrip("/")
        objects.put(output["S3Bucket"], key, content)
    elif content:
        objects.put(LOG_BUCKET, f"imports/{job.id}/error", content)


def _end(engine: Engine, job: Load, status: str, failure: Failure | None = None) -> None:
    """End a job, and open the table of an import. One that read nothing leaves no table."""
    with engine.writing:
        current = transfers.find(engine, job.id)
        if not isinstance(current, Load) or current.ended is not None:
            return
        table = _table(engine, job)
        if not job.is_bulk and table is not None:
            if current.known:
                engine.catalog.save(msgspec.structs.replace(table.schema, loading=None))
            else:
                engine.catalog.remove(table.name)
                for tree in table.trees:
                    backfill.drop(engine, tree)
        now = round(engine.clock.now(), 3)
        transfers.save(
            engine, msgspec.structs.replace(current, status=status, ended=now, failure=failure)
        )
