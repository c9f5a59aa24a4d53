"""Exports and imports of items: each format gives back what it was given; bad rows, tables, streams, other programs."""

from __future__ import annotations

import asyncio
import base64
import gzip
import io
import json
import math
import os
import random
import sys
import threading
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.intercepted_backend import InterceptedBackend, refuse

import isotone
from isotone import moving
from isotone.backends.interface import Native, Request, Response
from isotone.errors import BadRow, StorageError, UsageError
from isotone.exchange.objects import Bucket, Folder
from isotone.server import running_server
from isotone.tables.batches import BatchWriter
from isotone.values.known_shapes import KnownShapes

Item = dict[str, dict[str, Any]]

SCHEMA: Any = {
    "KeySchema": [
        {"AttributeName": "id", "KeyType": "HASH"},
        {"AttributeName": "at", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": "id", "AttributeType": "S"},
        {"AttributeName": "at", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
FILES = [
    ("items.jsonl", None),
    ("items.jsonl.zst", None),
    ("items.json.gz", "dynamodb-json"),
    ("items.ion.gz", None),
    ("items.csv", None),
    ("items.csv.gz", None),
    ("items.parquet", None),
    ("folder/", None),
    ("ion/", "ion"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def database_of(items: list[Item], name: str = "Orders") -> isotone.Database:
    database = isotone.open(":memory:")
    database.client().create_table(TableName=name, **SCHEMA)
    for item in items:
        database.execute("PutItem", {"TableName": name, "Item": item})
    return database


def content(database: isotone.Database, name: str = "Orders") -> dict[str, Item]:
    """The items of a table by their keys. It must be consistent."""
    assert database.check() == []
    found: dict[str, Item] = {}
    start: dict[str, Any] = {}
    while True:
        page = database.execute("Scan", {"TableName": name, **start})
        found |= {f"{item['id']} {item.get('at')}": item for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return found
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def item(number: int, **others: Any) -> Item:
    return {"id": {"S": f"o{number}"}, "at": {"N": str(number)}, **others}


# Round trips

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
binaries = st.binary(max_size=12).map(lambda content: base64.b64encode(content).decode())
numbers = st.one_of(
    st.integers(-(10**38) + 1, 10**38 - 1).map(str),
    st.integers(-(10**6), 10**6).map(str),
    st.decimals(-1000, 1000, places=3, allow_nan=False).map(str),
    st.sampled_from(["0", "1E+125", "-9.5E-100", "0.1", "12.50", str(2**63), str(-(2**63))]),
)
scalars = st.one_of(
    texts.map(lambda text: {"S": text}),
    numbers.map(lambda text: {"N": text}),
    binaries.map(lambda text: {"B": text}),
    st.booleans().map(lambda flag: {"BOOL": flag}),
    st.just({"NULL": True}),
    st.lists(texts.filter(bool), min_size=1, max_size=3, unique=True).map(lambda of: {"SS": of}),
    st.lists(st.integers(-99, 99).map(str), min_size=1, max_size=3, unique=True).map(
        lambda of: {"NS": of}
    ),
    st.lists(binaries.filter(bool), min_size=1, max_size=3, unique=True).map(lambda of: {"BS": of}),
)
names = st.one_of(
    st.sampled_from(["a", "b", "total:N", "*", "S", "Item", "x y", 'quo"te', "new\nline", ":B"]),
    texts.filter(bool),
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda of: {"L": of}),
        st.dictionaries(names, inner, max_size=3).map(lambda of: {"M": of}),
    ),
    max_leaves=6,
)
rows = st.lists(
    st.dictionaries(names.filter(lambda name: name not in ("id", "at")), values, max_size=4),
    max_size=6,
)


@pytest.mark.parametrize(("place", "form"), FILES)
@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rows=rows)
def test_any_items_come_back(place: str, form: str | None, rows: list[Item]) -> None:
    Path("folder").mkdir(exist_ok=True)
    for old in Path("folder").rglob("manifest-summary.json"):
        old.unlink()  # one export in the folder
    for old in Path("ion").rglob("manifest-summary.json"):
        old.unlink()
    with database_of([item(number, **row) for number, row in enumerate(rows)]) as source:
        done = moving.export_items(
            source, "Orders", place, format=form, with_table=True, force=True
        )
        assert done.items == len(rows)
        with isotone.open(":memory:") as target:
            read = None if place.endswith("/") else form
            result = moving.import_items(place, target, "Orders", format=read)
            assert (result.items, result.bad, result.is_complete) == (len(rows), 0, True)
            assert content(target) == content(source)


@pytest.fixture(scope="module")
def late_kinds() -> Iterator[tuple[isotone.Database, dict[str, Item]]]:
    """A table whose last items have kinds of values that no sample of the first ones shows, and its content."""
    items = [item(number, total={"N": str(number % 7)}, note={"S": "n"}) for number in range(6000)]
    items += [
        item(number, total={"N": text}, late={"BOOL": True}, note={"S": ""})
        for number, text in enumerate(("1E+100", "0.5", str(2**70)), 6000)
    ]
    with database_of(items) as database:
        yield database, content(database)


@pytest.mark.parametrize(("place", "form"), FILES)
def test_items_that_differ_from_the_sample_come_back(
    place: str, form: str | None, late_kinds: tuple[isotone.Database, dict[str, Item]]
) -> None:
    source, expected = late_kinds
    with isotone.open(":memory:") as target:
        moving.export_items(source, "Orders", place, format=form, with_table=True, segments=3)
        moving.import_items(
            place, target, "Orders", format=None if place.endswith("/") else form, workers=3
        )
        assert content(target) == expected


def test_the_description_makes_the_table_with_its_indexes_and_settings() -> None:
    with isotone.open(":memory:") as source, isotone.open(":memory:") as target:
        client = source.client()
        client.create_table(
            TableName="Orders",
            **SCHEMA,
            LocalSecondaryIndexes=[
                {
                    "IndexName": "same",
                    "KeySchema": SCHEMA["KeySchema"],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            ],
        )
        client.update_time_to_live(
            TableName="Orders",
            TimeToLiveSpecification={"AttributeName": "ends", "Enabled": True},
        )
        moving.export_items(source, "Orders", "items.jsonl", with_table=True)
        moving.import_items("items.jsonl", target, "Copy")
        described = target.client().describe_table(TableName="Copy")["Table"]
        assert described["LocalSecondaryIndexes"][0]["IndexName"] == "same"
        expiry = target.client().describe_time_to_live(TableName="Copy")
        assert expiry["TimeToLiveDescription"]["AttributeName"] == "ends"


def test_a_missing_table_is_made_with_the_given_keys() -> None:
    Path("items.jsonl").write_text('{"id": "a", "at": 1}\n\n{"id": "a", "at": 2, "x": [1]}\n')
    with isotone.open(":memory:") as target:
        with pytest.raises(UsageError, match=r"there is no table Orders; --key"):
            moving.import_items("items.jsonl", target, "Orders")
        done = moving.import_items("items.jsonl", target, "Orders", key="id", sort_key="at:N")
        assert done.items == 2
        assert content(target) == {
            "{'S': 'a'} {'N': '1'}": {"id": {"S": "a"}, "at": {"N": "1"}},
            "{'S': 'a'} {'N': '2'}": {
                "id": {"S": "a"},
                "at": {"N": "2"},
                "x": {"L": [{"N": "1"}]},
            },
        }
        with pytest.raises(
            UsageError, match="exists with another key, id:S, at:N; leave out --key"
        ):
            moving.import_items("items.jsonl", target, "Orders", key="at:N")


# Bad rows


BAD_LINES = {
    "not JSON": "this is not JSON",
    '{"at": 1}': "it has no id, which is part of the key",
    '{"id": "a"}': "it has no at, which is part of the key",
    '{"id": "a", "at": "1"}': "at is of type S, and the key needs type N",
    '{"id": "", "at": 1}': "id is empty, which the key must not be",
    '{"id": "a", "at": 1, "s": {"NS": [1, 1]}}': "contains duplicates",
    '{"id": "a", "at": 1e200}': "Number overflow",
    "[]": "an item must be a JSON object",
    '{"id": "a", "at": 1, "x": "' + "x" * 410_000 + '"}': "an item at most 409,600",
}


@pytest.mark.parametrize(("line", "reason"), BAD_LINES.items(), ids=list(BAD_LINES.values()))
def test_the_first_bad_row_stops_the_import_after_all_before_it(line: str, reason: str) -> None:
    good = [f'{{"id": "g{number}", "at": 1}}' for number in range(5)]
    Path("items.jsonl").write_text("\n".join([*good[:3], line, *good[3:]]) + "\n")
    with database_of([]) as target:
        with pytest.raises(BadRow, match="row 4: ") as caught:
            moving.import_items("items.jsonl", target, "Orders")
        assert reason in caught.value.reason
        assert caught.value.number == 4
        assert [found["id"]["S"] for found in content(target).values()].count("g3") == 0
        assert len(content(target)) == 3
        done = moving.import_items("items.jsonl", target, "Orders", bad_rows="bad.jsonl")
        assert (done.items, done.bad) == (5, 1)
        assert len(content(target)) == 5
    (bad,) = map(json.loads, Path("bad.jsonl").read_text().splitlines())
    assert bad["row"] == 4
    assert reason in bad["reason"]
    assert json.loads(bad["text"]) if line.startswith("{") else bad["text"] == line


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("items.ion", r'{Item:{id:"\U00110000",at:1}}'),
        ("items.ion", r"""{Item:{id:"x",at:1,'\uD83D':1}}"""),
        ("items.ion", '{Item:{id:"x}'),
        ("items.json", r'{"Item":{"id":{"S":"x"},"at":{"N":"1"},"\ud83d":{"N":"1"}}}'),
        ("items.jsonl", r'{"id":"x","at":1,"\ud83d":1}'),
    ],
)
def test_a_text_that_is_none_is_one_bad_row(name: str, line: str) -> None:
    forms = {
        "items.ion": '{{Item:{{id:"{0}",at:1}}}}',
        "items.json": '{{"Item":{{"id":{{"S":"{0}"}},"at":{{"N":"1"}}}}}}',
        "items.jsonl": '{{"id":"{0}","at":1}}',
    }
    good = [forms[name].format(f"g{number}") for number in range(5)]
    Path(name).write_text("\n".join([*good[:3], line, *good[3:]]) + "\n")
    with database_of([]) as target:
        done = moving.import_items(name, target, "Orders", bad_rows="bad.jsonl")
        assert (done.items, done.bad) == (5, 1)
    (bad,) = map(json.loads, Path("bad.jsonl").read_text().splitlines())
    assert (bad["row"], bad["text"]) == (4, line)


def test_one_bad_row_in_a_hundred() -> None:
    def line(number: int) -> str:
        if number % 100 == 99:
            return ("{broken", '{"id": 5, "at": 1}', '{"at": 1}')[number % 3]
        return f'{{"id": "o{number}", "at": {number}}}'

    Path("items.jsonl").write_text("\n".join(map(line, range(20_000))))
    with database_of([]) as target:
        done = moving.import_items("items.jsonl", target, "Orders", bad_rows="bad.jsonl")
        assert (done.items, done.bad) == (19_800, 200)
        expected = {f"o{number}" for number in range(20_000) if number % 100 != 99}
        assert {found["id"]["S"] for found in content(target).values()} == expected
    bad = [json.loads(text) for text in Path("bad.jsonl").read_text().splitlines()]
    assert [each["row"] for each in bad] == list(range(100, 20_001, 100))
    assert [each["text"] for each in bad[:1]] == [line(99)]


def test_a_row_that_only_the_engine_refuses_is_one_bad_row() -> None:
    picky = isotone.errors.ValidationException("secrets are not allowed here")

    def has_secret(operation: str, request: Any) -> bool:
        return operation == "BatchWriteItem" and '"secret"' in json.dumps(request)

    lines = [f'{{"id": "o{number}", "at": 1, "x": "{number}"}}' for number in range(50)]
    lines[20] = lines[20].replace('"20"', '"secret"')
    Path("items.jsonl").write_text("\n".join(lines))
    with database_of([]) as target:
        done = moving.import_items(
            "items.jsonl",
            InterceptedBackend(target, refuse(picky, has_secret)),
            "Orders",
            bad_rows="bad.jsonl",
        )
        assert (done.items, done.bad) == (49, 1)
        assert len(content(target)) == 49
    bad = json.loads(Path("bad.jsonl").read_text())
    assert (bad["row"], bad["reason"]) == (21, "secrets are not allowed here")


def test_the_last_row_of_a_key_counts() -> None:
    lines = [f'{{"id": "o{n % 7}", "at": 1, "n": {n}}}' for n in range(5000)]
    Path("items.jsonl").write_text("\n".join(lines))
    with database_of([]) as target:
        moving.import_items("items.jsonl", target, "Orders", workers=4)
        found = {each["id"]["S"]: int(each["n"]["N"]) for each in content(target).values()}
        assert found == {f"o{n % 7}": n for n in range(4993, 5000)}


@pytest.mark.parametrize("end", [-10, 30])
def test_a_damaged_file_is_an_error_also_with_bad_rows(end: int) -> None:
    lines = "".join(f'{{"id": "o{n}", "at": 1}}\n' for n in range(9000)).encode()
    Path("items.jsonl.gz").write_bytes(gzip.compress(lines)[:end])
    with database_of([]) as target, pytest.raises(BadRow, match="cannot be read further"):
        moving.import_items("items.jsonl.gz", target, "Orders", bad_rows="bad.jsonl")


# Formats


def imported(text: str | bytes, name: str, **options: Any) -> list[Item]:
    """The items of a file, in the order of their keys."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with database_of([]) as target:
        moving.import_items(name, target, "Orders", **options)
        found = content(target)
        return [found[key] for key in sorted(found)]


def test_columns_of_csv_have_the_types_of_the_caller_the_header_and_the_keys() -> None:
    text = 'id,at,total,paid:BOOL,"tags:JSON",note\r\na,1,5,TRUE,"[1, ""x""]","two\nlines"\r\nb,2,,,,\r\n'
    assert imported("\ufeff" + text, "items.csv", types={"total": "N"}) == [
        {
            "id": {"S": "a"},
            "at": {"N": "1"},
            "total": {"N": "5"},
            "paid": {"BOOL": True},
            "tags": {"L": [{"N": "1"}, {"S": "x"}]},
            "note": {"S": "two\nlines"},
        },
        {"id": {"S": "b"}, "at": {"N": "2"}},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("id,at\na,1,2\n", "it has 3 cells, but there are 2 columns"),
        ("id,at\na,one\n", "cannot be converted to a numeric value: one"),
        ("id,at,ok:BOOL\na,1,maybe\n", "column ok: 'maybe' is neither true nor false"),
        ("id,at,b:B\na,1,?\n", "column b: '?' is not base64"),
        ("id,at,j:JSON\na,1,{\n", "column j: this is not JSON"),
        ('id,at\na,"1"x\n', "a double quote is not escaped"),
    ],
)
def test_rows_of_csv_that_are_wrong(text: str, reason: str) -> None:
    with pytest.raises(BadRow) as caught:
        imported(text, "items.csv")
    assert caught.value.number == 2
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("", {}, "has no header"),
        ("id,id\n", {}, "two columns have the same name"),
        ("id,at\n", {"types": {"total": "N"}}, "has no column 'total'"),
        ("id,at\n", {"types": {"at": "number"}}, "'number' is not a type of column 'at'"),
    ],
)
def test_headers_of_csv_that_are_wrong(text: str, options: Any, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        imported(text, "items.csv", **options)


def test_a_csv_file_for_people() -> None:
    items = [item(n, total={"N": str(n)}, tags={"L": []}) for n in range(3)]
    items.append(item(3, empty={"S": ""}))
    with database_of(items) as source:
        moving.export_items(source, "Orders", "items.csv")
    header, *lines = Path("items.csv").read_text().splitlines()
    assert header == "id,at:N,total:N,tags:JSON,empty,*"
    assert "o1,1,1,[],," in lines
    assert 'o3,3,,,,"{""empty"": """"}"' in lines


def test_json_lines_are_plain_or_of_dynamodb() -> None:
    wrapped = '{"Item":{"id":{"S":"a"},"at":{"N":"1"}}}\n{"Item":{"id":{"S":"b"},"at":{"N":"1"}}}\n'
    bare = '{"id":{"S":"a"},"at":{"N":"1"}}\n{"id":{"S":"b"},"at":{"N":"1"}}\n'
    plain = '{"id": "a", "at": 1.0}\n{"id": "b", "at": 1}\n'
    assert imported(wrapped, "1.json") == imported(bare, "2.json") == imported(plain, "3.ndjson")
    with pytest.raises(BadRow, match="the file is a JSON array"):
        imported(f"[{plain}]", "4.json")


def test_parquet_keeps_numbers_exact_and_typed() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    items = [
        item(n, count={"N": str(n)}, price={"N": f"{n}.25"}, huge={"N": "1E+90"}, b={"B": "AAE="})
        for n in range(4)
    ]
    with database_of(items) as source:
        moving.export_items(source, "Orders", "items.parquet")
    schema = parquet.read_schema("items.parquet")
    kinds = {field.name: str(field.type) for field in schema}
    assert kinds == {
        "id": "string",
        "at": "int64",
        "count": "int64",
        "price": "decimal128(38, 9)",
        "huge": "string",
        "b": "binary",
    }


def test_a_parquet_file_that_is_damaged_inside() -> None:
    pytest.importorskip("pyarrow")
    with database_of([item(number) for number in range(3000)]) as source:
        moving.export_items(source, "Orders", "items.parquet")
    content = bytearray(Path("items.parquet").read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
    Path("items.parquet").write_bytes(content)
    with database_of([]) as target, pytest.raises(UsageError, match="damaged after row"):
        moving.import_items("items.parquet", target, "Orders")


def test_parquet_of_another_program() -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    from datetime import UTC, date, datetime

    table = arrow.table(
        {
            "id": ["a", "b"],
            "at": arrow.array([1, 2], arrow.int32()),
            "price": [Decimal("1.50"), None],
            "ratio": [0.1, math.inf],
            "day": [date(2026, 1, 2), None],
            "time": [datetime(2026, 1, 2, 3, tzinfo=UTC), None],
            "tags": [["x"], None],
            "place": [{"city": "Rome"}, None],
        }
    )
    parquet.write_table(table, "items.parquet")
    with database_of([]) as target:
        done = moving.import_items("items.parquet", target, "Orders", bad_rows="bad.jsonl")
        assert (done.items, done.bad) == (1, 1)
        assert list(content(target).values()) == [
            {
                "id": {"S": "a"},
                "at": {"N": "1"},
                "price": {"N": "1.5"},
                "ratio": {"N": "0.1"},
                "day": {"S": "2026-01-02"},
                "time": {"S": "2026-01-02T03:00:00+00:00"},
                "tags": {"L": [{"S": "x"}]},
                "place": {"M": {"city": {"S": "Rome"}}},
            }
        ]
    assert "column ratio: inf is not a number" in Path("bad.jsonl").read_text()


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda db: moving.export_items(db, "Orders", "items.txt"), "does not say its format"),
        (lambda db: moving.export_items(db, "Orders", "a.csv", format="tsv"), "is not a format"),
        (lambda db: moving.export_items(db, "None", "a.csv"), "there is no table None"),
        (lambda db: moving.export_items(db, "Orders", "none/a.csv"), "the folder none does not"),
        (lambda db: moving.export_items(db, "Orders", "a.parquet.gz"), "compressed inside"),
        (lambda db: moving.export_items(db, "Orders", "a/", format="csv"), "dynamodb-json or ion"),
        (lambda db: moving.export_items(db, "Orders", "a.csv", segments=0), "segments=0"),
        (lambda db: moving.import_items("a.csv", db, "Orders"), "there is no file a.csv"),
        (lambda db: moving.import_items("a/", db, "Orders"), "there is no folder a"),
        (lambda db: moving.import_items(".", db, "Orders"), "neither an export nor files"),
        (lambda db: moving.import_items("a.csv", db, "Orders", workers=0), "workers=0"),
    ],
)
def test_calls_that_cannot_be(call: Callable[[Any], object], reason: str) -> None:
    with database_of([item(1)]) as database, pytest.raises(UsageError, match=reason):
        call(database)


def test_an_existing_file_is_kept() -> None:
    Path("items.jsonl").write_text("precious")
    with database_of([item(1)]) as source:
        with pytest.raises(UsageError, match=r"items.jsonl exists; --force"):
            moving.export_items(source, "Orders", "items.jsonl")
        assert Path("items.jsonl").read_text() == "precious"
        moving.export_items(source, "Orders", "items.jsonl", force=True)
    assert Path("items.jsonl").read_text() == '{"id": "o1", "at": 1}\n'


# Streams, engines, async


def test_a_folder_that_cannot_be_written_is_named_and_the_same_call_continues() -> None:
    database = database_of([item(number) for number in range(3)])
    blocked = Path("exports/AWSDynamoDB")
    blocked.parent.mkdir()
    blocked.write_text("a file in the place of a folder")
    with pytest.raises(
        StorageError, match=r"exports/AWSDynamoDB.* cannot be used: .*; the same call"
    ):
        moving.export_items(database, "Orders", "exports/")
    blocked.unlink()
    assert moving.export_items(database, "Orders", "exports/").is_complete


@pytest.mark.parametrize("change", ["deleted", "cut", "moved"])
def test_a_folder_whose_files_do_not_stay_is_no_export_and_the_same_call_begins_again(
    monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    put = Folder.put

    def storing(self: Folder, bucket: Bucket, key: str, content: bytes) -> str:
        etag = put(self, bucket, key, content)
        path = Path("exports") / key
        if "/data/" in key and change == "deleted":
            path.unlink()
        elif "/data/" in key and change == "cut":
            os.truncate(path, 10)
        elif key.endswith("manifest-files.json") and change == "moved":
            Path("exports").rename("moved")
            Path("exports").mkdir()
        return etag

    with database_of([item(number) for number in range(3)]) as database:
        with monkeypatch.context() as patch:
            patch.setattr(Folder, "put", storing)
            with pytest.raises(StorageError, match="deleted, replaced or changed after it was"):
                moving.export_items(database, "Orders", "exports/")
        assert not list(Path("exports").rglob("manifest-summary.*"))
        done = moving.export_items(database, "Orders", "exports/")
        assert done.is_complete
        assert done.items == 3
        with database_of([]) as target:
            assert moving.import_items("exports/", target, "Orders").items == 3


@pytest.mark.parametrize("place", ["items.jsonl", "items.jsonl.gz", "folder/"])
@pytest.mark.parametrize("change", ["cut", "replaced", "grown"])
def test_a_file_that_is_changed_while_it_is_read_is_no_success(
    monkeypatch: pytest.MonkeyPatch, place: str, change: str
) -> None:
    """Neither a part of a file nor a mix of two contents is a complete import; the same call begins again."""
    Path("folder").mkdir()
    path = Path("folder/items.jsonl") if place == "folder/" else Path(place)
    opener = gzip.open if place.endswith(".gz") else open

    def write(first: int, last: int) -> None:
        with opener(path, "wt") as file:
            file.writelines(
                f'{{"id": "o{number:06}", "at": 1, "v": "{number * 7919}"}}\n'
                for number in range(first, last)
            )

    write(0, 12_000)
    add = BatchWriter.write

    def writing(self: Any, entries: Any) -> Any:
        if is_first:
            is_first.pop()
            if change == "cut" and not place.endswith(".gz"):
                content = path.read_bytes()
                os.truncate(path, content.index(b"\n", len(content) * 9 // 10) + 1)
            elif change == "grown":
                with path.open("ab") as file:
                    file.write(gzip.compress(b"\n") if place.endswith(".gz") else b"\n")
            else:
                content = path.read_bytes()
                with path.open("r+b") as file:
                    file.write(content)
                os.utime(path, ns=(1, 1))
        return add(self, entries)

    is_first = [True]
    monkeypatch.setattr(BatchWriter, "write", writing)
    with database_of([]) as target:
        with pytest.raises(UsageError, match="was changed while it was read"):
            moving.import_items(place, target, "Orders")
        write(0, 300)
        assert moving.import_items(place, target, "Orders").items == 300


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out))
    with database_of([item(n) for n in range(3)]) as source, database_of([]) as target:
        done = moving.export_items(source, "Orders", "-")
        assert done.state is None
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(out.getvalue())))
        moving.import_items("-", target, "Orders")
        assert content(target) == content(source)


@pytest.fixture(params=["isotone", "dynamodb-local"])
def url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server without tables of these tests; the second one needs `ISOTONE_ORACLE=1`."""
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    if request.param == "isotone":
        with isotone.open() as database, running_server(database) as url:
            yield url
        return
    address: str = request.getfixturevalue("dynamodb_local")
    yield address
    with isotone.connect(address) as store:
        store.backend.execute("DeleteTable", {"TableName": "ItemFiles"})


def test_async_over_http(url: str) -> None:
    async def run() -> None:
        await moving.aexport_items(source, "ItemFiles", "items.jsonl.gz", with_table=True)
        await moving.aimport_items("items.jsonl.gz", url, "ItemFiles", write_units=100_000)
        await moving.aexport_items(url, "ItemFiles", "back.csv", segments=4, read_units=100_000)

    with database_of([item(n, x={"S": "y"}) for n in range(3000)], "ItemFiles") as source:
        asyncio.run(run())
        with database_of([]) as target:
            moving.import_items("back.csv", target, "Orders")
            assert content(target) == content(source, "ItemFiles")


def test_a_file_is_not_created_for_nothing() -> None:
    for place in ("none.csv", "none/", "none"):
        with pytest.raises(UsageError):
            moving.import_items(place, "new.db", "Orders", key="id")
    assert not Path("new.db").exists()


def test_a_cancelled_export_stops_and_is_continued() -> None:
    async def run() -> None:
        work = asyncio.create_task(moving.aexport_items(source, "Orders", "items.jsonl", state="s"))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    with database_of([item(n) for n in range(3000)]) as source:
        asyncio.run(run())
        moving.export_items(source, "Orders", "items.jsonl", state="s", force=True)
    lines = [json.loads(line)["id"] for line in Path("items.jsonl").read_text().splitlines()]
    assert sorted(lines) == sorted(f"o{n}" for n in range(3000))


def test_progress_estimates_the_number_of_rows() -> None:
    Path("items.jsonl").write_text("".join(f'{{"id": "o{n}", "at": 1}}\n' for n in range(30_000)))
    seen: list[moving.Progress] = []
    with database_of([]) as target:
        moving.import_items("items.jsonl", target, "Orders", progress=seen.append)
    assert seen[-1].is_over
    assert seen[-1].items == 30_000
    assert all(each.of_items >= each.items * 0.9 for each in seen)


# Memory


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux shows what is mapped")
def test_little_of_the_file_is_mapped(folder: Path) -> None:
    file, large = folder / "t.db", "x" * 200_000
    lines = [json.dumps({"id": f"{number}", "text": large}) for number in range(400)]
    (folder / "items.jsonl").write_text("\n".join(lines))
    mapped: list[int] = []

    def look(_: moving.Progress) -> None:
        mapped.append(_mapped_of(file))

    moving.import_items("items.jsonl", file, "Orders", key="id", progress=look)
    assert file.stat().st_size > 64 << 20
    moving.export_items(file, "Orders", "again.jsonl", progress=look)
    assert 0 < max(mapped) <= 32 << 20
    assert (folder / "again.jsonl").stat().st_size > 64 << 20


def _mapped_of(file: Path) -> int:
    """How many bytes of a file are mapped into this process."""
    found = 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.endswith(f" {file}"):
            begin, end = line.split()[0].split("-")
            found += int(end, 16) - int(begin, 16)
    return found


def test_bad_rows_never_take_the_place_of_what_is_imported() -> None:
    Path("items.jsonl").write_text('{"id": "a", "at": 1}\nbroken\n')
    Path("folder").mkdir()
    Path("folder/items.jsonl").write_text('{"id": "a", "at": 1}\nbroken\n')
    with database_of([]) as target:
        for source, bad in (
            ("items.jsonl", "items.jsonl"),
            ("items.jsonl", "./folder/../items.jsonl"),
            ("folder", "folder/bad.jsonl"),  # a run that continues would import it
        ):
            with pytest.raises(UsageError, match=r"--bad-rows .* give another file"):
                moving.import_items(source, target, "Orders", bad_rows=bad)
    assert "broken" in Path("items.jsonl").read_text()


@pytest.mark.usefixtures("frequent_reports")
@pytest.mark.parametrize("left", [None, b"", b"{}\n"])
def test_a_file_of_bad_rows_that_somebody_cut_continues(left: bytes | None) -> None:
    Path("items.jsonl").write_text('broken\n{"id": "a", "at": 1}\n' * 12_000)
    stop = threading.Event()
    state = Path("state.json")
    with database_of([]) as target:

        def run(progress: Any) -> moving.Imported:
            return moving.import_items(
                *("items.jsonl", target, "Orders"),
                bad_rows="bad.jsonl",
                state=state,
                progress=progress,
                stop=stop,
            )

        def stop_now(_: object) -> None:
            stop.set()

        first = run(stop_now)
        assert not first.is_complete
        stop.clear()
        Path("bad.jsonl").unlink()
        if left is not None:
            Path("bad.jsonl").write_bytes(left)
        done = run(print)
    assert done.bad == 12_000
    text = Path("bad.jsonl").read_bytes()
    assert b"\0" not in text
    assert len(text.splitlines()) == 12_000 - first.bad + (left or b"").count(b"\n")


def test_what_the_target_cannot_have_is_in_the_result() -> None:
    class Without(Native):
        """A target without expiry."""

        def __init__(self, database: isotone.Database) -> None:
            self._database = database

        def execute(
            self, operation: str, request: Request, deadline: float | None = None
        ) -> Response:
            if operation == "UpdateTimeToLive":
                raise isotone.errors.AccessDeniedException("not authorized")
            return self._database.execute(operation, request)

    with database_of([item(1)]) as source:
        expiry = {"Enabled": True, "AttributeName": "gone_at"}
        source.execute(
            "UpdateTimeToLive", {"TableName": "Orders", "TimeToLiveSpecification": expiry}
        )
        moving.export_items(source, "Orders", "items.jsonl", with_table=True)
    with isotone.open() as target:
        done = moving.import_items("items.jsonl", Without(target), "Orders")
    assert (done.items, done.missing) == (1, ("expiry: not authorized",))


ALIKE = (
    '{"Item":{"id":{"S":"%s"},"at":{"N":"%s"},"t":{"S":"%s"}}}',
    '{"Item":{"at":{"N":"%s"},"id":{"S":"%s"},"t":{"S":"%s"}}}',
    '{"Item": {"id":{"S":"%s"},"at":{"N":"%s"},"t":{"S":"%s"}}}',
    '{"Item":{"id":{"S":"%s"},"at":{"N":"%s"},"id":{"S":"%s"}}}',
)
CONTENTS = ("a", "b", "", "7", "7.0", "07", "1e2", "-5.5", "é", "\\\\", "x" * 2100, "x" * 410_000)


@pytest.mark.parametrize("name", ["items.jsonl", "items.json.gz"])
@pytest.mark.parametrize("served", [False, True])
def test_a_line_like_others_is_imported_as_if_it_were_alone(
    name: str, served: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(5)
    lines = []
    for number in range(150):
        lines.append(ALIKE[0] % ("k", number % 40, "t"))
        words = (dice.choice(CONTENTS[:6]), dice.choice(CONTENTS[:8]), dice.choice(CONTENTS))
        lines.append(dice.choice(ALIKE) % words)
    content = "\n".join([*lines, "", ""]).encode()
    Path(name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    form = "dynamodb-json" if name.endswith("gz") else None
    found = []
    for table in ("Known", "Alone"):
        with isotone.open(":memory:") as database, running_server(database) as url:
            database.execute("CreateTable", {"TableName": table, **SCHEMA})
            target = url if served else database
            state = f"{table}.state"
            done = moving.import_items(
                name, target, table, format=form, bad_rows="bad.jsonl", state=state
            )
            items = database.execute("Scan", {"TableName": table})["Items"]
        bad = [
            (row["row"], row["reason"])
            for row in map(json.loads, Path("bad.jsonl").read_text().splitlines())
        ]
        found.append((done.items, done.bad, sorted(bad), sorted(map(str, items))))
        monkeypatch.setattr(KnownShapes, "recognised", lambda _, texts: [None] * len(texts))
    assert found[0] == found[1]
    assert found[0][1] > 20
    assert len(found[0][3]) > 40
