"""Document paths."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.expressions.messages import path_text
from isotone.expressions.operands import lookup

ITEM: dict[str, Any] = {
    "a": {"M": {"b": {"L": [{"S": "x"}, {"M": {"c": {"NULL": True}}}]}}},
    "s": {"SS": ["x"]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("s",), {"SS": ["x"]}),
        (("q",), None),
        (("a", "b", 0), {"S": "x"}),
        (("a", "b", 1, "c"), {"NULL": True}),
        (("a", "b", 2), None),
        (("a", "b", "c"), None),
        (("a", 0), None),
        (("s", 0), None),
        (("q", "b", 0), None),
        (("a", "b", 0, "x", 1), None),
    ],
)
def test_lookup(path: tuple[str | int, ...], expected: Any) -> None:
    assert lookup(path)(ITEM) == expected


def test_how_a_path_is_shown() -> None:
    assert path_text(("a", "b.c", 0)) == "[a, b.c, [0]]"
