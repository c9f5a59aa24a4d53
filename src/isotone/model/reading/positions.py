"""Where a read continues (`page`, `cursor=`): after which key, and the cursor that holds it.

A cursor has the parts of a position that the read itself does not fix, and is bound to the read (`cursor_identity`). One
that was made when the keys had their previous form (`was`) is still understood, if both forms have the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import msgspec

from isotone.errors import InvalidCursor
from isotone.model.reading.cursors import CursorCipher
from isotone.model.reading.item_selection import Found
from isotone.model.reading.queries import Query, Read
from isotone.model.reading.two_key_forms import has_two_forms, previous_queries, queried_kinds
from isotone.tables.scan import decoded
from isotone.values.types import Item


class CursorPosition(NamedTuple):
    """A position in a query's order, and a direction. Without a key, it is the start."""

    is_back: bool
    key: Item | None


START: Final = CursorPosition(is_back=False, key=None)


def position(read: Read[Any], item: Item | msgspec.Raw) -> Item:
    """The key after which a read continues, given the last item."""
    whole = decoded(item)
    return {name: whole[name] for name in read.position_attributes}


def neighbours(
    read: Read[Any], found: list[Found], at: CursorPosition, end: Item | None
) -> tuple[CursorPosition | None, CursorPosition | None]:
    """The positions of the next and the previous page; None if there is none."""
    far = None if end is None else CursorPosition(at.is_back, end)
    near: CursorPosition | None = None
    if isinstance(read, Query) and (at.key is not None or at.is_back):
        # An empty page has the place where the query's own limits ended it, or the edge of the data.
        near = CursorPosition(not at.is_back, position(read, found[0][1]) if found else end)
    return (near, far) if at.is_back else (far, near)


# Cursors


def cursor_at(cursors: CursorCipher, read: Read[Any], at: CursorPosition) -> str:
    """The cursor of a position."""
    parts = None if at.key is None else packed(read, at.key)
    return cursors.write((at.is_back, parts), read.cursor_identity)


def position_of(cursors: CursorCipher, read: Read[Any], cursor: str | None) -> CursorPosition:
    """The position of a cursor, the start without one; raises `InvalidCursor` for a cursor of another read."""
    if cursor is None or cursor == "":
        return START
    try:
        is_back, parts = cursors.read(cursor, read.cursor_identity)
    except InvalidCursor:
        if all(schema.previous is None for schema in read.schemas):
            raise
        # Programs that declare the previous tags have them in the identity.
        before = replace(read, schemas=tuple(each.previous or each for each in read.schemas))
        is_back, parts = cursors.read(cursor, before.cursor_identity)
    return CursorPosition(is_back, None if parts is None else unpacked(read, parts))


def packed(read: Read[Any], key: Item) -> list[str]:
    """The parts of a position that the read itself does not fix.

    While keys have two forms, an additional part marks positions in the current form. It is unambiguous because no key
    is empty.
    """
    parts = [key[name][type_] for name, type_ in read.open_position]
    for schema in read.schemas:
        if schema.previous is not None:
            return [*parts, ""]
    return parts


def unpacked(read: Read[Any], parts: Sequence[str]) -> Item:
    """The position for these parts, even if they were packed when the keys had their previous form.

    Raises `InvalidCursor` for parts of another order.
    """
    if not has_two_forms(read):
        return _with_fixed(read, parts)
    open_parts = len(read.open_position)
    if len(parts) == open_parts + 1 and not parts[-1]:
        return _with_fixed(read, parts)  # made while `was` was declared
    kinds = queried_kinds(read)
    known = _with_fixed(read, parts) if len(parts) == open_parts else None
    is_current = known is not None and any(kind.is_current(known) for kind in kinds)
    changing = [kind for kind in kinds if kind.has_previous_form]
    for before, kind in zip(previous_queries(read), changing, strict=True):
        if len(parts) != len(before.open_position):
            continue
        earlier = _with_fixed(before, parts)
        if not kind.is_in_order and kind.was_position(earlier):
            known = None  # perhaps made before `was` was declared
        elif kind.is_in_order and not is_current:
            known = kind.position(earlier) or known
    if known is None:
        raise InvalidCursor(
            f"{read.name} had another order when the cursor was made; start without a cursor"
        )
    return known


def _with_fixed(read: Read[Any], parts: Sequence[str]) -> Item:
    """The position for these parts, and those that the read fixes."""
    values = {
        name: {type_: part} for (name, type_), part in zip(read.open_position, parts, strict=False)
    }
    return {**read.fixed_position, **values}
