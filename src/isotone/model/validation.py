"""pydantic's part: values that come from outside are validated against the declared types.

The validators are built when they are first needed, so that defining an entity costs little, and
`import isotone` nothing.
"""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args, get_origin

from isotone.errors import UsageError

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from isotone.model.fields import Attr


class InvalidEntity(UsageError):
    """Values that do not fit the fields; `errors` has pydantic's account of each."""

    def __init__(self, message: str, errors: list[Any]) -> None:
        super().__init__(message)
        self.errors = errors


class Validator:
    """Validates the fields of one entity."""

    def __init__(self, entity: str, fields: Mapping[str, Attr[Any]]) -> None:
        self._entity = entity
        self._fields = fields
        self._each: dict[str, TypeAdapter[Any]] = {}

    def all(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values for every field, validated; raises `InvalidEntity` that lists all that is wrong."""
        unknown = values.keys() - self._fields.keys()
        if unknown:
            raise self._unknown(sorted(unknown))
        valid: dict[str, Any] = {}
        wrong: list[tuple[str, Any]] = []
        for name, field in self._fields.items():
            if name in values:
                self._validate(name, values[name], valid, wrong)
            elif field.options.required and not _is_optional(field.annotation):
                wrong.append((name, "is missing"))
            else:
                valid[name] = default_of(field)
        if wrong:
            raise InvalidEntity(
                f"{self._entity}: " + "; ".join(f"{name} {what}" for name, what in wrong),
                [{"field": name, "error": what} for name, what in wrong],
            )
        return valid

    def one(self, name: str, value: Any) -> Any:
        """One field's value, validated."""
        valid: dict[str, Any] = {}
        wrong: list[tuple[str, Any]] = []
        self._validate(name, value, valid, wrong)
        if wrong:
            raise InvalidEntity(
                f"{self._entity}: {name} {wrong[0][1]}", [{"field": name, "error": wrong[0][1]}]
            )
        return valid[name]

    def _validate(
        self, name: str, value: Any, valid: dict[str, Any], wrong: list[tuple[str, Any]]
    ) -> None:
        from pydantic import ValidationError

        if value is None and self._fields[name].options.role != "plain":
            valid[name] = None  # the library fills it in
            return
        try:
            valid[name] = self._adapter(name).validate_python(value)
        except ValidationError as error:
            for each in error.errors():
                inner = "".join(f"[{part!r}]" for part in each["loc"])
                wrong.append((name + inner, f"is {value!r}: {each['msg']}"))

    def _adapter(self, name: str) -> TypeAdapter[Any]:
        adapter = self._each.get(name)
        if adapter is None:
            from pydantic import TypeAdapter

            adapter = self._each[name] = TypeAdapter(_aware(self._fields[name].annotation))
        return adapter

    def _unknown(self, names: list[str]) -> InvalidEntity:
        hints = []
        for name in names:
            close = difflib.get_close_matches(name, self._fields, n=1)
            hints.append(f"{name!r}" + (f" (did you mean {close[0]!r}?)" if close else ""))
        return InvalidEntity(
            f"{self._entity} has no field {', '.join(hints)}",
            [{"field": name, "error": "unknown"} for name in names],
        )


def default_of(field: Attr[Any]) -> Any:
    """What an entity has that was made without a value for the field."""
    options = field.options
    if options.default_factory is not None:
        return options.default_factory()
    return options.default if options.has_default else None


def _is_optional(annotation: Any) -> bool:
    return get_origin(annotation) in (typing.Union, types.UnionType) and type(None) in get_args(annotation)


def _aware(annotation: Any) -> Any:
    """The annotation with datetimes that name an instant: a naive one is refused at once."""
    from pydantic import AwareDatetime

    if annotation is datetime:
        return AwareDatetime
    if _is_optional(annotation) and datetime in get_args(annotation):
        return AwareDatetime | None
    return annotation
