"""Random choices that are the same on every machine and in every version of Python.

`random.Random` promises that for `random()` alone. The mixing is splitmix64, which can begin again at any number: so the
thousandth item of a sample has its values without those before it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar

T = TypeVar("T")

_MASK: Final = (1 << 64) - 1
_STEP: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB
_ODD: Final = 0x9E3779B1  # an odd factor permutes the numbers below a power of two


class Chance(random.Random):
    """Random choices that follow from some words, and from the number given to `restart`."""

    def __init__(self, *words: object) -> None:
        super().__init__(0)
        digest = blake2b("\0".join(map(str, words)).encode(), digest_size=8).digest()
        self._base = self._state = int.from_bytes(digest)

    def restart(self, number: int) -> Chance:
        """Begin the choices of a number."""
        self._state = (self._base ^ number * _FIRST) & _MASK
        return self

    def bits(self) -> int:
        """64 random bits."""
        self._state = (self._state + _STEP) & _MASK
        return mixed(self._state)

    def random(self) -> float:
        """A number from 0 to below 1."""
        return (self.bits() >> 11) * 2**-53

    def below(self, end: int) -> int:
        """A whole number from 0 to below `end`."""
        return self.bits() * end >> 64

    def between(self, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return low + (self.bits() * (high - low + 1) >> 64)

    def pick(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.bits() * len(values) >> 64]

    def getrandbits(self, k: int, /) -> int:
        """Random bits, for the methods that `random.Random` builds on them."""
        found = 0
        for at in range(0, k, 64):
            found |= self.bits() << at
        return found & (1 << k) - 1

    def seed(self, *_: Any) -> None:
        """Does nothing: the words are the seed."""


def mixed(number: int) -> int:
    """Another number of 64 bits for each number of 64 bits, as if it were random."""
    number = (number ^ number >> 30) * _FIRST & _MASK
    number = (number ^ number >> 27) * _SECOND & _MASK
    return number ^ number >> 31


def scattered(number: int) -> int:
    """Another number of 32 bits for each number of 32 bits: neighbours are far apart."""
    return number * _ODD & 0xFFFF_FFFF


def spread(start: int, number: int, end: int) -> int:
    """Whole numbers from 0 to below `end`, one for each number, such that every few in a row are spread evenly.

    Steps of the golden section never come near the ones before.
    """
    return (start + number * _STEP & _MASK) * end >> 64
