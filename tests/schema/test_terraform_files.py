"""Terraform's files that people wrote: variables, locals, functions, policies; and wrong ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.schema.test_round_trips import made

from isotone.errors import UsageError
from isotone.schema.deployable import DeployableTable
from isotone.schema.formats import FORMATS, ReadTables, read_file, read_text


def read(text: str, parameters: Mapping[str, str]) -> ReadTables:
    return read_text(FORMATS["terraform"], text, "t.tf", parameters)


HEAD = """\
variable "stage" {
  type    = string
  default = "dev"
}
variable "owner" {}
variable "names" { default = ["a", "b"] }
locals {
  prefix = "shop-${var.stage}"
  tags   = { team = "shop", stage = var.stage }
  loop   = local.loop
  deep   = { list = [{ name = "n1" }] }
  five   = 5.0
  small  = 0.00000015
  negative = -5.0
  by_number = { "${local.five}" = "five" }
}
"""


def table(more: str, name: str = '"orders"', **parameters: str) -> DeployableTable:
    (found,) = read(HEAD + resource(more, name), parameters).tables
    return found


def resource(more: str, name: str = '"orders"') -> str:
    return f"""
resource "aws_dynamodb_table" "orders" {{
  name         = {name}
  billing_mode = "PAY_PER_REQUEST"
  hash_key     = "id"
  attribute {{
    name = "id"
    type = "S"
  }}
  {more}
}}
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("var.stage", "dev"),
        ('"${var.stage}"', "dev"),
        ('"${local.prefix}-orders"', "shop-dev-orders"),
        ('"a-${var.names[1]}"', "a-b"),
        ("local.tags.team", "shop"),
        ('local.tags["team"]', "shop"),
        ("local.deep.list[0].name", "n1"),
        ("(var.stage)", "dev"),
        ('upper("${var.stage}x")', "DEVX"),
        ('join("-", concat(var.names, ["c"]))', "a-b-c"),
        ('"$${literal}"', "${literal}"),
        ('"q\\"\\u00e4"', 'q"ä'),
        ('"${"in}ner"}"', "in}ner"),
        ('var.stage == "dev" ? "a" : "b"', "a"),
        ('var.stage != "dev" ? "a" : (true ? "x:y" : "z")', "x:y"),
        ('false ? "a" : upper(var.stage) == "DEV" ? "b?" : "c"', "b?"),
        ('"\\ud800"', "\ufffd"),
        ("tostring(true)", "true"),
        ('tostring(var.stage == "dev")', "true"),
        ('tostring(upper(var.stage) != "DEV")', "false"),
        ('"orders-${local.five}"', "orders-5"),
        ('"orders-${5.0}-${5.10}-${1e3}-${2E+2}-${15e-1}"', "orders-5-5.1-1000-200-1.5"),
        ('"${local.small}-x"', "0.00000015-x"),
        ('"a-${1e23}"', "a-100000000000000000000000"),
        ("tostring(local.five)", "5"),
        ('"a-${local.negative}"', "a--5"),
        ('upper("${local.five}a")', "5A"),
        ('join("-", ["a", 5.0, true], [2.50])', "a-5-true-2.5"),
        ('local.by_number["5"]', "five"),
        ('local.five == 5 ? "same" : "other"', "same"),
    ],
)
def test_expressions_are_resolved_by_the_file(name: str, expected: str) -> None:
    assert table("", name).name == expected


@pytest.mark.parametrize("given", [{}, {"n": "5.0"}, {"n": "5"}])
def test_a_number_in_a_name_is_written_as_terraform_writes_it(given: dict[str, str]) -> None:
    text = 'variable "n" { default = 5.0 }\n' + resource("", '"orders-${var.n}"')
    assert [each.name for each in read(text, given).tables] == ["orders-5"]


@pytest.mark.parametrize("call", ['join("-", [null])', "upper(null)", "tostring([1])"])
def test_what_is_no_text_is_no_argument(call: str) -> None:
    with pytest.raises(UsageError, match="with arguments that it does not take"):
        table("", call)


@pytest.mark.parametrize("declared", ["type = {kind}", "default = {default}"])
@pytest.mark.parametrize(
    ("kind", "default", "given", "condition"),
    [("number", "1", "5", "var.v == 5"), ("bool", "false", "true", "var.v")],
)
def test_what_is_given_has_the_type_of_its_variable(
    declared: str, kind: str, default: str, given: str, condition: str
) -> None:
    head = f'variable "v" {{ {declared.format(kind=kind, default=default)} }}\n'
    text = head + resource("", f'{condition} ? "yes" : "no"')
    assert [each.name for each in read(text, {"v": given}).tables] == ["yes"]


def test_a_number_that_is_none_is_refused_with_its_place() -> None:
    text = 'variable "v" { type = number }\n' + resource("", "var.v")
    with pytest.raises(UsageError, match=r'orders\.name is "many", which is not known here'):
        read(text, {"v": "many"})


def test_variables_are_given_from_outside() -> None:
    assert table("", '"${var.owner}-${local.prefix}"', owner="${x}", stage="prod").name == (
        "${x}-shop-prod"
    )


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("var.owner", "name refers to var.owner, which has no default; give it: --parameter owner=VALUE"),
        ("var.nope", "name refers to var.nope, which has no default; give it: --parameter nope=VALUE"),
        ("local.nope", 'name is "local.nope", which is not known here; write its value there'),
        ("aws_kms_key.a.arn", 'name is "aws_kms_key.a.arn", which is not known here; write its value there'),
        ("var.names[7]", "name is \"var.names[7]\", and there is no '7'"),
        ("local.loop", "name refers to itself, through variables or locals"),
        ('replace("a", "b", "c")', "name calls replace(), which is not computed; write its value there"),
        ("lower()", 'name calls lower() with arguments that it does not take: ""'),
        ('var.stage ? "a" : "b"', 'name depends on "var.stage", which is not true or false'),
        ('var.stage == "dev" && true ? "a" : "b"', 'name is "\\"dev\\" && true", which is not known here; write its value there'),
        ('"a-${var.names}"', 'name has something else than a text in "a-${var.names}"'),
        ('"%{ if true }a%{ endif }"', 'name has a directive, which is not computed: "%{ if true }a%{ endif }"'),
        ('["a"]', 'name must be a text, not ["\\"a\\""]'),
    ],
)  # fmt: skip
def test_what_a_file_does_not_say_is_named_with_its_place(name: str, error: str) -> None:
    with pytest.raises(UsageError) as caught:
        table("", name)
    assert str(caught.value) == f"t.tf: aws_dynamodb_table.orders.{error}"


def test_settings_of_a_table_are_read() -> None:
    found = table(
        """
  range_key                   = null
  stream_enabled              = true
  stream_view_type            = "OLD_IMAGE"
  deletion_protection_enabled = true
  tags                        = merge(local.tags, { "a:b" = "c" })

  attribute {
    name = "at"
    type = "N"
  }
  ttl {
    attribute_name = "expires"
    enabled        = true
  }
  point_in_time_recovery { enabled = true }
  server_side_encryption { enabled = var.stage != "dev" }
  global_secondary_index {
    name               = "by_at"
    projection_type    = "INCLUDE"
    non_key_attributes = ["total"]
    key_schema {
      attribute_name = "id"
      key_type       = "HASH"
    }
    key_schema {
      attribute_name = "at"
      key_type       = "RANGE"
    }
  }
  lifecycle { prevent_destroy = true }
"""
    )
    assert found.definition["TimeToLiveSpecification"]["AttributeName"] == "expires"
    assert found.definition["PointInTimeRecoverySpecification"] == {
        "PointInTimeRecoveryEnabled": True
    }
    assert "SSESpecification" not in found.definition
    assert [tag["Key"] for tag in found.definition["Tags"]] == ["a:b", "stage", "team"]
    (index,) = made(found).table.indexes
    assert (index.key.names, index.projection) == (("id", "at"), ("total",))


def test_a_policy_belongs_to_its_table() -> None:
    policy = """
resource "aws_dynamodb_resource_policy" "orders" {
  resource_arn = aws_dynamodb_table.orders.arn
  policy       = jsonencode({ Version = "2012-10-17", Statement = [] })
}
resource "aws_dynamodb_resource_policy" "other" {
  resource_arn = aws_dynamodb_table.other.arn
  policy       = "{}"
}
resource "aws_sqs_queue" "queue" {}
module "vpc" { source = "x" }
"""
    found = read(HEAD + resource("") + policy, {})
    assert found.tables[0].definition["ResourcePolicy"] == '{"Version":"2012-10-17","Statement":[]}'
    assert found.notes == ["t.tf: not read: 3 other resources"]


def test_what_is_not_read_is_said() -> None:
    found = read(resource("replica { region_name = var.region }\n  count = 2"), {})
    assert found.notes == [
        "t.tf: aws_dynamodb_table.orders.replica is not read",
        "t.tf: aws_dynamodb_table.orders.count is not read",
    ]


def test_a_folder_is_read_as_one_configuration(tmp_path: Path) -> None:
    (tmp_path / "variables.tf").write_text('variable "name" { default = "orders" }', "utf-8")
    (tmp_path / "tables.tf").write_text(resource("", "var.name"), "utf-8")
    (tmp_path / "notes.txt").write_text("not Terraform", "utf-8")
    assert [each.name for each in read_file(str(tmp_path), {}).tables] == ["orders"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("resource {{{", "t.tf is not valid Terraform: "),
        ("a = = 1", "t.tf is not valid Terraform: "),
        ('resource "aws_dynamodb_table" "a" {}', "t.tf: aws_dynamodb_table.a lacks name"),
        (resource('dynamic "attribute" {\n for_each = []\n content {}\n }'), "t.tf: aws_dynamodb_table.orders has a dynamic block"),
        (resource("").replace('hash_key     = "id"', ""), "t.tf: aws_dynamodb_table.orders lacks the hash_key of orders"),
        (resource("tags = [1]"), "t.tf: aws_dynamodb_table.orders.tags must be an object, not [1]"),
        (resource("attribute = 5"), "t.tf: aws_dynamodb_table.orders.attribute must be a list, not 5"),
        ('resource "aws_dynamodb_table" "a" "b" {}', "t.tf: aws_dynamodb_table.a lacks name"),
        (resource("") + resource("", '"lines"'), "t.tf: aws_dynamodb_table.orders is defined twice"),
        ('variable "a" {}\nvariable "a" {}', "t.tf: variable.a is defined twice"),
        ("locals {\n a = 1\n}\nlocals {\n a = 2\n}", "t.tf: local.a is defined twice"),
        ("variable = 5", ""),
        ("resource = [1]", ""),
        ('resource "aws_dynamodb_table" { name = 1 }', ""),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_in_a_sentence(text: str, error: str) -> None:
    if not error:
        assert read(text, {}).tables == []
        return
    with pytest.raises(UsageError) as caught:
        read(text, {})
    assert str(caught.value).startswith(error)
