"""Each idea of the glossary has one name, and is where the page says."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.docs.pages import ROOT, page

ROWS = re.findall(
    r"^\| ([^|*-][^|]*) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$",
    page("docs/design/glossary.md").text,
    re.M,
)
IDEAS = [row for row in ROWS if row[0] != "Name"]


def test_no_idea_is_named_twice() -> None:
    assert IDEAS
    assert max(Counter(name for name, *_ in IDEAS).values()) == 1


@pytest.mark.parametrize("idea", IDEAS, ids=lambda row: row[0])
def test_an_idea_is_where_the_page_says(idea: tuple[str, str, str, str]) -> None:
    named = re.findall(r"`([\w/]+\.py)`(?: `(\w+)`)?", idea[2])
    assert named
    for path, name in named:
        source = (ROOT / "src" / "isotone" / path).read_text(encoding="utf-8")
        there = re.findall(r"^(?:class|def) (\w+)", source, re.MULTILINE)
        assert name in there if name else there, f"{path} has no {name}"
