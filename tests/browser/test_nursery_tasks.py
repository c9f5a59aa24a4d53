"""What a person does in a nursery's table: reads again, filters a pattern, selects all, goes elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, Literal

import pytest
from tests.browser.chromium import needs_chromium

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, field, version
from isotone.server import running_server
from isotone.workbench import Workbench as Pages

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

nursery = Table(
    "nursery", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)
MARCH = date(2026, 3, 1)
LINES = """(element) => {
    const range = new Range()
    range.selectNodeContents(element)
    return range.getClientRects().length
}"""
WIDTH_BEFORE = """(element, text) => {
    const range = new Range(), node = element.firstChild, place = node.data.indexOf(text)
    range.setStart(node, place)
    range.setEnd(node, place + text.length + 1)
    return range.getBoundingClientRect().right - element.getBoundingClientRect().left
}"""
ORDERS = 130
FIRST: Final[dict[str, Any]] = {"customer": "a", "ordered_on": MARCH, "number": 10_000}


class Order(Entity, table=nursery):
    customer: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    ordered_on: Attr[date] = field()
    status: Attr[Literal["NEW", "SHIPPED"]] = field(default="NEW")
    total: Attr[Decimal] = field(max=99_999, scale=2)
    carrier: Attr[str | None] = field(default=None)
    revision: Attr[int] = version()

    primary = Key("CUSTOMER", customer).sort("ORDER", ordered_on, number)
    by_status = Index("GSI1", "STATUS", status).sort("DAY", ordered_on, number)
    by_number = Index("GSI2", "ORDER", number).sort("ORDER")


class Line(Entity, table=nursery):
    customer: Attr[str] = field()
    ordered_on: Attr[date] = field()
    number: Attr[int] = field(max=99_999)
    line: Attr[int] = field(max=99)
    plant: Attr[str] = field()

    primary = Key("CUSTOMER", customer).sort("ORDER", ordered_on, number, "LINE", line)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(nursery)
        for place in range(ORDERS):
            order = Order(
                customer="ab"[place % 2],
                number=10_000 + place,
                ordered_on=MARCH + timedelta(days=place),
                total=Decimal(place),
                carrier="DHL" if place % 3 == 1 else None,
            )
            store.put(order)
        store.put(Line(customer="a", ordered_on=MARCH, number=10_000, line=1, plant="fern"))
        yield store
        assert store.verify(nursery).is_clean


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    """Opens the items of the nursery in a window, and waits for them."""
    with windows(chrome, store, [nursery], "#/t/nursery/items") as open_view:

        def open_items(address: str = "#/t/nursery/items", **more: Any) -> Workbench:
            bench = open_view(address, **more)
            if address.endswith("/items"):
                bench.wait_for_items()
            return bench

        yield open_items


def find_by_status(bench: Workbench, status: str) -> None:
    bench.page.get_by_label("Access pattern").select_option("Order.by_status")
    bench.page.get_by_label("status", exact=True).select_option(status)
    bench.press("Run")
    bench.until("location.hash.includes('given=')")
    bench.settle()


def until_first(bench: Workbench, text: str) -> None:
    """Wait until the first item has a text."""
    script = """(() => [...document.querySelectorAll(".row.item")]
        .map((row) => [row.getBoundingClientRect().top, row.innerText])
        .sort((one, other) => one[0] - other[0])[0]?.[1] ?? "")()"""
    bench.until(f"{script}.includes({text!r})")


def head_of(bench: Workbench, entity: str) -> list[str]:
    """The names above the columns of an entity, from the left."""
    head = bench.page.locator(".row.head").filter(has_text=entity).first
    return [each.strip() for each in head.locator(".name").all_inner_texts()]


# Reading again


@pytest.mark.parametrize("pattern", ["", "Order.by_status"])
def test_the_same_query_reads_again_what_is_stored(window, store, pattern):
    bench = window()
    if pattern:
        find_by_status(bench, "NEW")
    else:
        bench.page.get_by_label("Partition key PK").fill("CUSTOMER#a")
        bench.press("Query")
        bench.until("location.hash.includes('pk=')")
    bench.settle()
    until_first(bench, "10000")
    store.update(Order, Order.total.set(Decimal(777)), **FIRST)
    bench.press("Run" if pattern else "Query")
    until_first(bench, "777")


def test_an_open_item_is_read_again_with_the_list(window, store):
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    page.locator(".row.item").first.click()
    shown = page.locator(".inspector .attribute")
    shown.get_by_text("2026-03-01", exact=True).first.wait_for()
    store.update(Order, Order.total.set(Decimal(777)), **FIRST)
    page.keyboard.press("r")
    shown.get_by_text("777", exact=True).wait_for(timeout=5_000)
    # A form that is open keeps what it was filled with.
    bench.press("Edit")
    form = page.get_by_role("form", name="Edit Order")
    form.get_by_label("total", exact=True).fill("5")
    store.update(Order, Order.carrier.set("bpost"), **FIRST)
    bench.press("Run")
    until_first(bench, "bpost")
    assert form.get_by_label("total", exact=True).input_value() == "5"
    bench.press("Save")
    page.get_by_text("Somebody else changed this item while you edited it.").wait_for()
    assert store.get(Order, **FIRST).total == 777


# Access patterns


def test_an_access_pattern_is_filtered_and_turned_and_stays_one(window):
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    bench.add_filter("carrier", "DHL")
    bench.press("Run")
    bench.until("document.querySelector('.status').innerText.includes('dropped by the filter')")
    # What the filter has dropped is of the range.
    assert page.locator(".row.item.outside").count() == 0
    for row in page.locator(".row.item").all()[:5]:
        assert "DHL" in row.inner_text()
    bench.press("Copy as")
    page.locator("pre.code", has_text='Order.carrier == "DHL"').wait_for()  # of the model
    bench.press("Close")
    page.reload()
    bench.wait_for_items()
    assert page.get_by_label("status", exact=True).input_value() == "NEW"
    assert page.get_by_label("Value", exact=True).input_value() == "DHL"
    bench.press("↓ ordered_on ascending")
    until_first(bench, "10127")  # the last of them
    page.keyboard.press("d")
    until_first(bench, "10001")
    assert page.get_by_label("status", exact=True).input_value() == "NEW"
    bench.press("Remove the filter")
    until_first(bench, "10000")
    assert page.get_by_label("status", exact=True).input_value() == "NEW"


def test_a_pattern_is_kept_in_the_words_of_its_form(window):
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    page.get_by_label("Operator for ordered_on").select_option("between")
    page.get_by_label("ordered_on", exact=True).fill("2026-03-05")
    page.get_by_label("ordered_on, to").fill("2026-03-07")
    bench.press("Run")
    bench.until("document.querySelectorAll('.row.item.outside').length > 0")
    words = "nursery · Order.by_status: status = NEW, ordered_on between 2026-03-05 and 2026-03-07"
    bench.press("Saved queries")
    dialog = page.get_by_role("dialog")
    assert dialog.get_by_text(words, exact=True).count() == 2  # to be saved, and as a recent one
    bench.press("Close")
    bench.press("GSI2")
    bench.press("Saved queries")
    dialog.get_by_text(words, exact=True).click()
    bench.until("document.querySelectorAll('.row.item:not(.outside)').length === 3")
    assert page.get_by_label("ordered_on, to").input_value() == "2026-03-07"


def test_an_empty_range_leads_to_its_collection(window):
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    page.get_by_label("ordered_on", exact=True).fill("2020-01-01")
    bench.press("Run")
    page.get_by_text("This range has no items").wait_for()
    page.get_by_role("link", name="Show the collection").click()
    until_first(bench, "10000")


def test_advice_leads_to_what_a_pattern_finds_with_the_number_that_was_asked_for(window):
    bench = window()
    page = bench.page
    bench.add_filter("number", "10007")
    bench.press("Explain")
    advice = page.locator(".cheaper")
    advice.get_by_text("Order.by_number").wait_for()
    assert ", which answers" in advice.inner_text()
    advice.get_by_role("link", name="Order.by_number").click()
    page.get_by_role("form", name="Order.by_number").wait_for()
    assert page.get_by_label("number", exact=True).input_value() == "10007"
    until_first(bench, "10007")


def test_the_pattern_that_advice_leads_to_finds_no_more_than_the_query(window, store):
    store.update(Order, Order.status.set("SHIPPED"), customer="a", ordered_on=MARCH, number=10_000)
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    bench.add_filter("customer", "a")
    bench.press("Explain")
    advice = page.locator(".cheaper")
    advice.get_by_role("link", name="Order.primary").wait_for()
    assert "answers 1 of 2 conditions" in advice.inner_text()
    advice.get_by_role("link", name="Order.primary").click()
    page.get_by_role("form", name="Order.primary").wait_for()
    assert page.get_by_label("customer", exact=True).input_value() == "a"
    assert page.get_by_label("Attribute", exact=True).input_value() == "status"
    assert page.get_by_label("Value", exact=True).input_value() == "NEW"
    until_first(bench, "10002")


def test_the_pattern_that_advice_leads_to_keeps_a_test_that_no_key_answers(window):
    bench = window()
    page = bench.page
    bench.add_filter("status", "NEW")
    bench.add_filter("carrier", "D")
    page.get_by_label("Operator", exact=True).last.select_option("contains")
    bench.press("Explain")
    advice = page.locator(".cheaper")
    advice.get_by_role("link", name="Order.by_status").wait_for()
    assert "answers 1 of 2 conditions" in advice.inner_text()
    advice.get_by_role("link", name="Order.by_status").click()
    page.get_by_role("form", name="Order.by_status").wait_for()
    assert page.get_by_label("Attribute", exact=True).input_value() == "carrier"
    assert page.get_by_label("Operator", exact=True).input_value() == "contains"
    assert page.get_by_label("Value", exact=True).input_value() == "D"
    until_first(bench, "10001")


def test_on_a_phone_an_explanation_does_not_spread_its_lines(window):
    bench = window(width=390, has_touch=True, is_mobile=True)
    page = bench.page
    bench.press("Query")
    bench.add_filter("status", "NEW")
    bench.add_filter("carrier", "D")
    page.get_by_label("Operator", exact=True).last.select_option("contains")
    bench.press("Explain")
    advice = page.locator(".cheaper")
    advice.get_by_role("link", name="Order.by_status").wait_for()
    assert advice.bounding_box()["height"] < 66
    needs = page.get_by_role("dialog").get_by_role("cell", name="needs number = …")
    assert needs.evaluate(LINES) == 1


@pytest.mark.parametrize("more", [{}, {"width": 390, "has_touch": True, "is_mobile": True}])
def test_an_explanation_shows_what_the_filter_tested_and_how_much_was_dropped(window, more):
    bench = window(**more)
    page = bench.page
    if more:
        bench.press("Query")
    find_by_status(bench, "NEW")
    if more:
        bench.press("Query")
    bench.add_filter("carrier", "DHL")
    bench.press("+ Filter")
    page.get_by_label("Attribute", exact=True).last.fill("total")
    page.get_by_label("Operator", exact=True).last.select_option("<")
    page.get_by_label("Value", exact=True).last.fill("50")
    bench.press("Explain")
    page.get_by_text("more, read too").wait_for()
    hidden = page.locator(".drawn.gap", has_text="more, read too")
    assert not re.search(r"\bread\b", hidden.get_attribute("class") or "")
    values = page.locator(".drawn.dropped", has_text="DHL").locator(".drawn-values").first
    total = values.evaluate(WIDTH_BEFORE, "total: ")
    assert total < values.bounding_box()["width"]


def test_what_stands_in_the_hidden_form_of_keys_does_not_stop_a_pattern(window):
    bench = window()
    bench.page.get_by_label("Sort key SK", exact=True).fill("ORDER")  # needs a partition
    find_by_status(bench, "NEW")
    until_first(bench, "10000")


# Columns and differences


def test_an_optional_field_has_its_declared_place_where_the_first_item_lacks_it(window):
    bench = window()
    find_by_status(bench, "NEW")
    names = head_of(bench, "Order")
    assert names[:7] == [
        "customer", "number", "ordered_on", "status", "total", "carrier", "revision",
    ]  # fmt: skip


def test_what_differs_begins_with_fields_not_with_the_keys_that_follow_from_them(window, store):
    bench = window("#/t/nursery/snapshots")
    page = bench.page
    page.get_by_placeholder("Name, e.g. before").fill("before")
    bench.press("Take a snapshot")
    page.get_by_role("link", name="Compare with before").wait_for()
    store.update(Order, Order.status.set("SHIPPED"), **FIRST)
    page.get_by_role("link", name="Compare with before").click()
    page.locator(".difference").wait_for()
    page.locator(".inspector .before-after").first.wait_for()
    found = page.locator(".difference .difference-attribute small").all_inner_texts()
    assert found == ["status", "revision", "GSI1PK"]
    names = page.locator(".inspector .attribute:not(.of-key) .attribute-name").all_inner_texts()
    assert [each.split()[0] for each in names[:3]] == found


def test_the_page_of_all_snapshots_says_that_its_links_compare(window):
    bench = window("#/snapshots")
    page = bench.page
    page.get_by_placeholder("Name, e.g. before").fill("before")
    bench.press("Take a snapshot")
    page.get_by_text("Compare", exact=True).wait_for()
    page.get_by_role("link", name="nursery").last.click()
    page.get_by_text("Nothing differs").wait_for()


def test_what_changed_stands_close_to_its_arrow(window, store):
    bench = window("#/t/nursery/snapshots")
    page = bench.page
    bench.press("Take a snapshot")
    page.get_by_role("link", name="Compare with").wait_for()
    store.update(Order, Order.total.set(Decimal(7)), **FIRST)
    page.get_by_role("link", name="Compare with").click()
    page.locator(".difference del").first.wait_for()
    before = page.locator(".difference del").first  # 0, which is narrow
    text = before.evaluate("""(each) => {
        const text = document.createRange();
        text.selectNodeContents(each);
        return text.getBoundingClientRect().width;
    }""")
    assert before.bounding_box()["width"] <= text + 1


# Selecting


def test_all_that_is_selected_is_said_not_to_be_all_that_there_is(window):
    bench = window()
    find_by_status(bench, "NEW")
    bench.page.get_by_label("Select all items that are loaded").check()
    bar = bench.page.get_by_role("region", name="Selected items")
    bar.get_by_text("60 items selected, all that are loaded so far").wait_for()
    bench.page.locator(".scroller").first.focus()
    bench.page.keyboard.press("End")  # of what is loaded, which reads on
    bench.page.get_by_text(f"End · {ORDERS} items").wait_for()
    assert "so far" not in bar.inner_text()  # there is more, which is not selected
    bench.page.keyboard.press("a")
    bar.get_by_text(f"{ORDERS} items selected", exact=True).wait_for()
    assert "so far" not in bar.inner_text()


# Adding


def test_a_number_with_more_decimal_places_than_declared_is_not_saved(window, store):
    """The input of an entity in a program is checked in the same way."""
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    page.locator(".row.item").first.click()
    bench.press("Edit")
    editing = page.get_by_role("form", name="Edit Order")
    editing.get_by_text("at most 99999; 2 decimal places").wait_for()
    total = editing.get_by_label("total", exact=True)
    total.fill("159.999")
    editing.get_by_text("more than 2 decimal places").wait_for()
    assert page.get_by_role("button", name="Save", exact=True).is_disabled()
    total.fill("159.900")  # zeros at the end are no places
    bench.press("Save")
    page.locator(".notice").get_by_text("Saved", exact=True).wait_for()
    assert store.get(Order, **FIRST).total == Decimal("159.9")
    with pytest.raises(ValueError, match="decimal places"):
        Order.model_validate({**FIRST, "total": "159.999"})
    # What a program has stored keeps nobody from changing another field.
    store.update(Order, Order.total.set(Decimal("0.125")), **FIRST)
    page.keyboard.press("r")
    page.locator(".inspector .attribute").get_by_text("0.125", exact=True).wait_for()
    bench.press("Edit")
    editing.get_by_label("status", exact=True).select_option("SHIPPED")
    bench.press("Save")
    page.locator(".notice").get_by_text("status NEW → SHIPPED").wait_for()


def test_a_number_that_an_index_finds_alone_is_not_counted_within_a_customer(window):
    """The next number of one customer may be that of another one's order."""
    bench = window()
    page = bench.page
    find_by_status(bench, "NEW")
    page.locator(".row.item").first.click()
    bench.press("+ Order")
    made = page.get_by_role("form", name="New Order")
    assert made.get_by_label("customer", exact=True).input_value() == "a"
    assert made.get_by_label("number", exact=True).input_value() == ""
    bench.press("Cancel")
    page.locator(".row.item").first.click()
    bench.press("+ Line")
    made = page.get_by_role("form", name="New Line")
    assert made.get_by_label("line", exact=True).input_value() == "2"


# Going elsewhere


def test_the_drawer_of_a_phone_closes_when_somebody_goes_elsewhere(window):
    bench = window(width=390, has_touch=True, is_mobile=True)
    page = bench.page
    for link in ("Snapshots", "Structures", "nursery", "GSI1", "GSI1"):
        page.get_by_role("button", name="Tables").tap()
        page.locator(".sidebar a").filter(has_text=link).first.tap()
        bench.until("!document.querySelector('.frame').classList.contains('drawer-open')")
    page.get_by_role("button", name="Tables").tap()
    page.locator(".sidebar").get_by_role("button", name="Search").tap()
    page.get_by_role("combobox").fill("snapshots of all")
    bench.until("!document.querySelector('.frame').classList.contains('drawer-open')")


def test_enter_in_the_filter_of_tables_opens_the_first_that_it_leaves(window):
    bench = window()
    page = bench.page
    page.keyboard.press("7")  # snapshots
    bench.until("location.hash.includes('/snapshots')")
    page.keyboard.press("/")
    page.keyboard.type("nur")
    page.keyboard.press("Enter")
    bench.until("location.hash === '#/t/nursery/items'")
    assert page.get_by_label("Filter tables").input_value() == ""


def test_a_workbench_of_a_file_names_the_command_that_counts_requests(chrome, store):
    pages = Pages(store.backend, target="shop.db", tables=[nursery], is_endpoint=False)
    with isotone.open() as nothing, running_server(nothing, pages=pages) as url:
        context = chrome.new_context()
        bench = Workbench(context.new_page(), url)
        bench.open("#/queries")
        bench.page.get_by_text("Requests to shop.db are not counted here").wait_for()
        bench.page.get_by_text("isotone serve shop.db").wait_for()
        bench.check()
        context.close()


# On a phone


@pytest.mark.parametrize("more", [{}, {"width": 390, "has_touch": True, "is_mobile": True}])
def test_a_notice_leaves_the_buttons_of_what_is_selected_free(window, more):
    bench = window(**more)
    page = bench.page
    page.get_by_label("Select all items that are loaded").check()
    bench.press("Edit fields")
    page.get_by_label("Set a field").select_option("carrier")
    page.get_by_label("carrier", exact=True).fill("bpost")
    bench.press("Preview")
    page.get_by_role("button", name="Change ").click()
    page.locator(".notice").get_by_text("Changed").wait_for()
    page.get_by_label("Select all items that are loaded").check()
    bar = page.get_by_role("region", name="Selected items").bounding_box()
    notice = page.locator(".notice").bounding_box()
    assert notice["y"] + notice["height"] <= bar["y"]


def test_the_bar_of_what_is_selected_cuts_no_line_of_the_status(window):
    bench = window(
        "#/t/nursery/items?index=GSI1&pk=%5B%22S%3ASTATUS%23NEW%22%5D"
        "&filter=%5B%5B%22carrier%22%2C%22%3D%22%2C%22%7B%5C%22S%5C%22%3A%5C%22DHL%5C%22%7D%22%5D%5D",
        width=390,
        has_touch=True,
        is_mobile=True,
    )
    bench.wait_for_items()
    bench.page.get_by_label("Select all items that are loaded").tap()
    bar = bench.page.get_by_role("region", name="Selected items").bounding_box()
    status = bench.page.locator(".status").bounding_box()
    assert bar["y"] + bar["height"] <= status["y"] + 1  # the line between them


@pytest.mark.parametrize("address", ["#/t/nursery/items", "#/queries"])
def test_the_title_is_whole_beside_the_tabs_of_a_table_and_alone(window, address):
    bench = window(address, width=390, has_touch=True, is_mobile=True)
    script = """(title) => {
        const text = document.createRange();
        text.selectNodeContents(title);
        return text.getBoundingClientRect().width <= title.getBoundingClientRect().width;
    }"""
    bench.page.locator(".top .title").wait_for()
    assert bench.page.locator(".top .title").evaluate(script)


def test_the_first_values_on_a_phone_are_those_of_fields(window):
    bench = window(width=520, has_touch=True, is_mobile=True)
    names = bench.page.locator(".first-values small")
    names.first.wait_for()
    shown = {each for each in names.all_inner_texts() if not each.startswith("+")}
    assert shown <= {
        "number",
        "customer",
        "ordered_on",
        "status",
        "total",
        "carrier",
        "revision",
        "plant",
        "line",
    }


def test_no_button_moves_when_a_pattern_is_chosen(window):
    bench = window(width=1400)
    new = bench.page.get_by_role("button", name="New item")
    before = new.bounding_box()
    bench.page.get_by_label("Access pattern").select_option("Order.by_status")
    bench.page.get_by_role("form", name="Order.by_status").wait_for()
    assert new.bounding_box() == before


def test_the_focus_on_the_box_for_all_items_is_drawn_within_the_head(window):
    bench = window()
    bench.page.keyboard.press("Tab")
    box = bench.page.get_by_label("Select all items that are loaded")
    box.focus()
    style = "(box) => { const {outlineOffset, outlineWidth} = getComputedStyle(box); return [outlineOffset, outlineWidth]; }"
    offset, width = (float(each.removesuffix("px")) for each in box.evaluate(style))
    assert width > 0
    assert offset + width <= 0
