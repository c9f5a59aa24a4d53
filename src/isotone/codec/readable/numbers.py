"""Numbers inside a key, padded to the digits of a declared maximum so that they sort (`OutOfRange` above), or plain.

    Natural(99_999)                        157 is 00157         descending 99842
    Integer(-99_999, 99_999)               157 is 000157        -157 is -99842
    FixedPoint(99_999, 2)                  12.5 is 00012.50
    FixedPoint(99_999, 2, signed=True)     12.5 is 000012.50    -12.5 is -99987.49
    Float()                                1.0 is bff0000000000000
    Unpadded()                             157 is 157, which does not sort
    ordered_number(Decimal("12.5"))        12801964

A signed number begins with `0`, or with `-` before the complement of its magnitude: `-` sorts below the
digits, and a greater magnitude has the smaller complement. A descending signed number is written as its
negative.

`ordered_number` is for keys that a program builds itself, from numbers without a declared width, such as scores. It
writes DynamoDB's whole range exactly, in the form of the engine's own keys (docs/design/format.md), in hexadecimal. No
such text is a prefix of another, so any text may follow.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation
from typing import Any, ClassVar, Final, Never, TypeVar

from isotone.codec.key_bytes import decode_number, encode_number
from isotone.codec.readable.digits import complement, is_digits
from isotone.codec.readable.interface import Directed, malformed, wrong_type
from isotone.errors import MalformedKey, OutOfRange, UsageError
from isotone.values.number import canonical_decimal

V = TypeVar("V")

_DOUBLE: Final = struct.Struct(">d")
_BITS: Final = struct.Struct(">Q")
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_HEX: Final = frozenset("0123456789abcdef")
_DIGITS: Final = "0123456789"
_WHOLE: Final = re.compile("0|-?[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Natural(Directed):
    """An int from 0 to a maximum, zero-padded to the digits of the maximum.

    >>> Natural(99_999).encode(157), Natural(99_999).descending().encode(157)
    ('00157', '99842')
    """

    maximum: int
    width: int = field(init=False, repr=False, compare=False)
    shaped_by: ClassVar[tuple[str, ...]] = ("width",)

    def __post_init__(self) -> None:
        if whole(self.maximum) < 1:
            raise UsageError(f"the maximum of a Natural must be 1 or more, not {self.maximum}")
        object.__setattr__(self, "width", len(str(self.maximum)))

    def encode(self, value: int) -> str:
        number = value if type(value) is int else whole(value)
        if not 0 <= number <= self.maximum:
            raise self._out_of_range(number)
        text = str(number).zfill(self.width)
        return text if self.ascending else complement(text)

    def _out_of_range(self, number: int) -> OutOfRange:
        if number < 0:
            return OutOfRange(
                f"{number} does not fit: this part of a key holds 0 to {self.maximum}; declare a minimum: field(min=…)"
            )
        return OutOfRange(
            f"{number} does not fit: this part of a key holds at most {self.maximum}; declare a larger maximum, "
            "and widen the existing keys"
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

    def nearest(self, value: int) -> tuple[int | None, int | None]:
        return _clamped(whole(value), 0, self.maximum)

    def samples(self) -> tuple[str, ...]:
        return self.encode(0), self.encode(self.maximum // 2), self.encode(self.maximum)

    def share(self, value: int) -> float:
        """The fraction of the maximum that a value has reached.

        >>> Natural(99_999).share(33_333)
        0.3333333333333333
        """
        return value / self.maximum


@dataclass(frozen=True, slots=True)
class Integer(Directed):
    """An int between two bounds, both included.

    >>> Integer(-99_999, 99_999).encode(-157), Integer(-99_999, 99_999).encode(157)
    ('-99842', '000157')
    """

    minimum: int
    maximum: int
    width: int = field(init=False, repr=False, compare=False)
    shaped_by: ClassVar[tuple[str, ...]] = ("width",)

    def __post_init__(self) -> None:
        if whole(self.minimum) >= whole(self.maximum):
            raise UsageError(
                f"the minimum of an Integer must be below its maximum, not {self.minimum} and "
                f"{self.maximum}"
            )
        widest = max(abs(self.minimum), abs(self.maximum))
        object.__setattr__(self, "width", 1 + len(str(widest)))

    def encode(self, value: int) -> str:
        number = value if type(value) is int else whole(value)
        if not self.minimum <= number <= self.maximum:
            raise OutOfRange(
                f"{number} does not fit: this part of a key holds {self.minimum} to {self.maximum}; declare wider "
                "bounds, and widen the existing keys"
            )
        if not self.ascending:
            number = -number
        return _signed(str(abs(number)).zfill(self.width - 1), number < 0)

    def decode(self, text: str) -> int:
        digits, negative = _unsigned(text)
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

    def nearest(self, value: int) -> tuple[int | None, int | None]:
        return _clamped(whole(value), self.minimum, self.maximum)

    def samples(self) -> tuple[str, ...]:
        middle = (self.minimum + self.maximum) // 2
        nearest = max(self.minimum, min(self.maximum, 0))
        return tuple(map(self.encode, (self.minimum, middle, nearest, self.maximum)))

    def share(self, value: int) -> float:
        """The fraction of the maximum that a value has reached; 0 of a negative one."""
        return max(0, value) / self.maximum if self.maximum > 0 else 0.0


@dataclass(frozen=True, slots=True)
class FixedPoint(Directed):
    """A Decimal (or int) from 0, or from its negative, to a maximum, with a number of decimal places.

    Values are exact: one with more places than the scale is refused.

    >>> FixedPoint(99_999, 2).encode(Decimal("12.5"))
    '00012.50'
    """

    maximum: int | Decimal
    scale: int
    signed: bool = False
    width: int = field(init=False, repr=False, compare=False)
    shaped_by: ClassVar[tuple[str, ...]] = ("width", "scale", "signed")
    _lowest: Decimal = field(init=False, repr=False, compare=False)
    _step: Decimal = field(init=False, repr=False, compare=False)
    _exact: Context = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if whole(self.scale) < 0:
            raise UsageError(f"the scale of a FixedPoint must be 0 or more, not {self.scale}")
        limit = Decimal(self.maximum) if isinstance(self.maximum, Decimal | int) else Decimal(0)
        if not (limit.is_finite() and limit > 0):
            raise UsageError(
                f"the maximum of a FixedPoint must be a Decimal or int above 0, not {self.maximum!r}"
            )
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
            return _signed(text, negative if self.ascending else not negative and number != 0)
        return text if self.ascending else complement(text)

    def _checked(self, number: Decimal) -> str:
        if not (number.is_finite() and self._lowest <= number <= self.maximum):
            raise OutOfRange(
                f"{number} does not fit: this part of a key holds {self._lowest} to {self.maximum}; "
                f"declare a larger maximum{'' if self.signed else ' or a sign'}, "
                "and widen the existing keys"
            )
        return self._plain(number)

    def _plain(self, number: Decimal) -> str:
        """The magnitude with exactly as many decimal places as the scale."""
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
            digits, minus = _unsigned(text)
            zero = not digits.strip("0.")
            return digits, minus if self.ascending else not minus and not zero
        return (text if self.ascending else complement(text)), False

    def before(self, value: Decimal | int) -> Decimal | None:
        below = self._exact.subtract(Decimal(value), self._step)
        return below if below >= self._lowest else None

    def after(self, value: Decimal | int) -> Decimal | None:
        above = self._exact.add(Decimal(value), self._step)
        return above if above <= self.maximum else None

    def nearest(self, value: Decimal | int) -> tuple[Decimal | None, Decimal | None]:
        number = _decimal(value)
        if not number.is_finite():
            self._checked(number)
        below, above = _clamped(number, self._lowest, Decimal(self.maximum))
        return (
            None if below is None else self._rounded(below, ROUND_FLOOR),
            None if above is None else self._rounded(above, ROUND_CEILING),
        )

    def _rounded(self, number: Decimal, direction: str) -> Decimal:
        rounding = Context(prec=self._exact.prec, rounding=direction, traps=[InvalidOperation])
        return number.quantize(self._step, context=rounding)

    def samples(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (self._lowest, Decimal(0), Decimal(self.maximum))))

    def share(self, value: Decimal | int) -> float:
        """The fraction of the maximum that the magnitude of a value has reached."""
        return float(abs(Decimal(value)) / Decimal(self.maximum))


@dataclass(frozen=True, slots=True)
class Float(Directed):
    """A float, including the infinities, as sixteen hexadecimal digits.

    The bits of a positive double sort as it does once the sign bit is set, those of a negative double once
    all of them are inverted. -0.0 is written as 0.0, and NaN is refused.

    >>> Float().encode(1.0), Float().encode(-1.0)
    ('bff0000000000000', '400fffffffffffff')
    """

    width: ClassVar[int] = 16

    def encode(self, value: float) -> str:
        number = _float(value) + 0.0  # -0.0 + 0.0 is 0.0
        if number != number:
            raise OutOfRange("NaN has no place in the order of numbers, so a key cannot hold it")
        (bits,) = _BITS.unpack(_DOUBLE.pack(number))
        bits ^= _ALL if bits & _SIGN else _SIGN
        return f"{bits if self.ascending else bits ^ _ALL:016x}"

    def decode(self, text: str) -> float:
        if len(text) == self.width and _HEX.issuperset(text):
            bits = int(text, 16) if self.ascending else int(text, 16) ^ _ALL
            bits ^= _SIGN if bits & _SIGN else _ALL
            number: float = _DOUBLE.unpack(_BITS.pack(bits))[0]
            if number == number and bits != _SIGN:  # not -0.0
                return number
        raise malformed(text, "a float in sixteen hexadecimal digits")

    def before(self, value: float) -> float | None:
        return math.nextafter(value, -math.inf) if value > -math.inf else None

    def after(self, value: float) -> float | None:
        return math.nextafter(value, math.inf) if value < math.inf else None

    def samples(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (-math.inf, -1.0, 0.0, 1.0, 1e-303, -1e-303, math.inf)))


@dataclass(frozen=True, slots=True)
class Unpadded(Directed):
    """An int without padding, negative only if `signed`, for existing keys.

    It does not sort (10 comes before 5), so a query can only select it by equality.

    >>> Unpadded().encode(157), Unpadded(signed=True).encode(-5)
    ('157', '-5')
    """

    signed: bool = False

    width: ClassVar[None] = None
    shaped_by: ClassVar[tuple[str, ...]] = ("signed",)
    sorts: ClassVar[bool] = False

    @property
    def alphabet(self) -> str:
        return _DIGITS + "-" if self.signed else _DIGITS

    @property
    def least_continuation(self) -> str:
        return "0"

    def descending(self) -> Never:
        raise UsageError(
            "a number that is not padded has no order to reverse: leave desc(…) out, or declare the "
            "maximum of the number and leave raw(…) out"
        )

    def encode(self, value: int) -> str:
        number = value if type(value) is int else whole(value)
        if number < 0 and not self.signed:
            raise OutOfRange(
                f"{number} does not fit: this part of a key holds numbers from 0; declare a minimum: field(min=…)"
            )
        return str(number)

    def decode(self, text: str) -> int:
        if not _WHOLE.fullmatch(text) or (text[0] == "-" and not self.signed):
            raise malformed(text, "a number without zeros before it")
        return int(text)

    def before(self, value: int) -> None:
        return None

    def after(self, value: int) -> None:
        return None

    def nearest(self, value: int) -> tuple[int | None, int | None]:
        number = whole(value)
        return (None, 0) if number < 0 and not self.signed else (number, number)

    def samples(self) -> tuple[str, ...]:
        return ("0", "7", "10", "55", "123", *(("-1",) if self.signed else ()))


# Values


def whole(value: Any) -> int:
    """The value, which must be an int. Raises `UsageError` for anything else, including bool."""
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    raise wrong_type(value, "int")


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    raise wrong_type(value, "Decimal")


def _float(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if number == value:
            return number
        raise OutOfRange(
            f"{value} is not exact as a float: declare the field as int, with a maximum"
        )
    raise wrong_type(value, "float")


def _signed(digits: str, negative: bool) -> str:
    """Padded digits with a sign, so that they sort."""
    return "-" + complement(digits) if negative else "0" + digits


def _unsigned(text: str) -> tuple[str, bool]:
    """The padded digits of a text that `_signed` returned, and whether it is negative."""
    return (complement(text[1:]), True) if text[:1] == "-" else (text[1:], False)


def _clamped(value: V, low: V, high: V) -> tuple[V | None, V | None]:
    """The value moved into a range from above and from below, as `nearest` returns it."""
    number: Any = value  # any ordered type
    return (
        None if number < low else min(number, high),
        None if number > high else max(number, low),
    )


# Any number


def ordered_number(number: Decimal | int) -> str:
    """The number as text that sorts by value; raises `ValidationException` beyond DynamoDB's range.

    >>> ordered_number(Decimal("-1234.5")) < ordered_number(5) < ordered_number(10)
    True
    """
    return encode_number(canonical_decimal(number)).hex()


def number_of(text: str) -> Decimal:
    """The number in a text from `ordered_number`; raises `MalformedKey` for any other text.

    >>> number_of(ordered_number(Decimal("1234.5")))
    Decimal('1234.5')
    """
    try:
        return Decimal(decode_number(bytes.fromhex(text)))
    except (MalformedKey, ValueError):
        raise MalformedKey(f"{text!r} is not a number as ordered_number writes it") from None
