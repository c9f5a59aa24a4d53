"""`isotone doctor`: prints versions, the system and the state of a file for a bug report; no keys, values or secrets."""

from __future__ import annotations

import argparse
import json
import locale
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any, Final

from isotone.cli.checking import versions
from isotone.cli.program import Command
from isotone.error_text import error_text
from isotone.errors import IsotoneError
from isotone.output_paths import check_regular
from isotone.postgres_address import is_postgres

# Variables that change what Isotone does. Only their names are shown: some have secrets.
_VARIABLES: Final = ("AWS_", "AZURE_STORAGE_", "HTTPS_PROXY", "NO_PROXY", "SQLITE_TMPDIR", "XDG_")


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help="a database file")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def _run(arguments: argparse.Namespace) -> int:
    report = {"versions": versions(optional=True), "system": _system()}
    if arguments.file is not None:
        is_file = not is_postgres(arguments.file)
        report["file"] = (_file if is_file else _contents)(arguments.file)
    if arguments.json:
        print(json.dumps(report, indent=2))
        return 0
    for title, members in report.items():
        print(title)
        for name, value in members.items():
            print(f"  {name:<24}{value}")
    return 0


def _system() -> dict[str, Any]:
    set_here = sorted(name for name in os.environ if name.startswith(_VARIABLES))
    return {
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "interpreter": f"{platform.python_implementation()}, {sys.maxsize.bit_length() + 1} bits",
        "encoding": f"{locale.getpreferredencoding(False)}, output {sys.stdout.encoding}",
        "variables that are set": ", ".join(set_here) or "none",
    }


def _file(file: str) -> dict[str, Any]:
    """The sizes of a file and of its companions, and what is in it."""
    path = Path(file)
    if not path.exists():
        return {"state": "there is no such file"}
    check_regular(path)
    found: dict[str, Any] = {"bytes": path.stat().st_size}
    for suffix in ("-wal", "-shm", ".damaged-wal"):
        companion = path.with_name(path.name + suffix)
        if companion.exists():
            found[f"bytes of {suffix}"] = companion.stat().st_size
    found["writable"] = os.access(path, os.W_OK) and os.access(path.absolute().parent, os.W_OK)
    found["free bytes of the disk"] = shutil.disk_usage(path.absolute().parent).free
    return {**found, **_contents(file)}


def _contents(file: str) -> dict[str, Any]:
    """What is in a database; the error, if it cannot be opened."""
    from isotone.cli.database import connect
    from isotone.tables.description import read_description, table_names

    found: dict[str, Any] = {}
    try:
        with connect(file) as database:
            tables = [read_description(database, name) for name in table_names(database)]
            found["tables"] = len(tables)
            found["indexes"] = sum(len(table.index_names) for table in tables)
        found["state"] = "it opens; isotone check looks for damage"
    except (IsotoneError, OSError) as error:
        found["state"] = error_text(error)
    return found


DOCTOR: Final = Command(
    """\
Print what a bug report needs: the versions of Isotone and its packages, the system, and the sizes and the state of a file.

It names no keys, values or secrets: of variables of the environment it shows the names alone.""",
    examples="""
isotone doctor
isotone doctor shop.db
isotone doctor shop.db --json
""",
    add_arguments=_arguments,
    run=_run,
)


DEFINITIONS: Final = {"doctor": DOCTOR}
