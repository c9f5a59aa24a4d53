"""Components: a field's place in a key, and the codec that writes it there so that it sorts.

Which codec follows from the field's type and from what is declared of it; a field that has none, or a
number without a declared width, is refused. What hand-made keys have in another form is declared by
`raw`, `written` and `since_epoch`.
"""

from __future__ import annotations

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
from isotone.model.declaring.annotations import choices, present_type
from isotone.model.declaring.fields import Attr

Form = Literal["value", "declared order", "raw"]


@dataclass(frozen=True, slots=True, eq=False)
class Component:
    """A field's place in a key: which way it sorts, and in which form it is written."""

    field: Attr[Any]
    descending: bool = False
    form: Form = "value"
    codec: Callable[[Attr[Any]], readable.Codec[Any]] | None = None


Part = str | Attr[Any] | Component


def desc(part: Attr[Any] | Component) -> Component:
    """The field in descending order: the greatest value comes first.

    >>> Key("ORDER").sort(desc(number))  # doctest: +SKIP
    """
    component = component_of(part)
    return replace(component, descending=not component.descending)


def in_order(part: Attr[Any] | Component) -> Component:
    """An enum or Literal in the order in which its values are declared, not by their text.

    It may be optional; as of any field, an index has no entry where the value is None.
    """
    return replace(component_of(part), form="declared order")


def raw(part: Attr[Any] | Component) -> Component:
    """A text as it is, and an int without zeros before it: for keys that were made by hand.

    Such a text is refused where it holds the separator, unless it is the last part. Keys do not sort by
    it where something follows it, nor by such a number: there it can be asked for what it equals, and a
    text for what it begins with.

    >>> Key("USER", raw(name)).sort("ORDER", raw(number))  # doctest: +SKIP
    """
    return replace(component_of(part), form="raw")


def written(part: Attr[Any] | Component, pattern: str) -> Component:
    """A date, or a datetime in UTC, in a form of your own, told as `strftime` does.

    The parts have to come in the order of their significance, or keys would not sort by them.

    >>> Key("DAY", written(day, "%Y%m%d")).sort(written(at, "%Y-%m-%d %H:%M:%S"))  # doctest: +SKIP
    """
    return replace(
        component_of(part),
        codec=lambda field: readable.Written(pattern, day=_is_day(field, "written")),
    )


def since_epoch(
    part: Attr[Any] | Component,
    unit: Literal["seconds", "milliseconds", "microseconds"] = "seconds",
    *,
    digits: int | None = None,
) -> Component:
    """A datetime as the number of seconds, or of what is smaller, since 1970.

    `digits` is what it is padded to; without it, what the years from 2001 to 2286 take: 10 for seconds,
    13 for milliseconds, 16 for microseconds.

    >>> Key("SENSOR", sensor).sort(since_epoch(at, "milliseconds"))  # doctest: +SKIP
    """
    return replace(component_of(part), codec=lambda field: _epoch_instant(field, unit, digits))


def component_of(part: Attr[Any] | Component) -> Component:
    """A bare field as a component in ascending order."""
    return part if isinstance(part, Component) else Component(part)


def codec_of(component: Component, separator: str) -> readable.Codec[Any]:
    """The codec of a component of a string key; raises `UsageError` where none could sort rightly.

    Texts are escaped where `#` separates. Before another separator no escape could keep their order, so
    they stand as they are, up to the separator.
    """
    field = component.field
    if component.codec is not None:
        codec = component.codec(field)
    elif component.form == "raw":
        codec = _raw(field)
    elif component.form == "declared order":
        codec = readable.Choice(tuple(map(str, _choices(field))))
    else:
        codec = _by_type(field)
        if separator != readable.SEPARATOR and isinstance(codec, readable.Text):
            codec = codec if component.descending else readable.RawText(codec.case, separator)
    return codec.descending() if component.descending else codec


def _raw(field: Attr[Any]) -> readable.Codec[Any]:
    python = _python_type(field.annotation)
    if isinstance(python, type) and issubclass(python, int) and not issubclass(python, bool | Enum):
        return readable.Unpadded(signed=(field.options.min or 0) < 0)
    if isinstance(python, type) and issubclass(python, str | Enum):
        return readable.RawText(field.options.case)
    raise UsageError(
        f"raw({field.name}) is a {_name(python)}; a text or an int can stand in a key as it is: leave "
        "raw(…) out, or declare the field as str"
    )


def _is_day(field: Attr[Any], what: str) -> bool:
    python = _python_type(field.annotation)
    if isinstance(python, type) and issubclass(python, date):
        return not issubclass(python, datetime)
    raise UsageError(f"{what}({field.name}, …) is a {_name(python)}, neither a date nor a datetime")


_DIGITS: Final = {"seconds": 10, "milliseconds": 13, "microseconds": 16}


def _epoch_instant(
    field: Attr[Any], unit: readable.Precision, digits: int | None
) -> readable.Codec[Any]:
    if _is_day(field, "since_epoch"):
        raise UsageError(f"since_epoch({field.name}) is a date; declare the field as datetime")
    return readable.EpochInstant(unit, _DIGITS.get(unit, 0) if digits is None else digits)


def _name(python: Any) -> str:
    return getattr(python, "__name__", repr(python))


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
    """The class behind an annotation: without None and other names, a Literal by its values' class."""
    present = present_type(annotation)
    if get_origin(present) is Literal:
        kinds = {type(choice) for choice in get_args(present)}
        return kinds.pop() if len(kinds) == 1 else present
    return present


def _natural(field: Attr[Any]) -> readable.Codec[Any]:
    options = field.options
    maximum = options.max
    if maximum is None:
        maximum = max(choices(field.annotation) or (), default=None)
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
    return tuple(each.value if isinstance(each, Enum) else each for each in declared_values(field))


def declared_values(field: Attr[Any]) -> tuple[Any, ...]:
    """The values of an enum or a Literal in the order of their declaration; raises `UsageError`."""
    found = choices(field.annotation)
    if found is None:
        raise UsageError(
            f"in_order({field.name}) needs an enum or a Literal, whose values have an order"
        )
    return found


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
