"""Items as people write them."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.values.notation import (
    item_text,
    literal,
    parse_json,
    read_item,
    read_value,
    scalar,
    value_text,
)

numbers = st.decimals(allow_nan=False, allow_infinity=False, places=4).map(lambda d: f"{d:f}")
binaries = st.binary(max_size=8).map(lambda b: base64.b64encode(b).decode())
names = st.sampled_from(["S", "N", "B", "M", "L", "SS", "NULL", "BOOL", "a", "name"]) | st.text(
    max_size=5
)
scalars = st.one_of(
    st.text(max_size=10).map(lambda s: {"S": s}),
    numbers.map(lambda n: {"N": n}),
    binaries.map(lambda b: {"B": b}),
    st.booleans().map(lambda b: {"BOOL": b}),
    st.just({"NULL": True}),
    st.lists(st.text(max_size=5), min_size=1, max_size=3).map(lambda s: {"SS": s}),
    st.lists(numbers, min_size=1, max_size=3).map(lambda s: {"NS": s}),
    st.lists(binaries, min_size=1, max_size=3).map(lambda s: {"BS": s}),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda v: {"L": v})
        | st.dictionaries(names, inner, max_size=3).map(lambda v: {"M": v})
    ),
    max_leaves=8,
)
items = st.dictionaries(names, values, max_size=4)


@given(items, st.booleans())
def test_what_is_printed_reads_back_as_it_was(item, indented):
    assert read_item(parse_json(item_text(item, indented=indented))) == item


@given(items)
def test_dynamodb_json_reads_as_what_it_says(item):
    assert read_item(json.loads(json.dumps(item))) == item


@given(items)
def test_what_is_printed_is_json(item):
    assert set(json.loads(item_text(item))) == set(item)


@given(values)
def test_a_value_is_printed_on_one_line(value):
    assert "\n" not in value_text(value)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('"ann"', {"S": "ann"}),
        ("12.50", {"N": "12.50"}),
        (
            "123456789012345678901234567890.12345678",
            {"N": "123456789012345678901234567890.12345678"},
        ),
        ("-1e125", {"N": "-1e125"}),
        ("true", {"BOOL": True}),
        ("null", {"NULL": True}),
        ('[1, "a"]', {"L": [{"N": "1"}, {"S": "a"}]}),
        ('{"street": "Elm", "no": 5}', {"M": {"street": {"S": "Elm"}, "no": {"N": "5"}}}),
        ("{}", {"M": {}}),
        ('{"SS": ["a", "b"]}', {"SS": ["a", "b"]}),
        ('{"NS": [1, "2"]}', {"NS": ["1", "2"]}),
        ('{"N": 1}', {"N": "1"}),
        ('{"B": "aGk="}', {"B": "aGk="}),
        ('{"M": {"S": "x"}}', {"M": {"S": {"S": "x"}}}),
        ('{"L": [1]}', {"L": [{"N": "1"}]}),
    ],
)
def test_natural_json(written, value):
    assert read_value(parse_json(written)) == value


def test_a_value_for_the_database_to_refuse_is_passed_on():
    assert read_value(parse_json('{"M": 5}')) == {"M": "5"}


@pytest.mark.parametrize("text", ["", "{", "[1,]", "NaN", '{"a": Infinity}', "[" * 100_000])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(UsageError, match="JSON"):
        parse_json(text)


def test_a_fault_is_located():
    with pytest.raises(UsageError, match="line 2, column 3, near"):
        parse_json('{\n  customer: "ann"}')


@pytest.mark.parametrize("text", ["[]", "1", '"x"'])
def test_only_an_object_is_an_item(text):
    with pytest.raises(UsageError, match="an item must be a JSON object"):
        read_item(parse_json(text))


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("ann", {"S": "ann"}),
        ("10", {"N": "10"}),
        ('"10"', {"S": "10"}),
        ("'10'", {"S": "10"}),
        ("true", {"BOOL": True}),
        ("2020-01-11", {"S": "2020-01-11"}),
        ('{"SS": ["a"]}', {"SS": ["a"]}),
    ],
)
def test_words_of_a_command_line(word, value):
    assert literal(word) == value


@pytest.mark.parametrize(
    ("word", "code", "value"),
    [
        ("10", "S", {"S": "10"}),
        ("10", "N", {"N": "10"}),
        ('"a b"', "S", {"S": "a b"}),
        ("", "S", {"S": ""}),
    ],
)
def test_words_whose_type_is_known(word, code, value):
    assert scalar(word, code) == value


@pytest.mark.parametrize(
    "text", ['"\\ud800"', '{"a": ["\\uDFFF"]}', '{"\\udc00\\ud800": 1}', '"\udcff"']
)
def test_half_of_a_character_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="half of a character"):
        parse_json(text)


def test_both_halves_are_a_character() -> None:
    assert parse_json('"\\ud83d\\ude00"') == "\U0001f600"
    assert parse_json('"\\\\ud800"') == "\\ud800"


@pytest.mark.parametrize(
    "text", ['{"S": 5}', '{"B": 1234}', '{"SS": ["a", 5]}', '{"BS": [1234]}', '{"BOOL": 1}']
)
def test_a_number_is_not_made_a_text(text: str) -> None:
    """A map with a member S, of a program that knows nothing of DynamoDB's form, would lose its type."""
    with pytest.raises(UsageError, match="has a JSON number, which the type"):
        read_item(parse_json(f'{{"a": {text}}}'))
