"""`Projection`: some fields of an entity as a class of their own, so that type checkers know what was read.

    class OrderSummary(Projection[Order]):
        total = Order.total
        placed_at = Order.placed_at

    store.get(OrderSummary, customer_id="36ab", number=157)
    store.page(Order.primary.where(Order.customer_id == "36ab").select(OrderSummary), size=25)

The members are the entity's own fields, under the same or other names. So their types, and their names in the item, are
declared once, and any other field is an error for type checkers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    Self,
    TypeVar,
    get_args,
    get_origin,
)

from isotone.errors import UsageError
from isotone.model.declaring.fields import Attr

if TYPE_CHECKING:
    from isotone.model.entity import Entity

    E_contra = TypeVar("E_contra", contravariant=True)
    V_co = TypeVar("V_co", covariant=True)

    class ProjectionOf(Protocol[E_contra, V_co]):
        """The class of a projection of an entity: type checkers refuse those of other entities."""

        def from_entity(self, entity: E_contra, /) -> V_co: ...


E = TypeVar("E", bound="Entity")


class Projection(Generic[E]):
    """Some fields of an entity, which reads return in its place: they are transferred, and no others.

        class OrderSummary(Projection[Order]):
            total = Order.total
            placed_at = Order.placed_at

    Pass the class to `query.select(…)`, or to `store.get` in place of the entity. Raises `UsageError` for a field of another
    entity. Cost: as for the entity; a projection saves bandwidth, not capacity units.
    """

    __entity__: ClassVar[type[Any]]
    """The entity."""
    __selected__: ClassVar[Mapping[str, Attr[Any]]] = {}
    """The fields, by their names in the projection."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for base in vars(cls).get("__orig_bases__", ()):
            if get_origin(base) is Projection:
                (cls.__entity__,) = get_args(base)
        own = {name: each for name, each in vars(cls).items() if isinstance(each, Attr)}
        cls.__selected__ = {**cls.__selected__, **own}
        _check(cls)

    @classmethod
    def from_entity(cls, entity: E, /) -> Self:
        """The projection of an entity; raises `UsageError` if it is of another class.

        summary = OrderSummary.from_entity(store.put(order))
        """
        if not isinstance(entity, cls.__entity__):
            raise UsageError(
                f"{cls.__name__} is a projection of {cls.__entity__.__name__}, not of {entity!r}"
            )
        made = cls.__new__(cls)
        for name, field in cls.__selected__.items():
            made.__dict__[name] = getattr(entity, field.name)
        return made

    def to_dict(self) -> dict[str, Any]:
        """The values by their names in the projection."""
        return dict(self.__dict__)

    def _shown(self) -> dict[str, Any]:
        """The values that are not hidden."""
        hidden = {name for name, field in self.__selected__.items() if field.options.hidden}
        return {name: value for name, value in self.__dict__.items() if name not in hidden}

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept any attribute

        def __init__(self, *values: object, **named: object) -> None:
            raise UsageError(
                f"a {type(self).__name__} is read by a store; to make one, write "
                f"{type(self).__name__}.from_entity({type(self).__entity__.__name__}(…))"
            )

        def __getattr__(self, name: str) -> Any:
            kind = type(self)
            if hasattr(kind, name):  # a property failed, and its own error says more
                return object.__getattribute__(self, name)
            entity, read = kind.__entity__.__name__, ", ".join(kind.__selected__)
            more = f"; add {name} = {entity}.{name} to it"
            raise AttributeError(
                f"{kind.__name__} was read with {read} of {entity}, and has no {name!r}"
                + (more if name in kind.__entity__.__schema__.fields else ""),
                name=name,
                obj=self,
            )

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(
                f"a {type(self).__name__} does not change; update the {type(self).__entity__.__name__}"
            )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # equal by value

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in self._shown().items())
        return f"{type(self).__name__}({inner})"


def _check(projection: type[Projection[Any]]) -> None:
    """Refuse a projection without an entity, without fields, or with those of another entity."""
    name, entity = projection.__name__, getattr(projection, "__entity__", None)
    schema = getattr(entity, "__schema__", None)
    if entity is None or schema is None:
        raise UsageError(
            f"{name} does not say which entity it reads, one with a table; write class {name}(Projection[Order])"
        )
    if not projection.__selected__:
        raise UsageError(f"{name} has no fields; write total = {entity.__name__}.total")
    for member, field in projection.__selected__.items():
        if schema.fields.get(field.name) is not field:
            raise UsageError(
                f"{name}.{member} is not a field of {entity.__name__}; give {entity.__name__}'s own field"
            )
        if member in vars(Projection) or member[:1] == "_":
            raise UsageError(
                f"{name}.{member} would hide Projection.{member}; give it another name"
            )
