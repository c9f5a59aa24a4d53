"""The form of an entity: its fields described for typed inputs, an item's values in it, and what is typed, checked.

The page edits fields, never attributes: which type each has, which must be given, which the library sets, and which keys
are made of it. While somebody types, a *draft* says what is wrong with each field, and which keys and computed fields
the values would give.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from isotone.advisor.key_names import key_form
from isotone.errors import InvalidEntity, IsotoneError, UsageError
from isotone.model import (
    FINDING_KINDS,
    Attr,
    Entity,
    EntitySchema,
    ItemFinding,
    type_text,
)
from isotone.values.json import from_wire
from isotone.values.types import AttributeValue, Item
from isotone.workbench.typed_inputs import TypedInput, raw_input, typed_input

Answer = dict[str, Any]

_WHEN_CREATED: Final = ("plain", "expires")  # roles whose values may be given

_SET_BY_LIBRARY: Final = {
    "computed": "computed",
    "version": "raised by each write",
    "created": "set when it is created",
    "created_id": "made when it is created",
    "updated": "set by each write",
}


@lru_cache(maxsize=4096)
def input_of(field: Attr[Any]) -> TypedInput:
    """The input of a field; DynamoDB JSON if the field has a codec, or is a vector."""
    options = field.options
    if options.codec is not None or type(field) is not Attr:
        return raw_input(field.wire.encode, field.wire.decode)
    found = typed_input(field.annotation)
    bounds = {"min": options.min, "max": options.max}
    given = {name: str(value) for name, value in bounds.items() if value is not None}
    scale = {} if options.scale is None else {"scale": options.scale}
    return found._replace(described={**found.described, **given, **scale})


# The description


def described(schema: EntitySchema) -> list[Answer]:
    """The fields of an entity, in the order of their declaration."""
    return [_field(schema, field) for field in schema.fields.values()]


def _field(schema: EntitySchema, field: Attr[Any]) -> Answer:
    options = field.options
    return {
        "name": field.name,
        "attribute": field.attribute,
        "type": type_text(field.annotation),
        "input": input_of(field).described,
        "required": field.name in schema.required and options.role in _WHEN_CREATED,
        "set_by": _SET_BY_LIBRARY.get(options.role),
        "fixed": field.why_fixed,
        "keys": [key.name for key in schema.keys.values() if field.name in key.component_names],
        "identifies": field.name in schema.identity,
        "unique": bool(options.unique),
        "about": options.description,
        "default": _default(field),
    }


def _default(field: Attr[Any]) -> Any:
    """The fixed default as the form shows it; None if there is none, or a function makes it."""
    options = field.options
    if options.has_default and options.default is not None:
        return input_of(field).shown(options.default)
    if options.default_factory in (list, dict, set, frozenset):
        return input_of(field).shown(options.default_factory())
    return None


# An item in the form


def values_of(schema: EntitySchema, item: Item) -> Answer:
    """The form's values for an item, and what is wrong with those that cannot be read."""
    entity = schema.from_invalid_item(item, require_all_fields=True)
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name, field in schema.fields.items():
        try:
            value = getattr(entity, name)
        except (IsotoneError, AttributeError):
            stored = item.get(field.attribute)
            values[name] = None if stored is None else _as_stored(field, stored)
            faults[name] = _fault_of_stored(field, stored)
            continue
        values[name] = None if value is None else input_of(field).shown(value)
    return {
        "entity": schema.tag,
        "values": values,
        "faults": faults,
        "unknown": sorted(schema.unknown_in(item)),
    }


def _as_stored(field: Attr[Any], stored: AttributeValue) -> Any:
    """A value that is not of the field's type, as far as its input can show it."""
    if input_of(field).described["kind"] == "raw":
        return stored
    value = from_wire(stored)
    return value if isinstance(value, str | bool) else str(value)


def _fault_of_stored(field: Attr[Any], stored: AttributeValue | None) -> str:
    if stored is None:
        return "has no value, and no default"
    shown = "a hidden value" if field.options.hidden else repr(from_wire(stored))
    return f"has {shown}, but is declared as {type_text(field.annotation)}"


def finding_described(finding: ItemFinding) -> Answer:
    """A finding in words, and whether writing the item again corrects it."""
    kind = FINDING_KINDS[finding.kind]
    found = None if finding.found is None else _text(finding.found)
    return {
        "kind": finding.kind,
        "name": finding.name,
        "meaning": kind.meaning,
        "found": found,
        "declared": finding.declared,
        "advice": kind.advice.format(entity=finding.entity or "the entity", name=finding.name),
        "notice": kind.is_notice,
        "repair": _REPAIRS.get(finding.kind, "write" if kind.rewrite == "corrects" else None),
    }


_REPAIRS: Final[Mapping[str, str]] = {
    "invalid": "field",
    "missing": "field",
    "marker_missing": "write",
    "unknown_attribute": "remove",
    "undeclared_index": "remove",
}
"""How a finding is repaired: by setting the field, by writing the item again, or by removing the attribute."""


def _text(value: AttributeValue) -> str:
    ((code, content),) = value.items()
    if code == "M":
        return ", ".join(f"{name}={_text(each)}" for name, each in content.items()) or "nothing"
    return str(content) if code == "N" else repr(from_wire(value))


# What was typed


class Refused(UsageError):
    """Values of a form were refused; `fields` has what is wrong with each."""

    def __init__(self, message: str, fields: Mapping[str, str]) -> None:
        super().__init__(message)
        self.fields = fields


def read(schema: EntitySchema, typed: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as values of the fields; raises `Refused` for all that is none."""
    values, faults = _read_each(schema, typed)
    if faults:
        words = "; ".join(f"{name} {fault}" for name, fault in faults.items())
        raise Refused(f"{schema.tag}: {words}", faults)
    return values


def _read_each(
    schema: EntitySchema, typed: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """The values that can be read, validated, and what is wrong with the others."""
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name, given in typed.items():
        field = schema.fields.get(name)
        if field is None:
            raise UsageError(f"{schema.tag} has no field {name!r}")
        if given is None and not schema.is_optional(field):
            faults[name] = "is missing"
            continue
        try:
            value = None if given is None else input_of(field).read(given)
            values[name] = _as_read_back(field, schema.validator.one(name, value))
        except InvalidEntity as error:
            faults[name] = "; ".join(_words(name, each) for each in error.errors)
        except UsageError as error:
            faults[name] = str(error)
        except (AttributeError, TypeError, ValueError):  # another form than that of the input
            faults[name] = f"is {given!r}, which is no {type_text(field.annotation)}"
    return values, faults


def _as_read_back(field: Attr[Any], value: Any) -> Any:
    """The value as it will be read: `12.50` is stored as 12.5, and what is computed of it must say so, too."""
    return None if value is None else field.wire.decode(field.encode(value))


def _words(name: str, fault: Mapping[str, str]) -> str:
    """A fault without the field's name, which stands beside it."""
    return f"{fault['field'].removeprefix(name)} {fault['error']}".strip()


def draft(schema: EntitySchema, typed: Mapping[str, Any], item: Item | None) -> Answer:
    """What is wrong with what was typed, and the keys and computed fields that it gives, as far as they are known."""
    values, faults = _read_each(schema, typed)
    known = _known(schema, item) | values
    for name in faults:
        known.pop(name, None)
    computed = dict(_computed(schema, known))
    for name, value in computed.items():
        known[name] = value
    written = _written(schema, known)
    return {
        "faults": faults,
        "missing": [
            name
            for name, field in schema.fields.items()
            if name in schema.required
            and field.options.role in _WHEN_CREATED
            and known.get(name) is None
            and name not in faults
        ],
        "computed": {
            name: None if value is None else input_of(schema.fields[name]).shown(value)
            for name, value in computed.items()
        },
        "keys": [_key(schema, key, known, written) for key in schema.keys.values()],
    }


def _known(schema: EntitySchema, item: Item | None) -> dict[str, Any]:
    """The values of the item that is edited, or the defaults of a new entity."""
    if item is None:
        return {
            name: schema.absent(field)
            for name, field in schema.fields.items()
            if not field.options.required
        }
    values = dict(schema.from_invalid_item(item, require_all_fields=True).__dict__)
    return {name: value for name, value in values.items() if name in schema.fields}


def _computed(schema: EntitySchema, known: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The computed fields, where the model's functions find what they need."""
    entity: Entity = schema.entity.from_trusted(dict(known))
    for name, compute in schema.computations.items():
        try:
            value = compute(entity)
            schema.encoded(schema.fields[name], value)
        except Exception:  # noqa: BLE001 - whatever the function raises while values are missing
            entity.__dict__.pop(name, None)
            continue
        entity.__dict__[name] = value
        yield name, value


def _written(schema: EntitySchema, known: Mapping[str, Any]) -> Item:
    item: Item = {}
    for name, value in known.items():
        try:
            item |= schema.encoded(schema.fields[name], value)
        except UsageError:
            continue
    return item


def _key(schema: EntitySchema, key: Any, known: Mapping[str, Any], written: Item) -> Answer:
    """One key: its attributes in parts, `(text, component)`, or why it has none."""
    answer: Answer = {"name": key.name, "index": key.index, "fault": None, "left_out": None}
    if key.applies is not None and not key.applies.matches(written, {}):
        return answer | {"left_out": f"only if {key.when!r}", "parts": {}}
    missing = [each.field.name for each in key.components if known.get(each.field.name) is None]
    if missing:
        return answer | {"parts": {s.attribute.name: _outline(s, known) for s in key.slots}}
    try:
        encoded = key.encode(known) or {}
        parts = {
            slot.attribute.name: [
                [text, name] for text, name, _ in slot.segments(encoded[slot.attribute.name])
            ]
            for slot in key.slots
        }
    except IsotoneError as error:
        return answer | {"fault": str(error), "parts": {}}
    return answer | {"parts": parts}


def form_of(slot: Any) -> list[list[str | None]]:
    """The parts of a key attribute: literals, and the names of components."""
    return [[part.text, part.field or None] for part in key_form(slot)]


def _outline(slot: Any, known: Mapping[str, Any]) -> list[list[str | None]]:
    """A key attribute whose value is not known yet: its literals, and its components by value or name."""
    places = {each.field.name: place for place, each in enumerate(slot.components)}
    return [
        [text if name is None else _part(slot, places[name], name, known.get(name)), name]
        for text, name in form_of(slot)
    ]


def _part(slot: Any, place: int, name: str, value: Any) -> str:
    """A component as the key has it; its name if it has no value, or one that does not fit."""
    if value is None:
        return f"{{{name}}}"
    if getattr(slot, "template", None) is None:
        return str(next(iter(slot.field.encode(value).values())))
    try:
        text: str = slot.template.codecs[place].encode(slot.to_codec(place, value))
    except UsageError:
        return f"{{{name}}}"
    return text
