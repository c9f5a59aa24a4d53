"""The bodies of strings and of binary values: their bytes, closed by a byte that no body contains.

    0x00        ends the body
    0x01 0x01   stands for the byte 0x00
    0x01 0x02   stands for the byte 0x01
    other       stands for itself

The end sorts before everything that could follow, so `a` comes before `ab`, and because the codes are
in the order of what they stand for, bodies sort as the bytes in them do. No body begins another.
"""

from __future__ import annotations

from typing import Final

from isotone.errors import StorageCorrupt

END: Final = b"\x00"


def escape(raw: bytes) -> bytes:
    """The body without its end: what the bodies of all values beginning with `raw` begin with."""
    if b"\x01" in raw or b"\x00" in raw:
        return raw.replace(b"\x01", b"\x01\x02").replace(b"\x00", b"\x01\x01")
    return raw


def read_body(data: bytes, start: int) -> tuple[bytes, int]:
    """The bytes of the body that begins at `start`, and where it ends."""
    end = data.find(END, start)
    if end < 0:
        raise StorageCorrupt(f"the key {data.hex()} has a text at byte {start} without an end")
    escaped = data[start:end]
    # Left to right, pairs of 0x01 0x01 cannot be misread: a run of 0x01 begins with an escape.
    raw = escaped.replace(b"\x01\x01", b"\x00").replace(b"\x01\x02", b"\x01")
    return raw, end + 1
