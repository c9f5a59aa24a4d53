"""Queries and their cursors while keys have two forms: always those of a table that was written anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, desc, field, in_order, raw

Urgency = Literal["low", "high"]
Shape = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any]]


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


@dataclass
class Site:
    """One table with a program of each phase."""

    database: isotone.Database
    before: Any
    during: Any
    after: Any

    def store(self) -> Any:
        return isotone.connect(self.database, cursor_secret=b"a secret of sixteen bytes")


@pytest.fixture
def site() -> Iterator[Callable[[str], Site]]:
    databases = []

    def open_site(shape: str) -> Site:
        database = isotone.open()
        databases.append(database)
        entities = [program(shape, phase) for phase in ("before", "during", "after")]
        found = Site(database, *entities)
        found.store().create_tables(found.before.__schema__.table)
        return found

    yield open_site
    for database in databases:
        database.close()


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
