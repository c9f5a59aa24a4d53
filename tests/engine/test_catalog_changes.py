"""Two handles of one file, whose tables change in either: each always sees what a newly opened handle sees."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone.backends.embedded import Database
from isotone.engine import catalog as catalogs
from isotone.engine.catalog import CATALOG
from isotone.errors import ApiError

NAMES = [f"table-{number}" for number in range(4)]
FEATURES = "expiry", "history", "policy", "replication"
TEXT = {"AttributeName": "id", "AttributeType": "S"}
AT = {"AttributeName": "at", "AttributeType": "S"}


class Undone(Exception):
    pass


def opened(path: Path) -> Database:
    return isotone.open(path, durability="none")


def create(database: Database, name: str) -> None:
    database.execute(
        "CreateTable",
        {
            "TableName": name,
            "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            "AttributeDefinitions": [TEXT],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )


def add_index(database: Database, name: str) -> None:
    key = [{"AttributeName": "at", "KeyType": "HASH"}]
    new = {"IndexName": "by-at", "KeySchema": key, "Projection": {"ProjectionType": "ALL"}}
    request = {
        "TableName": name,
        "AttributeDefinitions": [TEXT, AT],
        "GlobalSecondaryIndexUpdates": [{"Create": new}],
    }
    database.execute("UpdateTable", request)
    database.finish_maintenance()


def protect(database: Database, name: str) -> None:
    database.execute("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": True})


def unprotect(database: Database, name: str) -> None:
    database.execute("UpdateTable", {"TableName": name, "DeletionProtectionEnabled": False})


def delete(database: Database, name: str) -> None:
    database.execute("DeleteTable", {"TableName": name})


def arn(database: Database, name: str) -> str:
    found: str = database.execute("DescribeTable", {"TableName": name})["Table"]["TableArn"]
    return found


def tag(database: Database, name: str) -> None:
    tags = [{"Key": "team", "Value": "shop"}]
    database.execute("TagResource", {"ResourceArn": arn(database, name), "Tags": tags})


def untag(database: Database, name: str) -> None:
    database.execute("UntagResource", {"ResourceArn": arn(database, name), "TagKeys": ["team"]})


def expire(database: Database, name: str) -> None:
    ttl = {"Enabled": True, "AttributeName": "until"}
    request = {"TableName": name, "TimeToLiveSpecification": ttl}
    database.execute("UpdateTimeToLive", request)


def recover(database: Database, name: str) -> None:
    recovery = {"PointInTimeRecoveryEnabled": True}
    request = {"TableName": name, "PointInTimeRecoverySpecification": recovery}
    database.execute("UpdateContinuousBackups", request)


def put(database: Database, name: str) -> None:
    database.execute("PutItem", {"TableName": name, "Item": {"id": {"S": "1"}}})


def many(database: Database, name: str) -> None:
    """More changes than the store remembers."""
    for number in range(40):
        create(database, f"many-{number}")
    for number in range(40):
        delete(database, f"many-{number}")


def tag_as_before(database: Database, name: str) -> None:
    """Write a table's record from another process, whose Isotone keeps no list of changes."""
    with opened(database.engine.store.path) as older, older.engine.writing:
        store, table = older.engine.store, older.engine.catalog.tables.get(name)
        if table is not None:
            schema = msgspec.structs.replace(table.schema, tags={"by": "an older Isotone"})
            store.put(CATALOG, name.encode(), msgspec.json.encode(schema))
            store.put(CATALOG, b"\x00version", os.urandom(16))


def open_region(database: Database, name: str) -> None:
    database.engine.open_region("eu-west-1")


ACTIONS = [
    create,
    create,
    add_index,
    protect,
    unprotect,
    delete,
    tag,
    untag,
    expire,
    recover,
    put,
    many,
    tag_as_before,
    open_region,
]
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(ACTIONS), st.sampled_from(NAMES), st.booleans()),
    min_size=1,
    max_size=14,
)


def do(database: Database, action: Any, name: str) -> None:
    with suppress(ApiError):  # there is such a table, or none, or it is protected
        action(database, name)


def undo(database: Database, action: Any, name: str) -> None:
    """Do it in a transaction that ends with an error."""
    with suppress(Undone), database.engine.writing:
        do(database, action, name)
        raise Undone


def seen(database: Database) -> dict[str, Any]:
    names = database.execute("ListTables", {})["TableNames"]
    tables = {
        name: (
            database.execute("DescribeTable", {"TableName": name}),
            database.execute("ListTagsOfResource", {"ResourceArn": arn(database, name)}),
            database.execute("DescribeTimeToLive", {"TableName": name}),
        )
        for name in names
    }
    catalog = database.engine.catalog
    having = {each: sorted(table.name for table in catalog.having(each)) for each in FEATURES}
    regions = sorted(database.engine.regions)
    return {"tables": tables, "having": having, "regions": regions}


@settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
@example(steps=[(0, create, NAMES[0], False), (1, tag_as_before, NAMES[0], False)])
@example(steps=[(0, create, NAMES[0], False), (1, many, NAMES[0], False)])
def test_every_handle_sees_what_a_new_one_sees(steps):
    with TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder) / "shop.db"
        handles = [stack.enter_context(opened(path)) for _ in range(2)]
        for actor, action, name, is_undone in steps:
            way = undo if is_undone and action is not tag_as_before else do
            way(handles[actor], action, name)
            with opened(path) as new:
                expected = seen(new)
            assert [seen(handle) for handle in handles] == [expected, expected]


def test_a_table_of_another_handle_is_read_alone(tmp_path, monkeypatch):
    built: list[str] = []
    with opened(tmp_path / "shop.db") as ours, opened(tmp_path / "shop.db") as theirs:
        for number in range(20):
            create(ours, f"many-{number}")
        theirs.execute("ListTables", {})

        class Counted(catalogs.StoredTable):
            def __init__(self, schema: Any, *more: Any) -> None:
                built.append(schema.name)
                super().__init__(schema, *more)

        monkeypatch.setattr(catalogs, "StoredTable", Counted)
        create(ours, "new")
        delete(ours, "many-3")
        built.clear()
        assert "new" in theirs.execute("ListTables", {})["TableNames"]
        assert "many-3" not in theirs.execute("ListTables", {})["TableNames"]
        assert built == ["new"]
        built.clear()
        with ours.rolled_back():
            create(ours, "undone")
        assert built == ["undone"]
        assert "undone" not in ours.execute("ListTables", {})["TableNames"]
        assert built == ["undone"]


def test_the_list_of_changes_in_bytes(tmp_path):
    """msgpack: the version before the first change, then versions, each with its table. Files of today have it so."""
    with opened(tmp_path / "shop.db") as database:
        get = database.engine.store.get
        create(database, "Orders")
        first = get(CATALOG, b"\x00version")
        delete(database, "Orders")
        second = get(CATALOG, b"\x00version")
        stored = get(CATALOG, b"\x00changes")
    expected = b"\x93\x92\xc4\x00\xa0\x92\xc4\x10%b\xa6Orders\x92\xc4\x10%b\xa6Orders"
    assert stored == expected % (first, second)


PROGRAM = """
import random, sys
import isotone
from tests.engine.test_catalog_changes import create, delete, do, many, opened, seen, tag, undo, untag

chance = random.Random(sys.argv[2])
with opened(sys.argv[1]) as database:
    for step in range(60):
        name = f"{chance.choice('abc')}-{chance.randrange(8)}"
        chance.choice((do, do, do, undo))(database, chance.choice((create, create, delete, tag, untag)), name)
    print("done", flush=True)
    sys.stdin.read()  # until all are done
    print(seen(database))
"""


def test_many_processes_see_the_same_tables(tmp_path):
    path = tmp_path / "shop.db"
    with opened(path) as database, ExitStack() as stack:
        words = [sys.executable, "-c", PROGRAM, str(path)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        programs = [
            stack.enter_context(subprocess.Popen([*words, seed], **pipes)) for seed in "123"
        ]
        for program in programs:
            while program.stdout.readline() != "done\n":
                assert program.poll() is None
                seen(database)
        with opened(path) as new:
            expected = seen(new)
        assert expected["tables"]
        assert seen(database) == expected
        assert [program.communicate()[0] for program in programs] == [f"{expected}\n"] * 3
