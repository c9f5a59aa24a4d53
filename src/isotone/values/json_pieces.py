"""Decodes large JSON in pieces, between which other threads can have Python's lock.

One call of msgspec takes 15 milliseconds for a list of 60,000 numbers, and nothing interrupts it. Here no call decodes more
than a small piece. To free so many values at once takes a third of that again, so each piece is kept for a while
(`effort.keep`), and they are freed one after the other.

A list or an object is cut at a comma that is followed by what its first element begins with. Such a comma may be inside of an
element, but then the piece before it is no JSON: a string or a bracket is not closed. So a piece that can be decoded was cut
right. If it cannot, the rest is cut by msgspec itself, which finds the ends of elements without decoding them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.effort import keep

PIECE: Final = 16 * limits.KB
"""Bytes of JSON that are decoded in less than a millisecond."""

_MOST_LEVELS: Final = 16  # that are cut: each is searched for its ends from end to end
_BLANKS: Final = b" \t\n\r"
_whole: Final = msgspec.json.Decoder().decode
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_in_pieces(body: bytes) -> Any:
    """The value of a JSON text: the same that msgspec makes of it, or the same kind of error. O(size)."""
    return _value(body.strip(_BLANKS), _MOST_LEVELS)


def _value(body: bytes, levels: int) -> Any:
    if len(body) > PIECE and levels:
        if body[0] == b"{"[0]:
            return _object(body, levels - 1)
        if body[0] == b"["[0]:
            return _list(body, levels - 1)
    return _piece(body)


def _piece(body: bytes) -> Any:
    value = _whole(body)
    keep(value)
    return value


def _object(body: bytes, levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    place = _cut(body, found.update)
    if place < len(body):
        members = _members(b"{%b" % body[place:])
        values = _joined(list(members.values()), len(body) - place, levels)
        # One call of `dict` for both would take milliseconds.
        found.update({name: value for name, value in zip(members, values, strict=True)})  # noqa: C416
    return found


def _list(body: bytes, levels: int) -> list[Any]:
    found: list[Any] = []
    place = _cut(body, found.extend)
    if place < len(body):
        found += _joined(_elements(b"[%b" % body[place:]), len(body) - place, levels)
    return found


def _cut(body: bytes, add: Callable[[Any], object]) -> int:
    """Add the lists or the objects that a list or an object can be cut into; returns the place after them."""
    opening, first, closing = body[:1], body[1:2], b"]" if body[0] == b"["[0] else b"}"
    place = 1
    while len(body) - place > PIECE:
        end = place + PIECE
        cut = max(body.rfind(b"," + first, place, end), body.rfind(b", " + first, place, end))
        try:
            piece = _piece(b"%b%b%b" % (opening, body[place:cut], closing)) if cut > place else None
        except msgspec.MsgspecError:
            return place
        if not piece:  # there is nothing before a comma
            return place
        add(piece)
        place = cut + 1
    add(_piece(opening + body[place:]))
    return len(body)


def _joined(values: list[msgspec.Raw], size: int, levels: int) -> list[Any]:
    """Values of this size together, decoded in groups of about a piece."""
    found: list[Any] = []
    count = max(1, len(values) * PIECE // size)
    for start in range(0, len(values), count):
        group = values[start : start + count]
        body = b"[%b]" % b",".join(group)
        if len(body) <= 2 * PIECE:
            found += _piece(body)
        else:
            found += [_value(bytes(value), levels) for value in group]
    return found
