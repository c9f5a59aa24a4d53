"""Whole entities are written, and what is stored can refuse them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import pytest

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Local,
    ManualClock,
    Table,
    computed,
    created,
    expires,
    field,
    updated,
    version,
)
from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    NotFound,
    NotUnique,
    UsageError,
    VersionConflict,
)

START = datetime(2026, 1, 1, tzinfo=UTC)

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999, alert=1)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()
    total: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("GSI1", "CUSTOMER", customer).sort(status)


class User(Entity, table=shop):
    org: Attr[str] = field()
    name: Attr[str] = field()
    email: Attr[str | None] = field(default=None, unique=True, case="casefold")
    badge: Attr[int | None] = field(default=None, unique=(org,))

    primary = Key("ORG", org).sort("USER", name)


class Page(Entity, table=shop):
    slug: Attr[str] = field()
    text: Attr[str] = field(default="")
    words: Attr[int] = computed(lambda page: len(page.text.split()))
    revision: Attr[int] = version()
    made: Attr[datetime | None] = created()
    changed: Attr[datetime | None] = updated()

    primary = Key("PAGE", slug).sort("PAGE")


class Session(Entity, table=shop):
    token: Attr[str] = field()
    seat: Attr[str | None] = field(default=None, unique=True)
    until: Attr[datetime | None] = expires()

    primary = Key("SESSION", token).sort("SESSION")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def store(clock: ManualClock) -> Iterator[isotone.Store]:
    with isotone.connect(clock=clock) as store:
        store.create_tables(shop)
        yield store


def stored(store: isotone.Store, entity: Any) -> Any:
    """The item of an entity, as it is stored."""
    key = entity.__schema__.primary_key(entity.__dict__)
    return store.backend.execute("GetItem", {"TableName": shop.name, "Key": key}).get("Item")


def order(**values: Any) -> Order:
    return Order(**{"customer": "c1", "number": 1, "status": "PLACED", **values})


def test_a_put_writes_the_item_with_all_its_keys(store: isotone.Store) -> None:
    store.put(order(total=Decimal("2.50")))
    assert stored(store, order()) == {
        "PK": {"S": "CUSTOMER#c1"},
        "SK": {"S": "ORDER#00001"},
        "GSI1PK": {"S": "CUSTOMER#c1"},
        "GSI1SK": {"S": "PLACED"},
        "_type": {"S": "Order"},
        "customer": {"S": "c1"},
        "number": {"N": "1"},
        "status": {"S": "PLACED"},
        "total": {"N": "2.5"},
    }


def test_a_conditional_put_that_fails_shows_what_is_stored(store: isotone.Store) -> None:
    store.put(order(status="SHIPPED"))
    with pytest.raises(ConditionFailed, match="Order CUSTOMER#c1, ORDER#00001") as failure:
        store.put(order(), when=Order.status == "PLACED")
    assert failure.value.current == order(status="SHIPPED")


def test_create_wants_absence_and_replace_presence(store: isotone.Store) -> None:
    with pytest.raises(NotFound):
        store.replace(order())
    store.create(order())
    with pytest.raises(AlreadyExists) as failure:
        store.create(order(total=Decimal(9)))
    assert failure.value.current == order()
    store.replace(order(total=Decimal(9)))
    assert stored(store, order())["total"] == {"N": "9"}


def test_delete_gives_what_was_there(store: isotone.Store) -> None:
    store.put(order())
    with pytest.raises(ConditionFailed):
        store.delete(Order, when=Order.total > 5, customer="c1", number=1)
    assert store.delete(Order, customer="c1", number=1) == order()
    assert store.delete(order()) is None


def test_a_key_must_be_given_whole(store: isotone.Store) -> None:
    with pytest.raises(UsageError, match="identified by customer, number: number is missing"):
        store.delete(Order, customer="c1")
    with pytest.raises(UsageError, match="has its own key"):
        store.delete(order(), customer="c1")


def test_a_key_beyond_the_limit_is_refused_before_it_is_sent(store: isotone.Store) -> None:
    store.put(User(org="o", name="é" * 509))  # USER# and 1,018 bytes
    with pytest.raises(UsageError, match="1025 bytes in 'SK', and DynamoDB takes 1024"):
        store.put(User(org="o", name="é" * 510))
    with pytest.raises(UsageError, match="DynamoDB takes 2048"):
        store.put(User(org="x" * 2045, name="a"))


def test_the_library_fills_in_versions_times_and_computed_fields(
    store: isotone.Store, clock: ManualClock
) -> None:
    page = store.put(Page(slug="home", text="one two"))
    assert (page.revision, page.made, page.changed, page.words) == (1, START, START, 2)
    clock.advance(60)
    page.text = "one two three"
    store.put(page)
    later = START + timedelta(minutes=1)
    assert (page.revision, page.made, page.changed, page.words) == (2, START, later, 3)
    assert Page.__schema__.from_item(stored(store, page)) == page


def test_concurrent_writers_are_noticed_by_the_version(store: isotone.Store) -> None:
    page = store.put(Page(slug="home", text="a"))
    theirs = Page.__schema__.from_item(stored(store, page))
    store.put(page)
    with pytest.raises(VersionConflict, match="read as version 1, but is now version 2") as failure:
        store.put(theirs)
    assert failure.value.current.revision == 2
    assert theirs.revision == 1  # as it was, to be tried again
    with pytest.raises(VersionConflict):
        store.delete(theirs)
    with pytest.raises(VersionConflict, match="has no version here, but is already stored"):
        store.put(Page(slug="home"))
    store.delete(page)
    with pytest.raises(VersionConflict, match="is now deleted"):
        store.put(page)


def test_a_deleted_entity_with_a_version_can_be_created_again(store: isotone.Store) -> None:
    page = store.put(Page(slug="home", text="a"))
    with pytest.raises(AlreadyExists):
        store.create(page)
    store.delete(page)
    assert store.create(page).revision == 2
    with store.transaction() as tx:
        tx.create(page.replace(slug="copy"))
    assert store.get(Page, slug="copy") == page.replace(slug="copy", revision=3)


def test_hooks_run_around_a_write(store: isotone.Store) -> None:
    seen = []

    class Note(Entity, table=shop):
        name: Attr[str] = field()

        primary = Key("NOTE", name).sort("NOTE")

        def before_put(self) -> None:
            self.name = self.name.strip()

        def after_put(self) -> None:
            seen.append(("put", self.name))

        def before_delete(self) -> None:
            seen.append(("delete", self.name))

    note = store.put(Note(name=" a "))
    assert stored(store, note)["name"] == {"S": "a"}
    store.delete(note)
    assert seen == [("put", "a"), ("delete", "a")]


def test_a_unique_value_is_had_once(store: isotone.Store) -> None:
    store.put(User(org="o", name="ann", email="Ann@x.org", badge=1))
    with pytest.raises(
        NotUnique, match=r"email 'ann@X\.org' is taken by ORG#o, USER#ann"
    ) as failure:
        store.put(User(org="o", name="bob", email="ann@X.org"))
    assert (failure.value.field, failure.value.value) == ("email", "ann@X.org")
    assert failure.value.owner == {"PK": "ORG#o", "SK": "USER#ann"}
    with pytest.raises(NotUnique, match="badge 1 is taken within org 'o'"):
        store.create(User(org="o", name="bob", badge=1))
    store.create(User(org="p", name="bob", badge=1))


def test_a_unique_value_is_given_up_when_it_changes_or_goes(store: isotone.Store) -> None:
    ann = store.put(User(org="o", name="ann", email="a@x"))
    ann.email = "b@x"
    store.put(ann)
    bob = store.create(User(org="o", name="bob", email="a@x"))
    store.delete(ann)
    bob.email = "b@x"
    store.put(bob)
    store.delete(User, org="o", name="bob")
    store.create(User(org="o", name="cat", email="a@x"))


def test_the_same_entity_may_be_put_again(store: isotone.Store) -> None:
    ann = store.put(User(org="o", name="ann", email="a@x", badge=3))
    store.put(ann)
    with pytest.raises(AlreadyExists):
        store.create(ann)


def test_what_has_expired_stands_in_nobodys_way(store: isotone.Store, clock: ManualClock) -> None:
    store.create(Session(token="t", seat="1A", until=START + timedelta(hours=1)))
    with pytest.raises(NotUnique):
        store.create(Session(token="u", seat="1A"))
    clock.advance(3600)
    with pytest.raises(NotFound):
        store.replace(Session(token="t"))
    store.create(Session(token="u", seat="1A"))
    store.create(Session(token="t", seat="1B"))


def test_a_local_index_has_the_partition_of_its_table() -> None:
    table = Table("tab", indexes={"LSI": Local("L")})
    with pytest.raises(UsageError, match=r"'by_day' is on a local index.* same parts as 'primary'"):

        class Wrong(Entity, table=table):
            name: Attr[str] = field()
            day: Attr[str] = field()

            primary = Key("WRONG", name).sort("WRONG")
            by_day = Index("LSI", "OTHER", name).sort(day)


def test_none_is_written_where_absence_means_another_default(store: isotone.Store) -> None:
    class Task(Entity, table=shop):
        name: Attr[str] = field()
        team: Attr[str | None] = field(default="red")

        primary = Key("TASK", name).sort("TASK")

    task = store.put(Task(name="a", team=None))
    item = stored(store, task)
    assert item["team"] == {"NULL": True}
    assert Task.__schema__.from_item(item) == task
    store.put(task, when=Task.team == None)  # noqa: E711
    with pytest.raises(ConditionFailed):
        store.put(task, when=Task.team != None)  # noqa: E711


def test_uniqueness_needs_keys_and_values_of_strings() -> None:
    with pytest.raises(UsageError, match="cannot be unique"):

        class Wrong(Entity, table=shop):
            name: Attr[str] = field()
            tags: Attr[list[str]] = field(unique=True)

            primary = Key("WRONG", name).sort("WRONG")


def keep_the_expired(store: isotone.Store) -> None:
    """DynamoDB may take two days to remove them."""
    never = {"AttributeName": shop.ttl, "Enabled": False}
    request = {"TableName": shop.name, "TimeToLiveSpecification": never}
    store.backend.execute("UpdateTimeToLive", request)


def test_unique_values_of_an_expired_item_belong_to_their_new_owner(store: isotone.Store) -> None:
    keep_the_expired(store)
    late, soon = START - timedelta(hours=1), START + timedelta(hours=1)
    for write in (
        lambda: store.delete(Session, token="t"),
        lambda: store.put(Session(token="t", seat="9Z")),
        lambda: store.update(Session, Session.seat.set("9Z"), token="u"),
        lambda: store.upsert(Session, Session.seat.set("8Z"), token="t"),
    ):
        store.put(Session(token="t", seat="1A", until=late))  # and nobody has removed it
        store.put(Session(token="u", seat="1A", until=soon))
        write()
        store.delete(Session, token="u")
        store.delete(Session, token="t")


def test_a_delete_does_not_give_what_has_expired(store: isotone.Store) -> None:
    keep_the_expired(store)
    store.put(Session(token="t", until=START - timedelta(hours=1)))
    assert store.delete(Session, token="t") is None


# Unique values in an index of the user's own attributes

claimed = Table("claimed", indexes={"by_owner": Global("owner", "name")})


class House(Entity, table=claimed):
    number: Attr[int] = field(max=99)
    owner: Attr[str] = field()
    name: Attr[str] = field(unique=True)

    primary = Key("HOUSE", number).sort("HOUSE")
    by_owner = Index("by_owner", owner).sort(name)


def test_unique_values_keep_out_of_the_indexes_of_users() -> None:
    with isotone.connect() as store:
        store.create_tables(claimed)
        first = store.put(House(number=1, owner="ann", name="mill"))
        with pytest.raises(NotUnique, match="taken by HOUSE#01") as refused:
            store.create(House(number=2, owner="bo", name="mill"))
        assert refused.value.owner == {"PK": "HOUSE#01", "SK": "HOUSE"}
        assert store.all(House.by_owner.where(House.owner == "ann")) == [first]


def test_the_attribute_of_what_keeps_values_unique_is_no_key() -> None:
    with pytest.raises(UsageError, match="an attribute '_owner' of their own"):

        class Clash(Entity, table=Table("clash", indexes={"by_owner": Global("_owner")})):
            name: Attr[str] = field(unique=True)

            primary = Key("CLASH", name).sort("CLASH")


class Guest(Entity, table=claimed):
    """As it was before `unique` came to the declaration."""

    number: Attr[int] = field(max=99)
    email: Attr[str] = field()

    primary = Key("GUEST", number).sort("GUEST")


def test_what_was_there_before_unique_claims_its_values_when_it_is_moved_in_place() -> None:
    with isotone.connect() as store:
        store.create_tables(claimed)
        for number, email in enumerate(["ann@x", "bo@x", "ann@x"]):
            store.put(Guest(number=number, email=email))

        class Unique(Entity, table=claimed, tag="Guest"):
            number: Attr[int] = field(max=99)
            email: Attr[str] = field(unique=True)

            primary = Key("GUEST", number).sort("GUEST")

        for number in (0, 1):
            store.move(Unique, Unique.number.set(number), number=number)
        with pytest.raises(NotUnique, match="email 'ann@x' is taken by GUEST#00"):
            store.move(Unique, Unique.number.set(2), number=2)
        with pytest.raises(NotUnique, match="email 'bo@x' is taken by GUEST#01"):
            store.create(Unique(number=3, email="bo@x"))
        again = store.move(Unique, Unique.number.set(1), number=1)
        assert again == Unique(number=1, email="bo@x")
        store.delete(Unique, number=1)
        store.create(Unique(number=3, email="bo@x"))
