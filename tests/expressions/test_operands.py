"""Document paths, and searches of long lists."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.expressions import operands
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


class Whole(list[Any]):
    """A list that is too long to be gone through in one call."""

    def __contains__(self, value: object) -> bool:
        raise AssertionError("one call goes through the whole list")


LONG: list[dict[str, Any]] = [
    *({"N": str(number)} for number in range(12_000)),
    {"SS": ["a", "b"]},
    {"L": [{"NS": ["1", "2"]}]},
]


@pytest.mark.parametrize("often", [False, True])
@pytest.mark.parametrize(
    ("part", "expected"),
    [
        *(({"N": str(number)}, True) for number in (0, 4999, 5000, 5001, 9999, 10_000, 11_999)),
        ({"N": "12000"}, False),
        ({"S": "1"}, False),
        ({"SS": ["b", "a"]}, True),
        ({"SS": ["b"]}, False),
        ({"L": [{"NS": ["2", "1"]}]}, True),
    ],
)
def test_a_long_list_is_searched_in_parts(
    part: dict[str, Any], expected: bool, often: bool
) -> None:
    value = {"L": Whole(LONG)}
    found: list[bool] = []

    def search(item: Any, values: Any) -> bool:
        found.extend(operands.contains(value, part) for _ in range(3))
        return True

    (operands.searching_often(search) if often else search)({}, {})
    assert found == [expected] * 3


def test_the_members_of_a_long_list_are_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Noted(set[Any]):
        def update(self, *others: Any) -> None:
            sizes.extend(map(len, others))
            super().update(*others)

    monkeypatch.setattr(operands, "set", Noted, raising=False)
    assert operands._elements(LONG) == {
        *(("N", str(number)) for number in range(12_000)),
        ("SS", frozenset("ab")),
        ("L", (("NS", frozenset("12")),)),
    }
    assert max(sizes) <= 5000
