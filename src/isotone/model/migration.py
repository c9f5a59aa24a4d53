"""Single items under a previous key (`was`): gets look under both keys; writes move an item to its current key first.

While `was` is declared (`declaring.previous_keys`), an item may be stored under its current key or its previous one.
Ordinary reads and writes use current keys only; `store` calls this module for entities that declare `was`.
`reading.two_key_forms` has the queries, `rewriting` migrates a whole table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from isotone.clock import Clock
from isotone.errors import AlreadyExists, UsageError
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.previous_keys import previous_key
from isotone.model.reading.reader import Reader
from isotone.model.writing.executor import execute
from isotone.model.writing.item_rewrite import Rewrite
from isotone.model.writing.write import (
    Write,
    owner_of,
    read_item,
)
from isotone.tables.batch_reads import FetchProgress
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
R = TypeVar("R")

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
            for key in write.keys_to_migrate:
                yield from migrate_key(write.schema, key, clock)


def migrate_key(schema: EntitySchema, key: Item, clock: Clock) -> Steps[None]:
    """Move an item to this key, if it is still stored under the previous one."""
    previous = previous_key(schema, key)
    if previous is None:
        return
    item = yield from read_item(schema, previous)
    if item is not None and owner_of(schema, item) is schema:
        with contextlib.suppress(AlreadyExists):  # the item under the new key wins
            yield from execute(Rewrite(schema, item), clock)


# Reading under either key


def get(
    reader: Reader, entity: type[E], values: dict[str, Any], *, consistent: bool
) -> Steps[E | None]:
    """`Reader.get` under either key."""
    found = yield from reader.get(entity, values, consistent=consistent)
    schema = entity.__schema__
    if values.keys() != schema.identity.keys():
        return found  # found by a unique value, whose marker names the key
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
