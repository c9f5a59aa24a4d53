"""Templates: their keys, reading them back, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.readable.kinds import KINDS, texts

from isotone.codec.readable import (
    Choice,
    Day,
    FixedPoint,
    Instant,
    Natural,
    RawText,
    Template,
    Text,
    Uuid,
)
from isotone.errors import MalformedKey, OutOfRange, UsageError

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
        (["A$"], r"'A\$' of a template holds '\$'"),
        (["A\n"], r"holds '\\n'"),
        (["A\x7f"], r"holds '\\x7f'"),
        (["A\ud800"], "holds"),
        ([RawText(), "A"], "RawText takes the rest of a key, .* declare Text"),
        ([RawText(), Text()], "takes the rest"),
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
