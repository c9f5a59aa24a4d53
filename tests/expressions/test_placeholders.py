"""Placeholders: what they stand for, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.errors import ValidationException
from isotone.expressions import (
    check_all_used,
    check_placeholders,
    check_scalar_keys,
    condition,
    key_condition,
    projection,
    update,
)

V = {"S": "x"}


def test_a_placeholder_is_one_element_whatever_its_name() -> None:
    made = projection("#a.#b", {"#a": "x.y", "#b": "[0]"})
    assert made.attributes == {"x.y"}
    assert made.project({"x.y": {"M": {"[0]": V}}}) == {"x.y": {"M": {"[0]": V}}}
    assert made.project({"x": {"M": {"y": {"M": {"[0]": V}}}}}) == {}


def test_what_an_expression_uses() -> None:
    made = condition("a.#b = :v AND size(#c) > :w OR a[0] IN (:v, d)", {"#b": "b", "#c": "c"})
    assert made.names_used == {"#b", "#c"}
    assert made.values_used == {":v", ":w"}
    assert made.attributes == {"a", "c", "d"}
    assert made.nested_attributes == {"a"}


def test_what_an_update_uses_and_writes() -> None:
    made = update("SET #a.b = c + :v REMOVE d ADD e :w", {"#a": "a"})
    assert made.names_used == {"#a"}
    assert made.values_used == {":v", ":w"}
    assert made.attributes == {"a", "c", "d", "e"}
    assert made.attributes_written == {"a", "d", "e"}


def test_key_conditions_and_projections_list_their_placeholders_too() -> None:
    made = key_condition("#p = :p", {"#p": "pk"})
    assert (made.names_used, made.values_used, made.attributes) == ({"#p"}, {":p"}, {"pk"})
    assert projection("a").values_used == frozenset()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "ExpressionAttributeNames must not be empty"),
        ({"a": "a"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "a"'),
        ({"#": "a"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#"'),
        ({"##": "a"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "##"'),
        ({"#a-b": "a"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#a-b"'),
        ({"#é": "a"}, 'ExpressionAttributeNames contains invalid key: Syntax error; key: "#é"'),
        (
            {"": "a"},
            "ExpressionAttributeNames contains invalid key: "
            "The expression attribute map contains an empty key;",
        ),
        (
            {"#" + "a" * 255: "a"},
            "ExpressionAttributeNames contains invalid key: "
            "The expression attribute map contains a key that is too long; size of key: 256",
        ),
        (
            {"#a": ""},
            "ExpressionAttributeNames contains invalid value: Empty attribute name for key #a",
        ),
        (
            {"#a": "é" * 32768},
            "ExpressionAttributeNames contains invalid value: "
            "Attribute name is too large, must be less than 65536 bytes for key #a",
        ),
    ],
)
def test_ill_formed_names(names: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        check_placeholders(names, None)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "ExpressionAttributeValues must not be empty"),
        ({"v": V}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: "v"'),
        ({":": V}, 'ExpressionAttributeValues contains invalid key: Syntax error; key: ":"'),
    ],
)
def test_ill_formed_values(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        check_placeholders(None, values)
    assert caught.value.message == message


def test_well_formed_placeholders() -> None:
    check_placeholders(None, None)
    check_placeholders({"#1": "a b", "#_": "a" * 65535, "#" + "a" * 254: "é"}, {":1_a": V})


def test_every_placeholder_must_be_used_somewhere() -> None:
    expressions = (condition("#a = :a", {"#a": "a"}), update("SET #b = :b", {"#b": "b"}))
    check_all_used(expressions, {"#a": "a", "#b": "b"}, {":a": V, ":b": V})
    check_all_used(expressions, None, None)
    with pytest.raises(ValidationException) as caught:
        check_all_used(expressions, {"#a": "a", "#d": "a", "#c": "a"}, {":z": V})
    assert caught.value.message == (
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#c, #d}"
    )
    with pytest.raises(ValidationException) as caught:
        check_all_used(expressions, None, {":a": V, ":z": V})
    assert caught.value.message == (
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:z}"
    )


def test_keys_are_scalars() -> None:
    check_scalar_keys((projection("pk, a.b"),), ("pk", "sk"))
    with pytest.raises(ValidationException) as caught:
        check_scalar_keys((condition("a = sk[0]"), projection("b")), ("pk", "sk"))
    assert caught.value.message == (
        "Key attributes must be scalars; list random access '[]' and map lookup '.' "
        "are not allowed: Key: sk"
    )
