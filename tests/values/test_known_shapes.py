"""What is recognised is exactly what the long way leaves unchanged, with the same size."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.values.test_attribute_validation import normal_items

from isotone.errors import ApiError
from isotone.values.attribute_validation import canonical_item
from isotone.values.known_shapes import KnownShapes

encode = msgspec.json.encode
FIRST = {
    "id": {"S": "a"},
    "n": {"N": "7"},
    "b": {"B": "AAE="},
    "s": {"SS": ["a", "b"]},
    "t": {"S": "text"},
    "m": {"M": {"x": {"L": [{"N": "1"}, {"BOOL": True}]}, 'q"': {"NULL": True}}},
}


def long_way(body: bytes, names: list[str]) -> tuple[Any, int] | None:
    """What validation says of a text; None if it would change it."""
    try:
        item = msgspec.json.decode(body, type=dict[str, dict])  # type: ignore[type-arg] # any values
        canonical, size = canonical_item(item)
    except (msgspec.MsgspecError, UnicodeDecodeError, ApiError):
        return None
    if encode(canonical) != body:
        return None
    return tuple(next(iter(canonical[name].values())).encode() for name in names), size


contents = st.one_of(
    st.text(max_size=6),
    st.sampled_from(['"', "\\", "\n", "\x7f", "é", "😀", '","x":{"S":"']),
)
numbers = st.sampled_from(
    ["0", "-0", "7", "07", "1.50", "1.5", "1e2", "", "1" * 39, "1" * 41, "-", "é"]
)
binaries = st.sampled_from(["", "AAE=", "AAF=", "A", "AAE", "é", "!!!!"])


@st.composite
def alike(draw: st.DrawFn) -> bytes:
    """An item like FIRST, with contents of all kinds; sometimes with broken bytes."""
    item = {
        **FIRST,
        "id": {"S": draw(contents)},
        "n": {"N": draw(numbers)},
        "b": {"B": draw(binaries)},
        "s": {"SS": [draw(contents), draw(contents)]},
        "t": {"S": draw(contents)},
        "m": {"M": {"x": {"L": [{"N": draw(numbers)}, {"BOOL": True}]}, 'q"': {"NULL": True}}},
    }
    body = encode(item)
    if draw(st.integers(0, 5)) == 0:
        at = draw(st.integers(0, len(body)))
        return body[:at] + draw(st.binary(max_size=2)) + body[at + draw(st.integers(0, 2)) :]
    return body


@given(alike())
def test_what_is_recognised_is_in_normal_form(body: bytes) -> None:
    shapes = KnownShapes({"id": "S"})
    shapes.learn(encode(FIRST), FIRST)
    (found,) = shapes.recognised([body])
    assert found is None or found == long_way(body, ["id"])


@given(st.text(max_size=9).filter(lambda text: encode(text) == f'"{text}"'.encode()))
def test_an_item_of_a_known_shape_is_recognised(text: str) -> None:
    shapes = KnownShapes({"id": "S", "n": "N"})
    shapes.learn(encode(FIRST), FIRST)
    other = {**FIRST, "id": {"S": text}, "n": {"N": "-12.5"}, "t": {"S": text + text}}
    expected = long_way(encode(other), ["id", "n"])
    assert expected is not None
    assert shapes.recognised([encode(other)]) == [expected]


@given(normal_items)
def test_an_item_is_of_its_own_shape(item: Any) -> None:
    shapes = KnownShapes({})
    shapes.learn(encode(item), item)
    (found,) = shapes.recognised([encode(item)])
    assert found is None or found == ((), canonical_item(item)[1])


@pytest.mark.parametrize(
    ("body", "item"),
    [
        (b'{"id":{"S":"a"}, "n":{"N":"1"}}', {"id": {"S": "a"}, "n": {"N": "1"}}),  # a blank
        (b'{"id":{"S":"a"},"id":{"S":"a"}}', {"id": {"S": "a"}}),  # a name twice
        (b'{"id":{"S":"\\u0061"}}', {"id": {"S": "a"}}),  # an escape
        (b'{"n":{"N":"1"}}', {"n": {"N": "1"}}),  # without a wanted name
        (b'{"id":{"N":"1"}}', {"id": {"N": "1"}}),  # of another type
        (b'{"id":{"S":"a"},"s":{"NS":["1"]}}', {"id": {"S": "a"}, "s": {"NS": ["1"]}}),
    ],
)
def test_what_has_no_shape_is_not_learned(body: bytes, item: Any) -> None:
    shapes = KnownShapes({"id": "S"})
    shapes.learn(body, item)
    assert shapes.recognised([body]) == [None]


def test_a_file_without_shapes_is_no_longer_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotone.values.known_shapes._PATIENCE", 3)
    shapes = KnownShapes({"id": "S"})
    shapes.learn(encode(FIRST), FIRST)
    assert shapes.recognised([b"{}"] * 5) == [None] * 5
    assert shapes.recognised([encode(FIRST)]) == [None]


def test_many_shapes_are_known_at_once() -> None:
    items = [{"id": {"S": "a"}, f"n{number}": {"N": "1"}} for number in range(8)]
    shapes = KnownShapes({"id": "S"})
    for item in items:
        shapes.learn(encode(item), item)
    assert None not in shapes.recognised([encode(item) for item in items * 2])


def test_what_stands_around_an_item_is_a_part_of_its_shape() -> None:
    shapes = KnownShapes({"id": "S"}, before=b'{"Item":', after=b"}\n")
    line = b'{"Item":{"id":{"S":"a"}}}\n'
    shapes.learn(line, {"id": {"S": "a"}})
    assert shapes.recognised([line, line.strip(), line[8:-2]]) == [((b"a",), 3), None, None]


def test_what_is_learned_is_used_for_the_texts_that_follow() -> None:
    shapes = KnownShapes({"id": "S"})
    other = {"id": {"S": "a"}, "n": {"N": "1"}}
    items = [FIRST, FIRST, other, other, FIRST, other]
    seen = []
    for (text, known), item in zip(
        shapes.each([encode(each) for each in items]), items, strict=True
    ):
        assert text == encode(item)
        seen.append(known is not None)
        if known is None:
            shapes.learn(text, item)
    assert seen == [False, True, False, True, True, True]


def test_optional_attributes_have_contents_that_are_empty_where_they_are_absent() -> None:
    shapes = KnownShapes({"id": "S"}, optional={"g": "S", "n": "N"})
    texts = [b'{"id":{"S":"a"},"g":{"S":"x"}}', b'{"n":{"N":"7"},"id":{"S":"b"}}']
    for text in texts:
        shapes.learn(text, msgspec.json.decode(text))
    contents = [None if known is None else known[0] for known in shapes.recognised(texts)]
    assert contents == [(b"a", b"x", b""), (b"b", b"", b"7")]
    others = [
        b'{"id":{"S":"a"},"g":{"S":""}}',  # an index takes no empty key
        b'{"id":{"S":"a"},"g":{"N":"1"}}',
        b'{"n":{"N":"07"},"id":{"S":"b"}}',
    ]
    assert shapes.recognised(others) == [None] * 3
