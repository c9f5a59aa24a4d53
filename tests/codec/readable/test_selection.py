"""Selections of keys against filtering the values that the keys were made of."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.codec.readable.kinds import DELIMITED, KINDS, Kind, utf8
from tests.effort import examples

from isotone.codec.readable import (
    Choice,
    Codec,
    Day,
    EpochInstant,
    FixedPoint,
    Float,
    HasPrefixes,
    Instant,
    Integer,
    Natural,
    RawText,
    SortKeySelection,
    Template,
    Text,
    Unpadded,
    Written,
)
from isotone.errors import OutOfRange, Unanswerable, UsageError

# No other template begins with ORDER and a separator, but some come close to it.
FOREIGN = [
    "ORDER",
    "ORDERS#1",
    "ORDE",
    "ORDER #x",
    "ORDER!",
    "ORDER%",
    "ORDER\x00",
    "O",
    "#ORDER#1",
    "~",
    "\U0010ffff",
    "CUSTOMER#ORDER#1",
]
LITERALS = st.sampled_from(["X", "%s", "", "#TEAM", "ORDER", "a#b", "é~"])

COMPARISONS = {
    "=": lambda value, operand: value == operand,
    "<": lambda value, operand: value < operand,
    "<=": lambda value, operand: value <= operand,
    ">": lambda value, operand: value > operand,
    ">=": lambda value, operand: value >= operand,
    "between": lambda value, low, high: low <= value <= high,
    "begins_with": lambda value, prefix: value[: len(prefix)] == prefix,
}


@st.composite
def forms(draw: st.DrawFn) -> tuple[list[str | Kind], bool]:
    """Parts of a template, and whether it begins with a literal of its own."""
    kinds: list[Kind] = draw(st.lists(st.sampled_from(DELIMITED), min_size=0, max_size=2))
    kinds.append(draw(st.sampled_from(KINDS)))
    own = draw(st.booleans())
    parts: list[str | Kind] = ["ORDER"] if own else []
    for kind in kinds:
        if draw(st.booleans()) and parts:
            parts.append(draw(LITERALS))
        parts.append(kind)
    if not kinds[-1].codec.open_ended and draw(st.booleans()):
        parts.append(draw(LITERALS))
    return parts, own


def holds(selection: SortKeySelection, text: str) -> bool:
    """What DynamoDB does with the condition, and the caller with what is excluded."""
    key, operands = utf8(text), [utf8(operand) for operand in selection.operands]
    if selection.operator == "between":
        assert operands[0] <= operands[1], "DynamoDB refuses bounds in the wrong order"
    if selection.operator is not None:
        assert all(operands), "DynamoDB refuses an empty text"
        if not COMPARISONS[selection.operator](key, *operands):
            return False
    return text not in selection.excluded


def rows_of(draw: Any, kinds: Sequence[Kind]) -> list[tuple[Any, ...]]:
    """Rows that often agree in their leading values."""
    pools = [draw(st.lists(kind.values, min_size=1, max_size=4)) for kind in kinds]
    row = st.tuples(*map(st.sampled_from, pools))
    return draw(st.lists(row, min_size=1, max_size=8))


@settings(max_examples=examples(600), deadline=None)
@given(form=forms(), data=st.data())
def test_selected_are_the_keys_whose_values_satisfy(
    form: tuple[list[str | Kind], bool], data: st.DataObject
) -> None:
    parts, own = form
    kinds = [part for part in parts if isinstance(part, Kind)]
    template = Template([part if isinstance(part, str) else part.codec for part in parts])
    rows = rows_of(data.draw, kinds)
    model = data.draw(st.sampled_from(rows))
    leading = data.draw(st.integers(0, len(kinds)))
    equal, operator, operands = list(model[:leading]), None, []
    if leading < len(kinds):
        kind = kinds[leading]
        choices = [None, *COMPARISONS] if isinstance(kind.codec, HasPrefixes) else [
            None, *list(COMPARISONS)[:-1]
        ]  # fmt: skip
        operator = data.draw(st.sampled_from(choices))
        value = st.sampled_from([row[leading] for row in rows]) | kind.values
        operands = data.draw(
            st.lists(value, min_size=2 if operator == "between" else 1, max_size=2)
            if operator == "between"
            else st.lists(value, min_size=1, max_size=1)
            if operator
            else st.just([])
        )

    def wanted(row: tuple[Any, ...]) -> bool:
        meanings = [each.meaning(value) for each, value in zip(kinds, row, strict=True)]
        if meanings[:leading] != [
            each.meaning(value) for each, value in zip(kinds, equal, strict=False)
        ]:
            return False
        return operator is None or COMPARISONS[operator](
            meanings[leading], *[kinds[leading].meaning(value) for value in operands]
        )

    selection = template.select(equal, operator, operands)
    for row in rows:
        key = template.render(row)
        if key:  # no key is empty
            assert holds(selection, key) == wanted(row)
            assert selection.admits(key) == wanted(row)
            if selection.empty:
                assert not wanted(row)
    assert len(selection.excluded) <= 1
    if own:
        assert not any(holds(selection, key) for key in FOREIGN)


@settings(max_examples=examples(150), deadline=None)
@given(form=forms(), data=st.data())
def test_keys_sort_by_their_values_and_are_read_back(
    form: tuple[list[str | Kind], bool], data: st.DataObject
) -> None:
    parts, _ = form
    kinds = [part for part in parts if isinstance(part, Kind)]
    template = Template([part if isinstance(part, str) else part.codec for part in parts])
    left, right = (rows_of(data.draw, kinds) * 2)[:2]
    direction, compared = 0, zip(kinds, left, right, strict=True)
    for kind, one, other in compared:
        one, other = kind.meaning(one), kind.meaning(other)
        if one != other:
            direction = (1 if one > other else -1) * (1 if kind.codec.ascending else -1)
            break
    keys = [utf8(template.render(row)) for row in (left, right)]
    assert (keys[0] > keys[1]) - (keys[0] < keys[1]) == direction
    read = template.parse(template.render(left))
    assert read == tuple(kind.returned(value) for kind, value in zip(kinds, left, strict=True))
    low, high = template.bounds(left[: len(left) // 2])
    assert utf8(low) <= keys[0]
    assert high is None or keys[0] <= utf8(high)


ORDERS = Template([Choice(("PLACED", "SHIPPED", "CANCELLED")), Instant("seconds")])
ISSUES = Template(["REPO", Text(), "ISSUE", Natural(99_999).descending()])
NAMES = Template(["NAME", Text()])
RAW = Template(["NAME", RawText()])
JULY = datetime(2019, 7, 1, tzinfo=UTC)
OCTOBER = datetime(2019, 10, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("template", "equal", "operator", "operands", "selection"),
    [
        (ORDERS, [], None, [], SortKeySelection()),
        (ORDERS, ["SHIPPED"], None, [], SortKeySelection("begins_with", ("1_SHIPPED#",))),
        (
            ORDERS,
            ["CANCELLED"],
            "between",
            [JULY, OCTOBER],
            SortKeySelection(
                "between",
                ("2_CANCELLED#2019-07-01T00:00:00Z", "2_CANCELLED#2019-10-01T00:00:00Z"),
            ),
        ),
        (ORDERS, [], ">", ["PLACED"], SortKeySelection(">=", ("0_PLACED$",))),
        (ORDERS, [], "<", ["CANCELLED"], SortKeySelection("<=", ("2_CANCELLED",))),
        (ORDERS, [], "=", ["SHIPPED"], SortKeySelection("begins_with", ("1_SHIPPED#",))),
        (ISSUES, ["a/b", 157], None, [], SortKeySelection("=", ("REPO#a/b#ISSUE#99842",))),
        (
            ISSUES,
            ["a/b"],
            "<",
            [157],
            SortKeySelection("between", ("REPO#a/b#ISSUE#99842$", "REPO#a/b#ISSUE$")),
        ),
        (
            ISSUES,
            ["a/b"],
            ">",
            [157],
            SortKeySelection("between", ("REPO#a/b#ISSUE#", "REPO#a/b#ISSUE#99841")),
        ),
        (
            ISSUES,
            ["a/b"],
            "between",
            [2, 10],
            SortKeySelection("between", ("REPO#a/b#ISSUE#99989", "REPO#a/b#ISSUE#99997")),
        ),
        (ISSUES, [], "begins_with", ["a#"], SortKeySelection("begins_with", ("REPO#a$h",))),
        (
            NAMES,
            [],
            "<",
            ["b"],
            SortKeySelection("between", ("NAME#", "NAME#b"), frozenset({"NAME#b"})),
        ),
        (NAMES, [], ">", ["b"], SortKeySelection("between", ("NAME#b$", "NAME$"))),
        (RAW, [], ">", ["b"], SortKeySelection("between", ("NAME#b\x00", "NAME$"))),
        (Template([RawText()]), [], "<", ["b"], SortKeySelection("<", ("b",))),
        (Template([RawText()]), [], ">=", [""], SortKeySelection()),
        (Template([RawText()]), [], "between", ["", "b"], SortKeySelection("<=", ("b",))),
        (Template([RawText()]), [], "begins_with", [""], SortKeySelection()),
        (
            Template(["X", Float()]),
            [],
            "<=",
            [1.0],
            SortKeySelection("between", ("X#", "X#bff0000000000000")),
        ),
    ],
)
def test_conditions(
    template: Template,
    equal: list[Any],
    operator: Any,
    operands: list[Any],
    selection: SortKeySelection,
) -> None:
    assert template.select(equal, operator, operands) == selection


@pytest.mark.parametrize(
    ("template", "operator", "operands"),
    [
        (NAMES, "between", ["b", "a"]),
        (ISSUES, "between", ["b", "a"]),
        (Template([RawText()]), "<", [""]),
        (Template([RawText()]), "=", [""]),
        (Template([RawText()]), "<=", [""]),
        (Template([RawText()]), "between", ["", ""]),
        (Template([Day().descending()]), "between", [date(2020, 2, 1), date(2020, 1, 1)]),
    ],
)
def test_what_selects_nothing_says_so(template: Template, operator: Any, operands: Any) -> None:
    selection = template.select([], operator, operands)
    assert selection.empty
    assert not selection.admits(selection.operands[0])


def test_what_selects_something_is_not_empty() -> None:
    assert not NAMES.select([], "between", ["a", "a"]).empty
    assert not NAMES.select([], "<", ["b"]).empty
    assert not SortKeySelection().empty


@pytest.mark.parametrize(
    ("equal", "operator", "operands", "message"),
    [
        (["a", 1], ">", [2], "no component left to which '>'"),
        (["a", 1, 2], None, [], "takes 2 values, not 3"),
        (["a"], "begins_with", [1], "not to Natural descending: use between"),
        ([], "begins_with", ["a", "b"], "begins_with takes 1 operands, not 2"),
        (["a"], "between", [1], "between takes 2 operands, not 1"),
        (["a"], "<", [1, 2], "< takes 1 operands, not 2"),
        (["a"], "=", [], "= takes 1 operands, not 0"),
        (["a"], "=", [1, 2], "= takes 1 operands, not 2"),
        (["a"], None, [1], "without an operator takes 0 operands, not 1"),
        (["a"], "!=", [1], "'!=' is not an operator of a key; use one of =, <, "),
    ],
)
def test_what_cannot_be_asked_is_refused(
    equal: list[Any], operator: Any, operands: list[Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ISSUES.select(equal, operator, operands)


START = datetime(2020, 1, 1, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# A codec, what it writes of what is drawn, and values that it cannot write, too.
ENCLOSING: list[tuple[Codec[Any], st.SearchStrategy[Any], st.SearchStrategy[Any]]] = [
    (Natural(99), st.integers(0, 99), st.integers(-200, 200)),
    (Integer(-50, 7), st.integers(-50, 7), st.integers(-200, 200)),
    (FixedPoint(9, 1), st.integers(0, 90).map(lambda n: Decimal(n) / 10), st.decimals(-20, 20)),
    (
        FixedPoint(9, 0, signed=True),
        st.integers(-9, 9).map(Decimal),
        st.decimals(-20, 20) | st.integers(-20, 20),
    ),
    (
        Instant("seconds"),
        st.integers(0, 9).map(lambda n: START + timedelta(seconds=n)),
        st.integers(-20, 200).map(lambda n: START + timedelta(seconds=n / 8)),
    ),
    (
        EpochInstant("milliseconds", 4),
        st.integers(0, 9999).map(lambda n: EPOCH + timedelta(milliseconds=n)),
        st.integers(-20_000, 20_000).map(lambda n: EPOCH + timedelta(milliseconds=n / 2)),
    ),
    (
        Written("%Y-%m-%d %H"),
        st.integers(0, 9).map(lambda n: START + timedelta(hours=n)),
        st.integers(-8, 80).map(lambda n: START + timedelta(hours=n / 8)),
    ),
]


@settings(max_examples=examples(300))
@given(data=st.data())
def test_values_that_no_key_holds_have_their_place_among_those_that_keys_hold(
    data: st.DataObject,
) -> None:
    codec, kept, any_ = data.draw(st.sampled_from(ENCLOSING))
    before, behind = data.draw(
        st.sampled_from([((), ()), (("A",), ()), ((), ("B",)), (("A",), ("B",))])
    )
    turned = codec.descending() if data.draw(st.booleans()) else codec
    template = Template([*before, turned, *behind])
    values = data.draw(st.lists(kept, max_size=10))
    operator = data.draw(st.sampled_from(["=", "<", "<=", ">", ">=", "between"]))
    operands = [data.draw(any_ | kept) for _ in range(1 + (operator == "between"))]
    selection = template.select([], operator, operands)
    for value in values:
        meant = COMPARISONS[operator](value, *operands)
        assert holds(selection, template.render([value])) is meant, (value, selection)


def test_what_is_beyond_a_leading_component_is_in_no_key() -> None:
    template = Template(["A", Natural(99), Natural(99)])
    assert template.select([100]).empty
    assert template.select([100], ">", [5]).empty
    assert template.select([5, 100]).empty


def test_numbers_without_a_width_are_asked_for_what_no_key_holds() -> None:
    template = Template(["A", Unpadded()])
    assert template.select([], "=", [-1]).empty
    with pytest.raises(Unanswerable):
        template.select([], ">", [-1])


def test_infinity_is_nowhere() -> None:
    with pytest.raises(OutOfRange, match="Infinity does not fit"):
        Template([FixedPoint(9, 1)]).select([], "<", [Decimal("Infinity")])
