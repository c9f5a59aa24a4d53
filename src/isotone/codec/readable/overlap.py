"""Whether two templates could write one and the same key.

Where both have one separator, and no piece between separators holds it, two keys can only be equal piece
by piece. A literal meets a codec where the codec could have written it; two codecs meet where one could
have written a specimen of the other. A raw text, which takes the rest of its key, meets whatever the other
has there. Other templates are compared character by character, by what could stand there (`shapes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from isotone.codec.readable import shapes
from isotone.codec.readable.interface import SEPARATOR, Codec
from isotone.codec.readable.text import RawText
from isotone.errors import MalformedKey

if TYPE_CHECKING:
    from isotone.codec.readable.composite import Template

Piece = str | Codec[Any]


def common_key(left: Template, right: Template) -> tuple[str, bool] | None:
    """A key that both could have written, and whether that is certain; None where there is none."""
    separator = left.separator
    if not left.codecs:
        key = _if_read(right, left.literals[0])
    elif not right.codecs:
        key = _if_read(left, right.literals[0])
    elif (
        separator and separator == right.separator and _is_in_pieces(left) and _is_in_pieces(right)
    ):
        key = _of_pieces(left.pieces, right.pieces, separator)
    else:
        return _of_shapes(left, right)
    return None if key is None else (key, True)


def _of_shapes(left: Template, right: Template) -> tuple[str, bool] | None:
    key = shapes.common_text(
        shapes.of_template(left.literals, left.codecs),
        shapes.of_template(right.literals, right.codecs),
    )
    return None if key is None else (key, False)


def _if_read(template: Template, key: str) -> str | None:
    return key if template.reads(key) else None


def _is_in_pieces(template: Template) -> bool:
    if template.separator == SEPARATOR:
        return True  # which no component holds, but a raw text that takes the rest
    return not any(_could_hold(codec, template.separator) for codec in template.codecs)


@lru_cache(maxsize=1024)
def _could_hold(codec: Codec[Any], separator: str) -> bool:
    if codec.takes_the_rest or (isinstance(codec, RawText) and codec.until == separator):
        return False
    return all(any(step.admits(each) for step in shapes.of_codec(codec)) for each in separator)


def _of_pieces(left: Sequence[Piece], right: Sequence[Piece], separator: str) -> str | None:
    shared: list[str] = []
    for place in range(max(len(left), len(right))):
        ours, theirs = left[place:], right[place:]
        if not ours or not theirs:
            return None
        if _takes_the_rest(ours[0]):
            return _joined(shared, _rest(ours[0], theirs), separator)
        if _takes_the_rest(theirs[0]):
            return _joined(shared, _rest(theirs[0], ours), separator)
        text = _common(ours[0], theirs[0])
        if text is None:
            return None
        shared.append(text)
    return separator.join(shared)


def _takes_the_rest(piece: Piece) -> bool:
    return not isinstance(piece, str) and piece.takes_the_rest


def _joined(shared: list[str], rest: list[str] | None, separator: str) -> str | None:
    return None if rest is None else separator.join([*shared, *rest])


def _rest(raw: Piece, other: Sequence[Piece]) -> list[str] | None:
    """The pieces of a rest that a raw text could hold, and `other` could be."""
    texts = []
    for piece in other:
        text = _common(raw, piece)
        if text is None:
            return None
        texts.append(text)
    return texts


def _common(left: Piece, right: Piece) -> str | None:
    for text in _texts(left):
        if _could_write(right, text):
            return text
    for text in _texts(right):
        if _could_write(left, text):
            return text
    return None


def _texts(piece: Piece) -> Iterator[str]:
    return iter((piece,)) if isinstance(piece, str) else iter(piece.specimens())


def _could_write(piece: Piece, text: str) -> bool:
    if isinstance(piece, str):
        return piece == text
    try:
        piece.decode(text)
    except MalformedKey:
        return False
    return True
