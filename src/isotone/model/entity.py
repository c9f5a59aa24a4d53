"""`Entity`, the base class: constructor, `find`, `match`, `replace`, `model_dump`, hooks (`before_put`), `upgrade`.

    class Order(Entity, table=shop):
        customer_id: Attr[str] = field()
        number: Attr[int] = field(max=99_999)

        primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))

An invalid declaration is refused when the class statement runs. This module is the top of the model: it gives each
class its schema (`declaring`) and its access patterns (`reading`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    Never,
    Self,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)

from isotone.model.declaring import declaration
from isotone.model.declaring.changes import Change
from isotone.model.declaring.entity_schema import EntitySchema, Unknown
from isotone.model.declaring.fields import (
    UNKNOWN,
    computed,
    created,
    created_id,
    expires,
    field,
    updated,
    version,
)
from isotone.model.declaring.patch import Patch, given_by
from isotone.model.declaring.pydantic_type import visible
from isotone.model.declaring.table import Table
from isotone.model.declaring.vectors import vector
from isotone.model.reading.access_patterns import Pattern
from isotone.model.reading.matching import find, match
from isotone.model.reading.nearest import VectorPattern
from isotone.model.reading.queries import check_unnamed
from isotone.values.json import item_from_wire

if TYPE_CHECKING:
    from isotone.model.declaring.conditions import Condition
    from isotone.model.reading.queries import Query, Scan

F = TypeVar("F", bound=Callable[..., Any])
Names: TypeAlias = AbstractSet[str] | Mapping[str, Any]
"""Names of fields, or of members inside them, as in pydantic's `include` and `exclude`."""


class _OfSchema:
    """A class attribute that is read from the class's schema; classes without a table do not have it."""

    def __init__(self, value: Callable[[EntitySchema], Any]) -> None:
        self._value = value

    def __get__(self, _instance: object, owner: type[Entity]) -> Any:
        return self._value(owner.__schema__)


@dataclass_transform(
    kw_only_default=True,
    eq_default=True,
    field_specifiers=(field, computed, version, expires, created, created_id, updated, vector),
)
class Entity:
    """The base of all entities. The constructor takes the fields by name and validates them.

    A class without `table=` is a base: fields, keys and methods for the entities derived from it.

    `unknown` decides about attributes of an item that the class does not declare. "keep": an entity that was read keeps
    them, and `put` writes them back. "drop": `put` drops them. "refuse": reading such an item raises `InvalidItem`.
    `was_tag` is a previous `tag` that items may still have.

    A class without `table=` that extends an entity is a kind of that entity: it shares its table and keys, and reads of
    the base return each item as an instance of its kind.

        class Order(Entity, table=shop):
            customer: Attr[str] = field()
            number: Attr[int] = field(max=99_999)
            primary = Key("CUSTOMER", customer).sort("ORDER", number)
    """

    __schema__: ClassVar[EntitySchema]

    def __init_subclass__(
        cls,
        *,
        table: Table | None = None,
        tag: str | None = None,
        version: int | None = None,
        unknown: Unknown | None = None,
        was_tag: str | None = None,
        **more: Any,
    ) -> None:
        super().__init_subclass__(**more)
        declaration.check_names(cls, vars(Entity))
        base = declaration.base_of(cls) if table is None else None
        if base is None and table is None:
            declaration.check_base(cls)
        else:
            own_tag = tag or cls.__name__
            schema = declaration.declare(cls, table, own_tag, version, unknown, was_tag, base)
            schema.patterns = {name: Pattern(cls, schema, key) for name, key in schema.keys.items()}
            schema.vector_patterns = {
                name: VectorPattern(cls, schema, bound)
                for name, bound in schema.vector_indexes.items()
            }
            cls.__schema__ = schema

    def __init__(self, /, **values: Any) -> None:
        try:
            schema = self.__schema__
        except AttributeError:
            raise declaration.no_table(type(self)) from None
        self.__dict__.update(schema.validator.all(values))
        if schema.computations:
            self._compute()

    @classmethod
    def find(cls, *conditions: Condition, **named: Never) -> Query[Self]:
        """The query by the first key that answers all conditions: the primary key, then the indexes.

        Raises `Unanswerable` if no key does; it never falls back to a scan.

        >>> query = Order.find(Order.customer_id == "36ab", Order.status == "SHIPPED")
        """
        check_unnamed("find", cls.__schema__, named)
        return find(cls, conditions)

    @overload
    @classmethod
    def match(cls, *conditions: Condition) -> Query[Self]: ...
    @overload
    @classmethod
    def match(cls, *conditions: Condition, scan: bool) -> Query[Self] | Scan[Self]: ...
    @classmethod
    def match(
        cls, *conditions: Condition, scan: bool = False, **named: Never
    ) -> Query[Self] | Scan[Self]:
        """The query by the best key for any conditions, with a filter for those that the key cannot answer.

        The query's `explain()` shows which key it uses, why, and what it costs. Raises `Unanswerable` if no key can be
        used, unless `scan` allows reading the whole table.

        >>> query = Order.match(Order.customer_id == "36ab", Order.number > 3, Order.status != "SHIPPED")
        """
        check_unnamed("match", cls.__schema__, named)
        return match(cls, conditions, scan=scan)

    @classmethod
    def from_trusted(cls, values: dict[str, Any]) -> Self:
        """An entity with these values, without validation; all fields must be given."""
        entity = cls.__new__(cls)
        entity.__dict__.update(values)
        return entity

    def replace(self, /, **changes: Any) -> Self:
        """A copy with some fields changed; raises `UsageError` if not all fields were read."""
        copy = type(self)(**{**self._given(), **changes})
        if UNKNOWN in self.__dict__:
            copy.__dict__[UNKNOWN] = self.__dict__[UNKNOWN]
        return copy

    @classmethod
    def changes(cls, patch: object = None, /, **values: Any) -> list[Change]:
        """The changes for an update that sets fields to new values; None removes an optional value.

        `patch` is a dict, a `Patch`, or a pydantic model, whose unset fields are ignored. Raises `InvalidEntity` that
        lists all faults: unknown names, values of wrong types, parts of the primary key, and fields that the library
        maintains.

        >>> shipped = store.update(order, *Order.changes(status="SHIPPED"))
        """
        given = {} if patch is None else given_by(patch)
        return Patch(cls, {**given, **values}).changes()

    # With pydantic's names: validated input, and dumps

    @classmethod
    def model_validate(
        cls,
        obj: Any,
        *,
        strict: bool | None = None,
        from_attributes: bool | None = None,
        context: Any = None,
    ) -> Self:
        """An entity from input, such as a client's dict; raises `pydantic.ValidationError`.

        Fields that the library maintains are ignored here, though the constructor accepts them. An entity is returned
        unchanged.
        """
        entity: Self = _schema_of(cls).adapter.validate(
            obj, strict=strict, from_attributes=from_attributes, context=context
        )
        return entity

    @classmethod
    def model_validate_json(
        cls,
        json_data: str | bytes | bytearray,
        *,
        strict: bool | None = None,
        context: Any = None,
    ) -> Self:
        """An entity from JSON input, as by `model_validate`."""
        entity: Self = _schema_of(cls).adapter.validate_json(
            json_data, strict=strict, context=context
        )
        return entity

    def model_dump(
        self,
        *,
        mode: Literal["python", "json"] = "python",
        include: Names | None = None,
        exclude: Names | None = None,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
    ) -> dict[str, Any]:
        """The fields that were read, as a dict. Nested models become dicts; mode="json" uses JSON types only."""
        dump: dict[str, Any] = self.__schema__.adapter.dump(
            self,
            mode=mode,
            include=include,
            exclude=exclude,
            exclude_defaults=exclude_defaults,
            exclude_none=exclude_none,
        )
        return dump

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        include: Names | None = None,
        exclude: Names | None = None,
        exclude_defaults: bool = False,
        exclude_none: bool = False,
    ) -> str:
        """The fields that were read, as JSON."""
        return self.__schema__.adapter.dump_json(
            self,
            indent=indent,
            include=include,
            exclude=exclude,
            exclude_defaults=exclude_defaults,
            exclude_none=exclude_none,
        )

    @classmethod
    def model_json_schema(
        cls,
        *,
        ref_template: str = "#/$defs/{model}",
        mode: Literal["validation", "serialization"] = "validation",
    ) -> dict[str, Any]:
        """The JSON schema of input, or of dumps with mode="serialization"."""
        return _schema_of(cls).adapter.json_schema(ref_template=ref_template, mode=mode)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return _schema_of(cls).adapter.core_schema(handler)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Any:
        return _schema_of(cls).adapter.json_schema_of(schema, handler)

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]] = cast(
        "Any", _OfSchema(lambda schema: schema.adapter.as_dataclass.__dataclass_fields__)
    )
    __dataclass_params__: ClassVar[Any] = _OfSchema(
        lambda schema: schema.adapter.as_dataclass.__dataclass_params__
    )

    def to_dict(self) -> dict[str, Any]:
        """The fields and their values; only those that were read, if some were selected."""
        values = self.__dict__
        return {name: values[name] for name in self.__schema__.fields if name in values}

    @property
    def unknown_attributes(self) -> dict[str, Any]:
        """The item's attributes that the entity does not declare, as plain values.

        `put` and `replace` write them back. Empty with `unknown="drop"`, and if only some fields were read.
        """
        return item_from_wire(self.__dict__.get(UNKNOWN, {}))

    # Hooks that entities may override. They must not do I/O.

    def before_put(self) -> None:
        """Called before the entity is put, created or replaced; may change its fields."""

    def after_put(self) -> None:
        """Called after the entity was put, created or replaced."""

    def before_delete(self) -> None:
        """Called before the entity is deleted, but not if only its key was given."""

    @classmethod
    def before_update(cls, changes: Sequence[Change]) -> Sequence[Change]:
        """Called with the changes of an update or a move; returns the changes to make."""
        return changes

    def _given(self) -> dict[str, Any]:
        """The fields that the constructor accepts: all except computed ones."""
        schema, values = self.__schema__, self.__dict__
        if not schema.fields.keys() - schema.computations.keys() <= values.keys():
            raise schema.incomplete(values)
        return {
            name: values[name]
            for name, field in schema.fields.items()
            if field.options.role != "computed"
        }

    def _compute(self) -> None:
        """Recompute the computed fields, as far as they do not depend on what a write sets."""
        self.__schema__.computations.renew(self)

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            field = self.__schema__.fields.get(name)
            if field is None:
                raise AttributeError(
                    f"{type(self).__name__} has no field {name!r}", name=name, obj=self
                )
            self.__dict__[name] = self.__schema__.validator.one(name, value)
            if self.__schema__.computations:
                self._compute()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return False
        ours, theirs = self.__dict__, other.__dict__
        if UNKNOWN in ours or UNKNOWN in theirs:
            ours, theirs = ({**each, UNKNOWN: None} for each in (ours, theirs))
        return ours == theirs

    __hash__: ClassVar[None] = None  # type: ignore[assignment] # equal by value, and mutable

    def _repr_html_(self) -> str:
        from isotone.model.reading.showing import table_html

        return table_html([self], type(self).__name__)

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={value!r}" for name, value in visible(self).items())
        return f"{type(self).__name__}({inner})"


def _schema_of(entity: type[Entity]) -> EntitySchema:
    try:
        return entity.__schema__
    except AttributeError:
        raise declaration.no_table(entity) from None


def upgrade(version: int) -> Callable[[F], F]:
    """Mark a static method that turns an item of an older version into the next one.

    The method takes and returns a dict of plain Python values:

        @staticmethod
        @upgrade(1)
        def split_name(item): ...
    """

    def mark(function: F) -> F:
        function.__upgrades__ = version  # type: ignore[attr-defined] # our own mark
        return function

    return mark
