"""Makes new ids that sort in the order of their creation: KSUID, ULID and UUIDv7.

    id       tick            random    text
    KSUID    a second        128 bits  27 characters of base 62
    ULID     a millisecond    80 bits  26 characters of Crockford's base 32
    UUIDv7   a millisecond    74 bits  36 characters of base 16

An id is one number: the tick in its upper bits, random bits below. The first id of a tick takes new random bits from
the operating system. Each following id is the previous number plus one, even while the clock stands still or has
stepped back. So the number may run ahead into the next tick, but never decreases.

Generators are thread-safe. A forked child starts from new random bits, so it repeats none of its parent's
ids.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from threading import Lock
from typing import Any, Final, Generic, Self, TypeVar
from uuid import UUID

from isotone.clock import Clock, ManualClock, SystemClock
from isotone.errors import MalformedKey, OutOfRange, UsageError

_KSUID_EPOCH: Final = 1_400_000_000  # 13 May 2014, the first second of a KSUID
_SYSTEM: Final = SystemClock()


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The digits of a base in ascending order, for numbers of one width.

    Texts of one width sort as their numbers do.
    """

    characters: str
    width: int
    bits: int
    greatest: str = field(init=False, repr=False, compare=False)
    _values: dict[str, int] = field(init=False, repr=False, compare=False)
    _reversal: dict[int, int] = field(init=False, repr=False, compare=False)
    _next: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        digits = self.characters
        values = {character: value for value, character in enumerate(digits)}
        object.__setattr__(self, "_values", values)
        object.__setattr__(self, "_reversal", str.maketrans(digits, digits[::-1]))
        object.__setattr__(self, "_next", dict(pairwise(digits)))
        object.__setattr__(self, "greatest", self.text((1 << self.bits) - 1))

    def text(self, number: int) -> str:
        """The number in this alphabet, padded to the width."""
        base, digits = len(self.characters), []
        for _ in range(self.width):
            number, digit = divmod(number, base)
            digits.append(self.characters[digit])
        return "".join(reversed(digits))

    def holds(self, text: str) -> bool:
        """Whether the text is a number of this width and of at most this many bits."""
        return (
            len(text) == self.width and self._values.keys() >= set(text) and text <= self.greatest
        )

    def number(self, text: str) -> int:
        """The number of a text for which `holds` is true."""
        number, base = 0, len(self.characters)
        for character in text:
            number = number * base + self._values[character]
        return number

    def moved(self, text: str, by: int) -> str | None:
        """The text of the number plus `by`; None if that is below zero or above the greatest number."""
        number = self.number(text) + by
        return None if number < 0 or number >> self.bits else self.text(number)

    def reversed(self, text: str) -> str:
        """The text with each digit replaced by its difference from the greatest digit. Its own inverse."""
        return text.translate(self._reversal)

    def successor(self, text: str) -> str | None:
        """The text of the next number if only the last digit differs, else None. Faster than `moved`."""
        digit = self._next.get(text[-1])
        return None if digit is None else text[:-1] + digit


_DIGITS = "0123456789"
_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

BASE62 = Alphabet(_DIGITS + _UPPER + _UPPER.lower(), width=27, bits=160)
CROCKFORD = Alphabet("0123456789ABCDEFGHJKMNPQRSTVWXYZ", width=26, bits=128)
BASE16 = Alphabet("0123456789abcdef", width=32, bits=128)


class _Id(str):
    """A string that is a valid id of its kind."""

    __slots__ = ()

    _alphabet: Alphabet
    _random_bits: int
    _ticks: int
    _epoch: int

    def __new__(cls, text: str) -> Self:
        if isinstance(text, cls):
            return text
        if not (isinstance(text, str) and cls._alphabet.holds(text)):
            raise MalformedKey(
                f"{text!r} is not a {cls.__name__}, which has {cls._alphabet.width} characters of "
                f"{cls._alphabet.characters} and is at most {cls._alphabet.greatest}"
            )
        return str.__new__(cls, text)

    @property
    def time(self) -> datetime:
        """When the id was made, rounded down to its tick; raises `OutOfRange` after the year 9999."""
        tick = self._alphabet.number(self) >> self._random_bits
        return _instant(self, self._epoch * self._ticks + tick, self._ticks)

    @classmethod
    def first(cls, at: datetime) -> Self:
        """The least id of the tick that contains a time; raises `OutOfRange` if no id can represent the time."""
        return cls._of(_least(cls, at), at)

    @classmethod
    def last(cls, at: datetime) -> Self:
        """The greatest id of the tick that contains a time; raises as `first` does."""
        return cls._of(_least(cls, at) | (1 << cls._random_bits) - 1, at)

    @classmethod
    def _of(cls, number: int, at: datetime) -> Self:
        if number < 0 or number >> cls._alphabet.bits:
            raise OutOfRange(
                f"{at.isoformat()} is outside the range of times that a {cls.__name__} can hold"
            )
        return str.__new__(cls, cls._alphabet.text(number))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        text = core_schema.str_schema()
        return core_schema.no_info_after_validator_function(cls, text)


class KSUID(_Id):
    """A K-sortable unique id: seconds since 2014 and 128 random bits, 27 characters of base 62.

    >>> KSUID("0ujtsYcgvSTl8PAuAdqWYSMnLOv").time.isoformat()
    '2017-10-10T04:00:47+00:00'
    """

    __slots__ = ()

    _alphabet = BASE62
    _random_bits = 128
    _ticks = 1
    _epoch = _KSUID_EPOCH

    @classmethod
    def new(cls) -> KSUID:
        """The next id of this process, about 1 µs."""
        return _KSUIDS.new()


class ULID(_Id):
    """Milliseconds since 1970 and 80 random bits, 26 characters of Crockford's base 32.

    >>> ULID("01arz3ndektsv4rrffq69g5fav").time.isoformat()
    '2016-07-30T23:54:10.259000+00:00'
    """

    __slots__ = ()

    _alphabet = CROCKFORD
    _random_bits = 80
    _ticks = 1000
    _epoch = 0

    def __new__(cls, text: str) -> Self:
        return super().__new__(cls, text.upper() if type(text) is str else text)

    @classmethod
    def new(cls) -> ULID:
        """The next id of this process, about 1 µs."""
        return _ULIDS.new()


class _Sequence:
    """Increasing numbers: a tick, and random bits below it."""

    __slots__ = ("__weakref__", "_bits", "_clock", "_epoch", "_lock", "_number", "_ticks", "_total")

    def __init__(self, clock: Clock, *, ticks: int, epoch: int, tick_bits: int, bits: int) -> None:
        self._clock = clock
        self._ticks = ticks
        self._epoch = epoch
        self._bits = bits
        self._total = tick_bits + bits
        self._number = -1
        self._lock = Lock()
        _SEQUENCES.add(self)

    def _advance(self) -> int:
        """The next number. The caller holds the lock."""
        now = int((self._clock.now() - self._epoch) * self._ticks)
        floor = now << self._bits
        fresh = floor > self._number or self._number < 0
        number = floor | self._random() if fresh else self._number + 1
        if number >> self._total:  # including negative numbers
            raise OutOfRange(
                f"the clock says {self._clock.now()}, which is outside the range of times that "
                "such an id can hold"
            )
        self._number = number
        return number

    def _random(self) -> int:
        size = (self._bits + 7) // 8
        return int.from_bytes(os.urandom(size)) >> (8 * size - self._bits)

    def restart(self) -> None:
        """Restart in a forked child: above the parent's ids so far, and different from its future ones."""
        self._lock = Lock()
        if self._number >= 0:
            following = (self._number >> self._bits) + 1
            self._number = following << self._bits | self._random()


_SEQUENCES: Final[weakref.WeakSet[_Sequence]] = weakref.WeakSet()


def _restart_all() -> None:
    for sequence in _SEQUENCES:
        sequence.restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_restart_all)

_AnyId = TypeVar("_AnyId", bound=_Id)


class _TextSequence(_Sequence, Generic[_AnyId]):
    """A sequence of ids in the alphabet of their kind."""

    __slots__ = ("_kind", "_text", "_written")

    def __init__(self, kind: type[_AnyId], clock: Clock) -> None:
        bits = kind._random_bits
        tick_bits = kind._alphabet.bits - bits
        super().__init__(
            clock, ticks=kind._ticks, epoch=kind._epoch, tick_bits=tick_bits, bits=bits
        )
        self._kind = kind
        self._text = ""
        self._written = -2

    def new(self) -> _AnyId:
        """The next id, about 1 µs. Raises `OutOfRange` for a time that no id can hold."""
        alphabet = self._kind._alphabet
        with self._lock:
            number = self._advance()
            text = alphabet.successor(self._text) if number == self._written + 1 else None
            self._text = text = text or alphabet.text(number)
            self._written = number
        return str.__new__(self._kind, text)


class Ksuids(_TextSequence[KSUID]):
    """A generator of KSUIDs with its own clock."""

    __slots__ = ()

    def __init__(self, clock: Clock = _SYSTEM) -> None:
        super().__init__(KSUID, clock)


class Ulids(_TextSequence[ULID]):
    """A generator of ULIDs with its own clock."""

    __slots__ = ()

    def __init__(self, clock: Clock = _SYSTEM) -> None:
        super().__init__(ULID, clock)


class Uuid7s(_Sequence):
    """A generator of UUIDs of version 7 with its own clock."""

    __slots__ = ()

    def __init__(self, clock: Clock = _SYSTEM) -> None:
        super().__init__(clock, ticks=1000, epoch=0, tick_bits=48, bits=74)

    def new(self) -> UUID:
        """The next id, about 1.5 µs. Raises `OutOfRange` for a time that no id can hold."""
        with self._lock:
            number = self._advance()
        # 48 bits of time, 4 of version, 12 of the number, 2 of variant, 62 of the number
        upper = (number >> 62) & 0xFFF
        lower = number & 0x3FFF_FFFF_FFFF_FFFF
        return UUID(int=(number >> 74) << 80 | 0x7000 << 64 | upper << 64 | 0b10 << 62 | lower)


_KSUIDS: Final = Ksuids()
_ULIDS: Final = Ulids()
_UUIDS: Final = Uuid7s()


def uuid7() -> UUID:
    """The next UUID of version 7 of this process, about 1.5 µs.

    >>> uuid7() < uuid7()
    True
    """
    return _UUIDS.new()


def new_id(kind: type[Any], clock: Clock) -> Any:
    """The next id of a kind (KSUID, ULID or UUID), made by a clock."""
    used: Any = _SYSTEM if isinstance(clock, SystemClock) else clock
    of: Any = kind
    return _sequence(of, used).new()


def id_at(kind: type[Any], now: float) -> Any:
    """An id of a kind for a time in seconds; it is not in order with other ids of its tick."""
    return _SEQUENCE_OF[kind](ManualClock(now)).new()


def id_with(kind: type[Any], at: datetime, bits: int) -> Any:
    """The id of a kind (KSUID, ULID or UUID) with the tick of a time, and with these as its random bits.

    >>> id_with(ULID, datetime(2026, 1, 1, tzinfo=UTC), 7)
    '01KDVDNA000000000000000007'
    """
    number = _least(kind, at)
    if kind is not UUID:
        return kind._of(number | bits & (1 << kind._random_bits) - 1, at)
    return UUID(int=number | 0x7000 << 64 | 0b10 << 62 | bits & 0x3FFF_FFFF_FFFF_FFFF)


@lru_cache(maxsize=64)
def _sequence(kind: Any, clock: Any) -> Ksuids | Ulids | Uuid7s:
    """The sequence of a clock; the process's own one for the system clock."""
    if clock is _SYSTEM:
        return _OF_PROCESS[kind]
    return _SEQUENCE_OF[kind](clock)


ID_TYPES: Final = frozenset({KSUID, ULID, UUID})
_SEQUENCE_OF: Final[dict[type[Any], Callable[[Clock], Ksuids | Ulids | Uuid7s]]] = {
    KSUID: Ksuids,
    ULID: Ulids,
    UUID: Uuid7s,
}
_OF_PROCESS: Final[dict[type[Any], Ksuids | Ulids | Uuid7s]] = {
    KSUID: _KSUIDS,
    ULID: _ULIDS,
    UUID: _UUIDS,
}


def start_of(kind: type[Any], at: datetime) -> tuple[Any, bool]:
    """The least id of the tick that contains a time. A UUID is one of version 7.

    For a time before all ids of the kind, it is the least id. For a time after them it is the greatest, and the
    second result is False: no id was made since.
    """
    number = _least(kind, at)
    bits = 48 + 80 if kind is UUID else kind._alphabet.bits
    is_reached = number >> bits == 0 or number < 0
    number = max(0, number if is_reached else (1 << bits) - 1)
    if kind is not UUID:
        return str.__new__(kind, kind._alphabet.text(number)), is_reached
    if not is_reached:
        return UUID(int=number), False
    return UUID(int=number | 0x7000 << 64 | 0b10 << 62), True


def _least(kind: type[Any], at: datetime) -> int:
    """The least number of the tick that contains a time; negative for a time before all ids."""
    if at.tzinfo is None:
        raise UsageError(f"{at!r} has no time zone, so it does not identify an instant; give one")
    microseconds = (at - _START) // timedelta(microseconds=1)
    if kind is UUID:
        return microseconds // 1000 << 80
    ticks = microseconds * kind._ticks // 1_000_000 - kind._epoch * kind._ticks
    least: int = ticks << kind._random_bits
    return least


_START: Final = datetime(1970, 1, 1, tzinfo=UTC)


def time_of(id: KSUID | ULID | UUID) -> datetime:  # noqa: A002
    """When an id was made, rounded down: a KSUID to the second, the others to the millisecond.

    Raises `MalformedKey` for a UUID of another version, which does not contain a time of this kind, and `OutOfRange`
    for a time after the year 9999.

    >>> time_of(UUID("018bcfe5-6800-7000-8000-000000000000")).isoformat()
    '2023-11-14T22:13:20+00:00'
    """
    if isinstance(id, _Id):
        return id.time
    if isinstance(id, UUID) and id.version == 7:
        return _instant(id, id.int >> 80, 1000)
    raise MalformedKey(f"{id!r} is neither a KSUID, a ULID nor a UUID of version 7")


def _instant(of: KSUID | ULID | UUID | _Id, ticks: int, a_second: int) -> datetime:
    try:
        return _START + timedelta(microseconds=ticks * 1_000_000 // a_second)
    except OverflowError:  # no clock has made it
        raise OutOfRange(
            f"{str(of)!r} has a time after the year 9999, which no datetime can hold"
        ) from None
