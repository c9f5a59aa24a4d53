"""Runs at a class statement: makes the schema, resolves types, binds keys, and refuses invalid declarations."""

from __future__ import annotations

import inspect
import sys
import typing
from collections.abc import Container
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from isotone.codec.ids import ID_TYPES
from isotone.errors import UsageError, ValidationException
from isotone.model.declaring import (
    children,
    entity_kinds,
    neighbours,
    previous_keys,
    vector_index,
)
from isotone.model.declaring.entity_schema import EntitySchema, Unknown, Upgrade
from isotone.model.declaring.field_codecs import Codec
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import (
    BoundKey,
    Key,
    Slot,
    StringSlot,
    bind_key,
    declared_values,
)
from isotone.model.declaring.table import VERSION_ATTRIBUTE, Table
from isotone.model.declaring.vectors import Vector, VectorAttr
from isotone.model.declaring.wire_types import is_optional, present_type, type_text
from isotone.values.number import canonical_number

if TYPE_CHECKING:
    from isotone.model.entity import Entity

OWNER_ATTRIBUTE: Final = "_owner"
"""An attribute of the marker item of a unique value: the primary key of the entity that has the value."""


def declare(
    entity: type[Entity],
    table: Table | None,
    tag: str,
    version: int | None,
    unknown: Unknown | None = None,
    was_tag: str | None = None,
    base: EntitySchema | None = None,
) -> EntitySchema:
    """The schema of an entity class, or of a kind of `base`; raises `UsageError` for an invalid declaration."""
    try:
        if base is not None:
            entity_kinds.check(entity, tag, version, base)
            table, unknown = base.table, unknown or base.unknown
            version = base.version if base.declares_version else None
        if not isinstance(table, Table):
            raise UsageError(f"table={table!r} is not a table; write table=Table('shop')")
        unknown = unknown or "keep"
        fields = _fields(entity, table)
        declared: dict[str, Key] = _members(entity, Key)
        keys = {key.name: bind_key(key, table, tag) for key in declared.values()}
        for name, key in declared.items():
            children.check(key, keys[name], table)
        _check_primary(keys)
        if unknown not in get_args(Unknown):
            raise UsageError(
                f"unknown={unknown!r} is not an option; write 'keep', 'drop' or 'refuse'"
            )
        upgrades = _upgrades(entity, version or 1)
        schema = EntitySchema(entity, table, tag, fields, keys, version, upgrades, unknown, base)
        _check_keys(schema)
        _check_defaults_fit_keys(schema)
        _check_unique(schema)
        previous_keys.bind(schema, declared, was_tag)
        neighbours.check(schema)
        vectors = _members(entity, vector_index.VectorIndex)
        schema.vector_indexes = vector_index.bind_vector_indexes(schema, vectors)
    except UsageError as error:
        raise UsageError(f"{entity.__name__}: {error}") from None
    _enter(schema)
    return schema


def base_of(entity: type[Entity]) -> EntitySchema | None:
    """The entity that a class without `table=` is a kind of; None if the class is a base itself."""
    if "__schema__" in vars(entity):
        return None  # a partial view, which sets the schema itself
    base: EntitySchema | None = getattr(entity, "__schema__", None)
    return base


def check_base(base: type[Entity]) -> None:
    """Refuse a base whose fields have mutable defaults, which all entities would share."""
    for field in _members(base, Attr).values():
        _check_default(field)


def check_names(entity: type[Entity], taken: Container[str]) -> None:
    """Refuse a field or a key whose name would hide a method of `Entity`."""
    for name, member in vars(entity).items():
        is_special = name in taken or name in _INTERNAL or (name[:2] == "__" == name[-2:])
        if is_special and isinstance(member, Attr):
            raise UsageError(
                f"{entity.__name__}: field {name!r} would hide Entity.{name}; name it "
                f"{name.strip('_')}_, and keep the attribute: {name.strip('_')}_: Attr[…] = field(name={name!r})"
            )
        if is_special and isinstance(member, Key | vector_index.VectorIndex):
            raise UsageError(
                f"{entity.__name__}: key {name!r} would hide Entity.{name}; give it another name"
            )


_INTERNAL: Final = frozenset({"_known"})

PARAMETERS: Final = frozenset({"when", "consistent"})
"""Parameters of store calls that also take the key's fields by name, such as `get(Order, number=1)`."""


def no_table(base: type[Entity]) -> UsageError:
    """The error for an instance of a class that has no table."""
    return UsageError(
        f"{base.__name__} has no table, so it cannot be instantiated; write class {base.__name__}(Entity, table=…), "
        f"or derive an entity from it: class …({base.__name__}, table=…)"
    )


def _check_primary(keys: dict[str, BoundKey]) -> None:
    if all(key.index is not None for key in keys.values()):
        raise UsageError(
            "it has no primary key; declare one: "
            'primary = Key("CUSTOMER", customer_id).sort("ORDER", number)'
        )
    primary = next(key for key in keys.values() if key.index is None)
    for name in PARAMETERS & primary.component_names:
        raise UsageError(
            f"field {name!r} of the primary key has the name of a parameter of store.get and other calls; "
            f"name it {name}_, and keep the attribute: "
            f"{name}_: Attr[…] = field(name={name!r})"
        )


def _enter(schema: EntitySchema) -> None:
    """Register the entity with its table; raises if its items would sort between a parent and its children."""
    entities = schema.table.entities
    replaced = entities.get(schema.tag)
    if replaced is not None:
        schema.table.redeclared.add(schema.tag)
    entities[schema.tag] = schema
    if schema.previous is not None and schema.previous.tag != schema.tag:
        schema.table.previous_tags[schema.previous.tag] = schema
    try:
        for collection in schema.table.collections.values():
            collection.check_places()
    except UsageError as error:
        del entities[schema.tag]
        if replaced is not None:
            entities[schema.tag] = replaced
        raise UsageError(f"{schema.entity.__name__}: {error}") from None
    neighbours.reserve_partitions(schema.table)
    entity_kinds.enter(schema)
    vector_index.enter(schema)


def _members(entity: type, kind: type[Any]) -> dict[str, Any]:
    """The fields or keys in a class and its bases, in the order of their definition."""
    members: dict[str, Any] = {}
    for base in reversed(entity.__mro__):
        members |= {name: each for name, each in vars(base).items() if isinstance(each, kind)}
    return members


def _fields(entity: type[Entity], table: Table) -> dict[str, Attr[Any]]:
    fields: dict[str, Attr[Any]] = _members(entity, Attr)
    hints = _hints(entity)
    for name, field in fields.items():
        hint = hints.get(name)
        if get_origin(hint) is not Attr:
            raise UsageError(
                f"field {name!r} {_not_attr(hint)}; declare it as `{name}: Attr[…] = field(…)`"
            )
        if field.annotation is None:
            field.bind(get_args(hint)[0])
        _check_default(field)
        _check_codec(field)
        _check_type(field)
        _check_default_is_storable(field)
        if field.options.in_order:
            declared_values(field)
        if field.options.role == "created_id" and present_type(field.annotation) not in ID_TYPES:
            raise UsageError(
                f"field {name!r} is made by created_id(), so its type is KSUID, ULID or UUID, not "
                f"{type_text(field.annotation)}"
            )
        if field.options.role == "expires":
            _check_expiry(field, table)
    undeclared = [
        name for name, hint in hints.items() if get_origin(hint) is Attr and name not in fields
    ]
    if undeclared:
        raise UsageError(
            f"field {undeclared[0]!r} has a type but no field(); write `= field()` after the type"
        )
    _check_plain(entity, hints)
    return fields


def _not_attr(hint: Any) -> str:
    """The message for a field whose annotation is not `Attr[…]`."""
    return "has no type" if hint is None else f"has the type {type_text(hint)}, not Attr[…]"


def _check_codec(field: Attr[Any]) -> None:
    """Refuse options about how a value is stored on a field with a codec, which decides that."""
    options = field.options
    if options.codec is None:
        return
    if not isinstance(options.codec, Codec):
        raise UsageError(
            f"field {field.name!r}: {options.codec!r} is not a codec; write Codec(encode, decode)"
        )
    given = {
        "epoch": options.epoch,
        "zone": options.zone is not None,
        "case": options.case is not None,
        "in_order": options.in_order,
        "unique": options.unique is not False,
    }
    for name in (name for name, is_given in given.items() if is_given):
        raise UsageError(
            f"field {field.name!r} has a codec, which says how its values are stored; leave {name}=… out"
        )


_QUALIFIERS: Final = (typing.Final, typing.ClassVar, typing.Required, typing.NotRequired)


def _check_type(field: Attr[Any]) -> None:
    """Refuse a type whose values could not be written, or not be read back."""
    annotation = field.annotation
    if annotation in (None, type(None)) or (get_origin(annotation) or annotation) in _QUALIFIERS:
        raise UsageError(f"field {field.name!r} has type {annotation!r}, which has no values")
    if present_type(annotation) is Vector and not isinstance(field, VectorAttr):
        raise UsageError(
            f"field {field.name!r} is a vector, so its declaration says how many dimensions it has; write vector(…)"
        )
    try:
        field.wire  # noqa: B018 - made here, so that it is refused here
    except UsageError as error:
        raise UsageError(f"field {field.name!r}: {error}") from None
    except Exception as error:
        if not hasattr(error, "code"):
            # Pydantic's error for a class that is not completely defined yet.
            raise


def _check_plain(entity: type[Entity], hints: dict[str, Any]) -> None:
    """Refuse `total: int` and `total: int = 0`: only `Attr` fields are stored."""
    for name in inspect.get_annotations(entity):
        kind = get_origin(hints[name]) or hints[name]
        if kind not in (Attr, typing.ClassVar) and not name.startswith("_"):
            raise UsageError(
                f"{name!r} is not a field, so it would not be stored; declare it as "
                f"`{name}: Attr[…] = field(…)`, or as a ClassVar[…] if it belongs to the class"
            )


def _check_default(field: Attr[Any]) -> None:
    """Refuse a mutable default, because all entities would share it."""
    default = field.options.default
    try:
        hash(default)
    except TypeError:
        factory = type(default).__name__ if default in ([], {}, set()) else f"lambda: {default!r}"
        raise UsageError(
            f"field {field.name!r} has the mutable default {default!r}, which all entities would share; "
            f"write field(default_factory={factory})"
        ) from None


def _fixed_default(field: Attr[Any]) -> Any:
    """The default, if it can be checked now; otherwise None.

    A codec may need something that is only available after the imports, such as an encryption key. A class that
    pydantic cannot complete yet has no stored form.
    """
    if not field.options.has_default or field.options.codec is not None:
        return None
    return field.options.default if "wire" in field.__dict__ else None


def _check_default_is_storable(field: Attr[Any]) -> None:
    """Refuse a default that could never be stored: a wrong type, a datetime without a zone, a number out of range."""
    default = _fixed_default(field)
    if default is None:
        return
    try:
        number = field.wire.encode(default).get("N")
        if number is not None:
            canonical_number(number)
    except (UsageError, ValidationException) as error:
        raise _unstorable(field, error) from None
    if number is None or not isinstance(default, int | float | Decimal):
        return
    least, greatest = field.options.min, field.options.max
    if least is not None and default < least:
        raise _unstorable(field, f"{default} is less than its min={least}")
    if greatest is not None and default > greatest:
        raise _unstorable(field, f"{default} is greater than its max={greatest}")


def _check_defaults_fit_keys(schema: EntitySchema) -> None:
    """Refuse a default that does not fit into a string key, such as a negative number without `min`.

    Sparse indexes are exempt, and indexes with another field that may be None: an entity with the default may have no
    entry there.
    """
    for key in schema.keys.values():
        optional = {each.name for each in key.fields if is_optional(each.annotation)}
        for slot in key.slots:
            if key.when is not None or not isinstance(slot, StringSlot):
                continue
            for place, component in enumerate(slot.components):
                field = component.field
                default = _fixed_default(field)
                if default is None or not optional <= {field.name}:
                    continue
                try:
                    slot.template.codecs[place].encode(slot.to_codec(place, default))
                except UsageError as error:
                    raise _unstorable(field, error) from None


def _unstorable(field: Attr[Any], why: object) -> UsageError:
    return UsageError(f"field {field.name!r} has a default that cannot be stored: {why}")


def _check_expiry(field: Attr[Any], table: Table) -> None:
    """Store the expiry field in the table's TimeToLive attribute."""
    declared = field.options.name is not None or field.attribute != field.name
    if not declared:  # declared neither by this class nor by another class with the same base
        field.attribute = table.ttl
    elif field.attribute != table.ttl:
        raise UsageError(
            f"field {field.name!r} expires items by {field.attribute!r}, which its name= or a class with the "
            f"same base has set, but the table by {table.ttl!r}; declare Table(ttl={field.attribute!r})"
        )


def _hints(entity: type[Entity]) -> dict[str, Any]:
    """The annotations with their names resolved, including local names of the enclosing function."""
    try:
        return typing.get_type_hints(entity, localns=_names_around(), include_extras=True)
    except NameError as error:
        raise UsageError(
            f"the type of a field is not known: {error}; import it, but not under `if TYPE_CHECKING`"
        ) from None


def _names_around() -> dict[str, Any]:
    """The local names where the class statement stands."""
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(
        "isotone.model."
    ):
        frame = frame.f_back
    return dict(frame.f_locals)


def _upgrades(entity: type[Entity], version: int) -> dict[int, Upgrade]:
    upgrades: dict[int, Upgrade] = {}
    for member in _members(entity, staticmethod).values():
        step = getattr(member.__func__, "__upgrades__", None)
        if step is not None:
            upgrades[step] = member.__func__
    missing = [step for step in range(1, version) if step not in upgrades]
    if missing:
        raise UsageError(
            f"version {version} has no upgrade from version {missing[0]}; "
            f"add a static method marked @upgrade({missing[0]})"
        )
    return upgrades


def _check_keys(schema: EntitySchema) -> None:
    primary = [key.name for key in schema.keys.values() if key.index is None]
    if len(primary) > 1:
        raise UsageError(
            f"{' and '.join(primary)} are both primary keys; declare all but one as an index: Index(…)"
        )
    used: dict[str | None, str] = {}
    for key in schema.keys.values():
        if key.index in used:
            raise UsageError(
                f"{used[key.index]!r} and {key.name!r} both use index {key.index!r}; declare one of them on another index"
            )
        used[key.index] = key.name
        for component in key.components:
            if component.form == "in_order":
                component.field.declare_order()
        for slot in key.slots:
            _check_attribute(schema, key, slot)
        _check_local(schema, key)
    for key in schema.indexes:
        _check_when(schema, key)
    _check_attributes_are_unique(schema)


def _check_when(schema: EntitySchema, key: BoundKey) -> None:
    """Check that a sparse index's condition tests this entity's fields, with values of their types."""
    if key.when is None:
        return
    for field in key.when.fields():
        if schema.fields.get(field.name) is not field:
            raise UsageError(
                f"key {key.name!r}: {field!r} in its when= is not a field of the entity"
            )
    try:
        key.when.check()
    except UsageError as error:
        raise UsageError(f"key {key.name!r}: {error}") from None


def _check_local(schema: EntitySchema, key: BoundKey) -> None:
    """Check that a local index has the table's partition key, made of the same parts."""
    if key.index is None or schema.table.indexes[key.index].kind != "local":
        return
    if list(map(_form, key.partition)) != list(map(_form, schema.primary.partition)):
        raise UsageError(
            f"key {key.name!r} is on a local index, which has the partition key of the table; group it "
            f"by the same parts as {schema.primary.name!r}"
        )


def _form(slot: Slot) -> tuple[object, list[str]]:
    """A description of a slot. It is equal for slots that always write the same value."""
    template = slot.template if isinstance(slot, StringSlot) else None
    return template, [component.field.name for component in slot.components]


def _check_attribute(schema: EntitySchema, key: BoundKey, slot: Slot) -> None:
    """Check that a key attribute is also a field's attribute only if it contains that field unchanged."""
    if not isinstance(slot, StringSlot):
        return
    for field in schema.fields.values():
        if field.attribute == slot.attribute.name:
            raise UsageError(
                f"key {key.name!r} writes attribute {slot.attribute.name!r}, which is also field "
                f"{field.name!r}; give the field another attribute: field(name=…)"
            )


def _check_attributes_are_unique(schema: EntitySchema) -> None:
    taken: dict[str, str] = {schema.table.tag: "the entity's tag", VERSION_ATTRIBUTE: "the version"}
    for field in schema.fields.values():
        if field.attribute in taken:
            raise UsageError(
                f"field {field.name!r} and {taken[field.attribute]} share attribute {field.attribute!r}; "
                "give the field another one: field(name=…)"
            )
        taken[field.attribute] = repr(field.name)


def _check_unique(schema: EntitySchema) -> None:
    """Refuse unique fields for which no marker item can be written."""
    for field in schema.unique:
        for each in (field, *field.unique_within):
            if each.wire.code not in ("S", "N", "B"):
                raise UsageError(
                    f"field {each.name!r} cannot be unique: only strings, numbers and bytes can"
                )
    if schema.unique and any(key.type != "S" for key in schema.table.keys.attributes):
        raise UsageError(
            f"field {schema.unique[0].name!r} cannot be unique in {schema.table!r}: "
            "its marker items need a primary key of strings"
        )
    if schema.unique and OWNER_ATTRIBUTE in _attributes_of(schema.table):
        raise UsageError(
            f"field {schema.unique[0].name!r} cannot be unique in {schema.table!r}: its marker items have an "
            f"attribute {OWNER_ATTRIBUTE!r} of their own; give the table's another name"
        )


def _attributes_of(table: Table) -> set[str]:
    """The attributes that mean the same in every item of a table."""
    layouts = [table.keys, *map(table.layout, table.indexes)]
    return {table.tag, table.ttl, *(each.name for layout in layouts for each in layout.attributes)}
