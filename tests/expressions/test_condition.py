"""Conditions: whether they hold."""

from __future__ import annotations

from base64 import b64decode
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.expressions.trees import conditions, items, literals, paths

from isotone.errors import ValidationException
from isotone.expressions import CompiledCondition, condition
from isotone.expressions.nodes import (
    And,
    Between,
    Call,
    Comparison,
    In,
    Literal,
    Not,
    Or,
    Path,
    Truth,
)

ITEM: dict[str, Any] = {
    "s": {"S": "hello"},
    "n": {"N": "10"},
    "b": {"B": "YWJj"},
    "ss": {"SS": ["a", "b"]},
    "ns": {"NS": ["1", "2.5"]},
    "bs": {"BS": ["YQ=="]},
    "l": {"L": [{"S": "x"}, {"N": "1"}, {"SS": ["p", "q"]}, {"L": [{"S": "y"}]}]},
    "m": {"M": {"k": {"SS": ["p", "q"]}, "i": {"M": {"deep": {"N": "7"}}}}},
    "t": {"BOOL": True},
    "z": {"NULL": True},
    "e": {"S": ""},
}


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        # equality
        ("s = :v", {"S": "hello"}, True),
        ("s = :v", {"S": "Hello"}, False),
        ("s = :v", {"B": "hello"}, False),
        ("n = :v", {"N": "10"}, True),
        ("n <> :v", {"S": "10"}, True),
        ("ss = :v", {"SS": ["b", "a"]}, True),
        ("ss = :v", {"SS": ["b"]}, False),
        ("ss = :v", {"L": [{"S": "a"}, {"S": "b"}]}, False),
        ("m.k = :v", {"SS": ["q", "p"]}, True),
        ("m = :v", {"M": {"i": {"M": {"deep": {"N": "7"}}}, "k": {"SS": ["q", "p"]}}}, True),
        ("m <> :v", {"M": {"k": {"SS": ["q", "p"]}}}, True),
        ("t = :v", {"BOOL": True}, True),
        ("t = :v", {"BOOL": False}, False),
        ("z = :v", {"NULL": True}, True),
        # what is missing
        ("q = :v", {"S": "x"}, False),
        ("q <> :v", {"S": "x"}, True),
        ("NOT q = :v", {"S": "x"}, True),
        ("q < :v", {"S": "x"}, False),
        ("NOT q < :v", {"S": "x"}, True),
        ("s.x <> :v", {"S": "x"}, True),
        ("l[9] <> :v", {"S": "x"}, True),
        ("l.x = :v", {"S": "x"}, False),
        ("m[0] = :v", {"S": "x"}, False),
        ("q <> r OR s = :v", {"S": "x"}, True),
        ("q = r OR s = :v", {"S": "x"}, False),
        ("q IN (:v)", {"S": "x"}, False),
        ("NOT q IN (:v)", {"S": "x"}, True),
        ("s IN (q, :v)", {"S": "hello"}, True),
        ("n BETWEEN q AND :v", {"N": "20"}, False),
        ("NOT n BETWEEN q AND :v", {"N": "20"}, True),
        ("contains(q, :v)", {"S": "x"}, False),
        ("begins_with(q, :v)", {"S": "x"}, False),
        ("size(q) <> :v", {"N": "1"}, True),
        ("size(q) = :v", {"N": "0"}, False),
        # order
        ("n > :v", {"N": "9"}, True),
        ("n > :v", {"N": "10"}, False),
        ("n >= :v", {"N": "10"}, True),
        ("n < :v", {"N": "100"}, True),
        ("n > :v", {"N": "-100"}, True),
        ("s < :v", {"S": "i"}, True),
        ("s < :v", {"S": "helloo"}, True),
        ("s <= :v", {"S": "hello"}, True),
        ("s < :v", {"N": "1"}, False),
        ("s >= :v", {"N": "1"}, False),
        ("t < :v", {"S": "x"}, False),
        ("b < :v", {"B": "YWJk"}, True),
        ("b > :v", {"B": "YWI="}, True),
        ("l[1] >= :v", {"N": "1"}, True),
        ("m.i.deep = :v", {"N": "7"}, True),
        ("n BETWEEN :v AND :v", {"N": "10"}, True),
        ("n BETWEEN :v AND :v", {"N": "9"}, False),
        # contains
        ("contains(s, :v)", {"S": "ell"}, True),
        ("contains(s, :v)", {"S": ""}, True),
        ("contains(s, :v)", {"S": "ELL"}, False),
        ("contains(b, :v)", {"B": "Yg=="}, True),
        ("contains(b, :v)", {"S": "b"}, False),
        ("contains(ss, :v)", {"S": "a"}, True),
        ("contains(ss, :v)", {"SS": ["a"]}, False),
        ("contains(ns, :v)", {"N": "2.5"}, True),
        ("contains(bs, :v)", {"B": "YQ=="}, True),
        ("contains(l, :v)", {"S": "x"}, True),
        ("contains(l, :v)", {"SS": ["q", "p"]}, True),
        ("contains(l, :v)", {"L": [{"S": "y"}]}, True),
        ("contains(l, :v)", {"S": "y"}, False),
        ("contains(n, :v)", {"N": "1"}, False),
        ("contains(m, :v)", {"S": "k"}, False),
        ("contains(:v, s)", {"S": "say hello"}, True),
        ("contains(:v, s)", {"SS": ["hello"]}, True),
        # begins_with
        ("begins_with(s, :v)", {"S": "hel"}, True),
        ("begins_with(s, :v)", {"S": ""}, True),
        ("begins_with(s, :v)", {"S": "ello"}, False),
        ("begins_with(s, :v)", {"B": "aGU="}, False),
        ("begins_with(b, :v)", {"B": "YWI="}, True),
        ("begins_with(n, :v)", {"S": "1"}, False),
        ("begins_with(:v, s)", {"S": "hello you"}, True),
        # size
        ("size(s) = :v", {"N": "5"}, True),
        ("size(e) = :v", {"N": "0"}, True),
        ("size(b) = :v", {"N": "3"}, True),
        ("size(ss) = :v", {"N": "2"}, True),
        ("size(l) = :v", {"N": "4"}, True),
        ("size(m) = :v", {"N": "2"}, True),
        ("size(n) = :v", {"N": "2"}, False),
        ("size(s) > size(b)", None, True),
        ("size(:v) = n", {"S": "0123456789"}, True),
        # attribute_type and existence
        ("attribute_type(n, :v)", {"S": "N"}, True),
        ("attribute_type(l[0], :v)", {"S": "S"}, True),
        ("attribute_type(z, :v)", {"S": "NULL"}, True),
        ("attribute_type(n, :v)", {"S": "S"}, False),
        ("NOT attribute_type(q, :v)", {"S": "S"}, True),
        ("attribute_exists(z)", None, True),
        ("attribute_exists(m.k)", None, True),
        ("attribute_exists(m.q)", None, False),
        ("attribute_not_exists(l[4])", None, True),
        ("attribute_not_exists(l[3][0])", None, False),
        # junctions
        ("s = :v OR q > :v AND t = :v", {"S": "hello"}, True),
        ("(s = :v OR q > :v) AND t = :v", {"S": "hello"}, False),
        ("NOT NOT s = :v", {"S": "hello"}, True),
        ("NOT (s = :v AND n = :v)", {"S": "hello"}, True),
        ("NOT s = :v AND n = :v", {"S": "x"}, False),
        ("s = :v AND s = :v AND attribute_exists(q)", {"S": "hello"}, False),
        ("q = :v OR r = :v OR s = :v", {"S": "hello"}, True),
    ],
)
def test_conditions(text: str, value: dict[str, Any] | None, expected: bool) -> None:
    values = {":v": value} if value is not None else {}
    made = condition(text)
    made.check(values)
    assert made.matches(ITEM, values) is expected


def test_size_counts_utf_16_units() -> None:
    # As in Java, where the service counts: é is one, an emoji is two.
    assert condition("size(a) = :v").matches({"a": {"S": "é😀"}}, {":v": {"N": "3"}})


def test_no_item_is_an_item_without_attributes() -> None:
    assert condition("attribute_not_exists(pk)").matches({}, {})
    assert not condition("attribute_exists(pk)").matches({}, {})


# The naive oracle: the rules of the Developer Guide, told as they are read.


def find(item: Any, path: Path) -> Any:
    here: Any = {"M": item}
    for element in path.elements:
        if isinstance(element, str):
            here = here.get("M", {}).get(element)
        else:
            elements = here.get("L", [])
            here = elements[element] if element < len(elements) else None
        if here is None:
            return None
    return here


def plain(value: Any) -> Any:
    """A Python object that is equal exactly when the value is."""
    ((code, content),) = value.items()
    if code in {"SS", "NS", "BS"}:
        return (code, frozenset(content))
    if code == "L":
        return (code, tuple(map(plain, content)))
    if code == "M":
        return (code, frozenset((name, plain(member)) for name, member in content.items()))
    return (code, content)


def rank(value: Any) -> Any:
    ((code, content),) = value.items()
    if code == "N":
        return code, Fraction(content)
    if code == "S":
        return code, content.encode()
    return (code, b64decode(content)) if code == "B" else None


def ordered(left: Any, right: Any) -> bool:
    return bool(rank(left) and rank(right) and rank(left)[0] == rank(right)[0])


def operand(node: Any, item: Any) -> Any:
    if isinstance(node, Path):
        return find(item, node)
    if isinstance(node, Literal):
        return node.value
    ((code, content),) = (operand(node.operands[0], item) or {"NULL": True}).items()
    if code in {"N", "BOOL", "NULL"}:
        return None
    if code == "B":
        content = b64decode(content)
    if code == "S":
        content = content.encode("utf-16-be")[::2]
    return {"N": str(len(content))}


def compare(operator: str, left: Any, right: Any) -> bool:
    if operator == "<>":
        return not compare("=", left, right)
    if left is None or right is None:
        return False
    if operator == "=":
        return bool(plain(left) == plain(right))
    if not ordered(left, right):
        return False
    one, two = rank(left)[1], rank(right)[1]
    return bool({"<": one < two, "<=": one <= two, ">": one > two, ">=": one >= two}[operator])


def contains(value: Any, part: Any) -> bool:
    ((code, content),) = value.items()
    ((part_code, part_content),) = part.items()
    if code in {"S", "B"} and code == part_code:
        if code == "B":
            content, part_content = b64decode(content), b64decode(part_content)
        return part_content in content
    if code in {"SS", "NS", "BS"}:
        return part_code == code[0] and part_content in content
    return code == "L" and any(plain(element) == plain(part) for element in content)


def begins_with(value: Any, prefix: Any) -> bool:
    one, two = rank(value), rank(prefix)
    return bool(one and two and one[0] == two[0] != "N" and one[1].startswith(two[1]))


def holds(node: Any, item: Any) -> bool:
    match node:
        case And(parts):
            return all(holds(part, item) for part in parts)
        case Or(parts):
            return any(holds(part, item) for part in parts)
        case Not(part):
            return not holds(part, item)
        case Comparison(operator, left, right):
            return compare(operator, operand(left, item), operand(right, item))
        case Between(value, low, high):
            found = operand(value, item)
            return compare("<=", operand(low, item), found) and compare(
                "<=", found, operand(high, item)
            )
        case In(value, choices):
            found = operand(value, item)
            return any(compare("=", found, operand(choice, item)) for choice in choices)
        case Call("attribute_exists", (path,)):
            return operand(path, item) is not None
        case Call("attribute_not_exists", (path,)):
            return operand(path, item) is None
        case Call(function, (first, second)):
            one, two = operand(first, item), operand(second, item)
            relation = {"begins_with": begins_with, "contains": contains}[function]
            return one is not None and two is not None and relation(one, two)
    raise AssertionError(node)


@settings(max_examples=examples(300))
@given(conditions(literals, paths()), items)
def test_conditions_mean_what_the_developer_guide_says(tree: Any, item: Any) -> None:
    try:
        made = CompiledCondition.from_node(tree)
        made.check(None)
    except ValidationException:
        assume(False)
    assert made.matches(item, {}) == holds(tree, item)


@given(conditions(literals, paths()), items, st.booleans())
def test_a_condition_is_an_operand_whose_value_is_whether_it_holds(
    tree: Any, item: Any, expected: bool
) -> None:
    try:
        compared = CompiledCondition.from_node(
            Comparison("=", Truth(tree), Literal({"BOOL": expected}))
        )
        other = CompiledCondition.from_node(
            Comparison("<>", Truth(tree), Literal({"BOOL": expected}))
        )
        compared.check(None)
    except ValidationException:
        assume(False)
    assert compared.matches(item, {}) == (holds(tree, item) == expected)
    assert other.matches(item, {}) != compared.matches(item, {})


@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_whether_a_condition_holds_has_no_order(operator: str) -> None:
    truth = Truth(Call("attribute_exists", (Path(("a",)),)))
    with pytest.raises(ValidationException, match="operand type: BOOL"):
        CompiledCondition.from_node(Comparison(operator, truth, Literal({"N": "1"})))


def test_a_condition_that_check_refuses_can_be_bound_before_it_is_checked() -> None:
    unsound = condition("attribute_exists(:value)")
    assert callable(unsound.matches)
    with pytest.raises(ValidationException, match="requires a document path"):
        unsound.check({":value": {"S": "x"}})
