"""`show`: prints entities as a table of text, in order, with the keys that determine the order.

>>> isotone.show(store.all(Order.by_status.where(Order.customer_id == "2b5a41c0")), by=Order.by_status)
GSI1PK             GSI1SK           customer_id  number  status
─────────────────  ───────────────  ───────────  ──────  ─────────
CUSTOMER#2b5a41c0  CANCELLED#00157  2b5a41c0        157  CANCELLED
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Context, Decimal
from enum import Enum
from html import escape
from typing import TYPE_CHECKING, Any, Final, TextIO

from isotone.errors import UsageError
from isotone.model.declaring.entity_schema import EntitySchema
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.wire_types import instant_text
from isotone.model.reading.projections import Projection
from isotone.model.reading.queries import Read
from isotone.text_table import WIDEST, aligned, cell
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.keys import BoundKey
    from isotone.model.entity import Entity
    from isotone.model.reading.access_patterns import Pattern

_EXACT: Final = Context(prec=38)


def show(
    entities: Iterable[Entity | Projection[Any]],
    *fields: Attr[Any],
    by: Pattern[Any] | None = None,
    file: TextIO | None = None,
) -> None:
    """Print entities as a table. The columns are the given fields; by default, their keys and all fields.

    `by` is the key whose attributes are shown, by default the primary one. Raises `UsageError` for anything but
    entities, such as a query that has not been read.

        isotone.show(store.all(query), Order.number, Order.status)
    """
    print(table_text(_entities(entities), fields, by), file=file)


def _entities(given: Any) -> list[Entity]:
    """The entities to show; refuses anything else, with advice."""
    if isinstance(given, Read):
        raise UsageError(f"{given!r} is not read yet; write show(store.all(query))")
    if _is_entity(given):
        raise UsageError(f"show takes several entities; write show([{type(given).__name__}(…)])")
    entities = list(given) if isinstance(given, Iterable) else [given]
    for each in entities:
        if not _is_entity(each):
            raise UsageError(
                f"{each!r} is not an entity; show takes the result of store.all(query)"
            )
    return entities


def _is_entity(value: Any) -> bool:
    schema = getattr(type(value), "__schema__", None)
    return isinstance(schema, EntitySchema) or isinstance(value, Projection)


def table_text(
    entities: Sequence[Entity], fields: Sequence[Attr[Any]] = (), by: Pattern[Any] | None = None
) -> str:
    """The table's lines, with a header; "(nothing)" if there are no entities."""
    if not entities:
        return "(nothing)"
    names, cells, right = _columns(entities, fields, by)
    return aligned(names, cells, right=right)


def table_html(entities: Sequence[Entity], caption: str = "") -> str:
    """The same table, of keys and all fields, as a notebook shows it."""
    names, cells, right = _columns(entities, (), None) if entities else ([], [], set())
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td style="text-align: {"right" if place in right else "left"}">{escape(text)}</td>'
            for place, text in enumerate(row)
        )
        + "</tr>"
        for row in cells
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{rows}</table>"


def _columns(
    entities: Sequence[Entity], fields: Sequence[Attr[Any]], by: Pattern[Any] | None
) -> tuple[list[str], list[list[str]], set[int]]:
    """The names of the columns, the rows, and the places of the columns of numbers."""
    names = [each.name for each in fields]
    rows = [_of_fields(each, names) if fields else _of_keys(each, by) for each in entities]
    if not fields:
        names = list(dict.fromkeys(name for row in rows for name in row))
        schemas = {each.__schema__ for each in entities if not isinstance(each, Projection)}
        if len({each.tag for each in schemas}) == 1:
            names.remove(schemas.pop().table.tag)
    numbers = {
        name for name in names if all(_is_number(row.get(name)) for row in rows if name in row)
    }
    cells = [[cell(_text(row.get(name))) for name in names] for row in rows]
    return names, cells, {place for place, name in enumerate(names) if name in numbers}


def _of_fields(entity: Entity, names: Sequence[str]) -> dict[str, Any]:
    return {name: entity.__dict__.get(name) for name in names}


def _of_keys(entity: Entity, by: Pattern[Any] | None) -> dict[str, Any]:
    """The key attributes, the kind, and the other fields that were read."""
    if isinstance(entity, Projection):
        return entity._shown()
    schema = entity.__schema__
    index = None if by is None else by.key.index
    row: dict[str, Any] = {}
    for name, value in _key_attributes(entity, _key_on(schema, index)).items():
        ((code, text),) = value.items()
        row[name] = Decimal(str(text)) if code == "N" else text
    row[schema.table.tag] = schema.tag
    for field in schema.fields.values():
        is_shown = field.name in entity.__dict__ and not field.options.hidden
        if is_shown and field.attribute not in row:
            row[field.name] = entity.__dict__[field.name]
    return row


def _key_on(schema: EntitySchema, index: str | None) -> BoundKey:
    for key in schema.keys.values():
        if key.index == index:
            return key
    raise UsageError(f"{schema.tag} has no key on index {index!r}, so it cannot be shown by it")


def _key_attributes(entity: Entity, key: BoundKey) -> Item:
    attributes: Item = {}
    for slot in key.slots:
        value = slot.encode(entity.__dict__)
        if value is not None:
            attributes[slot.attribute.name] = value
    return attributes


# Cells


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | Decimal) and value is not True)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return instant_text(value)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Decimal):
        plain = format(value, "f")
        return plain if len(plain) <= WIDEST else str(value.normalize(_EXACT))
    if isinstance(value, bytes):
        return value.hex()
    return str(value)
