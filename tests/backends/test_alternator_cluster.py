"""Three `isotone serve` on one file behind `alternator://`: one is killed in the middle of a program's run."""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.cluster import Cluster

import isotone
from isotone import Attr, Entity, Key, Table, field
from isotone.errors import ConnectionFailed

notes = Table("notes")


class Note(Entity, table=notes):
    author: Attr[str] = field()
    number: Attr[int] = field(max=9999)
    text: Attr[str] = field(default="")
    primary = Key("AUTHOR", author).sort(number)


class Tally(Entity, table=notes):
    name: Attr[str] = field()
    value: Attr[int] = field(default=0)
    primary = Key("TALLY", name).sort("TALLY")


def test_nothing_fails_that_need_not_when_a_node_is_killed(tmp_path: Path) -> None:
    """Four threads put and read back; another one adds. Only an addition may fail, and then it says so."""
    with Cluster(tmp_path / "notes.db") as cluster, isotone.connect(cluster.url) as store:
        store.create_tables(notes)
        store.put(Tally(name="all"))
        store.put(Note(author="none", number=0))  # the keys of both are recorded from here on

        def write(author: str) -> int:
            for number in range(60):
                store.put(Note(author=author, number=number, text="x" * number))
                got = store.get(Note, author=author, number=number)
                assert got is not None
                assert got.text == "x" * number
                if author == "a" and number == 15:
                    cluster.kill(1)
            return len(store.all(Note.primary.where(Note.author == author)))

        def add() -> tuple[int, int]:
            added = unclear = 0
            for _ in range(120):
                try:
                    store.update(Tally, Tally.value.add(1), name="all")
                    added += 1
                except ConnectionFailed as error:
                    said.append(str(error))
                    unclear += 1
            return added, unclear

        said: list[str] = []

        with ThreadPoolExecutor(5) as pool:
            adding = pool.submit(add)
            assert list(pool.map(write, "abcd")) == [60] * 4
            added, unclear = adding.result()
        tally = store.get(Tally, name="all")
        assert tally is not None
        assert added + unclear == 120
        assert added <= tally.value <= added + unclear
        assert all("may have executed it" in each for each in said)
        assert unclear <= 1  # what the killed node was just executing
    with isotone.open(tmp_path / "notes.db") as database:
        assert database.check() == []


def test_an_async_program_continues_too(tmp_path: Path) -> None:
    async def main(cluster: Cluster) -> None:
        async with isotone.aconnect(cluster.url) as store:
            await store.create_tables(notes)

            async def write(author: str) -> None:
                for number in range(30):
                    await store.put(Note(author=author, number=number))
                    if author == "a" and number == 10:
                        await asyncio.to_thread(cluster.kill, 0)

            await asyncio.gather(*map(write, "abc"))
            for author in "abc":
                found = await store.all(Note.primary.where(Note.author == author))
                assert [note.number for note in found] == list(range(30))

    with Cluster(tmp_path / "notes.db") as cluster:
        asyncio.run(main(cluster))


def ask(host: str, port: int, path: str) -> object:
    connection = http.client.HTTPConnection(host, port, timeout=10)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def test_each_server_lists_all(tmp_path: Path) -> None:
    with Cluster(tmp_path / "a.db", 2) as cluster:
        (first, port), (_, other) = cluster.nodes
        assert ask(first, port, "/localnodes?dc=any") == [f"127.0.0.1:{port}", f"127.0.0.1:{other}"]


LOOPBACK = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_servers_with_one_port_are_listed_as_alternator_lists_them(tmp_path: Path) -> None:
    with Cluster(tmp_path / "a.db", hosts=LOOPBACK) as cluster:
        for host, port in cluster.nodes:
            assert ask(host, port, "/localnodes") == list(LOOPBACK)
        with isotone.connect(f"alternator://127.0.0.2:{cluster.nodes[0][1]}") as store:
            store.create_tables(notes)
            cluster.kill(1)
            store.put(Note(author="ann", number=1))


@pytest.mark.skipif(
    sys.platform != "linux" or importlib.util.find_spec("alternator") is None,
    reason="alternator-client is not installed, or there is only one loopback address",
)
def test_scyllas_own_client_finds_the_nodes(tmp_path: Path) -> None:
    import alternator

    with Cluster(tmp_path / "a.db", hosts=LOOPBACK) as cluster:
        with isotone.connect(cluster.url) as store:
            store.create_tables(notes)
        key = {"PK": {"S": "a"}, "SK": {"S": "b"}}
        auth = alternator.Auth.static_credentials("any", "any")
        port = cluster.nodes[0][1]
        with alternator.client([LOOPBACK[0]], port=port, auth=auth) as client:
            for number in range(12):
                client.put_item(TableName="notes", Item=key)
                if number == 5:
                    cluster.kill(2)
            assert client.get_item(TableName="notes", Key=key)["Item"] == key
