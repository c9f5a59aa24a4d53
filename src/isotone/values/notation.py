"""Items as people write them: parses and prints plain JSON, with DynamoDB JSON for sets and binary values.

    "text"  12.50  true  null  [1, 2]  {"street": "…"}     plain JSON
    {"SS": ["a", "b"]}  {"NS": [1]}  {"B": "aGk="}          sets and binary, in DynamoDB JSON
    {"M": {"S": "x"}}                                       a map that looks like DynamoDB JSON

An object whose only member is named like a DynamoDB type is DynamoDB JSON; every other object is a map. So printed
values parse back to exactly the same values, and items in DynamoDB JSON are accepted. Numbers keep all their digits in
both directions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from isotone.errors import UsageError
from isotone.values.types import AttributeValue, Item

_CODES: Final = frozenset({"S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"})

_HALF: Final = re.compile("\\\\u[dD][89a-fA-F]|[\ud800-\udfff]")  # what may be half of a character


class _Number(str):
    """A JSON number with its original digits."""

    __slots__ = ()


def parse_json(text: str) -> Any:
    """Parse JSON; numbers keep their digits. Raises `UsageError` with the position of an error."""
    try:
        parsed = _DECODER.decode(text)
        if _HALF.search(text):
            _check_text(parsed)
        return parsed
    except UnicodeEncodeError as error:
        raise UsageError(
            f"this JSON has half of a character: {error.object[:60]!r} is not Unicode text"
        ) from None
    except json.JSONDecodeError as error:
        near = text[error.pos : error.pos + 20]
        where = f"at line {error.lineno}, column {error.colno}" + (
            f", near {near!r}" if near else ""
        )
        raise UsageError(f"this is not JSON: {error.msg} {where}") from None
    except RecursionError:
        raise UsageError("this JSON is nested too deeply") from None


def _check_text(parsed: Any) -> None:
    """Raise `UnicodeEncodeError` for a text that cannot be stored: JSON can escape half of a character."""
    if type(parsed) is str:
        parsed.encode()
    elif type(parsed) is dict:
        for name, value in parsed.items():
            _check_text(name)
            _check_text(value)
    elif type(parsed) is list:
        for each in parsed:
            _check_text(each)


def read_item(parsed: Any) -> Item:
    """The item of parsed JSON."""
    if not isinstance(parsed, dict):
        raise UsageError(
            'an item must be a JSON object, such as {"customer": "ann", "total": 12.5}'
        )
    return {name: read_value(value) for name, value in parsed.items()}


def read_value(parsed: Any) -> AttributeValue:
    """The attribute value of parsed JSON."""
    if type(parsed) is dict:
        if len(parsed) == 1 and _CODES.issuperset(parsed):
            ((code, content),) = parsed.items()
            read_typed = _READ_TYPED.get(code)
            return {
                code: _without_numbers(code, content) if read_typed is None else read_typed(content)
            }
        return {"M": read_item(parsed)}
    read = _READ.get(type(parsed))
    if read is not None:
        return read(parsed)
    raise UsageError(f"{parsed!r} has no counterpart in DynamoDB")


def value_text(value: AttributeValue) -> str:
    """A value on one line."""
    ((code, content),) = value.items()
    return _WRITE[code](content)


def item_text(item: Mapping[str, AttributeValue], *, indented: bool = False) -> str:
    """An item as a JSON object: on one line, or with one attribute per line."""
    members = [f"{_quoted(name)}: {value_text(value)}" for name, value in item.items()]
    if indented and members:
        return "{\n" + ",\n".join("  " + member for member in members) + "\n}"
    return "{" + ", ".join(members) + "}"


def literal(word: str) -> AttributeValue:
    """A value typed on a command line: JSON if it parses, text otherwise (`12` is a number, `ann` a text)."""
    if len(word) >= 2 and word[0] == word[-1] == "'":
        return {"S": word[1:-1]}
    try:
        return read_value(parse_json(word))
    except UsageError:
        return {"S": word}


def scalar(word: str, code: str) -> AttributeValue:
    """A value on a command line whose type is known, such as a key; quotes are optional."""
    if len(word) >= 2 and word[0] == word[-1] and word[0] in "'\"":
        word = word[1:-1]
    return {code: word}


def _refuse(constant: str) -> Any:
    raise UsageError(f"{constant} is not JSON, and DynamoDB has no such number")


_DECODER: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_refuse)


def _without_numbers(code: str, content: Any) -> Any:
    """The content of a typed form that has no numbers: `{"S": 5}` may be meant as a map, so it is not made a text."""
    if any(isinstance(each, _Number) for each in (content if type(content) is list else [content])):
        raise UsageError(
            f'{{"{code}": …}} has a JSON number, which the type {code} does not have; put it in quotes, or write '
            f'{{"M": {{"{code}": …}}}} for a map with this member'
        )
    return content


def _numbers(content: Any) -> Any:
    """The content of N or NS: JSON numbers or, as in DynamoDB JSON, strings."""
    if isinstance(content, list):
        return [_numbers(member) for member in content]
    return str(content) if isinstance(content, _Number) else content


def _read_list(content: Any) -> Any:
    return [read_value(element) for element in content] if isinstance(content, list) else content


def _read_map(content: Any) -> Any:
    return read_item(content) if isinstance(content, dict) else content


_READ_TYPED: Final[dict[str, Callable[[Any], Any]]] = {
    "L": _read_list,
    "M": _read_map,
    "N": _numbers,
    "NS": _numbers,
}

_READ: Final[dict[type, Callable[[Any], AttributeValue]]] = {
    str: lambda text: {"S": text},
    _Number: lambda number: {"N": str(number)},
    bool: lambda flag: {"BOOL": flag},
    type(None): lambda _: {"NULL": True},
    list: lambda elements: {"L": _read_list(elements)},
}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _written_list(elements: list[AttributeValue]) -> str:
    return "[" + ", ".join(map(value_text, elements)) + "]"


def _written_map(members: Item) -> str:
    written = item_text(members)
    return '{"M": ' + written + "}" if len(members) == 1 and _CODES.issuperset(members) else written


def _written_set(code: str, write: Callable[[str], str]) -> Callable[[list[str]], str]:
    return lambda members: '{"' + code + '": [' + ", ".join(map(write, members)) + "]}"


_WRITE: Final[dict[str, Callable[[Any], str]]] = {
    "S": _quoted,
    "N": str,
    "B": lambda text: '{"B": ' + _quoted(text) + "}",
    "BOOL": lambda flag: "true" if flag else "false",
    "NULL": lambda _: "null",
    "SS": _written_set("SS", _quoted),
    "NS": _written_set("NS", str),
    "BS": _written_set("BS", _quoted),
    "L": _written_list,
    "M": _written_map,
}
