"""Two servers and a program have the same file open: each sees at once what the others did."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.crash.server_storm import (
    Call,
    Caller,
    Program,
    Refused,
    Request,
    create_table,
    item_of,
    key,
)
from tests.effort import examples
from tests.sdks.server_process import start_server

import isotone
from isotone.backends.embedded import Database
from isotone.engine.engine import Engine
from isotone.storage.sqlite import SQLiteStore

INDEX = {
    "IndexName": "by_group",
    "KeySchema": [
        {"AttributeName": "group", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "Projection": {"ProjectionType": "ALL"},
}
NAMES = [
    {"AttributeName": name, "AttributeType": kind}
    for name, kind in {"pk": "S", "sk": "S", "version": "N", "shade": "S", "group": "S"}.items()
]


class Crowd:
    """Three processes on one file: `calls` are for this thread, `fresh_calls` for others."""

    def __init__(self, urls: list[str], program: Program, stack: ExitStack) -> None:
        self.urls = urls
        self.program = program
        self.stack = stack
        self.calls: list[Call] = self.fresh_calls()

    def fresh_calls(self) -> list[Call]:
        return [*(self.stack.enter_context(Caller(url)) for url in self.urls), self.program]


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Crowd]:
    path, complaints = tmp_path / "shop.db", tmp_path / "log"
    with complaints.open("w") as log, ExitStack() as stack:
        servers = [stack.enter_context(start_server(path, stderr=log)) for _ in range(2)]
        database = stack.enter_context(isotone.open(path))
        yield Crowd([server.url for server in servers], Program(database), stack)
        database.finish_maintenance()
        assert database.check() == []
        assert [server.stop() for server in servers] == [0, 0]
    assert complaints.read_text() == ""


def refusal(call: Call, operation: str, **request: Any) -> str:
    with pytest.raises(Refused) as refused:
        call(operation, **request)
    return refused.value.code


def everything(call: Call, operation: str = "Scan", **request: Any) -> list[Request]:
    items: list[Request] = []
    while True:
        page = call(operation, **request)
        items.extend(page["Items"])
        if "LastEvaluatedKey" not in page:
            return items
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def in_threads(*works: Callable[[], object]) -> None:
    """Run all at once; the first failure is raised."""
    failures: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - raised below
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_each_sees_at_once_what_the_others_wrote(crowd: Crowd) -> None:
    create_table(crowd.calls[0], "Shared")
    for version in range(1, 31):
        writer = crowd.calls[version % 3]
        item = item_of("a", version % 4, version)
        writer("PutItem", TableName="Shared", Item=item)
        for reader in crowd.calls:
            found = reader("GetItem", TableName="Shared", Key=key("a", version % 4))
            assert found["Item"] == item
            newest = reader(
                "Query",
                TableName="Shared",
                IndexName="by_version",
                KeyConditionExpression="pk = :a",
                ExpressionAttributeValues={":a": {"S": "a"}},
                ScanIndexForward=False,
                Limit=1,
            )
            assert newest["Items"][0]["version"] == {"N": str(version)}
    for deleter in range(3):
        crowd.calls[deleter]("DeleteItem", TableName="Shared", Key=key("a", deleter))
        for reader in crowd.calls:
            assert reader("GetItem", TableName="Shared", Key=key("a", deleter)) == {}


def test_tables_come_and_go_for_all(crowd: Crowd) -> None:
    for number in range(6):
        maker, dropper, reader = (crowd.calls[(number + turn) % 3] for turn in range(3))
        create_table(maker, "Brief")
        assert refusal(maker, "CreateTable", **_definition("Brief")) == "ResourceInUseException"
        assert refusal(dropper, "CreateTable", **_definition("Brief")) == "ResourceInUseException"
        dropper("PutItem", TableName="Brief", Item=item_of("a", 1, number + 1))
        assert everything(reader, TableName="Brief") == [item_of("a", 1, number + 1)]
        assert reader("ListTables")["TableNames"] == ["Brief"]
        dropper("DeleteTable", TableName="Brief")
        for call in crowd.calls:
            code = refusal(call, "PutItem", TableName="Brief", Item=item_of("a", 1, 1))
            assert code == "ResourceNotFoundException"
            code = refusal(call, "GetItem", TableName="Brief", Key=key("a", 1))
            assert code == "ResourceNotFoundException"
            assert call("ListTables")["TableNames"] == []


def _definition(name: str) -> Request:
    return {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": NAMES[:1],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    }


def test_settings_are_known_to_all(crowd: Crowd) -> None:
    create_table(crowd.calls[0], "Shared")
    crowd.calls[1]("UpdateTable", TableName="Shared", DeletionProtectionEnabled=True)
    for call in (crowd.calls[0], crowd.calls[2]):
        assert refusal(call, "DeleteTable", TableName="Shared") == "ValidationException"
    crowd.calls[2](
        "UpdateTimeToLive",
        TableName="Shared",
        TimeToLiveSpecification={"Enabled": True, "AttributeName": "expires"},
    )
    for call in crowd.calls:
        setting = call("DescribeTimeToLive", TableName="Shared")["TimeToLiveDescription"]
        assert setting["AttributeName"] == "expires"


def test_counters_are_exact(crowd: Crowd) -> None:
    create_table(crowd.calls[0], "Shared")
    told: list[int] = []

    def count(call: Call) -> None:
        for _ in range(60):
            answer = call(
                "UpdateItem",
                TableName="Shared",
                Key=key("counter", 0),
                UpdateExpression="ADD visits :one",
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="UPDATED_NEW",
            )
            told.append(int(answer["Attributes"]["visits"]["N"]))

    calls = [*crowd.fresh_calls(), *crowd.fresh_calls()]
    in_threads(*(lambda call=call: count(call) for call in calls))  # type: ignore[misc]
    assert sorted(told) == list(range(1, 361))


def test_only_one_wins_a_condition(crowd: Crowd) -> None:
    create_table(crowd.calls[0], "Shared")
    winners: list[tuple[int, int]] = []

    def claim(number: int, call: Call) -> None:
        for prize in range(40):
            put = {
                "TableName": "Shared",
                "Item": key("prize", prize) | {"owner": {"N": str(number)}},
                "ConditionExpression": "attribute_not_exists(pk)",
            }
            try:
                call("TransactWriteItems", TransactItems=[{"Put": put}])
            except Refused as refused:
                if refused.code != "TransactionCanceledException":
                    raise
            else:
                winners.append((prize, number))

    calls = enumerate(crowd.fresh_calls())
    in_threads(*(lambda n=n, call=call: claim(n, call) for n, call in calls))  # type: ignore[misc]
    owners = {
        int(item["sk"]["S"]): int(item["owner"]["N"])
        for item in everything(crowd.calls[0], TableName="Shared")
    }
    assert len(winners) == 40
    assert owners == dict(winners)


def test_reads_are_of_one_moment(crowd: Crowd) -> None:
    """Money moves between two accounts; whoever reads both, or checks the file, sees none missing."""
    create_table(crowd.calls[0], "Shared")
    accounts = [key("account", number) for number in range(2)]
    both = [{"Get": {"TableName": "Shared", "Key": account}} for account in accounts]
    over = threading.Event()

    def move(call: Call, amount: int) -> None:
        for _ in range(examples(150)):
            movements = [
                {
                    "Update": {
                        "TableName": "Shared",
                        "Key": account,
                        "UpdateExpression": "ADD balance :a SET shade = :s, version = :a",
                        "ExpressionAttributeValues": {
                            ":a": {"N": str(sign * amount)},
                            ":s": {"S": f"shade{amount % 2}"},
                        },
                    }
                }
                for account, sign in zip(accounts, (1, -1), strict=True)
            ]
            call("TransactWriteItems", TransactItems=movements)

    def work(call: Call, amount: int) -> None:
        try:
            move(call, amount)
        finally:
            over.set()

    def read(call: Call) -> None:
        while not over.is_set():
            found = call("TransactGetItems", TransactItems=both)["Responses"]
            total = sum(int(each["Item"]["balance"]["N"]) for each in found if each)
            assert total == 0
            assert crowd.program.database.check() == []

    one, two, three = crowd.fresh_calls()
    in_threads(lambda: work(one, 3), lambda: work(two, 8), lambda: read(three))


def test_an_index_added_by_one_is_kept_by_all(crowd: Crowd) -> None:
    create_table(crowd.calls[0], "Shared")
    expected: dict[str, str] = {}

    def put(call: Call, number: int, group: str) -> None:
        item = item_of("a", f"{number:05}", 1) | {"group": {"S": group}}
        call("PutItem", TableName="Shared", Item=item)
        expected[f"{number:05}"] = group

    def write(turn: int, call: Call) -> None:
        """Move, add and delete, each thread its own items."""
        for number in range(turn, 1200, 12):
            put(call, number, f"moved{number % 3}")
            put(call, number + 5000, "new")
            call("DeleteItem", TableName="Shared", Key=key("a", f"{number + 3:05}"))
            expected.pop(f"{number + 3:05}", None)

    with crowd.program.database.engine.writing:  # one commit for all
        for number in range(1200):
            put(crowd.program, number, "old")
    index = {"AttributeDefinitions": NAMES, "GlobalSecondaryIndexUpdates": [{"Create": INDEX}]}
    crowd.calls[0]("UpdateTable", TableName="Shared", **index)
    calls = enumerate(crowd.fresh_calls())
    in_threads(*(lambda n=n, call=call: write(n, call) for n, call in calls))  # type: ignore[misc]
    for call in crowd.calls:
        wait_for_index(call)
    for call in crowd.calls:
        found = {
            item["sk"]["S"]: group
            for group in ("old", "new", "moved0", "moved1", "moved2")
            for item in everything(
                call,
                "Query",
                TableName="Shared",
                IndexName="by_group",
                KeyConditionExpression="#g = :g",
                ExpressionAttributeNames={"#g": "group"},
                ExpressionAttributeValues={":g": {"S": group}},
            )
        }
        assert found == expected
    drop = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by_group"}}]}
    crowd.calls[1]("UpdateTable", TableName="Shared", **drop)
    for call in crowd.calls:
        put(call, 9000, "late")


def wait_for_index(call: Call) -> None:
    for _ in range(2000):
        table = call("DescribeTable", TableName="Shared")["Table"]
        states = {i["IndexName"]: i["IndexStatus"] for i in table["GlobalSecondaryIndexes"]}
        if states["by_group"] == "ACTIVE":
            return
    raise AssertionError(f"the index never became active: {states}")


def test_a_table_is_made_anew_under_the_feet_of_others(crowd: Crowd) -> None:
    """Whatever the moment, the answer is one that some order of the requests explains."""
    over = threading.Event()

    def rebuild(call: Call) -> None:
        try:
            for number in range(examples(100)):
                create_table(call, "Shared")
                for part in range(10):
                    call("PutItem", TableName="Shared", Item=item_of("a", part, number + 1))
                call("DeleteTable", TableName="Shared")
        finally:
            over.set()

    def use(call: Call) -> None:
        while not over.is_set():
            for operation, request in (
                ("GetItem", {"Key": key("a", 1)}),
                ("Scan", {}),
                (
                    "Query",
                    {
                        "IndexName": "by_shade",
                        "KeyConditionExpression": "shade = :s",
                        "ExpressionAttributeValues": {":s": {"S": "shade1"}},
                    },
                ),
                ("PutItem", {"Item": item_of("b", 1, 1)}),
                ("DescribeTable", {}),
            ):
                try:
                    call(operation, TableName="Shared", **request)
                except Refused as refused:
                    assert refused.code == "ResourceNotFoundException", refused  # noqa: PT017

    maker, *users = crowd.fresh_calls()
    in_threads(lambda: rebuild(maker), *(lambda call=call: use(call) for call in users))  # type: ignore[misc]


def test_a_group_waits_for_a_lock_once(tmp_path: Path) -> None:
    holder = SQLiteStore(tmp_path / "shop.db")
    with Database(Engine(SQLiteStore(tmp_path / "shop.db", busy_timeout=0.3))) as database:
        create_table(Program(database), "Shared")
        puts = [{"TableName": "Shared", "Item": item_of("a", n, 1)} for n in range(1, 21)]
        group = [("PutItem", msgspec.json.encode(put)) for put in puts]
        with holder.transaction():
            began = time.monotonic()
            answers = database.send_many(group)
            assert time.monotonic() - began < 3  # one wait for each would be 6 s
        assert all("was locked by another process" in str(answer) for answer in answers)
        assert database.send_many(group) == [b"{}"] * len(group)
    holder.close()
