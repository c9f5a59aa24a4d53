"""The picture of the house has every package, and its arrows are imports that are allowed."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter

from tests.docs.house_map import KNOWS, PAGE, arrows, beside, packages, rows, text
from tests.docs.pages import page
from tests.test_layers import ALLOWED, CROSSING, SOURCE

DESIGN = page("docs/design/README.md")
DRAWN = re.findall(r"^ (\w+) +(\S.*?)(?:  +([\w, ]+))?$", next(DESIGN.blocks("")).text, re.M)[1:]
# `backends/embedded.py` alone reaches below the seam.
CROSSED = {"backends": set().union(*CROSSING.values())}


def test_the_picture_is_that_of_the_imports() -> None:
    assert PAGE.read_text(encoding="utf-8") == text(), "docs/design/README.md: make files"


def test_every_package_is_in_the_picture_once() -> None:
    shown = [name for name, *_ in DRAWN if name in KNOWS]
    assert sorted(shown) == sorted(packages())
    assert KNOWS.keys() == packages()


def test_every_module_beside_the_packages_is_under_them() -> None:
    named = next(DESIGN.blocks("")).text.partition("under all:")[2]
    assert re.findall(r"\w+", named) == beside()


def test_no_arrow_contradicts_what_is_allowed() -> None:
    drawn = {
        name: set(below.split(", ")) if below else set()
        for name, _, below in DRAWN
        if name in KNOWS
    }
    for name, below in drawn.items():
        assert below <= ALLOWED[name] | CROSSED.get(name, set())
    order = [*TopologicalSorter(drawn).static_order()]
    assert len(order) == len(KNOWS)


def test_every_import_points_to_a_lower_row() -> None:
    row = {package: number for number, packages in enumerate(rows()) for package in packages}
    assert all(
        row[target] > row[package] for package, targets in arrows().items() for target in targets
    )
    assert any(arrows().values())


def test_every_package_says_what_it_does_not_know() -> None:
    table = DESIGN.text.partition("| package | does not know |\n")[2].partition("\n\n")[0]
    said = re.findall(r"^\| `(\w+)` \| \S.* \|$", table, re.MULTILINE)
    assert sorted(said) == sorted(packages() - {"isotone"})


def test_every_module_of_the_tables_layer_is_described() -> None:
    described = set(re.findall(r"`(\w+\.py)`", page("docs/design/tables.md").text))
    there = {path.name for path in (SOURCE / "isotone" / "tables").glob("*.py")} - {"__init__.py"}
    assert there
    assert there <= described
