"""How each Python type (datetime, Decimal, set, enum, union) is stored in an item, and read back exactly.

`wire_type(annotation)` returns the `WireType` of a field's annotation. A value becomes the matching DynamoDB type if
there is one: numbers N with all their digits, sets SS, NS and BS. Times are strings of fixed width in UTC, so they also
sort as text. Types that only pydantic knows (models, dataclasses, discriminated unions) become maps, and are validated
when they are read.
"""

from __future__ import annotations

import collections
import collections.abc
import os
import types
import typing
from binascii import a2b_base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Context, Decimal
from enum import Enum, Flag
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, Literal, Optional, Union, get_args, get_origin
from uuid import UUID
from zoneinfo import ZoneInfo

from isotone.errors import UsageError
from isotone.values.json import from_wire, text_of_bytes, to_wire
from isotone.values.number import canonical_decimal, canonical_number
from isotone.values.types import AttributeValue

NULL: Final[AttributeValue] = {"NULL": True}

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EXACT: Final = Context(prec=38)  # does not depend on the program's own decimal context
_PLAIN_INT: Final = 10**37  # below this, an int's text is already DynamoDB's normal form
_UNIONS: Final = (Union, types.UnionType)


class WireType(typing.NamedTuple):
    """How one type is stored and read.

    `code` is the DynamoDB type; None if values have several. `encode` raises `UsageError` for a value of another type.
    `read` decodes the content under `code`; None if the content alone is not enough. Values whose type is exactly
    `verbatim` are stored unchanged. `optional` types write None as absence at the top of an item, and as NULL inside
    lists and maps.
    """

    code: str | None
    encode: Callable[[Any], AttributeValue]
    decode: Callable[[AttributeValue], Any]
    optional: bool = False
    python: Any = object
    read: Callable[[Any], Any] | None = None
    verbatim: type | None = None
    choices: Mapping[Any, Any] | None = None


def wire_type(annotation: Any) -> WireType:
    """The wire type of an annotation; pydantic handles types that this module does not know."""
    known = _SCALARS.get(annotation) if isinstance(annotation, type) else None
    if known is not None:
        return known
    inner = plain_type(annotation)
    if inner is not annotation:
        return wire_type(inner)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in _UNIONS:
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
    """A datetime, stored as seconds since the epoch with microseconds."""
    return _instead(annotation, _scalar("N", _encode_epoch, _read_epoch, datetime))


def expiry_type(annotation: Any) -> WireType:
    """A datetime, stored as whole seconds since the epoch, as TimeToLive needs."""
    return _instead(annotation, _scalar("N", _encode_expiry, _read_expiry, datetime))


def zoned_type(annotation: Any, zone: tzinfo) -> WireType:
    """A datetime; stored texts without a zone are read in this one."""
    if wire_type(annotation).python is not datetime:
        raise UsageError("zone=… is for a field of type datetime; leave it out")

    def read(text: str) -> datetime:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=zone) if instant.tzinfo is None else instant

    return _instead(annotation, _scalar("S", _encode_datetime, read, datetime))


def _instead(annotation: Any, inner: WireType) -> WireType:
    """Another wire type for the annotation; optional if the annotation is."""
    return optional_type(inner) if wire_type(annotation).optional else inner


def _wrong_type(value: Any, expected: str) -> UsageError:
    kind = type(value).__name__
    article = "an" if kind[0] in "aeiou" else "a"
    return UsageError(f"{value!r} is {article} {kind}, but {expected} is expected")


# Scalars


def _scalar(
    code: str,
    encode: Callable[[Any], AttributeValue],
    read: Callable[[Any], Any],
    python: Any,
) -> WireType:
    """A type with a single DynamoDB type code."""
    return WireType(code, encode, lambda value: read(value[code]), python=python, read=read)


def _instances(
    kind: type, code: str, write: Callable[[Any], Any], read: Callable[[Any], Any]
) -> WireType:
    """A scalar type whose values are recognised by their class."""

    def encode(value: Any) -> AttributeValue:
        if type(value) is kind or isinstance(value, kind):
            return {code: write(value)}
        raise _wrong_type(value, f"a {kind.__name__}")

    return _scalar(code, encode, read, kind)


def _encode_int(value: Any) -> AttributeValue:
    if type(value) is not int:
        raise _wrong_type(value, "an int")
    if -_PLAIN_INT < value < _PLAIN_INT:
        return {"N": str(value)}
    return {"N": canonical_number(str(value))}


def _encode_decimal(value: Any) -> AttributeValue:
    if type(value) is not Decimal and type(value) is not int:
        raise _wrong_type(value, "a Decimal")
    return {"N": canonical_decimal(value)}


def _encode_float(value: Any) -> AttributeValue:
    if type(value) is not float and type(value) is not int:
        raise _wrong_type(value, "a float")
    return {"N": canonical_number(repr(value))}


def _encode_datetime(value: Any) -> AttributeValue:
    return {"S": instant_text(value)}


def instant_text(value: Any) -> str:
    """An aware datetime as text of fixed width that sorts by time."""
    _check_aware(value)
    text: str = value.astimezone(UTC).isoformat("T", "microseconds")
    return text[:26] + "Z"


def _check_aware(value: Any) -> None:
    if not isinstance(value, datetime):
        raise _wrong_type(value, "a datetime")
    if value.tzinfo is None:
        raise UsageError(
            f"{value!r} has no time zone, so it does not identify an instant; write it with tzinfo, such as UTC"
        )


def _read_datetime(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        raise UsageError(
            f"an item has {text!r}, which has no time zone, so it does not identify an instant; declare the zone of "
            "such texts, as in field(zone=UTC)"
        )
    return instant


def _encode_date(value: Any) -> AttributeValue:
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _wrong_type(value, "a date (for a datetime, its .date())")
    return {"S": value.isoformat()}


def _encode_epoch(value: Any) -> AttributeValue:
    return _encode_span(_since_epoch(value))


def _encode_expiry(value: Any) -> AttributeValue:
    return {"N": str(_since_epoch(value) // timedelta(seconds=1))}


def _read_epoch(seconds: str) -> datetime:
    return _EPOCH + _read_span(seconds)


def _read_expiry(seconds: str) -> datetime:
    return _read_epoch(seconds).replace(microsecond=0)  # rounded down, as it is when written


def _since_epoch(value: Any) -> timedelta:
    _check_aware(value)
    since: timedelta = value - _EPOCH
    return since


def _encode_span(value: Any) -> AttributeValue:
    if not isinstance(value, timedelta):
        raise _wrong_type(value, "a timedelta")
    microseconds = value // timedelta(microseconds=1)
    return {"N": canonical_decimal(Decimal(microseconds).scaleb(-6, _EXACT))}


def _read_span(seconds: str) -> timedelta:
    return timedelta(microseconds=int(Decimal(seconds).scaleb(6, _EXACT)))


_SCALARS: Final[dict[type, WireType]] = {
    str: _instances(str, "S", str, str)._replace(verbatim=str, decode=itemgetter("S")),
    bool: _instances(bool, "BOOL", bool, bool)._replace(verbatim=bool, decode=itemgetter("BOOL")),
    bytes: _instances(bytes, "B", text_of_bytes, a2b_base64),
    int: _scalar("N", _encode_int, int, int),
    Decimal: _scalar("N", _encode_decimal, Decimal, Decimal),
    float: _scalar("N", _encode_float, float, float),
    datetime: _scalar("S", _encode_datetime, _read_datetime, datetime),
    date: _scalar("S", _encode_date, date.fromisoformat, date),
    time: _instances(time, "S", lambda value: value.isoformat("microseconds"), time.fromisoformat),
    timedelta: _scalar("N", _encode_span, _read_span, timedelta),
    UUID: _instances(UUID, "S", str, UUID),
}


def is_scalar(kind: type) -> bool:
    """Whether values of a class are scalars, with nothing inside that a path could name."""
    return issubclass(kind, (*_SCALARS, Enum))


# The program's own classes, and choices


def _class(annotation: type) -> WireType:
    """An enum, a subclass of str, or a class that pydantic knows."""
    if issubclass(annotation, Enum):
        return _enum(annotation)
    if annotation in (set, frozenset):
        return _by_pydantic(annotation)._replace(python=annotation)
    if issubclass(annotation, str):
        if not hasattr(annotation, "__get_pydantic_core_schema__"):
            _by_pydantic(annotation)  # called to raise: no value could be validated
        return _instances(annotation, "S", str, annotation)
    return _by_pydantic(annotation)


def _enum(annotation: type[Enum]) -> WireType:
    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, annotation):
            raise _wrong_type(value, f"a member of {annotation.__name__}")
        return to_wire(plain(value.value))

    def decode(value: AttributeValue) -> Any:
        if code is not None and code not in value:  # True == 1, but they are different choices
            raise _wrong_type(simplest(value), f"a member of {annotation.__name__}")
        return annotation(simplest(value))

    code = _code_of(annotation)
    if not all(_is_read_back(decode, encode(member), member) for member in annotation):
        return WireType(code, encode, _choice_reader(annotation), python=annotation)
    if code == "S":
        members = {str(member.value): member for member in annotation}
        return _scalar(code, encode, annotation, annotation)._replace(
            read=members.__getitem__, choices=members
        )
    return WireType(code, encode, decode, python=annotation)


def _is_read_back(
    decode: Callable[[AttributeValue], Any], stored: AttributeValue, value: Any
) -> bool:
    try:
        return decode(stored) is value
    except (ValueError, TypeError):
        return False


def _choice_reader(values: Iterable[Any]) -> Callable[[AttributeValue], Any]:
    """Decodes values that cannot be made from their stored form, by looking them up."""
    by_stored: dict[str, Any] = {}
    for value in values:
        stored = repr(to_wire(plain(value)))
        if stored in by_stored:
            raise UsageError(
                f"{by_stored[stored]!r} and {value!r} are written as the same {stored}"
            )
        by_stored[stored] = value

    def decode(value: AttributeValue) -> Any:
        try:
            return by_stored[repr(value)]
        except KeyError:
            raise ValueError(f"{value!r} is not one of {', '.join(by_stored)}") from None

    return decode


def _literal(allowed: tuple[Any, ...]) -> WireType:
    known = frozenset((isinstance(value, bool), value) for value in allowed)  # True == 1

    def check(value: Any) -> Any:
        try:
            is_allowed = (isinstance(value, bool), value) in known
        except TypeError:  # not hashable, so not one of them
            is_allowed = False
        if not is_allowed:
            raise _wrong_type(value, f"one of {', '.join(map(repr, allowed))}")
        return value

    def encode(value: Any) -> AttributeValue:
        return to_wire(plain(check(value)))

    code = _code_of(allowed)
    if any(isinstance(value, Enum) for value in allowed):
        return WireType(code, encode, _choice_reader(allowed), python=Literal)
    if code == "S":
        choices = {value: value for value in allowed}
        return _scalar(code, encode, choices.__getitem__, Literal)._replace(choices=choices)
    return WireType(code, encode, lambda value: check(simplest(value)), python=Literal)


def _code_of(values: Iterable[Any]) -> str | None:
    """The one DynamoDB type of some values; None if they have several."""
    codes = {next(iter(to_wire(plain(value)))) for value in values}
    return codes.pop() if len(codes) == 1 else None


def simplest(value: AttributeValue) -> Any:
    """A value without a declared type: whole numbers become int, other numbers Decimal, at every depth."""
    ((code, content),) = value.items()
    if code == "N":
        return _simplest_number(content)
    if code == "NS":
        return set(map(_simplest_number, content))
    if code == "L":
        return [simplest(each) for each in content]
    if code == "M":
        return {name: simplest(each) for name, each in content.items()}
    return from_wire(value)


def _simplest_number(text: str) -> int | Decimal:
    number = Decimal(text)
    return int(number) if number == number.to_integral_value() else number


# Types made of other types


def _union(annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    rest = tuple(argument for argument in arguments if argument is not type(None))
    if len(rest) == len(arguments):
        _check_union(arguments)
        return _by_pydantic(annotation)
    return optional_type(wire_type(rest[0] if len(rest) == 1 else Union[rest]))  # noqa: UP007 - made at run time


def _check_union(arguments: tuple[Any, ...]) -> None:
    """Refuse a union of types that are stored alike: a stored value could be either."""
    by_code: dict[str | None, set[Any]] = {}
    for wire in map(wire_type, arguments):
        is_text = wire.python is Literal or (
            isinstance(wire.python, type) and issubclass(wire.python, str)
        )
        is_number = wire.code == "N" and wire.python is not timedelta
        kind = "text" if is_text else "number" if is_number else wire.python
        by_code.setdefault(wire.code, set()).add(kind)
    for code in ("S", "N"):
        if len(by_code.get(code, ())) > 1:
            names = " | ".join(getattr(each, "__name__", str(each)) for each in arguments)
            raise UsageError(
                f"values of {names} are written alike, as {code}, so that one could be read as another; "
                "declare one type, or a field for each"
            )


def optional_type(inner: WireType) -> WireType:
    """A type whose values may also be None."""
    encode_present, decode_present = inner.encode, inner.decode

    def encode(value: Any) -> AttributeValue:
        return NULL if value is None else encode_present(value)

    def decode(value: AttributeValue) -> Any:
        return None if "NULL" in value else decode_present(value)

    return inner._replace(encode=encode, decode=decode, optional=True)


def _list(_annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    element = wire_type(arguments[0])

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, list):
            raise _wrong_type(value, "a list")
        return {"L": [element.encode(each) for each in value]}

    return _scalar("L", encode, _elements_reader(element), list)


def _elements_reader(element: WireType) -> Callable[[Any], Any]:
    """Decodes a list's elements; no extra call for elements of the usual type."""
    code, read, decode = element.code, element.read, element.decode
    if _is_content(element):
        return lambda content: [each[code] for each in content]
    if read is None:
        return lambda content: [decode(each) for each in content]
    return lambda content: [read(each[code]) if code in each else decode(each) for each in content]


def _is_content(wire: WireType) -> bool:
    """Whether the stored content is always the value itself."""
    return wire.verbatim is not None and not wire.optional


def _dict(annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    if plain_type(arguments[0]) is not str:
        return _by_pydantic(annotation)
    element = wire_type(arguments[1])

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, dict):
            raise _wrong_type(value, "a dict")
        return {"M": {name: element.encode(each) for name, each in value.items()}}

    def read(content: Any) -> Any:
        return {name: element.decode(each) for name, each in content.items()}

    code = element.code

    def read_content(content: Any) -> Any:
        decoded = {}
        for name in content:  # for few members, as most maps have, twice as fast as a comprehension
            decoded[name] = content[name][code]
        return decoded

    return _scalar("M", encode, read_content if _is_content(element) else read, dict)


_SET_CODES: Final = {"S": "SS", "N": "NS", "B": "BS"}


def _set(annotation: Any, arguments: tuple[Any, ...]) -> WireType:
    element = wire_type(arguments[0])
    kind = set if get_origin(annotation) in (set, collections.abc.MutableSet) else frozenset
    if element.code not in _SET_CODES or element.optional:
        return _by_pydantic(annotation)._replace(python=kind)
    code, member_code = _SET_CODES[element.code], element.code

    def encode(value: Any) -> AttributeValue:
        if not isinstance(value, set | frozenset):
            raise _wrong_type(value, "a set")
        if not value:  # DynamoDB has no empty sets
            return {"L": []}
        return {code: sorted(element.encode(each)[member_code] for each in value)}

    def read(content: Any) -> Any:
        return kind([element.decode({member_code: each}) for each in content])

    wire = _scalar(code, encode, kind if element is _SCALARS[str] else read, kind)
    return wire._replace(decode=lambda value: kind() if value == {"L": []} else read(value[code]))


_CONTAINERS: Final[dict[Any, Callable[[Any, tuple[Any, ...]], WireType]]] = {
    list: _list,
    dict: _dict,
    set: _set,
    frozenset: _set,
    collections.abc.Set: _set,
    collections.abc.MutableSet: _set,
}


def _by_pydantic(annotation: Any) -> WireType:
    """Any type that pydantic can dump to plain Python and validate again."""
    if annotation in (Any, object):
        return ANYTHING._replace(encode=_encode_anything)
    from pydantic_core import PydanticSerializationError, ValidationError

    from isotone.model.declaring.foreign_types import Foreign

    foreign = Foreign(annotation)

    def encode(value: Any) -> AttributeValue:
        try:
            return to_wire(plain(foreign.dump(value), typed=True))
        except PydanticSerializationError:
            name = getattr(annotation, "__name__", None) or str(annotation)
            raise _wrong_type(value, f"a value of type {name}") from None

    def decode(value: AttributeValue) -> Any:
        try:
            return foreign.validate(simplest(value))
        except ValidationError:  # in strict mode, pydantic takes no int for a Decimal
            return foreign.validate(from_wire(value))

    return WireType(None, encode, decode, python=annotation)


def _encode_anything(value: Any) -> AttributeValue:
    return to_wire(plain(_any_adapter().dump_python(value)))


@lru_cache(maxsize=1)
def _any_adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(Any)


ANYTHING: Final = WireType(None, lambda value: to_wire(plain(value)), simplest)
"""Values whose type is not declared."""


def plain(value: Any, *, typed: bool = False) -> Any:
    """A dumped value, with types that DynamoDB lacks converted to texts or numbers.

    `typed`: the value's type is declared, so any set may become a list, and a URL a text.
    """
    if isinstance(value, dict):
        return {str(plain(name)): plain(each, typed=typed) for name, each in value.items()}
    if isinstance(value, list | tuple | collections.deque):
        return [plain(each, typed=typed) for each in value]
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float):
        return Decimal(repr(value))
    known = _SCALARS.get(type(value))
    if known is not None:
        return from_wire(known.encode(value))
    if not typed or value is None or isinstance(value, _WRITTEN):
        return value
    return _plain_set(value) if isinstance(value, set | frozenset) else _as_text(value)


_WRITTEN: Final = (str, bytes, bytearray, int, Decimal)


def _plain_set(value: Any) -> Any:
    """A set, if DynamoDB has a set of its members' type; otherwise a list."""
    members = [plain(each, typed=True) for each in value]
    kinds = {type(each) for each in members}
    if len(kinds) == 1 and kinds <= {str, bytes, int, Decimal}:
        return set(members)
    return members


def _as_text(value: Any) -> Any:
    """A URL, a path or another value that pydantic writes as text in JSON."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    secret = getattr(value, "get_secret_value", None)
    if secret is not None:
        return plain(secret(), typed=True)
    if isinstance(value, os.PathLike | ZoneInfo):
        return str(value)
    try:
        return plain(to_jsonable_python(value), typed=True)
    except PydanticSerializationError:
        return value  # `to_wire` then refuses it by its type


# Annotations: the type behind a name
#
#     UserId = NewType("UserId", str)             is str
#     Name = Annotated[str, MaxLen(80)]           is str; pydantic checks the rest
#     type State = Literal["ON", "OFF"]           is the Literal
#     Literal["ON", None]                         is Literal["ON"] | None
#
# A recursive alias is unchanged, and left to pydantic.


def plain_type(annotation: Any) -> Any:
    """An annotation's type, without aliases and metadata."""
    while True:
        inner = _unwrapped(annotation)
        if inner is annotation:
            return annotation
        annotation = inner


def present_type(annotation: Any) -> Any:
    """The plain type of values other than None."""
    plain = plain_type(annotation)
    rest = [each for each in get_args(plain) if each is not type(None)]
    if get_origin(plain) in _UNIONS and len(rest) == 1:
        return present_type(rest[0])
    return plain


def is_optional(annotation: Any) -> bool:
    """Whether a field of this type may be None."""
    plain = plain_type(annotation)
    return get_origin(plain) in _UNIONS and any(
        each is type(None) or is_optional(each) for each in get_args(plain)
    )


def choices(annotation: Any) -> tuple[Any, ...] | None:
    """The values of an enum or a Literal in declared order; None for other types."""
    present = present_type(annotation)
    if get_origin(present) is Literal:
        return get_args(present)
    if not (isinstance(present, type) and issubclass(present, Enum)) or issubclass(present, Flag):
        return None
    return tuple(present)


def type_text(annotation: Any) -> str:
    """A type as source code, for messages."""
    plain = plain_type(annotation)
    origin, arguments = get_origin(plain), get_args(plain)
    if origin is None:
        return "None" if plain is type(None) else getattr(plain, "__name__", None) or str(plain)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin in _UNIONS:
        return " | ".join(map(type_text, arguments))
    return f"{getattr(origin, '__name__', origin)}[{', '.join(map(type_text, arguments))}]"


def resolve_alias(annotation: Any) -> Any:
    """The type behind a NewType or an alias. Anything else, and a recursive alias, is returned unchanged."""
    if isinstance(annotation, typing.NewType):
        return annotation.__supertype__
    # Python (from 3.12 on) and typing_extensions each have a class with this name.
    if type(annotation).__name__ == "TypeAliasType" and not _is_recursive(annotation):
        return annotation.__value__
    return annotation


def _unwrapped(annotation: Any) -> Any:
    """The annotation without its outermost alias or metadata."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is typing.Annotated:
        if any(
            getattr(each, "__name__", type(each).__name__) == "Json"
            for each in annotation.__metadata__
        ):
            raise UsageError(
                "values of a type Json[…] are no longer JSON once they are parsed; declare the parsed type"
            )
        return arguments[0]
    if origin is Literal and None in arguments and len(arguments) > 1:
        rest = tuple(each for each in arguments if each is not None)
        return Optional[Literal[rest]]  # noqa: UP045 - made at run time
    return resolve_alias(annotation)


def _is_recursive(alias: Any) -> bool:
    """Whether an alias refers to itself, or to a type that is not known yet."""
    return any(
        each is alias or isinstance(each, str | typing.ForwardRef)
        for each in _walk(alias.__value__, ())
    )


def _walk(annotation: Any, within: tuple[Any, ...]) -> Iterator[Any]:
    """An annotation and all its parts; each alias is followed only once."""
    yield annotation
    if get_origin(annotation) is Literal:
        return
    if type(annotation).__name__ == "TypeAliasType" and annotation not in within:
        yield from _walk(annotation.__value__, (*within, annotation))
    for each in get_args(annotation)[: 1 if get_origin(annotation) is typing.Annotated else None]:
        yield from _walk(each, within)
