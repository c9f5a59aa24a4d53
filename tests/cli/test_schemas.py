"""`isotone schema`, and files of definitions given to `isotone model`: sources, formats, options, and bad files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import Run

from isotone import Attr, Entity, Key, Table, connect, field
from isotone import open as opened
from isotone.schema.formats import FORMATS

customers = Table("customers")


class Customer(Entity, table=customers):
    """A customer with a unique value."""

    name: Attr[str] = field()
    mail: Attr[str] = field(unique=True)
    note: Attr[str] = field(default="")

    primary = Key("CUSTOMER", name).sort("PROFILE")


MODULE = """
from datetime import datetime

from isotone import Attr, Entity, Global, Index, Key, Local, Table, Vector, VectorIndex, expires, field, vector

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")}, stream="NEW_IMAGE")
notes = Table("notes", partition="id", sort=None)


class Order(Entity, table=shop):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[str] = field()
    total: Attr[int] = field(name="t")
    ends: Attr[datetime | None] = expires(default=None)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("GSI1", "STATUS", status).sort(number)


class Note(Entity, table=notes):
    id: Attr[str] = field()
    embedding: Attr[Vector] = vector(3)

    primary = Key(id)
    near = VectorIndex(embedding)
"""
TEMPLATE = """\
Parameters: {Stage: {Type: String}}
Resources:
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub orders-${Stage}
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}, {AttributeName: at, AttributeType: N}]
      KeySchema: [{AttributeName: id, KeyType: HASH}, {AttributeName: at, KeyType: RANGE}]
      BillingMode: PAY_PER_REQUEST
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own with a module; the name differs, since modules stay imported."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{name_of(tmp_path)}.py").write_text(MODULE, "utf-8")
    return tmp_path


def name_of(folder: Path) -> str:
    return "shop_" + "".join(each if each.isalnum() else "_" for each in folder.name)


@pytest.fixture
def module(folder: Path) -> str:
    return name_of(folder)


def test_requests_of_create_table_are_printed(isotone: Run, module: str) -> None:
    code, out, err = isotone("schema", f"{module}:Order")
    request = json.loads(out)
    assert code == 0
    assert (request["TableName"], request["BillingMode"]) == ("shop", "PAY_PER_REQUEST")
    assert (
        err
        == "note: shop: CreateTable's request in JSON cannot express time to live by '_expires'\n"
    )
    assert [each["TableName"] for each in json.loads(isotone("schema", module).out)] == [
        *("shop", "notes"),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_each_format_is_written_alike_by_option_and_by_ending(
    isotone: Run, module: str, folder: Path, form: str
) -> None:
    code, out, _ = isotone("schema", f"{module}:Order", "--format", form)
    assert code == 0
    file = folder / f"out{FORMATS[form].endings[0]}"
    assert isotone("schema", f"{module}:Order", "--format", form, "--output", file).code == 0
    dated = "Date"
    written = file.read_text("utf-8").splitlines()
    assert [each for each in written if dated not in each] == [
        each for each in out.splitlines() if dated not in each
    ]


def test_what_a_format_lacks_is_said(isotone: Run, module: str) -> None:
    assert isotone("schema", module, "--format", "cloudformation").err == ""
    assert isotone("schema", module, "--format", "terraform").err == (
        "note: notes: Terraform cannot express vector index near\n"
    )
    assert isotone("schema", module, "--format", "nosql-workbench").err == (
        "note: shop: NoSQL Workbench's model cannot express time to live by '_expires'\n"
        "note: shop: NoSQL Workbench's model cannot express the stream NEW_IMAGE\n"
        "note: notes: NoSQL Workbench's model cannot express vector index near\n"
    )


def test_the_ending_of_a_file_decides_the_format(isotone: Run, module: str, folder: Path) -> None:
    for ending, begins in ((".tf", 'resource "aws_'), (".yml", "AWSTemplate"), (".md", "## shop")):
        file = folder / f"out{ending}"
        assert isotone("schema", module, "--output", file).code == 0
        assert file.read_text("utf-8").startswith(begins)
    code, out, err = isotone("schema", module, "--output", "out.json")
    assert (code, out) == (2, "")
    assert err == (
        "isotone: out.json may be one of several formats; choose one: "
        "--format create-table|cloudformation-json|nosql-workbench\n"
    )
    assert "has no ending of a format" in isotone("schema", module, "--output", "out").err
    err = isotone("schema", module, "--format", "cloudformation", "--output", "out.json").err
    assert err.startswith(
        "isotone: out.json is no name for cloudformation, which ends in .yaml, .yml, .template; or "
    )
    assert not (folder / "out.json").exists()


def test_an_existing_file_is_replaced_only_with_force(
    isotone: Run, module: str, folder: Path
) -> None:
    file = folder / "tables.tf"
    file.write_text("# mine\n", "utf-8")
    code, _, err = isotone("schema", module, "--output", file)
    assert (code, err) == (2, f"isotone: {file} exists; --force replaces it\n")
    assert file.read_text("utf-8") == "# mine\n"
    assert isotone("schema", module, "--output", file, "--force").code == 0
    assert file.read_text("utf-8").startswith("resource ")


def test_tables_are_chosen_named_and_billed(isotone: Run, module: str) -> None:
    words = ("schema", module, "--table-prefix", "dev-", "--billing", "provisioned")
    out = isotone(*words, "--units", "10,2", "--table", "dev-shop").out
    request = json.loads(out)
    units = {"ReadCapacityUnits": 10, "WriteCapacityUnits": 2}
    assert (request["TableName"], request["BillingMode"]) == ("dev-shop", "PROVISIONED")
    assert request["ProvisionedThroughput"] == units
    assert request["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == units
    code, _, err = isotone("schema", module, "--table", "nope")
    assert (code, err) == (2, "isotone: there is no table 'nope'; the tables are: shop, notes\n")


def test_tables_of_a_file_and_of_a_template(isotone: Run, shop: Path, folder: Path) -> None:
    request = json.loads(isotone("schema", shop).out)
    assert request["TableName"] == "Orders"
    (folder / "t.yaml").write_text(TEMPLATE, "utf-8")
    code, out, _ = isotone("schema", "t.yaml", "--parameter", "Stage=dev", "--format", "terraform")
    assert code == 0
    (folder / "t.tf").write_text(out, "utf-8")
    assert json.loads(isotone("schema", "t.tf").out)["TableName"] == "orders-dev"


def test_a_sample_has_as_many_items_as_are_asked_for(isotone: Run, folder: Path) -> None:
    """A page of a scan has a megabyte at most, and the records of unique values are no sample."""
    with opened(str(folder / "a.db")) as database, connect(database) as store:
        store.create_tables(customers)
        for number in range(60):
            note = "x" * 50_000 if number % 2 else ""
            store.put(Customer(name=f"c{number}", mail=f"{number}@example.org", note=note))
    for most, expected in ((50, 50), (55, 55), (100, 60)):
        words = ("--format", "nosql-workbench", "--sample", most)
        (table,) = json.loads(isotone("schema", "a.db", *words).out)["DataModel"]
        assert len(table["TableData"]) == expected


def test_the_kinds_of_items_of_a_module_and_of_a_file(
    isotone: Run, module: str, shop: Path
) -> None:
    words = ("--format", "nosql-workbench", "--sample", "2")
    (table,) = json.loads(isotone("schema", f"{module}:Order", *words).out)["DataModel"]
    (facet,) = table["TableFacets"]
    assert facet["FacetName"] == "Order"
    assert facet["KeyAttributeAlias"] == {
        "PartitionKeyAlias": "CUSTOMER#{customer}",
        "SortKeyAlias": "ORDER#{number}",
    }
    assert facet["NonKeyAttributes"] == [
        *("GSI1PK", "GSI1SK", "customer", "number", "status", "t", "_expires"),
    ]
    types = {each["AttributeName"]: each["AttributeType"] for each in table["NonKeyAttributes"]}
    assert (types["t"], types["_type"], types["_expires"]) == ("N", "S", "N")
    (table,) = json.loads(isotone("schema", shop, *words).out)["DataModel"]
    assert [facet["FacetName"] for facet in table["TableFacets"]] == ["Order"]
    assert len(table["TableData"]) == 2
    markdown = isotone("schema", shop, "--format", "markdown").out
    assert "| Order | `{customer}` | `{placed_at}` | `status`, `total` |" in markdown


def test_items_of_a_module_come_from_the_address(isotone: Run, module: str, folder: Path) -> None:
    isotone("create", "d.db", "shop", "PK", "SK")
    isotone("put", "d.db", "shop", '{"PK": "a", "SK": "b"}')
    isotone("put", "d.db", "shop", '{"PK": "_keys", "SK": "Order", "kind": "_keys"}')
    words = ("schema", f"{module}:Order", "d.db", "--format", "nosql-workbench")
    (table,) = json.loads(isotone(*words).out)["DataModel"]
    assert table["TableData"] == [{"PK": {"S": "a"}, "SK": {"S": "b"}}]


def test_a_template_is_modelled_by_its_keys(isotone: Run, folder: Path) -> None:
    (folder / "t.yaml").write_text(TEMPLATE, "utf-8")
    code, out, err = isotone("model", "t.yaml", "--parameter", "Stage=dev")
    assert code == 0
    assert "    id: Attr[str] = field()\n    at: Attr[Decimal] = field()\n" in out
    assert "    primary = Key(id).sort(at)\n" in out
    assert err.endswith("orders-dev: 1 entity from its definition\n")
    compile(out, "orders.py", "exec")


def test_attributes_of_a_model_without_items_are_fields(isotone: Run, folder: Path) -> None:
    isotone("schema", f"{name_of(folder)}:Order", "--format=nosql-workbench", "--output=m.json")
    out = isotone("model", "m.json").out
    assert "    t: Attr[Decimal | None] = field(default=None)\n" in out
    assert '    gsi1pk: Attr[str | None] = field(default=None, name="GSI1PK")\n' in out


@pytest.mark.parametrize("command", ["model", "schema"])
@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.yaml", b"", "a.yaml is empty"),
        ("a.json", b" \n", "a.json is empty"),
        ("a.tf", b"", "a.tf is empty"),
        ("a.yaml", b"\xff\xfe\x00", "a.yaml is not a text in UTF-8"),
        ("a.yaml", b"\x00\x01\x02", "a.yaml is not valid YAML: "),
        ("a.yaml", b"a: &a [x]\nb: &b [*a, *a]\n", "a.yaml, line 2: an alias, which CloudFormation"),
        ("a.json", b"{", "a.json is not valid JSON: "),
        ("a.json", b"[" * 200_000, "a.json is nested too deeply"),
        ("a.yaml", b"[" * 200_000, "a.yaml is nested too deeply"),
        ("a.tf", b"x = " + b"[" * 20_000, "a.tf is "),
        ("a.json", b"{}", "a.json is none of: CreateTable's request in JSON, CloudFormation in JSON, "),
        ("a.json", b"[]", "a.json is none of: "),
        ("a.json", b"7", "a.json is none of: "),
        ("a.json", b'{"TableName": 5}', "a.json: lacks KeySchema"),
        ("a.json", b'{"TableName": "abc", "KeySchema": "x"}', 'a.json: KeySchema must be a list, not "x"'),
        ("a.json", b'{"TableName": "abc", "KeySchema": []}', "a.json: table abc: "),
        ("a.json", b'{"Table": {"TableName": "abc"}}', "a.json: Table lacks KeySchema"),
        ("a.yaml", b"Resources: {}\n", "a.yaml defines no tables of DynamoDB"),
        ("a.tf", b"locals {}\n", "a.tf defines no tables of DynamoDB"),
        (
            "a.json",
            json.dumps([{"TableName": "abc", "KeySchema": []}] * 2).encode(),
            "a.json defines table abc more than once",
        ),
    ],
)  # fmt: skip
def test_a_bad_file_is_one_clear_line(
    isotone: Run, folder: Path, command: str, name: str, content: bytes, error: str
) -> None:
    (folder / name).write_bytes(content)
    code, out, err = isotone(command, name)
    assert (code, out) == (2, "")
    assert err.startswith(f"isotone: {error}")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("MODULE", "--format", "terrafrm"), "there is no format 'terrafrm'; did you mean terraform? The formats: create-table, "),
        (("missing.yaml",), "there is no file missing.yaml"),
        (("missing.db",), "the file missing.db does not exist"),
        (("MODULE", "--parameter", "a=b"), " defines no parameters; only templates and Terraform do"),
        (("t.yaml", "--parameter", "Stage"), "--parameter 'Stage' has no value; write --parameter Stage=prod"),
        (("t.yaml", "--parameter", "Stage=a", "--parameter", "Stage=b"), "--parameter Stage is given twice"),
        (("t.yaml",), "t.yaml: Resources.Orders.Properties.TableName refers to parameter Stage, which has no default"),
        (("t.yaml", "d.db", "--format=markdown"), "t.yaml has tables itself; a module comes before d.db"),
        (("MODULE", "d.db"), "d.db has sample items, and CreateTable's request in JSON has none"),
        (("t.yaml", "--table-prefix", "a"), "--table-prefix is for the tables of a module; t.yaml has names itself"),
        (("MODULE", "--units", "1,1"), "--units is for --billing provisioned"),
        (("MODULE", "--sample", "-1"), "--sample must be at least 0"),
    ],
)  # fmt: skip
def test_wrong_calls_are_refused(
    isotone: Run, module: str, folder: Path, words: tuple[str, ...], error: str
) -> None:
    (folder / "t.yaml").write_text(TEMPLATE, "utf-8")
    code, out, err = isotone("schema", *(module if each == "MODULE" else each for each in words))
    assert (code, out) == (2, "")
    assert error in err
    assert err.count("\n") == 1


def test_limits_of_on_demand_throughput_end_with_it(isotone: Run, folder: Path) -> None:
    request = json.loads(isotone("schema", f"{name_of(folder)}:Order").out)
    request["OnDemandThroughput"] = {"MaxReadRequestUnits": 9}
    (folder / "r.json").write_text(json.dumps(request), "utf-8")
    found = isotone("schema", "r.json", "--billing", "provisioned")
    assert found.err == (
        "note: shop: without limits of on-demand throughput: MaxReadRequestUnits 9\n"
    )
    assert json.loads(found.out)["ProvisionedThroughput"]["ReadCapacityUnits"] == 5


def test_units_are_two_numbers(isotone: Run, module: str) -> None:
    for text in ("5", "a,b", "0,1", "1,2,3"):
        assert isotone("schema", module, "--units", text).code == 2


def test_parameters_of_a_database_are_refused(isotone: Run, shop: Path) -> None:
    code, _, err = isotone("model", shop, "Orders", "--parameter", "a=b")
    assert (code, err) == (2, f"isotone: {shop} is a database, and has no parameters\n")


def test_an_answer_of_describe_table_is_read(isotone: Run, shop: Path, folder: Path) -> None:
    (folder / "d.json").write_text(isotone("describe", shop, "Orders", "--json").out, "utf-8")
    described = {"Table": json.loads((folder / "d.json").read_text("utf-8"))}
    (folder / "d.json").write_text(json.dumps(described), "utf-8")
    assert isotone("schema", "d.json").out == isotone("schema", shop).out
