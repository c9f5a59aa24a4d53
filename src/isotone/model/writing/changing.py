"""What updates, upserts and moves share: changes of one entity's fields, and those that the library adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from isotone.errors import NotFound, WriteRefused
from isotone.expressions import nodes
from isotone.expressions.update import Update as CompiledUpdate
from isotone.model.declaring import changes as kinds
from isotone.model.declaring.changes import Change
from isotone.model.declaring.conditions import Condition
from isotone.model.rendering import update_of
from isotone.model.writing.allowance import allowed
from isotone.model.writing.stored import (
    as_read,
    described,
    insisted,
    is_gone,
    key_of,
    read_version,
    refusal,
    schema_of,
)
from isotone.model.writing.writing import Write
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema
    from isotone.model.entity import Entity

R = TypeVar("R")


class Changing(Write[R]):
    """A write that is given as changes of an entity, or of a class and the fields of a key."""

    may_move: ClassVar[bool] = False
    _now: datetime

    def __init__(
        self,
        target: type[Entity] | Entity,
        changes: Sequence[Change],
        key: Mapping[str, Any],
        when: Condition | None = None,
    ) -> None:
        self.schema = schema_of(target)
        self.entity = None if isinstance(target, type) else target
        self.when = when
        self._key = key_of(target, key)
        self._given = changes
        self._changes: list[Change] = []
        values = key if self.entity is None else self.entity.__dict__
        self._identity = {name: values[name] for name in self.schema.identity}

    @property
    def key(self) -> Item:
        return self._key

    def prepare(self) -> None:
        given = self.schema.entity.before_update(self._given)
        self._changes = allowed(self.schema, given, may_move=self.may_move)

    def _insisted(self) -> list[nodes.ConditionNode | None]:
        """What the caller insists on: the version that was read, conditions, and what was read before."""
        return [
            None if self.entity is None else read_version(self.schema, self.entity.__dict__),
            insisted(self.schema, self.when),
            self.further,
        ]

    def _explain(self, item: Item | None) -> WriteRefused | None:
        if is_gone(self.schema, item, self._now):
            return NotFound(f"{described(self.schema, self.key)} does not exist")
        return refusal(self, item, {} if self.entity is None else as_read(self.entity))


def stamps(schema: EntitySchema, now: datetime) -> list[Change]:
    """The changes that the library makes with every update."""
    found: list[Change] = []
    if "version" in schema.by_role:
        found.append(kinds.Add(schema.by_role["version"], 1))
    if "updated" in schema.by_role:
        found.append(kinds.Set(schema.by_role["updated"], now))
    return found


def names(changes: Sequence[Change]) -> set[str]:
    """The fields that are changed."""
    return {change.field.name for change in changes}


def settled(schema: EntitySchema, changes: Sequence[Change]) -> dict[str, Any]:
    """The values of fields that follow from the changes alone."""
    return {
        change.field.name: schema.absent(change.field)
        if isinstance(change, kinds.Remove)
        else change.known
        for change in changes
        if change.is_known
    }


def applied(changes: Sequence[Change], item: Item) -> Item:
    """The item after the changes, as the database would make them."""
    update = CompiledUpdate.from_node(update_of([change.action() for change in changes]))
    update.check({})
    return update.apply(item, {})
