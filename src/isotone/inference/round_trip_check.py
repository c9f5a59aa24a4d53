"""Checks a module against the items that it was inferred from.

Every item is read by its entity and written again in memory. The result must have every attribute of the item, with the
same value. It may have more: the tag, and attributes of fields that were only in the keys.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import ModuleType
from typing import Any, Final

from isotone.errors import IsotoneError
from isotone.model import Entity, Table
from isotone.values.json import item_from_wire
from isotone.values.types import AttributeValue, Item

_NUMBERS: Final = count(1)


@dataclass(frozen=True, slots=True)
class Misfit:
    """An item that its entity cannot read, or would write in another form."""

    number: int
    entity: str | None
    attribute: str | None
    what: str


def load(source: str, name: str = "inferred") -> ModuleType:
    """Import a module from its source. It is in `sys.modules` under a unique name, where types are looked up."""
    module = ModuleType(f"_isotone_{name}_{next(_NUMBERS)}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, f"<model of {name}>", "exec"), module.__dict__)
    except BaseException:
        del sys.modules[module.__name__]
        raise
    return module


def table_of(module: ModuleType) -> Table:
    """The table that a module declares."""
    return next(value for value in vars(module).values() if isinstance(value, Table))


def misfits(module: ModuleType, items: Sequence[Item]) -> Iterator[Misfit]:
    """The items that the module's entities cannot read, or would write in another form."""
    table = table_of(module)
    for number, item in enumerate(items):
        yield from check_item(table, number, item)


def check_item(table: Table, number: int, item: Item) -> Iterator[Misfit]:
    """The faults when one item is read and written again."""
    entity = entity_for(table, item)
    if entity is None:
        yield Misfit(number, None, None, "no entity has such keys, and this tag")
        return
    schema = entity.__schema__
    try:
        values = schema.from_item(item, require_all_fields=True).__dict__
        written = schema.to_item(values)
    except IsotoneError as error:
        name = getattr(error, "field", None)
        attribute = schema.fields[name].attribute if name in schema.fields else None
        yield Misfit(number, entity.__name__, attribute, str(error))
        return
    for name, value in item.items():
        if not is_same(value, written.get(name)):
            found = written.get(name, "nothing")
            what = f"attribute {name!r} is {_shown(value)}, and would be written as {_shown(found)}"
            yield Misfit(number, entity.__name__, name, what)
    if (added := _added_keys(table, item, written)) is not None:
        what = f"it would be in an index in which it is not: {added!r} would be written"
        yield Misfit(number, entity.__name__, added, what)


def _added_keys(table: Table, item: Item, written: Item) -> str | None:
    """An index key that would be written although the item does not have it."""
    names = {part.name for layout in table.layouts.values() for part in layout.attributes}
    return next((name for name in sorted(names) if name in written and name not in item), None)


def is_same(value: AttributeValue, written: AttributeValue | None) -> bool:
    """Whether a value is written unchanged; None may be left out."""
    if written is None:
        return "NULL" in value
    if value == written:
        return True
    is_equal: bool = _comparable(value) == _comparable(written)
    return is_equal


def _comparable(value: AttributeValue) -> Any:
    """A value in a form that ignores how numbers and sets are written."""
    ((code, content),) = value.items()
    if code == "L":
        return code, [_comparable(each) for each in content]
    if code == "M":
        return code, {name: _comparable(each) for name, each in content.items()}
    return code, item_from_wire({"value": value})["value"]


def entity_for(table: Table, item: Item) -> type[Entity] | None:
    """The entity of an item: by its tag, or without one by the form of its key."""
    tag = item.get(table.tag)
    if tag is not None:
        schema = table.entities.get(tag.get("S", ""))
        return None if schema is None else schema.entity
    for schema in table.entities.values():
        if _reads_key(schema, item):
            return schema.entity
    return None


def _reads_key(schema: Any, item: Item) -> bool:
    try:
        for slot in schema.primary.slots:
            slot.parse(item[slot.attribute.name])
    except (IsotoneError, KeyError):
        return False
    return True


def _shown(value: Mapping[str, Any] | str) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}…"
