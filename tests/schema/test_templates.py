"""Templates that people wrote: functions, parameters, conditions, SAM's tables, global tables; and wrong ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from textwrap import dedent
from typing import Any

import pytest
from tests.schema.test_round_trips import made

from isotone.errors import UsageError
from isotone.schema.cloudformation import logical_names
from isotone.schema.deployable import DeployableTable
from isotone.schema.formats import FORMATS, ReadTables, read_text

KEYS = """\
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
"""


def read_yaml(text: str, parameters: Mapping[str, str]) -> ReadTables:
    return read_text(FORMATS["cloudformation"], text, "t.yaml", parameters)


def read(text: str, **parameters: str) -> ReadTables:
    return read_yaml(dedent(text), parameters)


def table(more: str, head: str = "", **parameters: str) -> DeployableTable:
    """The table with more properties."""
    text = f"{dedent(head)}Resources:\n  Orders:\n    Type: AWS::DynamoDB::Table\n    Properties:\n{KEYS}"
    (found,) = read_yaml(f"{text}      {more}\n", parameters).tables
    return found


def refusal(more: str, head: str = "", **parameters: str) -> str:
    with pytest.raises(UsageError) as caught:
        table(more, head, **parameters)
    return str(caught.value)


PARAMETERS = """\
Parameters:
  Stage: {Type: String, Default: dev}
  Owner: {Type: String}
  Units: {Type: Number, Default: 7}
  Names: {Type: CommaDelimitedList, Default: "a,b"}
Mappings:
  ByStage: {dev: {Name: test}, prod: {Name: live}}
Conditions:
  IsProd: !Equals [!Ref Stage, prod]
  IsTest: !Not [!Condition IsProd]
  Both: !And [!Condition IsProd, !Condition IsTest]
  Any: !Or [!Condition IsProd, !Condition IsTest]
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("!Ref Stage", "dev"),
        ("!Sub orders-${Stage}", "orders-dev"),
        ("!Sub ['${a}-${!Stage}', {a: !Ref Stage}]", "dev-${Stage}"),
        ("!Join ['-', [orders, !Ref Stage]]", "orders-dev"),
        ("!If [IsProd, live, test]", "test"),
        ("!If [Any, !If [Both, x, y], z]", "y"),
        ("!FindInMap [ByStage, !Ref Stage, Name]", "test"),
        ("!Select [1, !Ref Names]", "b"),
        ("{'Fn::Join': ['', ['a', 'b', {Ref: Stage}]]}", "abdev"),
        ("!Ref AWS::NoValue", "Orders"),
        ("!Ref Units", "7"),
    ],
)
def test_functions_are_resolved_by_the_template(name: str, expected: str) -> None:
    assert table(f"TableName: {name}", PARAMETERS).name == expected


@pytest.mark.parametrize("given", [{}, {"Enabled": "true"}])
def test_a_parameter_may_be_a_truth_value_without_quotes(given: dict[str, str]) -> None:
    head = """\
        Parameters: {Enabled: {Type: String, Default: true}}
        Conditions: {IsOn: !Equals [!Ref Enabled, true]}
    """
    properties = "TableName: !If [IsOn, !Sub 'is-${Enabled}', none]"
    assert table(f"{properties}\n      Tags: [{{Key: a, Value: true}}]", head, **given).name == (
        "is-true"
    )


def test_parameters_are_given_from_outside() -> None:
    given = table("TableName: !Sub '${AWS::StackName}-${Owner}-${Stage}'", PARAMETERS, Owner="ann", **{"AWS::StackName": "shop", "Stage": "prod"})  # fmt: skip
    assert given.name == "shop-ann-prod"
    listed = table("TableName: !Select [2, !Ref Names]", PARAMETERS, Names="x,y,z")
    assert listed.name == "z"
    spaced = table("TableName: !Select [1, !Ref Names]", PARAMETERS, Names="xxx, yyy ")
    assert spaced.name == "yyy"


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ("TableName: !Ref Owner", "TableName refers to parameter Owner, which has no default; give it: --parameter Owner=VALUE"),
        ("TableName: !Sub 'a-${AWS::StackName}'", "TableName refers to AWS::StackName, which only a deployment knows; give it: --parameter AWS::StackName=VALUE"),
        ("TableName: !Ref Bucket", "TableName refers to Bucket, which is no parameter; write its value there"),
        ("TableName: !GetAtt Queue.Name", 'TableName is {"Fn::GetAtt": ["Queue", "Name"]}, which only a deployment knows; write its value there'),
        ("TableName: !ImportValue a", 'TableName is {"Fn::ImportValue": "a"}, which only a deployment knows; write its value there'),
        ("TableName: !FindInMap [ByStage, nope, Name]", "TableName finds nothing in the mappings at ByStage.nope"),
        ("TableName: !Select [9, [a]]", "TableName selects element 9 of 1"),
        ("TableName: !If [Nope, a, b]", 'TableName[0] names condition "Nope", which the template does not have'),
        ("TableName: !Join [a]", "TableName has a function with 1 argument instead of 2"),
        ("TableName: [a]", 'TableName must be a text, not ["a"]'),
        ("ProvisionedThroughput: {ReadCapacityUnits: 1}", "ProvisionedThroughput lacks WriteCapacityUnits"),
        ("ProvisionedThroughput: {ReadCapacityUnits: x, WriteCapacityUnits: 1}", 'ProvisionedThroughput.ReadCapacityUnits must be a whole number, not "x"'),
        ("DeletionProtectionEnabled: maybe", 'DeletionProtectionEnabled must be true or false, not "maybe"'),
        ("LocalSecondaryIndexes: {a: b}", 'LocalSecondaryIndexes must be a list, not {"a": "b"}'),
        ("Tags: [x]", 'Tags[0] must be an object, not "x"'),
    ],
)  # fmt: skip
def test_what_a_template_does_not_say_is_named_with_its_place(more: str, error: str) -> None:
    assert refusal(more, PARAMETERS) == f"t.yaml: Resources.Orders.Properties.{error}"


def test_conditions_that_depend_on_themselves_are_refused() -> None:
    head = "Conditions: {A: !Not [!Condition B], B: !Not [!Condition A]}\n"
    assert "which depends on itself" in refusal("TableName: !If [A, a, b]", head)


def test_a_parameter_has_one_of_its_allowed_values() -> None:
    head = """\
    Parameters:
      Tier: {Type: String, Default: small, AllowedValues: [small, large]}
      Units: {Type: Number, Default: 7, AllowedValues: [5, 10]}
    """
    assert (
        table("TableName: !Sub 't-${Tier}'", head, Tier="large").definition["TableName"]
        == "t-large"
    )
    error = refusal("TableName: !Sub 't-${Tier}'", head, Tier="huge")
    assert error.endswith(
        'TableName refers to parameter Tier, which may not be "huge"; allowed: small, large'
    )
    assert "may not be 7; allowed: 5, 10" in refusal("TableName: !Sub 't-${Units}'", head)
    assert table("TableName: !Sub 't-${Units}'", head, Units="10").definition["TableName"] == "t-10"


def test_an_unknown_parameter_is_refused() -> None:
    error = refusal("TableName: a", PARAMETERS, Stgae="prod")
    assert error == "t.yaml has no parameter 'Stgae'; its parameters: Stage, Owner, Units, Names"


def test_settings_of_a_table_are_read() -> None:
    found = table("""TableName: orders
      TimeToLiveSpecification: {AttributeName: expires, Enabled: "true"}
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true, RecoveryPeriodInDays: "7"}
      StreamSpecification: {StreamViewType: NEW_IMAGE}
      SSESpecification: {SSEEnabled: true, SSEType: KMS, KMSMasterKeyId: alias/shop}
      DeletionProtectionEnabled: true
      TableClass: STANDARD
      Tags: [{Key: b, Value: 1}, {Key: a, Value: x}]
      ResourcePolicy: {PolicyDocument: {Version: "2012-10-17", Statement: [{Effect: Allow, Principal: "*", Action: "dynamodb:*", Resource: "*"}]}}
""")
    assert found.definition["TimeToLiveSpecification"]["AttributeName"] == "expires"
    assert found.definition["PointInTimeRecoverySpecification"]["RecoveryPeriodInDays"] == 7
    assert found.definition["StreamSpecification"] == {
        "StreamEnabled": True,
        "StreamViewType": "NEW_IMAGE",
    }
    assert found.definition["SSESpecification"]["KMSMasterKeyId"] == "alias/shop"
    assert found.definition["Tags"] == [{"Key": "a", "Value": "x"}, {"Key": "b", "Value": "1"}]
    assert found.definition["ResourcePolicy"].startswith('{"Version":"2012-10-17","Statement":[{')
    assert "TableClass" not in found.definition
    assert made(found).expiry == "expires"


def test_what_is_not_read_is_said() -> None:
    found = read(
        f"""\
Conditions: {{Never: !Equals [a, b]}}
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
{KEYS}
      KinesisStreamSpecification: {{StreamArn: !GetAtt Stream.Arn}}
  Old:
    Type: AWS::DynamoDB::Table
    Condition: Never
    Properties: {{}}
  Queue: {{Type: AWS::SQS::Queue}}
  Topic: {{Type: AWS::SNS::Topic}}
"""
    )
    assert [each.name for each in found.tables] == ["Orders"]
    assert found.notes == [
        "t.yaml: Resources.Orders.Properties.KinesisStreamSpecification is not read",
        "t.yaml: Resources.Old is not made: its condition is false",
        "t.yaml: not read: 2 other resources",
    ]


def test_simple_tables_of_sam() -> None:
    found = read(
        """\
        Transform: AWS::Serverless-2016-10-31
        Globals: {SimpleTable: {SSESpecification: {SSEEnabled: true}}}
        Resources:
          Sessions: {Type: AWS::Serverless::SimpleTable}
          Users:
            Type: AWS::Serverless::SimpleTable
            Properties:
              TableName: users
              PrimaryKey: {Name: number, Type: Number}
              ProvisionedThroughput: {ReadCapacityUnits: 3, WriteCapacityUnits: 2}
              Tags: {team: shop}
        """
    )
    sessions, users = (each.definition for each in found.tables)
    assert sessions["AttributeDefinitions"] == [{"AttributeName": "id", "AttributeType": "S"}]
    assert (sessions["TableName"], sessions["BillingMode"]) == ("Sessions", "PAY_PER_REQUEST")
    assert sessions["SSESpecification"] == {"Enabled": True, "SSEType": "KMS"}
    assert users["AttributeDefinitions"] == [{"AttributeName": "number", "AttributeType": "N"}]
    assert users["ProvisionedThroughput"] == {"ReadCapacityUnits": 3, "WriteCapacityUnits": 2}
    assert users["Tags"] == [{"Key": "team", "Value": "shop"}]


def test_a_global_table_is_read_as_its_first_replica() -> None:
    """The form is that of `TableV2` of the CDK."""
    index = {
        "IndexName": "by_status",
        "KeySchema": [{"AttributeName": "status", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "WriteProvisionedThroughputSettings": {
            "WriteCapacityAutoScalingSettings": {"MinCapacity": 2, "MaxCapacity": 9}
        },
    }
    properties = {
        "TableName": "orders",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("id", "status")
        ],
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "BillingMode": "PROVISIONED",
        "GlobalSecondaryIndexes": [index],
        "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
        "WriteProvisionedThroughputSettings": {
            "WriteCapacityAutoScalingSettings": {"MinCapacity": 4, "MaxCapacity": 9}
        },
        "Replicas": [
            {
                "Region": {"Ref": "AWS::Region"},
                "DeletionProtectionEnabled": True,
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "ReadProvisionedThroughputSettings": {"ReadCapacityUnits": 6},
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by_status",
                        "ReadProvisionedThroughputSettings": {
                            "ReadCapacityAutoScalingSettings": {"MinCapacity": 3}
                        },
                    }
                ],
            },
            {"Region": "eu-west-1"},
        ],
    }
    text = json.dumps(
        {"Resources": {"A": {"Type": "AWS::DynamoDB::GlobalTable", "Properties": properties}}}
    )
    found = read_text(FORMATS["cloudformation-json"], text, "t.json", {})
    (orders,) = found.tables
    assert orders.definition["ProvisionedThroughput"] == units(6, 4)
    assert orders.definition["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == units(3, 2)
    assert orders.definition["TimeToLiveSpecification"]["AttributeName"] == "expires"
    assert orders.definition["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"]
    assert orders.definition["DeletionProtectionEnabled"] is True
    assert any("Replicas[1] is not read" in note for note in found.notes)
    assert made(orders).table.units == (6, 4)


def units(read: int, write: int) -> dict[str, Any]:
    return {"ReadCapacityUnits": read, "WriteCapacityUnits": write}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("a: &x [1]\nb: *x\n", "t.yaml, line 2: an alias, which CloudFormation has not"),
        ("a: 1\na: 2\n", "t.yaml, line 2: 'a' twice in one object"),
        ("? [a]\n: 1\n", "t.yaml, line 1: a name that is not a text"),
        ("a: [1\n", "t.yaml is not valid YAML: line 2: "),
        ("a: !!python/object:os.system x\n", "t.yaml is not valid YAML: line 1: "),
        ("a\n", 't.yaml: must be an object, not "a"'),
        ("Outputs: {}\n", "t.yaml: has no Resources, so it is no template of CloudFormation"),
        ("Resources: [1]\n", "t.yaml: Resources must be an object, not [1]"),
        ("Resources: {A: {}}\n", "t.yaml: Resources.A lacks Type"),
        ("Resources: {A: {Type: AWS::DynamoDB::Table}}\n", "t.yaml: Resources.A lacks KeySchema"),
        ("[" * 5000, "t.yaml is nested too deeply"),
    ],
)
def test_wrong_templates_are_refused_in_a_sentence(text: str, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_yaml(text, {})
    assert str(caught.value).startswith(error)


def test_a_name_that_is_twice_in_an_object_of_json_is_refused() -> None:
    twice = '{"Resources": {"A": {"Type": "X"}, "A": {"Type": "Y"}}}'
    with pytest.raises(UsageError, match=r"t\.json is not valid JSON: 'A' twice in one object"):
        read_text(FORMATS["cloudformation-json"], twice, "t.json", {})


def test_dates_and_octal_numbers_stay_what_they_look_like() -> None:
    assert table("TableName: 2026-01-02").name == "2026-01-02"


def test_names_of_resources_are_words_and_unique() -> None:
    assert logical_names(["shop", "shop-orders", "shop.orders", "1st", "a_b"]) == [
        *("ShopTable", "ShopOrdersTable", "ShopOrdersTable2", "T1stTable", "ABTable"),
    ]


@pytest.mark.parametrize("key", ["null", "!Ref AWS::NoValue"])
def test_a_simple_table_without_a_key_has_the_usual_one(key: str) -> None:
    resource = f"{{Type: AWS::Serverless::SimpleTable, Properties: {{PrimaryKey: {key}}}}}"
    (found,) = read_yaml(f"Resources: {{A: {resource}}}\n", {}).tables
    assert found.types == {"id": "S"}


def test_a_tag_may_be_a_truth_value_without_quotes() -> None:
    properties = "{Tags: {backup: true, none: !Ref AWS::NoValue}}"
    resource = f"{{Type: AWS::Serverless::SimpleTable, Properties: {properties}}}"
    (found,) = read_yaml(f"Resources: {{A: {resource}}}\n", {}).tables
    assert found.definition["Tags"] == [{"Key": "backup", "Value": "true"}]


def test_a_removed_property_where_one_must_be_is_named_in_words() -> None:
    error = refusal("Tags: [{Key: !Ref AWS::NoValue, Value: a}]")
    assert error.endswith("Properties.Tags[0] lacks Key")
    with pytest.raises(UsageError, match=r"Resources.A.Type must be a text, not nothing$"):
        read_yaml("Resources: {A: {Type: !Ref AWS::NoValue}}\n", {})
