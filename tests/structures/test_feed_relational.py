"""Followers of a relational database: SQLite's, and a real MariaDB server's."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.structures import mariadb_server

import isotone
from isotone.errors import ConnectionFailed, UsageError
from isotone.structures import Feed, RelationalFollowers, WorkerSettings
from isotone.structures.worker_members import WorkerMember

sql = pytest.importorskip("sqlalchemy")


@pytest.fixture(scope="module", params=["sqlite", "mariadb"])
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("followers")
    if request.param == "sqlite":
        made = sql.create_engine(f"sqlite:///{folder}/followers.db")
        yield made
        made.dispose()
        return
    if not mariadb_server.is_here():
        pytest.skip("mariadbd and mariadb-install-db, or pymysql, are not here")
    with mariadb_server.MariaDBServer(folder) as server:
        made = sql.create_engine(server.url)
        yield made
        made.dispose()


@pytest.fixture
def follows(engine: Any) -> Iterator[Any]:
    """The site's table of follows, empty."""
    names = sql.MetaData()
    table = sql.Table(
        "follows",
        names,
        sql.Column("author", sql.String(40), primary_key=True),
        sql.Column("reader", sql.String(40), primary_key=True),
        sql.Column("muted", sql.Boolean, nullable=False, default=False),
    )
    names.create_all(engine)
    yield table
    names.drop_all(engine)


def insert(engine: Any, table: Any, *rows: dict[str, Any]) -> None:
    with engine.begin() as connection:
        connection.execute(table.insert(), list(rows))


def every(source: RelationalFollowers, author: str, size: int) -> list[str]:
    """All followers, page by page."""
    found: list[str] = []
    while page := source.page(author, found[-1] if found else None, size):
        found += page
    return found


def test_all_followers_come_once_in_pages(engine: Any, follows: Any) -> None:
    readers = [f"reader {number}" for number in range(25)] + ["é", "Ä", "😀", "x'; --"]
    insert(engine, follows, *({"author": "ann", "reader": each} for each in readers))
    insert(engine, follows, {"author": "eve", "reader": "reader 1"})
    source = RelationalFollowers(engine, follows.c.author, follows.c.reader)
    for size in (1, 7, 100):
        found = every(source, "ann", size)
        assert len(found) == len(readers)
        assert set(found) == set(readers)
    assert (source.count("ann"), source.count("eve"), source.count("bob")) == (29, 1, 0)
    many = [*map(str, range(1200)), "ann", "eve"]
    assert set(source.followed("reader 1", many)) == {"ann", "eve"}
    assert not source.followed("reader 1", [])


def test_a_source_of_followers_reads_any_select(engine: Any, follows: Any) -> None:
    rows = [
        {"author": str(author), "reader": str(reader), "muted": reader == 3}
        for author in (7, 8)
        for reader in (10, 9, 3)
    ]
    insert(engine, follows, *rows)
    numbers = (
        sql.select(
            sql.cast(follows.c.author, sql.Integer).label("author"),
            sql.cast(follows.c.reader, sql.Integer).label("reader"),
            follows.c.muted,
        )
        .union_all(
            sql.select(
                sql.cast(follows.c.author, sql.Integer),
                sql.cast(follows.c.reader, sql.Integer),
                follows.c.muted,
            )
        )
        .subquery()
    )
    heard = numbers.c.muted == sql.false()
    source = RelationalFollowers(engine, numbers.c.author, numbers.c.reader, heard)
    assert every(source, "7", 1) == ["9", "10"]  # as numbers, and each once
    assert source.count("7") == 2
    assert source.followed("9", ["7", "8", "9"]) == {"7", "8"}


def test_a_feed_whose_followers_are_elsewhere(engine: Any, follows: Any) -> None:
    rows = [{"author": "ann", "reader": f"{number:04}"} for number in range(1050)]
    insert(engine, follows, *rows, {"author": "eve", "reader": "0000"})
    with isotone.connect() as store:
        source = RelationalFollowers(engine, follows.c.author, follows.c.reader)
        feed = Feed(store, followers=source, threshold=1040)
        feed.create_table()
        loud = feed.post("ann", "to very many")
        small = feed.post("eve", "to one")
        with engine.begin() as connection:
            connection.execute(follows.delete().where(follows.c.reader >= "1030"))
        brought = feed.post("ann", "to fewer")
        assert (loud.spread, brought.spread) == ("read", "write")
        worker = feed.worker()
        worker.create_tables(store)
        member = WorkerMember(worker.plan, store)
        member.coordinate()
        while member.work():
            pass
        member.release()
        assert feed.read("0000").items == [brought, small, loud]
        assert feed.read("1029").items == [brought, loud]
        assert feed.read("1030").items == []
        insert(engine, follows, {"author": "eve", "reader": "1029"})
        assert feed.backfill("1029", "eve") == 1
        assert feed.read("1029").items == [brought, small, loud]
        with pytest.raises(UsageError, match="outside"):
            feed.follow("1030", "eve")


def test_posts_wait_for_a_database_that_does_not_answer(tmp_path: Path) -> None:
    refusals = 0

    def connect() -> sqlite3.Connection:
        nonlocal refusals
        if refusals:
            refusals -= 1
            raise sqlite3.OperationalError("unable to open database file")
        return sqlite3.connect(tmp_path / "followers.db")

    engine = sql.create_engine("sqlite://", creator=connect, poolclass=sql.NullPool)
    table = sql.Table("f", sql.MetaData(), sql.Column("author"), sql.Column("reader"))
    follows = sql.text("CREATE TABLE f AS SELECT 'ann' AS author, 'bob' AS reader")
    with engine.begin() as connection:
        connection.execute(follows)
    author, reader = (sql.cast(each, sql.String) for each in (table.c.author, table.c.reader))
    with isotone.connect() as store:
        feed = Feed(store, followers=RelationalFollowers(engine, author, reader))
        feed.create_table()
        worker = feed.worker(settings=WorkerSettings(base=0.0, attempts=2))
        worker.create_tables(store)
        post = feed.post("ann", "hello")
        refusals = 7
        assert worker.run(store, until_idle=True).dead_letters == 0
        assert feed.read("bob").items == [post]
        refusals = 1
        with pytest.raises(ConnectionFailed, match="unable to open"):
            feed.read("bob")
    engine.dispose()


def test_without_sqlalchemy_it_says_what_to_install(
    engine: Any, follows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(UsageError, match=r"pip install 'isotone\[sqlalchemy\]"):
        RelationalFollowers(engine, follows.c.author, follows.c.reader)
