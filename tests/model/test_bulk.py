"""Writes of all that a query finds; pages as an iterator; exists, refresh and touch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import START, Desk

import isotone
from isotone import (
    Attr,
    BulkProgress,
    Entity,
    Global,
    Index,
    Key,
    Page,
    Table,
    created,
    expires,
    field,
    updated,
    version,
)
from isotone.errors import NotFound, NotUnique, UsageError, VersionConflict

depot = Table("depot", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})
Status = Literal["NEW", "OPEN", "DONE"]


class Parcel(Entity, table=depot):
    shelf: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=None)
    status: Attr[Status] = field(default="NEW")
    weight: Attr[int] = field(default=0, max=9999, alert=None)
    note: Attr[str | None] = field(default=None, unique=True)

    primary = Key("SHELF", shelf).sort("PARCEL", number)
    by_status = Index("GSI1", "STATUS", status).sort(weight, number)


class Shelf(Entity, table=depot):
    shelf: Attr[str] = field()
    seen_at: Attr[datetime | None] = updated()
    first_at: Attr[datetime | None] = created()
    revision: Attr[int] = version()
    until: Attr[datetime | None] = expires(default=None)

    primary = Parcel.primary.children(shelf).before("A")
    recent = Index("GSI1", "SHELVES").sort(seen_at)


class Plain(Entity, table=depot):
    name: Attr[str] = field()

    primary = Key("PLAIN", name).sort("PLAIN")


SHELF = Parcel.primary.where(Parcel.shelf == "a")


def fill(desk: Desk, *parcels: tuple[Status, int]) -> None:
    desk.store.create_tables(depot)
    for number, (status, weight) in enumerate(parcels):
        desk.store.put(Parcel(shelf="a", number=number, status=status, weight=weight))


def held(desk: Desk) -> list[tuple[int, Status, int]]:
    return [(each.number, each.status, each.weight) for each in desk.store.all(SHELF)]


# All that a query finds


def test_all_that_a_query_finds_is_updated(desk: Desk) -> None:
    fill(desk, ("NEW", 1), ("DONE", 2), ("NEW", 3))
    query = Parcel.by_status.where(Parcel.status == "NEW")
    reports: list[BulkProgress] = []
    result = desk.store.update_all(
        query.page_size(1), Parcel.status.set("OPEN"), progress=reports.append
    )
    assert result == BulkProgress(seen=2, written=2, skipped=0, is_complete=True)
    assert [(each.seen, each.is_complete) for each in reports][:2] == [(1, False), (2, False)]
    assert held(desk) == [(0, "OPEN", 1), (1, "DONE", 2), (2, "OPEN", 3)]
    assert desk.store.update_all(query, Parcel.status.set("OPEN")).seen == 0


def test_an_entity_that_moves_ahead_in_the_index_is_updated_once(desk: Desk) -> None:
    fill(desk, *(("NEW", weight) for weight in range(20)))
    query = Parcel.by_status.where(Parcel.status == "NEW").page_size(3)
    result = desk.store.update_all(query, Parcel.weight.add(100))
    assert result.written == 20
    assert held(desk) == [(number, "NEW", number + 100) for number in range(20)]


def test_what_was_changed_meanwhile_is_skipped(desk: Desk) -> None:
    fill(desk, ("NEW", 1), ("NEW", 2), ("NEW", 3), ("NEW", 4))
    query = Parcel.by_status.where(Parcel.status == "NEW").filter(Parcel.weight != 4)

    def meanwhile() -> None:
        desk.store.update(Parcel, Parcel.status.set("DONE"), shelf="a", number=1)
        desk.store.delete(Parcel, shelf="a", number=2)

    desk.before["UpdateItem"] = meanwhile
    assert desk.store.update_all(query, Parcel.note.set(None)) == BulkProgress(3, 1, 2, True)
    assert held(desk) == [(0, "NEW", 1), (1, "DONE", 2), (3, "NEW", 4)]
    result = desk.store.delete_all(query, when=Parcel.weight > 1)
    assert result == BulkProgress(1, 0, 1, True)
    assert desk.store.delete_all(query) == BulkProgress(1, 1, 0, True)
    assert held(desk) == [(1, "DONE", 2), (3, "NEW", 4)]


def test_a_filter_that_became_false_keeps_the_entity(desk: Desk) -> None:
    fill(desk, ("NEW", 1), ("NEW", 2))
    query = SHELF.filter(Parcel.status == "NEW")

    def meanwhile() -> None:
        desk.store.update(Parcel, Parcel.status.set("OPEN"), shelf="a", number=1)

    desk.before["Query"] = lambda: desk.before.update(
        TransactWriteItems=meanwhile, DeleteItem=meanwhile
    )
    assert desk.store.delete_all(query) == BulkProgress(2, 1, 1, True)
    assert held(desk) == [(1, "OPEN", 2)]


def test_unique_values_are_released_and_still_unique(desk: Desk) -> None:
    fill(desk, ("NEW", 1), ("NEW", 2))
    with pytest.raises(NotUnique):
        desk.store.update_all(SHELF, Parcel.note.set("mine"))
    assert desk.store.delete_all(SHELF).written == 2
    desk.store.put(Parcel(shelf="b", number=1, note="mine"))


def test_several_kinds_are_deleted_together(desk: Desk) -> None:
    fill(desk, ("NEW", 1), ("NEW", 2))
    desk.store.put(Shelf(shelf="a"))
    desk.store.put(Shelf(shelf="b"))
    family = Shelf.primary.where(Shelf.shelf == "a")
    both = Parcel.primary.with_children(Shelf.primary).where(Parcel.shelf == "a")
    with pytest.raises(UsageError, match="several kinds"):
        desk.store.update_all(both, Parcel.status.set("DONE"))
    with pytest.raises(UsageError, match="when= is a condition on one"):
        desk.store.delete_all(both, when=Parcel.weight > 1)
    assert desk.store.delete_all(both).written == 3
    assert desk.store.all(family) == []
    assert desk.store.delete_all(Shelf.primary.scan()).written == 1


def test_wrong_calls_are_refused_before_anything_is_read(desk: Desk) -> None:
    fill(desk)
    query = Parcel.by_status.where(Parcel.status == "NEW")
    with pytest.raises(UsageError, match="no change was given"):
        desk.store.update_all(query)
    with pytest.raises(UsageError, match="part of the primary key"):
        desk.store.update_all(query, Parcel.number.set(1))
    with pytest.raises(UsageError, match="is not a field of Parcel"):
        desk.store.update_all(query, Parcel.weight.set(1), when=Plain.name == "a")
    with pytest.raises(UsageError, match="is not a field of Parcel"):
        desk.store.delete_all(query, when=Plain.name == "a")
    wrong: Any = isotone.merge(query)
    with pytest.raises(UsageError, match="does not say what to write; give a query"):
        desk.store.delete_all(wrong)
    with pytest.raises(UsageError, match="does not say what to write; give a query"):
        desk.store.update_all(wrong, Parcel.weight.set(1))
    with pytest.raises(UsageError, match="parallel=0"):
        desk.store.delete_all(query, parallel=0)


def test_several_writes_at_a_time() -> None:
    async def main() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(depot)
            await store.put_many([Plain(name=f"p-{number}") for number in range(30)])
            everything = Plain.primary.scan().page_size(7)
            assert (await store.delete_all(everything, parallel=4)).written == 30
            assert await store.all(everything) == []

    asyncio.run(main())
    with isotone.connect(":memory:") as store:
        store.create_tables(depot)
        for number in range(30):
            store.put(Parcel(shelf="a", number=number))
        assert store.update_all(SHELF, Parcel.weight.add(1), parallel=3).written == 30
        assert {each.weight for each in store.all(SHELF)} == {1}


ITEM = st.tuples(st.sampled_from(["NEW", "OPEN", "DONE"]), st.integers(0, 5))
MEANWHILE = st.dictionaries(st.integers(0, 7), ITEM | st.none(), max_size=3)


@given(
    st.lists(ITEM, max_size=8),
    st.sampled_from(["NEW", "OPEN"]),
    st.integers(0, 5),
    st.integers(1, 4),
    MEANWHILE,
    st.booleans(),
)
@settings(
    max_examples=examples(120),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_only_what_the_query_still_finds_is_written(
    pool: Desk,
    items: list[Any],
    status: Any,
    least: int,
    size: int,
    meanwhile: dict[int, Any],
    deletes: bool,
) -> None:
    """Somebody else changes some entities after they were read: those are written only if they are still meant."""
    store = pool.store
    store.delete_all(SHELF)
    fill(pool, *items)
    values: dict[int, Any] = dict(enumerate(items))
    query = Parcel.by_status.where(Parcel.status == status, Parcel.weight >= least).page_size(size)
    meant = {
        number for number, (own, weight) in values.items() if own == status and weight >= least
    }
    by_index = sorted(meant, key=lambda number: (values[number][1], number))
    first_page = set(by_index[:size])

    def change() -> None:
        for number, item in meanwhile.items():
            if number not in first_page:
                continue
            if item is None:
                store.delete(Parcel, shelf="a", number=number)
                values.pop(number)
            else:
                store.put(Parcel(shelf="a", number=number, status=item[0], weight=item[1]))
                values[number] = item

    found = dict(values)
    result_of = (
        store.delete_all
        if deletes
        else lambda read: store.update_all(read, Parcel.weight.add(1000))
    )
    pool.before["Query"] = lambda: pool.before.update(GetItem=change)
    result = result_of(query)
    pool.before.clear()
    unchanged = {number for number in first_page if values.get(number) == found[number]}
    written = unchanged | (meant - first_page)
    met_again = moved_on(by_index, size, found, values, status=status) if deletes else set()
    written |= met_again
    seen = len(meant) + len(met_again)
    assert result == BulkProgress(seen, len(written), seen - len(written), True)
    if deletes:
        expected = {number: item for number, item in values.items() if number not in written}
    else:
        expected = {
            number: (own, weight + 1000 * (number in written))
            for number, (own, weight) in values.items()
        }
    assert {number: (own, weight) for number, own, weight in held(pool)} == expected


def moved_on(
    by_index: list[int],
    size: int,
    found: dict[int, Any],
    values: dict[int, Any],
    *,
    status: str,
) -> set[int]:
    """The entities of the first page that were moved behind it: the query meets them once more, as new ones."""
    if len(by_index) < size:
        return set()  # there is no second page
    end = by_index[size - 1]
    behind = (found[end][1], end)
    return {
        number
        for number in by_index[:size]
        if number in values
        and values[number] != found[number]
        and values[number][0] == status
        and (values[number][1], number) > behind
    }


@pytest.fixture(scope="module")
def pool() -> Iterator[Desk]:
    clock = isotone.ManualClock(START)
    with isotone.open(":memory:", clock=clock) as database:
        desk = Desk(database, clock)
        fill(desk)
        yield desk


# Pages


def test_pages_are_an_iterator(desk: Desk) -> None:
    fill(desk, *(("NEW", 1) for _ in range(6)))
    pages = list(desk.store.pages(SHELF, size=4))
    assert [[each.number for each in page] for page in pages] == [[0, 1, 2, 3], [4, 5]]
    assert [len(page) for page in desk.store.pages(SHELF, size=3)] == [3, 3]  # no empty one follows
    assert list(desk.store.pages(SHELF.filter(Parcel.weight > 5), size=3)) == []
    after = desk.store.pages(SHELF, size=3, cursor=pages[0].cursor)
    assert [[each.number for each in page] for page in after] == [[4, 5]]
    merged = isotone.merge(SHELF, Parcel.primary.where(Parcel.shelf == "b"))
    assert [len(page) for page in desk.store.pages(merged, size=4)] == [4, 2]
    asked = desk.operations(lambda: next(desk.store.pages(SHELF, size=2)))
    assert asked == ["Query"]


def test_pages_of_an_async_store() -> None:
    async def main() -> list[int]:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(depot)
            await store.put_many([Plain(name=f"p-{number}") for number in range(5)])
            everything = Plain.primary.scan()
            pages: list[Page[Plain]] = [page async for page in store.pages(everything, size=2)]
            return [len(page) for page in pages]

    assert asyncio.run(main()) == [2, 2, 1]


# One entity


def test_exists(desk: Desk) -> None:
    fill(desk, ("NEW", 1))
    store = desk.store
    assert store.exists(Parcel, shelf="a", number=0)
    assert store.exists(Parcel.primary.at(shelf="a", number=0), consistent=True)
    assert not store.exists(Parcel, shelf="a", number=1)
    (_, request) = desk.asked[-1]
    assert "ProjectionExpression" in request
    store.put(Shelf(shelf="s", until=START + timedelta(hours=1)))
    assert store.exists(Shelf, shelf="s")
    desk.clock.advance(timedelta(hours=2))
    assert not store.exists(Shelf, shelf="s")
    with pytest.raises(UsageError, match="number is missing"):
        store.exists(Parcel, shelf="a")
    wrong: Any = Parcel(shelf="a", number=0)
    with pytest.raises(UsageError, match="exists takes a class and its key's fields"):
        store.exists(wrong)


def test_an_item_of_another_kind_does_not_exist(desk: Desk) -> None:
    fill(desk, ("NEW", 1))
    key = Parcel.__schema__.primary_key({"shelf": "a", "number": 0})
    request = {"TableName": "depot", "Item": {**key, "_type": {"S": "Other"}}}
    desk.backend.execute("PutItem", request)
    assert not desk.store.exists(Parcel, shelf="a", number=0)


class Crate(Plain):
    bottles: Attr[int] = field(default=6)


def test_exists_by_a_unique_value_and_of_a_kind(desk: Desk) -> None:
    fill(desk)
    store = desk.store
    store.put(Parcel(shelf="a", number=1, note="mine"))
    assert store.exists(Parcel, note="mine")
    assert not store.exists(Parcel, note="yours")
    store.put(Crate(name="c"))
    store.put(Plain(name="p"))
    assert store.exists(Plain, name="c")
    assert store.exists(Crate, name="c")
    assert not store.exists(Crate, name="p")


def test_all_kinds_are_written(desk: Desk) -> None:
    fill(desk)
    store = desk.store
    store.put(Crate(name="c"))
    store.put(Plain(name="p"))
    crates = Crate.primary.scan()
    assert store.update_all(crates, Crate.bottles.add(1)).written == 1
    assert store.get(Plain, name="c") == Crate(name="c", bottles=7)
    assert store.delete_all(Plain.primary.scan().filter(Plain.name != "p")).written == 1
    assert [type(each) for each in store.all(Plain.primary.scan())] == [Plain]


numbers = {"GSI1": Global("GSI1PK", "GSI1SK")}


class Narrow(Entity, table=Table("repos", indexes=numbers), tag="Issue"):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=None)
    stars: Attr[int] = field(default=0, max=99, alert=None)

    primary = Key("REPO", repo).sort("ISSUE", number)
    by_stars = Index("GSI1", "REPO", repo).sort(stars, number)


class Wide(Entity, table=Table("repos", indexes=numbers), tag="Issue"):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=99_999, was=999, alert=None)
    stars: Attr[int] = field(default=0, max=99, alert=None)

    primary = Key("REPO", repo).sort("ISSUE", number)
    by_stars = Index("GSI1", "REPO", repo).sort(stars, number)


def test_all_are_written_while_keys_have_two_forms(desk: Desk) -> None:
    store = desk.store
    store.create_tables(Narrow.__schema__.table)
    for number in range(6):
        store.put(Narrow(repo="r", number=number, stars=number % 3))
    later = isotone.connect(desk, clock=desk.clock)
    query = Wide.by_stars.where(Wide.repo == "r", Wide.stars == 1)
    assert later.update_all(query, Wide.stars.set(2)).written == 2
    twos = Wide.by_stars.where(Wide.repo == "r", Wide.stars == 2)
    assert later.delete_all(twos).written == 4
    left = later.all(Wide.primary.where(Wide.repo == "r"))
    assert [each.number for each in left] == [0, 3]


def test_refresh_gives_the_stored_values(desk: Desk) -> None:
    fill(desk, ("NEW", 1))
    store = desk.store
    (parcel,) = store.all(SHELF)
    store.update(Parcel, Parcel.weight.set(7), shelf="a", number=0)
    parcel.status = "DONE"
    assert store.refresh(parcel) is parcel
    assert (parcel.weight, parcel.status) == (7, "NEW")
    (part,) = store.all(SHELF.select(Parcel.shelf, Parcel.number))
    assert store.refresh(part) == parcel
    (less,) = store.all(SHELF.select(Parcel.weight))
    with pytest.raises(UsageError, match="was read without its fields"):
        store.refresh(less)
    store.delete(parcel)
    with pytest.raises(NotFound, match="does not exist any more"):
        store.refresh(parcel)
    assert parcel.weight == 7


def test_touch_writes_the_time_and_the_version(desk: Desk) -> None:
    fill(desk)
    store = desk.store
    shelf = store.put(Shelf(shelf="a"))
    desk.clock.advance(timedelta(minutes=1))
    touched = store.touch(Shelf, shelf="a")
    assert (touched.revision, touched.seen_at, touched.first_at) == (
        2,
        START + timedelta(minutes=1),
        START,
    )
    assert [each.seen_at for each in store.all(Shelf.recent.where())] == [touched.seen_at]
    with pytest.raises(VersionConflict):
        store.touch(shelf)
    assert store.touch(store.refresh(shelf)).revision == 3
    with pytest.raises(NotFound):
        store.touch(Shelf, shelf="none")
    with pytest.raises(UsageError, match=r"neither an updated\(\) nor a version\(\)"):
        store.touch(Plain, name="a")
