"""Types that only pydantic knows: models, dataclasses, URLs, paths. Refuses those that could not be read back.

`Foreign(annotation)` dumps values, and validates stored ones. It refuses types whose values could be written but never
read, and says what to declare instead.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from isotone.errors import UsageError

ENTITY: Final = "isotone_entity"
"""A key of pydantic-core's schema metadata: the name of the entity that the schema describes."""

_TAKES_NAMES: Final = "by_name" in inspect.signature(TypeAdapter.validate_python).parameters

# Kinds of pydantic schemas whose values cannot be read back, and what to declare instead.
_UNREADABLE: Final[dict[str, str]] = {
    "callable": "a function cannot be stored; store its name, as a str",
    "is-subclass": "a class cannot be stored; store its name, as a str",
    "json": "its values are no longer JSON once they are parsed; declare dict[str, Any], or the parsed type",
    "generator": "what is read once cannot be stored; declare a list",
}


class Foreign:
    """Converts one type with pydantic, both ways; raises `UsageError` for a type that cannot be read back."""

    def __init__(self, annotation: Any) -> None:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(annotation)
        except PydanticUserError as error:
            if error.code in ("class-not-fully-defined", "undefined-annotation"):
                raise
            raise UsageError(_unknown(annotation, error)) from None
        nodes = list(_walk(adapter.core_schema))
        for node in nodes:
            _check(annotation, node)
        self._adapter = adapter
        self._reading: dict[str, Any] = {}
        if _TAKES_NAMES and any("validation_alias" in node for node in nodes):
            # But the entity's names are written.
            self._reading = {"by_alias": True, "by_name": True}

    def dump(self, value: Any) -> Any:
        """A value as plain Python; raises `PydanticSerializationError` for a value of another type."""
        return self._adapter.dump_python(value, warnings="error")

    def validate(self, value: Any) -> Any:
        """The value that was dumped; raises `pydantic.ValidationError` if it is invalid."""
        return self._adapter.validate_python(value, **self._reading)


def _unknown(annotation: Any, error: PydanticUserError) -> str:
    name = getattr(annotation, "__name__", str(annotation))
    if isinstance(error, PydanticSchemaGenerationError):
        return (
            f"values of type {name} cannot be written in an item; declare str, bytes, int or another type of "
            "the list, a pydantic model, a dataclass, NewType(…), or give the class "
            "__get_pydantic_core_schema__"
        )
    return f"type {name}: {str(error).splitlines()[0]}"


def _walk(schema: Any) -> Iterator[Mapping[str, Any]]:
    """All schemas inside a pydantic-core schema."""
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield schema
        for name, inner in schema.items():
            if name not in ("metadata", "serialization", "default"):
                yield from _walk(inner)
    elif isinstance(schema, list | tuple):
        for inner in schema:
            yield from _walk(inner)


def _check(annotation: Any, node: Mapping[str, Any]) -> None:
    """Refuse a type whose values could be written but never read."""
    name = getattr(annotation, "__name__", str(annotation))
    kind = node["type"]
    if ENTITY in (node.get("metadata") or ()):
        raise UsageError(
            f"type {node['metadata'][ENTITY]}: an entity is an item of its own, and no part of another; store its "
            "key, or declare a pydantic model for the part"
        )
    if kind in _UNREADABLE:
        raise UsageError(f"type {name}: {_UNREADABLE[kind]}")
    if kind == "datetime" and node.get("tz_constraint") == "naive":
        raise UsageError(
            f"type {name}: a naive datetime does not identify an instant; declare datetime"
        )
    if kind == "json-or-python" and node["json_schema"] == {"type": "any"}:
        raise UsageError(
            f"type {name}: its numbers could not be read back; declare dict[str, Any] or list[Any]"
        )
    if kind == "function-plain" and "import" in repr(node["function"]).lower():
        raise UsageError(
            f"type {name}: an imported object cannot be stored; store its name, as a str"
        )
    if kind == "is-instance" and node["cls"] is type:
        raise UsageError(f"type {name}: {_UNREADABLE['is-subclass']}")
    if kind == "model" and node.get("config", {}).get("extra_fields_behavior") == "forbid":
        own = next((each for each in _walk(node["schema"]) if each["type"] == "model-fields"), {})
        if own.get("computed_fields"):
            raise UsageError(
                f"type {node['cls'].__name__} writes its computed fields and forbids them when it is read "
                "(extra='forbid'); make them properties, or allow extra members"
            )
