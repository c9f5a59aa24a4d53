"""What a new user of the workbench does without reading about it: by mouse, by keyboard, on a phone."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, field, version

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})
CUSTOMERS = 15
ORDERS = 20


class Customer(Entity, table=shop):
    login: Attr[str] = field()
    email: Attr[str] = field(unique=True)

    primary = Key("CUSTOMER", login).sort("PROFILE")


class Order(Entity, table=shop):
    number: Attr[int] = field(max=99_999)
    customer: Attr[str] = field()
    total: Attr[Decimal] = field(min=0)
    note: Attr[str] = field(default="")
    revision: Attr[int] = version()

    primary = Key("ORDER", number).sort("ORDER")
    by_customer = Index("GSI1", "CUSTOMER", customer).sort(number)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(shop)
        for number in range(CUSTOMERS):
            store.put(Customer(login=f"c{number:02}", email=f"c{number:02}@example.com"))
        for number in range(ORDERS):
            store.put(Order(number=number, customer="ann", total=Decimal(number * 100)))
        yield store
        assert store.verify(shop).is_clean


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    """Opens a view in a window; when the test is over, nothing may have gone wrong in any."""
    with windows(chrome, store, [shop], "#/t/shop/items", height=844) as open_view:
        yield open_view


PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
FOCUSED = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.className"


def selected(bench: Workbench, count: int) -> None:
    words = f"{count} items selected" if count != 1 else "1 item selected"
    bench.page.get_by_role("region", name="Selected items").get_by_text(words).wait_for()


def all_selected(bench: Workbench) -> None:
    rows = "[...document.querySelectorAll('.row.item')]"
    bench.until(f"{rows}.length > 5 && {rows}.every((each) => each.ariaChecked === 'true')")


# Selecting


def test_several_items_are_selected_by_touch(window: Any, store: Store) -> None:
    bench = window(**PHONE)
    bench.wait_for_items(3)
    for place in (0, 2):
        bench.rows.nth(place).locator(".tick").tap()
    selected(bench, 2)
    assert bench.page.locator(".inspector").count() == 0  # a tap on the box opens nothing
    assert bench.rows.nth(0).get_attribute("aria-checked") == "true"
    assert bench.rows.nth(1).get_attribute("aria-checked") == "false"
    assert bench.serious_faults() == []
    bench.page.get_by_label("Select all items that are loaded").tap()
    all_selected(bench)


def test_several_items_are_selected_by_the_mouse(window: Any) -> None:
    bench = window()
    bench.wait_for_items(8)
    bench.rows.nth(1).locator(".tick").click()
    selected(bench, 1)
    bench.rows.nth(4).click(modifiers=["Shift"])
    selected(bench, 4)
    assert bench.page.evaluate("getSelection().toString()") == ""
    bench.rows.nth(2).locator(".tick").click()
    selected(bench, 3)
    bench.rows.nth(6).dblclick()
    assert bench.page.evaluate("getSelection().toString()") == ""


def test_several_items_are_selected_by_the_keyboard(window: Any) -> None:
    bench = window()
    bench.wait_for_items(8)
    bench.page.get_by_role("listbox").focus()
    bench.page.keyboard.press("ArrowDown")
    bench.page.keyboard.press("Space")
    selected(bench, 1)
    bench.page.keyboard.press("Shift+ArrowDown")
    bench.page.keyboard.press("Shift+ArrowDown")
    selected(bench, 3)
    bench.page.keyboard.press("a")
    all_selected(bench)


def test_the_palette_finds_how_to_select(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.page.keyboard.press("Control+k")
    bench.page.keyboard.type("select all")
    bench.page.get_by_role("option", name="Select all items that are loaded").wait_for()
    bench.page.keyboard.press("Enter")
    all_selected(bench)


# Filters


@pytest.mark.parametrize(
    ("attribute", "kind"), [("total", "N"), ("note", "S"), ("GSI1PK", "S"), ("unknown", "S")]
)
def test_a_filter_has_the_type_that_was_seen(window: Any, attribute: str, kind: str) -> None:
    bench = window()
    bench.wait_for_items(8)
    bench.press("+ Filter")
    bench.until(f"({FOCUSED}) === 'Attribute'")
    bench.page.keyboard.type(attribute)
    assert bench.page.get_by_label("Type").input_value() == kind
    if attribute != "total":
        return
    bench.page.get_by_label("Operator", exact=True).select_option(">")
    bench.page.get_by_label("Value").fill("290")
    bench.page.keyboard.press("Enter")
    bench.until("location.hash.includes('filter')")
    bench.until("document.querySelector('.status')?.innerText.startsWith('17 items')")


def test_a_type_that_was_never_seen_is_told(window: Any) -> None:
    bench = window()
    bench.wait_for_items(8)
    bench.press("+ Filter")
    bench.page.keyboard.type("total")
    bench.page.get_by_label("Type").select_option("S")
    told = bench.page.locator(".filter-line [role=status]")
    assert told.inner_text() == "In the items read so far, total is N, never S."
    bench.page.get_by_label("Attribute", exact=True).fill("note")
    assert told.count() == 0


# Records of the library


@pytest.mark.parametrize("more", [{}, PHONE])
def test_internal_records_are_folded_until_they_are_wanted(window: Any, more: Any) -> None:
    bench = window(**more)
    bench.wait_for_items(5)
    bench.page.get_by_text(f"{CUSTOMERS + 1} internal records are folded").wait_for()
    folded = bench.page.locator(".row .entity").all_inner_texts()
    assert set(folded) == {"Customer", "Order"}
    assert f"{CUSTOMERS + ORDERS} items" in bench.page.locator(".foot").inner_text()
    bench.press("Show them")
    bench.page.locator(".row .entity").get_by_text("_unique").first.wait_for()
    bench.page.reload()  # the choice is kept
    bench.page.locator(".row .entity").get_by_text("_unique").first.wait_for()
    bench.press("Fold them")
    bench.until(
        "![...document.querySelectorAll('.row .entity')].some((each) => each.innerText === '_unique')"
    )


def test_an_internal_record_that_is_asked_for_is_shown(window: Any) -> None:
    key = "%5B%22S%3A_unique%23Customer%23email%23c01%40example.com%22%5D"
    bench = window(f"#/t/shop/items?pk={key}")
    bench.wait_for_items(1)
    assert bench.page.locator(".own-records").count() == 0


# Editing


def edit(bench: Workbench, number: int) -> Any:
    bench.open(f"#/t/shop/items?pk=%5B%22S%3AORDER%23{number:05}%22%5D")
    bench.wait_for_items(1)
    bench.page.keyboard.press("j")
    bench.press("Edit")
    form = bench.page.get_by_role("form", name="Edit Order")
    form.wait_for()
    return form


@pytest.mark.parametrize("ending", ["Save", "Cancel"])
def test_after_an_edit_the_keyboard_goes_on_from_the_row(window: Any, ending: str) -> None:
    bench = window()
    form = edit(bench, 7)
    form.get_by_label("note", exact=True).fill("fragile")
    bench.press(ending)
    form.wait_for(state="detached")
    bench.until("document.activeElement.matches('.scroller')")
    row = bench.page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-activedescendant')).innerText"
    )
    assert "ORDER" in row


def test_a_conflict_is_decided_before_anything_is_saved(window: Any, store: Store) -> None:
    bench = window()
    form = edit(bench, 7)
    store.update(store.get(Order, number=7), Order.total.set(Decimal(1)))
    form.get_by_label("note", exact=True).fill("mine")
    bench.press("Save")
    conflict = bench.page.get_by_role("alertdialog", name="Somebody else changed it")
    conflict.get_by_text("so both can be kept").wait_for()
    assert form.get_by_role("button", name="Save", exact=True).is_disabled()
    note = form.get_by_label("note", exact=True)
    note.fill("mine, later")  # what is saved is what stands in the form
    note.press("Control+Enter")
    assert store.get(Order, number=7).note == ""
    bench.press("Save mine, too")
    bench.page.locator(".notice").get_by_text("Saved", exact=True).wait_for()
    now = store.get(Order, number=7)
    assert (now.note, now.total) == ("mine, later", Decimal(1))


def test_a_raw_edit_that_was_refused_is_not_sent_again_as_it_is(window: Any, store: Store) -> None:
    bench = window()
    edit(bench, 7)
    bench.press("Edit its raw attributes instead")
    store.update(store.get(Order, number=7), Order.note.set("theirs"))
    bench.page.get_by_label("note", exact=True).fill("mine")
    bench.press("Save")
    bench.press("Save anyway")
    bench.page.locator(".failure").wait_for()
    save = bench.page.get_by_role("button", name="Save", exact=True)
    assert save.is_disabled()
    bench.page.get_by_label("note", exact=True).fill("mine again")
    assert save.is_enabled()


@pytest.mark.parametrize(
    "values", [{"login": "c03", "email": "x"}, {"login": "x", "email": "c03@example.com"}]
)
def test_what_exists_already_is_linked_to(window: Any, values: dict[str, str]) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.press("New item")
    bench.press("Customer")
    form = bench.page.get_by_role("form", name="New Customer")
    for name, text in values.items():
        form.get_by_label(name, exact=True).fill(text)
    bench.press("Create")
    link = bench.page.get_by_role("link", name="Show the Customer that")
    with bench.page.context.expect_page() as opened:
        link.click()
    opened.value.locator(".row.item", has_text="PROFILE").wait_for()
    assert "CUSTOMER%23c03" in opened.value.url
    assert form.get_by_label("login", exact=True).input_value() == values["login"]  # it stays


def test_a_raw_item_that_exists_already_is_linked_to(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    bench.press("New item")
    bench.press("A raw item, without the model")
    bench.page.get_by_label("PK", exact=True).fill("CUSTOMER#c03")
    bench.page.get_by_label("SK", exact=True).fill("PROFILE")
    bench.press("Create")
    bench.page.get_by_text("The table has an item with this key already.").wait_for()
    link = bench.page.get_by_role("link", name="Show the item that is there")
    assert "CUSTOMER%23c03" in link.get_attribute("href")


# Downloads, costs, the phone


def test_a_download_is_told(window: Any) -> None:
    bench = window()
    bench.wait_for_items(3)
    for group, what in (
        (
            f"The {CUSTOMERS + ORDERS} rows",
            f"Downloaded {CUSTOMERS + ORDERS} rows as shop-rows.csv",
        ),
        ("The whole table", f"Downloaded {2 * CUSTOMERS + ORDERS + 1} items as shop.csv"),
    ):
        bench.press("Download")
        with bench.page.expect_download():
            bench.page.get_by_role("group", name=group).get_by_role("button", name="CSV").click()
        bench.page.locator(".notice").get_by_text(what).wait_for()


def test_the_list_of_expensive_queries_says_what_it_leaves_out(bench: Workbench) -> None:
    bench.open("#/t/Words/items")
    bench.wait_for_items(7)
    bench.open("#/queries")
    bench.page.get_by_text("The requests of this workbench itself are not counted.").wait_for()


TOO_SMALL = """() => [...document.querySelectorAll("button, select, textarea, input:not([type=checkbox]), a.more-link, .tick")]
    .filter((each) => each.offsetParent && each.getBoundingClientRect().height < 44)
    .map((each) => each.outerHTML)"""


def test_on_a_phone_a_finger_finds_every_control(window: Any) -> None:
    bench = window(**PHONE)
    bench.wait_for_items(5)
    assert bench.page.evaluate(TOO_SMALL) == []
    bench.press("Query")
    bench.press("+ Filter")
    assert bench.page.evaluate(TOO_SMALL) == []
    bench.press("Query")
    bench.rows.first.tap()
    bench.press("Edit")
    bench.page.locator(".entity-form").wait_for()
    assert bench.page.evaluate(TOO_SMALL) == []
    bench.page.get_by_role("button", name="Close the item").click()
    bench.press("New item")  # without the query
    bench.press("Customer")
    bench.page.get_by_role("form", name="New Customer").wait_for()
    bench.until("document.documentElement.scrollWidth <= innerWidth")
