"""Kinds of one entity: read together in order, told apart by their tags, written as what they are."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conftest import START, Desk

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Page,
    Query,
    Table,
    computed,
    expires,
    field,
    updated,
    version,
)
from isotone.errors import (
    AlreadyExists,
    ConditionFailed,
    InvalidItem,
    KeysChanged,
    NotFound,
    NotUnique,
    TransactionFailed,
    UsageError,
)
from isotone.structures import Worker

site = Table(
    "site",
    indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")},
    stream="NEW_AND_OLD_IMAGES",
)


class Event(Entity, table=site):
    page: Attr[str] = field()
    at: Attr[int] = field(max=9_999, alert=None)
    author: Attr[str] = field(default="ann")
    token: Attr[str | None] = field(default=None, unique=True)
    until: Attr[Any] = field(default=None)

    primary = Key("PAGE", page).sort("EVENT", at)
    by_author = Index("GSI1", "AUTHOR", author).sort(at)


class Click(Event):
    x: Attr[int] = field(default=0)


class RightClick(Click, tag="Context"):
    menu: Attr[str] = field(default="")


class Purchase(Event):
    total: Attr[int] = field(max=999, alert=None)
    label: Attr[str] = computed(lambda purchase: f"{purchase.author} {purchase.total}")

    by_total = Index("GSI2", "ALL").sort(total, Event.at)


class Visit(Entity, table=site):
    page: Attr[str] = field()
    primary = Key("PAGE", page).sort("VISIT")


EVENTS: list[Event] = [
    Click(page="p", at=1, x=3),
    Purchase(page="p", at=2, total=5),
    Event(page="p", at=3, author="bo"),
    RightClick(page="p", at=4, menu="copy", author="bo"),
    Purchase(page="p", at=5, total=1, author="bo"),
    Click(page="q", at=6),
]
OF_PAGE = Event.primary.where(Event.page == "p")


@pytest.fixture
def store(desk: Desk) -> isotone.Store:
    desk.store.create_tables(site)
    for event in EVENTS:
        desk.store.put(event)
    desk.store.put(Visit(page="p"))
    return desk.store


def ats(events: Any) -> list[int]:
    return [event.at for event in events]


def test_the_base_reads_all_kinds_in_order(store: isotone.Store) -> None:
    assert store.all(OF_PAGE) == EVENTS[:5]
    assert [type(event) for event in store.iterate(OF_PAGE)] == [
        Click,
        Purchase,
        Event,
        RightClick,
        Purchase,
    ]
    page: Page[Event] = store.page(OF_PAGE.newest_first(), size=2)
    assert page.items == [EVENTS[4], EVENTS[3]]
    assert store.page(OF_PAGE.newest_first(), size=3, cursor=page.cursor).items == EVENTS[2::-1]
    assert store.all(Event.by_author.where(Event.author == "ann")) == [
        EVENTS[0],
        EVENTS[1],
        EVENTS[5],
    ]
    assert store.first(OF_PAGE) == EVENTS[0]
    assert sorted(ats(store.scan(Event.primary.scan()))) == [1, 2, 3, 4, 5, 6]
    assert store.count(OF_PAGE) == 5
    assert store.count(Event.primary.scan()) == 6
    assert store.all(OF_PAGE.filter(Event.author == "bo")) == EVENTS[2:5]
    assert store.all(OF_PAGE.limit(2)) == EVENTS[:2]
    assert ats(store.load(OF_PAGE).where(Event.author == "bo").sorted_by(Event.at)) == [3, 4, 5]
    selected = store.all(OF_PAGE.select(Event.at))
    assert ats(selected) == [1, 2, 3, 4, 5]
    assert isinstance(selected[1], Purchase)


def test_a_kind_reads_itself_and_its_kinds(store: isotone.Store) -> None:
    clicks: Query[Click] = Click.primary.where(Click.page == "p")
    assert store.all(clicks) == [EVENTS[0], EVENTS[3]]
    assert store.all(clicks.filter(Click.x == 3)) == [EVENTS[0]]
    assert store.all(RightClick.primary.where(Event.page == "p")) == [EVENTS[3]]
    assert store.count(clicks) == 2
    assert store.count(Click.primary.scan()) == 3
    assert store.count(RightClick.primary.scan()) == 1
    assert ats(store.all(Purchase.by_total.where())) == [5, 2]
    assert ats(store.iterate(Purchase.primary.scan().filter(Purchase.total > 1))) == [2]


def test_a_kind_is_counted_by_the_database(desk: Desk, store: isotone.Store) -> None:
    desk.operations(lambda: store.count(Click.primary.where(Click.page == "p")))
    assert [request.get("Select") for _, request in desk.asked] == ["COUNT"]


def test_get_returns_the_kind(store: isotone.Store) -> None:
    for event in EVENTS:
        assert store.get(Event, page=event.page, at=event.at) == event
    assert store.get(Click, page="p", at=1) == EVENTS[0]
    assert store.get(Click, page="p", at=4) == EVENTS[3]
    assert store.get(Click, page="p", at=2) is None
    assert store.get(RightClick, page="p", at=1) is None
    keys = [Event.primary.at(page="p", at=2), Click.primary.at(page="p", at=2)]
    assert store.get_many(keys) == [EVENTS[1], None]
    assert store.get_together(*keys) == [EVENTS[1], None]
    assert store.get_many(Purchase, [{"page": "p", "at": at} for at in (1, 2)]) == [None, EVENTS[1]]
    with store.transaction() as tx:
        assert tx.get(Event, page="p", at=2) == EVENTS[1]
        assert tx.get(Click, page="p", at=5) is None


def test_an_untagged_item_is_of_the_base(desk: Desk, store: isotone.Store) -> None:
    item = {"PK": {"S": "PAGE#old"}, "SK": {"S": "EVENT#0001"}}
    desk.backend.execute("PutItem", {"TableName": "site", "Item": item})
    assert store.get(Event, page="old", at=1) == Event(page="old", at=1)
    assert store.get(Click, page="old", at=1) is None
    assert store.all(Event.primary.where(Event.page == "old")) == [Event(page="old", at=1)]
    assert store.all(Click.primary.where(Click.page == "old")) == []
    assert store.count(Click.primary.where(Click.page == "old")) == 0
    with pytest.raises(NotFound, match="there is an item without a tag"):
        store.update(Click, Click.x.set(1), page="old", at=1)


def test_an_unknown_kind_is_not_valid(desk: Desk, store: isotone.Store) -> None:
    item = {"PK": {"S": "PAGE#p"}, "SK": {"S": "EVENT#0007"}, "_type": {"S": "Refund"}}
    desk.backend.execute("PutItem", {"TableName": "site", "Item": item})
    with pytest.raises(InvalidItem, match=r"'Refund'.*not a kind of Event in this program"):
        store.all(OF_PAGE)
    with pytest.raises(InvalidItem, match="'Refund'"):
        store.get(Event, page="p", at=7)
    page = store.page(OF_PAGE.on_invalid("collect"), size=10)
    assert (ats(page), len(page.invalid)) == ([1, 2, 3, 4, 5], 1)
    assert len(store.all(Click.primary.where(Click.page == "p"))) == 2
    assert store.get(Click, page="p", at=7) is None
    assert [each.kind for each in store.verify(Event).findings] == []


def test_an_update_of_the_base_keeps_the_kind(desk: Desk, store: isotone.Store) -> None:
    changed = store.update(Event, Event.author.set("cy"), page="p", at=2)
    assert changed == Purchase(page="p", at=2, total=5, author="cy")
    assert desk.item(changed)["label"] == {"S": "cy 5"}
    assert desk.item(changed) == desk.item(store.put(changed))
    moved = store.move(Event, Event.at.set(9), page="p", at=2)
    assert moved == Purchase(page="p", at=9, total=5, author="cy")
    assert ats(store.all(Purchase.by_total.where(Purchase.total == 5))) == [9]
    assert store.upsert(Event, Event.author.set("di"), page="p", at=1) == Click(
        page="p", at=1, x=3, author="di"
    )
    assert store.upsert(Event, Event.author.set("di"), page="p", at=20) == Event(
        page="p", at=20, author="di"
    )
    assert store.delete(Event, page="p", at=9) == moved
    with pytest.raises(NotFound):
        store.update(Event, Event.author.set("cy"), page="p", at=9)
    with pytest.raises(ConditionFailed):
        store.update(Event, Event.author.set("cy"), page="p", at=4, when=Event.author == "no")


def test_a_write_of_a_kind_leaves_the_others(store: isotone.Store) -> None:
    missing = "Click PAGE#p, EVENT#0002 does not exist: under this key there is Purchase"
    with pytest.raises(NotFound, match=missing):
        store.update(Click, Click.x.set(1), page="p", at=2)
    with pytest.raises(NotFound, match=missing):
        store.update(Click, Click.author.set("cy"), page="p", at=2)
    with pytest.raises(NotFound, match=missing):
        store.upsert(Click, Click.x.set(1), page="p", at=2)
    with pytest.raises(NotFound, match=missing):
        store.move(Click, Click.at.set(30), page="p", at=2)
    with pytest.raises(NotFound, match=missing):
        store.delete(Click, page="p", at=2)
    with pytest.raises(NotFound, match=missing):
        store.replace(Click(page="p", at=2))
    with pytest.raises(AlreadyExists):
        store.create(Click(page="p", at=2))
    tx = store.transaction()
    tx.check(Click, Click.x >= 0, page="p", at=2)
    tx.put(Visit(page="new"))
    with pytest.raises(TransactionFailed):
        tx.commit()
    assert store.get(Event, page="p", at=2) == EVENTS[1]
    assert store.update(Click, Click.x.set(8), page="p", at=4) == RightClick(
        page="p", at=4, menu="copy", author="bo", x=8
    )
    assert store.delete(Click, page="p", at=77) is None
    assert store.put(Click(page="p", at=2)) == store.get(Event, page="p", at=2)
    assert store.all(Purchase.by_total.where(Purchase.total == 5)) == []


def test_unique_values_are_unique_among_all_kinds(store: isotone.Store) -> None:
    click = store.put(Click(page="u", at=1, token="a"))
    with pytest.raises(NotUnique):
        store.put(Purchase(page="u", at=2, total=1, token="a"))
    assert store.get(Event, token="a") == click
    assert store.get(Click, token="a") == click
    assert store.get(Purchase, token="a") is None
    store.put(Purchase(page="u", at=1, total=3))
    assert store.get(Event, token="a") is None
    store.put(Purchase(page="u", at=2, total=1, token="a"))
    store.update(Event, Event.token.set("b"), page="u", at=2)
    store.put(Event(page="u", at=3, token="a"))
    store.delete(Event, page="u", at=2)
    store.put(Click(page="u", at=5, token="b"))
    assert not store.verify(Event).findings


def test_streams_and_workers_distinguish_kinds(store: isotone.Store) -> None:
    kinds = [type(event.entity).__name__ for event in store.changes(site)]
    assert sorted(kinds) == sorted([*(type(each).__name__ for each in EVENTS), "Visit"])
    seen: dict[str, list[int]] = {"events": [], "clicks": []}
    worker = Worker("kinds", site)

    @worker.on(Event)
    def of_events(event: isotone.Event[Event], context: object) -> None:
        seen["events"].append(event.entity.at)

    @worker.on(Click)
    def of_clicks(event: isotone.Event[Click], context: object) -> None:
        seen["clicks"].append(event.entity.at)

    worker.create_tables(store)
    worker.run(store, until_idle=True)
    assert {name: sorted(found) for name, found in seen.items()} == {
        "events": [1, 2, 3, 4, 5, 6],
        "clicks": [1, 4, 6],
    }


def test_a_kind_that_is_defined_after_the_query(store: isotone.Store) -> None:
    query = Event.primary.where(Event.page == "later")
    assert store.all(query) == []

    class Later(Event):
        note: Attr[str] = field(default="n")

    try:
        later = store.put(Later(page="later", at=1))
        assert store.all(query) == [later]
        assert store.all(query.select(Event.at))[0].at == 1
        assert store.get(Event, page="later", at=1) == later
    finally:
        site.entities.pop("Later")


def test_parents_and_children_have_kinds() -> None:
    table = Table("families")

    class Company(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("COMPANY", name).sort("COMPANY")

    class Listed(Company):
        symbol: Attr[str] = field()

    class Person(Entity, table=table):
        company: Attr[str] = field()
        name: Attr[str] = field()
        age: Attr[int] = field(default=30)
        primary = Company.primary.children(company).after("PERSON", name)

    class Boss(Person):
        car: Attr[str] = field(default="red")

    both = Company.primary.with_children(Person.primary)
    with isotone.connect() as store:
        store.create_tables(table)
        company = store.put(Listed(name="c", symbol="C"))
        people = [Boss(company="c", name="a", age=60), Person(company="c", name="b")]
        store.put_many(people)
        family = store.family(both.where(Company.name == "c"))
        assert (family.parent, family.children) == (company, people)
        old = store.family(both.where(Company.name == "c").filter(Person.age > 50))
        assert (old.parent, old.children) == (company, people[:1])


def test_keys_that_change_are_rewritten_for_all_kinds() -> None:
    def declared(**options: Any) -> tuple[Any, Any]:
        class Base(Entity, table=Table("things"), tag="Base"):
            name: Attr[str] = field()
            number: Attr[int] = field(**options)
            primary = Key("THING", name).sort("N", number)

        class Special(Base, tag="Special"):
            extra: Attr[int] = field(default=1)

        return Base, Special

    base, special = declared(max=99, alert=None)
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(base.__schema__.table)
        store.put(special(name="a", number=2))
        store.put(base(name="a", number=1))
        base, special = declared(max=999, alert=None)
        later = isotone.connect(database)
        with pytest.raises(KeysChanged):
            later.all(base.primary.where(base.name == "a"))
        assert later.rewrite(base).rewritten == 2
        found = later.all(base.primary.where(base.name == "a"))
        assert [type(each).__name__ for each in found] == ["Base", "Special"]
        assert [each.number for each in later.all(special.primary.where(special.name == "a"))] == [
            2
        ]


def test_a_program_that_knows_another_kind() -> None:
    def declared(name: str) -> Any:
        class Base(Entity, table=Table("things"), tag="Base"):
            number: Attr[int] = field(max=99, alert=None)
            primary = Key("THINGS").sort("N", number)

        class Kind(Base, tag=name):
            pass

        return Kind

    with isotone.open() as database:
        one, other = declared("One"), declared("Other")
        isotone.connect(database).create_tables(Table("things"))
        isotone.connect(database).put(one(number=1))
        isotone.connect(database).put(other(number=2))
        store = isotone.connect(database)
        assert [each.number for each in store.all(other.primary.where())] == [2]


def test_what_a_kind_cannot_declare() -> None:
    table = Table("narrow", indexes={"GSI1": Global("A", "B", projection="KEYS_ONLY")})

    class Narrow(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("N", name).sort("N")
        by_name = Index("GSI1", "N").sort(name)

    with pytest.raises(
        UsageError, match="does not project '_type', which tells the kinds of Narrow"
    ):

        class Wrong0(Narrow):
            pass

    with pytest.raises(
        UsageError, match="key 'primary': the class is a kind of Event and has the keys of Event"
    ):

        class Wrong1(Event):
            primary = Key("OTHER", Event.page).sort("EVENT")

    with pytest.raises(
        UsageError, match="key 'other': the class is a kind of Event and has the keys of Event"
    ):

        class Wrong2(Event):
            other = Key("OTHER", Event.page).sort("EVENT")

    with pytest.raises(UsageError, match="Event already has a field 'author'"):

        class Wrong3(Event):
            author: Attr[Literal["x"]] = field()  # type: ignore[assignment]

    with pytest.raises(UsageError, match=r"expires\(\) applies to all kinds of Event"):

        class Wrong4(Event):
            gone: Attr[Any] = expires(default=None)

    with pytest.raises(UsageError, match=r"version\(\) applies to all kinds of Event"):

        class Wrong5(Event):
            revision: Attr[int] = version()

    with pytest.raises(UsageError, match="'nick' can only be unique among all kinds of Event"):

        class Wrong6(Event):
            nick: Attr[str] = field(unique=True)

    with pytest.raises(UsageError, match="has the version of"):

        class Wrong7(Event, version=2):
            pass

    with pytest.raises(UsageError, match="extends Click and Purchase"):

        class Wrong8(Click, Purchase):
            pass

    with pytest.raises(UsageError, match="Event already has the tag 'Event'"):

        class Wrong9(Event, tag="Event"):
            pass

    with pytest.raises(UsageError, match="has an entry in index 'GSI1' already"):

        class Wrong10(Event):
            by_page = Index("GSI1", "P", Event.page).sort(Event.at)

    assert not any(tag.startswith("Wrong") for tag in (*site.entities, *table.entities))


def test_roles_and_versions_of_the_base_apply() -> None:
    table = Table("roles")

    class Doc(Entity, table=table, version=2):
        name: Attr[str] = field()
        revision: Attr[int] = version()
        changed: Attr[Any] = field(default=None)
        at: Attr[Any] = updated()
        gone: Attr[Any] = expires(default=None)
        primary = Key("DOC", name).sort("DOC")

        @staticmethod
        @isotone.upgrade(1)
        def first(item: dict[str, Any]) -> dict[str, Any]:
            return {**item, "changed": "yes"}

    class Sheet(Doc):
        rows: Attr[int] = field(default=0)

    clock = isotone.ManualClock(START.timestamp())
    with isotone.connect(clock=clock) as store:
        store.create_tables(table)
        sheet = store.put(Sheet(name="a", gone=START + timedelta(hours=1)))
        assert sheet.revision == 1
        changed = store.update(Doc, Doc.changed.set("x"), name="a")
        assert (type(changed).__name__, changed.revision) == ("Sheet", 2)
        item = {"PK": {"S": "DOC#b"}, "SK": {"S": "DOC"}, "_type": {"S": "Sheet"}}
        store.backend.execute("PutItem", {"TableName": "roles", "Item": item})
        scan = Doc.primary.scan()
        assert sorted(each.name for each in store.all(scan)) == ["a", "b"]
        assert [each.name for each in store.all(scan.filter(Doc.changed == "yes"))] == ["b"]
        found = store.get(Doc, name="b")
        assert isinstance(found, Sheet)
        assert found.changed == "yes"
        clock.advance(3600)
        assert [each.name for each in store.all(scan)] == ["b"]
        assert store.get(Sheet, name="a") is None


def test_a_class_may_be_defined_again() -> None:
    table = Table("notebook")

    def cell() -> tuple[Any, Any]:
        class Base(Entity, table=table):
            number: Attr[int] = field(max=99, alert=None)
            primary = Key("BASE").sort("B", number)

        class Sub(Base):
            extra: Attr[int] = field(default=1)

        return Base, Sub

    with isotone.connect() as store:
        store.create_tables(table)
        for _ in range(3):
            base, sub = cell()
            kind = store.put(sub(number=1))
            assert store.all(base.primary.where()) == [kind]
            assert store.get(base, number=1) == kind
            assert store.delete(base, number=1) == kind


def test_an_async_store_and_a_server(tmp_path: Any) -> None:
    async def talk(address: str) -> list[Event]:
        async with isotone.aconnect(address) as store:
            await store.create_tables(site)
            for event in (Click(page="z", at=1), Event(page="z", at=2)):
                await store.put(event)
            assert await store.get(Event, page="z", at=1) == Click(page="z", at=1)
            return await store.all(Event.primary.where(Event.page == "z"))

    from isotone.server import running_server

    expected = [Click(page="z", at=1), Event(page="z", at=2)]
    with isotone.open() as database, running_server(database) as server:
        assert asyncio.run(talk(server)) == expected
    assert asyncio.run(talk(str(tmp_path / "kinds.db"))) == expected


pages = st.sampled_from(["a", "b"])
times = st.integers(1, 5)
classes = st.sampled_from([Event, Click, RightClick, Purchase])
calls = st.sampled_from(["put", "update", "upsert", "delete", "move"])


@given(
    st.lists(st.tuples(calls, classes, pages, times, st.sampled_from(["ann", "bo"])), max_size=25)
)
def test_each_history_is_read_as_by_a_dict(
    history: list[tuple[str, type[Event], str, int, str]],
) -> None:
    has: dict[tuple[str, int], Event] = {}
    with isotone.connect() as store:
        store.create_tables(site)
        for call, kind, page, at, author in history:
            key: Any = {"page": page, "at": at}
            stored = has.get((page, at))
            try:
                if call == "put":
                    more: Any = {"total": at} if kind is Purchase else {}
                    has[page, at] = store.put(kind(**key, author=author, **more))
                elif call == "delete":
                    deleted = store.delete(kind, **key)
                    assert deleted == has.pop((page, at), None)
                elif call == "move":
                    to = at % 5 + 1
                    moved = store.move(kind, Event.at.set(to), **key)
                    assert stored is not None
                    del has[page, at]
                    has[page, to] = moved
                    assert moved == stored.replace(at=to)
                else:
                    changes = [Event.author.set(author)]
                    if call == "upsert" and kind is Purchase:
                        changes.append(Purchase.total.set(at))
                    result: Event = (
                        store.update(kind, Event.author.set(author), **key)
                        if call == "update"
                        else store.upsert(kind, *changes, **key)
                    )
                    assert isinstance(result, kind)
                    has[page, at] = result
                    if stored is not None:
                        assert type(result) is type(stored)
            except NotFound:
                assert not isinstance(stored, kind)
            except AlreadyExists:
                assert call == "move"
                assert (page, at % 5 + 1) in has
        for kind in (Event, Click, RightClick, Purchase):
            for page in ("a", "b"):
                expected = [
                    has[k] for k in sorted(has) if k[0] == page and isinstance(has[k], kind)
                ]
                query = kind.primary.where(Event.page == page)
                assert store.all(query) == expected
                assert store.all(query.newest_first()) == expected[::-1]
                assert store.count(query) == len(expected)
            for author in ("ann", "bo"):
                found = store.all(kind.by_author.where(Event.author == author))
                assert sorted(map(repr, found)) == sorted(
                    repr(each)
                    for each in has.values()
                    if isinstance(each, kind) and each.author == author
                )
        totals = store.all(Purchase.by_total.where())
        assert sorted(map(repr, totals)) == sorted(
            repr(each) for each in has.values() if isinstance(each, Purchase)
        )
        assert not store.verify(Event).findings
