"""Edits of single items through their entities, for forms: `edit_item`, `delete_item`, `repair_item`, `revert_item`.

    findings = item_findings(store, shop, item)      # what `verify` would find in it
    after = edit_item(store, shop, item, {"status": "PAID"})
    revert_item(store, shop, after, item)

Values are given by the fields' names, and validated. A refusal is the library's own error. An edit, a repair or a deletion is
refused if the item is no longer as it was seen (`writing/seen_items`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from isotone.backends.interface import Request
from isotone.errors import UsageError
from isotone.model.declaring.changes import Change
from isotone.model.inspection import Inspector, ItemFinding
from isotone.model.verification import unclaimed_values
from isotone.model.writing.put_and_delete import Put
from isotone.model.writing.seen_items import DeleteSeen, EditSeen, RepairSeen
from isotone.model.writing.write import Write
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.table import Table
    from isotone.model.store import Store


def schema_of_item(table: Table, item: Item) -> EntitySchema:
    """The entity of a stored item; raises `UsageError` if it has none, or is the library's own."""
    inspector = Inspector(table)
    schema = None if inspector.is_of_library(item) else inspector.entity_of(item)
    if schema is None:
        tag = item.get(table.tag, {}).get("S")
        what = "the library's own" if tag and inspector.is_of_library(item) else "of no entity"
        raise UsageError(f"the item is {what}, as the model of table {table.name!r} declares it")
    return schema


def findings_without_reading(
    table: Table, items: Sequence[Item], now: float
) -> list[list[ItemFinding]]:
    """What is wrong with whole items, as `verify` sees it, except their unique values. Reads nothing."""
    inspector = Inspector(table)
    return [
        [] if inspector.is_of_library(each) else inspector.inspect(each, now).findings
        for each in items
    ]


def item_findings(store: Store, table: Table, item: Item) -> list[ItemFinding]:
    """What `verify` would find in a whole item. Cost: a read for each of its unique values."""
    inspector = Inspector(table)
    if inspector.is_of_library(item):
        return []
    inspection = inspector.inspect(item, store.clock.now())
    if not inspection.claims:
        return inspection.findings
    unclaimed: list[ItemFinding] = store.run(unclaimed_values(table, item, inspection, store.clock))
    return [*inspection.findings, *unclaimed]


def create_item(store: Store, schema: EntitySchema, values: Mapping[str, Any]) -> Item:
    """Write a new entity; raises `AlreadyExists`, `NotUnique` or `InvalidEntity`. Returns its item."""
    created = store.create(schema.entity(**values))
    return schema.to_item(created.__dict__)


def request_to_save(
    store: Store, schema: EntitySchema, item: Item | None, values: Mapping[str, Any]
) -> Request:
    """The request of `edit_item`, or without an item of `create_item`. Reads and writes nothing."""
    write: Write[Any]
    if item is None:
        write = Put(schema.entity(**values), store.clock, expected="absence")
    else:
        write = EditSeen(schema, item, _changes(schema, values))
    request: Request = store.run(store._request(write))
    return request


def request_to_delete(store: Store, table: Table, item: Item) -> Request:
    """The request of `delete_item`. Reads and writes nothing."""
    request: Request = store.run(store._request(DeleteSeen(schema_of_item(table, item), item)))
    return request


def edit_item(store: Store, table: Table, item: Item, values: Mapping[str, Any]) -> Item:
    """Set fields of an item that was read; returns the item afterwards. None removes an optional value.

    Raises `ConditionFailed` or `VersionConflict` if it was changed since, `InvalidEntity`, `NotUnique`, and
    `AlreadyExists` if the primary key changes to one that is taken.
    """
    schema = schema_of_item(table, item)
    after: Item = store.run(store._write(EditSeen(schema, item, _changes(schema, values))))
    return after


def item_after(schema: EntitySchema, item: Item, values: Mapping[str, Any], now: float) -> Item:
    """The item as `edit_item` would write it. Reads and writes nothing."""
    write = EditSeen(schema, item, _changes(schema, values))
    write.prepare()
    after: Item = write.plan(now).outcome
    return after


def delete_item(store: Store, table: Table, item: Item) -> None:
    """Delete an item that was read; raises `ConditionFailed` or `VersionConflict` if it was changed since."""
    store.run(store._write(DeleteSeen(schema_of_item(table, item), item)))


def revert_item(store: Store, table: Table, now: Item | None, before: Item | None) -> Item | None:
    """Undo a change: from the item as it is `now` to what it was `before`; None stands for no item."""
    if before is None:
        if now is not None:
            delete_item(store, table, now)
        return None
    schema = schema_of_item(table, before)
    if now is None:
        entity = schema.from_item(before)
        return schema.to_item(store.create(entity).__dict__)
    return edit_item(store, table, now, _differing(schema, now, before))


def repair_item(store: Store, table: Table, item: Item, without: Collection[str] = ()) -> Item:
    """Write an item as its entity would write it now, without the given attributes; returns it afterwards.

    Raises `ConditionFailed` or `VersionConflict` if it was changed since, and `UsageError` for an attribute that the
    entity declares: its value is the entity's, and is changed by an edit.
    """
    schema = schema_of_item(table, item)
    declared = sorted(schema.declared_attributes.intersection(without))
    if declared:
        raise UsageError(
            f"{schema.tag} declares {', '.join(declared)}; a repair removes only attributes that it does not declare"
        )

    def left_out(values: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name not in without}

    change = left_out if without else None
    write = RepairSeen(schema, item, change)
    store.run(store._write(write))
    return write.outcome(write.current or item)


def _changes(schema: EntitySchema, values: Mapping[str, Any]) -> list[Change]:
    valid = schema.validator.some(values, {})
    return [schema.fields[name].set(value) for name, value in valid.items()]


def _differing(schema: EntitySchema, now: Item, before: Item) -> dict[str, Any]:
    """The values before a change of the fields that differ, and that may be set."""
    was, now_is = (
        schema.from_invalid_item(each, require_all_fields=True) for each in (before, now)
    )
    return {
        name: getattr(was, name)  # raises for a value that the model does not accept
        for name, field in schema.fields.items()
        if field.why_fixed is None
        and (
            name not in was.__dict__
            or name not in now_is.__dict__
            or was.__dict__[name] != now_is.__dict__[name]
        )
    }
