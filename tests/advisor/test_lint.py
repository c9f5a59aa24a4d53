from __future__ import annotations

import asyncio
import importlib
import io
import json
from collections.abc import Callable
from contextlib import chdir, redirect_stdout, suppress
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.advisor import planted, suppressing, two_tables
from tests.docs.pages import PAGES, Page
from tests.examples.printed import FOLDER, NAMES

import isotone
from isotone import Attr, Entity, Global, Key, Local, Number, Table, field
from isotone.advisor.lint import (
    RULES,
    FindingPlace,
    LintFinding,
    LintReport,
    Settings,
    Thresholds,
    lint,
)
from isotone.advisor.lint.settings import settings_of
from isotone.errors import UsageError

OF_DATA = "planted_data"


def of(report: LintReport, code: str) -> Any:
    return [finding for finding in report.findings if finding.code == code]


# Models


@pytest.mark.parametrize("code", sorted(planted.PLANTED))
def test_each_planted_fault_of_a_model_is_found(code: str) -> None:
    (finding, *_) = of(lint(planted), code)
    assert finding.place.file.endswith("planted.py")
    assert finding.place.line > 0
    assert finding.reason
    assert finding.cost
    assert finding.fix


def test_an_overloaded_index_is_one_finding() -> None:
    """Four kinds of entities beside a sparse one are an ordinary design: one finding says what to know of it."""
    table = Table("overloaded", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    def declare(name: str) -> Any:
        tenant: Any = field()
        when: Any = field()
        namespace = {
            "__annotations__": {"tenant": Attr[str], "at": Attr[datetime]},
            "__module__": __name__,
            "tenant": tenant,
            "at": when,
            "primary": Key("TENANT", tenant).sort(name.upper(), when),
            "by_time": isotone.Index("GSI1", name.upper(), tenant).sort(when),
        }
        make: Any = type(Entity)
        return make(name, (Entity,), namespace, table=table)

    for name in ("Tenant", "Member", "Usage", "Payment"):
        declare(name)

    class Invoice(Entity, table=table):
        tenant: Attr[str] = field()
        number: Attr[int] = field(max=999)
        status: Attr[str] = field(default="UNPAID")

        primary = Key("TENANT", tenant).sort("INVOICE", number)
        unpaid = isotone.Index("GSI1", "UNPAID", when=status == "UNPAID").sort(number, tenant)

    report = lint(table)
    (sparse,) = of(report, "ISO302")
    assert "every Tenant and Member and Usage and Payment" in sparse.reason
    (constant,) = of(report, "ISO205")
    assert constant.place == sparse.place
    assert "Invoice.unpaid" in constant.reason
    assert len(report.findings) == 2


def test_a_constant_partition_of_data_is_found() -> None:
    with isotone.connect(":memory:") as store:
        backend = store.backend
        table = Table("bills", partition="pk", sort=None, indexes={"open": Global("state", "pk")})
        store.create_tables(table)
        for number in range(60):
            state = "UNPAID" if number < 20 else f"PAID#{number}"
            item = {"pk": {"S": f"b{number}"}, "state": {"S": state}}
            backend.execute("PutItem", {"TableName": "bills", "Item": item})
        thresholds = Thresholds(partition_items=20)
        (finding,) = of(
            lint("bills", store=store, settings=Settings(thresholds=thresholds)), "ISO205"
        )
    assert str(finding.place) == 'bills.open "UNPAID"'


def test_nothing_else_is_found_in_them() -> None:
    assert set(lint(planted).codes) == planted.PLANTED


def test_a_finding_is_on_the_line_of_its_declaration() -> None:
    lines = Path(planted.__file__).read_text(encoding="utf-8").splitlines()
    for code, text in [
        ("ISO101", "primary = Key("),
        ("ISO103", "email: Attr"),
        ("ISO104", "hired_at: Attr"),
        ("ISO105", "reverse = Index"),
        ("ISO301", "shop = Table"),
        ("ISO303", "by_due = Index"),
    ]:
        (finding,) = of(lint(planted), code)
        assert text in lines[finding.place.line - 1], code


FEW_ITEMS = Settings(ignore={"ISO205": "examples have a few items, which one partition bears"})


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_found_in_the_examples(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    report = lint(importlib.import_module(name), settings=FEW_ITEMS)
    assert not report.findings, report.text()


# Pages whose models are those of other programs, or are meant to be wrong.
WITH_FAULTS = {"docs/adopting.md", "docs/migrating.md", "docs/lint.md"}
# Pages that have tests of their own for their code.
RUN_ELSEWHERE = {"docs/testing.md"}
CLEAN = [
    page
    for page in PAGES
    if page.name not in WITH_FAULTS | RUN_ELSEWHERE and " = Table(" in page.text
]


@pytest.mark.parametrize("page", CLEAN, ids=lambda page: page.name)
def test_nothing_is_found_in_the_models_of_the_docs(page: Page, tmp_path: Path) -> None:
    for table in tables_of(page, tmp_path):
        report = lint(table, settings=FEW_ITEMS)
        assert not report.findings, report.text()


def tables_of(page: Page, folder: Path) -> set[Table]:
    """The tables that a page declares: runs its blocks, as far as they run without a server."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with chdir(folder), redirect_stdout(io.StringIO()):
        for block in page.blocks("python"):
            declares = " = Table(" in block.text or "(Entity, table=" in block.text
            if declares and not block.needs_azurite:
                with suppress(Exception):
                    exec(compile(block.text, page.name, "exec"), namespace)
    return {
        value
        for value in namespace.values()
        if isinstance(value, Table) and any(map(is_of_page, value.entities.values()))
    }


def is_of_page(schema: Any) -> bool:
    return not schema.entity.__module__.startswith("isotone.")


def test_an_engine_that_lacks_something() -> None:
    report = lint(planted, settings=Settings(engines=("azure-table",)))
    reasons = [finding.reason for finding in of(report, "ISO501")]
    assert any(
        "index 'due' of table 'planted_shop' needs local indexes" in each for each in reasons
    )
    assert not of(lint(planted, settings=Settings(engines=("dynamodb",))), "ISO501")
    with pytest.raises(UsageError, match="'mars' is not an engine"):
        lint(planted, settings=Settings(engines=("mars",)))


def test_suppressions() -> None:
    report = lint(suppressing)
    assert [each.reason for each in report.suppressed if each.finding.code == "ISO202"] == [
        "a hundred visits a day"
    ]
    (without_reason,) = of(report, "ISO001")
    assert "ignore[ISO103] has no reason" in without_reason.reason
    reasons = [each.reason for each in of(report, "ISO002")]
    assert sorted(reasons) == [
        "ignore[ISO202] suppresses nothing.",
        "ignore[ISO999] names ISO999, which is not a code.",
    ]


def test_settings_of_a_project() -> None:
    settings = settings_of(
        {"select": ["ISO1"], "ignore": {"ISO103": "as typed", "ISO104": ""}, "engines": ["isotone"]}
    )
    report = lint(planted, settings=settings)
    assert set(report.codes) == {"ISO101", "ISO105"}
    assert {each.finding.code for each in report.suppressed} == {"ISO103", "ISO104"}
    report = lint(planted, settings=settings_of({"ignore": {"ISO104": ""}}))
    (finding,) = of(report, "ISO001")
    assert str(finding.place) == "pyproject.toml"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"selection": []}, "'selection' is not a setting"),
        ({"select": ["XYZ"]}, "'XYZ' is not a code"),
        ({"ignore": ["ISO103"]}, "ignore is a table of codes with reasons"),
        ({"thresholds": {"hits": 1}}, "'hits' is not a threshold"),
        ({"thresholds": {"hit_rate": 0}}, "threshold hit_rate is 0"),
        ({"thresholds": 5}, "thresholds is a table of figures"),
        ({"select": 5}, "select is 5; write a list"),
        ({"engines": [1]}, "engines is .1.; write a list"),
    ],
)
def test_settings_that_do_not_exist(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        settings_of(given)


def test_comments_of_what_was_not_checked_are_not_judged() -> None:
    """Of another table, of engines that were not asked, of a base in another module."""
    for target in (two_tables, two_tables.OpenOrder, two_tables.ClosedOrder):
        report = lint(target)
        assert not report.findings, report.text()
        assert report.suppressed
    codes = [each.finding.code for each in lint(two_tables).suppressed]
    assert sorted(codes) == ["ISO103", "ISO105", "ISO105"]
    of_engine = lint(two_tables, settings=Settings(engines=("azure-table",)))
    assert "copied elsewhere" in [each.reason for each in of_engine.suppressed]
    (unused,) = of(lint(two_tables, settings=Settings(engines=("dynamodb",))), "ISO002")
    assert "ignore[ISO501]" in unused.reason


def test_faults_of_comments_are_ignored_like_others() -> None:
    ignored = settings_of({"ignore": {"ISO001": "old code", "ISO002": "old code"}})
    report = lint(suppressing, settings=ignored)
    assert not [*of(report, "ISO001"), *of(report, "ISO002")]
    assert {each.finding.code for each in report.suppressed} >= {"ISO001", "ISO002"}


def test_sarif_distinguishes_comments_from_configuration() -> None:
    def kinds(report: LintReport) -> set[str]:
        (run,) = report.to_sarif()["runs"]
        found = [each["suppressions"] for each in run["results"] if "suppressions" in each]
        return {kind["kind"] for kinds in found for kind in kinds}

    assert kinds(lint(two_tables)) == {"inSource"}
    assert kinds(lint(planted, settings=settings_of({"ignore": {"ISO1": "why"}}))) == {"external"}


def test_sarif_has_addresses() -> None:
    def uri(file: str) -> str:
        place = FindingPlace(file, 1)
        (run,) = LintReport((LintFinding("ISO103", place, "r", "c", "m"),)).to_sarif()["runs"]
        (result,) = run["results"]
        found = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        return str(found)

    assert uri("my shop/a#b.py") == "my%20shop/a%23b.py"
    assert uri("/home/my shop/a.py") == "file:///home/my%20shop/a.py"


def test_a_store_that_has_a_part_of_the_model() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(two_tables.open_orders)
        assert lint(two_tables, store=store).checked == ("two_open", "two_closed")


def test_what_cannot_be_checked() -> None:
    with pytest.raises(UsageError, match="'Orders' is the name of a table, which only a store has"):
        lint("Orders")
    with pytest.raises(UsageError, match="needs something to check"):
        lint()
    with pytest.raises(UsageError, match="has no table"):
        lint(ModuleType("empty"))


# Data: for each code, items that have the fault, and items that do not


class Planted(Entity, table=Table(OF_DATA)):
    owner: Attr[str] = field()
    at: Attr[datetime] = field()
    status: Attr[str] = field(default="PLACED")

    primary = Key("OWNER", owner).sort(at)


SMALL = Thresholds(
    partition_items=100, item_bytes=20_000, collection_bytes=200_000, filtered_items=20
)
KEYS: dict[str, tuple[Callable[[int], str], Callable[[int], str]]] = {
    "ISO101": (lambda n: f"ORDER#{n}", lambda n: f"ORDER#{n:09}"),
    "ISO102": (lambda n: f"ORDER#{n + 400:03}" if n else "ORDER#001", lambda n: f"ORDER#{n:06}"),
    "ISO103": (
        lambda n: f"USER#{'Anna' if n % 2 else 'anna'}{'x' * n}",
        lambda n: f"USER#anna{'x' * n}",
    ),
    "ISO104": (lambda n: f"DAY#{n % 28 + 1:02}/02/2026", lambda n: f"DAY#2026-02-{n % 28 + 1:02}"),
    "ISO105": (
        lambda n: f"2026-01-01T00:{n:02}:00Z#{'SHIPPED' if n % 2 else 'PLACED'}",
        lambda n: f"{'SHIPPED' if n % 2 else 'PLACED'}#2026-01-01T00:{n:02}:00Z",
    ),
}


def with_items(items: list[dict[str, Any]], **options: Any) -> isotone.Store:
    store = isotone.connect(":memory:", check_keys=False)
    store.create_tables(Table(OF_DATA, **options))
    for item in items:
        store.backend.execute("PutItem", {"TableName": OF_DATA, "Item": item})
    return store


def keyed(keys: list[tuple[str, str]], **more: Any) -> list[dict[str, Any]]:
    return [{"PK": {"S": pk}, "SK": {"S": sk}, **more} for pk, sk in keys]


@pytest.mark.parametrize("code", sorted(KEYS))
def test_each_planted_fault_of_keys_is_found(code: str) -> None:
    bad, good = KEYS[code]
    found = lint(store=with_items(keyed([("CUSTOMER#a", bad(n)) for n in range(50)])))
    (finding,) = of(found, code)
    assert (finding.place.table, finding.place.key) == (OF_DATA, "SK")
    clean = lint(store=with_items(keyed([("CUSTOMER#a", good(n)) for n in range(50)])))
    assert not clean.findings, clean.text()


def test_consecutive_partition_keys_are_found() -> None:
    store = with_items(keyed([(f"ORDER#{n:05}", "x") for n in range(1, 80)]))
    (finding,) = of(lint(store=store), "ISO106")
    assert finding.place.key == "PK"
    store = with_items(keyed([(f"ORDER#{n * n:05}", "x") for n in range(1, 80)]))
    assert not of(lint(store=store), "ISO106")


def test_a_partition_with_most_items_is_found() -> None:
    keys = [("ALL", f"{n:05}") for n in range(150)] + [(f"O#{n * n}", "x") for n in range(20)]
    found = lint(store=with_items(keyed(keys)), settings=Settings(thresholds=SMALL))
    (finding,) = of(found, "ISO201")
    assert '"ALL"' in finding.place.key
    spread = [(f"O#{n % 10}", f"{n:05}") for n in range(150)]
    found = lint(store=with_items(keyed(spread)), settings=Settings(thresholds=SMALL))
    assert not of(found, "ISO201")


def test_a_sample_of_one_partition_is_not_a_table_of_one_partition() -> None:
    spread = [(f"O#{n % 20}", f"{n:05}") for n in range(2000)]
    items = [{**item, "GPK": {"S": item["PK"]["S"]}} for item in keyed(spread)]
    store = with_items(items, indexes={"by_owner": Global("GPK")})
    for sample in (100, 150, 5000):
        found = lint(store=store, settings=Settings(thresholds=SMALL), sample=sample)
        assert not of(found, "ISO201"), found.text()


def test_an_index_with_one_partition_is_found_in_a_sample() -> None:
    items = [{**item, "GPK": {"S": "ALL"}} for item in keyed([(f"O#{n}", "x") for n in range(500)])]
    store = with_items(items, indexes={"all": Global("GPK")})
    found = lint(store=store, settings=Settings(thresholds=SMALL), sample=100)
    (finding,) = of(found, "ISO201")
    assert (finding.place.index, finding.place.key) == ("all", '"ALL"')
    assert "about 500 items" in finding.reason


def test_the_order_of_partition_keys_does_not_matter() -> None:
    names = [f"USER#{n * n}" for n in range(50)] + [f"DAY#{n}/1/2026" for n in range(1, 13)]
    found = lint(store=with_items(keyed([(name, "x") for name in names])))
    assert not found.findings, found.text()
    inverted = {"inverted": Global("SK", "PK")}
    found = lint(store=with_items(keyed([(name, "x") for name in names]), indexes=inverted))
    assert {(each.code, each.place.index) for each in found.findings} == {
        ("ISO101", "inverted"),
        ("ISO104", "inverted"),
    }


def test_a_large_collection_with_a_local_index_is_found() -> None:
    items = keyed([("A", f"{n:05}") for n in range(30)], body={"S": "x" * 10_000})
    local = {"by_due": Local(Number("due"))}
    found = lint(store=with_items(items, indexes=local), settings=Settings(thresholds=SMALL))
    assert of(found, "ISO203")
    found = lint(store=with_items(items), settings=Settings(thresholds=SMALL))
    assert not of(found, "ISO203")


def test_a_large_item_is_found() -> None:
    items = [*keyed([("A", "1")], body={"S": "x" * 30_000}), *keyed([("A", "2")])]
    found = lint(store=with_items(items), settings=Settings(thresholds=SMALL))
    (finding,) = of(found, "ISO204")
    assert '"1"' in finding.place.key
    assert not of(lint(store=with_items(items)), "ISO204")


def test_an_index_without_items_is_found() -> None:
    items = keyed([(f"O#{n * n}", "x") for n in range(120)])
    indexes = {"GSI1": Global("GSI1PK")}
    found = lint(store=with_items(items, indexes=indexes), settings=Settings(thresholds=SMALL))
    (finding,) = of(found, "ISO301")
    assert finding.place.index == "GSI1"


def test_a_filter_that_drops_most_is_found_by_the_data() -> None:
    with isotone.connect(":memory:") as store:
        store.create_tables(planted.shop)
        store.put_many(
            planted.Order(
                customer="ann",
                number=n,
                status="SHIPPED" if n % 10 == 0 else "PLACED",
                ordered_at=datetime.fromisoformat("2026-01-01T00:00:00Z"),
                title="x",
            )
            for n in range(40)
        )
        found = lint(planted, store=store, settings=Settings(thresholds=SMALL))
        (finding,) = of(found, "ISO401")
        assert finding.place.name == "shipped"
        assert "returns 4 of 40 items" in finding.reason
        assert not of(lint(planted, store=store), "ISO401")  # too few items to matter


def test_a_filter_that_drops_most_is_found_in_observations() -> None:
    observed: list[isotone.Observation] = []
    with isotone.connect(":memory:", observe=[isotone.at_end(observed.append)]) as store:
        store.create_tables(planted.shop)
        for n in range(150):
            at = datetime.fromisoformat("2026-01-01T00:00:00Z")
            store.put(
                planted.Order(customer="a", number=n, status="PLACED", ordered_at=at, title="")
            )
        store.all(
            planted.Order.primary.where(planted.Order.customer == "a").filter(
                planted.Order.status == "SHIPPED"
            )
        )
    (finding,) = of(lint(observations=observed), "ISO401")
    assert finding.place.table == "planted_shop"


def test_with_an_async_store() -> None:
    async def ask() -> LintReport:
        async with isotone.aconnect() as store:
            await store.create_tables(planted.shop)
            return await lint(planted, store=store)

    assert set(asyncio.run(ask()).codes) == planted.PLANTED


# Reports


def test_each_code_is_found_by_a_test() -> None:
    of_model = planted.PLANTED | {"ISO501", "ISO001", "ISO002"}
    of_data = {*KEYS, "ISO106", "ISO201", "ISO203", "ISO204", "ISO301", "ISO401"}
    assert of_model | of_data == RULES.keys()


def test_forms_of_a_report() -> None:
    report = lint(planted, suppressing)
    assert report.text().splitlines()[-1].endswith("in planted_shop, suppressed_days")
    told = json.loads(json.dumps(report.to_dict()))
    assert told["findings"][0]["place"]["line"]
    (run,) = json.loads(json.dumps(report.to_sarif()))["runs"]
    assert len(run["results"]) == len(report.findings) + len(report.suppressed)
    location = run["results"][0]["locations"][0]["physicalLocation"]
    assert location["region"]["startLine"] == report.findings[0].place.line
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert not lint(Planted)
    assert str(lint(Planted)) == f"no findings in {OF_DATA}"
