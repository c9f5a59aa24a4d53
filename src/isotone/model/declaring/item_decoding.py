"""Generates the functions that read items into entities quickly: one for dicts, one for the stored JSON.

Reads spend most of their time here, so each entity gets generated functions, as a dataclass gets its `__init__`. One
reads items as dicts, the other items as JSON, as a database in this process stores them. The latter parses an item into
a msgspec structure with a member for each attribute, which takes less time and memory than a dict for each value.

Both read whole items of the current version only. They raise an exception of any class if an attribute without a fixed
default is missing, if a value is stored only in a key, or if a value is invalid. `EntitySchema.from_item` then finds
out what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from isotone.model.declaring.fields import UNKNOWN, Attr
from isotone.model.declaring.table import VERSION_ATTRIBUTE
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

DecodeItem = Callable[[Item], "Entity"]
DecodeJson = Callable[["bytes | msgspec.Raw"], "Entity"]

_has_escapes: Final = re.compile(r'["\\\x00-\x1f]').search

_CONTENTS: Final[dict[str, Any]] = {
    "S": str,
    "N": str,
    "B": str,
    "BOOL": bool,
    "SS": list[str],
    "NS": list[str],
    "BS": list[str],
    "L": list[Any],
    "M": dict[str, Any],
}
"""The type of the content under each type code that fields have."""

# msgspec crashes the process (SIGSEGV) if a thread uses a structure that another thread is compiling.
_COMPILING: Final = Lock()


def item_decoder(schema: EntitySchema) -> DecodeItem:
    """The function that reads an entity from an item."""
    writer = _DecoderWriter(schema, _InDict())
    writer.refuse_if(_is_other_version(schema, writer))
    writer.set_fields()
    if schema.unknown != "drop":
        _note_unknown(schema, writer)
    return writer.function()


def json_decoder(schema: EntitySchema) -> DecodeJson | None:
    """The function that reads an entity from JSON; it also refuses items of other entities.

    It refuses an item with attributes that the entity does not declare, except with `unknown="drop"`. None if an
    attribute name contains JSON escapes, which msgspec structures do not support.
    """
    if any(map(_has_escapes, schema.declared_attributes)):
        return None
    form = _InStructure(schema)
    writer = _DecoderWriter(schema, form)
    writer.names["parse"] = form.parser()
    writer.lines.append("item = parse(item)")
    tag = form.content(schema.table.tag, "S")
    writer.refuse_if(f"{tag} != {schema.tag!r}")
    writer.refuse_if(_is_other_version(schema, writer))
    writer.set_fields()
    return writer.function()


def has_fixed_absence(field: Attr[Any]) -> bool:
    """Whether a missing attribute reads as the same object in every whole item."""
    options = field.options
    return (
        not options.required
        and options.default_factory is None
        and options.compute is None
        and field.wire.python not in (set, frozenset)
    )


# The two forms of items: how generated code looks at an attribute


class _InDict:
    """Code that reads an item as a dict of dicts."""

    def content(self, attribute: str, code: str | None) -> str:
        """An expression for the content under a type code, or the whole value; it raises if there is none."""
        return f"item[{attribute!r}]" + ("" if code is None else f"[{code!r}]")

    def has(self, attribute: str) -> str:
        """An expression for whether the item has an attribute."""
        return f"{attribute!r} in item"


class _InStructure:
    """Code that reads an item as a msgspec structure with a member for each attribute, in stored order.

    Each value is a structure with one member: its content under the type code.
    """

    def __init__(self, schema: EntitySchema) -> None:
        self._refuses_unknown = schema.unknown != "drop"
        # A value that cannot be read from one type code's content stays a dict.
        types: dict[str, Any] = {
            attribute: Any if code is None else code for _, attribute, code, _, _ in schema.decoders
        }
        needed = {each.attribute for each in schema.fields.values() if not has_fixed_absence(each)}
        types.setdefault(schema.table.tag, "S")
        types.setdefault(VERSION_ATTRIBUTE, "N")
        for slot in schema.primary.slots:
            types.setdefault(slot.attribute.name, msgspec.Raw)
            needed.add(slot.attribute.name)
        for attribute in sorted(schema.declared_attributes - types.keys()):
            types[attribute] = msgspec.Raw  # an index's key, which is not read
        self._types = types
        self._needed = needed | {schema.table.tag}
        self._members = {attribute: f"a{place}" for place, attribute in enumerate(types)}

    def content(self, attribute: str, code: str | None) -> str:
        """An expression for the content under a type code, or the whole value; it raises if there is none."""
        return f"item.{self._members[attribute]}" + ("" if code is None else f".{code}")

    def has(self, attribute: str) -> str:
        """An expression for whether the item has an attribute."""
        return f"item.{self._members[attribute]} is not None"

    def parser(self) -> Callable[[Any], Any]:
        """The function that parses an item's JSON."""
        with _COMPILING:
            members: list[Any] = []
            for attribute, type_ in self._types.items():
                name, value = self._members[attribute], type_
                if isinstance(type_, str):
                    value = _value_structure(type_)
                members.append((name, value) if attribute in self._needed else (name, value, None))
            structure = msgspec.defstruct(
                "Item",
                members,
                rename={name: attribute for attribute, name in self._members.items()},
                forbid_unknown_fields=self._refuses_unknown,
                kw_only=True,
                gc=False,
            )
            return msgspec.json.Decoder(structure).decode


@cache
def _value_structure(code: str) -> type[msgspec.Struct]:
    """The structure of values with this type code."""
    structure = msgspec.defstruct("Value", [(code, _CONTENTS[code])], gc=False)
    msgspec.json.Decoder(structure)  # makes msgspec compile it now
    return structure


# The generated functions


class _DecoderWriter:
    """Generates the source of a function from an item to an entity."""

    def __init__(self, schema: EntitySchema, form: _InDict | _InStructure) -> None:
        self.schema = schema
        self.form = form
        self.names: dict[str, Any] = {
            "new": object.__new__,
            "entity_class": schema.entity,
            "refuse": _refuse,
        }
        self.lines: list[str] = []

    def refuse_if(self, condition: str) -> None:
        """Write code that raises if the condition holds."""
        self.lines += [f"if {condition}:", "    refuse()"]

    def set_fields(self) -> None:
        """Write code that makes the entity and sets all its fields."""
        self.lines += ["entity = new(entity_class)", "values = entity.__dict__"]
        for place, (name, attribute, code, read, decode) in enumerate(self.schema.decoders):
            field = self.schema.fields[name]
            content = self.form.content(attribute, code)
            if field.wire.choices is not None:
                value = f"{self._named(f'choices_{place}', field.wire.choices)}[{content}]"
            elif code is not None and read in (str, bool):
                value = content
            else:
                value = (
                    f"{self._named(f'decode_{place}', decode if code is None else read)}({content})"
                )
            if has_fixed_absence(field):
                absent = self._named(f"absent_{place}", self.schema.absent(field))
                held = " or ".join(map(self.form.has, self.schema.keys_with(name)))
                if held:
                    absent = f"(refuse() if {held} else {absent})"
                value = f"{value} if {self.form.has(attribute)} else {absent}"
            self.lines.append(f"values[{name!r}] = {value}")

    def _named(self, name: str, value: Any) -> str:
        self.names[name] = value
        return name

    def function(self) -> Callable[[Any], Entity]:
        """Compile the function."""
        body = "".join(f"    {line}\n" for line in [*self.lines, "return entity"])
        exec(f"def decode(item):\n{body}", self.names)
        decode: Callable[[Any], Entity] = self.names["decode"]
        return decode


def _refuse() -> NoReturn:
    raise LookupError("the item is not what the entity declares")


def _is_other_version(schema: EntitySchema, writer: _DecoderWriter) -> str:
    """The test whether another version of the entity wrote the item."""
    version = schema.marks.get(VERSION_ATTRIBUTE)
    if version is None:
        return writer.form.has(VERSION_ATTRIBUTE)
    return f"{writer.form.content(VERSION_ATTRIBUTE, 'N')} != {version['N']!r}"


def _note_unknown(schema: EntitySchema, writer: _DecoderWriter) -> None:
    """Write code that notes the undeclared attributes, or refuses them.

    Counting an item's attributes is faster than looking up each of them.
    """
    writer.names["unknown"] = schema.unknown_in
    present = {slot.attribute.name for slot in schema.primary.slots}
    present |= {field.attribute for field in schema.fields.values() if not has_fixed_absence(field)}
    others = schema.declared_attributes - present - {VERSION_ATTRIBUTE}
    count = str(len(present) + (schema.version > 1))
    count = " + ".join([count, *(f"({name!r} in item)" for name in sorted(others))])
    if schema.unknown == "refuse":
        writer.refuse_if(f"len(item) != {count}")
    else:
        writer.lines += [f"if len(item) != {count}:", f"    values[{UNKNOWN!r}] = unknown(item)"]
