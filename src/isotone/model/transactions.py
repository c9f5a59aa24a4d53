"""Transactions: writes to several entities, of any kinds and tables, that are made together or not at all.

    with store.transaction() as t:
        account = t.get(Account, number="1")
        t.update(Account, Account.balance.add(-10), number="1", when=Account.balance >= 10)
        t.create(Transfer(…))
        t.check(Customer, Customer.blocked == False, id="c1")

The calls collect; `commit` sends. What was read within a transaction must be unchanged when it is
committed. Nothing is sent where the block ends by an exception.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import msgspec

from isotone import limits
from isotone.clock import Clock
from isotone.errors import UsageError
from isotone.expressions import nodes
from isotone.model.carrying import bring, carry_out_together
from isotone.model.changes import Change
from isotone.model.conditions import Condition
from isotone.model.moving import Move
from isotone.model.rendering import absent, unchanged
from isotone.model.saving import Check, Delete, Put, entity_of, is_gone, key_of
from isotone.model.steps import Call, Steps
from isotone.model.updating import Update
from isotone.model.writing import Write, read_item
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity
    from isotone.model.schema import EntitySchema

E = TypeVar("E", bound="Entity")


class Transaction:
    """Writes that are collected, and then made together or not at all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._writes: list[Write[Any]] = []
        self._read: dict[bytes, _Read] = {}
        self._is_over = False

    # Collecting

    def put(self, entity: Entity, *, when: Condition | None = None) -> None:
        """Write an entity over whatever has its primary key."""
        self._add(Put(entity, when))

    def create(self, entity: Entity) -> None:
        """Write an entity that must not be there yet."""
        self._add(Put(entity, None, "absence"))

    def replace(self, entity: Entity, *, when: Condition | None = None) -> None:
        """Write over an entity that must be there."""
        self._add(Put(entity, when, "presence"))

    def delete(
        self, target: type[Entity] | Entity, /, *, when: Condition | None = None, **key: Any
    ) -> None:
        """Delete an entity, by its key's fields or itself."""
        self._add(Delete(target, key, when))

    def update(
        self,
        target: type[Entity] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> None:
        """Change some fields of an entity that must be there."""
        self._add(Update(target, changes, key, when))

    def move(
        self,
        target: type[Entity] | Entity,
        /,
        *changes: Change,
        when: Condition | None = None,
        **key: Any,
    ) -> None:
        """Change the primary key of an entity that must be there."""
        self._add(Move(target, changes, key, when))

    def check(self, target: type[Entity] | Entity, condition: Condition, /, **key: Any) -> None:
        """Insist on a condition on an entity that the transaction does not write."""
        self._add(Check(target, key, condition.node()))

    def _add(self, write: Write[Any]) -> None:
        self._check_open()
        self._writes.append(write)

    def _check_open(self) -> None:
        if self._is_over:
            raise UsageError("the transaction is over; begin another with store.transaction()")

    # Reading

    def get(self, entity: type[E], key: Mapping[str, Any]) -> Steps[E | None]:
        """An entity, which must be unchanged when the transaction is committed. Cost: a consistent read."""
        self._check_open()
        schema = entity.__schema__
        where = key_of(entity, key)
        yield from bring(schema, where, self._clock)
        item = yield from read_item(schema, where)
        self._read[_place(schema, where)] = _Read(entity, key, item)
        return cast("E | None", _alive(schema, item, self._clock))

    # The end

    def commit(self) -> Steps[None]:
        """Make all writes or none; raises `TransactionFailed` with the error of each refused write.

        Cost: twice that of the writes by themselves, and a read for each that has to know its item.
        """
        self._check_open()
        self._is_over = True
        for write in self._writes:
            write.prepare()
        unwritten = dict(self._read)
        for write in self._writes:
            read = unwritten.pop(_place(write.schema, write.key), None)
            if read is not None:
                write.further = read.as_seen()
        checks = [Check(read.entity, read.key, read.as_seen()) for read in unwritten.values()]
        writes = [*self._writes, *checks]
        _check_distinct(writes)
        if self._writes:
            yield from carry_out_together(writes, self._clock)


class _Read(NamedTuple):
    """What a transaction has read, and relies on."""

    entity: type[Entity]
    key: Mapping[str, Any]
    item: Item | None

    def as_seen(self) -> nodes.ConditionNode:
        """The condition that it is unchanged."""
        schema = self.entity.__schema__
        if self.item is None:
            return absent(schema.table.keys.attributes[0].name)
        version = schema.by_role.get("version")
        names = self.item if version is None else {version.attribute}
        return cast("nodes.ConditionNode", unchanged(sorted(names), self.item))


def _alive(schema: EntitySchema, item: Item | None, clock: Clock) -> Entity | None:
    """The entity of an item; None where it has expired."""
    gone = is_gone(schema, item, datetime.fromtimestamp(clock.now(), UTC))
    return None if gone else entity_of(schema, item)


def _place(schema: EntitySchema, key: Item) -> bytes:
    return msgspec.json.encode((schema.table.name, key), order="sorted")


def _check_distinct(writes: Sequence[Write[Any]]) -> None:
    """DynamoDB refuses two actions on one item."""
    seen: dict[bytes, int] = {}
    for place, write in enumerate(writes):
        where = _place(write.schema, write.key)
        if where in seen:
            raise UsageError(
                f"entries {seen[where]} and {place} of the transaction are about the same "
                f"{write.schema.tag}; join them into one update, or put a condition into when="
            )
        seen[where] = place


_READS: Final = limits.TRANSACTION_ITEMS


def get_together(
    targets: Sequence[tuple[type[Entity], Mapping[str, Any]]], clock: Clock
) -> Steps[list[Entity | None]]:
    """Several entities as they are at one moment, in order; None for each that is not there, or has expired.

    Cost: twice that of consistent reads. Raises `UsageError` for more than a hundred.
    """
    if len(targets) > _READS:
        raise UsageError(f"a transaction reads at most {_READS} items, not {len(targets)}")
    entries = [
        {"Get": {"TableName": entity.__schema__.table.name, "Key": key_of(entity, key)}}
        for entity, key in targets
    ]
    for entity, key in targets:
        yield from bring(entity.__schema__, key_of(entity, key), clock)
    response = yield Call("TransactGetItems", {"TransactItems": entries})
    return [
        _alive(entity.__schema__, answer.get("Item"), clock)
        for (entity, _), answer in zip(targets, response["Responses"], strict=True)
    ]
