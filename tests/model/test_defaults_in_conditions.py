"""Conditions treat an attribute that an item lacks as readers do: it has the default of its field.

An item that an earlier program wrote, without the attributes, and the same item with all of them satisfy the same
conditions, wherever a condition is given.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import (
    Attr,
    Codec,
    Condition,
    Entity,
    Global,
    Index,
    Key,
    Store,
    Table,
    field,
)
from isotone.errors import ConditionFailed, TransactionFailed

shop = Table("defaults", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    number: Attr[int] = field(max=99)
    gift: Attr[bool] = field(default=False)
    count: Attr[int] = field(default=5)
    limit: Attr[int] = field(default=7)
    free: Attr[int | None] = field(default=None)
    due: Attr[int | None] = field(default=5)
    text: Attr[str] = field(default="open", name="t")
    level: Attr[Literal["LOW", "MID", "TOP"]] = field(default="MID", in_order=True)
    secret: Attr[str] = field(default="none", codec=Codec(lambda s: s[::-1], lambda s: s[::-1]))
    tags: Attr[set[str]] = field(default_factory=set)
    lines: Attr[list[str]] = field(default_factory=list)
    pair: Attr[tuple[int, str]] = field(default=(5, "x"))
    status: Attr[str] = field(default="OPEN")

    primary = Key("ORDER", number).sort("ORDER")
    by_status = Index("GSI1", "STATUS", status).sort(number)


FULL = Order(
    number=2,
    gift=True,
    count=3,
    limit=3,
    free=4,
    due=None,
    text="opened",
    level="TOP",
    secret="x",
    tags={"a"},
    lines=["a", "b"],
    pair=(1, "y"),
    status="PAID",
)
WHERE: Any = Order


# Conditions, each with the same question to an entity


Question = tuple[Condition, Callable[[Order], bool]]

NUMBERS = ("count", "limit")
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
VALUES: dict[str, list[Any]] = {
    "gift": [False, True],
    "count": [3, 5, 6],
    "free": [4, 5],
    "due": [4, 5],
    "text": ["open", "opened", "p"],
    "level": ["LOW", "MID", "TOP"],
    "status": ["OPEN", "PAID", "VOID"],
    "secret": ["none", "x"],
    "pair": [(5, "x"), (1, "y")],
    "lines": [[], ["a", "b"]],
    "tags": [set(), {"a"}, {"b"}],
}
ORDERED = ("count", "free", "due", "text", "status")
LEVELS = ("LOW", "MID", "TOP")


def known(test: Callable[..., bool]) -> Callable[..., bool]:
    """No order has a place for None."""
    return lambda *values: None not in values and test(*values)


@st.composite
def comparisons(draw: st.DrawFn) -> Question:
    name = draw(st.sampled_from(sorted(VALUES)))
    operator = draw(st.sampled_from(sorted(OPERATORS) if name in ORDERED else ["==", "!="]))
    value, test = draw(st.sampled_from(VALUES[name])), OPERATORS[operator]
    is_right = test if operator in ("==", "!=") else known(test)
    return test(getattr(WHERE, name), value), lambda order: is_right(getattr(order, name), value)


@st.composite
def levels(draw: st.DrawFn) -> Question:
    operator, level = draw(st.sampled_from(sorted(OPERATORS))), draw(st.sampled_from(LEVELS))
    test = OPERATORS[operator]
    place = LEVELS.index
    return test(WHERE.level, level), lambda order: test(place(order.level), place(level))


@st.composite
def ranges_and_choices(draw: st.DrawFn) -> Question:
    name = draw(st.sampled_from(["count", "due", "free", "text", "status"]))
    low, high = sorted(draw(st.lists(st.sampled_from(VALUES[name]), min_size=2, max_size=2)))
    if draw(st.booleans()):
        return (
            getattr(WHERE, name).between(low, high),
            lambda order: known(lambda value: low <= value <= high)(getattr(order, name)),
        )
    return getattr(WHERE, name).is_in(
        [low, high]
    ), lambda order: getattr(order, name) in (low, high)


@st.composite
def of_two_fields(draw: st.DrawFn) -> Question:
    names = ["count", "limit", "free", "due"]
    one, other = draw(st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True))
    match draw(st.sampled_from([*sorted(OPERATORS), "between", "in", "size", "inside"])):
        case "between":
            low = draw(st.integers(2, 8))
            return (
                getattr(WHERE, one).between(low, getattr(WHERE, other)),
                lambda order: known(lambda a, b: low <= a <= b)(
                    getattr(order, one), getattr(order, other)
                ),
            )
        case "in":
            value = draw(st.integers(2, 8))
            return (
                getattr(WHERE, one).is_in([value, getattr(WHERE, other)]),
                lambda order: known(lambda a: a == value or a == getattr(order, other))(
                    getattr(order, one)
                ),
            )
        case "size":
            return WHERE.text.size < WHERE.limit, lambda order: len(order.text) < order.limit
        case "inside":
            return WHERE.pair[0] == WHERE.count, lambda order: order.pair[0] == order.count
        case operator:
            test = OPERATORS[operator]
            is_right = test if operator == "!=" else known(test)
            return (
                test(getattr(WHERE, one), getattr(WHERE, other)),
                lambda order: is_right(getattr(order, one), getattr(order, other)),
            )


OTHERS: list[Question] = [
    (~WHERE.gift, lambda order: not order.gift),
    (WHERE.text.begins_with("open"), lambda order: order.text.startswith("open")),
    (WHERE.text.begins_with("opened"), lambda order: order.text.startswith("opened")),
    (WHERE.text.contains("pe"), lambda order: "pe" in order.text),
    (WHERE.tags.contains("a"), lambda order: "a" in order.tags),
    (WHERE.lines.contains("a"), lambda order: "a" in order.lines),
    (WHERE.tags.size == 0, lambda order: len(order.tags) == 0),
    (WHERE.tags.size != 0, lambda order: len(order.tags) != 0),
    (WHERE.lines.size < 2, lambda order: len(order.lines) < 2),
    (WHERE.lines.size == WHERE.tags.size, lambda order: len(order.lines) == len(order.tags)),
    (WHERE.text.size >= 4, lambda order: len(order.text) >= 4),
    (WHERE.pair[1] == "x", lambda order: order.pair[1] == "x"),
    (WHERE.pair[0] != 5, lambda order: order.pair[0] != 5),
    (WHERE.pair[0] < 5, lambda order: order.pair[0] < 5),
]
leaves = st.one_of(
    comparisons(), levels(), ranges_and_choices(), of_two_fields(), st.sampled_from(OTHERS)
)


def _join(operands: st.SearchStrategy[Question]) -> st.SearchStrategy[Question]:
    def both(one: Question, other: Question) -> Question:
        return one[0] & other[0], lambda order: one[1](order) and other[1](order)

    def either(one: Question, other: Question) -> Question:
        return one[0] | other[0], lambda order: one[1](order) or other[1](order)

    def opposite(one: Question) -> Question:
        return ~one[0], lambda order: not one[1](order)

    return st.one_of(
        st.builds(both, operands, operands),
        st.builds(either, operands, operands),
        st.builds(opposite, operands),
    )


questions = st.recursive(leaves, _join, max_leaves=4)


@pytest.fixture(scope="module", params=["memory", "dynamodb-local"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store with an item that lacks everything, and one that has all."""
    if request.param == "memory":
        address, options = ":memory:", {}
    else:
        address, options = request.getfixturevalue("dynamodb_local"), {"region": "us-east-1"}
    with isotone.connect(address, **options) as found:
        found.create_tables(shop)
        found.put(FULL)
        put_bare(found)
        try:
            yield found
        finally:
            found.drop_tables(shop)


def put_bare(store: Store) -> None:
    item = {"PK": {"S": "ORDER#01"}, "SK": {"S": "ORDER"}, "_type": {"S": "Order"}}
    store.backend.execute(
        "PutItem", {"TableName": "defaults", "Item": {**item, "number": {"N": "1"}}}
    )


def numbers(orders: Any) -> list[int]:
    return sorted(order.number for order in orders)


@given(questions)
@example((Order.status == "OPEN", lambda order: order.status == "OPEN"))
@settings(
    max_examples=examples(900),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_a_condition_is_right_of_a_missing_attribute(store: Store, question: Question) -> None:
    condition, is_right = question
    right = [order.number for order in (Order(number=1), FULL) if is_right(order)]

    query = Order.primary.scan().filter(condition)
    assert numbers(store.all(query)) == right
    assert store.count(query) == len(right)
    assert numbers(store.load(Order.primary.scan()).where(condition)) == right
    matched = Order.match(condition, scan=True)
    by_index = "by_status" in repr(matched)  # in which the item that lacks everything is not
    assert numbers(store.all(matched)) == [each for each in right if each != 1 or not by_index]
    for number in (1, 2):
        assert is_satisfied(store, number, condition) is (number in right)


def is_satisfied(store: Store, number: int, condition: Condition) -> bool:
    """Whether a check of a condition on an item succeeds."""
    try:
        with store.transaction() as tx:
            tx.check(Order, condition, number=number)
    except TransactionFailed:
        return False
    return True


WRITES: dict[str, Callable[[Store, Condition], object]] = {
    "put": lambda store, when: store.put(Order(number=1), when=when),
    "replace": lambda store, when: store.replace(Order(number=1), when=when),
    "update": lambda store, when: store.update(Order, WHERE.free.set(1), number=1, when=when),
    "update of a key": lambda store, when: store.update(
        Order, WHERE.status.set("VOID"), number=1, when=when
    ),
    "delete": lambda store, when: store.delete(Order, number=1, when=when),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=[*WRITES])
@pytest.mark.parametrize(
    ("condition", "is_true"),
    [
        (~WHERE.gift, True),
        (WHERE.gift == True, False),  # noqa: E712 - makes a condition
        (WHERE.gift != False, False),  # noqa: E712
        (WHERE.count < WHERE.limit, True),
        (WHERE.count > WHERE.limit, False),
        (WHERE.status == "OPEN", True),
        (WHERE.status != "OPEN", False),
        (WHERE.gift.missing(), True),  # which asks for the stored attribute
        (WHERE.gift.exists(), False),
    ],
)
def test_a_write_sees_the_default(
    write: Callable[[Store, Condition], object], condition: Condition, is_true: bool
) -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        put_bare(store)
        if is_true:
            write(store, condition)
        else:
            with pytest.raises(ConditionFailed):
                write(store, condition)


def test_no_item_has_no_default() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        for condition in (
            ~WHERE.gift,
            WHERE.count < WHERE.limit,
            WHERE.status == "OPEN",
            WHERE.text.size == 4,
        ):
            with pytest.raises(ConditionFailed):
                store.put(Order(number=1), when=condition)
            assert not is_satisfied(store, 1, condition)
        store.put(Order(number=1), when=WHERE.status != "OPEN")


def test_queries_that_write_see_the_default() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        put_bare(store)
        store.put(Order(number=2, gift=True))
        plain = Order.primary.scan().filter(~WHERE.gift)
        assert store.update_all(plain, WHERE.text.set("sold"), when=WHERE.count == 5).written == 1
        assert store.delete_all(plain.filter(WHERE.level <= "MID")).written == 1
        assert numbers(store.all(Order.primary.scan())) == [2]


def test_changes_build_on_the_default(store: Store) -> None:
    put_bare(store)
    order = store.update(
        Order,
        WHERE.count.add(1),
        WHERE.limit.add(WHERE.count),
        WHERE.free.add(1),
        WHERE.tags.add({"b"}),
        WHERE.lines.append(["c"]),
        number=1,
    )
    assert (order.count, order.limit, order.free) == (6, 12, 1)
    assert (order.tags, order.lines) == ({"b"}, ["c"])
    put_bare(store)
    assert store.update(Order, WHERE.limit.set(WHERE.count + 1), number=1).limit == 6
    assert store.upsert(Order, WHERE.count.add(2), number=8).count == 7
    put_bare(store)
    store.delete(Order, number=8)


def test_a_value_in_a_key_is_not_the_default() -> None:
    """Conditions see attributes, not keys; and a key with the value keeps the default away."""
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)
        item = {"PK": {"S": "ORDER#01"}, "SK": {"S": "ORDER"}, "_type": {"S": "Order"}}
        item |= {"GSI1PK": {"S": "STATUS#PAID"}, "GSI1SK": {"S": "01"}}
        store.backend.execute("PutItem", {"TableName": "defaults", "Item": item})
        assert store.get(Order, number=1) == Order(number=1, status="PAID")
        unpaid = Order.primary.scan().filter(WHERE.status == "OPEN")
        assert store.all(unpaid) == []
        with pytest.raises(ConditionFailed):
            store.update(Order, WHERE.count.add(1), number=1, when=WHERE.status == "OPEN")
        paid = Order.by_status.where(WHERE.status == "PAID")
        assert numbers(store.all(paid.filter(~WHERE.gift, WHERE.count == 5))) == [1]
        # A key of another form is older than the field.
        item |= {"GSI1PK": {"S": "ELSEWHERE"}}
        store.backend.execute("PutItem", {"TableName": "defaults", "Item": item})
        assert numbers(store.all(unpaid)) == [1]


def test_only_a_default_that_decides_is_in_the_request() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(shop)

        def text(condition: Condition) -> Any:
            request = store.requests.update(Order, WHERE.free.set(1), number=1, when=condition)
            return request["ConditionExpression"].rpartition("attribute_not_exists(#n0) AND ")[2]

        assert text(WHERE.count > 6) == "#n1 > :v0"
        assert text(WHERE.gift == True) == "gift = :v0"  # noqa: E712 - makes a condition
        assert text(WHERE.free > 6) == "#n1 > :v0"
        assert text(~WHERE.gift) == "(gift = :v0 OR attribute_not_exists(gift))"
        assert text(WHERE.gift != False) == "gift <> :v0 AND attribute_exists(gift)"  # noqa: E712


def test_an_awaited_store_sees_the_default() -> None:
    async def run() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(shop)
            item = {"PK": {"S": "ORDER#01"}, "SK": {"S": "ORDER"}, "_type": {"S": "Order"}}
            database = store.backend
            await database.execute("PutItem", {"TableName": "defaults", "Item": item})
            query = Order.primary.scan().filter(~WHERE.gift)
            assert numbers(await store.all(query)) == [1]
            changed = await store.update(Order, WHERE.count.add(1), number=1, when=WHERE.count == 5)
            assert changed.count == 6

    asyncio.run(run())


def test_a_factory_has_no_value_to_compare() -> None:
    """Each reader gets another value, so a condition asks for the stored one."""
    made = iter(range(100))

    class Ticket(Entity, table=Table("tickets")):
        name: Attr[str] = field()
        place: Attr[int] = field(default_factory=lambda: next(made))

        primary = Key("TICKET", name).sort("TICKET")

    with isotone.connect(":memory:") as store:
        store.create_tables(Ticket.__schema__.table)
        item = {"PK": {"S": "TICKET#a"}, "SK": {"S": "TICKET"}, "_type": {"S": "Ticket"}}
        store.backend.execute("PutItem", {"TableName": "tickets", "Item": item})
        assert store.all(Ticket.primary.scan().filter(Ticket.place >= 0)) == []


def test_none_finds_a_stored_null_as_it_finds_a_missing_attribute(store: Store) -> None:
    null = {**Order.__schema__.to_item(Order(number=3).__dict__), "free": {"NULL": True}}
    store.backend.execute("PutItem", {"TableName": "defaults", "Item": null})

    def found(condition: Condition) -> list[int]:
        return sorted(order.number for order in store.all(Order.primary.scan().filter(condition)))

    one = store.get(Order, number=3)
    assert one is not None
    assert one.free is None
    is_none, is_given = Order.free == None, Order.free != None  # noqa: E711
    assert found(is_none) == found(~is_given) == [1, 3]
    assert found(is_given) == found(~is_none) == [2]
    assert (found(Order.free.missing()), found(Order.free.exists())) == ([1], [2, 3])
    assert (found(is_none & Order.free.exists()), found(is_given & Order.free.missing())) == (
        [3],
        [],
    )
    assert store.update(Order, Order.count.set(6), when=is_none, number=3).count == 6
    with pytest.raises(ConditionFailed, match="free != None"):
        store.update(Order, Order.count.set(7), when=is_given, number=3)
