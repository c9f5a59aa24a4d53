"""The calls of the page's API, through a server."""

from __future__ import annotations

import ast
import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.intercepted_backend import InterceptedBackend, refuse
from tests.workbench.page import Browserless

import isotone
from isotone.errors import AccessDeniedException, ExpiredIteratorException
from isotone.server import running_server
from isotone.workbench import Workbench, stream_tail
from isotone.workbench.access import is_write
from isotone.workbench.code import snippets
from isotone.workbench.stream_tail import next_changes

WRITES = [
    ("PutItem", {"TableName": "Words", "Item": {"list": {"S": "x"}, "word": {"S": "x"}}}),
    ("DeleteTable", {"TableName": "Words"}),
    ("ExecuteStatement", {"Statement": "DELETE FROM Words WHERE list = 'words'"}),
    (
        "BatchExecuteStatement",
        {
            "Statements": [
                {"Statement": "SELECT * FROM Words"},
                {"Statement": "UPDATE Words SET a = 1"},
            ]
        },
    ),
    ("TransactWriteItems", {"TransactItems": []}),
    ("SomethingNew", {}),
]


def test_tables_have_their_keys_indexes_counts_and_sizes(page):
    tables = {each["name"]: each for each in page.call("tables")["tables"]}
    github = tables["GitHub"]
    assert github["keys"] == {
        "partition": [{"name": "pk", "type": "S"}],
        "sort": [{"name": "sk", "type": "S"}],
    }
    assert github["items"] == 26
    assert github["bytes"] > 1000
    (index,) = github["indexes"]
    assert (index["name"], index["kind"], index["items"]) == ("by_work", "global", 16)


def test_items_are_recognized_by_an_inferred_model(page):
    page.call("model", {"table": "GitHub"})
    request = {"TableName": "GitHub", "Limit": 1}
    answer = page.execute("Scan", request, keys=["pk", "sk", "work"])
    ((entity, keys),) = answer["recognized"]
    assert entity == "Fork"
    (item,) = answer["response"]["Items"]
    for name, segments in keys.items():
        assert "".join(text for text, _, _ in segments) == item[name]["S"]
    assert [name for _, name, _ in keys["sk"] if name] == ["user"]
    assert "Pull request" in answer["legend"]["entities"]


def test_a_descending_number_has_its_value(page):
    page.call("model", {"table": "GitHub"})
    request = {
        "TableName": "GitHub",
        "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
        "ExpressionAttributeValues": {":p": {"S": "REPO#ann#notes"}, ":s": {"S": "~PR"}},
        "Limit": 1,
    }
    answer = page.execute("Query", request, keys=["sk"])
    ((_, keys),) = answer["recognized"]
    assert keys["sk"] == [["~PR#", None, None], ["99840", "number", "159"]]


def test_every_key_of_every_sample_is_shown_whole(page):
    for table in page.call("tables")["tables"]:
        names = [each["name"] for part in table["keys"].values() for each in part]
        page.call("model", {"table": table["name"]})
        answer = page.execute("Scan", {"TableName": table["name"]}, keys=names)
        for item, (_, keys) in zip(answer["response"]["Items"], answer["recognized"], strict=True):
            for name in names:
                ((_, value),) = item[name].items()
                assert "".join(text for text, _, _ in keys[name]) == value


shop = isotone.Table("shop")


class Order(isotone.Entity, table=shop):
    """An order of a customer."""

    customer: isotone.Attr[str] = isotone.field()
    number: isotone.Attr[int] = isotone.field(max=9_999)
    primary = isotone.Key("CUSTOMER", customer).sort("ORDER", isotone.desc(number))


def test_a_loaded_model_names_entities_and_patterns(database):
    store = isotone.connect(database)
    store.create_tables(shop)
    store.put(Order(customer="ann", number=7))
    pages = Workbench(database, target=":memory:", tables=[shop])
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        model = page.call("model", {"table": "shop"})
        assert model["loaded"] is True
        (entity,) = model["model"]["entities"]
        assert (entity["name"], entity["about"]) == ("Order", "An order of a customer.")
        asked = {
            "table": "shop",
            "entity": "Order",
            "pattern": "primary",
            "equal": {"customer": "ann"},
            "component": "number",
            "operator": ">=",
            "values": ["3"],
        }
        answer = page.call("pattern", asked)
        found = page.execute("Query", answer["request"], keys=["PK", "SK"])
        assert found["response"]["Count"] == 1
        assert found["recognized"][0][0] == "Order"
        assert answer["code"].endswith(
            'with isotone.connect(":memory:") as store:\n'
            "    query = Order.primary.where(\n"
            '        Order.customer == "ann",\n'
            "        Order.number >= 3,\n"
            "    )\n"
            "    for item in store.iterate(query):\n"
            "        print(item)\n"
        )
        wrong = page.call("pattern", {**asked, "values": ["many"]})
        assert "'many' is not a int" in wrong["error"]["message"]


@pytest.mark.parametrize(("action", "request_"), WRITES)
def test_safe_mode_refuses_every_write(database, action, request_):
    before = database.execute("Scan", {"TableName": "Words"})["Items"]
    pages = Workbench(database, target="http://elsewhere", writable=False, remote=True)
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        answer = page.execute(action, request_)
        assert answer["error"]["code"] == "SafeMode"
        assert database.execute("Scan", {"TableName": "Words"})["Items"] == before
        assert "response" in page.execute("Scan", {"TableName": "Words"})
        assert "response" in page.execute("ExecuteStatement", {"Statement": " select * from Words"})
        assert page.call("unlock", {"writable": True}) == {"writable": True}
        assert answer["error"]["code"] != page.execute(action, request_).get("error", {}).get(
            "code"
        )


def test_what_reads_is_no_write():
    for action in ("GetItem", "Query", "Scan", "DescribeTable", "ListTables", "GetRecords"):
        assert not is_write(action, {})


def test_changes_arrive_in_order(database):
    database.execute(
        "UpdateTable",
        {
            "TableName": "Words",
            "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        },
    )
    pages = Workbench(database, target=":memory:")
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        stream = page.call("table", {"table": "Words"})["table"]["stream"]
        began = page.call("changes", {"stream": stream})
        assert began["records"] == []
        for word in ("one", "two"):
            item = {"list": {"S": "new"}, "word": {"S": word}}
            page.execute("PutItem", {"TableName": "Words", "Item": item})
        found = page.call("changes", {"stream": stream, "position": began["position"]})
        assert [each["dynamodb"]["Keys"]["word"]["S"] for each in found["records"]] == [
            "one",
            "two",
        ]
        assert "error" in page.call("changes", {"stream": None})


def test_copied_code_runs(database, capsys):
    request = {
        "TableName": "Words",
        "Item": {
            "list": {"S": "it's"},
            "word": {"S": 'a "b" \\ <script>'},
            "data": {"B": "AAE="},
            "numbers": {"NS": ["1", "2.5"]},
        },
    }
    with running_server(database) as url:
        pages = Workbench(database, target=url)
        with running_server(database, pages=pages) as own:
            page = Browserless(own)
            shown = page.call("code", {"action": "PutItem", "request": request})["snippets"]
            by_name = {each["name"]: each["text"] for each in shown}
            key = {"list": request["Item"]["list"], "word": request["Item"]["word"]}
            for name in ("Isotone", "boto3"):
                database.execute("DeleteItem", {"TableName": "Words", "Key": key})
                names: dict[str, Any] = {}
                exec(compile(by_name[name], name, "exec"), names)
                (names.get("store") or names["client"]).close()
                stored = database.execute("GetItem", {"TableName": "Words", "Key": key})["Item"]
                assert stored == request["Item"]
    assert "ResponseMetadata" in capsys.readouterr().out


def test_javascript_keeps_a_member_that_would_name_a_prototype():
    request = {"TableName": "t", "Key": {"__proto__": {"S": "a"}}}
    (shown,) = [
        each for each in snippets("GetItem", request, ":memory:") if each["language"] == "js"
    ]
    assert '["__proto__"]: {' in shown["text"]


@pytest.mark.parametrize("target", [":memory:", "shop.db", "http://localhost:8000", "dynamodb://x"])
def test_copied_code_imports_what_is_public(target):
    """Of Isotone: the package alone, and only names that it offers."""
    for each in snippets("GetItem", {"TableName": "t", "Key": {}}, target):
        if each["language"] != "python":
            continue
        for node in ast.walk(ast.parse(each["text"])):
            if isinstance(node, ast.ImportFrom):
                raise AssertionError(f"{each['name']}: from {node.module} import …")
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= {"isotone", "boto3"}
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "isotone":
                assert node.attr in {*isotone.__all__, "open"}


@pytest.mark.parametrize(
    ("target", "place"),
    [
        ("http://10.0.0.1:8000?engine=alternator", "http://10.0.0.1:8000"),
        ("alternator://10.0.0.1,10.0.0.2:8000", "http://10.0.0.1:8000"),
        ("alternator+https://node1:8043,node2?datacenter=dc1", "https://node1:8043"),
        ("dynamodb://eu-west-1", "eu-west-1"),
        ("dynamodb://eu-west-1?profile=dev", "eu-west-1"),
        ("shop.db", "isotone serve shop.db"),
        ("azure-table://shop", None),
    ],
)
def test_copied_code_goes_where_the_page_is(target, place):
    """Never to Amazon's default region, unless the address says so."""
    texts = {
        each["name"]: each["text"]
        for each in snippets("PutItem", {"TableName": "t", "Item": {}}, target)
    }
    assert target in texts["Isotone"]
    others = [text for name, text in texts.items() if name in ("JavaScript", "AWS CLI")]
    assert bool(others) == (place is not None)
    assert all(place in text and "?" not in text for text in others)
    assert place is None or target == "shop.db" or place in texts["boto3"]


def test_code_of_a_pattern_runs(page, database):
    model = page.call("model", {"table": "GitHub"})["model"]
    (entity,) = [each for each in model["entities"] if each["name"] == "Fork"]
    pattern = entity["patterns"][0]
    equal = {each["name"]: "x" for each in pattern["group"]}
    given = {"table": "GitHub", "entity": "Fork", "pattern": pattern["name"], "equal": equal}
    code = page.call("pattern", given)["code"]
    method = code.partition("store.")[2].partition("(")[0]
    assert callable(getattr(isotone.Store, method))


def test_the_model_of_an_empty_table_is_inferred_when_it_has_items(page, database):
    key = {"AttributeName": "id", "KeyType": "HASH"}
    definition = {"AttributeName": "id", "AttributeType": "S"}
    request = {"TableName": "Later", "KeySchema": [key], "AttributeDefinitions": [definition]}
    page.execute("CreateTable", {**request, "BillingMode": "PAY_PER_REQUEST"})
    assert page.call("model", {"table": "Later"})["model"] is None
    for number in range(30):
        page.execute("PutItem", {"TableName": "Later", "Item": {"id": {"S": f"USER#{number:03}"}}})
    model = page.call("model", {"table": "Later"})["model"]
    assert [each["name"] for each in model["entities"]] == ["Later"]


@pytest.mark.parametrize("body", [[1], "text", 5])
def test_a_body_that_is_no_object_is_refused(page, body):
    assert page.call("execute", body)["error"]["code"] == "UsageError"
    assert page.call("execute", {"action": "Scan", "request": [1]})["error"]["code"] == "UsageError"


def test_copied_code_quotes_what_it_is_given(page):
    given = {"action": "Scan", "request": {}, "origin": "http://a\"; rm -rf $(x) '"}
    texts = {each["name"]: each["text"] for each in page.call("code", given)["snippets"]}
    assert "--endpoint-url 'http://a\"; rm -rf $(x) '\"'\"''" in texts["AWS CLI"]
    assert r'endpoint: "http://a\"; rm -rf $(x) ' in texts["JavaScript"]
    error = page.call("code", {"action": "Scan(); x", "request": {}})["error"]
    assert "is not the name of an action" in error["message"]


def test_an_expired_position_in_a_stream_continues_after_the_last_record():
    expired = ["first"]
    asked = []

    async def execute(action, request):
        if action == "GetShardIterator":
            asked.append(request)
            return {"ShardIterator": "fresh"}
        if request["ShardIterator"] in expired:
            raise ExpiredIteratorException("too late")
        record = {"dynamodb": {"SequenceNumber": "8"}}
        return {"Records": [record], "NextShardIterator": "next"}

    position = {"iterators": {"shard": "first"}, "last": {"shard": "7"}}
    found = asyncio.run(next_changes(execute, "stream", position))
    (request,) = asked
    assert request["ShardIteratorType"] == "AFTER_SEQUENCE_NUMBER"
    assert request["SequenceNumber"] == "7"
    assert found["position"] == {"iterators": {"shard": "next"}, "last": {"shard": "8"}}


def test_the_tour_changes_nothing_in_safe_mode(database):
    acted = []

    async def act(given):
        acted.append(given)
        return {}

    pages = Workbench(database, target=":memory:", writable=False, tour={"tour_act": act})
    with running_server(database, pages=pages) as url:
        page = Browserless(url)
        assert page.call("tour_act", {})["error"]["code"] == "SafeMode"
        assert acted == []
        page.call("unlock", {"writable": True})
        assert page.call("tour_act", {}) == {}
    assert acted == [{}]


def test_a_stream_whose_shards_are_closed_is_described_ever_less_often(monkeypatch):
    monkeypatch.setattr(stream_tail, "_WAIT", 0.4)
    monkeypatch.setattr(stream_tail, "_PAUSE", 0.005)
    asked = []

    async def execute(action, request):
        asked.append(action)
        closed = {"StartingSequenceNumber": "1", "EndingSequenceNumber": "2"}
        return {"StreamDescription": {"Shards": [{"ShardId": "a", "SequenceNumberRange": closed}]}}

    position = {"iterators": {"a": None}, "last": {}}
    found = asyncio.run(next_changes(execute, "stream", position))
    assert found["records"] == []
    assert 1 <= len(asked) <= 8


def test_a_key_that_may_query_and_not_scan_sees_what_it_queries(database):
    denied = AccessDeniedException("you may not Scan")
    backend = InterceptedBackend(database, refuse(denied, lambda operation, _: operation == "Scan"))
    with running_server(database, pages=Workbench(backend, target="x", remote=True)) as url:
        page = Browserless(url)
        request = {
            "TableName": "GitHub",
            "KeyConditionExpression": "pk = :p",
            "ExpressionAttributeValues": {":p": {"S": "REPO#ann#notes"}},
        }
        answer = page.execute("Query", request, keys=["pk", "sk"])
        assert answer["response"]["Count"] == 13
        names = {"table": "GitHub", "keys": ["pk", "sk"], "items": answer["response"]["Items"]}
        recognized = page.call("keys", names)["recognized"]
        assert [text for text, _, _ in recognized[0][1]["sk"]] == ["FORK", "#", "bob"]
        assert page.call("model", {"table": "GitHub"})["error"]["message"] == "you may not Scan"


@pytest.mark.parametrize("remote", [True, False])
def test_a_key_that_may_not_see_a_table_sees_the_others(database, remote):
    denied = AccessDeniedException("you may not describe Orders")
    backend = InterceptedBackend(
        database, refuse(denied, lambda _, given: given.get("TableName") == "Orders")
    )
    with running_server(database, pages=Workbench(backend, target="x", remote=remote)) as url:
        page = Browserless(url)
        found = {each["name"]: each for each in page.call("tables")["tables"]}
        assert found["Orders"] == {"name": "Orders"}
        assert found["Words"]["items"] == 7
        assert list(found) == sorted(found)
        assert page.call("table", {"table": "Orders"})["error"]["code"] == "AccessDeniedException"


def test_items_that_came_from_elsewhere_are_in_the_model_of_a_small_table(page, database):
    key = {"AttributeName": "id", "KeyType": "HASH"}
    definition = {"AttributeName": "id", "AttributeType": "S"}
    request = {"TableName": "Filled", "KeySchema": [key], "AttributeDefinitions": [definition]}
    database.execute("CreateTable", {**request, "BillingMode": "PAY_PER_REQUEST"})
    assert page.call("model", {"table": "Filled"})["model"] is None
    for number in range(30):
        item = {"id": {"S": f"USER#{number:03}"}}
        database.execute("PutItem", {"TableName": "Filled", "Item": item})
    model = page.call("model", {"table": "Filled"})["model"]
    assert [each["name"] for each in model["entities"]] == ["Filled"]


def forty_threads():
    """The workbench's threads, once there are forty: some calls may still be on their way, or end."""
    deadline = time.monotonic() + 20
    while True:
        threads = [each for each in threading.enumerate() if "workbench" in each.name]
        if len(threads) == 40 or time.monotonic() > deadline:
            assert len(threads) == 40
            return threads
        time.sleep(0.01)


def test_a_slow_engine_keeps_no_other_call_waiting(database):
    """As many calls as the event loop's executor has threads wait; others are answered."""
    gate = threading.Event()
    slow = InterceptedBackend(
        database, lambda operation, _: operation == "GetItem" and gate.wait(30)
    )
    with running_server(database, pages=Workbench(slow, target="x")) as url:
        page = Browserless(url)
        get = {"TableName": "Words", "Key": {"list": {"S": "x"}, "word": {"S": "x"}}}
        with ThreadPoolExecutor(40) as clients:
            waiting = [clients.submit(page.execute, "GetItem", get) for _ in range(40)]
            try:
                threads = forty_threads()
                assert page.execute("Scan", {"TableName": "Words"})["response"]["Count"] == 7
                assert not any(each.done() for each in waiting)
                assert forty_threads() == threads
                assert all(each.daemon for each in threads)  # so none delays the end of a process
            finally:
                gate.set()
