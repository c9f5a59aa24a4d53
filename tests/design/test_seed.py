"""Sample data: valid by the model, the same for the same seed, with children whose parents exist."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.design.models import (
    Base,
    Configuration,
    Customer,
    Day,
    Line,
    Log,
    Member,
    Order,
    Product,
    Project,
    Review,
    Settings,
    Task,
    Tenant,
    days,
    desk,
    everything,
    logs,
    shop,
)

import isotone
from isotone import Attr, Entity, Key, Store, Table, field
from isotone.errors import UsageError

HAS_FAKER = importlib.util.find_spec("faker") is not None


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:", report=None) as made:
        yield made


def all_of(store: Store, entity: type[Entity]) -> list[Any]:
    return list(store.iterate(entity.__schema__.patterns["primary"].scan()))


def digest(store: Store, *tables: Table) -> str:
    """The hash of all items, whatever their order."""
    items = [
        json.dumps(item, sort_keys=True)
        for table in tables
        for item in store.backend.execute("Scan", {"TableName": table.name})["Items"]
    ]
    return hashlib.sha256("\n".join(sorted(items)).encode()).hexdigest()[:16]


def test_every_item_is_what_the_program_would_write(store: Store) -> None:
    for tables in ([shop], [everything], [logs], [days], [desk]):
        made = isotone.seed(store, *tables, seed=1)
        found = store.verify(*tables)
        assert not found.findings, str(found)
        for name, count in made.items.items():
            (entity,) = (
                each.entity
                for table in tables
                for each in table.entities.values()
                if each.entity.__name__ == name
            )
            assert len(all_of(store, entity)) == count > 0


def test_children_point_to_parents_that_exist(store: Store) -> None:
    isotone.seed(store, shop, seed=3)
    customers = {each.customer_id for each in all_of(store, Customer)}
    products = {each.product_id for each in all_of(store, Product)}
    orders = {(each.customer_id, each.number) for each in all_of(store, Order)}
    assert len(customers) == len(products) == 100
    assert {each.customer_id for each in all_of(store, Settings)} == customers
    assert {customer for customer, _ in orders} == customers
    lines = all_of(store, Line)
    assert {(each.customer_id, each.number) for each in lines} == orders
    assert {each.product_id for each in lines} <= products
    for review in all_of(store, Review):
        assert review.product_id in products
        assert review.customer_id in customers
        assert 1 <= review.stars <= 5


def test_a_reference_stays_within_the_tenant(store: Store) -> None:
    isotone.seed(store, desk, items={Tenant: 6}, seed=4)
    members = {(each.tenant, each.member_id) for each in all_of(store, Member)}
    projects = {(each.tenant, each.project) for each in all_of(store, Project)}
    tasks = all_of(store, Task)
    assert {(each.tenant, each.project) for each in tasks} == projects
    assigned = {(each.tenant, each.member_id) for each in tasks if each.member_id is not None}
    assert assigned <= members
    assert 0 < sum(each.member_id is None for each in tasks) < len(tasks) / 2


def test_a_key_of_two_references_is_referred_to_by_neither(store: Store) -> None:
    """Lines have a product and a customer, but no review: any product of all is in them."""
    isotone.seed(store, shop, items={Customer: 50, Product: 5}, seed=4)
    assert len({each.product_id for each in all_of(store, Line)}) == 5


def test_numbers_of_items_and_of_children(store: Store) -> None:
    made = isotone.seed(
        store,
        shop,
        items={Customer: 7, "Product": 5},
        per={(Customer, Order): "3..40", Line: 2, "Review": "1..4"},
    )
    orders = Counter(each.customer_id for each in all_of(store, Order))
    assert made.items["Customer"] == 7
    assert made.items["Order"] == orders.total()
    assert all(3 <= count <= 40 for count in orders.values())
    assert len(set(orders.values())) > 2
    assert made.items["Line"] == 2 * orders.total()
    numbers = [each.number for each in all_of(store, Order) if each.customer_id == min(orders)]
    assert sorted(numbers) == list(range(1, orders[min(orders)] + 1))


def test_a_total_of_children_is_spread_over_their_parents(store: Store) -> None:
    isotone.seed(store, shop, items={Customer: 4, Order: 10})
    orders = Counter(each.customer_id for each in all_of(store, Order))
    assert sorted(orders.values()) == [2, 2, 3, 3]


def test_few_parents_with_most_of_the_children(store: Store) -> None:
    isotone.seed(store, shop, items={Customer: 20}, per={Order: "1..100,zipf"})
    counts = sorted(Counter(each.customer_id for each in all_of(store, Order)).values())
    assert counts[-3:] == [34, 50, 100]  # 1 + 99, 1 + 99 / 2, 1 + 99 / 3
    assert counts[0] == 5


def test_popular_items_are_referred_to_more_often(store: Store) -> None:
    isotone.seed(store, shop, items={Customer: 100, Product: 20}, popularity={Product: 1.0}, seed=2)
    bought = Counter(each.product_id for each in all_of(store, Line)).most_common()
    total = sum(count for _, count in bought)
    assert bought[0][1] / total == pytest.approx(1 / 3.598, rel=0.1)  # the harmonic number of 20


def test_siblings_without_a_parent_among_the_entities_are_grouped(store: Store) -> None:
    made = isotone.seed(store, logs, items={Log: 60}, per={Log: "5..9"})
    groups = Counter(each.device for each in all_of(store, Log))
    assert made.items["Log"] == groups.total() == 60
    assert 7 <= len(groups) <= 12
    assert all(count <= 9 for count in groups.values())


def test_the_same_seed_makes_the_same_items() -> None:
    """On every machine and every Python: whoever changes the values of a seed changes this hash, and says so."""
    found = []
    for seed in (7, 7, 8):
        with isotone.connect(":memory:") as store:
            isotone.seed(store, shop, everything, logs, days, seed=seed)
            found.append(digest(store, shop, everything, logs, days))
    assert found[0] == found[1] != found[2]
    assert found[0] == "36531fe3b93a1798"


def test_unique_values_are_unique_and_dates_are_before_the_end(store: Store) -> None:
    until = datetime(2020, 5, 1, tzinfo=UTC)
    isotone.seed(store, shop, items={Customer: 300}, until=until)
    customers = all_of(store, Customer)
    assert len({each.email for each in customers}) == 300
    assert all(datetime(2019, 5, 2, tzinfo=UTC) <= each.joined <= until for each in customers)


class Visit(Entity, table=Table("visits")):
    doctor: Attr[str] = field()
    at: Attr[datetime] = field()

    primary = Key("DOCTOR", doctor).sort(at)


def test_the_times_in_the_keys_of_siblings_are_spread_over_the_year(store: Store) -> None:
    isotone.seed(store, Visit, items={Visit: 300}, per={Visit: 30})
    by_doctor: dict[str, list[int]] = {}
    for visit in all_of(store, Visit):
        left = datetime(2026, 1, 1, tzinfo=UTC) - visit.at
        by_doctor.setdefault(visit.doctor, []).append(left.days)
    for days_left in by_doctor.values():
        assert max(days_left) in range(330, 365)
        assert len({each // 30 for each in days_left}) >= 11  # nearly each month has some


def test_what_the_library_sets_is_set(store: Store) -> None:
    isotone.seed(store, everything, items={Base: 40})
    items = all_of(store, Base)
    assert {type(each).__name__ for each in items} == {"First", "Second"}
    for each in items:
        assert each.revision == 1
        assert each.made.time <= datetime(2026, 1, 1, tzinfo=UTC)
        assert each.ends is None or each.ends.year >= 2035  # or the sample would vanish
        assert each.changed.year == 2025


def test_a_key_without_fields_has_one_item(store: Store) -> None:
    made = isotone.seed(store, days, items={Day: 30})
    assert made.items == {"Configuration": 1, "Day": 30}
    assert len(all_of(store, Configuration)) == 1


def test_a_table_with_items_is_refused_and_added_to(store: Store) -> None:
    isotone.seed(store, shop, items={Customer: 3})
    with pytest.raises(UsageError, match=r"table 'shop' has items; .* --add"):
        isotone.seed(store, shop, items={Customer: 3})
    again = isotone.seed(store, shop, items={Customer: 3}, add=True)
    assert again.kept == sum(again.items.values())
    more = isotone.seed(store, shop, items={Customer: 3}, seed=1, add=True)
    assert more.kept >= 3  # another seed has other values under the same keys
    assert not store.verify(shop).findings


class Note(Entity, table=Table("notes")):
    number: Attr[int] = field(max=9_999)
    text: Attr[str] = field()

    primary = Key("NOTE", number).sort("NOTE")


def test_items_of_others_stay(store: Store) -> None:
    """A sample counts its numbers from the start, as a program does: their keys are the same."""
    store.create_tables(Note.__schema__.table)
    own = [Note(number=number, text="written by a person") for number in range(50)]
    store.put_many(own)
    made = isotone.seed(store, Note, items={Note: 80}, add=True)
    assert store.get_many(Note, [{"number": each.number} for each in own]) == own
    assert made.kept
    assert store.count(Note.primary.scan()) == 50 + 80 - made.kept
    assert str(made) == f"80 Note; {made.kept} items existed before"


def test_a_sample_continues_in_the_middle(store: Store) -> None:
    whole = isotone.seed(store, shop, items={Customer: 30}, seed=5)
    total, expected = sum(whole.items.values()), digest(store, shop)
    for start in (1, 17, 31, 200, total - 1, total):
        with isotone.connect(":memory:") as other:
            written: list[int] = []

            def stop(
                done: isotone.SeedProgress, start: int = start, written: Any = written
            ) -> None:
                written.append(done.items)
                if done.items >= start:
                    raise KeyboardInterrupt

            with pytest.raises(KeyboardInterrupt):
                isotone.seed(other, shop, items={Customer: 30}, seed=5, progress=stop)
            isotone.seed(other, shop, items={Customer: 30}, seed=5, start=written[-1])
            assert digest(other, shop) == expected


def test_an_async_store() -> None:
    async def fill() -> isotone.Seeded:
        async with isotone.aconnect(":memory:") as store:
            return await isotone.seed(store, logs, items={Log: 5})

    assert str(asyncio.run(fill())) == "5 Log"


class Narrow(Entity, table=Table("narrow")):
    digit: Attr[int] = field(max=9)
    primary = Key("DIGIT", digit).sort("DIGIT")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"items": {"Custmer": 3}}, "there is no entity 'Custmer'; there are Customer, Settings"),
        ({"per": {("Product", "Order"): 3}}, "Order belongs to Customer, not to Product"),
        ({"per": {"Product": 3}}, "Product belongs to no other entity, so give how many"),
        ({"per": {"Order": "40..3"}}, "'40..3' is not a number of items; write 9, 3..40, or"),
        ({"items": {"Order": 3}, "per": {"Order": 3}}, "Order: give how many there are, or"),
        ({"items": {"Product": 0}}, "product_id refers to Product, and there is none; ask for"),
        ({"items": {"Settings": 300}}, "Settings: 3 items are more than the 1"),
        ({"per": {"Order": 100_000}}, "100,000 items are more than the 99,999"),
    ],
)
def test_what_is_wrong_is_said(store: Store, options: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError, match=error):
        isotone.seed(store, shop, **options)


def test_more_items_than_keys_can_tell_apart(store: Store) -> None:
    assert isotone.seed(store, Narrow).items == {"Narrow": 9}
    with pytest.raises(UsageError, match="Narrow: 11 items are more than the 9 that there can be"):
        isotone.seed(store, Narrow, items={Narrow: 11}, add=True)


@pytest.mark.parametrize(
    "until",
    [datetime(1, 1, 1, tzinfo=UTC), datetime(9990, 1, 1, tzinfo=UTC), datetime(2026, 1, 1)],
)
def test_times_that_the_sample_cannot_have(store: Store, until: datetime) -> None:
    with pytest.raises(UsageError, match=r"until=.* is not a time with a zone from 1971 to 9900"):
        isotone.seed(store, desk, until=until)
    assert store.backend.execute("ListTables", {})["TableNames"] == []


def test_a_type_without_sample_values(store: Store) -> None:
    from typing import Annotated

    from pydantic import PlainValidator

    def refuse(value: Any) -> Any:
        raise ValueError(value)

    class Odd(Entity, table=Table("odd")):
        number: Attr[int] = field(max=9)
        code: Attr[Annotated[Any, PlainValidator(refuse)]] = field()
        primary = Key("ODD", number).sort("ODD")

    with pytest.raises(UsageError, match="field 'code' is Any, for which there are no sample"):
        isotone.seed(store, Odd)


def test_faker_is_asked_for(store: Store) -> None:
    """Without the package, the option says how to get it; nothing else depends on whether it is there."""
    if not HAS_FAKER:
        with pytest.raises(UsageError, match="pip install faker"):
            isotone.seed(store, shop, faker="de_DE")
        return
    isotone.seed(store, shop, items={Customer: 5}, faker="de_DE")
    assert len({each.name for each in all_of(store, Customer)}) > 1
