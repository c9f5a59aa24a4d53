"""Statements, models, the command line and explanations choose the same key, range and filter for any conditions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Local, Table, field
from isotone.cli.conditions import ConditionWords
from isotone.cli.query_plan import plan_query
from isotone.errors import Unanswerable, UsageError
from isotone.tables.description import read_description

places = Table(
    "places",
    partition="area",
    sort="name",
    tag="kind",
    indexes={
        "by_kind": Global("sort", "level"),
        "by_level": Global("level", "name"),
        "by_sort": Local("sort"),
    },
)


class Place(Entity, table=places):
    """Its keys are its fields, so that requests and statements can be written about the same conditions."""

    area: Attr[str] = field()
    name: Attr[str] = field()
    sort: Attr[str] = field()
    level: Attr[str] = field()
    note: Attr[str] = field()

    primary = Key(area).sort(name)
    # In the order in which a table is described: the first of equal keys is taken.
    by_sort = Index("by_sort", area).sort(sort)
    by_kind = Index("by_kind", sort).sort(level)
    by_level = Index("by_level", level).sort(name)


VALUES = ("a", "ab", "b", "c")
NAMES = ("area", "name", "sort", "level", "note")
ITEMS = [
    dict(zip(NAMES, (*values, VALUES[number % 3]), strict=True))
    for number, values in enumerate(product(VALUES, VALUES[:3], VALUES[1:], VALUES[:2]))
    if number % 4
]
ITEMS = [*{(item["area"], item["name"]): item for item in ITEMS}.values()]
MODEL: dict[str, Any] = {
    "=": lambda its, value: its == value,
    "<>": lambda its, value: its != value,
    "<": lambda its, value: its < value,
    "<=": lambda its, value: its <= value,
    ">": lambda its, value: its > value,
    ">=": lambda its, value: its >= value,
    "begins_with": lambda its, value: (
        its.startswith(value) if isinstance(its, str) else its.begins_with(value)
    ),
    "contains": lambda its, value: value in its if isinstance(its, str) else its.contains(value),
    "between": lambda its, low, high: (
        low <= its <= high if isinstance(its, str) else its.between(low, high)
    ),
}
STATEMENT = {
    "begins_with": "begins_with(\"{0}\", '{1}')",
    "contains": "contains(\"{0}\", '{1}')",
    "between": "\"{0}\" BETWEEN '{1}' AND '{2}'",
}


def on(name: str) -> st.SearchStrategy[ConditionWords]:
    value = st.sampled_from(VALUES)
    one = st.tuples(
        st.sampled_from(["="] * 5 + sorted(MODEL.keys() - {"between"})), st.tuples(value)
    )
    two = st.tuples(
        st.just("between"), st.lists(value, min_size=2, max_size=2).map(sorted).map(tuple)
    )
    return st.one_of(one, one, two).map(lambda drawn: ConditionWords(name, *drawn))


# One condition for each attribute: `match` alone knows that one of two makes the other needless.
conditions = (
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)
    .flatmap(lambda names: st.tuples(*map(on, names)))
    .map(list)
)


@pytest.fixture(scope="module")
def store() -> Iterator[isotone.Store]:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(places)
        for item in ITEMS:
            store.put(Place(**item))
        yield store


def names(found: Any) -> list[tuple[str, str]]:
    return sorted((item["area"]["S"], item["name"]["S"]) for item in found)


@settings(max_examples=examples(300), deadline=None)
@given(conditions)
def test_all_choose_the_same_key(store: isotone.Store, asked: list[ConditionWords]) -> None:
    wanted = sorted(
        (item["area"], item["name"])
        for item in ITEMS
        if all(MODEL[each.operator](item[each.name], *each.words) for each in asked)
    )
    modelled = [MODEL[each.operator](getattr(Place, each.name), *each.words) for each in asked]
    table = read_description(store.backend, "places")
    try:
        query = Place.match(*modelled)
    except Unanswerable:
        with pytest.raises(UsageError, match="a query of"):
            plan_query(table, asked, None)
        return
    assert sorted((each.area, each.name) for each in store.all(query)) == wanted
    plan = plan_query(table, asked, None)
    assert (plan.index, plan.filtered) == (query.index, bool(query.filters))
    request = {"TableName": "places", **plan.parameters}
    assert names(store.backend.execute("Query", request)["Items"]) == wanted
    _check_find(query, modelled)
    _check_explanations(store, asked, plan.index, request, wanted)


def _check_find(query: Any, modelled: list[Any]) -> None:
    """`find` takes what `match` takes without a filter, and nothing else."""
    if not query.filters:
        assert Place.find(*modelled).index == query.index
        return
    with pytest.raises(Unanswerable):
        Place.find(*modelled)


def _check_explanations(
    store: isotone.Store,
    asked: list[ConditionWords],
    index: str | None,
    request: dict[str, Any],
    wanted: list[tuple[str, str]],
) -> None:
    """A statement on the same key has the same range and filter, and no other key is recommended in its place."""
    text = " AND ".join(
        STATEMENT.get(each.operator, f"\"{{0}}\" {each.operator} '{{1}}'").format(
            each.name, *each.words
        )
        for each in asked
    )
    source = "places" if index is None else f'places."{index}"'
    statement = f"SELECT * FROM {source} WHERE {text}"
    assert (
        names(store.backend.execute("ExecuteStatement", {"Statement": statement})["Items"])
        == wanted
    )
    of_request = isotone.explain(store, ("Query", request))
    of_statement = isotone.explain(store, statement)
    assert of_statement.key_range == of_request.key_range
    assert of_statement.filter == of_request.filter
    assert of_request.estimate.items_returned == len(wanted)
    if not of_request.filter:
        everything = isotone.explain(store, f"SELECT * FROM places WHERE {text} AND note <> 'z'")
        assert not everything.advice.startswith("an index with")
