"""Batches of writes: BatchWriteItem, repeated until a batch is complete; `BatchIncomplete`.

The service writes as much of a batch as throughput allows and returns the rest, which is sent again after a
pause. While keys are being widened, an entry also deletes the item under the previous key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from isotone import limits
from isotone.backends.request_retries import THROTTLES
from isotone.clock import Clock
from isotone.errors import (
    BatchIncomplete,
    UsageError,
)
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.previous_keys import previous_key
from isotone.model.key_records import KeyRecords
from isotone.model.writing import headroom
from isotone.model.writing.put_and_delete import give_id, stamped
from isotone.model.writing.write import key_in, key_of, place_of, schema_of, schema_of_instance
from isotone.tables.retries import THROTTLING
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity


class Written(NamedTuple):
    """Progress of a batch: entities written, and the number given if it is known."""

    done: int
    total: int | None


WriteProgress = Callable[[Written], None]


class _Entry(NamedTuple):
    """One write of a batch: its requests, and what to do after it is written."""

    schema: EntitySchema
    key: Item
    place: bytes
    requests: tuple[dict[str, Any], ...]
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


def _putting(entity: Entity, clock: Clock) -> _Entry:
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

    return _entry(schema, schema.primary_key(values), {"PutRequest": {"Item": item}}, settle)


def _deleting(target: type[Entity] | EntityKey[Any] | Entity, key: Mapping[str, Any]) -> _Entry:
    schema = schema_of(target)
    _check_unconditional(schema)
    where = key_of(schema, target, key)
    if not isinstance(target, type | EntityKey):
        target.before_delete()
    return _entry(schema, where, {"DeleteRequest": {"Key": where}}, lambda: None)


def _entry(
    schema: EntitySchema, key: Item, request: dict[str, Any], settle: Callable[[], None]
) -> _Entry:
    previous = previous_key(schema, key)
    requests = (request,) if previous is None else (request, {"DeleteRequest": {"Key": previous}})
    return _Entry(schema, key, place_of(schema, key), requests, settle)


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
    entries: Iterator[_Entry],
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
            yield from _write_together(requests[start : start + limits.BATCH_WRITE_ITEMS])
        for entry in chunk:
            entry.settle()
        done += len(chunk)
        if progress is not None:
            progress(Written(done, total))
    return done


def _check_versions(entries: Iterable[_Entry]) -> Steps[None]:
    """Raise `NewerVersion` if a later version of an entity that declares its version wrote an item."""
    versioned = {entry.place: entry for entry in entries if entry.schema.declares_version}
    pending: dict[str, Any] = {}
    for entry in versioned.values():
        pending.setdefault(entry.table, {"Keys": [], "ConsistentRead": True})
        pending[entry.table]["Keys"].append(entry.key)
    schemas = {entry.table: entry.schema for entry in versioned.values()}
    attempt = 0
    while pending:
        try:
            response = yield Call("BatchGetItem", {"RequestItems": pending})
        except THROTTLES:
            response = {"Responses": {}, "UnprocessedKeys": pending}
        for table, items in response["Responses"].items():
            for item in items:
                place = place_of(schemas[table], key_in(schemas[table], item))
                versioned[place].schema.checked(item)
        pending = response.get("UnprocessedKeys") or {}
        if pending:
            attempt += 1
            if attempt == THROTTLING.attempts:
                raise BatchIncomplete(
                    f"after {attempt} attempts, the versions of some items are not read; the table has too "
                    "little throughput",
                    [key for table in pending.values() for key in table["Keys"]],
                )
            yield THROTTLING.pause(attempt)


def _write_together(requests: Sequence[tuple[str, dict[str, Any]]]) -> Steps[None]:
    pending: dict[str, list[Any]] = {}
    for table, request in requests:
        pending.setdefault(table, []).append(request)
    attempt = 0
    while left := (yield from _send(pending)):
        attempt = attempt + 1 if _count(left) == _count(pending) else 0
        pending = left
        if attempt == THROTTLING.attempts:
            raise BatchIncomplete(
                f"after {attempt} attempts that wrote nothing, {_count(left)} of {len(requests)} "
                "entries of a batch are not written; the table has too little throughput",
                [request for requests in left.values() for request in requests],
            )
        yield THROTTLING.pause(max(attempt, 1))


def _count(pending: Mapping[str, Sequence[Any]]) -> int:
    return sum(map(len, pending.values()))


def _send(pending: dict[str, list[Any]]) -> Steps[dict[str, list[Any]]]:
    """Send one request; returns the unprocessed entries."""
    try:
        response = yield Call("BatchWriteItem", {"RequestItems": pending})
    except THROTTLES:
        return pending
    left: dict[str, list[Any]] = response.get("UnprocessedItems") or {}
    return left
