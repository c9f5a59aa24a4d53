"""Describes a model's entities and access patterns for forms: fields, keys, parameters in the key's order."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from isotone.errors import UsageError
from isotone.model import EntitySchema, Table
from isotone.workbench import entity_forms, raw_edits
from isotone.workbench.entity_forms import form_of

_COMPARISONS: Final = {
    "==": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def described(table: Table) -> dict[str, Any]:
    """A table's entities, with their fields and keys."""
    return {
        "table": table.name,
        "tag": table.tag,
        "entities": [_entity(schema) for schema in table.entities.values()],
    }


def _entity(schema: EntitySchema) -> dict[str, Any]:
    return {
        "name": schema.tag,
        "about": (schema.entity.__doc__ or "").strip().partition("\n")[0],
        "fields": entity_forms.described(schema),
        "patterns": [_pattern(schema, key) for key in schema.keys.values()],
        "raw_edits": raw_edits.described(schema),
    }


def _pattern(schema: EntitySchema, key: Any) -> dict[str, Any]:
    groups = [component for slot in key.partition for component in slot.components]
    order = [component for slot in key.sort for component in slot.components]
    return {
        "name": key.name,
        "index": key.index,
        "sparse": key.when is not None,
        "form": {slot.attribute.name: form_of(slot) for slot in key.slots},
        "group": [_parameter(schema, each) for each in groups],
        "order": [_parameter(schema, each) for each in order],
    }


def _parameter(schema: EntitySchema, component: Any) -> dict[str, Any]:
    field = component.field
    return {
        "name": field.name,
        "type": _type(field.annotation),
        "descending": component.descending,
        "choices": [str(each) for each in _choices(field.annotation)],
    }


def _choices(annotation: Any) -> tuple[Any, ...]:
    members = getattr(annotation, "__members__", None)
    if members is not None:
        return tuple(each.value for each in members.values())
    return getattr(annotation, "__args__", ()) if "Literal" in str(annotation)[:16] else ()


def _type(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or str(annotation).replace("typing.", "")


class PatternRequest(NamedTuple):
    """A pattern with its parameters as text: `=` for the first components, and a range on the next one."""

    entity: str
    pattern: str
    equal: Mapping[str, str]
    component: str = ""
    operator: str = ""
    values: Sequence[str] = ()
    descending: bool = False


def answer(table: Table, asked: PatternRequest) -> dict[str, Any]:
    """The Query that a pattern sends, and its Python code. Raises the model's `UsageError`."""
    schema = table.entity_of(asked.entity)
    if schema is None or asked.pattern not in schema.keys:
        raise UsageError(f"table {table.name!r} has no pattern {asked.entity}.{asked.pattern}")
    name = schema.entity.__name__
    conditions, texts = [], []
    for field_name, text in asked.equal.items():
        field = _field(schema, field_name)
        value = _value(field, text)
        conditions.append(field == value)
        texts.append(f"{name}.{field_name} == {value!r}")
    if asked.operator:
        field = _field(schema, asked.component)
        values = [_value(field, text) for text in asked.values]
        condition, text = _compared(field, asked.operator, values, f"{name}.{asked.component}")
        conditions.append(condition)
        texts.append(text)
    query = schema.patterns[asked.pattern].where(*conditions)
    code = f"{name}.{asked.pattern}.where({', '.join(texts)})"
    if asked.descending:
        query, code = query.descending(), f"{code}.descending()"
    return {
        "request": query.request(),
        "code": f"for item in store.iterate({code}):\n    print(item)",
    }


def _field(schema: EntitySchema, name: str) -> Any:
    field = schema.fields.get(name)
    if field is None:
        raise UsageError(f"{schema.tag} has no field {name!r}")
    return field


def _value(field: Any, text: str) -> Any:
    """Parse a form's text as a value of a field."""
    try:
        return TypeAdapter(field.annotation).validate_strings(text)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise UsageError(
            f"{text!r} is not a {_type(field.annotation)}, which {field.name!r} is: {reason}"
        ) from None


def _compared(field: Any, operator: str, values: Sequence[Any], name: str) -> tuple[Any, str]:
    """A condition and its source text."""
    if operator in _COMPARISONS and len(values) == 1:
        return _COMPARISONS[operator](field, values[0]), f"{name} {operator} {values[0]!r}"
    if operator == "between" and len(values) == 2:
        return field.between(*values), f"{name}.between({values[0]!r}, {values[1]!r})"
    if operator == "begins_with" and len(values) == 1:
        return field.begins_with(*values), f"{name}.begins_with({values[0]!r})"
    raise UsageError(f"{operator!r} with {len(values)} values is not a range of a key")
