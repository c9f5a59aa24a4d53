"""Texts to trees, and the words for texts that make none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import examples

from isotone.errors import ValidationException
from isotone.expressions import condition, key_condition, projection, update
from isotone.expressions.nodes import (
    Add,
    And,
    Arithmetic,
    Between,
    Call,
    Comparison,
    Delete,
    In,
    NameRef,
    Not,
    Or,
    Path,
    ProjectionNode,
    Remove,
    Set,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.parser import parse_condition, parse_projection, parse_update

A, B, C = Path(("a",)), Path(("b",)), Path(("c",))
V, W = ValueRef(":v"), ValueRef(":w")


def equals(path: Path) -> Comparison:
    return Comparison("=", path, V)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a = :v", equals(A)),
        ("(a) = (:v)", equals(A)),
        ("a<>:v", Comparison("<>", A, V)),
        ("a.#b[3] >= :v", Comparison(">=", Path(("a", NameRef("#b"), 3)), V)),
        ("a between :v and :w", Between(A, V, W)),
        ("a BETWEEN :v AND :w AND b = :v", And((Between(A, V, W), equals(B)))),
        ("a IN (:v)", In(A, (V,))),
        ("a in(:v,b)", In(A, (V, B))),
        ("attribute_exists(a)", Call("attribute_exists", (A,))),
        ("contains((a), :v)", Call("contains", (A, V))),
        ("size(a) = :v", Comparison("=", Call("size", (A,)), V)),
        ("a = :v AND b = :v AND c = :v", And((equals(A), equals(B), equals(C)))),
        ("(a = :v AND b = :v) AND c = :v", And((And((equals(A), equals(B))), equals(C)))),
        ("a = :v OR b = :v AND c = :v", Or((equals(A), And((equals(B), equals(C)))))),
        ("(a = :v OR b = :v) AND c = :v", And((Or((equals(A), equals(B))), equals(C)))),
        ("NOT a = :v AND b = :v", And((Not(equals(A)), equals(B)))),
        ("NOT (a = :v AND b = :v)", Not(And((equals(A), equals(B))))),
        ("NOT NOT a = :v", Not(Not(equals(A)))),
        ("(a = :v)", equals(A)),
    ],
)
def test_conditions(text: str, tree: Any) -> None:
    assert parse_condition(text) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("SET a = :v", (Set(A, V),)),
        ("set a = (:v), b = a", (Set(A, V), Set(B, A))),
        ("SET a = a + :v", (Set(A, Arithmetic("+", A, V)),)),
        ("SET a = (a-:v)", (Set(A, Arithmetic("-", A, V)),)),
        (
            "SET a = if_not_exists(a, :v) + :w",
            (Set(A, Arithmetic("+", Call("if_not_exists", (A, V)), W)),),
        ),
        ("REMOVE a, b", (Remove(A), Remove(B))),
        ("ADD a :v DELETE b :w", (Add(A, V), Delete(B, W))),
        ("Remove a Set b = :v", (Remove(A), Set(B, V))),
    ],
)
def test_updates(text: str, tree: Any) -> None:
    assert parse_update(text) == UpdateNode(tree)


def test_projections() -> None:
    expected = ProjectionNode((A, Path(("b", 0, NameRef("#c")))))
    assert parse_projection("a, b [ 0 ] . #c") == expected


def syntax(token: str, near: str) -> str:
    return f'Syntax error; token: "{token}", near: "{near}"'


REDUNDANT = "The expression has redundant parentheses;"

CONDITION_ERRORS = [
    ("", "The expression can not be empty;"),
    ("  ", syntax("<EOF>", "  ")),
    ("a", syntax("<EOF>", "a")),
    ("a =", syntax("<EOF>", "=")),
    ("a =   ", syntax("<EOF>", "=   ")),
    ("a b", syntax("b", "a b")),
    ("   a b", syntax("b", "a b")),
    (" @ = :v", syntax("@", " @ =")),
    ("a\n= \t@ x", syntax("@", "= \t@ x")),
    ("(a", syntax("<EOF>", "a")),
    ("(a)", syntax("<EOF>", ")")),
    ("NOT (a)", syntax("<EOF>", ")")),
    ("a AND a = :v", syntax("AND", "a AND a")),
    ("a = :v = :v", syntax("=", ":v = :v")),
    ("(a = :v) = :v", syntax("=", ") = :v")),
    ("a = (b = :v)", syntax("=", "b = :v")),
    ("a = NOT b", syntax("NOT", "= NOT b")),
    ("_a = :v", syntax("_", "_a")),
    ("a.b.[0] = :v", syntax("[", ".[0")),
    ("a[-1] = :v", syntax("-", "[-1")),
    ("a[b] = :v", syntax("b", "[b]")),
    ("a[] = :v", syntax("]", "[] =")),
    ("a[007] = :v", syntax("0", "007")),
    ("a[0 = :v", syntax("=", "0 = :v")),
    ("a.1 = :v", syntax("1", ".1 =")),
    ("#a-b = :v", syntax("-", "#a-b")),
    ("a = : v", syntax(":", "= : v")),
    ('a = "x"', syntax('"', '= "x')),
    ("a = 1", syntax("1", "= 1")),
    ("1a = :v", syntax("1", "1a")),
    ("and = :v", syntax("and", "and =")),
    ("set = :v", syntax("set", "set =")),
    ("a = :v and", syntax("<EOF>", "and")),
    ("a == :v", syntax("=", "== :v")),
    ("a != :v", syntax("!", "a !=")),
    ("a< >:v", syntax(">", "< >:v")),
    ("a = :v)", syntax(")", ":v)")),
    ("() ", syntax(")", "() ")),
    ("a IN :v", syntax(":v", "IN :v")),
    ("a in ()", syntax(")", "()")),
    ("a in (:v, )", syntax(")", ", )")),
    ("a + :v = :v", syntax("+", "a + :v")),
    ("size() = :v", syntax(")", "() =")),
    ("#a(b)", syntax("(", "#a(b")),
    ("a.b(c)", syntax("(", "b(c")),
    ("a(b)(c)", syntax("(", ")(c")),
    ("attribute_exists a", syntax("a", "attribute_exists a")),
    ("abort = = :v", syntax("=", "= = :v")),
    ("((a)) = :v", REDUNDANT),
    ("((a = :v))", REDUNDANT),
    ("NOT ((a = :v))", REDUNDANT),
    ("(((a = :v) OR b = :v))", REDUNDANT),
    ("size(((a))) = :v", REDUNDANT),
    ("abort = :v AND ((a = :v))", REDUNDANT),
    ("abort = :v", "Attribute name is a reserved keyword; reserved keyword: abort"),
    ("a.Abort = :v", "Attribute name is a reserved keyword; reserved keyword: Abort"),
    ("foo(abort)", "Invalid function name; function: foo"),
    ("Size(a) = :v", "Invalid function name; function: Size"),
    ("a[2147483648] = :v", "List index is not within the allowable range; index: [2147483648]"),
    (
        "a = :v" + " " * 4091,
        "Expression size has exceeded the maximum allowed size; expression size: 4097",
    ),
]


@pytest.mark.parametrize(("text", "message"), CONDITION_ERRORS)
def test_what_is_no_condition(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        condition(text)
    assert caught.value.message == f"Invalid ConditionExpression: {message}"


@pytest.mark.parametrize(
    "text", ["((a = :v) OR (b = :v))", "(a) IN ((:v))", "a[0][1].b [ 2 ] = :v"]
)
def test_what_is_one_although_it_looks_odd(text: str) -> None:
    condition(text)


UPDATE_ERRORS = [
    ("", "The expression can not be empty;"),
    ("a", syntax("a", "a")),
    ("INVALID SYNTAX HERE", syntax("INVALID", "INVALID SYNTAX")),
    ("SET", syntax("<EOF>", "SET")),
    ("SET a = :v,", syntax("<EOF>", ",")),
    ("SET a = :v b = :v", syntax("b", ":v b =")),
    ("SET a = :v, SET b = :v", syntax("SET", ", SET b")),
    ("SET a = :v AND b = :v", syntax("AND", ":v AND b")),
    ("SET (a) = :v", syntax("(", "SET (a")),
    ("SET foo(a) = :v", syntax("(", "foo(a")),
    ("SET a = n + :v + :v", syntax("+", ":v + :v")),
    ("SET a = (n + :v) + :v", syntax("+", ") + :v")),
    ("SET a = if_not_exists(n, n + :v)", syntax("+", "n + :v")),
    ("SET a = -n", syntax("-", "= -n")),
    ("ADD hits : incr", syntax(":", "hits : incr")),
    ("ADD a n", syntax("n", "a n")),
    ("ADD a = :v", syntax("=", "a = :v")),
    ("ADD a (:v)", syntax("(", "a (:v")),
    ("ADD a if_not_exists(b, :v)", syntax("if_not_exists", "a if_not_exists(")),
    ("REMOVE a b", syntax("b", "a b")),
    ("SET a = ((:v))", REDUNDANT),
    ("SET a = :v SET b = :v", 'The "SET" section can only be used once in an update expression;'),
    (
        "REMOVE a SET a = :v REMOVE b",
        'The "REMOVE" section can only be used once in an update expression;',
    ),
    ("SET a = :v SET abort = :v", "Attribute name is a reserved keyword; reserved keyword: abort"),
]


@pytest.mark.parametrize(("text", "message"), UPDATE_ERRORS)
def test_what_is_no_update(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        update(text)
    assert caught.value.message == f"Invalid UpdateExpression: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The expression can not be empty;"),
        ("n s", syntax("s", "n s")),
        ("n,", syntax("<EOF>", ",")),
        ("n,,s", syntax(",", ",,s")),
        ("(n)", syntax("(", "(n")),
        ("l[0]l[1]", syntax("l", "]l[")),
        (":v", syntax(":v", ":v")),
        ("n, abort", "Attribute name is a reserved keyword; reserved keyword: abort"),
    ],
)
def test_what_is_no_projection(text: str, message: str) -> None:
    with pytest.raises(ValidationException) as caught:
        projection(text)
    assert caught.value.message == f"Invalid ProjectionExpression: {message}"


def test_errors_name_the_parameter() -> None:
    with pytest.raises(ValidationException, match=r"^Invalid FilterExpression: "):
        condition("a =", parameter="FilterExpression")
    with pytest.raises(ValidationException, match=r"^Invalid KeyConditionExpression: "):
        key_condition("a =")


FRAGMENTS = [
    *["a", "b", "#a", "#b", ":v", ":w", "0", "7", "abort", "_", "é", "@", " "],
    *["AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE"],
    *["=", "<>", "<", "<=", "+", "-", ".", ",", "(", ")", "[", "]", "(", ")"],
    *[
        "size",
        "contains",
        "attribute_exists",
        "if_not_exists",
        "list_append",
        "attribute_type",
        "foo",
    ],
]
texts = st.lists(st.sampled_from(FRAGMENTS), max_size=14).map(" ".join) | st.text(max_size=20)
ENTRIES: list[Callable[..., Any]] = [condition, update, projection, key_condition]


@settings(max_examples=examples(400))
@given(st.sampled_from(ENTRIES), texts)
@example(condition, "(" * 4000)
@example(condition, "NOT " * 1000 + "a = :v")
@example(condition, "size(" * 800 + "a")
@example(condition, "(a = :v OR " * 340 + "a = :v" + ")" * 340)
@example(update, "SET a = " + "if_not_exists(a, " * 200 + ":v" + ")" * 200)
@example(condition, "\ud800 = :v")
def test_random_text_raises_only_what_the_service_answers(
    entry: Callable[..., Any], text: str
) -> None:
    values = {":v": {"S": "x"}, ":w": {"N": "1"}}
    try:
        made = entry(text, {"#a": "x.y"})
        if made.values_used or entry is not projection:
            made.check(values)
        if entry is key_condition:
            made.resolve(values, ("a",), ("b",))
        elif entry is condition:
            made.matches({"a": {"S": "x"}}, values)
        elif entry is update:
            made.apply({"a": {"S": "x"}}, values)
    except ValidationException:
        pass


def test_the_same_text_is_parsed_once() -> None:
    assert condition("a = :cached") is condition("a = :cached")
    assert condition("#a = :v", {"#a": "x"}) is not condition("#a = :v", {"#a": "y"})
