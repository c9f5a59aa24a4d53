"""Reads: how much they read, what they tell about it, and where they stop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Store,
    Table,
    WastefulRead,
    expires,
    field,
)
from isotone.errors import BudgetSpent, InvalidCursor, TooLarge, TooMany, UsageError

# The database keeps to the machine's clock, for which nothing here has expired: it deletes nothing.
START = datetime(2126, 1, 1, tzinfo=UTC)

shop = Table(
    "shop",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK", projection="KEYS_ONLY"),
        "admins": Global("AdminPK", "AdminSK"),
        "customers": Global("CustomerPK", one_kind=True),
        "GSI2": Global("GSI2PK", "GSI2SK"),
    },
)


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=9_999, alert=1)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()
    note: Attr[str] = field(default="")

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("GSI1", "CUSTOMER", customer).sort(status, number)
    by_status_whole = Index("GSI2", "CUSTOMER", customer).sort(status, number)


class Session(Entity, table=shop):
    user: Attr[str] = field()
    number: Attr[int] = field(max=9_999, alert=1)
    ends: Attr[datetime | None] = expires()

    primary = Key("USER", user).sort("SESSION", number)


class Member(Entity, table=shop):
    org: Attr[str] = field()
    name: Attr[str] = field()
    role: Attr[Literal["Admin", "User"]] = field(default="User")

    primary = Key("ORG", org).sort("MEMBER", name)
    admins = Index("admins", "ORG", org, when=role == "Admin").sort("MEMBER", name)


class Customer(Entity, table=shop):
    name: Attr[str] = field()
    primary = Key("C", name).sort("C")
    everyone = Index("customers", name)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def wastes() -> list[Any]:
    return []


@pytest.fixture
def store(clock: ManualClock, wastes: list[Any]) -> Iterator[Store]:
    with (
        isotone.open(":memory:") as database,
        isotone.connect(database, clock=clock, report=wastes.append) as store,
    ):
        store.create_tables(shop)
        yield store


def fill(store: Store, count: int, every: int = 10, note: str = "") -> None:
    """Orders of which each so many-th is shipped."""
    for number in range(count):
        status: Any = "SHIPPED" if number % every == every - 1 else "PLACED"
        store.put(Order(customer="c", number=number, status=status, note=note))


MINE = Order.customer == "c"
SHIPPED = Order.status == "SHIPPED"


def test_a_page_of_a_key_reads_what_it_returns(store: Store) -> None:
    fill(store, 60)
    page = store.page(Order.primary.where(MINE), size=25)
    assert [each.number for each in page] == list(range(25))
    assert (page.stats.scanned, page.stats.returned, page.stats.requests) == (25, 25, 1)
    assert page.stats.hit_rate == 1.0
    assert page.stats.units == 0.5


def test_exactly_25_shipped_orders_are_one_call_whatever_the_filter(store: Store) -> None:
    fill(store, 700)
    page = store.page(Order.primary.where(MINE).filter(SHIPPED), size=25)
    assert [each.number for each in page] == list(range(9, 250, 10))
    assert page.stats.returned == 25
    assert page.stats.requests <= 4
    assert page.stats.scanned >= 250
    rest = store.page(Order.primary.where(MINE).filter(SHIPPED), size=99, cursor=page.cursor)
    assert [each.number for each in rest] == list(range(259, 700, 10))


def test_a_page_stops_where_its_units_are_spent(store: Store) -> None:
    fill(store, 500, every=500, note="x" * 1000)
    query = Order.primary.where(MINE).filter(SHIPPED).max_units(10)
    page = store.page(query, size=5)
    assert page.items == []
    assert page.stats.exhausted
    assert 10 <= page.stats.units <= 20
    assert page.cursor is not None
    assert store.page(query, size=5, cursor=page.cursor).stats.scanned > 0


@pytest.mark.parametrize("read", ["first", "all", "count", "iterate"])
def test_what_would_be_incomplete_raises(store: Store, read: str) -> None:
    fill(store, 300, every=300, note="x" * 1000)
    query = Order.primary.where(MINE).filter(SHIPPED).page_size(10).max_requests(3)
    ask = {"iterate": lambda: list(store.iterate(query))}.get(
        read, lambda: getattr(store, read)(query)
    )
    with pytest.raises(BudgetSpent, match="3 requests") as spent:
        ask()
    assert spent.value.stats.scanned == 30


def test_all_and_first(store: Store) -> None:
    fill(store, 30)
    query = Order.primary.where(MINE)
    assert len(store.all(query)) == 30
    assert len(store.all(query.limit(7))) == 7
    assert len(store.all(query, at_most=30)) == 30
    with pytest.raises(TooMany, match="more than 29"):
        store.all(query, at_most=29)
    newest = store.first(query.newest_first())
    assert newest is not None
    assert newest.number == 29
    assert store.first(query.filter(Order.note == "none")) is None


def test_iterate_reads_as_it_goes(store: Store) -> None:
    fill(store, 30)
    found = store.iterate(Order.primary.where(MINE).page_size(10).limit(15))
    assert [each.number for each in found] == list(range(15))


def test_a_count_is_what_a_read_would_return(store: Store) -> None:
    fill(store, 30)
    assert store.count(Order.primary.where(MINE)) == 30
    assert store.count(Order.primary.where(MINE).filter(SHIPPED)) == 3
    assert store.count(Order.primary.where(MINE).limit(4)) == 4
    assert store.count(Order.primary.scan()) == 30
    store.put(Customer(name="c"))
    assert store.count(Order.primary.scan()) == 30


def test_a_cursor_belongs_to_its_query(store: Store) -> None:
    fill(store, 30)
    cursor = store.page(Order.primary.where(MINE), size=5).cursor
    assert store.page(Order.primary.where(MINE), size=9, cursor=cursor).items[0].number == 5
    for other in (
        Order.primary.where(Order.customer == "d"),
        Order.primary.where(MINE).newest_first(),
        Order.primary.where(MINE).filter(SHIPPED),
        Order.by_status.where(MINE),
    ):
        with pytest.raises(InvalidCursor):
            store.page(other, size=5, cursor=cursor)


def test_the_page_before_is_found_from_beyond_the_end(store: Store) -> None:
    fill(store, 10)
    query = Order.primary.where(MINE)
    second = store.page(query, size=5, cursor=store.page(query, size=5).cursor)
    assert second.cursor is not None
    beyond = store.page(query, size=5, cursor=second.cursor)
    assert beyond.items == []
    assert beyond.cursor is None
    assert store.page(query, size=5, cursor=beyond.previous).items == second.items


def test_what_arrives_meanwhile_repeats_and_skips_nothing(store: Store) -> None:
    fill(store, 20)
    query = Order.primary.where(MINE).newest_first()
    seen: list[int] = []
    cursor = None
    for arriving in range(20, 24):
        page = store.page(query, size=5, cursor=cursor)
        seen += [each.number for each in page]
        cursor = page.cursor
        store.put(Order(customer="c", number=arriving, status="PLACED"))
        store.delete(Order, customer="c", number=seen[-1])  # where the cursor stands
    assert seen == list(range(19, -1, -1))


def test_a_large_index_of_keys_is_refused_with_its_size(store: Store) -> None:
    fill(store, 40)
    with pytest.raises(TooLarge, match="40 items"):
        store.load(Order.by_status.where(MINE).select(Order.number), at_most=1000)


def test_a_page_has_a_size_and_no_limit(store: Store) -> None:
    with pytest.raises(UsageError, match="use limit"):
        store.page(Order.primary.where(MINE).limit(3), size=5)


def test_what_has_expired_is_left_out_of_every_read(store: Store, clock: ManualClock) -> None:
    for number in range(6):
        store.put(Session(user="u", number=number, ends=START + timedelta(hours=number + 1)))
    store.put(Session(user="u", number=6))
    clock.advance(timedelta(hours=3))
    query = Session.primary.where(Session.user == "u")
    assert [each.number for each in store.all(query)] == [3, 4, 5, 6]
    assert [each.number for each in store.page(query, size=2)] == [3, 4]
    assert store.count(query) == 4
    assert [each.number for each in store.iterate(Session.primary.scan())] == [3, 4, 5, 6]
    assert store.get(Session, user="u", number=2) is None
    assert store.get(Session, user="u", number=3) is not None
    assert store.get_many(Session, [{"user": "u", "number": 1}]) == [None]
    assert len(store.all(query.including_expired())) == 7
    assert store.count(query.including_expired()) == 7


def test_some_fields_are_read_and_the_others_say_so(store: Store) -> None:
    fill(store, 3, note="x")
    found = store.all(Order.primary.where(MINE).select(Order.number).filter(Order.note == "x"))
    assert [each.number for each in found] == [0, 1, 2]
    with pytest.raises(AttributeError, match="without its field 'note'"):
        found[0].note  # noqa: B018


def test_an_index_of_keys_gives_the_fields_in_the_keys(store: Store) -> None:
    fill(store, 20, note="x")
    (found,) = store.all(Order.by_status.where(MINE, SHIPPED, Order.number > 9))
    assert (found.customer, found.status, found.number) == ("c", "SHIPPED", 19)
    with pytest.raises(AttributeError, match="note"):
        found.note  # noqa: B018


def test_an_index_of_keys_can_be_counted_and_selected_from_and_not_filtered(store: Store) -> None:
    fill(store, 20)
    shipped = Order.by_status.where(MINE, SHIPPED)
    assert store.count(shipped) == 2
    assert [each.number for each in store.all(shipped.select(Order.number))] == [9, 19]
    with pytest.raises(UsageError, match="does not project note, so it cannot be filtered"):
        shipped.filter(Order.note == "x")


def test_a_wasteful_read_is_reported_with_the_key_that_would_help(
    store: Store, wastes: list[Any]
) -> None:
    fill(store, 150, every=50, note="x" * 1000)
    page = store.page(Order.primary.where(MINE).filter(SHIPPED), size=10)
    assert len(page) == 3
    (waste,) = wastes
    assert waste.stats == page.stats
    assert waste.stats.is_wasteful
    assert waste.advice == "Order.by_status_whole answers it by its key"
    assert "to return 3 (2.0%)" in str(waste)


def test_a_wasteful_read_is_reported_with_an_index_to_declare(
    store: Store, wastes: list[Any]
) -> None:
    fill(store, 150, every=50, note="x" * 1000)
    store.all(Order.primary.where(MINE).filter(SHIPPED, Order.note == "y"))
    assert wastes[0].advice.endswith('Index("…", customer).sort(status, note)')


def test_a_wasteful_read_by_the_best_key_is_not_advised_to_use_it(
    store: Store, wastes: list[Any]
) -> None:
    fill(store, 150, note="x" * 1000)
    store.all(Order.primary.where(MINE).filter(Order.note.contains("y")))
    assert wastes[0].advice.startswith("read a narrower range")


def test_a_read_of_little_or_with_a_good_hit_rate_is_not_reported(
    store: Store, wastes: list[Any]
) -> None:
    fill(store, 20, note="x" * 1000)
    store.all(Order.primary.where(MINE).filter(SHIPPED))
    fill(store, 150, every=2, note="x" * 1000)
    store.all(Order.primary.where(MINE).filter(SHIPPED))
    assert wastes == []


def test_a_load_reports_its_cost_and_is_reported_like_every_read(
    store: Store, wastes: list[Any]
) -> None:
    fill(store, 150, every=50, note="x" * 1000)
    loaded = store.load(Order.primary.where(MINE).filter(SHIPPED))
    assert (loaded.stats.scanned, loaded.stats.returned) == (150, 3)
    (waste,) = wastes
    assert waste.stats == loaded.stats == loaded.where(SHIPPED).stats
    whole = store.load(Order.primary.where(MINE))
    assert whole.stats.hit_rate == 1.0
    assert len(wastes) == 1


def test_a_page_is_a_sequence_whose_cursor_shows_whether_there_is_more(store: Store) -> None:
    fill(store, 5)
    page = store.page(Order.primary.where(MINE), size=4)
    assert isinstance(page, Sequence)
    assert (page[0], page[-1], page[1:3]) == (page.items[0], page.items[3], page.items[1:3])
    assert list(reversed(page)) == page.items[::-1]
    assert page.items[2] in page
    empty = store.page(
        Order.primary.where(MINE).filter(SHIPPED).max_requests(1).page_size(2), size=4
    )
    assert not empty
    assert empty.cursor is not None


def test_the_report_is_a_warning_by_default() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        fill(store, 150, every=50, note="x" * 1000)
        with pytest.warns(WastefulRead, match="by_status_whole answers it"):
            store.all(Order.primary.where(MINE).filter(SHIPPED))


def test_a_sparse_index_is_a_filter_that_reads_nothing_else(store: Store) -> None:
    for name in ("ann", "bob", "cy", "dee"):
        store.put(Member(org="BERKSHIRE", name=name))
    store.update(Member, Member.role.set("Admin"), org="BERKSHIRE", name="bob")
    store.update(Member, Member.role.set("Admin"), org="BERKSHIRE", name="dee")
    admins = Member.admins.where(Member.org == "BERKSHIRE")
    page = store.page(admins, size=9)
    assert [each.name for each in page] == ["bob", "dee"]
    assert page.stats.scanned == 2
    store.update(Member, Member.role.set("User"), org="BERKSHIRE", name="bob")
    assert [each.name for each in store.all(admins)] == ["dee"]
    assert Member.find(Member.org == "BERKSHIRE").name == "Member.primary"


def test_scanning_an_index_of_one_kind_reads_that_kind(store: Store) -> None:
    fill(store, 95)
    for number in range(5):
        store.put(Customer(name=f"n{number}"))
    costs: list[isotone.Stats] = []
    found = list(store.scan(Customer.everyone.scan(), segments=4, progress=costs.append))
    assert sorted(each.name for each in found) == [f"n{number}" for number in range(5)]
    assert costs[-1].scanned == 5
    assert len(list(store.scan(Customer.primary.scan(), progress=costs.append))) == 5
    assert costs[-1].scanned == 101  # with the record of the keys


def test_an_index_of_one_kind_takes_no_second_one() -> None:
    with pytest.raises(UsageError, match="one_kind=True and already has Customer"):

        class Supplier(Entity, table=shop):
            name: Attr[str] = field()
            primary = Key("S", name).sort("S")
            everyone = Index("customers", name)

    assert "Supplier" not in shop.entities


def test_a_get_wants_exactly_the_fields_of_the_key(store: Store) -> None:
    fill(store, 1)
    found = store.get(Order, customer="c", number=0)
    assert found is not None
    assert found.status == "PLACED"
    assert store.get(Order, customer="c", number=1) is None
    with pytest.raises(UsageError, match="customer, number"):
        store.get(Order, customer="c")
    with pytest.raises(UsageError, match="customer, number"):
        store.get(Order, customer="c", number=1, status="PLACED")


def test_an_item_without_a_tag_is_taken_for_what_its_key_says(store: Store) -> None:
    item = {"PK": "CUSTOMER#c", "SK": "ORDER#0007", "status": "PLACED"}
    wire = {name: {"S": text} for name, text in item.items()}
    store.backend.execute("PutItem", {"TableName": "shop", "Item": wire})
    (found,) = store.all(Order.primary.where(MINE))
    assert (found.customer, found.number, found.status) == ("c", 7, "PLACED")


class Return(Entity, table=shop):
    """Another kind in an index that does not say which kind an entry is of."""

    customer: Attr[str] = field()
    number: Attr[int] = field(max=9_999, alert=1)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()
    primary = Key("RETURN", customer).sort("RETURN", number)
    by_status = Index("GSI1", "CUSTOMER", customer).sort(status, number)


def test_kinds_are_distinguished_by_their_keys_where_an_index_has_no_tag(store: Store) -> None:
    fill(store, 4, every=1)
    store.put(Return(customer="c", number=3, status="SHIPPED"))
    assert [each.number for each in store.all(Order.by_status.where(MINE))] == [0, 1, 2, 3]
    returned = store.all(Return.by_status.where(Return.customer == "c"))
    assert [(type(each), each.number) for each in returned] == [(Return, 3)]
    assert store.count(Return.by_status.where(Return.customer == "c")) == 1
