"""Items in responses: whole and unparsed, or projected; and the attributes that ReturnValues asks for."""

from __future__ import annotations

import msgspec

from isotone.engine.layout import body_of, item_of
from isotone.expressions import Projection, Update
from isotone.operations.item_writes import Outcome
from isotone.values.attribute_validation import Item


def item_in_response(record: bytes, projection: Projection | None) -> Item | msgspec.Raw:
    """A stored item in a response: its unparsed bytes, or its projection."""
    if projection is None:
        return msgspec.Raw(body_of(record))
    return projection.project(item_of(record))


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
