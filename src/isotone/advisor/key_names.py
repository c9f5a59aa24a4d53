"""Names the parts of stored keys: by the fields of a model's entities, or without a model by the pieces between `#`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from typing import Any, Final

from isotone.advisor.drawn_collections import DrawnKeyPart, KeyParts
from isotone.errors import MalformedKey
from isotone.model import EntitySchema, Table
from isotone.tables.description import KeyDescription
from isotone.text_table import cell
from isotone.values.notation import value_text
from isotone.values.types import AttributeValue, Item

_TAG: Final = "_type"
_OWN: Final = frozenset({"_v", "_type"})
_MOST_ATTRIBUTES: Final = 3
_WIDEST_VALUE: Final = 20
_WHOLE_SECOND: Final = re.compile(r"\.000000Z$")
_PIECES: Final = re.compile(r"([^#]+|#)")
_INDEX_KEY: Final = re.compile(r"(?i)[gl]si|pk$|sk$")
_LITERAL: Final = re.compile(r"[A-Z_]*[A-Z][A-Z_]*")


def key_form(slot: Any) -> KeyParts:
    """A key attribute of an entity as it is stored, with the names of its fields: `ORDER#{number}`."""
    names = [component.field.name for component in slot.components]
    template = getattr(slot, "template", None)
    literals: Sequence[str] = ("",) * (len(names) + 1) if template is None else template.literals
    parts = [DrawnKeyPart(literals[0])]
    for name, literal in zip(names, literals[1:], strict=True):
        parts += [DrawnKeyPart(f"{{{name}}}", name), DrawnKeyPart(literal)]
    return tuple(part for part in parts if part.text)


def readable(value: AttributeValue) -> str:
    """A value as a person writes it: texts without quotes."""
    return str(value["S"]) if "S" in value else value_text(value)


def _shown(value: AttributeValue) -> str:
    """A value to show beside a key: shortened, and a time without a zero fraction."""
    return cell(_WHOLE_SECOND.sub("Z", readable(value)), _WIDEST_VALUE)


class KeyNames:
    """Names the parts of keys, the kinds of items, and the attributes worth showing."""

    def __init__(self, tables: Iterable[Table] = (), attributes: Sequence[str] = ()) -> None:
        self._attributes = attributes
        self._first: Collection[str] = ()
        self._tables = {table.name: table for table in tables}

    def with_first(self, attributes: Collection[str]) -> KeyNames:
        """The same names, with these attributes before the others: those of a filter show why an item is dropped."""
        found = copy(self)
        found._first = attributes
        return found

    def schema(self, table: str, item: Item) -> EntitySchema | None:
        """The entity of an item, if the model has it."""
        declared = self._tables.get(table)
        if declared is None:
            return None
        return declared.entity_of(item.get(declared.tag, {}).get("S", ""))

    def kind(self, table: str, item: Item) -> str:
        """The name of the entity of an item: its tag; empty if it has none."""
        schema = self.schema(table, item)
        if schema is not None:
            return schema.entity.__name__
        declared = self._tables.get(table)
        text = item.get(declared.tag if declared is not None else _TAG, {}).get("S", "")
        return "" if text.startswith("_") else cell(str(text), _WIDEST_VALUE)

    def parts(self, table: str, index: str | None, name: str, item: Item) -> KeyParts:
        """A key attribute of an item, split into its parts."""
        schema = self.schema(table, item)
        value = item[name]
        if schema is not None:
            for key in schema.keys.values():
                if key.index == index:
                    parts = _of_model(key, name, value)
                    if parts is not None:
                        return parts
        return pieces(value, name)

    def attributes(
        self, table: str, index: str | None, keys: Mapping[str | None, KeyDescription], item: Item
    ) -> tuple[tuple[str, str], ...]:
        """Some attributes to show beside the key, with their values as text."""
        in_keys = {
            part.name
            for key in keys.values()
            for part in key.parts
            if _is_composed(part.name, item)
        }
        in_keys |= {part.name for part in keys[index].parts}
        schema = self.schema(table, item)
        names = {name: name for name in item}
        hidden: set[str] = set()
        if schema is not None:
            names = {field.attribute: field.name for field in schema.fields.values()}
            hidden = {field.name for field in schema.identity.values()}
            hidden |= {field.name for field in schema.fields.values() if field.options.hidden}
            shown = [key for key in schema.keys.values() if key.index == index]
            components = [each for key in shown for each in key.components]
            # Descending, a value cannot be read in its key: 2026-12-18 is 7973-87-81.
            hidden |= {each.field.name for each in components if not each.descending}
            hidden |= {
                field.name for field in schema.fields.values() if field.options.role != "plain"
            }
        if self._attributes:
            titles = {title: name for name, title in names.items() if name in item}
            return tuple(
                (title, _shown(item[titles[title]]))
                for title in self._attributes
                if title in titles
            )
        chosen = [
            name
            for name, title in names.items()
            if name in item and name not in in_keys | _OWN and title not in hidden
        ]
        chosen.sort(key=lambda name: name not in self._first)
        return tuple((names[name], _shown(item[name])) for name in chosen[:_MOST_ATTRIBUTES])


def _is_composed(name: str, item: Item) -> bool:
    """Whether a key attribute only repeats other attributes: `GSI1PK`, or a text of several parts."""
    return _INDEX_KEY.match(name) is not None or "#" in item.get(name, {}).get("S", "")


def _of_model(key: Any, name: str, value: AttributeValue) -> KeyParts | None:
    """The parts of a key that the model declares; None if the value does not have that form."""
    for slot in key.slots:
        if slot.attribute.name != name:
            continue
        template = getattr(slot, "template", None)
        if template is None:
            return (DrawnKeyPart(readable(value), slot.components[0].field.name),)
        try:
            values = template.parse(value.get("S", ""))
        except MalformedKey:
            return None
        parts = [DrawnKeyPart(template.literals[0])]
        for component, codec, each, literal in zip(
            slot.components, template.codecs, values, template.literals[1:], strict=True
        ):
            parts += [DrawnKeyPart(codec.encode(each), component.field.name), DrawnKeyPart(literal)]
        return tuple(part for part in parts if part.text)
    return None


def pieces(value: AttributeValue, name: str) -> KeyParts:
    """The parts of a value without a model: words in capitals before a `#` are literals, the rest are values."""
    text = readable(value)
    found = _PIECES.findall(text)
    if "S" not in value or len(found) < 2:
        return (DrawnKeyPart(text, name),)
    word, parts = "", []
    for piece in found:
        if piece == "#":
            parts.append(DrawnKeyPart(piece))
        elif _LITERAL.fullmatch(piece):
            parts.append(DrawnKeyPart(piece))
            word = piece.lower()
        else:
            parts.append(DrawnKeyPart(piece, word or name))
            word = ""
    return tuple(parts)
