"""Bytes inside a key: two hexadecimal digits each.

    Hex()                 the bytes 00 FF are 00ff
    Hex().descending()    the bytes 00 FF are ff00~

A descending value is the complement, closed by `~`, which sorts above the digits: a value comes before
what it begins with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final

from isotone.codec.readable.digits import malformed
from isotone.codec.readable.interface import NEVER, Directed
from isotone.codec.readable.text import HEX_DIGITS, read_reversed_bytes, reversed_bytes
from isotone.errors import UsageError

_DIGITS: Final = re.compile("(?:[0-9a-f]{2})*")


@dataclass(frozen=True, slots=True)
class Hex(Directed):
    """Bytes of any length, in the order of unsigned bytes.

    >>> Hex().encode(bytes([0, 255]))
    '00ff'
    """

    width: ClassVar[None] = None

    @property
    def alphabet(self) -> str:
        return HEX_DIGITS if self.ascending else HEX_DIGITS + "~"

    @property
    def goes_on(self) -> str:
        return "0" if self.ascending else NEVER

    def beginning(self, prefix: bytes) -> str:
        """What the texts of exactly those values begin with that begin with `prefix`."""
        if not isinstance(prefix, bytes):
            raise UsageError(
                f"{prefix!r} is a {type(prefix).__name__}, and this component of a key holds bytes"
            )
        return prefix.hex() if self.ascending else reversed_bytes(prefix)

    def encode(self, value: bytes) -> str:
        return self.beginning(value) if self.ascending else self.beginning(value) + "~"

    def decode(self, text: str) -> bytes:
        if self.ascending and _DIGITS.fullmatch(text):
            return bytes.fromhex(text)
        raw = None if self.ascending else read_reversed_bytes(text)
        if raw is None:
            end = "" if self.ascending else " and ~"
            raise malformed(text, f"bytes: pairs of lower-case hexadecimal digits{end}")
        return raw

    def before(self, value: bytes) -> None:
        return None

    def after(self, value: bytes) -> None:
        return None

    def specimens(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (b"", *(b"\x00" * n for n in (1, 5, 10, 13, 16)), b"\xff")))
