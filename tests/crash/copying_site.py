"""A process that copies files in one way as fast as it can: `python copying_site.py WAY FOLDER`."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

import isotone


def work(way: str, folder: Path) -> None:
    print("ready", flush=True)
    for number in count():
        if way == "backup":
            isotone.backup(folder / "site.db", folder / "copy.db", force=True)
        elif way == "update":
            isotone.backup(folder / "site.db", folder / "copy.db", update=True)
        elif way == "compact":
            isotone.compact(folder / "site.db")
        else:
            isotone.restore(folder / f"{number % 2}.db", folder / "target.db", force=True)


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]))
