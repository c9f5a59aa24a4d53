"""python killed_site.py FILE     a process that writes what `flip_site` reads, and is killed before it closes the file."""

from __future__ import annotations

import os
import signal
import sys

from tests.attack import flip_site

import isotone

if __name__ == "__main__":
    database = isotone.open(
        sys.argv[1], durability="none", clock=isotone.ManualClock(flip_site.START)
    )
    flip_site.fill(database)
    flip_site.add_orders(database)  # which are in the log alone, wherever its last checkpoint was
    os.kill(os.getpid(), signal.SIGKILL)
