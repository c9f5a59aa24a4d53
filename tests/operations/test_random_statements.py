"""Random PartiQL statements: what a plan reads is what a filter over everything finds, and nothing else is raised."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from operator import eq, ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.oracle.corpus.statements import MUSIC, filled
from tests.oracle.statement_grammar import conditions, items, partitions, ranges, selects, writes

import isotone
from isotone.errors import ApiError, ValidationException
from isotone.expressions.partiql import Select, parse_statement

Item = dict[str, Any]


@pytest.fixture(scope="module")
def music() -> Iterator[isotone.Database]:
    with isotone.open(":memory:") as database:
        database.execute("CreateTable", MUSIC)
        for step in filled():
            if isinstance(step.request, dict) and step.request["TableName"] == "Music":
                database.execute(step.operation, step.request)
        yield database


keys = st.one_of(
    partitions,
    items,
    st.builds("{} AND {} AND {}".format, partitions, ranges, ranges),
    st.builds("({} OR {} AND {})".format, partitions, partitions, ranges),
    st.builds("({} OR {})".format, partitions, ranges),
)
wheres = st.one_of(keys, st.builds("{} AND {}".format, keys, conditions), conditions)


def pages(database: isotone.Database, statement: str, limit: int | None) -> list[Item]:
    """The items of all pages of a statement."""
    request: dict[str, Any] = {"Statement": statement}
    if limit is not None:
        request["Limit"] = limit
    found: list[Item] = []
    while True:
        answer = database.execute("ExecuteStatement", request)
        assert limit is None or len(answer["Items"]) <= limit
        found += answer["Items"]
        if "NextToken" not in answer:
            return found
        request["NextToken"] = answer["NextToken"]


def sort_key(item: Item) -> tuple[str, float]:
    return item["a"]["S"], float(item["s"]["N"])


def in_order(found: list[Item]) -> list[str]:
    return [json.dumps(item, sort_keys=True) for item in sorted(found, key=sort_key)]


@settings(max_examples=examples(400), deadline=None)
@given(where=wheres, limit=st.sampled_from([None, 1, 2, 5]))
def test_a_plan_finds_what_a_filter_finds(
    music: isotone.Database, where: str, limit: int | None
) -> None:
    text = f"SELECT * FROM Music WHERE {where}"
    try:
        found = pages(music, text, limit)
    except ValidationException:
        return
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    assert statement.where is not None
    everything = music.execute("Scan", {"TableName": "Music"})["Items"]
    matches = statement.where.condition.matches
    assert in_order(found) == in_order([item for item in everything if matches(item, {})])


@settings(max_examples=examples(100), deadline=None)
@given(
    condition=ranges,
    a=st.sampled_from(["", "a", "a DESC", "a ASC"]),
    s=st.sampled_from(["", "s", "s DESC"]),
    limit=st.sampled_from([None, 1, 3]),
)
def test_order_by_key(
    music: isotone.Database, condition: str, a: str, s: str, limit: int | None
) -> None:
    order = ", ".join(filter(None, (a, s)))
    text = f"SELECT * FROM Music WHERE a IN ['z', 'x', 'y'] AND {condition}"
    if s and not a:  # the order of the partition keys is not fixed
        with pytest.raises(ValidationException, match="Must have hash key in ORDER BY clause"):
            pages(music, f"{text} ORDER BY {order}", limit)
        return
    found = pages(music, f"{text} ORDER BY {order}" if order else text, limit)
    expected = sorted(found, key=sort_key, reverse="DESC" in s)
    expected.sort(key=lambda item: str(item["a"]["S"]), reverse="DESC" in a)
    assert found == expected


halves = st.integers(-2, 8).map(lambda number: number / 2)
sort_conditions = st.one_of(
    st.tuples(st.sampled_from(["=", "<", "<=", ">", ">="]), halves),
    st.tuples(st.just("BETWEEN"), st.lists(halves, min_size=2, max_size=2).map(sorted)),
    st.tuples(st.just("IN"), st.lists(halves, min_size=1, max_size=3)),
    st.just(("", 0)),
)
branches = st.tuples(st.lists(st.sampled_from("xyz"), min_size=1, max_size=2), sort_conditions)
_HOLDS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_SORT_VALUES = [number / 4 for number in range(-8, 24)]  # between all halves, and beyond them


def written(branch: tuple[list[str], tuple[str, Any]]) -> str:
    artists, (operator, operand) = branch
    condition = f"a IN {artists}" if len(artists) > 1 else f"a = '{artists[0]}'"
    if operator == "BETWEEN":
        operand = f"{operand[0]} AND {operand[1]}"
    return f"{condition} AND s {operator} {operand}" if operator else f"{condition} AND h > 0"


def selected(branch: tuple[list[str], tuple[str, Any]]) -> list[tuple[str, float]]:
    """The keys that a branch selects, as often as it names them."""
    artists, (operator, operand) = branch
    if operator == "IN":
        return [(artist, value) for artist in artists for value in operand]
    if operator == "BETWEEN":
        values = [value for value in _SORT_VALUES if operand[0] <= value <= operand[1]]
    else:
        holds = _HOLDS.get(operator, lambda one, other: True)
        values = [value for value in _SORT_VALUES if holds(value, operand)]
    return [(artist, value) for artist in artists for value in values]


@settings(max_examples=examples(300), deadline=None)
@given(joined=st.lists(branches, min_size=1, max_size=4))
def test_branches_of_an_or_must_not_share_a_key(
    music: isotone.Database, joined: list[tuple[list[str], tuple[str, Any]]]
) -> None:
    keys = [key for branch in joined for key in selected(branch)]
    text = f"SELECT * FROM Music WHERE {' OR '.join(map(written, joined))}"
    if len(set(keys)) < len(keys):
        with pytest.raises(ValidationException, match="Overlapping conditions with range keys"):
            pages(music, text, None)
    else:
        pages(music, text, None)


_TOKENS = """
SELECT INSERT INTO UPDATE DELETE FROM WHERE VALUES SET REMOVE VALUE RETURNING ALL OLD NEW * , . ( ) [ ] { }
<< >> = <> < >= + - ? : ; 'x' 'a' a s t m l Music "Music" "gsi" 1 2.5 1e400 -1 NULL TRUE MISSING IS
NOT AND OR IN BETWEEN LIKE ORDER BY DESC GROUP LIMIT EXISTS size begins_with set_add list_append
CASE END CAST DATE INT4 1e2147483648 @ ` | || ~ \u0000 é 'it''s' "" '' /* */ --
"""
tokens = st.sampled_from(_TOKENS.split())
soup = st.lists(tokens, max_size=25).map(" ".join)
starts = st.sampled_from(
    [
        "SELECT * FROM Music WHERE ",
        "UPDATE Music SET t = ",
        "INSERT INTO Music VALUE {'a': 'x', 's': ",
        "DELETE FROM Music WHERE a = 'x' AND s = 1 AND ",
        "EXISTS(SELECT * FROM Music WHERE ",
        "",
    ]
)


@st.composite
def damaged(draw: Any) -> str:
    """A statement with some of its characters left out, doubled or replaced."""
    text = draw(st.one_of(selects, writes))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 6)))
        text = (
            text[:start]
            + draw(st.sampled_from(["", text[start:end] * 2, "(", "'", "?", "["]))
            + text[end:]
        )
    return text


@settings(max_examples=examples(500), deadline=None)
@given(
    statement=st.one_of(st.builds("{}{}".format, starts, soup), damaged(), st.text(max_size=40)),
    parameters=st.lists(st.sampled_from([{"S": "x"}, {"N": "1"}, {"SS": ["a"]}, {"L": []}])),
    token=st.sampled_from([None, None, "x", "e30="]),
)
def test_any_text_is_executed_or_refused(
    statement: str, parameters: list[Item], token: str | None
) -> None:
    with isotone.open(":memory:") as database:
        database.execute("CreateTable", MUSIC)
        one = {"Statement": statement, **({"Parameters": parameters} if parameters else {})}
        more = {"NextToken": token} if token else {}
        for operation, request in (
            ("ExecuteStatement", {**one, **more}),
            ("BatchExecuteStatement", {"Statements": [one]}),
            ("ExecuteTransaction", {"TransactStatements": [one]}),
        ):
            with suppress(ApiError):
                database.execute(operation, request)
        assert database.check() == []


@pytest.mark.parametrize("text", ["(" * 4000, "[" * 4000, "NOT " * 2000, "- " * 4000, "a." * 4000])
def test_a_text_may_nest_too_deep(music: isotone.Database, text: str) -> None:
    for statement in (f"SELECT * FROM Music WHERE {text}1", f"UPDATE Music SET t = {text}1"):
        with pytest.raises(ValidationException):
            music.execute("ExecuteStatement", {"Statement": statement[:8192]})
    closed = {"(": ")", "[": "]"}.get(text[0])
    if closed:
        nested = text[:3000] + "1" + closed * 3000
        with pytest.raises(ValidationException):
            music.execute(
                "ExecuteStatement", {"Statement": f"SELECT * FROM Music WHERE t = {nested}"}
            )
