"""What an Isotone file is, and how one is opened: marks, versions and SQLite's settings.

The file is an SQLite database in WAL mode. Two fields of its header tell that it is ours: the
application id (`ISOT` in ASCII), and the user version, which is the version of our format. A file with
another mark, or of a later version, is refused before anything in it is touched.

What a durability promises when a commit has returned:

    disk     it survives a power cut: the log is synced at each commit (synchronous=FULL)
    process  it survives the death of the process. A power cut may take the last commits, never the
             file: the log is synced before each checkpoint (synchronous=NORMAL)
    none     it survives the death of the process. A power cut may damage the file: nothing is ever
             synced (synchronous=OFF). For data that can be made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, get_args

import apsw

from isotone.errors import StorageCorrupt, StorageError, UsageError
from isotone.storage.faults import meaning

Durability = Literal["disk", "process", "none"]

MEMORY: Final = ":memory:"
APPLICATION_ID: Final = 0x49534F54
FORMAT: Final = 1

_SYNCHRONOUS: Final[dict[Durability, str]] = {"disk": "FULL", "process": "NORMAL", "none": "OFF"}
_PAGE_SIZE: Final = 8192
_STATEMENTS: Final = 256
_RETRY_PAUSE: Final = 0.005
_LOCK_PAUSE: Final = 0.0005

# docs/design/storage.md has the measurement behind each of these.
_SETTINGS: Final = (
    "PRAGMA cache_size=-8192",
    "PRAGMA mmap_size=2147483648",
    "PRAGMA wal_autocheckpoint=1000",
    "PRAGMA journal_size_limit=67108864",
    "PRAGMA temp_store=MEMORY",
    "PRAGMA trusted_schema=OFF",
    "PRAGMA cell_size_check=ON",
)
# On macOS a plain fsync leaves the bytes in the drive's cache; these two have no effect elsewhere.
_THROUGH_THE_DRIVE: Final = ("PRAGMA fullfsync=ON", "PRAGMA checkpoint_fullfsync=ON")


def connect(path: str, durability: Durability, busy_timeout: float) -> apsw.Connection:
    """An open connection to a verified Isotone file, which is made if there is none.

    Raises `StorageCorrupt` for a file that is not ours, `StorageError` for one that cannot be used,
    `StorageBusy` when another process keeps it locked for `busy_timeout` seconds.
    """
    if durability not in get_args(Durability):
        known = ", ".join(get_args(Durability))
        raise UsageError(f"there is no durability {durability!r}; choose one of {known}")
    _refuse_hopeless(path)
    connection = None
    try:
        connection = apsw.Connection(path, statementcachesize=_STATEMENTS)
        connection.set_busy_handler(_patience(busy_timeout))
        _prepare(connection, path, busy_timeout)
        _configure(connection, durability)
    except apsw.Error as error:
        number = connection.system_errno if connection else 0
        raise meaning(error, path, number=number) from error
    else:
        opened, connection = connection, None
        return opened
    finally:
        if connection is not None:
            connection.close(True)


def _patience(seconds: float) -> Callable[[int], bool]:
    """Whether to try again for a lock, after a pause.

    SQLite's own timeout pauses for up to 100 ms, so that one busy process starves the others: whoever
    holds the lock has it again before they look.
    """
    deadline = 0.0

    def wait(attempt: int) -> bool:
        nonlocal deadline
        now = time.monotonic()
        if attempt == 0:
            deadline = now + seconds
        if now >= deadline:
            return False
        time.sleep(_LOCK_PAUSE)
        return True

    return wait


def _refuse_hopeless(path: str) -> None:
    if path == MEMORY:
        return
    where = Path(path)
    if not path or where.is_dir():
        raise StorageError(f"{path!r} is a folder; give the path of a file in it")
    if not where.parent.is_dir():
        raise StorageError(f"there is no folder {where.parent}; make it before opening {path}")


def _prepare(connection: apsw.Connection, path: str, patience: float) -> None:
    if connection.readonly("main"):
        raise StorageError(f"{path} is read-only; check the permissions of the file")
    fresh = _verify(connection, path)
    if fresh:
        connection.execute(f"PRAGMA page_size={_PAGE_SIZE}")
    if path != MEMORY:
        _use_wal(connection, path, time.monotonic() + patience)
    if fresh:
        _mark(connection, path)


def _verify(connection: apsw.Connection, path: str) -> bool:
    """Whether the file is empty. Raises if what is in it is not ours."""
    mark, version, objects = connection.execute(
        "SELECT a.application_id, u.user_version, (SELECT count(*) FROM sqlite_schema)"
        " FROM pragma_application_id AS a, pragma_user_version AS u"
    ).get
    if mark == APPLICATION_ID:
        if version > FORMAT:
            raise StorageError(
                f"{path} has format {version}, and this Isotone knows formats up to {FORMAT}: "
                "open it with the newer Isotone that made it"
            )
        return False
    if mark or version or objects:
        raise StorageCorrupt(
            f"{path} is an SQLite database that Isotone did not make (application id {mark:#x}): "
            "give the path of an Isotone file, or of a file that does not exist yet"
        )
    return True


def _use_wal(connection: apsw.Connection, path: str, deadline: float) -> None:
    # SQLite does not wait for a lock when it changes the journal mode, so that we do.
    while True:
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").get
            break
        except apsw.BusyError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_RETRY_PAUSE)
    if mode != "wal":
        raise StorageError(
            f"{path} lies on a file system without shared memory (journal mode {mode!r}): "
            "use a local disk"
        )


def _mark(connection: apsw.Connection, path: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have been faster, and know a later format.
        if _verify(connection, path):
            connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version={FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _configure(connection: apsw.Connection, durability: Durability) -> None:
    extra = _THROUGH_THE_DRIVE if durability == "disk" else ()
    for pragma in (*_SETTINGS, *extra, f"PRAGMA synchronous={_SYNCHRONOUS[durability]}"):
        connection.execute(pragma).get  # noqa: B018 - reading the answer is what runs it
