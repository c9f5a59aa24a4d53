"""The sheet of access patterns agrees with what the same load measures; its forms; its errors."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.design.models import Customer, days, logs, shop

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, at_end, field
from isotone.advisor.simulation.partitions import PartitionLoad
from isotone.design import PatternSheet, SampleRequest, Several, sheet_of
from isotone.design import sheet as making
from isotone.design.sheet_text import csv_of, json_of, markdown_of
from isotone.errors import UsageError
from isotone.prices import DAYS_A_MONTH, US_EAST_1

EXAMPLES = Path(__file__).parents[2] / "examples"
CALLS = 150
MOST = 400  # collections that are all read
MONTH = DAYS_A_MONTH * 86_400

Call = Callable[[Store, Any, Any], object]
"""A call of a pattern as a program writes it, with a random entity and a number that no item has."""


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sheet_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


github = example("10_github")
orders = example("12_composite_sort_key")
kinds = example("14_sparse_by_kind")

GITHUB: dict[str, Call] = {
    "Repository.get": lambda store, r, _: store.get(github.Repository, owner=r.owner, name=r.name),
    "Issue.get": lambda store, i, _: store.get(
        github.Issue, owner=i.owner, repository=i.repository, number=i.number
    ),
    "Issue.primary": lambda store, i, _: store.page(
        github.Issue.primary.where(
            github.Issue.owner == i.owner, github.Issue.repository == i.repository
        ),
        size=100,
    ),
    "Star.primary": lambda store, s, _: store.page(
        github.Star.primary.where(
            github.Star.owner == s.owner, github.Star.repository == s.repository
        ),
        size=100,
    ),
    "PullRequest.numbers": lambda store, p, _: store.page(
        github.PullRequest.numbers.where(
            github.PullRequest.owner == p.owner, github.PullRequest.repository == p.repository
        ),
        size=100,
    ),
    "Repository.primary with Issue.primary": lambda store, r, _: store.page(
        github.with_issues.where(
            github.Repository.owner == r.owner, github.Repository.name == r.name
        ),
        size=100,
    ),
    "Issue.put": lambda store, i, n: store.create(
        github.Issue(owner=i.owner, repository=i.repository, number=n, title=i.title)
    ),
    "Issue.update": lambda store, i, n: store.update(i, github.Issue.title.set(f"{i.title[::-1]}")),
    "Star.put": lambda store, s, n: store.create(
        github.Star(owner=s.owner, repository=s.repository, user=f"user-{n:08}")
    ),
    "Fork.delete": lambda store, f, _: store.delete(f),
}
ORDERS: dict[str, Call] = {
    "Order.get": lambda store, o, _: store.get(orders.Order, customer=o.customer, number=o.number),
    "Order.primary": lambda store, o, _: store.page(
        orders.Order.primary.where(orders.Order.customer == o.customer), size=100
    ),
    "Order.by_status": lambda store, o, _: store.page(
        orders.Order.by_status.where(orders.Order.customer == o.customer), size=100
    ),
    "Order.put": lambda store, o, n: store.create(
        orders.Order(customer=o.customer, number=n, status=o.status, ordered_at=o.ordered_at)
    ),
    "Order.delete": lambda store, o, _: store.delete(o),
}
KINDS: dict[str, Call] = {
    "Customer.everyone": lambda store, c, _: store.page(
        kinds.Customer.everyone.where(kinds.Customer.id == c.id), size=100
    ),
    "Order.primary": lambda store, o, _: store.page(
        kinds.Order.primary.where(kinds.Order.customer == o.customer), size=100
    ),
    "Review.primary": lambda store, r, _: store.page(
        kinds.Review.primary.where(kinds.Review.product == r.product), size=100
    ),
    "Customer.put": lambda store, c, n: store.create(kinds.Customer(id=n, email=c.email)),
    "Customer.update": lambda store, c, n: store.update(
        c, kinds.Customer.email.set(f"{c.email[::-1]}")
    ),
    "Product.delete": lambda store, p, _: store.delete(p),
}
SCENARIOS: dict[str, tuple[Table, dict[str, Call], SampleRequest]] = {
    "10_github": (
        github.github,
        GITHUB,
        SampleRequest(
            items={"Repository": 200}, per={("Issue", "Repository"): Several(1, 60)}, seed=1
        ),
    ),
    "12_composite_sort_key": (
        orders.shop,
        ORDERS,
        SampleRequest(items={"Order": 4000}, per={("Order", ""): Several(5, 150)}, seed=2),
    ),
    "14_sparse_by_kind": (
        kinds.shop,
        KINDS,
        SampleRequest(items={"Customer": 800, "Product": 400}, seed=3),
    ),
}


def measured(table: Table, calls: dict[str, Call], request: SampleRequest) -> dict[str, float]:
    """The units of each call, on a store with the whole sample."""
    seen: list[float] = []
    log = at_end(lambda each: seen.append(each.units))
    chance = random.Random(7)
    found = {}
    with isotone.connect(":memory:", observe=[log], report=None) as store:
        isotone.seed(
            store,
            table,
            items=request.items,
            seed=request.seed,
            per={
                (parent, child) if parent else child: f"{n.low}..{n.high}"
                for (child, parent), n in request.per.items()
            },
        )
        for name, call in calls.items():
            entity = table.entities[name.partition(".")[0]].entity
            every = store.all(entity.__schema__.patterns["primary"].scan())
            one_of_each = {
                each.__schema__.primary_key(vars(each))[table.keys.partition[0].name]["S"]: each
                for each in every
            }
            chosen = (
                every
                if name.endswith((".put", ".update", ".delete", ".get"))
                else list(one_of_each.values())
            )
            members = chosen if len(chosen) <= MOST else chance.sample(chosen, CALLS)
            seen.clear()
            for number, member in enumerate(members):
                call(store, member, 25_000 + number)
            found[name] = sum(seen) / len(members)
    return found


@pytest.mark.parametrize("is_forecast", [False, True], ids=["whole", "forecast"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_units_and_cost_are_those_of_a_run(
    scenario: str, is_forecast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within 10 % of what the same load measures, also if the sheet's sample is several times smaller."""
    table, calls, request = SCENARIOS[scenario]
    if is_forecast:
        monkeypatch.setattr(making, "_SAMPLED", 1500)
    else:
        monkeypatch.setattr(making, "_SAMPLED", 100_000)
    rates = {name: 3.0 + place for place, name in enumerate(calls)}
    sheet = sheet_of(table, request=request, rates=rates, reads=0, writes=0)
    assert (sheet.factor > 1) is is_forecast
    found = measured(table, calls, request)
    for name, units in found.items():
        assert sheet.row(name).units == pytest.approx(units, rel=0.1), name
    reads, writes = (
        sum(found[name] * rates[name] * MONTH for name in calls if is_write(name) is kind)
        for kind in (False, True)
    )
    cost = US_EAST_1.on_demand(reads=reads, writes=writes)
    assert sum(row.cost for row in sheet.rows) == pytest.approx(cost, rel=0.1)


def is_write(name: str) -> bool:
    return name.rpartition(".")[2] in ("put", "update", "delete")


@pytest.fixture(scope="module")
def sheet() -> PatternSheet:
    return sheet_of(shop, rates={"Order.open": 7})


def test_every_pattern_has_a_row(sheet: PatternSheet) -> None:
    names = [row.name for row in sheet.rows]
    assert len(names) == len(set(names))
    assert {"Customer.get", "Order.primary", "Order.open", "Line.by_product"} <= {*names}
    assert {"Order.put", "Order.update", "Order.delete"} <= {*names}
    assert "Product.primary" not in names  # a product is alone: that is Product.get
    row = sheet.row("Order.open")
    assert (row.operation, row.index, row.rate) == ("query", "GSI1", 7)
    assert row.key == "GSI1PK = STATUS#{status}"
    assert row.order == "placed_at, the least first"
    assert row.items == 100 < row.in_collection
    assert row.cost == pytest.approx(US_EAST_1.on_demand(reads=row.units * 7 * MONTH))


def test_unique_values_cost_a_transaction(sheet: PatternSheet) -> None:
    assert sheet.row("Customer.put").units == 4  # the item and the marker, both in a transaction
    assert sheet.row("Product.put").units == 1
    assert sheet.row("Line.put").units == 2  # and its entry in the index


class Song(Entity, table=Table("songs", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})):
    song_id: Attr[str] = field()
    plays: Attr[int] = field(max=9_999_999)
    primary = Key("SONG", song_id).sort("SONG")
    chart = Index("GSI1", "CHART").sort(plays)


def test_a_key_above_the_limit_of_a_partition_is_hot() -> None:
    calm = sheet_of(Song, rates={"Song.put": 900, "Song.chart": 10}, reads=0, writes=0)
    assert not calm.hot
    sheet = sheet_of(Song, rates={"Song.put": 1100}, reads=0, writes=0)
    assert sheet.row("Song.put").hottest == PartitionLoad(0, 1100)  # all in one key of the index
    assert sheet.row("Song.put").is_hot
    assert [str(each) for each in sheet.places if each.is_hot] == ["songs.GSI1"]
    text = str(sheet)
    assert "1,100 writes HOT" in text
    assert "hot: songs.GSI1: one key gets 1,100 writes a second, and a partition serves" in text
    read = sheet_of(Song, rates={"Song.chart": 2500}, reads=0, writes=0)
    assert read.row("Song.chart").is_hot  # 2,500 times 1.5 units


def test_popular_parents_are_hot_where_others_are_not() -> None:
    request = SampleRequest(items={"Customer": 1000}, popularity={"Customer": 1.0})
    rates = {"Order.primary": 40_000.0}
    even = sheet_of(shop, request=SampleRequest(items={"Customer": 1000}), rates=rates)
    assert not even.row("Order.primary").is_hot
    popular = sheet_of(shop, request=request, rates=rates)
    row = popular.row("Order.primary")
    assert row.hottest.reads == pytest.approx(20_000 / 7.4855, rel=0.02)  # the harmonic number

    # The collections of a status belong to no customer, so they are read alike.
    assert popular.row("Order.open").hottest == even.row("Order.open").hottest


def test_more_items_grow_only_what_grows() -> None:
    small = sheet_of(shop)
    large = sheet_of(shop, request=SampleRequest(items={"Customer": 500_000, "Product": 500_000}))
    assert large.entities["Customer"] == 500_000
    assert large.entities["Order"] == pytest.approx(500_000 * 5.5, rel=0.1)
    orders_of_one, by_status = large.row("Order.primary"), large.row("Order.open")
    assert orders_of_one.in_collection == pytest.approx(
        small.row("Order.primary").in_collection, rel=0.15
    )
    assert by_status.in_collection == pytest.approx(500_000 * 5.5 / 3, rel=0.15)
    table = next(place for place in large.places if place.index is None)
    before = next(place for place in small.places if place.index is None)
    assert table.size == pytest.approx(5000 * before.size, rel=0.15)
    assert table.cost == pytest.approx(US_EAST_1.storage(table.size))


@pytest.mark.parametrize("customers", [None, 40, 10_000])
def test_many_children_in_all_are_those_of_all_parents(customers: int | None) -> None:
    orders = 4_000_000
    items = {"Order": orders} if customers is None else {"Order": orders, "Customer": customers}
    sheet = sheet_of(shop, request=SampleRequest(items=items), rates={"Order.put": 100})
    parents = customers or 100
    assert sheet.entities["Order"] == orders
    assert sheet.entities["Customer"] == parents
    assert sheet.row("Order.primary").in_collection == pytest.approx(orders / parents, rel=0.15)
    assert sheet.row("Order.open").in_collection == pytest.approx(orders / 3, rel=0.15)
    get = sheet.row("Customer.get")
    assert get.hottest.reads == pytest.approx(get.units / parents, rel=0.15)


def test_a_sheet_needs_no_options() -> None:
    for tables in ([logs], [days], [Customer]):
        assert sheet_of(*tables).rows


def test_the_forms_of_a_sheet(sheet: PatternSheet) -> None:
    lines = list(csv.DictReader(io.StringIO(csv_of(sheet))))
    assert [line["pattern"] for line in lines] == [row.name for row in sheet.rows]
    assert float(lines[0]["cost_a_month"]) == sheet.rows[0].cost
    document = json.loads(json_of(sheet))
    assert document["cost_a_month"] == sheet.cost
    assert len(document["patterns"]) == len(sheet.rows)
    assert {place["index"] for place in document["places"]} == {None, "GSI1", "by_total"}
    table = [line for line in markdown_of(sheet).splitlines() if line.startswith("|")]
    assert len(table) == 2 + len(sheet.rows)
    assert len({line.count("|") for line in table}) == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rates": {"Order.by_stauts": 3}}, "there is no pattern 'Order.by_stauts'; there are"),
        ({"rates": {"Order.put": -5}}, "Order.put=-5 is not a number of calls a second"),
        ({"reads": float("nan")}, "reads=nan is not a number of calls a second"),
        ({"writes": float("inf")}, "writes=inf is not a number of calls a second"),
        ({"page": 0}, "page=0 is not a number of items; give 1 to 1000"),
        ({"request": SampleRequest(items={"Nobody": 1})}, "there is no entity 'Nobody'"),
    ],
)
def test_what_is_wrong_is_said(options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        sheet_of(shop, **options)
