"""Key values as bytes: a type code and a body, the range of a prefix (`begins_with`), the hash of a partition.

This module encodes single values; `engine.layout` composes the keys of items and index entries from them.

    0x10  negative number    0x11  zero    0x12  positive number
    0x20  string
    0x30  binary

Each component marks its own end, and none is a prefix of another. So components written one after another sort by
the first, then by the second, and so on.

With `prefix`, the components of a partition, and `e`, the component of a sort key value, the ranges
`low <= key < high` that a store reads for each key condition are

    = e         prefix + e            after(prefix + e)
    < e         prefix                prefix + e
    <= e        prefix                after(prefix + e)
    > e         after(prefix + e)     after(prefix)
    >= e        prefix + e            after(prefix)
    begins      prefix + low          prefix + high          low, high = prefix_range(value)
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from isotone.errors import MalformedKey, UsageError, ValidationException
from isotone.values.number import canonical_number
from isotone.values.types import AttributeValue

NEGATIVE: Final = b"\x10"
ZERO: Final = b"\x11"
POSITIVE: Final = b"\x12"
TEXT: Final = b"\x20"
BINARY: Final = b"\x30"
END: Final = b"\x00"

HASH_SIZE: Final = 8
_HASHES: Final = 1 << 8 * HASH_SIZE
_COMPLEMENT: Final = bytes(reversed(range(256)))


def encode_text(text: str) -> bytes:
    """A string as a component; it sorts by UTF-8 bytes, which is the order of code points."""
    if "\x00" in text or "\x01" in text:
        return TEXT + _escape(text.encode()) + END
    return f"\x20{text}\x00".encode()  # the same as below, faster


def encode_number(text: str) -> bytes:
    """A number in normal form as a component; it sorts by value.

    >>> encode_number("5").hex(), encode_number("-1234.5").hex()
    ('12800a', '107ee6ba9b')
    """
    if text == "0":
        return ZERO
    if text[0] == "-":
        return NEGATIVE + _positive_body(text[1:]).translate(_COMPLEMENT)
    return POSITIVE + _positive_body(text)


def decode_number(encoded: bytes) -> str:
    """The reverse of `encode_number`. Raises `MalformedKey` for any other bytes."""
    plain = encoded[1:].translate(_COMPLEMENT) if encoded[:1] == NEGATIVE else encoded[1:]
    digits = plain[1:].translate(_UNPACK).hex()
    sign = "-" if encoded[:1] == NEGATIVE else ""
    try:
        exponent = 2 * (plain[0] - _UNITS + 1) - len(digits) if digits else 0
        text = canonical_number(f"{sign}{digits}e{exponent}") if plain else "0"
        if encode_number(text) == encoded:
            return text
    except (ValidationException, IndexError):
        pass
    raise MalformedKey(f"the bytes {encoded.hex()} are not a number")


def encode_binary(raw: bytes) -> bytes:
    """Bytes as a component; they sort as unsigned bytes."""
    return BINARY + _escape(raw) + END


def _encode_base64(base64: str) -> bytes:
    return encode_binary(a2b_base64(base64))


_ENCODERS: Final[dict[str, Callable[[str], bytes]]] = {
    "S": encode_text,
    "N": encode_number,
    "B": _encode_base64,
}


def decode_components(encoded: bytes) -> list[AttributeValue]:
    """The values of components that follow one another. Raises `MalformedKey` for any other bytes.

    >>> decode_components(encode_text("a") + encode_number("5"))
    [{'S': 'a'}, {'N': '5'}]
    """
    values: list[AttributeValue] = []
    start = 0
    while start < len(encoded):
        end = _end_of(encoded, start)
        values.append(_decode(encoded[start:end]))
        start = end
    return values


def _end_of(encoded: bytes, start: int) -> int:
    """The end of the component that begins at `start`."""
    code = encoded[start : start + 1]
    if code in (TEXT, BINARY):
        end = encoded.find(END, start + 1)
    elif code == ZERO:
        return start + 1
    else:  # the last digit of a positive number is even, that of a negative one odd
        last = 0 if code == POSITIVE else 1
        digits = range(start + 2, len(encoded))
        end = next((at for at in digits if encoded[at] % 2 == last), -1)
    if end < 0:
        raise MalformedKey(f"the bytes {encoded[start:].hex()} are not a component of a key")
    return end + 1


def _decode(component: bytes) -> AttributeValue:
    code, body = component[:1], component[1:-1]
    raw = body.replace(b"\x01\x01", END).replace(b"\x01\x02", b"\x01")
    if code == BINARY:
        return {"B": b2a_base64(raw, newline=False).decode()}
    if code == TEXT:
        try:
            return {"S": raw.decode()}
        except UnicodeDecodeError:
            raise MalformedKey(f"the bytes {component.hex()} are not a text") from None
    return {"N": decode_number(component)}


def encoder_for(code: str) -> Callable[[str], bytes]:
    """The function that encodes values of a type, given their content in normal form.

    Raises `UsageError` for a type that a key cannot have.
    """
    try:
        return _ENCODERS[code]
    except KeyError:
        raise UsageError(f"a key cannot be of type {code}; only S, N and B can") from None


def prefix_range(value: AttributeValue) -> tuple[bytes, bytes]:
    """The range `low <= component < high` of all values that begin with this one."""
    ((code, content),) = value.items()
    if code not in ("S", "B"):
        raise UsageError(f"a value of type {code} has no beginning; only S and B have")
    low = _ENCODERS[code](content).removesuffix(END)
    return low, after(low)


def after(encoded: bytes) -> bytes:
    """The smallest bytes greater than everything that begins with `encoded`.

    They exist unless all bytes are 0xFF, and no component consists of those alone.
    """
    head = encoded.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,))


@lru_cache(maxsize=4096)
def partition_prefix(encoded: bytes) -> bytes:
    """The prefix of all keys of an item collection: the hash of the partition key, then its components.

    The hash is the 64-bit BLAKE2b digest of the components. Collisions do no harm, because the components
    follow. It spreads keys evenly, so scan segments are equal, and it scatters neighbours, so programs
    cannot rely on the order of a Scan.
    """
    return blake2b(encoded, digest_size=HASH_SIZE).digest() + encoded


def segment_range(segment: int, total: int) -> tuple[bytes, bytes | None]:
    """The keys `low <= key < high` of one segment of a scan; None is the end of the table.

    Together the segments contain every key once. They are as equal as hashes allow.
    """
    low = (segment * _HASHES // total).to_bytes(HASH_SIZE)
    if segment + 1 == total:
        return low, None
    return low, ((segment + 1) * _HASHES // total).to_bytes(HASH_SIZE)


# The bodies of strings and binary values: their bytes, and an end that no body contains.
#
#     0x00        ends the body
#     0x01 0x01   encodes the byte 0x00
#     0x01 0x02   encodes the byte 0x01
#     other       encodes itself
#
# The end sorts before everything that could follow, so `a` comes before `ab`. The codes sort as the bytes
# that they encode, so bodies sort as their contents.


def _escape(raw: bytes) -> bytes:
    """The body without its end; the bodies of all values that begin with `raw` begin with it."""
    if b"\x01" in raw or b"\x00" in raw:
        return raw.replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01")
    return raw


# The bodies of numbers: a byte for the magnitude, then the digits in base 100.
#
# A positive number is  d₀.d₁d₂… × 100ᵉ  with every dᵢ from 0 to 99, and neither the first nor the last of
# them 0. Its body is
#
#     0x80 + e       from 0x3F (e = -65, 1E-130) to 0xBE (e = 62, 9.99…E+125)
#     2 dᵢ + 1       for each digit but the last
#     2 dₙ           for the last; it is even, so it ends the body
#
# A number that ends where another one continues sorts first, and it is the smaller one. The body of a
# negative number is the bitwise complement of its positive counterpart's. Zero has no body.

_UNITS: Final = 0x80  # the first byte of a number from 1 to 99
# A base-100 digit as `bytes.fromhex` reads two decimal digits: one in each half of a byte.
_PACKED: Final = bytes(16 * (digit // 10) + digit % 10 for digit in range(100))
_MORE_FOLLOW: Final = bytes.maketrans(_PACKED, bytes(range(1, 200, 2)))
_LAST: Final = {packed: bytes((2 * digit,)) for digit, packed in enumerate(_PACKED)}
_UNPACK: Final = bytes.maketrans(
    bytes(range(200)), bytes(packed for packed in _PACKED for _ in range(2))
)


def _positive_body(text: str) -> bytes:
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
