"""Each structure has a page, all pages are made alike, and the core of each fits a page or two."""

from __future__ import annotations

import re

import pytest
from tests.docs.pages import PAGES, Page, page

import isotone.structures
from isotone.structures.structure import Structure

SECTIONS = ["Goal", "Challenge", "Explanation", "Ordering", "Pattern", "Cost", "Extensions"]
TWO_PAGES = 120  # lines

OVERVIEW = page("docs/structures/README.md")
CORES = page("docs/design/structures.md")
ABOUT_ONE = [each for each in PAGES if re.match(r"docs/structures/(?!README)", each.name)]


@pytest.mark.parametrize("page", ABOUT_ONE, ids=lambda page: page.name)
def test_a_page_has_all_sections_in_order(page: Page) -> None:
    assert re.findall(r"^## (.+)$", page.prose, re.MULTILINE) == SECTIONS
    assert page.name.rpartition("/")[2] in OVERVIEW.links


@pytest.mark.parametrize("page", ABOUT_ONE, ids=lambda page: page.name)
def test_its_core_is_a_program_of_a_page_or_two(page: Page) -> None:
    (core,) = (link for link in page.links if link.startswith("../design/structures.md#"))
    (heading,) = (
        each
        for each in re.findall(r"^## (.+)$", CORES.prose, re.MULTILINE)
        if each.lower().replace(" ", "-") == core.partition("#")[2]
    )
    after = CORES.text.partition(f"\n## {heading}\n")[2]
    begins = CORES.text.count("\n") - after.count("\n")
    ends = begins + after.partition("\n## ")[0].count("\n")
    programs = [each.text for each in CORES.blocks("python") if begins < each.line < ends]
    assert programs
    assert max(text.count("\n") for text in programs) <= TWO_PAGES


def test_every_structure_is_on_a_page() -> None:
    told = "".join(each.text for each in ABOUT_ONE)
    structures = [
        name
        for name in isotone.structures.__all__
        if isinstance(found := getattr(isotone.structures, name), type)
        and issubclass(found, Structure)
    ]
    assert structures
    assert [name for name in structures if name not in told] == []
