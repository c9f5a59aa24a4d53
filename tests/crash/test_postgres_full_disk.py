"""The disk of PostgreSQL fills up: writes are refused, nothing acknowledged is lost, and all goes on once there is room.

Either only the tables are on the small disk, and PostgreSQL refuses what does not fit; or all of it is, and PostgreSQL
itself fails when it cannot write its log.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests import figures
from tests.crash.server_storm import Caller, Gone, Refused, create_table, item_of, key
from tests.crash.test_postgres_kill import until_it_answers
from tests.crash.test_server_full_disk import VERSION, all_there
from tests.postgres_server import WANTED, PostgresServer, needs_postgres
from tests.sdks.server_process import start_server

from isotone.backends import embedded

pytestmark = [
    needs_postgres,
    pytest.mark.skipif(
        os.name != "posix" or os.geteuid() != 0 or not shutil.which("mount"),
        reason="only root can mount a small file system for another process",
    ),
]

MEGABYTE = 1 << 20
ROOM = 1 * MEGABYTE  # that is left for tables
ROOM_OF_ALL = (
    10 * MEGABYTE
)  # less than the next file of the log, so that this is what finds no room
BALLAST = 24 * MEGABYTE
MOST = 20_000  # items
REFUSALS = 8  # one after the other, until the disk counts as full


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[None]:
    folder.mkdir()
    options = f"size={megabytes}m,mode=0700"
    mount = ["mount", "-t", "tmpfs", "-o", options, "isotone-test", str(folder)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def tables_on_it() -> Iterator[tuple[PostgresServer, Path]]:
    with PostgresServer() as postgres:
        folder = postgres.folder / "tables"
        with small_disk(folder, (ROOM + BALLAST) // MEGABYTE):
            postgres.give_to_user(folder)
            postgres.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
            postgres.execute("ALTER ROLE isotone SET default_tablespace = small")
            try:
                yield postgres, folder
            finally:
                postgres.stop()


@contextmanager
def all_on_it() -> Iterator[tuple[PostgresServer, Path]]:
    postgres = PostgresServer("wal_recycle=off")  # its log needs room again and again
    try:
        with small_disk(postgres.data, 128):
            postgres.give_to_user(postgres.data)
            try:
                yield postgres.__enter__(), postgres.data
            finally:
                postgres.stop()
    finally:
        postgres.__exit__()


def fill(call: Caller) -> tuple[int, list[Refused]]:
    """Write until the disk is full; the items that were acknowledged, and the refusals."""
    number, refusals = 0, list[Refused]()
    while len(refusals) < REFUSALS:
        assert number < MOST, "the disk never filled up"
        try:
            call("PutItem", TableName="Storm", Item=item_of("filler", number, VERSION))
        except Refused as refused:
            refusals.append(refused)
        else:
            number, refusals = number + 1, []
    return number, refusals


IN_FULL = pytest.mark.skipif(not WANTED, reason="takes a minute: make postgres")


@pytest.mark.parametrize("disk", [tables_on_it, pytest.param(all_on_it, marks=IN_FULL)])
def test_a_full_disk(disk: object) -> None:
    assert callable(disk)
    with disk() as (postgres, folder):
        address = postgres.new_address()
        log = Path(os.devnull).open("w")  # noqa: SIM115 - closed below, with the server
        with log, start_server(address, stderr=log) as server, Caller(server.url) as call:
            create_table(call, "Storm")
            ballast = folder / "ballast"
            free = shutil.disk_usage(folder).free
            room = ROOM if disk is tables_on_it else ROOM_OF_ALL
            ballast.write_bytes(bytes(free - room))
            written, refusals = fill(call)
            assert written > 5
            assert {(each.status, each.code) for each in refusals} == {(500, "InternalServerError")}
            if disk is tables_on_it:
                assert "No space left on device" in refusals[0].message
                assert all_there(call, written)  # reads go on
                assert call("GetItem", TableName="Storm", Key=key("filler", written)) == {}
            else:
                assert b"PANIC" in (postgres.folder / "log").read_bytes()
            ballast.unlink()
            if not postgres.is_running:
                postgres.start()  # it gives up if it cannot write its log
            until_it_answers(server.url)
            assert_acknowledged(call, written)
            for number in range(written, written + 20):
                call("PutItem", TableName="Storm", Item=item_of("filler", number, VERSION))
            with suppress(Refused, Gone):
                create_table(call, "Another")
            assert all_there(call, written + 20)
            assert embedded.check(address).problems == []
            figures.note(f"full disk, {disk.__name__}", f"{written} writes acknowledged, none lost")


def assert_acknowledged(call: Caller, written: int) -> None:
    """All that was acknowledged is there, and at most the one whose outcome was not known."""
    if not all_there(call, written):
        assert all_there(call, written + 1)
