"""Structures are found in the tables, and shown as what they are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.intercepted_backend import InterceptedBackend, refuse
from tests.workbench.page import Browserless

import isotone
from isotone import ManualClock
from isotone.errors import AccessDeniedException, TrimmedDataAccessException, UsageError
from isotone.server import running_server
from isotone.structures import (
    Context,
    Feed,
    Leaderboard,
    Queue,
    SortedSet,
    Worker,
    WorkerSettings,
)
from isotone.workbench import Workbench, structures


@pytest.fixture
def shown() -> Iterator[Browserless]:
    with isotone.open() as database, isotone.connect(database) as store:
        songs = SortedSet(store, "songs", table=SortedSet.layout("charts"))
        board = Leaderboard(store, "speed", score="average", best="lowest")
        queue = Queue(store, "orders")
        feed = Feed(store, "site")
        for each in (songs, board, queue, feed):
            each.create_table()
        songs.zadd({"one": 1.5, "two": 20, "three": 3})
        for member, seconds in (("a", 30), ("b", 10), ("b", 20), ("c", 15)):
            board.record(member, seconds)
        queue.put_many([{"order": number} for number in range(4)])
        queue.put("later", delay=timedelta(hours=1).total_seconds())
        first, second = queue.claim(2)
        queue.bury(first, "refused")
        assert second.attempts == 1
        feed.post("ann", "first")
        feed.post("eve", "<b>second</b>")
        with running_server(database, pages=Workbench(database, target=":memory:")) as url:
            yield Browserless(url)


def one(shown: Browserless, kind: str, table: str, name: str, **more: Any) -> Any:
    return shown.call("structure", {"kind": kind, "table": table, "name": name, **more})


def test_all_structures_are_found(shown):
    found = shown.call("structures")["structures"]
    assert [(each["kind"], each["table"], each["name"]) for each in found] == [
        ("feed", "feeds", "site"),
        ("leaderboard", "leaderboards", "speed"),
        ("queue", "queues", "orders"),
        ("set", "charts", "songs"),
    ]


class Guarded:
    """An engine that has tables which may not be scanned, or are deleted after they are listed."""

    def __init__(self, backend):
        self._backend = backend

    def execute(self, operation, request, deadline=None):
        if operation == "ListTables":
            names = self._backend.execute(operation, request)["TableNames"]
            return {"TableNames": ["Deleted", "Secret", *names]}
        if request.get("TableName") == "Secret":
            raise AccessDeniedException("you may not Scan")
        return self._backend.execute(operation, request, deadline)


def test_a_table_that_cannot_be_read_hides_no_structure_of_others():
    with isotone.open() as database, isotone.connect(database, report=None) as store:
        songs = SortedSet(store, "songs")
        songs.create_table()
        songs.zadd({"one": 1})
        found = structures.structures(Guarded(database))
        assert [each["name"] for each in found["structures"]] == ["songs"]
        assert found["denied"] == ["Secret"]


def test_a_set_is_ranked_by_score(shown):
    rows = one(shown, "set", "charts", "songs")["rows"]
    assert [(row["rank"], row["member"], row["score"]) for row in rows] == [
        (1, "two", "20"),
        (2, "three", "3"),
        (3, "one", "1.5"),
    ]


def test_a_set_may_begin_with_its_lowest_score(shown):
    rows = one(shown, "set", "charts", "songs", order="lowest")["rows"]
    assert [row["member"] for row in rows] == ["one", "three", "two"]


def test_a_leaderboard_keeps_ties(shown):
    rows = one(shown, "leaderboard", "leaderboards", "speed", order="lowest")["rows"]
    assert sorted((row["rank"], row["member"], row["score"]) for row in rows) == [
        (1, "b", "15"),
        (1, "c", "15"),
        (3, "a", "30"),
    ]


BOARDS = [
    {"score": "sum"},
    {"score": "average", "best": "lowest", "scale": 2},
    {"score": "best", "shards": 3},
    {"score": "best", "best": "lowest"},
    {"score": "last", "ties": "dense"},
    {"window": "hour", "history": True},
    {"window": "day", "history": True, "shards": 2, "best": "lowest", "scale": 1},
]


@pytest.mark.parametrize("options", BOARDS, ids=str)
def test_a_leaderboard_is_ranked_as_it_ranks_itself(options, monkeypatch):
    """Also where its older windows alone have more entries than a page."""
    monkeypatch.setattr(structures, "_SHOWN", 20)
    clock = ManualClock(datetime(2026, 1, 11, 9, tzinfo=UTC))
    chance = random.Random(7)
    told = options.get("score") == "best"  # then the entries tell which one is
    lowest = None if told else options.get("best") == "lowest"
    with isotone.open() as database, isotone.connect(database, clock=clock, report=None) as store:
        board = Leaderboard(store, "board", **options)
        Leaderboard(store, "other").create_table()
        Leaderboard(store, "other").record("x", 1)
        for _ in range(3):
            clock.advance(86_400)
            for member in range(30):
                for _ in range(2):
                    board.record(f"m{member:02}", Decimal(chance.randrange(-40, 40)) / 8)
        best = board.top(20)
        found = structures.structure(
            database, "leaderboard", "leaderboards", "board", datetime.now(UTC), lowest=lowest
        )
        assert [(row["rank"], Decimal(row["score"])) for row in found["rows"]] == [
            (each.rank, each.score) for each in best
        ]
        names = [each["name"] for each in structures.structures(database)["structures"]]
        assert names == ["board", "other"]


def test_a_queue_has_its_states(shown):
    found = one(shown, "queue", "queues", "orders")
    assert found["counts"] == {"ready": 2, "delayed": 1, "in flight": 1, "dead": 1}
    (dead,) = (row for row in found["rows"] if row["state"] == "dead")
    assert dead["reason"] == "refused"


def test_many_messages_of_one_state_hide_none_of_another(shown, monkeypatch):
    monkeypatch.setattr(structures, "_SHOWN", 1)
    found = one(shown, "queue", "queues", "orders")
    assert found["counts"]["ready"] == 2
    assert sorted(row["state"] for row in found["rows"]) == [
        "dead",
        "delayed",
        "in flight",
        "ready",
    ]


def test_a_feed_is_newest_first(shown):
    rows = one(shown, "feed", "feeds", "site")["rows"]
    assert [(row["author"], row["content"]) for row in rows] == [
        ("eve", "<b>second</b>"),
        ("ann", "first"),
    ]


def test_a_worker_has_its_lag_and_its_dead_letters():
    site = isotone.Table("site", stream="NEW_AND_OLD_IMAGES")

    class Post(isotone.Entity, table=site):
        author: isotone.Attr[str] = isotone.field()
        text: isotone.Attr[str] = isotone.field()

        primary = isotone.Key("POST", author).sort("TEXT", text)

    settings = WorkerSettings(attempts=1)
    worker = Worker("fan-out", site, settings=settings)

    @worker.on(Post, "inserted")
    def deliver(event: isotone.Event[Post], context: Context) -> None:
        if event.entity.text == "bad":
            raise ValueError("<b>refused</b>")

    with isotone.open() as database, isotone.connect(database, report=None) as store:
        worker.create_tables(store)
        store.put(Post(author="ann", text="good"))
        store.put(Post(author="ann", text="bad"))
        worker.run(store, until_idle=True)
        with running_server(database, pages=Workbench(database, target=":memory:")) as url:
            page = Browserless(url)
            names = [(each["kind"], each["name"]) for each in page.call("structures")["structures"]]
            assert names == [("worker", "fan-out")]
            found = one(page, "worker", "site.workers", "fan-out")
            assert (found["lag"], found["shards"], found["dead_letters"]) == (0.0, 1, 1)
            assert found["dead"][0]["handler"] == "deliver"
            assert "<b>refused</b>" in found["dead"][0]["error"]
            for number in range(3):
                store.put(Post(author="eve", text=str(number)))
            (shard,) = one(page, "worker", "site.workers", "fan-out")["rows"]
            assert (shard["waiting"], shard["is_more"]) == (3, False)
            assert 0 <= shard["lag"] < 60
            worker.run(store, until_idle=True)
            assert one(page, "worker", "site.workers", "fan-out")["lag"] == 0


def test_a_worker_that_may_have_lost_changes_says_so():
    site = isotone.Table("site", stream="NEW_AND_OLD_IMAGES")

    class Post(isotone.Entity, table=site):
        author: isotone.Attr[str] = isotone.field()

        primary = isotone.Key("POST", author).sort("TEXT")

    worker = Worker("fan-out", site)

    @worker.on(Post, "inserted")
    def deliver(event: isotone.Event[Post], context: Context) -> None:
        """Nothing is to be done."""

    dropped = refuse(
        TrimmedDataAccessException("trimmed"),
        lambda _, given: given.get("ShardIteratorType") == "AFTER_SEQUENCE_NUMBER",
    )
    with isotone.open() as database, isotone.connect(database, report=None) as store:
        worker.create_tables(store)
        store.put(Post(author="ann"))
        worker.run(store, until_idle=True)
        now = datetime.now(UTC)
        given = ("worker", "site.workers", "fan-out", now)
        assert structures.structure(database, *given)["is_lost"] is False
        found = structures.structure(InterceptedBackend(database, dropped), *given)
        assert found["is_lost"] is True
        assert found["rows"][0]["waiting"] >= 1


def test_what_is_not_there_has_no_rows(shown):
    assert one(shown, "queue", "queues", "other")["rows"] == []
    assert one(shown, "nothing", "queues", "orders")["rows"] == []


@pytest.mark.parametrize(
    "options",
    ["", "sum", "sum, 6.0 digits, 1000000000 shards", "sum, 6.999999999 digits", "1.1 digits, x"],
)
def test_a_leaderboard_of_odd_options_is_refused(options):
    """Its options are data: they do not decide how long the server works."""
    with isotone.open() as database, isotone.connect(database, report=None) as store:
        board = Leaderboard(store, "board")
        board.create_table()
        board.record("ann", 1)
        (item,) = [
            each
            for each in database.execute("Scan", {"TableName": "leaderboards"})["Items"]
            if each.get("place")
        ]
        odd = {**item, "kind": {"S": options}, "total": {"S": "x"}}
        database.execute("PutItem", {"TableName": "leaderboards", "Item": odd})
        with pytest.raises(UsageError, match="not its form"):
            structures.structure(
                database, "leaderboard", "leaderboards", "board", datetime.now(UTC)
            )


def test_items_that_look_like_structures_break_nothing():
    """A tag may be of any type, and an item may have the tag of a structure without its attributes."""
    with isotone.open() as database:
        key = {"AttributeName": "id", "KeyType": "HASH"}
        definition = {"AttributeName": "id", "AttributeType": "S"}
        table = {"KeySchema": [key], "AttributeDefinitions": [definition]}
        database.execute(
            "CreateTable", {"TableName": "odd", "BillingMode": "PAY_PER_REQUEST", **table}
        )
        for number, tag in enumerate([{"L": []}, {"SS": ["QueueEntry"]}, {"S": "QueueEntry"}]):
            item = {"id": {"S": str(number)}, "_type": tag, "queue": {"S": "q"}}
            database.execute("PutItem", {"TableName": "odd", "Item": item})
        with running_server(database, pages=Workbench(database, target=":memory:")) as url:
            page = Browserless(url)
            (found,) = page.call("structures")["structures"]
            assert (found["kind"], found["name"], found["items"]) == ("queue", "q", 1)
            error = one(page, "queue", "odd", "q")["error"]
            assert error["code"] == "UsageError"
            assert "have the tag of a queue, and not its form" in error["message"]
