"""`InvalidEntity`: checks a constructor's values against the declared types (no bounds), and unknown field names.

Validators are built at first use, so that defining an entity is cheap and `import isotone` does not load pydantic.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, Optional, get_args, get_origin

from isotone.errors import InvalidEntity
from isotone.model.declaring.nested_places import Place
from isotone.model.declaring.wire_types import is_optional, resolve_alias

if TYPE_CHECKING:
    from isotone.model.declaring.fields import Attr


class Validator:
    """Validates the fields of one entity."""

    def __init__(self, entity: str, fields: Mapping[str, Attr[Any]]) -> None:
        self._entity = entity
        self._fields = fields

    def all(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values for every field, validated; raises `InvalidEntity` that lists every fault."""
        given = values.keys()
        if not given <= self._names:
            raise self._unknown(sorted(given - self._names))
        if not self._required <= given:
            missing = [name for name in self._fields if name in self._required - given]
            return self._validated(values, [(name, "is missing") for name in missing])
        valid = self._validated(values)
        for name, factory, default in self._defaults:
            if name not in valid:
                valid[name] = default if factory is None else factory()
        return valid

    def one(self, name: str, value: Any) -> Any:
        """One field's value, validated."""
        return self._validated({name: value})[name]

    def some(self, values: Mapping[str, Any], refused: Mapping[str, str]) -> dict[str, Any]:
        """Some fields' values, validated; `refused` says what is wrong with other fields."""
        if not values.keys() <= self._names:
            raise self._unknown(sorted(values.keys() - self._names))
        allowed = {name: value for name, value in values.items() if name not in refused}
        return self._validated(allowed, list(refused.items()))

    def inside(self, name: str, place: Place, value: Any) -> Any:
        """Validate the value at a place inside a field; `name` is the place as source code."""
        try:
            if place.assign is not None:
                return place.assign(value)
            return self._validate_inside(place.annotation)(value)
        except _pydantic().ValidationError as error:
            faults = []
            for each in error.errors():
                inner = each["loc"] if place.assign is None else each["loc"][1:]
                fault, what = _fault({**each, "loc": (name, *inner)}, {name: value})
                faults.append((fault, what))
        raise InvalidEntity(
            f"{self._entity}: " + "; ".join(f"{fault} {what}" for fault, what in faults),
            [{"field": fault, "error": what} for fault, what in faults],
        )

    def _validate_inside(self, annotation: Any) -> Callable[[Any], Any]:
        """pydantic's validator of a type, cached: making one takes a hundred times as long as using it."""
        try:
            validate = self._inside.get(annotation)
        except TypeError:  # the annotation is not hashable, such as one with a list of constraints
            return _validate_of(annotation)
        if validate is None:
            validate = self._inside[annotation] = _validate_of(annotation)
        return validate

    @cached_property
    def _inside(self) -> dict[Any, Callable[[Any], Any]]:
        return {}

    def _validated(
        self, values: Mapping[str, Any], known: Sequence[tuple[str, str]] = ()
    ) -> dict[str, Any]:
        """The values in their declared types; also reports the faults already known."""
        faults = list(known)
        try:
            valid = self._validate(values)
        except _pydantic().ValidationError as error:
            faults += [self._fault(each, values) for each in error.errors()]
        if not faults:
            return valid
        order = list(self._fields)
        faults.sort(key=lambda fault: order.index(fault[0].partition("[")[0]))
        raise InvalidEntity(
            f"{self._entity}: " + "; ".join(f"{name} {what}" for name, what in faults),
            [{"field": name, "error": what} for name, what in faults],
        )

    def _fault(self, error: Any, values: Mapping[str, Any]) -> tuple[str, str]:
        """The field of a pydantic error, and what is wrong; hidden values are not shown."""
        place, what = _fault(error, values)
        if self._fields[error["loc"][0]].options.hidden:
            what = _words(error)
        return place, what

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self._fields)

    @cached_property
    def _defaults(self) -> tuple[tuple[str, Callable[[], Any] | None, Any], ...]:
        """For each field: its name, its default_factory and its default."""
        return tuple(
            (
                name,
                field.options.default_factory,
                field.options.default if field.options.has_default else None,
            )
            for name, field in self._fields.items()
        )

    @cached_property
    def _required(self) -> frozenset[str]:
        return frozenset(
            name
            for name, field in self._fields.items()
            if field.options.required and not is_optional(field.annotation)
        )

    @cached_property
    def _validate(self) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
        """pydantic's validator of all fields at once; any of them may be left out."""
        import typing_extensions

        shape: Any = typing_extensions.TypedDict  # made at run time, so Any for type checkers
        accepted = {name: accepted_type(field) for name, field in self._fields.items()}
        values = shape(self._entity, accepted, total=False)
        if any(field.options.codec is not None for field in self._fields.values()):
            values.__pydantic_config__ = {
                "arbitrary_types_allowed": True
            }  # for the program's own types
        adapter = _pydantic().TypeAdapter(values)
        validate: Callable[[Mapping[str, Any]], dict[str, Any]] = adapter.validator.validate_python
        return validate

    def _unknown(self, names: list[str]) -> InvalidEntity:
        hints = []
        for name in names:
            close = difflib.get_close_matches(name, self._fields, n=1)
            hints.append(f"{name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
        return InvalidEntity(
            f"{self._entity} has no field {', '.join(hints)}",
            [{"field": name, "error": "unknown"} for name in names],
        )


def _validate_of(annotation: Any) -> Callable[[Any], Any]:
    adapter = _pydantic().TypeAdapter(with_leaves(annotation, aware_leaves()))
    validate: Callable[[Any], Any] = adapter.validator.validate_python
    return validate


def _fault(error: Any, values: Mapping[str, Any]) -> tuple[str, str]:
    """The field of a pydantic error, and what is wrong with it."""
    name, *inner = error["loc"]
    place = name + "".join(f"[{part!r}]" for part in inner)
    shown = repr(values[name])
    if len(shown) > _SHOWN:
        shown = f"{shown[:_SHOWN]}…"
    return place, f"is {shown}: {_words(error)}"


def _words(error: Any) -> str:
    words: str = _REWORDED.get(error["type"], error["msg"])
    return words


_SHOWN: Final = 200  # characters of a value shown in a message


# Isotone's messages instead of pydantic's, by the error's type.
_REWORDED: Final = {
    "timezone_aware": (
        "it has no time zone, so it does not identify an instant; write datetime(…, tzinfo=UTC) or "
        "datetime.now(UTC), and in a string add Z or an offset"
    )
}


def _pydantic() -> Any:
    """pydantic, loaded when the first entity is created."""
    import pydantic

    return pydantic


def default_of(field: Attr[Any]) -> Any:
    """The default value of a field in a new entity."""
    options = field.options
    if options.default_factory is not None:
        return options.default_factory()
    return options.default if options.has_default else None


def accepted_type(field: Attr[Any], leaves: Mapping[Any, Any] | None = None) -> Any:
    """The type of a field's values; also accepts None if the library sets the field."""
    accepted: Any = with_leaves(field.annotation, aware_leaves() if leaves is None else leaves)
    if field.options.role == "plain":
        return accepted
    optional: Any = Optional[accepted]  # noqa: UP045
    if field.options.role != "expires":
        return optional
    from pydantic import AfterValidator

    return typing.Annotated[optional, AfterValidator(_to_the_second)]


def _to_the_second(value: datetime | None) -> datetime | None:
    """An expiry as stored: TimeToLive counts whole seconds."""
    return None if value is None else value.replace(microsecond=0)


def _exact(value: Any) -> Any:
    """Refuse a float for a Decimal: 0.1 + 0.2 is not 0.3."""
    if isinstance(value, float):
        from pydantic_core import PydanticCustomError

        raise PydanticCustomError(
            "float_for_decimal",
            "a float is not exact; write Decimal('1.1') or a string, and read JSON with "
            "json.loads(…, parse_float=Decimal)",
        )
    return value


@lru_cache(maxsize=1)
def aware_leaves() -> Mapping[Any, Any]:
    """Replacements for types in validation: datetimes must have a zone, and Decimals must be exact."""
    from pydantic import AwareDatetime, BeforeValidator

    return {
        datetime: AwareDatetime,
        Decimal: typing.Annotated[Decimal, BeforeValidator(_exact)],
    }


def with_leaves(annotation: Any, leaves: Mapping[Any, Any]) -> Any:
    """The annotation, with some of its types replaced at every depth."""
    annotation = resolve_alias(annotation)
    if isinstance(annotation, type) and annotation in leaves:
        return leaves[annotation]
    origin = get_origin(annotation)
    inner = tuple(with_leaves(each, leaves) for each in get_args(annotation))
    if origin is None or inner == get_args(annotation):
        return annotation
    if origin in (typing.Union, types.UnionType):
        return typing.Union[inner]  # noqa: UP007 - made at run time
    return typing.Annotated[inner] if origin is typing.Annotated else origin[inner]
