"""Key conditions: which stretch of a collection they mean, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.errors import ValidationException
from isotone.expressions import KeyCondition, KeyRange, key_condition
from isotone.expressions.nodes import And, Comparison, Literal, Path

P, X, Y, Z = {"S": "p"}, {"S": "x"}, {"S": "y"}, {"S": "z"}
VALUES: dict[str, dict[str, Any]] = {
    ":p": P,
    ":x": X,
    ":y": Y,
    ":z": Z,
    ":n": {"N": "1"},
    ":bool": {"BOOL": True},
}


def resolved(text: str, partition: str, sort: str) -> KeyRange:
    made = key_condition(text, {"#pk": "pk"})
    made.check(VALUES)
    return made.resolve(VALUES, tuple(partition.split()), tuple(sort.split()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pk = :p", KeyRange((P,))),
        ("#pk = :p", KeyRange((P,))),
        (":p = pk", KeyRange((P,))),
        ("pk = :p AND sk = :x", KeyRange((P,), (X,))),
        ("sk = :x AND pk = :p", KeyRange((P,), (X,))),
        ("(pk = :p) AND (sk = :x)", KeyRange((P,), (X,))),
        ("pk = :p AND sk < :x", KeyRange((P,), (), "<", (X,))),
        ("pk = :p AND sk <= :x", KeyRange((P,), (), "<=", (X,))),
        ("pk = :p AND sk > :x", KeyRange((P,), (), ">", (X,))),
        ("pk = :p AND sk >= :x", KeyRange((P,), (), ">=", (X,))),
        ("pk = :p AND :x < sk", KeyRange((P,), (), ">", (X,))),
        ("pk = :p AND :x >= sk", KeyRange((P,), (), "<=", (X,))),
        ("pk = :p AND sk BETWEEN :x AND :y", KeyRange((P,), (), "BETWEEN", (X, Y))),
        ("pk = :p AND begins_with(sk, :x)", KeyRange((P,), (), "begins_with", (X,))),
    ],
)
def test_a_key_of_two_attributes(text: str, expected: KeyRange) -> None:
    assert resolved(text, "pk", "sk") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("h1 = :x AND h2 = :y", KeyRange((X, Y))),
        ("h2 = :y AND h1 = :x", KeyRange((X, Y))),
        ("h1 = :x AND h2 = :y AND r1 = :z", KeyRange((X, Y), (Z,))),
        ("h1 = :x AND h2 = :y AND r2 > :x AND r1 = :z", KeyRange((X, Y), (Z,), ">", (X,))),
        ("h1 = :x AND h2 = :y AND (r1 = :x AND r2 = :y)", KeyRange((X, Y), (X, Y))),
        (
            "h1 = :x AND h2 = :y AND r1 = :x AND r2 = :y AND begins_with(r3, :z)",
            KeyRange((X, Y), (X, Y), "begins_with", (Z,)),
        ),
    ],
)
def test_a_key_of_many_attributes(text: str, expected: KeyRange) -> None:
    assert resolved(text, "h1 h2", "r1 r2 r3") == expected


UNSUPPORTED = "Query key condition not supported"
_PARAMETER = "Invalid KeyConditionExpression: "
TWICE = _PARAMETER + "KeyConditionExpressions must only contain one condition per key"
NESTED_PATH = _PARAMETER + "KeyConditionExpressions cannot have conditions on nested attributes"
NESTED = _PARAMETER + "KeyConditionExpressions cannot contain nested operations"
MANY = "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"
NONE = "Invalid condition in KeyConditionExpression: No key attribute specified"


def too_many(conditions: int, attributes: int) -> str:
    return (
        f"The number of query conditions ({conditions}) exceeds "
        f"the number of key attributes defined in the schema ({attributes})"
    )


def missed(attribute: str) -> str:
    return f"Query condition missed key schema element: {attribute}"


def operator(name: str) -> str:
    return f"Invalid operator used in KeyConditionExpression: {name}"


def first(name: str) -> str:
    return (
        f"Invalid condition in KeyConditionExpression: {name} operator must have the key attribute "
        "as its first operand"
    )


def scalar(attribute: str) -> str:
    return (
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
        f"Key: {attribute}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pk = :p OR sk = :x", operator("OR")),
        ("NOT pk = :p", operator("NOT")),
        ("pk = :p AND sk <> :x", operator("<>")),
        ("pk = :p AND sk IN (:x)", operator("IN")),
        ("pk = :p AND contains(sk, :x)", operator("contains")),
        ("pk = :p AND attribute_exists(sk)", operator("attribute_exists")),
        ("pk = :p AND sk = :x AND attribute_exists(foo)", operator("attribute_exists")),
        ("pk = :p AND (sk > :x OR sk < :y)", operator("OR")),
        ("pk > :p", UNSUPPORTED),
        ("begins_with(pk, :p)", UNSUPPORTED),
        ("begins_with(pk, :p) AND sk = :x", UNSUPPORTED),
        ("sk = :x", missed("pk")),
        ("foo = :x", missed("pk")),
        ("foo = :x AND sk = :x", missed("pk")),
        ("pk = :p AND foo = :x", missed("sk")),
        ("pk = :p AND begins_with(foo, :x)", missed("sk")),
        ("pk = :p AND sk = :x AND foo = :y", too_many(3, 2)),
        ("pk = :p AND pk = :p", TWICE),
        ("pk = :p AND sk > :x AND sk < :y", TWICE),
        ("pk = :p AND size(sk) = :n", NESTED),
        ("pk = size(sk)", NESTED),
        ("pk = :p AND sk BETWEEN size(pk) AND :n", NESTED),
        ("pk = sk", MANY),
        ("pk = :p AND sk BETWEEN foo AND :x", MANY),
        ("pk = :p AND begins_with(sk, foo)", MANY),
        (":p = :p", NONE),
        ("pk = :p AND :x BETWEEN sk AND :y", first("BETWEEN")),
        ("pk = :p AND begins_with(:x, sk)", first("begins_with")),
        ("pk = :p AND foo.bar = :x", NESTED_PATH),
        ("pk.a = :p", scalar("pk")),
        ("pk = :p AND sk[0] = :x", scalar("sk")),
        ("pk.a > :p OR pk = :p", scalar("pk")),
    ],
)  # fmt: skip
def test_what_is_no_condition_on_a_key_of_two(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        resolved(text, "pk", "sk")
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo = :x", missed("pk")),
        ("pk > :p", UNSUPPORTED),
        ("pk = :p AND foo = :x", too_many(2, 1)),
        ("foo = :x AND bar = :x", too_many(2, 1)),
    ],
)
def test_what_is_no_condition_on_a_key_of_one(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        resolved(text, "pk", "")
    assert caught.value.message == message


def partition(attributes: str) -> str:
    return f"HASH key attributes {attributes} must have equality conditions specified in the query"


def sort(attributes: str, present: str) -> str:
    return (
        f"RANGE key attributes {attributes} must have equality conditions specified in the query "
        f"because a condition is present on key attribute {present}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("h1 = :x", partition("h2")),
        ("h1 = :x AND h2 > :x", partition("h2")),
        ("begins_with(h1, :x) AND h2 = :x", partition("h1")),
        ("h1 = :x AND foo = :x", partition("h2")),
        ("h1 = :x AND h2 = :x AND r2 = :x", sort("r1", "r2")),
        ("h1 = :x AND h2 = :x AND r1 > :x AND r2 = :x", sort("r1", "r2")),
        ("h1 = :x AND h2 = :x AND r1 = :x AND r3 = :x", sort("r2", "r3")),
        ("h1 = :x AND h2 = :x AND foo = :x", missed("r1")),
        ("h1 = :x AND h2 = :x AND r1 = :x AND foo = :x", missed("r2")),
        ("h1=:x AND h2=:x AND r1=:x AND r2=:x AND r3=:x AND foo=:x", too_many(6, 5)),
        ("h1 = :x AND h2 = :x AND r1 = :x AND r1 = :y", TWICE),
    ],
)
def test_what_is_no_condition_on_a_key_of_many(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        resolved(text, "h1 h2", "r1 r2 r3")
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pk = pk", "The first operand must be distinct from the remaining operands"),
        ("pk = :u", "attribute value: :u"),
        ("pk = :p AND begins_with(sk, :n)", "operator or function: begins_with, operand type: N"),
        ("pk = :p AND sk < :bool", "operator or function: <, operand type: BOOL"),
        ("pk = :p AND sk BETWEEN :y AND :x", "requires upper bound to be greater than or equal"),
    ],
)
def test_the_rules_of_conditions_hold_too(text: str, message: str) -> None:
    with pytest.raises(ValidationException, match=message) as caught:
        resolved(text, "pk", "sk")
    assert caught.value.message.startswith("Invalid KeyConditionExpression: ")


def test_an_index_key_is_called_so() -> None:
    with pytest.raises(ValidationException, match="not allowed: IndexKey: pk"):
        key_condition("pk.a = :p").resolve(VALUES, ("pk",), (), "IndexKey")


def test_one_condition_serves_many_keys() -> None:
    made = key_condition("a = :x AND b = :y")
    assert made.resolve(VALUES, ("a",), ("b",)) == KeyRange((X,), (Y,))
    assert made.resolve(VALUES, ("b",), ("a",)) == KeyRange((Y,), (X,))
    assert made.resolve(VALUES, ("a", "b"), ()) == KeyRange((X, Y))


def test_a_tree_without_text() -> None:
    tree = And(
        (
            Comparison("=", Path(("pk",)), Literal(P)),
            Comparison(">", Path(("size",)), Literal(X)),
        )
    )
    made = KeyCondition.from_node(tree)
    assert made.resolve(None, ("pk",), ("size",)) == KeyRange((P,), (), ">", (X,))
