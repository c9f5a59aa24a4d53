"""Text inside a key: nothing in it can pass for a separator, or sort as one.

The separator `#` has to sort below every character of a text, or `a!` would come before `a`. So the
characters up to `$` are written as `$` and a symbol, and the symbols are in the order of what they
stand for; all others stand for themselves.

    U+0000 … U+001F   $0 … $9 $A … $V
    space             $_
    !  "  #  $        $b  $d  $h  $s        bang, double quote, hash, the S of the dollar sign

    John Smith        John$_Smith
    C#                C$h

A descending text is the complement of its UTF-8 bytes in hexadecimal, closed by `~`, which sorts above
the digits: a text comes before what it begins with.

Order is that of code points, which is the order of UTF-8 bytes. A case rule folds what stands in the
key, and what a query asks for, one character at a time, so that a folded prefix is a prefix of the
folded text. The attribute that the value comes from is not touched.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from isotone.codec.readable.digits import malformed
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError

Case = Literal["upper", "lower", "casefold"]

_SYMBOLS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUV_bdhs"
_ESCAPES: Final = {code: "$" + symbol for code, symbol in enumerate(_SYMBOLS)}
_MEANINGS: Final = {escape: chr(code) for code, escape in _ESCAPES.items()}
_ESCAPED: Final = re.compile("[\x00-$]")
_ESCAPE: Final = re.compile(r"\$[0-9A-V_bdhs]")
_COMPLEMENT: Final = bytes(reversed(range(256)))
_END: Final = "~"
_HEX: Final = re.compile("(?:[0-9a-f]{2})*~")


def escape(text: str) -> str:
    """The text as a component: it has no character up to `#`, and sorts as before.

    >>> escape("C# in depth")
    'C$h$_in$_depth'
    """
    return text.translate(_ESCAPES) if _ESCAPED.search(text) else text


def unescape(text: str) -> str:
    """What `escape` was given, where it was given anything."""
    if "$" not in text:
        return text
    return _ESCAPE.sub(lambda found: _MEANINGS[found[0]], text)


def reversed_bytes(raw: bytes) -> str:
    """Bytes as hexadecimal digits that sort the other way round, without the end."""
    return raw.translate(_COMPLEMENT).hex()


def read_reversed_bytes(text: str) -> bytes | None:
    """The bytes of digits and an end; None for any other text."""
    if not _HEX.fullmatch(text):
        return None
    return bytes.fromhex(text[:-1]).translate(_COMPLEMENT)


def _each(change: Callable[[str], str]) -> Callable[[str], str]:
    """A change of case that looks at one character at a time: a final sigma is like any other."""
    return lambda text: change(text) if text.isascii() else "".join(map(change, text))


_CASES: Final[dict[Case | None, Callable[[str], str]]] = {
    None: lambda text: text,
    "upper": _each(str.upper),
    "lower": _each(str.lower),
    "casefold": _each(str.casefold),
}


@dataclass(frozen=True, slots=True)
class _AnyText(Directed, ABC):
    """What the two kinds of text have in common: case, direction, and no discreteness."""

    case: Case | None = None

    width: ClassVar[None] = None
    _form: ClassVar[str] = "a text"

    def __post_init__(self) -> None:
        if self.case not in _CASES:
            raise UsageError(f"{self.case!r} is no case rule; there are upper, lower and casefold")

    def fold(self, value: str) -> str:
        """The value as the key takes it: in the declared case. Raises `OutOfRange` for no text."""
        if not isinstance(value, str):
            raise UsageError(
                f"{value!r} is a {type(value).__name__}, and this component of a key holds str"
            )
        if self.case is not None:
            value = _CASES[self.case](value)
        if not value.isascii():
            _check_unicode(value)
        return value

    def before(self, value: str) -> None:
        return None

    def after(self, value: str) -> None:
        return None

    @abstractmethod
    def _forward(self, text: str) -> str:
        """The folded text, written."""

    @abstractmethod
    def _backward(self, text: str) -> str:
        """The folded text that was written so."""

    def beginning(self, prefix: str) -> str:
        """What the texts of exactly those values begin with that begin with `prefix`."""
        folded = self.fold(prefix)
        return self._forward(folded) if self.ascending else reversed_bytes(folded.encode())

    def encode(self, value: str) -> str:
        folded = self.fold(value)
        if self.ascending:
            return self._forward(folded)
        return reversed_bytes(folded.encode()) + _END

    def decode(self, text: str) -> str:
        try:
            value = self._backward(text) if self.ascending else _reversed_text(text)
            if self.encode(value) == text:
                return value
        except (OutOfRange, UnicodeDecodeError):
            pass
        case = f" in {self.case} case" if self.case else ""
        raise malformed(text, (self._form if self.ascending else "a descending text") + case)

    def specimens(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self.encode, ("x", "X", "0", "", "\x00", "\U0010ffff"))))


@dataclass(frozen=True, slots=True)
class Text(_AnyText):
    """A text that says itself where it ends, so anything may follow.

    >>> Text().encode("Berkshire & Sons"), Text("lower").encode("Banana")
    ('Berkshire$_&$_Sons', 'banana')
    """

    _form: ClassVar[str] = "an escaped text"

    def _forward(self, text: str) -> str:
        return escape(text)

    def _backward(self, text: str) -> str:
        return unescape(text)


@dataclass(frozen=True, slots=True)
class RawText(_AnyText):
    """A text as it is, separators and all: nothing can follow it.

    >>> RawText().encode("2022-08-13 00:00:00#LANE1")
    '2022-08-13 00:00:00#LANE1'
    """

    takes_the_rest: ClassVar[bool] = True

    def _forward(self, text: str) -> str:
        return text

    def _backward(self, text: str) -> str:
        return text


def _check_unicode(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OutOfRange(
            f"{value!r} has half of a surrogate pair, which is no character and has no UTF-8"
        ) from None


def _reversed_text(text: str) -> str:
    raw: Any = read_reversed_bytes(text)
    return text if raw is None else raw.decode()
