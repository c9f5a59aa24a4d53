"""`KeysChanged`, `accept_keys`: compares the declared keys with those recorded when the items of a table were written.

    PK       SK       _type    keys of Order                                          keys of Customer
    _keys    _keys    _keys    {"primary": {"PK": "CUSTOMER#{customer: Text}", …}}    …

The class statement defines how keys are composed. Another class statement (a wider number, another order of an enum, a
new index) does not find what the previous one wrote. A store therefore reads this record when it first uses a key of
the table. It raises `KeysChanged` if the items have another form of the key than the declared one: always for the
primary key, and for an index key if that index is read. A form records a number's width, not its maximum, so a larger
maximum with as many digits is the same form. `create_tables` and an entity's first write write the record; `widen` and
`rewrite` update it.

If a program writes another form of a key than the recorded one (a changed index, or a key with `was`), both forms are
recorded, so that no program misses what another one writes. The same holds for a tag with `was_tag`.

Some changes need no rewrite and are recorded at once: an index that is no longer declared, and values added at the end
of an enum `in_order`, as long as their ordinals have the same number of digits.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

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
_NOT_STORED: Final = ("alert", "description", "hidden", "read_only")  # options that change no item
_PREFIX: Final = "keys of "
_PLACES: Final = {"S": MARK, "N": "0", "B": "X2tleXM="}  # the last is _keys in base64

_RENAMED: Final = "renamed to"
"""The prefix in the record of a previous tag, before the tag that items have now."""

_BEING_RENAMED: Final = "being renamed to"
"""The same, while some items may still have the previous tag."""

_WHATEVER: Final = object()

Form = Mapping[str, str]
"""For each attribute of a key, how its value is composed."""
Forms = Mapping[str, Form | list[Form]]
"""The form of each key of an entity (`primary`, or an index name); a list if programs write several."""


class KeyRecords:
    """The key records of the tables that a store has used."""

    def __init__(self, *, is_checked: bool = True) -> None:
        self._is_checked = is_checked
        self._records: dict[Table, Item] = {}
        self.checked: set[object] = set()
        """Keys, and tuples of keys of a read, that were compared with the record and agree with it."""
        self.recorded: set[EntitySchema] = set()
        """Entities whose keys are recorded; their next writes need not check the record."""

    def check(self, schemas: tuple[EntitySchema, ...], keys: tuple[BoundKey, ...]) -> Steps[None]:
        """Raise `KeysChanged` if a table's items have other keys. Reads the record once for each new table."""
        for schema, key in zip(schemas, keys, strict=True):
            for each in (schema.primary, key):
                if each not in self.checked:
                    yield from self._check(schema, each)
                    self.checked.add(each)
        self.checked.add(keys)

    def record(self, schema: EntitySchema) -> Steps[None]:
        """Check an entity's primary key, and record all its keys; one write if they are new."""
        yield from self.check((schema,), (schema.primary,))
        if schema.base is not None and schema.base not in self.recorded:
            yield from self.record(schema.base)  # so that programs without this kind know its keys
        if self._is_checked and _can_be_recorded(schema.table):
            before = self._records[schema.table].get(_attribute(schema))
            declared = _forms_to_store(schema, self._records[schema.table])
            if before != to_wire(declared):
                # Refused if another program recorded keys meanwhile; the next comparison sees them.
                with contextlib.suppress(ConditionalCheckFailedException):
                    yield from write_when_free(
                        Call("UpdateItem", _update(schema, declared, before))
                    )
                self._records[schema.table] = yield from _read(schema.table)
                yield from self._check(schema, schema.primary)
        self.recorded.add(schema)

    def accept(self, schema: EntitySchema) -> Steps[tuple[Item, Item]]:
        """Record an entity's keys as declared; returns the record before and after."""
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
        """Forget all comparisons, so that all keys are compared again."""
        self._records.clear()
        self.checked.clear()
        self.recorded.clear()

    def record_all(self, table: Table) -> Steps[None]:
        """Record the keys of the entities of a table that was just created.

        An entity that several classes declare is skipped; its first write records it.
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
        """Forget the record of a deleted table."""
        self._records.pop(
            table, None
        )  # all keys are compared again, because one read may use several tables
        for schema in table.entities.values():
            self.recorded.discard(schema)
        self.checked.clear()

    def check_unique(self, schema: EntitySchema, field: Attr[Any]) -> Steps[None]:
        """Raise `KeysChanged` if other programs have written items without markers for a unique field."""
        known = (schema, field.name)
        if known not in self.checked:
            yield from self._compare(
                schema, lambda record: unique_differences(schema, field, record)
            )
            self.checked.add(known)

    def check_tag(self, schema: EntitySchema) -> Steps[None]:
        """Raise `KeysChanged` if items of an entity may have a tag that the entity does not declare."""
        yield from self._compare(
            schema, lambda record: other_tags(schema, record) + earlier_tags(schema, record)
        )

    def _check(self, schema: EntitySchema, key: BoundKey) -> Steps[None]:
        if key in schema.keys.values():  # otherwise it is a previous key, which `was` declares
            yield from self._compare(schema, lambda record: key_differences(schema, key, record))

    def _compare(
        self, schema: EntitySchema, differences: Callable[[Item], list[str]]
    ) -> Steps[None]:
        table = schema.table
        if not self._is_checked or not _can_be_recorded(table):
            return
        if table not in self._records or differences(self._records[table]):
            self._records[table] = yield from _read(table)  # read again, as it may have changed
            found = differences(self._records[table])
            if found:
                raise KeysChanged(schema.tag, table.name, found)


def differences(table: Table) -> Steps[list[str]]:
    """How the keys that a table's entities declare differ from the recorded ones."""
    changes = yield from changes_of_keys(table)
    return [
        f"has items of {tag} with other keys: {change}"
        for tag, found in changes.items()
        for change in found
    ]


def changes_of_keys(table: Table) -> Steps[dict[str, list[str]]]:
    """For each entity of a table by its tag, how its declared keys differ from the recorded ones."""
    if not _can_be_recorded(table):
        return {tag: [] for tag in table.entities}
    record = yield from _read(table)
    return {tag: _changes_of(schema, record) for tag, schema in table.entities.items()}


def _changes_of(schema: EntitySchema, record: Item) -> list[str]:
    of_keys = (key_differences(schema, key, record) for key in schema.keys.values())
    of_unique = (unique_differences(schema, field, record) for field in schema.unique)
    return [each for found in (*of_keys, *of_unique) for each in found]


# The item


def is_record(table: Table, key: Item) -> bool:
    """Whether a primary key is that of the record."""
    return _can_be_recorded(table) and key == _key(table)


def _can_be_recorded(table: Table) -> bool:
    """Whether the record fits into the table: its partition key must be a text."""
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
    """The request that records keys if those in `before` are still recorded, and renames a previous tag.

    `is_rewritten`: no item has a previous tag any longer.
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
    """The recorded entities that this program does not declare."""
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
    """The form of each key of an entity, as texts that people can read; equal texts mean equal keys.

    >>> forms(Order.__schema__)["primary"]
    {'PK': 'CUSTOMER#{customer_id: Text}', 'SK': 'ORDER#{number: Natural width=5}'}
    """
    return {**_declared_forms(schema)}


def model_digest(schemas: Iterable[EntitySchema]) -> str:
    """A digest of the keys and fields of entities, for work that is continued: another model needs it from the beginning.

    Options of fields count as far as they are plain values; the code of functions is not compared.
    """
    models = [
        [
            schema.tag,
            schema.version,
            forms(schema),
            [
                [each.attribute, each.wire.code, *_plain_options(each)]
                for each in schema.fields.values()
            ],
        ]
        for schema in sorted(schemas, key=lambda each: each.tag)
    ]
    return blake2b(msgspec.json.encode(models), digest_size=8).hexdigest()


def _plain_options(field: Attr[Any]) -> Iterator[str]:
    for each in dataclasses.fields(field.options):
        value = getattr(field.options, each.name)
        if each.name not in _NOT_STORED and isinstance(value, str | int | float | Decimal):
            yield f"{each.name}={value}"


def _declared_forms(schema: EntitySchema) -> Mapping[str, Form]:
    keys = {_name(key): _form(key) for key in schema.keys.values()}
    return {**keys, **{_unique_name(field): _unique_form(field) for field in schema.unique}}


def _unique_name(field: Attr[Any]) -> str:
    return f"unique {field.name}"


def _unique_form(field: Attr[Any]) -> Form:
    """How the marker of a unique value is composed from its fields."""
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
    """How a declared key differs from the recorded one; empty if the items have the declared form."""
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
    """The tags that an entity's items may still have although the entity no longer declares them."""
    tags = [name.removeprefix(_PREFIX) for name in record if name.startswith(_PREFIX)]
    return [
        f"some items still have the tag {tag!r}; run store.rewrite by the program that declares was_tag={tag!r}"
        for tag in tags
        if tag not in schema.tags
        and from_wire(record[_PREFIX + tag]).get(_BEING_RENAMED) in schema.tags
    ]


def unique_differences(schema: EntitySchema, field: Attr[Any], record: Item) -> list[str]:
    """How the declared markers of a unique field differ from the recorded ones; empty if they agree."""
    recorded = _stored_forms(schema, record)
    if recorded is None or recorded.keys() & {_RENAMED, _BEING_RENAMED}:
        return []  # the check of the primary key reports this
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
    """The form without attribute names."""
    return {name: _NAMES.sub("{", text) for name, text in form.items()}


def _listed(forms: Form | list[Form] | None) -> list[Form]:
    if forms is None:
        return []
    return forms if isinstance(forms, list) else [forms]


def _title(key: BoundKey) -> str:
    return "the primary key" if key.index is None else f"index {key.index!r}"


# The values of a `Choice` in a form, each followed by a space: `{state: Choice digits=1: PLACED SHIPPED }`.
_VALUES: Final = re.compile(r"(?<=: )(Choice[^:{}]*): ((?:\S+ )+)(?=\})")


# The name of a field in a form: `customer` in `CUSTOMER#{customer: Text}`.
_NAMES: Final = re.compile(r"\{[^:{}]*(?=[:}])")


class _Parsed(NamedTuple):
    """A form in two parts: the ordered values of its enums, and everything else."""

    rest: str
    enums: list[list[str]]


def _parsed(form: str) -> _Parsed:
    enums = [values.split() for _, values in _VALUES.findall(form)]
    return _Parsed(_VALUES.sub(r"\1", form), enums)


def _grown(old: str, new: str) -> str | None:
    """Whichever of two forms adds values at the end of enums; None if they differ in any other way."""
    before, after = _parsed(old), _parsed(new)
    if before.rest != after.rest:
        return None
    if all(map(_continues, after.enums, before.enums)):
        return new
    if all(map(_continues, before.enums, after.enums)):
        return old
    return None


def _continues(values: list[str], fewer: list[str]) -> bool:
    """Whether a list of values begins with all of the fewer values."""
    return values[: len(fewer)] == fewer


def _merged(recorded: Form, declared: Form) -> Form | None:
    """One form with all values of both forms' enums; None if they differ in any other way."""
    merged: dict[str, str] = {}
    for name in {**recorded, **declared}:
        grown = _grown(recorded.get(name, ""), declared.get(name, ""))
        if grown is None:
            return None
        merged[name] = grown
    return merged


def _forms_to_store(schema: EntitySchema, record: Item) -> Forms:
    """The forms that an entity's keys may have once this program also writes.

    A new index is left out until its items are rewritten.
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
    """The stored forms and the declared one, merged if one only adds values to an enum of the other."""
    for place, form in enumerate(stored):
        merged = _merged(form, declared)
        if merged is not None:
            return [*stored[:place], merged, *stored[place + 1 :]]
    return [*stored, declared]
