"""`match` chooses a key, and finds what a naive filter over all entities finds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import (
    Attr,
    Condition,
    Entity,
    Global,
    Index,
    Key,
    Local,
    Query,
    Store,
    Table,
    created,
    created_id,
    desc,
    field,
    updated,
)
from isotone.errors import Unanswerable, UsageError
from isotone.model import Stats, waste_of

orders = Table(
    "orders",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK"),
        "GSI3": Global("GSI3PK", "GSI3SK", projection=("total",)),
        "GSI4": Global("GSI4PK", "GSI4SK"),
    },
)


class Order(Entity, table=orders):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=None)
    status: Attr[Literal["OPEN", "SENT", "DONE"]] = field(default="OPEN", in_order=True)
    total: Attr[int] = field(default=0, max=999, alert=None)
    agent: Attr[str | None] = field(default=None)
    closed: Attr[bool] = field(default=False)
    mail: Attr[str] = field(default="", case="lower")

    primary = Key("CUSTOMER", customer).sort("ORDER", desc(number))
    by_status = Index("GSI1", "STATUS", status, when=~closed).sort(total, number)
    by_agent = Index("GSI2", "AGENT", agent).sort(status, number)
    by_day = Index("GSI3", "TOTALS").sort(total)
    by_mail = Index("GSI4", "MAIL", mail).sort(number)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(orders)
        for number in range(20):
            store.put(
                Order(
                    customer="xy"[number % 2],
                    number=number,
                    status=("OPEN", "SENT", "DONE")[number % 3],
                    total=number * 7 % 20,
                    agent=None if number % 4 == 0 else "Ann",
                    closed=number % 5 == 0,
                    mail="Ann@x.org" if number < 10 else "ann@x.org",
                )
            )
        yield store


OPEN, SENT = Order.status == "OPEN", Order.status == "SENT"


@pytest.mark.parametrize(
    ("conditions", "name", "filtered"),
    [
        ((Order.customer == "x",), "Order.primary", 0),
        ((Order.customer == "x", OPEN, Order.total > 5), "Order.primary", 2),
        ((OPEN, ~Order.closed), "Order.by_status", 0),
        ((OPEN, ~Order.closed, Order.total > 5), "Order.by_status", 0),
        ((OPEN, ~Order.closed, Order.total > 5, Order.number > 3), "Order.by_status", 1),
        ((OPEN, Order.closed != True), "Order.by_status", 0),  # noqa: E712
        (
            (Order.customer == "x", OPEN, ~Order.closed, Order.total.between(1, 9)),
            "Order.by_status",
            1,
        ),
        ((Order.customer == "x", Order.number == 6, OPEN, ~Order.closed), "Order.primary", 2),
        ((Order.agent == "Ann", Order.status >= "SENT"), "Order.by_agent", 0),
        ((Order.agent == "Ann", Order.number > 3), "Order.by_agent", 1),
        ((Order.agent == "Ann") & (OPEN | SENT), "Order.by_agent", 1),
        ((Order.agent == "Ann", SENT, Order.number != 3), "Order.by_agent", 1),
        ((Order.mail == "ANN@x.org", Order.total < 9), "Order.by_mail", 1),
        ((Order.customer == "x", Order.number == 4, Order.number > 3), "Order.primary", 0),
        ((Order.customer == "x", Order.total < Order.number), "Order.primary", 1),
        ((Order.status.is_in(["OPEN"]), ~Order.closed), "Order.by_status", 0),
        ((Order.agent == "Ann", Order.agent.exists(), OPEN), "Order.by_agent", 0),
    ],
    ids=repr,
)
def test_the_best_key_is_chosen(store: Store, conditions: Any, name: str, filtered: int) -> None:
    given = conditions if isinstance(conditions, tuple) else (conditions,)
    query = Order.match(*given)
    assert isinstance(query, Query)
    assert (query.name, len(query.filters)) == (name, filtered)
    assert store.count(query) == len(store.all(query)) > 0


def test_what_excludes_itself_is_not_read(store: Store) -> None:
    query = Order.match(OPEN, SENT)
    assert store.all(query) == []
    assert "nothing: the conditions exclude one another" in query.explain()
    assert store.page(Order.match(Order.total > 5, Order.total < 3), size=3).items == []


@pytest.mark.parametrize(
    "conditions",
    [
        (Order.customer == "x",),
        (OPEN, ~Order.closed, Order.total > 5),  # of a sparse index, whose condition they imply
        (Order.status.is_in(["OPEN"]), Order.closed != True),  # noqa: E712
        (Order.agent == "Ann", Order.agent.exists(), OPEN),
        (Order.customer == "x", Order.number == 4, Order.number > 3),
        (OPEN, SENT),
    ],
    ids=repr,
)
def test_find_takes_what_match_takes_without_a_filter(store: Store, conditions: Any) -> None:
    found, matched = Order.find(*conditions), Order.match(*conditions)
    assert (found.name, found.is_empty) == (matched.name, matched.is_empty)
    assert store.all(found) == store.all(matched)


def test_find_takes_no_filter() -> None:
    for conditions in ((OPEN, Order.total > 5), (Order.customer == "x", Order.total > 5)):
        with pytest.raises(Unanswerable, match="no key of Order answers these conditions"):
            Order.find(*conditions)


def test_advice_names_the_index_that_exists() -> None:
    customer = Order.primary.where(Order.customer == "x")
    stats = Stats(scanned=1000, returned=1)
    assert waste_of(customer.filter(OPEN, ~Order.closed, Order.total > 5), stats).advice == (
        'an index would read no other items: Index("…", customer).sort(status, closed, total)'
    )
    sent = Order.by_agent.where(Order.agent == "Ann", SENT)
    assert waste_of(sent.filter(Order.total > 5), stats).advice == (
        'an index would read no other items: Index("…", agent).sort(status, total)'
    )
    everything = Order.primary.scan()
    assert waste_of(everything.filter(OPEN, ~Order.closed, Order.total > 5), stats).advice == (
        "Order.by_status answers it by its key"
    )
    assert waste_of(everything.filter(OPEN, Order.total > 5), stats).advice == (
        "Order.by_status has the key for it, but it has only entities with closed == False, which the conditions "
        "do not imply"
    )


def test_no_key_says_what_each_lacks() -> None:
    with pytest.raises(Unanswerable) as refused:
        Order.match(OPEN, Order.total > 5)
    lines = str(refused.value).splitlines()
    assert lines == [
        "no key of Order can find what satisfies status == 'OPEN', total > 5:",
        "  Order.primary: needs Order.customer == …",
        "  Order.by_status: it has only entities with closed == False, which the conditions do not imply",
        "  Order.by_agent: it lacks entities without agent",
        "  Order.by_day: the index does not project agent, closed, mail, status",
        "  Order.by_mail: needs Order.mail == …",
        "Give what is missing, declare an index, or read and pay for everything by match(…, scan=True)",
    ]


def test_an_index_that_sorts_by_when_an_item_was_written_has_all_items() -> None:
    logs = Table("logs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Log(Entity, table=logs):
        host: Attr[str] = field()
        number: Attr[int] = field(max=99)
        level: Attr[str] = field()
        made_at: Attr[datetime] = created()
        changed_at: Attr[datetime] = updated()

        primary = Key("HOST", host).sort("LOG", number)
        by_level = Index("GSI1", "HOST", host).sort(level, made_at, changed_at)

    conditions = (Log.host == "a", Log.level == "error")
    assert Log.match(*conditions).request() == Log.find(*conditions).request()
    assert Log.match(*conditions).request()["IndexName"] == "GSI1"


def test_an_index_whose_key_is_always_set_has_all_items() -> None:
    """`created_id()`, `created()`, `updated()` and defaults: no entity lacks a part of the key."""
    notes = Table("notes", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Note(Entity, table=notes):
        number: Attr[isotone.ULID] = created_id()
        owner: Attr[str] = field()
        topic: Attr[str] = field(default="misc")
        made_at: Attr[datetime] = created()

        primary = Key("OWNER", owner).sort("NOTE", number)
        by_topic = Index("GSI1", "TOPIC", topic).sort(made_at, number)

    conditions = (Note.topic == "misc", Note.owner == "ann")
    with isotone.connect(":memory:") as store:
        store.create_tables(notes)
        store.put(Note(owner="ann"))
        query = Note.match(Note.topic == "misc")
        assert query.name == Note.find(Note.topic == "misc").name == "Note.by_topic"
        assert [note.owner for note in store.all(query)] == ["ann"]
        assert "lacks" not in Note.match(*conditions).explain()


def test_a_scan_must_be_asked_for(store: Store) -> None:
    read = Order.match(OPEN, Order.total > 5, scan=True)
    assert not isinstance(read, Query)
    found = {order.number for order in store.all(read)}
    assert found == {n for n in range(20) if n % 3 == 0 and n * 7 % 20 > 5}
    assert read.explain().splitlines()[:2] == [
        "Scan of Order.primary (table 'orders')",
        "  reads    everything in the table, also other kinds of entities",
    ]
    sparse = Order.match(~Order.closed, Order.total > 5, scan=True)
    assert (sparse.name, len(sparse.filters)) == ("Order.by_status", 1)
    found = {order.number for order in store.all(sparse)}
    assert found == {n for n in range(20) if n % 5 and n * 7 % 20 > 5}
    with pytest.raises(Unanswerable, match="a filter on mail would not ignore case"):
        Order.match(Order.mail > "a", scan=True)


def test_a_query_explains_itself() -> None:
    query = Order.match(Order.customer == "x", Order.agent == "Ann", OPEN, Order.total > 5)
    assert query.newest_first().explain().splitlines() == [
        "Query of Order.by_agent (index 'GSI2' of table 'orders')",
        "  reads    agent == 'Ann', status == 'OPEN'",
        "  filters  customer == 'x', total > 5: what does not satisfy it is read, paid for and dropped",
        "  order    number, the greatest first",
        "  cost     0.5 units for each 4 KB of what is read",
        "  because  it answers 2 of 4 conditions by its key",
        "  not      Order.primary: answers 1 of 4 conditions by its key",
        "  not      Order.by_status: it has only entities with closed == False, which the conditions do not imply",
        "  not      Order.by_day: the index does not project agent, closed, mail, status",
        "  not      Order.by_mail: needs Order.mail == …",
    ]
    plain = Order.primary.where(Order.customer == "x", Order.number == 3).consistent()
    assert plain.explain().splitlines()[1:] == [
        "  reads    customer == 'x', number == 3",
        "  order    all items of the key are equal",
        "  cost     1 unit for each 4 KB of the results",
    ]


jobs = Table("jobs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Job(Entity, table=jobs):
    number: Attr[int] = field(max=999, alert=None)
    due: Attr[date | None] = field(default=None)

    primary = Key("JOB", number).sort("JOB")
    waiting = Index("GSI1", "DUE").sort(due)


def test_an_index_of_an_optional_field_has_what_has_a_value(store: Store) -> None:
    store.create_tables(jobs)
    store.put(Job(number=1))
    store.put(Job(number=2, due=DAY))
    query = Job.match(Job.due != None)  # noqa: E711
    assert (query.name, query.filters) == ("Job.waiting", ())
    assert [job.number for job in store.all(query)] == [2]
    with pytest.raises(Unanswerable, match=r"Job\.waiting: it lacks entities without due"):
        Job.match(Job.due.missing())


def test_wrong_conditions_are_refused() -> None:
    class Other(Entity, table=orders):
        name: Attr[str] = field()

        primary = Key("OTHER", name).sort("OTHER")

    with pytest.raises(UsageError, match="not of Order"):
        Order.match(Other.name == "x")
    wrong: Any = Order
    with pytest.raises(UsageError, match=r"write match\(Order.customer == 'x'\)"):
        wrong.match(customer="x")
    with pytest.raises(Unanswerable, match="what satisfies no conditions"):
        Order.match()


def test_an_async_store_reads_it() -> None:
    async def main() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(orders)
            await store.put(Order(customer="x", number=1, total=6))
            query = Order.match(Order.customer == "x", Order.total > 5)
            assert len((await store.page(query, size=5)).items) == 1

    asyncio.run(main())


# Any declaration, any conditions

STATUS = ("a", "b", "c")
DAY = date(2026, 1, 1)


@dataclass(frozen=True)
class Case:
    """A condition on a field, made for an entity, and its meaning in Python."""

    make: Callable[[Any], Condition]
    holds: Callable[[Any], bool]
    text: str

    def __repr__(self) -> str:
        return self.text


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "group": st.sampled_from("xy"),
    "status": st.sampled_from(STATUS),
    "size": st.integers(0, 6),
    "day": st.none() | st.integers(0, 4).map(lambda days: DAY + timedelta(days)),
    "closed": st.booleans(),
    "name": st.sampled_from(["", "a", "ab", "b", "b#", "é"]),
    "level": st.sampled_from(STATUS),
}
ORDERED = ("size", "day", "name", "status")


def _compared(name: str) -> st.SearchStrategy[Case]:
    operators: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], bool]]] = {
        "==": (lambda f, v: f == v, lambda a, b: a == b),
        "!=": (lambda f, v: f != v, lambda a, b: a != b),
    }
    if name in ORDERED:
        operators |= {
            "<": (lambda f, v: f < v, lambda a, b: a is not None and a < b),
            "<=": (lambda f, v: f <= v, lambda a, b: a is not None and a <= b),
            ">": (lambda f, v: f > v, lambda a, b: a is not None and a > b),
            ">=": (lambda f, v: f >= v, lambda a, b: a is not None and a >= b),
        }

    def case(drawn: tuple[str, Any]) -> Case:
        sign, value = drawn
        if value is None and sign not in ("==", "!="):
            sign = "=="
        make, holds = operators[sign]
        return Case(
            lambda entity: make(getattr(entity, name), value),
            lambda each: holds(getattr(each, name), value),
            f"{name} {sign} {value!r}",
        )

    weighted = st.sampled_from(["=="] * 4 + sorted(operators))
    return st.tuples(weighted, VALUES[name]).map(case)


def _in(name: str) -> st.SearchStrategy[Case]:
    present = VALUES[name].filter(lambda value: value is not None)
    return st.lists(present, min_size=1, max_size=3).map(
        lambda values: Case(
            lambda entity: getattr(entity, name).is_in(values),
            lambda each: getattr(each, name) in values,
            f"{name} in {values}",
        )
    )


SIMPLE = st.one_of(
    *map(_compared, VALUES),
    *map(_in, VALUES),
    st.sampled_from(["a", "b", "b#"]).map(
        lambda text: Case(
            lambda entity: entity.name.begins_with(text),
            lambda each: each.name.startswith(text),
            f"name begins with {text!r}",
        )
    ),
    st.booleans().map(
        lambda wanted: Case(
            lambda entity: entity.day.exists() if wanted else entity.day.missing(),
            lambda each: (each.day is not None) is wanted,
            f"day exists: {wanted}",
        )
    ),
)
JOINED = st.recursive(
    SIMPLE,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(
            lambda both: Case(
                lambda entity: both[0].make(entity) | both[1].make(entity),
                lambda each: both[0].holds(each) or both[1].holds(each),
                f"({both[0]!r} or {both[1]!r})",
            )
        ),
        inner.map(
            lambda one: Case(
                lambda entity: ~one.make(entity), lambda each: not one.holds(each), f"not {one!r}"
            )
        ),
    ),
    max_leaves=3,
)
CONDITIONS = st.lists(SIMPLE | JOINED, max_size=5)
PARTS = st.lists(st.sampled_from(sorted(VALUES)), max_size=3, unique=True)


@dataclass(frozen=True)
class Plan:
    """The parts of an index, and the condition of a sparse one."""

    partition: list[str]
    sort: list[str]
    when: Case | None
    is_local: bool = False


PLANS = st.builds(Plan, PARTS.map(lambda names: names[:2]), PARTS, st.none() | SIMPLE | JOINED)
_numbers = count()


def declared(plans: list[Plan], *, descending: bool) -> tuple[Table, Any]:
    """An entity with the planned indexes, of a table of its own."""
    number = next(_numbers)
    indexes: Any = {f"GSI{place}": Global(f"P{place}", f"S{place}") for place in range(len(plans))}
    indexes["LSI"] = Local("LS")
    table = Table(f"table{number}", indexes=indexes)
    fields: dict[str, Any] = {
        "group": field(),
        "number": field(max=99, alert=None),
        "status": field(in_order=True),
        "size": field(max=9, alert=None),
        "day": field(default=None),
        "closed": field(default=False),
        "name": field(default=""),
        "level": field(),
    }
    types: dict[str, Any] = {
        "group": str,
        "number": int,
        "status": Literal["a", "b", "c"],
        "size": int,
        "day": date | None,
        "closed": bool,
        "name": str,
        "level": Literal["a", "b", "c"],
    }
    turn: Any = desc if descending else lambda part: part
    keys: dict[str, Any] = {"primary": Key("G", fields["group"]).sort("N", turn(fields["number"]))}
    keys["local"] = Index("LSI", "G", fields["group"]).sort(fields["status"], fields["number"])

    of = SimpleNamespace(**fields)  # stands in for the class, which does not exist yet
    for place, plan in enumerate(plans):
        when = None if plan.when is None else plan.when.make(of)
        parts = [turn(fields[name]) for name in plan.sort if name not in plan.partition]
        key = Index(
            f"GSI{place}", f"K{place}", *[fields[name] for name in plan.partition], when=when
        )
        keys[f"by_{place}"] = key.sort(*parts, fields["number"])
    annotations = {name: Attr.__class_getitem__(kind) for name, kind in types.items()}
    namespace = {**fields, **keys, "__annotations__": annotations, "__module__": __name__}
    return table, type(Entity)("Thing", (Entity,), namespace, table=table)  # type: ignore[call-arg]


THING = st.fixed_dictionaries(VALUES)


@pytest.fixture(scope="module")
def empty() -> Iterator[Store]:
    with isotone.connect(":memory:", report=None) as store:
        yield store


@given(
    st.lists(PLANS, max_size=2),
    st.lists(THING, max_size=12),
    st.lists(CONDITIONS, min_size=1, max_size=4),
    st.booleans(),
)
@settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_match_finds_what_a_naive_filter_finds(
    empty: Store,
    plans: list[Plan],
    things: list[dict[str, Any]],
    asked: list[list[Case]],
    descending: bool,
) -> None:
    try:
        table, thing = declared(plans, descending=descending)
    except UsageError:
        return  # an index that cannot be declared
    empty.create_tables(table)
    everything = [thing(number=number, **values) for number, values in enumerate(things)]
    for each in everything:
        empty.put(each)
    for cases in asked:
        conditions = [case.make(thing) for case in cases]
        read = thing.match(*conditions, scan=True)
        found = sorted(each.number for each in empty.all(read))
        wanted = [each.number for each in everything if all(case.holds(each) for case in cases)]
        assert found == wanted, read.explain()
        check_find(empty, thing, conditions, read, wanted)
    empty.drop_tables(table)


def check_find(
    store: Store, thing: Any, conditions: list[Any], matched: Any, wanted: list[int]
) -> None:
    """`find` takes the key of `match` if that needs no filter; otherwise one that needs none, or it refuses."""
    needs_no_filter = isinstance(matched, Query) and not matched.filters
    try:
        found = thing.find(*conditions)
    except Unanswerable:
        assert not needs_no_filter
        return
    assert not found.filters
    assert sorted(each.number for each in store.all(found)) == wanted
    if needs_no_filter:
        assert (found.name, found.is_empty) == (matched.name, matched.is_empty)
    else:
        assert matched.name == "Thing.primary"  # a single item, whatever else is asked of it
