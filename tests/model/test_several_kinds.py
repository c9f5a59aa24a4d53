"""Collections of many kinds in one request: pages and cursors against a sorted list, and what is refused and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, desc, field
from isotone.errors import InvalidCursor, Unanswerable, UsageError
from isotone.server import running_server

START = datetime(2026, 1, 1, tzinfo=UTC)

accounts = Table("accounts", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Tenant(Entity, table=accounts):
    name: Attr[str] = field()
    primary = Key("TENANT", name).sort("TENANT")


class Subscription(Entity, table=accounts):
    tenant: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    primary = Tenant.primary.children(tenant).before("SUBSCRIPTION", number)


class Member(Entity, table=accounts):
    tenant: Attr[str] = field()
    name: Attr[str] = field()
    team: Attr[str] = field(default="none")
    primary = Tenant.primary.children(tenant).after("U", name)
    by_team = Index("GSI1", "TEAM", team).sort("MEMBER", name, tenant)


class Invoice(Entity, table=accounts):
    tenant: Attr[str] = field()
    number: Attr[int] = field(max=99, alert=None)
    team: Attr[str] = field(default="none")
    primary = Tenant.primary.children(tenant).after("V", desc(number))
    by_team = Index("GSI1", "TEAM", team).sort("INVOICE", number, tenant)


class Payment(Entity, table=accounts):
    tenant: Attr[str] = field()
    at: Attr[datetime] = field()
    team: Attr[str] = field(default="none")
    primary = Tenant.primary.children(tenant).after("W", at)
    by_team = Index("GSI1", "TEAM", team).sort("PAYMENT", desc(at), tenant)


WHOLE = Tenant.primary.with_children(
    Subscription.primary, Member.primary, Invoice.primary, Payment.primary
)
OF_A_TEAM = Member.by_team.with_children(Invoice.by_team, Payment.by_team)

KINDS: Final[tuple[type[Any], ...]] = (Subscription, Tenant, Member, Invoice, Payment)
"""In their stored order."""


def rank(entity: Any) -> tuple[Any, ...]:
    """The place of an entity among those of its tenant, from its values alone."""
    kind = KINDS.index(type(entity))
    match entity:
        case Subscription(number=number):
            return kind, number
        case Invoice(number=number):
            return kind, -number
        case Payment(at=at):
            return kind, at
        case Member(name=name):
            return kind, name.encode()
    return (kind,)


def rank_in_team(entity: Any) -> tuple[Any, ...]:
    """The place of an entity among those of its team."""
    match entity:
        case Invoice(number=number, tenant=tenant):
            return "INVOICE", number, tenant
        case Member(name=name, tenant=tenant):
            return "MEMBER", name.encode(), tenant
        case Payment(at=at, tenant=tenant):
            return "PAYMENT", -at.timestamp(), tenant
    raise AssertionError(entity)


NAMES = st.sampled_from(["a", "b", "#", "~", "é", "z#1"])
TENANTS = st.sampled_from(["t1", "t2"])
TEAMS = st.sampled_from(["red", "blue"])
NUMBERS = st.integers(0, 99)
TIMES = st.integers(0, 9).map(lambda hours: START + timedelta(hours=hours))
ENTITIES: Final = st.lists(
    st.one_of(
        st.builds(Tenant, name=TENANTS),
        st.builds(Subscription, tenant=TENANTS, number=NUMBERS),
        st.builds(Member, tenant=TENANTS, name=NAMES, team=TEAMS),
        st.builds(Invoice, tenant=TENANTS, number=NUMBERS, team=TEAMS),
        st.builds(Payment, tenant=TENANTS, at=TIMES, team=TEAMS),
    ),
    max_size=25,
    unique_by=lambda each: (type(each), rank(each), getattr(each, "tenant", "")),
)
SLOW = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(accounts)
        yield store


@pytest.fixture(params=["file", "http", "DynamoDB Local"])
def other_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The engines behind which the same has to be true as in memory."""
    with ExitStack() as stack:
        address = str(tmp_path / "accounts.db")
        if request.param == "DynamoDB Local":
            address = request.getfixturevalue("dynamodb_local")
        elif request.param == "http":
            database = stack.enter_context(isotone.open())
            address = stack.enter_context(running_server(database))
        yield stack.enter_context(isotone.connect(address, report=None))


def fill(store: Store, entities: list[Any]) -> None:
    store.drop_tables(accounts)
    store.create_tables(accounts)
    store.put_many(entities)


def check_pages(store: Store, query: Any, expected: list[Any], size: int) -> None:
    """All pages forwards, and each page backwards, are the slices of the expected list."""
    slices = [expected[start : start + size] for start in range(0, len(expected), size)] or [[]]
    pages = [store.page(query, size=size)]
    while pages[-1].cursor is not None:
        pages.append(store.page(query, size=size, cursor=pages[-1].cursor))
    if not pages[-1].items and len(pages) > 1:
        del pages[-1]  # the last page was full
    assert [page.items for page in pages] == slices
    for page in pages:
        kinds: set[Any] = {type(each) for each in expected}
        for kind in kinds:
            assert page.of(kind) == [each for each in page if type(each) is kind]
        assert page.stats.requests <= 1
    at = pages[-1]
    for items in reversed(slices[:-1]):
        assert at.previous is not None
        at = store.page(query, size=size, cursor=at.previous)
        assert at.items == items
        if items is not slices[-1]:
            ahead = store.page(query, size=size, cursor=at.cursor)
            assert ahead.items == slices[slices.index(items) + 1]
    assert at.previous is None


def check(store: Store, kept: list[Any], size: int) -> None:
    """Pages of one tenant and of one team, in both directions, are those of the sorted entities."""
    own = [e for e in kept if getattr(e, "tenant", None) == "t1" or e == Tenant(name="t1")]
    own.sort(key=rank)
    query = WHOLE.where(Tenant.name == "t1")
    check_pages(store, query, own, size)
    check_pages(store, query.reversed(), own[::-1], size)
    team = [e for e in kept if getattr(e, "team", None) == "red"]
    team.sort(key=rank_in_team)
    of_team = OF_A_TEAM.where(Member.team == "red")
    check_pages(store, of_team if not of_team.backward else of_team.reversed(), team, size)


@SLOW
@given(kept=ENTITIES, size=st.integers(1, 6))
def test_pages_are_slices_of_the_sorted_list(kept: list[Any], size: int) -> None:
    with isotone.connect(":memory:", report=None) as store:
        fill(store, kept)
        check(store, kept, size)


@settings(SLOW, max_examples=8)
@given(kept=ENTITIES, size=st.integers(1, 6))
def test_pages_are_the_same_behind_other_engines(
    other_store: Store, kept: list[Any], size: int
) -> None:
    fill(other_store, kept)
    check(other_store, kept, size)


@SLOW
@given(kept=ENTITIES, low=NUMBERS, high=TIMES)
def test_the_outer_kinds_may_have_a_range(kept: list[Any], low: int, high: datetime) -> None:
    mine = Tenant.name == "t1"
    query = WHOLE.where(mine, Subscription.number >= low, Payment.at < high)
    expected = [
        each
        for each in kept
        if getattr(each, "tenant", None) == "t1" or each == Tenant(name="t1")
        if not isinstance(each, Subscription) or each.number >= low
        if not isinstance(each, Payment) or each.at < high
    ]
    with isotone.connect(":memory:", report=None) as store:
        fill(store, kept)
        assert store.all(query) == sorted(expected, key=rank)
        assert store.count(query) == len(expected)


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (Member.name < "m", "range of Member does not end next to the Invoice"),
        (Member.name > "m", "range of Member does not begin next to the Tenant"),
        (Invoice.number == 5, "range of Invoice does not begin next to the Member"),
        (Payment.at > START, "range of Payment does not begin next to the Invoice"),
        (Subscription.number < 5, "range of Subscription does not end next to the Tenant"),
    ],
)
def test_a_range_that_others_would_slip_through_is_refused(condition: Any, words: str) -> None:
    """Else the query would return members that do not satisfy the condition."""
    with pytest.raises(Unanswerable, match=words):
        WHOLE.where(Tenant.name == "t1", condition)


def test_a_parent_among_several_cannot_be_picked_out(store: Store) -> None:
    class Room(Entity, table=accounts):
        house: Attr[str] = field()
        number: Attr[int] = field(max=99, alert=None)
        primary = Key("HOUSE", house).sort("ROOM", number)

    class Seat(Entity, table=accounts):
        house: Attr[str] = field()
        number: Attr[int] = field(max=99, alert=None)
        primary = Room.primary.children(house).after("SEAT", number)

    both = Room.primary.with_children(Seat.primary)
    store.put_many([Room(house="a", number=n) for n in (1, 2)])
    later = store.all(both.where(Room.house == "a", Room.number >= 2))
    assert later == [Room(house="a", number=2)]
    with pytest.raises(Unanswerable, match="range of Room does not end next to the Seat"):
        both.where(Room.house == "a", Room.number == 1)


def test_a_filter_and_a_selection_apply_to_each_kind(store: Store) -> None:
    store.put_many(
        [Tenant(name="t1"), Member(tenant="t1", name="a"), Invoice(tenant="t1", number=1)]
    )
    mine = WHOLE.where(Tenant.name == "t1")
    kept = store.page(mine.filter(Member.team == "red"))
    assert list(kept) == [Tenant(name="t1"), Invoice(tenant="t1", number=1)]
    part = store.page(mine.select(Tenant.name, Member.name))
    assert [each.name for each in part.of(Member)] == ["a"]
    with pytest.raises(AttributeError, match="read without its field 'number'"):
        print(part.of(Invoice)[0].number)


def test_a_list_of_a_kind_that_is_not_read_is_refused(store: Store) -> None:
    class Lead(Entity, table=accounts):
        name: Attr[str] = field()
        primary = Key("LEAD", name).sort("LEAD")

    wrong: Any = Lead
    query = Tenant.primary.with_children(Subscription.primary).where(Tenant.name == "t1")
    with pytest.raises(UsageError, match=r"of\(Lead\): .* give Tenant or Subscription"):
        store.page(query).of(wrong)
    with pytest.raises(UsageError, match=r"of\(Lead\)"):
        store.family(query).of(wrong)
    wrong = "Tenant"
    with pytest.raises(UsageError, match=r"of\('Tenant'\)"):
        store.page(query).of(wrong)
    assert store.page(query).of(Subscription) == []


def test_a_family_of_several_kinds_has_a_list_of_each(store: Store) -> None:
    members = [Member(tenant="t1", name=name) for name in ("a", "b")]
    store.put_many([Tenant(name="t1"), *members, Invoice(tenant="t1", number=3)])
    both = Tenant.primary.with_children(Member.primary, Invoice.primary)
    family = store.family(both.where(Tenant.name == "t1"))
    assert family.parent == Tenant(name="t1")
    assert family.of(Member) == members
    assert family.of(Invoice) == [Invoice(tenant="t1", number=3)]


def test_kinds_of_an_entity_have_lists_too(store: Store) -> None:
    class Action(Entity, table=accounts):
        page: Attr[str] = field()
        number: Attr[int] = field(max=99, alert=None)
        primary = Key("PAGE", page).sort("ACTION", number)

    class Comment(Action):
        text: Attr[str] = field()

    store.put_many([Action(page="p", number=1), Comment(page="p", number=2, text="x")])
    page = store.page(Action.primary.where(Action.page == "p"))
    assert [each.text for each in page.of(Comment)] == ["x"]
    assert [each.number for each in page.of(Action)] == [1, 2]


def test_a_merged_page_has_lists_too(store: Store) -> None:
    store.put_many([Subscription(tenant="t1", number=1), Invoice(tenant="t1", number=2)])
    one: Any = Subscription.primary.where(Subscription.tenant == "t1")
    other = Invoice.primary.where(Invoice.tenant == "t1").oldest_first()
    page = store.page(isotone.merge(one, other))
    assert page.of(Invoice) == [Invoice(tenant="t1", number=2)]
    assert [each.number for each in page] == [1, 2]


def test_a_cursor_is_that_of_its_collection(store: Store) -> None:
    store.put_many([Tenant(name="t1"), *(Member(tenant="t1", name=name) for name in "abc")])
    fewer = Tenant.primary.with_children(Member.primary, Invoice.primary)
    page = store.page(fewer.where(Tenant.name == "t1"), size=2)
    with pytest.raises(InvalidCursor, match="belongs to another query"):
        store.page(WHOLE.where(Tenant.name == "t1"), size=2, cursor=page.cursor)


def test_it_is_one_request_of_one_range(store: Store) -> None:
    request = WHOLE.where(Tenant.name == "t1").request()
    assert request["KeyConditionExpression"] == "PK = :v0 AND SK BETWEEN :v1 AND :v2"
    assert request["ExpressionAttributeValues"][":v1"] == {"S": "SUBSCRIPTION#"}


elsewhere = Table("elsewhere")
NO_KEY: Any = Member


class Visitor(Entity, table=elsewhere):
    tenant: Attr[str] = field()
    primary = Key("TENANT", tenant).sort("VISITOR")


@pytest.mark.parametrize(
    ("collect", "words"),
    [
        (
            lambda: Tenant.primary.with_children(Member.primary, Visitor.primary),
            "Visitor.primary .* stands in table 'elsewhere'.* and Tenant.primary in table 'accounts'",
        ),
        (
            lambda: Tenant.primary.with_children(Invoice.by_team),
            "stands in index 'GSI1' .*; give Invoice.primary, which does",
        ),
        (
            lambda: Member.by_team.with_children(Tenant.primary),
            "Tenant.primary .* stands in table 'accounts' .*, and Member.by_team in index 'GSI1'",
        ),
        (
            lambda: Tenant.primary.with_children(Invoice.primary),
            r"would also read Member, .*; read it with them \(Member.primary\)",
        ),
        (lambda: Tenant.primary.with_children(NO_KEY), "takes keys, such as Member.primary"),
    ],
)
def test_a_kind_that_stands_elsewhere_is_named(collect: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        collect()
