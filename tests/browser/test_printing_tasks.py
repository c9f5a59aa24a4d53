"""What a printing shop does with jobs and their sheets: nothing typed is lost, and what is searched for can be read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.browser.printing_model import Job, Sheet, press

import isotone
from isotone import Store

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
JOBS = 20
FIRST = date(2026, 12, 1)


@pytest.fixture
def store() -> Iterator[Store]:
    """Jobs of the Fox Theatre, due day by day; each has as many sheets as its number says, up to three."""
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(press)
        for number in range(1, JOBS + 1):
            due = FIRST + timedelta(days=number)
            job = Job(
                number=number, customer="Fox Theatre", due=due, title="Menu", total=Decimal(9)
            )
            store.put(job)
            for line in range(1, number % 4 + 1):
                store.put(Sheet(job=number, line=line, copies=50, price=Decimal("0.3")))
        yield store


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    with windows(chrome, store, [press], "#/t/press/items", height=844) as open_view:
        yield open_view


def run(bench: Workbench, pattern: str, **values: str) -> None:
    """Run an access pattern with these values in its form."""
    bench.wait_for_items(3)
    if bench.page.viewport_size["width"] < 600:
        bench.press("Query")
    bench.page.get_by_label("Access pattern").select_option(label=pattern)
    for name, value in values.items():
        bench.page.get_by_label(name, exact=True).fill(value)
    bench.press("Run")


OF_CUSTOMER = "Job.of_customer · customer, due, number"


def test_what_was_said_last_covers_no_field_of_the_next_form(window: Any) -> None:
    bench = window("#/t/press/items?pk=%5B%22S%3AJOB%2300004%22%5D", **PHONE)
    bench.wait_for_items(1)
    bench.rows.first.click()
    bench.press("+ Sheet")
    form = bench.page.get_by_role("form", name="New Sheet")
    for line in (1, 2):
        form.get_by_label("line", exact=True).fill(str(line))
        form.get_by_label("copies", exact=True).fill("50")
        form.get_by_label("price", exact=True).fill("0.3")
        bench.press("Create")
        bench.page.get_by_role("link", name="Show the collection").tap(trial=True, timeout=5000)
        bench.press("+ Sheet")
        form.wait_for()
        assert bench.page.locator(".notice").is_visible()
        price = form.get_by_label("price", exact=True)
        price.tap(timeout=5000)  # the notice stays for longer
        bench.page.keyboard.type("1.75")
        assert price.input_value() == "1.75"


def test_a_descending_date_is_legible_on_a_phone(window: Any) -> None:
    bench = window(**PHONE)
    run(bench, OF_CUSTOMER, customer="Fox Theatre", due="2026-12-05")
    found = bench.page.locator(".row.item:not(.outside) .first-values")
    found.get_by_text("2026-12-05").wait_for()
    assert "number" not in found.inner_text()  # the key has that as it is


def test_the_items_of_a_list_show_the_same_fields_on_a_phone(window: Any, store: Store) -> None:
    title = "A wedding programme with gold foil"
    long = Job(number=50, customer="Fox Theatre", due=FIRST, title=title, total=Decimal(9))
    store.put(long)
    bench = window(**PHONE)
    run(bench, OF_CUSTOMER, customer="Fox Theatre")
    bench.wait_for_items(JOBS + 1)
    assert first_fields(bench) == {("due", "status", "title")}


def first_fields(bench: Workbench) -> set[tuple[str, ...]]:
    rows = bench.page.locator(".row.item .first-values").all()
    return {tuple(row.locator("span > small").all_inner_texts()) for row in rows}


def test_a_longer_status_hides_no_field_on_a_phone(window: Any, store: Store) -> None:
    zoo = Job(number=60, customer="Zoo", due=FIRST, title="Poster", total=Decimal(9))
    store.put(zoo)
    bench = window(**PHONE)
    run(bench, OF_CUSTOMER, customer="Zoo")
    bench.page.locator(".first-values").get_by_text("QUOTED").wait_for()
    before = first_fields(bench)
    store.update(zoo, Job.status.set("COLLECTED"))
    bench.page.keyboard.press("r")
    bench.page.locator(".first-values").get_by_text("COLLECTED").wait_for()
    assert first_fields(bench) == before


def test_what_a_filter_tests_comes_first_on_a_phone(window: Any) -> None:
    bench = window(**PHONE)
    bench.wait_for_items(3)
    bench.press("Query")
    bench.add_filter("machine", "Heidelberg 1")
    bench.press("Scan")
    bench.until("document.querySelector('.status').innerText.includes('dropped by the filter')")
    first = bench.page.locator(".row.item .first-values").first
    assert first.locator("span > small").first.inner_text() == "machine"


def test_a_pattern_that_the_palette_finds_is_open_for_its_values_on_a_phone(window: Any) -> None:
    bench = window(**PHONE)
    bench.wait_for_items(3)
    bench.page.get_by_role("button", name="Tables", exact=True).click()
    bench.press("Search")
    bench.page.keyboard.type("of_customer")
    bench.page.get_by_role("option", name="Job.of_customer").click()
    form = bench.form("Job.of_customer")
    form.get_by_label("customer", exact=True).fill("Fox Theatre")
    form.get_by_role("button", name="Run").click()
    form.wait_for(state="hidden")
    bench.wait_for_items(3)


def test_a_customer_in_another_case_is_not_found_and_the_page_says_why(window: Any) -> None:
    bench = window()
    run(bench, OF_CUSTOMER, customer="fox theatre")
    bench.page.get_by_text("No item has this partition key").wait_for()
    bench.page.get_by_text("Keys are compared exactly, with upper and lower case.").wait_for()
    assert bench.page.get_by_text("padding").count() == 0  # the form sees to that


def test_the_collection_around_an_empty_range_is_that_of_the_form(window: Any) -> None:
    bench = window()
    run(bench, OF_CUSTOMER, customer="Fox Theatre", due="2027-01-01")
    bench.page.get_by_role("link", name="Show the collection").click()
    bench.wait_for_items(3)
    form = bench.form("Job.of_customer")
    assert form.get_by_label("customer", exact=True).input_value() == "Fox Theatre"
    assert form.get_by_label("due", exact=True).input_value() == ""


def test_the_form_of_a_pattern_says_which_values_descend_in_the_direction_read(window: Any) -> None:
    bench = window()
    run(bench, OF_CUSTOMER, customer="Fox Theatre")
    form = bench.form("Job.of_customer")
    descending = form.locator("label", has=bench.page.get_by_text("descending", exact=True))
    assert descending.locator("> span").first.inner_text().split() == ["due", "descending"]
    bench.press("↓ due descending")  # as the key is stored
    bench.page.get_by_role("button", name="↑ due ascending").wait_for()
    assert descending.locator("> span").first.inner_text().split() == ["number", "descending"]
    assert descending.count() == 1


def test_what_is_to_be_chosen_in_the_form_of_a_pattern_says_so(window: Any) -> None:
    bench = window("#/t/press/items?pattern=Job.by_status&index=GSI2")
    status = bench.form("Job.by_status").get_by_label("status", exact=True)
    assert status.locator("option:checked").inner_text() == "choose"


def test_a_key_that_is_taken_is_said_beside_its_field_until_it_is_another(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.press("New item")
    bench.page.get_by_role("button", name="Sheet", exact=True).click()
    form = bench.page.get_by_role("form", name="New Sheet")
    values = {"job": "3", "line": "1", "copies": "50", "price": "0.3"}
    for name, value in values.items():
        form.get_by_label(name, exact=True).fill(value)
    bench.press("Create")
    fault = form.locator('[data-field="line"]').get_by_text("SHEET#01 already exists")
    fault.wait_for()
    link = bench.page.get_by_role("link", name="Show the Sheet that has it")
    assert link.is_visible()
    form.get_by_label("job", exact=True).fill("4")  # which has no sheet
    fault.wait_for(state="detached")
    assert link.count() == 0
    bench.press("Create")
    bench.page.locator(".notice", has_text="Created").wait_for()


LINES_APART = """(link) => {
    const top = (text) => {
        const range = new Range();
        range.selectNodeContents(text);
        return range.getBoundingClientRect().top;
    };
    return top(link.parentNode.lastChild) - top(link.firstChild);
}"""


def test_a_link_in_a_cell_does_not_part_the_lines_of_its_words(window: Any) -> None:
    bench = window(**PHONE)
    bench.wait_for_items(3)
    bench.press("Query")
    bench.add_filter("customer", "Fox Theatre")
    bench.press("Explain")
    link = bench.page.get_by_role("dialog").locator("table.grid tbody th .more-link").first
    assert link.bounding_box()["height"] >= 44  # of a finger
    assert link.evaluate(LINES_APART) < 24  # to the words below it


# Explain


def explained(bench: Workbench, attribute: str, value: str) -> Any:
    bench.add_filter(attribute, value)
    bench.press("Explain")
    dialog = bench.page.get_by_role("dialog")
    dialog.locator(".drawing").first.wait_for()
    return dialog


def test_the_rows_of_explain_begin_with_what_the_filter_tests(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    dialog = explained(bench, "machine", "Xerox")
    job = dialog.locator(".drawn.dropped", has=bench.page.get_by_text("Job", exact=True)).first
    assert job.locator(".drawn-values").inner_text().startswith("machine: Heidelberg 1")


def test_a_part_of_the_partition_key_has_one_colour_in_a_scan(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    dialog = explained(bench, "machine", "Xerox")
    parts = dialog.locator(".drawing-partition .hue")
    assert parts.count() > 2
    assert {each.get_attribute("title") for each in parts.all()} == {"number"}


def test_items_between_those_shown_of_a_range_that_is_known_are_counted(
    window: Any, store: Store
) -> None:
    many = [(job, line) for job in range(100, 120) for line in range(1, 60)]  # more than a sample
    store.put_many(Sheet(job=job, line=line, copies=50, price=Decimal(1)) for job, line in many)
    bench = window()
    run(bench, OF_CUSTOMER, customer="Fox Theatre")
    bench.wait_for_items(JOBS)
    dialog = explained(bench, "status", "PRINTING")
    dialog.get_by_text("the 20 items of the range").first.wait_for()
    dialog.get_by_text("⋯ 10 more, read too").wait_for()


def test_an_item_that_is_edited_leaves_a_list_that_it_is_no_longer_in(window: Any) -> None:
    bench = window("#/t/press/items?index=GSI2&pk=%5B%22S%3ASTATUS%23QUOTED%22%5D")
    bench.wait_for_items(JOBS)
    bench.rows.first.click()
    bench.press("Edit")
    bench.page.get_by_label("status", exact=True).select_option("PRINTING")
    bench.press("Save")
    bench.said("Saved")
    bench.until(f"document.querySelectorAll('.row.item').length === {JOBS - 1}")
    bench.page.locator(".inspector").get_by_text("PRINTING", exact=True).wait_for()  # still open
    bench.page.keyboard.press("u")
    bench.said("Undone")
    bench.until(f"document.querySelectorAll('.row.item').length === {JOBS}")
