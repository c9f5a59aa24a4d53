"""The main program of the keeper that `server/lane_process.py` describes: `isotone serve` starts it to fork lanes."""

from __future__ import annotations

import logging
import socket
import sys
from functools import partial
from typing import Any, Final

import msgspec

_PROGRAM: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from isotone.cli.lane_keeper import main; main()"
)


def command(path: str, **settings: Any) -> list[str]:
    """The command line of the program, without the descriptor of its control channel."""
    written = msgspec.json.encode({"path": path, **settings}).decode()
    return [sys.executable, "-c", _PROGRAM, msgspec.json.encode(sys.path).decode(), written]


def main() -> None:
    """Be the program, until its channel ends."""
    from isotone.backends.embedded import import_for_files, open_beside
    from isotone.server.lane_process import keep_lanes

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = msgspec.json.decode(sys.argv[2])
    import_for_files()
    keep_lanes(socket.socket(fileno=int(sys.argv[3])), partial(open_beside, **settings))
