"""Conditions and filters on items that lack an attribute whose field has a default (see `Attr.implied`).

A program reads the default, but the database has nothing to compare: `gift = false` misses the item, and `gift <>
false` finds it. So a test of such a field is extended. The test is tried here on the default and on a missing
attribute. If the answers differ, the condition is extended so that the database answers as it would for the default:

    gift = :false       becomes   gift = :false OR attribute_not_exists(gift)
    gift <> :false      becomes   gift <> :false AND attribute_exists(gift)

If an item has the value of a field only in an index key, the default does not apply.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from isotone.expressions import nodes
from isotone.expressions.condition import CompiledCondition
from isotone.values.types import AttributeValue

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.fields import Attr

EMPTY_SETS: Final[tuple[AttributeValue, ...]] = ({"SS": []}, {"NS": []}, {"BS": []})
"""How an absent set reads. No item contains an empty set."""

Nodes = tuple[nodes.ConditionNode, ...]


class Absence:
    """When a missing attribute means the field's default.

    `further`: conditions that must also hold, for every field. `in_no_key`: the same for single fields; None for fields
    whose attributes are never missing.
    """

    __slots__ = ("_further", "_in_no_key")

    def __init__(
        self, further: Nodes = (), in_no_key: Mapping[str, Nodes | None] | None = None
    ) -> None:
        self._further = further
        self._in_no_key = in_no_key or {}

    def of(self, field: Attr[Any]) -> nodes.ConditionNode | None:
        """The condition that the item has a field's default; None if no item can."""
        in_no_key = self._in_no_key.get(field.name, ())
        if in_no_key is None:
            return None
        missing = nodes.Call("attribute_not_exists", (field.path(),))
        further = (*self._further, *in_no_key)
        return nodes.And((missing, *further)) if further else missing

    def complete(
        self, field: Attr[Any], default: AttributeValue, test: nodes.ConditionNode
    ) -> nodes.ConditionNode:
        """A test of a field that treats a missing attribute as the default."""
        matches = CompiledCondition.from_node(test).matches
        of_default = matches({field.attribute: default}, {})
        if of_default is matches({}, {}):
            return test
        absent = self.of(field)
        if absent is None:
            return test
        if of_default:
            return nodes.Or((test, absent))
        if isinstance(absent, nodes.Call):
            return nodes.And((test, nodes.Call("attribute_exists", (field.path(),))))
        return nodes.And((test, nodes.Not(absent)))


DEFAULTS: Final = Absence()
"""For items that store every value in an attribute, except defaults."""


@lru_cache(maxsize=2048)
def absence_in(schema: EntitySchema, index: str | None) -> Absence:
    """For the entries of an index, or for the table's items."""
    return Absence((), _in_no_key(schema, index))


@lru_cache(maxsize=2048)
def absence_if_stored(schema: EntitySchema) -> Absence:
    """For conditions that may also be tested where there is no item. A missing item has no defaults."""
    key = nodes.Path((schema.table.keys.partition[0].name,))
    return Absence((nodes.Call("attribute_exists", (key,)),), _in_no_key(schema, None))


def _in_no_key(schema: EntitySchema, index: str | None) -> Mapping[str, Nodes | None]:
    """For each field in a key: the conditions that no key of the item contains its value.

    None for fields of the key that is read: it contains all their values, and a filter must not test it.
    """
    layouts = (schema.table.keys, schema.table.layout(index))
    found_by = {each.name for layout in layouts for each in layout.attributes}
    tests: dict[str, Nodes | None] = {}
    for key in schema.keys_of_both_forms:
        for slot in key.slots:
            for component in slot.components:
                field = component.field
                before = tests.get(field.name, ())
                if slot.attribute.name in found_by or before is None:
                    tests[field.name] = None
                elif slot.attribute.name != field.attribute:
                    tests[field.name] = (*before, slot.is_unfilled)
    return tests
