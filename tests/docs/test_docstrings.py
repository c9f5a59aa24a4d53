"""Every example in a docstring runs and shows what it says."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import boto3
import pytest

import isotone
from isotone import Attr, Entity, Global, Index, Key, Query, Table, field
from isotone.structures import Leaderboard

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Order(Entity, table=shop):
    customer_id: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED", "CANCELLED"]] = field()

    primary = Key("CUSTOMER", customer_id).sort("ORDER", number)
    by_status = Index("GSI1", "CUSTOMER", customer_id).sort(status, number)


class Post(Entity, table=shop):
    author: Attr[str] = field()
    at: Attr[datetime] = field()

    primary = Key("POSTS", author).sort("AT", at)


class Organization(Entity, table=shop):
    organization: Attr[str] = field()

    primary = Key("ORGANIZATION", organization).sort("ORGANIZATION")


class Fields(Entity, table=shop):
    """Fields of some types, to declare keys of."""

    organization: Attr[str] = field()
    name: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    sensor: Attr[str] = field()
    day: Attr[date] = field()
    at: Attr[datetime] = field()
    total: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("FIELDS", name).sort("FIELDS")


def posts_of(author: str) -> Query[Post]:
    return Post.primary.where(Post.author == author)


@pytest.fixture
def known() -> Iterator[dict[str, Any]]:
    """The names that examples use, besides those of their module."""
    with isotone.open() as database, isotone.connect(database) as store:
        store.create_tables(shop)
        order = store.put(Order(customer_id="2b5a41c0", number=157, status="CANCELLED"))
        board = Leaderboard(store)
        board.create_table()
        yield {
            **{name: getattr(Fields, name) for name in Fields.__schema__.fields},
            "Order": Order,
            "Organization": Organization,
            "posts_of": posts_of,
            "Key": Key,
            "isotone": isotone,
            "boto3": boto3,
            "store": store,
            "order": order,
            "board": board,
            "query": Order.primary.where(Order.customer_id == "2b5a41c0"),
            "errors": [],
            "service": database,
        }


SOURCE = Path(isotone.__file__).parent
MODULES = [
    ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(
    name: str,
    known: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    module = importlib.import_module(name)
    examples = [test for test in doctest.DocTestFinder().find(module) if test.examples]
    assert examples
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(variable, "eu-central-1")
    runner = doctest.DocTestRunner()
    for test in examples:
        assert not [each.source for each in test.examples if doctest.SKIP in each.options]
        test.globs = {**known, **test.globs}
        runner.run(test)
    assert not runner.summarize(verbose=False).failed, capsys.readouterr().out
