"""What "copy as" gives for an access pattern is a whole program: it runs as it is pasted, and finds what the page shows."""

from __future__ import annotations

import ast
import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import ModuleType
from typing import Any, Literal

import pytest
from tests.examples.printed import FOLDER, NAMES, run
from tests.workbench.page import Browserless

import isotone
from isotone.inference import is_own
from isotone.server import running_server
from isotone.workbench import Workbench


def pasted(code: str) -> list[str]:
    """The lines that a program prints, run as a module of its own."""
    module = ModuleType("pasted")
    sys.modules["pasted"] = module
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            exec(compile(code, "pasted", "exec"), vars(module))
    finally:
        del sys.modules["pasted"]
        for client in (vars(module).get("store"), vars(module).get("client")):
            if client is not None:
                client.close()
    return printed.getvalue().splitlines()


def typed(value: Any) -> str:
    """A value as one types it into the form."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return json.dumps(value)
    return value.isoformat() if isinstance(value, datetime | date | time) else str(value)


def items_of(database: isotone.Database, name: str) -> list[Any]:
    found = database.execute("Scan", {"TableName": name})["Items"]
    return [item for item in found if not any(is_own(value) for value in item.values())]


def counted(database: isotone.Database, request: dict[str, Any]) -> int:
    """The number of items of a Query, on all its pages."""
    answer = database.execute("Query", {**request, "Select": "COUNT"})
    count: int = answer["Count"]
    if "LastEvaluatedKey" not in answer:
        return count
    return count + counted(database, {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]})


def guess(parameter: dict[str, Any]) -> str:
    """Something that one could type for a parameter of which no item has a value."""
    if parameter["choices"]:
        return str(parameter["choices"][0])
    if parameter["zone"] or "date" in parameter["type"]:
        return "2026-09-01"
    return "1" if parameter["type"] in ("int", "Decimal", "float") else "x"


def forms_of(
    database: isotone.Database, table: isotone.Table, model: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """The form of each access pattern, filled in from an item that has its key, if there is one."""
    items = items_of(database, table.name)
    for entity in model["entities"]:
        schema = table.entities[entity["name"]]
        own = [item for item in items if table.entity_of(item[table.tag]["S"]) is schema]
        for pattern in entity["patterns"]:
            item = next((item for item in own if pattern["form"].keys() <= item.keys()), None)
            read = None if item is None else schema.from_item(item)
            equal = {
                each["name"]: guess(each) if read is None else typed(getattr(read, each["name"]))
                for each in pattern["group"]
            }
            form = {"table": table.name, "entity": entity["name"], "pattern": pattern["name"]}
            yield {**form, "equal": equal}


@pytest.mark.parametrize("name", NAMES)
def test_every_pattern_of_the_examples_runs_as_it_is_pasted(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    with isotone.open(":memory:") as database, running_server(database) as url:
        run(name, url)
        example = sys.modules[name]
        tables = {
            each.name: each
            for each in vars(example).values()
            if isinstance(each, isotone.Table) and each.entities
        }
        pages = Workbench(database, target=url, tables=[*tables.values()], is_endpoint=False)
        with running_server(database, pages=pages) as own:
            page = Browserless(own)
            for table in tables.values():
                model = page.call("model", {"table": table.name})["model"]
                for form in forms_of(database, table, model):
                    answer = page.call("pattern", form)
                    assert "error" not in answer, answer
                    lines = pasted(answer["code"])
                    found = counted(database, answer["request"])
                    assert len(lines) == found, answer["code"]
                    snippets = page.call("code", {"action": "Query", "request": answer["request"]})
                    for each in snippets["snippets"]:
                        if each["language"] == "python":
                            assert len(pasted(each["text"])) == found, each["text"]


parcels = isotone.Table("parcels")
Stage = Literal["SENT", "LOST"]


class Parcel(isotone.Entity, table=parcels):
    depot: isotone.Attr[str] = isotone.field()
    number: isotone.Attr[int] = isotone.field(max=99)
    stage: isotone.Attr[Stage] = isotone.field(default="SENT", name="st")
    weight: isotone.Attr[Decimal] = isotone.field()
    sent_on: isotone.Attr[date] = isotone.field()
    note: isotone.Attr[str | None] = isotone.field(default=None)
    labels: isotone.Attr[list[str]] = isotone.field(default_factory=list)

    primary = isotone.Key("DEPOT", depot).sort("PARCEL", number)


FILTERS = [
    ("st", "=", [{"S": "LOST"}], 'Parcel.stage == "LOST"'),
    ("weight", "<>", [{"N": "3"}], 'Parcel.weight != Decimal("3")'),
    ("weight", "between", [{"N": "2"}, {"N": "4"}], "between"),
    ("sent_on", ">=", [{"S": "2026-03-05"}], "Parcel.sent_on >= date(2026, 3, 5)"),
    ("note", "begins_with", [{"S": "fra"}], 'Parcel.note.begins_with("fra")'),
    ("note", "contains", [{"S": "gile"}], 'Parcel.note.contains("gile")'),
    ("note", "exists", [], "Parcel.note.exists()"),
    ("note", "missing", [], "Parcel.note.missing()"),
]
UNSAID = [
    ("sent_on", "begins_with", [{"S": "2026-03"}]),  # no date
    ("weight", "=", [{"S": "3"}]),  # not of the field's type
    ("st", "=", [{"S": "GONE"}]),  # not of its values
    ("labels", "contains", [{"S": "red"}]),
    ("labels.0", "=", [{"S": "red"}]),
    ("other", "exists", []),
]


@pytest.fixture
def filtered() -> Iterator[Callable[..., dict[str, Any]]]:
    """Asks for the parcels of a depot, with a filter."""
    with isotone.open(":memory:") as database, running_server(database) as url:
        store = isotone.connect(database)
        store.create_tables(parcels)
        for number in range(1, 10):
            parcel = Parcel(
                depot="ghent", number=number, weight=Decimal(number), sent_on=date(2026, 3, number)
            )
            store.put(parcel.replace(note="fragile", stage="LOST") if number % 3 == 0 else parcel)
        pages = Workbench(database, target=url, tables=[parcels], is_endpoint=False)
        with running_server(database, pages=pages) as own:
            form = {"table": "parcels", "entity": "Parcel", "pattern": "primary"}

            def ask(attribute: str, operator: str, values: list[Any]) -> dict[str, Any]:
                found = {"attribute": attribute, "operator": operator, "values": values}
                given = {**form, "equal": {"depot": "ghent"}, "filters": [found]}
                return Browserless(own).call("pattern", given)

            yield ask


@pytest.mark.parametrize(("attribute", "operator", "values", "written"), FILTERS)
def test_a_filter_is_a_part_of_the_program(
    filtered: Callable[..., dict[str, Any]],
    attribute: str,
    operator: str,
    values: list[Any],
    written: str,
) -> None:
    code = filtered(attribute, operator, values)["code"]
    assert ".filter(" in code
    assert written in code
    lines = pasted(code)
    expected = {"=": 3, "<>": 8, "between": 3, ">=": 5, "missing": 6}.get(operator, 3)
    assert len(lines) == expected


@pytest.mark.parametrize(("attribute", "operator", "values"), UNSAID)
def test_a_filter_that_the_model_cannot_say_has_no_program(
    filtered: Callable[..., dict[str, Any]], attribute: str, operator: str, values: list[Any]
) -> None:
    answer = filtered(attribute, operator, values)
    assert answer["code"] is None
    assert "FilterExpression" not in answer["request"]


PAGES = 3  # of 1 MB each, which is what one answer may have read


@pytest.fixture
def copied(page: Browserless, database: isotone.Database) -> Callable[..., dict[str, str]]:
    """The programs of a request for a table of several pages, by their names."""
    keys = [("pk", "HASH"), ("sk", "RANGE")]
    request = {
        "TableName": "large",
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        "BillingMode": "PAY_PER_REQUEST",
    }
    database.execute("CreateTable", request)
    for number in range(PAGES * 10):
        item = {"pk": {"S": "one"}, "sk": {"S": f"{number:03}"}, "total": {"N": str(number)}}
        item["text"] = {"S": "x" * 100_000}
        database.execute("PutItem", {"TableName": "large", "Item": item})

    def programs(action: str, request: dict[str, Any]) -> dict[str, str]:
        given = {"action": action, "request": {"TableName": "large", **request}}
        snippets = page.call("code", {**given, "origin": page.url})["snippets"]
        return {each["name"]: each["text"] for each in snippets}

    return programs


FILTERED: dict[str, Any] = {
    "FilterExpression": "#t >= :t",
    "ExpressionAttributeNames": {"#t": "total"},
    "ExpressionAttributeValues": {":t": {"N": "25"}},
}
OF_ONE = {
    "KeyConditionExpression": "pk = :p",
    "FilterExpression": "#t >= :t",
    "ExpressionAttributeNames": {"#t": "total"},
    "ExpressionAttributeValues": {":p": {"S": "one"}, ":t": {"N": "25"}},
}


@pytest.mark.parametrize(("action", "request_"), [("Scan", FILTERED), ("Query", OF_ONE)])
@pytest.mark.parametrize("name", ["Isotone", "boto3"])
def test_a_copied_read_goes_through_all_pages(
    copied: Callable[..., dict[str, str]], name: str, action: str, request_: dict[str, Any]
) -> None:
    """What a filter leaves is on the last page; a program of one request would find nothing."""
    lines = pasted(copied(action, request_)[name])
    assert [ast.literal_eval(each)["sk"]["S"] for each in lines] == [
        f"{n:03}" for n in range(25, 30)
    ]


@pytest.mark.parametrize(
    "more", [{"Limit": 2}, {"ExclusiveStartKey": {"pk": {"S": "one"}, "sk": {"S": "1"}}}]
)
def test_a_page_that_was_asked_for_stays_a_page(
    copied: Callable[..., dict[str, str]], more: dict[str, Any]
) -> None:
    shown = copied("Scan", more)
    for name in ("Isotone", "boto3"):
        (line,) = pasted(shown[name])
        assert "'Count'" in line
    assert "ScanCommand" in shown["JavaScript"]
    assert "--no-paginate" in shown["AWS CLI"]


def test_javascript_and_the_cli_go_through_all_pages(
    copied: Callable[..., dict[str, str]],
) -> None:
    """They are run in tests/sdks."""
    for action, request in (("Scan", FILTERED), ("Query", OF_ONE)):
        shown = copied(action, request)
        assert f"for await (const page of paginate{action}({{ client }}, {{" in shown["JavaScript"]
        assert "--no-paginate" not in shown["AWS CLI"]


def test_times_are_taken_as_utc_and_the_program_says_so() -> None:
    sys.modules["clocks"] = module = ModuleType("clocks")
    source = """
from datetime import datetime
from decimal import Decimal

from isotone import Attr, Entity, Key, Table, field

ticks = Table("ticks")


class Tick(Entity, table=ticks):
    price: Attr[Decimal] = field(max=99, scale=2)
    at: Attr[datetime] = field()

    primary = Key("PRICE", price).sort(at)
"""
    exec(compile(source, "clocks", "exec"), vars(module))
    with isotone.open(":memory:") as database, running_server(database) as url:
        with isotone.connect(url) as store:
            store.create_tables(vars(module)["ticks"])
        pages = Workbench(database, target=url, tables=[vars(module)["ticks"]], is_endpoint=False)
        with running_server(database, pages=pages) as own:
            page = Browserless(own)
            model = page.call("model", {"table": "ticks"})["model"]
            (parameter,) = model["entities"][0]["patterns"][0]["order"]
            assert (parameter["name"], parameter["zone"]) == ("at", "UTC")
            form = {"table": "ticks", "entity": "Tick", "pattern": "primary"}
            form |= {"equal": {"price": "1.5"}, "component": "at", "operator": ">="}
            answer = page.call("pattern", {**form, "values": ["2026-09-01"]})
            assert "datetime(2026, 9, 1, 0, 0, tzinfo=UTC)" in answer["code"]
            assert 'Decimal("1.5")' in answer["code"]
            assert "2026-09-01T00:00:00" in json.dumps(answer["request"])
            assert pasted(answer["code"]) == []
            moved = page.call("pattern", {**form, "values": ["2026-09-01T01:00+02:00"]})
            assert "datetime(2026, 8, 31, 23, 0, tzinfo=UTC)" in moved["code"]
            wrong = page.call("pattern", {**form, "values": ["yesterday"]})["error"]["message"]
            assert wrong == (
                "'yesterday' is not a datetime, which 'at' is: write 2026-09-01 or 2026-09-01T12:00"
            )
    del sys.modules["clocks"]


@pytest.mark.parametrize(
    ("operator", "days", "found"),
    [
        ("between", ["2026-04-01", "2026-04-10"], [2, 3, 4]),
        ("<=", ["2026-04-10"], [1, 2, 3, 4]),
        ("<", ["2026-04-10"], [1, 2]),
        (">", ["2026-04-10"], [5]),
        (">=", ["2026-04-10"], [3, 4, 5]),
        ("between", ["2026-04-10T00:00", "2026-04-10T00:00"], [3]),
        ("==", ["2026-04-10"], [3]),
    ],
)
@pytest.mark.parametrize("precision", ["seconds", "milliseconds", "microseconds"])
@pytest.mark.parametrize("order", ["at", "desc(at)", "since_epoch(at, {precision!r})"])
def test_a_day_in_a_range_of_times_is_all_of_it(
    operator: str, days: list[str], found: list[int], precision: str, order: str
) -> None:
    sys.modules["visits"] = module = ModuleType("visits")
    source = f"""
from datetime import datetime, timedelta, timezone

from isotone import Attr, Entity, Key, Table, desc, field, since_epoch

visits = Table("visits")


class Visit(Entity, table=visits):
    place: Attr[str] = field()
    at: Attr[datetime] = field(precision="{precision}", zone=timezone(timedelta(hours=2)))
    number: Attr[int] = field()

    primary = Key("PLACE", place).sort({order.format(precision=precision)})
"""
    exec(compile(source, "visits", "exec"), vars(module))
    last = {"seconds": "59", "milliseconds": "59.999", "microseconds": "59.999999"}[precision]
    times = (
        "03-31T23:59:00",
        "04-01T00:00:00",
        "04-10T00:00:00",
        f"04-10T23:59:{last}",
        "04-11T00:00:00",
    )
    with isotone.open(":memory:") as database, running_server(database) as url:
        with isotone.connect(url) as store:
            store.create_tables(vars(module)["visits"])
            for number, each in enumerate(times, 1):
                at = datetime.fromisoformat(f"2026-{each}+02:00")
                store.put(vars(module)["Visit"](place="inn", at=at, number=number))
        pages = Workbench(database, target=url, tables=[vars(module)["visits"]], is_endpoint=False)
        with running_server(database, pages=pages) as own:
            form: dict[str, Any] = {"table": "visits", "entity": "Visit", "pattern": "primary"}
            form |= {"equal": {"place": "inn"}, "component": "at", "operator": operator}
            if operator == "==":
                form |= {"equal": {"place": "inn", "at": days[0]}, "component": "", "operator": ""}
            answer = Browserless(own).call("pattern", {**form, "values": days})
        read = database.execute("Query", answer["request"])["Items"]
        assert sorted(int(each["number"]["N"]) for each in read) == found
        assert len(pasted(answer["code"])) == len(found)
    del sys.modules["visits"]


def test_the_program_of_an_inferred_model_has_the_model(page: Browserless) -> None:
    model = page.call("model", {"table": "GitHub"})["model"]
    (fork,) = [each for each in model["entities"] if each["name"] == "Fork"]
    equal = {each["name"]: "ann" for each in fork["patterns"][0]["group"]}
    form = {"table": "GitHub", "entity": "Fork", "pattern": fork["patterns"][0]["name"]}
    answer = page.call("pattern", {**form, "equal": equal, "origin": page.url})
    assert "class Fork(" in answer["code"]
    pasted(answer["code"])
