"""The disk under a server fills up: writes are refused in words, reads go on, and so does the service.

Two disks: a limit on the size of files, which every Unix has, and a small file system that only the
server sees, which is then reached through the server's entry in /proc.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.crash.server_storm import Caller, Refused, create_table, item_of, key
from tests.sdks.server_process import ServerProcess, start_server

import isotone

LIMIT = 6_000_000  # bytes of the largest file, or of the file system
VERSION = 17  # the versions of which the items are large
ITEM = len(str(item_of("filler", 0, VERSION)))

Disk = Callable[[Path], Iterator[tuple[ServerProcess, Callable[[], object]]]]


@contextmanager
def limited_files(path: Path) -> Iterator[tuple[ServerProcess, Callable[[], object]]]:
    """A server whose files may not grow beyond the limit, and what lifts it."""
    if not hasattr(resource, "prlimit"):
        pytest.skip("this system cannot change the limits of another process")
    unlimited = resource.RLIM_INFINITY

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, unlimited))

    with start_server(path, prepare=limit) as server:

        def lift() -> None:
            for process in server.processes():
                resource.prlimit(process, resource.RLIMIT_FSIZE, (unlimited, unlimited))

        yield server, lift


@contextmanager
def small_file_system(path: Path) -> Iterator[tuple[ServerProcess, Callable[[], object]]]:
    """A server on a file system with little room, and what makes room."""
    if not shutil.which("unshare"):
        pytest.skip("there is no `unshare` to mount a small file system with")
    folder = path.parent
    mount = f"mount -t tmpfs -o size={2 * LIMIT} isotone-test {folder}"
    ballast = folder / "ballast"
    fill = f'{mount} && head -c {LIMIT} /dev/zero > {ballast} && exec "$0" "$@"'
    private = ("unshare", "--mount", "--map-root-user", "sh", "-c")
    if subprocess.run([*private, mount], check=False, capture_output=True).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    with start_server(path, wrapper=(*private, fill)) as server:
        inside = Path(f"/proc/{server.process.pid}/root{ballast}")
        yield server, inside.unlink
        # The file system goes with the server.
        assert server.stop() == 0


def fill(call: Caller) -> tuple[int, Refused]:
    """Write until the disk is full; the items that were acknowledged, and the refusal.

    The first refusal may make room, since it is then that the log is folded into the file.
    """
    number = refused_in_a_row = 0
    while number * ITEM < 10 * LIMIT:
        try:
            call("PutItem", TableName="Storm", Item=item_of("filler", number, VERSION))
        except Refused as refused:
            refused_in_a_row += 1
            if refused_in_a_row > 3:
                return number, refused
        else:
            number, refused_in_a_row = number + 1, 0
    raise AssertionError("the disk never filled up")


def all_there(call: Caller, count: int) -> bool:
    found = call.pages("Scan", TableName="Storm", ConsistentRead=True)
    by_number = {int(item["sk"]["S"]): item for item in found}
    return by_number == {number: item_of("filler", number, VERSION) for number in range(count)}


@pytest.mark.skipif(os.name != "posix", reason="no such limits on this system")
@pytest.mark.parametrize("disk", [limited_files, small_file_system])
def test_a_full_disk(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "shop.db"
    with disk(path) as (server, make_room), Caller(server.url) as call:
        create_table(call, "Storm")
        written, refused = fill(call)
        assert written > 5
        assert (refused.status, refused.code) == (500, "InternalServerError")
        assert refused.message.startswith(f"the disk is full under {path}: free some space")
        # Reads go on, also of what was refused: it is not there.
        assert all_there(call, written)
        assert call("GetItem", TableName="Storm", Key=key("filler", written)) == {}
        with pytest.raises(Refused, match="the disk is full"):
            large_transaction(call, written)
        # A small write may find room; if not, nothing of it remains.
        made = accepts_table(call, "Another")
        assert ("Another" in call("ListTables")["TableNames"]) == made
        assert all_there(call, written)
        make_room()
        for number in range(written, written + 20):
            call("PutItem", TableName="Storm", Item=item_of("filler", number, VERSION))
        create_table(call, "OneMore")
        assert all_there(call, written + 20)
        if disk is limited_files:
            assert server.stop() == 0
            with isotone.open(path) as database:
                assert database.check() == []


def accepts_table(call: Caller, name: str) -> bool:
    try:
        create_table(call, name)
    except Refused as refused:
        return refused.status != 500
    return True


def large_transaction(call: Caller, number: int) -> None:
    """A transaction that is too large for what room is left."""
    puts = [item_of("filler", number + part, VERSION) for part in range(50)]
    call(
        "TransactWriteItems",
        TransactItems=[{"Put": {"TableName": "Storm", "Item": item}} for item in puts],
    )
