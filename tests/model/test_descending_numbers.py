"""A number in descending order that is the table's own key attribute: stored subtracted, read as it is."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.model.conftest import Desk

import isotone
from isotone import Attr, Entity, Global, Index, Key, Local, Number, Table, desc, field
from isotone.errors import KeysChanged, OutOfRange, UsageError

LONG_MAX = 2**63 - 1

ticks = Table(
    "ticks",
    partition="user",
    sort=Number("range_key"),
    indexes={
        "by_score": Local(Number("score_key")),
        "all": Global("kind", Number("score_key")),
    },
)


class Post(Entity, table=ticks):
    user: Attr[str] = field()
    at: Attr[int] = field(max=LONG_MAX, alert=None)
    score: Attr[Decimal] = field(default=Decimal(0))
    text: Attr[str] = field(default="")

    primary = Key(user).sort(desc(at))
    by_score = Index("by_score", user).sort(desc(score))


@pytest.fixture
def store(desk: Desk) -> isotone.Store:
    desk.store.create_tables(ticks)
    return desk.store


def test_the_stored_number_is_subtracted(desk: Desk, store: isotone.Store) -> None:
    post = store.put(Post(user="ann", at=1_000, score=Decimal("-1.5"), text="a"))
    item = desk.item(post)
    assert item["range_key"] == {"N": str(LONG_MAX - 1_000)}
    assert item["score_key"] == {"N": "1.5"}
    assert (item["at"], item["score"]) == ({"N": "1000"}, {"N": "-1.5"})
    assert store.get(Post, user="ann", at=1_000) == post
    changed = store.update(Post, Post.score.set(Decimal("2.25")), user="ann", at=1_000)
    assert desk.item(changed) == desk.item(store.put(changed))
    assert desk.item(changed)["score_key"] == {"N": "-2.25"}
    assert store.update(Post, Post.score.add(1), user="ann", at=1_000).score == Decimal("3.25")
    assert desk.item(changed)["score_key"] == {"N": "-3.25"}
    request = Post.primary.where(Post.user == "ann", Post.at > 5).request()
    assert request["KeyConditionExpression"].endswith("range_key < :v1")
    assert request["ExpressionAttributeValues"][":v1"] == {"N": str(LONG_MAX - 5)}


def test_items_of_another_program_are_read_from_the_key(desk: Desk, store: isotone.Store) -> None:
    """As the Java program of the feed writes them: `Long.MAX_VALUE - System.nanoTime()`."""
    for nanoseconds in (30, 10, 20):
        item = {
            "user": {"S": "ann"},
            "range_key": {"N": str(LONG_MAX - nanoseconds)},
            "text": {"S": "hello"},
        }
        desk.backend.execute("PutItem", {"TableName": "ticks", "Item": item})
    feed = store.all(Post.primary.where(Post.user == "ann"))
    assert [post.at for post in feed] == [30, 20, 10]
    older = Post.primary.where(Post.user == "ann", Post.at <= 20)
    assert [post.at for post in store.all(older)] == [20, 10]
    assert [post.at for post in store.page(older, size=1).items] == [20]


def test_pages_in_both_directions(store: isotone.Store) -> None:
    for at in range(1, 8):
        store.put(Post(user="ann", at=at))
    query = Post.primary.where(Post.user == "ann")
    page = store.page(query, size=3)
    assert [post.at for post in page] == [7, 6, 5]
    page = store.page(query, size=3, cursor=page.cursor)
    assert [post.at for post in page] == [4, 3, 2]
    assert [post.at for post in store.page(query, size=3, cursor=page.previous)] == [7, 6, 5]
    assert [post.at for post in store.all(query.newest_first())] == [7, 6, 5, 4, 3, 2, 1]
    assert [post.at for post in store.all(query.oldest_first().limit(2))] == [1, 2]
    assert [post.at for post in store.iterate(query.filter(Post.score == 0))] == [
        7,
        6,
        5,
        4,
        3,
        2,
        1,
    ]


def test_a_change_of_direction_is_noticed(desk: Desk) -> None:
    def declared(part: Any) -> Any:
        class Point(Entity, table=Table("points", sort=Number("N"))):
            name: Attr[str] = field()
            number: Attr[int] = field()
            primary = Key("P", name).sort(part(number))

        return Point

    up, down = declared(lambda number: number), declared(desc)
    desk.store.create_tables(up.__schema__.table)
    desk.store.put(up(name="a", number=1))
    later = isotone.connect(desk.backend, clock=desk.clock)
    with pytest.raises(
        KeysChanged, match=r"\{number\}, and is declared as \{number: subtracted from 0\}"
    ):
        later.get(down, name="a", number=1)


def test_what_cannot_be_descending() -> None:
    with pytest.raises(UsageError, match="cannot be the field's own attribute"):

        class Wrong(Entity, table=Table("wrong1", sort=Number("at"))):
            name: Attr[str] = field()
            at: Attr[int] = field()
            primary = Key("P", name).sort(desc(at))

    with pytest.raises(UsageError, match="only numbers can; read it with"):

        class Wrong2(Entity, table=Table("wrong2", sort="name")):
            group: Attr[str] = field()
            name: Attr[str] = field()
            primary = Key("P", group).sort(desc(name))

    big = Table("big", sort=Number("N"))

    class Big(Entity, table=big):
        name: Attr[str] = field()
        number: Attr[Decimal] = field(max=10**30)
        primary = Key("P", name).sort(desc(number))

    with pytest.raises(OutOfRange, match="more than 38 digits"):
        Big.primary.at(name="a", number=Decimal("0.1234567890123"))


def test_an_async_store() -> None:
    async def talk() -> None:
        async with isotone.aconnect() as store:
            await store.create_tables(ticks)
            for at in (1, 3, 2):
                await store.put(Post(user="a", at=at))
            found = await store.all(Post.primary.where(Post.user == "a", Post.at.between(1, 2)))
            assert [post.at for post in found] == [2, 1]

    asyncio.run(talk())


scores = st.decimals(min_value=-(10**9), max_value=10**9, places=4, allow_nan=False)
conditions = st.sampled_from(["<", "<=", ">", ">=", "==", "between", "both"])


@given(st.lists(scores, unique=True, max_size=12), conditions, scores, scores)
def test_conditions_mean_what_they_say(
    stored: list[Decimal], operator: str, one: Decimal, other: Decimal
) -> None:
    low, high = sorted((one, other))
    column: Any = Post.score
    tests: dict[str, Any] = {
        "<": ([column < one], lambda each: each < one),
        "<=": ([column <= one], lambda each: each <= one),
        ">": ([column > one], lambda each: each > one),
        ">=": ([column >= one], lambda each: each >= one),
        "==": ([column == one], lambda each: each == one),
        "between": ([column.between(low, high)], lambda each: low <= each <= high),
        "both": ([column > low, column < high], lambda each: low < each < high),
    }
    asked, is_wanted = tests[operator]
    with isotone.connect() as store:
        store.create_tables(ticks)
        for at, score in enumerate([*stored, one]):
            store.put(Post(user="u", at=at, score=score))
        expected = sorted(filter(is_wanted, [*stored, one]), reverse=True)
        query = Post.by_score.where(Post.user == "u", *asked)
        assert [post.score for post in store.all(query)] == expected
        assert [post.score for post in store.all(query.oldest_first())] == expected[::-1]
        assert store.count(query) == len(expected)
        assert not store.verify(Post).findings


def test_the_direction_has_neutral_names() -> None:
    for query in (
        Post.primary.where(Post.user == "ann"),
        Post.by_score.where(Post.user == "ann").reversed(),
    ):
        assert query.descending().request() == query.newest_first().request()
        assert query.ascending().request() == query.oldest_first().request()
        assert query.descending().request() != query.ascending().request()
