"""Decodes large JSON (imports, big batches) in pieces, so that other threads can take the GIL between them.

One call of msgspec takes 15 milliseconds for a list of 60,000 numbers, and nothing can interrupt it. Here no call
decodes more than a small piece. Freeing so many values at once takes another 5 milliseconds, so `effort.keep` holds
each piece for a while, and the pieces are freed one by one.

A list or an object is cut at a comma followed by the text that its first element begins with. If such a comma is inside
an element, the piece before it is not valid JSON, because a string or a bracket stays open. So a piece that decodes was
cut correctly. If it does not decode, msgspec cuts the rest: it finds where elements end without decoding them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from isotone import limits
from isotone.effort import keep

PIECE: Final = 16 * limits.KB
"""A piece has at most this many bytes, which take less than a millisecond to decode."""

_MOST_LEVELS: Final = 16  # nested levels that are cut; each level is searched from end to end
_BLANKS: Final = b" \t\n\r"
_whole: Final = msgspec.json.Decoder().decode
_elements: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def decode_in_pieces(body: bytes) -> Any:
    """The value of a JSON text. Returns and raises the same as msgspec. O(size)."""
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
        # One `dict` call on both lists would take milliseconds.
        found.update({name: value for name, value in zip(members, values, strict=True)})  # noqa: C416
    return found


def _list(body: bytes, levels: int) -> list[Any]:
    found: list[Any] = []
    place = _cut(body, found.extend)
    if place < len(body):
        found += _joined(_elements(b"[%b" % body[place:]), len(body) - place, levels)
    return found


def _cut(body: bytes, add: Callable[[Any], object]) -> int:
    """Pass the parts of a list or an object to `add`; returns the position after them."""
    opening, first, closing = body[:1], body[1:2], b"]" if body[0] == b"["[0] else b"}"
    place = 1
    while len(body) - place > PIECE:
        end = place + PIECE
        cut = max(body.rfind(b"," + first, place, end), body.rfind(b", " + first, place, end))
        try:
            piece = _piece(b"%b%b%b" % (opening, body[place:cut], closing)) if cut > place else None
        except msgspec.MsgspecError:
            return place
        if not piece:  # the comma has nothing before it
            return place
        add(piece)
        place = cut + 1
    add(_piece(opening + body[place:]))
    return len(body)


def _joined(values: list[msgspec.Raw], size: int, levels: int) -> list[Any]:
    """Decode values of this size in groups of about one piece."""
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
