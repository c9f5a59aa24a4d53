"""`EntityKey`, a key as a value: `Order.primary.at(customer_id="2b5a41c0", number=157)`, hashable and checked.

A key is checked when it is made, so a wrong name or type is reported where the key is written, not where it is used.
Two keys are equal if they identify the same item.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from isotone.errors import UsageError

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.entity import Entity

E = TypeVar("E", bound="Entity")
E_co = TypeVar("E_co", covariant=True)


class EntityKey(Generic[E_co]):
    """The primary key of one entity: its class and the key's fields. Immutable and hashable.

    `Order.primary.at(…)` makes one, and raises `UsageError` for a missing, unknown or wrong field. So does
    `EntityKey.of(order)`.

    >>> key = Order.primary.at(customer_id="2b5a41c0", number=157)
    >>> order = store.get(key)
    """

    __slots__ = ("_place", "entity", "fields")

    entity: type[E_co]
    fields: Mapping[str, Any]
    _place: tuple[object, ...]

    def __init__(self, entity: type[E_co], /, **fields: Any) -> None:
        kind: Any = entity
        self._set(kind, fields, kind.__schema__.identify(fields))

    @property
    def __schema__(self) -> EntitySchema:
        kind: Any = self.entity
        schema: EntitySchema = kind.__schema__
        return schema

    @classmethod
    def of(cls, entity: E) -> EntityKey[E]:
        """The key of an entity."""
        schema: EntitySchema = entity.__schema__
        values = entity.__dict__
        item = schema.primary_key(values)
        key: EntityKey[E] = object.__new__(EntityKey)
        key._set(type(entity), {name: values[name] for name in schema.identity}, item)
        return key

    def _set(self, entity: type[Any], fields: Mapping[str, Any], item: Mapping[str, Any]) -> None:
        object.__setattr__(self, "entity", entity)
        object.__setattr__(self, "fields", MappingProxyType(dict(fields)))
        texts = tuple((name, *value.items()) for name, value in item.items())
        object.__setattr__(self, "_place", (entity.__schema__.table.name, *texts))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a key does not change; make another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a key does not change; make another one")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, EntityKey):
            return NotImplemented
        return self.entity is other.entity and self._place == other._place

    def __hash__(self) -> int:
        return hash(self._place)

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self.fields.items())
        return f"{self.entity.__name__}.{self.__schema__.primary.name}.at({inner})"

    def __reduce__(self) -> Any:
        return _restored, (self.entity, dict(self.fields))


def _restored(entity: type[E], fields: dict[str, Any]) -> EntityKey[E]:
    return EntityKey(entity, **fields)


def unpacked(key: EntityKey[E], further: Mapping[str, Any]) -> tuple[type[E], Mapping[str, Any]]:
    """The class and the fields of a key; raises `UsageError` if fields are given in addition."""
    if further:
        raise UsageError(
            f"{key!r} is a whole key, and {', '.join(further)} was given as well; leave one of them out"
        )
    return key.entity, key.fields
