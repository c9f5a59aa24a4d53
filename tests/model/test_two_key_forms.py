"""Queries and their cursors while keys have two forms: always those of a table that was written anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, desc, field, in_order, raw
from isotone.errors import InvalidCursor, Unanswerable

Urgency = Literal["low", "high"]


def program(shape: str, phase: str) -> Any:
    """The entity that a program declares before, during and after a change of its keys."""
    table = Table("issues", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})
    wide: dict[str, Any] = {"max": 99, "alert": None}
    if shape.startswith("widened"):
        wide = {
            "before": {"max": 99, "alert": None},
            "during": {"max": 9_999, "was": 99, "alert": None},
            "after": {"max": 9_999, "alert": None},
        }[phase]
    tags: dict[str, Any] = {}
    if shape == "tag" or shape == "all":
        tags = {
            "before": {"tag": "Issue"},
            "during": {"tag": "Ticket", "was_tag": "Issue"},
            "after": {"tag": "Ticket"},
        }[phase]

    def choose(before: Any, after: Any) -> Any:
        return {
            "before": lambda: before,
            "during": lambda: after.was(before),
            "after": lambda: after,
        }[phase]()

    class Issue(Entity, table=table, **tags):  # type: ignore[call-arg]
        repo: Attr[str] = field()
        number: Attr[int] = field(**wide)
        stars: Attr[int] = field(max=9)
        urgency: Attr[Urgency] = field()
        note: Attr[str] = field(default="")

        if shape == "widened":
            primary = Key("REPO", repo).sort("ISSUE", number)
            by_stars = Index("GSI1", repo).sort("STARS", stars)
        elif shape == "widened descending":
            primary = Key("REPO", repo).sort("ISSUE", desc(number))
            by_stars = Index("GSI1", repo).sort(stars, number)
        elif shape == "order":
            primary = choose(
                Key("REPO", repo).sort("ISSUE", urgency, number),
                Key("REPO", repo).sort("I", number, in_order(urgency)),
            )
            by_stars = choose(
                Index("GSI1", repo).sort(stars), Index("GSI1", repo).sort("S", desc(stars))
            )
        elif shape == "padding":
            primary = choose(
                Key("REPO", repo).sort("ISSUE", raw(number)),
                Key("REPO", repo).sort("ISSUE", number),
            )
            by_stars = choose(
                Index("GSI1", repo, separator="|").sort("S", stars, number),
                Index("GSI1", repo).sort("S", stars, number),
            )
        elif shape == "index":
            primary = Key("REPO", repo).sort("ISSUE", number)
            by_stars = choose(
                Index("GSI1", repo).sort(urgency, stars), Index("GSI1", "R", repo).sort(stars)
            )
        elif shape == "tag":
            primary = Key("REPO", repo).sort("ISSUE", number)
            by_stars = Index("GSI1", repo).sort(stars)
        else:
            primary = choose(
                Key("REPO", repo).sort("ISSUE", number),
                Key("REPOSITORY", repo).sort("ISSUE", desc(number)),
            )
            by_stars = choose(
                Index("GSI1", repo).sort("S", stars, number),
                Index("GSI1", repo).sort("STARS", stars, number),
            )

    return Issue


SHAPES = ["widened", "widened descending", "order", "padding", "index", "tag", "all"]


values = st.fixed_dictionaries(
    {
        "repo": st.sampled_from(["a", "b"]),
        "number": st.integers(0, 99),
        "stars": st.integers(0, 2),
        "urgency": st.sampled_from(["low", "high"]),
    }
)


def queries(entity: Any, low: int, backward: bool, shape: str) -> list[Any]:
    """Queries of both keys; those that both forms can answer."""
    primary = entity.primary.where(entity.repo == "a")
    found = [primary, entity.by_stars.where(entity.repo == "a")]
    if shape not in ("order", "padding"):
        found.append(entity.primary.where(entity.repo == "a", entity.number >= low))
        found.append(entity.primary.where(entity.repo == "a").filter(entity.stars != 1))
    if shape not in ("index", "tag"):
        found.append(entity.by_stars.where(entity.repo == "a", entity.stars == 1))
    return [query.reversed() if backward else query for query in found]


def order(entity: Any, query: Any) -> Callable[[Any], Any]:
    """The place of an entity in the order of the final key."""
    schema = entity.__schema__

    def place(each: Any) -> Any:
        item = schema.to_item({**each, "note": ""})
        names = [slot.attribute.name for slot in query.keys[0].sort]
        return [item[name]["S"] for name in (*names, "PK", "SK")]

    return place


def unique(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(row["repo"], row["number"]): row for row in rows}.values())


@pytest.mark.parametrize("shape", SHAPES)
@given(data=st.data())
def test_pages_are_those_of_a_table_written_anew(shape: str, data: st.DataObject) -> None:
    rows = unique(data.draw(st.lists(values, max_size=25)))
    low, backward = data.draw(st.integers(0, 99)), data.draw(st.booleans())
    place = data.draw(st.integers(0, 4))
    with isotone.open() as database:
        before, during, after = (program(shape, phase) for phase in ("before", "during", "after"))
        stores = {
            entity: isotone.connect(database, cursor_secret=b"a secret of sixteen bytes")
            for entity in (before, during, after)
        }
        stores[before].create_tables(before.__schema__.table)
        for row in rows:
            stores[before].put(before(**row))
        store = stores[during]
        choices = queries(after, low, backward, shape)
        place %= len(choices)
        wanted_query = choices[place]
        wanted = [
            row["number"]
            for row in sorted(rows, key=order(after, wanted_query))
            if row["repo"] == "a"
        ]
        if backward:
            wanted.reverse()
        by_number = {row["number"]: row for row in rows if row["repo"] == "a"}
        kept = {number: matches(by_number[number], shape, place, low) for number in wanted}
        wanted = [number for number in wanted if kept[number]]
        query = queries(during, low, backward, shape)[place]

        def rewrite() -> None:
            for row in data.draw(st.lists(st.sampled_from(rows), max_size=4)) if rows else []:
                store.put(during(**row))

        rewrite()
        found: list[int] = []
        size, cursor = data.draw(st.integers(1, 7)), None
        while True:
            page = store.page(query, size=size, cursor=cursor)
            found += [each.number for each in page]
            if page.previous is not None:
                earlier = store.page(query, size=size, cursor=page.previous)
                start = len(found) - len(page.items)
                assert [each.number for each in earlier] == found[max(0, start - size) : start]
            rewrite()
            cursor = page.cursor
            if cursor is None:
                break
        assert found == wanted
        assert [each.number for each in store.all(query)] == wanted
        assert [each.number for each in store.iterate(query)] == wanted
        assert [each.number for each in store.iterate(query.limit(3))] == wanted[:3]
        assert store.count(query) == len(wanted)
        first = store.first(query)
        assert (first and first.number) == (wanted[0] if wanted else None)
        assert [each.number for each in store.load(query)] == wanted


def matches(row: dict[str, Any], shape: str, place: int, low: int) -> bool:
    """Whether a row satisfies the conditions of a query by its place among `queries`."""
    conditions: list[Callable[[], bool]] = [lambda: True, lambda: True]
    if shape not in ("order", "padding"):
        conditions += [lambda: row["number"] >= low, lambda: row["stars"] != 1]
    if shape not in ("index", "tag"):
        conditions.append(lambda: row["stars"] == 1)
    return conditions[place]()


# Cursors of the time before, and afterwards


def issues(shape: str) -> tuple[isotone.Database, Any, Any, Any]:
    """A database with twenty issues of the former program, and the three programs."""
    database = isotone.open()
    before, during, after = (program(shape, phase) for phase in ("before", "during", "after"))
    store = connect(database)
    store.create_tables(before.__schema__.table)
    for number in range(20):
        row = {"number": number, "stars": number % 3, "urgency": ("low", "high")[number % 2]}
        store.put(before(repo="a", **row))
    return database, before, during, after


def connect(database: isotone.Database) -> isotone.Store:
    return isotone.connect(database, cursor_secret=b"a secret of sixteen bytes")


@pytest.mark.parametrize("shape", ["widened", "widened descending", "tag"])
def test_a_cursor_continues_before_during_and_after(shape: str) -> None:
    database, before, during, after = issues(shape)
    with database:
        whole = [n.number for n in connect(database).all(by_repo(before))]
        start = connect(database).page(by_repo(before), size=5)
        middle = connect(database).page(by_repo(during), size=5, cursor=start.cursor)
        back = connect(database).page(by_repo(during), size=5, cursor=middle.previous)
        assert [each.number for each in back] == [each.number for each in start]
        assert connect(database).rewrite(during).is_clean
        store = connect(database)
        third = store.page(by_repo(during), size=5, cursor=middle.cursor)
        end = store.page(by_repo(after), size=5, cursor=third.cursor)
        pages = (start, middle, third, end)
        assert [each.number for page in pages for each in page] == whole


def by_repo(entity: Any) -> Any:
    return entity.primary.where(entity.repo == "a")


@pytest.mark.parametrize("shape", ["order", "padding", "all"])
def test_a_cursor_of_another_order_is_refused(shape: str) -> None:
    database, before, during, _ = issues(shape)
    with database:
        start = connect(database).page(by_repo(before), size=5)
        with pytest.raises(InvalidCursor, match=r"another (order|query)"):
            connect(database).page(by_repo(during), size=5, cursor=start.cursor)


def test_merges_selections_and_budgets_have_both_forms() -> None:
    database, _, during, _ = issues("all")
    with database:
        store = connect(database)
        for number in (3, 7, 12):
            store.put(during(repo="a", number=number, stars=0, urgency="low"))
        query = by_repo(during)
        numbers = list(range(19, -1, -1))
        picked = store.page(query.select(during.stars), size=3)
        assert [each.to_dict() for each in picked] == [{"stars": 1}, {"stars": 0}, {"stars": 2}]
        found: list[int] = []
        cursor = None
        while True:
            page = store.page(query.max_requests(1), size=25, cursor=cursor)
            found += [each.number for each in page]
            if (cursor := page.cursor) is None:
                break
        assert found == numbers
        both = isotone.merge(query, during.primary.where(during.repo == "b"))
        assert [each.number for each in store.all(both)] == numbers
        first = store.page(both, size=8)
        assert [n.number for n in store.page(both, size=30, cursor=first.cursor)] == numbers[8:]


def test_a_query_that_the_previous_key_cannot_answer_is_refused() -> None:
    table = Table("notes")

    class Note(Entity, table=table):
        day: Attr[str] = field()
        number: Attr[int] = field(max=99)
        primary = Key("DAY", day).sort(number).was(Key("NOTE", number).sort("DAY", day))

    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        with pytest.raises(Unanswerable, match=r"store\.rewrite\(Note\), and remove was"):
            store.page(Note.primary.where(Note.day == "monday"), size=3)


def test_a_family_has_both_forms() -> None:
    def programs(phase: str) -> tuple[Any, Any]:
        table = Table("site")
        wide: dict[str, Any] = {
            "before": {"max": 99, "alert": None},
            "during": {"max": 9_999, "was": 99, "alert": None},
        }[phase]

        class Repo(Entity, table=table):
            name: Attr[str] = field()
            primary = Key("REPO", name).sort("REPO")

        class Issue(Entity, table=table):
            repo: Attr[str] = field()
            number: Attr[int] = field(**wide)
            primary = Repo.primary.children(repo).before("ISSUE", number)

        return Repo, Issue

    with isotone.open() as database:
        store = connect(database)
        repo, issue = programs("before")
        store.create_tables(repo.__schema__.table)
        store.put(repo(name="a"))
        for number in (5, 50, 99):
            store.put(issue(repo="a", number=number))
        repo, issue = programs("during")
        store = connect(database)
        store.put(issue(repo="a", number=700))
        store.put(issue(repo="a", number=50))
        query = repo.primary.with_children(issue.primary).where(repo.name == "a")
        family = store.family(query, children=3)
        assert family.parent == repo(name="a")
        assert [child.number for child in family.children] == [700, 99, 50]
        page = store.page(query, size=2)
        rest = store.page(query, size=9, cursor=page.cursor)
        assert [getattr(each, "number", None) for each in (*page, *rest)] == [None, 700, 99, 50, 5]


def test_an_index_without_all_attributes_has_both_forms() -> None:
    def programs(phase: str) -> Any:
        table = Table("thin", indexes={"GSI1": Global("A", "B", projection="KEYS_ONLY")})

        class Thing(Entity, table=table):
            name: Attr[str] = field()
            stars: Attr[int] = field(max=9)
            note: Attr[str] = field(default="")
            primary = Key("THING", name).sort("THING")
            by_stars = {
                "before": Index("GSI1", "T").sort(stars, name),
                "during": Index("GSI1", "T")
                .sort("S", stars, name)
                .was(Index("GSI1", "T").sort(stars, name)),
            }[phase]

        return Thing

    with isotone.open() as database:
        store = connect(database)
        thing = programs("before")
        store.create_tables(thing.__schema__.table)
        for place, name in enumerate("abcde"):
            store.put(thing(name=name, stars=place))
        thing = programs("during")
        store = connect(database)
        store.put(thing(name="c", stars=2))
        query = thing.by_stars.where(thing.stars < 9)
        page = store.page(query, size=2)
        rest = store.page(query, size=9, cursor=page.cursor)
        assert [(each.name, each.stars) for each in (*page, *rest)] == [
            (name, place) for place, name in enumerate("abcde")
        ]


def test_pages_are_awaited() -> None:
    database, _, during, _ = issues("all")

    async def run() -> list[int]:
        async with isotone.aconnect(database) as store:
            page = await store.page(by_repo(during), size=30)
            return [each.number for each in page]

    with database:
        assert asyncio.run(run()) == list(range(19, -1, -1))


def test_an_invalid_item_is_found_once_and_in_its_place() -> None:
    database, _, during, _ = issues("widened")
    with database:
        key = {"PK": {"S": "REPO#a"}, "SK": {"S": "ISSUE#07"}}
        update = {
            "UpdateExpression": "SET stars = :s",
            "ExpressionAttributeValues": {":s": {"S": "x"}},
        }
        database.execute("UpdateItem", {"TableName": "issues", "Key": key, **update})
        store = connect(database)
        query = by_repo(during)
        assert [each.number for each in store.page(query, size=7)] == list(range(7))
        page = store.page(query.on_invalid("collect"), size=30)
        assert [each.number for each in page] == [n for n in range(20) if n != 7]
        assert [error.field for error in page.invalid] == ["stars"]


@pytest.mark.parametrize("before", ["CUST", "ZCUST"])
@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("malformed", ["ORDER#04x", "ORDER#09x", "ORDER#00x", "ORDER#x", "ORDER# "])
def test_pages_miss_no_item_whose_previous_key_cannot_be_parsed(
    before: str, backward: bool, malformed: str
) -> None:
    def orders(phase: str) -> Any:
        class Order(Entity, table=Table("orders")):
            customer: Attr[str] = field()
            number: Attr[int] = field(max=99, alert=None)

            previous = Key(before, customer).sort("ORDER", number)
            current = Key("ORDERS", customer).sort("ORDER", number)
            primary = {"before": previous, "during": current.was(previous)}[phase]
            del previous, current

        return Order

    with isotone.open() as database:
        old, store = orders("before"), connect(database)
        store.create_tables(old.__schema__.table)
        store.put_many(old(customer="a", number=number) for number in range(10))
        key = {"PK": {"S": f"{before}#a"}, "SK": {"S": malformed}}
        others = {"_type": {"S": "Order"}, "customer": {"S": "a"}, "number": {"S": "none"}}
        database.execute("PutItem", {"TableName": "orders", "Item": {**key, **others}})
        new, store = orders("during"), connect(database)
        query = new.primary.where(new.customer == "a").on_invalid("collect")
        query = query.reversed() if backward else query
        for moved in ((), (3,), (1, 4, 9), range(10)):
            for number in moved:
                store.put(new(customer="a", number=number))
            for size in (1, 2, 3, 20):
                pages = list(store.pages(query, size=size))
                numbers = [each.number for page in pages for each in page]
                assert numbers == sorted(range(10), reverse=backward)
                found = sum(len(page.invalid) for page in pages)
                if malformed[6:8].isdigit():  # its place in the order is known
                    assert found == 1
                assert found
