"""IEEE double-precision numbers as sixteen hexadecimal digits that sort.

The bits of a positive double sort as it does once the sign bit is set; those of a negative one do
when all of them are turned round. -0.0 and 0.0 are one value and have one text; NaN has no place.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from isotone.codec.readable.digits import malformed
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError

_DOUBLE: Final = struct.Struct(">d")
_BITS: Final = struct.Struct(">Q")
_SIGN: Final = 1 << 63
_ALL: Final = (1 << 64) - 1
_HEX: Final = frozenset("0123456789abcdef")


@dataclass(frozen=True, slots=True)
class Float(Directed):
    """A float, the infinities included.

    >>> Float().encode(1.0), Float().encode(-1.0)
    ('bff0000000000000', '400fffffffffffff')
    """

    width: ClassVar[int] = 16

    def encode(self, value: float) -> str:
        number = _float(value) + 0.0  # -0.0 + 0.0 is 0.0
        if number != number:
            raise OutOfRange("NaN is neither before nor after any number, so no key can hold it")
        (bits,) = _BITS.unpack(_DOUBLE.pack(number))
        bits ^= _ALL if bits & _SIGN else _SIGN
        return f"{bits if self.ascending else bits ^ _ALL:016x}"

    def decode(self, text: str) -> float:
        if len(text) == self.width and _HEX.issuperset(text):
            bits = int(text, 16) if self.ascending else int(text, 16) ^ _ALL
            bits ^= _SIGN if bits & _SIGN else _ALL
            number: float = _DOUBLE.unpack(_BITS.pack(bits))[0]
            if number == number and bits != _SIGN:  # the bits of -0.0
                return number
        raise malformed(text, "a float in sixteen hexadecimal digits")

    def before(self, value: float) -> float | None:
        return math.nextafter(value, -math.inf) if value > -math.inf else None

    def after(self, value: float) -> float | None:
        return math.nextafter(value, math.inf) if value < math.inf else None

    def specimens(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (-math.inf, -1.0, 0.0, 1.0, 1e-303, -1e-303, math.inf)))


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
        raise OutOfRange(f"{value} is no float: declare the field as int, with a maximum")
    raise UsageError(
        f"{value!r} is a {type(value).__name__}, and this component of a key holds float"
    )
