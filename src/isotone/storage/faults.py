"""What SQLite's errors mean to us: the one place where an `apsw` exception becomes one of ours."""

from __future__ import annotations

import errno
from typing import Final

import apsw

from isotone.errors import (
    IsotoneError,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    UsageError,
)
from isotone.storage.interface import NoSuchTree

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})

_FULL: Final = "no room left for {path}: free some disk space, then write again ({reason})"
_RANGE_OPEN: Final = (
    "a range over {path} is still being read ({reason}): finish it or drop it, then write"
)

_MEANINGS: Final[tuple[tuple[type[apsw.Error], type[IsotoneError], str], ...]] = (
    (apsw.FullError, StorageFull, _FULL),
    (
        apsw.BusyError,
        StorageBusy,
        "{path} was locked by another process for too long: try again, or open it with a longer "
        "busy_timeout ({reason})",
    ),
    (
        apsw.NotADBError,
        StorageCorrupt,
        "{path} is not an Isotone file ({reason}): give the path of a database that Isotone made, "
        "or of a file that does not exist yet",
    ),
    (
        apsw.CorruptError,
        StorageCorrupt,
        "{path} is damaged ({reason}): restore it from a backup; `isotone check` tells what is wrong",
    ),
    (
        apsw.ReadOnlyError,
        StorageError,
        "{path} cannot be written ({reason}): check the permissions of the file and of its folder",
    ),
    (
        apsw.CantOpenError,
        StorageError,
        "{path} cannot be opened ({reason}): check the permissions of the file and of its folder",
    ),
    (apsw.IOError, StorageError, "the disk failed under {path}: {reason} (error {number})"),
    (apsw.LockedError, UsageError, _RANGE_OPEN),
    (apsw.ConstraintError, UsageError, "keys and values must be bytes: {reason}"),
    (apsw.Error, StorageError, "SQLite could not do its work on {path}: {reason}"),
)


def meaning(error: apsw.Error, path: str, tree: str = "", number: int = 0) -> Exception:
    """Our exception for one of SQLite's; `number` is the operating system's, where there is one."""
    reason = str(error)
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_BUSY_SNAPSHOT:
        return UsageError(_RANGE_OPEN.format(path=path, reason=reason))
    if reason.startswith("no such table"):
        return NoSuchTree(tree)
    if isinstance(error, apsw.IOError) and number in _NO_ROOM:
        return StorageFull(_FULL.format(path=path, reason=reason))
    kind, words = next(
        (ours, words) for theirs, ours, words in _MEANINGS if isinstance(error, theirs)
    )
    return kind(words.format(path=path, reason=reason, number=number))
