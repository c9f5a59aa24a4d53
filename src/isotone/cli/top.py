"""`isotone top`: the most expensive queries of a server, by shape, in a table that is drawn again every two seconds."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from shutil import get_terminal_size
from typing import Any, Final

import msgspec

from isotone.cli.program import Command
from isotone.errors import UsageError
from isotone.text_table import aligned, cell, pluralized, printable
from isotone.workbench.server_pages import server_page

_SHOWN: Final = 20
_LONGEST: Final = 86_400  # seconds between two readings
_NARROWEST: Final = 30  # columns of a shape
_CLEAR: Final = "\x1b[H\x1b[J"  # to the first line, and erase what follows
_PARTS: Final = (
    ("key", ""),
    ("filter", "filter "),
    ("update", ""),
    ("condition", "if "),
    ("projection", "returns "),
)
_ORDERS: Final[dict[str, Callable[[dict[str, Any]], float]]] = {
    "units": lambda query: query["units"],
    "calls": lambda query: query["calls"],
    "dropped": lambda query: query["read"] - query["returned"],
    "p99": lambda query: query["p99"],
}


class _ShownQuery(msgspec.Struct):
    """The members of a query that are shown."""

    action: str
    table: str
    index: str
    key: str
    filter: str
    update: str
    condition: str
    projection: str
    statement: str
    parts: str
    calls: int
    units: float
    read: int
    returned: int
    p99: float


class _QueriesPage(msgspec.Struct):
    seconds: float
    queries: list[_ShownQuery]


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("url", metavar="URL", help="the address of a server, such as http://localhost:8000")
    add("--sort", choices=tuple(_ORDERS), default="units", help="by units unless chosen")
    add("--once", action="store_true", help="print the table once")
    add("--json", action="store_true", help="print what the server has counted as JSON, once")
    add("--rows", metavar="N", type=int, default=_SHOWN, help=f"queries shown, by default {_SHOWN}")
    add(
        "--every",
        metavar="SECONDS",
        type=float,
        default=2.0,
        help="seconds between two readings, by default 2",
    )


def _run(arguments: argparse.Namespace) -> int:
    if arguments.rows < 1:
        raise UsageError(f"--rows {arguments.rows} shows nothing; give 1 or more")
    if not 0 < arguments.every <= _LONGEST:
        raise UsageError(
            f"--every {arguments.every:g} is not a time between two readings; give a number above 0, "
            f"and at most {_LONGEST}"
        )
    if "://" not in arguments.url:
        raise UsageError(
            f"{arguments.url!r} is not the address of a server; write one such as http://localhost:8000"
        )
    found = _read(arguments.url)
    if arguments.json:
        print(json.dumps(_sorted(found, arguments.sort), indent=2, ensure_ascii=False))
        return 0
    if arguments.once or not sys.stdout.isatty():
        print(_table(found, arguments))
        return 0
    try:
        while True:
            size = get_terminal_size((100, 24))
            lines = _table(found, arguments).splitlines()[: size.lines - 1]
            sys.stdout.write(_CLEAR + "\n".join(lines) + "\n")
            sys.stdout.flush()
            time.sleep(arguments.every)
            found = _read(arguments.url)
    except KeyboardInterrupt:
        return 0


def _read(url: str) -> dict[str, Any]:
    page = server_page(url, "queries")
    if page["text"] is None:
        raise UsageError(page["reason"])
    try:
        msgspec.json.decode(page["text"], type=_QueriesPage)
    except msgspec.MsgspecError as error:
        raise UsageError(
            f"{url}/queries is not what this version of Isotone reads: {error}"
        ) from None
    found: dict[str, Any] = json.loads(page["text"])
    return found


def _sorted(found: dict[str, Any], order: str) -> dict[str, Any]:
    queries = sorted(found["queries"], key=_ORDERS[order], reverse=True)
    return {**found, "queries": [{**each, "shape": shape_of(each)} for each in queries]}


def _table(found: dict[str, Any], arguments: argparse.Namespace) -> str:
    queries = _sorted(found, arguments.sort)["queries"]
    whole = sum(each["units"] for each in queries) or 1.0
    header = ["units", "", "calls", "read", "dropped", "", "p99", "query"]
    rows = [
        [
            f"{each['units']:,.1f}",
            f"{each['units'] / whole:.0%}",
            f"{each['calls']:,}",
            f"{each['read']:,}",
            *_dropped(each),
            duration(each["p99"]),
            "",
        ]
        for each in queries[: arguments.rows]
    ]
    left = aligned(header, rows, right=set(range(7)))
    columns = get_terminal_size((100, 24)).columns
    room = max(_NARROWEST, columns - max(map(len, left.splitlines())))
    for row, each in zip(rows, queries, strict=False):
        row[-1] = cell(printable(each["shape"]), room)
    seconds = pluralized(round(found["seconds"]), "second")
    served = sum(each["calls"] for each in queries)
    title = f"{pluralized(served, 'request')} in {seconds}, by {arguments.sort}"
    if not rows:
        return f"{title}\nNo program has sent a request yet."
    more = len(queries) - len(rows)
    return "\n".join(
        [
            title,
            aligned(header, rows, right=set(range(7))),
            *([f"and {more} more"] * (more > 0)),
        ]
    )


def _dropped(query: dict[str, Any]) -> tuple[str, str]:
    """How many items that were read a filter has dropped, and their share."""
    dropped = query["read"] - query["returned"]
    return (f"{dropped:,}", f"{100 * dropped // query['read']}%") if dropped > 0 else ("", "")


def shape_of(query: dict[str, Any]) -> str:
    """A shape in one line: the action, where, and what it asks for; or the statement."""
    if query["statement"]:
        return str(query["statement"])
    if query["parts"]:
        return f"{query['action']}: {query['parts']}"
    where = query["table"] + (f".{query['index']}" if query["index"] else "")
    parts = [f"{before}{query[name]}" for name, before in _PARTS if query[name]]
    return f"{query['action']} {where}" + (f": {', '.join(parts)}" if parts else "")


def duration(seconds: float) -> str:
    """A duration with a unit that fits: `85 µs`, `1.2 ms`, `3.1 s`."""
    for factor, unit in ((1e6, "µs"), (1e3, "ms")):
        if seconds * factor < 1000:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


DEFINITIONS: Final = {
    "top": Command(
        """\
Show the most expensive queries of a server, by shape: requests that differ only in their values are one line. Units
are what DynamoDB would charge; dropped are the items that were read, and that filters have dropped; p99 is the time in
the engine of 99 of 100. Ctrl-C ends it.

On a busy server, cheap requests are sampled, so their figures are estimates.""",
        examples="""
isotone top http://localhost:8000
isotone top http://localhost:8000 --sort dropped --once
isotone top http://localhost:8000 --json | jq '.queries[0]'
""",
        add_arguments=_add_arguments,
        run=_run,
    )
}
