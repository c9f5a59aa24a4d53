"""A declaration that no longer fits the stored keys is refused before it misses an item."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, desc, field, in_order, upgrade
from isotone.codec import readable
from isotone.errors import KeysChanged, OutOfRange

Program = Callable[..., Any]


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        yield database


def started(database: isotone.Database, entity: Any) -> Store:
    """A program that declares an entity, as it begins."""
    store = isotone.connect(database)
    store.create_tables(entity.__schema__.table)
    return store


def ticket(*urgencies: str, indexed: bool = True) -> Any:
    """A program with tickets that an index sorts by urgency."""
    tickets = Table("tickets", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Ticket(Entity, table=tickets):
        number: Attr[int] = field(max=999, alert=None)
        urgency: Attr[str] = field()
        __annotations__["urgency"] = Attr[Literal[urgencies]]  # type: ignore[valid-type]

        primary = Key("TICKET").sort(number)
        if indexed:
            by_urgency = Index("GSI1", "TICKETS").sort(in_order(urgency), number)

    return Ticket


def test_a_value_inserted_into_an_order_is_refused(database: isotone.Database) -> None:
    before, after = ticket("LOW", "HIGH"), ticket("LOW", "NORMAL", "HIGH")
    started(database, before).put(before(number=1, urgency="HIGH"))
    store = started(database, after)
    with pytest.raises(KeysChanged, match=r"Choice digits=1: LOW HIGH .* is declared as .*NORMAL"):
        store.all(after.by_urgency.where(after.urgency == "HIGH"))
    assert store.get(after, number=1).urgency == "HIGH"  # the primary key is the same
    assert "index 'GSI1'" in str(store.differences(after.__schema__.table)[0])


def test_values_at_the_end_of_an_order_need_no_rewriting(database: isotone.Database) -> None:
    before, after = ticket("LOW", "HIGH"), ticket("LOW", "HIGH", "CRITICAL")
    old, new = started(database, before), started(database, after)
    old.put(before(number=1, urgency="HIGH"))
    new.put(after(number=2, urgency="CRITICAL"))
    high = new.all(after.by_urgency.where(after.urgency == "HIGH"))
    assert [each.number for each in high] == [1]
    everything = new.all(after.by_urgency.where())
    assert [each.number for each in everything] == [1, 2]
    # The old program takes nothing away from the record, also when it starts again.
    started(database, before).put(before(number=3, urgency="LOW"))
    assert [each.number for each in started(database, after).all(after.by_urgency.where())] == [
        3,
        1,
        2,
    ]


def test_an_eleventh_value_changes_all_ordinals(database: isotone.Database) -> None:
    ten = [f"U{number}" for number in range(10)]
    before, after = ticket(*ten), ticket(*ten, "U10")
    started(database, before).put(before(number=1, urgency="U3"))
    with pytest.raises(KeysChanged, match="digits=2"):
        started(database, after).all(after.by_urgency.where(after.urgency == "U3"))


def test_a_new_index_is_not_read_before_it_is_filled(database: isotone.Database) -> None:
    before, after = ticket("LOW", indexed=False), ticket("LOW")
    started(database, before).put(before(number=1, urgency="LOW"))
    store = started(database, after)
    store.put(after(number=2, urgency="LOW"))
    assert len(store.all(after.primary.where())) == 2
    for _ in range(2):
        with pytest.raises(KeysChanged, match="index 'GSI1' is new"):
            store.all(after.by_urgency.where())
    store.accept_keys(after)
    assert [each.number for each in store.all(after.by_urgency.where())] == [2]
    assert store.differences(after.__schema__.table) == []


def test_an_index_that_was_left_out_for_a_while_is_new(database: isotone.Database) -> None:
    with_index, without = ticket("LOW"), ticket("LOW", indexed=False)
    started(database, with_index).put(with_index(number=1, urgency="LOW"))
    started(database, without).put(without(number=2, urgency="LOW"))
    with pytest.raises(KeysChanged, match="index 'GSI1' is new"):
        started(database, with_index).first(with_index.by_urgency.where())


def test_the_condition_of_a_sparse_index_is_a_part_of_its_key(database: isotone.Database) -> None:
    def program(wanted: str) -> Any:
        tasks = Table("tasks", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

        class Task(Entity, table=tasks):
            number: Attr[int] = field(max=999)
            state: Attr[str] = field()
            primary = Key("TASK").sort(number)
            by_state = Index("GSI1", "TASKS", when=state == wanted).sort(number)

        return Task

    before, after = program("OPEN"), program("DONE")
    started(database, before).put(before(number=1, state="DONE"))
    with pytest.raises(KeysChanged, match="its when= of index 'GSI1'"):
        started(database, after).all(after.by_state.where())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (field(max=99), field(max=999)),
        (field(max=99), field(max=99, min=-99)),
        (field(max=99, name="a"), field(max=99, name="b")),
    ],
)
def test_another_number_is_another_key(database: isotone.Database, before: Any, after: Any) -> None:
    def program(number: Any) -> Any:
        class Row(Entity, table=Table("rows")):
            at: Attr[int] = number
            note: Attr[str] = field(default="")
            primary = Key("ROW").sort(at)

        return Row

    old, new = program(before), program(after)
    started(database, old).put(old(at=7))
    store = started(database, new)
    for call in (
        lambda: store.get(new, at=7),
        lambda: store.all(new.primary.where()),
        lambda: store.put(new(at=8)),
        lambda: store.update(new, new.note.set("x"), at=7),
        lambda: store.put_many([new(at=8)]),
        lambda: store.get_many(new, [{"at": 7}]),
        lambda: list(store.iterate(new.primary.where())),
        lambda: store.page(new.primary.where(), size=5),
        lambda: store.count(new.primary.where()),
        lambda: store.load(new.primary.where()),
        lambda: list(store.scan(new.primary.scan())),
        lambda: store.get_together((new, {"at": 7})),
    ):
        with pytest.raises(KeysChanged, match="of the primary key was"):
            call()
    with pytest.raises(KeysChanged), store.transaction() as tx:
        tx.put(new(at=8))
    assert isotone.connect(database, check_keys=False).get(new, at=8) is None


PARTS: list[tuple[Any, Any, Any]] = [
    (str, lambda each: each, lambda each: desc(each)),
    (datetime, lambda each: each, lambda each: desc(each)),
    (datetime, lambda each: each, lambda each: isotone.since_epoch(each)),
    (datetime, lambda each: each, lambda each: isotone.written(each, "%Y-%m-%d")),
    (int, lambda each: each, lambda each: isotone.raw(each)),
]


@pytest.mark.parametrize(("kind", "before", "after"), PARTS)
def test_another_form_is_another_key(
    database: isotone.Database, kind: Any, before: Any, after: Any
) -> None:
    def program(part: Any) -> Any:
        class Row(Entity, table=Table("rows")):
            value: Attr[Any] = field(max=99) if kind is int else field()
            __annotations__["value"] = Attr[kind]
            primary = Key("ROW").sort("AT", part(value))

        return Row

    old, new = program(before), program(after)
    value = {str: "x", int: 7, datetime: datetime(2026, 1, 1, tzinfo=UTC)}[kind]
    started(database, old).put(old(value=value))
    with pytest.raises(KeysChanged):
        started(database, new).all(new.primary.where())


def test_an_upgrade_that_renames_an_attribute_of_the_key_is_accepted_without_a_rewrite(
    database: isotone.Database,
) -> None:
    class Old(Entity, table=Table("tickets"), tag="Ticket", version=1):
        cust: Attr[str] = field()
        number: Attr[int] = field(max=9, alert=None)

        primary = Key("CUSTOMER", cust).sort("TICKET", number)

    class New(Entity, table=Table("tickets"), tag="Ticket", version=2):
        customer: Attr[str] = field()
        number: Attr[int] = field(max=9, alert=None)

        primary = Key("CUSTOMER", customer).sort("TICKET", number)

        @staticmethod
        @upgrade(1)
        def rename(item: dict[str, Any]) -> dict[str, Any]:
            item["customer"] = item.pop("cust")
            return item

    started(database, Old).put(Old(cust="ann", number=1))
    store = started(database, New)
    with pytest.raises(
        KeysChanged, match=r"\{cust: Text\}, .*\{customer: Text\} \(the same keys, if an @upgrade"
    ):
        store.get(New, customer="ann", number=1)
    store.accept_keys(New)
    old = New(customer="ann", number=1)
    assert store.get(New, customer="ann", number=1) == old
    assert store.all(New.primary.where(New.customer == "ann")) == [old]
    assert store.rewrite(New).kinds == {"older_version": 1}


def test_keys_that_differ_otherwise_are_not_called_the_same(database: isotone.Database) -> None:
    class Old(Entity, table=Table("tickets"), tag="Ticket"):
        cust: Attr[str] = field()

        primary = Key("CUSTOMER", cust).sort("TICKET")

    class New(Entity, table=Table("tickets"), tag="Ticket"):
        customer: Attr[str] = field(case="lower")

        primary = Key("CUSTOMER", customer).sort("TICKET")

    started(database, Old).put(Old(cust="ann"))
    with pytest.raises(KeysChanged, match=r"case=lower\}\. Reads"):
        started(database, New).get(New, customer="ann")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"case": None}, {"case": "lower"}),
        ({"separator": "#"}, {"separator": "|"}),
        ({"literal": "ROW"}, {"literal": "LINE"}),
    ],
)
def test_case_separators_and_literals_are_compared(
    database: isotone.Database, before: dict[str, Any], after: dict[str, Any]
) -> None:
    def program(case: Any = None, separator: str = "#", literal: str = "ROW") -> Any:
        class Row(Entity, table=Table("rows")):
            name: Attr[str] = field(case=case)
            primary = Key("ROWS").sort(literal, name, separator=separator)

        return Row

    old, new = program(**before), program(**after)
    started(database, old).put(old(name="Ann"))
    with pytest.raises(KeysChanged):
        started(database, new).get(new, name="Ann")


def test_a_new_name_of_a_class_is_a_new_entity(database: isotone.Database) -> None:
    def program(name: str) -> Any:
        rows = Table("rows")
        members = {
            "__annotations__": {"at": Attr[int]},
            "at": (at := field(max=99)),
            "primary": Key("ROW").sort(at),
        }
        return type(name, (Entity,), members, table=rows)

    order, purchase = program("Order"), program("Purchase")
    started(database, order).put(order(at=1))
    store = started(database, purchase)
    with pytest.raises(KeysChanged, match=r"declare class Purchase\(…, tag='Order'\)"):
        store.get(purchase, at=1)
    with pytest.raises(KeysChanged, match="was_tag='Order'"):  # it would find no item
        store.rewrite(purchase)
    store.accept_keys(purchase)
    assert store.get(purchase, at=1) is None


def test_a_larger_maximum_of_the_same_width_changes_nothing(database: isotone.Database) -> None:
    def program(maximum: int) -> Any:
        class Row(Entity, table=Table("rows")):
            at: Attr[int] = field(max=maximum)
            primary = Key("ROW").sort(desc(at))

        return Row

    old, new = program(50), program(99)
    started(database, old).put(old(at=7))
    assert started(database, new).get(new, at=7).at == 7


def test_widening_ends_with_the_new_keys_on_record(database: isotone.Database) -> None:
    def program(maximum: int, was: int | None = None) -> Any:
        class Row(Entity, table=Table("rows")):
            at: Attr[int] = field(max=maximum, was=was, alert=None)
            primary = Key("ROW").sort(at)

        return Row

    narrow, both, wide = program(99), program(9999, 99), program(9999)
    started(database, narrow).put(narrow(at=7))
    with pytest.raises(KeysChanged):
        started(database, wide).get(wide, at=7)
    store = started(database, both)
    assert store.get(both, at=7).at == 7
    store.put(both(at=8))
    with pytest.raises(KeysChanged):  # not all are rewritten
        started(database, wide).get(wide, at=7)
    store.widen(both)
    assert started(database, wide).get(wide, at=7).at == 7
    with pytest.raises(KeysChanged):  # it would not find them any more
        started(database, narrow).get(narrow, at=7)


@given(
    st.permutations(["LOW", "NORMAL", "HIGH"]),
    st.permutations(["LOW", "NORMAL", "HIGH", "CRITICAL"]),
    st.lists(st.sampled_from(["LOW", "NORMAL", "HIGH"]), max_size=6),
)
def test_rewritten_items_come_in_the_new_order(
    old_order: list[str], new_order: list[str], urgencies: list[str]
) -> None:
    before, after = ticket(*old_order), ticket(*new_order)
    with isotone.open() as database:
        old = started(database, before)
        for number, urgency in enumerate(urgencies):
            old.put(before(number=number, urgency=urgency))
        store = started(database, after)
        done = store.rewrite(after)
        assert done.is_complete
        assert done.seen == len(urgencies)
        expected = sorted(
            (new_order.index(urgency), number) for number, urgency in enumerate(urgencies)
        )
        tickets = store.all(after.by_urgency.where())
        assert [(new_order.index(each.urgency), each.number) for each in tickets] == expected
        assert store.differences(after.__schema__.table) == []
        assert store.rewrite(after).rewritten == 0


def test_a_new_index_is_filled_while_both_programs_write(database: isotone.Database) -> None:
    before, after = ticket("LOW", indexed=False), ticket("LOW")
    old = started(database, before)
    for number in range(450):
        old.put(before(number=number, urgency="LOW"))
    new = started(database, after)

    def meanwhile(progress: isotone.Rewritten) -> None:
        old.update(before, before.urgency.set("LOW"), number=progress.seen % 450)
        new.put(after(number=500 + progress.seen, urgency="LOW"))

    done = new.rewrite(after, progress=meanwhile)
    assert done.rewritten >= 450
    numbers = [each.number for each in new.all(after.by_urgency.where())]
    assert numbers == sorted(each.number for each in new.all(after.primary.where()))


def test_another_primary_key_is_rewritten(database: isotone.Database) -> None:
    def program(separator: str) -> Any:
        class Row(Entity, table=Table("rows")):
            at: Attr[int] = field(max=99)
            mail: Attr[str | None] = field(default=None, unique=True)
            primary = Key("ROW", separator=separator).sort("AT", at, separator=separator)

        return Row

    old, new = program("#"), program("|")
    first = started(database, old)
    for number in range(30):
        first.put(old(at=number, mail=f"{number}@example.com"))
    store = started(database, new)
    assert store.rewrite(new).rewritten == 30
    assert [each.at for each in store.all(new.primary.where())] == list(range(30))
    with pytest.raises(isotone.errors.NotUnique):
        store.put(new(at=40, mail="7@example.com"))
    store.delete(new, at=7)
    store.put(new(at=40, mail="7@example.com"))


def test_an_index_of_which_programs_write_two_forms_is_not_read(
    database: isotone.Database,
) -> None:
    before, after = ticket("LOW", "HIGH"), ticket("LOW", "NORMAL", "HIGH")
    started(database, before).put(before(number=1, urgency="HIGH"))
    started(database, after).put(after(number=2, urgency="HIGH"))
    for program in (before, after):
        with pytest.raises(KeysChanged, match="of index 'GSI1' of some items is"):
            started(database, program).all(program.by_urgency.where(program.urgency == "HIGH"))
    started(database, after).rewrite(after)
    high = after.by_urgency.where(after.urgency == "HIGH")
    assert [each.number for each in started(database, after).all(high)] == [1, 2]

    started(database, before).put(before(number=3, urgency="HIGH"))  # by the old program again
    with pytest.raises(KeysChanged):
        started(database, after).all(high)
    started(database, after).rewrite(after)
    assert [each.number for each in started(database, after).all(high)] == [1, 2, 3]


@pytest.mark.parametrize("change", ["width", "key", "tag"])
def test_a_program_without_was_does_not_miss_what_one_with_was_has_written(
    database: isotone.Database, change: str
) -> None:
    def program(*, is_new: bool) -> Any:
        def chosen(before: Any, after: Any, of: str) -> Any:
            return after if is_new and change == of else before

        class Row(
            Entity, table=Table("rows"), **chosen({}, {"tag": "Line", "was_tag": "Row"}, "tag")
        ):
            at: Attr[int] = field(
                alert=None, **chosen({"max": 99}, {"max": 999, "was": 99}, "width")
            )
            narrow = Key("ROW").sort("AT", at)
            primary = chosen(narrow, Key("ROW").sort("ON", at).was(narrow), "key")
            del narrow

        return Row

    before, after = program(is_new=False), program(is_new=True)
    started(database, before).put(before(at=7))
    store = started(database, after)
    assert store.get(after, at=7).at == 7
    assert started(database, before).get(before, at=7).at == 7  # the new program has not written
    store.put(after(at=8))
    for call in (
        lambda store: store.get(before, at=8),
        lambda store: store.all(before.primary.where()),
        lambda store: store.put(before(at=7)),
    ):
        with pytest.raises(KeysChanged):
            call(started(database, before))
    assert [each.at for each in started(database, after).all(after.primary.where())] == [7, 8]


def test_a_field_that_becomes_unique_finds_nothing_before_a_rewrite(
    database: isotone.Database,
) -> None:
    def program(*, is_unique: bool) -> Any:
        class User(Entity, table=Table("users")):
            number: Attr[int] = field(max=9, alert=None)
            mail: Attr[str] = field(unique=is_unique)
            primary = Key("USER").sort(number)

        return User

    before, after = program(is_unique=False), program(is_unique=True)
    started(database, before).put(before(number=1, mail="ann"))
    store = started(database, after)
    store.put(after(number=2, mail="bob"))
    for call in (
        lambda store: store.get(after, mail="ann"),
        lambda store: store.exists(after, mail="bob"),
    ):
        with pytest.raises(KeysChanged, match="'mail' is declared unique, and items written"):
            call(store)
    assert "'mail' is declared unique" in str(store.differences(after.__schema__.table)[0])
    store.rewrite(after)
    assert store.get(after, mail="ann") == after(number=1, mail="ann")

    started(database, before).put(before(number=3, mail="cy"))  # by the old program again
    with pytest.raises(KeysChanged):
        started(database, after).get(after, mail="cy")


def test_the_record_is_for_people(database: isotone.Database) -> None:
    entity = ticket("LOW", "HIGH")
    started(database, entity)
    item = database.client().get_item(
        TableName="tickets", Key={"PK": {"S": "_keys"}, "SK": {"S": "_keys"}}
    )["Item"]
    assert item["keys of Ticket"] == {
        "M": {
            "primary": {"M": {"PK": {"S": "TICKET"}, "SK": {"S": "{number: Natural width=3}"}}},
            "GSI1": {
                "M": {
                    "GSI1PK": {"S": "TICKETS"},
                    "GSI1SK": {
                        "S": "{urgency: Choice digits=1: LOW HIGH }#{number: Natural width=3}"
                    },
                }
            },
        }
    }


def test_a_store_reads_the_record_of_a_table_once(database: isotone.Database) -> None:
    entity = ticket("LOW")
    started(database, entity).put(entity(number=1, urgency="LOW"))
    seen: list[str] = []

    def observer(operation: str, request: Any) -> Callable[[object], None]:
        seen.append(operation)
        return lambda outcome: None

    store = isotone.connect(database, observe=[observer])
    for _ in range(3):
        store.get(entity, number=1)
        store.put(entity(number=1, urgency="LOW"))
    assert seen == ["GetItem", *["GetItem", "PutItem"] * 3]


def test_an_awaited_store_compares_too(database: isotone.Database) -> None:
    before, after = ticket("LOW", "HIGH"), ticket("HIGH", "LOW")
    started(database, before).put(before(number=1, urgency="HIGH"))

    async def read() -> None:
        async with isotone.aconnect(database) as store:
            await store.all(after.by_urgency.where())

    with pytest.raises(KeysChanged):
        asyncio.run(read())


numbers = st.integers(1, 10**6)
codecs = st.one_of(
    st.builds(readable.Natural, numbers),
    st.builds(lambda low, high: readable.Integer(-low, high), numbers, numbers),
    st.builds(readable.FixedPoint, numbers, st.integers(0, 3), st.booleans()),
)


@given(codecs, codecs, st.booleans(), st.integers(-(10**6), 10**6))
def test_equal_forms_write_equal_texts(one: Any, other: Any, down: bool, number: int) -> None:
    if down:
        one, other = one.descending(), other.descending()
    if one.form != other.form:
        return
    value: Any = Decimal(number) if isinstance(one, readable.FixedPoint) else number
    written = set()
    for codec in (one, other):
        try:
            written.add(codec.encode(value))
        except OutOfRange:
            continue
    assert len(written) <= 1


@given(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=5, unique=True))
def test_the_values_of_an_enum_are_distinguished_in_its_form(values: list[str]) -> None:
    forms = [
        readable.Template(["A", readable.Choice(tuple(some), 1)]).form(["x"])
        for some in itertools.permutations(values)
    ]
    assert len(set(forms)) == len(forms)
