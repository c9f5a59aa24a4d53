"""Whole entities: put, create, replace, delete, and conditions that write nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from isotone.clock import Clock
from isotone.errors import AlreadyExists, NotFound, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.conditions import Condition
from isotone.model.rendering import conjunction, expressions
from isotone.model.steps import Steps
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.carrying import carry_out
from isotone.model.writing.stored import (
    as_read,
    described,
    entity_of,
    expected_version,
    insisted,
    is_gone,
    key_of,
    read_version,
    refusal,
    schema_of,
    schema_of_one,
    standing,
    unexpired,
    vacant,
    values_held,
)
from isotone.model.writing.writing import Action, Write
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")

Expectation = Literal["anything", "absence", "presence"]


def put(entity: E, clock: Clock, when: Condition | None = None) -> Steps[E]:
    """Write an entity over whatever has its primary key. Cost: one write.

    Raises `ConditionFailed` where `when` does not hold, `VersionConflict` where the entity has a version
    and was written by somebody else since it was read, `NotUnique` where it has a unique value that is
    taken. An entity with unique values costs a read and a transaction.
    """
    return carry_out(Put(entity, when), clock)


def create(entity: E, clock: Clock) -> Steps[E]:
    """Write an entity that is not there yet; raises `AlreadyExists`. Cost: one write."""
    return carry_out(Put(entity, None, "absence"), clock)


def replace(entity: E, clock: Clock, when: Condition | None = None) -> Steps[E]:
    """Write over an entity that is there; raises `NotFound` where it is not. Cost: one write."""
    return carry_out(Put(entity, when, "presence"), clock)


def delete(
    target: type[E] | E, key: Mapping[str, Any], clock: Clock, when: Condition | None = None
) -> Steps[E | None]:
    """Delete an entity and give it as it was; None where there was none, or it had expired. Cost: one write.

    By its key's fields, or the entity itself, whose version, where it has one, is checked.
    """
    return carry_out(Delete(target, key, when), clock)


class Put(Write[E]):
    """Write a whole entity."""

    def __init__(
        self, entity: E, when: Condition | None = None, expected: Expectation = "anything"
    ) -> None:
        self.schema = schema_of_one(entity)
        self.entity = entity
        self.when = when
        self.expected = expected
        self.reads = bool(self.schema.unique) and expected != "absence"
        self._values: dict[str, Any] = {}

    @property
    def key(self) -> Item:
        return self.schema.primary_key(self.entity.__dict__)

    def prepare(self) -> None:
        self.entity.before_put()

    def plan(self, now: datetime) -> list[Action]:
        schema = self.schema
        self._now = now
        self._values = values = stamped(self.entity, now)
        item = schema.to_item(values)
        headroom.watch(schema, values)
        condition = conjunction(
            [
                self._expectation(now),
                expected_version(schema, self.entity.__dict__, now),
                insisted(self.schema, self.when),
                self.further,
                uniqueness.pins(schema, self.current) if self.reads else None,
            ]
        )
        members = {
            "TableName": schema.table.name,
            "Item": item,
            **expressions(ConditionExpression=condition),
        }
        before = values_held(schema, self.current, now)
        markers = uniqueness.changes(schema, self._key_of(item), before, values, now)
        return [Action("Put", members, self._explain), *markers]

    def _key_of(self, item: Item) -> Item:
        return {each.name: item[each.name] for each in self.schema.table.keys.attributes}

    def _expectation(self, now: datetime) -> nodes.ConditionNode | None:
        if self.expected == "anything":
            return None
        return (vacant if self.expected == "absence" else standing)(self.schema, now)

    def _explain(self, item: Item | None) -> WriteRefused | None:
        schema, current = self.schema, entity_of(self.schema, item)
        if self.expected == "absence":
            return AlreadyExists(f"{described(schema, self.key)} exists already", current)
        if self.expected == "presence" and is_gone(schema, item, self._now):
            return NotFound(f"{described(schema, self.key)} does not exist")
        return refusal(self, item, self.entity.__dict__)

    def finish(self, attributes: Item | None) -> E:
        self.entity.__dict__.update(self._values)
        self.entity.after_put()
        return self.entity


class Delete(Write[E | None]):
    """Delete an entity."""

    def __init__(
        self, target: type[E] | E, key: Mapping[str, Any], when: Condition | None = None
    ) -> None:
        self.schema = schema_of(target)
        self.when = when
        self.entity = None if isinstance(target, type) else target
        self.reads = bool(self.schema.unique)
        self._key = key_of(target, key)

    @property
    def key(self) -> Item:
        return self._key

    def prepare(self) -> None:
        if self.entity is not None:
            self.entity.before_delete()

    def plan(self, now: datetime) -> list[Action]:
        schema = self.schema
        self._now = now
        condition = conjunction(
            [
                None if self.entity is None else read_version(schema, self.entity.__dict__),
                insisted(self.schema, self.when),
                self.further,
                uniqueness.pins(schema, self.current) if self.reads else None,
            ]
        )
        members = {
            "TableName": schema.table.name,
            "Key": self.key,
            **expressions(ConditionExpression=condition),
        }
        before = values_held(schema, self.current, now)
        markers = uniqueness.changes(schema, self.key, before, None, now)
        return [Action("Delete", members, self._explain), *markers]

    def _explain(self, item: Item | None) -> WriteRefused | None:
        return refusal(self, item, {} if self.entity is None else as_read(self.entity))

    def finish(self, attributes: Item | None) -> E | None:
        item = attributes or self.current
        gone = is_gone(self.schema, item, self._now)
        return None if gone else cast("E | None", entity_of(self.schema, item))


class Check(Write[None]):
    """A condition on an entity that a transaction does not write."""

    def __init__(
        self,
        target: type[Entity] | Entity,
        key: Mapping[str, Any],
        when: Condition | None = None,
    ) -> None:
        self.schema = schema_of(target)
        self.when = when
        self._key = key_of(target, key)

    @property
    def key(self) -> Item:
        return self._key

    def plan(self, now: datetime) -> list[Action]:
        members = {
            "TableName": self.schema.table.name,
            "Key": self.key,
            **expressions(ConditionExpression=self._condition(now)),
        }
        return [Action("ConditionCheck", members, lambda item: refusal(self, item, {}))]

    def _condition(self, now: datetime) -> nodes.ConditionNode | None:
        if self.when is None:
            return self.further
        asked = insisted(self.schema, self.when)
        return conjunction([unexpired(self.schema, now), asked, self.further])

    def finish(self, attributes: Item | None) -> None:
        return None


# What the library fills in


def stamped(entity: Entity, now: datetime) -> dict[str, Any]:
    """The values to write: the next version, the times of creation and change, the computed fields."""
    schema = entity.__schema__
    values = dict(entity.__dict__)
    roles = schema.by_role
    if "version" in roles:
        name = roles["version"].name
        values[name] = (values[name] or 0) + 1
    if "created" in roles and values[roles["created"].name] is None:
        values[roles["created"].name] = now
    if "updated" in roles:
        values[roles["updated"].name] = now
    if schema.computations:
        copy = type(entity).from_trusted(values)
        for name, compute in schema.computations.items():
            copy.__dict__[name] = values[name] = compute(copy)
    return values
