"""Items in responses: whole and unparsed, or projected; and the attributes that ReturnValues asks for."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from isotone import limits
from isotone.effort import give_way
from isotone.engine.layout import SIZE_BYTES, body_of, item_of
from isotone.expressions import Projection, Update
from isotone.operations.action import Answer, Later
from isotone.operations.item_writes import Outcome
from isotone.values.attribute_validation import Item

LARGE: Final = 8 * limits.KB
"""Bytes of an item beyond which its projection is left for later: the item must be parsed for it."""


def item_in_response(record: bytes, projection: Projection | None) -> Item | msgspec.Raw:
    """A stored item in a response: its unparsed bytes, or its projection."""
    if projection is None:
        return msgspec.Raw(record[SIZE_BYTES:])
    return projection.project(item_of(record))


class JsonItems:
    """The items of a response, in JSON as they are stored. One value for the encoder, which joins them."""

    __slots__ = ("items",)

    def __init__(self, items: list[bytes]) -> None:
        self.items = items


def _joined(value: Any) -> msgspec.Raw:
    if type(value) is not JsonItems:
        raise NotImplementedError  # the encoder says that it does not know the type
    items = [*value.items] or [b""]
    # To put the brackets around all of them would copy all of them.
    items[0] = b"[" + items[0]
    items[-1] += b"]"
    return msgspec.Raw(b",".join(items))


encode_response: Final = msgspec.json.Encoder(enc_hook=_joined).encode


Waiting = list[tuple[Any, Any, bytes, Projection]]
"""Places in a response, each a list or a dict with an index or a name, and what is to be there: a projection of a record."""


def completed(answer: Answer, waiting: Waiting) -> Answer | Later:
    """The answer, or if projections of large items are missing, how to make it."""

    def finish() -> Answer:
        for response, place, record, projection in waiting:
            response[place] = item_in_response(record, projection)
            give_way()
        return answer

    return Later(finish) if waiting else answer


def returned(wanted: str, update: Update | None, outcome: Outcome) -> Item | msgspec.Raw | None:
    """The attributes that `ReturnValues` asks for; None if there are none."""
    old, new = outcome
    if wanted == "ALL_NEW":
        return new
    if wanted == "ALL_OLD" and old is not None:
        return msgspec.Raw(body_of(old))
    if wanted == "UPDATED_NEW" and update is not None and new is not None:
        return update.project(new)
    if wanted == "UPDATED_OLD" and update is not None and old is not None:
        return update.project(item_of(old))
    return None
