"""Tables made by hand, and the modules that are inferred from them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.inference.tables import TABLES, Fill

import isotone
from isotone.inference.round_trip_check import entity_for, table_of
from isotone.server import running_server

RUFF = Path(sys.executable).parent / "ruff"


def inferred(fill: Fill) -> tuple[isotone.Inferred, list[Any]]:
    with isotone.open(":memory:") as database:
        table = fill(database.client())
        found = isotone.infer(isotone.connect(database), table)
        return found, database.execute("Scan", {"TableName": table})["Items"]


@pytest.mark.parametrize("fill", TABLES.values(), ids=TABLES)
def test_every_item_is_read_and_written_as_it_was(fill: Fill) -> None:
    found, items = inferred(fill)
    assert (found.items, found.unmodelled, found.is_whole) == (len(items), 0, True)
    module = found.load()
    table = table_of(module)
    counts = dict.fromkeys(found.entities, 0)
    by_name = {entity.name: entity for entity in found.entities}
    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        store.accept_keys(*(schema.entity for schema in table.entities.values()))
        for item in items:
            store.backend.execute("PutItem", {"TableName": table.name, "Item": item})
            entity = entity_for(table, item)
            assert entity is not None
            counts[by_name[entity.__name__]] += 1
            schema = entity.__schema__
            read = schema.from_item(item, require_all_fields=True)
            assert (
                store.get(entity, **{name: getattr(read, name) for name in schema.identity}) == read
            )
            store.put(read)
            key = schema.primary_key(read.__dict__)
            (written,) = [
                store.backend.execute("GetItem", {"TableName": table.name, "Key": key})["Item"]
            ]
            lost = {name for name, value in item.items() if "NULL" not in value} - written.keys()
            assert not lost
            assert {name: written[name] for name in item if name in written} == {
                name: value for name, value in item.items() if name in written
            }
            only_in_key = set(entity.__schema__.fields) & (written.keys() - item.keys())
            assert written.keys() - item.keys() == only_in_key | ({table.tag} - item.keys())
        assert store.differences(table) == []
    assert {entity.name: entity.items for entity in found.entities} == {
        entity.name: count for entity, count in counts.items()
    }


@pytest.mark.parametrize("fill", TABLES.values(), ids=TABLES)
def test_the_source_is_formatted_and_free_of_faults(fill: Fill, tmp_path: Path) -> None:
    found, _ = inferred(fill)
    path = tmp_path / "model.py"
    path.write_text(found.source, encoding="utf-8")
    for command in (["format", "--diff"], ["check", "--select", "E4,E7,E9,F,I,UP"]):
        words = [str(RUFF), *command[:1], "--isolated", "--target-version", "py311", *command[1:]]
        ended = subprocess.run(
            [*words, path.name], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr


RIGHT: dict[str, list[str]] = {
    "github": [
        'tag="Type"',
        'primary = Key("REPO", raw(repo_owner), raw(repo_name)).sort("ISSUE", issue_number)',
        'sort(\n        "#ISSUE", desc(issue_number)\n    )',
        'primary = Key("PR", raw(repo_owner), raw(repo_name), pr_number).sort(',
        'gsi2 = Index("GSI2", "REPO", raw(repo_owner), raw(repo_name)).sort(\n        "FORK"',
        'issue_number: Attr[int] = field(name="IssueNumber", max=99_999_999)',
        "class PullRequest(Entity, table=git_hub_table):",
    ],
    "shop": [
        'primary = Key("USER", raw(user_id), separator="_").sort("profile")',
        '"order", placed_on, raw(order_number), separator="|"',
        'gsi1 = Index("GSI1", "orders", state, separator="::").sort(',
        'placed_on, "#", raw(user_id), "/", raw(order_number), separator=""',
        "lines: Attr[list[Line]] = field()",
        "class Line(TypedDict):\n    count: int\n    sku: str\n",
        "total: Attr[Decimal] = field()",
        "# not padded in a sort key, which does not sort by it",
    ],
    "untagged": [
        'primary = Key("ORG", raw(org)).sort("ORG", raw(org))',
        'primary = Key("ORG", raw(org)).sort("USER", raw(user))',
        'primary = Key("USER", raw(user)).sort("PROFILE")',
        "# only in PK",
    ],
    "orders": [
        "primary = Key(customer_id).sort(order_time)",
        'order_status_date_gsi = Index("OrderStatusDateGSI", customer_id).sort(\n'
        "        order_status, raw(order_time)\n    )",
        'Attr[Literal["CANCELLED", "PLACED", "SHIPPED"]]',
        "# guessed: 3 different values in 16 items",
    ],
    "subscriptions": [
        'gsi1 = Index("GSI1", "ORG", raw(org_name), when=role == "Admin").sort(raw(role))',
        "# guessed: 2 of 6 items are in the index",
        'by_customer = Index("CustomerIndex", customer_index_id)',
    ],
    "tickets": [
        'org_name: Attr[str] = field(name="OrgName", case="upper")',
        'primary = Key("ORG", raw(org_name)).sort("TICKET", ticket_id)',
        'gsi1 = Index("GSI1", "ORG", raw(org_name)).sort(updated_at)',
        "ticket_id: Attr[KSUID]",
        "as a datetime, Isotone would write",
    ],
    "trending": [
        'indexes={"points-index": Local(Number("points"))}',
        "primary = Key(day).sort(song_id)",
        'by_points = Index("points-index", day).sort(points)',
    ],
    "speed_of_service": [
        'primary = Key(number).sort(written(at, "%Y-%m-%d %H:%M:%S"), raw(sk_part))',
        'primary = Key("LEADERBOARD").sort(number)',
        'gsi_1 = Index("gsi-1", "LEADERBOARD").sort(day, raw(number_2), otd_average)',
        'otd_average: Attr[int] = field(name="OTDAverage", max=999_999)',
    ],
    "feed": [
        '    partition="partition_key",\n    sort=Number("range_key"),\n',
        "# guessed: 2⁶³ − 1 − nanoseconds since 1970, so that the newest is the first",
    ],
    "electro": [
        'tag="__edb_e__"',
        'primary = Key("$taskapp#taskid", raw(task_id), separator="_").sort(',
        '"$task_1#project_", project, "#employeeid_", employee_id, separator=""',
        'employee_id: Attr[str] = field(name="employeeId", case="lower")',
        '.sort(\n        "$employee_1"\n    )',
    ],
    "threads": [
        'indexes={"view_index": Global("forum_name", Number("views"))}',
        'ttl="expires"',
        "expires_: Attr[datetime] = expires()",
        "created_at: Attr[datetime] = field(epoch=True)",
        "settings: Attr[Settings] = field()",
        "tags: Attr[set[str]] = field()",
        "# NULL in 9 of 12 items; Isotone leaves None out",
    ],
    "measurements": [
        'primary = Key("SENSOR", sensor_id).sort("READING", since_epoch(at, "milliseconds"))',
        'gsi1 = Index("GSI1", "DAY", written(day, "%Y%m%d")).sort(',
        "desc(since_epoch(at)), sensor_id",
        "sensor_id: Attr[UUID] = field()",
        'primary = Key("SENSOR", sensor_id).sort("META")',
    ],
}


@pytest.mark.parametrize("name", TABLES)
def test_the_declarations_are_right(name: str) -> None:
    found, _ = inferred(TABLES[name])
    missing = [text for text in RIGHT[name] if text not in found.source]
    assert not missing, found.source


@pytest.mark.parametrize("fill", TABLES.values(), ids=TABLES)
def test_verify_finds_nothing_that_is_not_noted(fill: Fill) -> None:
    with isotone.open(":memory:") as database:
        table = fill(database.client())
        before = database.execute("Scan", {"TableName": table})
        found = isotone.infer(isotone.connect(database), table, verify=True)
        assert found.is_complete
        assert found.unexpected == ()
        assert found.verification is not None
        assert found.verification.items == found.items
        assert database.execute("Scan", {"TableName": table}) == before


def test_what_is_not_known_is_noted() -> None:
    notes = {
        name: [str(note) for note in inferred(TABLES[name])[0].notes]
        for name in ("github", "untagged", "orders", "feed", "speed_of_service")
    }
    assert notes["github"] == []
    assert notes["untagged"] == [
        "no item has a tag, so Isotone adds '_type' to each item that it puts",
        "fields that are only in keys are written as attributes, too, when an item is put",
        "Org.org: only in PK",
        "OrgUser.org: only in PK",
        "OrgUser.user: only in SK",
        "UserProfile.user: only in PK",
    ]
    assert "CustomerOrder.order_status: guessed: 3 different values in 16 items" in notes["orders"]
    assert "Leaderboard.number_2: only in gsisk-1" in notes["speed_of_service"]
    assert any(note.startswith("TicksTestTable.range_key: guessed") for note in notes["feed"])


# Every backend, and both kinds of stores


@pytest.mark.parametrize("name", ["github", "threads"])
def test_servers_and_files_give_the_same_module(name: str, tmp_path: Path) -> None:
    wanted = inferred(TABLES[name])[0].source
    with isotone.open(tmp_path / "app.db") as database, running_server(database) as url:
        table = TABLES[name](database.client())
        for address in (url, tmp_path / "app.db"):
            with isotone.connect(address) as store:
                assert isotone.infer(store, table, verify=True).source == wanted


def test_an_async_store_infers_as_well() -> None:
    wanted = inferred(TABLES["shop"])[0].source
    told: list[tuple[str, int]] = []

    async def ask(database: isotone.Database) -> isotone.Inferred:
        async with isotone.aconnect(database) as store:
            return await isotone.infer(
                store, "shop", verify=True, progress=lambda *state: told.append(state)
            )

    with isotone.open(":memory:") as database:
        TABLES["shop"](database.client())
        assert asyncio.run(ask(database)).source == wanted
    assert told[0] == ("reading", 60)
    assert told[-1] == ("verifying", 60)


def test_a_prefix_of_table_names_is_not_in_the_module() -> None:
    with isotone.open(":memory:") as database:
        client = database.client()
        TABLES["trending"](client)
        with isotone.connect(database, table_prefix="Tren") as store:
            found = isotone.infer(store, "ding", verify=True)
            assert found.is_complete
            assert 'ding = Table(\n    "ding",\n' in found.source
            assert len(store.all(found.load().Ding.primary.scan())) == 8
