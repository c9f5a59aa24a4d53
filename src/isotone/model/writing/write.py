"""The base of all writes: targets, conditions, versions, and refusal errors (`ConditionFailed`, `VersionConflict`).

An *action* is one entry of a transaction. Some actions depend on the stored item (index keys of fields that the caller
does not know, unique values to release). Such a write reads the item, and adds the values that it used to its action's
condition. `executor` sends the plans, and plans again after a lost race.

Two things are called version. A field declared with `version()` counts the writes of one entity. Its condition
(`expected_version`) and `VersionConflict` are here; a put increases it in `put_and_delete` (`stamped`), an update in
`updates`. A class's `version=2` is the form in which its items are written: no write replaces an item of a later
version (`is_known`, `NewerVersion`), and a condition on an item of an older version is tested after upgrading it.

An item that has expired but is not deleted yet counts as missing; DynamoDB may take two days to delete it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import msgspec

from isotone.errors import (
    ApiError,
    ConditionFailed,
    NotFound,
    UsageError,
    VersionConflict,
    WriteRefused,
)
from isotone.expressions import CompiledCondition, nodes
from isotone.model.declaring.absent_attributes import absence_if_stored, absence_in
from isotone.model.declaring.computing import NoValue
from isotone.model.declaring.conditions import Condition, Operand, not_a_condition
from isotone.model.declaring.entity_key import EntityKey, unpacked
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.model.expiry import is_missing, or_expired, unexpired
from isotone.model.expression_trees import absent, equal, unchanged
from isotone.tables.steps import Call, Steps
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

R = TypeVar("R")

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]
Returned = Literal["ALL_OLD", "NONE"]
"""What a write returns instead of its own result: the previous entity, or nothing."""


class WriteAction(msgspec.Struct, frozen=True):
    """One entry of a transaction, or a single request.

    `explain` is called with the current item after a refusal, and returns the error to raise. It returns None if the
    item has changed since the action was planned, so that it can be planned again.
    """

    kind: Kind
    members: dict[str, Any]
    explain: Callable[[Item | None], WriteRefused | None]


class PlannedWrite(msgspec.Struct, frozen=True):
    """One attempt of a write: the actions to send, starting with the item's own, and the outcome.

    `finish` makes the result from `outcome`, whose form only the write knows: the values of a put, the item after an
    update. After a lost race, a new plan replaces both.
    """

    actions: list[WriteAction]
    outcome: Any = None


class MustRead(NoValue):
    """The item must be read to plan the write; the text says what is missing, such as "the value of 'status'"."""


class Write(ABC, Generic[R]):
    """One write, executed once: `prepare`, `plan`, and after success `finish` with the plan that was sent.

    `reads`: the item must be read before planning. `current` is the item as last read, if `is_seen`. A transaction adds
    conditions: `further` on the item, and `at_target` on whatever is stored under the key to which the item moves.
    `otherwise` makes the error for a false condition. `not_owned` lists marker keys that belong to other items although
    this one has their values, so it must not release them.
    """

    schema: EntitySchema
    reads: bool = False
    is_seen: bool = False
    current: Item | None = None
    further: nodes.ConditionNode | None = None
    otherwise: Callable[[Any], WriteRefused] | None = None
    at_target: nodes.ConditionNode | None = None
    returned: Returned | None = None
    not_owned: tuple[Item, ...] = ()

    _key: Item
    _now: float
    _identity: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()} of {described(self.schema, self.key)}"

    @property
    def key(self) -> Item:
        """The primary key of the item."""
        return self._key

    @property
    def entity_key(self) -> EntityKey[Any]:
        """The primary key as an `EntityKey`, for the caller."""
        return EntityKey(self.schema.entity, **self._identity)

    @property
    def target(self) -> Item | None:
        """The primary key to which the item moves, if it is known before planning."""
        return None

    @property
    def keys_to_migrate(self) -> tuple[Item, ...]:
        """The keys whose items may still be under a previous key, from which they are moved first."""
        return tuple(key for key in (self.key, self.target) if key is not None)

    def prepare(self) -> None:
        """Run the entity's `before_…` hook."""

    @abstractmethod
    def plan(self, now: float) -> PlannedWrite:
        """What to send, based on the item if it `is_seen`; raises `MustRead` if the item must be read."""

    @abstractmethod
    def finish(self, plan: PlannedWrite, attributes: Item | None) -> R:
        """The result after success; `attributes` come from the response of a plain request."""

    def finish_otherwise(self, plan: PlannedWrite, attributes: Item | None) -> Any:
        """The result after success, if the caller asked for another result than the write's own."""
        self.finish(plan, None)
        item = self.current if attributes is None else attributes
        if self.returned == "NONE" or is_missing(self.schema, item, self._now):
            return None
        return entity_of(self.schema, item)

    def saw(self, item: Item | None) -> None:
        """Note the current item."""
        self.current, self.is_seen = item, True


def action(
    kind: Kind,
    schema: EntitySchema,
    explain: Callable[[Item | None], WriteRefused | None],
    condition: nodes.ConditionNode | None,
    **members: Any,
) -> WriteAction:
    """An action on a schema's table, with an optional condition."""
    members["TableName"] = schema.table.name
    if condition is not None:
        members["ConditionExpression"] = condition
    return WriteAction(kind, members, explain)


def read_item(
    schema: EntitySchema, key: Item, projection: nodes.ProjectionNode | None = None
) -> Steps[Item | None]:
    """The current item, or some of its attributes. Cost: one consistent read."""
    request = {"TableName": schema.table.name, "Key": key, "ConsistentRead": True}
    if projection is not None:
        request["ProjectionExpression"] = projection
    item: Item | None = (yield Call("GetItem", request)).get("Item")
    return item


def place_of(schema: EntitySchema, key: Item) -> bytes:
    """Identifies an item across all tables."""
    return msgspec.json.encode((schema.table.name, key), order="sorted")


def key_in(schema: EntitySchema, item: Item) -> Item:
    """The primary key in an item."""
    return {attribute.name: item[attribute.name] for attribute in schema.table.keys.attributes}


def moment(now: float) -> datetime:
    """Seconds since the epoch as a datetime."""
    return datetime.fromtimestamp(now, UTC)


# Conditions on what is stored


def condition_node(
    schema: EntitySchema, when: Condition | None, *, is_stored: bool = False
) -> nodes.ConditionNode | None:
    """The caller's condition; raises `UsageError` if it is on another entity.

    `is_stored`: another condition of the request guarantees that the item exists, or it is known.
    """
    if when is None:
        return None
    if isinstance(when, Operand):
        raise not_a_condition(when)
    if not isinstance(when, Condition):
        field = next(iter(schema.fields))
        raise UsageError(
            f"when takes a condition on fields of the class, such as {schema.tag}.{field} == …, not {when!r}"
        )
    for field in when.fields():
        if field.name not in schema.fields or schema.fields[field.name] is not field:
            raise UsageError(
                f"{field.name!r} in the condition is not a field of {schema.tag}; "
                "for a condition on another entity use check() of a transaction"
            )
    return when.node(absence_in(schema, None) if is_stored else absence_if_stored(schema))


def exists(schema: EntitySchema, now: float) -> nodes.ConditionNode:
    """The condition that the item exists and has not expired."""
    if "expires" not in schema.by_role:
        return schema.stored_node
    return nodes.And((*schema.stored, unexpired(schema.by_role["expires"].attribute, now)))


def missing(schema: EntitySchema, now: float) -> nodes.ConditionNode:
    """The condition that the item does not exist or has expired."""
    return or_expired(schema, absent(schema.table.keys.partition[0].name), now)


def of_kind(schema: EntitySchema) -> nodes.ConditionNode | None:
    """The condition that a stored item is of this kind; None for an entity that is not a kind."""
    if schema.base is None:
        return None
    return nodes.Or((absent(schema.table.keys.partition[0].name), schema.is_of_kind()))


def is_known(
    schema: EntitySchema, when: Condition | None, *, is_plain: bool = False
) -> nodes.ConditionNode | None:
    """The condition that no later version wrote the stored item; if `when` is given, that this version wrote it.

    A plain put has no other condition, and does not get this one either, unless its class declares a version.
    """
    if is_plain and not schema.declares_version:
        return None
    return schema.no_newer if when is None else schema.same_version


def is_older(schema: EntitySchema, item: Item | None) -> bool:
    """Whether an older version of the entity wrote the item; raises `NewerVersion` for a later one."""
    return item is not None and schema.is_older(item)


def upgraded_satisfies(schema: EntitySchema, when: Condition | None, item: Item) -> bool:
    """Whether an item of an older version satisfies the caller's condition after upgrading."""
    node = condition_node(schema, when, is_stored=True)
    return node is None or CompiledCondition.from_node(node).matches(schema.upgraded(item), {})


def pins(schema: EntitySchema, current: Item, used: AbstractSet[str]) -> nodes.ConditionNode | None:
    """The condition that the used attributes are unchanged. A version field, if there is one, covers all of them."""
    version = schema.by_role.get("version")
    if version is not None and version.attribute in current:
        used = {version.attribute}
    return unchanged(sorted({*used, VERSION_ATTRIBUTE}), current)


def as_it_was(schema: EntitySchema, item: Item) -> nodes.ConditionNode | None:
    """The condition that an item is as it was read: no attribute changed, and no declared one added."""
    return pins(schema, item, schema.declared_attributes | item.keys())


def expected_version(
    schema: EntitySchema, values: Mapping[str, Any], now: float
) -> nodes.ConditionNode | None:
    """The condition that the stored version is the one that was read; version 0 means that nothing is stored."""
    if "version" not in schema.by_role:
        return None
    read = read_version(schema, values)
    if read is not None:
        return read
    return or_expired(schema, absent(schema.by_role["version"].attribute), now)


def read_version(schema: EntitySchema, values: Mapping[str, Any]) -> nodes.ConditionNode | None:
    """The condition that the stored version is the one that was read; None if the entity was not read."""
    field = schema.by_role.get("version")
    if field is None or not values[field.name]:
        return None
    return equal(field.attribute, field.encode(values[field.name]))


def as_read(entity: Entity) -> Mapping[str, Any]:
    """The values of an entity that was read with its version; empty if it has no version."""
    values = entity.__dict__
    return {} if read_version(entity.__schema__, values) is None else values


def refusal(write: Write[Any], item: Item | None, values: Mapping[str, Any]) -> WriteRefused | None:
    """The error for a refused write; None if its item has changed since the write was planned."""
    schema = write.schema
    if item is not None and schema.base is not None and schema.kind_of(item) is None:
        return other_kind(schema, write.key, item)
    if item is not None and VERSION_ATTRIBUTE in item:
        schema.checked(item)
    version = schema.by_role.get("version")
    if version is not None and values.get(version.name):
        stored = (item or {}).get(version.attribute)
        if stored != version.encode(values[version.name]):
            return VersionConflict(
                f"{described(schema, write.key)} was read as version {values[version.name]}, "
                f"but is now {_version_text(item, stored)}",
                entity_of(schema, item),
            )
    elif version is not None and version.name in values and version.attribute in (item or {}):
        return VersionConflict(
            f"{described(schema, write.key)} has no version here, but is already stored",
            entity_of(schema, item),
        )
    if write.is_seen and item != write.current:
        return None
    current = entity_of(schema, item)
    if write.otherwise is not None:
        return write.otherwise(current)
    when: Condition | None = getattr(write, "when", None)
    return ConditionFailed(
        f"the condition on {described(schema, write.key)} is false"
        + ("" if when is None else f": {when!r}")
        + ("; the item does not exist" if current is None else ""),
        current,
    )


def _version_text(item: Item | None, stored: AttributeValue | None) -> str:
    if item is None:
        return "deleted"
    return "without a version" if stored is None else f"version {next(iter(stored.values()))}"


# Errors of the database that need a hint


F = TypeVar("F", bound=ApiError)
_HINTS: Final = {
    "The document path provided in the update expression is invalid": (
        "a part of the path is missing; set the whole map or list first"
    ),
    "The provided expression refers to an attribute that does not exist in the item": (
        "a field that the update computes with has no value in the item; write .or_else(…) of that field"
    ),
}


def with_hint(error: F) -> F:
    """The error, with advice if AWS's message has none."""
    for message, hint in _HINTS.items():
        if message in error.message:
            error.hint = hint
    return error


# Targets


def schema_of(target: Any) -> EntitySchema:
    """The schema of an entity, its class or its key; raises `UsageError` for anything else."""
    try:
        schema: EntitySchema = target.__schema__
    except AttributeError:
        raise UsageError(
            f"{target!r} is not an entity with a table; declare one: class Order(Entity, table=…)"
        ) from None
    return schema


def schema_of_instance(entity: Entity) -> EntitySchema:
    """The schema of an instance; raises `UsageError` for a class or a key."""
    given: Any = entity
    if given.__class__ is EntityKey:
        raise UsageError(f"{given!r} is only a key; give the entity itself")
    try:
        return type(entity).__schema__
    except AttributeError:
        tag = schema_of(entity).tag
        raise UsageError(f"{tag} is a class; give an entity of it: {tag}(…)") from None


def class_and_key(
    call: str, target: Any, values: Sequence[Any], key: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The class and the fields of a key; raises `UsageError` for anything but a key."""
    schema = schema_of(target)
    if isinstance(target, EntityKey) and not values:
        entity, of_key = unpacked(target, key)
        return entity, dict(of_key)
    names = schema.identity
    known = values or [getattr(target, "__dict__", {}).get(name, ...) for name in names]
    fields = [
        f"{name}={'…' if value is ... else repr(value)}"
        for name, value in zip_longest(names, known, fillvalue=...)
        if name is not ...
    ]
    raise UsageError(
        f"{call} takes a class and its key's fields by name; write "
        f"{call}({', '.join([schema.entity.__name__, *fields])})"
    )


def key_of(
    schema: EntitySchema,
    target: type[Entity] | EntityKey[Any] | Entity,
    key: Mapping[str, Any],
) -> Item:
    """The primary key of an entity, of an `EntityKey`, or of a class with the key's fields."""
    if isinstance(target, type):
        return schema.identify(key)
    if isinstance(target, EntityKey):
        _, fields = unpacked(target, key)
        return schema.identify(fields)
    if key:
        raise UsageError(
            f"an entity has its own key; give {schema.tag} itself, or the class and a key"
        )
    return schema.primary_key(target.__dict__)


def identity_of(
    target: type[Entity] | EntityKey[Any] | Entity, key: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The primary key's fields of an entity, of an `EntityKey`, or of a class with the key's fields."""
    if isinstance(target, type):
        return key
    if isinstance(target, EntityKey):
        return target.fields
    values = target.__dict__
    return {name: values[name] for name in target.__schema__.identity}


def entity_of(schema: EntitySchema, item: Item | None) -> Entity | None:
    """The entity of an item, as the class that its tag names; None without an item.

    The item is written already, or explains a refusal, so an invalid value raises only when it is accessed.
    """
    if item is None:
        return None
    return owner_of(schema, item).from_invalid_item(item, require_all_fields=True)


def owner_of(schema: EntitySchema, item: Item) -> EntitySchema:
    """The schema that an item's tag names; the given schema if the tag names none of the table's."""
    tag = item.get(schema.table.tag, {}).get("S", schema.tag)
    return schema.table.entity_of(tag) or schema


def values_of(schema: EntitySchema, item: Item | None) -> dict[str, Any] | None:
    """An item's field values, as far as they are valid."""
    return None if item is None else schema.from_invalid_item(item).__dict__


def values_held(schema: EntitySchema, item: Item | None, now: float) -> dict[str, Any] | None:
    """An item's values that reserve unique values; None if it has expired."""
    return None if is_missing(schema, item, now) else values_of(schema, item)


def other_kind(schema: EntitySchema, key: Item, item: Item) -> NotFound:
    """The error for a write of one kind where an item of another kind is stored."""
    tag = item.get(schema.table.tag, {}).get("S", "an item without a tag")
    return NotFound(f"{described(schema, key)} does not exist: under this key there is {tag}")


def described(schema: EntitySchema, key: Item) -> str:
    """An item as text, for messages."""
    parts = ", ".join(str(next(iter(value.values()))) for value in key.values())
    return f"{schema.tag} {parts}"
