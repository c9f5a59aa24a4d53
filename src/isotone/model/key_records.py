"""`KeysChanged`: the record of the keys that items were written with, compared with what a program declares.

    PK       SK       _type    keys of Order                                          keys of Customer
    _keys    _keys    _keys    {"primary": {"PK": "CUSTOMER#{customer: Text}", …}}    …

Keys are composed by the class statement, so another class statement (a wider number, another order of
an enum, a new index) does not find what the previous one wrote. A store reads this item when it first meets a
key of the table, and raises `KeysChanged` if the items have another form of the key than the declared one:
for the primary key always, for the key of an index if that index is read. A form records the width of a number,
not its maximum, so a larger maximum with as many digits is the same form. `create_tables` and the first write
of an entity write the record; `widen` and `rewrite` bring it up to date.

If a program writes another form of a key than the recorded one (a changed index, or a key with `was`), both forms
are recorded, so that no program misses what the other one writes. The same holds for a tag with `was_tag`.

Some changes need no rewriting, and are recorded as they come: an index that is not declared any more, and
values added at the end of an enum `in_order`, as long as their ordinals have the same number of digits.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from isotone.errors import ConditionalCheckFailedException, KeysChanged
from isotone.expressions import nodes
from isotone.model.declaring.fields import Attr
from isotone.model.declaring.keys import BoundKey, StringSlot
from isotone.model.declaring.previous_keys import previous_form
from isotone.model.declaring.table import Table
from isotone.model.expression_trees import equal, update_of
from isotone.tables.retries import write_when_free
from isotone.tables.steps import Call, Steps
from isotone.values.json import from_wire, to_wire
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema

MARK: Final = "_keys"
_PREFIX: Final = "keys of "
_PLACES: Final = {"S": MARK, "N": "0", "B": "X2tleXM="}  # the last is _keys in base64

_RENAMED: Final = "renamed to"
"""In the record of a previous tag: the tag that items have instead."""

_BEING_RENAMED: Final = "being renamed to"
"""The same while some items may still have the previous tag."""

_WHATEVER: Final = object()

Form = Mapping[str, str]
"""For each attribute of a key, how its value is composed."""
Forms = Mapping[str, Form | list[Form]]
"""For each key of an entity (`primary`, or the name of its index), its form; a list if programs write several."""


class KeyRecords:
    """The key records of the tables that a store has met."""

    def __init__(self, *, is_checked: bool = True) -> None:
        self._is_checked = is_checked
        self._records: dict[Table, Item] = {}
        self.checked: set[object] = set()
        """The keys, and the tuples of keys of a read, that were compared with the record and agree with it."""
        self.recorded: set[EntitySchema] = set()
        """The entities whose keys are in the record: their next writes need not look at it."""

    def check(self, schemas: tuple[EntitySchema, ...], keys: tuple[BoundKey, ...]) -> Steps[None]:
        """Raise `KeysChanged` if a table's items have other keys. One read for each new table."""
        for schema, key in zip(schemas, keys, strict=True):
            for each in (schema.primary, key):
                if each not in self.checked:
                    yield from self._check(schema, each)
                    self.checked.add(each)
        self.checked.add(keys)

    def record(self, schema: EntitySchema) -> Steps[None]:
        """Check the primary key of an entity, and record all its keys. One write if they are new."""
        yield from self.check((schema,), (schema.primary,))
        if schema.base is not None and schema.base not in self.recorded:
            yield from self.record(
                schema.base
            )  # so that a program without this kind knows the keys
        if self._is_checked and _can_be_recorded(schema.table):
            before = self._records[schema.table].get(_attribute(schema))
            declared = _forms_to_store(schema, self._records[schema.table])
            if before != to_wire(declared):
                # Refused if another program has recorded its keys in between, which are compared now.
                with contextlib.suppress(ConditionalCheckFailedException):
                    yield from write_when_free(
                        Call("UpdateItem", _update(schema, declared, before))
                    )
                self._records[schema.table] = yield from _read(schema.table)
                yield from self._check(schema, schema.primary)
        self.recorded.add(schema)

    def accept(self, schema: EntitySchema) -> Steps[tuple[Item, Item]]:
        """Record the keys of an entity as they are declared; returns the record as it was, and as it is."""
        before: Item = {}
        if _can_be_recorded(schema.table):
            before = yield from _read(schema.table)
            yield from write_when_free(
                Call("UpdateItem", _update(schema, forms(schema), is_rewritten=True))
            )
            self._records[schema.table] = yield from _read(schema.table)
        self.checked.update(schema.keys.values())
        self.recorded.add(schema)
        return before, self._records.get(schema.table, {})

    def reset(self) -> None:
        """Compare all keys again."""
        self._records.clear()
        self.checked.clear()
        self.recorded.clear()

    def record_all(self, table: Table) -> Steps[None]:
        """Record the keys of the entities of a table that was just created.

        An entity declared by several classes is skipped: its first write records it.
        """
        if self._is_checked and _can_be_recorded(table) and table.entities:
            for schema in table.entities.values():
                if schema.tag in table.redeclared:
                    continue
                yield from write_when_free(Call("UpdateItem", _update(schema, forms(schema))))
                self.checked.update(schema.keys.values())
                self.recorded.add(schema)
            self._records[table] = yield from _read(table)

    def forget(self, table: Table) -> None:
        """Forget the record of a table that was deleted."""
        self._records.pop(table, None)  # and compare all keys again: a read may be of several
        for schema in table.entities.values():
            self.recorded.discard(schema)
        self.checked.clear()

    def check_unique(self, schema: EntitySchema, field: Attr[Any]) -> Steps[None]:
        """Raise `KeysChanged` if programs have written items without markers of a unique field."""
        known = (schema, field.name)
        if known not in self.checked:
            yield from self._compare(
                schema, lambda record: unique_differences(schema, field, record)
            )
            self.checked.add(known)

    def check_tag(self, schema: EntitySchema) -> Steps[None]:
        """Raise `KeysChanged` if items of an entity may have a tag that it does not declare."""
        yield from self._compare(
            schema, lambda record: other_tags(schema, record) + earlier_tags(schema, record)
        )

    def _check(self, schema: EntitySchema, key: BoundKey) -> Steps[None]:
        if key in schema.keys.values():  # otherwise a previous key, which `was` declares
            yield from self._compare(schema, lambda record: key_differences(schema, key, record))

    def _compare(
        self, schema: EntitySchema, differences: Callable[[Item], list[str]]
    ) -> Steps[None]:
        table = schema.table
        if not self._is_checked or not _can_be_recorded(table):
            return
        if table not in self._records or differences(self._records[table]):
            self._records[table] = yield from _read(table)  # it may have changed since it was read
            found = differences(self._records[table])
            if found:
                raise KeysChanged(schema.tag, table.name, found)


def differences(table: Table) -> Steps[list[str]]:
    """How the keys that the entities of a table declare differ from those recorded."""
    if not _can_be_recorded(table):
        return []
    record = yield from _read(table)
    return [
        f"has items of {schema.tag} with other keys: {change}"
        for schema in table.entities.values()
        for change in (
            *(
                each
                for key in schema.keys.values()
                for each in key_differences(schema, key, record)
            ),
            *(
                each
                for field in schema.unique
                for each in unique_differences(schema, field, record)
            ),
        )
    ]


# The item


def is_record(table: Table, key: Item) -> bool:
    """Whether a primary key is that of the record."""
    return _can_be_recorded(table) and key == _key(table)


def _can_be_recorded(table: Table) -> bool:
    """Whether the table's keys have room for the record: the partition key is a text."""
    return all(attribute.type == "S" for attribute in table.keys.partition)


def _key(table: Table) -> Item:
    return {each.name: {each.type: _PLACES[each.type]} for each in table.keys.attributes}


def _attribute(schema: EntitySchema) -> str:
    return _PREFIX + schema.tag


def _read(table: Table) -> Steps[Item]:
    request = {"TableName": table.name, "Key": _key(table), "ConsistentRead": True}
    item: Item = (yield Call("GetItem", request)).get("Item", {})
    return item


def _update(
    schema: EntitySchema,
    declared: Forms,
    before: Any = _WHATEVER,
    *,
    is_rewritten: bool = False,
) -> dict[str, Any]:
    """The request that records keys, if those `before` are still recorded, and the tag instead of a previous one.

    `is_rewritten`: no item has a previous tag any more.
    """
    table, attribute = schema.table, _attribute(schema)
    members = {table.tag: {"S": MARK}, attribute: to_wire(declared)}
    mark = _RENAMED if is_rewritten else _BEING_RENAMED
    members |= {_PREFIX + tag: to_wire({mark: schema.tag}) for tag in schema.tags[1:]}
    sets = [nodes.Set(nodes.Path((name,)), nodes.Literal(each)) for name, each in members.items()]
    request = {"TableName": table.name, "Key": _key(table), "UpdateExpression": update_of(sets)}
    return (
        request
        if before is _WHATEVER
        else {**request, "ConditionExpression": equal(attribute, before)}
    )


def _undeclared(table: Table, record: Item) -> list[str]:
    """The entities that are recorded, and that this program does not declare."""
    tags = [name.removeprefix(_PREFIX) for name in record if name.startswith(_PREFIX)]
    return [tag for tag in tags if table.entity_of(tag) is None]


def _stored_forms(schema: EntitySchema, record: Item) -> Forms | None:
    for tag in schema.tags:
        if _PREFIX + tag in record:
            recorded: Forms = from_wire(record[_PREFIX + tag])
            return recorded
    return None


# Forms


def forms(schema: EntitySchema) -> Forms:
    """What determines the keys of an entity, for each of them: texts for people, equal if the keys are.

    >>> forms(Order.__schema__)["primary"]
    {'PK': 'CUSTOMER#{customer_id: Text}', 'SK': 'ORDER#{number: Natural width=5}'}
    """
    return {**_declared_forms(schema)}


def _declared_forms(schema: EntitySchema) -> Mapping[str, Form]:
    keys = {_name(key): _form(key) for key in schema.keys.values()}
    return {**keys, **{_unique_name(field): _unique_form(field) for field in schema.unique}}


def _unique_name(field: Attr[Any]) -> str:
    return f"unique {field.name}"


def _unique_form(field: Attr[Any]) -> Form:
    """How the marker of a unique value is composed, from which fields."""
    parts = [
        " ".join(filter(None, (f"{{{each.attribute}: {each.wire.code}", each.options.case))) + "}"
        for each in (*field.unique_within, field)
    ]
    return {"marker": "#".join(parts)}


def _name(key: BoundKey) -> str:
    return key.index or "primary"


def _form(key: BoundKey) -> Form:
    form = {
        slot.attribute.name: (
            slot.template.form([component.field.attribute for component in slot.components])
            if isinstance(slot, StringSlot)
            else slot.form
        )
        for slot in key.slots
    }
    return form if key.when is None else {**form, "when": repr(key.when)}


def key_differences(schema: EntitySchema, key: BoundKey, record: Item) -> list[str]:
    """How a key that an entity declares differs from the recorded one; empty if its items have it."""
    recorded = _stored_forms(schema, record)
    if recorded is None:
        return other_tags(schema, record) if key.index is None else []
    renamed = recorded.get(_RENAMED) or recorded.get(_BEING_RENAMED)
    if renamed is not None:
        return [f"its items have the tag {renamed!r} now"]
    earlier = earlier_tags(schema, record)
    if earlier:
        return earlier
    stored = _listed(recorded.get(_name(key)))
    if not stored:
        return [f"{_title(key)} is new, and items written before have no entry in it"]
    previous = previous_form(schema, key)
    read = [_form(each) for each in (key, previous) if each is not None]
    return [
        difference
        for form in stored
        if all(_merged(form, each) is None for each in read)
        for difference in _differences_of(form, read[0], _title(key), is_one_of=len(stored) > 1)
    ]


def other_tags(schema: EntitySchema, record: Item) -> list[str]:
    """The tags that items of an unrecorded entity may have instead of its own."""
    if schema.base is not None or _stored_forms(schema, record) is not None:
        return []
    primary = _form(schema.primary)
    return [
        f"{tag}, which this program does not declare, has the same primary key, so if {schema.tag} is "
        f"its new name, declare class {schema.entity.__name__}(…, tag={tag!r}), or was_tag={tag!r} and run "
        "store.rewrite"
        for tag in _undeclared(schema.table, record)
        if primary in _listed(from_wire(record[_PREFIX + tag]).get("primary"))
    ]


def earlier_tags(schema: EntitySchema, record: Item) -> list[str]:
    """The tags that items of an entity may still have, and that it does not declare any more."""
    tags = [name.removeprefix(_PREFIX) for name in record if name.startswith(_PREFIX)]
    return [
        f"some items still have the tag {tag!r}; run store.rewrite by the program that declares was_tag={tag!r}"
        for tag in tags
        if tag not in schema.tags
        and from_wire(record[_PREFIX + tag]).get(_BEING_RENAMED) in schema.tags
    ]


def unique_differences(schema: EntitySchema, field: Attr[Any], record: Item) -> list[str]:
    """How the markers of a unique field differ from those recorded; empty if its items have them."""
    recorded = _stored_forms(schema, record)
    if recorded is None or recorded.keys() & {_RENAMED, _BEING_RENAMED}:
        return []  # the primary key tells
    if _listed(recorded.get(_unique_name(field))) == [_unique_form(field)]:
        return []
    return [
        f"{field.name!r} is declared unique, and items written without that are not found by it"
    ]


def _differences_of(before: Form, declared: Form, title: str, *, is_one_of: bool) -> list[str]:
    was = "of some items is" if is_one_of else "was"
    found = [
        f"{'its when=' if name == 'when' else f'attribute {name!r}'} of {title} "
        f"{was} {before.get(name, 'nothing')}, and is declared as {declared.get(name, 'nothing')}"
        for name in {**before, **declared}
        if _grown(before.get(name, ""), declared.get(name, "")) is None
    ]
    if found and _unnamed(before) == _unnamed(declared):
        found[-1] += " (the same keys, if an @upgrade only renames the attribute: then accept them)"
    return found


def _unnamed(form: Form) -> Form:
    """The form without the names of the attributes that its fields have."""
    return {name: _NAMES.sub("{", text) for name, text in form.items()}


def _listed(forms: Form | list[Form] | None) -> list[Form]:
    if forms is None:
        return []
    return forms if isinstance(forms, list) else [forms]


def _title(key: BoundKey) -> str:
    return "the primary key" if key.index is None else f"index {key.index!r}"


# The values in the form of a `Choice`, each with a space after it: `{state: Choice digits=1: PLACED SHIPPED }`.
_VALUES: Final = re.compile(r"(?<=: )(Choice[^:{}]*): ((?:\S+ )+)(?=\})")


# The name of an attribute in a form: `customer` in `CUSTOMER#{customer: Text}`.
_NAMES: Final = re.compile(r"\{[^:{}]*(?=[:}])")


class _Parsed(NamedTuple):
    """A form in two parts: the values of its enums, in order, and all the rest."""

    rest: str
    enums: list[list[str]]


def _parsed(form: str) -> _Parsed:
    enums = [values.split() for _, values in _VALUES.findall(form)]
    return _Parsed(_VALUES.sub(r"\1", form), enums)


def _grown(old: str, new: str) -> str | None:
    """The one of two forms that has values added at the end of enums; None if they differ otherwise."""
    before, after = _parsed(old), _parsed(new)
    if before.rest != after.rest:
        return None
    if all(map(_continues, after.enums, before.enums)):
        return new
    if all(map(_continues, before.enums, after.enums)):
        return old
    return None


def _continues(values: list[str], fewer: list[str]) -> bool:
    """Whether values are others, and maybe more at the end."""
    return values[: len(fewer)] == fewer


def _merged(recorded: Form, declared: Form) -> Form | None:
    """The form with the values of enums that either has; None if the two differ otherwise."""
    merged: dict[str, str] = {}
    for name in {**recorded, **declared}:
        grown = _grown(recorded.get(name, ""), declared.get(name, ""))
        if grown is None:
            return None
        merged[name] = grown
    return merged


def _forms_to_store(schema: EntitySchema, record: Item) -> Forms:
    """The keys that items may have once this program writes, too.

    An index that is new is left out until its items are rewritten.
    """
    recorded = _stored_forms(schema, record)
    if recorded is None:
        return forms(schema)
    kept: dict[str, Form | list[Form]] = {}
    for name, form in _declared_forms(schema).items():
        stored = _listed(recorded.get(name))
        if stored:
            joined = _joined(stored, form)
            kept[name] = joined if len(joined) > 1 else joined[0]
    return kept


def _joined(stored: list[Form], declared: Form) -> list[Form]:
    """The stored forms and the declared one, which may be one of them with more values of an enum."""
    for place, form in enumerate(stored):
        merged = _merged(form, declared)
        if merged is not None:
            return [*stored[:place], merged, *stored[place + 1 :]]
    return [*stored, declared]
