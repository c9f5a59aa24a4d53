"""What a shop does on the workbench with its orders and their lines, without reading about it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.browser.clinic_model import Visit, clinic
from tests.browser.sales_model import Line, Order, sales

import isotone
from isotone import Store
from isotone.server import running_server
from isotone.workbench import Workbench as Pages

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

START = datetime(2026, 4, 1, 8, 30, tzinfo=UTC)
ORDERS = 40
CUSTOMERS = ("ann", "bob", "graham-the-elder")


@pytest.fixture
def store() -> Iterator[Store]:
    """Orders 7 hours apart, each with two lines."""
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(sales)
        for number in range(1, ORDERS + 1):
            placed = START + timedelta(hours=7 * (number - 1))
            customer = CUSTOMERS[(number - 1) % len(CUSTOMERS)]
            store.put(Order(customer=customer, number=number, placed=placed, total=Decimal(number)))
            for line in (1, 2):
                store.put(Line(number=number, line=line, product="tea", quantity=line))
        yield store
        assert store.verify(sales).is_clean


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    """Opens a view in a window."""
    with windows(chrome, store, [sales], "#/t/sales/items", height=844) as open_view:
        yield open_view


PHONE = {"width": 390, "has_touch": True, "is_mobile": True}


# Times


DAYS = ["2026-04-01", "2026-04-10"]


@pytest.mark.parametrize(
    ("operator", "days", "words", "shown"),
    [
        ("between", DAYS, "from the beginning of 1 April 2026 to the end of 10 April 2026", 12),
        ("<=", DAYS[1:], "up to the end of 10 April 2026", 12),
        ("<", DAYS[1:], "before the beginning of 10 April 2026", 10),
        (">", DAYS[1:], "after the end of 10 April 2026", 2),
        (">=", DAYS[1:], "from the beginning of 10 April 2026", 4),
    ],
)
def test_a_day_in_a_range_is_all_of_it_in_words_and_in_what_is_read(
    window: Any, operator: str, days: list[str], words: str, shown: int
) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.page.get_by_label("Access pattern").select_option("Order.by_customer")
    form = bench.page.get_by_role("form", name="Order.by_customer")
    form.get_by_label("customer", exact=True).fill("ann")
    form.get_by_label("Operator for placed").select_option(operator)
    for label, day in zip(("placed", "placed, to"), days, strict=False):
        form.get_by_label(label, exact=True).fill(day)
    assert form.locator(".times-asked").inner_text() == f"placed {words}, UTC"
    bench.press("Run")
    bench.until(f"document.querySelector('.status strong')?.innerText === '{shown}'")
    if operator == "between":
        bench.press("Explain")
        bench.page.get_by_role("dialog").get_by_text("2026-04-10T23:59:59Z").first.wait_for()
        bench.page.keyboard.press("Escape")
        bench.press("Copy as")
        bench.page.get_by_text("datetime(2026, 4, 10, 23, 59, 59, tzinfo=UTC)").wait_for()


@pytest.mark.parametrize(
    ("operator", "days", "words", "shown"),
    [
        ("between", DAYS, "from the beginning of 1 April 2026 to the end of 10 April 2026", 34),
        (">", DAYS[1:], "after the end of 10 April 2026", 6),
        ("<", DAYS[1:], "before the beginning of 10 April 2026", 30),
        ("=", DAYS[1:], "on all of 10 April 2026", 4),
    ],
)
def test_a_day_in_a_filter_of_times_is_all_of_it(
    window: Any, operator: str, days: list[str], words: str, shown: int
) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.press("+ Filter")
    bench.page.keyboard.type("placed")
    bench.page.get_by_label("Operator", exact=True).select_option(operator)
    for place, day in enumerate(days):
        bench.page.get_by_label("Value").nth(place).fill(day)
    bench.page.locator(".filter-line").get_by_text(f"placed {words}, UTC").wait_for()
    bench.press("Scan")
    bench.until(f"document.querySelector('.status strong')?.innerText === '{shown}'")


# The focus

FOCUSED = """(() => {
    const { activeElement: at } = document;
    return at === document.body ? "body" : (at.ariaLabel ?? at.innerText ?? at.className).trim();
})()"""


def focus_is(bench: Workbench, wanted: str) -> None:
    bench.until(f"{FOCUSED}.startsWith({wanted!r})")


def item(bench: Workbench, number: int) -> None:
    """Opens an order in the inspector, by the keyboard."""
    bench.open(f"#/t/sales/items?pk=%5B%22S%3AORDER%23{number:05}%22%5D")
    bench.wait_for_items(3)
    bench.page.get_by_role("listbox").focus()
    bench.page.keyboard.press("j")
    bench.page.get_by_role("group", name="In the same item collection").wait_for()


def test_the_focus_goes_to_the_confirmation_of_a_deletion_and_back(window: Any) -> None:
    bench = window()
    for open_confirmation in (
        lambda: bench.press("Delete"),
        lambda: bench.page.keyboard.press("Delete"),
    ):
        item(bench, 7)
        open_confirmation()
        confirmation = bench.page.get_by_role("alertdialog", name="Delete the item")
        focus_is(bench, "Delete")
        assert confirmation.evaluate("each => each.contains(document.activeElement)")
        bench.press("Keep")
        bench.until("document.activeElement.matches('.scroller')")


def test_the_focus_goes_to_the_list_after_a_deletion_and_its_undo(window: Any) -> None:
    bench = window()
    item(bench, 7)
    bench.press("Delete")
    bench.page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    bench.page.locator(".notice").get_by_text("Deleted").wait_for()
    bench.until("document.activeElement.matches('.scroller')")
    bench.press("Undo")
    bench.page.locator(".notice").get_by_text("Undone").wait_for()
    bench.until("document.activeElement.matches('.scroller')")


def new_order(bench: Workbench) -> Any:
    bench.wait_for_items(3)
    bench.press("New item")
    bench.press("Order")
    return bench.page.get_by_role("form", name="New Order")


def test_the_focus_goes_to_the_first_faulty_field_of_what_is_refused(window: Any) -> None:
    bench = window()
    form = new_order(bench)
    form.get_by_label("customer", exact=True).fill("ann")
    bench.press("Create")
    form.get_by_text("is missing").first.wait_for()
    focus_is(bench, "number")
    form.get_by_label("number", exact=True).fill("7")
    form.get_by_label("placed", exact=True).fill("2026-05-01T10:00")
    form.get_by_label("total", exact=True).fill("-3")
    form.get_by_label("total", exact=True).press("Control+Enter")
    focus_is(bench, "total")
    form.get_by_label("total", exact=True).fill("3")
    bench.press("Create")  # its number is taken
    form.get_by_text("Order ORDER#00007, ORDER already exists").wait_for()
    focus_is(bench, "number")


def select(bench: Workbench, count: int) -> None:
    bench.wait_for_items(3)
    for place in range(count):
        bench.rows.nth(3 * place).locator(".tick").click()


def test_the_focus_stays_in_the_edit_of_several_items_and_goes_on_in_the_list(
    window: Any, store: Store
) -> None:
    bench = window()
    select(bench, 2)
    bench.press("Edit fields")
    bench.page.get_by_label("Set a field").select_option("status")
    bench.page.get_by_role("dialog").get_by_label("status", exact=True).select_option("PAID")
    bench.press("Preview")
    focus_is(bench, "Change 2 items")
    bench.press("Change 2 items")
    bench.page.locator(".notice").get_by_text("Changed 2 items").wait_for()
    bench.until("document.activeElement.matches('.scroller')")
    bench.press("Undo")
    bench.page.locator(".notice").get_by_text("Undone").wait_for()
    bench.until("document.activeElement.matches('.scroller')")
    assert all(each.status == "PLACED" for each in store.iterate(Order.primary.scan()))


def test_the_focus_stays_in_the_bar_of_selected_items(window: Any) -> None:
    bench = window()
    select(bench, 2)
    bench.press("Delete")
    focus_is(bench, "Delete 2")
    bench.press("Keep")
    focus_is(bench, "Edit fields")
    bench.press("Set a raw attribute")
    focus_is(bench, "Attribute")
    bench.press("Cancel")
    focus_is(bench, "Edit fields")
    bench.press("Clear")
    bench.until("document.activeElement.matches('.scroller')")


def test_a_filter_that_is_removed_leaves_the_focus_in_its_form(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.press("+ Filter")
    bench.press("Remove the filter")
    bench.until("document.activeElement.closest('.query-form')")


def test_a_click_beside_everything_leaves_the_focus_nowhere(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.press("+ Filter")
    focus_is(bench, "Attribute")
    bench.page.mouse.click(100, 600)  # below the list of tables
    bench.until(f"{FOCUSED} === 'body'")
    bench.page.evaluate("document.querySelector('.filter-line').remove()")
    bench.page.wait_for_timeout(100)
    assert bench.page.evaluate(FOCUSED) == "body"


# Saved and recent queries


def run_for_ann(bench: Workbench, last: str) -> None:
    form = bench.page.get_by_role("form", name="Order.by_customer")
    form.get_by_label("Operator for placed").select_option("between")
    for label, text in (("customer", "ann"), ("placed", "2026-04-01"), ("placed, to", last)):
        form.get_by_label(label, exact=True).fill(text)
    form.get_by_role("button", name="Run").click()


OVERFLOWING = """(selector) => [...document.querySelectorAll(selector)]
    .filter((each) => each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1)
    .map((each) => each.innerText)"""


@pytest.mark.parametrize("more", [{}, PHONE])
def test_recent_queries_differ_in_what_is_shown_and_the_palette_has_their_names(
    window: Any, more: Any
) -> None:
    bench = window("#/t/sales/items?pattern=Order.by_customer", **more)
    for place, last in enumerate(("2026-04-10", "2026-04-12", "2026-04-10T23:59:59")):
        if more and place:  # a pattern without values is open for them
            bench.press("Query")
        run_for_ann(bench, last)
        bench.until(f"decodeURIComponent(location.hash).includes('{last}')")
    if more:
        bench.press("Query")
    bench.press("Saved queries")
    dialog = bench.page.get_by_role("dialog", name="Queries")
    dialog.get_by_label("Name").fill("Ann in April")
    bench.press("Save")
    recent = dialog.locator(".kept").nth(1).locator("a")
    assert len(recent.all_inner_texts()) == 2  # the last two ask for the same
    assert bench.page.evaluate(OVERFLOWING, ".kept a") == []
    name, words = (dialog.locator(".kept a").first.locator(each) for each in ("strong", "span"))
    assert name.bounding_box()["y"] < words.bounding_box()["y"]
    assert bench.serious_faults() == []
    bench.press("Close")
    dialog.wait_for(state="detached")
    bench.page.keyboard.press("Control+k")
    bench.page.keyboard.type("ann apr")
    found = bench.page.get_by_role("option", name="Ann in April")
    assert found.locator(".what").bounding_box()["width"] > 60
    assert bench.page.evaluate(OVERFLOWING, "#palette-list li") == []
    assert bench.serious_faults() == []
    bench.page.get_by_role("dialog", name="Search").get_by_role("button", name="Close").click()
    found.wait_for(state="detached")


# What it costs


@pytest.fixture
def served(chrome: Any) -> Iterator[tuple[Workbench, Store]]:
    """The workbench of a server that a program uses, too."""
    with isotone.open() as database:
        pages = Pages(database, target=":memory:", tables=[sales])
        with running_server(database, pages=pages) as url, isotone.connect(url) as store:
            store.create_tables(sales)
            for number in range(1, ORDERS + 1):
                store.create(Order(customer="ann", number=number, placed=START, total=Decimal(1)))
            context = chrome.new_context(viewport={"width": 1440, "height": 844})
            bench = Workbench(context.new_page(), url)
            yield bench, store
            bench.check()
            context.close()


def test_the_own_queries_of_the_workbench_are_shown_if_they_are_wanted(
    served: tuple[Workbench, Store],
) -> None:
    bench, _ = served
    bench.open(
        "#/t/sales/items?filter=%5B%5B%22total%22%2C%22%3E%22%2C%22%7B%5C%22N%5C%22%3A%5C%220%5C%22%7D%22%5D%5D"
    )
    bench.wait_for_items(3)
    bench.page.get_by_role("link", name="Expensive queries").click()
    rows = bench.page.locator(".shapes tbody tr")
    rows.first.wait_for()
    assert bench.page.get_by_text("total > ?").count() == 0
    own = bench.page.get_by_label("with this workbench’s own")
    assert not own.is_checked()
    own.check()
    scan = rows.filter(has_text="total > ?")
    scan.get_by_text("this workbench", exact=True).wait_for()
    assert scan.locator("[data-label=units]").inner_text() != "0"
    assert bench.serious_faults() == []
    scan.get_by_role("button", name="Explain").click()
    bench.page.get_by_role("dialog").wait_for()


def test_the_list_of_expensive_queries_leads_to_what_costs_less(
    served: tuple[Workbench, Store],
) -> None:
    bench, store = served
    store.create(Order(customer="eve", number=9_000, placed=START, total=Decimal(1)))
    assert len(store.all(Order.primary.scan().filter(Order.customer == "eve"))) == 1
    bench.open("#/queries")  # no table was shown before
    rows = bench.page.locator(".shapes tbody tr")
    rows.filter(has_text="customer = ?").get_by_role("button", name="Explain").click()
    advice = bench.page.locator(".cheaper")
    advice.get_by_role("link", name="Order.by_customer").click()
    bench.page.get_by_role("form", name="Order.by_customer").wait_for()
    bench.wait_for_items(1)
    assert bench.rows.count() == 1
    assert "eve" in bench.rows.first.inner_text()


def test_the_list_of_expensive_queries_shows_what_it_is_sorted_by(
    served: tuple[Workbench, Store],
) -> None:
    """The most items dropped, which are not the largest share."""
    bench, store = served
    for number in range(9_000, 9_010):
        store.create(Order(customer="eve", number=number, placed=START, total=Decimal(number)))
    of_eve = Order.by_customer.where(Order.customer == "eve")
    assert store.all(of_eve.filter(Order.total < 0)) == []
    assert store.all(Order.primary.scan().filter(Order.customer == "eve"))
    bench.open("#/queries")
    bench.press("Dropped")
    shown = bench.page.locator(".shapes tbody [data-label=dropped]")
    shown.first.wait_for()
    cells = [each.split(" · ") for each in shown.all_inner_texts() if "·" in each]
    counts = [int(count.replace(",", "")) for count, _ in cells]
    shares = [int(share.removesuffix(" %")) for _, share in cells]
    assert counts == sorted(counts, reverse=True)
    assert shares != sorted(shares, reverse=True)


def test_a_pattern_that_cannot_answer_is_named_and_leads_nowhere(window: Any) -> None:
    """It would read its whole index, without what the query asks for."""
    wanted = "%5B%5B%22total%22%2C%22%3E%22%2C%22%7B%5C%22N%5C%22%3A%5C%2230%5C%22%7D%22%5D%5D"
    bench = window(f"#/t/sales/items?filter={wanted}")
    bench.wait_for_items(1)
    bench.press("Explain")
    considered = bench.page.get_by_role("dialog").locator("tr", has_text="needs customer = …")
    considered.get_by_text("Order.by_customer").wait_for()
    assert considered.get_by_role("link").count() == 0


def test_explain_names_the_index_that_is_lacking_by_its_fields(window: Any) -> None:
    wanted = "%5B%5B%22total%22%2C%22%3E%22%2C%22%7B%5C%22N%5C%22%3A%5C%2230%5C%22%7D%22%5D%5D"
    bench = window(f"#/t/sales/items?index=GSI1&pk=%5B%22S%3ACUSTOMER%23ann%22%5D&filter={wanted}")
    bench.wait_for_items(1)
    bench.press("Explain")
    advice = "Cheaper: an index with the partition key customer, sorted by total"
    bench.page.get_by_role("dialog").get_by_text(advice).wait_for()


def test_explain_tells_the_parts_of_a_key_apart_before_a_table_was_shown(chrome: Any) -> None:
    """`status` and `starts_at` would have the same colour, if the model did not keep them apart."""
    with isotone.open() as database:
        pages = Pages(database, target=":memory:", tables=[clinic])
        with running_server(database, pages=pages) as url, isotone.connect(url) as store:
            store.create_tables(clinic)
            store.put(Visit(chip="1", starts_at=START, vet="hk", reason="teeth"))
            assert len(store.all(Visit.by_status.where(Visit.status == "BOOKED"))) == 1
            bench = Workbench(chrome.new_page(), url)
            bench.open("#/queries")
            rows = bench.page.locator(".shapes tbody tr")
            rows.filter(has_text="GSI2").get_by_role("button", name="Explain").click()
            colours = (
                "[...document.querySelectorAll('.drawing .hue')].map((each) => each.className)"
            )
            bench.until(f"new Set({colours}).size === 2")
            bench.check()
            bench.page.close()


def test_the_library_s_own_reads_are_named_among_the_queries(
    served: tuple[Workbench, Store],
) -> None:
    bench, _ = served
    bench.open("#/queries")
    read = bench.page.locator(".shapes tbody tr", has_text="GetItem")
    read.get_by_text("the library’s own record _keys").wait_for()


def test_a_filtered_scan_costs_what_explain_measures(window: Any, store: Store) -> None:
    for number in range(ORDERS + 1, 500):
        store.put(Order(customer="ann", number=number, placed=START, total=Decimal(number)))
    bench = window("#/t/sales/items")
    bench.wait_for_items(3)
    bench.press("+ Filter")
    bench.page.keyboard.type("total")
    bench.page.get_by_label("Operator", exact=True).select_option(">")
    bench.page.get_by_label("Value").fill("400")
    bench.page.keyboard.press("Enter")
    bench.until("document.querySelector('.status')?.innerText.startsWith('99 items')")
    footer = bench.page.locator(".status").inner_text()
    assert "in 1 request" in footer
    bench.press("Explain")
    bench.press("Measure")
    measured = bench.page.locator(".costs .measured strong").inner_text()
    assert f"{float(measured):.1f} RCU" in footer
    bench.page.keyboard.press("Escape")
    bench.press("Download")
    bench.page.get_by_text("twice what a scan in this view takes").wait_for()
    bench.page.get_by_text("A name such as total:N in the first line of CSV").wait_for()


# On a phone


def edges(locator: Any) -> tuple[float, float, float, float]:
    box = locator.bounding_box()
    return box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]


CUT_VALUES = """[...document.querySelectorAll('.first-values')].filter((each) => {
    const right = Math.max(...[...each.children].map((one) => one.getBoundingClientRect().right));
    return right > innerWidth || each.scrollWidth > each.clientWidth + 1;
}).length"""


def test_the_first_values_are_whole_and_say_how_many_more_there_are(window: Any) -> None:
    for address in ("", "?index=GSI1"):
        bench = window(f"#/t/sales/items{address}", **PHONE)
        bench.wait_for_items(5)
        assert bench.page.evaluate(CUT_VALUES) == 0
        order = bench.rows.filter(has_text="PLACED").first
        assert "status" in order.locator(".first-values").inner_text()
        assert "+" in order.locator(".first-values").inner_text()


def test_what_a_filter_costs_is_whole_at_the_foot(window: Any) -> None:
    wanted = "%5B%5B%22total%22%2C%22%3E%22%2C%22%7B%5C%22N%5C%22%3A%5C%2230%5C%22%7D%22%5D%5D"
    bench = window(f"#/t/sales/items?filter={wanted}", **PHONE)
    bench.until("document.querySelector('.status')?.innerText.includes('RCU')")
    for part in bench.page.locator(".status > span").all():
        assert edges(part)[2] <= 390


def test_the_box_that_selects_all_has_the_size_of_a_finger_and_the_look_of_the_others(
    window: Any,
) -> None:
    for scheme in ("light", "dark"):
        bench = window(**PHONE, color_scheme=scheme)
        bench.wait_for_items(3)
        box = bench.page.get_by_label("Select all items that are loaded")
        left, top, right, bottom = edges(box)
        assert right - left >= 44
        assert bottom - top >= 44
        look = """(each) => ["backgroundColor", "borderTopColor", "width"]
            .map((name) => getComputedStyle(each, "::before")[name])"""
        assert box.evaluate(look) == bench.rows.first.locator(".tick").evaluate(look)
        box.tap()
        bench.page.get_by_role("region", name="Selected items").wait_for()
        assert box.is_checked()
        assert bench.serious_faults() == []


def test_a_notice_is_in_line_and_below_the_drawer(window: Any) -> None:
    bench = window(**PHONE)
    select(bench, 1)
    bench.press("Delete")
    bench.press("Delete 1")
    notice = bench.page.locator(".notice")
    notice.get_by_text("Deleted 1 item").wait_for()
    text, undo = (edges(notice.locator(each)) for each in ("span", "button"))
    assert abs((text[1] + text[3]) - (undo[1] + undo[3])) <= 4  # their middles
    form = new_order(bench)
    buttons = edges(form.get_by_role("button", name="Create"))
    assert edges(notice)[3] <= buttons[1]
    bench.page.get_by_role("button", name="Close the item").click()
    bench.press("Tables")
    lock = bench.page.locator(".sidebar .tools button").nth(1)
    lock.wait_for()
    bench.page.wait_for_timeout(300)  # it slides in
    left, top, right, bottom = edges(lock)
    assert lock.evaluate(
        "(each, [x, y]) => each.contains(document.elementFromPoint(x, y))",
        [(left + right) / 2, (top + bottom) / 2],
    )


def test_what_is_wrong_with_a_field_is_above_the_foot_of_its_form(window: Any) -> None:
    bench = window(**PHONE)
    form = new_order(bench)
    total = form.get_by_label("total", exact=True)
    total.fill("12")
    total.evaluate(
        "each => { const all = each.closest('.inspected'); all.scrollTop -= all.getBoundingClientRect().bottom - each.getBoundingClientRect().bottom - 1; }"
    )
    total.fill("12,50")
    wrong = form.locator("[data-field=total] .wrong").first
    wrong.wait_for()
    bench.page.wait_for_timeout(100)
    assert edges(wrong)[3] <= edges(form.locator(".form-foot"))[1]


def test_the_tab_that_is_shown_is_in_sight_and_the_others_have_a_cue(window: Any) -> None:
    bench = window("#/t/sales/lint", **PHONE)
    bench.page.locator(".tab.current").wait_for()
    bench.until(
        "document.querySelector('.tab.current').getBoundingClientRect().right <= innerWidth - 20"
    )
    assert "gradient" in bench.page.evaluate(
        "getComputedStyle(document.querySelector('.tabs')).maskImage"
    )


# In a wide window


def test_a_column_grows_while_few_items_are_known(window: Any, store: Store) -> None:
    long = "Lapsang souchong, smoked over pinewood"
    for line in range(
        3, 100
    ):  # more than a page, of which the filter leaves its first and its last item
        product, quantity = {3: ("tea", 9), 99: (long, 9)}.get(line, ("x" * 20_000, 1))
        store.put(Line(number=1, line=line, product=product, quantity=quantity))
    wanted = "%5B%5B%22quantity%22%2C%22%3E%22%2C%22%7B%5C%22N%5C%22%3A%5C%225%5C%22%7D%22%5D%5D"
    bench = window(f"#/t/sales/items?pk=%5B%22S%3AORDER%2300001%22%5D&filter={wanted}")
    product = bench.page.locator(".row.item .value", has_text=long)
    product.wait_for()
    assert " requests" in bench.page.locator(".status").inner_text()
    assert product.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_the_chosen_access_pattern_is_not_cut(window: Any) -> None:
    bench = window("#/t/sales/items?pattern=Order.by_customer")
    patterns = bench.page.get_by_label("Access pattern")
    patterns.wait_for()
    needed = patterns.evaluate(
        """(each) => {
            const copy = each.cloneNode(true);
            Object.assign(copy.style, { maxWidth: "none", width: "auto", position: "absolute" });
            each.parentElement.append(copy);
            const { width } = copy.getBoundingClientRect();
            copy.remove();
            return width;
        }"""
    )
    assert patterns.bounding_box()["width"] >= needed - 1
    assert bench.page.locator(".query-line").bounding_box()["height"] < 40  # still one line


def test_a_save_keeps_the_order_of_the_attributes(window: Any, store: Store) -> None:
    bench = window()
    names = "[...document.querySelectorAll('.attribute-name')].map((each) => each.innerText.split(' ')[0])"
    item(bench, 7)
    before = bench.page.evaluate(names)
    bench.press("Edit")
    bench.page.get_by_role("form").get_by_label("total", exact=True).fill("99")
    bench.press("Save")
    bench.page.locator(".notice").get_by_text("Saved").wait_for()
    bench.page.get_by_role("group", name="In the same item collection").wait_for()
    assert bench.page.evaluate(names) == before
    assert before[:4] == ["PK", "SK", "customer", "number"]


def test_beside_an_open_item_the_first_values_are_in_sight_and_the_others_can_be_reached(
    window: Any,
) -> None:
    bench = window("#/t/sales/items?index=GSI1&pk=%5B%22S%3ACUSTOMER%23ann%22%5D")
    bench.wait_for_items(3)
    bench.rows.first.click()
    bench.page.locator(".inspector").wait_for()
    pane = edges(bench.page.locator(".scroller"))
    head = bench.page.locator(".row.head").first
    for name in ("customer", "number", "status"):
        assert edges(head.get_by_text(name, exact=True))[2] <= pane[2]
    total = head.get_by_text("total", exact=True)
    bench.page.locator(".scroller").evaluate("each => { each.scrollLeft = 10_000 }")
    assert edges(total)[2] <= pane[2]


# Conflicts, costs, and what stands beside an item


def change_total(store: Store, total: int) -> None:
    order = store.get(Order, number=7)
    assert order is not None
    store.update(order, Order.total.set(Decimal(total)))


def test_a_second_conflict_compares_with_what_the_first_one_showed(
    window: Any, store: Store
) -> None:
    bench = window()
    item(bench, 7)
    bench.press("Edit")
    form = bench.page.get_by_role("form", name="Edit Order")
    form.get_by_label("total", exact=True).fill("170")
    change_total(store, 160)
    bench.press("Save")
    conflict = bench.page.get_by_role("alertdialog", name="Somebody else changed it")
    conflict.get_by_text("read as version 1, but is now version 2").wait_for()
    revision = conflict.locator("tr", has_text="revision").locator("td")
    revision.first.wait_for()
    assert revision.all_inner_texts()[:2] == ["1", "2"]
    change_total(store, 180)
    bench.press("Save mine over theirs")
    conflict.get_by_text("read as version 2, but is now version 3").wait_for()
    bench.until("document.querySelector('.versions td + td ins')?.innerText === '180'")
    assert revision.all_inner_texts()[:2] == ["2", "3"]
    total = conflict.locator("tr", has_text="total").locator("td")
    assert total.all_inner_texts() == ["160", "180", "170"]


def test_the_cost_of_a_deletion_has_each_condition_once(window: Any) -> None:
    bench = window()
    item(bench, 7)
    bench.press("Delete")
    bench.press("Cost")
    condition = bench.page.get_by_role("dialog").get_by_text("condition:")
    assert condition.inner_text().count("_v") == 1


def test_the_next_line_of_an_order_is_proposed_and_an_order_that_is_there_is_not(
    window: Any, store: Store
) -> None:
    bench = window()
    item(bench, 7)
    offered = bench.page.get_by_role("group", name="In the same item collection").get_by_role(
        "button"
    )
    assert offered.all_inner_texts() == ["+ Line"]
    bench.page.keyboard.press("j")  # its first line
    bench.until("document.querySelector('.inspector .entity').innerText === 'Line'")
    bench.until("document.querySelector('.beside-it')")
    assert offered.all_inner_texts() == ["+ Line"]
    for number, wanted in ((7, "3"), (9_000, "1")):
        if number == 9_000:
            store.put(Order(customer="eve", number=number, placed=START, total=Decimal(1)))
            bench.open(f"#/t/sales/items?pk=%5B%22S%3AORDER%23{number:05}%22%5D")
            bench.wait_for_items(1)
            bench.page.keyboard.press("j")
        bench.press("+ Line")
        form = bench.page.get_by_role("form", name="New Line")
        assert form.get_by_label("line", exact=True).input_value() == wanted
        focus_is(bench, "product")
        bench.page.get_by_role("button", name="Close the item").click()


def test_letters_wait_for_the_form_of_a_line_that_is_being_opened(window: Any) -> None:
    bench = window()
    item(bench, 7)
    held: list[Any] = []
    bench.page.route("**/api/execute", lambda route: held.append(route))
    bench.press("+ Line")
    while not held:
        bench.page.wait_for_timeout(20)
    bench.page.keyboard.type("shn")  # would download, show the saved queries, begin another item
    assert bench.page.get_by_role("dialog").count() == 0
    assert bench.page.get_by_role("heading", name="New item").count() == 0
    for each in held:
        each.continue_()
    focus_is(bench, "product")


ORDER_7 = "#/t/sales/items?pk=%5B%22S%3AORDER%2300007%22%5D"


def test_on_a_phone_a_line_can_be_added_below_many_attributes(window: Any) -> None:
    bench = window(ORDER_7, **PHONE)
    bench.page.set_viewport_size({"width": 390, "height": 480})
    bench.rows.first.tap()
    foot = bench.page.locator(".beside-it")
    bench.page.get_by_role("button", name="+ Line").wait_for()
    panel = bench.page.locator(".inspected").bounding_box()
    scrolled = bench.page.locator(".inspected").evaluate(
        "(it) => it.scrollHeight > it.clientHeight"
    )
    box = foot.get_by_role("button").bounding_box()
    assert scrolled
    assert box["y"] + box["height"] <= panel["y"] + panel["height"]


def test_on_a_phone_no_input_moves_while_somebody_types_into_it(window: Any) -> None:
    bench = window(ORDER_7, **PHONE)
    bench.rows.first.tap()
    bench.press("Edit")
    field = bench.page.get_by_role("form").get_by_label("total", exact=True)
    before = field.bounding_box()
    field.press("End")
    bench.page.keyboard.type("1")
    bench.page.get_by_role("button", name="Put back").wait_for()
    assert field.bounding_box() == before


def test_the_order_of_lines_without_one_is_offered(window: Any, store: Store) -> None:
    store.delete(Order, number=7)
    bench = window("#/t/sales/items?pk=%5B%22S%3AORDER%2300007%22%5D")
    bench.wait_for_items(2)
    bench.page.keyboard.press("j")
    bench.press("+ Order")
    form = bench.page.get_by_role("form", name="New Order")
    assert form.get_by_label("number", exact=True).input_value() == "7"
