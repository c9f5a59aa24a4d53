"""KSUID, ULID and UUID inside a key: fields with such ids at their fixed width, also in descending order.

    Ksuid()    27 characters of base 62             0ujsswThIGTUYm2K8FjOOfXtY1K
    Ulid()     26 characters of Crockford's base 32  01ARZ3NDEKTSV4RRFFQ69G5FAV
    Uuid()     36 characters, lower case            018f3b1e-…

They sort as numbers. Descending, each digit is replaced by its difference from the greatest one of the alphabet. A ULID
may be passed in lower case and is written in upper case.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar
from uuid import UUID

from isotone.codec.ids import BASE16, BASE62, CROCKFORD, KSUID, ULID, Alphabet
from isotone.codec.readable.interface import Directed, malformed, wrong_type
from isotone.errors import MalformedKey, OutOfRange

_Id = TypeVar("_Id", KSUID, ULID)


@dataclass(frozen=True, slots=True)
class Ksuid(Directed):
    """A KSUID, as the class or as any string of its form.

    >>> Ksuid().encode("0ujsswThIGTUYm2K8FjOOfXtY1K")
    '0ujsswThIGTUYm2K8FjOOfXtY1K'
    """

    width: ClassVar[int] = BASE62.width

    def encode(self, value: str) -> str:
        text = str(_valid(KSUID, value))
        return text if self.ascending else BASE62.reversed(text)

    def decode(self, text: str) -> KSUID:
        plain = text if self.ascending else BASE62.reversed(text)
        if not BASE62.holds(plain):
            raise malformed(text, "a KSUID")
        return KSUID(plain)

    def before(self, value: str) -> KSUID | None:
        text = BASE62.moved(value, -1)
        return None if text is None else KSUID(text)

    def after(self, value: str) -> KSUID | None:
        text = BASE62.moved(value, 1)
        return None if text is None else KSUID(text)

    def samples(self) -> tuple[str, ...]:
        return _samples(BASE62, self.ascending)


@dataclass(frozen=True, slots=True)
class Ulid(Directed):
    """A ULID, as the class or as any string of its form.

    >>> Ulid().encode("01arz3ndektsv4rrffq69g5fav")
    '01ARZ3NDEKTSV4RRFFQ69G5FAV'
    """

    width: ClassVar[int] = CROCKFORD.width

    def encode(self, value: str) -> str:
        text = str(_valid(ULID, value))
        return text if self.ascending else CROCKFORD.reversed(text)

    def decode(self, text: str) -> ULID:
        plain = text if self.ascending else CROCKFORD.reversed(text)
        if not CROCKFORD.holds(plain):
            raise malformed(text, "a ULID in upper case")
        return ULID(plain)

    def before(self, value: str) -> ULID | None:
        text = CROCKFORD.moved(ULID(value), -1)
        return None if text is None else ULID(text)

    def after(self, value: str) -> ULID | None:
        text = CROCKFORD.moved(ULID(value), 1)
        return None if text is None else ULID(text)

    def samples(self) -> tuple[str, ...]:
        return _samples(CROCKFORD, self.ascending)


@dataclass(frozen=True, slots=True)
class Uuid(Directed):
    """A UUID of any version; version 7 sorts by time.

    >>> Uuid().encode(UUID("018F3B1E-9F00-7000-8000-000000000001"))
    '018f3b1e-9f00-7000-8000-000000000001'
    """

    width: ClassVar[int] = 36

    def encode(self, value: UUID) -> str:
        if not isinstance(value, UUID):
            raise wrong_type(value, "UUID")
        text = str(value)
        return text if self.ascending else BASE16.reversed(text)

    def decode(self, text: str) -> UUID:
        plain = text if self.ascending else BASE16.reversed(text)
        try:
            value = UUID(plain)
        except ValueError:
            value = None
        if value is None or str(value) != plain:
            raise malformed(text, "a UUID of 36 characters in lower case")
        return value

    def before(self, value: UUID) -> UUID | None:
        return UUID(int=value.int - 1) if value.int else None

    def after(self, value: UUID) -> UUID | None:
        following = value.int + 1
        return None if following >> 128 else UUID(int=following)

    def samples(self) -> tuple[str, ...]:
        return tuple(self.encode(UUID(int=number)) for number in (0, 1 << 64, (1 << 128) - 1))


def _valid(kind: type[_Id], value: str) -> _Id:
    if isinstance(value, kind):
        return value
    if not isinstance(value, str):
        raise wrong_type(value, kind.__name__)
    try:
        return kind(value)
    except MalformedKey as error:
        raise OutOfRange(str(error)) from None


def _samples(alphabet: Alphabet, ascending: bool) -> tuple[str, ...]:
    texts = (alphabet.text(0), alphabet.text(1 << 100), alphabet.greatest)
    return texts if ascending else tuple(map(alphabet.reversed, texts))
