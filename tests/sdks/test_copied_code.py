"""The code that the workbench copies, run in each language: it returns the items that the view shows."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
from ast import literal_eval
from base64 import b64decode, b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sdks.install import AWS_CLI, HOW, JAVASCRIPT
from tests.workbench.sample_tables import put_all

import isotone
from isotone.backends.interface import Backend
from isotone.backends.opening import open_backend
from isotone.cli.program import run
from isotone.workbench.code import snippets

NODE = shutil.which("node")
ODD = [
    "plain",
    "it's",
    'a "b" \\ c',
    "two\nlines\r\n\tand a tab",
    "$(touch hacked) `touch hacked` $HOME %PATH% !!",
    "ünïcödé ～ 😀 \u2028",
    "</script>${1 + 1}",
    "\\u0041\\",
]
NUMBERS = ["-1", "0", "12345678901234567890123456789012345678", "0.5", "1E+125"]
BINARIES = [b"\x00\xff", b"plain text", b"'\"\n"]
MANY = 130  # more than a console shows without being asked


def item(pk: str, sk: Any, number: int) -> dict[str, Any]:
    return {
        "pk": {"S": pk},
        "sk": sk,
        "mark": {"S": f"m{number:03}"},
        "constructor": {"N": str(number % 3)},
        "nested": {"M": {"a b": {"L": [{"M": {"deep": {"NS": ["1", "2.5"]}}}, {"NULL": True}]}}},
        "data": {"B": b64encode(bytes([number % 256, 255])).decode()},
        "blobs": {"BS": [b64encode(b"x").decode(), b64encode(b"\xfe").decode()]},
    }


SORTED = {
    "S": [{"S": text} for text in ODD],
    "N": [{"N": text} for text in NUMBERS],
    "B": [{"B": b64encode(data).decode()} for data in BINARIES],
}


def tables() -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Tables by the type of their sort key, with their items."""
    for kind, keys in SORTED.items():
        items = [item(pk, sk, n) for pk in ODD for n, sk in enumerate(keys)]
        if kind == "N":
            items += [item("many", {"N": str(n)}, n) for n in range(MANY)]
        yield f"copied-{kind}", kind, items
    large = {"mark": {"S": "m"}, "text": {"S": "x" * 100_000}}  # more than the page of an answer
    yield (
        "copied-large",
        "N",
        [
            {"pk": {"S": "a"}, "sk": {"N": str(n)}, "number": {"N": str(n)}, **large}
            for n in range(30)
        ],
    )


@pytest.fixture(scope="module")
def backend(url: str) -> Iterator[Backend]:
    backend, close = open_backend(
        url, region="us-east-1", credentials=isotone.Credentials("any", "any")
    )
    for name, kind, items in tables():
        types = {"pk": "S", "sk": kind, "mark": "S"}
        backend.execute(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "AttributeDefinitions": [
                    {"AttributeName": each, "AttributeType": kind} for each, kind in types.items()
                ],
                "LocalSecondaryIndexes": [
                    {
                        "IndexName": "by.mark",
                        "KeySchema": [
                            {"AttributeName": "pk", "KeyType": "HASH"},
                            {"AttributeName": "mark", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )
        put_all(backend, name, items)
    yield backend
    close()


def query(table: str, pk: str, more: str = "", **members: Any) -> tuple[str, dict[str, Any]]:
    """A request as the page makes it."""
    values = {":v0": {"S": pk}, **members.pop("values", {})}
    names = {"#n0": "pk", **members.pop("names", {})}
    return "Query", {
        "TableName": table,
        "KeyConditionExpression": f"#n0 = :v0{more}",
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ReturnConsumedCapacity": "INDEXES",
        **members,
    }


def requests() -> dict[str, tuple[str, dict[str, Any]]]:
    found = {f"partition {text!r}": query("copied-S", text) for text in ODD}
    sort = {"names": {"#n1": "sk"}}
    for kind, keys in SORTED.items():
        for number, key in enumerate(keys):
            values = {":v1": key}
            found[f"sort key {kind} {number}"] = query(
                f"copied-{kind}", "it's", " AND #n1 = :v1", **sort, values=values
            )
        found[f"descending {kind}"] = query(f"copied-{kind}", "plain", ScanIndexForward=False)
    found["between"] = query(
        "copied-N",
        "many",
        " AND #n1 BETWEEN :v1 AND :v2",
        **sort,
        values={":v1": {"N": "5"}, ":v2": {"N": "120.5"}},
    )
    found["many"] = query("copied-N", "many")
    found["begins with"] = query(
        "copied-S", "plain", " AND begins_with(#n1, :v1)", **sort, values={":v1": {"S": "two\n"}}
    )
    found["index, filter, descending"] = query(
        "copied-S",
        'a "b" \\ c',
        names={"#n1": "constructor", "#n2": "nested", "#n3": "a b"},
        values={":v1": {"N": "1"}},
        IndexName="by.mark",
        FilterExpression="#n1 = :v1 AND attribute_exists(#n2.#n3)",
        ScanIndexForward=False,
    )
    found["a page"] = query("copied-N", "many", Limit=7)
    found["after a key"] = query(
        "copied-B",
        "it's",
        ExclusiveStartKey={"pk": {"S": "it's"}, "sk": SORTED["B"][0]},
    )
    found["scan"] = "Scan", {"TableName": "copied-B", "Limit": 10}
    found["whole scan"] = "Scan", {"TableName": "copied-B"}
    found["last of several pages"] = (
        "Scan",
        {
            "TableName": "copied-large",
            "FilterExpression": "#n0 >= :v0",
            "ExpressionAttributeNames": {"#n0": "number"},
            "ExpressionAttributeValues": {":v0": {"N": "25"}},
        },
    )
    statement = "SELECT * FROM \"copied-S\" WHERE pk = 'it''s' AND \"constructor\" = 1"
    found["statement"] = "ExecuteStatement", {"Statement": statement}
    return found


REQUESTS = requests()


def items_of(backend: Backend, name: str) -> list[Any]:
    """The items of a request: of all its pages, if it asks for none."""
    action, request = REQUESTS[name]
    items = []
    while True:
        answer = backend.execute(action, request)
        items += answer["Items"]
        if one_page(name) or "LastEvaluatedKey" not in answer:
            return items
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def shown(backend: Backend) -> dict[str, list[str]]:
    """The items that the view of each request shows."""
    answers = {name: items_of(backend, name) for name in REQUESTS}
    assert all(answers.values()), "a request that finds nothing compares nothing"
    return {name: wire(items) for name, items in answers.items()}


def wire(items: list[Any]) -> list[str]:
    """Items as text, in one form: clients give bytes, sets in any order, and numbers as the service has them."""
    return [json.dumps(_plain(each), sort_keys=True) for each in items]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        plain = {name: _plain(inner) for name, inner in value.items()}
        return {
            name: sorted(each) if name in ("NS", "BS") else each for name, each in plain.items()
        }
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return b64encode(value).decode() if isinstance(value, bytes) else value


def one_page(name: str) -> bool:
    """Whether the program of a request returns one response, and does not read all pages."""
    action, request = REQUESTS[name]
    return action == "ExecuteStatement" or bool({"Limit", "ExclusiveStartKey"} & request.keys())


def code(url: str, language: str) -> dict[str, str]:
    return {
        name: next(each["text"] for each in snippets(*sent, url) if each["name"] == language)
        for name, sent in REQUESTS.items()
    }


@pytest.mark.parametrize("language", ["Isotone", "boto3"])
def test_python_returns_what_the_view_shows(
    backend: Backend, url: str, language: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for name, text in code(url, language).items():
        names: dict[str, Any] = {}
        exec(compile(text, name, "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        one = one_page(name)
        found[name] = wire(names["response"]["Items"] if one else [*map(literal_eval, printed)])
        (names.get("store") or names["client"]).close()
    assert found == shown(backend)


def test_isotones_own_command_returns_what_the_view_shows(
    backend: Backend, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {}
    for name, words in words_of(code(url, "isotone call"), tmp_path).items():
        assert run(words) == 0
        printed = capsys.readouterr().out
        one = one_page(name)
        lines = printed.strip().split("\n")
        found[name] = wire(json.loads(printed)["Items"] if one else [*map(json.loads, lines)])
    assert found == shown(backend)


_NODE_PROGRAM = """
import { readdirSync, writeFileSync } from "node:fs";
const found = {};
const plain = (_, value) => (value instanceof Uint8Array ? Buffer.from(value).toString("base64") : value);
const dir = console.dir;
for (const file of readdirSync(".").filter((each) => each.startsWith("copied"))) {
  const printed = [];
  console.dir = (what, how) => {
    printed.push(what);
    dir(what, how);
  };
  await import(`./${file}`);
  found[file] = printed[0]?.$metadata ? printed[0].Items : printed;
}
writeFileSync("found.json", JSON.stringify(found, plain));
"""


@pytest.mark.skipif(
    NODE is None or not (JAVASCRIPT / "node_modules").exists(),
    reason=f"node or the JavaScript SDK is not installed; {HOW}",
)
def test_javascript_returns_and_prints_what_the_view_shows(
    backend: Backend, url: str, tmp_path: Path
) -> None:
    (tmp_path / "node_modules").symlink_to(JAVASCRIPT / "node_modules")
    for number, text in enumerate(code(url, "JavaScript").values()):
        (tmp_path / f"copied{number:03}.mjs").write_text(text, encoding="utf-8")
    (tmp_path / "all.mjs").write_text(_NODE_PROGRAM)
    done = subprocess.run(
        [str(NODE), "all.mjs"],
        cwd=tmp_path,
        env={**os.environ, "NODE_NO_WARNINGS": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    found = dict(zip(REQUESTS, (wire(answers[each]) for each in sorted(answers)), strict=True))
    assert found == shown(backend)
    assert "[Object]" not in done.stdout
    assert "more item" not in done.stdout
    assert done.stdout.count("'m129'") == 1  # the last of many is printed


_CLI_PROGRAM = """
import contextlib, io, json, os, sys
from awscli.clidriver import create_clidriver
found = {}
driver = create_clidriver()
for name, words in json.load(sys.stdin).items():
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        code = driver.main(words[1:])
    assert code == 0, (name, words)
    found[name] = json.loads(told.getvalue())["Items"]
print(json.dumps(found))
"""


@pytest.mark.skipif(
    not (AWS_CLI / "bin" / "python").exists(), reason=f"the AWS CLI is not installed; {HOW}"
)
def test_the_aws_cli_returns_what_the_view_shows(
    backend: Backend, url: str, tmp_path: Path
) -> None:
    """With version 1 of the CLI, which PyPI has. It takes binary values as text, so those in requests are left out."""
    texts = {name: text for name, text in code(url, "AWS CLI").items() if '{"B":' not in text}
    assert len(texts) >= len(REQUESTS) - 4
    done = subprocess.run(
        [str(AWS_CLI / "bin" / "python"), "-c", _CLI_PROGRAM],
        input=json.dumps(words_of(texts, tmp_path)),
        env={**os.environ, "AWS_PAGER": ""},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = {name: wire(items) for name, items in json.loads(done.stdout).items()}
    expected = shown(backend)
    assert found == {name: expected[name] for name in texts}


def words_of(texts: dict[str, str], folder: Path) -> dict[str, list[str]]:
    """The words of each command after a shell has read it; nothing in it is run but the command."""
    listed = 'listed() { printf "%s\\0" "$@"; printf "\\n\\0"; }\naws() { listed aws "$@"; }\nisotone() { listed "$@"; }\n'
    shell = shutil.which("bash") or shutil.which("sh")
    assert shell is not None
    done = subprocess.run(
        [shell],
        input=(listed + "\n".join(texts.values())).encode(),
        cwd=folder,
        capture_output=True,
        check=True,
    )
    assert not (folder / "hacked").exists()
    commands = done.stdout.decode().split("\n\0")[:-1]
    return {name: command.split("\0")[:-1] for name, command in zip(texts, commands, strict=True)}


def test_bytes_are_those_of_the_item() -> None:
    """In what the clients of Python are given."""
    (boto3,) = (
        each["text"]
        for each in snippets("GetItem", {"TableName": "t", "Key": {"k": SORTED["B"][0]}}, "x.db")
        if each["name"] == "boto3"
    )
    found = [each.value for each in ast.walk(ast.parse(boto3)) if isinstance(each, ast.Constant)]
    assert b64decode(SORTED["B"][0]["B"]) in found
