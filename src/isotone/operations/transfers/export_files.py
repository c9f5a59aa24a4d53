"""One slice of an export: data files from a view of the table, then the manifest, written to S3.

A slice reads a page of the view and stores its lines, compressed, in the same transaction. Once enough lines are
stored, they become one file (a gzip file may have many members), which is recorded when it is durable. So a file may be
written twice after a crash, with the same content, and no item is lost or duplicated.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from isotone.engine import transfers, views
from isotone.engine.engine import Engine
from isotone.engine.layout import body_of, encode_item, item_of, size_of
from isotone.engine.table_indexes import StoredTable
from isotone.engine.transfers import DataFile, Export, TransferFailure
from isotone.errors import SerializationException, ValidationException
from isotone.exchange.export_layout import ExportedFile, ExportLayout, summary_of, write_manifests
from isotone.exchange.item_files import Changed, ion_change, ion_line, json_change, json_line
from isotone.exchange.objects import ObjectStore, ObjectStoreError, bucket_of
from isotone.expressions import CompiledProjection
from isotone.operations.item_validation import check_key_condition
from isotone.operations.request_expressions import Binding, Matches, bound
from isotone.operations.table_lookup import table_arn
from isotone.operations.transfers.requests import job_arn
from isotone.values.attribute_validation import Item

OWNER: Final = "export"
SLICE: Final = 1000  # items read in one transaction
FILE_SIZE: Final = 8 << 20  # compressed bytes after which another data file begins

Line = Callable[[bytes], bytes | None]
"""From an item's record to its line in the file; None if it is not exported."""


def step(engine: Engine, objects: ObjectStore, export: Export) -> None:
    """Do a slice of an export: read a page, or write a file."""
    try:
        _step(engine, objects, export)
    except ObjectStoreError as error:
        fail(engine, export, TransferFailure(error.code, error.message))


def fail(engine: Engine, export: Export, failure: TransferFailure) -> None:
    """End an export that cannot continue. This includes damage: a partial export would look complete."""
    _end(engine, export.id, "FAILED", failure)


def _step(engine: Engine, objects: ObjectStore, export: Export) -> None:
    bucket = bucket_of(export.request)
    if not export.begun:
        objects.put(bucket, manifest_key(export, "_started"), b"")
        _change(engine, export, begun=True)
    elif export.view is not None and export.staged_size < FILE_SIZE:
        _read(engine, export)
    elif export.staged or not export.files:
        _write_file(engine, objects, export)
    else:
        _write_manifest(engine, objects, export)
        _end(engine, export.id, "COMPLETED")


def _change(engine: Engine, export: Export, **changes: Any) -> None:
    """Record the state of an export, unless another process has continued it."""
    with engine.writing:
        if transfers.find(engine, export.id) == export:
            transfers.save(engine, msgspec.structs.replace(export, **changes))


def _end(
    engine: Engine, identity: str, status: str, failure: TransferFailure | None = None
) -> None:
    with engine.writing:
        export = transfers.find(engine, identity)
        if not isinstance(export, Export) or export.ended is not None:
            return
        if export.view is not None:
            views.close(engine, export.view)
        now = round(engine.clock.now(), 3)
        transfers.save(
            engine,
            msgspec.structs.replace(export, status=status, ended=now, failure=failure, view=None),
        )


# Read


def _read(engine: Engine, export: Export) -> None:
    with engine.writing:
        if transfers.find(engine, export.id) != export:
            return
        assert export.view is not None
        # a table is not deleted while a view of it is open
        table = engine.catalog.tables[export.table]
        if len(export.moments) == 1:
            page = views.read(engine, export.view, SLICE)
            line = _line_of(export, table)
            made = [(line(record), size_of(record)) for _, record in page.records]
            last = page.last
        else:
            changes = views.read_changes(engine, export.view, SLICE)
            made = [_change_line(export, table, change) for change in changes.changes]
            last = changes.last
        lines = [(text, size) for text, size in made if text is not None]
        if last:
            views.close(engine, export.view)
        changed: dict[str, Any] = {"view": None if last else export.view}
        if lines:
            part = _compressed(b"".join(text for text, _ in lines))
            transfers.stage(engine, export.id, export.staged, part)
            changed |= {
                "items": export.items + len(lines),
                "size": export.size + sum(size for _, size in lines),
                "staged": export.staged + 1,
                "staged_size": export.staged_size + len(part),
                "staged_items": export.staged_items + len(lines),
            }
        transfers.save(engine, msgspec.structs.replace(export, **changed))


def _compressed(content: bytes) -> bytes:
    """One member of a gzip file."""
    packer = zlib.compressobj(6, wbits=31)
    return packer.compress(content) + packer.flush()


def _line_of(export: Export, table: StoredTable) -> Line:
    is_ion = export.request.get("ExportFormat") == "ION"
    selection = selection_of(table, export.request.get("FilterSpecification"))
    if selection is None:
        return (lambda record: ion_line(item_of(record))) if is_ion else _json_line
    return partial(_selected_line, selection, is_ion)


def _json_line(record: bytes) -> bytes:
    return json_line(body_of(record))


class ExportSelection:
    """Selects the items of a full export, and their attributes."""

    __slots__ = ("_high", "_keyspace", "_low", "_matches", "_projection")

    def __init__(
        self,
        table: StoredTable,
        bounds: tuple[bytes, bytes | None],
        matches: Matches | None,
        projection: CompiledProjection | None,
    ) -> None:
        self._keyspace = table.keyspace
        self._low, self._high = bounds
        self._matches = matches
        self._projection = projection

    def __call__(self, item: Item) -> Item | None:
        """The part of an item to export; None if it is left out."""
        key = self._keyspace.key(item)
        if key < self._low or (self._high is not None and key >= self._high):
            return None
        if self._matches is not None and not self._matches(item):
            return None
        return item if self._projection is None else self._projection.project(item)


def selection_of(table: StoredTable, wanted: Mapping[str, Any] | None) -> ExportSelection | None:
    """The selection of a FilterSpecification. Raises the errors of its expressions."""
    if wanted is None:
        return None
    binding = Binding(
        wanted.get("ExpressionAttributeNames"), wanted.get("ExpressionAttributeValues")
    )
    for name in ("KeyConditionExpression", "FilterExpression", "ProjectionExpression"):
        if not isinstance(wanted.get(name, ""), str):  # a tree cannot be stored
            raise SerializationException
    keys = binding.key_condition(wanted.get("KeyConditionExpression"))
    if keys is not None:
        keys.check(binding.values)
    condition = binding.condition(wanted.get("FilterExpression"), "FilterExpression")
    projection = binding.projection(wanted.get("ProjectionExpression"))
    binding.check()
    bounds: tuple[bytes, bytes | None] = (b"", None)
    if keys is not None:
        keyspace = table.keyspace
        chosen = keys.resolve(binding.values, keyspace.partition_names, keyspace.sort_names)
        check_key_condition(keyspace, chosen)
        bounds = keyspace.bounds(chosen)
        if condition is not None:
            _refuse_keys(table, condition.attributes)
    return ExportSelection(table, bounds, bound(condition, binding.values), projection)


def _refuse_keys(table: StoredTable, attributes: frozenset[str]) -> None:
    for name in table.key_names:
        if name in attributes:
            raise ValidationException(
                "Filter Expression can only contain non-primary key attributes: "
                f"Primary key attribute: {name}"
            )


def _selected_line(selection: ExportSelection, is_ion: bool, record: bytes) -> bytes | None:
    item = selection(item_of(record))
    if item is None:
        return None
    return ion_line(item) if is_ion else json_line(encode_item(item))


def _change_line(
    export: Export, table: StoredTable, change: views.ViewChange
) -> tuple[bytes | None, int]:
    if change.old is None and change.new is None:
        return None, 0  # created and deleted within the period
    wanted = export.request["IncrementalExportSpecification"].get("ExportViewType")
    old = None if wanted == "NEW_IMAGE" or change.old is None else item_of(change.old)
    new = None if change.new is None else item_of(change.new)
    made = Changed(change.time * 1000, table.schema.key_of(item_of(change.any)), old, new)
    write = ion_change if export.request.get("ExportFormat") == "ION" else json_change
    return write(made), size_of(change.old) + size_of(change.new)


# Write


def _write_file(engine: Engine, objects: ObjectStore, export: Export) -> None:
    """Make a data file of the stored lines. An export without items has one empty file."""
    with engine.reading:
        parts = transfers.staged(engine, export.id)
    content = b"".join(parts) or _compressed(b"")
    key = _layout(export).data_key(len(export.files))
    etag = objects.put(bucket_of(export.request), key, content)
    digest = hashlib.md5(content, usedforsecurity=False).digest()
    file = DataFile(key, export.staged_items, digest, etag)
    with engine.writing:
        if transfers.find(engine, export.id) != export:
            return
        transfers.drop_staged(engine, export.id)
        files = (*export.files, file)
        transfers.save(
            engine,
            msgspec.structs.replace(export, files=files, staged=0, staged_size=0, staged_items=0),
        )


def _layout(export: Export) -> ExportLayout:
    return ExportLayout(
        str(export.request.get("S3Prefix", "")),
        export.id,
        export.request.get("ExportFormat", "DYNAMODB_JSON"),
        len(export.moments) > 1,
    )


def manifest_key(export: Export, name: str) -> str:
    """The key of one of the files next to the data."""
    return _layout(export).key(name)


def _write_manifest(engine: Engine, objects: ObjectStore, export: Export) -> None:
    layout = _layout(export)
    bucket = bucket_of(export.request)
    summary = summary_of(
        layout,
        export_arn=job_arn(engine, export),
        table_arn=table_arn(engine, export.table),
        table_id=export.table_id,
        bucket=bucket.name,
        started=export.started,
        ended=engine.clock.now(),
        moments=tuple(moment / 1000 for moment in export.moments),
        items=export.items,
        size=export.size,
        request=export.request,
    )
    files = [ExportedFile(file.key, file.items, file.md5, file.etag) for file in export.files]
    write_manifests(objects, bucket, layout.manifests(files, summary), files)
