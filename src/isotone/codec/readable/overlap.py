"""Whether two templates could write one and the same key.

Texts between separators hold none, so two keys can only be equal piece by piece. A literal meets a codec
where the codec could have written it; two codecs meet where one could have written a specimen of the
other. A raw text, which takes the rest of its key, meets whatever the other has there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from isotone.codec.readable.interface import SEPARATOR, Codec
from isotone.errors import MalformedKey

Piece = str | Codec[Any]


def common_key(left: Sequence[Piece], right: Sequence[Piece]) -> str | None:
    """A key that both sequences of pieces could have written; None where there is none."""
    shared: list[str] = []
    for place in range(max(len(left), len(right))):
        ours, theirs = left[place:], right[place:]
        if not ours or not theirs:
            return None
        if _takes_the_rest(ours[0]):
            return _joined(shared, _rest(ours[0], theirs))
        if _takes_the_rest(theirs[0]):
            return _joined(shared, _rest(theirs[0], ours))
        text = _common(ours[0], theirs[0])
        if text is None:
            return None
        shared.append(text)
    return SEPARATOR.join(shared)


def _takes_the_rest(piece: Piece) -> bool:
    return not isinstance(piece, str) and piece.takes_the_rest


def _joined(shared: list[str], rest: str | None) -> str | None:
    return None if rest is None else SEPARATOR.join([*shared, rest])


def _rest(raw: Piece, other: Sequence[Piece]) -> str | None:
    """A rest that a raw text could hold, and `other` could be."""
    texts = []
    for piece in other:
        text = _common(raw, piece)
        if text is None:
            return None
        texts.append(text)
    return SEPARATOR.join(texts)


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
