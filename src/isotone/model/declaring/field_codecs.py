"""`Codec`: fields whose values a program encodes itself, such as compressed or encrypted ones.

DynamoDB sees only the encoded value. It can test equality if equal values are encoded alike, and order if the encoded
values sort like the values.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar, get_origin

from isotone.errors import MalformedKey, UsageError
from isotone.model.declaring.wire_types import (
    WireType,
    is_optional,
    optional_type,
    present_type,
    simplest,
)
from isotone.values.json import to_wire
from isotone.values.types import AttributeValue

T = TypeVar("T")
W = TypeVar("W", bound=str | bytes | int | Decimal)


class Codec(Generic[T, W]):
    """How a field's values are stored: `encode` returns a str, bytes, an int or a Decimal; `decode` reads it.

    `deterministic=False`: equal values may be encoded differently, as by an encryption with a nonce, so they cannot
    be compared in the database. `ordered=True`: the encoded values sort like the values, so that they can be
    compared by order; a codec to a str can then be a part of a key. Neither function is called for None.

    >>> import zlib
    >>> text = Codec(lambda text: zlib.compress(text.encode()), lambda raw: zlib.decompress(raw).decode())
    >>> text.decode(text.encode("to be"))
    'to be'
    """

    __slots__ = ("decode", "deterministic", "encode", "ordered")

    def __init__(
        self,
        encode: Callable[[T], W],
        decode: Callable[[W], T],
        *,
        deterministic: bool = True,
        ordered: bool = False,
    ) -> None:
        if ordered and not deterministic:
            raise UsageError(
                "ordered=True needs a codec that encodes equal values alike; leave out ordered=True or deterministic=False"
            )
        self.encode: Callable[[T], W] = encode
        self.decode: Callable[[W], T] = decode
        self.deterministic: bool = deterministic
        self.ordered: bool = ordered

    def __repr__(self) -> str:
        name = getattr(self.encode, "__qualname__", repr(self.encode))
        return f"<codec by {name}>"

    def text_of(self, value: T) -> str:
        """The encoded form of a value in a key."""
        text = self._encoded(value)
        if not isinstance(text, str):
            raise UsageError(
                f"{self!r} encodes as {type(text).__name__}; in a key, it must be a str"
            )
        return text

    def value_of(self, text: str) -> T:
        """The value of a key's text; raises `MalformedKey`."""
        try:
            decode: Callable[[Any], T] = self.decode
            value = decode(text)
        except Exception as error:
            raise MalformedKey(f"{text!r} cannot be decoded: {error!r}") from error
        return value

    def to_wire(self, value: T) -> AttributeValue:
        """The stored form of a value; raises `UsageError` if it cannot be encoded."""
        return to_wire(self._encoded(value))

    def from_wire(self, value: AttributeValue) -> T:
        """The value of a stored form; raises whatever `decode` raises."""
        decoded: T = self.decode(simplest(value))
        return decoded

    def _encoded(self, value: T) -> Any:
        try:
            encoded = self.encode(value)
        except Exception as error:
            raise UsageError(f"a {type(value).__name__} cannot be encoded: {error!r}") from error
        if not isinstance(encoded, _STORED) or isinstance(encoded, bool):
            raise UsageError(
                f"{self!r} returned a {type(encoded).__name__}; return a str, bytes, an int or a Decimal"
            )
        return encoded


_STORED: Final = (str, bytes, int, Decimal)
_SETS: Final[dict[Any, type]] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: frozenset,
    collections.abc.MutableSet: set,
}


def coded_type(annotation: Any, codec: Codec[Any, Any]) -> WireType:
    """The wire type of a field with a codec. An empty set is stored as absence, as without a codec."""
    present = present_type(annotation)
    python = _SETS.get(get_origin(present) or present, object)
    wire = WireType(None, codec.to_wire, codec.from_wire, python=python)
    return optional_type(wire) if is_optional(annotation) else wire
