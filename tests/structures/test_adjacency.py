"""Edges are there from both sides, in order, and nowhere else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.structures.simulation import Repeating, Requests

import isotone
from isotone import Attr, Entity, Key, ManualClock, Number, Store, Table, errors, field
from isotone.structures import Adjacency

school = Table("school")


class Student(Entity, table=school):
    number: Attr[int] = field(max=999)
    name: Attr[str] = field(default="")

    primary = Key("STUDENT", number).sort("STUDENT")


class Course(Entity, table=school):
    title: Attr[str] = field()

    primary = Key("COURSE", title).sort("COURSE")


def test_edges_are_seen_from_both_sides_everywhere(store: Store, table_name: str) -> None:
    taken = Adjacency(store, "takes", table=Adjacency.layout(table_name))
    other = Adjacency(store, "teaches", table=taken.table)
    taken.create_table()
    assert taken.link("ann", "maths", {"grade": 1})
    assert not taken.link("ann", "maths", {"grade": 2})
    assert taken.link_many([("ann", "art"), ("bob", "maths"), ("Cem", "maths")]) == 3
    assert other.link("ann", "zoology")
    edge = taken.edge("ann", "maths")
    assert edge is not None
    assert (edge.data, taken.edge("maths", "ann")) == ({"grade": 1}, None)
    assert taken.describe("ann", "maths", {"grade": 3}).data == {"grade": 3}
    with pytest.raises(errors.NotFound):
        taken.describe("ann", "music", {})
    assert [(each.right, each.data) for each in taken.rights("ann")] == [
        *(("art", {}), ("maths", {"grade": 3}))
    ]
    assert [each.left for each in taken.lefts("maths")] == ["Cem", "ann", "bob"]
    assert [each.data for each in taken.lefts("maths", size=2)] == [{}, {"grade": 3}]
    assert (taken.degree(left="ann"), taken.degree(right="maths")) == (2, 3)
    assert list(taken.common_rights("ann", "bob")) == ["maths"]
    assert list(taken.common_lefts("art", "maths")) == ["ann"]
    assert (taken.unlink("ann", "maths"), taken.unlink("ann", "maths")) == (True, False)
    assert [each.left for each in taken.all_lefts("maths")] == ["Cem", "bob"]
    assert (taken.drop(right="maths"), taken.drop(left="ann"), taken.drop(left="bob")) == (2, 1, 0)
    assert [each.right for each in other.all_rights("ann")] == ["zoology"]


nodes = st.text(st.sampled_from("ab#$\0é😀"), min_size=1, max_size=3)
pairs = st.sets(st.tuples(nodes, nodes), max_size=60)


@settings(max_examples=examples(60), deadline=None)
@given(pairs, st.lists(st.tuples(nodes, nodes), max_size=10), st.data())
def test_an_adjacency_is_a_set_of_pairs(
    pairs: set[tuple[str, str]], gone: list[tuple[str, str]], data: st.DataObject
) -> None:
    with isotone.connect() as store:
        edges = Adjacency(store, "r")
        edges.create_table()
        for left, right in pairs:
            assert edges.link(left, right)
        for left, right in gone:
            assert edges.unlink(left, right) == ((left, right) in pairs)
            pairs.discard((left, right))
        lefts = sorted({left for left, _ in pairs} | {"a"}, key=str.encode)
        rights = sorted({right for _, right in pairs} | {"a"}, key=str.encode)
        for left in lefts:
            expected = [right for right in rights if (left, right) in pairs]
            assert [each.right for each in edges.all_rights(left)] == expected
            assert edges.degree(left=left) == len(expected)
        for right in rights:
            expected = [left for left in lefts if (left, right) in pairs]
            assert [each.left for each in edges.all_lefts(right)] == expected
        one, other = data.draw(st.sampled_from(lefts)), data.draw(st.sampled_from(lefts))
        common = [each for each in rights if {(one, each), (other, each)} <= pairs]
        assert list(edges.common_rights(one, other)) == common
        assert edges.drop(left=one) == sum(left == one for left, _ in pairs)
        assert list(edges.all_rights(one)) == []


@settings(max_examples=examples(30), deadline=None)
@example(set(range(75)), set(range(75)), False)
@example(set(range(25)), set(range(24, 60)), False)
@given(
    st.sets(st.integers(0, 400), max_size=120),
    st.sets(st.integers(0, 400), max_size=120),
    st.booleans(),
)
def test_what_is_common_is_found_over_many_pages(
    one: set[int], other: set[int], apart: bool
) -> None:
    shift = 300 if apart else 0
    other = {each + shift for each in other}
    with isotone.connect() as store:
        edges = Adjacency(store, "r")
        edges.create_table()
        edges.link_many([("one", f"{each:03}") for each in one])
        edges.link_many([("other", f"{each:03}") for each in other])
        common = [f"{each:03}" for each in sorted(one & other)]
        assert list(edges.common_rights("one", "other")) == common


def test_pages_lead_on_and_back(memory: Store) -> None:
    edges = Adjacency(memory, "r")
    edges.create_table()
    edges.link_many([("hub", f"{number:02}") for number in range(30)])
    edges.link_many([(f"{number:02}", "hub") for number in range(30)])
    for read, far in ((edges.rights, "right"), (edges.lefts, "left")):
        first = read("hub", size=12)
        second = read("hub", size=12, cursor=first.cursor)
        third = read("hub", size=12, cursor=second.cursor)
        seen = [getattr(each, far) for page in (first, second, third) for each in page]
        assert seen == [f"{number:02}" for number in range(30)]
        assert third.cursor is None
        assert read("hub", size=12, cursor=second.previous).items == first.items


def test_nodes_may_be_entities(memory: Store) -> None:
    takes = Adjacency(memory, "takes", Student, Course, table=Adjacency.layout("edges"))
    takes.create_table()
    memory.create_tables(school)
    students = [memory.put(Student(number=number, name=f"S{number}")) for number in (2, 10, 100)]
    maths, art = memory.put(Course(title="maths")), Course(title="art")
    for student in students:
        takes.link(student, maths)
    takes.link(students[0], art)
    edges = takes.lefts(maths).items
    assert takes.nodes(edges, "left") == students  # by number, not by its text
    assert takes.nodes(takes.rights(students[0]), "right") == [None, maths]
    assert [each.right for each in takes.rights(students[0])] == ["art", "maths"]
    assert takes.degree(right=maths) == 3
    with pytest.raises(errors.UsageError, match="left nodes of 'takes' are Students, or texts"):
        takes.link(maths, maths)
    with pytest.raises(errors.UsageError, match="no class for its left nodes"):
        Adjacency(memory, "r").nodes(edges, "left")
    with pytest.raises(errors.UsageError, match="are texts, not a Course"):
        Adjacency(memory, "r").link(maths, "a")


def test_an_entity_whose_key_is_no_text_is_no_node(memory: Store) -> None:
    class Sensor(Entity, table=Table("sensors", partition=Number("number"), sort=None)):
        number: Attr[int] = field()

        primary = Key(number)

    edges = Adjacency(memory, "r", Sensor, Sensor)
    with pytest.raises(errors.UsageError, match="pass the nodes as texts"):
        edges.link(Sensor(number=1), "a")


def test_edges_are_written_in_transactions(memory: Store) -> None:
    edges = Adjacency(memory, "follows")
    edges.create_table()
    with memory.transaction() as together:  # friends: both ways, or not at all
        edges.within(together).link("ann", "bob")
        edges.within(together).link("bob", "ann")

    def befriend() -> None:
        with memory.transaction() as together:
            edges.within(together).unlink("ann", "bob")
            edges.within(together).link("bob", "ann")

    with pytest.raises(errors.TransactionFailed):
        befriend()
    assert edges.edge("ann", "bob") is not None


def test_dropping_reports_how_far_it_is_and_continues(memory: Store) -> None:
    edges = Adjacency(memory, "r")
    edges.create_table()
    edges.link_many([("hub", f"{number:03}") for number in range(250)])
    told: list[int] = []

    def stop_at_100(dropped: int) -> None:
        told.append(dropped)
        if len(told) == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        edges.drop(left="hub", progress=stop_at_100)
    assert edges.degree(left="hub") == 150
    assert edges.drop(left="hub", progress=told.append) == 150
    assert told[:2] == [100, 100]
    assert told[-1] == 150
    with pytest.raises(errors.UsageError, match="one side"):
        edges.drop()


@pytest.mark.parametrize("pair", ["ab", ("a",), ("a", "b", {"grade": 1}), 5])
def test_what_is_no_pair_is_refused(memory: Store, pair: Any) -> None:
    edges = Adjacency(memory, "e")
    edges.create_table()
    with pytest.raises(errors.UsageError, match=r"is not a pair of nodes; write \(left, right\)"):
        edges.link_many([("a", "c"), pair])
    assert edges.rights("a").items == []


def test_what_is_said_of_an_edge_is_a_mapping(memory: Store) -> None:
    edges: Any = Adjacency(memory, "e")
    with pytest.raises(errors.UsageError, match=r"data takes Mapping\[str, Any\] .*, not str"):
        edges.link("a", "b", "x")
    with pytest.raises(errors.UsageError, match=r"data takes Mapping\[str, Any\] .*, not str"):
        edges.within(memory.transaction()).link("a", "b", "x")
    with pytest.raises(errors.UsageError, match="tx takes Transaction"):
        edges.within(memory)


def test_answers_that_are_lost_do_no_harm(memory: Store) -> None:
    Adjacency(memory, "r").create_table()
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        edges = Adjacency(repeating, "r")
        edges.link("a", "b")
        assert edges.edge("a", "b") is not None
        edges.unlink("a", "b")
        assert edges.edge("a", "b") is None


def test_an_adjacency_costs_as_documented(clock: ManualClock) -> None:
    requests = Requests()
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        edges = Adjacency(store, "r")
        edges.create_table()
        requests.taken()
        edges.link("a", "b")
        edges.unlink("a", "b")
        edges.edge("a", "b")
        assert requests.taken() == {"PutItem": 1, "DeleteItem": 1, "GetItem": 1}
        edges.link_many([("many", f"{number:04}") for number in range(1000)])
        edges.link_many([("few", "0001"), ("few", "0999")])
        requests.taken()
        assert list(edges.common_rights("many", "few")) == ["0001", "0999"]
        assert requests.taken()["Query"] <= 5  # it leaps over forty pages
        edges.lefts("0001")
        edges.degree(left="many")
        assert requests.taken() == {"Query": 2}


def test_awaited() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            edges = Adjacency(store, "r")
            await edges.create_table()
            await asyncio.gather(*(edges.link("hub", str(number)) for number in range(5)))
            assert [each.right async for each in edges.all_rights("hub")] == list("01234")
            await edges.link("other", "3")
            assert [each async for each in edges.common_rights("hub", "other")] == ["3"]
            assert await edges.drop(left="hub") == 5

    asyncio.run(program())
