"""A connection to PostgreSQL: statements sent together; opened again after a loss (failover); its errors as ours.

`exchange` sends any number of statements in libpq's pipeline mode and waits for all results. `post` sends some whose
results nobody waits for: they are read with the next exchange. `ask` and `answered` are the two halves of an exchange,
for a caller that has something else to do meanwhile. Statements are prepared when they are first used, in the same round
trip.

A connection is opened when it is first used, and again after it was lost. After an exchange that failed half-way or was
interrupted, nobody knows which results are still to come, so that connection is closed. `losses` counts this: a caller
sees by it that what it had begun is gone.
"""

from __future__ import annotations

import os
import selectors
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakSet

from isotone.errors import StorageError, StorageFull, UsageError
from isotone.postgres_address import PostgresAddress
from isotone.storage.forking import leak
from isotone.storage.interface import CLOSED

try:
    import psycopg
    from psycopg import pq
except ImportError as _missing:
    raise UsageError(
        "a database in PostgreSQL needs the package psycopg: pip install 'isotone[postgres]'"
    ) from _missing

REPLY_TIMEOUT: Final = 60.0
"""Seconds that the server may be silent before it counts as lost. Waiting for a lock is limited separately."""

_BACK_OFF: Final = (
    0.5  # seconds, at least, after a failed connection in which no further one is tried
)
_OLDEST: Final = 140000
_MOST_PREPARED: Final = 500
_BINARY: Final = 1
_BYTEA: Final = 17
_FULL: Final = ("53100", "53200")  # disk_full, out_of_memory
# Every access is by the key, so plans never depend on the values. The rest notices a client that is gone: its lock must
# not keep others from writing.
_SETTINGS: Final = (
    b"SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off; "
    b"SET tcp_keepalives_idle = 10; SET tcp_keepalives_interval = 5; SET tcp_keepalives_count = 3; "
    b"SET client_min_messages = error"
)

_TUPLES: Final = pq.ExecStatus.TUPLES_OK  # results above it are failures
_SYNC: Final = pq.ExecStatus.PIPELINE_SYNC
_LOST_STATES: Final = ("08", "57P", "25006")  # the last: the server has become a replica
_LOST_SEVERITIES: Final = (b"FATAL", b"PANIC")

R = TypeVar("R")

_length: Final = struct.Struct("!i").pack
_array_head: Final = struct.Struct("!iiiii").pack


class ServerStatement(NamedTuple):
    """SQL with its parameters, all of them bytes."""

    sql: bytes
    parameters: Sequence[bytes] = ()


class StatementFailed(StorageError):
    """The server refused a statement; `state` is its SQLSTATE."""

    def __init__(self, message: str, state: str) -> None:
        super().__init__(message)
        self.state = state


class NoRoom(StatementFailed, StorageFull):
    """The server has no room on its disk, or in its memory."""


class Connection:
    """One session of one database, used by one thread at a time."""

    __slots__ = (
        "__weakref__",
        "_asked",
        "_awaited",
        "_closed_because",
        "_failure",
        "_libpq",
        "_names",
        "_parameters",
        "_prepared",
        "_received",
        "_reopened",
        "_selector",
        "_session",
        "_settings",
        "_shown",
        "_try_again_at",
        "_unread",
        "losses",
        "round_trips",
    )

    def __init__(
        self,
        address: PostgresAddress,
        settings: bytes = b"",
        *,
        reopened: Callable[[], object] = lambda: None,
    ) -> None:
        self._shown = address.shown
        self._parameters = _parameters(address)
        self._reopened = reopened
        self._settings = _SETTINGS + settings
        self._session: Any = None
        self._libpq: Any = None
        self._selector: Any = None
        self._awaited = selectors.EVENT_READ
        self._prepared: dict[bytes, bytes] = {}
        self._names = count()
        self._asked: list[bytes] | None = None  # what awaits its results; empty for a statement
        self._received: list[Any] = []
        self._unread = 0  # posted batches whose results have not been read
        self._closed_because = ""
        self._try_again_at = 0.0
        self._failure = ""
        self.losses: int = 0
        self.round_trips: int = 0
        _OPEN.add(self)

    @property
    def is_open(self) -> bool:
        """Whether there is a session, as far as known."""
        return self._libpq is not None

    def exchange(self, *statements: ServerStatement) -> list[Any]:
        """Send statements, and return the result of each: one round trip.

        Raises `StatementFailed` for the first that the server refused; it has skipped those behind it. Raises another
        `StorageError` if there is no server, or it was lost.
        """
        self.ask(*statements)
        results = self.answered(REPLY_TIMEOUT)
        if results is None:
            raise self.lost(f"no answer for {REPLY_TIMEOUT:.0f} seconds")
        return results

    def post(self, *statements: ServerStatement) -> None:
        """Send statements without waiting. If they fail, nobody notices; if there is no session, nothing is sent."""
        if self._libpq is not None:
            with suppress(StorageError):
                self.ask(*statements)
                self._unread += 1
                self._asked = None

    def ask(self, *statements: ServerStatement) -> None:
        """Send statements; `answered` returns their results."""
        if self._asked is not None:
            self.drop()  # a signal handler raised between the two
        if self._libpq is None:
            self._open()
        asked: list[bytes] = []
        try:
            for sql, parameters in statements:
                name = self._prepared.get(sql) or self._prepare(sql, asked)
                formats = [_BINARY] * len(parameters) if parameters else None
                self._libpq.send_query_prepared(name, [*parameters], formats, _BINARY)
                asked.append(b"")
            self._libpq.pipeline_sync()
            self._asked = asked
            self._flush()
        except psycopg.Error as error:
            raise self.lost(str(error)) from None
        except BaseException:
            self.drop()
            raise

    def answered(self, seconds: float) -> list[Any] | None:
        """The results of what was asked; None if they have not come within `seconds`, and may be waited for again."""
        deadline = time.monotonic() + seconds
        try:
            while self._unread:
                if self._next_batch(deadline) is None:
                    return None
                self._unread -= 1
            results = self._next_batch(deadline)
        except psycopg.Error as error:
            raise self.lost(str(error)) from None
        except BaseException:
            self.drop()
            raise
        if results is None:
            return None
        self.round_trips += 1
        asked, self._asked = self._asked or [], None
        if results and results[-1].status > _TUPLES:
            self._refuse(asked, results)
        if len(self._prepared) > _MOST_PREPARED:
            self._prepared.clear()
            self.post(ServerStatement(b"DEALLOCATE ALL"))
        if len(asked) == len(results) and not any(asked):
            return results
        return [result for sql, result in zip(asked, results, strict=True) if not sql]

    def await_reply(self, seconds: float) -> None:
        """Wait until the server has sent something, at most some seconds; reads nothing."""
        self._wait(selectors.EVENT_READ, seconds)

    def lost(self, reason: str) -> StorageError:
        """Close the session, and return the error for its caller."""
        self.drop()
        return StorageError(f"PostgreSQL at {self._shown} was lost: {_in_one_line(reason)}")

    def drop(self) -> None:
        """Close the session; the next statement opens another."""
        session, self._session, self._libpq = self._session, None, None
        self._asked = None
        if session is not None:
            if self._selector is not None:
                self._selector.close()
            self.losses += 1
            session.close()

    def close(self) -> None:
        """Close the session for good."""
        _OPEN.discard(self)
        self._closed_because = self._closed_because or CLOSED
        self.drop()

    def _prepare(self, sql: bytes, asked: list[bytes]) -> bytes:
        name = b"s%d" % next(self._names)
        self._libpq.send_prepare(name, sql)
        self._prepared[sql] = name
        asked.append(sql)
        return name

    def _flush(self) -> None:
        """Send everything, and read meanwhile: otherwise the server might wait for us to read its answers."""
        while self._libpq.flush():
            self._wait(selectors.EVENT_READ | selectors.EVENT_WRITE, REPLY_TIMEOUT)
            self._libpq.consume_input()

    def _next_batch(self, deadline: float) -> list[Any] | None:
        """The results up to the end of the next batch; None if they have not all come by the deadline."""
        libpq, received = self._libpq, self._received
        was_end = False
        while True:
            if not self._has_come(deadline):
                return None
            result = libpq.get_result()
            if result is None:
                if was_end:
                    raise psycopg.OperationalError("the answer is incomplete")
                was_end = True
                continue
            was_end = False
            if result.status == _SYNC:
                self._received = []
                return received
            received.append(result)

    def _has_come(self, deadline: float) -> bool:
        """Wait for the next result, until the deadline."""
        while self._libpq.is_busy():
            if not self._wait(selectors.EVENT_READ, deadline - time.monotonic()):
                return False
            self._libpq.consume_input()
        return True

    def _wait(self, events: int, seconds: float) -> bool:
        if events != self._awaited:
            self._selector.modify(self._libpq.socket, events)
            self._awaited = events
        return bool(self._selector.select(max(0.0, seconds)))

    def _refuse(self, asked: list[bytes], results: list[Any]) -> None:
        """Raise for the first statement that failed."""
        for sql in filter(None, asked):  # which of them were prepared depends on which failed
            del self._prepared[sql]
        failed = next(result for result in results if result.status > _TUPLES)
        state = (failed.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        text = (failed.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"").decode(
            errors="replace"
        )
        severity = failed.error_field(pq.DiagnosticField.SEVERITY_NONLOCALIZED)
        if severity in _LOST_SEVERITIES or state.startswith(_LOST_STATES):
            raise self.lost(text)
        kind = NoRoom if state in _FULL else StatementFailed
        raise kind(f"PostgreSQL at {self._shown}: {text} ({state})", state)

    def _open(self) -> None:
        if self._closed_because:
            raise UsageError(self._closed_because)
        began = time.monotonic()
        if began < self._try_again_at:
            raise StorageError(self._failure)
        try:
            self._session = psycopg.Connection.connect(self._parameters, autocommit=True)
            self._begin(self._session.pgconn)
        except (psycopg.Error, StorageError) as error:
            self._failure = (
                f"PostgreSQL at {self._shown} cannot be used: {_in_one_line(str(error))}"
            )
            # An attempt may wait for seconds, and what runs in the event loop's thread is to have half of its time.
            now = time.monotonic()
            self._try_again_at = now + max(_BACK_OFF, now - began)
            self.drop()
            raise StorageError(self._failure) from None
        except BaseException:
            self.drop()
            raise

    def _begin(self, libpq: Any) -> None:
        if libpq.server_version < _OLDEST:
            raise StorageError(f"its version is {libpq.server_version // 10000}; 14 is the oldest")
        self._prepared = {}
        self._received = []
        self._unread = 0
        self._asked = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(libpq.socket, selectors.EVENT_READ)
        self._awaited = selectors.EVENT_READ
        self._libpq = libpq
        self._apply_settings()
        libpq.enter_pipeline_mode()
        if self.losses:
            self._reopened()

    def _apply_settings(self) -> None:
        """Before the pipeline, where one message may have several statements."""
        deadline = time.monotonic() + REPLY_TIMEOUT
        self._libpq.send_query(self._settings)
        self._flush()
        while True:
            if not self._has_come(deadline):
                raise StorageError(f"no answer for {REPLY_TIMEOUT:.0f} seconds")
            result = self._libpq.get_result()
            if result is None:
                return
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise StorageError(result.error_message.decode(errors="replace"))

    def _disown(self) -> None:
        """In a forked child: never touch the parent's session again. To close it would end it for the parent, too."""
        if self._session is not None:
            leak(self._session)
            self._session = self._libpq = None
        self._closed_because = self._closed_because or (
            f"{self._shown} was opened before fork(); open it again in the child"
        )


def in_session(
    connection: Connection, losses: int, statements: Sequence[ServerStatement]
) -> list[Any]:
    """Results in the session in which a block began; raises `StorageError` if it was lost since."""
    if connection.losses != losses:
        raise connection.lost(
            "the session of this transaction or snapshot has ended; begin it again"
        )
    return connection.exchange(*statements)


def repeated(connection: Connection, statements: Sequence[ServerStatement]) -> list[Any]:
    """Results outside of a block: if the session turns out to be lost, in another one."""
    return _sent(connection, connection.exchange, statements)


def asked(connection: Connection, statements: Sequence[ServerStatement]) -> None:
    """Ask outside of a block, without waiting: if the session turns out to be lost, in another one."""
    _sent(connection, connection.ask, statements)


def _sent(connection: Connection, send: Callable[..., R], statements: Sequence[Any]) -> R:
    was_open = connection.is_open
    try:
        return send(*statements)
    except StorageError:
        if not was_open or connection.is_open:
            raise
        return send(*statements)


def _parameters(address: PostgresAddress) -> str:
    """libpq's parameters; raises `UsageError` for an address that it does not understand, without showing it whole."""
    try:
        found: str = psycopg.conninfo.make_conninfo(address.uri, **address.defaults)
    except psycopg.ProgrammingError:
        raise UsageError(
            f"{address.shown!r} is no address of PostgreSQL; write postgresql://user@host/database?schema=name"
        ) from None
    return found


def _in_one_line(message: str) -> str:
    """A message of libpq, which adds guesses in further lines."""
    return message.strip().partition("\n")[0].strip().removesuffix(".")


def array(items: Sequence[bytes]) -> bytes:
    """Items as a parameter of type bytea[]; there is at least one."""
    parts = [_array_head(1, 0, _BYTEA, len(items), 1)]
    for item in items:
        parts += (_length(len(item)), item)
    return b"".join(parts)


_OPEN: Final[WeakSet[Connection]] = WeakSet()


def _disown_all() -> None:
    for connection in list(_OPEN):
        connection._disown()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_all)
