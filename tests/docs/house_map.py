"""The picture of the house in docs/design/README.md: every package, and what it rests on, from the imports.

python -m tests.docs.house_map        # draw it again

A package stands in the row directly below the lowest of those that import it, so all imports point down. An arrow is left
out where another one implies it: whoever imports the model may use what the model rests on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from typing import Final

from tests.docs.pages import ROOT
from tests.test_layers import MODULES, imported, layer

PAGE = ROOT / "docs" / "design" / "README.md"
BEGIN = "<!-- The picture is drawn from the imports: make files -->\n"
END = "<!-- end of the picture -->\n"

# What each package knows.
KNOWS: Final = {
    "cli": "command lines",
    "demo": "sample tables, and a tour through them",
    "mcp": "the tools of coding assistants, within budgets",
    "workbench": "the pages of a server, for any backend",
    "testing": "boto3 without a socket, fixtures, mocks, faults",
    "isotone": "the public names, each loaded on first use",
    "design": "sample data, sheets of patterns, plans for live tables",
    "advisor": "explanations, drawings, lint, simulations",
    "server": "HTTP, groups of writes, time-outs, a clean stop",
    "moving": "copies, comparisons, exports, imports",
    "schema": "CloudFormation, CDK, Terraform, NoSQL Workbench",
    "structures": "sorted sets, feeds, queues, workers, counters",
    "inference": "kinds of items, keys and modules of existing tables",
    "model": "entities, keys, queries, writes",
    "tables": "whole tables: scans, samples, batches, jobs",
    "backends": "the seam: a request and its response; embedded, remote",
    "client": "a client shaped like boto3's",
    "operations": "the API: requests, rules, AWS's sentences, answers",
    "engine": "tables, indexes, pages, streams, counts, integrity",
    "storage": "ordered maps of bytes, nested transactions",
    "exchange": "buckets, and the files of exports and imports",
    "codec": "values → bytes that sort like them",
    "expressions": "text → tree → function; PartiQL as the same trees",
    "values": "what an attribute value is: validity, size, units",
}


@cache
def arrows() -> dict[str, set[str]]:
    """What each package imports, the modules beside the packages left out."""
    found: dict[str, set[str]] = {package: set() for package in packages()}
    for module in MODULES:
        if layer(module) in found:
            targets = {layer(target) for target in imported(module, runtime_only=False)}
            found[layer(module)] |= targets & found.keys() - {layer(module)}
    return found


def packages() -> set[str]:
    """The packages of the source, and the one that holds them all."""
    return {layer(module) for module, path in MODULES.items() if path.name == "__init__.py"}


def beside() -> list[str]:
    """The modules that are in no package."""
    return sorted({layer(module) for module in MODULES} - packages() - {"__main__"})


def below(package: str) -> set[str]:
    """Every package that can be reached from one."""
    return {each for target in arrows()[package] for each in {target} | below(target)}


def directly_below(package: str) -> list[str]:
    """The packages that one imports, and that no other of its imports leads to."""
    targets = arrows()[package]
    implied = {each for target in targets for each in below(target)}
    return sorted(targets - implied)


def rows() -> list[list[str]]:
    """The packages from the top to the bottom; each row is imported only by those above it."""
    row: dict[str, int] = {}
    for package in reversed([*TopologicalSorter(arrows()).static_order()]):
        users = [user for user, targets in arrows().items() if package in targets]
        row[package] = max((row[user] + 1 for user in users), default=0)
    return [
        sorted(package for package, at in row.items() if at == number)
        for number in range(max(row.values()) + 1)
    ]


def picture() -> Iterator[str]:
    """The lines of the picture."""
    yield f" {'package':12}{'knows':57}rests on"
    for row in rows():
        yield ""
        for package in row:
            line = f" {package:12}{KNOWS[package]:57}{', '.join(directly_below(package))}"
            yield line.rstrip()
    yield f"\n under all:  {', '.join(beside()[:6])},"
    yield f"             {', '.join(beside()[6:])}"


def text() -> str:
    """The page with the present picture."""
    page = PAGE.read_text(encoding="utf-8")
    block = f"{BEGIN}\n```\n" + "\n".join(picture()) + f"\n```\n\n{END}"
    drawn, count = re.subn(
        re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: block, page, flags=re.S
    )
    assert count == 1, "docs/design/README.md has no place for the picture"
    return drawn


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
