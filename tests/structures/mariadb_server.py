"""A real MariaDB server as a child process: in a folder of its own, on loopback and a free port."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final, Self

from tests import guard
from tests.oracle.local import free_port

STARTUP_SECONDS: Final = 60.0


def is_here() -> bool:
    """Whether there is a `mariadbd` to start, and a driver to ask it with."""
    try:
        import pymysql  # noqa: F401
        import sqlalchemy  # noqa: F401
    except ImportError:
        return False
    return all(_found(name) is not None for name in ("mariadbd", "mariadb-install-db"))


def _found(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class MariaDBServer:
    """A server of our own, from `with` to the end of its block, with an empty database `site`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()

    @property
    def url(self) -> str:
        """Its address, for SQLAlchemy."""
        return f"mysql+pymysql://root@127.0.0.1:{self.port}/site?charset=utf8mb4"

    def __enter__(self) -> Self:
        data = self._folder / "data"
        install, server = _found("mariadb-install-db"), _found("mariadbd")
        assert install is not None
        assert server is not None
        user = [f"--user={os.environ.get('USER') or 'root'}"] if os.geteuid() == 0 else []
        made = [install, "--no-defaults", f"--datadir={data}", "--skip-test-db", *user]
        made.append("--auth-root-authentication-method=normal")
        subprocess.run(made, check=True, capture_output=True)
        options = {
            "datadir": data,
            "socket": self._folder / "s",
            "pid-file": self._folder / "pid",
            "port": self.port,
            "bind-address": "127.0.0.1",
            "character-set-server": "utf8mb4",
        }
        command = [server, "--no-defaults", *user]
        command += [f"--{name}={value}" for name, value in options.items()]
        self._process = guard.start(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            self._await()
        except BaseException:
            self._end()
            raise
        return self

    def _await(self) -> None:
        import pymysql

        assert self._process is not None
        deadline = time.monotonic() + STARTUP_SECONDS
        while True:
            try:
                connection = pymysql.connect(host="127.0.0.1", port=self.port, user="root")
            except pymysql.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                break
        with connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE site")

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.communicate()

    def __exit__(self, *_: object) -> None:
        self._end()
