"""Encodes items in responses: stored JSON spliced in unparsed, projections, and ReturnValues."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isotone import limits
from isotone.effort import give_way
from isotone.engine.layout import SIZE_BYTES, body_of, item_of
from isotone.expressions import CompiledProjection, CompiledUpdate
from isotone.operations.action import Answer, Deferred
from isotone.operations.item_writes import Outcome
from isotone.operations.request_expressions import Values
from isotone.values.attribute_validation import Item

LARGE: Final = 8 * limits.KB
"""The projection of an item with more bytes is deferred, because the item must be parsed for it."""


def item_in_response(record: bytes, projection: CompiledProjection | None) -> Item | msgspec.Raw:
    """A stored item in a response: its unparsed bytes, or its projection."""
    if projection is None:
        return msgspec.Raw(record[SIZE_BYTES:])
    return projection.project(item_of(record))


class JsonItems:
    """The `Items` of a response in stored JSON; only `encode_response` can encode them."""

    __slots__ = ("items",)

    def __init__(self, items: list[bytes]) -> None:
        self.items = items


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


Waiting = list[tuple[Any, Any, bytes, CompiledProjection]]
"""Gaps in a response: a list or dict, the index or name in it, and the projection of a record that belongs there."""


def completed(answer: Answer, waiting: Waiting) -> Answer | Deferred:
    """The answer or, if projections of large items are missing, a function that completes it."""

    def finish() -> Answer:
        for response, place, record, projection in waiting:
            response[place] = item_in_response(record, projection)
            give_way()
        return answer

    return Deferred(finish) if waiting else answer


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
