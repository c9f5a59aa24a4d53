"""Compares items of different engines: a canonical form, the hash of a key, the digest of an item.

In canonical form, numbers are normalized, and sets and attributes are sorted. Items are equal exactly if their
canonical texts are.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from isotone.values.number import canonical_number
from isotone.values.types import AttributeValue, Item, sorted_members

_encode: Final = msgspec.json.Encoder(order="sorted").encode

_PLAIN: Final = frozenset({"S", "B", "BOOL", "NULL"})  # equal exactly if their JSON is


def canonical(item: Item) -> Item:
    """The item with normalized numbers and sorted sets; the same object if nothing changes."""
    changed: Item = {}
    for name, value in item.items():
        (code,) = value
        if code in _PLAIN:
            continue
        new = _canonical_value(code, value)
        if new is not value:
            changed[name] = new
    return {**item, **changed} if changed else item


def _canonical_value(code: str, value: AttributeValue) -> AttributeValue:
    content = value[code]
    if code == "N":
        number = canonical_number(content)
        return value if number is content else {"N": number}
    if code == "M":
        members = canonical(content)
        return value if members is content else {"M": members}
    if code == "L":
        elements = [
            each if (c := next(iter(each))) in _PLAIN else _canonical_value(c, each)
            for each in content
        ]
        return {"L": elements}
    if code == "NS":
        content = [canonical_number(each) for each in content]
    return {code: sorted_members(code, content)} if code in ("SS", "NS", "BS") else value


def key_text(item: Item, names: Sequence[str]) -> bytes:
    """The values of an item's key as bytes: equal for equal keys of one table."""
    parts: list[Any] = []
    for name in names:
        value = item[name]
        parts.append(canonical_number(value["N"]) if "N" in value else next(iter(value.values())))
    return _encode(parts)


def key_hash(key: bytes) -> int:
    """A 64-bit hash of a key's text."""
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big")


def item_digest(item: Item) -> bytes:
    """A 128-bit digest of an item: equal for equal items."""
    return blake2b(_encode(canonical(item)), digest_size=16).digest()
