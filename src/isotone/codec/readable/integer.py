"""Whole numbers of either sign, between declared bounds.

    Integer(-99_999, 99_999)       157 is 000157     -157 is -99842
    … .descending()                157 is -99842     -157 is 000157

The first character is the sign. A descending number is written as its negative would be.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from isotone.codec.readable.digits import enclosed, is_digits, malformed, signed, unsigned, whole
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError


@dataclass(frozen=True, slots=True)
class Integer(Directed):
    """An int between two bounds, both of them included.

    >>> Integer(-99_999, 99_999).encode(-157), Integer(-99_999, 99_999).encode(157)
    ('-99842', '000157')
    """

    minimum: int
    maximum: int
    width: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if whole(self.minimum) >= whole(self.maximum):
            raise UsageError(
                f"an Integer needs a minimum below its maximum, not {self.minimum} and "
                f"{self.maximum}"
            )
        widest = max(abs(self.minimum), abs(self.maximum))
        object.__setattr__(self, "width", 1 + len(str(widest)))

    def encode(self, value: int) -> str:
        number = value if type(value) is int else whole(value)
        if not self.minimum <= number <= self.maximum:
            raise OutOfRange(
                f"{number} does not fit: this component of a key was declared for "
                f"{self.minimum} to {self.maximum}; declare wider bounds, and widen the keys "
                "that exist"
            )
        if not self.ascending:
            number = -number
        return signed(str(abs(number)).zfill(self.width - 1), number < 0)

    def decode(self, text: str) -> int:
        digits, negative = unsigned(text)
        if is_digits(digits, self.width - 1):
            number = -int(digits) if negative == self.ascending else int(digits)
            if self.minimum <= number <= self.maximum and self.encode(number) == text:
                return number
        raise malformed(
            text, f"a sign and {self.width - 1} digits from {self.minimum} to {self.maximum}"
        )

    def before(self, value: int) -> int | None:
        return value - 1 if value > self.minimum else None

    def after(self, value: int) -> int | None:
        return value + 1 if value < self.maximum else None

    def around(self, value: int) -> tuple[int | None, int | None]:
        return enclosed(whole(value), self.minimum, self.maximum)

    def specimens(self) -> tuple[str, ...]:
        middle = (self.minimum + self.maximum) // 2
        nearest = max(self.minimum, min(self.maximum, 0))
        return tuple(map(self.encode, (self.minimum, middle, nearest, self.maximum)))

    def share(self, value: int) -> float:
        """How much of the bound on its side of zero a value has used up."""
        bound = self.maximum if value > 0 else self.minimum
        return max(0.0, value / bound) if bound else 0.0
