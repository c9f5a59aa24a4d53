"""Every kind of codec with values for it, and what their order means without any codec.

`meaning` is a Python object that sorts as the values are meant to: the independent oracle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from isotone.codec.ids import KSUID, ULID
from isotone.codec.readable import (
    Choice,
    Codec,
    Day,
    EpochInstant,
    FixedPoint,
    Flag,
    Float,
    Hex,
    Instant,
    Integer,
    Ksuid,
    Natural,
    RawText,
    Span,
    Text,
    TimeOfDay,
    Ulid,
    Uuid,
    Written,
)


class Size(Enum):
    """Declared in an order that is neither that of names nor of values."""

    SMALL = 3
    MEDIUM = 1
    LARGE = 2


@dataclass(frozen=True)
class Kind:
    name: str
    codec: Codec[Any]
    values: st.SearchStrategy[Any]
    meaning: Callable[[Any], Any] = lambda value: value
    # What comes back where it is not what went in.
    returned: Callable[[Any], Any] = lambda value: value


# Texts of characters around the separator and the escape, and of every length of UTF-8.
NASTY = '\x00\x01\x1f !"#$%&09AZ_ab~\x7f\x80é\u07ff\u0800ßΣσς\uffff\U00010000\U0010ffff'
texts = st.text(NASTY, max_size=5) | st.text(max_size=4)


def points(text: str) -> list[int]:
    return [ord(character) for character in text]


def lower(text: str) -> str:
    return "".join(character.lower() for character in text)


zones = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
instants = st.datetimes(
    datetime(1, 1, 2), datetime(9999, 12, 30), timezones=zones | st.just(UTC)
) | st.datetimes(datetime(2020, 1, 1), datetime(2020, 1, 2), timezones=zones)


def since_epoch(value: datetime) -> int:
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def floored(value: datetime, tick: int) -> datetime:
    return value.replace(microsecond=value.microsecond // tick * tick)


SECOND = timedelta(seconds=1)
numbers = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1.0])
KSUID_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
ULID_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def in_base(number: int, letters: str, width: int) -> str:
    text = ""
    for _ in range(width):
        number, digit = divmod(number, len(letters))
        text = letters[digit] + text
    return text


def identifiers(letters: str, width: int, bits: int) -> st.SearchStrategy[str]:
    return st.integers(0, 2**bits - 1).map(lambda number: in_base(number, letters, width))


def from_base(letters: str) -> Callable[[str], list[int]]:
    return lambda text: [letters.index(letter) for letter in text]


ASCENDING = [
    Kind("natural", Natural(99_999), st.integers(0, 99_999) | st.integers(0, 200)),
    Kind("odd natural", Natural(360), st.integers(0, 360)),
    Kind("wide natural", Natural(10**40), st.integers(0, 10**40)),
    Kind("integer", Integer(-99_999, 99_999), st.integers(-99_999, 99_999) | st.integers(-11, 11)),
    Kind("lopsided integer", Integer(-7, 1_000), st.integers(-7, 1_000)),
    Kind("negative integer", Integer(-500, -3), st.integers(-500, -3)),
    Kind("fixed point", FixedPoint(99_999, 2), st.decimals(0, 99_999, places=2)),
    Kind("fixed point, no places", FixedPoint(150, 0), st.decimals(0, 150, places=0)),
    Kind("fraction", FixedPoint(Decimal("0.5"), 3), st.decimals(0, Decimal("0.5"), places=3)),
    Kind(
        "signed fixed point",
        FixedPoint(999, 2, signed=True),
        st.decimals(-999, 999, places=2) | st.decimals(-1, 1, places=2),
    ),
    Kind(
        "long fixed point",
        FixedPoint(10**40, 30, signed=True),
        st.integers(-(10**70), 10**70).map(lambda n: Decimal((n < 0, points_of(n), -30))),
    ),
    Kind("float", Float(), numbers),
    Kind("instant", Instant(), instants, since_epoch),
    Kind(
        "instant in milliseconds",
        Instant("milliseconds"),
        instants.map(lambda value: floored(value, 1_000)),
        since_epoch,
    ),
    Kind(
        "instant in seconds",
        Instant("seconds"),
        instants.map(lambda value: floored(value, 1_000_000)),
        since_epoch,
    ),
    Kind(
        "epoch instant",
        EpochInstant("microseconds"),
        instants.filter(lambda value: since_epoch(value) >= 0),
        since_epoch,
    ),
    Kind(
        "epoch instant in ten digits",
        EpochInstant("seconds", 10),
        st.integers(0, 10**10 - 1).map(lambda n: datetime(1970, 1, 1, tzinfo=UTC) + n * SECOND),
        since_epoch,
    ),
    Kind(
        "written instant",
        Written("%Y-%m-%dT%H:%M:%S+00:00"),
        instants.map(lambda value: floored(value, 1_000_000)),
        since_epoch,
    ),
    Kind("instant without punctuation", Written("%Y%m%d%H%M%S%f"), instants, since_epoch),
    Kind("written day", Written("%Y/%m/%d", day=True), st.dates()),
    Kind("day", Day(), st.dates()),
    Kind("time of day", TimeOfDay(), st.times()),
    Kind("span", Span(), st.timedeltas() | st.timedeltas(timedelta(-1), timedelta(1))),
    Kind("text", Text(), texts, points),
    Kind("text in upper case", Text("upper"), texts, lambda v: points(v.upper()), str.upper),
    Kind("text in lower case", Text("lower"), texts, lambda v: points(lower(v)), lower),
    Kind("folded text", Text("casefold"), texts, lambda v: points(v.casefold()), str.casefold),
    Kind("choice", Choice(tuple(Size)), st.sampled_from(Size), list(Size).index),
    Kind(
        "long choice", Choice(tuple("zyxwvutsrqp #")), st.sampled_from("zyxwvutsrqp #"),
        "zyxwvutsrqp #".index,
    ),
    Kind("flag", Flag(), st.booleans()),
    Kind("bytes", Hex(), st.binary(max_size=4), list),
    Kind("ksuid", Ksuid(), identifiers(KSUID_LETTERS, 27, 160).map(KSUID), from_base(KSUID_LETTERS)),
    Kind("ulid", Ulid(), identifiers(ULID_LETTERS, 26, 128).map(ULID), from_base(ULID_LETTERS)),
    Kind("uuid", Uuid(), st.uuids() | st.integers(0, 3).map(lambda n: UUID(int=n))),
]  # fmt: skip

RAW = [
    Kind("raw text", RawText(), texts, points),
    Kind("raw text in upper case", RawText("upper"), texts, lambda v: points(v.upper()), str.upper),
]


def points_of(number: int) -> list[int]:
    return [int(digit) for digit in str(abs(number))]


def reversed_kind(kind: Kind) -> Kind:
    return Kind(
        f"{kind.name}, descending", kind.codec.descending(), kind.values, kind.meaning,
        kind.returned,
    )  # fmt: skip


DELIMITED = [*ASCENDING, *map(reversed_kind, ASCENDING)]
KINDS = [*DELIMITED, *RAW, *map(reversed_kind, RAW)]


def order(left: Any, right: Any) -> int:
    return (left > right) - (left < right)


def utf8(text: str) -> bytes:
    return text.encode()
