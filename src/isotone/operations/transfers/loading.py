"""One slice of an import or a bulk operation: input formats, S3 objects, record checks, writes, error files, the log.

A slice either reads and checks records without the lock, or writes items. A bulk operation writes the items of a slice,
and the position after them, in one transaction. So every record is written exactly once, whenever the process is
killed.

An import first collects many slices and sorts their items by key, because a tree is written fastest in key order. It
saves its position when all of them are written. If the process is killed before, it begins again with them; since
nobody else writes to the table, the items only replace themselves. When all items are there, the indexes are filled
(`backfill`).

A record that is not an item, or does not fit the table, is counted and reported; the others are written. Anything that
cannot be read further (a damaged file, a line without end) is one error, and the rest of that object is skipped.

    aws-dynamodb/imports/<id>/error            a folder has CloudWatch's log of an import here, one JSON each line
    <prefix>/AWSDynamoDB/<id>/output.json      the report of a bulk operation
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from isotone import limits
from isotone.engine import backfill, items, transfers
from isotone.engine.engine import Engine
from isotone.engine.index_entries import IndexEntry
from isotone.engine.layout import (
    SHORT,
    SIZE_BYTES,
    decode_item,
    item_of,
    pack,
    size_of,
    size_prefix,
)
from isotone.engine.loaded_entries import LoadedEntries
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.engine.table_schema import TableSchema
from isotone.engine.transfers import LoadJob, TransferFailure
from isotone.engine.vector_index import StoredVectorIndex
from isotone.errors import ApiError, DamagedItem
from isotone.exchange.compression import damage, decompressed
from isotone.exchange.item_files import (
    BEGIN,
    END,
    CsvOptions,
    ItemFile,
    PutRecord,
    Record,
    Unreadable,
)
from isotone.exchange.objects import (
    Bucket,
    ObjectStore,
    ObjectStoreError,
    ObjectStoreUnavailable,
    bucket_of,
)
from isotone.operations.capacity import vector_write_bytes
from isotone.operations.item_validation import checked_key
from isotone.operations.request_expressions import Binding, Matches, bound
from isotone.operations.transfers.requests import job_arn
from isotone.values.attribute_validation import Item, canonical_item
from isotone.values.known_shapes import KnownShapes

SLICE: Final = 2000  # records read at once, and items written in one transaction
BUFFER: Final = 100_000  # records that an import sorts by their keys
BUFFER_SIZE: Final = 64 << 20  # bytes of them in their files

LOG_BUCKET: Final = "aws-dynamodb"
_FAILED: Final = TransferFailure(
    "ItemValidationError",
    "Some of the items failed validation checks and were not imported. "
    "Please check CloudWatch error logs for more details.",
)
# Files that an export has next to its data.
_NOT_DATA: Final = re.compile(
    r"(?:.*/)?AWSDynamoDB/[0-9A-Za-z-]+/(?:_started|manifest-(?:summary|files)\.(?:json|md5|checksum))"
)

_encode: Final = msgspec.json.Encoder().encode


class Buffers:
    """What this process has read for the jobs that it works on; one buffer per job."""

    __slots__ = ("_buffers", "_loaded")

    def __init__(self) -> None:
        self._buffers: dict[str, _Buffer] = {}
        self._loaded: dict[str, LoadedEntries] = {}

    def of(self, job: LoadJob, table: StoredTable) -> _Buffer:
        """The buffer that begins at the position of a job."""
        buffer = self._buffers.get(job.id)
        # A forked process shares the file position with its parent.
        if buffer is None or buffer.origin != (os.getpid(), job.object, job.position, table.schema):
            self.close(job.id)
            buffer = self._buffers[job.id] = _Buffer(job, table)
            if _is_new(job, table):
                self._loaded[job.id] = LoadedEntries(table)
        buffer.loaded = self._loaded.get(job.id)
        return buffer

    def take_loaded(self, identity: str) -> LoadedEntries | None:
        """The index entries of all items of an import, if this process has read all of them."""
        loaded = self._loaded.pop(identity, None)
        return loaded if loaded is not None and loaded.are_all else None

    def close(self, identity: str) -> None:
        """Drop the buffer of a job, and close its file."""
        buffer = self._buffers.pop(identity, None)
        if buffer is not None:
            buffer.close()
        loaded = self._loaded.pop(identity, None)
        if loaded is not None:
            loaded.close()

    def close_all(self) -> None:
        """Drop all buffers."""
        for identity in list(self._buffers):
            self.close(identity)


def _is_new(job: LoadJob, table: StoredTable) -> bool:
    """Whether an import is at its first item, so that its indexes are filled at the end."""
    has_read = job.is_bulk or job.object or job.position
    return not has_read and any(not index.filled for index in table.indexes)


def _shapes(table: StoredTable) -> KnownShapes:
    """Recognises lines with items of a table (`known_shapes`)."""
    types = {part.name: part.type for part in table.keyspace.schema.parts}
    return KnownShapes(types, BEGIN, END, LoadedEntries(table).optional)


class _Buffer:
    """Records from a job's position on: the items to put, and those that cannot be put.

    `object`, `position` and `number` are those of the next record. A `full` buffer is sorted by key, and its first
    `written` items are in the table, except the `unwritten` ones.
    """

    __slots__ = (
        "_file",
        "full",
        "is_bulk",
        "loaded",
        "number",
        "object",
        "origin",
        "position",
        "prepared",
        "read",
        "refused",
        "shapes",
        "size",
        "unwritten",
        "written",
    )

    def __init__(self, job: LoadJob, table: StoredTable) -> None:
        self.object: int = job.object
        self.position: int = job.position
        self.number: int = job.index
        self._file: ItemFile | None = None
        self.shapes: KnownShapes = _shapes(table)
        self.is_bulk: bool = job.is_bulk  # an import has no conditions, and only puts items
        self.loaded: LoadedEntries | None = None
        self.restart(table)

    def restart(self, table: StoredTable) -> None:
        """Begin at the next record, with the same open file."""
        self.origin: tuple[int, int, int, TableSchema] = (
            os.getpid(),
            self.object,
            self.position,
            table.schema,
        )
        self.prepared: list[_PreparedPut] = []
        self.refused: list[_RefusedRecord] = []
        self.unwritten: list[_RefusedRecord] = []
        self.size: int = 0
        self.read: int = 0
        self.written: int = 0
        self.full: bool = False

    @property
    def count(self) -> int:
        """How many records there are."""
        return len(self.prepared) + len(self.refused)

    def file(self, objects: ObjectStore, job: LoadJob, key: str, size: int) -> ItemFile:
        """The file of the present object, at its position; `size` is the one with which it was listed."""
        if self._file is None:
            raw = objects.open(bucket_of(_source(job)), key, size)
            try:
                content = decompressed(raw, _compression(job))
                self._file = ItemFile(content, _format(job), _csv_options(job))
            except BaseException:
                raw.close()
                raise
            if self.position:
                self._file.skip_to(self.position)
        return self._file

    def next_object(self, size: int) -> None:
        """Continue with the next object; `size` is that of the current one."""
        self.close()
        self.object += 1
        self.position = self.number = 0
        self.read += size

    def close(self) -> None:
        """Close the file, if one is open."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def step(engine: Engine, objects: ObjectStore, buffers: Buffers, job: LoadJob) -> None:
    """Do a slice of an import or a bulk operation."""
    try:
        _step(engine, objects, buffers, job)
    except ObjectStoreError as error:
        fail(engine, job, TransferFailure(error.code, error.message))
    finally:
        # Another thread may cancel the job between two slices.
        with engine.reading:
            now = transfers.find(engine, job.id)
        if now is None or now.ended is not None:
            buffers.close(job.id)


def fail(engine: Engine, job: LoadJob, failure: TransferFailure) -> None:
    """End a job that cannot continue. What it has written stays."""
    _end(engine, job, "FAILED", failure)


def _step(engine: Engine, objects: ObjectStore, buffers: Buffers, job: LoadJob) -> None:
    if job.status == "CANCELLING":
        _report(engine, objects, job)
        _end(
            engine,
            job,
            "CANCELLED",
            TransferFailure("Cancelled", "The bulk operation was cancelled."),
        )
    elif not job.known:
        _list_objects(engine, objects, job)
    else:
        with engine.reading:
            listed = transfers.objects_of(engine, job.id)
            table = _table(engine, job)
        if table is None:
            message = f"Requested resource not found: Table: {job.table} not found"
            _end(engine, job, "FAILED", TransferFailure("ResourceNotFoundException", message))
        elif job.object < len(listed):
            _load(engine, objects, buffers, job, table, listed)
        elif job.is_bulk or not backfill.after_loading(engine, table, buffers.take_loaded(job.id)):
            _finish(engine, objects, job)


def _table(engine: Engine, job: LoadJob) -> StoredTable | None:
    """The table to fill; None if it was deleted."""
    table = engine.catalog.find(job.table)
    return table if table is not None and table.schema.id == job.table_id else None


def _source(job: LoadJob) -> dict[str, Any]:
    source: dict[str, Any] = job.request[
        "InputS3Configuration" if job.is_bulk else "S3BucketSource"
    ]
    return source


def _format(job: LoadJob) -> Any:
    return (_source(job) if job.is_bulk else job.request)["InputFormat"]


def _compression(job: LoadJob) -> Any:
    return (_source(job) if job.is_bulk else job.request).get("InputCompressionType", "NONE")


def _csv_options(job: LoadJob) -> CsvOptions:
    given = job.request.get("InputFormatOptions", {}).get("Csv", {})
    definitions = job.request.get("TableCreationParameters", {}).get("AttributeDefinitions", ())
    types = {each["AttributeName"]: each["AttributeType"] for each in definitions}
    return CsvOptions(types, given.get("Delimiter", ","), given.get("HeaderList"))


def _list_objects(engine: Engine, objects: ObjectStore, job: LoadJob) -> None:
    source = _source(job)
    prefix = source.get("S3KeyPrefix", "")
    found = [
        (each.key, each.size)
        for each in objects.list(bucket_of(source), prefix)
        if not _NOT_DATA.fullmatch(each.key)
    ]
    if not found and job.is_bulk:  # an import creates an empty table, as the service does
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


class _PreparedPut(msgspec.Struct, frozen=True, gc=False):
    """An item to put: its key and record, and its position (object, and number in the object).

    The parsed item is kept only if something else needs it for the write. `matches` is its condition.
    """

    key: bytes
    place: tuple[str, int]
    record: bytes
    item: Item | None
    matches: Matches | None


class _RefusedRecord(NamedTuple):
    """A record that is not written."""

    place: tuple[str, int]
    message: str
    item: Item | None = None
    existing: Item | None = None
    kind: str = "ERROR"
    unreadable: TransferFailure | None = None  # why the rest of the object cannot be read


def _load(
    engine: Engine,
    objects: ObjectStore,
    buffers: Buffers,
    job: LoadJob,
    table: StoredTable,
    listed: transfers.Listing,
) -> None:
    """Read a slice, or write one."""
    buffer = buffers.of(job, table)
    if not buffer.full:
        _read(objects, buffer, job, table, *listed[buffer.object])
        is_enough = buffer.count >= BUFFER or buffer.size >= BUFFER_SIZE
        if job.is_bulk or is_enough or buffer.object == len(listed):
            # Sorting is stable, so of items with equal keys the last one remains.
            buffer.prepared.sort(key=attrgetter("key"))
            buffer.full = True
    if buffer.full:
        _write_slice(engine, buffer, job, table)


def _read(
    objects: ObjectStore, buffer: _Buffer, job: LoadJob, table: StoredTable, key: str, size: int
) -> None:
    """Read and check a slice of an object. Unreadable data is an error, and ends the object."""
    begin = buffer.position
    try:
        file = buffer.file(objects, job, key, size)
        if file.has_lines:
            _prepare_lines(table, buffer, key, file)
        else:
            # Each record is created before the next item is read, so that parsed items are freed at once.
            for record in file.read(SLICE):
                _prepare(table, buffer, key, record)
        if buffer.loaded is not None:
            buffer.loaded.sort()
        buffer.position = file.position
        is_over = file.ended
    except ObjectStoreUnavailable:
        raise  # the other objects cannot be read either, so the job ends
    except damage() as error:
        code = error.code if isinstance(error, ObjectStoreError) else _FAILED.code
        message = f"The object cannot be read: {error}"
        _refuse(buffer, key, message, unreadable=TransferFailure(code, f"{key}: {message}"))
        is_over = True
    buffer.size += buffer.position - begin
    if is_over:
        buffer.next_object(size)


def _refuse(
    buffer: _Buffer,
    key: str,
    message: str,
    item: Item | None = None,
    unreadable: TransferFailure | None = None,
) -> None:
    buffer.refused.append(
        _RefusedRecord((key, buffer.number), message, item, unreadable=unreadable)
    )
    buffer.number += 1


def _prepare(table: StoredTable, buffer: _Buffer, key: str, record: Record) -> Item | None:
    """Check and add an item; returns it in normal form, or None if it is refused."""
    if isinstance(record, Unreadable):
        _refuse(buffer, key, record.message)
        return None
    try:
        item, size = canonical_item(record.item)
        at = checked_key(table, item, size)
        matches = None
        if buffer.is_bulk and record.condition_expression is not None:
            matches = _condition(table, record)
    except ApiError as error:
        _refuse(buffer, key, error.message, record.item)
        return None
    packed = pack(item, size)
    if buffer.loaded is not None:
        buffer.loaded.add(item, at, packed)
    kept = item if buffer.is_bulk else None
    buffer.prepared.append(_PreparedPut(at, (key, buffer.number), packed, kept, matches))
    buffer.number += 1
    return item


def _prepare_lines(table: StoredTable, buffer: _Buffer, key: str, file: ItemFile) -> None:
    """Check and add the items in lines of DynamoDB JSON. Lines with known shapes are not parsed."""
    key_of, begin, end = table.keyspace.key_of, len(BEGIN), -len(END)
    add_known, length = _known_adder(table, buffer), table.keyspace.length
    for line, known in buffer.shapes.each(file.read_lines(SLICE)):
        if known is not None:
            contents, size = known
            at = key_of(contents[:length])
            if at is not None and size <= limits.ITEM_SIZE:
                record = size_prefix(size) + line[begin:end]
                kept = add_known is None or add_known(contents, at, record)
                if kept:
                    item = kept if type(kept) is dict else None
                    buffer.prepared.append(
                        _PreparedPut(at, (key, buffer.number), record, item, None)
                    )
                    buffer.number += 1
                    continue
        elif line.isspace():
            continue
        item = _prepare(table, buffer, key, file.record_of(line))
        if item is not None and known is None:
            buffer.shapes.learn(line, item)


_AddKnown = Callable[[Sequence[bytes], bytes, bytes], Item | bool | None]
"""Adds the index entries of a known item, from the contents of key attributes, the key and the record. Returns False if
the item must be parsed first, and the item if it is kept for later.
"""


def _known_adder(table: StoredTable, buffer: _Buffer) -> _AddKnown | None:
    """What the items of a buffer need besides their keys; None if nothing."""
    loaded = buffer.loaded
    if buffer.is_bulk or table.vectors or (loaded is not None and loaded.needs_items):
        return partial(_add_parsed, table, buffer)
    if not table.indexes:
        return None
    return _are_short if loaded is None else loaded.add_known


def _are_short(contents: Sequence[bytes], key: bytes, record: bytes) -> bool:
    """Whether these contents of key attributes are shorter than every limit."""
    return max(map(len, contents)) <= SHORT


def _add_parsed(
    table: StoredTable, buffer: _Buffer, contents: Sequence[bytes], key: bytes, record: bytes
) -> Item | bool | None:
    item = _fitting(table, record[SIZE_BYTES:], size_of(record))
    if item is None or buffer.is_bulk:
        return item
    if buffer.loaded is not None:
        buffer.loaded.add(item, key, record)
    return True


def _fitting(table: StoredTable, body: bytes, size: int) -> Item | None:
    """An item in normal form. Raises if the table or one of its indexes refuses it."""
    item = decode_item(body)
    try:
        checked_key(table, item, size)
    except ApiError:
        return None
    return item


def _condition(table: StoredTable, record: PutRecord) -> Matches | None:
    binding = Binding(record.expression_attribute_names, record.expression_attribute_values)
    compiled = binding.condition(record.condition_expression)
    binding.check()
    binding.check_keys(table)
    return bound(compiled, binding.values)


# Write


def _write_slice(engine: Engine, buffer: _Buffer, job: LoadJob, table: StoredTable) -> None:
    """Write the next items of a full buffer, and after the last ones also the job's position."""
    end = len(buffer.prepared) if job.is_bulk else buffer.written + SLICE
    is_last = end >= len(buffer.prepared)
    with engine.writing:
        if transfers.find(engine, job.id) != job or _table(engine, job) is not table:
            return  # another process continued it, or the table was changed: look again
        usage = _Usage(job.usage) if job.is_bulk else None
        unwritten = _write(engine, table, buffer.prepared[buffer.written : end], usage)
        if is_last:
            refused = buffer.refused + buffer.unwritten + unwritten
            _save_position(engine, buffer, job, refused, usage)
        else:
            transfers.save(engine, msgspec.structs.replace(job, ahead=end))
    buffer.written = end
    buffer.unwritten += unwritten
    if unwritten and buffer.loaded is not None:
        buffer.loaded.are_all = False
    if is_last:
        buffer.restart(table)


def _save_position(
    engine: Engine,
    buffer: _Buffer,
    job: LoadJob,
    refused: list[_RefusedRecord],
    usage: _Usage | None,
) -> None:
    errors = sum(each.kind == "ERROR" for each in refused)
    unreadable = (each.unreadable for each in refused if each.unreadable is not None)
    lines = b"".join(_line(engine, job, each) for each in refused if _is_wanted(job, each))
    if lines:
        transfers.stage(engine, job.id, job.staged, lines)
    transfers.save(
        engine,
        msgspec.structs.replace(
            job,
            object=buffer.object,
            position=buffer.position,
            index=buffer.number,
            items=job.items + buffer.count,
            ahead=0,
            errors=job.errors + errors,
            size=job.size + buffer.size,
            read=job.read + buffer.read,
            staged=job.staged + bool(lines),
            unreadable=job.unreadable or next(unreadable, None),
            usage=job.usage if usage is None else usage.sizes,
        ),
    )


class _Usage:
    """The bytes that a bulk operation writes to its table and to each index."""

    __slots__ = ("sizes",)

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = dict(sizes)

    def write(self, old_size: int, new_size: int) -> None:
        self._add("table", max(old_size, new_size))

    def write_entry(
        self,
        index: SecondaryIndex | StoredVectorIndex,
        before: IndexEntry | None,
        after: IndexEntry | None,
    ) -> None:
        if isinstance(index, StoredVectorIndex):
            self._add(f"vector/{index.name}", int(vector_write_bytes(before, after)))
            return
        sizes = (size_of(None if entry is None else entry.record) for entry in (before, after))
        self._add(f"{index.kind}/{index.name}", max(sizes))

    def _add(self, place: str, size: int) -> None:
        self.sizes[place] = self.sizes.get(place, 0) + size


def _write(
    engine: Engine, table: StoredTable, prepared: Sequence[_PreparedPut], usage: _Usage | None
) -> list[_RefusedRecord]:
    """Put the items whose conditions are true, except over damaged ones; returns the others."""
    has_more = table.stream or table.history or table.replication
    is_plain = not (usage is not None or has_more or any(index.filled for index in table.indexes))
    if is_plain and items.add(engine, table, [(each.key, each.record) for each in prepared]):
        return []
    refused: list[_RefusedRecord] = []
    for each in prepared:
        key, record, matches = each.key, each.record, each.matches
        item = item_of(record) if each.item is None else each.item
        try:
            old = engine.store.get(table.tree, key)
        except DamagedItem as error:
            refused.append(_RefusedRecord(each.place, str(error), item))
            continue
        old_item = None
        if matches is not None:
            old_item = None if old is None else item_of(old)
            if not matches(old_item or {}):
                message = "The conditional request failed"
                kind = "CONDITION_CHECK_FAILURE"
                refused.append(_RefusedRecord(each.place, message, item, old_item, kind))
                continue
        items.put(engine, table, key, old, old_item, item, size_of(record), usage)
    return refused


def _is_wanted(job: LoadJob, refused: _RefusedRecord) -> bool:
    return not job.is_bulk or refused.kind in job.request["OutputS3Configuration"]["OutputType"]


def _line(engine: Engine, job: LoadJob, refused: _RefusedRecord) -> bytes:
    """The line about one record in a log or a report."""
    key, number = refused.place
    pointer = {"bucket": _source(job)["S3Bucket"], "key": key, "itemIndex": number}
    line: dict[str, Any] = {"itemS3Pointer": pointer}
    if job.is_bulk:
        line |= {"bulkOperationArn": job_arn(engine, job), "outputType": refused.kind}
        images = (("item", refused.item), ("existingItem", refused.existing))
        line |= {name: image for name, image in images if image is not None}
    else:
        line["importArn"] = job_arn(engine, job)
    return _encode({**line, "errorMessages": [refused.message]}) + b"\n"


# End


def _finish(engine: Engine, objects: ObjectStore, job: LoadJob) -> None:
    if job.is_bulk:
        _report(engine, objects, job)
        _end(engine, job, "COMPLETED_WITH_ERRORS" if job.errors else "COMPLETED")
    elif job.errors:
        _end(engine, job, "FAILED", _failure(engine, objects, job))
    else:
        _end(engine, job, "COMPLETED")


def _failure(engine: Engine, objects: ObjectStore, job: LoadJob) -> TransferFailure:
    """Why an import with bad records failed, after its log is written. The service logs elsewhere, so writing our log
    may fail.

    An object that cannot be read is named. If the bucket contained nothing else, its error is that of the import.
    """
    code, message = _FAILED.code, _FAILED.message
    if job.unreadable is not None:
        code = job.unreadable.code if job.items == job.errors else code
        message = f"{message} {job.unreadable.message}"
    try:
        _report(engine, objects, job)
    except ObjectStoreError as error:
        where = f"s3://{LOG_BUCKET}/{_log_key(job)}"
        message = f"{message} The log cannot be written to {where}: {error.message}"
    return TransferFailure(code, message)


def _log_key(job: LoadJob) -> str:
    return f"imports/{job.id}/error"


def _report(engine: Engine, objects: ObjectStore, job: LoadJob) -> None:
    """Write the collected report of unwritten records; repeating it writes the same file."""
    with engine.reading:
        content = b"".join(transfers.staged(engine, job.id))
    if job.is_bulk:
        output = job.request["OutputS3Configuration"]
        prefix = str(output.get("S3KeyPrefix", "")).rstrip("/")
        key = f"{prefix}/AWSDynamoDB/{job.id}/output.json".lstrip("/")
        objects.put(bucket_of(output), key, content)
    elif content:
        objects.put(Bucket(LOG_BUCKET), _log_key(job), content)


def _end(engine: Engine, job: LoadJob, status: str, failure: TransferFailure | None = None) -> None:
    """End a job, and open the table of an import. An import that read nothing leaves no table."""
    with engine.writing:
        current = transfers.find(engine, job.id)
        if not isinstance(current, LoadJob) or current.ended is not None:
            return
        table = _table(engine, job)
        if not job.is_bulk and table is not None:
            if current.known:
                engine.catalog.save(msgspec.structs.replace(table.schema, loading=None))
                # indexes of a failed import are not filled yet
                backfill.begin_rest(engine, table.name)
            else:
                engine.catalog.remove(table.name)
                for tree in table.trees:
                    backfill.drop(engine, tree)
        now = round(engine.clock.now(), 3)
        transfers.save(
            engine, msgspec.structs.replace(current, status=status, ended=now, failure=failure)
        )
