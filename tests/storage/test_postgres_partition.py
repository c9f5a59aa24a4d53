"""A network between a store and PostgreSQL that drops, delays, half-closes and resets, by a proxy on a Unix socket."""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Self

import pytest
from tests.postgres_server import PostgresServer, needs_postgres, shared
from tests.storage import integrity

from isotone.errors import StorageError

psycopg = pytest.importorskip("psycopg")
pytestmark = needs_postgres

SOCKET = ".s.PGSQL.5432"


class Proxy:
    """Passes bytes on to a server of PostgreSQL, until it is told otherwise.

    `swallow` keeps what the server answers from then on, `delay` holds back each answer, `half_close` ends the direction
    from the server, `reset` ends all connections.
    """

    def __init__(self, server: PostgresServer) -> None:
        self._server = str(server.folder / SOCKET)
        self.folder = Path(tempfile.mkdtemp(prefix="isotone-proxy-"))
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(self.folder / SOCKET))
        self._listening.listen()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self.swallows = False
        self.delay = 0.0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self.reset()
        shutil.rmtree(self.folder)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server)
                self._pairs.append((client, server))
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        is_answer = any(target is client for client, _ in self._pairs)
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer and self.delay:
                    time.sleep(self.delay)
                if not (is_answer and self.swallows):
                    target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def half_close(self) -> None:
        for client, _ in self._pairs:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        pairs, self._pairs = self._pairs, []
        for end in (end for pair in pairs for end in pair):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Proxy(shared()) as proxy:
        yield proxy


@pytest.fixture
def store(proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    from isotone.storage import postgres_connection
    from isotone.storage.postgres import PostgresStore

    monkeypatch.setattr(postgres_connection, "REPLY_TIMEOUT", 1.0)
    monkeypatch.setattr(postgres_connection, "_BACK_OFF", 0.0)
    address = shared().new_address().replace(str(shared().folder), str(proxy.folder))
    address += "&connect_timeout=2"
    with closing(PostgresStore(address)) as store:
        with store.transaction():
            store.create_tree("t")
            store.put("t", b"a", b"0")
        yield store
        proxy.swallows, proxy.delay = False, 0.0
        proxy.reset()
        after_a_while(store)
        assert integrity.check(store) == []


def after_a_while(store: Any) -> bytes | None:
    """The value of `a`, once the store tries to connect again."""
    deadline = time.monotonic() + 60
    while True:
        try:
            found: bytes | None = store.get("t", b"a")
        except StorageError:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return found


def write(store: Any, number: int) -> None:
    with store.transaction():
        store.put("t", b"a", b"%d" % number)
        store.put("t", b"twice", b"%d" % number)


def test_an_answer_to_a_commit_that_never_comes(proxy: Proxy, store: Any) -> None:
    """The write is stored, and yet must not be acknowledged."""
    for number in range(1, 4):

        def lose(number: int = number) -> None:
            with store.transaction():
                store.put("t", b"a", b"%d" % number)
                proxy.swallows = True

        with pytest.raises(StorageError, match="not known"):
            lose()
        proxy.swallows = False
        assert after_a_while(store) == b"%d" % number
        write(store, number)


def test_a_read_whose_answer_never_comes(proxy: Proxy, store: Any) -> None:
    proxy.swallows = True
    with pytest.raises(StorageError, match=r"no answer|cannot be used"):
        store.get("t", b"a")
    proxy.swallows = False
    assert after_a_while(store) == b"0"


def test_a_server_that_falls_silent_once_it_is_connected(
    proxy: Proxy, store: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*given: Any, **options: Any) -> Any:
        session = made(*given, **options)
        proxy.swallows = True
        return session

    made = psycopg.Connection.connect
    monkeypatch.setattr(psycopg.Connection, "connect", connect)
    proxy.reset()
    with pytest.raises(StorageError, match="no answer for 1 seconds"):
        store.get("t", b"a")
    monkeypatch.undo()
    proxy.swallows = False
    assert after_a_while(store) == b"0"


def test_a_half_closed_connection(proxy: Proxy, store: Any) -> None:
    proxy.half_close()
    assert store.get("t", b"a") == b"0"  # in a new connection

    def lose() -> None:
        with store.transaction():
            store.put("t", b"a", b"1")
            proxy.half_close()

    with pytest.raises(StorageError, match="lost"):
        lose()
    write(store, 2)
    assert store.get("t", b"a") == b"2"


def test_slow_answers(proxy: Proxy, store: Any) -> None:
    proxy.delay = 0.05
    for number in range(5):
        write(store, number)
        assert store.get("t", b"a") == b"%d" % number


def test_connections_that_break_all_the_time(proxy: Proxy, store: Any) -> None:
    """Each write is stored whole or not at all, and whole if it was acknowledged."""
    stopped = threading.Event()

    def disturb() -> None:
        while not stopped.wait(0.03):
            proxy.reset()

    thread = threading.Thread(target=disturb)
    thread.start()
    acknowledged, failures = 0, 0
    try:
        for number in count(1):
            try:
                write(store, number)
                acknowledged = number
            except StorageError:
                failures += 1
            if number >= 200 and failures >= 3:
                break
            try:
                found = int(store.get("t", b"a") or b"")
            except StorageError:
                continue
            assert found >= acknowledged
    finally:
        stopped.set()
        thread.join()
    assert acknowledged
    assert after_a_while(store) == store.get("t", b"twice")
