"""The workbench in real Chromium where something is late, wrong or gone: nothing is lost, and the page says what there is."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.workbench.sample_tables import load

import isotone
from isotone.server import running_server
from isotone.structures import Queue
from isotone.workbench import Workbench as Pages

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import WAIT_SECONDS, Workbench  # noqa: E402


@pytest.fixture(scope="module")
def database() -> Iterator[isotone.Database]:
    """The sample tables, for tests that write to tables of their own."""
    with isotone.open() as database:
        load(database)
        yield database


@pytest.fixture
def make(database: isotone.Database) -> Iterator[Callable[..., None]]:
    """Makes a table with items for one test."""
    made = []

    def make(name: str, items: Any, **more: Any) -> None:
        key = [("pk", "HASH"), ("sk", "RANGE")]
        names = {"pk": "S", "sk": "S", **more.pop("types", {})}
        database.execute(
            "CreateTable",
            {
                "TableName": name,
                "KeySchema": [{"AttributeName": each, "KeyType": kind} for each, kind in key],
                "AttributeDefinitions": [
                    {"AttributeName": each, "AttributeType": kind} for each, kind in names.items()
                ],
                "BillingMode": "PAY_PER_REQUEST",
                **more,
            },
        )
        made.append(name)
        for item in items:
            database.execute("PutItem", {"TableName": name, "Item": item})

    yield make
    for name in made:
        database.execute("DeleteTable", {"TableName": name})


def numbered(count: int) -> list[Any]:
    return [{"pk": {"S": "one"}, "sk": {"S": f"{n:04}"}, "n": {"N": str(n)}} for n in range(count)]


class Held:
    """Calls of the page that are held back until they are let go."""

    def __init__(self, bench: Workbench, name: str, wanted: Callable[[Any], bool]) -> None:
        self._routes: list[Any] = []
        self._bench, self._wanted = bench, wanted
        self._is_over = False
        bench.page.route(f"**/api/{name}", self._hold)

    def _hold(self, route: Any) -> None:
        if not self._is_over and self._wanted(json.loads(route.request.post_data)):
            self._routes.append(route)
        else:
            route.fallback()

    def until_held(self) -> None:
        end = time.monotonic() + WAIT_SECONDS
        while not self._routes:
            assert time.monotonic() < end, "the page never asked for it"
            self._bench.page.wait_for_timeout(10)

    def let_go(self) -> None:
        self._is_over = True
        for route in self._routes:
            route.continue_()


def stored(database: isotone.Database, table: str, **key: str) -> Any:
    wire = {name: {"S": text} for name, text in key.items()}
    return database.execute("GetItem", {"TableName": table, "Key": wire}).get("Item")


# What an index leaves out


def test_an_item_is_edited_when_the_whole_of_it_is_there(bench, database, make):
    item = {
        "pk": {"S": "one"},
        "sk": {"S": "a"},
        "mark": {"S": "m"},
        "note": {"S": "as it was"},
        "body": {"S": "the text"},
    }
    index = {
        "IndexName": "marks",
        "KeySchema": [{"AttributeName": "mark", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["note"]},
    }
    make("Marked", [item], types={"mark": "S"}, GlobalSecondaryIndexes=[index])
    page = bench.page
    bench.open("#/t/Marked/items?index=marks")
    bench.wait_for_items()
    held = Held(bench, "execute", lambda given: given["action"] == "GetItem")
    bench.rows.first.dblclick()
    held.until_held()
    page.keyboard.press("i")
    page.get_by_text("the rest is being read").wait_for()
    page.locator("button:disabled", has_text="Duplicate").wait_for()
    held.let_go()
    page.locator(".inspector").get_by_text("the text").wait_for()
    page.keyboard.press("i")
    page.get_by_label("note", exact=True).fill("changed")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Saved", exact=True).wait_for()
    assert stored(database, "Marked", pk="one", sk="a") == {**item, "note": {"S": "changed"}}


def test_an_item_that_is_gone_from_the_table_says_so(bench, database, make):
    index = {
        "IndexName": "marks",
        "KeySchema": [{"AttributeName": "mark", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    item = {"pk": {"S": "one"}, "sk": {"S": "a"}, "mark": {"S": "m"}}
    make("Going", [item], types={"mark": "S"}, GlobalSecondaryIndexes=[index])
    bench.open("#/t/Going/items?index=marks")
    bench.wait_for_items()
    key = {"pk": item["pk"], "sk": item["sk"]}
    database.execute("DeleteItem", {"TableName": "Going", "Key": key})
    bench.rows.first.dblclick()
    bench.page.get_by_text("The table has no such item any more").wait_for()
    bench.page.locator("button:disabled", has_text="Edit").wait_for()


# The form of an item


def edited(bench, address):
    """The page with the first item of a view in the form."""
    bench.open(address)
    bench.wait_for_items()
    bench.page.keyboard.press("j")
    bench.page.wait_for_selector(".inspector")
    bench.page.keyboard.press("i")
    return bench.page


def test_json_that_is_no_item_is_refused_in_words(bench, make):
    make("Typed", [{"pk": {"S": "one"}, "sk": {"S": "a"}}])
    page = edited(bench, "#/t/Typed/items")
    page.get_by_role("button", name="JSON", exact=True).click()
    field = page.get_by_label("The item as DynamoDB JSON")
    for value, said in (
        ('{"N": 12}', "n: N needs a text in quotes"),
        ('{"N": "twelve"}', "n: not a number: write it as 12.5"),
        ('{"S": null}', "n: S needs a text in quotes"),
        ('{"SS": "a"}', "n: SS needs a list of texts in quotes"),
        ('{"NS": [1]}', "n: NS needs a list of texts in quotes"),
        ('{"BOOL": "true"}', "n: BOOL needs true or false"),
        ('{"L": {"N": "1"}}', "n: L needs a list of values"),
        ('{"L": [{"M": {"a": {"B": 1}}}]}', "n: B needs a text in quotes"),
        ('{"M": null}', "n: M needs an object of values"),
        ('{"M": {"a": "b"}}', "n: write it with its type"),
        ('{"constructor": "x"}', "n: constructor is no type"),
        ("12", "n: write it with its type"),
    ):
        field.fill(f'{{"n": {value}}}')
        page.locator(".form-foot .wrong").get_by_text(said).wait_for()
        page.locator("button:disabled", has_text="Save").wait_for()
        page.locator("button:disabled", has_text="Form").wait_for()
    field.fill('[{"S": "a"}]')
    page.locator(".form-foot .wrong").get_by_text("write each attribute with its type").wait_for()
    field.fill('{"pk": {"S": "one"}, "sk": {"S": "a"}, "n": {"N": "12"}}')
    page.locator("button.primary:enabled", has_text="Save").wait_for()


def test_a_name_that_is_taken_is_refused_and_nothing_is_lost(bench, database, make):
    members = {"first": {"S": "1"}, "second": {"S": "2"}}
    item = {"pk": {"S": "one"}, "sk": {"S": "a"}, "map": {"M": members}, "other": {"S": "x"}}
    make("Named", [item])
    page = edited(bench, "#/t/Named/items")
    member = page.get_by_label("Name in map").nth(1)
    for text, told in (("first", "“first” is taken"), ("", "a name is required")):
        member.fill(text)
        page.locator(".name-input .wrong").get_by_text(told).wait_for()
        page.locator("button:disabled", has_text="Save").wait_for()
        page.locator("button:disabled", has_text="JSON").wait_for()
    member.fill("third")
    name = page.get_by_label("Attribute name").nth(1)
    name.fill("map")
    page.locator(".name-input .wrong").get_by_text("“map” is taken").wait_for()
    assert bench.serious_faults() == []
    name.fill("pk")
    page.locator(".name-input .wrong").get_by_text("“pk” is taken").wait_for()
    name.fill("renamed")
    page.keyboard.press("Control+Enter")  # from within the field
    page.get_by_text("Saved", exact=True).wait_for()
    changed = {"first": {"S": "1"}, "third": {"S": "2"}}
    assert stored(database, "Named", pk="one", sk="a") == {
        "pk": {"S": "one"},
        "sk": {"S": "a"},
        "map": {"M": changed},
        "renamed": {"S": "x"},
    }


def test_an_item_that_is_being_saved_is_not_saved_again(bench, database, make):
    make("Once", [{**numbered(1)[0], "note": {"S": "as it was"}}])
    page = bench.page
    bench.open("#/t/Once/items")
    bench.wait_for_items()
    page.keyboard.press("j")
    page.wait_for_selector(".inspector")
    page.keyboard.press("i")
    page.get_by_label("note", exact=True).fill("changed")
    held = Held(bench, "execute", lambda given: given["action"] == "UpdateItem")
    page.keyboard.press("Control+Enter")
    held.until_held()
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(100)  # in which it was sent again
    held.let_go()
    page.get_by_text("Saved", exact=True).wait_for()
    bench.settle()
    assert page.locator(".failure").count() == 0
    assert stored(database, "Once", pk="one", sk="0000")["note"] == {"S": "changed"}


def test_elements_and_texts_of_several_lines_are_kept_whole(bench, database, make):
    item = {
        "pk": {"S": "one"},
        "sk": {"S": "a"},
        "lines": {"SS": ["one\ntwo", "three"]},
        "text": {"S": "a\r\nb"},
    }
    make("Lines", [item])
    page = bench.page
    bench.open("#/t/Lines/items")
    bench.wait_for_items()
    page.keyboard.press("j")
    page.wait_for_selector(".inspector")
    page.keyboard.press("i")
    page.get_by_label("lines, element 2", exact=True).fill("four\nfive")
    page.get_by_label("text", exact=True).fill("a\nc")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Saved", exact=True).wait_for()
    found = stored(database, "Lines", pk="one", sk="a")
    assert len(found["lines"]["SS"]) == 2
    assert "four\nfive" in found["lines"]["SS"]
    assert found["text"] == {"S": "a\r\nc"}


def test_a_type_that_was_chosen_by_mistake_takes_nothing(bench, database, make):
    item = {"pk": {"S": "one"}, "sk": {"S": "a"}, "map": {"M": {"deep": {"N": "7"}}}}
    make("Typed", [item])
    page = edited(bench, "#/t/Typed/items")
    kind = page.get_by_label("Type of map", exact=True)
    kind.select_option("S")
    kind.select_option("M")
    assert page.get_by_label("map.deep", exact=True).input_value() == "7"


def test_attributes_may_have_the_names_that_objects_have(bench, database, make):
    plain = {"pk": {"S": "one"}, "sk": {"S": "a"}}
    make("Cars", [plain, {**plain, "sk": {"S": "b"}, "constructor": {"S": "Lotus"}}])
    page = bench.page
    bench.open("#/t/Cars/items")
    bench.wait_for_items(2)
    values = "[...document.querySelectorAll('.row.item .value')].map((each) => each.innerText)"
    bench.until(f"JSON.stringify({values}) === '[\"Lotus\"]'")
    page.keyboard.press("j")
    page.wait_for_selector(".inspector")
    page.keyboard.press("i")
    page.get_by_role("button", name="Add an attribute").click()
    page.get_by_label("Attribute name").fill("constructor")
    page.get_by_label("Attribute name").press("Tab")
    page.get_by_label("constructor", exact=True).fill("Brabham")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Saved", exact=True).wait_for()
    assert stored(database, "Cars", pk="one", sk="a")["constructor"] == {"S": "Brabham"}


# The query


def test_a_form_that_cannot_be_asked_says_why(bench):
    page = bench.page
    bench.open("#/t/Orders/items")
    bench.wait_for_items(10)
    page.get_by_text("partitions in hash order").wait_for()
    fault = page.locator(".query-form .wrong[role=alert]")
    page.get_by_label("Sort key ordered_at").fill("2019")
    page.keyboard.press("Enter")
    fault.get_by_text(
        "ordered_at narrows one partition: enter customer, or empty ordered_at"
    ).wait_for()
    page.get_by_label("Partition key customer").fill("2b5a41c0")
    page.get_by_label("Operator for ordered_at").select_option("between")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Query", exact=True).click()
    fault.get_by_text("ordered_at between needs both bounds").wait_for()
    page.get_by_label("Upper bound of ordered_at").fill("2020")
    page.get_by_role("button", name="+ Filter").click()
    page.get_by_label("Attribute", exact=True).fill("total")
    page.get_by_label("Type", exact=True).select_option("N")
    page.get_by_label("Value").fill("much")
    page.get_by_role("button", name="Query", exact=True).click()
    fault.get_by_text("total: not a number").wait_for()
    assert bench.serious_faults() == []
    assert "pk=" not in page.url
    page.get_by_label("Value").fill("9.95")
    page.get_by_role("button", name="Query", exact=True).click()
    bench.until("location.hash.includes('between') && location.hash.includes('filter')")
    bench.wait_for_items(1)


def test_a_jump_beyond_the_last_key_shows_the_last_items(bench, make):
    make("Jumps", numbered(300))
    bench.open("#/t/Jumps/items?pk=%5B%22S%3Aone%22%5D&at=S%3Azzz")
    bench.until(
        "[...document.querySelectorAll('.row.item .sort-cell')].some((each) => each.innerText === '0299')"
    )
    assert bench.page.get_by_text("This range has no items").count() == 0


def test_a_filter_that_leaves_nothing_above_asks_before_it_reads_on(bench, make):
    make(
        "Sieve", [{**item, "pad": {"S": "x" * 1_000}} for item in numbered(1_300)]
    )  # 128 KB a page
    wanted = "%5B%5B%22n%22%2C%22%3E%22%2C%22%7B%5C%22N%5C%22%3A%5C%221199%5C%22%7D%22%5D%5D"
    asked: list[str] = []
    bench.page.on("request", lambda request: asked.append(request.url))
    bench.open(f"#/t/Sieve/items?pk=%5B%22S%3Aone%22%5D&at=S%3A1200&filter={wanted}")
    bench.wait_for_items(10)
    note = bench.page.locator(".above")
    note.get_by_text("read so far").wait_for()
    bench.settle()
    pages = sum(url.endswith("/execute") for url in asked)
    assert pages <= 8
    note.get_by_role("button", name="Read on").click()
    bench.until_text(".above .link", "Read on")
    bench.settle()
    assert sum(url.endswith("/execute") for url in asked) > pages


# Late answers


def test_the_measure_of_another_statement_is_not_shown(bench):
    page = bench.page
    bench.open("#/t/Orders/partiql?statement=SELECT%20*%20FROM%20Words")
    bench.until("document.querySelector('.editor-host')?.shadowRoot?.querySelector('.cm-content')")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("button", name="Measure").wait_for()
    held = Held(bench, "explain", lambda given: given.get("run") is True)
    page.get_by_role("button", name="Measure").click()
    held.until_held()
    bench.open("#/t/Orders/partiql?statement=SELECT%20*%20FROM%20Scores")
    bench.until("document.querySelector('.editor-host').shadowRoot.textContent.includes('Scores')")
    page.get_by_role("button", name="Explain").click()
    bench.until("document.querySelector('.explained h2')?.innerText.includes('Scores')")
    held.let_go()
    page.get_by_role("button", name="Measure").click()
    page.wait_for_selector("tr.measured")
    assert "Scores" in page.locator(".explained h2").inner_text()


def test_a_statement_is_saved_as_it_is_written(bench):
    page = bench.page
    bench.open("#/t/Orders/partiql?statement=SELECT%20*%20FROM%20Words")
    bench.until("document.querySelector('.editor-host')?.shadowRoot?.querySelector('.cm-content')")
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT total FROM Orders")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Saved queries").click()
    page.get_by_label("Name", exact=True).fill("totals")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Saved queries").click()
    page.get_by_role("link", name="totals").click()
    bench.until("location.hash.includes('total+FROM+Orders')")


def test_a_visitor_who_has_left_is_not_brought_back_when_a_table_is_made(bench, database):
    page = bench.page
    bench.open("#/new-table")
    page.get_by_label("Name of the table").fill("slowly")
    held = Held(bench, "execute", lambda given: given["action"] == "CreateTable")
    page.get_by_role("button", name="Create", exact=True).click()
    held.until_held()
    page.locator(".tables").get_by_text("Words").click()
    bench.wait_for_items(5)
    held.let_go()
    page.locator(".tables").get_by_text("slowly").wait_for()
    bench.settle()
    assert page.url.endswith("#/t/Words/items")
    database.execute("DeleteTable", {"TableName": "slowly"})


# Snapshots


def put(database: isotone.Database, table: str, *items: Any) -> None:
    for each in items:
        database.execute("PutItem", {"TableName": table, "Item": each})


def take_and_compare(bench: Workbench, table: str, change: Callable[[], object]) -> None:
    """Take a snapshot of a table, change the table, and compare it."""
    bench.open(f"#/t/{table}/snapshots")
    bench.page.get_by_role("button", name="Take a snapshot", disabled=False).click()
    bench.page.locator(".snapshot a").first.wait_for()
    change()
    bench.page.locator(".snapshot a").first.click()
    bench.page.locator(".lists").wait_for()


JOB = {
    "fault": "", "items": 1, "of_items": 3, "share": 0.3, "seconds_left": None, "units": 0,
    "undo": False, "written": 1, "refused": 0, "refused_first": [], "notes": [],
}  # fmt: skip


class LongPutBack:
    """Putting back goes on until it is stopped, or told to be over. It notes which comparison was told what."""

    def __init__(self, bench: Workbench) -> None:
        self.state = "running"
        self.told: dict[str, int] = {}
        for name in ("put_back", "put_back_progress", "comparison_stop"):
            bench.page.route(f"**/api/{name}", self._answer)

    def _answer(self, route: Any) -> None:
        name = route.request.url.rpartition("/")[2]
        self.told[name] = json.loads(route.request.post_data)["id"]
        if name == "comparison_stop":
            self.state = "stopped"
        route.fulfill(json={**JOB, "state": self.state})


def test_tables_and_members_may_have_the_names_that_objects_have(bench, database, make):
    before = {"pk": {"S": "one"}, "sk": {"S": "a"}, "map": {"M": {"toString": {"S": "text"}}}}
    after = {**before, "map": {"M": {"valueOf": {"S": "value"}}}, "constructor": {"S": "Lotus"}}
    make("constructor", [before])
    take_and_compare(bench, "constructor", lambda: put(database, "constructor", after))
    page = bench.page
    sides = page.locator(".inspector .side")
    sides.first.wait_for()
    assert [each.split() for each in sides.all_inner_texts()] == [
        ["before", "text"], ["after", "absent"],
        ["before", "absent"], ["after", "value"],
        ["before", "absent"], ["after", "Lotus"],
    ]  # fmt: skip
    assert page.get_by_role("button", name="Undo").count() == 0
    bench.open("#/t/constructor/model")
    page.get_by_text("Inferred from 1 item").or_(page.get_by_text("No form was found")).wait_for()


def test_what_is_not_undone_stays_put_back(bench, database, make):
    make("Twice", numbered(3))
    changed = [{**each, "n": {"N": "9"}} for each in numbered(3)]
    take_and_compare(bench, "Twice", lambda: put(database, "Twice", *changed))
    page = bench.page
    bench.until("document.querySelectorAll('.difference').length === 3")
    for number, keystroke in ((1, "j"), (2, "j")):
        page.keyboard.press("b")
        bench.until(f"document.querySelectorAll('.difference.done').length === {number}")
        page.keyboard.press(keystroke)
    page.keyboard.press("u")
    bench.until("document.querySelectorAll('.difference.done').length === 1")
    assert stored(database, "Twice", pk="one", sk="0000") == numbered(1)[0]
    assert stored(database, "Twice", pk="one", sk="0001") == changed[1]


def test_an_undo_of_the_comparison_before_can_be_stopped(bench, database, make):
    make("Undone", numbered(3))
    changed = [{**each, "n": {"N": "9"}} for each in numbered(3)]
    take_and_compare(bench, "Undone", lambda: put(database, "Undone", *changed))
    page = bench.page
    page.get_by_role("button", name="Put all back").click()
    page.locator("dialog .danger").click()
    page.get_by_text("Nothing differs").wait_for()
    undo = LongPutBack(bench)
    page.keyboard.press("u")
    page.get_by_role("button", name="Stop").click()
    page.locator(".job").wait_for(state="detached")
    assert undo.told["comparison_stop"] == undo.told["put_back"]


def test_items_that_are_being_restored_are_shown_after_a_return(bench, database, make):
    make("Long", numbered(3))
    changed = [{**each, "n": {"N": "9"}} for each in numbered(3)]
    take_and_compare(bench, "Long", lambda: put(database, "Long", *changed))
    page = bench.page
    long = LongPutBack(bench)
    page.get_by_role("button", name="Put all back").click()
    page.locator("dialog .danger").click()
    page.locator(".job").wait_for()
    page.get_by_role("link", name="Items", exact=True).click()
    bench.wait_for_items(3)
    page.go_back()
    page.locator(".job").get_by_text("Putting back").wait_for()
    page.locator("button:disabled", has_text="Put all back").wait_for()
    long.state = "done"
    page.locator(".job").wait_for(state="detached")
    page.locator("button:enabled", has_text="Put all back").wait_for()


def test_a_comparison_whose_snapshot_another_window_deletes_says_so(bench, database, make):
    make("Shared", numbered(3))
    answers: list[Any] = [{"state": "running", "id": 1, "counts": None, "notes": [], **JOB}, None]

    def answer(route: Any) -> None:
        route.fulfill(json={"comparison": answers.pop(0) if len(answers) > 1 else answers[0]})

    bench.page.route("**/api/comparison", answer)
    bench.open("#/t/Shared/snapshots?from=20261123-000000-0000&to=now")
    bench.page.get_by_text("the snapshot was deleted meanwhile").wait_for()
    bench.page.get_by_role("button", name="Try again").wait_for()


def test_what_another_window_compares_again_can_be_compared_here_too(bench, database, make):
    make("Windows", [])
    take_and_compare(bench, "Windows", lambda: put(database, "Windows", *numbered(900)))
    bench.until("document.querySelectorAll('.difference').length > 20")
    other = bench.page.context.new_page()
    other.goto(bench.page.url)
    other.locator(".difference").first.wait_for()
    bench.page.keyboard.press("End")
    bench.page.get_by_text("this comparison was closed").wait_for()
    bench.page.get_by_role("button", name="Try again").click()
    bench.until("document.querySelector('.difference.selected')?.innerText.includes('0899')")


def test_a_snapshot_that_cannot_be_followed_says_so_and_another_can_be_taken(bench):
    taking = {**JOB, "state": "running", "id": "x", "name": "", "table": ""}

    def listed(route: Any) -> None:
        route.fulfill(json={**route.fetch().json(), "taking": taking})

    failure = {"error": {"code": "Unexpected", "message": "it is not known how far it is"}}
    bench.page.route("**/api/snapshots", listed)
    bench.page.route("**/api/snapshot_taking", lambda route: route.fulfill(json=failure))
    bench.open("#/t/Words/snapshots")
    bench.page.get_by_text("it is not known how far it is").wait_for()
    bench.page.locator("button:enabled", has_text="Take a snapshot").wait_for()


def test_snapshots_of_several_accounts_say_whose_they_are(bench):
    def listed(route: Any) -> None:
        answer = route.fetch().json()
        one = {
            "id": "a", "name": "of production", "began": 0, "ended": 0, "moment": False, "file": "",
            "bytes": 1, "account": "111", "tables": [{"name": "Words", "items": 7, "bytes": 1}],
        }  # fmt: skip
        others = [one, {**one, "id": "b", "account": "222"}]
        route.fulfill(json={**answer, "snapshots": others})

    bench.page.route("**/api/snapshots", listed)
    bench.open("#/t/Words/snapshots")
    for account in ("111", "222"):
        bench.page.get_by_text(f"account {account}").wait_for()


def test_what_a_table_lacks_that_is_created_again_is_reported(bench, database, make):
    make("Protected", numbered(3))
    recovery = {"PointInTimeRecoveryEnabled": True}
    database.execute(
        "UpdateContinuousBackups",
        {"TableName": "Protected", "PointInTimeRecoverySpecification": recovery},
    )
    bench.open("#/snapshots")
    page = bench.page
    page.get_by_role("button", name="Take a snapshot", disabled=False).click()
    page.locator(".snapshot-tables").wait_for()
    database.execute("DeleteTable", {"TableName": "Protected"})
    page.reload()
    page.locator(".snapshot-tables a").filter(has_text="Protected").click()
    page.get_by_text("no longer exists").wait_for()
    page.get_by_role("button", name="Put all back").click()
    page.locator("dialog .danger").click()
    page.get_by_text("point-in-time recovery: enable it on the table yourself").wait_for()
    page.get_by_text("Nothing differs").wait_for()


# What is not there, for a while


def answer_nothing(route: Any) -> None:
    route.fulfill(status=200, body="this is not JSON")


def test_pages_that_follow_go_on_after_an_error(bench, database):
    with isotone.connect(database, report=None) as store:
        queue = Queue(store, "jobs")
        queue.create_table()
        queue.put("one")
        bench.page.route("**/api/structure", answer_nothing)
        bench.open("#/structures/queue/queues/jobs")
        bench.page.get_by_text("The workbench's server does not answer").wait_for()
        bench.page.unroute("**/api/structure")
        bench.page.locator(".lanes article").wait_for()
        assert bench.page.locator(".failure").count() == 0
    database.execute("DeleteTable", {"TableName": "queues"})


HIDE = """(hidden) => {
    Object.defineProperty(document, "hidden", {get: () => hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_pages_that_follow_rest_while_nobody_sees_them(bench, database):
    with isotone.connect(database, report=None) as store:
        queue = Queue(store, "jobs")
        queue.create_table()
        queue.put("one")
        asked: list[str] = []
        bench.page.on("request", lambda request: asked.append(request.url.split("/")[-1]))
        bench.page.clock.install()
        bench.open("#/structures/queue/queues/jobs")
        article = bench.page.locator(".lanes article")
        article.wait_for()
        bench.page.evaluate(HIDE, True)
        bench.settle()
        before = asked.count("structure")
        queue.put("two")
        bench.page.clock.run_for(60_000)
        bench.settle()
        assert asked.count("structure") <= before + 1  # one was on its way
        bench.page.evaluate(HIDE, False)
        bench.until("document.querySelectorAll('.lanes article').length === 2")
    database.execute("DeleteTable", {"TableName": "queues"})


COUNT = """
    window.listeners = 0;
    for (const [name, by] of [["addEventListener", 1], ["removeEventListener", -1]]) {
        const original = EventTarget.prototype[name];
        EventTarget.prototype[name] = function (...given) {
            if (this instanceof AbortSignal) window.listeners += by;
            return original.apply(this, given);
        };
    }
"""


def test_pages_that_follow_collect_nothing(bench, database):
    with isotone.connect(database, report=None) as store:
        queue = Queue(store, "jobs")
        queue.create_table()
        queue.put("one")
        bench.page.add_init_script(COUNT)
        bench.page.clock.install()
        bench.open("#/structures/queue/queues/jobs")
        bench.page.locator(".lanes article").wait_for()
        for _ in range(5):
            bench.page.clock.run_for(2_000)
            bench.settle()
        assert bench.page.evaluate("window.listeners") <= 2
    database.execute("DeleteTable", {"TableName": "queues"})


def test_a_table_that_cannot_be_read_is_no_fault_of_another(bench, monkeypatch):
    monkeypatch.setattr("isotone.workbench.tables.MOST", 2)  # the list has its name alone
    failure = {"error": {"code": "AccessDeniedException", "message": "you may not describe it"}}

    def answer(route: Any) -> None:
        if json.loads(route.request.post_data)["table"] == "Words":
            route.fulfill(json=failure)
        else:
            route.fallback()

    bench.page.route("**/api/table", answer)
    bench.open("#/t/Words/items")
    told = bench.page.get_by_text("you may not describe it")
    told.wait_for()
    bench.page.get_by_role("button", name="Try again").click()
    bench.settle()
    told.wait_for()
    bench.page.locator(".tables").get_by_text("Orders").click()
    told.wait_for(state="detached")


def test_forgotten_pages_are_not_asked_for_again_and_again(bench, make):
    make("Far", numbered(2_500))
    bench.open("#/t/Far/items?pk=%5B%22S%3Aone%22%5D")
    bench.wait_for_items(10)
    bench.page.locator(".scroller").hover()
    last = "[...document.querySelectorAll('.row.item .sort-cell')].map((each) => each.innerText).sort().at(-1)"
    for _ in range(60):
        if bench.page.evaluate(last) >= "2000":
            break
        bench.page.keyboard.press("End")
        bench.settle()
    assert bench.page.evaluate(last) >= "2000"
    asked: list[Any] = []

    def fail(route: Any) -> None:
        asked.append(route)
        answer_nothing(route)

    bench.page.route("**/api/execute", fail)
    bench.page.keyboard.press("Home")
    bench.page.get_by_text("The workbench's server does not answer").wait_for()
    bench.page.wait_for_timeout(300)  # in which it was asked a hundred times
    assert len(asked) < 10
    bench.page.unroute("**/api/execute")
    bench.until("document.querySelector('.row.item .sort-cell')?.innerText === '0000'")
    assert bench.page.locator(".failure").count() == 0


def test_a_model_that_cannot_be_read_says_why(bench):
    failure = {"error": {"code": "AccessDeniedException", "message": "you may not Scan it"}}
    bench.page.route("**/api/model", lambda route: route.fulfill(json=failure))
    bench.open("#/t/Words/model")
    bench.page.get_by_text("you may not Scan it").wait_for()
    bench.page.unroute("**/api/model")
    bench.page.get_by_role("button", name="Try again").click()
    bench.page.get_by_text("Inferred from 7 items").wait_for()


def test_tables_that_may_not_be_scanned_for_structures_are_named(bench):
    listed = {"structures": [], "sample": 300, "denied": ["Secret"]}
    bench.page.route("**/api/structures", lambda route: route.fulfill(json=listed))
    bench.open("#/structures")
    bench.page.get_by_text("may not be scanned with your credentials: Secret").wait_for()


def test_tables_that_the_list_does_not_describe_are_opened(bench, monkeypatch):
    monkeypatch.setattr("isotone.workbench.tables.MOST", 2)
    bench.open("#/t/Words/items")
    bench.wait_for_items(5)
    bench.page.get_by_label("Read the list of tables again").click()
    bench.settle()
    bench.page.locator(".tables").get_by_text("Tickets").click()
    bench.wait_for_items(12)


def test_sample_requests_wait_for_safe_mode_to_be_opened(chrome, database):
    async def chapters(given: Any) -> Any:
        return {"chapters": []}

    pages = Pages(database, target=":memory:", writable=False, tour={"tour": chapters})
    with running_server(database, pages=pages) as url:
        context = chrome.new_context(viewport={"width": 1280, "height": 900})
        bench = Workbench(context.new_page(), url)
        bench.open("#/metrics")
        bench.page.locator("button:disabled", has_text="Send sample requests").wait_for()
        bench.page.get_by_role("button", name="Safe mode").click()
        bench.page.locator("button:enabled", has_text="Send sample requests").click()
        bench.page.get_by_text("The sample tables are gone").wait_for()
        bench.check()
        context.close()
