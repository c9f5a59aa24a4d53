"""A real PostgreSQL server as a child process: in a folder of its own, on a Unix socket, without TCP.

`shared()` starts one for all tests of a process, and each test gets a schema of its own. As root the server runs as the
user `postgres` or `nobody`, because it refuses to run as root.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Final, Self

import pytest
from tests import guard

WANTED: Final = os.environ.get("ISOTONE_POSTGRES", "0") != "0"
"""Whether tests of the database run on PostgreSQL in place of memory (`make postgres`)."""

STARTUP_SECONDS: Final = 60.0
_USERS: Final = ("postgres", "nobody")
_numbers = count(1)


def _programs() -> Path | None:
    """The folder of the newest server that is installed."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3])
    )
    found = str(folders[-1]) if folders else shutil.which("postgres")
    return Path(found).parent if found else None


def missing() -> str:
    """Why no server can be started here; empty if it can."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "needs psycopg: pip install 'isotone[postgres]'"
    return "" if _programs() else "needs a PostgreSQL server: apt-get install postgresql"


needs_postgres = pytest.mark.skipif(bool(missing()), reason=missing() or "never")


class PostgresServer:
    """A server of our own with an empty database, from `with` to the end of its block."""

    def __init__(self, *settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="isotone-postgres-"))
        self.data = self.folder / "data"
        self._settings = settings
        self._process: subprocess.Popen[bytes] | None = None

    def address(self, schema: str) -> str:
        """An address of Isotone with a schema of this server."""
        return f"postgresql://isotone@/postgres?host={self.folder}&schema={schema}"

    def new_address(self) -> str:
        """An address with a schema that no other test has."""
        return self.address(f"s{os.getpid()}_{next(_numbers)}")

    @property
    def libpq_address(self) -> str:
        return f"postgresql://isotone@/postgres?host={self.folder}"

    def __enter__(self) -> Self:
        self.give_to_user()
        made = ["initdb", "-D", str(self.data), "-U", "isotone", "-A", "trust", "--no-sync"]
        subprocess.run(self.command(*made, "-E", "UTF8"), check=True, capture_output=True, cwd="/")
        self.start()
        return self

    def give_to_user(self, *further: Path) -> None:
        """Let the user of the server write into its folder and further ones, and all connect to its socket."""
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            user = next(name for name in _USERS if _exists(name))
            for folder in (self.folder, *further):
                os.chown(folder, pwd.getpwnam(user).pw_uid, -1)

    def command(self, program: str, *arguments: str) -> list[str]:
        """The command of one of the server's programs, as a user whom it accepts."""
        folder = _programs()
        assert folder is not None
        command = [str(folder / program), *arguments]
        if os.geteuid() != 0:
            return command
        user = next(name for name in _USERS if _exists(name))
        entry = pwd.getpwnam(user)
        return [
            "setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", *command,
        ]  # fmt: skip

    def replica(self, *settings: str, is_synchronous: bool = False) -> PostgresServer:
        """A running replica, which receives what this server writes; a synchronous one before a commit is acknowledged."""
        found = PostgresServer(*self._settings, *settings)
        found.give_to_user()
        name = f"replica{next(_numbers)}"
        connection = f"host={self.folder} user=isotone application_name={name}"
        copy = ["pg_basebackup", "-D", str(found.data), "-d", connection, "-R", "-c", "fast"]
        subprocess.run(self.command(*copy), check=True, capture_output=True, cwd="/")
        found.start()
        if is_synchronous:
            self.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'")
            self.execute("SELECT pg_reload_conf()")
            state = "SELECT sync_state FROM pg_stat_replication"
            while self.execute(state) != [("sync",)]:
                time.sleep(0.02)
        return found

    def promote(self) -> None:
        """Make a replica the primary."""
        self.execute("SELECT pg_promote()")

    def execute(self, sql: str) -> list[tuple[object, ...]]:
        import psycopg

        with psycopg.connect(self.libpq_address, autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start the server on its data, also after `kill`, and wait until it answers."""
        settings = ["listen_addresses=", f"unix_socket_directories={self.folder}", *self._settings]
        options = [word for setting in settings for word in ("-c", setting)]
        if self._process is not None:  # it has ended by itself
            self._process.communicate()
        with (self.folder / "log").open("ab") as log:
            self._process = guard.start(
                self.command("postgres", "-D", str(self.data), *options),
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,  # a test's Ctrl-C for its group would stop it
            )
        self._await()

    def kill(self) -> None:
        """Kill the server and its backends as a power cut would, but for the disk."""
        self._kill([int(process.name) for process in self._processes()])

    def kill_postmaster(self) -> None:
        """Kill the process that the others belong to; they notice it, and end."""
        self._kill([self.pid])

    @property
    def is_running(self) -> bool:
        """Whether it has not ended by itself, or by `kill`."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process that the others belong to."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def _kill(self, pids: list[int]) -> None:
        assert self._process is not None
        processes = self._processes()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.communicate()
        deadline = time.monotonic() + STARTUP_SECONDS
        while any(map(self._is_mine, processes)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        for path in (self.data / "postmaster.pid", *self.folder.glob(".s.PGSQL.*")):
            path.unlink(missing_ok=True)

    def _processes(self) -> list[Path]:
        return [path for path in Path("/proc").glob("[0-9]*") if self._is_mine(path)]

    def _is_mine(self, process: Path) -> bool:
        """Whether a process is the server or a backend: each works in the folder of the data."""
        try:
            return (process / "cwd").readlink() == self.data.resolve()
        except OSError:
            return False

    def stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(self.pid, signal.SIGINT)  # the fast shutdown
            self._process.communicate()
            self._process = None

    def _await(self) -> None:
        import psycopg

        assert self._process is not None
        deadline = time.monotonic() + STARTUP_SECONDS
        while True:
            try:
                psycopg.connect(self.libpq_address).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)
            else:
                return

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder)


def database_address() -> str:
    """Where a test of the database keeps it: in memory, or in a schema of its own if that is `WANTED`."""
    return shared().new_address() if WANTED else ":memory:"


def _exists(user: str) -> bool:
    try:
        pwd.getpwnam(user)
    except KeyError:
        return False
    return True


@functools.cache
def shared() -> PostgresServer:
    """The server of all tests of this process, which ends with it. Nothing of it must survive a power cut."""
    server = PostgresServer("fsync=off", "max_connections=200", "shared_buffers=64MB")
    server.__enter__()
    owner = os.getpid()

    def end() -> None:
        if os.getpid() == owner:
            server.__exit__()

    atexit.register(end)
    return server
