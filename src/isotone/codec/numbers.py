"""The bodies of numbers: a byte for the magnitude, then the digits in base 100.

A positive number is  d₀.d₁d₂… × 100ᵉ  with every dᵢ from 0 to 99, and neither the first nor the last
of them 0. Its body is

    0x80 + e       from 0x3F (e = -65, 1E-130) to 0xBE (e = 62, 9.99…E+125)
    2 dᵢ + 1       for each digit but the last
    2 dₙ           for the last: even, so it ends the body

A number that ends where another goes on sorts before it, and so it must: the other is larger by what
follows. The body of a negative number is the bitwise complement of its positive counterpart's.
Zero has no body. No body begins another.
"""

from __future__ import annotations

from typing import Final

from isotone.errors import StorageCorrupt, ValidationException
from isotone.values.number import canonical_number

COMPLEMENT: Final = bytes(reversed(range(256)))

_UNITS: Final = 0x80  # the first byte of a number from 1 to 99
# A base-100 digit as `bytes.fromhex` reads two decimal digits: one in each half of a byte.
_PACKED: Final = bytes(16 * (digit // 10) + digit % 10 for digit in range(100))
_MORE_FOLLOW: Final = bytes.maketrans(_PACKED, bytes(range(1, 200, 2)))
_LAST: Final = {packed: bytes((2 * digit,)) for digit, packed in enumerate(_PACKED)}
_UNPACK: Final = bytes.maketrans(
    bytes(range(200)), bytes(packed for packed in _PACKED for _ in range(2))
)


def positive_body(text: str) -> bytes:
    """The body of a positive number in normal form."""
    whole, _, fraction = text.partition(".")
    if len(whole) % 2:
        whole = "0" + whole
    if len(fraction) % 2:
        fraction += "0"
    padded = bytes.fromhex(whole + fraction)
    digits = padded.lstrip(b"\x00")
    exponent = len(whole) // 2 - 1 - (len(padded) - len(digits))
    digits = digits.rstrip(b"\x00")
    first = bytes((_UNITS + exponent,))
    return first + digits[:-1].translate(_MORE_FOLLOW) + _LAST[digits[-1]]


def negative_body(text: str) -> bytes:
    """The body of a number in normal form that begins with a minus sign."""
    return positive_body(text[1:]).translate(COMPLEMENT)


def read_positive(data: bytes, start: int) -> tuple[str, int]:
    """The number whose body begins at `start`, in normal form, and where the body ends."""
    end = start + 1
    while end < len(data) and data[end] % 2:
        end += 1
    body = data[start : end + 1]
    text = _number_of(body)
    if text is None:
        raise StorageCorrupt(f"the key {data.hex()} has no number at byte {start}")
    return text, end + 1


def _number_of(body: bytes) -> str | None:
    """The number with exactly this body, or None where no number has it."""
    digits = body[1:].translate(_UNPACK).hex()
    exponent = 2 * (body[0] - _UNITS + 1) - len(digits) if digits else 0
    try:
        text = canonical_number(f"{digits}e{exponent}")
        return text if positive_body(text) == body else None
    except (ValidationException, IndexError):
        return None


def read_negative(data: bytes, start: int) -> tuple[str, int]:
    """As `read_positive`, for the body of a negative number."""
    text, length = read_positive(data[start:].translate(COMPLEMENT), 0)
    return "-" + text, start + length
