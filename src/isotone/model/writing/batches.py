"""Many writes without conditions: BatchWriteItem, until nothing of each batch is left.

The service carries out as much of a batch as throughput lets it and hands the rest back, which is sent
again after a pause of random length; its bound doubles where nothing at all was done. While keys are being
widened, an entry also deletes what lies under the former key.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from isotone import limits
from isotone.clock import Clock
from isotone.errors import (
    BatchIncomplete,
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    UsageError,
)
from isotone.model.declaring.former import former_key
from isotone.model.steps import Call, Pause, Steps
from isotone.model.writing import headroom
from isotone.model.writing.carrying import place_of
from isotone.model.writing.saving import stamped
from isotone.model.writing.stored import key_of, schema_of, schema_of_one
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity

_ATTEMPTS: Final = 10  # in a row that write nothing
_FIRST_PAUSE: Final = 0.05  # seconds
_LONGEST_PAUSE: Final = 10.0


class Written(NamedTuple):
    """How far a batch is: entities written, of those given, where their number is known."""

    done: int
    total: int | None


WriteProgress = Callable[[Written], None]


class _Entry(NamedTuple):
    """One write of a batch, the requests that make it, and what to do once it is made."""

    table: str
    place: bytes
    requests: tuple[dict[str, Any], ...]
    settle: Callable[[], None]


def put_many(
    entities: Iterable[Entity], clock: Clock, progress: WriteProgress | None = None
) -> Steps[int]:
    """Put entities of any kinds, in requests of 25; their number. Cost: one write each.

    An entity that comes twice is written as it comes last. Raises `UsageError` for entities with a
    version or unique values, which take conditions, and `BatchIncomplete` with what the service kept
    refusing; what came before it is written.
    """
    _check_several("put_many", entities)
    return (yield from _write((_putting(each, clock) for each in entities), entities, progress))


def delete_many(
    targets: type[Entity] | Iterable[Entity],
    keys: Iterable[Mapping[str, Any]] = (),
    progress: WriteProgress | None = None,
) -> Steps[int]:
    """Delete entities, or a class and the keys' fields; how many were asked for. Cost: one write each.

    Raises as `put_many` does.
    """
    if isinstance(targets, type):
        entity = targets
        entries = (_deleting(entity, key) for key in keys)
        return (yield from _write(entries, keys, progress))
    _check_several("delete_many", targets)
    return (yield from _write((_deleting(each, {}) for each in targets), targets, progress))


def _check_several(call: str, entities: Any) -> None:
    if not isinstance(entities, Iterable):
        what = type(entities).__name__
        raise UsageError(f"{call} takes several entities, not a {what}; write {call}([…])")


def _putting(entity: Entity, clock: Clock) -> _Entry:
    schema = schema_of_one(entity)
    _check_unconditional(schema)
    entity.before_put()
    values = stamped(entity, datetime.fromtimestamp(clock.now(), UTC))
    headroom.watch(schema, values)
    item = schema.to_item(values)

    def settle() -> None:
        entity.__dict__.update(values)
        entity.after_put()

    return _entry(schema, schema.primary_key(values), {"PutRequest": {"Item": item}}, settle)


def _deleting(target: type[Entity] | Entity, key: Mapping[str, Any]) -> _Entry:
    schema = schema_of(target)
    _check_unconditional(schema)
    where = key_of(target, key)
    if not isinstance(target, type):
        target.before_delete()
    return _entry(schema, where, {"DeleteRequest": {"Key": where}}, lambda: None)


def _entry(
    schema: EntitySchema, key: Item, request: dict[str, Any], settle: Callable[[], None]
) -> _Entry:
    former = former_key(schema, key)
    requests = (request,) if former is None else (request, {"DeleteRequest": {"Key": former}})
    return _Entry(schema.table.name, place_of(schema, key), requests, settle)


def _check_unconditional(schema: EntitySchema) -> None:
    if "version" in schema.by_role:
        raise UsageError(
            f"{schema.tag} has a version, which a batch cannot check; write each by itself, or "
            "several in a transaction"
        )
    if schema.unique:
        raise UsageError(
            f"{schema.tag} has unique values, which a batch cannot keep so; write each by itself, or "
            "several in a transaction"
        )


def _write(
    entries: Iterator[_Entry], given: Iterable[Any], progress: WriteProgress | None
) -> Steps[int]:
    total = len(given) if isinstance(given, Sequence) else None
    done = 0
    while chunk := list(islice(entries, limits.BATCH_WRITE_ITEMS)):
        last = {each.place: each for each in chunk}.values()
        requests = [(entry.table, request) for entry in last for request in entry.requests]
        for start in range(0, len(requests), limits.BATCH_WRITE_ITEMS):
            yield from _write_together(requests[start : start + limits.BATCH_WRITE_ITEMS])
        for entry in chunk:
            entry.settle()
        done += len(chunk)
        if progress is not None:
            progress(Written(done, total))
    return done


def _write_together(requests: Sequence[tuple[str, dict[str, Any]]]) -> Steps[None]:
    pending: dict[str, list[Any]] = {}
    for table, request in requests:
        pending.setdefault(table, []).append(request)
    attempt = 0
    while left := (yield from _send(pending)):
        attempt = attempt + 1 if _count(left) == _count(pending) else 0
        pending = left
        if attempt == _ATTEMPTS:
            raise BatchIncomplete(
                f"after {attempt} attempts that wrote nothing, {_count(left)} of {len(requests)} "
                "entries of a batch are not written; the table has too little throughput",
                [request for requests in left.values() for request in requests],
            )
        yield Pause(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))


def _count(pending: Mapping[str, Sequence[Any]]) -> int:
    return sum(map(len, pending.values()))


def _send(pending: dict[str, list[Any]]) -> Steps[dict[str, list[Any]]]:
    """What one request left undone."""
    try:
        response = yield Call("BatchWriteItem", {"RequestItems": pending})
    except (ProvisionedThroughputExceededException, RequestLimitExceeded):
        return pending
    left: dict[str, list[Any]] = response.get("UnprocessedItems") or {}
    return left
