"""The AWS CLI, one process a command, as scripts call it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from tests.sdks import orders
from tests.sdks.install import HOW, aws_command
from tests.sdks.orders import order

COMMAND = aws_command()

pytestmark = pytest.mark.skipif(COMMAND is None, reason=f"the AWS CLI is not installed; {HOW}")

Aws = Callable[..., Any]


class Refused(Exception):
    """The CLI ended with an error, which it printed."""


@pytest.fixture
def aws(url: str, account: None) -> Aws:
    """`aws dynamodb …` with its answer parsed; an argument that is no string is given as JSON."""

    def run(action: str, **options: Any) -> Any:
        words = []
        for name, value in options.items():
            words.append("--" + name.replace("_", "-"))
            if value is not True:
                words.append(value if isinstance(value, str) else json.dumps(value))
        done = subprocess.run(
            [*(COMMAND or ()), "dynamodb", *action.split(), *words],
            env={**os.environ, "AWS_ENDPOINT_URL_DYNAMODB": url, "AWS_PAGER": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise Refused(done.stderr)
        return json.loads(done.stdout) if done.stdout.strip() else {}

    return run


def wire(number: int) -> dict[str, Any]:
    """An order without its binary values, in DynamoDB JSON."""
    item = order(number)
    return orders.wire_item({name: item[name] for name in item if name not in ("photo", "blobs")})


def key(number: int) -> dict[str, Any]:
    return orders.wire_item(orders.key(order(number)))


def times(answer: Any) -> list[str]:
    return [item["placed_at"]["S"] for item in answer["Items"]]


def test_tables(aws: Aws, name: str) -> None:
    definition = orders.definition(name)
    made = aws("create-table", cli_input_json=definition)["TableDescription"]
    assert made["TableName"] == name
    aws("wait table-exists", table_name=name)
    assert name in aws("list-tables", page_size="1")["TableNames"]
    arn = aws("describe-table", table_name=name, query="Table.TableArn")
    aws("tag-resource", resource_arn=arn, tags="Key=team,Value=shop")
    assert aws("list-tags-of-resource", resource_arn=arn)["Tags"] == [
        {"Key": "team", "Value": "shop"}
    ]
    setting = "Enabled=true,AttributeName=expires"
    aws("update-time-to-live", table_name=name, time_to_live_specification=setting)
    described = aws("describe-time-to-live", table_name=name)["TimeToLiveDescription"]
    assert described["AttributeName"] == "expires"
    aws("delete-table", table_name=name)
    aws("wait table-not-exists", table_name=name)
    with pytest.raises(Refused, match=r"\(ResourceNotFoundException\) when calling the Describe"):
        aws("describe-table", table_name=name)


def test_items_and_conditions(aws: Aws, client: Any, name: str) -> None:
    client.create_table(**orders.definition(name))
    aws("put-item", table_name=name, item={**wire(1), "photo": {"B": "a photo"}})
    found = aws("get-item", table_name=name, key=key(1), consistent_read=True)["Item"]
    photo = found.pop("photo")
    assert orders.natural_item(found) == orders.natural_item(wire(1))
    # This CLI takes binary values as they are and prints them in base64.
    assert photo == {"B": "YSBwaG90bw=="}
    update = {
        "table_name": name,
        "key": key(1),
        "update_expression": "SET #s = :new, amount = amount + :n",
        "condition_expression": "#s = :old",
        "expression_attribute_names": {"#s": "status"},
        "expression_attribute_values": {
            ":new": {"S": "sent"},
            ":old": {"S": "paid"},
            ":n": {"N": "1e-3"},
        },
    }
    changed = aws("update-item", **update, return_values="UPDATED_NEW")["Attributes"]
    assert changed == {"status": {"S": "sent"}, "amount": {"N": "-1.749"}}
    with pytest.raises(Refused, match="The conditional request failed"):
        aws("update-item", **update)
    gone = aws("delete-item", table_name=name, key=key(1), return_values="ALL_OLD")
    assert gone["Attributes"]["status"] == {"S": "sent"}
    assert aws("get-item", table_name=name, key=key(1)) == {}


def test_batches_transactions_and_pages(aws: Aws, client: Any, name: str) -> None:
    client.create_table(**orders.definition(name))
    puts = [{"PutRequest": {"Item": wire(number)}} for number in range(20)]
    assert aws("batch-write-item", request_items={name: puts})["UnprocessedItems"] == {}
    put = {"Put": {"TableName": name, "Item": wire(20)}}
    check = {
        "ConditionCheck": {
            "TableName": name,
            "Key": key(21),
            "ConditionExpression": "attribute_exists(customer)",
        }
    }
    with pytest.raises(Refused, match=r"specific reasons \[None, ConditionalCheckFailed\]"):
        aws("transact-write-items", transact_items=[put, check])
    aws("transact-write-items", transact_items=[put])
    query = {
        "table_name": name,
        "key_condition_expression": "customer = :c",
        "expression_attribute_values": {":c": {"S": "böb"}},
    }
    forward = aws("query", **query, page_size="2")
    assert times(forward) == [order(number)["placed_at"] for number in range(1, 20, 2)]
    backward = aws("query", **query, no_scan_index_forward=True, max_items="3")
    assert times(backward) == times(forward)[:-4:-1]
    rest = aws("query", **query, no_scan_index_forward=True, starting_token=backward["NextToken"])
    assert times(rest) == times(forward)[-4::-1]
    by_status = aws(
        "query",
        table_name=name,
        index_name="by_status",
        key_condition_expression="#s = :s",
        expression_attribute_names={"#s": "status"},
        expression_attribute_values={":s": {"S": "open"}},
        page_size="1",
    )
    assert sorted(times(by_status)) == [order(number)["placed_at"] for number in range(0, 21, 3)]
    assert aws("scan", table_name=name, select="COUNT")["Count"] == 21
    parts = [aws("scan", table_name=name, segment=str(n), total_segments="2") for n in (0, 1)]
    assert sorted(time for part in parts for time in times(part)) == [
        order(number)["placed_at"] for number in range(21)
    ]
    keys = {"Keys": [key(number) for number in (3, 20, 21)]}
    assert len(aws("batch-get-item", request_items={name: keys})["Responses"][name]) == 2


def test_statements_and_backups(aws: Aws, client: Any, name: str) -> None:
    client.create_table(**orders.definition(name))
    item = {name: value for name, value in wire(0).items() if name in ("customer", "placed_at")}
    insert = f"INSERT INTO \"{name}\" VALUE {{'customer': ?, 'placed_at': ?}}"
    aws("execute-statement", statement=insert, parameters=list(item.values()))
    with pytest.raises(Refused, match="Duplicate primary key exists in table"):
        aws("execute-statement", statement=insert, parameters=list(item.values()))
    select = f"SELECT * FROM \"{name}\" WHERE customer = 'ann'"
    assert aws("execute-statement", statement=select)["Items"] == [item]
    arn = aws(
        "create-backup", table_name=name, backup_name="nightly", query="BackupDetails.BackupArn"
    )
    listed = aws("list-backups", table_name=name)["BackupSummaries"]
    assert [each["BackupArn"] for each in listed] == [arn]
    delete = {
        "Statement": f'DELETE FROM "{name}" WHERE customer = ? AND placed_at = ?',
        "Parameters": list(item.values()),
    }
    aws("execute-transaction", transact_statements=[delete])
    assert aws("get-item", table_name=name, key=key(0)) == {}
    restored = f"{name}-restored"
    aws("restore-table-from-backup", target_table_name=restored, backup_arn=arn)
    aws("wait table-exists", table_name=restored)
    assert aws("get-item", table_name=restored, key=key(0))["Item"] == item
    aws("delete-backup", backup_arn=arn)
    points = {"PointInTimeRecoveryEnabled": True}
    aws("update-continuous-backups", table_name=name, point_in_time_recovery_specification=points)
    described = aws("describe-continuous-backups", table_name=name)["ContinuousBackupsDescription"]
    assert described["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
