"""Of several faults in a request, the one of the first layer is answered; the page shows the orders."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.docs.order_page import PAGE, text
from tests.effort import examples
from tests.observed import orders as command
from tests.observed.endpoints import AtAddress
from tests.observed.orders import Elsewhere, Orders, requests, wrong
from tests.oracle.base_requests import BASES_OF

import isotone
from isotone.operations.api import ACTIONS
from isotone.operations.checks.orders import ORDERS
from isotone.server import running_server

ALONE = (
    *("DescribeTable", "DescribeTimeToLive", "DescribeBackup", "DescribeContinuousBackups"),
    *("DescribeExport", "DescribeImport", "DescribeBulkOperation", "DescribeGlobalTable"),
    *("DescribeKinesisStreamingDestination", "DescribeGlobalTableSettings", "DeleteTable"),
    *("DescribeTableReplicaAutoScaling", "GetResourcePolicy", "DeleteBackup"),
    *("CancelBulkOperation", "DescribeLimits", "DescribeEndpoints", "ListTagsOfResource"),
)
"""Actions with one member that has rules or none, so that no request has two faults."""
LISTED = ("ListTables", "ListGlobalTables", "ListBackups", "ListBulkOperations")
"""Actions of which all faults are listed together."""


@pytest.fixture(scope="module")
def orders() -> Iterator[Orders]:
    made = Orders()
    yield made
    made.close()


@pytest.mark.parametrize("action", BASES_OF)
def test_the_first_layer_is_answered(orders: Orders, action: str) -> None:
    dice = random.Random(action)
    sent = [*requests(orders, [action], examples(400), dice, most=150)]
    assert sent or action in ALONE or action in LISTED
    assert [found for each in sent if (found := wrong(orders, *each))] == []


@pytest.mark.parametrize("action", BASES_OF)
def test_the_requests_without_faults_are_right(orders: Orders, action: str) -> None:
    assert [orders.answer(action, request) for request in BASES_OF[action]] == [
        None for _ in BASES_OF[action]
    ]


def test_actions_without_two_faults_have_one_member() -> None:
    assert all(len(base) < 2 for action in ALONE for base in BASES_OF[action])


def test_another_order_is_found(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a database answers by one order is wrong by another."""
    sent = [*requests(orders, ["GetItem"], 150, random.Random(1))]
    layers = ORDERS["GetItem"]
    monkeypatch.setitem(ORDERS, "GetItem", layers[::-1])
    assert any(wrong(orders, *each) for each in sent)


def test_every_action_has_requests() -> None:
    assert ACTIONS.keys() == BASES_OF.keys()
    assert ORDERS.keys() <= ACTIONS.keys()


def test_the_same_requests_are_sent_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with isotone.open(":memory:") as database, running_server(database) as url:
        assert command.main(["BatchGetItem", "--count", "5", "--seed", "1", "--at", url]) == 0
        assert database.execute("ListTables", {})["TableNames"] == []
        elsewhere = Elsewhere(AtAddress(url))
        assert elsewhere.message("GetItem", {"TableName": "tab"}) == (
            "1 validation error detected: Value null at 'key' failed to satisfy constraint: "
            "Member must not be null"
        )
        with pytest.raises(SystemExit, match="cannot be made"):
            Elsewhere(AtAddress(url))
        elsewhere.close()
    assert "are not answered by the first layer" in capsys.readouterr().out


def test_what_would_remain_is_not_sent_elsewhere(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["CreateTable", "--at", "http://127.0.0.1:1"])
    assert "only these are sent to an address: PutItem, " in capsys.readouterr().err


def test_the_page_shows_the_orders() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == text(), "docs/design/order-of-checks.md differs from the orders: make files"
