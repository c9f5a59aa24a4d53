"""Widening: gives keys of growing numbers a larger width, while the table is in use.

    class Issue(Entity, table=repos):
        number: Attr[int] = field(max=9_999_999, was=99_999)       # 1. declare, in all programs
        ...
    store.widen(Issue, progress=print)                             # 2. rewrite
                                                                   # 3. remove `was`

From the first step on, entities are read under either key (`get`, `all`, `first`, `count`), and migrated
to the new key before they are written. The second step scans the table and rewrites each item under a previous key,
in a separate transaction. It saves its position in the table, and continues there when it is called again.

The core reads and writes only current keys. `store` calls this module for entities that declare `was`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from isotone.clock import Clock
from isotone.errors import AlreadyExists, UsageError, WriteRefused
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.previous import previous_key
from isotone.model.key_records import KeyRecords
from isotone.model.reading.reader import FetchProgress, Reader
from isotone.model.steps import Call, Steps
from isotone.model.trees import absent
from isotone.model.writing import uniqueness
from isotone.model.writing.executor import execute
from isotone.model.writing.updates import rewritten
from isotone.model.writing.write import (
    Action,
    Write,
    action,
    key_in,
    pins,
    read_item,
    schema_of,
)
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
R = TypeVar("R")

MARK: Final = "_widening"
_COUNTS: Final = ("seen", "rewritten", "conflicts")
_ITEMS_A_PAGE: Final = 200  # after which the position is saved


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The progress of `widen` or `rewrite`: entities seen, and how many of them were rewritten.

    `conflicts` counts entities that stay under their previous key because the new one is taken. While there
    are any, the record of the table's keys (`key_records`) stays as it was.
    """

    seen: int = 0
    rewritten: int = 0
    conflicts: int = 0
    is_complete: bool = False


RewritingProgress = Callable[[Rewritten], None]


# Writing


def migrate_and_execute(write: Write[R], clock: Clock) -> Steps[R]:
    """Execute a write after migrating its item to the current key."""
    write.prepare()
    yield from migrate_keys([write], clock)
    return (yield from execute(write, clock, is_prepared=True))


def migrate_keys(writes: Sequence[Write[Any]], clock: Clock) -> Steps[None]:
    """Migrate the items of writes to their current keys."""
    for write in writes:
        if write.schema.previous is not None:
            for key in (write.key, write.target):
                if key is not None:
                    yield from migrate_key(write.schema, key, clock)


def migrate_key(schema: EntitySchema, key: Item, clock: Clock) -> Steps[None]:
    """Move an item to this key, if it is still stored under the previous one."""
    previous = previous_key(schema, key)
    if previous is None:
        return
    item = yield from read_item(schema, previous)
    if item is not None:
        with contextlib.suppress(AlreadyExists):  # then the item under the new key counts
            yield from execute(_Rewrite(schema, previous, item), clock)


class _Rewrite(Write[bool]):
    """Rewrite an item as a put would now; returns False if it was deleted.

    It changes no value, so neither the version nor a time.
    """

    def __init__(self, schema: EntitySchema, key: Item, item: Item) -> None:
        self.schema = schema
        self._key = key
        self.saw(item)

    @property
    def entity_key(self) -> EntityKey[Any]:
        schema = self.schema
        return EntityKey.of(schema.from_item(schema.upgraded(self.current or {})))

    def plan(self, now: float) -> list[Action]:
        schema, current = self.schema, self.current
        if current is None:
            return []
        item = rewritten(schema, schema.upgraded(current))
        key = key_in(schema, item)
        as_seen = pins(schema, current, set(current))
        if key == self.key:
            return [action("Put", schema, lambda _: None, as_seen, Item=item)]
        vacant = absent(schema.table.keys.partition[0].name)
        values = schema.from_item(item).__dict__
        return [
            action("Delete", schema, lambda _: None, as_seen, Key=self.key),
            action("Put", schema, self._taken, vacant, Item=item),
            *uniqueness.changes(schema, key, values, values, now, previous_owner=self.key),
        ]

    def _taken(self, item: Item | None) -> WriteRefused | None:
        return AlreadyExists(
            f"{self.schema.tag} {self.key} cannot be rewritten: its new key is taken",
            None if item is None else self.schema.from_invalid_item(item),
        )

    def finish(self, attributes: Item | None) -> bool:
        return self.current is not None


# Reading under either key


def get(
    reader: Reader, entity: type[E], values: dict[str, Any], *, consistent: bool
) -> Steps[E | None]:
    """`Reader.get` under either key."""
    found = yield from reader.get(entity, values, consistent=consistent)
    schema = entity.__schema__
    if values.keys() != schema.identity.keys():
        return found  # it was found by a unique value, whose marker has the key
    if found is None:
        item = yield from _get_previous(schema, schema.identify(values), consistent=consistent)
        found = reader.entity_of(entity, item)
    if found is None:  # it may have been migrated between the two reads
        found = yield from reader.get(entity, values, consistent=consistent)
    return found


def exists(
    reader: Reader, entity: type[Entity], values: dict[str, Any], *, consistent: bool
) -> Steps[bool]:
    """`Reader.exists` under either key."""
    return (yield from get(reader, entity, values, consistent=consistent)) is not None


def get_many(
    reader: Reader,
    entity: type[E],
    keys: Iterable[Mapping[str, Any]],
    *,
    consistent: bool,
    progress: FetchProgress | None,
) -> Steps[list[E | None]]:
    """`Reader.get_many` under either key."""
    wanted = [dict(key) for key in keys]
    found = yield from reader.get_many(entity, wanted, consistent=consistent, progress=progress)
    for place, key in enumerate(wanted):
        if found[place] is None:
            found[place] = yield from get(reader, entity, key, consistent=consistent)
    return found


def get_by_keys(
    reader: Reader,
    keys: Iterable[EntityKey[E]],
    *,
    consistent: bool,
    progress: FetchProgress | None,
) -> Steps[list[E | None]]:
    """`Reader.get_by_keys` under either key."""
    wanted = _keys_in(keys)
    found = yield from reader.get_by_keys(wanted, consistent=consistent, progress=progress)
    for place, key in enumerate(wanted):
        if found[place] is None and key.__schema__.previous is not None:
            fields = dict(key.fields)
            found[place] = yield from get(reader, key.entity, fields, consistent=consistent)
    return found


def _keys_in(keys: Iterable[EntityKey[E]]) -> list[EntityKey[E]]:
    wanted = list(keys) if isinstance(keys, Iterable) else [keys]
    for each in wanted:
        if not isinstance(each, EntityKey):
            raise UsageError(
                f"get_many takes keys, not {each!r}; write get_many([Order.primary.at(number=1), …]), or "
                'get_many(Order, [{"number": 1}, …])'
            )
    return wanted


def _get_previous(schema: EntitySchema, key: Item, *, consistent: bool) -> Steps[Item | None]:
    previous = previous_key(schema, key)
    if previous is None:
        return None
    request: dict[str, Any] = {"TableName": schema.table.name, "Key": previous}
    if consistent:
        request["ConsistentRead"] = True
    item: Item | None = (yield Call("GetItem", request)).get("Item")
    return item


# Rewriting a whole table


def widen(
    entity: type[Entity],
    clock: Clock,
    records: KeyRecords,
    progress: RewritingProgress | None = None,
) -> Steps[Rewritten]:
    """See `Operations.widen`."""
    schema = schema_of(entity)
    if schema.previous is None:
        raise UsageError(
            f"no key of {schema.tag} is being widened; declare field(max=<new>, was=<previous>) first"
        )
    return rewrite(schema, clock, records, progress)


def rewrite(
    schema: EntitySchema,
    clock: Clock,
    records: KeyRecords,
    progress: RewritingProgress | None = None,
) -> Steps[Rewritten]:
    """See `Operations.rewrite`."""
    state, position = yield from _load(schema)
    while True:
        response = yield Call("Scan", _page(schema, position))
        for item in response["Items"]:
            state = yield from _rewrite(schema, item, state, clock)
        position = response.get("LastEvaluatedKey")
        state = replace(state, is_complete=position is None)
        yield from _save(schema, state, position)
        if position is None and not state.conflicts:
            for each in (schema, *schema.kinds()):
                yield from records.accept(each)
        if progress is not None:
            progress(state)
        if position is None:
            return state


def _rewrite(schema: EntitySchema, item: Item, state: Rewritten, clock: Clock) -> Steps[Rewritten]:
    state = replace(state, seen=state.seen + 1)
    schema = schema.kind_of(item) or schema
    if _is_as_declared(schema, item):
        return state
    try:
        existed = yield from execute(_Rewrite(schema, key_in(schema, item), item), clock)
    except AlreadyExists:
        return replace(state, conflicts=state.conflicts + 1)
    return replace(state, rewritten=state.rewritten + existed)


def _is_as_declared(schema: EntitySchema, item: Item) -> bool:
    fresh = rewritten(schema, schema.upgraded(item))
    names = {slot.attribute.name for key in schema.keys.values() for slot in key.slots}
    return all(fresh.get(name) == item.get(name) for name in names)


def _page(schema: EntitySchema, position: Item | None) -> dict[str, Any]:
    request = {
        "TableName": schema.table.name,
        "Limit": _ITEMS_A_PAGE,
        "ConsistentRead": True,
        "FilterExpression": schema.is_of_kind(),
    }
    return request if position is None else {**request, "ExclusiveStartKey": position}


def _load(schema: EntitySchema) -> Steps[tuple[Rewritten, Item | None]]:
    """The saved counts and position; those of a new start if nothing is saved."""
    if not _can_save(schema):
        return Rewritten(), None
    item = yield from read_item(schema, _key(schema))
    if item is None:
        return Rewritten(), None
    seen, done, conflicts = (int(item[name]["N"]) for name in _COUNTS)
    return Rewritten(seen, done, conflicts), item["place"]["M"]


def _save(schema: EntitySchema, state: Rewritten, position: Item | None) -> Steps[None]:
    """Save the position, or delete it at the end."""
    if not _can_save(schema):
        return
    table, key = {"TableName": schema.table.name}, _key(schema)
    if position is None:
        yield Call("DeleteItem", {**table, "Key": key})
        return
    item: Item = {
        **key,
        schema.table.tag: {"S": MARK},
        "place": {"M": position},
        **{name: {"N": str(getattr(state, name))} for name in _COUNTS},
    }
    yield Call("PutItem", {**table, "Item": item})


def _can_save(schema: EntitySchema) -> bool:
    return all(attribute.type == "S" for attribute in schema.table.keys.attributes)


def _key(schema: EntitySchema) -> Item:
    partition, *sort = schema.table.keys.attributes
    text = f"{MARK}#{schema.tag}"
    return {partition.name: {"S": text}, **{attribute.name: {"S": MARK} for attribute in sort}}
