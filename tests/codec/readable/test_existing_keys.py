"""Templates of tables that are there already, against filtering the values that their keys were made of."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codec.readable.kinds import DELIMITED, RAW, Kind, points, reversed_kind, texts, utf8
from tests.codec.readable.test_selection import COMPARISONS, holds, rows_of
from tests.effort import examples

from isotone.codec.readable import (
    Day,
    HasPrefixes,
    Hex,
    Natural,
    Operator,
    RawText,
    SortKeySelection,
    Template,
    Text,
    Unpadded,
    beyond,
)
from isotone.errors import MalformedKey, OutOfRange, Unanswerable, UsageError

SEPARATORS = ["_", "|", ":", "::", "-", "/", " ", "--:", "ab", "aXa", "~", "#", "##", "$", "", ""]
LITERALS = ["X", "%s", "", "user", "/", "_a", "é~", ":", "-order-", "1"]
# Words of the separators themselves, and of what is next to them.
plain = st.text("ab:#_-|X/ ~$`", max_size=4) | texts

BY_HAND = [
    Kind("raw text", RawText(), plain, points),
    Kind("raw text", RawText("lower"), plain.map(str.lower), points),
    Kind("unpadded", Unpadded(), st.integers(0, 120)),
    Kind("signed", Unpadded(signed=True), st.integers(-120, 120)),
    *(kind for kind in (*DELIMITED, *map(reversed_kind, RAW)) if kind.codec.alphabet is not None or kind.codec.width),
]  # fmt: skip


@st.composite
def forms(draw: st.DrawFn) -> tuple[Template, list[Kind]]:
    """A template whose components all have an end."""
    separator = draw(st.sampled_from(SEPARATORS))
    kinds: list[Kind] = draw(
        st.lists(st.sampled_from(BY_HAND[:4]) | st.sampled_from(BY_HAND), min_size=1, max_size=3)
    )
    parts: list[Any] = [draw(st.sampled_from(LITERALS))] if draw(st.booleans()) else []
    kept = []
    for kind in kinds:
        parts.append(kind.codec)
        kept.append(kind)
        if draw(st.booleans()):
            parts.append(draw(st.sampled_from(LITERALS)))
    for count in (len(parts), 2, 1):
        try:
            template = Template(parts[:count], separator)
        except UsageError:
            continue
        return template, kept[: len(template.codecs)]
    return Template([Day()]), [Kind("day", Day(), st.dates())]


def written(template: Template, rows: list[tuple[Any, ...]]) -> list[tuple[str, tuple[Any, ...]]]:
    """The keys of those rows that can be written."""
    found = []
    for row in rows:
        try:
            found.append((template.render(row), row))
        except OutOfRange:
            assert any(isinstance(codec, RawText) for codec in template.codecs)
    return [(key, row) for key, row in found if key]


@settings(max_examples=examples(600), deadline=None)
@given(form=forms(), data=st.data())
def test_selected_are_the_keys_whose_values_satisfy(
    form: tuple[Template, list[Kind]], data: st.DataObject
) -> None:
    template, kinds = form
    keys = written(template, rows_of(data.draw, kinds))
    if not keys:
        return
    for key, row in keys:
        assert template.parse(key) == tuple(
            kind.returned(value) for kind, value in zip(kinds, row, strict=True)
        )
    _, model = data.draw(st.sampled_from(keys))
    leading = data.draw(st.integers(0, len(kinds)))
    equal, operator, operands = model[:leading], None, []
    if leading < len(kinds):
        kind = kinds[leading]
        operator = data.draw(st.sampled_from([None, *COMPARISONS]))
        if operator == "begins_with" and not isinstance(kind.codec, HasPrefixes):
            operator = "="
        count = 0 if operator is None else 2 if operator == "between" else 1
        value = st.sampled_from([row[leading] for _, row in keys]) | kind.values
        operands = [data.draw(value) for _ in range(count)]

    def wanted(row: tuple[Any, ...]) -> bool:
        meanings = [each.meaning(value) for each, value in zip(kinds, row, strict=True)]
        if meanings[:leading] != [
            each.meaning(value) for each, value in zip(kinds, equal, strict=False)
        ]:
            return False
        return operator is None or COMPARISONS[operator](
            meanings[leading], *[kinds[leading].meaning(value) for value in operands]
        )

    try:
        selection = template.select(equal, operator, operands)
    except (Unanswerable, OutOfRange) as error:
        check_refusal(template, leading, operator, operands, error)
        return
    for key, row in [*keys, *neighbours(template, selection)]:
        assert holds(selection, key) == wanted(row)
        assert selection.admits(key) == wanted(row)
        if selection.empty:
            assert not wanted(row)


def check_refusal(
    template: Template, place: int, operator: Any, operands: list[Any], error: UsageError
) -> None:
    """A range is refused where order is lost, an operand where no key could hold it, and nothing else."""
    codec = template.codecs[place]
    if operator in (None, "=", "begins_with"):
        assert operator is not None
        assert codec.width is None
    elif isinstance(error, Unanswerable):
        assert isinstance(codec, RawText | Unpadded | Hex)
        assert not template.keeps_order(place)
    else:
        assert isinstance(codec, RawText)


def neighbours(
    template: Template, selection: SortKeySelection
) -> list[tuple[str, tuple[Any, ...]]]:
    """The bounds themselves, and what is next to them, where they are keys of the template."""
    found = []
    for operand in selection.operands:
        for key in (operand, operand[:-1], operand + "0", operand + "a", operand + "\x00"):
            try:
                found.append((key, template.parse(key)))
            except MalformedKey:
                continue
    return [(key, row) for key, row in found if key]


@settings(max_examples=examples(300), deadline=None)
@given(form=forms(), data=st.data())
def test_keys_sort_by_their_values_where_order_is_kept(
    form: tuple[Template, list[Kind]], data: st.DataObject
) -> None:
    template, kinds = form
    keys = written(template, rows_of(data.draw, kinds) * 2)
    if len(keys) < 2:
        return
    (one, left), (other, right) = keys[:2]
    compared = zip(kinds, left, right, strict=True)
    for place, (kind, mine, yours) in enumerate(compared):
        mine, yours = kind.meaning(mine), kind.meaning(yours)
        if mine == yours:
            continue
        if template.keeps_order(place):
            assert (utf8(one) > utf8(other)) == ((mine > yours) == kind.codec.ascending)
        else:
            assert one != other
        return
    assert one == other


@settings(max_examples=examples(300))
@given(value=plain, stop=st.sampled_from([each for each in SEPARATORS if each]), rest=plain)
def test_a_text_is_refused_exactly_where_it_would_not_be_read_back(
    value: str, stop: str, rest: str
) -> None:
    template = Template([RawText(), RawText()], stop)
    first, found, second = (value + stop + rest).partition(stop)
    assert found
    if (first, second) == (value, rest):
        assert template.parse(template.render([value, rest])) == (value, rest)
    else:
        with pytest.raises(OutOfRange, match="would be read back as another value"):
            template.render([value, rest])


USERS = Template(["USER", RawText(), "ORDER", Natural(999)])
NAMES = Template(["USER", RawText(until="_")], "_")
POSTS = Template(["user", RawText(), "post", Natural(999)], "::")
PAGES = Template(["D", Natural(99), RawText()], "_")
DATED = Template(["order-", Natural(999), Day(), "/", RawText()], "")


@pytest.mark.parametrize(
    ("template", "equal", "operator", "operands", "selection"),
    [
        (USERS, ["a b"], None, [], SortKeySelection("begins_with", ("USER#a b#ORDER#",))),
        (USERS, [], "begins_with", ["a "], SortKeySelection("begins_with", ("USER#a ",))),
        (
            USERS, ["a b"], ">", [7],
            SortKeySelection("between", ("USER#a b#ORDER#007$", "USER#a b#ORDER$")),
        ),
        (NAMES, ["a"], None, [], SortKeySelection("=", ("USER_a",))),
        (
            NAMES, [], ">", ["a"],
            SortKeySelection("between", ("USER_a\x00", "USER`"), frozenset({"USER`"})),
        ),
        (
            NAMES, [], "<", ["a"],
            SortKeySelection("between", ("USER_", "USER_a"), frozenset({"USER_a"})),
        ),
        (NAMES, [], "between", ["a", "b"], SortKeySelection("between", ("USER_a", "USER_b"))),
        (POSTS, ["a:b"], None, [], SortKeySelection("begins_with", ("user::a:b::post::",))),
        (
            POSTS, ["a"], ">=", [7],
            SortKeySelection(
                "between", ("user::a::post::007", "user::a::post:;"),
                frozenset({"user::a::post:;"}),
            ),
        ),
        (
            PAGES, [], ">", [7],
            SortKeySelection("between", ("D_07`", "D`"), frozenset({"D_07`", "D`"})),
        ),
        (PAGES, [], "<", [7], SortKeySelection("between", ("D_", "D_07"), frozenset({"D_07"}))),
        (
            Template([Natural(9), RawText()], ""), [], "<", [5],
            SortKeySelection("<=", ("5",), frozenset({"5"})),
        ),
        (DATED, [7], None, [], SortKeySelection("begins_with", ("order-007",))),
        (
            DATED, [], ">", [7],
            SortKeySelection("between", ("order-008", "order."), frozenset({"order."})),
        ),
        (
            DATED, [], "between", [7, 9],
            SortKeySelection("between", ("order-007", "order-00:"), frozenset({"order-00:"})),
        ),
    ],
)  # fmt: skip
def test_conditions(
    template: Template,
    equal: list[Any],
    operator: Operator,
    operands: Any,
    selection: SortKeySelection,
) -> None:
    assert template.select(equal, operator, operands) == selection


@pytest.mark.parametrize(
    ("template", "operator", "operands", "message"),
    [
        (USERS, ">", ["a"], "keys of USER#.* do not sort by RawText.*use = or begins_with"),
        (USERS, "between", ["a", "b"], "do not sort by"),
        (USERS, "=", ["a#b"], "would be read back as another value"),
        (USERS, "begins_with", ["a#"], "would be read back as another value"),
        (POSTS, "begins_with", ["a:"], "ends in the beginning of '::'"),
        (NAMES, "begins_with", ["a_"], "contains '_'"),
        (Template([Hex(), Day()], "_"), "<", [b"a"], "do not sort by Hex"),
    ],
)
def test_what_is_no_range_is_refused(
    template: Template, operator: Operator, operands: list[Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        template.select([], operator, operands)


def test_a_low_separator_keeps_the_order_of_what_is_above_it() -> None:
    assert Template([Hex(), Day()], "-").keeps_order(0)
    assert Template([Text(), Day()], " ").keeps_order(0)
    assert Template([Text().descending(), Day()], "|").keeps_order(0)
    assert not Template([Hex(), Day()], "0x").keeps_order(0)  # 01 0x… comes after 0100 0x…


def test_beyond_a_text_is_what_is_next_to_all_that_begin_with_it() -> None:
    assert beyond("ab") == "ac"
    assert beyond("a\U0010ffff") == "b"
    assert beyond("a\ud7ff") == "a\ue000"
