"""Decimals with a declared maximum and a declared number of decimal places, exactly.

    FixedPoint(99_999, 2)                12.5 is 00012.50
    FixedPoint(99_999, 2, signed=True)   12.5 is 000012.50    -12.5 is -99987.49

Nothing is rounded: a value with more places than the scale is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation
from typing import Any

from isotone.codec.readable.digits import complement, enclosed, malformed, signed, unsigned, whole
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError


@dataclass(frozen=True, slots=True)
class FixedPoint(Directed):
    """A Decimal (or an int) from 0, or from its negative, to a maximum.

    >>> FixedPoint(99_999, 2).encode(Decimal("12.5"))
    '00012.50'
    """

    maximum: int | Decimal
    scale: int
    signed: bool = False
    width: int = field(init=False, repr=False, compare=False)
    _lowest: Decimal = field(init=False, repr=False, compare=False)
    _step: Decimal = field(init=False, repr=False, compare=False)
    _exact: Context = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if whole(self.scale) < 0:
            raise UsageError(f"the scale of a FixedPoint is 0 or more, not {self.scale}")
        limit = Decimal(self.maximum) if isinstance(self.maximum, Decimal | int) else Decimal(0)
        if not (limit.is_finite() and limit > 0):
            raise UsageError(f"{self.maximum!r} is not a Decimal or int above 0, as a maximum is")
        integral = len(str(int(limit)))
        digits = integral + self.scale
        context = Context(prec=digits + 2, traps=[Inexact, InvalidOperation])
        lowest = limit.copy_negate() if self.signed else Decimal(0)
        object.__setattr__(self, "_lowest", lowest)
        object.__setattr__(self, "_step", Decimal((0, (1,), -self.scale)))
        object.__setattr__(self, "_exact", context)
        object.__setattr__(self, "width", digits + (self.scale > 0) + self.signed)
        self._plain(limit)

    def encode(self, value: Decimal | int) -> str:
        number = value if type(value) is Decimal else _decimal(value)
        text, negative = self._checked(number).zfill(self.width - self.signed), number < 0
        if self.signed:
            return signed(text, negative if self.ascending else not negative and number != 0)
        return text if self.ascending else complement(text)

    def _checked(self, number: Decimal) -> str:
        if not (number.is_finite() and self._lowest <= number <= self.maximum):
            raise OutOfRange(
                f"{number} does not fit: this component of a key was declared for {self._lowest} to "
                f"{self.maximum}; declare a larger maximum{'' if self.signed else ' or a sign'}, "
                "and widen the keys that exist"
            )
        return self._plain(number)

    def _plain(self, number: Decimal) -> str:
        """The magnitude with as many places as the scale has."""
        try:
            return f"{number.copy_abs().quantize(self._step, context=self._exact):f}"
        except (Inexact, InvalidOperation):
            raise OutOfRange(
                f"{number} has more decimal places than the {self.scale} that were declared: "
                "round it, or declare a larger scale"
            ) from None

    def decode(self, text: str) -> Decimal:
        digits, negative = self._magnitude(text)
        if digits.isascii() and digits.replace(".", "", 1).isdigit():
            number = Decimal("-" + digits if negative else digits)
            try:
                if self.encode(number) == text:
                    return number
            except OutOfRange:
                pass
        raise malformed(
            text, f"a number of {self.width} characters up to {self.maximum}, {self.scale} decimal"
        )

    def _magnitude(self, text: str) -> tuple[str, bool]:
        if self.signed:
            digits, minus = unsigned(text)
            zero = not digits.strip("0.")
            return digits, minus if self.ascending else not minus and not zero
        return (text if self.ascending else complement(text)), False

    def before(self, value: Decimal | int) -> Decimal | None:
        below = self._exact.subtract(Decimal(value), self._step)
        return below if below >= self._lowest else None

    def after(self, value: Decimal | int) -> Decimal | None:
        above = self._exact.add(Decimal(value), self._step)
        return above if above <= self.maximum else None

    def around(self, value: Decimal | int) -> tuple[Decimal | None, Decimal | None]:
        number = _decimal(value)
        if not number.is_finite():
            self._checked(number)
        below, above = enclosed(number, self._lowest, Decimal(self.maximum))
        return (
            None if below is None else self._rounded(below, ROUND_FLOOR),
            None if above is None else self._rounded(above, ROUND_CEILING),
        )

    def _rounded(self, number: Decimal, direction: str) -> Decimal:
        rounding = Context(prec=self._exact.prec, rounding=direction, traps=[InvalidOperation])
        return number.quantize(self._step, context=rounding)

    def specimens(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (self._lowest, Decimal(0), Decimal(self.maximum))))

    def share(self, value: Decimal | int) -> float:
        """How much of the maximum the magnitude of a value has used up."""
        return float(abs(Decimal(value)) / Decimal(self.maximum))


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise UsageError(
        f"{value!r} is a {type(value).__name__}, and this component of a key holds Decimal"
    )
