"""Projections: the addressed part of an item, in its place."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import assume, given
from tests.expressions.trees import items, paths, projections

from isotone.errors import ValidationException
from isotone.expressions import CompiledProjection, projection

ITEM: dict[str, Any] = {
    "n": {"N": "5"},
    "s": {"S": "str"},
    "l": {"L": [{"N": "0"}, {"M": {"a": {"N": "1"}, "b": {"N": "2"}}}, {"N": "2"}]},
    "m": {"M": {"x": {"N": "1"}, "l": {"L": [{"S": "a"}, {"S": "b"}]}, "bare": {"M": {}}}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n", {"n": {"N": "5"}}),
        ("s, n, q", {"n": {"N": "5"}, "s": {"S": "str"}}),
        ("q", {}),
        ("m.x", {"m": {"M": {"x": {"N": "1"}}}}),
        ("m.l[1], m.x", {"m": {"M": {"x": {"N": "1"}, "l": {"L": [{"S": "b"}]}}}}),
        ("l[2], l[0]", {"l": {"L": [{"N": "0"}, {"N": "2"}]}}),
        ("l[2], l[1].b", {"l": {"L": [{"M": {"b": {"N": "2"}}}, {"N": "2"}]}}),
        ("l[9]", {}),
        ("l[0].a", {}),
        ("m.q", {}),
        ("m.q.r, n", {"n": {"N": "5"}}),
        ("m.bare", {"m": {"M": {"bare": {"M": {}}}}}),
        ("m.bare.a", {}),
        ("n.x", {}),
        ("m[0]", {}),
        ("l.a", {}),
    ],
)
def test_projections(text: str, expected: dict[str, Any]) -> None:
    assert projection(text).project(ITEM) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n, n", "overlap with each other; must remove or rewrite one of these paths; path one: [n], path two: [n]"),
        ("m, m.x", "overlap with each other; must remove or rewrite one of these paths; path one: [m], path two: [m, x]"),
        ("m.x, m", "overlap with each other; must remove or rewrite one of these paths; path one: [m, x], path two: [m]"),
        ("m.x, m[0]", "conflict with each other; must remove or rewrite one of these paths; path one: [m, x], path two: [m, [0]]"),
        ("#u, n, n", "overlap with each other; must remove or rewrite one of these paths; path one: [n], path two: [n]"),
    ],
)  # fmt: skip
def test_paths_must_keep_apart(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        projection(text)
    assert caught.value.message == f"Invalid ProjectionExpression: Two document paths {message}"


@pytest.mark.parametrize("text", ["#u", "n, n, #u"])
def test_the_last_path_is_looked_at_first(text: str) -> None:
    with pytest.raises(ValidationException, match="attribute name: #u"):
        projection(text)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Any:
    """All scalars, sets and empty collections of an item, with the paths that lead to them."""
    ((code, content),) = value.items()
    inside: Any = []
    if code == "M":
        inside = content.items()
    elif code == "L":
        inside = enumerate(content)
    found = [leaf for element, member in inside for leaf in leaves(member, (*path, element))]
    return found or [(path, value)]


@given(projections(paths()), items)
def test_a_projection_keeps_exactly_what_is_addressed(tree: Any, item: Any) -> None:
    try:
        made = CompiledProjection.from_node(tree)
    except ValidationException:
        assume(False)
    addressed = [path.elements for path in tree.paths]
    expected = [
        (path, value)
        for path, value in leaves({"M": item})
        if any(path[: len(prefix)] == prefix for prefix in addressed)
    ]
    found = leaves({"M": made.project(item)}) if made.project(item) else []
    assert sorted(str(value) for _, value in found) == sorted(str(value) for _, value in expected)
    names = sorted(str([e for e in path if isinstance(e, str)]) for path, _ in expected)
    assert sorted(str([e for e in path if isinstance(e, str)]) for path, _ in found) == names


@pytest.mark.parametrize("count", [1, 12_000, 30_000])
def test_many_names(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    sizes: list[int] = []

    class Noted(set[str]):
        def update(self, *others: Any) -> None:
            sizes.extend(map(len, others))
            super().update(*others)

    monkeypatch.setattr(sys.modules[CompiledProjection.__module__], "set", Noted, raising=False)
    names = [f"a{number}" for number in reversed(range(count))]
    made = CompiledProjection.of_names(names)
    assert made.attributes == set(names)
    assert max(sizes) <= 5000
    item = {f"a{number}": {"N": str(number)} for number in range(-10, 20_000)}
    found = made.project(item)
    assert found == {f"a{number}": {"N": str(number)} for number in range(min(count, 20_000))}
    # In the order of the item or of the names, of which there are fewer.
    assert next(iter(found)) == ("a0" if count > 20_010 else names[0])
