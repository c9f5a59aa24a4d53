"""Reads and writes the part of text Ion that DynamoDB items need: between Ion and DynamoDB JSON.

    S  "text"      N  103. 6d2 1.5      B  {{aGVsbG8=}}      BOOL  true      NULL  null
    SS, NS, BS     $dynamodb_SS::["a","b"]                   L  [ … ]        M  { name:value }

The reader takes what the format allows beyond what the service writes: comments, whitespace, version markers, long
strings, integers in any base, floats, clobs. It refuses symbols and timestamps as values, which no item can
have, and binary Ion. Every failure is an `IonError`; text that stops in the middle of a value is an `IonIncomplete`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

MARKER: Final = "$ion_1_0"
BINARY_MARKER: Final = b"\xe0\x01\x00\xea"

_DEEPEST: Final = 100  # nested containers; an item may have 32 levels


class IonError(ValueError):
    """Text that is not Ion, or a value that no item can have."""


class IonIncomplete(IonError):
    """The text ends inside a value."""


# Write

_quote: Final[Callable[[str], bytes]] = msgspec.json.Encoder().encode
_is_bare: Final = re.compile(r"(?!(?:null|true|false|nan)\Z)[A-Za-z_][A-Za-z0-9_]*\Z").match


def struct_of(members: Mapping[str, Mapping[str, Any]]) -> str:
    """The members of an item or a map as an Ion struct."""
    fields = (f"{_name(name)}:{_value(value)}" for name, value in members.items())
    return f"{{{','.join(fields)}}}"


def _name(name: str) -> str:
    if _is_bare(name):
        return name
    inner = _quote(name).decode()[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{inner}'"


def _value(value: Mapping[str, Any]) -> str:
    ((kind, content),) = value.items()
    return _WRITE[kind](content)


def _text(content: str) -> str:
    return _quote(content).decode()


def _number(content: str) -> str:
    if "." in content:
        return content
    digits = content.rstrip("0")
    zeros = len(content) - len(digits)
    # Like the service, which writes 600 as 6d2: a decimal without trailing zeros.
    return f"{digits}d{zeros}" if zeros and digits.lstrip("-") else f"{content}."


def _blob(content: str) -> str:
    return f"{{{{{content}}}}}"


def _list(content: list[Mapping[str, Any]]) -> str:
    return f"[{','.join(map(_value, content))}]"


def _set(kind: str, member: Callable[[str], str]) -> Callable[[list[str]], str]:
    return lambda content: f"$dynamodb_{kind}::[{','.join(map(member, content))}]"


_WRITE: Final[dict[str, Callable[[Any], str]]] = {
    "S": _text,
    "N": _number,
    "B": _blob,
    "BOOL": lambda content: "true" if content else "false",
    "NULL": lambda _: "null",
    "SS": _set("SS", _text),
    "NS": _set("NS", _number),
    "BS": _set("BS", _blob),
    "L": _list,
    "M": struct_of,
}


# Read

# Quantifiers are possessive and a comment ends at its first `*/`, so that no text is matched in two ways.
_BLANK: Final = r"(?:[ \t\r\n\f\v]|//[^\n]*(?:\n|\Z)|(?>/\*.*?\*/))*+"
_SHORT: Final = r'"(?:[^"\\\n]|\\(?:\r\n|.))*+'
_QUOTED: Final = r"'(?!'')(?:[^'\\\n]|\\(?:\r\n|.))*+"
_LONG: Final = r"'''(?:[^'\\]|\\.|'(?!''))*+"
_SPACE: Final = re.compile(_BLANK, re.DOTALL)
_LONG_PART: Final = re.compile(rf"({_LONG})'''{_BLANK}", re.DOTALL)
_TOKEN: Final = re.compile(
    rf"""
      (?P<long>{_LONG}'''(?:{_BLANK}{_LONG}''')*)
    | (?P<string>{_SHORT}")
    | (?P<quoted>{_QUOTED}')
    | (?P<lob>\{{\{{(?:[^}}"']*+|\s*+{_SHORT}"\s*+|\s*+(?:{_LONG}'''\s*+)+)\}}\}})
    | (?P<null>null(?:\.[a-z]+)?(?![A-Za-z0-9_$]))
    | (?P<bool>(?:true|false)(?![A-Za-z0-9_$]))
    | (?P<number>-?(?:0[xX][0-9a-fA-F]+(?:_[0-9a-fA-F]+)*|0[bB][01]+(?:_[01]+)*
        |[0-9][0-9_]*(?:\.[0-9_]*)?(?:[dDeE][+-]?[0-9]+)?)(?![A-Za-z0-9_$:-]))
    | (?P<symbol>[A-Za-z_$][A-Za-z0-9_$]*)
    | (?P<mark>::|\{{(?!\{{)|[][}},:()])
    """,
    re.VERBOSE | re.DOTALL,
)
# What may be closed by text that follows. A short string is not: a raw line break ends it.
_UNCLOSED: Final = re.compile(
    rf"""'''|/\*|/?\Z|(?:{_SHORT}|{_QUOTED})\\?\Z
    |\{{\{{(?:[^}}"']*+|\s*+{_SHORT}(?:"\s*+)?|\s*+(?:{_LONG}'''\s*+)*(?:{_LONG})?)\\?\}}?\Z""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES: Final = re.compile(
    r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|\r\n|.)", re.DOTALL
)
_ESCAPED: Final = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", "v": "\v",
    "?": "?", '"': '"', "'": "'", "/": "/", "\\": "\\", "\n": "", "\r\n": "", "\r": "",
}  # fmt: skip


def values_in(text: str) -> list[dict[str, Any]]:
    """The values in a text, in DynamoDB JSON: `{"M": …}` for each struct. Version markers are skipped.

    >>> values_in("$ion_1_0 {id:7., tags:$dynamodb_SS::['''a''']}")
    [{'M': {'id': {'N': '7.'}, 'tags': {'SS': ['a']}}}]
    """
    return list(_IonReader(text))


class _IonReader:
    """Reads the values of a text one after the other."""

    __slots__ = ("_end", "_kind", "_text", "_token")

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._kind: str | None = None
        self._token = ""

    def __iter__(self) -> Any:
        self._next()
        while self._kind is not None:
            if self._kind == "symbol" and self._token == MARKER:
                self._next()
                continue
            yield self._value(0)

    def _next(self) -> None:
        """Read the next token; at the end of the text its kind is None."""
        blank = _SPACE.match(self._text, self._end)
        start = self._end if blank is None else blank.end()
        if start == len(self._text):
            self._kind, self._token = None, ""
            return
        found = _TOKEN.match(self._text, start)
        if found is None:
            if _UNCLOSED.match(self._text, start):
                raise IonIncomplete(f"the text ends inside {self._text[start : start + 20]!r}")
            raise IonError(f"{self._text[start : start + 20]!r} is not Ion")
        self._kind, self._token, self._end = found.lastgroup, found[0], found.end()

    def _value(self, depth: int) -> dict[str, Any]:
        annotation = self._annotation()
        if depth > _DEEPEST:
            raise IonError("the values are nested too deeply")
        kind, token = self._kind, self._token
        if kind is None:
            raise IonIncomplete("the text ends where a value is expected")
        if token == "{":
            return {"M": self._struct(depth)}
        if token == "[":
            return self._sequence(annotation, depth)
        read = _READ.get(kind)
        if read is None:
            raise IonError(f"{token[:20]!r} is not a value of an item")
        value = read(token)
        self._next()
        return value

    def _annotation(self) -> str:
        """Read the annotations before a value; returns the last one."""
        found = ""
        while self._kind in ("symbol", "quoted"):
            token, end = self._token, self._end
            self._next()
            if self._token != "::":
                self._kind, self._token, self._end = "symbol", token, end
                break
            found = token
            self._next()
        return found

    def _struct(self, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        self._next()
        while self._token != "}" or self._kind != "mark":
            name = _field_name(self._kind, self._token)
            self._next()
            self._expect(":")
            members[name] = self._value(depth + 1)
            self._separate("}")
        self._next()
        return members

    def _sequence(self, annotation: str, depth: int) -> dict[str, Any]:
        elements: list[dict[str, Any]] = []
        self._next()
        while self._token != "]" or self._kind != "mark":
            elements.append(self._value(depth + 1))
            self._separate("]")
        self._next()
        kind = annotation.strip("'").removeprefix("$dynamodb_")
        if kind not in ("SS", "NS", "BS"):
            return {"L": elements}
        if any(kind[0] not in element for element in elements):
            raise IonError(f"a set {annotation} has a member of another type")
        return {kind: [element[kind[0]] for element in elements]}

    def _expect(self, mark: str) -> None:
        if self._token != mark:
            if self._kind is None:
                raise IonIncomplete(f"the text ends where {mark!r} is expected")
            raise IonError(f"{self._token[:20]!r} where {mark!r} is expected")
        self._next()

    def _separate(self, end: str) -> None:
        if self._token != end:
            self._expect(",")


def _field_name(kind: str | None, token: str) -> str:
    if kind is None:
        raise IonIncomplete("the text ends inside a struct")
    if kind == "symbol":
        return token
    if kind == "quoted" or kind == "string":
        return _joined(_unescaped(token[1:-1]))
    if kind == "long":
        return _long_text(token)
    raise IonError(f"{token[:20]!r} is not the name of a field")


def _unescaped(text: str) -> str:
    return _ESCAPES.sub(_escape, text) if "\\" in text else text


def _escape(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        try:
            return chr(int(code[1:], 16))
        except ValueError:
            raise IonError(f"'\\{code}' is not a character: the last is \\U0010FFFF") from None
    if code not in _ESCAPED:
        raise IonError(f"'\\{code}' is not an escape of Ion")
    return _ESCAPED[code]


def _string(token: str) -> dict[str, Any]:
    return {"S": _joined(_unescaped(token[1:-1]))}


def _long_text(token: str) -> str:
    return _joined("".join(_unescaped(part[3:]) for part in _LONG_PART.findall(token)))


def _joined(text: str) -> str:
    """The text with each pair of escaped surrogates joined into one character."""
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise IonError("a text has half a surrogate pair") from None


def _read_number(token: str) -> dict[str, Any]:
    digits = token.replace("_", "")
    if digits.lstrip("-")[:2].lower() in ("0x", "0b"):
        try:
            return {"N": str(int(digits, 0))}
        except ValueError:  # Python refuses thousands of digits
            raise IonError(f"{token[:20]!r}… has more digits than a number") from None
    return {"N": digits.replace("d", "E").replace("D", "E")}


def _lob(token: str) -> dict[str, Any]:
    inner = token[2:-2].strip()
    if inner[:1] in ("'", '"'):
        text = _long_text(inner) if inner.startswith("'''") else _unescaped(inner[1:-1])
        try:
            return {"B": base64.b64encode(text.encode("latin-1")).decode()}
        except UnicodeEncodeError:
            raise IonError("a clob has a character that is not a byte") from None
    packed = "".join(inner.split())
    try:
        base64.b64decode(packed, validate=True)
    except ValueError:
        raise IonError("a blob is not base64") from None
    return {"B": packed}


_READ: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "string": _string,
    "long": lambda token: {"S": _long_text(token)},
    "number": _read_number,
    "bool": lambda token: {"BOOL": token == "true"},
    "null": lambda _: {"NULL": True},
    "lob": _lob,
}
