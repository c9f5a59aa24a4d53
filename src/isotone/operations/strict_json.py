"""SerializationException of SearchVectors: its stricter JSON decoder reports nulls and wrong types with line and column.

The service reads requests of this action with a separate decoder. It takes the members in written order: the first that
does not fit is the error, with its column in bytes. Missing members come last, ordered by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NoReturn

import msgspec

from isotone.errors import ApiError, SerializationException, ValidationException
from isotone.operations.request_grammar import ListShape, Mapping, Scalar, Shape, StructureShape

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_SCALARS: Final = {"String": "a string", "Integer": "i32", "Boolean": "a boolean"}
_OF_TYPE: Final = {
    **dict.fromkeys(("S", "N", "B"), "a string"),
    **dict.fromkeys(("BOOL", "NULL"), "a boolean"),
    **dict.fromkeys(("SS", "NS", "BS", "L"), "a sequence"),
    "M": "a map",
}
"""The content of each type of attribute value, by its name."""
_TYPES: Final = (
    "`B`, `BOOL`, `BS`, `DECIMAL`, `DECIMALSET`, `DOUBLE`, `DOUBLESET`, `INT`, `INTSET`, "
    "`L`, `M`, `N`, `NS`, `NULL`, `S`, `SS`"
)
_KINDS: Final = {
    "{": "map",
    "[": "sequence",
    '"': "string",
    "n": "null",
    "t": "boolean",
    "f": "boolean",
}
_I32: Final = range(-(2**31), 2**31)


def check(body: bytes, shape: StructureShape) -> None:
    """Raise the error of a body that is JSON, but not a valid request. O(length)."""
    _JsonCursor(body).read(shape)


class _JsonCursor:
    """A cursor over the tokens of well-formed JSON."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._tokens = list(_TOKEN.finditer(body))
        self._at = 0

    @property
    def _token(self) -> str:
        return self._tokens[self._at][0].decode()

    def read(self, shape: Shape) -> None:
        """Take a value of a shape."""
        match shape:
            case Scalar():
                self._expect(_SCALARS[shape.java])
                self._at += 1
            case ListShape():
                for _ in self._elements():
                    self.read(shape.member)
            case Mapping():
                for _ in self._members():
                    self.read(shape.value)
            case StructureShape():
                self._record(shape)
            case _:
                self._attribute_value()

    def _record(self, shape: StructureShape) -> None:
        seen: set[str] = set()
        for name in self._members():
            member = shape.members.get(name)
            if name in seen and member is not None:
                self._refuse(SerializationException, f"duplicate field `{name}`", self._at - 2)
            seen.add(name)
            if member is None or (self._token == "null" and not member.required):
                self._skip()
            else:
                self.read(member.shape)
        missing = sorted(
            member.name
            for member in shape.members.values()
            if member.required and member.name not in seen
        )
        if missing:
            self._refuse(ValidationException, f"missing field `{missing[0]}`", self._at - 1)

    def _attribute_value(self) -> None:
        if self._token != "{":
            raise SerializationException
        names = 0
        for name in self._members():
            names += 1
            if name not in _OF_TYPE:
                wrong = f"unknown variant `{name}`, expected one of {_TYPES}"
                self._refuse(ValidationException, wrong, self._at - 2)
            self._expect(_OF_TYPE[name])
            self._skip()
        if names != 1:
            raise SerializationException

    def _elements(self) -> Iterator[None]:
        self._expect("a sequence")
        self._at += 1
        while self._token != "]":
            yield
            self._at += self._token == ","
        self._at += 1

    def _members(self) -> Iterator[str]:
        self._expect("a map")
        self._at += 1
        while self._token != "}":
            name: str = msgspec.json.decode(self._tokens[self._at][0], type=str)
            self._at += 2  # the name, and a colon
            yield name
            self._at += self._token == ","
        self._at += 1

    def _skip(self) -> None:
        """Take any value."""
        depth = 0
        while True:
            depth += (self._token in "{[") - (self._token in "}]")
            self._at += 1
            if not depth:
                return

    def _expect(self, expected: str) -> None:
        """Refuse a value of another type."""
        token = self._token
        kind = _KINDS.get(token[0]) or (
            "integer" if token.lstrip("-").isdigit() else "floating point"
        )
        if kind == "integer" and expected == "i32" and int(token) not in _I32:
            wrong = f"invalid value: integer `{token}`, expected i32"
            self._refuse(ValidationException, wrong, self._at)
        if kind == expected.removeprefix("a ") or (kind, expected) == ("integer", "i32"):
            return
        shown = {"string": f"string {token}", "map": "map", "sequence": "sequence", "null": "null"}
        wrong = f"invalid type: {shown.get(kind, f'{kind} `{token}`')}, expected {expected}"
        self._refuse(SerializationException, wrong, self._at)

    def _refuse(self, error: type[ApiError], wrong: str, at: int) -> NoReturn:
        """Raise an error at the end of a token; for a map or a sequence, at its beginning."""
        token = self._tokens[at]
        end = token.start() if token[0] in (b"{", b"[") else token.end()
        line = self._body.count(b"\n", 0, end) + 1
        column = end - (self._body.rfind(b"\n", 0, end) + 1)
        raise error(f"{wrong} at line {line} column {column}")
