"""A key answers what its order can answer, exactly, and refuses the rest with what to write instead."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest

import isotone
from isotone import Attr, Condition, Entity, Global, Index, Key, Number, Query, Table, desc, field
from isotone.errors import Unanswerable, UsageError

shop = Table(
    "shop",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK", projection="KEYS_ONLY"),
        "totals": Global("customer_id", Number("total")),
    },
)


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED", "CANCELLED", "CANCELLED_BY_SHOP"]] = field()
    ordered_at: Attr[datetime] = field()
    total: Attr[Decimal] = field()
    note: Attr[str | None] = field(default=None)

    primary = Key("CUSTOMER", customer_id).sort("ORDER", desc(number))
    by_status = Index("GSI1", "CUSTOMER", customer_id).sort(status, ordered_at)
    by_time = Index("GSI2", "CUSTOMER", customer_id).sort(ordered_at, status)
    by_total = Index("totals", customer_id).sort(total)


class Job(Entity, table=shop):
    team: Attr[str] = field()
    worker: Attr[str | None] = field(default=None)
    closed: Attr[bool] = field(default=False)

    primary = Key("JOB", team).sort("JOB")
    waiting = Index("GSI1", "JOB", team, when=closed == False).sort("JOB")  # noqa: E712
    of_worker = Index("GSI2", "WORKER", worker).sort(team)


class Other(Entity, table=shop):
    customer_id: Attr[str] = field()
    primary = Key("OTHER", customer_id).sort("OTHER")


MINE = Order.customer_id == "36ab"
JULY = datetime(2019, 7, 1, tzinfo=UTC)
OCTOBER = datetime(2019, 9, 30, 23, 59, 59, 999999, tzinfo=UTC)


def sort_condition(query: Query[Any]) -> tuple[str, ...]:
    """The operator and operands on the sort key."""
    restriction = query.bounds.restrictions[1]
    return restriction.operator, *(str(*each.values()) for each in restriction.operands)


def test_the_orders_of_a_status_in_a_quarter_are_one_range() -> None:
    query = Order.by_status.where(
        MINE, Order.status == "CANCELLED", Order.ordered_at.between(JULY, OCTOBER)
    )
    assert sort_condition(query) == (
        "between",
        "CANCELLED#2019-07-01T00:00:00.000000Z",
        "CANCELLED#2019-09-30T23:59:59.999999Z",
    )


def test_one_status_is_not_the_beginning_of_another() -> None:
    query = Order.by_status.where(MINE, Order.status == "CANCELLED")
    assert sort_condition(query) == ("begins_with", "CANCELLED#")


def test_the_zero_padded_difference_turns_a_range_round() -> None:
    assert sort_condition(Order.primary.where(MINE, Order.number == 157)) == ("=", "ORDER#99842")
    assert sort_condition(Order.primary.where(MINE, Order.number >= 157)) == (
        "between",
        "ORDER#",
        "ORDER#99842",
    )


def test_a_number_key_takes_numbers() -> None:
    query = Order.by_total.where(MINE, Order.total > Decimal("9.50"))
    assert sort_condition(query) == (">", "9.5")


def test_the_request_is_there_to_be_seen() -> None:
    query = Order.by_status.where(MINE, Order.status == "SHIPPED").newest_first().limit(3)
    assert query.request() == {
        "TableName": "shop",
        "IndexName": "GSI1",
        "KeyConditionExpression": "GSI1PK = :v0 AND begins_with(GSI1SK, :v1)",
        "ExpressionAttributeValues": {":v0": {"S": "CUSTOMER#36ab"}, ":v1": {"S": "SHIPPED#"}},
        "ScanIndexForward": False,
        "ReturnConsumedCapacity": "TOTAL",
    }


def test_conditions_may_be_joined_and_come_in_any_order() -> None:
    joined = (Order.number <= 9) & MINE & (Order.number >= 3)
    assert sort_condition(Order.primary.where(joined)) == ("between", "ORDER#99990", "ORDER#99996")


@pytest.mark.parametrize(
    "conditions",
    [
        (Order.number > 9, Order.number < 9),
        (Order.number > 9, Order.number < 10),
        (Order.number.between(10, 9),),
    ],
    ids=["crossing", "adjacent", "backwards"],
)
def test_conditions_that_exclude_one_another_ask_nothing(conditions: tuple[Condition, ...]) -> None:
    query = Order.primary.where(MINE, *conditions)
    assert query.is_empty
    with pytest.raises(UsageError, match="exclude one another"):
        query.request()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Order.primary.where(), "groups items by 'customer_id'.*no condition on it.*scan"),
        (lambda: Order.primary.where(Order.customer_id > "a"), "only has a range"),
        (
            lambda: Order.primary.where(MINE, Order.total > 3),
            r"'total' is not part of key primary .*filter\(…\)",
        ),
        (
            lambda: Order.by_time.where(MINE, Order.status == "SHIPPED"),
            "orders by 'ordered_at' before 'status'.*use a key with status before ordered_at",
        ),
        (
            lambda: Order.by_time.where(MINE, Order.ordered_at > JULY, Order.status == "SHIPPED"),
            "orders by 'ordered_at' before 'status'",
        ),
        (
            lambda: Order.by_status.where(MINE, Order.status != "SHIPPED"),
            r"!= on 'status'.*filter\(…\)",
        ),
        (
            lambda: Order.by_status.where(MINE, Order.status.is_in(["SHIPPED"])),
            "one query for each value",
        ),
        (
            lambda: Order.by_status.where(
                MINE, (Order.status == "SHIPPED") | (Order.status == "PLACED")
            ),
            r"not a plain comparison.*filter\(…\)",
        ),
        (
            lambda: Order.by_status.where(MINE, ~(Order.status == "SHIPPED")),
            "not a plain comparison",
        ),
        (
            lambda: Order.primary.where(MINE, Order.number == 3, Order.number > 1),
            "give only one of them",
        ),
    ],
)
def test_what_no_range_answers_is_refused(ask: Any, words: str) -> None:
    with pytest.raises(Unanswerable, match=words):
        ask()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Order.primary.where(Other.customer_id == "a"), "not of Order"),
        (lambda: Order.primary.where(True), "True is not a condition"),
        (lambda: Order.primary.where(MINE).filter(Other.customer_id == "a"), "not of Order"),
        (
            lambda: Order.by_total.where(MINE).filter(Order.total > 3),
            r"put the condition in .where\(…\)",
        ),
        (lambda: Order.by_status.where(MINE).consistent(), "cannot be read consistently"),
        (lambda: Order.by_time.where(MINE).select(Order.total), "does not project total"),
        (lambda: Order.primary.where(MINE).select(Other.customer_id), "not a field of Order"),
        (lambda: Order.primary.where(MINE).limit(0), "allows nothing"),
        (lambda: Order.primary.where(MINE).max_units(0), "nothing to read with"),
        (lambda: Order.primary.scan().segment(4, of=4), "count from 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(ask: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ask()


def test_a_condition_has_no_truth() -> None:
    with pytest.raises(TypeError, match="join conditions with &"):
        Order.primary.where(MINE and Order.number > 3)


def test_find_takes_the_key_that_answers_everything() -> None:
    assert Order.find(MINE).name == "Order.primary"
    assert Order.find(MINE, Order.status == "SHIPPED").name == "Order.by_status"
    assert Order.find(MINE, Order.total > 3).name == "Order.by_total"


def test_find_gives_the_reason_of_each_key() -> None:
    with pytest.raises(Unanswerable) as refused:
        Order.find(MINE, Order.ordered_at > JULY)
    words = str(refused.value)
    assert "not part of key primary" in words
    assert "by_status orders by 'status' before 'ordered_at'" in words
    assert "by_time does not project all attributes" in words


class Word(Entity, table=Table("words", partition="book", sort="word")):
    """Keys that are their fields, so that nothing stands before a value that is empty."""

    book: Attr[str] = field()
    word: Attr[str] = field()

    primary = Key(book).sort(word)


def test_an_empty_text_bounds_a_key_that_is_a_field_as_it_bounds_any_other() -> None:
    with isotone.connect() as store:
        store.create_tables(Word.__schema__.table)
        words = ["a", "b", "c"]
        store.put_many(Word(book="x", word=word) for word in words)
        for condition, satisfied in (
            (Word.word.begins_with(""), lambda word: True),
            (Word.word >= "", lambda word: True),
            (Word.word > "", lambda word: True),
            (Word.word.between("", "b"), lambda word: word <= "b"),
            (Word.word.between("", ""), lambda word: False),
            (Word.word == "", lambda word: False),
            (Word.word < "", lambda word: False),
            (Word.word <= "", lambda word: False),
        ):
            found = store.all(Word.primary.where(Word.book == "x", condition))
            assert [each.word for each in found] == list(filter(satisfied, words))


def test_beyond_the_declared_width_is_above_all_numbers() -> None:
    assert Order.primary.where(MINE, Order.number > 10**7).is_empty
    assert Order.primary.where(MINE, Order.number == 10**7).is_empty
    assert Order.primary.where(MINE, Order.number < -5).is_empty
    assert not Order.primary.where(MINE, Order.number < 10**7).is_empty


def test_a_group_beyond_the_declared_width_is_empty() -> None:
    class Shelf(Entity, table=Table("shelves")):
        number: Attr[int] = field(max=99)

        primary = Key("SHELF", number).sort("SHELF")

    assert Shelf.primary.where(Shelf.number == 100).is_empty
    assert not Shelf.primary.where(Shelf.number == 99).is_empty


def test_the_condition_of_a_sparse_key_need_not_be_repeated() -> None:
    with pytest.raises(Unanswerable, match=r"only for what satisfies its when=.*'closed'; leave"):
        Job.waiting.where(Job.team == "blue", Job.closed == False)  # noqa: E712


@pytest.mark.parametrize("ask", [lambda: Job.worker == None, lambda: Job.worker.exists()])  # noqa: E711
def test_whether_a_field_of_the_key_has_a_value_is_not_asked_of_it(ask: Any) -> None:
    with pytest.raises(Unanswerable, match="items without one are not in it, so leave"):
        Job.of_worker.where(ask())


def test_a_query_is_read_by_a_store() -> None:
    query = Order.primary.where(MINE)
    with pytest.raises(
        TypeError, match=r"<Query of Order.primary where .*> only says .*store.all\(query\)"
    ):
        list(query)  # type: ignore[call-overload]
    assert repr(Order.primary.scan()) == "<Scan of Order.primary>"
