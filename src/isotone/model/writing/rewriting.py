"""Writing an item as a fresh put would, under the key that its values now make."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from isotone.errors import AlreadyExists, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.schema import VERSION_ATTRIBUTE
from isotone.model.rendering import absent, expressions, unchanged
from isotone.model.writing import uniqueness
from isotone.model.writing.writing import Action, Write
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema


def rewritten(schema: EntitySchema, item: Item) -> Item:
    """The item as a fresh put would write it, with the attributes that are none of the entity's."""
    entity = schema.from_item(item)
    for name, compute in schema.computations.items():
        entity.__dict__[name] = compute(entity)
    ours = {field.attribute for field in schema.fields.values()}
    ours |= {slot.attribute.name for key in schema.keys.values() for slot in key.slots}
    foreign = {name: value for name, value in item.items() if name not in ours}
    return {**foreign, **schema.to_item(entity.__dict__)}


def pins(schema: EntitySchema, current: Item, used: set[str]) -> nodes.ConditionNode | None:
    """The condition that attributes of an item are as they were seen.

    Where the entity has a version, that says it for all of them.
    """
    version = schema.by_role.get("version")
    if version is not None and version.attribute in current:
        return unchanged([version.attribute], current)
    if schema.version == 1:
        used = used - {VERSION_ATTRIBUTE}
    return unchanged(sorted(used), current)


class Rewrite(Write[bool]):
    """Write an item anew that was seen under some key; the result tells whether it was still there.

    It changes no value, so neither the version nor any time of it.
    """

    def __init__(self, schema: EntitySchema, key: Item, item: Item) -> None:
        self.schema = schema
        self._key = key
        self.saw(item)

    @property
    def key(self) -> Item:
        return self._key

    def plan(self, now: datetime) -> list[Action]:
        schema, current = self.schema, self.current
        if current is None:
            return []
        item = rewritten(schema, schema.upgraded(current))
        key = {each.name: item[each.name] for each in schema.table.keys.attributes}
        seen = expressions(ConditionExpression=pins(schema, current, set(current)))
        table = {"TableName": schema.table.name}
        if key == self.key:
            return [Action("Put", {**table, "Item": item, **seen}, lambda _: None)]
        free = expressions(ConditionExpression=absent(schema.table.keys.attributes[0].name))
        values = schema.from_item(item).__dict__
        return [
            Action("Delete", {**table, "Key": self.key, **seen}, lambda _: None),
            Action("Put", {**table, "Item": item, **free}, self._taken),
            *uniqueness.changes(schema, key, values, values, now, former_owner=self.key),
        ]

    def _taken(self, item: Item | None) -> WriteRefused | None:
        return AlreadyExists(
            f"{self.schema.tag} {self.key} cannot be rewritten: its new key has an item already",
            None if item is None else self.schema.from_item(item),
        )

    def finish(self, attributes: Item | None) -> bool:
        return self.current is not None
