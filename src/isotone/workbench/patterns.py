"""Entities and access patterns for forms: fields, parameters in the key's order; a day as its first or last instant."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, tzinfo
from typing import Any, Final, NamedTuple

from pydantic import TypeAdapter, ValidationError

from isotone.errors import IsotoneError, UsageError
from isotone.model import EntitySchema, Table
from isotone.workbench import entity_forms, raw_edits
from isotone.workbench.code import PatternCode, isotone_program
from isotone.workbench.entity_forms import form_of

_COMPARISONS: Final = {
    "==": operator.eq,
    "!=": operator.ne,
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
        "zone": str(_zone(field)) if "datetime" in _type(field.annotation) else "",
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
    filters: Sequence[Mapping[str, Any]] = ()
    """Those of the page: `{"attribute", "operator", "values"}`, with the values as they are stored."""


def answer(
    table: Table, asked: PatternRequest, target: str, region: str, source: str | None
) -> dict[str, Any]:
    """The Query that a pattern sends, and a program that reads it from a region of `target`. Raises the model's `UsageError`.

    `source` is that of an inferred model, which no program can import.
    """
    schema = table.entity_of(asked.entity)
    if schema is None or asked.pattern not in schema.keys:
        raise UsageError(f"table {table.name!r} has no pattern {asked.entity}.{asked.pattern}")
    conditions, code = [], PatternCode(schema.entity, source)
    for name, text in asked.equal.items():
        field = _field(schema, name)
        value = _value(field, text)
        conditions.append(field == value)
        code.compare(name, "==", [value])
    if asked.operator:
        field = _field(schema, asked.component)
        values = _bounds(schema.keys[asked.pattern], field, asked.operator, asked.values)
        conditions.append(_compared(field, asked.operator, values))
        code.compare(asked.component, asked.operator, values)
    query = schema.patterns[asked.pattern].where(*conditions)
    if asked.descending:
        query = query.descending()
    request = query.request()
    if not all(_add_filter(schema, code, each) for each in asked.filters):
        return {"request": request, "code": None}
    if code.is_importable:
        program = code.program(asked.pattern, target, region, descending=asked.descending)
    else:
        program = isotone_program("Query", request, target, region)
    return {"request": request, "code": program}


_OPERATORS: Final = {"=": "==", "<>": "!="}
"""How Python writes the operators of a filter; all others are written alike."""
_MISFITS: Final = (IsotoneError, ValueError, LookupError, ArithmeticError)
"""What a field raises of a value that it could not have stored."""


def _add_filter(schema: EntitySchema, code: PatternCode, asked: Mapping[str, Any]) -> bool:
    """Add a filter to a program; whether the model can say it: of a field as a whole, with values of its type."""
    fields = [each for each in schema.fields.values() if each.attribute == asked["attribute"]]
    values = asked["values"]
    if not fields or fields[0].options.codec is not None:
        return False
    (field,) = fields
    if any(field.wire.code not in value for value in values):
        return False
    name = _OPERATORS.get(asked["operator"], asked["operator"])
    try:
        decoded = [field.wire.decode(value) for value in values]
        _compared(field, name, decoded)
    except _MISFITS:  # such as the beginning of a date
        return False
    code.filter(field.name, name, decoded)
    return True


def _field(schema: EntitySchema, name: str) -> Any:
    field = schema.fields.get(name)
    if field is None:
        raise UsageError(f"{schema.tag} has no field {name!r}")
    return field


def _zone(field: Any) -> tzinfo:
    """The zone of a time that is typed without one: the field's own, or UTC."""
    zone: tzinfo = field.options.zone or UTC
    return zone


_WRITTEN: Final = {
    "datetime": "write 2026-09-01 or 2026-09-01T12:00",
    "date": "write it as 2026-09-01",
    "Decimal": "write it as 12.5",
}
"""How people write values of types of which pydantic only says what its parser met."""


def _value(field: Any, text: str) -> Any:
    """Parse a form's text as a value of a field."""
    try:
        value = TypeAdapter(field.annotation).validate_strings(text)
        if isinstance(value, datetime) and value.tzinfo is None:
            return value.replace(tzinfo=_zone(field))
        return value
    except ValidationError as error:
        kind = _type(field.annotation)
        said = error.errors()[0]["msg"]
        reason = next(
            (_WRITTEN[each] for each in _WRITTEN if re.search(rf"\b{each}\b", kind)), said
        )
        raise UsageError(f"{text!r} is not a {kind}, which {field.name!r} is: {reason}") from None


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_ENDS: Final = {"<=": 0, ">": 0, "between": 1}
"""By operator, the place of the bound that has a day's end in it: all others are a day's beginning."""


def _bounds(key: Any, field: Any, operator: str, texts: Sequence[str]) -> list[Any]:
    """The bounds of a range. A time that is typed as a day is its first instant, or its last where the day belongs in."""
    values = [_value(field, text) for text in texts]
    end = _ENDS.get(operator, len(texts))
    if end < len(texts) and isinstance(values[end], datetime) and _DAY.fullmatch(texts[end]):
        values[end] = _last_instant(date.fromisoformat(texts[end]), key, field)
    return values


def _last_instant(day: date, key: Any, field: Any) -> datetime:
    """The last instant of a day, in the field's zone, that the key can hold: it may write no more than seconds."""
    last = time.fromisoformat(time.max.isoformat(timespec=field.options.precision))
    instant = datetime.combine(day, last, _zone(field)).replace(fold=1)
    for slot in key.sort:
        template = getattr(slot, "template", None)
        if template is None:  # the field itself is the key's attribute
            continue
        for component, codec in zip(slot.components, template.codecs, strict=True):
            if component.field.name == field.name and hasattr(codec, "nearest"):
                written: datetime | None = codec.nearest(instant)[0]
                return written or instant
    return instant


def _compared(field: Any, operator: str, values: Sequence[Any]) -> Any:
    """A condition on a field."""
    if operator in _COMPARISONS and len(values) == 1:
        return _COMPARISONS[operator](field, values[0])
    if operator == "between" and len(values) == 2:
        return field.between(*values)
    if operator in ("begins_with", "contains") and len(values) == 1:
        return getattr(field, operator)(*values)
    if operator in ("exists", "missing") and not values:
        return getattr(field, operator)()
    raise UsageError(f"{operator!r} with {len(values)} values is not a range of a key")
