"""The `isotone` command: serve a database, read and write it, check it.

`program.COMMANDS` lists the commands and their modules. A module is imported only when one of its commands runs, so
`isotone version` does not wait for the database.
"""

from __future__ import annotations

from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit code."""
    from isotone.cli.program import run

    return run(argv)
