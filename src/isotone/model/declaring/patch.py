"""`Patch`: new values for some fields of an entity, from a dict, a model, or the body of a PATCH request.

`changes_of` turns it into the changes of an update. A patch cannot contain fields that an update may not change: those
of the primary key, and those that the library maintains.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isotone.errors import UsageError
from isotone.model.declaring.changes import Change
from isotone.model.declaring.pydantic_type import patch_core_schema, patch_json_schema

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")


class Patch(Mapping[str, Any], Generic[E]):
    """New, checked values for some fields of an entity; a mapping of the given ones.

    As a type for pydantic and FastAPI, it accepts any fields except those of the primary key:

    >>> def change(order: Order, patch: Patch[Order]) -> Order:
    ...     return store.update(order, *patch.changes())
    """

    __slots__ = ("_values", "entity")

    entity: type[E]

    def __init__(self, entity: type[E], values: Mapping[str, Any]) -> None:
        self.entity = entity
        self._values = _checked(entity.__schema__, values)

    def changes(self) -> list[Change]:
        """The changes for an update; empty if no value was given."""
        fields = self.entity.__schema__.fields
        return [fields[name].set(value) for name, value in self._values.items()]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        fields = self.entity.__schema__.fields
        inner = ", ".join(
            f"{name}={value!r}"
            for name, value in self._values.items()
            if not fields[name].options.hidden
        )
        return f"Patch[{self.entity.__name__}]({inner})"

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return patch_core_schema(cls, source, handler)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return patch_json_schema(schema, handler)


def given_by(patch: object) -> Mapping[str, Any]:
    """The values in a patch: those of a mapping, or those that were set in a pydantic model."""
    if isinstance(patch, Mapping):
        return patch
    names = getattr(patch, "model_fields_set", None)
    if names is None:
        raise UsageError(f"{patch!r} is not a patch; give a dict, a pydantic model or a Patch")
    return {name: getattr(patch, name) for name in names}


def _checked(schema: EntitySchema, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, converted to their declared types; raises `InvalidEntity` that lists every fault."""
    refused = {}
    for name in values:
        field = schema.fields.get(name)
        if name in schema.identity:
            refused[name] = "is part of the primary key, which store.move changes"
        elif field is not None and field.why_fixed is not None:
            refused[name] = f"cannot be changed: {field.why_fixed}"
    return schema.validator.some(values, refused)
