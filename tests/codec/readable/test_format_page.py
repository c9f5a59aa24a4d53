"""The chapter that describes readable components shows texts; they are the ones that are written."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import isotone.codec.readable as readable
from isotone.codec.readable import Text

PAGE = (Path(__file__).parents[3] / "docs/design/format.md").read_text(encoding="utf-8")
MIDNIGHT = datetime(2020, 1, 11, tzinfo=UTC)
MEANINGS: dict[str, Any] = {
    "157": 157,
    "−157": -157,
    "12.5": Decimal("12.5"),
    "−12.5": Decimal("-12.5"),
    "1.0": 1.0,
    "2020-01-11, midnight UTC": MIDNIGHT,
    "the same": MIDNIGHT,
    "2020-01-11": date(2020, 1, 11),
    "16:20": time(16, 20),
    "one hour": timedelta(hours=1),
    "`C# in depth`": "C# in depth",
    "`SHIPPED`": "SHIPPED",
    "true": True,
    "the bytes `00 FF`": b"\x00\xff",
}


def rows() -> list[tuple[str, str, str, str]]:
    """Kind, value and both texts; an empty kind is that of the row above."""
    found, kind = [], ""
    for line in re.findall(r"^\| (.*) \|$", PAGE, re.MULTILINE):
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 4 and cells[1] in MEANINGS:
            kind = cells[0].strip("`") or kind
            found.append((kind, cells[1], cells[2].strip("`"), cells[3].strip("`")))
    return found


def test_the_page_has_examples() -> None:
    assert len(rows()) == 18


@pytest.mark.parametrize(("kind", "value", "ascending", "descending"), rows())
def test_kinds(kind: str, value: str, ascending: str, descending: str) -> None:
    codec = eval(kind, vars(readable))
    assert codec.encode(MEANINGS[value]) == ascending
    assert codec.descending().encode(MEANINGS[value]) == descending


def test_escapes() -> None:
    shown = dict(re.findall(r"\| (`.`|space) \| `(\$.)` ", PAGE))
    meanings = {name.strip("`").replace("space", " "): text for name, text in shown.items()}
    assert meanings == {each: Text().encode(each) for each in ' !"#$'}


def test_every_kind_is_on_the_page() -> None:
    for name in readable.__all__:
        codec = getattr(readable, name)
        if isinstance(codec, type) and hasattr(codec, "samples") and name != "Codec":
            assert f"`{name}" in PAGE
