"""Whole numbers from 0 to a declared maximum, zero-padded to the digits of it.

Natural(99_999)                157 is 00157
Natural(99_999).descending()   157 is 99842, the difference from 99999
"""

from __future__ import annotations

from dataclasses import dataclass, field

from isotone.codec.readable.digits import complement, enclosed, is_digits, malformed, whole
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError


@dataclass(frozen=True, slots=True)
class Natural(Directed):
    """An int that is not negative.

    >>> Natural(99_999).encode(157), Natural(99_999).descending().encode(157)
    ('00157', '99842')
    """

    maximum: int
    width: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if whole(self.maximum) < 1:
            raise UsageError(f"the maximum of a Natural is 1 or more, not {self.maximum}")
        object.__setattr__(self, "width", len(str(self.maximum)))

    def encode(self, value: int) -> str:
        number = value if type(value) is int else whole(value)
        if not 0 <= number <= self.maximum:
            raise self._refusal(number)
        text = str(number).zfill(self.width)
        return text if self.ascending else complement(text)

    def _refusal(self, number: int) -> OutOfRange:
        if number < 0:
            return OutOfRange(
                f"{number} is negative, and this component of a key holds 0 to {self.maximum}: "
                "declare a minimum"
            )
        return OutOfRange(
            f"{number} does not fit: this component of a key was declared for at most "
            f"{self.maximum}; declare a larger maximum, and widen the keys that exist"
        )

    def decode(self, text: str) -> int:
        number = int(text) if is_digits(text, self.width) else -1
        if number >= 0 and not self.ascending:
            number = 10**self.width - 1 - number
        if not 0 <= number <= self.maximum:
            raise malformed(text, f"a number of {self.width} digits up to {self.maximum}")
        return number

    def before(self, value: int) -> int | None:
        return value - 1 if value > 0 else None

    def after(self, value: int) -> int | None:
        return value + 1 if value < self.maximum else None

    def around(self, value: int) -> tuple[int | None, int | None]:
        return enclosed(whole(value), 0, self.maximum)

    def specimens(self) -> tuple[str, ...]:
        return self.encode(0), self.encode(self.maximum // 2), self.encode(self.maximum)

    def share(self, value: int) -> float:
        """How much of the maximum a value has used up.

        >>> Natural(99_999).share(33_333)
        0.3333333333333333
        """
        return value / self.maximum
