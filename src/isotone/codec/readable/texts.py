"""Text and bytes inside a key: folded case (`field(case=…)`), prefixes, and escapes, so that none contains a separator.

The separator `#` must sort below every character of a text, or `a!` would come before `a`. So the
characters up to `$` are written as `$` and a symbol; the symbols sort like these characters. All other
characters are unchanged.

    U+0000 … U+001F   $0 … $9 $A … $V
    space             $_
    !  "  #  $        $b  $d  $h  $s        bang, double quote, hash, the S of the dollar sign

    John Smith        John$_Smith
    C#                C$h

Bytes are two hexadecimal digits each. A descending text is the complement of its UTF-8 bytes in
hexadecimal, closed by `~`, which sorts above the digits: `ab` comes before `a`. Descending bytes are written
in the same way.

    Hex()                 the bytes 00 FF are 00ff
    Hex().descending()    the bytes 00 FF are ff00~

Texts sort by code points, which is the order of UTF-8 bytes. A case rule folds the text in the key, and the operand of
a query, one character at a time, so that a folded prefix is a prefix of the folded text. The attribute itself is not
changed.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from isotone.codec.readable.interface import (
    ABOVE_SEPARATOR,
    NEVER,
    Directed,
    malformed,
    wrong_type,
)
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
_HEX_DIGITS: Final = "0123456789abcdef"
_HEX: Final = re.compile("(?:[0-9a-f]{2})*")
_is_plain: Final = re.compile("[%-~]*").fullmatch  # ASCII that needs no escape


def escape(text: str) -> str:
    """The text as a component: without any character up to `#`, and in the same order.

    >>> escape("C# in depth")
    'C$h$_in$_depth'
    """
    return text.translate(_ESCAPES) if _ESCAPED.search(text) else text


def unescape(text: str) -> str:
    """The reverse of `escape`."""
    if "$" not in text:
        return text
    return _ESCAPE.sub(lambda match: _MEANINGS[match[0]], text)


def _by_character(change: Callable[[str], str]) -> Callable[[str], str]:
    """A change of case one character at a time, which treats a final sigma like any other."""
    return lambda text: change(text) if text.isascii() else "".join(map(change, text))


_CASES: Final[dict[Case | None, Callable[[str], str]]] = {
    None: lambda text: text,
    "upper": _by_character(str.upper),
    "lower": _by_character(str.lower),
    "casefold": _by_character(str.casefold),
}


@dataclass(frozen=True, slots=True)
class _AnyText(Directed, ABC):
    """The base of both kinds of text: case, direction, and values that are not discrete."""

    case: Case | None = None

    width: ClassVar[None] = None
    shaped_by: ClassVar[tuple[str, ...]] = ("case",)
    _least: ClassVar[str]
    _form: ClassVar[str] = "a text"

    def __post_init__(self) -> None:
        if self.case not in _CASES:
            raise UsageError(f"{self.case!r} is not a case rule; use upper, lower or casefold")

    def fold(self, value: str) -> str:
        """The value in the declared case. Raises `OutOfRange` for half of a surrogate pair."""
        if not isinstance(value, str):
            raise wrong_type(value, "str")
        if self.case is not None:
            value = _CASES[self.case](value)
        if not value.isascii():
            _check_unicode(value)
        return value

    @property
    def alphabet(self) -> str | None:
        return None if self.ascending else _HEX_DIGITS + _END

    @property
    def least_continuation(self) -> str:
        return self._least if self.ascending else NEVER

    def before(self, value: str) -> None:
        return None

    def after(self, value: str) -> None:
        return None

    @abstractmethod
    def _forward(self, text: str) -> str:
        """Encode a folded value."""

    @abstractmethod
    def _backward(self, text: str) -> str:
        """Decode a text into the folded value."""

    def encode_prefix(self, prefix: str) -> str:
        """The text with which exactly the texts of those values begin that begin with `prefix`."""
        folded = self.fold(prefix)
        return self._forward(folded) if self.ascending else _reversed(folded.encode())

    def encode(self, value: str) -> str:
        folded = self.fold(value)
        if self.ascending:
            return self._forward(folded)
        return _reversed(folded.encode()) + _END

    def decode(self, text: str) -> str:
        try:
            value = self._backward(text) if self.ascending else _read_reversed(text).decode()
            if self.encode(value) == text:
                return value
        except (OutOfRange, ValueError):
            pass
        case = f" in {self.case} case" if self.case else ""
        raise malformed(text, (self._form if self.ascending else "a descending text") + case)

    def samples(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(self.encode, self._values())))

    def _values(self) -> Iterable[str]:
        return _SAMPLES


@dataclass(frozen=True, slots=True)
class Text(_AnyText):
    """An escaped text. It marks its own end, so any part may follow.

    >>> Text().encode("Berkshire & Sons"), Text("lower").encode("Banana")
    ('Berkshire$_&$_Sons', 'banana')
    """

    _least: ClassVar[str] = ABOVE_SEPARATOR
    _form: ClassVar[str] = "an escaped text"

    def encode(self, value: str) -> str:
        if self.case is None and self.ascending and type(value) is str and _is_plain(value):
            return value
        return _AnyText.encode(self, value)

    def _forward(self, text: str) -> str:
        return escape(text)

    def _backward(self, text: str) -> str:
        return unescape(text)


@dataclass(frozen=True, slots=True)
class RawText(_AnyText):
    """An unescaped text: it may contain separators if nothing follows it.

    `until` is the text that ends it, and must not be in the value.

    >>> RawText().encode("2022-08-13 00:00:00#LANE1"), RawText(until="#").encode("john smith")
    ('2022-08-13 00:00:00#LANE1', 'john smith')
    """

    until: str = ""

    _least: ClassVar[str] = "\x00"
    _form: ClassVar[str] = "a text without its separator"

    @property
    def open_ended(self) -> bool:
        return self.ascending and not self.until

    def encode_prefix(self, prefix: str) -> str:
        folded = self.fold(prefix)
        if not self.ascending:
            return _reversed(folded.encode())
        if self.until and self.until in folded:
            raise self._not_allowed(folded)
        return folded

    def _forward(self, text: str) -> str:
        if self.until and (text + self.until).find(self.until) != len(text):
            raise self._not_allowed(text)
        return text

    def _values(self) -> Iterable[str]:
        return [text for text in _SAMPLES if not self.until or self.until not in self.fold(text)]

    def _not_allowed(self, text: str) -> OutOfRange:
        return OutOfRange(
            f"{text!r} contains {self.until!r} or ends as it begins: {self.until!r} separates the parts "
            "of this key, so the text would be read back as another value; leave it out of the value, "
            "or declare another separator"
        )

    def _backward(self, text: str) -> str:
        return text


@dataclass(frozen=True, slots=True)
class Hex(Directed):
    """Bytes of any length, in the order of unsigned bytes.

    >>> Hex().encode(bytes([0, 255]))
    '00ff'
    """

    width: ClassVar[None] = None

    @property
    def alphabet(self) -> str:
        return _HEX_DIGITS if self.ascending else _HEX_DIGITS + _END

    @property
    def least_continuation(self) -> str:
        return "0" if self.ascending else NEVER

    def encode_prefix(self, prefix: bytes) -> str:
        """The text with which exactly the texts of those values begin that begin with `prefix`."""
        if not isinstance(prefix, bytes):
            raise wrong_type(prefix, "bytes")
        return prefix.hex() if self.ascending else _reversed(prefix)

    def encode(self, value: bytes) -> str:
        return self.encode_prefix(value) if self.ascending else self.encode_prefix(value) + _END

    def decode(self, text: str) -> bytes:
        if not self.ascending:
            try:
                return _read_reversed(text)
            except ValueError:
                raise malformed(text, f"bytes: {_PAIRS} and ~") from None
        if not _HEX.fullmatch(text):
            raise malformed(text, f"bytes: {_PAIRS}")
        return bytes.fromhex(text)

    def before(self, value: bytes) -> None:
        return None

    def after(self, value: bytes) -> None:
        return None

    def samples(self) -> tuple[str, ...]:
        return tuple(map(self.encode, (b"", *(b"\x00" * n for n in (1, 5, 10, 13, 16)), b"\xff")))


_PAIRS: Final = "pairs of lower-case hexadecimal digits"


def _reversed(raw: bytes) -> str:
    """Bytes in descending hexadecimal form, without the end mark."""
    return raw.translate(_COMPLEMENT).hex()


def _read_reversed(text: str) -> bytes:
    """The bytes of a descending form with its end mark. Raises `ValueError` for any other text."""
    digits = text.removesuffix(_END)
    if digits == text or not _HEX.fullmatch(digits):
        raise ValueError(text)
    return bytes.fromhex(digits).translate(_COMPLEMENT)


def _check_unicode(value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise OutOfRange(
            f"{value!r} contains half of a surrogate pair, which is not a character"
        ) from None
