"""Keys of DynamoDB as the PartitionKey and RowKey of Azure: legal strings in the same order, and readable.

Azure compares keys as strings, character by character. It forbids `/ \\ # ?` and control characters, `%` fails in
some of its calls, and a key has at most 512 UTF-16 characters. Letters, digits and most punctuation stay as they are:

    text      up to U+0024     as in Isotone's readable keys: `#` is `$h`, a space `$_`, `$` is `$s`
              %                $~
              /  ?  \\          .~~  >~~  [~~         the nearest legal character, and `~~`
              U+007F … U+009F  ~~~7f … ~~~9f         likewise, with two hexadecimal digits
              from U+E000      U+D7FF ~~ 00e000 …    likewise, with six
    number    -1200            -495.87~              sign, exponent, digits; a negative number has the complement
              0                0
              1200             p504.12               the exponent counts from 500: 0.12 · 10⁴
    binary    00 ff            00ff                  two hexadecimal digits for each byte

The nearest legal character is `.`, `>`, `[`, `~` or U+D7FF. If such a character stands for itself and is followed by
`~` or a higher character, `~-` is inserted between them, so that such texts sort before the escapes.

From U+E000 on, the order of UTF-16 is not that of UTF-8, which is DynamoDB's. Encoded keys sort alike in both.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Callable
from typing import Final

from isotone.codec.readable import escape
from isotone.errors import MalformedKey, ValidationException
from isotone.values.number import canonical_number
from isotone.values.types import AttributeValue

LONGEST_KEY: Final = 512  # UTF-16 characters

_CODES: Final = {
    **{chr(code): escape(chr(code)) for code in range(ord("%"))},
    "%": "$~",
    "/": ".~~",
    "?": ">~~",
    "\\": "[~~",
    **{chr(code): f"~~~{code:02x}" for code in range(0x7F, 0xA0)},
}
_MEANINGS: Final = {code: character for character, code in _CODES.items()}
_HIGHEST: Final = "\ud7ff"  # of the characters that are not escaped
_GUARD: Final = "~-"

_IS_PLAIN: Final = re.compile("[&-.0->@-[\\]-}]*").fullmatch
_SPECIAL: Final = re.compile(
    "[.>[~\ud7ff](?=[~-\U0010ffff])|[\x00-%/?\\\\\x7f-\x9f\ue000-\U0010ffff]"
)
_TOKEN: Final = re.compile(
    "\\$.|[.>[]~~|~~~[0-9a-f]{2}|\ud7ff~~[0-9a-f]{6}|[.>[~\ud7ff]~-", re.DOTALL
)
_SURROGATES: Final = range(0xD800, 0xE000)

_BIAS: Final = 500
_COMPLEMENT: Final = str.maketrans("0123456789", "9876543210")
_NUMBER: Final = re.compile(r"(p|-)(\d{3})\.(\d+)(~?)")


# Strings


def encode_text(text: str) -> str:
    """A string as a key.

    >>> encode_text("ORDER#2024"), encode_text("a/b.c"), encode_text("100 %")
    ('ORDER$h2024', 'a.~~b.c', '100$_$~')
    """
    return text if _IS_PLAIN(text) else _SPECIAL.sub(_code, text)


def _code(match: re.Match[str]) -> str:
    character = match[0]
    if character in _CODES:
        return _CODES[character]
    if character <= _HIGHEST:
        return character + _GUARD
    return f"{_HIGHEST}~~{ord(character):06x}"


def decode_text(key: str) -> str:
    """The reverse of `encode_text`; raises `MalformedKey` for any other text."""
    text = _TOKEN.sub(_meaning, key)
    if encode_text(text) != key:
        raise _malformed(key, "string")
    return text


def _meaning(match: re.Match[str]) -> str:
    token = match[0]
    if token in _MEANINGS:
        return _MEANINGS[token]
    if token.endswith(_GUARD):
        return token[0]
    code = token[3:]
    return chr(int(code, 16)) if len(code) == 6 and code <= "10ffff" else token


def _text_after(prefix: str) -> str | None:
    """The first string after all strings that begin with a prefix; None if there is none."""
    head = prefix.rstrip("\U0010ffff")
    if not head:
        return None
    following = ord(head[-1]) + 1
    return head[:-1] + chr(_SURROGATES.stop if following in _SURROGATES else following)


# Numbers


def encode_number(number: str) -> str:
    """A number in normal form as a key.

    >>> encode_number("1200"), encode_number("-1200"), encode_number("0.5")
    ('p504.12', '-495.87~', 'p500.5')
    """
    if number == "0":
        return number
    whole, _, fraction = number.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = len(digits) - len(fraction)
    text = f"{_BIAS + exponent}.{digits.rstrip('0')}"
    return f"-{text.translate(_COMPLEMENT)}~" if number[0] == "-" else f"p{text}"


def decode_number(key: str) -> str:
    """The reverse of `encode_number`; raises `MalformedKey` for any other text."""
    if key == "0":
        return key
    match = _NUMBER.fullmatch(key)
    try:
        if match is not None:
            exponent, digits = match[2], match[3]
            if match[1] == "-":
                exponent, digits = exponent.translate(_COMPLEMENT), digits.translate(_COMPLEMENT)
            sign = match[1].strip("p")
            number = canonical_number(f"{sign}0.{digits}e{int(exponent) - _BIAS}")
            if encode_number(number) == key:
                return number
    except ValidationException:  # outside the range of DynamoDB's numbers
        pass
    raise _malformed(key, "number")


# Binary


def _encode_base64(base64: str) -> str:
    return a2b_base64(base64).hex()


def _decode_hex(key: str) -> str:
    try:
        raw = bytes.fromhex(key)
    except ValueError:
        raise _malformed(key, "binary value") from None
    if raw.hex() != key:
        raise _malformed(key, "binary value")
    return b64encode(raw).decode()


def _malformed(key: str, what: str) -> MalformedKey:
    return MalformedKey(f"the key {key!r} is not a {what} in the form in which Isotone writes it")


# Attribute values

_ENCODERS: Final[dict[str, Callable[[str], str]]] = {
    "S": encode_text,
    "N": encode_number,
    "B": _encode_base64,
}
_DECODERS: Final[dict[str, Callable[[str], str]]] = {
    "S": decode_text,
    "N": decode_number,
    "B": _decode_hex,
}


def encode(value: AttributeValue) -> str:
    """The key of a key attribute's value, in normal form."""
    ((code, content),) = value.items()
    return _ENCODERS[code](content)


def decode(key: str, code: str) -> AttributeValue:
    """The value of type `code` that a key encodes. Raises `MalformedKey` for any other text."""
    return {code: _DECODERS[code](key)}


def prefix_range(value: AttributeValue) -> tuple[str, str | None]:
    """The range `low <= key < high` of all values that begin with this one; a high of None is the end."""
    ((code, content),) = value.items()
    low = _ENCODERS[code](content)
    if code == "S":
        following = _text_after(content)
        return low, None if following is None else encode_text(following)
    head = a2b_base64(content).rstrip(b"\xff")
    return low, (head[:-1] + bytes((head[-1] + 1,))).hex() if head else None


def length(key: str) -> int:
    """The length of a key as Azure counts it: in UTF-16 characters."""
    return len(key) if key.isascii() else len(key.encode("utf-16-le")) // 2
