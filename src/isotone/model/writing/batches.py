"""`put_many` and `delete_many`: entities as batches of BatchWriteItem, 25 at a time (see `tables/batches.py`).

While a key has a previous form (`was`), an entry also deletes the item under the previous key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from isotone import limits
from isotone.clock import Clock
from isotone.errors import (
    UsageError,
)
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.previous_keys import previous_key
from isotone.model.key_records import KeyRecords
from isotone.model.writing import headroom
from isotone.model.writing.put_and_delete import give_id, stamped
from isotone.model.writing.write import key_of, place_of, schema_of, schema_of_instance
from isotone.tables.batch_reads import fetch
from isotone.tables.batches import BatchEntry, delete, put, write_batch
from isotone.tables.steps import Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity


class BatchProgress(NamedTuple):
    """The progress of a batch: entities written, and how many were given, if known."""

    done: int
    total: int | None


WriteProgress = Callable[[BatchProgress], None]


class _BatchWrite(NamedTuple):
    """One entity's write in a batch: its requests, and what to do once they are written."""

    schema: EntitySchema
    key: Item
    place: bytes
    requests: tuple[BatchEntry, ...]
    settle: Callable[[], None]

    @property
    def table(self) -> str:
        """The name of the table."""
        return self.schema.table.name


def put_many(
    entities: Iterable[Entity],
    clock: Clock,
    records: KeyRecords,
    progress: WriteProgress | None = None,
) -> Steps[int]:
    """See `Operations.put_many`."""
    _check_several("put_many", entities)
    entries = (_putting(each, clock) for each in entities)
    return (yield from _write(entries, entities, records, progress))


def delete_many(
    targets: type[Entity] | Iterable[Entity | EntityKey[Any]],
    keys: Iterable[Mapping[str, Any]],
    records: KeyRecords,
    progress: WriteProgress | None = None,
) -> Steps[int]:
    """See `Operations.delete_many`."""
    if isinstance(targets, type):
        entity = targets
        entries = (_deleting(entity, key) for key in keys)
        return (yield from _write(entries, keys, records, progress))
    _check_several("delete_many", targets)
    entries = (_deleting(each, {}) for each in targets)
    return (yield from _write(entries, targets, records, progress))


def _check_several(call: str, entities: Any) -> None:
    if not isinstance(entities, Iterable):
        what = type(entities).__name__
        raise UsageError(f"{call} takes a list of entities, not {what}; write {call}([…])")


def _putting(entity: Entity, clock: Clock) -> _BatchWrite:
    schema = schema_of_instance(entity)
    _check_unconditional(schema)
    if "created_id" in schema.by_role:
        give_id(entity, clock)
    entity.before_put()
    values = stamped(entity, clock.now())
    headroom.watch(schema, values)
    item = schema.to_item(values)

    def settle() -> None:
        entity.__dict__.update(values)
        entity.after_put()

    return _entry(schema, schema.primary_key(values), put(item), settle)


def _deleting(
    target: type[Entity] | EntityKey[Any] | Entity, key: Mapping[str, Any]
) -> _BatchWrite:
    schema = schema_of(target)
    _check_unconditional(schema)
    where = key_of(schema, target, key)
    if not isinstance(target, type | EntityKey):
        target.before_delete()
    return _entry(schema, where, delete(where), lambda: None)


def _entry(
    schema: EntitySchema, key: Item, request: BatchEntry, settle: Callable[[], None]
) -> _BatchWrite:
    previous = previous_key(schema, key)
    requests = (request,) if previous is None else (request, delete(previous))
    return _BatchWrite(schema, key, place_of(schema, key), requests, settle)


def _check_unconditional(schema: EntitySchema) -> None:
    if "version" in schema.by_role:
        raise UsageError(
            f"{schema.tag} has a version, which a batch cannot check; write each by itself, or "
            "several in a transaction"
        )
    if schema.unique:
        raise UsageError(
            f"{schema.tag} has unique values, which a batch cannot check; write each by itself, or "
            "several in a transaction"
        )


def _write(
    entries: Iterator[_BatchWrite],
    given: Iterable[Any],
    records: KeyRecords,
    progress: WriteProgress | None,
) -> Steps[int]:
    total = len(given) if isinstance(given, Sequence) else None
    done = 0
    while chunk := list(islice(entries, limits.BATCH_WRITE_ITEMS)):
        last = {each.place: each for each in chunk}.values()
        for entry in last:
            if entry.schema not in records.recorded:
                yield from records.record(entry.schema)
        yield from _check_versions(last)
        requests = [(entry.table, request) for entry in last for request in entry.requests]
        for start in range(0, len(requests), limits.BATCH_WRITE_ITEMS):
            yield from write_batch(requests[start : start + limits.BATCH_WRITE_ITEMS])
        for entry in chunk:
            entry.settle()
        done += len(chunk)
        if progress is not None:
            progress(BatchProgress(done, total))
    return done


def _check_versions(entries: Iterable[_BatchWrite]) -> Steps[None]:
    """Raise `NewerVersion` if a later version of a versioned entity wrote one of the items."""
    by_table: dict[str, list[_BatchWrite]] = {}
    for entry in entries:
        if entry.schema.declares_version:
            by_table.setdefault(entry.table, []).append(entry)
    for table, versioned in by_table.items():
        items = yield from fetch(table, [each.key for each in versioned], consistent=True)
        for entry, item in zip(versioned, items, strict=True):
            if item is not None:
                entry.schema.checked(item)
