"""docs/schema.md: its table of formats is that of the program."""

from __future__ import annotations

import pytest
from tests.docs.pages import page

from isotone.schema.features import FEATURES
from isotone.schema.formats import FORMATS

PAGE = page("docs/schema.md")


@pytest.mark.parametrize("name", FORMATS)
def test_the_table_has_each_format_with_what_it_lacks(name: str) -> None:
    form = FORMATS[name]
    endings = ", ".join(f"`{ending}`" for ending in form.endings)
    lacks = ", ".join(feature.title for key, feature in FEATURES.items() if key in form.lacks)
    rows = [line for line in PAGE.section("Formats").splitlines() if line.startswith(f"| `{name}`")]
    (row,) = rows
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] == [f"`{name}`", form.title, endings]
    assert (cells[3] == "yes") == (form.read is not None)
    assert cells[4] == lacks
