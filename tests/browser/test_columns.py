"""Columns that a user arranges, in real Chromium: hidden, moved, resized and sorted, by mouse and by keyboard.

Also what the frame around them tells: the palette that finds a model's names, and whether the server is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.workbench.every_type import MOMENT, Customer, order, shop

import isotone
from isotone.server import running_server
from isotone.workbench import Workbench as Pages

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench  # noqa: E402

# Of the two large ones, JavaScript makes the same number.
TOTALS = ["3", "20", "12345678901234567", "100", "1", "12345678901234568"]

ANN = "#/t/shop/items?pk=%5B%22S%3ACUSTOMER%23ann%22%5D"


@pytest.fixture
def address() -> Iterator[str]:
    """A server of one customer's orders; the later ones come first."""
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(shop)
        for number, total in enumerate(TOTALS):
            placed = MOMENT + timedelta(hours=number, microseconds=123456)
            store.put(order(placed=placed, total=Decimal(total), invoice=f"I-{number}"))
        store.put(Customer(login="ann", name="Ann"))
        pages = Pages(database, target=":memory:", tables=[shop])
        with running_server(database, pages=pages) as url:
            yield url


@pytest.fixture
def bench(chrome: Any, address: str) -> Iterator[Workbench]:
    context = chrome.new_context(viewport={"width": 1440, "height": 900})
    bench = Workbench(context.new_page(), address)
    bench.open(ANN)
    bench.wait_for_items(7)
    bench.page.locator(".row.head .entity").first.wait_for()
    yield bench
    bench.check()
    context.close()


def names(bench: Workbench) -> list[str]:
    """The columns of orders, from the left."""
    script = """() => [...[...document.querySelectorAll(".row.head")]
        .find((each) => each.innerText.includes("Order")).querySelectorAll(".name")]
        .sort((one, other) => one.getBoundingClientRect().left - other.getBoundingClientRect().left)
        .map((each) => each.innerText.split(" ")[0])"""
    found: list[str] = bench.page.evaluate(script)
    return found


def head(bench: Workbench, name: str) -> Any:
    order_head = bench.page.locator(".row.head", has_text="Order")
    return order_head.locator(".name").filter(has_text=name).first


def totals(bench: Workbench) -> list[str]:
    script = """() => {
        const left = [...document.querySelectorAll(".row.head .name")]
            .find((each) => each.innerText.startsWith("total")).style.left;
        return [...document.querySelectorAll(".row.item")]
            .sort((one, other) => one.getBoundingClientRect().top - other.getBoundingClientRect().top)
            .filter((row) => row.querySelector(".sort-cell").innerText.includes("ORDER"))
            .map((row) => [...row.querySelectorAll(".value")].find((each) => each.style.left === left))
            .map((each) => each.innerText);
    }"""
    found: list[str] = bench.page.evaluate(script)
    return found


def width(bench: Workbench, name: str) -> float:
    box = head(bench, name).bounding_box()
    assert box is not None
    found: float = box["width"]
    return found


def test_loaded_items_are_sorted_within_their_collection(bench):
    assert totals(bench) == TOTALS[::-1]
    head(bench, "total").click()
    bench.page.get_by_text("Sorted by total, ascending: the 7 items that are loaded").wait_for()
    assert totals(bench) == sorted(TOTALS, key=int)
    rows = bench.items()
    assert "PROFILE" in rows[-1]  # each entity stays together
    head(bench, "total").click()
    bench.page.get_by_text("Sorted by total, descending").wait_for()
    assert totals(bench) == sorted(TOTALS, key=int, reverse=True)
    bench.page.keyboard.press("j")
    bench.until(
        "document.querySelector('.row.item.selected')?.innerText.includes('12345678901234568')"
    )
    head(bench, "total").click()
    bench.until("!document.querySelector('.sorted-by')")
    assert totals(bench) == TOTALS[::-1]


def test_columns_are_arranged_by_the_mouse_and_stay_so(bench):
    before = names(bench)
    assert before[:3] == ["customer", "placed", "status"]
    head(bench, "total").drag_to(head(bench, "customer"))
    bench.until("JSON.stringify(localStorage).includes('total')")
    assert names(bench)[:3] == ["total", "customer", "placed"]
    was = width(bench, "total")
    handle = head(bench, "total").locator(".handle").bounding_box()
    mouse = bench.page.mouse
    mouse.move(handle["x"] + 3, handle["y"] + 5)
    mouse.down()
    mouse.move(handle["x"] + 83, handle["y"] + 5, steps=4)
    mouse.up()
    assert abs(width(bench, "total") - was - 80) < 3
    sort_key = "document.querySelector('.sort-name').getBoundingClientRect().width"
    narrow = bench.page.evaluate(sort_key)
    handle = bench.page.locator(".sort-name .handle").bounding_box()
    mouse.move(handle["x"] + 3, handle["y"] + 5)
    mouse.down()
    mouse.move(handle["x"] + 63, handle["y"] + 5, steps=4)
    mouse.up()
    assert abs(bench.page.evaluate(sort_key) - narrow - 60) < 3
    bench.page.reload()
    bench.wait_for_items(7)
    bench.page.locator(".row.head .entity").first.wait_for()
    assert names(bench)[:3] == ["total", "customer", "placed"]
    assert abs(width(bench, "total") - was - 80) < 3


def test_columns_are_arranged_by_the_keyboard(bench):
    bench.page.keyboard.press("o")
    dialog = bench.page.get_by_role("dialog", name="Columns")
    dialog.wait_for()
    assert bench.serious_faults() == []
    bench.page.keyboard.press("Space")  # the first column has the focus
    bench.until("document.activeElement.checked === false")
    bench.page.get_by_label("Move total up").press("Enter")
    bench.page.get_by_label("Width of total").fill("200")
    bench.page.get_by_label("Width of total").press("Enter")
    bench.page.get_by_label("Sort by total").press("Enter")
    bench.page.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    shown = names(bench)
    assert "customer" not in shown
    assert shown.index("total") == shown.index("count") - 1
    assert width(bench, "total") == 200
    assert totals(bench) == sorted(TOTALS, key=int)
    bench.page.keyboard.press("o")
    bench.page.get_by_role("button", name="Reset").press("Enter")
    bench.page.keyboard.press("Escape")
    assert names(bench)[:2] == ["customer", "placed"]
    assert totals(bench) == TOTALS[::-1]


def test_long_times_are_short_and_whole_when_pointed_at(bench):
    cell = bench.page.locator(".row.item .v", has_text="2026-09-01 15:30:00Z")
    assert cell.first.get_attribute("title") == "2026-09-01T15:30:00.123456Z"


def test_wide_keys_give_way_to_values(bench):
    keys = """document.querySelector('.attributes-name').getBoundingClientRect().left
        - document.querySelector('.collection').getBoundingClientRect().left"""
    for size in (1440, 1000, 900):
        bench.page.set_viewport_size({"width": size, "height": 900})
        bench.until(f"{keys} <= document.querySelector('.collection').clientWidth * 0.6")


def test_a_phone_shows_the_first_values_beside_the_keys(bench):
    bench.page.set_viewport_size({"width": 390, "height": 844})
    bench.until("document.querySelector('.collection.stacked')")
    first = bench.page.locator(".row.item .first-values").first
    first.wait_for()
    text = first.inner_text()
    assert "status" in text
    assert "OPEN" in text
    assert "customer" not in text  # the key has it
    tops = bench.page.evaluate(
        "[...document.querySelectorAll('.row.item')].map((each) => each.getBoundingClientRect().top).sort((a, b) => a - b)"
    )
    assert all(later - top >= 48 for top, later in pairwise(tops))
    assert bench.serious_faults() == []


def test_the_palette_finds_entities_and_access_patterns(bench):
    bench.open("#/structures")
    bench.page.keyboard.press("Control+k")
    bench.page.keyboard.type("order.open")
    bench.page.get_by_role("option", name="Order.open").wait_for()
    bench.page.keyboard.press("Enter")
    bench.page.get_by_role("form", name="Order.open").wait_for()
    assert "index=GSI1" in bench.page.url
    bench.until("document.activeElement.getAttribute('aria-label') === 'status'")
    bench.page.keyboard.press("Control+k")
    bench.page.keyboard.type("customer")
    bench.page.locator("#palette-list li").first.get_by_text("Entity").wait_for()
    bench.page.keyboard.press("Enter")
    bench.page.locator(".entity-card.wanted", has_text="Customer").wait_for()
    bench.page.keyboard.press("Control+k")
    bench.page.keyboard.type("Ann Lee")  # who may well be an item
    bench.page.get_by_text("Items are found by a query of their table.").wait_for()
    bench.page.keyboard.press("Control+a")
    bench.page.keyboard.type("new customer")
    bench.page.keyboard.press("Enter")
    bench.page.get_by_role("form", name="New Customer").wait_for()
    assert "new=" not in bench.page.url


def test_the_dot_is_red_while_the_server_is_gone(chrome):
    with isotone.open() as database:
        context = chrome.new_context(viewport={"width": 1440, "height": 900})
        pages = Pages(database, target=":memory:")
        with running_server(database, pages=pages) as url:
            bench = Workbench(context.new_page(), url)
            bench.open("#/metrics")
            bench.page.locator(".dot.live").wait_for()
            red = "getComputedStyle(document.querySelector('.dot')).backgroundColor"
            green = bench.page.evaluate(red)
        bench.page.locator(".dot.gone").wait_for()
        bench.page.get_by_text("the server does not answer", exact=True).wait_for()
        assert bench.page.evaluate(red) != green
        port = int(url.rsplit(":", 1)[1])
        with running_server(database, pages=pages, port=port):
            bench.page.locator(".dot.live").wait_for()
        context.close()
