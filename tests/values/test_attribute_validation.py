from __future__ import annotations

from base64 import b64encode
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import ApiError, SerializationException, ValidationException
from isotone.values.attribute_validation import canonical_item, canonical_value
from isotone.values.size import item_size, value_size
from isotone.values.types import sorted_members

INVALID = "One or more parameter values were invalid: "
NO_TYPE = "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
MANY_TYPES = (
    "Supplied AttributeValue has more than one datatypes set, "
    "must contain exactly one of the supported datatypes"
)
TOO_DEEP = (
    "Nesting Levels have exceeded supported limits: "
    "Attributes in the item have nested levels beyond supported limit"
)

base64_texts = st.binary(max_size=9).map(lambda raw: b64encode(raw).decode())
number_texts = st.integers(-(10**20), 10**20).map(str) | st.sampled_from(["0", "1.5", "-0.25"])
scalars = st.one_of(
    st.fixed_dictionaries({"S": st.text(max_size=9)}),
    st.fixed_dictionaries({"N": number_texts}),
    st.fixed_dictionaries({"B": base64_texts}),
    st.fixed_dictionaries({"BOOL": st.booleans()}),
    st.just({"NULL": True}),
    st.fixed_dictionaries(
        {
            "SS": st.lists(st.text(max_size=5), min_size=1, unique=True).map(
                partial(sorted_members, "SS")
            )
        }
    ),
    st.fixed_dictionaries(
        {"NS": st.lists(number_texts, min_size=1, unique=True).map(partial(sorted_members, "NS"))}
    ),
    st.fixed_dictionaries(
        {"BS": st.lists(base64_texts, min_size=1, unique=True).map(partial(sorted_members, "BS"))}
    ),
)
normal_values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.fixed_dictionaries({"L": st.lists(inner, max_size=4)}),
        st.fixed_dictionaries(
            {"M": st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=4)}
        ),
    ),
    max_leaves=12,
)
normal_items = st.dictionaries(st.text(min_size=1, max_size=9), normal_values, max_size=6)


def nested(wrappers: int, code: str, core: Any) -> dict[str, Any]:
    value: dict[str, Any] = core
    for _ in range(wrappers):
        value = {"L": [value]} if code == "L" else {"M": {"a": value}}
    return value


@given(normal_items)
def test_what_is_normal_comes_back_as_itself_with_its_size(item: dict[str, Any]) -> None:
    canonical, size = canonical_item(item)
    assert canonical is item
    assert size == item_size(item)


@given(normal_values)
def test_the_size_of_a_value_has_no_name(value: dict[str, Any]) -> None:
    assert canonical_value(value) == (value, value_size(value))


@pytest.mark.parametrize(
    ("given_value", "normal"),
    [
        ({"N": "+1.0"}, {"N": "1"}),
        ({"NS": ["1e1", "02", "3", "-3", "-2.5"]}, {"NS": ["-3", "-2.5", "2", "3", "10"]}),
        ({"SS": ["b", "～", "😀", "a", ""]}, {"SS": ["", "a", "b", "～", "😀"]}),
        ({"BS": ["/w==", "AAE=", "AA=="]}, {"BS": ["AA==", "AAE=", "/w=="]}),
        ({"L": [{"S": "a"}, {"N": "1.0"}]}, {"L": [{"S": "a"}, {"N": "1"}]}),
        ({"M": {"a": {"M": {"b": {"N": "-0"}}}}}, {"M": {"a": {"M": {"b": {"N": "0"}}}}}),
        ({"S": "a", "N": None}, {"S": "a"}),
        ({"BOOL": "true"}, {"BOOL": True}),
        ({"L": [{"BOOL": "FALSE"}, {"NULL": "True"}]}, {"L": [{"BOOL": False}, {"NULL": True}]}),
        ({"S": "a", "Unknown": 5}, {"S": "a"}),
        ({"S": ""}, {"S": ""}),
        ({"B": ""}, {"B": ""}),
        ({"SS": [""]}, {"SS": [""]}),
        ({"M": {}}, {"M": {}}),
        ({"L": []}, {"L": []}),
    ],
)
def test_normal_forms(given_value: dict[str, Any], normal: dict[str, Any]) -> None:
    item = {"before": {"S": "x"}, "it": given_value, "after": {"N": "1"}}
    canonical, size = canonical_item(item)
    assert list(canonical.items()) == [
        ("before", {"S": "x"}),
        ("it", normal),
        ("after", {"N": "1"}),
    ]
    assert canonical["before"] is item["before"]
    assert size == item_size(canonical)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Empty attribute name"),
        ("n" * 65536, "Attribute name is too large, must be less than 65536 bytes"),
        ("é" * 32768, "Attribute name is too large, must be less than 65536 bytes"),
    ],
)
def test_names(name: str, message: str) -> None:
    for item in ({name: {"S": "a"}}, {"a": {"L": [{"M": {name: {"S": "a"}}}]}}):
        with pytest.raises(ValidationException) as refusal:
            canonical_item(item)
        assert refusal.value.message == message


def test_the_longest_name() -> None:
    assert canonical_item({"n" * 65535: {"S": "a"}})[1] == 65536


def test_what_is_given_is_not_changed() -> None:
    item = {"a": {"L": [{"N": "1.0"}]}}
    canonical_item(item)
    assert item == {"a": {"L": [{"N": "1.0"}]}}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, NO_TYPE),
        (None, NO_TYPE),
        ({"S": None}, NO_TYPE),
        ({"SS": None}, NO_TYPE),
        ({"X": "a"}, NO_TYPE),
        ({"S": None, "N": None}, NO_TYPE),
        ({"S": "a", "N": "1"}, MANY_TYPES),
        ({"S": "a", "M": {}}, MANY_TYPES),
        ({"S": "a", "N": "b"}, "The parameter cannot be converted to a numeric value: b"),
        ({"S": "a", "SS": []}, INVALID + "An string set  may not be empty"),
        ({"N": ""}, "The parameter cannot be converted to a numeric value"),
        ({"N": "b"}, "The parameter cannot be converted to a numeric value: b"),
        ({"NULL": False}, INVALID + "Null attribute value types must have the value of true"),
        ({"SS": []}, INVALID + "An string set  may not be empty"),
        ({"NS": []}, INVALID + "An number set  may not be empty"),
        ({"BS": []}, INVALID + "Binary sets should not be empty"),
        ({"SS": ["a", "b", "a"]}, INVALID + "Input collection [a, b, a] contains duplicates."),
        ({"NS": ["1", "1.0"]}, "Input collection contains duplicates"),
        ({"NS": ["1", "1", "b"]}, "The parameter cannot be converted to a numeric value: b"),
        ({"NS": ["1", ""]}, "The parameter cannot be converted to a numeric value"),
        (
            {"BS": ["Yg==", "Yg=="]},
            INVALID + "Input collection [Yg==, Yg==]of type BS contains duplicates.",
        ),
        ({"L": [{"S": "a"}, {}]}, NO_TYPE),
        ({"L": [None]}, NO_TYPE),
        ({"M": {"a": {"M": {"b": {"NS": []}}}}}, INVALID + "An number set  may not be empty"),
    ],
)
def test_validation(value: Any, message: str) -> None:
    for refuse in (lambda: canonical_value(value), lambda: canonical_item({"a": value})):
        with pytest.raises(ValidationException) as refusal:
            refuse()
        assert refusal.value.message == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a", "Unexpected value type in payload"),
        (5, "Unexpected value type in payload"),
        (
            [],
            "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue",
        ),
        ({"S": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"S": True}, "TRUE_VALUE cannot be converted to String"),
        ({"S": False}, "FALSE_VALUE cannot be converted to String"),
        ({"S": {}}, "Start of structure or map found where not expected"),
        ({"S": []}, "Unrecognized collection type class java.lang.String"),
        ({"B": 5}, "NUMBER_VALUE cannot be converted to Blob"),
        ({"B": []}, "Unrecognized collection type class java.nio.ByteBuffer"),
        ({"B": "abc"}, "Base64 encoded length is expected a multiple of 4 bytes but found: 3"),
        ({"B": "ab@="}, "Invalid Base64 character: '@'"),
        ({"B": "a=bc"}, "Invalid Base64 character: '='"),
        ({"B": "ab==cd=="}, "Invalid Base64 character: '='"),
        ({"B": "üüüü"}, "Invalid Base64 character: 'ü'"),
        ({"B": "YWJ="}, "Invalid last non-pad Base64 character dectected"),
        ({"BOOL": "yes"}, "Unexpected token received from parser"),
        ({"BOOL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"NULL": ""}, "Unexpected token received from parser"),
        ({"SS": "a"}, "Unexpected field type"),
        ({"SS": {}}, "Start of structure or map found where not expected"),
        ({"SS": ["a", 1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"BS": ["a"]}, "Base64 encoded length is expected a multiple of 4 bytes but found: 1"),
        ({"L": "a"}, "Unexpected field type"),
        ({"L": ["a"]}, "Unexpected value type in payload"),
        ({"M": "a"}, "Unexpected field type"),
        (
            {"M": []},
            "Unrecognized collection type "
            "java.util.Map<java.lang.String, com.amazonaws.dynamodb.v20120810.AttributeValue>",
        ),
        ({"M": {"a": "b"}}, "Unexpected value type in payload"),
        ({"S": "a", "N": 5}, "NUMBER_VALUE cannot be converted to String"),
    ],
)
def test_serialization(value: Any, message: str) -> None:
    for refuse in (lambda: canonical_value(value), lambda: canonical_item({"a": value})):
        with pytest.raises(SerializationException) as refusal:
            refuse()
        assert refusal.value.message == message


def test_shape_is_checked_before_meaning() -> None:
    with pytest.raises(SerializationException):
        canonical_item({"a": {"N": "not a number"}, "b": {"L": [{"S": 5}]}})


@pytest.mark.parametrize("code", ["L", "M"])
def test_levels(code: str) -> None:
    accepted = nested(31, code, {"S": "x"})
    assert canonical_value(accepted)[0] is accepted
    empty: dict[str, Any] = {"L": []} if code == "L" else {"M": {}}
    assert canonical_value(nested(30, code, empty))
    for refused in (nested(31, code, empty), *(nested(n, code, {"S": "x"}) for n in (32, 33, 400))):
        with pytest.raises(ValidationException) as refusal:
            canonical_item({"a": refused})
        assert refusal.value.message == TOO_DEEP


@pytest.mark.parametrize("code", ["L", "M"])
def test_a_value_that_contains_itself_is_refused(code: str) -> None:
    endless: dict[str, Any] = {"L": []} if code == "L" else {"M": {}}
    if code == "L":
        endless["L"].append(endless)
    else:
        endless["M"]["x"] = endless
    for refuse in (lambda: canonical_value(endless), lambda: canonical_item({"a": endless})):
        with pytest.raises(ValidationException) as refusal:
            refuse()
        assert refusal.value.message == TOO_DEEP


def test_a_bottomless_value_is_refused_and_not_a_crash() -> None:
    with pytest.raises(SerializationException):
        canonical_item({"a": nested(50_000, "M", {"S": 5})})


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M", "?"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=3), json, max_size=4))
def test_any_json_is_an_item_or_an_api_error(item: dict[str, Any]) -> None:
    try:
        canonical, size = canonical_item(item)
    except ApiError:
        return
    assert canonical_item(canonical) == (canonical, size)
    assert size == item_size(canonical)
