"""Keys: components one after another, each a type code and a body.

    0x10  negative number    0x11  zero    0x12  positive number
    0x20  string
    0x30  binary

A component says itself where it ends, and none begins another, so components that are written one
after another sort by the first, then by the second, and so on. A descending component is the bitwise
complement of an ascending one, code and all, and can stand beside others.

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
from typing import Final

from isotone.codec.numbers import (
    COMPLEMENT,
    negative_body,
    positive_body,
    read_negative,
    read_positive,
)
from isotone.codec.texts import END, escape, read_body
from isotone.errors import StorageCorrupt, UsageError
from isotone.values.types import AttributeValue

NEGATIVE: Final = b"\x10"
ZERO: Final = b"\x11"
POSITIVE: Final = b"\x12"
TEXT: Final = b"\x20"
BINARY: Final = b"\x30"


def encode_text(text: str) -> bytes:
    """A string as a component; it sorts by UTF-8 bytes, which is by code points."""
    if "\x00" in text or "\x01" in text:
        return TEXT + escape(text.encode()) + END
    return f"\x20{text}\x00".encode()  # the same, made in one go


def encode_number(text: str) -> bytes:
    """A number in normal form as a component; it sorts by value.

    >>> encode_number("5").hex(), encode_number("-1234.5").hex()
    ('12800a', '107ee6ba9b')
    """
    if text == "0":
        return ZERO
    if text[0] == "-":
        return NEGATIVE + negative_body(text)
    return POSITIVE + positive_body(text)


def encode_binary(raw: bytes) -> bytes:
    """Bytes as a component; they sort as unsigned bytes."""
    return BINARY + escape(raw) + END


def _encode_base64(base64: str) -> bytes:
    return encode_binary(a2b_base64(base64))


_ENCODERS: Final[dict[str, Callable[[str], bytes]]] = {
    "S": encode_text,
    "N": encode_number,
    "B": _encode_base64,
}


def encode_key_value(value: AttributeValue) -> bytes:
    """A value in normal form, of a type that a key may have, as a component.

    Raises `UsageError` for a type that a key may not have.
    """
    ((code, content),) = value.items()
    return encoder_for(code)(content)


def encoder_for(code: str) -> Callable[[str], bytes]:
    """What makes a component of a value's content, for callers that know the type beforehand."""
    try:
        return _ENCODERS[code]
    except KeyError:
        raise UsageError(f"a key cannot be of type {code}; only S, N and B can") from None


def prefix_range(value: AttributeValue) -> tuple[bytes, bytes]:
    """Between which bytes, `low <= component < high`, all values beginning with this one lie."""
    ((code, content),) = value.items()
    try:
        component_code, raw = _PREFIXES[code](content)
    except KeyError:
        raise UsageError(f"a value of type {code} has no beginning; only S and B have") from None
    low = component_code + escape(raw)
    return low, after(low)


_PREFIXES: Final[dict[str, Callable[[str], tuple[bytes, bytes]]]] = {
    "S": lambda text: (TEXT, text.encode()),
    "B": lambda base64: (BINARY, a2b_base64(base64)),
}


def after(encoded: bytes) -> bytes:
    """The smallest bytes that are greater than everything which begins with `encoded`.

    There are some wherever not all bytes are 0xFF, and no component consists of those.
    """
    head = encoded.rstrip(b"\xff")
    return head[:-1] + bytes((head[-1] + 1,))


def descending(encoded: bytes) -> bytes:
    """One component, or several, that sort the other way round; applied twice, as they were."""
    return encoded.translate(COMPLEMENT)


def decode(data: bytes, start: int = 0) -> tuple[AttributeValue, int]:
    """The component that begins at `start`, ascending or descending, and where it ends.

    Raises `StorageCorrupt` where there is none.
    """
    code = data[start : start + 1]
    read = _READERS.get(code)
    if read is not None:
        return read(data, start + 1)
    read = _READERS.get(code.translate(COMPLEMENT))
    if read is None:
        raise StorageCorrupt(f"the key {data.hex()} has no type code at byte {start}")
    value, length = read(data[start:].translate(COMPLEMENT), 1)
    return value, start + length


def decode_key(data: bytes, start: int = 0) -> tuple[AttributeValue, ...]:
    """The values of all components from `start` on, in normal form."""
    values = []
    while start < len(data):
        value, start = decode(data, start)
        values.append(value)
    return tuple(values)


def _read_text(data: bytes, start: int) -> tuple[AttributeValue, int]:
    raw, end = read_body(data, start)
    try:
        return {"S": raw.decode()}, end
    except UnicodeDecodeError:
        raise StorageCorrupt(f"the key {data.hex()} has text that is not UTF-8") from None


def _read_binary(data: bytes, start: int) -> tuple[AttributeValue, int]:
    raw, end = read_body(data, start)
    return {"B": b2a_base64(raw, newline=False).decode()}, end


def _read_positive(data: bytes, start: int) -> tuple[AttributeValue, int]:
    text, end = read_positive(data, start)
    return {"N": text}, end


def _read_negative(data: bytes, start: int) -> tuple[AttributeValue, int]:
    text, end = read_negative(data, start)
    return {"N": text}, end


def _read_zero(_data: bytes, start: int) -> tuple[AttributeValue, int]:
    return {"N": "0"}, start


_READERS: Final[dict[bytes, Callable[[bytes, int], tuple[AttributeValue, int]]]] = {
    NEGATIVE: _read_negative,
    ZERO: _read_zero,
    POSITIVE: _read_positive,
    TEXT: _read_text,
    BINARY: _read_binary,
}
