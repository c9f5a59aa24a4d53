"""The first bytes of a file that this process may have open as a database: they are read through SQLite.

Closing a file ends all locks that the process has on it (POSIX). SQLite knows this, and keeps a file open as long as one of its
connections has a lock. Python does not: another process could then take the database for one that nobody has open, and delete
its log.
"""

from __future__ import annotations

import os

import apsw


def first_bytes(path: str, count: int) -> bytes:
    """So many bytes at the beginning of a file, or all that it has; none if it cannot be read."""
    flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
    try:
        file = apsw.VFSFile("", os.path.realpath(path), flags)  # it follows no links
        try:
            return file.xRead(min(count, file.xFileSize()), 0)
        finally:
            file.xClose()
    except apsw.Error:
        return b""
