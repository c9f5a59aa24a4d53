"""What could stand where in the keys of a template, character by character.

A shape is a sequence of steps: each is one character of some, or any number of them. It admits all that a
template writes, and more; so templates whose shapes have nothing in common never write the same key.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import Any, Final

from isotone.codec.readable.interface import Codec
from isotone.codec.readable.text import RawText

_DIGITS: Final = frozenset(digits)
_LETTERS: Final = frozenset(ascii_letters)


@dataclass(frozen=True, slots=True)
class Step:
    """One character, or any number where it `repeats`: of those named, or of all others."""

    characters: frozenset[str]
    others: bool = False
    repeats: bool = False

    def admits(self, character: str) -> bool:
        """Whether the character can stand here."""
        return (character in self.characters) != self.others


Shape = Sequence[Step]


def of_template(literals: Sequence[str], codecs: Sequence[Codec[Any]]) -> Shape:
    """The shape of whole keys."""
    steps = [Step(frozenset(each)) for each in literals[0]]
    for codec, literal in zip(codecs, literals[1:], strict=True):
        steps += of_codec(codec)
        steps += [Step(frozenset(each)) for each in literal]
    return steps


def of_codec(codec: Codec[Any]) -> Shape:
    """The shape of one component."""
    if codec.width is not None:
        return _columns(codec.specimens())
    if codec.alphabet is not None:
        return [Step(frozenset(codec.alphabet), repeats=True)]
    below = frozenset(map(chr, range(ord(codec.goes_on))))
    until = codec.until if isinstance(codec, RawText) else ""
    return [Step(below | {until} if len(until) == 1 else below, others=True, repeats=True)]


def _columns(specimens: Sequence[str]) -> Shape:
    """What all texts of one width have in common: punctuation in its places, and whether there are letters."""
    columns = [frozenset(column) for column in zip(*specimens, strict=True)]
    varied = frozenset[str]().union(*(column for column in columns if len(column) > 1))
    some = _DIGITS | _LETTERS if varied & _LETTERS else _DIGITS
    return [
        Step(column if len(column) == 1 and not column & _DIGITS else column | some)
        for column in columns
    ]


def common_text(left: Shape, right: Shape) -> str | None:
    """The shortest text of both shapes; None where there is none. O(steps of both, multiplied)."""
    seen = {(0, 0)}
    waiting = deque([(0, 0, "")])
    while waiting:
        ours, theirs, text = waiting.popleft()
        if ours == len(left) and theirs == len(right):
            return text
        for one, other, added in _onwards(left, right, ours, theirs):
            if (one, other) not in seen:
                seen.add((one, other))
                waiting.append((one, other, text + added))
    return None


def _onwards(left: Shape, right: Shape, ours: int, theirs: int) -> Iterator[tuple[int, int, str]]:
    """Where one can be after one character more, or after as many repetitions as there were."""
    one = left[ours] if ours < len(left) else None
    other = right[theirs] if theirs < len(right) else None
    if one is not None and one.repeats:
        yield ours + 1, theirs, ""
    if other is not None and other.repeats:
        yield ours, theirs + 1, ""
    if one is None or other is None:
        return
    character = _common(one, other)
    if character is not None:
        yield ours + (not one.repeats), theirs + (not other.repeats), character


def _common(one: Step, other: Step) -> str | None:
    """A character that can stand in both."""
    if one.others and other.others:
        named = one.characters | other.characters
        return next(each for each in map(chr, range(ord("x"), 0x10FFFF)) if each not in named)
    if one.others:
        one, other = other, one
    found = sorted(filter(other.admits, one.characters))
    return found[0] if found else None
