"""What is wrong with one item is found, by its exact name, and nothing is found in what a put writes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Table,
    computed,
    created,
    expires,
    field,
    upgrade,
    version,
)
from isotone.model.inspection import Inspector
from isotone.values.types import Item

NOW = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

shop = Table(
    "shop",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "GSI2": Global("GSI2PK", "GSI2SK"),
        "GSI3": Global("GSI3PK", "GSI3SK"),
    },
)


class Customer(Entity, table=shop):
    name: Attr[str] = field()
    mail: Attr[str | None] = field(default=None, unique=True)
    ends: Attr[datetime | None] = expires(default=None)
    primary = Key("CUSTOMER", name).sort("CUSTOMER")


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    title: Attr[str] = field(name="t")
    state: Attr[Literal["NEW", "PAID"] | None] = field(default="NEW")
    total: Attr[Decimal] = field(default=Decimal(0), max=999, scale=2)
    tags: Attr[set[str]] = field(default_factory=set)
    placed: Attr[datetime | None] = field(default=None)
    label: Attr[str] = computed(lambda order: f"{order.title}!")
    at: Attr[datetime | None] = created()
    revision: Attr[int] = version()

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_state = Index("GSI1", "STATE", state).sort(number)
    by_total = Index("GSI2", "TOTAL", when=state == "PAID").sort(total, number)


class Ticket(Entity, table=shop, version=3):
    number: Attr[int] = field(max=999, alert=None)
    words: Attr[str] = field()
    primary = Key("TICKET", number).sort("TICKET")
    by_words = Index("GSI1", "WORDS").sort(words, number)

    @staticmethod
    @upgrade(1)
    def rename(item: dict[str, Any]) -> dict[str, Any]:
        item["words"] = item.pop("word")
        return item

    @staticmethod
    @upgrade(2)
    def grow(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "words": item["words"].upper()}


inspector = Inspector(shop, {"OLDPK": "OLD"})

ORDER = Order(
    customer="ann",
    number=7,
    title="Tea",
    state="PAID",
    tags={"a", "b"},
    placed=datetime(2026, 1, 1, tzinfo=UTC),
)
ORDER.at = datetime(2026, 1, 1, tzinfo=UTC)
TICKET = Ticket(number=3, words="HELLO")


def item_of(entity: Entity) -> Item:
    return entity.__schema__.to_item(entity.__dict__)


def found(item: Item) -> list[tuple[str, str | None]]:
    inspection = inspector.inspect(item, NOW)
    return [(finding.kind, finding.name) for finding in inspection.findings]


def damaged(entity: Entity, **changes: Any) -> list[tuple[str, str | None]]:
    """What is found in the item of an entity with other attributes; None removes one."""
    item = {**item_of(entity), **changes}
    return found({name: value for name, value in item.items() if value is not None})


names = st.text(min_size=1, max_size=5)
orders = st.builds(
    Order,
    customer=names,
    number=st.integers(0, 20_000),
    title=st.text(),
    state=st.sampled_from(["NEW", "PAID", None]),
    total=st.decimals(0, 250, places=2),
    tags=st.sets(st.text(min_size=1)),
    placed=st.none() | st.datetimes(timezones=st.just(UTC)),
)
entities = (
    orders
    | st.builds(Customer, name=names, mail=st.none() | st.text())
    | st.builds(Ticket, number=st.integers(0, 999), words=st.text())
)


@given(entities)
def test_nothing_is_found_in_what_a_put_writes(entity: Entity) -> None:
    assert damaged(entity) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"t": {"N": "3"}}, [("invalid", "title")]),
        ({"t": None}, [("missing", "title")]),
        ({"state": {"S": "LOST"}}, [("invalid", "state")]),
        ({"total": {"S": "12"}}, [("invalid", "total")]),
        ({"placed": {"S": "2026-01-01T01:00:00+01:00"}}, [("other_form", "placed")]),
        ({"placed": {"NULL": True}}, [("other_form", "placed")]),
        ({"tags": {"SS": ["b", "a"]}}, []),
        ({"total": None}, [("implied", "total")]),
        ({"number": None}, [("implied", "number")]),
        ({"label": {"S": "Milk!"}}, [("computed", "label")]),
        ({"label": None}, [("computed", "label")]),
        ({"label": {"N": "1"}}, [("invalid", "label")]),
        (
            {"number": {"N": "8"}},
            [("key", "primary"), ("index_stale", "by_state"), ("index_stale", "by_total")],
        ),
        ({"SK": {"S": "ORDER#7"}}, [("key", "primary")]),
        ({"SK": {"S": "ORDER#7"}, "number": None}, [("key", "primary")]),
        ({"customer": {"S": "bob"}}, [("key", "primary")]),
        (
            {"number": {"N": "100000"}},
            [("overflow", "primary"), ("overflow", "by_state"), ("overflow", "by_total")],
        ),
        ({"total": {"N": "1000"}}, [("overflow", "by_total")]),
        ({"GSI1PK": None}, [("index_missing", "by_state")]),
        ({"GSI1PK": None, "GSI1SK": None}, [("index_missing", "by_state")]),
        ({"GSI1SK": {"S": "00008"}}, [("index_stale", "by_state")]),
        ({"GSI3PK": {"S": "x"}}, [("undeclared_index", "GSI3PK")]),
        ({"OLDPK": {"S": "x"}}, [("undeclared_index", "OLDPK")]),
        ({"colour": {"S": "red"}}, [("unknown_attribute", "colour")]),
        ({"_expires": {"N": "1"}}, [("unknown_attribute", "_expires")]),
        ({"_type": None}, [("untagged", None)]),
        ({"_type": {"S": "Purchase"}}, [("unrecognized", "Purchase")]),
        ({"_type": {"N": "1"}}, [("unrecognized", None)]),
        ({"_type": {"S": "Customer"}}, [("wrong_tag", None)]),
        ({"_type": None, "PK": {"S": "FOO"}}, [("unrecognized", None)]),
        ({"_v": {"N": "2"}}, [("newer_version", None)]),
        ({"_v": {"S": "two"}}, [("invalid", "_v")]),
        ({"_v": {"N": "0"}}, [("invalid", "_v")]),
        (
            {"t": {"N": "3"}, "GSI1SK": None, "x": {"S": ""}},
            [("invalid", "title"), ("index_missing", "by_state"), ("unknown_attribute", "x")],
        ),
    ],
)
def test_each_damage_has_its_name(changes: Mapping[str, Any], expected: list[Any]) -> None:
    assert damaged(ORDER, **changes) == expected


def test_an_index_entry_that_should_not_be_there() -> None:
    new = ORDER.replace(state="NEW")
    entry = {"GSI2PK": {"S": "TOTAL"}, "GSI2SK": {"S": "000.00#00007"}}
    assert damaged(new, **entry) == [("index_orphaned", "by_total")]
    assert damaged(ORDER.replace(state=None), GSI1SK={"S": "x"}) == [("index_orphaned", "by_state")]


def test_a_number_that_comes_near_its_width() -> None:
    assert damaged(ORDER.replace(number=40_000)) == [("headroom", "number")]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"_v": {"N": "2"}}, [("older_version", None)]),
        (
            {"_v": None, "words": None, "word": {"S": "Hello"}, "GSI1SK": {"S": "Hello#003"}},
            [("older_version", None), ("index_stale", "by_words")],
        ),
        ({"_v": None, "words": None}, [("upgrade_failed", None)]),
        (
            {"_v": {"N": "2"}, "number": {"S": "x"}},
            [("older_version", None), ("invalid", "number")],
        ),
        ({"_v": {"N": "4"}}, [("newer_version", None)]),
    ],
)
def test_items_of_other_versions(changes: Mapping[str, Any], expected: list[Any]) -> None:
    assert damaged(TICKET, **changes) == expected


def test_items_that_have_expired_are_not_looked_at() -> None:
    gone = {"_expires": {"N": str(int(NOW))}, "x": {"S": "x"}}
    assert damaged(Customer(name="ann"), **gone) == []
    assert inspector.inspect(item_of(Customer(name="ann", mail="a@b")), NOW).claims
    assert not inspector.inspect({**item_of(Customer(name="ann", mail="a@b")), **gone}, NOW).claims


def test_items_of_the_library() -> None:
    for tag in ("_keys", "_widening", "_unique"):
        assert inspector.is_of_library({"PK": {"S": "x"}, "SK": {"S": "x"}, "_type": {"S": tag}})
    for item in (item_of(ORDER), {}, {"_type": {"N": "1"}}, {"_type": {"S": "_Order"}}):
        assert not inspector.is_of_library(item)


def test_findings_show_what_was_found_and_what_is_declared() -> None:
    item = {**item_of(ORDER), "t": {"N": "3"}, "GSI1SK": {"S": "x"}}
    invalid, stale = inspector.inspect(item, NOW).findings
    assert (invalid.entity, invalid.found, invalid.declared) == ("Order", {"N": "3"}, "str")
    assert stale.found == {"M": {"GSI1SK": {"S": "x"}}}
    assert stale.declared == "'00007'"
    (near,) = inspector.inspect({**item_of(ORDER), "_type": {"S": "Bill"}}, NOW).findings
    assert near.declared == "the key is one of Order"


values = st.recursive(
    st.sampled_from(
        [{"S": ""}, {"S": "x"}, {"N": "1"}, {"N": "1.5"}, {"B": "eA=="}, {"NULL": True}]
    )
    | st.sampled_from([{"BOOL": True}, {"SS": ["x"]}, {"NS": ["1"]}]),
    lambda inner: (
        st.lists(inner, max_size=2).map(lambda each: {"L": each})
        | st.dictionaries(st.just("a"), inner).map(lambda each: {"M": each})
    ),
    max_leaves=4,
)


@given(
    item=entities.map(item_of),
    changes=st.dictionaries(
        st.sampled_from([*item_of(ORDER), *item_of(TICKET), "mail", "_expires", "_v", "word"]),
        st.none() | values,
    ),
)
def test_no_item_raises(item: Item, changes: Mapping[str, Any]) -> None:
    changed = {
        **item,
        **{name: value for name, value in changes.items() if name not in ("PK", "SK")},
    }
    inspector.inspect({name: value for name, value in changed.items() if value is not None}, NOW)
