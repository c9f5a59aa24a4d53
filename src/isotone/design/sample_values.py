"""Sample values of fields: ordinary ones by chance, and distinct ones, as keys and unique fields need them.

A field's type and its bounds (`min`, `max`, `scale`, pydantic's `Field(gt=…)`) decide. The name of a text field decides
what the text is about.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from math import gcd
from typing import Any, Final, NamedTuple, get_args, get_origin

from isotone.codec.ids import ID_TYPES, id_with
from isotone.design.chance import Chance, mixed, scattered
from isotone.design.sample_texts import SampleTexts
from isotone.errors import UsageError
from isotone.model import Attr, VectorAttr, choices, is_optional, present_type, type_text

Maker = Callable[[Chance], Any]

_DAY: Final = 86_400
_YEAR: Final = 365
_WITHIN: Final = 0.29  # of the `max` of a number in a key, so that no headroom is reported
_LARGEST: Final = 1000  # of a number without a declared maximum
_LONGEST: Final = 3  # elements of a list


@dataclasses.dataclass(frozen=True, slots=True)
class SampleSettings:
    """What all values of a sample depend on: the time that it ends at, and its texts."""

    until: datetime
    texts: SampleTexts


class DistinctValues(NamedTuple):
    """Values of which no two are equal: `value(ordinal, number)`, by the place among siblings and among all items.

    `capacity` is how many there are; None for as many as anybody asks for.
    """

    capacity: int | None
    value: Callable[[int, int], Any]


class _Rounding(NamedTuple):
    """Times of which a key keeps only a part: what that part is, and how far apart times are that differ in it."""

    apply: Callable[[Any], Any]
    apart: timedelta


_ROUNDINGS: Final = (
    _Rounding(lambda at: at, timedelta(minutes=1)),
    _Rounding(lambda at: at.replace(second=0), timedelta(minutes=2)),
    _Rounding(lambda at: at.replace(minute=0, second=0), timedelta(hours=2)),
    _Rounding(lambda at: at.replace(hour=0, minute=0, second=0), timedelta(days=2)),
    _Rounding(lambda at: at.replace(day=1, hour=0, minute=0, second=0), timedelta(days=64)),
    _Rounding(
        lambda at: at.replace(month=1, day=1, hour=0, minute=0, second=0), 2 * timedelta(367)
    ),
)
_ROUNDED: Final = datetime(2025, 11, 29, 13, 47, 31, tzinfo=UTC)


def rounding_of(field: Attr[Any], keys: Iterable[Any]) -> _Rounding:
    """The finest times that all keys with a field can hold: `written(at, "%Y-%m-%d")` takes whole days."""
    if present_type(field.annotation) is not datetime:
        return _ROUNDINGS[0]
    codecs = [
        part.codec(field)
        for key in keys
        for part in key.components
        if part.field is field and part.codec is not None
    ]
    for rounding in _ROUNDINGS:
        try:
            for codec in codecs:
                codec.encode(rounding.apply(_ROUNDED))
        except UsageError:
            continue
        return rounding
    raise UsageError(f"field {field.name!r} has no sample values that its keys take")


# Ordinary values


def maker_of(field: Attr[Any], settings: SampleSettings, keys: Iterable[Any] = ()) -> Maker | None:
    """The function that makes values of a field, which may be in keys; None if only its default is known.

    Raises `UsageError` if there is none for a required field.
    """
    with_field = [key for key in keys if field.name in key.component_names]
    in_key = bool(with_field)
    if field.options.role == "expires":
        make: Maker | None = partial(_later, settings.until)
    elif isinstance(field, VectorAttr):
        make = partial(_numbers, field.dimensions)
    else:
        make = _maker(field.annotation, field.name, settings, _Bounds.of(field, in_key=in_key))
    if make is None and field.options.required:
        raise UsageError(
            f"field {field.name!r} is {type_text(field.annotation)}, for which there are no sample values; give it a "
            "default, or write its items from code"
        )
    rounding = rounding_of(field, with_field)
    if make is not None and rounding is not _ROUNDINGS[0]:
        make = partial(_rounded, rounding.apply, make)
    if make is not None and is_optional(field.annotation) and not in_key:
        return partial(_or_none, make)
    return make


def _rounded(apply: Callable[[Any], Any], make: Maker, chance: Chance) -> Any:
    return apply(make(chance))


def _or_none(make: Maker, chance: Chance) -> Any:
    return None if chance.below(5) == 0 else make(chance)


def _later(until: datetime, chance: Chance) -> datetime:
    """An expiry so late that the sample does not vanish."""
    return until + timedelta(days=chance.between(10 * _YEAR, 30 * _YEAR))


def _earlier(until: datetime, chance: Chance) -> datetime:
    return until - timedelta(seconds=chance.between(1, _YEAR * _DAY))


def _numbers(count: int, chance: Chance) -> list[float]:
    return [round(chance.random() * 2 - 1, 4) for _ in range(count)]


@dataclasses.dataclass(frozen=True, slots=True)
class _Bounds:
    """The least and the greatest number, or the lengths of a text or a list."""

    low: Decimal | None = None
    high: Decimal | None = None
    above: bool = False
    """Whether numbers must be above the least one."""
    below: bool = False
    scale: int | None = None
    shortest: int = 0
    longest: int | None = None

    @classmethod
    def of(cls, field: Attr[Any], *, in_key: bool) -> _Bounds:
        """The bounds of a field; a number in a key keeps away from the width of the key."""
        options = field.options
        bounds = _annotated(field.annotation)
        low, high = bounds.low, bounds.high
        if options.min is not None:
            low = max(Decimal(options.min), low) if low is not None else Decimal(options.min)
        if isinstance(options.max, int | float | Decimal):
            most = Decimal(str(options.max))
            if in_key and options.alert is not None and most >= 100:
                most = Decimal(int(most * Decimal(str(_WITHIN))))
            high = min(most, high) if high is not None else most
        return dataclasses.replace(bounds, low=low, high=high, scale=options.scale)

    def steps(self, scale: int = 0) -> tuple[int, int]:
        """The bounds of a number with so many decimal places, as multiples of the last one."""
        low = Decimal(0) if self.low is None else self.low
        high = low + _LARGEST if self.high is None else self.high
        least = int(low.scaleb(scale).to_integral_value("ROUND_CEILING"))
        most = int(high.scaleb(scale).to_integral_value("ROUND_FLOOR"))
        least += self.above and Decimal(least) == low.scaleb(scale)
        most -= self.below and Decimal(most) == high.scaleb(scale)
        return (least, max(least, most)) if self.low is not None else (min(least, most), most)


def _annotated(annotation: Any) -> _Bounds:
    """The bounds in the metadata of `Annotated[…]`, such as pydantic's `Field(gt=0, max_length=20)`."""
    found: dict[str, Any] = {}
    for each in _metadata(annotation):
        for name, bound in (("ge", "low"), ("gt", "low"), ("le", "high"), ("lt", "high")):
            if isinstance(getattr(each, name, None), int | float | Decimal):
                found[bound] = Decimal(str(getattr(each, name)))
                found |= {"gt": {"above": True}, "lt": {"below": True}}.get(name, {})
        if getattr(each, "min_length", None) is not None:
            found["shortest"] = each.min_length
        if getattr(each, "max_length", None) is not None:
            found["longest"] = each.max_length
    return _Bounds(**found)


def _metadata(annotation: Any) -> list[Any]:
    """Everything that `Annotated` adds to a type, also that of an optional one; a pydantic FieldInfo has a list itself."""
    if get_origin(annotation) is typing.Annotated:
        found: list[Any] = [*_metadata(get_args(annotation)[0])]
        for each in annotation.__metadata__:
            found += getattr(each, "metadata", None) or [each]
        return found
    if is_optional(annotation):
        return [part for each in get_args(annotation) for part in _metadata(each)]
    return []


def _maker(
    annotation: Any, name: str, settings: SampleSettings, bounds: _Bounds, depth: int = 0
) -> Maker | None:
    """The maker of a type; None if nothing is known about it."""
    known = choices(annotation)
    if known is not None:
        return lambda chance: chance.pick(known)
    present = present_type(annotation)
    origin, arguments = get_origin(present), get_args(present)
    if isinstance(present, type) and origin is None:
        simple = _scalar(present, name, settings, bounds)
        return simple or _record(present, settings, depth) or _by_trial(annotation)
    if origin in (list, set, frozenset, tuple, dict, Sequence):
        return _container(origin, arguments, name, settings, bounds, depth)
    if typing.get_origin(present) in (typing.Union, *_UNION) and arguments:
        return _maker(arguments[0], name, settings, bounds, depth)
    return _by_trial(annotation)


_UNION: Final = (type(int | str),)


def _scalar(kind: type, name: str, settings: SampleSettings, bounds: _Bounds) -> Maker | None:
    until = settings.until
    if kind is bool:
        return lambda chance: chance.below(4) == 0
    if issubclass(kind, int) and not issubclass(kind, Enum):
        low, high = bounds.steps()
        return lambda chance: chance.between(low, high)
    if kind in (Decimal, float):
        return partial(_fraction, kind, bounds)
    if kind is datetime:
        return partial(_earlier, until)
    if kind is date:
        return lambda chance: (until - timedelta(days=chance.between(1, _YEAR))).date()
    if kind is time:
        return lambda chance: time(chance.below(24), chance.below(60), chance.below(60))
    if kind is timedelta:
        return lambda chance: timedelta(seconds=chance.between(1, _DAY))
    if kind in ID_TYPES:
        return lambda chance: id_with(kind, _earlier(until, chance), chance.bits())
    if kind is bytes:
        return lambda chance: chance.bits().to_bytes(8)
    if kind is str or (issubclass(kind, str) and not issubclass(kind, Enum)):
        text = settings.texts.maker(name)
        return lambda chance: kind(_fitting(text(chance), bounds))
    return None


def _fraction(kind: Any, bounds: _Bounds, chance: Chance) -> Any:
    scale = 2 if bounds.scale is None else bounds.scale
    value = Decimal(chance.between(*bounds.steps(scale))).scaleb(-scale)
    return value if kind is Decimal else float(value)


def _fitting(text: str, bounds: _Bounds) -> str:
    """A text of an allowed length."""
    return text[: bounds.longest].ljust(bounds.shortest, "x")


def _container(
    origin: Any,
    arguments: tuple[Any, ...],
    name: str,
    settings: SampleSettings,
    bounds: _Bounds,
    depth: int,
) -> Maker | None:
    if origin is tuple and arguments[-1:] != (...,):
        parts = [_maker(each, name, settings, _Bounds(), depth + 1) for each in arguments]
        if any(each is None for each in parts):
            return None
        return lambda chance: tuple(each(chance) for each in parts if each is not None)
    kind: Any = list if origin is Sequence else origin
    inner = arguments[1] if kind is dict else arguments[0]
    element = _maker(inner, name, settings, _annotated(inner), depth + 1)
    if element is None:
        return None
    least = bounds.shortest
    most = max(least, _LONGEST if bounds.longest is None else min(bounds.longest, _LONGEST))

    def make(chance: Chance) -> Any:
        values = [element(chance) for _ in range(chance.between(least, most))]
        if kind is dict:
            return {f"{name}_{at}": each for at, each in enumerate(values, 1)}
        return kind(values)

    return make


def _record(kind: type, settings: SampleSettings, depth: int) -> Maker | None:
    """The maker of a class with annotated fields: a pydantic model, a dataclass, a TypedDict, a NamedTuple."""
    is_known = (
        hasattr(kind, "model_fields")
        or dataclasses.is_dataclass(kind)
        or hasattr(kind, "__total__")  # a TypedDict, also that of typing_extensions
        or (issubclass(kind, tuple) and hasattr(kind, "_fields"))
    )
    if not is_known or depth > _LONGEST:
        return None
    hints = typing.get_type_hints(kind, include_extras=True)
    if hasattr(kind, "model_fields"):
        hints = {name: hints[name] for name in kind.model_fields}
    makers = {
        name: _maker(hint, name, settings, _annotated(hint), depth + 1)
        for name, hint in hints.items()
        if get_origin(hint) is not typing.ClassVar
    }
    if any(each is None for each in makers.values()):
        return None
    made: Any = kind
    return lambda chance: made(
        **{name: make(chance) for name, make in makers.items() if make is not None}
    )


_TRIED: Final[tuple[Any, ...]] = (
    "https://example.com/a",
    "ann@example.com",
    "192.0.2.1",
    "a text",
    1,
    [],
    {},
)


def _by_trial(annotation: Any) -> Maker | None:
    """The maker of a type that pydantic alone knows: the first of some values that it accepts."""
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(annotation)
    for value in _TRIED:
        try:
            adapter.validate_python(value)
        except ValidationError:
            continue
        return partial(_always, value)
    return None


def _always(value: Any, _: Chance) -> Any:
    return value


# Distinct values


def distinct_of(
    field: Attr[Any], settings: SampleSettings, keys: Iterable[Any] = ()
) -> DistinctValues:
    """Values of a field of which no two are equal, nor in its keys; raises `UsageError` for a type without any."""
    known = choices(field.annotation)
    if known is not None:
        return DistinctValues(len(known), lambda ordinal, _: known[ordinal])
    kind = present_type(field.annotation)
    until, bounds = settings.until, _Bounds.of(field, in_key=False)
    rounded, step = rounding_of(field, keys)
    if not isinstance(kind, type):
        raise _not_distinct(field)
    if kind is bool:
        return DistinctValues(2, lambda ordinal, _: bool(ordinal))
    if issubclass(kind, int):
        return _whole_numbers(kind, bounds)
    if kind in (Decimal, float):
        return _whole_numbers(kind, bounds)
    if kind is datetime:
        return DistinctValues(
            None, lambda ordinal, number: rounded(_moment(until, step, ordinal, number))
        )
    if kind is date:
        return DistinctValues(
            until.toordinal() - 1, lambda ordinal, _: (until - timedelta(days=ordinal)).date()
        )
    if kind is time:
        return DistinctValues(
            _DAY, lambda ordinal, _: (datetime.min + timedelta(seconds=ordinal)).time()
        )
    if kind is timedelta:
        return DistinctValues(None, lambda ordinal, _: timedelta(seconds=ordinal + 1))
    if kind in ID_TYPES:
        return DistinctValues(
            None,
            lambda ordinal, number: id_with(
                kind, _moment(until, step, ordinal, number), mixed(number + 1)
            ),
        )
    if kind is bytes:
        return DistinctValues(None, lambda _, number: mixed(number + 1).to_bytes(8))
    if issubclass(kind, str):
        return DistinctValues(None, partial(_distinct_text, kind, field.name, bounds.longest))
    raise _not_distinct(field)


def _whole_numbers(kind: Any, bounds: _Bounds) -> DistinctValues:
    low, high = bounds.steps()
    if low == 0 and high > 0:
        low = 1  # people count from 1
    capacity = None if bounds.high is None else high - low + 1
    return DistinctValues(capacity, lambda ordinal, _: kind(low + ordinal))


def _moment(until: datetime, step: timedelta, ordinal: int, number: int) -> datetime:
    """A time of the year before the end, another one for each ordinal: the first few are as spread over the year as many."""
    steps = max(timedelta(_YEAR) // step, 1)
    year, place = divmod(ordinal, steps)
    before = year * steps + place * _stride(steps) % steps + 1
    part = scattered(number) * int(step.total_seconds()) // 2 >> 32
    return until - step * before + timedelta(seconds=part)


@cache
def _stride(steps: int) -> int:
    """How far the next of some steps is, so that all are reached once, and gaps are filled evenly: by the golden ratio."""
    stride = int(steps * 0.618034)
    while gcd(stride, steps) != 1:
        stride += 1
    return stride


def _distinct_text(kind: Any, name: str, longest: int | None, _: int, number: int) -> Any:
    digits = f"{scattered(number):08x}"
    if "mail" in name:
        return kind(f"{digits}@example.com")
    stem = name.removesuffix("_id").removesuffix("_name")
    text = digits if stem == "id" else f"{stem}-{digits}"
    return kind(text if longest is None else text[-longest:])


def _not_distinct(field: Attr[Any]) -> UsageError:
    return UsageError(
        f"field {field.name!r} is {type_text(field.annotation)}, and there are no sample values of it that differ from "
        "one another, as a key needs them; write its items from code"
    )
