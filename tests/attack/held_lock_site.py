"""A process that takes the write lock of a file, says so, and keeps it until a line arrives on standard input."""

from __future__ import annotations

import sys

from isotone.storage.sqlite import SQLiteStore

if __name__ == "__main__":
    store = SQLiteStore(sys.argv[1])
    with store.transaction():
        print("held", flush=True)
        sys.stdin.readline()
    store.close()
