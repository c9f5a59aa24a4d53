"""Advice names the access patterns of the model, and never an index that is there."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Table, field
from isotone.advisor.drawn_collections import DrawnItem, Gap
from isotone.model import Stats, waste_of

usages = Table(
    "usages",
    indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "by_plan": Global("plan", "day")},
)


class Usage(Entity, table=usages):
    tenant: Attr[str] = field()
    metric: Attr[str] = field()
    day: Attr[date] = field()
    plan: Attr[str] = field(default="FREE")
    amount: Attr[int] = field(default=0)

    primary = Key("TENANT", tenant).sort("USAGE", metric, day)
    by_metric = Index("GSI1", "METRIC", metric).sort(day, tenant)


class Tenant(Entity, table=usages):
    tenant: Attr[str] = field()

    primary = Key("TENANT", tenant).sort("A")


@pytest.fixture
def store() -> Iterator[isotone.Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(usages)
        for number in range(60):
            store.put(
                Usage(
                    tenant=f"t{number % 3}",
                    metric=("calls", "bytes")[number % 2],
                    day=date(2026, 1, 1 + number // 6),
                    amount=number,
                )
            )
        store.put(Tenant(tenant="t1"))
        yield store


def test_conditions_on_fields_are_answered_by_an_access_pattern(store: isotone.Store) -> None:
    statement = "SELECT * FROM usages WHERE metric = 'calls' AND \"day\" >= '2026-01-05'"
    explained = isotone.explain(store, statement, tables=[usages])
    assert explained.advice == "Usage.by_metric (index GSI1) answers 2 of 2 conditions by its key"
    named = {each.name: each for each in explained.alternatives}
    cost = named["Usage.by_metric (index GSI1)"].cost
    assert cost is not None
    assert cost.items_read == explained.estimate.items_returned
    assert named["Usage.by_metric (index GSI1)"].why_not.endswith("and would be cheaper")


def test_a_request_is_named_by_the_pattern_whose_key_it_reads(store: isotone.Store) -> None:
    request = {
        "TableName": "usages",
        "IndexName": "GSI1",
        "KeyConditionExpression": "GSI1PK = :p",
        "ExpressionAttributeValues": {":p": {"S": "METRIC#calls"}},
    }
    explained = isotone.explain(store, ("Query", request), tables=[usages])
    assert explained.title == "Query of Usage.by_metric: index GSI1 of table usages"
    statement = "SELECT * FROM usages WHERE PK = 'TENANT#t1'"
    assert isotone.explain(store, statement, tables=[usages]).title == (
        "Query of Usage.primary, Tenant.primary: table usages"
    )
    one = "SELECT * FROM usages WHERE PK = 'TENANT#t1' AND begins_with(SK, 'USAGE#')"
    assert isotone.explain(store, one, tables=[usages]).title == (
        "Query of Usage.primary: table usages"
    )
    assert isotone.explain(store, one).title == "Query of table usages"


def test_advice_speaks_of_the_fields_in_a_key(store: isotone.Store) -> None:
    statement = "SELECT * FROM usages.\"GSI1\" WHERE GSI1PK = 'METRIC#calls' AND amount = 5"
    explained = isotone.explain(store, statement, tables=[usages])
    assert explained.advice == "an index with the partition key metric, sorted by amount"
    without_model = isotone.explain(store, statement)
    assert without_model.advice == "an index with the partition key GSI1PK, sorted by amount"
    anywhere = "SELECT * FROM usages WHERE amount = 5"
    needed = {
        each.name: each.why_not
        for each in isotone.explain(store, anywhere, tables=[usages]).alternatives
    }
    assert needed["Usage.by_metric (index GSI1)"] == "needs metric = …"
    assert needed["index by_plan"] == "needs plan = …"


def test_an_index_for_a_range_alone_needs_a_partition_key_besides(store: isotone.Store) -> None:
    explained = isotone.explain(store, "SELECT * FROM usages WHERE amount > 50", tables=[usages])
    assert explained.advice == (
        "an index sorted by amount, with a partition key that the query can give"
    )


def test_an_index_sorted_by_a_range_alone_is_there_for_who_gives_its_partition_key(
    store: isotone.Store,
) -> None:
    statement = "SELECT * FROM usages WHERE \"day\" > '2026-01-08'"
    explained = isotone.explain(store, statement, tables=[usages])
    assert explained.advice == (
        "Usage.by_metric (index GSI1), sorted by day, if the query gives metric"
    )
    without_model = isotone.explain(store, statement)
    assert without_model.advice == "index by_plan, sorted by day, if the query gives plan"


@pytest.mark.parametrize(
    "condition",
    [
        "PK = 'TENANT#t1' AND SK > 'USAGE' AND SK <> 'USAGE#x'",
        "plan = 'FREE' AND \"day\" > '2026-01-03' AND \"day\" <> '2026-01-07'",
    ],
)
def test_the_key_that_is_there_is_not_recommended(store: isotone.Store, condition: str) -> None:
    index = '."by_plan"' if condition.startswith("plan") else ""
    explained = isotone.explain(store, f"SELECT * FROM usages{index} WHERE {condition}")
    assert "an index with the partition key" not in explained.advice


def test_advice_of_a_model_knows_its_indexes_in_any_order_of_their_fields() -> None:
    """An index by metric and day is one for equal days and metrics, in whichever order they are asked."""
    read = Usage.primary.scan().filter(
        Usage.day == date(2026, 1, 2), Usage.metric == "calls", Usage.tenant > "t1"
    )
    advice = waste_of(read, Stats(scanned=1000, returned=1)).advice
    assert advice == "Usage.by_metric answers it by its key"


mixed = Table("mixed", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Customer(Entity, table=mixed):
    customer: Attr[str] = field()

    primary = Key("CUSTOMER", customer).sort("PROFILE")


class Order(Entity, table=mixed):
    number: Attr[int] = field(max=99_999)
    customer: Attr[str] = field()

    primary = Key("ORDER", number).sort("ORDER")
    by_customer = Index("GSI1", "CUSTOMER", customer).sort(number)


@pytest.fixture
def shop() -> Iterator[isotone.Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(mixed)
        for customer in ("a", "b"):
            store.put(Customer(customer=customer))
        for number in range(60):
            store.put(Order(number=number, customer="ab"[number % 2]))
        yield store


def test_a_scan_that_finds_several_kinds_is_answered_for_the_most_of_them(
    shop: isotone.Store,
) -> None:
    request = {
        "TableName": "mixed",
        "FilterExpression": "customer = :c",
        "ExpressionAttributeValues": {":c": {"S": "a"}},
    }
    explained = isotone.explain(shop, ("Scan", request), tables=[mixed])
    assert explained.advice == (
        "Order.by_customer (index GSI1) answers 1 of 1 condition by its key, for 30 of 31 wanted items of the sample"
    )
    first, second, *_ = explained.alternatives
    assert first.name == "Order.by_customer (index GSI1)"
    assert second.name == "Customer.primary (table mixed)"
    assert "for 1 of 31 wanted items" in second.why_not
    only_orders = {
        **request,
        "FilterExpression": "customer = :c AND #n > :n",
        "ExpressionAttributeNames": {"#n": "number"},
        "ExpressionAttributeValues": {":c": {"S": "a"}, ":n": {"N": "5"}},
    }
    explained = isotone.explain(shop, ("Scan", only_orders), tables=[mixed])
    assert explained.advice == "Order.by_customer (index GSI1) answers 2 of 2 conditions by its key"


def test_the_drawing_counts_only_what_it_knows(shop: isotone.Store) -> None:
    query = Order.by_customer.where(Order.customer == "a")
    whole = str(isotone.explain(shop, query, sample=100))
    assert "more items" in whole
    part = isotone.explain(shop, query, sample=40)
    assert "the 30 items of the range" in str(
        part
    )  # which were read, so they are drawn, and nothing follows
    assert "perhaps" not in str(part)
    (view,) = part.drawing.views if part.drawing else ()
    ((*_, last),) = (each.rows for each in view.collections)
    assert isinstance(last, DrawnItem)
    assert sum(row.items if isinstance(row, Gap) else 1 for row in view.collections[0].rows) == 30


def test_the_drawing_does_not_say_that_there_is_more_where_nobody_knows(
    shop: isotone.Store,
) -> None:
    query = Order.by_customer.where(Order.customer == "a", Order.number < 5)
    text = str(isotone.explain(shop, query, sample=10))
    assert (
        "perhaps more items" in text
    )  # after the range, of whose collection the sample has a part


def test_a_write_is_estimated_for_less_than_it_costs(shop: isotone.Store) -> None:
    """Without a sample: all that counts are the item and its indexes."""
    item = shop.backend.execute("Scan", {"TableName": "mixed", "Limit": 1})["Items"][0]
    for request in (
        ("PutItem", {"TableName": "mixed", "Item": item}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "mixed", "Item": item}}]}),
    ):
        explained = isotone.explain(shop, request)
        assert explained.spent == 1.0  # the item is read
        assert explained.estimate.units >= 1.0


def test_the_condition_of_a_write_has_names_and_values(shop: isotone.Store) -> None:
    request = {
        "TableName": "mixed",
        "Key": {"PK": {"S": "ORDER#00001"}, "SK": {"S": "ORDER"}},
        "UpdateExpression": "SET #c = :new",
        "ConditionExpression": "attribute_exists(#p) AND #c = :old",
        "ExpressionAttributeNames": {"#p": "PK", "#c": "customer"},
        "ExpressionAttributeValues": {":new": {"S": "c"}, ":old": {"S": "b"}},
    }
    explained = isotone.explain(shop, ("UpdateItem", request))
    assert explained.notes == ('condition: attribute_exists(PK) AND customer = "b"',)


tasks = Table("tasks", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Task(Entity, table=tasks):
    number: Attr[int] = field(max=99_999)
    team: Attr[str] = field()
    status: Attr[str] = field(default="OPEN")

    primary = Key("TEAM", team).sort(number)
    by_status = Index("GSI1", "STATUS", status).sort(number)


@pytest.fixture
def team() -> Iterator[isotone.Store]:
    with isotone.connect(":memory:") as store:
        store.create_tables(tasks)
        for number in range(30):
            status = "DONE" if number % 3 else "OPEN"
            store.put(Task(number=number, team="a", status=status))
        yield store


def test_a_condition_on_a_default_is_answered_like_any_other(team: isotone.Store) -> None:
    """A model asks for a default with `OR attribute_not_exists(…)`; an index of the field has the default, too."""
    request = {
        "TableName": "tasks",
        "KeyConditionExpression": "PK = :p",
        "FilterExpression": "#s = :s OR attribute_not_exists(#s)",
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":p": {"S": "TEAM#a"}, ":s": {"S": "OPEN"}},
    }
    explained = isotone.explain(team, ("Query", request), tables=[tasks])
    assert explained.advice.startswith("Task.by_status (index GSI1) answers ")
    without_model = isotone.explain(team, ("Query", request))
    assert without_model.advice == (
        "an index with the partition key PK, sorted by status, if every item stores them"
    )
    values = {":p": {"S": "TEAM#a"}, ":s": {"S": "DONE"}}
    not_the_default = {**request, "ExpressionAttributeValues": values}
    advice = isotone.explain(team, ("Query", not_the_default), tables=[tasks]).advice
    assert "Task.by_status" not in advice  # whose items without a status are elsewhere


def test_what_a_stored_key_asks_for_is_a_condition_on_fields_for_the_other_patterns(
    shop: isotone.Store,
) -> None:
    query = Order.primary.where(Order.number == 7).filter(Order.customer == "b")
    explained = isotone.explain(shop, ("Query", query.request()), tables=[mixed])
    (other, *_) = explained.alternatives
    assert other.name == "Order.by_customer (index GSI1)"
    assert other.why_not.startswith("answers 2 of 2 conditions by its key")
    assert other.conditions == (
        ("customer", "=", ({"S": "b"},)),
        ("number", "=", ({"N": "7"},)),
    )
    assert other.request is not None
    assert other.request["IndexName"] == "GSI1"


def advised(shop: isotone.Store, prefix: str, operator: str, number: str) -> str:
    """What is advised to a query of a prefix of a stored key, with a filter on another attribute."""
    request = {
        "TableName": "mixed",
        "IndexName": "GSI1",
        "KeyConditionExpression": "GSI1PK = :p AND begins_with(GSI1SK, :s)",
        "FilterExpression": f"#n {operator} :n",
        "ExpressionAttributeNames": {"#n": "number"},
        "ExpressionAttributeValues": {
            ":p": {"S": "CUSTOMER#a"},
            ":s": {"S": prefix},
            ":n": {"N": number},
        },
    }
    return isotone.explain(shop, ("Query", request), tables=[mixed]).advice


@pytest.mark.parametrize(
    ("prefix", "advice"),
    [
        ("0", "an index with the partition key customer, sorted by number"),
        ("0003", "a sparse index with the wanted items alone, or a narrower range"),
    ],
)
def test_a_range_that_has_the_whole_collection_leaves_the_key_to_that_of_the_filter(
    shop: isotone.Store, prefix: str, advice: str
) -> None:
    assert advised(shop, prefix, ">", "35") == advice


def test_a_range_of_a_stored_key_that_no_other_pattern_has_is_named(shop: isotone.Store) -> None:
    assert advised(shop, "0003", "=", "32") == (
        "Order.primary (table mixed) answers 1 of 2 conditions by its key, without the range of GSI1SK"
    )


@pytest.mark.parametrize(
    ("test", "values", "filters"),
    [
        ("amount <> :v", {":v": {"N": "3"}}, (("amount", "<>", ({"N": "3"},)),)),
        ("contains(tenant, :v)", {":v": {"S": "t"}}, (("tenant", "contains", ({"S": "t"},)),)),
        ("attribute_exists(amount)", {}, (("amount", "exists", ()),)),
        (
            "begins_with(#d, :v)",
            {":v": {"S": "2026-"}},
            (("day", "begins_with", ({"S": "2026-"},)),),
        ),
        ("(amount = :v OR amount = :w)", {":v": {"N": "1"}, ":w": {"N": "2"}}, ()),
    ],
)
def test_a_test_that_no_key_answers_counts_and_stays_in_the_filter(
    store: isotone.Store, test: str, values: dict[str, Any], filters: tuple[Any, ...]
) -> None:
    request = {
        "TableName": "usages",
        "FilterExpression": f"metric = :m AND {test}",
        "ExpressionAttributeValues": {":m": {"S": "calls"}, **values},
        **({"ExpressionAttributeNames": {"#d": "day"}} if "#d" in test else {}),
    }
    explained = isotone.explain(store, ("Scan", request), tables=[usages], run=True)
    other = next(each for each in explained.alternatives if each.request)
    assert other.name == "Usage.by_metric (index GSI1)"
    assert other.why_not.startswith("answers 1 of 2 conditions by its key")
    assert other.filters == filters
    assert other.request is not None
    found = isotone.explain(store, ("Query", other.request), run=True)
    assert explained.measured is not None
    assert found.measured is not None
    assert found.measured.items_returned == explained.measured.items_returned > 0


def test_a_filter_with_an_undefined_value_is_refused_as_by_the_service(
    store: isotone.Store,
) -> None:
    filtered = {"TableName": usages.name, "FilterExpression": "amount = :none"}
    with pytest.raises(isotone.errors.ValidationException, match="is not defined"):
        isotone.explain(store, ("Scan", filtered), tables=[usages])
