"""Faults over HTTP: ordered at a path of the server, and felt by any SDK."""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectionClosedError

import isotone
from isotone.errors import ConnectionFailed
from isotone.server import running_server
from isotone.testing import Faults
from isotone.testing.faults import plan

PUT: dict[str, Any] = {"TableName": "orders", "Item": {"id": {"S": "o-1"}}}
GET: dict[str, Any] = {"TableName": "orders", "Key": {"id": {"S": "o-1"}}}


def control(url: str, method: str, body: str = "") -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)
    connection.request(method, "/faults", body)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


@pytest.fixture
def url() -> Iterator[str]:
    service = Faults(seed=1).served(isotone.open())
    with closing(service), running_server(service, threaded=True) as url:
        yield url


@pytest.fixture
def client(url: str) -> Any:
    """boto3 without retries."""
    made = boto3.client(
        "dynamodb",
        "us-east-1",
        endpoint_url=url,
        aws_access_key_id="any",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )
    made.create_table(
        TableName="orders",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return made


def test_faults_are_ordered_shown_and_ended(url: str, client: Any) -> None:
    order = {"fault": "throttle", "table": "orders", "writes": 1, "burst": 1.0}
    assert control(url, "POST", json.dumps(order)) == (200, {"Faults": [{**order, "count": 0}]})
    client.put_item(**PUT)
    with pytest.raises(ClientError) as caught:
        client.put_item(**PUT)
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
    assert control(url, "GET")[1]["Faults"][0]["count"] == 1
    assert control(url, "DELETE") == (200, {"Faults": []})
    client.put_item(**PUT)


@pytest.mark.parametrize(
    ("method", "body", "message"),
    [
        ("POST", '{"fault": "flood"}', "'flood' is not a fault"),
        ("POST", '{"fault": "delay"}', "delay needs the option 'seconds'"),
        ("POST", '{"fault": "delay", "seconds": "x"}', "seconds='x' is of a wrong type"),
        ("POST", '{"fault": "delay", "seconds": -1}', "seconds=-1 is negative"),
        ("POST", '{"fault": "delay", "second": 1}', "has no option 'second'; it has seconds, op"),
        ("POST", '{"fault": "leave_unprocessed", "share": 2}', "share=2 is not a share"),
        ("POST", '{"fault": "lag_replicas"}', "lag_replicas takes either"),
        ("POST", '{"fault": "fail", "operation": "Scan", "error": "No"}', "'No' is not an error"),
        ("POST", '{"operation": "Scan"}', "'' is not a fault"),
        ("POST", "[1]", "send"),
        ("POST", "no", "send"),
        ("PUT", "{}", "PUT is not GET, POST or DELETE"),
    ],
)
def test_a_wrong_order_is_refused(url: str, method: str, body: str, message: str) -> None:
    status, answer = control(url, method, body)
    assert status == 400
    assert message in answer["message"]


def test_of_several_orders_all_are_taken_or_none(url: str, client: Any) -> None:
    first = '{"fault": "fail", "operation": "GetItem"}'
    assert control(url, "POST", f'[{first}, {{"fault": "delay"}}]')[0] == 400
    assert control(url, "GET") == (200, {"Faults": []})
    client.get_item(**GET)
    orders = control(url, "POST", f"[{first}, {first}]")[1]["Faults"]
    assert [each["fault"] for each in orders] == ["fail", "fail"]


def test_the_orders_of_the_page_are_taken(url: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "testing.md").read_text(encoding="utf-8")
    (orders,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    taken = control(url, "POST", orders)[1]["Faults"]
    assert {each["fault"] for each in taken} == set(plan.FAULTS)


def test_a_lost_answer_breaks_the_connection(url: str, client: Any) -> None:
    control(url, "POST", '{"fault": "lose_answers", "operation": "PutItem", "at": 1}')
    with pytest.raises(ConnectionClosedError):
        client.put_item(**PUT)
    assert client.get_item(**GET)["Item"] == PUT["Item"]


def test_a_store_repeats_what_was_lost(url: str, client: Any) -> None:
    control(url, "POST", '{"fault": "lose_answers", "operation": "PutItem", "at": 1}')
    with isotone.connect(url) as store:
        store.backend.execute("PutItem", PUT)
    assert control(url, "GET")[1]["Faults"][0]["count"] == 1


def test_a_delay_takes_real_time_and_holds_up_nobody_else(url: str, client: Any) -> None:
    control(url, "POST", '{"fault": "delay", "seconds": 0.5, "operation": "PutItem"}')
    took: dict[str, float] = {}

    def timed(name: str) -> None:
        began = time.monotonic()
        client.put_item(**PUT) if name == "put" else client.get_item(**GET)
        took[name] = time.monotonic() - began

    threads = [threading.Thread(target=timed, args=(name,)) for name in ("put", "get")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert took["put"] >= 0.5 > took["get"]


def test_replicas_lag(url: str, client: Any) -> None:
    away = boto3.client(
        "dynamodb",
        "eu-west-1",
        endpoint_url=url,
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )
    create = [{"Create": {"RegionName": "eu-west-1"}}]
    client.update_table(TableName="orders", ReplicaUpdates=create)
    control(url, "POST", '{"fault": "lag_replicas", "paused": true}')
    client.put_item(**PUT)
    assert "Item" not in away.get_item(**GET)
    assert "Item" in client.get_item(**GET)
    assert control(url, "DELETE") == (200, {"Faults": []})
    assert away.get_item(**GET)["Item"] == PUT["Item"]


def test_a_database_with_faults_is_served_as_it_is(client: Any) -> None:
    faults = Faults()
    retries = isotone.Retries.none()
    with isotone.open() as database, faults.on(database), running_server(database) as url:
        lost = faults.lose_answers(["PutItem", "ListTables"])
        with isotone.connect(url, retries=retries) as store:
            for operation, request in {"ListTables": {}, "PutItem": PUT}.items():
                with pytest.raises((ConnectionFailed, isotone.errors.ApiError)):
                    store.backend.execute(operation, request)
        assert lost.count == 1  # there is no table, so the put was refused


def test_without_faults_there_is_no_such_path() -> None:
    with isotone.open() as database, running_server(database) as url:
        status, answer = control(url, "GET")
    assert (status, answer["__type"].endswith("UnknownOperationException")) == (400, True)
