"""Updates: what they make of an item, and of which items they can make nothing."""

from __future__ import annotations

from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from tests.effort import examples
from tests.expressions.trees import (
    apart,
    documents,
    fitting_updates,
    list_literals,
    number_literals,
    paths,
    updates,
)

from isotone.errors import ValidationException
from isotone.expressions import CompiledUpdate, update
from isotone.expressions.nodes import Add, Arithmetic, Call, Delete, Literal, Path, Remove, Set
from isotone.expressions.parser import parse_update

VALUES: dict[str, dict[str, Any]] = {
    ":s": {"S": "a"},
    ":n": {"N": "1"},
    ":l": {"L": [{"N": "9"}]},
    ":ss": {"SS": ["a", "b"]},
    ":ns": {"NS": ["1"]},
    ":m": {"M": {"y": {"S": "z"}}},
}
ITEM: dict[str, Any] = {
    "n": {"N": "5"},
    "s": {"S": "str"},
    "l": {"L": [{"N": "0"}, {"N": "1"}, {"N": "2"}]},
    "m": {"M": {"x": {"N": "1"}, "l": {"L": [{"S": "a"}]}, "ss": {"SS": ["a"]}}},
    "ss": {"SS": ["a", "c"]},
}


def numbers(*found: int) -> dict[str, Any]:
    return {"L": [{"N": str(number)} for number in found]}


def applied(text: str) -> dict[str, Any]:
    made = update(text)
    made.check(VALUES)
    return made.apply(ITEM, VALUES)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("SET a = :s", {"a": {"S": "a"}}),
        ("SET a = s", {"a": {"S": "str"}}),
        ("SET a = m.x, b = l[1]", {"a": {"N": "1"}, "b": {"N": "1"}}),
        ("SET n = n + :n", {"n": {"N": "6"}}),
        ("SET n = :n - n", {"n": {"N": "-4"}}),
        ("SET a = if_not_exists(a, :n) + :n", {"a": {"N": "2"}}),
        ("SET n = if_not_exists(n, :s) + :n", {"n": {"N": "6"}}),
        ("SET a = if_not_exists(b, if_not_exists(n, :n))", {"a": {"N": "5"}}),
        ("SET a = list_append(l, :l)", {"a": numbers(0, 1, 2, 9)}),
        ("SET l = list_append(:l, l)", {"l": numbers(9, 0, 1, 2)}),
        ("SET a = list_append(if_not_exists(a, :l), :l)", {"a": numbers(9, 9)}),
        # all operands see the item as it was
        ("SET n = s, s = n", {"n": {"S": "str"}, "s": {"N": "5"}}),
        ("SET l[0] = l[2], l[2] = l[0]", {"l": numbers(2, 1, 0)}),
        ("SET a = n REMOVE n", {"a": {"N": "5"}, "n": None}),
        # nested paths
        ("SET m.x = :n, m.q = :s", {"m": {"M": {**ITEM["m"]["M"], "x": {"N": "1"}, "q": {"S": "a"}}}}),
        ("SET m.l[0] = :n", {"m": {"M": {**ITEM["m"]["M"], "l": numbers(1)}}}),
        ("REMOVE m.x, m.l, m.ss", {"m": {"M": {}}}),
        ("REMOVE m.q", {}),
        ("REMOVE q", {}),
        # list positions are those before the update
        ("SET l[1] = :n", {"l": numbers(0, 1, 2)}),
        ("SET l[3] = :n", {"l": numbers(0, 1, 2, 1)}),
        ("SET l[30] = :n, l[20] = n", {"l": numbers(0, 1, 2, 5, 1)}),
        ("REMOVE l[0], l[1]", {"l": numbers(2)}),
        ("REMOVE l[2], l[0], l[1]", {"l": numbers()}),
        ("REMOVE l[9]", {}),
        ("SET l[1] = n REMOVE l[0]", {"l": numbers(5, 2)}),
        ("REMOVE l[0] SET l[5] = n", {"l": numbers(1, 2, 5)}),
        # ADD
        ("ADD a :n", {"a": {"N": "1"}}),
        ("ADD n :n", {"n": {"N": "6"}}),
        ("ADD a :ss", {"a": {"SS": ["a", "b"]}}),
        ("ADD ss :ss", {"ss": {"SS": ["a", "b", "c"]}}),
        ("ADD m.n :n, m.ss :ss", {"m": {"M": {**ITEM["m"]["M"], "n": {"N": "1"}, "ss": {"SS": ["a", "b"]}}}}),
        ("ADD l[0] :n", {"l": numbers(1, 1, 2)}),
        ("ADD l[7] :n", {"l": numbers(0, 1, 2, 1)}),
        # DELETE
        ("DELETE ss :ss", {"ss": {"SS": ["c"]}}),
        ("DELETE a :ss", {}),
        ("DELETE m.ss :ss", {"m": {"M": {"x": {"N": "1"}, "l": {"L": [{"S": "a"}]}}}}),
        # sections in any order
        ("DELETE ss :ss ADD n :n REMOVE s SET a = :n", {"ss": {"SS": ["c"]}, "n": {"N": "6"}, "s": None, "a": {"N": "1"}}),
    ],
)  # fmt: skip
def test_updates(text: str, changed: dict[str, Any]) -> None:
    expected = {name: value for name, value in {**ITEM, **changed}.items() if value is not None}
    before = deepcopy(ITEM)
    assert applied(text) == expected
    assert before == ITEM


PATH_INVALID = "The document path provided in the update expression is invalid for update"
WRONG_TYPE = "An operand in the update expression has an incorrect data type"
MISSING = "The provided expression refers to an attribute that does not exist in the item"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET q.r = :s", PATH_INVALID),
        ("SET m.q.r = :s", PATH_INVALID),
        ("SET s.x = :s", PATH_INVALID),
        ("SET s[0] = :s", PATH_INVALID),
        ("SET l.x = :s", PATH_INVALID),
        ("SET m[0] = :s", PATH_INVALID),
        ("SET l[0].x = :s", PATH_INVALID),
        ("SET l[7].x = :s", PATH_INVALID),
        ("REMOVE q.r", PATH_INVALID),
        ("REMOVE m[0]", PATH_INVALID),
        ("REMOVE l.x", PATH_INVALID),
        ("ADD q.z :n", PATH_INVALID),
        ("DELETE q.z :ss", PATH_INVALID),
        ("SET a = q", MISSING),
        ("SET a = a + :n", MISSING),
        ("SET a = l[9]", MISSING),
        ("SET a = m.q", MISSING),
        ("SET a = list_append(q, :l)", MISSING),
        ("SET a = if_not_exists(b, q)", MISSING),
        ("SET a = if_not_exists(n, q)", MISSING),
        ("SET a = q + s", MISSING),
        ("SET a = n + s", WRONG_TYPE),
        ("SET a = s + q", WRONG_TYPE),
        ("SET a = list_append(s, :l)", WRONG_TYPE),
        ("SET a = list_append(l, n)", WRONG_TYPE),
        ("SET a = if_not_exists(q, :s) + :n", WRONG_TYPE),
        ("ADD s :n", WRONG_TYPE),
        ("ADD ss :ns", WRONG_TYPE),
        ("ADD n :ss", WRONG_TYPE),
        ("DELETE s :ss", WRONG_TYPE),
        ("DELETE ss :ns", WRONG_TYPE),
        # the place for the result comes first, but after the operands of other actions
        ("SET q.r = :s, a = s + :n", WRONG_TYPE),
        ("SET q.r = :s, a = q", MISSING),
        ("REMOVE q.r ADD s :n", WRONG_TYPE),
        ("REMOVE q.r SET a = q", MISSING),
        ("ADD q.z :n, s :n", WRONG_TYPE),
        ("SET q.r = :s, l[0].x = s + :n", PATH_INVALID),
        ("SET q.r = q.r + :n", PATH_INVALID),
        ("SET l.x = q", PATH_INVALID),
        ("SET m.q = m.q + :n", MISSING),
    ],
)
def test_items_that_do_not_have_what_it_takes(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        applied(text)
    assert caught.value.message == message


def test_what_no_path_goes_through_is_shared() -> None:
    after = update("SET m.x = :n").apply(ITEM, VALUES)
    assert after["l"] is ITEM["l"]
    assert after["m"]["M"]["l"] is ITEM["m"]["M"]["l"]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("SET m.x = :s", {"m": {"M": {"x": {"N": "1"}}}}, {"m": {"M": {"x": {"S": "a"}}}}),
        ("SET l[1] = :s", {"l": numbers(1)}, {"l": {"L": [{"S": "a"}]}}),
        ("SET a = :s REMOVE s", {"s": {"S": "str"}}, {"a": {"S": "a"}}),
        ("SET l[9] = :s", {}, {}),
        ("REMOVE m.x", {"m": {"M": {"x": {"N": "1"}}}}, {}),
        ("ADD n :n", {"n": {"N": "5"}}, {"n": {"N": "6"}}),
        ("DELETE q :ss", {}, {}),
    ],
)
def test_return_values_are_the_addressed_paths(text: str, old: Any, new: Any) -> None:
    made = update(text)
    assert made.project(ITEM, VALUES) == old
    assert made.project(made.apply(ITEM, VALUES), VALUES) == new


@pytest.mark.parametrize(
    ("one", "operator", "two", "message"),
    [
        ("9" * 38, "+", "0.1", "38 significant digits"),
        ("1", "-", "0." + "0" * 99 + "1", "38 significant digits"),
        ("1" + "0" * 125, "+", "9" + "0" * 125, "Number overflow"),
    ],
)
def test_arithmetic_never_rounds(one: str, operator: str, two: str, message: str) -> None:
    made = update(f"SET a = a {operator} :v")
    with pytest.raises(ValidationException, match=message):
        made.apply({"a": {"N": one}}, {":v": {"N": two}})


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {"S": "x"}
    for _ in range(depth):
        value = {"L": [value]}
    return value


@pytest.mark.parametrize(
    ("text", "deepest"),
    [("SET a = :v", 31), ("SET m.a = :v", 30), ("SET a = list_append(l, :v)", 31)],
)
def test_an_item_has_32_levels(text: str, deepest: int) -> None:
    made = update(text)
    made.apply(ITEM, {":v": nested(deepest)})
    with pytest.raises(ValidationException) as caught:
        made.apply(ITEM, {":v": nested(deepest + 1)})
    assert caught.value.message == "Nesting Levels have exceeded supported limits"


# The naive oracle: one action after the other on a copy, with the operands read from the original.


class Impossible(Exception):
    pass


def read(item: Any, path: Path) -> Any:
    here: Any = {"M": item}
    for element in path.elements:
        inside = here.get("M" if isinstance(element, str) else "L")
        try:
            here = inside[element]
        except (KeyError, IndexError, TypeError):
            return None
    return here


def value_of(node: Any, item: Any) -> Any:
    match node:
        case Literal(value):
            return value
        case Path():
            found = read(item, node)
            if found is None:
                raise Impossible
            return found
        case Call("if_not_exists", (path, default)):
            otherwise = value_of(default, item)
            found = read(item, path)
            return otherwise if found is None else found
        case Call("list_append", (one, two)):
            return {"L": part(value_of(one, item), "L") + part(value_of(two, item), "L")}
        case Arithmetic(operator, one, two):
            left = Fraction(part(value_of(one, item), "N"))
            right = Fraction(part(value_of(two, item), "N"))
            return decimal(left + right if operator == "+" else left - right)
    raise AssertionError(node)


def decimal(exact: Fraction) -> Any:
    """The numbers of the strategies have two decimals at most."""
    hundredths = int(exact * 100)
    sign, digits = "-" * (hundredths < 0), str(abs(hundredths)).zfill(3)
    return {"N": sign + f"{digits[:-2]}.{digits[-2:]}".rstrip("0").rstrip(".")}


def part(value: Any, code: str) -> Any:
    if code not in value:
        raise Impossible
    return value[code]


def result_of(action: Any, item: Any) -> Any:
    if isinstance(action, Remove):
        return None
    if isinstance(action, Set):
        return value_of(action.value, item)
    old, ((code, operand),) = read(item, action.path), action.value.value.items()
    if old is None:
        return action.value.value if isinstance(action, Add) else None
    content = part(old, code)
    if code == "N":
        return decimal(Fraction(content) + Fraction(operand))
    if isinstance(action, Add):
        return {code: content + [member for member in operand if member not in content]}
    kept = [member for member in content if member not in operand]
    return {code: kept} if kept else None


GONE = object()


def naive(tree: Any, item: Any) -> Any:
    results = [(action.path.elements, result_of(action, item)) for action in tree.actions]
    after = {"M": deepcopy(item)}
    appended: list[tuple[Any, int, Any]] = []
    for elements, result in results:
        here: Any = after
        for element in elements[:-1]:
            here = read(here.get("M", {}), Path((element,))) if isinstance(element, str) else (
                here["L"][element] if "L" in here and element < len(here["L"]) else None
            )  # fmt: skip
            if here is None:
                raise Impossible
        last = elements[-1]
        if isinstance(last, str):
            members = part(here, "M")
            members.pop(last, None)
            if result is not None:
                members[last] = result
        elif last < len(part(here, "L")):
            here["L"][last] = GONE if result is None else result
        elif result is not None:
            appended.append((here["L"], last, result))
    for target, _, result in sorted(appended, key=lambda entry: entry[1]):
        target.append(result)
    return without_gone(after)["M"]


def without_gone(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_gone(member) for name, member in value.items()}
    if isinstance(value, list):
        return [without_gone(element) for element in value if element is not GONE]
    return value


def same(one: Any, two: Any) -> bool:
    """Equal, with sets in any order."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(
            sorted(one[k]) == sorted(two[k]) if k in {"SS", "NS", "BS"} and isinstance(one[k], list)
            else same(one[k], two[k])
            for k in one
        )  # fmt: skip
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(same, one, two))
    return bool(one == two)


operands = number_literals | list_literals
either = fitting_updates() | updates(operands, paths()).map(apart)


@settings(max_examples=examples(400), suppress_health_check=[HealthCheck.filter_too_much])
@given(either, documents)
def test_updates_do_what_the_developer_guide_says(tree: Any, item: Any) -> None:
    try:
        made = CompiledUpdate.from_node(tree)
        made.check(None)
    except ValidationException:
        assume(False)
    before = deepcopy(item)
    try:
        expected = naive(tree, item)
    except Impossible:
        expected = None
    event("refused" if expected is None else "applied")
    if expected is None:
        with pytest.raises(ValidationException):
            made.apply(item, {})
    else:
        assert same(made.apply(item, {}), expected)
    assert item == before


def test_delete_takes_all_actions() -> None:
    tree = parse_update("SET a = :s REMOVE b ADD c :n DELETE d :ss")
    kinds = {type(action) for action in tree.actions}
    assert kinds == {Set, Remove, Add, Delete}
