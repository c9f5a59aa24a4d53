"""Whole numbers as they are printed, which is how hand-made keys often have them: 5, 10, 123.

They have no order (10 comes before 5), so a key that holds one answers what is asked by equality, and
nothing else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Final, Never

from isotone.codec.readable.digits import malformed, whole
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError

_DIGITS: Final = "0123456789"
_WHOLE: Final = re.compile("0|-?[1-9][0-9]*")


@dataclass(frozen=True, slots=True)
class Unpadded(Directed):
    """An int without zeros before it; below 0 only where it is `signed`.

    >>> Unpadded().encode(157), Unpadded(signed=True).encode(-5)
    ('157', '-5')
    """

    signed: bool = False

    width: ClassVar[None] = None
    sorts: ClassVar[bool] = False

    @property
    def alphabet(self) -> str:
        return _DIGITS + "-" if self.signed else _DIGITS

    @property
    def goes_on(self) -> str:
        return "0"

    def descending(self) -> Never:
        raise UsageError(
            "a number that is not padded has no order that could be descending: leave desc(…) out, "
            "or declare the width of the number and leave raw(…) out"
        )

    def encode(self, value: int) -> str:
        number = value if type(value) is int else whole(value)
        if number < 0 and not self.signed:
            raise OutOfRange(
                f"{number} is negative, and this component of a key holds numbers from 0: "
                "declare a minimum"
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

    def around(self, value: int) -> tuple[int | None, int | None]:
        number = whole(value)
        return (None, 0) if number < 0 and not self.signed else (number, number)

    def specimens(self) -> tuple[str, ...]:
        return ("0", "7", "10", "55", "123", *(("-1",) if self.signed else ()))
