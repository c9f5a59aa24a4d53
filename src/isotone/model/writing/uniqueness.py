"""`unique=`: the marker items that reserve unique values, written in one transaction with their entity; `NotUnique`.

DynamoDB enforces uniqueness only for primary keys. So each unique value gets a marker item: its primary key contains
the value (`_unique#User#email#ann@example.com`), its tag is `_unique`, and `_owner` holds the entity's primary key. A
marker is written, deleted and expires together with its entity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from isotone import limits
from isotone.codec import readable
from isotone.errors import NotUnique, UsageError, WriteRefused
from isotone.expressions import nodes
from isotone.model.declaring.declaration import OWNER_ATTRIBUTE
from isotone.model.declaring.fields import Attr
from isotone.model.expiry import expired
from isotone.model.expression_trees import absent, conjunction, equal
from isotone.model.writing.write import WriteAction, action, key_in
from isotone.values.json import item_from_wire
from isotone.values.types import AttributeValue, Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.table import Table

MARK: Final = "_unique"


def fields_of(schema: EntitySchema) -> list[Attr[Any]]:
    """The fields on which an entity's markers depend."""
    return [each for field in schema.unique for each in (field, *field.unique_within)]


def claims(schema: EntitySchema, values: Mapping[str, Any]) -> dict[str, Attr[Any]]:
    """The markers for an entity with these values, each with its field."""
    found = {}
    for field in schema.unique:
        text = claim(schema, field, values)
        if text is not None:
            found[text] = field
    return found


def claim(schema: EntitySchema, field: Attr[Any], values: Mapping[str, Any]) -> str | None:
    """The marker of one unique field; None if a value in it is None."""
    path = [_text(each, values.get(each.name)) for each in (*field.unique_within, field)]
    if None in path:
        return None
    text = "#".join((MARK, schema.root.tag, field.name, *map(str, path)))
    _check_size(schema, field, text)
    return text


def changes(
    schema: EntitySchema,
    owner: Item,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    now: float,
    *,
    previous_owner: Item | None = None,
) -> list[WriteAction]:
    """The actions that claim the values in `after` and release those in `before`."""
    if not schema.unique:
        return []
    old = claims(schema, before) if before is not None else {}
    new = claims(schema, after) if after is not None else {}
    moved = previous_owner is not None or "expires" in schema.by_role
    kept = {} if moved else old
    previous = previous_owner or owner
    return [
        _claim(schema, text, field, after or {}, (owner, previous), now)
        for text, field in new.items()
        if text not in kept
    ] + [_release(schema, text, previous) for text in old if text not in new]


def claimed_by(table: Table, marker: Item) -> tuple[EntitySchema, str, str] | None:
    """The entity, the field and the text that a marker reserves; None if the program does not declare the entity."""
    text = marker[table.keys.partition[0].name].get("S", "")
    for tag in sorted(table.entities, key=len, reverse=True):
        before = f"{MARK}#{tag}#"
        if text.startswith(before):
            return table.entities[tag], text[len(before) :].partition("#")[0], text
    return None


def owner_in(marker: Item | None) -> Item | None:
    """The primary key of a marker's entity; None if the item is not a marker."""
    owner: Item | None = (marker or {}).get(OWNER_ATTRIBUTE, {}).get("M")
    return owner


def is_marker(key: Item) -> bool:
    """Whether a primary key is that of a marker."""
    return str(next(iter(key.values())).get("S", "")).startswith(f"{MARK}#")


def _text(field: Attr[Any], value: Any) -> str | None:
    """A value as text in a marker's key; None for None, which needs no marker."""
    if value is None:
        return None
    ((code, content),) = field.encode(value).items()
    return readable.Text(field.options.case if code == "S" else None).encode(content)


def _check_size(schema: EntitySchema, field: Attr[Any], text: str) -> None:
    size = len(text.encode())
    if size > limits.PARTITION_KEY_SIZE:
        raise UsageError(
            f"{schema.tag}: the value of {field.name!r} is too long to be unique; its marker item would "
            f"have a key of {size} bytes, and DynamoDB allows {limits.PARTITION_KEY_SIZE}"
        )


def marker_key(schema: EntitySchema, text: str) -> Item:
    """The primary key of a marker."""
    partition, *sort = schema.table.keys.attributes
    return {partition.name: {"S": text}, **{each.name: {"S": MARK} for each in sort}}


def _claim(
    schema: EntitySchema,
    text: str,
    field: Attr[Any],
    values: Mapping[str, Any],
    owners: tuple[Item, Item],
    now: float,
) -> WriteAction:
    owner, previous = owners
    key = marker_key(schema, text)
    item: Item = {**key, schema.table.tag: {"S": MARK}, OWNER_ATTRIBUTE: {"M": owner}}
    expiry = schema.by_role.get("expires")
    over: list[nodes.ConditionNode] = []
    if expiry is not None:
        over = [expired(expiry.attribute, now)]
        if values.get(expiry.name) is not None:
            item[expiry.attribute] = expiry.encode(values[expiry.name])
    free = nodes.Or((absent(next(iter(key))), *_owned(owner, previous), *over))
    return action("Put", schema, _taken(schema, field, values), free, Item=item)


def _release(schema: EntitySchema, text: str, owner: Item) -> WriteAction:
    key = marker_key(schema, text)
    ours = nodes.Or((absent(next(iter(key))), *_owned(owner)))
    return action("Delete", schema, lambda _: None, ours, Key=key)


def _owned(*owners: Item) -> list[nodes.ConditionNode]:
    distinct: list[AttributeValue] = []
    for owner in owners:
        if {"M": owner} not in distinct:
            distinct.append({"M": owner})
    return [equal(OWNER_ATTRIBUTE, owner) for owner in distinct]


def _taken(schema: EntitySchema, field: Attr[Any], values: Mapping[str, Any]) -> Any:
    def explain(marker: Item | None) -> WriteRefused | None:
        if marker is None:
            return None
        # An item that is not a marker has no owner, but occupies the marker's key.
        stored = marker.get(OWNER_ATTRIBUTE, {}).get("M") or key_in(schema, marker)
        names = [
            each.name for each in schema.table.keys.attributes
        ]  # engines order maps as they like
        owner = item_from_wire({name: stored[name] for name in names if name in stored})
        value = values[field.name]
        within = "".join(
            f" within {each.name} {values[each.name]!r}" for each in field.unique_within
        )
        return NotUnique(
            f"{schema.tag}: {field.name} {value!r} is taken{within} by {', '.join(map(str, owner.values()))}",
            field.name,
            value,
            owner,
        )

    return explain


def pins(schema: EntitySchema, current: Item | None) -> nodes.ConditionNode | None:
    """The condition that an item still has the unique values that were read."""
    if not schema.unique:
        return None
    if current is None:
        return absent(schema.table.keys.partition[0].name)
    names = {field.attribute for field in fields_of(schema)}
    return conjunction([equal(name, current.get(name)) for name in sorted(names)])
