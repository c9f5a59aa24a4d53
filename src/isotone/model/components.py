"""Components: a field's place in a key, and the codec that writes it there so that it sorts.

Which codec follows from the field's type and from what is declared of it; a field that has none, or a
number without a declared width, is refused.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin
from uuid import UUID

from isotone.codec import readable
from isotone.codec.ids import KSUID, ULID
from isotone.errors import UsageError
from isotone.model.fields import Attr

Form = Literal["value", "declared order", "raw"]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """A field's place in a key: which way it sorts, and in which form it is written."""

    field: Attr[Any]
    descending: bool = False
    form: Form = "value"


Part = str | Attr[Any] | Component


def desc(part: Attr[Any] | Component) -> Component:
    """The field in descending order: the greatest value comes first.

    >>> Key("ORDER").sort(desc(number))  # doctest: +SKIP
    """
    component = component_of(part)
    return replace(component, descending=not component.descending)


def in_order(part: Attr[Any] | Component) -> Component:
    """An enum or Literal in the order in which its values are declared, not by their text."""
    return replace(component_of(part), form="declared order")


def raw(part: Attr[Any] | Component) -> Component:
    """A text as it is, for the last place of a key; elsewhere it could leak into its neighbour."""
    return replace(component_of(part), form="raw")


def component_of(part: Attr[Any] | Component) -> Component:
    """A bare field as a component in ascending order."""
    return part if isinstance(part, Component) else Component(part)


def codec_of(component: Component, *, is_last: bool) -> readable.Codec[Any]:
    """The codec of a component of a string key; raises `UsageError` where none could sort rightly."""
    field = component.field
    if component.form == "raw":
        if not is_last:
            raise UsageError(f"raw({field.name}) can only be the last part of a key")
        codec: readable.Codec[Any] = readable.RawText(field.options.case)
    elif component.form == "declared order":
        codec = readable.Choice(tuple(map(str, _choices(field))))
    else:
        codec = _by_type(field)
    return codec.descending() if component.descending else codec


def _by_type(field: Attr[Any]) -> readable.Codec[Any]:
    python = _python_type(field.annotation)
    for kind, make in _CODECS.items():
        if isinstance(python, type) and issubclass(python, kind):
            return make(field)
    raise UsageError(
        f"field {field.name!r} of type {python!r} cannot be part of a string key; "
        "a key is made of texts, numbers, times, ids, enums, flags and bytes"
    )


def _python_type(annotation: Any) -> Any:
    """The class behind an annotation: without Optional and Annotated, a Literal by its values' class."""
    origin = get_origin(annotation)
    if origin is typing.Annotated:
        return _python_type(get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        rest = [each for each in get_args(annotation) if each is not type(None)]
        return _python_type(rest[0]) if len(rest) == 1 else annotation
    if origin is Literal:
        kinds = {type(choice) for choice in get_args(annotation)}
        return kinds.pop() if len(kinds) == 1 else annotation
    return annotation


def _natural(field: Attr[Any]) -> readable.Codec[Any]:
    options = field.options
    maximum = options.max
    if maximum is None and get_origin(field.annotation) is Literal:
        maximum = max(get_args(field.annotation))
    if maximum is None:
        raise UsageError(
            f"field {field.name!r} has no declared width: in a string key 10 would come before 2 "
            "(as '10' < '2'); declare the greatest value it can have: field(max=99_999)"
        )
    if options.min is not None and options.min < 0:
        return readable.Integer(options.min, int(maximum))
    return readable.Natural(int(maximum))


def _fixed_point(field: Attr[Any]) -> readable.Codec[Any]:
    options = field.options
    if options.max is None or options.scale is None:
        raise UsageError(
            f"field {field.name!r} has no declared width: in a string key 10 would come before 2 "
            "(as '10' < '2'); declare its greatest value and its decimal places: "
            "field(max=99_999, scale=2)"
        )
    return readable.FixedPoint(options.max, options.scale, signed=(options.min or 0) < 0)


# The first class that a field's type is a subclass of; bool before int, datetime before date.
_CODECS: Final[dict[type, Callable[[Attr[Any]], readable.Codec[Any]]]] = {
    Enum: lambda field: readable.Text(field.options.case),
    KSUID: lambda field: readable.Ksuid(),
    ULID: lambda field: readable.Ulid(),
    str: lambda field: readable.Text(field.options.case),
    bool: lambda field: readable.Flag(),
    int: _natural,
    Decimal: _fixed_point,
    float: lambda field: readable.Float(),
    datetime: lambda field: readable.Instant(field.options.precision),
    date: lambda field: readable.Day(),
    time: lambda field: readable.TimeOfDay(),
    timedelta: lambda field: readable.Span(),
    UUID: lambda field: readable.Uuid(),
    bytes: lambda field: readable.Hex(),
}


def _choices(field: Attr[Any]) -> tuple[Any, ...]:
    python = field.annotation
    if get_origin(python) is Literal:
        return get_args(python)
    if isinstance(python, type) and issubclass(python, Enum):
        return tuple(member.value for member in python)
    raise UsageError(
        f"in_order({field.name}) needs an enum or a Literal, whose values have an order"
    )


def conversion(component: Component) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Between a field's value and what its codec takes: an enum goes by its value."""
    python = _python_type(component.field.annotation)
    if isinstance(python, type) and issubclass(python, Enum):
        by_text = {str(member.value): member for member in python}

        def text_of(member: Any) -> str:
            if not isinstance(member, python):
                name = component.field.name
                raise UsageError(f"field {name!r}: {member!r} is no member of {python.__name__}")
            return str(member.value)

        return text_of, by_text.__getitem__
    if component.form == "declared order":
        by_text = {str(choice): choice for choice in _choices(component.field)}
        return str, by_text.__getitem__
    return _same, _same


def _same(value: Any) -> Any:
    return value
