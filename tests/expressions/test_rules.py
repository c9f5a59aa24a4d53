"""What parses and is refused nevertheless, in the service's words and in its order."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.errors import UsageError, ValidationException
from isotone.expressions import CompiledCondition, CompiledUpdate, condition, update
from isotone.expressions.nodes import Call, Comparison, Literal, Path, Set, UpdateNode

VALUES: dict[str, dict[str, Any]] = {
    ":s": {"S": "a"},
    ":n": {"N": "1"},
    ":nine": {"N": "9"},
    ":b": {"B": "YQ=="},
    ":bool": {"BOOL": True},
    ":null": {"NULL": True},
    ":l": {"L": [{"N": "1"}]},
    ":m": {"M": {}},
    ":ss": {"SS": ["a"]},
    ":ns": {"NS": ["1"]},
}


def refusal_of_condition(text: str) -> str:
    with pytest.raises(ValidationException) as caught:
        condition(text, {"#a": "a"}).check(VALUES)
    return caught.value.message.removeprefix("Invalid ConditionExpression: ")


def refusal_of_update(text: str) -> str:
    with pytest.raises(ValidationException) as caught:
        update(text, {"#a": "a"}).check(VALUES)
    return caught.value.message.removeprefix("Invalid UpdateExpression: ")


def misplaced(function: str) -> str:
    return f"The function is not allowed to be used this way in an expression; function: {function}"


def count(operator: str, operands: int) -> str:
    return (
        "Incorrect number of operands for operator or function; "
        f"operator or function: {operator}, number of operands: {operands}"
    )


def wrong_type(operator: str, found: str) -> str:
    return (
        "Incorrect operand type for operator or function; "
        f"operator or function: {operator}, operand type: {found}"
    )


def wrong_action(action: str, found: str) -> str:
    return (
        "Incorrect operand type for operator or function; "
        f"operator: {action}, operand type: {found}, typeSet: ALLOWED_FOR_{action}_OPERAND"
    )


def needs_path(operator: str) -> str:
    return f"Operator or function requires a document path; operator or function: {operator}"


def not_distinct(operator: str, path: str) -> str:
    return (
        "The first operand must be distinct from the remaining operands for this operator or function; "
        f"operator: {operator}, first operand: {path}"
    )


def no_name(name: str) -> str:
    return f"An expression attribute name used in the document path is not defined; attribute name: {name}"


def no_value(name: str) -> str:
    return (
        f"An expression attribute value used in expression is not defined; attribute value: {name}"
    )


ALL_TYPES = "{DECIMALSET,NS,DOUBLE,INT,SS,DOUBLESET,FLOAT,HDS,FS,S,BS,HD,BOOL,M,NULL,L,N,DECIMAL,INTSET,B,DICT}"
TOO_MANY = "The expression contains too many operators; operator count: 301"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # functions in their places
        ("size(a)", misplaced("size")),
        ("NOT size(a)", misplaced("size")),
        ("size(a) AND a = :s", misplaced("size")),
        ("attribute_exists(a) = :s", misplaced("attribute_exists")),
        ("contains(a, attribute_exists(b))", misplaced("attribute_exists")),
        ("list_append(a, :l)", "The function is not allowed in a condition expression; function: list_append"),
        ("a = if_not_exists(a, :l)", "The function is not allowed in a condition expression; function: if_not_exists"),
        # operands by number and kind
        ("attribute_exists(a, b)", count("attribute_exists", 2)),
        ("begins_with(a)", count("begins_with", 1)),
        ("begins_with(a, :n, :n)", count("begins_with", 3)),
        ("size(a, b) = :n", count("size", 2)),
        ("attribute_exists(:s)", needs_path("attribute_exists")),
        ("attribute_not_exists(size(a))", needs_path("attribute_not_exists")),
        ("a = a", not_distinct("=", "[a]")),
        ("(a) <> #a", not_distinct("<>", "[a]")),
        ("a.b[1] = a.b[1]", not_distinct("=", "[a, b, [1]]")),
        ("a IN (:s, a)", not_distinct("IN", "[a]")),
        ("a BETWEEN b AND a", not_distinct("BETWEEN", "[a]")),
        ("contains(a, a)", not_distinct("contains", "[a]")),
        ("attribute_type(a, a)", not_distinct("attribute_type", "[a]")),
        # types
        ("a < :bool", wrong_type("<", "BOOL")),
        ("a >= :l", wrong_type(">=", "L")),
        (":ss > a", wrong_type(">", "SS")),
        ("a BETWEEN :m AND b", wrong_type("BETWEEN", "M")),
        (":null BETWEEN a AND b", wrong_type("BETWEEN", "NULL")),
        ("begins_with(a, :n)", wrong_type("begins_with", "N")),
        ("begins_with(:bool, a)", wrong_type("begins_with", "BOOL")),
        ("begins_with(a, size(b))", wrong_type("begins_with", "N")),
        ("size(:n) = :n", wrong_type("size", "N")),
        ("size(size(a)) = :n", wrong_type("size", "N")),
        ("attribute_type(a, :n)", wrong_type("attribute_type", "N")),
        ("attribute_type(a, b)", wrong_type("attribute_type", ALL_TYPES)),
        (
            "attribute_type(a, :s)",
            "Invalid attribute type name found; type: a, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}",
        ),
        (
            "a BETWEEN :nine AND :n",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:9}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "a BETWEEN :n AND :s",
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:a}",
        ),
        # placeholders and paths
        ("#u = :s", no_name("#u")),
        ("a.#u = :s", no_name("#u")),
        ("a = :u", no_value(":u")),
        (".".join("a" * 33) + " = :s", "The document path has too many nesting levels; nesting levels: 33"),
        # limits
        ("a IN (" + ",".join([":s"] * 101) + ")", "The IN operator is provided with too many operands; number of operands: 101"),
        ("NOT " * 300 + "a = :s", TOO_MANY),
        (" OR ".join(["a = :s"] * 151), TOO_MANY),
        # the first fault counts
        ("size(a) AND foo(b)", misplaced("size")),
        ("attribute_exists(a, b) AND foo(a)", "Invalid function name; function: foo"),
        ("#u = :s AND size(a)", misplaced("size")),
        ("#u = :s AND attribute_exists(a, b)", no_name("#u")),
        ("attribute_exists(a, b) AND #u = :s", count("attribute_exists", 2)),
        ("a = a AND b = :u", not_distinct("=", "[a]")),
        ("b = :u AND a = a", no_value(":u")),
        ("a < :bool AND b = :u", wrong_type("<", "BOOL")),
        ("b = :u AND a < :bool", no_value(":u")),
        (":u = #u", no_value(":u")),
        ("#u = :u", no_name("#u")),
        ("attribute_exists(:u)", no_value(":u")),
        ("a BETWEEN a AND :null", wrong_type("BETWEEN", "NULL")),
        (" OR ".join(["a = :s"] * 200) + " OR #u = :s", no_name("#u")),
        (" OR ".join(["a = :s"] * 200) + " OR a < :bool", wrong_type("<", "BOOL")),
    ],
)  # fmt: skip
def test_conditions(text: str, message: str) -> None:
    assert refusal_of_condition(text) == message


@pytest.mark.parametrize(
    "text",
    [
        "size(:s) = :n",
        "size(a) IN (size(a))",
        "a = size(b)",
        "contains(a, :ss)",
        "contains(:s, a)",
        "attribute_type(:s, :t)",
        ":s = :s",
        "a = :l",
        "a IN (" + ",".join([":s"] * 100) + ")",
        "NOT " * 299 + "a = :s",
        " OR ".join(["a = :s"] * 150),
        ".".join("a" * 32) + " = :s",
        "(a = :s OR " * 149 + "a = :s" + ")" * 149,
        "a[2147483647] = :s",
    ],
)
def test_conditions_at_their_limits(text: str) -> None:
    made = condition(text)
    made.check({**VALUES, ":t": {"S": "SS"}})
    made.matches({}, {**VALUES, ":t": {"S": "SS"}})


def overlap(one: str, two: str) -> str:
    return (
        "Two document paths overlap with each other; must remove or rewrite one of these paths; "
        f"path one: {one}, path two: {two}"
    )


def conflict(one: str, two: str) -> str:
    return overlap(one, two).replace("overlap", "conflict")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SET b = size(a)", "The function is not allowed in an update expression; function: size"),
        ("SET b = attribute_exists(a)", "The function is not allowed in an update expression; function: attribute_exists"),
        ("SET b = list_append(b, list_append(b, :l))", misplaced("list_append")),
        ("SET b = list_append(b, :l) + :n", misplaced("list_append")),
        ("SET b = if_not_exists(b, list_append(b, :l))", misplaced("list_append")),
        ("SET b = list_append(b)", count("list_append", 1)),
        ("SET b = if_not_exists(:s, :n)", needs_path("if_not_exists")),
        ("SET b = if_not_exists(c, c)", not_distinct("if_not_exists", "[c]")),
        ("SET b = b + :s", wrong_type("+", "S")),
        ("SET b = :l - b", wrong_type("-", "L")),
        ("SET b = list_append(b, :s)", wrong_type("list_append", "S")),
        ("ADD b :s", wrong_action("ADD", "STRING")),
        ("ADD b :l", wrong_action("ADD", "LIST")),
        ("ADD b :m", wrong_action("ADD", "MAP")),
        ("ADD b :bool", wrong_action("ADD", "BOOLEAN")),
        ("ADD b :null", wrong_action("ADD", "NULL")),
        ("ADD b :b", wrong_action("ADD", "BINARY")),
        ("DELETE b :n", wrong_action("DELETE", "NUMBER")),
        ("DELETE b :s", wrong_action("DELETE", "STRING")),
        ("SET b = :u", no_value(":u")),
        ("SET #u = :u", no_name("#u")),
        ("SET b = :n, b = :n", overlap("[b]", "[b]")),
        ("SET a = :n REMOVE #a", overlap("[a]", "[a]")),
        ("SET b = :n, b.c = :n", overlap("[b]", "[b, c]")),
        ("SET b.c = :n, b = :n", overlap("[b, c]", "[b]")),
        ("SET b[0] = :n, b[0].c = :n", overlap("[b, [0]]", "[b, [0], c]")),
        ("SET b.c = :n, b[0] = :n", conflict("[b, c]", "[b, [0]]")),
        ("SET b[0] = :n, b.c = :n", conflict("[b, [0]]", "[b, c]")),
        ("SET b.c = :n, b.d = :n, b = :n", overlap("[b, d]", "[b]")),
        ("SET b = :n, b.c = :n, b.d = :n", overlap("[b]", "[b, d]")),
        ("SET " + ", ".join(f"a{i}=b+b" for i in range(301)), TOO_MANY),
        # the first fault counts, and actions count from the last
        ("SET b = :u, b = :n", overlap("[b]", "[b]")),
        ("SET b = if_not_exists(c), b = :n", overlap("[b]", "[b]")),
        ("SET b = if_not_exists(c) REMOVE #u", no_name("#u")),
        ("SET b = :s + :n ADD c :u", no_value(":u")),
        ("SET b = :u ADD c :s", wrong_action("ADD", "STRING")),
        ("ADD b :u, c :s", wrong_action("ADD", "STRING")),
        ("SET b = #u, c = :s + :n", wrong_type("+", "S")),
        ("SET b = :u, c = list_append(:l)", count("list_append", 1)),
        ("SET b = list_append(:l), c = :s + :n", wrong_type("+", "S")),
        ("SET c = :s + :n, b = list_append(:l)", count("list_append", 1)),
        ("SET c = :s + :n ADD b :s", wrong_action("ADD", "STRING")),
        ("SET b = #u, c = :u", no_value(":u")),
        ("SET b = :u, c = #u", no_name("#u")),
    ],
)  # fmt: skip
def test_updates(text: str, message: str) -> None:
    assert refusal_of_update(text) == message


def test_trees_without_text_keep_the_same_rules() -> None:
    a = Path(("a",))
    with pytest.raises(ValidationException, match="distinct from the remaining operands"):
        CompiledCondition.from_node(Comparison("=", a, a))
    with pytest.raises(ValidationException, match="Invalid function name; function: foo"):
        CompiledCondition.from_node(Call("foo", (a,)))
    with pytest.raises(ValidationException, match="Invalid UpdateExpression: Two document paths"):
        CompiledUpdate.from_node(
            UpdateNode((Set(a, Literal({"N": "1"})), Set(a, Literal({"N": "1"}))))
        )
    with pytest.raises(ValidationException, match="operand type: BOOL"):
        CompiledCondition.from_node(Comparison("<", a, Literal({"BOOL": True}))).check(None)


def test_trees_without_text_may_have_any_name() -> None:
    odd = Path(("abort.é #x",))
    made = CompiledCondition.from_node(Comparison("=", odd, Literal({"N": "1"})))
    assert made.matches({"abort.é #x": {"N": "1"}}, {})
    reserved = CompiledCondition.from_node(Call("attribute_exists", (Path(("size",)),)))
    assert reserved.matches({"size": {"N": "1"}}, {})


def test_what_waits_for_the_values_is_refused_with_them() -> None:
    # The service finds the undefined value first, so nothing is said before the values are there.
    made = condition("b = :u AND a = a")
    with pytest.raises(ValidationException, match="attribute value: :u"):
        made.check({})
    with pytest.raises(ValidationException, match="distinct from the remaining operands"):
        made.check({":u": {"N": "1"}})


def test_an_expression_is_no_truth() -> None:
    with pytest.raises(UsageError):
        bool(condition("attribute_exists(a)"))
