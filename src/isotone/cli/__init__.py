"""The `isotone` command: serve a database, look into it, check it.

One file a command. `program.COMMANDS` is the list of them; a command's module is imported when that
command runs, so `isotone version` does not wait for the database.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (that of the process by default); the exit code."""
    from isotone.cli.program import run

    return run(argv)
