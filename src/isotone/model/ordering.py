"""Encodes numbers and texts as text that sorts like them, for keys that a program builds itself.

A number in a declared key has a declared width. Scores have none, so this writes DynamoDB's whole range:
all Decimals of up to 38 digits, from -9.99…E+125 to 9.99…E+125, exactly.

    >>> ordered_number(Decimal("-1234.5")) < ordered_number(Decimal(5)) < ordered_number(Decimal(10))
    True
    >>> number_of(ordered_number(Decimal("1234.5")))
    Decimal('1234.5')

The text is the form of the engine's own keys (docs/design/format.md) in hexadecimal. No such text is a
prefix of another, so any text may follow. `escape` writes texts in keys without any character up to `#`.
"""

from __future__ import annotations

from decimal import Decimal

from isotone import codec
from isotone.codec.readable import escape, unescape
from isotone.errors import MalformedKey
from isotone.values.number import canonical_number

__all__ = ["escape", "number_of", "ordered_number", "unescape"]


def ordered_number(number: Decimal | int) -> str:
    """The number as text that sorts by value; raises `ValidationException` beyond DynamoDB's range."""
    return codec.encode_number(canonical_number(str(number))).hex()


def number_of(text: str) -> Decimal:
    """The number in a text from `ordered_number`; raises `MalformedKey` for any other text."""
    try:
        return Decimal(codec.decode_number(bytes.fromhex(text)))
    except (MalformedKey, ValueError):
        raise MalformedKey(f"{text!r} is not a number as ordered_number writes it") from None
