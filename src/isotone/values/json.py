"""Converts Python values to DynamoDB JSON and back (int, Decimal, set, bytes).

`to_wire` and `from_wire` convert like boto3's serializers. Numbers are `int` or `Decimal` on the way in and
`Decimal` on the way out. A Python set becomes a string, number or binary set, depending on its members. Floats
are refused, because they are not exact decimal numbers.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from decimal import Decimal
from typing import Any, Final

from isotone.errors import UsageError
from isotone.values.number import canonical_number
from isotone.values.types import AttributeValue, Item, sorted_members

BYTES_TYPES: Final = (bytes, bytearray, memoryview)


def item_to_wire(item: Mapping[str, Any]) -> Item:
    """An item of Python values as DynamoDB JSON; raises as `to_wire`."""
    return {name: to_wire(value) for name, value in item.items()}


def item_from_wire(item: Item) -> dict[str, Any]:
    """An item of DynamoDB JSON as Python values."""
    return {name: from_wire(value) for name, value in item.items()}


def to_wire(value: Any) -> AttributeValue:
    """A Python value as DynamoDB JSON.

    >>> to_wire({"name": "Ann", "age": 42, "tags": ["x", None]})
    {'M': {'name': {'S': 'Ann'}, 'age': {'N': '42'}, 'tags': {'L': [{'S': 'x'}, {'NULL': True}]}}}

    Raises `UsageError` for types without a counterpart in DynamoDB, including float, and
    `ValidationException` for numbers that DynamoDB cannot store.
    """
    convert = _BY_CLASS.get(type(value)) or _converter_of_base_class(value)
    return convert(value)


def from_wire(value: AttributeValue) -> Any:
    """The Python value of DynamoDB JSON in normal form.

    >>> from_wire({"NS": ["1", "2.5"]}) == {Decimal("1"), Decimal("2.5")}
    True
    """
    ((code, content),) = value.items()
    return _FROM_WIRE[code](content)


def with_empty_maps(image: Item) -> Item:
    """An image of a stream record with empty maps as `{"M": {}}`: in streams of DynamoDB Local they are `{}`."""
    return {name: _with_empty_map(value) for name, value in image.items()}


def _with_empty_map(value: Any) -> Any:
    if not value:
        return {"M": {}}
    if "M" in value:
        return {"M": with_empty_maps(value["M"])}
    if "L" in value:
        return {"L": [_with_empty_map(each) for each in value["L"]]}
    return value


def text_of_bytes(raw: bytes | bytearray | memoryview) -> str:
    """Base64, the form of binary values in JSON."""
    return b2a_base64(raw, newline=False).decode()


def _converter_of_base_class(value: Any) -> Callable[[Any], AttributeValue]:
    """The converter of a subclass of a known type, and of abstract types."""
    for kind, convert in _BY_BASE_CLASS:
        if isinstance(value, kind):
            return convert
    raise UsageError(
        f"{value!r} is of type {type(value).__name__}, which has no counterpart in DynamoDB; "
        "use str, int, Decimal, bytes, bool, None, list, dict or a set of one type"
    )


def _refuse_float(value: float) -> AttributeValue:
    raise UsageError(
        f"{value!r} is a float, which is not exact; use Decimal({str(value)!r}) instead"
    )


def _number(value: int | Decimal) -> AttributeValue:
    return {"N": canonical_number(str(value))}


def _set(values: AbstractSet[Any]) -> AttributeValue:
    """A Python set as a string, number or binary set. All members must have one type."""
    members = [to_wire(value) for value in values]
    codes = {code for member in members for code in member}
    if len(codes) != 1 or not codes <= {"S", "N", "B"}:
        raise UsageError(
            f"{values!r} cannot be a set in DynamoDB: give it at least one member, "
            "and only strings, only numbers or only bytes"
        )
    (code,) = codes
    return {code + "S": sorted_members(code + "S", [member[code] for member in members])}


def _list(values: Iterable[Any]) -> AttributeValue:
    return {"L": [to_wire(value) for value in values]}


def _map(values: Mapping[str, Any]) -> AttributeValue:
    return {"M": item_to_wire(values)}


_BY_CLASS: Final[dict[type, Callable[[Any], AttributeValue]]] = {
    str: lambda value: {"S": value},
    bool: lambda value: {"BOOL": value},
    int: _number,
    Decimal: _number,
    float: _refuse_float,
    bytes: lambda value: {"B": text_of_bytes(value)},
    type(None): lambda _: {"NULL": True},
    list: _list,
    tuple: _list,
    dict: _map,
    set: _set,
    frozenset: _set,
}

_BY_BASE_CLASS: Final[list[tuple[Any, Callable[[Any], AttributeValue]]]] = [
    (str, lambda value: {"S": str.__str__(value)}),  # the value of a str enumeration
    (int, lambda value: _number(int(value))),
    (Decimal, _number),
    (float, _refuse_float),
    (BYTES_TYPES, lambda value: {"B": text_of_bytes(value)}),
    (Mapping, _map),
    (AbstractSet, _set),
    ((list, tuple), _list),
]

_FROM_WIRE: Final[dict[str, Callable[[Any], Any]]] = {
    "S": lambda text: text,
    "N": Decimal,
    "B": a2b_base64,
    "BOOL": lambda flag: flag,
    "NULL": lambda _: None,
    "SS": set,
    "NS": lambda members: set(map(Decimal, members)),
    "BS": lambda members: set(map(a2b_base64, members)),
    "L": lambda elements: [from_wire(element) for element in elements],
    "M": item_from_wire,
}
