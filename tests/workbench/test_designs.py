"""The design of a model: the calls for its diagram, its sheet at typed sizes, its collections and findings."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest
from tests.workbench.page import Browserless

import isotone
from isotone.design import SampleRequest, Several, SheetRequest
from isotone.server import running_server
from isotone.workbench import Workbench
from isotone.workbench.designs import DesignPart, DesignSource

shop = isotone.Table("shop", indexes={"GSI1": isotone.Global("GSI1PK", "GSI1SK")})
logs = isotone.Table("logs")


class Customer(isotone.Entity, table=shop):
    customer_id: isotone.Attr[str] = isotone.field()

    primary = isotone.Key("CUSTOMER", customer_id).sort("CUSTOMER")


class Order(isotone.Entity, table=shop):
    customer_id: isotone.Attr[str] = isotone.field()
    number: isotone.Attr[int] = isotone.field(max=99_999)

    primary = Customer.primary.children(customer_id).after("ORDER", number)
    newest = isotone.Index("GSI1", "ORDERS").sort(isotone.desc(number))


class Line(isotone.Entity, table=logs):
    file: isotone.Attr[str] = isotone.field()
    line_number: isotone.Attr[str] = isotone.field()

    primary = isotone.Key("FILE", file).sort("LINE", line_number)


ASKED = SheetRequest(
    sample=SampleRequest(items={"Customer": 30}, per={("Order", "Customer"): Several.of(4)}),
    rates={"Order.put": 10.0},
)
SOURCE = DesignSource("models", {"shop": DesignPart((shop,)), "logs": DesignPart((logs,))}, ASKED)


@pytest.fixture
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        with isotone.connect(database) as store:
            isotone.seed(store, shop, items={Customer: 3}, per={Order: 2})
        yield database


@pytest.fixture
def page(database: isotone.Database) -> Iterator[Browserless]:
    pages = Workbench(database, target=":memory:", tables=[shop, logs], design=SOURCE)
    with running_server(database, pages=pages) as url:
        yield Browserless(url)


def test_a_design_has_all_that_follows_from_the_model(page):
    assert page.call("session")["design"] == {"name": "models", "live": False}
    design = page.call("design")["design"]
    assert (design["part"], design["parts"], design["tables"]) == (
        "shop",
        ["shop", "logs"],
        ["shop"],
    )
    assert "Customer" in "".join(ElementTree.fromstring(design["diagram"]).itertext())
    assert [(each["name"], each["parent"]) for each in design["entities"]] == [
        ("Customer", None),
        ("Order", "Customer"),
    ]
    assert design["asked"] == {
        "items": {"Customer": "30"},
        "per": {"Order": "4"},
        "rates": {"Order.put": "10"},
        "reads": "1",
        "writes": "1",
    }
    (finding,) = design["findings"]
    assert (finding["code"], finding["place"]["name"]) == ("ISO205", "Order.newest")
    assert [(each["table"], each["index"]) for each in design["drawings"]] == [
        ("shop", None),
        ("shop", "GSI1"),
    ]
    drawn = "".join(ElementTree.fromstring(design["drawings"][0]["svg"]).itertext())
    assert drawn.count("ORDER#") >= 6  # the items of the database, not of another sample


def test_another_part_with_its_findings(page):
    design = page.call("design", {"part": "logs"})["design"]
    assert design["part"] == "logs"
    (finding,) = (each for each in design["findings"] if each["code"] == "ISO101")
    assert finding["text"] == "line_number: isotone.Attr[str] = isotone.field()"
    assert finding["place"]["name"] == "Line.line_number"
    assert "⚠ ISO101" in design["diagram"]
    assert "ISO101" not in design["plain_diagram"]
    assert design["drawings"] == []  # the table is not there
    assert "logs" in design["undrawn"]
    assert page.call("design", {"part": "gone"})["design"]["part"] == "shop"


def test_a_sheet_is_computed_for_what_is_typed(page):
    sheet = page.call("design_sheet", {"part": "shop"})
    assert sheet["entities"] == {"Customer": 30, "Order": 120}
    rows = {row["name"]: row for row in sheet["rows"]}
    assert rows["Order.put"]["rate"] == 10
    assert not any(row["is_hot"] for row in sheet["rows"])
    typed = {
        "part": "shop",
        "items": {"Customer": "1k"},
        "per": {"Order": ""},
        "rates": {"Order.put": "2k", "Gone.put": "7"},
        "reads": "0",
    }
    sheet = page.call("design_sheet", typed)
    assert sheet["entities"]["Customer"] == 1000
    rows = {row["name"]: row for row in sheet["rows"]}
    assert rows["Order.put"]["is_hot"]  # every order is in the collection ORDERS of the index
    assert rows["Order.put"]["cells"][-1].endswith("HOT")
    assert rows["Customer.get"]["rate"] == 0
    assert any(line.startswith("hot: shop.GSI1") for line in sheet["summary"])
    lines = list(csv.DictReader(io.StringIO(sheet["csv"])))
    assert [line["pattern"] for line in lines] == list(rows)
    assert sheet["markdown"].startswith("| pattern |")
    assert len(sheet["columns"]) == len(sheet["rows"][0]["cells"])


def test_what_is_no_number_is_an_error_of_the_call(page):
    failed = page.call("design_sheet", {"part": "shop", "items": {"Customer": "many"}})
    assert failed["error"]["message"] == "'many' is not a number; write 2500, 10k or 10M"


def test_a_model_of_which_no_sample_can_be_made(database):
    twin = isotone.Table("twin")

    class Copy(isotone.Entity, table=twin, tag="Customer"):
        name: isotone.Attr[str] = isotone.field()
        primary = isotone.Key("COPY", name).sort("COPY")

    source = DesignSource("models", {"all": DesignPart((shop, twin))})
    with running_server(
        database, pages=Workbench(database, target=":memory:", design=source)
    ) as url:
        design = Browserless(url).call("design")["design"]
    assert "two entities have the tag 'Customer'" in design["unsampled"]
    assert design["entities"] == []
    assert {"Copy", "Order"} <= set(ElementTree.fromstring(design["diagram"]).itertext())


def test_a_workbench_without_a_design(database):
    with running_server(database, pages=Workbench(database, target=":memory:")) as url:
        page = Browserless(url)
        assert page.call("session")["design"] is None
        assert page.call("design") == {"design": None}
        assert page.call("design_sheet")["error"]["message"] == "this workbench has no design"
