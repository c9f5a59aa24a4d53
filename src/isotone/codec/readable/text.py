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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from isotone.codec.readable.digits import malformed
from isotone.codec.readable.interface import ABOVE_SEPARATOR, NEVER, Directed
from isotone.errors import OutOfRange, UsageError

Case = Literal["upper", "lower", "casefold"]

_SYMBOLS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUV_bdhs"
_ESCAPES: Final = {code: "$" + symbol for code, symbol in enumerate(_SYMBOLS)}
_MEANINGS: Final = {escape: chr(code) for code, escape in _ESCAPES.items()}
_ESCAPED: Final = re.compile("[\x00-$]")
_ESCAPE: Final = re.compile(r"\$[0-9A-V_bdhs]")
_SAMPLES: Final = ("x", "X", "0", "", "\x00", "\U0010ffff")
_COMPLEMENT: Final = bytes(reversed(range(256)))
_END: Final = "~"
HEX_DIGITS: Final = "0123456789abcdef"
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
    _least: ClassVar[str]
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

    @property
    def alphabet(self) -> str | None:
        return None if self.ascending else HEX_DIGITS + _END

    @property
    def goes_on(self) -> str:
        return self._least if self.ascending else NEVER

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
        return tuple(dict.fromkeys(map(self.encode, self._samples())))

    def _samples(self) -> Iterable[str]:
        return _SAMPLES


@dataclass(frozen=True, slots=True)
class Text(_AnyText):
    """A text that says itself where it ends, so anything may follow.

    >>> Text().encode("Berkshire & Sons"), Text("lower").encode("Banana")
    ('Berkshire$_&$_Sons', 'banana')
    """

    _least: ClassVar[str] = ABOVE_SEPARATOR
    _form: ClassVar[str] = "an escaped text"

    def _forward(self, text: str) -> str:
        return escape(text)

    def _backward(self, text: str) -> str:
        return unescape(text)


@dataclass(frozen=True, slots=True)
class RawText(_AnyText):
    """A text as it is: separators and all, where nothing follows it, or else up to a separator.

    `until` is the text before which it ends, and which it therefore does not hold.

    >>> RawText().encode("2022-08-13 00:00:00#LANE1"), RawText(until="#").encode("john smith")
    ('2022-08-13 00:00:00#LANE1', 'john smith')
    """

    until: str = ""

    _least: ClassVar[str] = "\x00"
    _form: ClassVar[str] = "a text without its separator"

    @property
    def takes_the_rest(self) -> bool:
        return self.ascending and not self.until

    def beginning(self, prefix: str) -> str:
        folded = self.fold(prefix)
        if not self.ascending:
            return reversed_bytes(folded.encode())
        if self.until and self.until in folded:
            raise self._refusal(folded)
        return folded

    def _forward(self, text: str) -> str:
        if self.until and (text + self.until).find(self.until) != len(text):
            raise self._refusal(text)
        return text

    def _samples(self) -> Iterable[str]:
        return [each for each in _SAMPLES if not self.until or self.until not in self.fold(each)]

    def _refusal(self, text: str) -> OutOfRange:
        return OutOfRange(
            f"{text!r} holds {self.until!r}, or the beginning of it at its end, which separates the "
            "parts of this key, where texts stand as they are: it would be read back as another "
            "value; leave it out of the value, or declare another separator"
        )

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
