"""Items of DynamoDB as entities of Azure: what comes back is exactly what was written.

An attribute whose type Azure has exactly is a property of the same name, so that Azure's own tools can show it and
filter by it. The other attributes are DynamoDB JSON in properties that Isotone names:

    key attributes           PartitionKey and RowKey, and nowhere else (`keys`)
    S                        a string, unless it is longer than 32,000 characters or has control characters
    N                        Edm.Int64, or Edm.Double if it has at most 15 digits
    BOOL                     Edm.Boolean
    B                        Edm.Binary, up to 64 KiB
    NULL, sets, L, M         DynamoDB JSON, in `IsotoneJson`, `IsotoneJson2`, … of up to 16,000 code points each
    names that Azure forbids, and attributes beyond 200    likewise

Azure limits an entity to 252 properties, and to 1 MiB at two bytes for each character. So an item below DynamoDB's 400
KB may be too large; it is refused before it is sent.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec

from isotone.backends.azure_table import keys
from isotone.errors import InvalidItem, MalformedKey, ValidationException
from isotone.values.number import canonical_number
from isotone.values.types import AttributeValue, Item

Entity = dict[str, Any]

PARTITION: Final = "PartitionKey"
ROW: Final = "RowKey"
_JSON: Final = "IsotoneJson"

_MOST_PROPERTIES: Final = 200  # for attributes; the rest is for JSON
_LONGEST_STRING: Final = 32_000  # of 32,768 UTF-16 characters
_CHUNK: Final = 16_000  # code points, of at most two UTF-16 characters each
_LARGEST_BINARY: Final = 64 * 1024
_LARGEST_ENTITY: Final = 1024 * 1024
_MOST_DIGITS: Final = 15  # that every double stores exactly
_INT64: Final = range(-(2**63), 2**63)

_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]{0,254}")
_RESERVED: Final = frozenset(("partitionkey", "rowkey", "timestamp", "etag"))
_UNSAFE: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_DIGITS: Final = re.compile("[1-9][0-9]*")


class Int64(NamedTuple):
    """An integer in the form that the SDK takes and returns."""

    value: int
    edm_type: str = "Edm.Int64"


@dataclass(frozen=True, slots=True)
class EntityLayout:
    """How a table's items become entities: the names and types of its key attributes, partition first."""

    table: str
    key: Sequence[tuple[str, str]]

    def keys_of(self, attributes: Mapping[str, AttributeValue]) -> tuple[str, str]:
        """The PartitionKey and RowKey of an item; the RowKey is empty in a table without a sort key.

        Raises `KeyError` for attributes that are not a key of the table; the caller turns it into DynamoDB's error.
        """
        encoded = []
        for name, code in self.key:
            value = attributes[name]
            key = keys.encode({code: canonical_number(value[code]) if code == "N" else value[code]})
            self._check_length(name, key)
            encoded.append(key)
        return encoded[0], encoded[1] if len(encoded) > 1 else ""

    def _check_length(self, name: str, key: str) -> None:
        if keys.length(key) > keys.LONGEST_KEY:
            raise ValidationException(
                f"the value of key attribute {name!r} of table {self.table!r} has {keys.length(key)} characters in "
                f"Azure Table storage, which allows {keys.LONGEST_KEY}; use shorter keys (it begins {key[:40]!r})"
            )

    def entity(self, item: Item) -> Entity:
        """The entity of an item in normal form. Raises `ValidationException` for one that is too large for Azure."""
        partition, row = self.keys_of(item)
        entity: Entity = {PARTITION: partition, ROW: row}
        rest: Item = {}
        names = {name for name, _ in self.key}
        for name, value in item.items():
            if name in names:
                continue
            found = _property(name, value) if len(entity) < _MOST_PROPERTIES else None
            if found is None:
                rest[name] = value
            else:
                entity[name] = found
        for place, chunk in enumerate(_chunks(rest), 1):
            entity[_JSON if place == 1 else f"{_JSON}{place}"] = chunk
        self._check_size(entity)
        return entity

    def _check_size(self, entity: Entity) -> None:
        size = entity_size(entity)
        if size > _LARGEST_ENTITY:
            raise ValidationException(
                f"an item of table {self.table!r} has {size:,} bytes in Azure Table storage, which allows "
                f"{_LARGEST_ENTITY:,}; divide it into several items, or keep large values elsewhere (its partition "
                f"key is {entity[PARTITION]!r}, its row key {entity[ROW]!r})"
            )

    def item(self, entity: Mapping[str, Any]) -> Item:
        """The item of an entity. Raises `InvalidItem` for one that Isotone has not written."""
        item: Item = {}
        try:
            for (name, code), property_name in zip(self.key, (PARTITION, ROW), strict=False):
                item[name] = keys.decode(entity[property_name], code)
            chunks = []
            for name, value in entity.items():
                if name.startswith(_JSON) and _is_chunk(name):
                    chunks.append((len(name), name, value))
                elif name not in (PARTITION, ROW):
                    item[name] = _attribute(value)
            if chunks:
                text = "".join(chunk for _, _, chunk in sorted(chunks))
                item.update(msgspec.json.decode(text, type=dict[str, dict[str, Any]]))
        except (MalformedKey, msgspec.MsgspecError) as error:
            raise InvalidItem(
                f"an entity of table {self.table!r} was not written by Isotone: {error} (its PartitionKey is "
                f"{entity[PARTITION]!r}, its RowKey {entity[ROW]!r})",
                table=self.table,
            ) from error
        return item


# Attributes to properties


def _property(name: str, value: AttributeValue) -> Any:
    """The property of an attribute; None if it must be stored as JSON."""
    if not _NAME.fullmatch(name) or name.lower() in _RESERVED or _is_chunk(name):
        return None
    ((code, content),) = value.items()
    match code:
        case "S":
            return content if _fits(content) else None
        case "N":
            return _number(content)
        case "BOOL":
            return content
        case "B":
            raw = a2b_base64(content)
            return raw if len(raw) <= _LARGEST_BINARY else None
    return None


def _fits(text: str) -> bool:
    return not _UNSAFE.search(text) and keys.length(text) <= _LONGEST_STRING


def _number(text: str) -> Int64 | float | None:
    if "." not in text and len(text) < 21 and int(text) in _INT64:
        return Int64(int(text))
    digits = text.lstrip("-0.").replace(".", "").rstrip("0")
    return float(text) if len(digits) <= _MOST_DIGITS else None


def _is_chunk(name: str) -> bool:
    ending = name.removeprefix(_JSON)
    return ending != name and (not ending or bool(_DIGITS.fullmatch(ending)))


def _chunks(rest: Item) -> Iterator[str]:
    if not rest:
        return
    text = msgspec.json.encode(rest).decode()
    text = _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    for start in range(0, len(text), _CHUNK):
        yield text[start : start + _CHUNK]


# Properties to attributes


def _attribute(value: Any) -> AttributeValue:
    """The attribute of a property. Times and GUIDs, which Isotone never writes, become strings."""
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, tuple):  # the SDK's form of a 64-bit integer
        value = value[0]
    if isinstance(value, int | float):
        return {"N": canonical_number(repr(value))}
    if isinstance(value, bytes):
        return {"B": b64encode(value).decode()}
    return {"S": getattr(value, "tables_service_value", "") or str(value)}


# Sizes


def entity_size(entity: Mapping[str, Any]) -> int:
    """The size of an entity by Azure's formula: two bytes per character, and some for each property."""
    size = 4
    for name, value in entity.items():
        if name in (PARTITION, ROW):
            size += 2 * keys.length(value)
        else:
            size += 8 + 2 * len(name) + _content_size(value)
    return size


def _content_size(value: Any) -> int:
    if isinstance(value, bool):
        return 1
    if isinstance(value, str):
        return 4 + 2 * keys.length(value)
    if isinstance(value, bytes):
        return 4 + len(value)
    return 8
