"""Reads the first bytes of a file through SQLite, because this process may have the file open as a database.

Closing a file ends all locks that the process has on it (POSIX). SQLite knows this, and keeps a file open as long as
one of its connections has a lock. Python does not: another process could then take the database for an unused one, and
delete its log.
"""

from __future__ import annotations

import os

import apsw


def first_bytes(path: str, count: int) -> bytes:
    """The first `count` bytes of a file, or all of a shorter one; empty if it cannot be read."""
    flags = [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0]
    try:
        file = apsw.VFSFile("", os.path.realpath(path), flags)  # VFSFile does not follow links
        try:
            return file.xRead(min(count, file.xFileSize()), 0)
        finally:
            file.xClose()
    except apsw.Error:
        return b""
