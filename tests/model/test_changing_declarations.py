"""Two programs on one table, whose declarations change at random: every read is right, or raises with what to do.

The first program and the second write, update and delete. The second one's declaration changes, one step at a
time (`declarations.CHANGES`). A dict knows the entities. Each answer must be what the dict says, or an error
that names what to run or to declare. After `store.rewrite` the second program raises nothing, `store.verify` finds
nothing, and the items are those of a fresh table.

A store compares the keys when it first meets an entity, so each program starts anew with each step.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.effort import LONG
from tests.model import declarations
from tests.model.declarations import NOTE, TICKET, Draw, Entity, Field, Key, changed

import isotone
from isotone import Store
from isotone.errors import (
    InvalidItem,
    KeysChanged,
    NotFound,
    NotUnique,
    OutOfRange,
    Unanswerable,
    UsageError,
)

Identity: TypeAlias = tuple[str, ...]
"""The values of the primary key, as texts in lower case, which no change changes."""
Values: TypeAlias = dict[str, Any]

KINDS = {"ticket": TICKET, "note": NOTE}
CHANGED = (KeysChanged, InvalidItem, Unanswerable)
ADVICE = re.compile(
    r"store\.(rewrite|widen|update)|accept_keys|declare|was=|tag=|@upgrade|deploy|use .* program"
)


@dataclass
class Row:
    """What is stored of an entity: the values by attribute, as a version of its class wrote them."""

    version: int
    values: Values


class Program:
    """A program: the classes that it declares, and its answers."""

    def __init__(self, database: isotone.Database, declared: Mapping[str, Entity]) -> None:
        self.database = database
        self.declared = dict(declared)
        self.table = declarations.table()
        self.classes = {kind: each.declare(self.table) for kind, each in declared.items()}

    def start(self) -> Store:
        return isotone.connect(self.database, cursor_secret=b"sixteen bytes or more")


@dataclass
class Expected:
    """What a read should find, and what the program cannot read, for which a scan must raise."""

    certain: list[Values] = field(default_factory=list)
    unreadable: list[Identity] = field(default_factory=list)


class ChangingDeclarations(RuleBasedStateMachine):
    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.database = isotone.open()
        self.rows: dict[str, dict[Identity, Row]] = {kind: {} for kind in KINDS}
        declared = KINDS
        for _ in range(data.draw(st.integers(0, 3))):
            declared = self._changed(data.draw, declared)
        declared = {kind: declarations.leave_out_was(data.draw, e) for kind, e in declared.items()}  # type: ignore[misc]
        self.old = self.new = Program(self.database, declared)
        self.turns = itertools.cycle(itertools.product((True, False), KINDS))
        self.numbers = itertools.count()
        self.is_settled = True
        """Whether nothing has a reason to raise."""
        self.old.start().create_tables(self.old.table)
        for kind in KINDS:
            for _ in range(3):
                self._put(data.draw, False, kind)

    def teardown(self) -> None:
        try:
            if hasattr(self, "numbers"):
                self.check_all(may_raise=not self.is_settled)
        finally:
            if hasattr(self, "database"):
                self.database.close()

    def _changed(self, draw: Draw, declared: Mapping[str, Entity]) -> dict[str, Entity]:
        """The declarations with one change; without one if it is refused where it is declared."""
        kind = draw(st.sampled_from(sorted(KINDS)))
        entity = changed(draw, declared[kind])
        result = {**declared, kind: entity}
        try:
            Program(self.database, result)
        except UsageError:
            return dict(declared)
        return result

    # What happens

    @rule(data=st.data())
    def change(self, data: st.DataObject) -> None:
        """The second program is deployed with another declaration."""
        if any(self._is_lost(kind) for kind in KINDS):
            return
        declared = self.new.declared
        for _ in range(data.draw(st.integers(1, 2))):
            declared = self._changed(data.draw, declared)
        program = Program(self.database, declared)
        for kind, entity in declared.items():
            before = self.new.declared[kind]
            renamed = replace(self.old.declared[kind], name=entity.name, tag=None)
            if self._is_lost(kind, program) and not (self.is_settled and entity == renamed):
                return  # a new name and another key make another entity
            if entity != before:
                note(f"before: {before}\nafter: {entity}")
        self.is_settled = self.is_settled and declared == self.new.declared
        self.new = program

    @rule()
    def catch_up(self) -> None:
        """The first program is deployed with the declaration of the second."""
        if not any(self._is_lost(kind) for kind in KINDS):
            self.old = self.new

    @rule(data=st.data(), is_new=st.booleans(), kind=st.sampled_from(sorted(KINDS)))
    def put(self, data: st.DataObject, is_new: bool, kind: str) -> None:
        for _ in range(data.draw(st.integers(1, 2))):
            self._put(data.draw, is_new, kind)

    def _put(self, draw: Draw, is_new: bool, kind: str) -> None:
        program = self._program(is_new)
        entity = program.declared[kind]
        key = self._some_key(draw, entity)
        identity = identify(key.values())
        values = {
            each.name: draw(st.sampled_from(values_of(each, identity)))
            for each in entity.fields
            if each.name not in key
        } | key
        if self._write(is_new, lambda s: s.put(program.classes[kind](**values))):
            stored = {f.stored: values[f.name] for f in entity.fields if values[f.name] is not None}
            self.rows[kind][identity] = Row(entity.version, stored)

    @rule(data=st.data(), is_new=st.booleans(), kind=st.sampled_from(sorted(KINDS)))
    def update(self, data: st.DataObject, is_new: bool, kind: str) -> None:
        program = self._program(is_new)
        entity, cls = program.declared[kind], program.classes[kind]
        key = self._some_key(data.draw, entity)
        identity = identify(key.values())
        field = data.draw(st.sampled_from([each for each in entity.fields if each.name not in key]))
        value = data.draw(st.sampled_from(values_of(field, identity)))
        attr = getattr(cls, field.name)
        change = attr.remove() if value is None else attr.set(value)
        row = self.rows[kind].get(identity)
        try:
            written = self._write(is_new, lambda s: s.update(cls, change, **key))
        except NotFound:
            assert row is None, f"{key} is not found"
            return
        if written:
            assert row is not None, f"{key} is found"
            assert row.version <= entity.version
            values = entity.upgraded(row.values, row.version)
            values[field.stored] = value
            present = {name: each for name, each in values.items() if each is not None}
            self.rows[kind][identity] = Row(entity.version, present)

    @rule(data=st.data(), is_new=st.booleans(), kind=st.sampled_from(sorted(KINDS)))
    def delete(self, data: st.DataObject, is_new: bool, kind: str) -> None:
        program = self._program(is_new)
        entity = program.declared[kind]
        key = self._some_key(data.draw, entity)
        row = self.rows[kind].get(identify(key.values()))
        if self._write(is_new, lambda s: s.delete(program.classes[kind], **key)):
            assert row is None or row.version <= entity.version
            self.rows[kind].pop(identify(key.values()), None)

    @rule()
    def accept(self) -> None:
        """Keys are accepted where there are no items."""
        for kind, rows in self.rows.items():
            if not rows and not self._is_lost(kind):
                self.new.start().accept_keys(self.new.classes[kind])

    @rule()
    def verify(self) -> None:
        self.new.start().verify(self.new.table)
        self.old.start().verify(self.old.table)

    @rule()
    def rewrite(self) -> None:
        """While the first program is stopped, the second rewrites, and all is as in a fresh table."""
        lost = [kind for kind in KINDS if self._is_lost(kind)]
        if lost:
            with pytest.raises(KeysChanged):
                self.new.start().rewrite(self.new.classes[lost[0]])
            return
        store = self.new.start()
        for cls in self.new.classes.values():
            assert store.rewrite(cls).is_complete
        self._upgrade_rows()
        for kind in KINDS:
            self.check_reads(self.new, kind, may_raise=False, is_thorough=True)
        found = [
            each
            for each in store.verify(self.new.table).findings
            if each.kind not in ("undeclared_index", "unknown_attribute", "headroom")
        ]
        assert not found, found
        self.check_items()
        self.is_settled = self.old is self.new

    def _upgrade_rows(self) -> None:
        """The rows as the second program writes them, with the defaults."""
        for kind, entity in self.new.declared.items():
            for identity, row in self.rows[kind].items():
                values = viewed(entity, row)
                assert values is not None
                stored = entity.upgraded(row.values, row.version)
                stored |= {
                    each.stored: values[each.name]
                    for each in entity.fields
                    if values[each.name] is not None
                }
                self.rows[kind][identity] = Row(entity.version, stored)

    def _is_lost(self, kind: str, program: Program | None = None) -> bool:
        """Whether the new class has a name that nothing ties to its items; that only raises."""
        before, after = self.old.declared[kind], (program or self.new).declared[kind]
        return before.stored_tag not in (after.stored_tag, after.was_tag)

    def _program(self, is_new: bool) -> Program:
        return self.new if is_new else self.old

    def _some_key(self, draw: Draw, entity: Entity) -> Values:
        """The fields of a primary key."""
        fields = [entity.field(part.field) for part in entity.primary.parts]
        return {each.name: draw(st.sampled_from(each.values())) for each in fields}

    def _write(self, is_new: bool, call: Callable[[Store], object]) -> bool:
        """Whether a write was made; otherwise it was refused as it should be."""
        try:
            call(self._program(is_new).start())
        except (*CHANGED, NotUnique, OutOfRange) as error:
            if self.is_settled:
                raise
            check_advice(error)
            return False
        return True

    # What is read

    @invariant()
    def every_read_is_right_or_raises(self) -> None:
        """Each time another program's reads of another entity."""
        program, kind = next(self.turns)
        self.check_reads(self._program(program), kind, may_raise=not self.is_settled)

    def check_all(self, *, may_raise: bool) -> None:
        for program in {self.old, self.new}:
            for kind in KINDS:
                self.check_reads(program, kind, may_raise=may_raise, is_thorough=True)

    def check_reads(
        self, program: Program, kind: str, *, may_raise: bool, is_thorough: bool = False
    ) -> None:
        """Check reads of an entity: all, or some of the queries in turns."""
        self._check_gets(program, kind, may_raise)
        self._check_scan(program, kind, may_raise)
        self._check_queries(program, kind, may_raise, is_thorough)

    def _answer(self, call: Callable[[], Any], may_raise: bool) -> Any:
        """What a read returns; None if it was refused as it should be."""
        try:
            return call()
        except CHANGED as error:
            if not may_raise:
                raise
            check_advice(error)
            return None

    def _check_gets(self, program: Program, kind: str, may_raise: bool) -> None:
        entity, cls, store = program.declared[kind], program.classes[kind], program.start()
        fields = [entity.field(part.field) for part in entity.primary.parts]
        for identity, row in self.rows[kind].items():
            expected = viewed(entity, row)
            key = {
                each.name: next((v for v in each.values() if text(v) == wanted), None)
                for each, wanted in zip(fields, identity, strict=True)
            }
            if None in key.values():
                continue  # the program's keys have no room for it
            found = self._answer(lambda: [store.get(cls, **key)], may_raise)  # noqa: B023
            if found is not None:
                assert plain(found) == [expected], f"get {key}: {plain(found)}, not {expected}"
            for each in entity.fields:
                if each.is_unique and expected and expected[each.name] is not None:
                    by_value = {each.name: expected[each.name]}
                    found = self._answer(lambda: [store.get(cls, **by_value)], may_raise)  # noqa: B023
                    if found is not None:
                        assert plain(found) == [expected], (
                            f"get {by_value}: {plain(found)}, not {expected}"
                        )

    def _check_scan(self, program: Program, kind: str, may_raise: bool) -> None:
        entity, cls, store = program.declared[kind], program.classes[kind], program.start()
        expected = self._expected(entity, kind, lambda values: True)
        found = self._answer(lambda: plain(store.all(cls.primary.scan())), may_raise)
        if found is not None:
            assert not expected.unreadable, f"scan missed {expected.unreadable}"
            assert counted(found) == counted(expected.certain)

    def _check_queries(
        self, program: Program, kind: str, may_raise: bool, is_thorough: bool
    ) -> None:
        entity, cls, store = program.declared[kind], program.classes[kind], program.start()
        for key in entity.keys:
            choices = list(self._equalities(entity, key))
            if not is_thorough:
                turn = next(self.numbers)
                choices = [choices[(turn * step) % len(choices)] for step in (1, 5)]
            for equal in choices:
                conditions = [getattr(cls, name) == value for name, value in equal.items()]
                query = getattr(cls, key.name).where(*conditions)
                expected = self._expected(
                    entity,
                    kind,
                    lambda values: matches(entity, key, values, equal),  # noqa: B023
                )
                self._check_query(store, query, entity, key, expected, may_raise)
                others = [f for f in entity.fields if f.name not in {p.field for p in key.parts}]
                if others:
                    field = others[next(self.numbers) % len(others)]
                    self._check_filter(store, query, cls, field, expected, may_raise)

    def _equalities(self, entity: Entity, key: Key) -> Iterator[Values]:
        """Values of the partition, and the same with a value of the first field of the sort key."""
        partition: list[Values] = [{}]
        for part in key.partition:
            if not isinstance(part, str):
                some = entity.field(part.field).values()
                partition = [{**each, part.field: v} for each in partition for v in some]
        yield from partition
        sort = [part for part in key.sort if not isinstance(part, str)]
        for each in partition:
            for value in entity.field(sort[0].field).values()[:2]:
                if value is not None:
                    yield {**each, sort[0].field: value}

    def _expected(self, entity: Entity, kind: str, condition: Callable[[Values], bool]) -> Expected:
        expected = Expected()
        for identity, row in self.rows[kind].items():
            values = viewed(entity, row)
            if values is None:
                expected.unreadable.append(identity)
            elif condition(values):
                expected.certain.append(values)
        return expected

    def _check_query(
        self,
        store: Store,
        query: Any,
        entity: Entity,
        key: Key,
        expected: Expected,
        may_raise: bool,
    ) -> None:
        rows = self._answer(lambda: plain(store.all(query)), may_raise)
        if rows is None:
            return
        assert counted(rows) == counted(expected.certain), f"all {query}"
        if is_ordered(entity, key):
            places = [place(entity, key, row) for row in rows]
            assert places == sorted(places), f"order of {query}"
        others: dict[str, tuple[Callable[[], Any], Any]] = {
            "pages": (lambda: plain(list(pages(store, query))), rows),
            "first": (lambda: plain([store.first(query)]), rows[:1] or [None]),
            "limit": (lambda: plain(list(store.iterate(query.limit(2)))), rows[:2]),
            "load": (lambda: plain(list(store.load(query))), rows),
            "count": (lambda: store.count(query), len(rows)),
            "reversed": (lambda: plain(store.all(query.reversed())), rows[::-1]),
        }
        name = [*others][next(self.numbers) % len(others)]
        read, wanted = others[name]
        found = self._answer(read, may_raise)
        assert found is None or found == wanted, f"{name} of {query}"

    def _check_filter(
        self,
        store: Store,
        query: Any,
        cls: Any,
        field: Field,
        expected: Expected,
        may_raise: bool,
    ) -> None:
        value = field.values()[0]
        filtered = query.filter(getattr(cls, field.name) == value)
        wanted = [each for each in expected.certain if each[field.name] == value]
        found = self._answer(lambda: plain(store.all(filtered)), may_raise)
        if found is None:
            return
        assert counted(found) == counted(wanted), f"all {filtered}"

    # The items

    def check_items(self) -> None:
        """The items are, attribute by attribute, those of a fresh table with the same entities."""
        with isotone.open() as fresh:
            program = Program(fresh, self.new.declared)
            store = program.start()
            store.create_tables(program.table)
            for kind, rows in self.rows.items():
                for row in rows.values():
                    values = viewed(program.declared[kind], row)
                    assert values is not None
                    store.put(program.classes[kind](**values))
            wanted, found = items(fresh), items(self.database)
        known = {
            entity.stored_tag: {
                *(each.stored for each in entity.fields),
                *(f"{key.index}{end}" for key in entity.indexes for end in ("PK", "SK")),
            }
            for entity in self.new.declared.values()
        }
        own = {"PK", "SK", "_type", "_v", "_owner"}
        trimmed = [
            {n: v for n, v in item.items() if n in known.get(item["_type"]["S"], ()) or n in own}
            for item in found
        ]
        assert counted(trimmed) == counted(wanted)


def check_advice(error: Exception) -> None:
    if isinstance(error, CHANGED):
        assert ADVICE.search(str(error)), f"does not say what to do: {error}"


def items(database: isotone.Database) -> list[Any]:
    scanned = database.execute("Scan", {"TableName": "desk"})["Items"]
    return [item for item in scanned if item["_type"]["S"] != "_keys"]


def pages(store: Store, query: Any) -> Iterator[Any]:
    cursor = None
    while True:
        page = store.page(query, size=2, cursor=cursor)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def text(value: Any) -> str:
    return str(value).lower()


def identify(values: Any) -> Identity:
    return tuple(map(text, values))


def values_of(field: Field, identity: Identity) -> list[Any]:
    """Values of a field; no two entities share an address."""
    if field.name.startswith("mail"):
        return [None, *(f"{'/'.join(identity)}@{number}" for number in range(2))]
    return field.values()


def viewed(entity: Entity, row: Row) -> Values | None:
    """The fields of an entity, as a program reads them; None if it cannot."""
    if row.version > entity.version:
        return None
    stored = entity.upgraded(row.values, row.version)
    values: Values = {}
    for each in entity.fields:
        value = stored.get(each.stored, each.default)
        if value is declarations.REQUIRED:
            return None
        if value is not None and not each.accepts(value):
            return None
        values[each.name] = value
    return values


def matches(entity: Entity, key: Key, values: Values, equal: Values) -> bool:
    """Whether an entity is in an index, and its parts of the key are equal to these."""
    if key.when is not None and values[key.when[0]] != key.when[1]:
        return False
    if any(values[part.field] is None for part in key.parts):
        return False
    return all(
        (values[name].lower() == value.lower())
        if entity.field(name).case
        else values[name] == value
        for name, value in equal.items()
    )


def is_ordered(entity: Entity, key: Key) -> bool:
    """Whether a key is sorted by its values: not if texts are not escaped, and others follow."""
    texts = [
        entity.field(part.field).type is str and not part.is_in_order
        for part in key.sort
        if not isinstance(part, str)
    ]
    return key.separator == "#" or not any(texts[:-1])


def place(entity: Entity, key: Key, values: Values) -> Any:
    """The place of an entity in the order of a key."""
    return [
        part.order(entity.field(part.field), values[part.field])
        for part in key.sort
        if not isinstance(part, str)
    ]


def plain(found: list[Any]) -> list[Any]:
    return [None if each is None else each.to_dict() for each in found]


def counted(rows: list[Any]) -> Counter[str]:
    return Counter(repr(sorted(row.items())) for row in rows)


# The quick form is always the same one; the long form searches.
ChangingDeclarations.TestCase.settings = settings(
    max_examples=300 if LONG else 12,
    stateful_step_count=30 if LONG else 15,
    derandomize=not LONG,
)
TestChangingDeclarations = ChangingDeclarations.TestCase
