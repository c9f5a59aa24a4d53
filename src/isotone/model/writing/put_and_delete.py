"""Put (create, replace), delete, check: `AlreadyExists`, `NotFound`; sets `created()`, `updated()`; calls `before_put`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from isotone.clock import Clock
from isotone.codec.ids import new_id
from isotone.errors import AlreadyExists, NotFound, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.conditions import Condition
from isotone.model.declaring.entity_key import EntityKey
from isotone.model.declaring.wire_types import present_type
from isotone.model.expiry import alive, is_missing
from isotone.model.expression_trees import conjunction
from isotone.model.writing import headroom, uniqueness
from isotone.model.writing.write import (
    PlannedWrite,
    Write,
    action,
    as_it_was,
    as_read,
    condition_node,
    described,
    entity_of,
    exists,
    expected_version,
    identity_of,
    is_known,
    is_older,
    key_in,
    key_of,
    missing,
    moment,
    of_kind,
    read_version,
    refusal,
    schema_of,
    schema_of_instance,
    upgraded_satisfies,
    values_held,
)
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")

Expectation = Literal["anything", "absence", "presence"]


class Put(Write[E]):
    """Write a whole entity."""

    def __init__(
        self,
        entity: E,
        clock: Clock,
        when: Condition | None = None,
        expected: Expectation = "anything",
    ) -> None:
        self.schema: EntitySchema = schema_of_instance(entity)
        if "created_id" in self.schema.by_role:
            give_id(entity, clock)
        self.entity = entity
        self.when = when
        self.expected = expected
        self.reads: bool = bool(self.schema.unique) and expected != "absence"

    @property
    def key(self) -> Item:  # a hook may change the key
        return self.schema.primary_key(self.entity.__dict__)

    @property
    def entity_key(self) -> EntityKey[Any]:
        return EntityKey.of(self.entity)

    def prepare(self) -> None:
        self.entity.before_put()

    def plan(self, now: float) -> PlannedWrite:
        schema = self.schema
        self._now = now
        values = stamped(self.entity, now)
        item = schema.to_item(values)
        headroom.watch(schema, values)
        put = action("Put", schema, self._explain, self._condition(now), Item=item)
        if not schema.unique:
            return PlannedWrite([put], values)
        before = values_held(schema, self.current, now)
        markers = uniqueness.changes(schema, key_in(schema, item), before, values, now)
        return PlannedWrite([put, *markers], values)

    def _condition(self, now: float) -> nodes.ConditionNode | None:
        schema, when = self.schema, self.when
        if self.is_seen and is_older(schema, self.current):
            known, when = _upgraded_as_seen(self), None
        else:
            is_conditional = (
                when is not None
                or self.expected == "presence"
                or self.further is not None
                or self.reads
                or "version" in schema.by_role
            )
            known = is_known(schema, when, is_plain=not is_conditional)
        return conjunction(
            [
                None if self.expected == "anything" else self._expectation(now),
                expected_version(schema, self.entity.__dict__, now)
                if "version" in schema.by_role and self.expected != "absence"
                else None,  # without an item, any version is new
                None
                if when is None
                else condition_node(schema, when, is_stored=self.expected == "presence"),
                self.further,
                uniqueness.pins(schema, self.current) if self.reads else None,
                known,
            ]
        )

    def _expectation(self, now: float) -> nodes.ConditionNode:
        return (missing if self.expected == "absence" else exists)(self.schema, now)

    def _explain(self, item: Item | None) -> WriteRefused | None:
        schema = self.schema
        if self.expected == "absence":
            current = entity_of(schema, item)
            return AlreadyExists(f"{described(schema, self.key)} already exists", current)
        if self.expected == "presence" and is_missing(schema, item, self._now):
            return NotFound(f"{described(schema, self.key)} does not exist")
        if _must_be_seen(self, item):
            return None
        return refusal(self, item, self.entity.__dict__)

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> E:
        self.entity.__dict__.update(plan.outcome)
        self.entity.after_put()
        return self.entity


class Delete(Write[E | None]):
    """Delete an entity."""

    def __init__(
        self,
        target: type[E] | EntityKey[E] | E,
        key: Mapping[str, Any],
        when: Condition | None = None,
    ) -> None:
        self.schema: EntitySchema = schema_of(target)
        self.when = when
        self.entity: Entity | None = None if isinstance(target, type | EntityKey) else target
        self.reads: bool = bool(self.schema.unique)
        self._key = key_of(self.schema, target, key)
        self._identity = identity_of(target, key)

    def prepare(self) -> None:
        if self.entity is not None:
            self.entity.before_delete()

    def plan(self, now: float) -> PlannedWrite:
        schema = self.schema
        self._now = now
        if self.is_seen and is_older(schema, self.current):
            known, when = _upgraded_as_seen(self), None
        else:
            known, when = is_known(schema, self.when), self.when
        condition = conjunction(
            [
                known,
                of_kind(schema),
                None if self.entity is None else read_version(schema, self.entity.__dict__),
                condition_node(schema, when),
                self.further,
                uniqueness.pins(schema, self.current) if self.reads else None,
            ]
        )
        before = values_held(schema, self.current, now)
        markers = uniqueness.changes(schema, self.key, before, None, now)
        return PlannedWrite(
            [action("Delete", schema, self._explain, condition, Key=self.key), *markers]
        )

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if _must_be_seen(self, item):
            return None
        return refusal(self, item, {} if self.entity is None else as_read(self.entity))

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> E | None:
        item = attributes or self.current
        if is_missing(self.schema, item, self._now):
            return None
        return cast("E | None", entity_of(self.schema, item))


class Check(Write[None]):
    """A condition on an entity that the transaction does not write."""

    def __init__(
        self,
        target: type[Entity] | EntityKey[Any] | Entity,
        key: Mapping[str, Any],
        when: Condition | None = None,
    ) -> None:
        self.schema: EntitySchema = schema_of(target)
        self.when = when
        self._key = key_of(self.schema, target, key)
        self._identity = identity_of(target, key)

    def plan(self, now: float) -> PlannedWrite:
        schema, condition = self.schema, self.further
        if self.is_seen and self.when is not None and is_older(schema, self.current):
            condition = conjunction([alive(schema, now), _upgraded_as_seen(self), self.further])
        elif self.when is not None:
            own, known = condition_node(schema, self.when), is_known(schema, self.when)
            condition = conjunction([alive(schema, now), of_kind(schema), known, own, self.further])
        check = action("ConditionCheck", self.schema, self._explain, condition, Key=self.key)
        return PlannedWrite([check])

    def _explain(self, item: Item | None) -> WriteRefused | None:
        return None if _must_be_seen(self, item) else refusal(self, item, {})

    def finish(self, plan: PlannedWrite, attributes: Item | None) -> None:
        return None


# Items of an older version, for which the database cannot test the caller's condition


def _must_be_seen(write: Put[Any] | Delete[Any] | Check, item: Item | None) -> bool:
    """Whether a refused write must be planned again from the item, because an older version wrote it."""
    return not write.is_seen and write.when is not None and is_older(write.schema, item)


def _upgraded_as_seen(write: Put[Any] | Delete[Any] | Check) -> nodes.ConditionNode | None:
    """The condition that an item of an older version is unchanged, after checking the caller's condition on it.

    Raises the refusal if the item does not satisfy the caller's condition.
    """
    schema, current = write.schema, cast("Item", write.current)
    if not upgraded_satisfies(schema, write.when, current):
        failure = refusal(write, current, {})
        if failure is not None:
            raise failure
    return as_it_was(schema, current)


def give_id(entity: Entity, clock: Clock) -> None:
    """Give an entity its id before it is written, so that every attempt writes the same one."""
    field = entity.__schema__.by_role["created_id"]
    if entity.__dict__.get(field.name) is None:
        entity.__dict__[field.name] = new_id(present_type(field.annotation), clock)
        if entity.__schema__.computations:
            entity._compute()


def stamped(entity: Entity, now: float) -> dict[str, Any]:
    """The values to write, including those that the library sets: version, times, computed fields."""
    schema = entity.__schema__
    values = dict(entity.__dict__)
    roles = schema.by_role
    if "version" in roles:
        name = roles["version"].name
        values[name] = (values[name] or 0) + 1
    if "created" in roles and values[roles["created"].name] is None:
        values[roles["created"].name] = moment(now)
    if "updated" in roles:
        values[roles["updated"].name] = moment(now)
    if schema.computations:
        copy = type(entity).from_trusted(values)
        schema.computations.fill(copy, copy.__dict__)
        return copy.__dict__
    return values
