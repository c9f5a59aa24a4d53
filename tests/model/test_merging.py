"""A merge is read as one query: in the common order, page by page in both directions, nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Global, Index, Key, Merge, Query, Store, Table, desc, field
from isotone.errors import InvalidCursor, InvalidItem, TooMany, UsageError

site = Table("site", indexes={"latest": Global("LPK", "LSK")})
START = datetime(2026, 3, 1, tzinfo=UTC)


class Post(Entity, table=site):
    author: Attr[str] = field()
    at: Attr[datetime] = field()
    number: Attr[int] = field(max=999)

    primary = Key("AUTHOR", author).sort("POST", at, number)
    latest = Index("latest", "LATEST", author).sort(desc(number))


class Photo(Entity, table=site):
    owner: Attr[str] = field()
    taken: Attr[datetime] = field()

    primary = Key("OWNER", owner).sort("PHOTO", desc(taken))


def posts_of(author: str) -> Query[Post]:
    return Post.primary.where(Post.author == author)


def post(author: str, minute: int, number: int) -> Post:
    return Post(author=author, at=START + timedelta(minutes=minute), number=number)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect() as store:
        store.create_tables(site)
        yield store


POSTS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(0, 12)), unique=True, max_size=40
).map(lambda rows: [post(author, minute, number) for number, (author, minute) in enumerate(rows)])


def expected(posts: list[Post], authors: str, *, newest: bool) -> list[Post]:
    """The naive merge: sorted by time, and with equal times by author, in the order of the queries."""
    places = {author: place for place, author in enumerate(authors)}
    chosen = sorted(
        (each for each in posts if each.author in authors), key=lambda each: places[each.author]
    )
    return sorted(chosen, key=lambda each: each.at, reverse=newest)


@given(POSTS, st.permutations("abcde"), st.integers(0, 5), st.booleans(), st.integers(1, 7))
def test_pages_forward_and_back_are_those_of_one_sorted_list(
    posts: list[Post], order: list[str], chosen: int, newest: bool, size: int
) -> None:
    authors = "".join(order)[:chosen]
    with isotone.connect() as store:
        store.create_tables(site)
        store.put_many(posts)
        queries = [posts_of(author) for author in authors]
        merged = isotone.merge(*(each.newest_first() if newest else each for each in queries))
        whole = expected(posts, authors, newest=newest)
        assert store.all(merged) == list(store.iterate(merged)) == whole
        assert store.first(merged) == (whole[0] if whole else None)
        assert store.count(merged) == len(whole)

        pages = [store.page(merged, size=size)]
        while (cursor := pages[-1].cursor) is not None:
            pages.append(store.page(merged, size=size, cursor=cursor))
        assert [each for page in pages for each in page] == whole
        assert all(len(page) == size for page in pages[:-1])
        assert pages[0].previous is None

        page = pages[-1]
        for earlier in reversed(pages[:-1]):
            assert page.previous is not None
            page = store.page(merged, size=size, cursor=page.previous)
            assert page.items == earlier.items
        assert page.previous is None
        again = store.page(merged, size=size)
        assert [*again.items] == whole[:size]


@given(POSTS, POSTS, st.integers(1, 5))
def test_what_is_written_in_between_moves_nothing_else(
    posts: list[Post], late: list[Post], size: int
) -> None:
    with isotone.connect() as store:
        store.create_tables(site)
        store.put_many(posts)
        merged = isotone.merge(*map(posts_of, "abcde"))
        page = store.page(merged, size=size)
        seen = page.items
        for each in late:
            store.put(each.replace(number=each.number + 100))
        while page.cursor is not None:
            page = store.page(merged, size=size, cursor=page.cursor)
            assert [each.at for each in page] == sorted(each.at for each in page)
            seen += page.items
        old = [each for each in seen if each.number < 100]
        assert sorted(old, key=repr) == sorted(posts, key=repr)


def test_a_page_costs_little_more_than_its_items(store: Store) -> None:
    for number in range(100):
        store.put(post("abcd"[number % 4], number, number))
    page = store.page(isotone.merge(*map(posts_of, "abcd")), size=20)
    assert [each.number for each in page] == list(range(20))
    assert page.stats.scanned <= 20 + 4 * 3
    assert page.stats.returned == 20


def test_several_kinds_are_merged_by_a_field_of_one_type(store: Store) -> None:
    store.put(post("ann", 1, 1))
    store.put(post("ann", 3, 2))
    store.put(Photo(owner="ann", taken=START + timedelta(minutes=2)))
    photos = Photo.primary.where(Photo.owner == "ann").oldest_first()
    both: Merge[Post | Photo] = isotone.merge(posts_of("ann"), photos)
    assert [type(each) for each in store.all(both)] == [Post, Photo, Post]
    newest = isotone.merge(posts_of("ann").newest_first(), photos.newest_first())
    assert [type(each) for each in store.page(newest, size=2)] == [Post, Photo]


def test_an_index_with_a_descending_number(store: Store) -> None:
    for number in range(9):
        store.put(post("abc"[number % 3], 0, number))
    queries = [Post.latest.where(Post.author == author) for author in "abc"]
    page = store.page(isotone.merge(*queries), size=4)
    assert [each.number for each in page] == [8, 7, 6, 5]


def test_a_cursor_belongs_to_the_same_queries(store: Store) -> None:
    store.put_many(post(author, minute, 1) for author in "ab" for minute in range(5))
    cursor = store.page(isotone.merge(posts_of("a"), posts_of("b")), size=2).cursor
    with pytest.raises(InvalidCursor, match="another query"):
        store.page(isotone.merge(posts_of("a")), size=2, cursor=cursor)
    with pytest.raises(InvalidCursor, match="another query"):
        store.page(posts_of("a"), size=2, cursor=cursor)


def test_queries_without_a_common_order_are_refused() -> None:
    photos = Photo.primary.where(Photo.owner == "ann")  # newest first, as its key is
    with pytest.raises(UsageError, match=r"'at' ascending, and .* 'taken' descending"):
        isotone.merge(posts_of("ann"), photos)
    with pytest.raises(UsageError, match="no common order"):
        isotone.merge(posts_of("ann").newest_first(), Post.latest.where(Post.author == "ann"))
    one = Post.primary.where(Post.author == "ann", Post.at == START, Post.number == 1)
    with pytest.raises(UsageError, match="no order to merge by"):
        isotone.merge(one)
    with pytest.raises(UsageError, match=r"limit\(…\)"):
        isotone.merge(posts_of("ann").limit(5))
    with pytest.raises(UsageError, match="select it, too"):
        isotone.merge(posts_of("ann").select(Post.number))
    with pytest.raises(UsageError, match="give queries"):
        isotone.merge(Post.primary.scan())  # type: ignore[arg-type] # a program without a type checker


def test_all_stops_at_its_bound(store: Store) -> None:
    store.put_many(post(author, minute, 1) for author in "ab" for minute in range(5))
    merged = isotone.merge(posts_of("a"), posts_of("b"))
    assert len(store.all(merged, at_most=10)) == 10
    with pytest.raises(TooMany):
        store.all(merged, at_most=9)


def test_invalid_items_are_raised_or_collected(store: Store) -> None:
    store.put_many(post(author, minute, 1) for author in "ab" for minute in range(3))
    client = store.backend.client()  # type: ignore[attr-defined] # an embedded database has one
    item = client.scan(TableName="site")["Items"][0]
    client.put_item(TableName="site", Item={**item, "number": {"S": "x"}})
    with pytest.raises(InvalidItem):
        store.page(isotone.merge(posts_of("a"), posts_of("b")), size=9)
    queries = [posts_of(author).on_invalid("collect") for author in "ab"]
    page = store.page(isotone.merge(*queries), size=9)
    assert (len(page), len(page.invalid), page.stats.invalid) == (5, 1, 1)


def test_an_awaited_store_reads_merges() -> None:
    async def main() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(site)
            await store.put_many(post(author, minute, 1) for author in "ab" for minute in range(3))
            merged = isotone.merge(posts_of("a"), posts_of("b"))
            page = await store.page(merged, size=4)
            rest = await store.page(merged, size=4, cursor=page.cursor)
            assert [each async for each in store.iterate(merged)] == [*page, *rest]

    asyncio.run(main())
