"""Encodes items in responses: stored JSON spliced in unparsed, projections, and ReturnValues."""

from __future__ import annotations

from typing import Final

import msgspec

from isotone import limits
from isotone.engine.layout import SIZE_BYTES, body_of, item_of
from isotone.expressions import CompiledProjection, CompiledUpdate
from isotone.operations.action import Answer
from isotone.operations.item_writes import Outcome
from isotone.operations.long_requests import raise_if_long
from isotone.operations.request_expressions import Values
from isotone.values.attribute_validation import Item

_LARGE: Final = 64 * limits.KB  # bytes of an item that are parsed within a millisecond


def item_in_response(record: bytes, projection: CompiledProjection | None) -> Item | msgspec.Raw:
    """A stored item in a response: its unparsed bytes, or its projection."""
    if projection is None:
        return msgspec.Raw(record[SIZE_BYTES:])
    raise_if_long(len(record) > _LARGE)
    return projection.project(item_of(record))


class JsonItems:
    """The `Items` of a response in stored JSON; only `encode_response` can encode them."""

    __slots__ = ("items",)

    def __init__(self, items: list[bytes]) -> None:
        self.items: list[bytes] = items


encode_plain: Final = msgspec.json.Encoder().encode
"""A response in JSON, or a part of one, without stored items."""


def encode_response(answer: Answer) -> bytes:
    """A response in JSON. All stored items are joined in a single copy, whatever surrounds them."""
    found = answer["Items"] if type(answer) is dict and "Items" in answer else None
    if type(found) is not JsonItems:
        return encode_plain(answer)
    rest = {**answer}
    del rest["Items"]
    others = encode_plain(rest)
    items = [*found.items] or [b""]
    items[0] = b'{"Items":[' + items[0]
    items[-1] += b"]}" if others == b"{}" else b"]," + others[1:]
    return b",".join(items)


def returned(
    wanted: str, update: CompiledUpdate | None, outcome: Outcome, values: Values | None = None
) -> Item | msgspec.Raw | None:
    """The attributes that `ReturnValues` asks for after an update with these values; None if there are none."""
    old, new = outcome
    if wanted == "ALL_NEW":
        return new
    if wanted == "ALL_OLD" and old is not None:
        return msgspec.Raw(body_of(old))
    if wanted == "UPDATED_NEW" and update is not None and new is not None:
        return update.project(new, values or {})
    if wanted == "UPDATED_OLD" and update is not None and old is not None:
        return update.project(item_of(old), values or {})
    return None
