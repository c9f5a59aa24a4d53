"""Modelled items in real Chromium: made, changed one and several at a time, repaired, and by two editors at once.

After each test `verify` finds nothing: that is the point of editing through the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from tests.browser.chromium import needs_chromium
from tests.oracle import optional_dynamodb_local
from tests.workbench.every_type import MOMENT, Address, Customer, Line, Order, Size, order, shop

import isotone
from isotone.model import Store
from isotone.server import running_server
from isotone.workbench import Workbench as Pages

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import AXE, Workbench  # noqa: E402


@pytest.fixture(params=["isotone", "dynamodb-local"])
def store(request: Any) -> Iterator[Store]:
    """A store of the model, on both engines; when the test is over, `verify` finds nothing."""
    if request.param == "isotone":
        with isotone.open() as database:
            yield from _verified(isotone.connect(database))
        return
    with (
        optional_dynamodb_local.dynamodb_local() as started,
        isotone.connect(
            started.url, region="us-east-1", credentials=isotone.Credentials("local", "local")
        ) as store,
    ):
        yield from _verified(store)


def _verified(store: Store) -> Iterator[Store]:
    store.drop_tables(shop)
    store.create_tables(shop)
    yield store
    verification = store.verify(shop)
    assert verification.is_clean, str(verification)


@pytest.fixture
def address(store: Store) -> Iterator[str]:
    backend = store.backend
    pages = Pages(backend, target="the shop", tables=[shop], is_endpoint=False)
    with isotone.open() as nothing, running_server(nothing, pages=pages) as url:
        yield url


@pytest.fixture
def contexts(chrome: Any) -> Iterator[Any]:
    """Makes windows; when the test is over, nothing may have gone wrong in any."""
    opened: list[tuple[Any, Workbench]] = []

    def window(url: str, width: int = 1440, scheme: str = "light") -> Workbench:
        context = chrome.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            timezone_id="Europe/Berlin",
        )
        bench = Workbench(context.new_page(), url)
        opened.append((context, bench))
        return bench

    yield window
    for context, bench in opened:
        bench.check()
        context.close()


@pytest.fixture
def bench(contexts: Any, address: str) -> Workbench:
    return contexts(address)


def fill(bench: Workbench, label: str, text: str) -> None:
    bench.page.get_by_label(label, exact=True).fill(text)


def choose(bench: Workbench, label: str, option: str) -> None:
    bench.page.get_by_label(label, exact=True).select_option(option)


def row(bench: Workbench, text: str) -> Any:
    """The row of the order or customer with this text; not that of the marker of a unique value."""
    own = bench.page.locator(".sort-cell", has_text=re.compile("ORDER|PROFILE"))
    return bench.page.locator(".row.item", has=own).filter(has_text=text)


def show(bench: Workbench, text: str) -> None:
    row(bench, text).locator(".sort-cell").dblclick()
    bench.page.locator(".inspector").wait_for()


def edit(bench: Workbench, text: str) -> None:
    show(bench, text)
    bench.press("Edit")
    bench.page.locator(".entity-form").wait_for()


def open_items(bench: Workbench, count: int = 1) -> None:
    bench.open("#/t/shop/items")
    bench.wait_for_items(count)


def only(store: Store) -> Order:
    (found,) = store.scan(Order.primary.scan())
    return found


# Every type

KEYS = "[...document.querySelectorAll('.draft-key')]"


def fill_everything(bench: Workbench) -> None:
    page = bench.page
    fill(bench, "customer", "bob")
    fill(bench, "placed", "2026-09-02T10:00")  # on a clock in Berlin
    choose(bench, "status", "PAID")
    choose(bench, "size", "LARGE")
    fill(bench, "count", "7")
    fill(bench, "total", "12.50")
    fill(bench, "weight", "1.5")
    choose(bench, "is_gift", "true")
    fill(bench, "note", "two\nlines")
    fill(bench, "due", "2026-10-01")
    fill(bench, "at", "08:15:00")
    fill(bench, "lasts", "1d 2h 30m")
    fill(bench, "photo", "AAEC")
    fill(bench, "token", "5f0c1c0e-0000-4000-8000-000000000001")
    for place, tag in enumerate(("new", "red")):
        bench.press("Add to tags")
        fill(bench, f"tags[{place}]", tag)
    for place, score in enumerate(("3", "1")):
        bench.press("Add to scores")
        fill(bench, f"scores[{place}]", score)
    bench.press("Move scores[1] up")
    bench.press("Add to prices")
    fill(bench, "Name in prices", "net")
    page.get_by_label("Name in prices", exact=True).press("Tab")
    fill(bench, "prices.net", "1.10")
    bench.press("Set address")
    fill(bench, "address.street", "Long Lane")
    fill(bench, "address.number", "4")
    bench.press("Add to lines")
    fill(bench, "lines[0].sku", "a")
    fill(bench, "lines[0].price", "2.50")
    fill(bench, "lines[0].added", "2026-09-02T10:00")
    bench.press("Set extra")
    choose(bench, "Type of extra", "N")
    fill(bench, "extra", "5")
    fill(bench, "invoice", "I-2")
    fill(bench, "until", "2099-01-01T01:00")


FULL = {
    "customer": "bob",
    "placed": datetime(2026, 9, 2, 8, tzinfo=UTC),
    "status": "PAID",
    "size": Size.LARGE,
    "count": 7,
    "total": Decimal("12.5"),
    "weight": 1.5,
    "is_gift": True,
    "note": "two\nlines",
    "due": date(2026, 10, 1),
    "at": time(8, 15),
    "lasts": timedelta(days=1, hours=2, minutes=30),
    "photo": b"\x00\x01\x02",
    "token": UUID("5f0c1c0e-0000-4000-8000-000000000001"),
    "tags": {"new", "red"},
    "scores": [1, 3],
    "prices": {"net": Decimal("1.1")},
    "address": Address(street="Long Lane", number=4),
    "lines": [Line("a", Decimal("2.5"), datetime(2026, 9, 2, 8, tzinfo=UTC))],
    "extra": 5,
    "invoice": "I-2",
    "until": datetime(2099, 1, 1, tzinfo=UTC),
    "version": 1,
    "label": "bob: 12.5",
}


def test_an_entity_of_every_type_is_made_changed_and_brought_back(bench, store):
    store.put(Customer(login="ann", name="Ann"))
    open_items(bench)
    bench.page.keyboard.press("n")
    bench.page.get_by_role("group", name="What is it?").wait_for()
    bench.page.keyboard.press("Enter")  # the first kind has the focus
    bench.page.get_by_role("form", name="New Order").wait_for()
    fill_everything(bench)
    bench.until(f"{KEYS}.some((key) => key.innerText.startsWith('PLACED#2026'))")
    lines = bench.page.evaluate(f"{KEYS}.map((key) => Math.round(key.offsetHeight / 18))")
    assert set(lines) == {1}  # no field has moved below the pointer
    bench.page.get_by_label("Keys").get_by_text("2026-09-02T08:00:00.000000Z").wait_for()
    bench.page.get_by_label("Set by the library").get_by_text("bob: 12.5").wait_for()
    bench.press("Create")
    bench.said("Created")
    made = only(store)
    assert {name: getattr(made, name) for name in FULL} == FULL

    edit(bench, "I-2")
    fill(bench, "customer", "eve")
    fill(bench, "placed", "2026-12-24T18:30")
    choose(bench, "status", "SENT")
    choose(bench, "size", "SMALL")
    fill(bench, "count", "9")
    fill(bench, "total", "3")
    fill(bench, "weight", "")
    choose(bench, "is_gift", "false")
    bench.press("Unset note")
    fill(bench, "due", "2026-11-30")
    fill(bench, "at", "23:59:59")
    fill(bench, "lasts", "5s")
    fill(bench, "photo", "")
    fill(bench, "token", "")
    bench.press("Remove tags[0]")
    bench.press("Remove scores[0]")
    fill(bench, "prices.net", "2")
    bench.press("Unset address")
    fill(bench, "lines[0].price", "9")
    fill(bench, "extra", "6")
    fill(bench, "invoice", "I-3")
    fill(bench, "until", "")
    bench.press("Save")
    bench.said("Saved")
    expected = {
        "customer": "eve",
        "placed": datetime(2026, 12, 24, 17, 30, tzinfo=UTC),
        "status": "SENT",
        "size": Size.SMALL,
        "count": 9,
        "total": Decimal(3),
        "weight": None,
        "is_gift": False,
        "note": None,
        "due": date(2026, 11, 30),
        "at": time(23, 59, 59),
        "lasts": timedelta(seconds=5),
        "photo": None,
        "token": None,
        "tags": {"red"},
        "scores": [3],
        "prices": {"net": Decimal(2)},
        "address": None,
        "lines": [Line("a", Decimal(9), datetime(2026, 9, 2, 8, tzinfo=UTC))],
        "extra": 6,
        "invoice": "I-3",
        "until": None,
        "version": 2,
        "label": "eve: 3",
    }
    changed = only(store)
    assert {name: getattr(changed, name) for name in expected} == expected
    assert changed.changed > made.changed
    assert store.verify(shop).is_clean
    bench.press("Undo")
    bench.said("Undone")
    undone = only(store)
    assert {name: getattr(undone, name) for name in FULL} == {**FULL, "version": 3}

    show(bench, "I-2")
    bench.press("Delete")
    bench.page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
    bench.said("Deleted")
    assert not list(store.scan(Order.primary.scan()))
    assert store.verify(shop).is_clean
    bench.press("Undo")
    bench.said("Undone")
    assert only(store).lines == undone.lines


# What is refused


def test_what_is_refused_stands_beside_its_field(bench, store):
    store.put(order())
    store.put(order(customer="bob", invoice="I-2"))
    open_items(bench, 2)
    edit(bench, "I-2")
    fill(bench, "count", "200")
    bench.page.locator("[data-field=count]").get_by_text("more than 99").wait_for()
    assert bench.page.get_by_role("button", name="Save", exact=True).is_disabled()
    fill(bench, "count", "5")
    fill(bench, "token", "mine")
    bench.page.locator("[data-field=token]").get_by_text("valid UUID").wait_for()
    fill(bench, "token", "")
    fill(bench, "invoice", "I-1")
    bench.press("Save")
    fault = bench.page.locator("[data-field=invoice] .wrong")
    fault.wait_for()
    assert "'I-1' is taken by CUSTOMER#ann" in fault.inner_text()
    assert bench.serious_faults() == []
    fill(bench, "invoice", "I-9")
    assert not fault.is_visible()
    bench.page.keyboard.press("Escape")  # leaves the field, and loses nothing
    bench.page.locator(".entity-form [data-field=invoice] textarea").press("Shift+Tab")
    bench.page.keyboard.press("Control+Enter")
    bench.said("Saved")
    assert {each.invoice for each in store.scan(Order.primary.scan())} == {"I-1", "I-9"}
    edit(bench, "I-9")
    bench.page.keyboard.press("Escape")  # nothing was typed
    bench.page.locator(".entity-form").wait_for(state="hidden")


# Two editors


def test_the_second_of_two_editors_is_told_with_both_versions(contexts, address, store):
    store.put(order(note="before"))
    first, second = contexts(address), contexts(address)
    for each in (first, second):
        open_items(each)
        edit(each, "I-1")
    fill(first, "note", "theirs")
    fill(first, "total", "1")
    first.press("Save")
    first.said("Saved")

    fill(second, "note", "mine")
    second.press("Save")
    told = second.page.get_by_role("alertdialog", name="Somebody else changed it")
    told.get_by_role("row", name="note").wait_for()
    text = told.inner_text()
    assert "read as version 1, but is now version 2" in text
    assert [
        each.split("\t") for each in told.get_by_role("row", name="note").all_inner_texts()
    ] == [["note", "before", "theirs", "mine"]]
    assert "Both changed note" in text
    assert second.serious_faults() == []
    assert only(store).note == "theirs"
    second.press("Save mine over theirs")
    told.wait_for(state="hidden")
    assert (only(store).note, only(store).total, only(store).version) == ("mine", 1, 3)
    # The first one still shows what it saved; its next change is refused, too.
    first.press("Edit")
    fill(first, "count", "3")
    first.press("Save")
    told = first.page.get_by_role("alertdialog", name="Somebody else changed it")
    told.get_by_text("not those that they changed").wait_for()
    first.press("Save mine, too")
    told.wait_for(state="hidden")
    found = only(store)
    assert (found.note, found.count, found.version) == ("mine", 3, 4)
    second.press("Edit")
    fill(second, "count", "4")
    second.press("Save")
    second.press("Drop mine")
    second.page.locator(".inspector .attribute", has_text="count").get_by_text("3").wait_for()
    store.delete(found)
    first.press("Edit")
    fill(first, "count", "5")
    first.press("Save")
    first.page.get_by_text("deleted this item while you edited it").wait_for()


# What does not fit


def test_an_item_that_does_not_fit_carries_a_mark_and_is_repaired(bench, store):
    store.put(order())
    store.put(order(customer="bob", invoice="I-2"))
    for item in store.backend.execute("Scan", {"TableName": "shop"})["Items"]:
        if item["_type"] == {"S": "Order"}:
            wrong = {"S": "OPNE"} if item["invoice"] == {"S": "I-1"} else {"S": "SENT"}
            damaged = {**item, "total": {"N": "7"}, "status": wrong, "odd": {"S": "?"}}
            store.backend.execute("PutItem", {"TableName": "shop", "Item": damaged})
    open_items(bench, 2)
    assert bench.page.locator(".misfit-mark").count() == 2
    show(bench, "I-2")
    misfit = bench.page.get_by_label("What does not fit the model")
    misfit.wait_for()
    assert "not what the function of a computed field returns" in misfit.inner_text()
    assert bench.serious_faults() == []
    bench.press("Repair, and remove odd")
    bench.said("Repaired")
    bench.until("document.querySelectorAll('.misfit-mark').length === 1")
    show(bench, "I-1")
    bench.press("Correct it in the form")
    bench.page.locator("[data-field=status]").get_by_text("has 'OPNE'").wait_for()
    assert bench.page.get_by_label("status", exact=True).input_value() == "OPNE"
    choose(bench, "status", "OPEN")
    bench.press("Save")
    bench.said("Saved")
    bench.press("Remove odd")
    bench.said("Repaired")
    bench.until("document.querySelectorAll('.misfit-mark').length === 0")


# Several at once


def test_fields_of_several_are_changed_with_a_preview_and_brought_back(bench, store):
    for number in range(4):
        status = "PAID" if number == 3 else "OPEN"
        placed = MOMENT + timedelta(hours=number)
        store.put(order(placed=placed, invoice=f"I-{number}", status=status))
    store.put(Customer(login="ann", name="Ann"))
    open_items(bench, 5)
    for text in ("I-0", "I-1", "I-2", "I-3", "PROFILE"):
        row(bench, text).click(modifiers=["Control"])
    bench.page.get_by_text("5 items selected").wait_for()
    bench.press("Edit fields")
    dialog = bench.page.get_by_role("dialog", name="Edit the selected items")
    dialog.wait_for()
    assert "1 selected item of another kind stays as it is" in dialog.inner_text()
    choose(bench, "Set a field", "status")
    choose(bench, "status", "PAID")
    choose(bench, "Set a field", "tags")
    bench.press("Add to tags")
    fill(bench, "tags[0]", "checked")
    bench.press("Preview")
    dialog.get_by_text("4 items change").wait_for()
    first = dialog.locator(".bulk-previews li").first.inner_text()
    assert "STATUS#OPEN" in first
    assert "STATUS#PAID" in first
    assert bench.serious_faults() == []
    before = {each.invoice: each for each in store.scan(Order.primary.scan())}
    assert {each.version for each in before.values()} == {1}
    bench.press("Change 4 items")
    bench.said("Changed 4 items")
    changed = list(store.scan(Order.primary.scan()))
    assert {(each.status, frozenset(each.tags), each.version) for each in changed} == {
        ("PAID", frozenset({"checked"}), 2)
    }
    assert store.verify(shop).is_clean
    bench.press("Undo")
    bench.said("Undone: 4 items")
    for each in store.scan(Order.primary.scan()):
        was = before[each.invoice]
        assert (each.status, each.tags, each.version) == (was.status, was.tags, 3)
    # What one of them would be refused is said before anything is written.
    for text in ("I-0", "I-1"):
        row(bench, text).click(modifiers=["Control"])
    bench.press("Edit fields")
    choose(bench, "Set a field", "invoice")
    fill(bench, "invoice", "same")
    bench.press("Preview")
    bench.press("Change 2 items")
    bench.page.locator(".notice").get_by_text("1 failed: Order: invoice 'same' is taken").wait_for()


# Without the model


def test_raw_attributes_are_behind_a_switch_that_says_what_it_breaks(bench, store):
    store.put(order())
    open_items(bench)
    edit(bench, "I-1")
    bench.press("Edit its raw attributes instead")
    bench.page.get_by_text("Raw attributes bypass the model of Order").wait_for()
    assert bench.serious_faults() == []
    fill(bench, "status", "SENT")
    bench.press("Save")
    warning = bench.page.get_by_role("alertdialog", name="Save without the model")
    warning.wait_for()
    assert "index GSI1" in warning.inner_text()
    bench.press("Back")
    bench.press("Back to the form of Order")
    bench.page.locator(".entity-form").wait_for()
    bench.press("Cancel")
    assert only(store).status == "OPEN"


SCREENS = [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SCREENS)
def test_every_screen_fits_and_is_accessible(contexts, width, scheme):
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(shop)
        store.put(order(**{name: FULL[name] for name in ("address", "lines", "prices", "extra")}))
        pages = Pages(database, target=":memory:", tables=[shop])
        with running_server(database, pages=pages) as url:
            bench = contexts(url, width, scheme)
            open_items(bench)

            def fits() -> None:
                bench.settle()
                bench.until("document.documentElement.scrollWidth <= innerWidth")
                wide = """[...document.querySelectorAll('.inspector, .inspector .inspected')]
                    .every((each) => each.scrollWidth <= each.clientWidth + 1)"""
                bench.until(wide)
                if AXE.exists():
                    assert bench.serious_faults() == [], (width, scheme)

            bench.page.keyboard.press("n")
            bench.page.get_by_role("group", name="What is it?").wait_for()
            fits()
            bench.page.keyboard.press("Enter")
            bench.page.locator(".entity-form").wait_for()
            bench.press("Create")
            bench.page.get_by_text("fields to put right").wait_for()
            fits()
            bench.page.get_by_label("Close the item").click()
            edit(bench, "ORDER#")
            fits()


def test_the_cost_of_a_unique_value_is_shown_before_it_is_saved(bench, store):
    """The item, its entry in the index and the record of the value are each charged twice: it is a transaction."""
    store.put(order())
    open_items(bench)
    edit(bench, "ORDER#")
    fill(bench, "invoice", "I-9")
    bench.press("Cost")
    cost = bench.page.get_by_role("dialog", name="Explain")
    cost.get_by_text("TransactWriteItems of 3 items").wait_for()
    record = cost.get_by_role("row").filter(has_text="_unique#Order#invoice#I-9")
    assert "a new entry\t2 units" in record.inner_text()
    cost.get_by_role("row").filter(has_text="the entry is deleted").wait_for()
    if AXE.exists():
        assert bench.serious_faults() == []
    bench.press("Close")
    bench.press("Save")
    bench.said("Saved")
