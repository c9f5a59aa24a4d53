"""What a person does in a library's table: finds loans, corrects them, adds reservations; nothing that is typed is lost."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.browser.library_model import Copy, Loan, Member, Reservation, library

import isotone
from isotone import Store

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

START = datetime(2026, 9, 1, 9, tzinfo=UTC)
FIRST = "LOAN#2026-09-01T09:00:00Z"
OF_ANN = "#/t/library/items?pk=%5B%22S%3AMEMBER%23ann%22%5D"


@pytest.fixture
def store() -> Iterator[Store]:
    """Ann has six loans; two readers wait for the book of the first."""
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(library)
        store.put(Member(member="ann", name="Ann"))
        for place in range(6):
            borrowed = START + timedelta(days=place)
            due = borrowed.date() + timedelta(days=21)
            store.put(Loan(member="ann", borrowed=borrowed, title=f"Book {place}", due=due))
        for position, reader in ((1, "bob"), (2, "eve")):
            store.put(Reservation(member="ann", borrowed=START, position=position, reader=reader))
        store.put(Copy(isbn="1", number=1, barcode="b-1"))
        yield store
        assert store.verify(library).is_clean


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    """Opens the collection of Ann in a window, and waits for its items."""
    with windows(chrome, store, [library], OF_ANN) as open_view:

        def open_items(address: str = OF_ANN, width: int = 1440, **more: Any) -> Workbench:
            bench = open_view(address, width, **more)
            bench.wait_for_items()
            return bench

        yield open_items


def row(bench: Workbench, sort_key: str) -> Any:
    """The row of a sort key, not of those that begin with it."""
    return bench.page.locator(f'.row.item:has(.sort-cell[title="{sort_key}"])')


def show(bench: Workbench, sort_key: str) -> Any:
    row(bench, sort_key).locator(".sort-cell").dblclick()
    pane = bench.page.get_by_role("complementary", name="Item")
    pane.wait_for()
    return pane


def edit(bench: Workbench, sort_key: str = FIRST) -> Any:
    show(bench, sort_key)
    bench.press("Edit")
    return bench.form("Edit Loan")


def focused(bench: Workbench, label: str) -> None:
    bench.until(f"document.activeElement.ariaLabel === {label!r}")


# What is typed


@pytest.mark.parametrize("way", ["another row", "Close the item", "Cancel", "escape", "n", "view"])
def test_what_was_typed_into_a_form_that_is_left_comes_back(window, store, way):
    bench = window()
    page = bench.page
    edit(bench).get_by_label("title", exact=True).fill("Emma")
    if way == "another row":
        row(bench, "LOAN#2026-09-03T09:00:00Z").click()
    elif way == "escape":
        page.keyboard.press("Escape")  # the first leaves the field
        page.keyboard.press("Escape")
    elif way == "n":
        page.keyboard.press("Escape")
        page.keyboard.press("n")
    elif way == "view":
        page.get_by_role("link", name="Lint").click()
    else:
        bench.press(way)
    bench.said("Not saved: changes of Loan")
    bench.press("Undo")
    again = bench.form("Edit Loan")
    assert again.get_by_label("title", exact=True).input_value() == "Emma"
    bench.press("Save")
    bench.said("Saved")
    found = store.get(Loan, member="ann", borrowed=START)
    assert found is not None
    assert found.title == "Emma"


def test_a_new_entity_that_is_left_comes_back_and_an_untouched_form_goes_silently(window):
    bench = window()
    page = bench.page
    show(bench, FIRST)
    bench.press("+ Reservation")
    bench.form("New Reservation")
    bench.press("Close the item")
    assert page.locator(".notice").count() == 0
    page.keyboard.press("n")
    page.get_by_role("group", name="What is it?").get_by_role("button", name="Copy").click()
    bench.form("New Copy").get_by_label("isbn", exact=True).fill("2")
    bench.press("Close the item")
    bench.said("Not saved: new Copy")
    page.keyboard.press("u")
    assert bench.form("New Copy").get_by_label("isbn", exact=True).input_value() == "2"


def test_raw_attributes_that_are_left_come_back(window, store):
    bench = window()
    edit(bench)
    bench.press("Edit its raw attributes instead")
    raw = bench.page.locator(".item-form").get_by_label("title", exact=True)
    raw.fill("Emma")
    bench.press("Close the item")
    bench.said("Not saved: changes of Loan")
    bench.press("Undo")
    bench.until("document.querySelector('.inspector .mark')?.innerText === 'raw'")
    assert raw.input_value() == "Emma"


def test_the_browser_asks_before_a_changed_form_goes_with_its_page(window):
    bench = window()
    asked: list[str] = []

    def answer(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.accept()

    bench.page.on("dialog", answer)
    editing = edit(bench)
    bench.page.reload()
    assert asked == []  # nothing was typed
    edit(bench)
    editing.get_by_label("title", exact=True).press_sequentially("Emma")
    bench.page.reload()
    assert asked == ["beforeunload"]


def test_a_new_element_has_the_focus_and_no_fault_before_the_form_is_sent(window, store):
    bench = window()
    editing = edit(bench)
    editing.get_by_role("button", name="Add to renewals").click()
    focused(bench, "renewals[0]")
    bench.page.wait_for_timeout(600)  # longer than the pause after which the model is asked
    assert editing.get_by_role("alert").count() == 0
    bench.press("Save")
    editing.get_by_text("something in it is empty: fill it in, or remove it").wait_for()
    focused(bench, "renewals[0]")
    editing.get_by_label("renewals[0]", exact=True).fill("2026-09-08")
    bench.press("Save")
    bench.said("Saved")
    found = store.get(Loan, member="ann", borrowed=START)
    assert found is not None
    assert found.renewals == [date(2026, 9, 8)]


def test_a_list_without_elements_says_that_it_is_empty(window):
    bench = window()
    show(bench, FIRST)
    renewals = bench.page.locator(".attribute", has_text="renewals")
    assert renewals.inner_text().endswith("empty")


def test_a_duplicate_begins_at_the_key_that_it_needs(window):
    bench = window()
    show(bench, FIRST)
    bench.press("Duplicate")
    bench.form("New Loan")
    focused(bench, "borrowed")


# Parents and children


def test_a_reservation_of_a_loan_has_its_whole_key(window, store):
    bench = window()
    show(bench, FIRST)
    for sort_key, position in (("LOAN#2026-09-02T09:00:00Z", "1"), (FIRST, "3")):
        show(bench, sort_key)
        bench.press("+ Reservation")
        new = bench.form("New Reservation")
        assert new.get_by_label("borrowed", exact=True).input_value().startswith(sort_key[5:21])
        assert new.get_by_label("position", exact=True).input_value() == position
        focused(bench, "reader")
        bench.press("Close the item")
    show(bench, f"{FIRST}#RESERVATION#02")
    bench.press("+ Reservation")
    new = bench.form("New Reservation")
    assert new.get_by_label("position", exact=True).input_value() == "3"
    new.get_by_label("reader", exact=True).fill("kim")
    bench.press("Create")
    bench.said("Created")
    waiting = Reservation.primary.where(Reservation.member == "ann", Reservation.borrowed == START)
    assert [each.reader for each in store.all(waiting)] == ["bob", "eve", "kim"]


def test_a_loan_beside_a_loan_gets_a_time_of_its_own(window):
    bench = window()
    show(bench, FIRST)
    bench.press("+ Loan")
    new = bench.form("New Loan")
    assert new.get_by_label("member", exact=True).input_value() == "ann"
    assert new.get_by_label("borrowed", exact=True).input_value() == ""


def test_what_stays_below_a_loan_is_said_before_it_goes(window):
    bench = window()
    page = bench.page
    confirmation = page.get_by_role("alertdialog", name="Delete the item")
    show(bench, FIRST)
    bench.press("Delete")
    confirmation.get_by_text("2 items that belong to it stay as they are.").wait_for()
    bench.press("Keep")
    editing = edit(bench)
    assert editing.get_by_role("note").count() == 0
    editing.get_by_label("borrowed", exact=True).fill("2026-08-01T09:00:00")
    editing.get_by_text("2 items that belong to it stay where they are.").wait_for()
    bench.press("Cancel")
    show(bench, "MEMBER")
    bench.press("Delete")
    confirmation.get_by_text("8 items that belong to it stay as they are.").wait_for()
    bench.press("Keep")
    show(bench, f"{FIRST}#RESERVATION#01")
    bench.press("Delete")
    bench.settle()
    assert confirmation.get_by_role("note").count() == 0


def test_an_item_that_moves_is_still_shown(window, store):
    bench = window()
    editing = edit(bench, "LOAN#2026-09-02T09:00:00Z")
    editing.get_by_label("borrowed", exact=True).fill("2026-08-01T09:00:00")
    bench.press("Save")
    bench.said("Saved")
    pane = bench.page.get_by_role("complementary", name="Item")
    pane.get_by_text("2026-08-01T09:00:00.000000Z").wait_for()


# Queries


def choose_pattern(bench: Workbench, pattern: str) -> Any:
    bench.page.get_by_label("Access pattern").select_option(pattern)
    return bench.form(pattern)


def test_a_time_that_is_typed_as_a_day_is_the_whole_day(window):
    bench = window()
    query = choose_pattern(bench, "Loan.primary")
    query.get_by_label("member", exact=True).fill("ann")
    query.get_by_label("borrowed", exact=True).fill("2026-09-02")
    query.get_by_text("borrowed on all of 2 September 2026, UTC", exact=True).wait_for()
    bench.press("Run")
    bench.until("document.querySelectorAll('.row.item.outside').length > 0")
    assert bench.page.locator(".row.item:not(.outside)").count() == 1


@pytest.mark.parametrize(
    ("pattern", "label", "text", "wanted"),
    [
        ("Loan.primary", "borrowed", "yesterday", "write 2026-09-01 or 2026-09-01T12:00"),
        ("Loan.by_status", "due", "10/15/2026", "write it as 2026-09-01"),
    ],
)
def test_a_time_that_cannot_be_read_says_how_to_write_it(window, pattern, label, text, wanted):
    bench = window()
    query = choose_pattern(bench, pattern)
    if pattern == "Loan.primary":
        query.get_by_label("member", exact=True).fill("ann")
    else:
        query.get_by_label("status", exact=True).select_option("OUT")
    assert query.get_by_label(label, exact=True).get_attribute("placeholder") == "2026-09-01"
    query.get_by_label(label, exact=True).fill(text)
    query.get_by_label(f"Operator for {label}").select_option("<=")
    bench.press("Run")
    query.get_by_role("alert").get_by_text(wanted).wait_for()
    assert query.locator(".times-asked").count() == 0  # no sentence about what is no time


def test_what_is_wrong_in_a_pattern_is_gone_once_something_else_is_typed(window):
    bench = window()
    query = choose_pattern(bench, "Loan.primary")
    bench.press("Run")
    query.get_by_role("alert").get_by_text("Give member.").wait_for()
    query.get_by_label("member", exact=True).fill("ann")
    query.get_by_role("alert").wait_for(state="detached")
    query.get_by_label("borrowed", exact=True).fill("2026-09")
    bench.press("Run")
    query.get_by_role("alert").get_by_text("write 2026-09-01").wait_for()
    query.get_by_label("borrowed", exact=True).fill("2026-09-01")
    query.get_by_role("alert").wait_for(state="detached")


def test_a_component_after_a_range_says_what_it_needs(window):
    bench = window()
    query = choose_pattern(bench, "Loan.by_status")
    query.get_by_label("due", exact=True).fill("2026-09-22")
    member = query.get_by_label("member", exact=True)
    assert member.is_enabled()
    query.get_by_label("Operator for due").select_option("<=")
    bench.until("document.querySelector('.pattern-form [aria-label=member]').disabled")
    assert member.get_attribute("placeholder") == "needs due ="


def test_a_range_without_its_partition_says_what_to_do(window):
    bench = window(f"{OF_ANN}&sk=%5B%22begins_with%22%2C%22S%3ALOAN%22%5D")
    query = bench.form("Query")
    query.get_by_label("Partition key PK").fill("")
    bench.press("Scan")
    query.get_by_text("SK narrows one partition: enter PK, or empty SK").wait_for()
    # It counts, so it is not dim as what is left out.
    assert query.locator("label.later").count() == 0
    query.get_by_label("Sort key SK").fill("")
    bench.until("document.querySelectorAll('.query-form label.later').length === 1")


def test_the_type_of_a_filter_follows_another_attribute(window):
    bench = window("#/t/library/items")
    page = bench.page
    bench.press("+ Filter")
    page.get_by_label("Attribute", exact=True).fill("fine")
    page.get_by_label("Value", exact=True).fill("7")
    bench.press("Scan")
    bench.until("location.hash.includes('fine')")
    bench.settle()
    assert page.get_by_label("Type").input_value() == "N"
    page.get_by_label("Attribute", exact=True).fill("title")
    assert page.get_by_label("Type").input_value() == "S"


def test_escape_goes_from_the_query_to_the_items(window):
    bench = window()
    page = bench.page
    page.keyboard.press("q")
    focused(bench, "Partition key PK")
    page.keyboard.press("Escape")
    bench.until("document.activeElement.matches('.scroller')")
    page.keyboard.press("j")
    bench.until("document.querySelectorAll('.row.item.selected').length === 1")


# Several items


def test_keys_edit_and_delete_what_is_selected(window, store):
    bench = window()
    page = bench.page
    for place in (2, 3):
        row(bench, f"LOAN#2026-09-0{place}T09:00:00Z").locator(".tick").click()
    page.keyboard.press("i")
    dialog = page.get_by_role("dialog", name="Edit the selected items")
    dialog.get_by_label("Set a field").select_option("status")
    focused(bench, "status")
    page.keyboard.press("Escape")
    page.keyboard.press("Delete")
    page.get_by_role("alertdialog", name="Delete the selected items").wait_for()
    bench.press("Delete 2")
    bench.said("Deleted 2 items")
    assert len(store.all(Loan.primary.where(Loan.member == "ann"))) == 4
    page.keyboard.press("u")
    bench.said("Undone: 2 items")
    page.keyboard.press("u")
    bench.said("There is nothing to undo")


# What fits


@pytest.mark.parametrize("width", [390, 1440])
def test_the_pane_of_an_item_fits_whatever_its_kind_is_called(window, width):
    bench = window(width=width, has_touch=width == 390)
    page = bench.page
    show(bench, f"{FIRST}#RESERVATION#01")
    close = page.get_by_role("button", name="Close the item")
    header = page.locator(".inspector > header")
    for button in (close, header.get_by_role("button", name="Delete")):
        box = button.bounding_box()
        assert box["x"] + box["width"] <= width
    assert header.bounding_box()["height"] < 60  # one line
    kind = header.locator(".entity")
    assert kind.evaluate("each => each.scrollWidth <= each.clientWidth")  # its name is not cut
    close.click()
    bench.press("New item")
    outside = """() => [...document.querySelectorAll(".kinds .form-part")].filter((each) =>
        each.getBoundingClientRect().right > each.closest("button").getBoundingClientRect().right)"""
    assert page.evaluate(outside) == []
    kinds = page.get_by_role("group", name="What is it?").get_by_role("button")
    assert all(
        box["x"] + box["width"] <= width for box in (each.bounding_box() for each in kinds.all())
    )


def test_the_tools_of_a_table_with_many_access_patterns_are_one_line(window):
    bench = window("#/t/library/items")
    assert bench.page.locator(".query-line").bounding_box()["height"] < 40


def test_the_place_in_the_list_is_kept_when_its_item_is_deleted(window, store):
    for place in range(6, 40):
        borrowed = START + timedelta(days=place)
        store.put(Loan(member="ann", borrowed=borrowed, title=f"Book {place}", due=borrowed.date()))
    bench = window()
    page = bench.page
    row(bench, FIRST).locator(".sort-cell").click()
    for _ in range(30):
        page.keyboard.press("j")
    pane = page.get_by_role("complementary", name="Item")
    pane.get_by_text("LOAN#2026-09-29T09:00:00Z").first.wait_for()
    top = "document.querySelector('.scroller').scrollTop"
    scrolled = page.evaluate(top)
    assert scrolled > 0
    bench.press("Delete")
    page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    bench.said("Deleted")
    bench.until(f"{top} === {scrolled}")
    page.keyboard.press("j")
    pane.get_by_text("LOAN#2026-09-30T09:00:00Z").first.wait_for()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_every_screen_of_the_tasks_is_accessible(window, width, scheme):
    bench = window(width=width, color_scheme=scheme, has_touch=width == 390)
    page = bench.page
    show(bench, FIRST)
    bench.press("Delete")
    page.get_by_text("2 items that belong to it stay as they are.").wait_for()
    assert bench.serious_faults() == []
    bench.press("Keep")
    bench.press("Edit")
    editing = bench.form("Edit Loan")
    editing.get_by_label("borrowed", exact=True).fill("2026-08-01T09:00:00")
    editing.get_by_role("button", name="Add to renewals").click()
    bench.press("Save")
    editing.get_by_text("something in it is empty").wait_for()
    assert bench.serious_faults() == []
    bench.press("Close the item")
    bench.said("Not saved: changes of Loan")
    if width == 390:
        bench.press("Query")
    query = choose_pattern(bench, "Loan.by_status")
    query.get_by_label("due", exact=True).fill("2026-09-22")
    query.get_by_label("Operator for due").select_option("<=")
    assert bench.serious_faults() == []
    query = choose_pattern(bench, "Loan.primary")
    query.get_by_label("borrowed", exact=True).fill("2026-09-02")
    query.get_by_text("borrowed on all of 2 September 2026, UTC", exact=True).wait_for()
    assert bench.serious_faults() == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
