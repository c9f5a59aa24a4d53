"""What is stored is cut to a size, with a mark, and is otherwise as it was."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from isotone.mcp.answers import LARGEST_ANSWER, LONGEST_LIST, LONGEST_TEXT, cut

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@given(VALUES)
def test_a_small_answer_is_as_it_was(value: Any) -> None:
    assert cut(value) == value


@given(VALUES, st.integers(0, 500))
def test_an_answer_is_never_much_larger_than_asked_for(value: Any, most: int) -> None:
    found = json.dumps(cut(value, most), ensure_ascii=False)
    marks = found.count("[cut: ")
    plain = len(json.dumps(value, ensure_ascii=False))
    assert len(found) - 40 * marks <= plain
    if marks:
        assert most < plain + 10_000


def test_long_texts_and_lists_have_a_mark() -> None:
    text = cut("x" * (LONGEST_TEXT + 1))
    assert text == "x" * LONGEST_TEXT + f"… [cut: {LONGEST_TEXT + 1:,} characters in all]"
    listed = cut([1] * (LONGEST_LIST + 1))
    assert listed == [1] * LONGEST_LIST + [f"… [cut: {LONGEST_LIST + 1:,} in all]"]
    members = cut({str(number): number for number in range(LONGEST_LIST + 5)})
    assert len(members) == LONGEST_LIST + 1
    assert members["…"] == f"[cut: {LONGEST_LIST + 5:,} in all]"


def test_the_whole_answer_has_a_bound() -> None:
    huge = [{"S": "y" * LONGEST_TEXT} for _ in range(LONGEST_LIST)]
    assert len(json.dumps(cut(huge))) < LARGEST_ANSWER * 1.2
    assert "[cut: 200 in all]" in cut(huge)[-1]


def test_what_is_nested_deeply_is_cut() -> None:
    deep: Any = "bottom"
    for _ in range(3000):
        deep = [deep]
    assert "nested too deeply" in json.dumps(cut(deep))
