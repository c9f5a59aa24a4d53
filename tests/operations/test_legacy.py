"""The legacy parameters: what they mean, and how a wrong one is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotone.errors import ApiError
from isotone.operations import legacy
from isotone.operations.api import ACTIONS
from isotone.operations.request_decoding import decode

INVALID = "One or more parameter values were invalid: "
VALUES: dict[str, Any] = {
    "S": {"S": "a"},
    "N": {"N": "1"},
    "B": {"B": "YQ=="},
    "BOOL": {"BOOL": True},
    "NULL": {"NULL": True},
    "SS": {"SS": ["a"]},
    "NS": {"NS": ["1"]},
    "BS": {"BS": ["YQ=="]},
    "L": {"L": []},
    "M": {"M": {}},
}


def request(operation: str, **members: Any) -> Any:
    defaults: dict[str, Any] = {
        "Scan": {},
        "Query": {},
        "PutItem": {"Item": {}},
        "UpdateItem": {"Key": {}},
    }
    body = {"TableName": "abc", **defaults[operation], **members}
    return decode(ACTIONS[operation].request, json.dumps(body).encode())


def comparison(operator: str, *values: Any) -> dict[str, Any]:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


def holds(item: Mapping[str, Any], name: str, operator: str, *values: Any) -> bool:
    scan = request("Scan", ScanFilter={name: comparison(operator, *values)})
    condition = legacy.filter_condition(scan.scan_filter, None)
    assert condition is not None
    return condition.matches(dict(item), {})


def refusal(operator: str, *values: Any) -> str:
    with pytest.raises(ApiError) as caught:
        holds({}, "a", operator, *values)
    assert caught.value.code == "ValidationException"
    return caught.value.message


ARGUMENTS = {
    "EQ": {1}, "NE": {1}, "LE": {1}, "LT": {1}, "GE": {1}, "GT": {1}, "IN": {1, 2, 3}, "BETWEEN": {2},
    "NOT_NULL": {0}, "NULL": {0}, "CONTAINS": {1}, "NOT_CONTAINS": {1}, "BEGINS_WITH": {1},
}  # fmt: skip


@pytest.mark.parametrize("operator", ARGUMENTS)
@pytest.mark.parametrize("count", range(4))
def test_each_operator_takes_its_number_of_arguments(operator: str, count: int) -> None:
    values = [{"S": "a"}] * count
    if count in ARGUMENTS[operator]:
        assert holds({}, "a", operator, *values) in (True, False)
    else:
        wanted = f"{INVALID}Invalid number of argument(s) for the {operator} ComparisonOperator"
        assert refusal(operator, *values) == wanted


ORDERED = {"S", "N", "B"}
TYPES = {
    "EQ": set(VALUES),
    "NE": set(VALUES),
    "LE": ORDERED,
    "LT": ORDERED,
    "GE": ORDERED,
    "GT": ORDERED,
    "IN": ORDERED,
    "BETWEEN": ORDERED,
    "CONTAINS": ORDERED | {"BOOL", "NULL"},
    "NOT_CONTAINS": ORDERED | {"BOOL", "NULL"},
    "BEGINS_WITH": {"S", "B"},
}


@pytest.mark.parametrize("operator", TYPES)
@pytest.mark.parametrize("code", VALUES)
def test_each_operator_takes_its_types(operator: str, code: str) -> None:
    values = [VALUES[code]] * min(ARGUMENTS[operator])
    if code in TYPES[operator]:
        assert holds({}, "a", operator, *values) is (operator == "NE")
    else:
        sentence = f"ComparisonOperator {operator} is not valid for {code} AttributeValue type"
        assert refusal(operator, *values) == INVALID + sentence


def test_values_of_one_comparison_are_of_one_type() -> None:
    wanted = f"{INVALID}AttributeValues inside AttributeValueList must be of same type"
    assert refusal("IN", {"S": "a"}, {"N": "1"}) == wanted
    assert refusal("BETWEEN", {"S": "a"}, {"N": "1"}) == wanted


def test_the_bounds_of_between_are_in_order() -> None:
    wanted = (
        "The BETWEEN condition was provided a range where the lower bound is greater than "
        "the upper bound"
    )
    assert refusal("BETWEEN", {"N": "10"}, {"N": "9"}) == wanted
    assert not holds({}, "a", "BETWEEN", {"N": "9"}, {"N": "10"})


ITEM = {
    "s": {"S": "abc"},
    "n": {"N": "1"},
    "l": {"L": [{"S": "1"}, {"N": "2"}, {"BOOL": True}]},
    "ss": {"SS": ["a", "b"]},
    "null": {"NULL": True},
    "a.b[0]": {"S": "dotted"},
}


@pytest.mark.parametrize(
    ("name", "operator", "values", "expected"),
    [
        ("missing", "NE", [{"S": "x"}], True),
        ("missing", "EQ", [{"S": "x"}], False),
        ("missing", "NOT_CONTAINS", [{"S": "x"}], False),
        ("missing", "NULL", [], True),
        ("missing", "NOT_NULL", [], False),
        ("null", "NULL", [], False),
        ("null", "NOT_NULL", [], True),
        ("s", "CONTAINS", [{"S": "b"}], True),
        ("s", "NOT_CONTAINS", [{"S": "b"}], False),
        ("s", "NOT_CONTAINS", [{"S": "z"}], True),
        ("s", "IN", [{"S": "q"}, {"S": "abc"}], True),
        ("s", "BEGINS_WITH", [{"S": "ab"}], True),
        ("s", "BEGINS_WITH", [{"S": ""}], True),
        ("n", "NOT_CONTAINS", [{"S": "z"}], True),
        ("n", "NE", [{"S": "1"}], True),
        ("n", "LT", [{"S": "z"}], False),
        ("n", "EQ", [{"N": "1.0"}], True),
        ("l", "CONTAINS", [{"S": "1"}], True),
        ("l", "CONTAINS", [{"BOOL": True}], True),
        ("l", "NOT_CONTAINS", [{"S": "1"}], False),
        ("ss", "EQ", [{"SS": ["b", "a"]}], True),
        ("ss", "NE", [{"SS": ["b", "a"]}], False),
        ("ss", "NOT_CONTAINS", [{"N": "1"}], True),
        ("a.b[0]", "EQ", [{"S": "dotted"}], True),
    ],
)
def test_what_a_comparison_means(
    name: str, operator: str, values: list[Any], expected: bool
) -> None:
    assert holds(ITEM, name, operator, *values) is expected


def test_in_takes_more_values_than_an_expression_may_have() -> None:
    values = [{"N": str(number)} for number in range(250)]
    assert holds({"a": {"N": "249"}}, "a", "IN", *values)
    assert not holds({"a": {"N": "250"}}, "a", "IN", *values)


NUMBERS = st.integers(-3, 12)
RELATIONS = {
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "LE": lambda a, b: a <= b,
    "LT": lambda a, b: a < b,
    "GE": lambda a, b: a >= b,
    "GT": lambda a, b: a > b,
}


@settings(deadline=None)
@given(NUMBERS, NUMBERS, st.sampled_from(sorted(RELATIONS)))
def test_numbers_compare_by_value(left: int, right: int, operator: str) -> None:
    wanted = RELATIONS[operator](Decimal(left), Decimal(right))
    assert holds({"a": {"N": str(left)}}, "a", operator, {"N": f"{right}.0"}) is wanted


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=4), st.sampled_from(["AND", "OR", None]))
def test_conditions_are_joined_by_the_conditional_operator(
    truths: list[bool], operator: str | None
) -> None:
    filters = {f"a{place}": comparison("EQ", {"BOOL": truth}) for place, truth in enumerate(truths)}
    scan = request("Scan", ScanFilter=filters)
    condition = legacy.filter_condition(scan.scan_filter, operator if len(truths) > 1 else None)
    assert condition is not None
    item = {f"a{place}": {"BOOL": True} for place in range(len(truths))}
    assert condition.matches(item, {}) is (any if operator == "OR" and len(truths) > 1 else all)(
        truths
    )
    assert condition.attributes == set(item)


def test_the_conditional_operator_joins_two_conditions_or_more() -> None:
    wanted = "ConditionalOperator can only be used when Filter or Expected has two or more elements"
    put = request("PutItem", Expected={"a": {"Exists": False}})
    with pytest.raises(ApiError) as caught:
        legacy.expected_condition(put.expected, "AND")
    assert caught.value.message == wanted
    scan = request("Scan", ScanFilter={"a": comparison("EQ")})
    with pytest.raises(ApiError) as caught:  # found before the missing value of EQ
        legacy.filter_condition(scan.scan_filter, "OR")
    assert caught.value.message == wanted


def test_no_conditions_are_no_condition() -> None:
    assert legacy.filter_condition(None, None) is None
    assert legacy.filter_condition({}, None) is None
    assert legacy.expected_condition(None, None) is None
    assert legacy.attribute_updates({}) is None


def expectation(**members: Any) -> Any:
    put = request("PutItem", Expected={"a": members})
    return legacy.expected_condition(put.expected, None)


@pytest.mark.parametrize(
    ("members", "item", "expected"),
    [
        ({"Exists": False}, {}, True),
        ({"Exists": False}, {"a": {"S": "x"}}, False),
        ({"Value": {"S": "x"}}, {"a": {"S": "x"}}, True),
        ({"Value": {"S": "x"}}, {}, False),
        ({"Value": {"N": "1.0"}, "Exists": True}, {"a": {"N": "1"}}, True),
        ({"ComparisonOperator": "EQ", "Value": {"S": "x"}}, {"a": {"S": "x"}}, True),
        ({"ComparisonOperator": "NULL"}, {}, True),
        ({"ComparisonOperator": "NULL", "AttributeValueList": []}, {}, True),
        (comparison("GT", {"N": "9"}), {"a": {"N": "10"}}, True),
    ],
)
def test_what_expected_means(members: dict[str, Any], item: dict[str, Any], expected: bool) -> None:
    assert expectation(**members).matches(item, {}) is expected


X = {"S": "x"}


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "Value must be provided when Exists is null for Attribute: a"),
        ({"Exists": True}, "Value must be provided when Exists is true for Attribute: a"),
        (
            {"Exists": False, "Value": X},
            "Value cannot be used when Exists is false for Attribute: a",
        ),
        (
            {"Value": X, "AttributeValueList": [X]},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            {"Value": X, "ComparisonOperator": "EQ", "Exists": True},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            {"ComparisonOperator": "EQ"},
            "Value or AttributeValueList must be used with ComparisonOperator: EQ for Attribute: a",
        ),
        (
            {"AttributeValueList": [X]},
            "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        (
            {"ComparisonOperator": "NULL", "Value": X},
            "Invalid number of argument(s) for the NULL ComparisonOperator",
        ),
        (
            {"ComparisonOperator": "EQ", "AttributeValueList": []},
            "Invalid number of argument(s) for the EQ ComparisonOperator",
        ),
    ],
)
def test_expectations_that_are_refused(members: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        expectation(**members)
    assert caught.value.message == INVALID + message


def updated(item: dict[str, Any], updates: dict[str, Any]) -> dict[str, Any]:
    update = legacy.attribute_updates(
        request("UpdateItem", AttributeUpdates=updates).attribute_updates
    )
    assert update is not None
    assert update.attributes_written == set(updates)
    return update.apply(item, {})


@pytest.mark.parametrize(
    ("action", "old", "value", "new"),
    [
        (None, None, {"S": "x"}, {"S": "x"}),
        ("PUT", {"N": "1"}, {"L": []}, {"L": []}),
        ("ADD", None, {"N": "1"}, {"N": "1"}),
        ("ADD", {"N": "1.5"}, {"N": "-0.5"}, {"N": "1"}),
        ("ADD", {"L": [{"S": "a"}]}, {"L": [{"S": "b"}]}, {"L": [{"S": "a"}, {"S": "b"}]}),
        ("ADD", None, {"L": [{"S": "b"}]}, {"L": [{"S": "b"}]}),
        ("DELETE", {"S": "x"}, None, None),
        ("DELETE", None, None, None),
        ("DELETE", {"SS": ["a", "b"]}, {"SS": ["a"]}, {"SS": ["b"]}),
        ("DELETE", {"SS": ["a"]}, {"SS": ["a"]}, None),
    ],
)
def test_what_an_action_does(action: str | None, old: Any, value: Any, new: Any) -> None:
    item = {"k": {"S": "key"}, **({} if old is None else {"a.b": old})}
    before = json.dumps(item)
    members = {"Action": action, "Value": value}
    after = updated(item, {"a.b": {name: each for name, each in members.items() if each}})
    assert after == {"k": {"S": "key"}, **({} if new is None else {"a.b": new})}
    assert json.dumps(item) == before


def test_add_and_delete_join_and_part_sets() -> None:
    joined = updated(
        {"a": {"SS": ["a", "b"]}}, {"a": {"Action": "ADD", "Value": {"SS": ["b", "c"]}}}
    )
    assert sorted(joined["a"]["SS"]) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ({}, "Only DELETE action is allowed when no attribute value is specified"),
        ({"Action": "ADD"}, "Only DELETE action is allowed when no attribute value is specified"),
        (
            {"Action": "ADD", "Value": {"S": "x"}},
            "ADD action is not supported for the type STRING",
        ),
        (
            {"Action": "ADD", "Value": {"M": {}}},
            "ADD action is not supported for the type MAP",
        ),
        (
            {"Action": "DELETE", "Value": {"N": "1"}},
            "DELETE action with value is not supported for the type NUMBER",
        ),
    ],
)
def test_updates_that_are_refused(update: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as caught:
        updated({}, {"a": update})
    assert caught.value.message == INVALID + message


def test_an_action_that_does_not_fit_the_item_is_refused() -> None:
    for value in ({"N": "1"}, {"SS": ["a"]}):
        with pytest.raises(ApiError) as caught:
            updated({"a": {"S": "x"}}, {"a": {"Action": "ADD", "Value": value}})
        assert caught.value.message == "Type mismatch for attribute to update"


def test_attributes_to_get_are_names_and_not_paths() -> None:
    projection = legacy.projection_of(["s", "a.b[0]", "missing"])
    assert projection.project(ITEM) == {"s": {"S": "abc"}, "a.b[0]": {"S": "dotted"}}


def test_an_attribute_has_a_name() -> None:
    for refused in (
        lambda: legacy.projection_of([""]),
        lambda: holds({}, "", "NULL"),
        lambda: updated({}, {"": {"Action": "DELETE"}}),
    ):
        with pytest.raises(ApiError) as caught:
            refused()
        assert caught.value.message == "Empty attribute name"


def key_range(sort: list[str], **conditions: Any) -> Any:
    query = request("Query", KeyConditions=conditions)
    return legacy.key_conditions(query.key_conditions).resolve({}, ("p",), tuple(sort))


EQUAL = comparison("EQ", {"S": "a"})


def test_key_conditions_are_a_key_range() -> None:
    a, b, c = {"S": "a"}, {"S": "b"}, {"S": "c"}
    only = key_range(["s"], p=EQUAL)
    assert (only.partition, only.equal, only.operator) == ((a,), (), None)
    both = key_range(["s"], p=EQUAL, s=comparison("EQ", b))
    assert (both.partition, both.equal, both.operator) == ((a,), (b,), None)
    between = key_range(["s"], s=comparison("BETWEEN", b, c), p=EQUAL)
    assert (between.equal, between.operator, between.operands) == ((), "BETWEEN", (b, c))
    prefix = key_range(["s"], p=EQUAL, s=comparison("BEGINS_WITH", b))
    assert (prefix.operator, prefix.operands) == ("begins_with", (b,))
    assert key_range(["s"], p=EQUAL, s=comparison("LE", b)).operator == "<="


def too_many(conditions: int, attributes: int) -> str:
    return (
        f"The number of query conditions ({conditions}) exceeds "
        f"the number of key attributes defined in the schema ({attributes})"
    )


MISSED = "Query condition missed key schema element: {}"
UNSUPPORTED = "Query key condition not supported"
NOT_INDEXABLE = "Attempted conditional constraint is not an indexable operation"


@pytest.mark.parametrize(
    ("sort", "conditions", "message"),
    [
        (["s"], {}, "Conditions must be at least length 1"),
        (["s"], {"p": EQUAL, "s": EQUAL, "x": EQUAL}, too_many(3, 2)),
        (["s"], {"s": EQUAL}, MISSED.format("p")),
        (["s"], {"p": EQUAL, "x": EQUAL}, MISSED.format("s")),
        ([], {"p": EQUAL, "x": EQUAL}, too_many(2, 1)),
        (["s"], {"p": comparison("GT", {"S": "a"})}, UNSUPPORTED),
        (["s"], {"p": comparison("NE", {"S": "a"})}, UNSUPPORTED),
        (["s"], {"p": EQUAL, "s": comparison("NE", {"S": "a"})}, NOT_INDEXABLE),
        (["s"], {"p": EQUAL, "s": comparison("IN", {"S": "a"})}, NOT_INDEXABLE),
        (["s"], {"p": EQUAL, "s": comparison("NOT_NULL")}, NOT_INDEXABLE),
    ],
)
def test_key_conditions_that_are_refused(
    sort: list[str], conditions: dict[str, Any], message: str
) -> None:
    with pytest.raises(ApiError) as caught:
        key_range(sort, **conditions)
    assert caught.value.message == message


def test_a_query_needs_a_key_condition() -> None:
    with pytest.raises(ApiError) as caught:
        legacy.key_conditions(None)
    assert caught.value.message == (
        "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request."
    )
