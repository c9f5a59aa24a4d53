"""How a field's Python type is written in an item, and read back exactly.

A `WireType` is made once from an annotation. What DynamoDB has a type for is written as that type:
numbers as N with all their digits, sets as SS, NS and BS. Times are strings of fixed width in UTC, so
that they sort as text as well. Whatever else pydantic knows (models, dataclasses, discriminated unions)
is written as a map and validated when it is read.
"""

from __future__ import annotations

import types
import typing
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Context, Decimal
from enum import Enum
from operator import itemgetter
from typing import Any, Final, Literal, Optional, Union, get_args, get_origin
from uuid import UUID

from isotone.errors import UsageError
from isotone.values.json import from_wire, text_of_bytes, to_wire
from isotone.values.number import canonical_number
from isotone.values.types import AttributeValue

NULL: Final[AttributeValue] = {"NULL": True}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = Context(prec=38)  # whatever precision the program has set for its own sums


class WireType(typing.NamedTuple):
    """The two directions of one type; `code` is the DynamoDB type where there is exactly one.

    `encode` raises `UsageError` for a value of another type. `optional` types write None as absence
    at the top of an item, and as NULL inside of lists and maps.
    """

    code: str | None
    encode: Callable[[Any], AttributeValue]
    decode: Callable[[AttributeValue], Any]
    optional: bool = False
    python: Any = object


def wire_type(annotation: Any) -> WireType:
    """The wire type of an annotation; whatever is not known here is left to pydantic."""
    known = _PLAIN.get(annotation) if isinstance(annotation, type) else None
    if known is not None:
        return known
    inner = plain_type(annotation)
    if inner is not annotation:
        return wire_type(inner)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _union(annotation, arguments)
    if origin is Literal:
        return _literal(arguments)
    container = _CONTAINERS.get(origin)
    if container is not None:
        return container(annotation, arguments)
    if isinstance(annotation, type):
        return _class(annotation)
    return _by_pydantic(annotation)


def epoch_type(annotation: Any) -> WireType:
    """A datetime as seconds since the epoch, to the microsecond."""
    return _in_place_of(annotation, WireType("N", _encode_epoch, _decode_epoch, python=datetime))


def expiry_type(annotation: Any) -> WireType:
    """A datetime as whole seconds since the epoch, which is what TimeToLive reads."""
    return _in_place_of(annotation, WireType("N", _encode_expiry, _decode_epoch, python=datetime))


def zoned_type(annotation: Any, zone: tzinfo) -> WireType:
    """A datetime of which an item may have texts without a zone: they are of the one given."""
    if wire_type(annotation).python is not datetime:
        raise UsageError("a zone is that of a datetime; leave zone=… out")

    def decode(value: AttributeValue) -> datetime:
        found = datetime.fromisoformat(value["S"])
        return found.replace(tzinfo=zone) if found.tzinfo is None else found

    return _in_place_of(annotation, WireType("S", _encode_datetime, decode, python=datetime))


def _in_place_of(annotation: Any, inner: WireType) -> WireType:
    """Another wire type for an annotation, which may have None as it did."""
    return _optional(inner) if wire_type(annotation).optional else inner


def _wrong(value: Any, expected: str) -> UsageError:
    return UsageError(f"{value!r} is a {type(value).__name__}, but {expected} is wanted")


def _checked(
    kind: type, code: str, write: Callable[[Any], Any], read: Callable[[Any], Any]
) -> WireType:
    """A type whose values are recognised by their class."""

    def encode(value: Any) -> AttributeValue:
        if type(value) is kind or isinstance(value, kind):
            return {code: write(value)}
        raise _wrong(value, f"a {kind.__name__}")

    decode = itemgetter(code) if read in (str, bool) else lambda value: read(value[code])
    return WireType(code, encode, decode, python=kind)


def _encode_int(value: Any) -> AttributeValue:
    if type(value) is not int:
        raise _wrong(value, "an int")
    return {"N": canonical_number(str(value))}


def _encode_decimal(value: Any) -> AttributeValue:
    if type(value) is not Decimal and type(value) is not int:
        raise _wrong(value, "a Decimal")
    return {"N": canonical_number(str(value))}


def _encode_float(value: Any) -> AttributeValue:
    if type(value) is not float and type(value) is not int:
        raise _wrong(value, "a float")
    return {"N": canonical_number(repr(value))}


def _encode_datetime(value: Any) -> AttributeValue:
    return {"S": instant_text(value)}


def instant_text(value: Any) -> str:
    """An aware datetime as text of fixed width that sorts by instant."""
    if not isinstance(value, datetime):
        raise _wrong(value, "a datetime")
    if value.tzinfo is None:
        raise UsageError(
            f"{value!r} has no time zone, so it names no instant; write it with tzinfo, such as UTC"
        )
    return value.astimezone(UTC).isoformat("T", "microseconds")[:26] + "Z"


def _decode_datetime(value: AttributeValue) -> datetime:
    found = datetime.fromisoformat(value["S"])
    if found.tzinfo is None:
        raise UsageError(
            f"an item has {value['S']!r}, which has no time zone, so it names no instant; say which one such "
            "texts are of, as in field(zone=UTC)"
        )
    return found


def _encode_date(value: Any) -> AttributeValue:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _wrong(value, "a date (of a datetime, its .date())")
    return {"S": value.isoformat()}


def _encode_epoch(value: Any) -> AttributeValue:
    return _encode_span(_since_epoch(value))


def _encode_expiry(value: Any) -> AttributeValue:
    return {"N": str(_since_epoch(value) // timedelta(seconds=1))}


def _decode_epoch(value: AttributeValue) -> datetime:
    return _EPOCH + _decode_span(value)


def _since_epoch(value: Any) -> timedelta:
    instant_text(value)
    since: timedelta = value - _EPOCH
    return since


def _encode_span(value: Any) -> AttributeValue:
    if not isinstance(value, timedelta):
        raise _wrong(value, "a timedelta")
    microseconds = value // timedelta(microseconds=1)
    return {"N": canonical_number(str(Decimal(microseconds).scaleb(-6, _EXACT)))}


def _decode_span(value: AttributeValue) -> timedelta:
    return timedelta(microseconds=int(Decimal(value["N"]).scaleb(6, _EXACT)))


_PLAIN: Final[dict[type, WireType]] = {
    str: _checked(str, "S", str, str),
    bool: _checked(bool, "BOOL", bool, bool),
    bytes: _checked(bytes, "B", text_of_bytes, a2b_base64),
    int: WireType("N", _encode_int, lambda value: int(value["N"]), python=int),
    Decimal: WireType("N", _encode_decimal, lambda value: Decimal(value["N"]), python=Decimal),
    float: WireType("N", _encode_float, lambda value: float(value["N"]), python=float),
    datetime: WireType("S", _encode_datetime, _decode_datetime, python=datetime),
    date: WireType("S", _encode_date, lambda value: date.fromisoformat(value["S"]), python=date),
    time: _checked(time, "S", lambda value: value.isoformat("microseconds"), time.fromisoformat),
    timedelta: WireType("N", _encode_span, _decode_span, python=timedelta),
    UUID: _checked(UUID, "S", str, UUID),
}


_TEXT: Final = _PLAIN[str]


def _class(annotation: type) -> WireType:
    """A class of the user's: an enum, a subclass of str or int, or something that pydantic knows."""
    if issubclass(annotation, Enum):
        return _enum(annotation)
    if issubclass(annotation, str):
        return _checked(annotation, "S", str, annotation)
    return _by_pydantic(annotation)


def _enum(annotation: type[Enum]) -> WireType:
    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, annotation):
            raise _wrong(value, f"a member of {annotation.__name__}")
        return to_wire(value.value)

    code = _code_of([member.value for member in annotation])
    read = _reader(code)
    return WireType(code, encode, lambda value: annotation(read(value)), python=annotation)


def _code_of(values: Iterable[Any]) -> str | None:
    """The one DynamoDB type of some values; None where they have several."""
    codes = {next(iter(to_wire(value))) for value in values}
    return codes.pop() if len(codes) == 1 else None


def _reader(code: str | None) -> Callable[[AttributeValue], Any]:
    return itemgetter("S") if code == "S" else _natural


def _natural(value: AttributeValue) -> Any:
    """A scalar as the simplest Python value: whole numbers as int."""
    found = from_wire(value)
    return (
        int(found) if isinstance(found, Decimal) and found == found.to_integral_value() else found
    )


def _literal(choices: tuple[Any, ...]) -> WireType:
    allowed = frozenset(choices)

    def encode(value: Any) -> AttributeValue:
        if value not in allowed:
            raise _wrong(value, f"one of {', '.join(map(repr, choices))}")
        return to_wire(value)

    code = _code_of(choices)
    return WireType(code, encode, _reader(code), python=Literal)


def _union(annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    rest = tuple(argument for argument in arguments if argument is not type(None))
    if len(rest) == len(arguments):
        return _by_pydantic(annotation)
    return _optional(wire_type(rest[0] if len(rest) == 1 else Union[rest]))  # noqa: UP007 - made at run time


def _optional(inner: WireType) -> WireType:
    def encode(value: Any) -> AttributeValue:
        return NULL if value is None else inner.encode(value)

    def decode(value: AttributeValue) -> Any:
        return None if "NULL" in value else inner.decode(value)

    return WireType(inner.code, encode, decode, optional=True, python=inner.python)


def _list(_annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    element = wire_type(arguments[0])

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, list):
            raise _wrong(value, "a list")
        return {"L": [element.encode(each) for each in value]}

    return WireType(
        "L", encode, lambda value: [element.decode(each) for each in value["L"]], python=list
    )


def _dict(annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    if plain_type(arguments[0]) is not str:
        return _by_pydantic(annotation)
    element = wire_type(arguments[1])

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, dict):
            raise _wrong(value, "a dict")
        return {"M": {name: element.encode(each) for name, each in value.items()}}

    def decode(value: AttributeValue) -> Any:
        return {name: element.decode(each) for name, each in value["M"].items()}

    return WireType("M", encode, decode, python=dict)


_SET_CODES: Final = {"S": "SS", "N": "NS", "B": "BS"}


def _set(annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    element = wire_type(arguments[0])
    if element.code not in _SET_CODES:
        return _by_pydantic(annotation)
    code, member_code = _SET_CODES[element.code], element.code
    kind = get_origin(annotation)

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, set | frozenset):
            raise _wrong(value, "a set")
        return {code: sorted(element.encode(each)[member_code] for each in value)}

    def decode(value: AttributeValue) -> Any:
        return kind([element.decode({member_code: each}) for each in value[code]])

    return WireType(
        code, encode, (lambda value: kind(value["SS"])) if element is _TEXT else decode, python=kind
    )


_CONTAINERS: Final[dict[Any, Callable[[Any, tuple[Any, ...]], WireType]]] = {
    list: _list,
    dict: _dict,
    set: _set,
    frozenset: _set,
}


def _by_pydantic(annotation: Any) -> WireType:
    """Whatever pydantic can dump to plain Python and validate back."""
    from pydantic import TypeAdapter
    from pydantic_core import PydanticSerializationError

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)

    def encode(value: Any) -> AttributeValue:
        try:
            return to_wire(plain(adapter.dump_python(value, warnings="error")))
        except PydanticSerializationError:
            name = getattr(annotation, "__name__", None) or str(annotation)
            raise _wrong(value, f"what fits {name}") from None

    return WireType(
        None, encode, lambda value: adapter.validate_python(from_wire(value)), python=annotation
    )


def plain(value: Any) -> Any:
    """A dumped value with everything that DynamoDB has no type for as its text or number."""
    if isinstance(value, dict):
        return {str(plain(name)): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return Decimal(repr(value))
    known = _PLAIN.get(type(value))
    return value if known is None else from_wire(known.encode(value))


# What an annotation stands for


_UNIONS = (typing.Union, types.UnionType)


def plain_type(annotation: Any) -> Any:
    """The type that an annotation is a name of, without what it was annotated with."""
    while True:
        inner = _behind(annotation)
        if inner is annotation:
            return annotation
        annotation = inner


def present_type(annotation: Any) -> Any:
    """The same without None, which a field of it may have."""
    plain = plain_type(annotation)
    rest = [each for each in get_args(plain) if each is not type(None)]
    if get_origin(plain) in _UNIONS and len(rest) == 1:
        return present_type(rest[0])
    return plain


def is_optional(annotation: Any) -> bool:
    """Whether a field of this type may have None."""
    plain = plain_type(annotation)
    return get_origin(plain) in _UNIONS and any(
        each is type(None) or is_optional(each) for each in get_args(plain)
    )


def choices(annotation: Any) -> tuple[Any, ...] | None:
    """The values of an enum or a Literal in the order of their declaration; None of any other type."""
    present = present_type(annotation)
    if get_origin(present) is Literal:
        return get_args(present)
    return tuple(present) if isinstance(present, type) and issubclass(present, Enum) else None


def named(annotation: Any) -> Any:
    """What a NewType or an alias stands for; the annotation itself where it is none, or holds itself."""
    if isinstance(annotation, typing.NewType):
        return annotation.__supertype__
    # There are two classes of this name, Python's from 3.12 on and that of typing_extensions.
    if type(annotation).__name__ == "TypeAliasType" and not _holds(
        annotation.__value__, annotation
    ):
        return annotation.__value__
    return annotation


def _behind(annotation: Any) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        return arguments[0]
    if origin is Literal and None in arguments and len(arguments) > 1:
        rest = tuple(each for each in arguments if each is not None)
        return Optional[Literal[rest]]  # noqa: UP045 - made at run time
    return named(annotation)


def _holds(annotation: Any, alias: Any) -> bool:
    return any(
        each is alias or isinstance(each, str | typing.ForwardRef)
        for each in _parts(annotation, ())
    )


def _parts(annotation: Any, within: tuple[Any, ...]) -> Iterator[Any]:
    """An annotation and all that it is made of, aliases followed once."""
    yield annotation
    if get_origin(annotation) is Literal:
        return
    if type(annotation).__name__ == "TypeAliasType" and annotation not in within:
        yield from _parts(annotation.__value__, (*within, annotation))
    for each in get_args(annotation)[: 1 if get_origin(annotation) is typing.Annotated else None]:
        yield from _parts(each, within)
