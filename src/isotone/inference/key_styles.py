"""The styles of values in keys: plain, padded, descending, in another case, or as another form of a date.

A `KeyStyle` is a codec of the library with its declaration, so an inferred form is checked with the codec that will
read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Final

from isotone.codec import readable
from isotone.errors import MalformedKey, UsageError
from isotone.inference.field_types import is_ksuid, is_ulid
from isotone.inference.field_types import quoted as text_of

_DIGITS: Final = re.compile("[0-9]+")
_SIGNED: Final = re.compile("-?[0-9]+")
_FIXED: Final = re.compile(r"([0-9]+)\.([0-9]+)")
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")
_FIRST: Final = datetime(1990, 1, 1, tzinfo=UTC)
_LAST: Final = datetime(2100, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class KeyStyle:
    """The style of a field in a key. `kind` is the kind of field that it is for (`FieldType.kind`).

    `expression` is its declaration, with {} for the field; `options` are arguments of the field; `note` says
    what is not certain.
    """

    kind: str
    codec: readable.Codec[Any]
    expression: str = "{}"
    options: Mapping[str, str] = field(default_factory=dict)
    note: str = ""

    def encode(self, value: Any) -> str | None:
        """The text of a value; None if the style has no text for it."""
        try:
            return self.codec.encode(value)
        except (UsageError, ValueError, TypeError, AttributeError):
            return None

    def decode(self, text: str) -> Any:
        """The value of a text; None if the text does not have this style."""
        try:
            return self.codec.decode(text)
        except (MalformedKey, UsageError, ValueError):
            return None

    def is_padded_for_none(self, values: Sequence[Any]) -> bool:
        """Whether the style pads numbers, but none of these values is short enough to show it."""
        codec = self.codec
        if not isinstance(codec, readable.Natural) or not codec.ascending:
            return False
        return all(value is None or len(str(value)) == codec.width for value in values)

    @property
    def is_exact(self) -> bool:
        """Whether keys contain the value unchanged, neither padded nor in another case."""
        return not self.options.keys() & {"case", "max"}

    @property
    def demands(self) -> Mapping[str, str | None]:
        """The options that the field must have; None marks an option that it must not have."""
        if isinstance(self.codec, readable.Unpadded):
            return {"min": "-1" if self.codec.signed else None}
        if isinstance(self.codec, readable.EpochInstant | readable.Written):
            return {}
        return {name: self.options.get(name) for name in _OPTIONS.get(self.kind, ())}


_OPTIONS: Final = {
    "str": ("case",),
    "int": ("min", "max"),
    "Decimal": ("max", "scale"),
    "datetime": ("precision",),
}

RAW: Final = KeyStyle("str", readable.RawText(), "raw({})")
ESCAPED: Final = KeyStyle("str", readable.Text())
UNPADDED: Final = KeyStyle("int", readable.Unpadded(), "raw({})")

_PATTERNS: Final = (
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S.%f",
    "%Y-%m-%d %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H",
    "%Y%m%dT%H%M%SZ",
    "%Y%m%dT%H%M%S",
    "%Y%m%d%H%M%S",
    "%Y/%m/%d %H:%M:%S",
)
_DAY_PATTERNS: Final = ("%Y%m%d", "%Y/%m/%d", "%Y.%m.%d")
_EPOCHS: Final[tuple[tuple[readable.Precision, int], ...]] = (
    ("seconds", 10),
    ("milliseconds", 13),
    ("microseconds", 16),
    ("seconds", 12),
)


def _both(style: KeyStyle) -> Iterator[KeyStyle]:
    """A style in both directions."""
    yield style
    descending: Any = style.codec
    yield replace(style, codec=descending.descending(), expression=f"desc({style.expression})")


def _moments() -> Iterator[KeyStyle]:
    precisions: tuple[readable.Precision, ...] = ("microseconds", "milliseconds", "seconds")
    for precision in precisions:
        options = {} if precision == "microseconds" else {"precision": text_of(precision)}
        yield from _both(KeyStyle("datetime", readable.Instant(precision), options=options))
    for pattern in _PATTERNS:
        expression = f"written({{}}, {text_of(pattern)})"
        yield from _both(KeyStyle("datetime", readable.Written(pattern), expression))
    for unit, digits in _EPOCHS:
        arguments = "" if unit == "seconds" else f", {text_of(unit)}"
        arguments += ", digits=12" if digits == 12 else ""
        expression = f"since_epoch({{}}{arguments})"
        yield from _both(KeyStyle("datetime", readable.EpochInstant(unit, digits), expression))


def _days() -> Iterator[KeyStyle]:
    yield from _both(KeyStyle("date", readable.Day()))
    for pattern in _DAY_PATTERNS:
        expression = f"written({{}}, {text_of(pattern)})"
        yield from _both(KeyStyle("date", readable.Written(pattern, day=True), expression))


def _cases() -> Iterator[KeyStyle]:
    yield RAW
    yield ESCAPED
    for case in ("lower", "upper"):
        options = {"case": text_of(case)}
        yield KeyStyle("str", readable.RawText(case), "raw({})", options)
        yield KeyStyle("str", readable.Text(case), options=options)


_FIXED_STYLES: Final[dict[str, list[KeyStyle]]] = {
    "str": list(_cases()),
    "choice": [
        KeyStyle("choice", readable.Text()),
        KeyStyle("choice", readable.RawText(), "raw({})"),
    ],
    "datetime": list(_moments()),
    "date": list(_days()),
    "uuid": list(_both(KeyStyle("uuid", readable.Uuid()))),
    "ulid": list(_both(KeyStyle("ulid", readable.Ulid()))),
    "ksuid": list(_both(KeyStyle("ksuid", readable.Ksuid()))),
    "bool": list(_both(KeyStyle("bool", readable.Flag()))),
    "bytes": [KeyStyle("bytes", readable.Hex())],
}


def styles_of(kind: str, value: Any, rest: str) -> Iterator[KeyStyle]:
    """The styles in which a value of a kind may begin the rest of a key."""
    if kind == "int":
        yield from _of_int(rest)
    elif kind == "Decimal":
        yield from _of_decimal(rest)
    else:
        yield from _FIXED_STYLES.get(kind, ())


def _of_int(rest: str) -> Iterator[KeyStyle]:
    match = _SIGNED.match(rest)
    if match is None:
        return
    width = len(match[0])
    if match[0][0] != "-" and width > 1:
        yield from padded(width)
    yield UNPADDED
    yield KeyStyle("int", readable.Unpadded(signed=True), "raw({})", {"min": "-1"})
    if width > 2:
        greatest = 10 ** (width - 1) - 1
        options = {"min": str(-greatest), "max": number_text(greatest)}
        yield from _both(KeyStyle("int", readable.Integer(-greatest, greatest), options=options))


def padded(width: int) -> Iterator[KeyStyle]:
    """Numbers from 0 with leading zeros, in both directions."""
    greatest = 10**width - 1
    options = {"max": number_text(greatest)}
    yield from _both(KeyStyle("int", readable.Natural(greatest), options=options))


def _of_decimal(rest: str) -> Iterator[KeyStyle]:
    match = _FIXED.match(rest)
    if match is None:
        return
    greatest, scale = 10 ** len(match[1]) - 1, len(match[2])
    options = {"max": number_text(greatest), "scale": str(scale)}
    # all digits of the width: 99.99, not 99
    limit = readable.FixedPoint(greatest, scale)
    yield from _both(KeyStyle("Decimal", limit, options=options))


def number_text(number: int) -> str:
    """A number as Python source, with underscores between thousands.

    >>> number_text(99999)
    '99_999'
    """
    return f"{number:_}"


# Texts whose values are in no attribute


def style_of_texts(texts: Sequence[str]) -> KeyStyle | None:
    """The style of values that are only in the key; None for plain texts."""
    if not all(texts):
        return None
    for fits, styles in _RECOGNIZED:
        if all(map(fits, texts)):
            for style in styles:
                if all(_is_plausible(style.decode(text)) for text in texts):
                    return style
    if all(_DIGITS.fullmatch(text) for text in texts):
        return _digits(texts)
    return None


def _digits(texts: Sequence[str]) -> KeyStyle | None:
    widths = {len(text) for text in texts}
    has_zeros = any(text[0] == "0" and len(text) > 1 for text in texts)
    if not has_zeros:
        return UNPADDED
    if len(widths) > 1:
        return None
    (width,) = widths
    ascending, descending = padded(width)
    if len(texts) > 1 and all(text.startswith("99") for text in texts):
        return replace(descending, note="it counts down from the greatest number")
    return ascending


def _is_plausible(value: Any) -> bool:
    if isinstance(value, datetime):
        return _FIRST <= value < _LAST
    if isinstance(value, date):
        return _FIRST.date() <= value < _LAST.date()
    return value is not None


def _has_form(expression: str) -> Callable[[str], bool]:
    matcher = re.compile(expression)
    return lambda text: matcher.fullmatch(text) is not None


def _ascending(styles: Sequence[KeyStyle]) -> list[KeyStyle]:
    return [style for style in styles if style.codec.ascending]


_RECOGNIZED: Final[list[tuple[Callable[[str], bool], list[KeyStyle]]]] = [
    (
        _has_form("[0-9]{4}[^0-9].+"),
        _ascending([*_FIXED_STYLES["datetime"], *_FIXED_STYLES["date"]]),
    ),
    (_has_form("[0-9]{8}"), _ascending(_FIXED_STYLES["date"])),
    (_has_form("[0-9]{10}|[0-9]{13,16}|[0-9]{8}T.+"), _ascending(_FIXED_STYLES["datetime"])),
    (_has_form("[0-9a-f]{8}-.{27}"), _FIXED_STYLES["uuid"][:1]),
    (is_ulid, _FIXED_STYLES["ulid"][:1]),
    (is_ksuid, _FIXED_STYLES["ksuid"][:1]),
]


def is_reversed_time(value: int) -> str:
    """How a number counts down from a maximum to a plausible time, in words; empty if it does not."""
    for name, greatest, per_second in _REVERSALS:
        moment = (greatest - value) / per_second
        if _FIRST.timestamp() <= moment < _LAST.timestamp():
            return name
    return ""


_REVERSALS: Final = [
    (f"{title} − {unit} since 1970", greatest, per_second)
    for title, greatest in (
        ("2⁶³ − 1", 2**63 - 1),
        ("10¹³ − 1", 10**13 - 1),
        ("2⁵³ − 1", 2**53 - 1),
    )
    for unit, per_second in (
        ("nanoseconds", 10**9),
        ("microseconds", 10**6),
        ("milliseconds", 10**3),
        ("seconds", 1),
    )
]
