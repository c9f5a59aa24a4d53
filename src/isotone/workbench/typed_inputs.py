"""The inputs of a form by the types of a model: what each may hold, its value as text and JSON, and back.

    node = typed_input(list[Decimal])
    node.described                    # {"kind": "list", "item": {"kind": "decimal", …}}
    node.shown([Decimal("1.10")])     # ["1.10"]
    node.read(["1.20"])               # ["1.20"], which the model validates

Texts of numbers and times are left to the model: it parses them, and refuses them in its own words. Only what JSON has
not (bytes, durations, members of enums) is read here. A type with no input of its own has the kind `raw`: its value is
DynamoDB JSON.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import re
import typing
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, Flag
from functools import partial
from typing import Any, Final, Literal, NamedTuple, Union, get_args, get_origin
from uuid import UUID

from isotone.errors import IsotoneError, UsageError
from isotone.model import is_optional, plain_type, resolve_alias, wire_type

Described = dict[str, Any]


class TypedInput(NamedTuple):
    """One input: its description for the page, a value as the page shows it, and what the page sends back.

    `read` raises `UsageError` for a text that is no value of the type.
    """

    described: Described
    shown: Callable[[Any], Any]
    read: Callable[[Any], Any]


def typed_input(annotation: Any, within: tuple[Any, ...] = ()) -> TypedInput:
    """The input for values of a type. `within` are the types around it, in case it contains itself."""
    bounds = _bounds(annotation)
    plain = plain_type(annotation)
    if is_optional(annotation):
        return _optional(_without_none(plain), bounds, within)
    found = _of_plain(plain, within)
    return found._replace(described={**found.described, **bounds})


def raw_input(encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> TypedInput:
    """An input of DynamoDB JSON, for values that are stored in a way of their own."""

    def read(given: Any) -> Any:
        try:
            return decode(given)
        except IsotoneError:
            raise
        except Exception as error:
            raise UsageError(f"{given!r} is not stored so: {error}") from error

    return TypedInput({"kind": "raw"}, encode, read)


def _of_plain(plain: Any, within: tuple[Any, ...]) -> TypedInput:
    origin = get_origin(plain)
    scalar = _SCALARS.get(plain) if isinstance(plain, type) else None
    if scalar is not None:
        return scalar
    if origin is Literal:
        return _choice(get_args(plain))
    container = _CONTAINERS.get(origin)
    if container is not None:
        return container(plain, get_args(plain), within)
    if isinstance(plain, type) and origin is None:
        if issubclass(plain, Enum) and not issubclass(plain, Flag):
            return _choice(tuple(plain))
        if issubclass(plain, str):
            return TypedInput({"kind": "text"}, str, _same)
        members = _members(plain)
        if members is not None and plain not in within:
            return _record(plain, members, (*within, plain))
    return _raw(plain)


def _raw(plain: Any) -> TypedInput:
    wire = wire_type(plain)
    return raw_input(wire.encode, wire.decode)


def _same(value: Any) -> Any:
    return value


def _without_none(plain: Any) -> Any:
    rest = tuple(each for each in get_args(plain) if each is not type(None))
    return rest[0] if len(rest) == 1 else Union[rest]  # noqa: UP007 - made at run time


def _optional(inner: Any, bounds: Described, within: tuple[Any, ...]) -> TypedInput:
    found = typed_input(inner, within)
    return TypedInput(
        {**found.described, **bounds, "optional": True},
        lambda value: None if value is None else found.shown(value),
        lambda given: None if given is None else found.read(given),
    )


# Bounds


_LIMITS: Final = {"ge": "min", "gt": "above", "le": "max", "lt": "below"}
_SIZES: Final = {"min_length": "shortest", "max_length": "longest", "pattern": "pattern"}


def _bounds(annotation: Any) -> Described:
    """The bounds in `Annotated[…]`: of numbers as texts, of texts and lists as numbers."""
    found: Described = {}
    while True:
        for each in getattr(annotation, "__metadata__", ()):
            found |= _bounds_in(each)
        inner = (
            get_args(annotation)[0]
            if hasattr(annotation, "__metadata__")
            else resolve_alias(annotation)
        )
        if inner is annotation:
            return found
        annotation = inner


def _bounds_in(mark: Any) -> Described:
    found = {
        name: str(getattr(mark, attribute))
        for attribute, name in _LIMITS.items()
        if getattr(mark, attribute, None) is not None
    }
    sizes = {
        name: getattr(mark, attribute)
        for attribute, name in _SIZES.items()
        if isinstance(getattr(mark, attribute, None), int | str)
    }
    nested = getattr(mark, "metadata", ())  # of pydantic's Field(…)
    inner = [_bounds_in(each) for each in nested] if isinstance(nested, list | tuple) else []
    return {**found, **sizes, **{name: each[name] for each in inner for name in each}}


# Scalars


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _bytes(given: Any) -> Any:
    try:
        return b64decode(given, validate=True)
    except (ValueError, TypeError):
        raise UsageError(f"is {given!r}: it is not Base64") from None


_DURATION: Final = re.compile(
    r"\s*(-)?\s*(?:(\d+)\s*d)?\s*(?:(\d+)\s*h)?\s*(?:(\d+)\s*m)?\s*(?:(\d+)(?:\.(\d{1,6}))?\s*s)?\s*",
    re.IGNORECASE,
)


def duration_text(value: timedelta) -> str:
    """A duration as people write it: `1d 2h 5m 0.5s`."""
    seconds, micros = divmod(abs(value) // timedelta(microseconds=1), 1_000_000)
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3_600)
    minutes, seconds = divmod(seconds, 60)
    last = f"{seconds}.{micros:06}".rstrip("0") if micros else str(seconds)
    parts = [f"{days}d" * bool(days), f"{hours}h" * bool(hours), f"{minutes}m" * bool(minutes)]
    parts.append(f"{last}s" * (last != "0"))
    return ("-" if value < timedelta() else "") + (" ".join(filter(None, parts)) or "0s")


def _duration(given: Any) -> Any:
    """A duration of the form above; anything else is left to the model, which takes `PT2H` and `02:00:00`."""
    found = _DURATION.fullmatch(given) if isinstance(given, str) else None
    if found is None or not any(found.groups()[1:]):
        return given
    sign, days, hours, minutes, seconds, fraction = found.groups(default="0")
    try:
        span = timedelta(
            days=int(days),
            hours=int(hours),
            minutes=int(minutes),
            seconds=int(seconds),
            microseconds=int(fraction.ljust(6, "0")),
        )
    except OverflowError:
        raise UsageError(f"is {given!r}: a duration has less than a billion days") from None
    return -span if sign == "-" else span


_SCALARS: Final[dict[type, TypedInput]] = {
    str: TypedInput({"kind": "text"}, _same, _same),
    bool: TypedInput({"kind": "boolean"}, _same, _same),
    int: TypedInput({"kind": "integer"}, str, _same),
    float: TypedInput({"kind": "float"}, repr, _same),
    Decimal: TypedInput({"kind": "decimal"}, str, _same),
    bytes: TypedInput({"kind": "bytes"}, lambda value: b64encode(value).decode(), _bytes),
    datetime: TypedInput({"kind": "instant"}, _instant, _same),
    date: TypedInput({"kind": "date"}, date.isoformat, _same),
    time: TypedInput({"kind": "time"}, time.isoformat, _same),
    timedelta: TypedInput({"kind": "duration"}, duration_text, _duration),
    UUID: TypedInput({"kind": "id"}, str, _same),
}


# Choices


def _label(value: Any) -> str:
    if isinstance(value, Enum):
        return value.value if isinstance(value.value, str) else value.name
    return value if isinstance(value, str) else repr(value)


def _name(value: Any) -> str:
    return value.name if isinstance(value, Enum) else repr(value)


def _choice(values: Sequence[Any]) -> TypedInput:
    """One of some values; a text that is none of them is left to the model, which names those that there are.

    Where two would have the same label, as 1 and "1" have, all have the labels of a program.
    """
    label = _label
    if len({_label(each) for each in values}) < len(values):
        label = _name
    by_label = {label(each): each for each in values}
    return TypedInput(
        {"kind": "choice", "choices": list(by_label)},
        label,
        lambda given: by_label.get(given, given) if isinstance(given, str) else given,
    )


# Types made of other types


def _list(_: Any, arguments: tuple[Any, ...], within: tuple[Any, ...]) -> TypedInput:
    item = typed_input(arguments[0], within)
    return TypedInput(
        {"kind": "list", "item": item.described},
        lambda value: [item.shown(each) for each in value],
        lambda given: [item.read(each) for each in given],
    )


def _set(_: Any, arguments: tuple[Any, ...], within: tuple[Any, ...]) -> TypedInput:
    item = typed_input(arguments[0], within)

    def read(given: Any) -> Any:
        found = [item.read(each) for each in given]
        if len({repr(each) for each in found}) < len(found):
            raise UsageError("has an element twice")
        return found

    return TypedInput(
        {"kind": "set", "item": item.described},
        lambda value: sorted(map(item.shown, value), key=str),
        read,
    )


def _dict(plain: Any, arguments: tuple[Any, ...], within: tuple[Any, ...]) -> TypedInput:
    if plain_type(arguments[0]) is not str:
        return _raw(plain)
    item = typed_input(arguments[1], within)
    return TypedInput(
        {"kind": "map", "item": item.described},
        lambda value: {name: item.shown(each) for name, each in value.items()},
        lambda given: {name: item.read(each) for name, each in given.items()},
    )


def _tuple(plain: Any, arguments: tuple[Any, ...], within: tuple[Any, ...]) -> TypedInput:
    if not arguments or arguments == ((),):
        return _raw(plain)
    if arguments[-1] is ...:
        return _list(plain, arguments, within)
    items = [typed_input(each, within) for each in arguments]
    return TypedInput(
        {"kind": "tuple", "items": [each.described for each in items]},
        lambda value: [each.shown(part) for each, part in zip(items, value, strict=True)],
        lambda given: [each.read(part) for each, part in zip(items, given, strict=True)],
    )


_CONTAINERS: Final[dict[Any, Callable[[Any, tuple[Any, ...], tuple[Any, ...]], TypedInput]]] = {
    list: _list,
    collections.abc.Sequence: _list,
    set: _set,
    frozenset: _set,
    collections.abc.Set: _set,
    dict: _dict,
    collections.abc.Mapping: _dict,
    tuple: _tuple,
}


class _Member(NamedTuple):
    """A member of a nested model: its type, whether it must be given, and whether an empty one is None."""

    annotation: Any
    is_required: bool
    may_be_none: bool


def _members(kind: type) -> dict[str, _Member] | None:
    """The members of a pydantic model, a dataclass or a TypedDict; None for another class."""
    if typing.is_typeddict(kind) or type(kind).__name__ == "_TypedDictMeta":
        hints = typing.get_type_hints(kind, include_extras=True)
        return {name: _member_of_dict(kind, name, each) for name, each in hints.items()}
    fields = getattr(kind, "model_fields", None)
    if isinstance(fields, dict):
        settings = getattr(kind, "model_config", {})
        # A strict model takes no text for a number; one with members of any name would lose them.
        is_raw = settings.get("strict") or settings.get("extra") == "allow"
        return None if is_raw else _members_of_model(fields)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind, include_extras=True)
        return {
            each.name: _Member(hints[each.name], _is_required(each), is_optional(hints[each.name]))
            for each in dataclasses.fields(kind)
            if each.init
        }
    return None


def _member_of_dict(kind: Any, name: str, annotation: Any) -> _Member:
    """A member of a TypedDict, which is absent if it is empty and need not be there.

    The class itself does not know of `NotRequired[…]` in annotations that were texts.
    """
    mark = str(get_origin(annotation)).rpartition(".")[2]
    marked = {"Required": True, "NotRequired": False}
    is_required = marked.get(mark, name in kind.__required_keys__)
    bare = get_args(annotation)[0] if mark in marked else annotation
    return _Member(bare, is_required, is_required)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _members_of_model(fields: Mapping[str, Any]) -> dict[str, _Member] | None:
    """The members of a pydantic model; None if it is read by other names than its own."""
    if any(each.alias or each.validation_alias for each in fields.values()):
        return None
    return {
        name: _Member(
            typing.Annotated[(each.annotation, *each.metadata)]
            if each.metadata
            else each.annotation,
            each.is_required(),
            is_optional(each.annotation),
        )
        for name, each in fields.items()
    }


def _record(kind: Any, members: Mapping[str, _Member], within: tuple[Any, ...]) -> TypedInput:
    inputs = {name: typed_input(each.annotation, within) for name, each in members.items()}

    def shown(value: Any) -> Any:
        of = value.get if isinstance(value, dict) else partial(getattr, value)
        found = {name: of(name, None) for name in inputs}
        return {
            name: None if each is None else inputs[name].shown(each) for name, each in found.items()
        }

    def read(given: Any) -> Any:
        """Members that may be left out, and are empty, are left out."""
        return {
            name: inputs[name].read(each)
            for name, each in given.items()
            if name in inputs
            and (each is not None or members[name].is_required or members[name].may_be_none)
        }

    described = [
        {"name": name, "required": members[name].is_required, **each.described}
        for name, each in inputs.items()
    ]
    return TypedInput({"kind": "record", "of": kind.__name__, "members": described}, shown, read)
