"""Tables: made, described, changed and dropped; indexes added while there is data."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operations.conftest import Asker, key_schema

import isotone
from isotone.errors import ApiError

BY_N: dict[str, Any] = {
    "IndexName": "by-n",
    "KeySchema": key_schema("n"),
    "Projection": {"ProjectionType": "ALL"},
}
N_DEFINED = [{"AttributeName": "n", "AttributeType": "N"}]


def add_index(ask: Asker) -> dict[str, Any]:
    answer = ask(
        "UpdateTable",
        TableName="tab",
        AttributeDefinitions=N_DEFINED,
        GlobalSecondaryIndexUpdates=[{"Create": BY_N}],
    )
    described: dict[str, Any] = answer["TableDescription"]
    return described


def test_a_table_says_creating_and_is_active(ask: Asker) -> None:
    made = ask(
        "CreateTable",
        TableName="tab",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=key_schema("p"),
        ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 2},
    )["TableDescription"]
    assert made["TableStatus"] == "CREATING"
    assert made["TableArn"] == "arn:aws:dynamodb:us-east-1:000000000000:table/tab"
    assert made["ProvisionedThroughput"] == {
        "NumberOfDecreasesToday": 0,
        "ReadCapacityUnits": 3,
        "WriteCapacityUnits": 2,
    }
    table = ask("DescribeTable", TableName="tab")["Table"]
    assert table["TableStatus"] == "ACTIVE"
    assert table == {**made, "TableStatus": "ACTIVE"}


def test_a_name_is_taken_once(ask: Asker) -> None:
    ask.table()
    error = ask.refused(
        "CreateTable",
        TableName="tab",
        AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
        KeySchema=key_schema("p"),
        BillingMode="PAY_PER_REQUEST",
    )
    assert (error.code, error.message) == ("ResourceInUseException", "Table already exists: tab")


def test_a_dropped_table_is_gone_with_its_items(ask: Asker) -> None:
    ask.table()
    ask("PutItem", TableName="tab", Item={"p": {"S": "a"}})
    dropped = ask("DeleteTable", TableName="tab")["TableDescription"]
    assert dropped["TableStatus"] == "DELETING"
    error = ask.refused("DescribeTable", TableName="tab")
    assert error.code == "ResourceNotFoundException"
    assert error.message == "Requested resource not found: Table: tab not found"
    ask.table()
    assert ask("Scan", TableName="tab")["Count"] == 0


def test_a_protected_table_cannot_be_dropped(ask: Asker) -> None:
    ask.table(DeletionProtectionEnabled=True)
    assert ask.refused("DeleteTable", TableName="tab").code == "ValidationException"
    ask("UpdateTable", TableName="tab", DeletionProtectionEnabled=False)
    ask("DeleteTable", TableName="tab")


def test_names_are_listed_in_order_and_in_pages(ask: Asker) -> None:
    for name in ("ccc", "aaa", "bbb"):
        ask.table(name)
    assert ask("ListTables") == {"TableNames": ["aaa", "bbb", "ccc"]}
    first = ask("ListTables", Limit=2)
    assert first == {"TableNames": ["aaa", "bbb"], "LastEvaluatedTableName": "bbb"}
    assert ask("ListTables", ExclusiveStartTableName="bbb") == {"TableNames": ["ccc"]}
    assert ask("ListTables", ExclusiveStartTableName="bba") == {"TableNames": ["bbb", "ccc"]}


def test_an_index_added_to_a_full_table_is_filled(ask: Asker) -> None:
    ask.table()
    for number in range(600):
        ask(
            "PutItem",
            TableName="tab",
            Item={"p": {"S": str(number)}, "n": {"N": str(number % 3)}},
        )
    ask("PutItem", TableName="tab", Item={"p": {"S": "none"}})
    ask("PutItem", TableName="tab", Item={"p": {"S": "text"}, "n": {"S": "not a number"}})
    described = add_index(ask)
    assert described["TableStatus"] == "UPDATING"
    assert described["GlobalSecondaryIndexes"][0]["IndexStatus"] == "CREATING"
    ask.database.finish_maintenance()
    (index,) = ask("DescribeTable", TableName="tab")["Table"]["GlobalSecondaryIndexes"]
    assert (index["IndexStatus"], index["ItemCount"]) == ("ACTIVE", 600)
    page = ask(
        "Query",
        TableName="tab",
        IndexName="by-n",
        KeyConditionExpression="n = :n",
        ExpressionAttributeValues={":n": {"N": "1"}},
    )
    assert page["Count"] == 200


def test_writes_during_a_backfill_are_in_the_index_once(ask: Asker) -> None:
    ask.table()
    for number in range(300):
        ask("PutItem", TableName="tab", Item={"p": {"S": str(number)}, "n": {"N": "1"}})
    with ask.database.engine.writing:  # keeps the background thread out
        add_index(ask)
        for number in range(150):
            ask("DeleteItem", TableName="tab", Key={"p": {"S": str(number)}})
        ask("PutItem", TableName="tab", Item={"p": {"S": "late"}, "n": {"N": "2"}})
    ask.database.finish_maintenance()
    (index,) = ask("DescribeTable", TableName="tab")["Table"]["GlobalSecondaryIndexes"]
    assert index["ItemCount"] == 151


def test_a_dropped_index_is_gone_and_its_attribute_undefined(ask: Asker) -> None:
    ask.table()
    add_index(ask)
    ask.database.finish_maintenance()
    answer = ask(
        "UpdateTable",
        TableName="tab",
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-n"}}],
    )
    [leaving] = answer["TableDescription"]["GlobalSecondaryIndexes"]
    assert (leaving["IndexName"], leaving["IndexStatus"]) == ("by-n", "DELETING")
    table = ask("DescribeTable", TableName="tab")["Table"]
    assert "GlobalSecondaryIndexes" not in table
    assert table["AttributeDefinitions"] == [{"AttributeName": "p", "AttributeType": "S"}]


def test_throughput_that_does_not_change_is_refused(ask: Asker) -> None:
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    ask.table(BillingMode="PROVISIONED", ProvisionedThroughput=units)
    error = ask.refused("UpdateTable", TableName="tab", ProvisionedThroughput=units)
    assert error.code == "ValidationException"
    assert error.message.startswith("The provisioned throughput for the table will not change.")


def test_throughput_remembers_its_changes(ask: Asker) -> None:
    ask.table(
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    ask.clock.advance(60)
    lower = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 5}
    ask("UpdateTable", TableName="tab", ProvisionedThroughput=lower)
    throughput = ask("DescribeTable", TableName="tab")["Table"]["ProvisionedThroughput"]
    assert throughput == {
        **lower,
        "NumberOfDecreasesToday": 1,
        "LastDecreaseDateTime": ask.clock.now(),
    }


def test_billing_moves_between_modes(ask: Asker) -> None:
    ask.table()
    ask(
        "UpdateTable",
        TableName="tab",
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
    )
    table = ask("DescribeTable", TableName="tab")["Table"]
    assert table["BillingModeSummary"] == {
        "BillingMode": "PROVISIONED",
        "LastUpdateToPayPerRequestDateTime": table["CreationDateTime"],
    }
    ask("UpdateTable", TableName="tab", BillingMode="PAY_PER_REQUEST")
    table = ask("DescribeTable", TableName="tab")["Table"]
    assert table["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
    assert table["ProvisionedThroughput"]["ReadCapacityUnits"] == 0


def test_tags_are_added_replaced_listed_and_removed(ask: Asker) -> None:
    ask.table(Tags=[{"Key": "a", "Value": "1"}])
    arn = ask("DescribeTable", TableName="tab")["Table"]["TableArn"]
    ask(
        "TagResource", ResourceArn=arn, Tags=[{"Key": "a", "Value": "2"}, {"Key": "b", "Value": ""}]
    )
    assert ask("ListTagsOfResource", ResourceArn=arn)["Tags"] == [
        {"Key": "a", "Value": "2"},
        {"Key": "b", "Value": ""},
    ]
    ask("UntagResource", ResourceArn=arn, TagKeys=["a", "never there"])
    assert ask("ListTagsOfResource", ResourceArn=arn)["Tags"] == [{"Key": "b", "Value": ""}]


@pytest.mark.parametrize("token", [{}, {"NextToken": "10"}, {"NextToken": ""}])
def test_all_tags_come_at_once(ask: Asker, token: dict[str, str]) -> None:
    tags = [{"Key": f"k{number:02}", "Value": ""} for number in range(50)]
    ask.table(Tags=tags)
    arn = ask("DescribeTable", TableName="tab")["Table"]["TableArn"]
    assert ask("ListTagsOfResource", ResourceArn=arn, **token) == {"Tags": tags}


def test_a_table_answers_to_its_arn(ask: Asker) -> None:
    ask.table()
    arn = ask("DescribeTable", TableName="tab")["Table"]["TableArn"]
    ask("PutItem", TableName=arn, Item={"p": {"S": "a"}})
    assert ask("GetItem", TableName="tab", Key={"p": {"S": "a"}})["Item"] == {"p": {"S": "a"}}


def test_multi_attribute_index_keys(ask: Asker) -> None:
    """Up to four attributes in each part of a global index's key (November 2025)."""
    ask.table(
        types={"a": "S", "b": "N", "c": "S", "d": "N"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "wide",
                "KeySchema": [
                    {"AttributeName": "a", "KeyType": "HASH"},
                    {"AttributeName": "b", "KeyType": "HASH"},
                    {"AttributeName": "c", "KeyType": "RANGE"},
                    {"AttributeName": "d", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    for number in range(20):
        item = {
            "p": {"S": str(number)},
            "a": {"S": "x"},
            "b": {"N": str(number % 2)},
            "c": {"S": "open" if number < 10 else "shut"},
            "d": {"N": str(number)},
        }
        ask("PutItem", TableName="tab", Item=item)
    del item["d"]
    ask("PutItem", TableName="tab", Item={**item, "p": {"S": "sparse"}})
    page = ask(
        "Query",
        TableName="tab",
        IndexName="wide",
        KeyConditionExpression="a = :a AND b = :b AND c = :c AND d > :d",
        ExpressionAttributeValues={
            ":a": {"S": "x"},
            ":b": {"N": "1"},
            ":c": {"S": "open"},
            ":d": {"N": "3"},
        },
    )
    assert [item["d"]["N"] for item in page["Items"]] == ["5", "7", "9"]
    assert (
        ask("DescribeTable", TableName="tab")["Table"]["GlobalSecondaryIndexes"][0]["ItemCount"]
        == 20
    )


def update_refused(ask: Asker, **changes: Any) -> tuple[str, str]:
    error = ask.refused("UpdateTable", TableName="tab", **changes)
    return error.code, error.message


def test_an_attribute_keeps_the_type_of_its_key(ask: Asker) -> None:
    ask.table()
    assert update_refused(
        ask,
        AttributeDefinitions=[*N_DEFINED, {"AttributeName": "p", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[{"Create": BY_N}],
    ) == (
        "ValidationException",
        "invalid attribute, SchemaElement redefined should be of same type as previously defined",
    )


def test_an_index_has_throughput_exactly_where_its_table_has(ask: Asker) -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    ask.table(types={"n": "N"}, GlobalSecondaryIndexes=[BY_N])
    invalid = "One or more parameter values were invalid: "
    assert update_refused(ask, BillingMode="PROVISIONED", ProvisionedThroughput=units) == (
        "ValidationException",
        invalid + "ProvisionedThroughput must be specified for index: by-n",
    )
    update = {"Update": {"IndexName": "by-n", "ProvisionedThroughput": units}}
    assert update_refused(ask, GlobalSecondaryIndexUpdates=[update]) == (
        "ValidationException",
        invalid + "ProvisionedThroughput should not be specified for index: by-n "
        "when BillingMode is PAY_PER_REQUEST",
    )
    assert update_refused(ask, ProvisionedThroughput=units) == (
        "ValidationException",
        invalid + "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified "
        "when BillingMode is PAY_PER_REQUEST",
    )
    ask(
        "UpdateTable",
        TableName="tab",
        BillingMode="PROVISIONED",
        ProvisionedThroughput=units,
        GlobalSecondaryIndexUpdates=[update],
    )
    second = {**BY_N, "IndexName": "second"}
    assert update_refused(
        ask,
        AttributeDefinitions=N_DEFINED,
        GlobalSecondaryIndexUpdates=[{"Create": second}],
    ) == (
        "ValidationException",
        invalid + "ProvisionedThroughput is not specified for index: second",
    )


def test_a_table_has_twenty_global_indexes_at_most(ask: Asker) -> None:
    indexes = [{**BY_N, "IndexName": f"by-n-{number}"} for number in range(20)]
    ask.table(types={"n": "N"}, GlobalSecondaryIndexes=indexes)
    assert update_refused(
        ask, AttributeDefinitions=N_DEFINED, GlobalSecondaryIndexUpdates=[{"Create": BY_N}]
    ) == ("LimitExceededException", "Number of global secondary indexes exceeds per-table limit")


def tag(key: str, value: str = "") -> dict[str, str]:
    return {"Key": key, "Value": value}


BAD_TAGS = [
    ([tag("a#b")], "character that is not allowed"),
    ([tag("a", "b;c")], "character that is not allowed"),
    ([tag("AWS:a")], "reserved"),
    ([tag("a"), tag("b"), tag("a", "x")], "Duplicate tag key: a"),
    ([tag(str(number)) for number in range(51)], "Too many tags: tag limit is 50"),
]


@pytest.mark.parametrize(("tags", "words"), BAD_TAGS)
def test_tags_are_checked_wherever_they_come_from(
    ask: Asker, tags: list[dict[str, str]], words: str
) -> None:
    ask.table("abc")
    table = ask("DescribeTable", TableName="abc")["Table"]["TableArn"]
    assert words in ask.refused("TagResource", ResourceArn=table, Tags=tags).message
    create = {
        "TableName": "tagged",
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
        "KeySchema": key_schema("p"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    assert words in ask.refused("CreateTable", **create, Tags=tags).message
    ask("CreateTable", **create, Tags=[tag("é k_.:/=+-@", "1 2")])


def test_a_projection_names_an_attribute_once(ask: Asker) -> None:
    index = {
        "IndexName": "by-g",
        "KeySchema": key_schema("g"),
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a", "b", "a"]},
    }
    with pytest.raises(ApiError, match="Duplicate value in attribute name: a"):
        ask.table("abc", types={"g": "S"}, GlobalSecondaryIndexes=[index])


def test_the_answer_of_a_deletion_is_short(ask: Asker) -> None:
    ask.table("abc")
    described = ask("DeleteTable", TableName="abc")["TableDescription"]
    assert described["TableStatus"] == "DELETING"
    assert described.keys().isdisjoint({"KeySchema", "AttributeDefinitions", "CreationDateTime"})


def test_tagging_answers_without_a_body(ask: Asker) -> None:
    ask.table("abc")
    table = ask("DescribeTable", TableName="abc")["Table"]["TableArn"]
    body = ask.body(ResourceArn=table, Tags=[tag("a")])
    assert ask.database.send("TagResource", body) == b""
    assert ask.database.execute("UntagResource", {"ResourceArn": table, "TagKeys": ["a"]}) == {}


@pytest.mark.parametrize(
    ("region", "partition", "domain"),
    [
        ("eu-west-1", "aws", "amazonaws.com"),
        ("cn-north-1", "aws-cn", "amazonaws.com.cn"),
        ("us-gov-west-1", "aws-us-gov", "amazonaws.com"),
        ("us-isob-east-1", "aws-iso-b", "amazonaws.com"),
    ],
)
def test_arns_are_of_the_regions_partition(region: str, partition: str, domain: str) -> None:
    with isotone.open(region=region, account="123456789012") as database:
        ask = Asker(database, isotone.ManualClock())
        stream = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
        ask.table("abc", StreamSpecification=stream, SSESpecification={"Enabled": True})
        described = ask("DescribeTable", TableName="abc")["Table"]
        place = f"{region}:123456789012:"
        assert described["TableArn"] == f"arn:{partition}:dynamodb:{place}table/abc"
        assert described["LatestStreamArn"].startswith(described["TableArn"] + "/stream/")
        key = described["SSEDescription"]["KMSMasterKeyArn"]
        assert key.startswith(f"arn:{partition}:kms:{place}key/")
        assert ask("ListTagsOfResource", ResourceArn=described["TableArn"]) == {"Tags": []}
        assert ask("DescribeTable", TableName=described["TableArn"])["Table"] == described
        (endpoint,) = ask("DescribeEndpoints")["Endpoints"]
        assert endpoint["Address"] == f"dynamodb.{region}.{domain}"


@pytest.mark.parametrize(
    ("named", "shown"),
    [
        ("0a1b", "arn:aws:kms:us-east-1:000000000000:key/0a1b"),
        ("alias/mine", "arn:aws:kms:us-east-1:000000000000:alias/mine"),
        ("arn:aws:kms:eu-west-1:1:key/0a1b", "arn:aws:kms:eu-west-1:1:key/0a1b"),
    ],
)
def test_a_key_of_kms_is_shown_by_its_arn(ask: Asker, named: str, shown: str) -> None:
    ask.table(SSESpecification={"Enabled": True, "SSEType": "KMS", "KMSMasterKeyId": named})
    described = ask("DescribeTable", TableName="tab")["Table"]["SSEDescription"]
    assert described["KMSMasterKeyArn"] == shown


@pytest.mark.parametrize(
    ("billing", "maximums", "words"),
    [
        ("PAY_PER_REQUEST", {"MaxReadRequestUnits": 0}, "outside of valid range"),
        ("PAY_PER_REQUEST", {"MaxWriteRequestUnits": -2}, "outside of valid range"),
        ("PROVISIONED", {"MaxWriteRequestUnits": 5}, "when table BillingMode is PROVISIONED."),
    ],
)
def test_a_maximum_is_for_tables_on_demand(
    ask: Asker, billing: str, maximums: dict[str, int], words: str
) -> None:
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    more = {"ProvisionedThroughput": units} if billing == "PROVISIONED" else {}
    with pytest.raises(ApiError, match=words):
        ask.table(BillingMode=billing, OnDemandThroughput=maximums, **more)
    ask.table(OnDemandThroughput={"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 5})
    update = {"TableName": "tab", "OnDemandThroughput": maximums, "BillingMode": billing, **more}
    assert words in ask.refused("UpdateTable", **update).message


def test_a_maximum_of_an_index_is_for_tables_on_demand(ask: Asker) -> None:
    index = {
        "IndexName": "by_g",
        "KeySchema": key_schema("g"),
        "Projection": {"ProjectionType": "ALL"},
        "OnDemandThroughput": {"MaxReadRequestUnits": 0},
    }
    words = (
        "One or more parameter values were invalid: Requested MaxReadRequestUnits for "
        "OnDemandThroughput for index by_g is outside of valid range"
    )
    with pytest.raises(ApiError, match=words):
        ask.table(types={"g": "S"}, GlobalSecondaryIndexes=[index])
    ask.table()
    update = {
        "AttributeDefinitions": [{"AttributeName": "g", "AttributeType": "S"}],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }
    assert ask.refused("UpdateTable", TableName="tab", **update).message == words
    assert (
        ask.refused("UpdateTable", TableName="none", **update).code == "ResourceNotFoundException"
    )


@pytest.mark.parametrize(
    ("member", "updates", "words"),
    [
        (
            "ReplicaUpdates",
            [{}],
            "One of ReplicationGroupUpdate.Create, ReplicationGroupUpdate.Update, "
            "ReplicationGroupUpdate.Delete must not be null",
        ),
        (
            "ReplicaUpdates",
            [{"Create": {"RegionName": "eu-west-1"}, "Delete": {"RegionName": "eu-west-1"}}],
            "Only one of ReplicationGroupUpdate.Create, ReplicationGroupUpdate.Update, "
            "ReplicationGroupUpdate.Delete may not be null",
        ),
        (
            "GlobalTableWitnessUpdates",
            [{}],
            "One of GlobalTableWitnessGroupUpdate.Create, GlobalTableWitnessGroupUpdate.Delete "
            "must not be null",
        ),
    ],
)
def test_an_update_of_a_replica_has_one_action(
    ask: Asker, member: str, updates: list[dict[str, Any]], words: str
) -> None:
    ask.table()
    refused = ask.refused("UpdateTable", TableName="tab", **{member: updates})
    assert refused.message == f"One or more parameter values were invalid: {words}"
    assert "StreamSpecification" not in ask("DescribeTable", TableName="tab")["Table"]


def test_a_name_that_is_no_arn_is_found_before_too_many_updates_of_indexes(ask: Asker) -> None:
    deletes = [{"Delete": {"IndexName": name}} for name in ("one", "two")]
    wrong = "arn:aws:dynamodb:us-east-1:1:table/x"
    error = ask.refused("UpdateTable", TableName=wrong, GlobalSecondaryIndexUpdates=deletes)
    assert error.message == f"Invalid table ARN: {wrong}"
