"""Templates: their keys, reading them back, and what is refused."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.readable.kinds import KINDS, texts

from isotone.codec.readable import (
    Choice,
    Day,
    FixedPoint,
    Flag,
    Instant,
    Natural,
    RawText,
    Template,
    Text,
    Unpadded,
    Uuid,
    Written,
)
from isotone.errors import MalformedKey, OutOfRange, UsageError

DAY = date(2020, 1, 11)
ORDER = Template(["CUSTOMER", Text(), "ORDER", Natural(99_999).descending()])
PLACED = Template(["CUSTOMER", Text(), "ORDER", Instant()])


@pytest.mark.parametrize(
    ("template", "values", "key"),
    [
        (ORDER, ["36ab", 157], "CUSTOMER#36ab#ORDER#99842"),
        (
            PLACED,
            ["36ab", datetime(2020, 1, 11, tzinfo=UTC)],
            "CUSTOMER#36ab#ORDER#2020-01-11T00:00:00.000000Z",
        ),
        (ORDER, ["", 0], "CUSTOMER##ORDER#99999"),
        (ORDER, ["a#ORDER#1", 0], "CUSTOMER#a$hORDER$h1#ORDER#99999"),
        (Template(["ISSUE", Natural(99_999_999)]), [157], "ISSUE#00000157"),
        (Template(["#TEAM", Text()]), ["Ops"], "#TEAM#Ops"),
        (Template(["", "TEAM", Text()]), ["Ops"], "#TEAM#Ops"),
        (Template(["100%", Text(), "%s"]), ["%d"], "100%#%d#%s"),
        (Template(["META"]), [], "META"),
        (Template([Text(), "META"]), ["a"], "a#META"),
        (Template(["ROW", RawText()]), ["a#b"], "ROW#a#b"),
        (Template([RawText()]), ["#1 "], "#1 "),
        (
            Template(["USER", RawText(), "ORDER", Day()]),
            ["a b$", DAY],
            "USER#a b$#ORDER#2020-01-11",
        ),
        (Template(["USER", RawText()], "_"), ["1"], "USER_1"),
        (Template(["order", Day()], "|"), [DAY], "order|2020-01-11"),
        (Template(["user", Unpadded(), "post", Natural(999)], ":"), [1, 7], "user:1:post:007"),
        (Template(["USER", RawText(), RawText()], "::"), ["a:b", ":c::d"], "USER::a:b:::c::d"),
        (Template(["USER", Unpadded()], ""), [1], "USER1"),
        (Template(["v", Natural(9), "_", RawText()], ""), [0, "a_b"], "v0_a_b"),
        (Template([Day(), RawText()], ""), [DAY, "x"], "2020-01-11x"),
        (Template(["A$", Unpadded(signed=True)], "~"), [-5], "A$~-5"),
        (Template([RawText().descending(), "x", Flag()], ""), ["a", True], "9e~x1"),
    ],
)
def test_keys(template: Template, values: list[Any], key: str) -> None:
    assert template.render(values) == key
    assert template.parse(key) == tuple(values)


def test_prefixes() -> None:
    assert ORDER.prefix() == "CUSTOMER#"
    assert ORDER.prefix(["36ab"]) == "CUSTOMER#36ab#ORDER#"
    assert ORDER.prefix(["36ab", 157]) == "CUSTOMER#36ab#ORDER#99842"
    assert Template([Day(), "X"]).prefix() == ""


def test_bounds() -> None:
    assert ORDER.bounds() == ("CUSTOMER#", "CUSTOMER$")
    assert ORDER.bounds(["36ab"]) == ("CUSTOMER#36ab#ORDER#", "CUSTOMER#36ab#ORDER$")
    assert ORDER.bounds(["36ab", 157]) == ("CUSTOMER#36ab#ORDER#99842",) * 2
    assert Template([Day()]).bounds() == ("", None)


def test_widths() -> None:
    assert Template(["ISSUE", Natural(99_999_999)]).width == len("ISSUE#00000157")
    assert Template([Uuid(), FixedPoint(9, 2)]).width == 36 + 1 + 4
    assert Template([Uuid(), FixedPoint(9, 2)], "").width == 36 + 4
    assert Template(["A", Day()], "::").width == len("A::2020-01-11")
    assert Template(["META"]).width == 4
    assert ORDER.width is None


@pytest.mark.parametrize(
    "key",
    [
        "CUSTOMER#36ab#ORDER#99842#",
        "CUSTOMER#36ab#ORDER",
        "CUSTOMER#36ab#ORDERS#99842",
        "CUSTOMER#36ab#ORDER#157",
        "CUSTOMER#a#b#ORDER#99842",
        "CUSTOMER#a b#ORDER#99842",
        "customer#36ab#ORDER#99842",
        "",
    ],
)
def test_other_keys_are_refused(key: str) -> None:
    with pytest.raises(MalformedKey, match=r"CUSTOMER#\{Text\}#ORDER#\{Natural descending\}"):
        ORDER.parse(key)


@given(
    parts=st.lists(
        st.sampled_from(["A", "", "a#b"]) | st.sampled_from([kind.codec for kind in KINDS]),
        min_size=1,
        max_size=3,
    ),
    key=texts | st.lists(st.sampled_from(["A", "", "a", "b", "0", "1"])).map("#".join),
)
def test_only_what_was_written_is_read(parts: list[Any], key: str) -> None:
    try:
        template = Template(parts)
        values = template.parse(key)
    except (UsageError, MalformedKey):
        return
    assert template.render(values) == key


@pytest.mark.parametrize("values", [[], ["36ab"], ["36ab", 157, 1]])
def test_a_key_has_a_value_for_each_component(values: list[Any]) -> None:
    with pytest.raises(UsageError, match=f"takes 2 values, not {len(values)}"):
        ORDER.render(values)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(OutOfRange):
        ORDER.render(["36ab", 100_000])


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "at least one part"),
        (["A$"], r"'A\$' contains '\$'"),
        (["A\n"], r"contains '\\n'"),
        (["A\x7f"], r"contains '\\x7f'"),
        (["A\ud800"], "contains"),
    ],
)
def test_declarations_that_cannot_be_meant(parts: list[Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Template(parts)


def test_templates_are_values() -> None:
    again = Template(("CUSTOMER", Text(), "ORDER", Natural(99_999).descending()))
    assert again == ORDER
    assert hash(again) == hash(ORDER)
    assert again != PLACED
    assert len({again, ORDER, PLACED}) == 2
    assert str(Template([Choice(("a", "b")), "X", Day().descending()])) == (
        "{Choice}#X#{Day descending}"
    )


@pytest.mark.parametrize(
    ("parts", "separator", "message"),
    [
        (["A", Text()], "\n", "is not a separator"),
        (["A", Text()], None, "is not a separator"),
        (["A:", RawText()], "::", "'A:' ends with the beginning of the separator '::'"),
        ([RawText(), Day()], "", "nothing marks where RawText ends"),
        ([Unpadded(), Unpadded()], "", "nothing marks where Unpadded ends"),
        ([Unpadded(), "1", Day()], "", "Unpadded can contain '1'"),
        ([Unpadded(signed=True), Day()], "-", "Unpadded can contain '-'"),
        ([Choice(("a", "b")), Day()], "_", "Choice can contain '_'.*such as '#'"),
        ([Text(), Day()], "_", "Text can contain '_'"),
        ([Text().descending(), Day()], "~", "Text descending can contain '~'"),
    ],
)
def test_what_has_no_end_is_refused(parts: list[Any], separator: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Template(parts, separator)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        (Template(["USER", RawText(), "X"]), "a#b"),
        (Template(["USER", RawText(until="_")], "_"), "a_b"),
        (Template([RawText(), Day()], "::"), "a::b"),
        (Template([RawText(), Day()], "::"), "a:"),
        (Template(["u", RawText(), "/x/", RawText()], ""), "a/x/b"),
        (Template([RawText("lower"), "k"], "k"), "\N{KELVIN SIGN}"),
    ],
)
def test_a_value_that_would_leak_into_its_neighbour_is_refused(
    template: Template, value: str
) -> None:
    with pytest.raises(OutOfRange, match=r"separates the parts .* declare another separator"):
        template.render([value, DAY][: len(template.codecs)])


def test_templates_differ_by_their_separators() -> None:
    assert Template(["A", Day()], "_") != Template(["A", Day()])
    assert str(Template(["A", Written("%Y%m%d", day=True), RawText()], "_")) == (
        "A_{Written}_{RawText}"
    )
