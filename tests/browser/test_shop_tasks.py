"""What a person does in a shop's tables: finds an order, corrects it, takes that back, adds one with its lines, saves rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.browser.sales_model import Line, Order, sales

import isotone
from isotone import Attr, Entity, Key, Store, Table, field

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

START = datetime(2026, 3, 1, 8, tzinfo=UTC)


notes = Table("notes")


class Note(Entity, table=notes):
    name: Attr[str] = field()
    primary = Key("NOTE", name).sort("NOTE")


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(sales, notes)
        for number in range(1, 21):
            placed = START + timedelta(days=number)
            customer = "ab"[number % 2]
            store.put(Order(customer=customer, number=number, placed=placed, total=Decimal(number)))
            store.put(Line(number=number, line=1, product="tea", quantity=2))
        yield store
        assert store.verify(sales).is_clean


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    """Opens the items of the sales in a window, and waits for them."""
    with windows(chrome, store, [sales, notes], "#/t/sales/items") as open_view:

        def open_items(width: int = 1440, **more: Any) -> Workbench:
            bench = open_view(width=width, **more)
            bench.wait_for_items()
            return bench

        yield open_items


def find_orders(bench: Workbench, customer: str, first: str, last: str) -> None:
    bench.page.get_by_label("Access pattern").select_option("Order.by_customer")
    bench.page.get_by_label("customer", exact=True).fill(customer)
    bench.page.get_by_label("Operator for placed").select_option("between")
    bench.page.get_by_label("placed", exact=True).fill(first)
    bench.page.get_by_label("placed, to").fill(last)
    bench.press("Run")
    bench.until("document.querySelectorAll('.row.item.outside').length > 0")


def numbers(bench: Workbench) -> list[str]:
    """The numbers of the orders in the range, from the columns."""
    script = """() => [...document.querySelectorAll(".row.item:not(.outside)")].map(
        (row) => [row.getBoundingClientRect().top, row.innerText.match(/(?:^|\\n|number )(\\d+)(?=\\n| )/)[1]])
        .sort((one, other) => one[0] - other[0]).map((each) => each[1])"""
    found: list[str] = bench.page.evaluate(script)
    return found


# Finding


@pytest.mark.parametrize("width", [390, 1440])
def test_orders_of_a_customer_in_a_span_of_days_are_found_and_the_address_keeps_them(window, width):
    bench = window(width)
    page = bench.page
    if width == 390:
        bench.press("Query")
    page.get_by_label("Access pattern").select_option("Order.by_customer")
    bench.press("Run")
    page.get_by_text("Give customer.").wait_for()
    page.get_by_label("customer", exact=True).fill("a")
    page.get_by_label("Operator for placed").select_option("between")
    page.get_by_label("placed", exact=True).fill("2026-03-05")
    page.get_by_text("00:00 UTC").wait_for()
    bench.press("Run")
    page.get_by_text("Give the end of placed, too.").wait_for()
    find_orders(bench, "a", "2026-03-05", "2026-03-10")
    bench.until("document.documentElement.scrollWidth <= innerWidth")
    assert numbers(bench) == ["4", "6", "8"]
    page.reload()
    bench.wait_for_items(3)
    if width == 390:
        bench.press("Query")
    assert page.get_by_label("customer", exact=True).input_value() == "a"
    assert page.get_by_label("placed, to").input_value() == "2026-03-10"
    assert numbers(bench) == ["4", "6", "8"]


@pytest.mark.parametrize("pattern", ["Order.by_customer", ""])
def test_on_a_phone_the_query_makes_room_for_what_it_found(window, pattern):
    """The button that opened it stays where it was, and opens it again with what was asked."""
    bench = window(390)
    page = bench.page
    button = page.locator("button.expand")
    place = button.bounding_box()
    button.click()
    page.get_by_label("Access pattern").select_option(pattern)
    if pattern:
        bench.press("Run")
        page.get_by_text("Give customer.").wait_for()  # refused: it stays open
    key = page.get_by_label("customer" if pattern else "Partition key PK", exact=True)
    key.fill("a" if pattern else "ORDER#00004")
    key.press("Enter")
    key.wait_for(state="hidden")
    bench.until("document.querySelectorAll('.row.item:not(.outside)').length > 1")
    assert page.locator(".row.item").first.is_visible()
    assert button.bounding_box() == place
    assert button.evaluate("(each) => each === document.activeElement")
    page.keyboard.press("Enter")
    assert key.input_value() == ("a" if pattern else "ORDER#00004")
    assert button.bounding_box() == place


def test_arrow_keys_pass_by_patterns_without_losing_the_focus(window):
    bench = window()
    patterns = bench.page.get_by_label("Access pattern")
    patterns.focus()
    for _ in range(2):
        bench.page.keyboard.press("ArrowDown")
    assert patterns.input_value() == "Order.by_customer"
    assert patterns.evaluate("(select) => select === document.activeElement")


def test_on_a_phone_a_tap_opens_an_item(window):
    bench = window(390, has_touch=True, is_mobile=True)
    bench.page.locator(".row.item").first.tap()
    bench.page.locator(".inspector").get_by_text("customer").first.wait_for()


def test_the_palette_finds_words_in_any_order_and_saved_queries(window):
    bench = window()
    page = bench.page
    find_orders(bench, "a", "2026-03-05", "2026-03-10")
    bench.press("Saved queries")
    page.get_by_label("Name", exact=True).fill("Orders of early March")
    bench.press("Save")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("beside notes")
    page.get_by_role("option", name="notes beside sales").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="sales", exact=False).first.click()
    page.keyboard.press("Control+k")
    page.keyboard.type("march orders")
    page.get_by_role("option", name="Orders of early March").wait_for()
    page.keyboard.press("Enter")
    bench.until("document.querySelectorAll('.row.item.outside').length > 0")
    assert numbers(bench) == ["4", "6", "8"]


def test_another_table_is_put_beside_by_the_mouse(window):
    bench = window()
    bench.page.get_by_label("Index or table beside the table").select_option("notes")
    bench.page.get_by_role("region", name="notes").wait_for()


# Correcting, and taking it back


def test_a_correction_is_taken_back_by_a_key_after_its_line_is_gone(window, store):
    bench = window()
    page = bench.page
    find_orders(bench, "a", "2026-03-05", "2026-03-10")
    page.locator(".row.item:not(.outside)").first.click()
    bench.press("Edit")
    editing = bench.form("Edit Order")
    editing.get_by_label("total", exact=True).fill("4,5")
    editing.get_by_text("not a number: write it as 4.5").wait_for()
    editing.get_by_text("1 field to put right: total").wait_for()
    editing.get_by_label("total", exact=True).fill("4.5")
    editing.get_by_label("status", exact=True).select_option("PAID")
    bench.press("Save")
    page.locator(".notice").get_by_text("Saved", exact=True).wait_for()
    inspected = page.locator(".inspector .inspected")
    assert inspected.get_by_text("CUSTOMER#a").locator(".hue").inner_text() == "a"
    changed = store.get(Order, number=4)
    assert (changed.total, changed.status, changed.revision) == (Decimal("4.5"), "PAID", 2)
    page.locator(".notice").wait_for(state="detached", timeout=20_000)
    page.keyboard.press("u")
    page.locator(".notice").get_by_text("Undone").wait_for()
    undone = store.get(Order, number=4)
    assert (undone.total, undone.status, undone.revision) == (Decimal(4), "PLACED", 3)
    page.keyboard.press("u")  # there is nothing more to take back
    assert store.get(Order, number=4) == undone


def test_an_open_item_follows_a_change_of_several(window, store):
    bench = window()
    page = bench.page
    find_orders(bench, "a", "2026-03-05", "2026-03-10")
    page.locator(".row.item:not(.outside)").first.click()
    for row in page.locator(".row.item:not(.outside)").all():
        row.click(modifiers=["Control"])
    top = page.locator(".row.item:not(.outside)").first.bounding_box()
    bench.press("Edit fields")
    page.get_by_label("Set a field").select_option("status")
    page.get_by_label("status", exact=True).select_option("SHIPPED")
    bench.press("Preview")
    bench.press("Change 3 items")
    page.locator(".inspector .attribute").get_by_text("SHIPPED", exact=True).wait_for()
    bench.press("Undo")
    page.locator(".inspector .attribute").get_by_text("PLACED", exact=True).wait_for()
    # The bar of what is selected did not move the rows.
    assert page.locator(".row.item:not(.outside)").first.bounding_box() == top
    assert store.get(Order, number=4).revision == 3


@pytest.mark.parametrize(
    ("attribute", "form_name"),
    [("customer", "Edit Order"), ("total", "Edit Order"), ("revision", None), ("GSI1PK", None)],
)
@pytest.mark.parametrize("width", [1000, 1200, 1440])
def test_a_double_click_on_a_value_edits_it(window, width, attribute, form_name):
    """What the library sets is only shown. The item that the first click opens may cover the value."""
    bench = window(width)
    page = bench.page
    value = page.locator(f".row.item .value[data-attribute={attribute}]").first
    value.scroll_into_view_if_needed()
    place = value.bounding_box()
    page.mouse.dblclick(place["x"] + 5, place["y"] + 5, delay=50)
    if form_name is None:
        page.locator(".inspector .attribute").first.wait_for()
        assert page.get_by_role("form", name="Edit").count() == 0
        return
    bench.form(form_name)
    bench.until(f"document.activeElement.ariaLabel === {attribute!r}")
    page.keyboard.press("Escape")
    page.locator(".inspector .attribute").first.wait_for()


# Adding


def test_an_order_is_added_with_its_lines(window, store):
    bench = window()
    page = bench.page
    find_orders(bench, "a", "2026-03-05", "2026-03-10")
    page.keyboard.press("n")
    bench.press("Order")
    made = bench.form("New Order")
    assert made.get_by_role("button", name="Cost").is_disabled()
    made.get_by_label("customer", exact=True).fill("a")
    made.get_by_label("number", exact=True).fill("4")
    made.get_by_role("button", name="Now").click()
    made.get_by_label("total", exact=True).fill("7")
    bench.press("Create")
    made.locator('[data-field="number"]').get_by_text("already exists").wait_for()
    made.get_by_label("number", exact=True).fill("900")
    made.get_by_role("button", name="Cost").click()
    cost = page.get_by_role("dialog", name="Explain")
    cost.get_by_text("PutItem in table sales").wait_for()
    assert cost.get_by_text("a new entry").count() == 2  # of the table and of the index
    bench.press("Close")
    bench.press("Create")
    page.get_by_role("group", name="In the same item collection").wait_for()  # it is open now
    for line, product in ((1, "cup"), (2, "pot")):
        bench.press("+ Line")
        added = bench.form("New Line")
        assert added.get_by_label("number", exact=True).input_value() == "900"
        assert added.get_by_label("line", exact=True).input_value() == str(line)  # the next one
        assert page.evaluate("document.activeElement.ariaLabel") == "product"
        page.keyboard.type(product)
        added.get_by_label("quantity", exact=True).fill("1")
        bench.press("Create")
        page.locator(".inspector .attribute").get_by_text(product, exact=True).wait_for()
    page.get_by_role("link", name="Show the collection").click()
    bench.until("document.querySelectorAll('.row.item').length === 3")
    lines = store.all(Line.primary.where(Line.number == 900))
    assert [each.product for each in lines] == ["cup", "pot"]
    assert store.get(Order, number=900).total == 7


# Saving


def test_rows_and_tables_are_saved_in_two_clicks(window, tmp_path: Path):
    bench = window()
    page = bench.page
    find_orders(bench, "a", "2026-03-05", "2026-03-10")
    bench.press("Download")
    choice = page.get_by_role("group", name="The 3 rows that are loaded")
    with page.expect_download() as rows:
        choice.get_by_role("button", name="CSV").click()
    rows.value.save_as(tmp_path / "rows.csv")
    header, *saved = (tmp_path / "rows.csv").read_text().splitlines()
    assert header.startswith("PK,SK,GSI1PK,GSI1SK,customer,number:N,")
    assert [line.split(",")[5] for line in saved] == ["4", "6", "8"]
    page.get_by_role("dialog").wait_for(state="detached")
    page.keyboard.press("Control+k")
    page.keyboard.type("save sales")
    page.keyboard.press("Enter")
    choice = page.get_by_role("group", name="The whole table")
    assert bench.serious_faults() == []
    with page.expect_download() as whole:
        choice.get_by_role("button", name="JSON lines").click()
    whole.value.save_as(tmp_path / "sales.jsonl")
    assert len((tmp_path / "sales.jsonl").read_text().splitlines()) == 41  # with the keys' record
