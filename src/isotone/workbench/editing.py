"""The calls that edit items through a loaded model: forms, drafts, saving, undo, repair, and previews of several.

A refusal is an answer, not an error: `{"refused": {"code", "message", "fields", "item", "taken_by"}}`. `fields` has what
is wrong with each field, in the library's words; `item` is what is stored now, if somebody else has changed it; `taken_by`
is the key of the item that already has the key or the unique value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from isotone.backends.interface import Backend, Request
from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidEntity,
    InvalidItem,
    IsotoneError,
    NotUnique,
    UsageError,
)
from isotone.model import (
    EntitySchema,
    Store,
    Table,
    connect,
    create_item,
    delete_item,
    edit_item,
    item_after,
    item_findings,
    repair_item,
    request_to_delete,
    request_to_save,
    revert_item,
    schema_of_item,
)
from isotone.tables.threads import in_thread
from isotone.values.json import item_to_wire
from isotone.values.types import Item
from isotone.workbench import entity_forms
from isotone.workbench.access import WriteAccess

Answer = dict[str, Any]
Given = Mapping[str, Any]


class Editing:
    """The edits of one workbench; `calls` are the calls of the page. `tables` are those of the loaded model."""

    def __init__(self, backend: Backend, tables: tuple[Table, ...], access: WriteAccess) -> None:
        self._backend = backend
        self._tables = {table.name: table for table in tables}
        self._access = access
        self._connected: Store | None = None

    @property
    def calls(self) -> dict[str, Callable[[Given], Any]]:
        """The calls by name."""
        return {
            "edit_form": self._reads(self._form),
            "edit_draft": self._reads(self._draft),
            "edit_preview": self._reads(self._preview),
            "edit_request": self._reads(self._request),
            "edit_save": self._writes(self._save),
            "edit_delete": self._writes(self._delete),
            "edit_undo": self._writes(self._undo),
            "edit_repair": self._writes(self._repair),
        }

    def _reads(self, answer: Callable[[Table, Given], Answer]) -> Callable[[Given], Any]:
        async def call(given: Given) -> Answer:
            return await in_thread(answer, self._table(given), given)

        return call

    def _writes(self, answer: Callable[[Table, Given], Answer]) -> Callable[[Given], Any]:
        async def call(given: Given) -> Answer:
            self._access.check("Editing", {})
            return await in_thread(self._or_refused, answer, self._table(given), given)

        return call

    # Reading

    def _form(self, table: Table, given: Given) -> Answer:
        """The form of a stored item: `{"table", "item"}`."""
        item = _item(given, "item")
        schema = schema_of_item(table, item)
        findings = item_findings(self._store, table, item)
        return {
            **entity_forms.draft(schema, {}, item),
            **entity_forms.values_of(schema, item),  # whose faults are those of what is stored
            "findings": [entity_forms.finding_described(each) for each in findings],
        }

    def _draft(self, table: Table, given: Given) -> Answer:
        """What typed values would give: `{"table", "entity", "values", "item"}`; no item for a new entity."""
        item = given.get("item")
        return entity_forms.draft(_schema(table, given), given.get("values") or {}, item)

    def _preview(self, table: Table, given: Given) -> Answer:
        """The items after an edit of several: `{"table", "values", "items"}`; nothing is written."""
        return {"previews": [self._previewed(table, each, given) for each in given["items"]]}

    def _previewed(self, table: Table, item: Item, given: Given) -> Answer:
        """The item after an edit, or why it would be refused."""
        typed = given.get("values") or {}
        try:
            schema, now = schema_of_item(table, item), self._store.clock.now()
            after = item_after(schema, item, entity_forms.read(schema, typed), now)
        except IsotoneError as error:
            return {"after": None, "refused": str(error), "fields": _fields_of(error)}
        return {"after": after, "refused": None, "fields": {}}

    def _request(self, table: Table, given: Given) -> Answer:
        """What `edit_save` would send, or `edit_delete`, for its cost: with a unique value it is a transaction.

        `{"table", "entity", "values", "item"}`, or `{"table", "item", "delete": true}`.
        """
        item: Item | None = given.get("item")
        if given.get("delete"):
            request = request_to_delete(self._store, table, _item(given, "item"))
            return {"action": _action(request, "DeleteItem"), "request": request}
        schema = _schema(table, given) if item is None else schema_of_item(table, item)
        values = entity_forms.read(schema, given.get("values") or {})
        request = request_to_save(self._store, schema, item, values)
        return {"action": _action(request, "PutItem"), "request": request}

    # Writing

    def _save(self, table: Table, given: Given) -> Answer:
        """Create an entity, or change one as it was read: `{"table", "entity", "values", "item"}`."""
        item: Item | None = given.get("item")
        schema = _schema(table, given) if item is None else schema_of_item(table, item)
        values = entity_forms.read(schema, given.get("values") or {})
        if item is None:
            return {"item": create_item(self._store, schema, values)}
        return {"item": edit_item(self._store, table, item, values)}

    def _delete(self, table: Table, given: Given) -> Answer:
        """Delete an item as it was read: `{"table", "item"}`."""
        delete_item(self._store, table, _item(given, "item"))
        return {"item": None}

    def _undo(self, table: Table, given: Given) -> Answer:
        """Bring an item back to what it was: `{"table", "item", "before"}`, either of them null for no item."""
        item = given.get("item")
        return {"item": revert_item(self._store, table, item, given.get("before"))}

    def _repair(self, table: Table, given: Given) -> Answer:
        """Write an item as its entity would now: `{"table", "item", "without"}`, without these attributes."""
        without = given.get("without") or []
        if not isinstance(without, list) or not all(isinstance(each, str) for each in without):
            raise UsageError(f"without={without!r} is not a list of attributes")
        return {"item": repair_item(self._store, table, _item(given, "item"), without)}

    def _or_refused(
        self, answer: Callable[[Table, Given], Answer], table: Table, given: Given
    ) -> Answer:
        try:
            return answer(table, given)
        except IsotoneError as error:
            fields = _fields_of(error)
            if not fields and not isinstance(error, ConditionFailed | InvalidItem | UsageError):
                raise
            refused: Answer = {
                "code": type(error).__name__,
                "message": str(error),
                "fields": fields,
                "changed": isinstance(error, ConditionFailed),
                "item": None,
                "taken_by": _taken_by(table, given, error),
            }
            item = given.get("item")
            if refused["changed"] and item is not None:
                refused["item"] = self._stored(table, item)
            return {"refused": refused}

    def _stored(self, table: Table, item: Item) -> Item | None:
        """The item that is stored now."""
        key = {each.name: item[each.name] for each in table.keys.attributes}
        request = {"TableName": table.name, "Key": key, "ConsistentRead": True}
        stored: Item | None = self._backend.execute("GetItem", request).get("Item")
        return stored

    @property
    def _store(self) -> Store:
        """A store that refuses to write if the model's keys are not those of the table's items."""
        if self._connected is None:
            self._connected = connect(self._backend)
        return self._connected

    def _table(self, given: Given) -> Table:
        table = self._tables.get(str(given.get("table")))
        if table is None:
            raise UsageError(
                f"no model declares table {given.get('table')!r}; start the workbench with --model"
            )
        return table


def _schema(table: Table, given: Given) -> EntitySchema:
    schema = table.entity_of(str(given.get("entity")))
    if schema is None:
        raise UsageError(f"the model of table {table.name!r} has no entity {given.get('entity')!r}")
    return schema


def _item(given: Given, name: str) -> Item:
    item = given.get(name)
    if not isinstance(item, dict) or not item:
        raise UsageError(f"a call needs {name!r}, an item as DynamoDB JSON")
    return item


def _action(request: Request, alone: str) -> str:
    return "TransactWriteItems" if "TransactItems" in request else alone


def _taken_by(table: Table, given: Given, error: IsotoneError) -> Item | None:
    """The primary key of the item that has what another one was to get."""
    if isinstance(error, NotUnique):
        return item_to_wire(error.owner) if isinstance(error.owner, Mapping) else None
    if not isinstance(error, AlreadyExists) or given.get("item") is not None:
        return None
    schema = _schema(table, given)
    wanted = schema.entity(**entity_forms.read(schema, given.get("values") or {}))
    return schema.identify({name: getattr(wanted, name) for name in schema.identity})


def _fields_of(error: IsotoneError) -> dict[str, str]:
    """What an error says about single fields."""
    if isinstance(error, entity_forms.Refused):
        return dict(error.fields)
    if isinstance(error, NotUnique):
        return {error.field: str(error)}
    if isinstance(error, InvalidItem) and error.field is not None:
        return {error.field: str(error)}
    if isinstance(error, InvalidEntity):
        faults: dict[str, str] = {}
        for each in error.errors:
            faults.setdefault(each["field"].partition("[")[0], each["error"])
        return faults
    return {}
