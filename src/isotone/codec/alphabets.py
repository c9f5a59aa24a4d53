"""Numbers in alphabets whose characters are in the order of their digits, at a fixed width.

A text of one width then sorts as the number does. KSUIDs are such numbers in base 62, ULIDs in
Crockford's base 32, UUIDs in base 16.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The digits of a base, least first."""

    characters: str
    width: int
    bits: int
    greatest: str = field(init=False, repr=False, compare=False)
    _values: dict[str, int] = field(init=False, repr=False, compare=False)
    _reversal: dict[int, int] = field(init=False, repr=False, compare=False)
    _next: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digits = self.characters
        values = {character: value for value, character in enumerate(digits)}
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_reversal", str.maketrans(digits, digits[::-1]))
        object.__setattr__(self, "_next", dict(pairwise(digits)))
        object.__setattr__(self, "greatest", self.text((1 << self.bits) - 1))

    def text(self, number: int) -> str:
        """The number in this alphabet, padded to the width."""
        base, digits = len(self.characters), []
        for _ in range(self.width):
            number, digit = divmod(number, base)
            digits.append(self.characters[digit])
        return "".join(reversed(digits))

    def holds(self, text: str) -> bool:
        """Whether the text is a number of the width and of at most so many bits."""
        # At one width, texts are in the order of their numbers.
        return (
            len(text) == self.width and self._values.keys() >= set(text) and text <= self.greatest
        )

    def number(self, text: str) -> int:
        """The number of a text that it `holds`."""
        number, base = 0, len(self.characters)
        for character in text:
            number = number * base + self._values[character]
        return number

    def moved(self, text: str, by: int) -> str | None:
        """The text of a number that is greater by so much; None beyond zero and the greatest."""
        number = self.number(text) + by
        return None if number < 0 or number >> self.bits else self.text(number)

    def reversed(self, text: str) -> str:
        """The text with each digit replaced by its difference from the greatest; twice is nothing."""
        return text.translate(self._reversal)

    def successor(self, text: str) -> str | None:
        """The text of the next number, where it differs in the last digit alone."""
        digit = self._next.get(text[-1])
        return None if digit is None else text[:-1] + digit


_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

BASE62 = Alphabet(_DIGITS + _UPPER + _UPPER.lower(), width=27, bits=160)
CROCKFORD = Alphabet("0123456789ABCDEFGHJKMNPQRSTVWXYZ", width=26, bits=128)
BASE16 = Alphabet("0123456789abcdef", width=32, bits=128)
