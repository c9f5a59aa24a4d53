"""Whether two templates could write the same key: then a table may not have entities with both.

If both have one separator, and no piece between separators contains it, two keys can only be equal piece by
piece. A literal matches a codec that could have written it. Two codecs match if one could have written a
sample of the other. A raw text at the end of a key matches whatever the other template has there.

Other templates are compared character by character. The *shape* of a template is a sequence of steps, each of
which is one character of some set, or any number of them. It admits all keys of the template, and more. So
if two shapes have no text in common, their templates never write the same key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, Final

from isotone.codec.readable.interface import SEPARATOR, Codec
from isotone.codec.readable.texts import RawText
from isotone.errors import MalformedKey

if TYPE_CHECKING:
    from isotone.codec.readable.template import Template

Piece = str | Codec[Any]


def common_key(left: Template, right: Template) -> tuple[str, bool] | None:
    """A key that both templates could write, and whether they certainly can; None if there is none."""
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
        key = _common_text(_shape(left), _shape(right))
        return None if key is None else (key, False)
    return None if key is None else (key, True)


def _if_read(template: Template, key: str) -> str | None:
    return key if template.reads(key) else None


def _is_in_pieces(template: Template) -> bool:
    if template.separator == SEPARATOR:
        return True  # no component contains the separator, except a raw text at the end
    return not any(_could_hold(codec, template.separator) for codec in template.codecs)


@lru_cache(maxsize=1024)
def _could_hold(codec: Codec[Any], separator: str) -> bool:
    if codec.open_ended or (isinstance(codec, RawText) and codec.until == separator):
        return False
    shape = _shape_of_codec(codec)
    return all(any(step.admits(character) for step in shape) for character in separator)


def _of_pieces(left: Sequence[Piece], right: Sequence[Piece], separator: str) -> str | None:
    texts = []
    for one, other in _pairs(left, right):
        text = None if one is None or other is None else _common(one, other)
        if text is None:
            return None
        texts.append(text)
    return separator.join(texts)


def _pairs(
    left: Sequence[Piece], right: Sequence[Piece]
) -> Iterator[tuple[Piece | None, Piece | None]]:
    """The pieces in the same position; a raw text at the end matches all remaining ones."""
    for place, (one, other) in enumerate(zip_longest(left, right)):
        if one is None or other is None:
            yield one, other
        elif _is_open_ended(one):
            yield from ((one, piece) for piece in right[place:])
            return
        elif _is_open_ended(other):
            yield from ((piece, other) for piece in left[place:])
            return
        else:
            yield one, other


def _is_open_ended(piece: Piece) -> bool:
    return not isinstance(piece, str) and piece.open_ended


def _common(left: Piece, right: Piece) -> str | None:
    for text in _texts(left):
        if _could_write(right, text):
            return text
    for text in _texts(right):
        if _could_write(left, text):
            return text
    return None


def _texts(piece: Piece) -> Iterator[str]:
    return iter((piece,)) if isinstance(piece, str) else iter(piece.samples())


def _could_write(piece: Piece, text: str) -> bool:
    if isinstance(piece, str):
        return piece == text
    try:
        piece.decode(text)
    except MalformedKey:
        return False
    return True


# Shapes

_DIGITS: Final = frozenset(digits)
_LETTERS: Final = frozenset(ascii_letters)


@dataclass(frozen=True, slots=True)
class _Step:
    """One character, or any number of them if it `repeats`: from a set, or any character."""

    characters: frozenset[str]
    others: bool = False
    repeats: bool = False

    def admits(self, character: str) -> bool:
        """Whether the character is possible here."""
        return (character in self.characters) != self.others


Shape = Sequence[_Step]


def _shape(template: Template) -> Shape:
    steps = [_Step(frozenset(character)) for character in template.literals[0]]
    for codec, literal in zip(template.codecs, template.literals[1:], strict=True):
        steps += _shape_of_codec(codec)
        steps += [_Step(frozenset(character)) for character in literal]
    return steps


def _shape_of_codec(codec: Codec[Any]) -> Shape:
    if codec.width is not None:
        return _columns(codec.samples())
    if codec.alphabet is not None:
        return [_Step(frozenset(codec.alphabet), repeats=True)]
    below = frozenset(map(chr, range(ord(codec.least_continuation))))
    until = codec.until if isinstance(codec, RawText) else ""
    return [_Step(below | {until} if len(until) == 1 else below, others=True, repeats=True)]


def _columns(samples: Sequence[str]) -> Shape:
    """The common shape of texts of one width: the positions of punctuation, and whether there are letters."""
    columns = [frozenset(column) for column in zip(*samples, strict=True)]
    varied = frozenset[str]().union(*(column for column in columns if len(column) > 1))
    varying = _DIGITS | _LETTERS if varied & _LETTERS else _DIGITS
    return [
        _Step(column if len(column) == 1 and not column & _DIGITS else column | varying)
        for column in columns
    ]


def _common_text(left: Shape, right: Shape) -> str | None:
    """The shortest text of both shapes; None if there is none. O(product of both lengths)."""
    seen = {(0, 0)}
    queue = deque([(0, 0, "")])
    while queue:
        ours, theirs, text = queue.popleft()
        if ours == len(left) and theirs == len(right):
            return text
        for one, other, added in _moves(left, right, ours, theirs):
            if (one, other) not in seen:
                seen.add((one, other))
                queue.append((one, other, text + added))
    return None


def _moves(left: Shape, right: Shape, ours: int, theirs: int) -> Iterator[tuple[int, int, str]]:
    """The positions after one more character, or after a repetition has ended."""
    one = left[ours] if ours < len(left) else None
    other = right[theirs] if theirs < len(right) else None
    if one is not None and one.repeats:
        yield ours + 1, theirs, ""
    if other is not None and other.repeats:
        yield ours, theirs + 1, ""
    if one is None or other is None:
        return
    character = _common_character(one, other)
    if character is not None:
        yield ours + (not one.repeats), theirs + (not other.repeats), character


def _common_character(one: _Step, other: _Step) -> str | None:
    """A character that both steps admit."""
    if one.others and other.others:
        named = one.characters | other.characters
        return next(c for c in map(chr, range(ord("x"), 0x10FFFF)) if c not in named)
    if one.others:
        one, other = other, one
    return min(filter(other.admits, one.characters), default=None)
