"""What the staff of a clinic do with animals and visits: nothing goes unsaid, and several changes are taken back in turn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.browser.clinic_model import Animal, Vaccination, Visit, clinic

import isotone
from isotone import Store

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench, windows  # noqa: E402

CHIP = "976187109"
START = datetime(2026, 1, 14, 8, 30, tzinfo=UTC)
FIRST = "VISIT#2026-01-14T08:30:00Z"
OF_MINKA = f"#/t/clinic/items?pk=%5B%22S%3AANIMAL%23{CHIP}%22%5D"
PHONE = {"width": 390, "has_touch": True, "is_mobile": True}
WHOLE = """(() => [...document.querySelectorAll(".row.item .sort-cell .key")].every(
    (key) => key.scrollWidth <= key.clientWidth || getComputedStyle(key).display === "inline"
) && [...document.querySelectorAll(".row.item .sort-cell")].every((cell) => cell.scrollWidth <= cell.clientWidth))()"""


@pytest.fixture
def store() -> Iterator[Store]:
    """Minka has ten visits and a vaccination; Rex has one of each."""
    with isotone.open() as database:
        store = isotone.connect(database)
        store.create_tables(clinic)
        for chip, name, visits in ((CHIP, "Minka", 10), ("976100001", "Rex", 1)):
            store.put(Animal(chip=chip, name=name, phone=f"+32 {chip}"))
            store.put(Vaccination(chip=chip, given_on=date(2025, 3, 1), vaccine="rabies"))
            for place in range(visits):
                at = START + timedelta(days=30 * place)
                visit = Visit(chip=chip, starts_at=at, vet="hk", reason="teeth", fee=Decimal(20))
                store.put(visit)
        yield store


@pytest.fixture
def window(chrome: Any, store: Store) -> Iterator[Any]:
    """Opens the collection of Minka in a window, and waits for its items."""
    with windows(chrome, store, [clinic], OF_MINKA) as open_view:

        def open_items(address: str = OF_MINKA, **more: Any) -> Workbench:
            bench = open_view(address, **more)
            bench.wait_for_items()
            return bench

        yield open_items


def row(bench: Workbench, sort_key: str) -> Any:
    return bench.page.locator(f'.row.item:has(.sort-cell[title="{sort_key}"])')


def edit(bench: Workbench, sort_key: str = FIRST) -> Any:
    row(bench, sort_key).locator(".sort-cell").dblclick()
    bench.press("Edit")
    form = bench.page.locator(".entity-form")
    form.wait_for()
    return form


def save(bench: Workbench, fee: str) -> None:
    edit(bench).get_by_label("fee", exact=True).fill(fee)
    bench.press("Save")


def fee(store: Store) -> Decimal | None:
    found = store.get(Visit, chip=CHIP, starts_at=START)
    return found.fee if found else None


def damage(store: Store, sort_key: str = FIRST, **attributes: Any) -> None:
    """Another program has written attributes that do not fit the model."""
    key = {"PK": {"S": f"ANIMAL#{CHIP}"}, "SK": {"S": sort_key}}
    item = store.backend.execute("GetItem", {"TableName": "clinic", "Key": key})["Item"]
    store.backend.execute("PutItem", {"TableName": "clinic", "Item": {**item, **attributes}})


# Undo


def test_changes_are_undone_one_after_another_each_with_what_it_was(
    window: Any, store: Store
) -> None:
    bench = window()
    save(bench, "25")
    bench.said("Saved" + "fee 20 → 25")
    save(bench, "30")
    bench.said("fee 25 → 30")
    bench.page.keyboard.press("Escape")
    row(bench, FIRST).click()
    bench.page.keyboard.press("Delete")
    bench.press("Delete")
    bench.said(f"DeletedVisit ANIMAL#{CHIP} {FIRST}")
    assert fee(store) is None
    for now, words in (("30", FIRST), ("25", "fee 30 → 25"), ("20", "fee 25 → 20")):
        bench.page.keyboard.press("u")
        bench.said("Undone")
        bench.said(words)
        assert fee(store) == Decimal(now)
    bench.page.keyboard.press("u")
    bench.said("There is nothing to undo")


def test_a_version_that_an_undo_has_raised_does_not_stop_the_next_one(
    window: Any, store: Store
) -> None:
    bench = window()
    for name in ("Mia", "Mina"):
        edit(bench, "ANIMAL").get_by_label("name", exact=True).fill(name)
        bench.press("Save")
        bench.said(f"→ {name}")
        bench.page.keyboard.press("Escape")
    for name in ("Mia", "Minka"):
        bench.page.keyboard.press("u")
        bench.said(f"→ {name}")
    assert store.get(Animal, chip=CHIP).name == "Minka"


@pytest.mark.parametrize("view", [{}, PHONE], ids=["desk", "phone"])
def test_undo_stays_in_sight_on_every_page(window: Any, store: Store, view: Any) -> None:
    bench = window(**view)
    if view:
        row(bench, FIRST).tap()
        bench.press("Edit")
        bench.page.get_by_label("fee", exact=True).fill("25")
        bench.press("Save")
    else:
        save(bench, "25")
    bench.said("Saved")
    assert bench.page.locator(".notice .detail").bounding_box()["height"] < 30  # in one line
    assert bench.page.locator(".undo-last").count() == 0  # its line has the button
    bench.page.evaluate("location.hash = '#/metrics'")
    undo = bench.page.get_by_role("button", name="Undo: Saved: fee 20 → 25")
    undo.wait_for()
    assert undo.bounding_box()["x"] + undo.bounding_box()["width"] <= (390 if view else 1440)
    undo.click()
    bench.said("Undone")
    assert fee(store) == 20
    assert undo.count() == 0


def test_a_correction_and_a_repair_of_what_does_not_fit_are_undone(
    window: Any, store: Store
) -> None:
    damage(store, status={"S": "DONE"}, room={"S": "3b"})
    bench = window()
    row(bench, FIRST).locator(".sort-cell").dblclick()
    bench.press("Correct it in the form")
    bench.until("document.activeElement.ariaLabel === 'status'")  # the field at fault
    bench.page.get_by_label("reason", exact=True).fill("ear")
    bench.page.keyboard.press("Control+Enter")
    bench.page.get_by_text("1 field to put right: status").wait_for()
    assert "store.update" not in bench.page.locator(".entity-form").inner_text()
    bench.press("Put back")
    bench.page.get_by_label("status", exact=True).select_option("TREATED")
    bench.press("Save")
    bench.said("status DONE → TREATED")
    bench.press("Remove room")
    bench.said("Repaired" + "room 3b → not set")
    for found in ("room", "status"):
        bench.page.keyboard.press("u")
        bench.said("Undone")
        bench.page.locator(".misfit").get_by_text(f"{found}:").wait_for()
    bench.press("Correct it in the form")


def test_a_refused_undo_shows_what_the_item_is_now(window: Any, store: Store) -> None:
    bench = window()
    save(bench, "25")
    bench.said("Saved")
    visit = store.get(Visit, chip=CHIP, starts_at=START)
    store.update(visit, Visit.reason.set("ear"))
    bench.press("Undo")
    bench.said("It cannot be undone")
    row(bench, FIRST).get_by_text("ear").wait_for()


# Deleting


def test_several_that_are_deleted_say_what_stays_without_those_among_them(window: Any) -> None:
    bench = window()
    row(bench, "ANIMAL").locator(".tick").click()
    bar = bench.page.get_by_role("region", name="Selected items")
    bar.get_by_role("button", name="Delete").click()
    bar.get_by_text("11 items that belong to it stay as they are.").wait_for()
    bar.get_by_text("Delete it?").wait_for()
    bench.press("Keep")
    row(bench, FIRST).locator(".tick").click()
    bar.get_by_role("button", name="Delete").click()
    bar.get_by_text("10 items that belong to them stay as they are.").wait_for()
    bench.press("Keep")
    bench.page.keyboard.press("a")
    bar.get_by_text("12 items selected").wait_for()
    bar.get_by_role("button", name="Delete").click()
    bench.settle()
    assert bar.get_by_role("note").count() == 0


# Keys that can be read


def test_keys_are_whole_beside_an_open_item_and_around_a_range(window: Any, store: Store) -> None:
    damage(store, room={"S": "3b"})  # its mark stands before the key
    bench = window()
    bench.page.locator(".misfit-mark").wait_for()
    row(bench, FIRST).locator(".sort-cell").click()
    bench.page.get_by_role("complementary", name="Item").wait_for()
    assert bench.page.evaluate(WHOLE)
    around = window(f"{OF_MINKA}&sk=%5B%22%3D%22%2C%22S%3AANIMAL%22%5D")
    around.page.locator(".row.outside").nth(3).wait_for()
    around.page.get_by_text("outside the range").first.wait_for()
    assert around.page.evaluate(WHOLE)


def test_the_names_of_the_keys_of_an_index_are_whole(window: Any) -> None:
    bench = window("#/t/clinic/items?index=GSI2")
    heading = bench.page.locator(".sort-name")
    assert heading.evaluate("(name) => name.scrollWidth <= name.clientWidth")


def test_a_second_click_on_a_name_turns_the_order(window: Any) -> None:
    bench = window()
    box = bench.page.locator(".row.head .name", has_text="fee").bounding_box()
    at = (box["x"] + 8, box["y"] + box["height"] / 2)
    bench.page.mouse.click(*at)
    bench.page.get_by_text("Sorted by fee, ascending").wait_for()
    bench.page.mouse.click(*at)
    bench.page.get_by_text("Sorted by fee, descending").wait_for()
    assert bench.page.get_by_role("complementary", name="Item").count() == 0


def test_key_columns_are_resized_by_keyboard_and_hidden_ones_are_counted(window: Any) -> None:
    bench = window()
    bench.page.keyboard.press("o")
    dialog = bench.page.get_by_role("dialog")
    dialog.get_by_label("Sort key").fill("400")
    dialog.get_by_label("Sort key").press("Tab")
    dialog.get_by_role("region", name="Columns of Visit").get_by_label(
        "reason", exact=True
    ).uncheck()
    bench.page.keyboard.press("Escape")
    assert bench.page.locator(".sort-name").bounding_box()["width"] == 400
    bench.page.get_by_text("1 hidden").wait_for()


# Typing


def test_a_new_member_of_a_map_has_the_focus_and_letters_stay_in_the_form(
    window: Any, store: Store
) -> None:
    bench = window()
    form = edit(bench, "ANIMAL")
    bench.press("Add to contact")
    bench.page.keyboard.type("street")
    bench.page.keyboard.press("Tab")
    bench.page.keyboard.type("Veldstraat 1")
    form.get_by_role("button", name="Cancel").focus()
    bench.page.keyboard.type("steno")  # save, theme, explain, new, columns: none of them is meant
    assert bench.page.get_by_role("dialog").count() == 0
    bench.page.locator(".top .title").click()  # beside the form, which is not saved
    bench.page.keyboard.type("steno")
    assert bench.page.get_by_role("dialog").count() == 0
    assert form.is_visible()
    bench.page.keyboard.press("Control+Enter")
    bench.said("Saved")
    assert store.get(Animal, chip=CHIP).contact == {"street": "Veldstraat 1"}


def test_a_time_that_is_half_filled_says_so_and_a_year_has_four_digits(window: Any) -> None:
    bench = window()
    bench.page.keyboard.press("n")
    bench.page.get_by_role("button", name="Visit VISIT").or_(
        bench.page.locator(".inspector button", has_text="Visit")
    ).first.click()
    field = bench.page.get_by_label("starts_at", exact=True)
    field.focus()
    bench.page.keyboard.type("12")
    bench.page.get_by_label("vet", exact=True).focus()
    bench.page.get_by_text("incomplete: give all its parts").wait_for()
    field.focus()
    bench.page.keyboard.type("12012026093000AM")  # the year ends by itself
    assert field.input_value() == "2026-12-01T09:30"
    assert bench.page.get_by_text("incomplete: give all its parts").count() == 0


def test_the_fields_stay_where_they_are_while_the_keys_fill(window: Any) -> None:
    bench = window()
    bench.page.keyboard.press("n")
    bench.page.locator(".inspector button", has_text="Visit").first.click()
    vet = bench.page.get_by_label("vet", exact=True)
    bench.page.locator(".draft-keys").wait_for()
    before = vet.bounding_box()["y"]
    bench.page.get_by_label("starts_at", exact=True).fill("2026-12-01T09:30")
    bench.page.get_by_label("chip", exact=True).fill(CHIP)
    bench.page.locator(".draft-key", has_text="VISIT#2026-12-01T09:30:00Z").first.wait_for()
    assert vet.bounding_box()["y"] == before


def test_an_empty_text_in_a_map_is_named(window: Any, store: Store) -> None:
    store.update(Animal, Animal.contact.set({"street": ""}), chip=CHIP)
    bench = window()
    row(bench, "ANIMAL").locator(".sort-cell").dblclick()
    bench.page.locator(".tree").get_by_text("empty text").wait_for()


# The keyboard


def test_the_first_key_goes_to_the_range_and_enter_in_a_choice_runs(window: Any) -> None:
    between = "%5B%22between%22%2C%22S%3AVISIT%232026-05%22%2C%22S%3AVISIT%232026-08%22%5D"
    bench = window(f"{OF_MINKA}&sk={between}")
    bench.page.locator(".row.outside").first.wait_for()
    bench.page.keyboard.press("j")
    bench.page.locator(".row.item.selected:not(.outside)").wait_for()
    bench.page.get_by_label("Access pattern").select_option("Visit.by_status")
    status = bench.page.get_by_label("status", exact=True)
    status.select_option("BOOKED")
    status.press("Enter")
    bench.until("document.querySelector('.status strong')?.innerText === '11'")


def test_safe_mode_answers_keys_and_is_found_by_its_name(window: Any) -> None:
    bench = window()
    for wanted in ("safe refuse", "safe"):
        bench.page.keyboard.press("Control+k")
        bench.page.keyboard.type(wanted)
        bench.page.keyboard.press("Enter")
        if wanted != "safe":
            bench.page.locator(".lock.locked").wait_for()
            row(bench, FIRST).locator(".sort-cell").click()
            for key in ("i", "n", "Delete"):
                bench.page.keyboard.press(key)
                bench.said("Safe mode: nothing can be written")
    bench.page.locator(".lock:not(.locked)").wait_for()


def test_the_way_to_an_index_keeps_the_value_that_is_filtered(window: Any) -> None:
    bench = window("#/t/clinic/items")
    bench.press("+ Filter")
    bench.page.keyboard.type("vet")
    bench.page.get_by_label("Value").fill("hk")
    bench.press("Explain")
    bench.page.get_by_role("dialog").get_by_role("link", name="Visit.by_vet").first.click()
    bench.until("document.querySelector('.pattern-form input')?.value === 'hk'")


def test_what_is_copied_is_said_above_the_dialog(window: Any) -> None:
    bench = window(permissions=["clipboard-read", "clipboard-write"])
    bench.press("Copy as")
    bench.press("Copy")
    bench.said("Copied")
    assert bench.page.locator(".notices").evaluate("(at) => at.matches(':popover-open')")
    assert not bench.serious_faults()


def test_names_of_members_are_whole_in_the_form(window: Any, store: Store) -> None:
    store.update(Animal, Animal.contact.set({"temperature": "38.6"}), chip=CHIP)
    bench = window()
    name = edit(bench, "ANIMAL").get_by_label("Name in contact")
    assert name.evaluate("(input) => input.scrollWidth <= input.clientWidth")


def test_the_way_to_who_has_a_unique_value_goes_once_another_is_typed(window: Any) -> None:
    bench = window()
    phone = edit(bench, "ANIMAL").get_by_label("phone", exact=True)
    phone.fill("+32 976100001")
    bench.press("Save")
    link = bench.page.get_by_role("link", name="Show the Animal that has it")
    link.wait_for()
    assert "In a new tab" in link.get_attribute("title")
    fault = bench.page.locator("[data-field=phone] [role=alert]").bounding_box()
    assert 0 < link.bounding_box()["y"] - fault["y"] < 60  # below what it belongs to
    phone.fill("+32 5")
    link.wait_for(state="detached")


def test_what_can_be_added_is_in_sight_below_many_attributes(window: Any) -> None:
    bench = window()
    row(bench, FIRST).locator(".sort-cell").click()
    add = bench.page.get_by_role("button", name="+ Vaccination")
    add.wait_for()
    pane = bench.page.locator(".inspected")
    assert pane.evaluate("(pane) => pane.scrollHeight > pane.clientHeight && pane.scrollTop === 0")
    assert add.bounding_box()["y"] + add.bounding_box()["height"] <= 900 - 27  # the status line


def test_a_form_says_when_the_server_answers_again(window: Any, store: Store) -> None:
    bench = window()
    edit(bench).get_by_label("fee", exact=True).fill("25")
    bench.page.context.set_offline(True)
    bench.press("Save")
    failure = bench.page.locator(".inspector > .failure")
    failure.get_by_text("Start it again").wait_for()
    bench.page.context.set_offline(False)
    failure.get_by_text("It answers again: repeat what you did.").wait_for()
    bench.until("document.querySelector('.entity-form .failure') === null")  # goes on by itself
    bench.errors.clear()  # requests that failed
    bench.press("Save")
    bench.said("Saved")
    assert fee(store) == 25


def test_shift_selects_what_is_put_back_from_one_difference_to_another(
    window: Any, store: Store
) -> None:
    bench = window()
    bench.open("#/t/clinic/snapshots")
    bench.page.get_by_role("button", name="Take a snapshot", disabled=False).click()
    bench.page.locator(".snapshot a").first.wait_for()
    for visit in store.all(Visit.primary.where(Visit.chip == CHIP)):
        store.update(visit, Visit.fee.set(Decimal(99)))
    bench.page.locator(".snapshot a").first.click()
    differences = bench.page.locator(".difference")
    differences.nth(9).wait_for()
    differences.nth(1).click()
    differences.nth(4).click(modifiers=["Shift"])
    bench.until("document.querySelectorAll('.difference.checked').length === 4")
    assert bench.page.evaluate("getSelection().isCollapsed")
    bench.press("Put back 4 items")
    bench.until("document.querySelectorAll('.difference.done').length === 4")
    fees = [each.fee for each in store.all(Visit.primary.where(Visit.chip == CHIP))]
    assert sorted(fees) == [20] * 4 + [99] * 6
