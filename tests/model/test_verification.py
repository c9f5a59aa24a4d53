"""`store.verify` reports exactly what is wrong in a table: nothing else, nothing twice, and writes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.intercepted_backend import InterceptedBackend, once

import isotone
from isotone import (
    Attr,
    Entity,
    FindingCount,
    Global,
    Index,
    Key,
    Number,
    Store,
    Table,
    Verification,
    computed,
    field,
)
from isotone.errors import IsotoneError, ResourceNotFoundException, UsageError
from isotone.model.finding_kinds import FINDING_KINDS, Kind
from isotone.model.walking import Walk
from isotone.structures import SortedSet
from isotone.values.types import Item

shop = Table(
    "shop",
    indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")},
)


class Customer(Entity, table=shop):
    name: Attr[str] = field()
    mail: Attr[str | None] = field(default=None, unique=True)
    primary = Key("CUSTOMER", name).sort("CUSTOMER")


class Order(Entity, table=shop):
    name: Attr[str] = field()
    number: Attr[int] = field(max=999)
    state: Attr[str | None] = field(default=None)
    total: Attr[Decimal] = field(default=Decimal(0))
    label: Attr[str] = computed(lambda order: f"{order.state}/{order.total}")
    primary = Key("CUSTOMER", name).sort("ORDER", number)
    by_state = Index("GSI1", "STATE", state).sort(number)
    by_name = Index("GSI2", "NAME", name, when=state == "NEW").sort(number)


# Damages: each changes the item, and says what must be found then.

Damage = Callable[[Item], list[tuple[str | None, str, str | None]]]


def of_order(attribute: str, value: Any, kind: str, name: str | None) -> Damage:
    def damage(item: Item) -> list[tuple[str | None, str, str | None]]:
        if value is None:
            del item[attribute]
        else:
            item[attribute] = value
        return [("Order", kind, name)]

    return damage


def not_in_index(item: Item) -> list[tuple[str | None, str, str | None]]:
    is_in = item.pop("GSI1PK", None) is not None
    return [("Order", "index_missing", "by_state")] if is_in else []


def in_index(item: Item) -> list[tuple[str | None, str, str | None]]:
    is_in = "GSI2PK" in item
    item["GSI2PK"] = {"S": "x"}
    return [("Order", "index_stale" if is_in else "index_orphaned", "by_name")]


def of_another(item: Item) -> list[tuple[str | None, str, str | None]]:
    item["_type"] = {"S": "Bill"}
    return [(None, "unrecognized", "Bill")]


def tagged_as_another(item: Item) -> list[tuple[str | None, str, str | None]]:
    item["_type"] = {"S": "Customer"}
    return [("Customer", "wrong_tag", None)]


DAMAGES: list[Damage] = [
    of_order("total", {"S": "1"}, "invalid", "total"),
    of_order("total", None, "implied", "total"),
    of_order("number", {"S": "1"}, "invalid", "number"),
    of_order("label", {"S": "?"}, "computed", "label"),
    of_order("_type", None, "untagged", None),
    tagged_as_another,
    of_order("_v", {"N": "2"}, "newer_version", None),
    of_order("colour", {"S": "red"}, "unknown_attribute", "colour"),
    not_in_index,
    in_index,
    of_another,
]


def items_of(store: Store) -> list[Item]:
    found: list[Item] = store.backend.execute("Scan", {"TableName": "shop"})["Items"]
    return found


def put(store: Store, item: Item) -> None:
    store.backend.execute("PutItem", {"TableName": "shop", "Item": item})


def drop(store: Store, item: Item) -> None:
    key = {name: item[name] for name in ("PK", "SK")}
    store.backend.execute("DeleteItem", {"TableName": "shop", "Key": key})


def damage_marker(store: Store, item: Item, how: str) -> list[tuple[str | None, str, str | None]]:
    """Damage the marker of a customer with a mail address, or take the customer away from it."""
    text = f"_unique#Customer#mail#{item['mail']['S']}"
    marker = next(each for each in items_of(store) if each["PK"]["S"] == text)
    if how == "no marker":
        drop(store, marker)
        return [("Customer", "marker_missing", "mail")]
    if how == "no owner":
        drop(store, item)
        return [("Customer", "marker_orphaned", "mail")]
    if how == "another tag":
        put(store, {**item, "_type": {"S": "Order"}})
        return [("Order", "wrong_tag", None)]
    if how == "no tag known":
        put(store, {**item, "_type": {"S": "Bill"}})
        return [(None, "unrecognized", "Bill")]
    if how == "invalid value":
        put(store, {**item, "mail": {"N": "1"}})
        return [("Customer", "invalid", "mail")]
    if how == "another value":
        put(store, {name: value for name, value in item.items() if name != "mail"})
        return [("Customer", "marker_orphaned", "mail")]
    put(store, {**marker, "_owner": {"M": {"PK": {"S": "x"}, "SK": {"S": "y"}}}})
    return [("Customer", "marker_taken", "mail"), ("Customer", "marker_orphaned", "mail")]


MARKERS = [
    "no marker",
    "no owner",
    "another value",
    "another owner",
    "another tag",
    "no tag known",
    "invalid value",
]


def counted(verification: Verification) -> Counter[Any]:
    return Counter(
        {(each.entity, each.kind, each.name): each.count for each in verification.findings}
    )


def filled(orders: int = 0, customers: int = 0) -> Store:
    store = isotone.connect(":memory:")
    store.create_tables(shop)
    for n in range(customers):
        store.put(Customer(name=f"c{n}", mail=f"{n}@x" if n % 3 else None))
    states = [None, "NEW", "PAID"]
    store.put_many(Order(name=f"c{n % 5}", number=n, state=states[n % 3]) for n in range(orders))
    return store


def read_pages_of(items: int, patch: pytest.MonkeyPatch) -> None:
    patch.setattr("isotone.model.verification.Walk", partial(Walk, items_a_page=items))


class Stopped(Exception):
    """Ends a verification from its progress callback."""


def verified(store: Store, segments: int, stops: list[int]) -> Verification:
    """The verification of a store, stopped after so many pages, kept as text, and continued."""
    seen: Verification | None = None
    for stop in [*stops, None]:
        left = stop

        def progress(verification: Verification) -> None:
            nonlocal seen, left
            seen = verification
            if left is not None:
                left -= 1
                if left <= 0:
                    raise Stopped

        resume = None if seen is None else Verification.from_json(seen.to_json())
        try:
            return store.verify(shop, segments=segments, resume=resume, progress=progress)
        except Stopped:
            assert seen is not None
            assert seen.progress is not None
    raise AssertionError


@settings(max_examples=examples(40))
@given(
    damages=st.dictionaries(st.integers(0, 29), st.sampled_from(DAMAGES), max_size=6),
    markers=st.dictionaries(st.integers(0, 11), st.sampled_from(MARKERS), max_size=4),
    segments=st.integers(1, 4),
    stops=st.lists(st.integers(1, 3), max_size=3),
    page=st.integers(1, 30),
)
def test_exactly_the_damages_are_found(
    damages: dict[int, Damage],
    markers: dict[int, str],
    segments: int,
    stops: list[int],
    page: int,
) -> None:
    expected: Counter[Any] = Counter()
    with filled(orders=30, customers=12) as store, pytest.MonkeyPatch.context() as patch:
        read_pages_of(page, patch)
        by_key = {(item["PK"]["S"], item["SK"]["S"]): item for item in items_of(store)}
        for number, damage in damages.items():
            item = by_key[f"CUSTOMER#c{number % 5}", f"ORDER#{number:03}"]
            expected.update(damage(item))
            put(store, item)
        for number, how in markers.items():
            item = by_key[f"CUSTOMER#c{number}", "CUSTOMER"]
            if "mail" in item:
                expected.update(damage_marker(store, item, how))
        before = items_of(store)
        verification = verified(store, segments, stops)
        assert counted(verification) == expected
        assert verification.items == len(before)
        assert verification.is_complete
        assert verification.is_clean == (not expected)
        assert items_of(store) == before
        keys = [example.key for each in verification.findings for example in each.examples]
        assert all((key["PK"], key["SK"]) for key in keys)
        assert all(1 <= len(each.examples) <= 3 for each in verification.findings)


@settings(max_examples=examples(20))
@given(st.dictionaries(st.integers(0, 29), st.sampled_from(DAMAGES), min_size=1, max_size=8))
def test_a_rewrite_ends_what_it_is_said_to_end(damages: dict[int, Damage]) -> None:
    with filled(orders=30) as store:
        by_key = {(item["PK"]["S"], item["SK"]["S"]): item for item in items_of(store)}
        for number, damage in damages.items():
            item = by_key[f"CUSTOMER#c{number % 5}", f"ORDER#{number:03}"]
            damage(item)
            put(store, item)
        before = counted(store.verify(shop))
        store.rewrite(Order)
        assert counted(store.verify(shop)) == {
            place: count
            for place, count in before.items()
            if FINDING_KINDS[place[1]].rewrite != "corrects"
        }


# What it is given


def test_an_entity_alone() -> None:
    with filled(orders=9, customers=3) as store:
        items = {item["SK"]["S"]: item for item in items_of(store)}
        put(store, {**items["ORDER#003"], "x": {"S": "x"}})
        put(store, {**items["ORDER#004"], "_type": {"S": "Bill"}})
        put(store, {"PK": {"S": "p"}, "SK": {"S": "q"}})
        assert counted(store.verify(Order)) == {
            ("Order", "unknown_attribute", "x"): 1,
            (None, "unrecognized", None): 1,
        }
        assert store.verify(Order).seen == {"Order": 8}
        assert counted(store.verify(Customer)) == {(None, "unrecognized", None): 1}
        assert store.verify(Order, shop).seen == {"Order": 8, "Customer": 3}


def test_an_entity_with_its_kinds() -> None:
    payments = Table("payments")

    class Payment(Entity, table=payments):
        number: Attr[int] = field(max=999)
        reference: Attr[str] = field(unique=True)
        primary = Key("PAYMENT", number).sort("PAYMENT")

    class Card(Payment):
        digits: Attr[str] = field()

    with isotone.connect(":memory:") as store:
        store.create_tables(payments)
        store.put(Payment(number=1, reference="a"))
        store.put(Card(number=2, reference="b", digits="1234"))
        for target in (payments, Payment):
            assert store.verify(target).seen == {"Payment": 1, "Card": 1}
            assert store.verify(target).findings == ()
        assert store.verify(Card).seen == {"Card": 1}
        marker = {"PK": {"S": "_unique#Payment#reference#b"}, "SK": {"S": "_unique"}}
        store.backend.execute("DeleteItem", {"TableName": "payments", "Key": marker})
        for target in (payments, Payment, Card):
            assert counted(store.verify(target)) == {("Card", "marker_missing", "reference"): 1}


def test_several_tables_one_after_the_other() -> None:
    readings = Table("readings", partition="sensor", sort=Number("at"))

    class Reading(Entity, table=readings):
        sensor: Attr[str] = field()
        at: Attr[int] = field()
        value: Attr[Decimal] = field()
        primary = Key(sensor).sort(at)

    with filled(orders=5) as store:
        store.create_tables(readings)
        store.put(Reading(sensor="a", at=3, value=Decimal(1)))
        item = {"sensor": {"S": "a"}, "at": {"N": "4"}, "value": {"S": "x"}}
        store.backend.execute("PutItem", {"TableName": "readings", "Item": item})
        verification = store.verify(shop, Reading)
        assert verification.seen == {"Order": 5, "Reading": 2}
        assert counted(verification) == {
            ("Reading", "untagged", None): 1,
            ("Reading", "invalid", "value"): 1,
        }
        assert verification.findings[0].examples[0].key == {"sensor": "a", "at": Decimal(4)}
        assert "shop, readings: 2 findings in 9 items (5 Order, 2 Reading)" in str(verification)


def test_a_verification_does_not_go_on_in_a_table_that_was_made_again() -> None:
    seen: list[Verification] = []

    def stop(verification: Verification) -> None:
        seen.append(verification)
        raise Stopped

    with filled(orders=30) as store:
        with pytest.raises(Stopped):
            store.verify(Order, progress=stop)
        store.backend.execute("DeleteTable", {"TableName": "shop"})
        store.create_tables(shop)
        resume = Verification.from_json(seen[0].to_json())
        with pytest.raises(UsageError, match="it was made again; leave out resume="):
            store.verify(Order, resume=resume)


def test_a_verification_by_another_model_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was read before was compared with the model of then."""
    seen: list[Verification] = []

    def stop(verification: Verification) -> None:
        seen.append(verification)
        raise Stopped

    with filled(orders=30) as store:
        with pytest.raises(Stopped):
            store.verify(Order, progress=stop)
        resume = Verification.from_json(seen[0].to_json())
        assert store.verify(Order, resume=resume).items
        number: Any = Order.number
        monkeypatch.setattr(number, "options", replace(number.options, default=7))
        resume = Verification.from_json(seen[0].to_json())
        with pytest.raises(UsageError, match="the model of table 'shop' has changed"):
            store.verify(Order, resume=resume)


def test_what_it_refuses() -> None:
    with filled(orders=3) as store:
        done = store.verify(Order)
        with pytest.raises(UsageError, match="give the same targets"):
            store.verify(shop, resume=done)
        with pytest.raises(UsageError, match="has no position"):
            store.verify(shop, resume=Verification())
        with pytest.raises(UsageError, match="needs a table"):
            store.verify()
        with pytest.raises(UsageError, match="is not an entity"):
            store.verify("shop")  # type: ignore[arg-type] # that is the case
        with pytest.raises(UsageError, match="examples=-1"):
            store.verify(shop, examples=-1)
        with pytest.raises(UsageError, match="is not a verification"):
            Verification.from_json("{")
        with pytest.raises(UsageError, match="is not a verification"):
            Verification.from_json('{"findings": [{"kind": "strange"}]}')


def test_a_table_that_does_not_exist() -> None:
    with isotone.connect(":memory:") as store, pytest.raises(UsageError, match="create_tables"):
        store.verify(shop)


# What it asks


def test_verify_only_reads_and_needs_no_record_of_the_keys(desk: Any) -> None:
    desk.store.create_tables(shop)
    desk.store.put(Customer(name="ann", mail="a@x"))
    other = isotone.connect(desk)
    asked = set(desk.operations(lambda: other.verify(shop)))
    assert asked == {"DescribeTable", "Scan", "BatchGetItem"}


def test_keys_that_have_changed_are_findings() -> None:
    """A store that reads such an entity raises `KeysChanged`."""
    old, new = (Table("orders", indexes={"GSI1": Global("GSI1PK", "GSI1SK")}) for _ in "12")

    class Before(Entity, table=old, tag="Order"):
        number: Attr[int] = field(max=99, alert=None)
        primary = Key("ORDER", number).sort("ORDER")

    class After(Entity, table=new, tag="Order"):
        number: Attr[int] = field(max=9_999, alert=None)
        primary = Key("ORDER", number).sort("ORDER")
        by_number = Index("GSI1", "ALL").sort(number)

    with isotone.connect(":memory:") as store:
        store.create_tables(old)
        for number in range(5):
            store.put(Before(number=number))
        assert counted(store.verify(new)) == {
            ("Order", "key", "primary"): 5,
            ("Order", "index_missing", "by_number"): 5,
        }
        assert len(store.verify(new).findings[0].examples) == 3
        assert store.verify(new, examples=0).findings[0].examples == ()
        (key, _) = store.verify(new, examples=1).findings
        assert key.examples[0].key["PK"].startswith("ORDER#")
        store.rewrite(After)
        assert store.verify(new).is_clean


def test_indexes_that_the_table_has_and_does_not_declare() -> None:
    small = Table("shop")

    class Order(Entity, table=small):
        number: Attr[int] = field(max=999)
        primary = Key("ORDER", number).sort("ORDER")

    with filled() as store:
        put(
            store,
            {**Order.__schema__.to_item({"number": 1}), "GSI1PK": {"S": "x"}, "GSI1SK": {"S": "y"}},
        )
        assert counted(store.verify(small)) == {
            ("Order", "undeclared_index", "GSI1PK"): 1,
            ("Order", "undeclared_index", "GSI1SK"): 1,
        }


def test_structures_are_as_they_declare() -> None:
    with isotone.connect(":memory:") as store:
        ranked = SortedSet(store, "scores", ranked=True)
        ranked.create_table()
        ranked.zadd({f"m{n}": n for n in range(100)})
        ranked.zrem("m7")
        assert store.verify(ranked.table).findings == ()


def test_a_program_that_wrote_data_as_names_is_counted_in_bounded_space() -> None:
    with filled() as store:
        store.put(Order(name="a", number=1))
        (item,) = (each for each in items_of(store) if each["SK"]["S"].startswith("ORDER"))
        put(store, {**item, **{f"x{n}": {"S": ""} for n in range(500)}})
        verification = store.verify(shop)
        assert len(verification.findings) == 101
        assert verification.count("unknown_attribute") == 500


# While other programs write


@pytest.fixture
def busy_threads() -> Iterator[None]:
    """Threads take turns after a few steps."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    "change",
    [
        lambda store: store.delete(Customer, name="ann"),
        lambda store: store.update(Customer, Customer.mail.set("b@x"), name="ann"),
        lambda store: store.update(Customer, Customer.mail.remove(), name="ann"),
    ],
)
def test_a_marker_that_goes_with_its_item_is_no_finding(change: Callable[[Store], object]) -> None:
    with filled() as store:
        store.put(Customer(name="ann", mail="a@x"))
        meddling = isotone.connect(
            InterceptedBackend(store.backend, once(lambda: change(store), ["BatchGetItem"]))
        )
        assert meddling.verify(shop).findings == ()


def test_a_marker_that_goes_while_its_item_stays_is_a_finding() -> None:
    with filled() as store:
        store.put(Customer(name="ann", mail="a@x"))

        marker = {"PK": {"S": "_unique#Customer#mail#a@x"}, "SK": {"S": "_unique"}}
        meddling = isotone.connect(
            InterceptedBackend(store.backend, once(lambda: drop(store, marker), ["BatchGetItem"]))
        )
        assert counted(meddling.verify(shop)) == {("Customer", "marker_missing", "mail"): 1}


@pytest.mark.usefixtures("busy_threads")
def test_nothing_is_found_in_a_table_that_is_written_all_the_time() -> None:
    is_over = threading.Event()

    def write_once(store: Store, chosen: random.Random) -> object:
        name, number = f"c{chosen.randrange(6)}", chosen.randrange(9)
        writes: list[Callable[[], object]] = [
            lambda: store.put(Customer(name=name, mail=f"{number}@x")),
            lambda: store.delete(Customer, name=name),
            lambda: store.update(Customer, Customer.mail.remove(), name=name),
            lambda: store.move(Customer, Customer.name.set(f"d{name}"), name=name),
            lambda: store.put(Order(name=name, number=number)),
            lambda: store.upsert(Order, Order.state.set("NEW"), name=name, number=1),
        ]
        return chosen.choice(writes)()

    def write(store: Store, seed: int) -> None:
        chosen = random.Random(seed)
        for _ in range(examples(600)):
            with contextlib.suppress(IsotoneError):  # another item has the value, or was faster
                write_once(store, chosen)

    with filled() as store, ThreadPoolExecutor(3) as pool, pytest.MonkeyPatch.context() as patch:
        read_pages_of(3, patch)
        writers = [pool.submit(write, store, seed) for seed in range(2)]
        pool.submit(lambda: ([each.exception() for each in writers], is_over.set()))
        count = 0
        while not is_over.is_set() or not count:
            count += 1
            assert store.verify(shop, segments=2).findings == ()
        assert [each.exception() for each in writers] == [None, None]
        assert store.verify(shop).findings == ()


# Awaited, and in pieces


def test_the_same_when_awaited() -> None:
    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(shop)
        store.put(Customer(name="ann", mail="a@x"))
        drop(store, {"PK": {"S": "_unique#Customer#mail#a@x"}, "SK": {"S": "_unique"}})

        async def main() -> Verification:
            async with isotone.aconnect(database) as awaited:
                return await awaited.verify(shop, segments=3)

        found = asyncio.run(main())
        same = store.verify(shop, segments=3)
        assert replace(found, progress=None, units=0.0) == replace(same, progress=None, units=0.0)
        assert counted(found) == {("Customer", "marker_missing", "mail"): 1}


def test_progress_and_position() -> None:
    with filled(orders=40) as store, pytest.MonkeyPatch.context() as patch:
        read_pages_of(10, patch)
        seen: list[Verification] = []
        store.verify(shop, progress=seen.append)
        assert [each.items for each in seen] == [10, 20, 30, 40, 41]
        assert [each.is_complete for each in seen] == [False] * 4 + [True]
        middle = Verification.from_json(seen[1].to_json())
        assert middle.progress is None
        assert "; not complete" in str(middle)
        rest = store.verify(shop, resume=middle)
        assert (rest.items, rest.seen) == (41, {"Order": 40})
        assert store.verify(shop, resume=rest) == rest
        assert json.loads(rest.to_json())["is_complete"] is True


def test_a_verification_reads_well() -> None:
    with filled(orders=3) as store:
        assert str(store.verify(shop)) == "shop: all is as declared in 4 items (3 Order), 1 unit"
        items = {item["SK"]["S"]: item for item in items_of(store)}
        put(store, {**items["ORDER#001"], "total": {"S": "much"}})
        put(store, {"PK": {"S": "a"}, "SK": {"S": "b"}})
        put(
            store,
            Order.__schema__.to_item(Order(name="c", number=400).replace(state="NEW").__dict__),
        )
        assert str(store.verify(shop)).splitlines() == [
            "shop: 2 findings and 1 notice in 6 items (4 Order), 1 unit",
            "",
            "items  entity  finding       of      for example",
            "─────  ──────  ────────────  ──────  " + "─" * 68,
            "    1  (none)  unrecognized          a b",
            "    1  Order   headroom      number  "
            "CUSTOMER#c ORDER#400, has 400, declared at most 999 in key 'primary'",
            "    1  Order   invalid       total   "
            "CUSTOMER#c1 ORDER#001, has 'much', declared Decimal",
            "",
            "(none), unrecognized: declare the entity of these items; a class that was renamed needs tag= with "
            "its former name",
            "Order.number, headroom: declare a larger maximum of number with was=, then widen the keys",
            "Order.total, invalid: set total by store.update, or declare the type that is stored; until then "
            "reads raise InvalidItem",
        ]
        headroom = store.verify(shop).findings[1]
        assert str(headroom) == "1 item: headroom Order.number"
        assert (headroom.is_notice, headroom.examples[0].found) == (True, Decimal(400))


def test_every_kind_has_advice() -> None:
    assert list(FINDING_KINDS) == list(get_args(Kind))
    for kind, meant in FINDING_KINDS.items():
        finding = FindingCount("shop", "Order", kind, "number", 2)
        assert "{" not in finding.advice
        assert ("store.rewrite(Order)" in finding.advice) == (meant.rewrite == "corrects")
        assert finding.is_notice == meant.is_notice == (kind == "headroom")


def test_a_server_that_forgets_the_table_midway() -> None:
    with filled(orders=30) as store, pytest.MonkeyPatch.context() as patch:
        read_pages_of(10, patch)

        def progress(_: Verification) -> None:
            store.drop_tables(shop)

        with pytest.raises(ResourceNotFoundException, match="create_tables"):
            store.verify(shop, progress=progress)


def test_on_dynamodb_local(dynamodb_local: str) -> None:
    with isotone.connect(dynamodb_local, region="us-east-1") as store:
        store.create_tables(shop)
        try:
            for n in range(12):
                store.put(Customer(name=f"c{n}", mail=f"{n}@x"))
            store.put_many(Order(name="c", number=n, state="NEW") for n in range(200))
            expected: Counter[Any] = Counter()
            for number, damage in enumerate(DAMAGES):
                key = {"PK": {"S": "CUSTOMER#c"}, "SK": {"S": f"ORDER#{number:03}"}}
                item = store.backend.execute("GetItem", {"TableName": "shop", "Key": key})["Item"]
                expected.update(damage(item))
                put(store, item)
            for number, how in enumerate(MARKERS):
                item = next(
                    each for each in items_of(store) if each["PK"]["S"] == f"CUSTOMER#c{number}"
                )
                expected.update(damage_marker(store, item, how))
            verification = verified(store, 4, [1, 1])
            assert counted(verification) == expected
            assert verification.units > 0
        finally:
            store.drop_tables(shop)
