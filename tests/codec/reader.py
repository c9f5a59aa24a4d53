"""Keys read back without a schema, as docs/design/format.md describes them.

The database never needs to: an entry of a store carries its item. Here it shows that no two keys are
written alike.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from isotone.values.number import canonical_number

Value = dict[str, Any]


def descending(encoded: bytes) -> bytes:
    """The complement, which is how the format has components in reversed order."""
    return bytes(255 - byte for byte in encoded)


def read_key(data: bytes) -> list[Value]:
    """The values of all components of a key, ascending and descending ones."""
    values = []
    while data:
        value, length = read_component(data)
        values.append(value)
        data = data[length:]
    return values


def read_component(data: bytes) -> tuple[Value, int]:
    """The first component, and its length."""
    if data[0] > 0x7F:
        return read_component(descending(data))
    if data[0] == 0x11:
        return {"N": "0"}, 1
    if data[0] == 0x10:
        text, length = _read_number(descending(data))
        return {"N": "-" + text}, length
    if data[0] == 0x12:
        text, length = _read_number(data)
        return {"N": text}, length
    raw, length = _read_bytes(data)
    if data[0] == 0x20:
        return {"S": raw.decode()}, length
    assert data[0] == 0x30
    return {"B": b64encode(raw).decode()}, length


def _read_bytes(data: bytes) -> tuple[bytes, int]:
    raw, at = [], 1
    while data[at] != 0:
        escaped = data[at] == 1
        raw.append(data[at + 1] - 1 if escaped else data[at])
        at += 1 + escaped
    return bytes(raw), at + 1


def _read_number(data: bytes) -> tuple[str, int]:
    digits, at = "", 2
    while data[at] % 2:
        digits += f"{data[at] // 2:02}"
        at += 1
    digits += f"{data[at] // 2:02}"
    exponent = 2 * (data[1] - 0x80 + 1) - len(digits)
    return canonical_number(f"{digits}e{exponent}"), at + 1
