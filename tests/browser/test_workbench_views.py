"""The workbench's views beside the items in real Chromium: what each shows, on every screen, and what it says of faults."""

from __future__ import annotations

from typing import Any

import pytest
from tests.browser.chromium import needs_chromium
from tests.workbench.sample_tables import put_all
from tests.workbench.test_simulations import workload

import isotone
from isotone.backends.opening import open_backend
from isotone.server import running_server
from isotone.structures import Context, Feed, Leaderboard, Queue, SortedSet, Worker
from isotone.workbench import Workbench as Pages

pytestmark = needs_chromium
pytest.importorskip("playwright")

from tests.browser.workbench_page import Workbench  # noqa: E402

HOSTILE = "<img src=x onerror='window.hacked = 1'>"


SCREENS = [(320, "dark"), (1280, "light"), (3840, "dark")]


def check_screens(bench: Workbench) -> None:
    """What is shown fits each screen, in light and dark, and has no serious fault for those who use other senses."""
    for width, scheme in SCREENS:
        bench.page.set_viewport_size({"width": width, "height": 900})
        bench.page.emulate_media(color_scheme=scheme)
        bench.until(f"document.documentElement.dataset.theme === '{scheme}'")
        bench.until("document.documentElement.scrollWidth <= innerWidth")
        assert bench.serious_faults() == [], (width, scheme)
    bench.page.set_viewport_size({"width": 1280, "height": 900})


def test_an_unknown_address_leads_to_what_there_is(bench):
    for address, title, link in (
        ("#/nonsense", "Nothing is at nonsense", "Structures"),
        ("#/tour", "Nothing is at tour", "Orders"),  # only the demo has a tour
        ("#/t/Orderz/items", "There is no table Orderz", "Orders"),
        ("#/t/Orders/nonsense", "Orders has no view nonsense", "PartiQL"),
        (f"#/{HOSTILE}", "Nothing is at", "GitHub"),
    ):
        bench.open(address)
        bench.until(f"document.querySelector('.not-found h2')?.innerText.startsWith({title!r})")
        assert bench.page.locator(".not-found nav").get_by_text(link, exact=True).is_visible()
    check_screens(bench)
    bench.open("#/t/Orderz/items")
    bench.until_text(".not-found nav a", "Orders")  # the most similar name is the first
    bench.page.locator(".not-found nav a").first.press("Enter")
    bench.wait_for_items(5)


def test_explain_draws_the_range_measures_it_and_shows_what_a_write_costs(bench):
    filtered = "filter=%5B%5B%22status%22%2C%22%3D%22%2C%22%7B%5C%22S%5C%22%3A%5C%22PLACED%5C%22%7D%22%5D%5D"
    bench.open(f"#/t/Orders/items?pk=%5B%22S%3A2b5a41c0%22%5D&{filtered}")
    bench.wait_for_items(1)
    bench.page.keyboard.press("e")
    bench.page.wait_for_selector(".explained .drawn.read")
    assert bench.page.locator(".explained .drawn.dropped").count() > 0
    assert bench.page.locator(".explained tr.measured").count() == 0
    estimated = bench.page.locator("tr.estimate td").all_inner_texts()
    bench.page.get_by_role("button", name="Measure").press("Enter")
    bench.page.wait_for_selector(".explained tr.measured")
    assert bench.page.locator("tr.measured td").all_inner_texts()[:4] == estimated[:4]
    assert "read and dropped" in bench.page.locator(".explained .waste").inner_text()
    assert bench.page.get_by_text("Considered").is_visible()
    check_screens(bench)
    bench.page.keyboard.press("Escape")
    bench.open("#/t/GitHub/items?pk=%5B%22S%3AREPO%23ann%23notes%22%5D")
    bench.wait_for_items(5)
    bench.page.keyboard.press("j")
    bench.page.keyboard.press("i")
    bench.page.wait_for_selector(".item-form")
    bench.page.get_by_role("button", name="Add an attribute").click()
    bench.page.get_by_role("button", name="Cost").click()
    bench.page.wait_for_selector(".explained .costs")
    written = bench.page.locator(".explained table").last.inner_text()
    assert "GitHub" in written
    assert "the entry is replaced" in written
    assert bench.page.get_by_role("button", name="Measure").count() == 0  # it would write


def send(url: str, action: str, request: Any) -> None:
    """One request to the server, as a program sends it."""
    backend, close = open_backend(
        url, region="us-east-1", credentials=isotone.Credentials("local", "local")
    )
    backend.execute(action, request)
    close()


def test_metrics_units_and_hot_keys_follow_what_programs_send(bench):
    bench.open("#/metrics")
    bench.page.get_by_text("No program has sent a request yet").wait_for()
    check_screens(bench)
    for _ in range(3):
        send(
            bench.url,
            "GetItem",
            {"TableName": "Words", "Key": {"list": {"S": HOSTILE}, "word": {"S": "x"}}},
        )
    bench.page.locator(".hot-keys tbody th").get_by_text(HOSTILE).wait_for()
    bench.page.locator("tbody th").get_by_text("GetItem", exact=True).wait_for()
    bench.until("document.querySelectorAll('.chart svg path').length >= 4")
    row = bench.page.locator(".hot-keys tbody tr").first.inner_text()
    assert "Words\t3\t0" in row
    used = bench.page.locator(".table-uses tbody tr").filter(has_text="Words")
    used.get_by_text("1.5", exact=True).wait_for()
    assert bench.page.get_by_text("stream lag").count() == 0
    recorded = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}
    send(bench.url, "UpdateTable", {"TableName": "Words", "StreamSpecification": recorded})
    word = {"list": {"S": HOSTILE}, "word": {"S": "x"}}
    send(bench.url, "PutItem", {"TableName": "Words", "Item": word})
    lag = used.locator("td").last
    bench.page.get_by_role("columnheader", name="stream lag").wait_for()
    lag.filter(has_text=" s").wait_for()  # nobody reads the record
    check_screens(bench)
    bench.open("#/structures")
    bench.page.locator(".structure").wait_for()
    bench.open("#/metrics")  # what was read is still there
    assert bench.page.locator(".chart").count() == 4
    assert bench.page.evaluate("window.hacked") is None


def test_an_engine_elsewhere_has_metrics_if_it_is_a_server_of_isotone(chrome, database):
    with running_server(database) as there, isotone.open() as nothing:
        for target, shown in ((there, ".hot-keys"), ("dynamodb://eu-west-1", ".empty.wide")):
            pages = Pages(database, target=target, remote=True, is_endpoint=False)
            with running_server(nothing, pages=pages) as url:
                context = chrome.new_context(viewport={"width": 1280, "height": 900})
                bench = Workbench(context.new_page(), url)
                bench.open("#/metrics")
                bench.page.locator(shown).wait_for()
                if shown == ".empty.wide":
                    assert "CloudWatch" in bench.page.locator(shown).inner_text()
                    check_screens(bench)
                bench.check()
                context.close()


def test_a_workload_is_simulated_at_any_size(chrome, database, bench):
    bench.open("#/simulation")
    bench.page.get_by_text("No workload is loaded").wait_for()
    pages = Pages(database, target=":memory:", workload=workload([]))
    with running_server(database, pages=pages) as url:
        context = chrome.new_context(viewport={"width": 1280, "height": 900})
        simulated = Workbench(context.new_page(), url)
        simulated.open("#/simulation")
        simulated.page.wait_for_selector(".simulation .charts")
        assert simulated.page.locator(".fact.bad strong").inner_text() != "0 %"
        check_screens(simulated)
        simulated.page.get_by_role("button", name="Divide into").press("Enter")
        simulated.until_text(".fact strong", "0 %")
        assert "shards=" in simulated.page.url
        simulated.page.reload()  # the address is the question
        simulated.until_text(".fact strong", "0 %")
        simulated.page.get_by_role("button", name="Undo").press("Enter")
        simulated.until("document.querySelector('.fact.bad') !== null")
        simulated.page.get_by_role("button", name="1k", exact=True).press("Enter")
        simulated.page.get_by_text("No key gets 70 % of what a partition serves").wait_for()
        simulated.check()
        context.close()


PEOPLE = "team,member,joined,points:N\n" + "\n".join(
    f"{team},{HOSTILE if number == 2 else f'member-{number}'},2026-01-{number + 1:02},{points}"
    for team in ("blue", "red")
    for number, points in enumerate((5, 12, 7.5, "many"))
)


def test_a_table_of_ones_own_is_made_filled_queried_and_judged(bench, database):
    """What a new user does, without reading anything else."""
    page = bench.page
    bench.open("#/t/Words/items")
    bench.wait_for_items(5)
    page.get_by_role("link", name="+ New table").press("Enter")
    page.get_by_label("Name of the table").wait_for()
    check_screens(bench)
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": PEOPLE.encode()}
    page.get_by_label("File with items").set_input_files(file)
    bench.until("document.querySelector('[aria-label=\"Partition key\"]').value === 'team'")
    assert page.get_by_label("Name of the table").input_value() == "people"
    page.get_by_label("Sort key", exact=True).fill("member")
    page.get_by_role("button", name="+ Index").click()
    page.get_by_label("Name of index 1").fill("by_points")
    page.get_by_label("Partition key of index 1", exact=True).fill("team")
    page.get_by_label("Sort key of index 1", exact=True).fill("points")
    page.get_by_label("Type of sort key of index 1").select_option("N")
    page.get_by_label("keep the changes").check()
    check_screens(bench)
    page.get_by_role("button", name="Create and import").click()
    page.get_by_text("2 rows could not be written").wait_for()
    page.get_by_role("button", name="Open people").press("Enter")
    bench.wait_for_items(6)
    assert database.execute("DescribeTable", {"TableName": "people"})["Table"]["ItemCount"] == 6
    assert page.url.endswith("#/t/people/items")
    # a first item by hand
    page.keyboard.press("n")
    page.get_by_label("team", exact=True).fill("green")
    page.get_by_label("member", exact=True).fill("zoe")
    page.get_by_role("button", name="Create").click()
    bench.wait_for_items(7)
    # a query, judged
    bench.open("#/t/people/items?index=by_points&pk=%5B%22S%3Ablue%22%5D&order=desc")
    bench.wait_for_items(3)
    assert bench.items() == ["12", "7.5", "5"]
    page.keyboard.press("e")
    page.wait_for_selector(".explained .costs")
    page.keyboard.press("Escape")
    page.keyboard.press("5")
    page.locator(".findings, .empty").first.wait_for()
    # a file of it; what does not fit is told
    page.keyboard.press("6")
    page.get_by_role("button", name="Export").wait_for()
    check_screens(bench)
    page.get_by_label("Format").select_option("csv")
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").click()
    assert download.value.suggested_filename == "people.csv"
    text = download.value.path().read_text(encoding="utf-8")
    assert text.splitlines()[0].startswith("team,member")
    assert len(text.splitlines()) == 8
    page.get_by_label("File to import").set_input_files(file)
    page.get_by_role("button", name="Import", exact=True).click()
    page.locator(".bad-rows li").nth(1).wait_for()
    assert "many" in page.locator(".bad-rows").inner_text()
    check_screens(bench)
    # and away with it
    page.keyboard.press("4")
    page.get_by_role("button", name="Delete the table").click()
    page.get_by_label("Name of the table").fill("people")
    page.get_by_role("button", name="Delete", exact=True).click()
    bench.until("!document.querySelector('.tables').innerText.includes('people')")
    assert "people" not in database.execute("ListTables", {})["TableNames"]
    assert page.evaluate("window.hacked") is None


def differences(bench: Workbench) -> list[list[str]]:
    """The lines that are drawn, from the top: sign and sort key."""
    script = """() => [...document.querySelectorAll(".difference")]
        .map((row) => [row.getBoundingClientRect().top, row])
        .sort((one, other) => one[0] - other[0])
        .map(([_, row]) => [row.querySelector("[aria-hidden]").innerText, row.children[2].innerText])"""
    found: list[list[str]] = bench.page.evaluate(script)
    return found


def repository(database: isotone.Database) -> list[Any]:
    request = {
        "TableName": "GitHub",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "REPO#ann#notes"}},
    }
    items: list[Any] = database.execute("Query", request)["Items"]
    return items


def test_a_snapshot_is_taken_compared_and_put_back_by_keyboard(bench, database):
    page = bench.page
    bench.open("#/t/GitHub/snapshots")
    page.get_by_text("No snapshot yet").wait_for()
    check_screens(bench)
    before = repository(database)
    page.keyboard.press("n")
    page.keyboard.type(HOSTILE)
    page.keyboard.press("Enter")
    page.locator(".snapshot strong").get_by_text(HOSTILE).wait_for()
    check_screens(bench)
    # what happens meanwhile
    first, *_, last = before
    nested = {"M": {"city": {"S": HOSTILE}, "floors": {"L": [{"N": "1"}, {"N": "2"}]}}}
    ann = {"pk": {"S": "REPO#ann#notes"}}
    for item in (
        {**first, "type": {"S": "Changed"}, HOSTILE: nested},
        {**ann, "sk": {"S": f"ISSUE#{HOSTILE}"}, "note": {"S": HOSTILE}},
    ):
        database.execute("PutItem", {"TableName": "GitHub", "Item": item})
    key = {name: last[name] for name in ("pk", "sk")}
    database.execute("DeleteItem", {"TableName": "GitHub", "Key": key})
    after = repository(database)
    # compare
    page.keyboard.press("Enter")
    bench.until("document.querySelectorAll('.difference').length === 3")
    expected = [["~", first["sk"]["S"]], ["+", f"ISSUE#{HOSTILE}"], ["−", last["sk"]["S"]]]
    assert sorted(differences(bench)) == sorted(expected)
    order = [each["sk"]["S"] for each in sorted([*after, last], key=lambda each: each["sk"]["S"])]
    assert [each[1] for each in differences(bench)] == [
        text for text in order if text in {each[1] for each in expected}
    ]
    assert "1 changed" in page.locator(".list.changed").inner_text().replace("\n", " ")
    check_screens(bench)
    # one list, one item
    page.locator(".list.changed").press("Enter")
    bench.until("document.querySelectorAll('.difference').length === 1")
    page.locator(".inspector .side.after").first.wait_for()
    assert "Changed" in page.locator(".inspector").inner_text()
    check_screens(bench)
    page.reload()  # the address is the question
    bench.until("document.querySelectorAll('.difference').length === 1")
    page.keyboard.press("b")
    page.locator(".difference.done").wait_for()
    assert first in repository(database)
    page.keyboard.press("u")
    bench.until(
        "document.querySelector('.difference') && !document.querySelector('.difference.done')"
    )
    assert repository(database) == after
    # several
    page.locator(".list.all").press("Enter")
    bench.until("document.querySelectorAll('.difference').length === 3")
    page.locator(".differences .scroller").focus()
    for keystroke in ("Home", "x", "j", "x"):
        page.keyboard.press(keystroke)
    bench.until("document.querySelectorAll('.difference.checked').length === 2")
    page.keyboard.press("b")
    bench.until("document.querySelectorAll('.difference.done').length === 2")
    page.keyboard.press("u")
    bench.until(
        "document.querySelector('.difference') && !document.querySelector('.difference.done')"
    )
    assert repository(database) == after
    # all of them, after a question; and undone
    page.get_by_role("button", name="Put all back").press("Enter")
    page.locator("dialog .plan").wait_for()
    check_screens(bench)
    page.keyboard.press("Enter")
    page.get_by_text("Nothing differs").wait_for()
    assert repository(database) == before
    check_screens(bench)
    page.keyboard.press("u")
    bench.until("document.querySelectorAll('.difference').length === 3")
    assert repository(database) == after
    # what somebody writes meanwhile is left alone
    theirs = {**first, "type": {"S": "Theirs"}}
    database.execute("PutItem", {"TableName": "GitHub", "Item": theirs})
    page.get_by_role("button", name="Put all back").press("Enter")
    page.locator("dialog .plan").wait_for()
    page.keyboard.press("Enter")
    page.locator(".refused").wait_for()
    assert theirs in repository(database)
    # away with it
    page.get_by_role("link", name="Snapshots", exact=True).last.press("Enter")
    page.locator(".snapshot").wait_for()
    page.keyboard.press("Delete")
    page.locator("dialog").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("No snapshot yet").wait_for()
    assert page.evaluate("window.hacked") is None


def test_many_differences_scroll_and_those_of_all_tables_are_found(bench, database):
    page = bench.page
    bench.open("#/snapshots")
    page.get_by_role("button", name="Take a snapshot", disabled=False).press("Enter")
    page.locator(".snapshot-tables").wait_for()
    check_screens(bench)
    items = [
        {"list": {"S": f"list {number % 7}"}, "word": {"S": f"word {number:05}"}}
        for number in range(3000)
    ]
    put_all(database, "Words", items)
    page.locator(".snapshot-tables a").filter(has_text="Words").press("Enter")
    bench.until("document.querySelectorAll('.difference').length > 20")
    assert page.locator(".list.added strong").inner_text() == "3,000"
    assert page.locator(".difference").count() < 100  # what can be seen
    page.keyboard.press("End")
    bench.until(
        "document.querySelector('.difference-tools .numbers').innerText === '3,000 of 3,000'"
    )
    bench.until("document.querySelector('.difference.selected') !== null")
    shown = page.locator(".difference.selected").bounding_box()
    assert shown is not None
    assert 0 < shown["y"] < 900
    page.keyboard.press("Home")
    page.keyboard.press("q")
    page.keyboard.type("word 02345")
    page.keyboard.press("Enter")
    bench.until("document.querySelector('.difference.selected')?.innerText.includes('word 02345')")
    database.execute("DeleteTable", {"TableName": "Words"})
    bench.open("#/snapshots")
    page.reload()
    page.locator(".snapshot-tables a").filter(has_text="Words").press("Enter")
    page.get_by_text("no longer exists").wait_for()
    check_screens(bench)
    page.get_by_role("button", name="Put all back").press("Enter")
    page.locator("dialog .plan").wait_for()
    page.keyboard.press("Enter")
    page.get_by_text("Nothing differs").wait_for()
    assert database.execute("DescribeTable", {"TableName": "Words"})["Table"]["ItemCount"] == 7


def test_the_first_table_is_offered_and_faults_are_reported(chrome):
    with (
        isotone.open() as empty,
        running_server(empty, pages=Pages(empty, target=":memory:")) as url,
    ):
        context = chrome.new_context(viewport={"width": 1280, "height": 900})
        bench = Workbench(context.new_page(), url)
        bench.open()
        bench.page.get_by_role("link", name="Make the first one").click()
        name = bench.page.get_by_label("Name of the table")
        name.fill("no")
        bench.page.get_by_text("a name has 3 to 255 characters").wait_for()
        assert bench.page.get_by_role("button", name="Create").is_disabled()
        name.fill("notes")
        bench.page.get_by_role("button", name="Create").click()
        bench.page.get_by_text("Nothing is in this table yet").wait_for()
        bench.page.get_by_role("link", name="import a file").click()
        file = {"name": "a.jsonl", "mimeType": "text/plain", "buffer": b'{"pk": "a"}\nno json\n'}
        bench.page.get_by_label("File to import").set_input_files(file)
        bench.page.get_by_role("button", name="Import", exact=True).click()
        bench.page.locator(".bad-rows li").nth(1).wait_for()
        bench.check()
        context.close()


notes = isotone.Table("notes", stream="NEW_AND_OLD_IMAGES")
fan_out = Worker("fan-out", notes)


class Note(isotone.Entity, table=notes):
    author: isotone.Attr[str] = isotone.field()

    primary = isotone.Key("NOTE", author).sort("TEXT")


@fan_out.on(Note, "inserted")
def deliver(event: isotone.Event[Note], context: Context) -> None:
    """Nothing is to be done."""


KINDS = {
    "Sorted set": ".ranks .member",
    "Leaderboard": ".ranks .score",
    "Queue": ".lanes article",
    "Feed": ".timeline li",
    "Worker": ".structure table.grid tbody tr",
}


def test_structures_are_shown_as_what_they_are_while_they_change(bench, database):
    bench.open("#/structures")
    bench.page.get_by_text("No structures were found").wait_for()
    with isotone.connect(database, report=None) as store:
        songs = SortedSet(store, "songs")
        board = Leaderboard(store, "speed", score="average", best="lowest")
        queue = Queue(store, "orders")
        feed = Feed(store, "site")
        for each in (songs, board, queue, feed):
            each.create_table()
        fan_out.create_tables(store)
        fan_out.run(store, until_idle=True)
        songs.zadd({HOSTILE: 20, "one": 1.5})
        board.record("ann", 30)
        queue.put({"order": 7})
        feed.post("eve", HOSTILE)
        bench.page.reload()
        for kind, selector in KINDS.items():
            link = bench.page.locator(".structure-list a").filter(has_text=kind).first
            link.press("Enter")
            bench.page.locator(selector).first.wait_for()
            check_screens(bench)
            if kind == "Sorted set":
                bench.until_text(".ranks .score", "20")
                bench.page.get_by_role("button", name="Lowest first").press("Enter")
                bench.until_text(".ranks .score", "1.5")
        store.put(Note(author="ann"))
        bench.until("document.querySelector('.fact.bad') !== null")  # it is behind now
        assert bench.page.locator(KINDS["Worker"]).locator("td").nth(1).inner_text() == "1"
        fan_out.run(store, until_idle=True)
        bench.until("document.querySelector('.fact.bad') === null")
        bench.open("#/structures/queue/queues/nothing")
        bench.page.get_by_text("Nothing of this name is there now").wait_for()
        assert bench.page.evaluate("window.hacked") is None


def test_several_tables_stand_side_by_side(bench, database):
    bench.open("#/t/Words/items")
    bench.wait_for_items(7)
    for text in ("Scores beside", "GitHub beside"):
        bench.page.keyboard.press("Control+k")
        bench.page.keyboard.type(text)
        bench.page.keyboard.press("Enter")
    scores = bench.page.get_by_role("region", name="Scores")
    github = bench.page.get_by_role("region", name="GitHub")
    scores.locator(".row.item").nth(7).wait_for()
    github.get_by_label("pk of GitHub").fill("REPO#ann#notes")
    github.get_by_role("button", name="Query").click()
    bench.until("decodeURIComponent(location.hash).includes('REPO#ann#notes')")
    bench.settle()
    assert github.locator(".row.item").count() == 13
    assert bench.serious_faults() == []
    scores.locator(".row.item .sort-cell").first.dblclick()
    bench.page.get_by_role("button", name="Edit").click()
    before = database.execute("Scan", {"TableName": "Scores"})["Items"]
    bench.page.get_by_role("button", name="Add an attribute").click()
    bench.page.get_by_label("name1", exact=True).fill("beside")
    bench.page.keyboard.press("Control+Enter")
    bench.page.get_by_text("Saved", exact=True).wait_for()
    after = database.execute("Scan", {"TableName": "Scores"})["Items"]
    assert [each for each in after if each not in before] == [
        {**each, "name1": {"S": "beside"}} for each in before if each not in after
    ]
    bench.page.reload()
    github.locator(".row.item").nth(12).wait_for()
    bench.page.get_by_role("button", name="Close Scores").click()
    bench.page.get_by_role("button", name="Close GitHub").click()
    bench.until("!location.hash.includes('with=')")


def test_saved_queries_of_a_team_are_in_a_file(chrome, database, tmp_path):
    file = tmp_path / "queries.json"
    pages = Pages(database, target=":memory:", queries=file)
    with running_server(database, pages=pages) as url:
        contexts = [chrome.new_context(), chrome.new_context()]
        first, second = (Workbench(each.new_page(), url) for each in contexts)
        first.open("#/t/GitHub/items?pk=%5B%22S%3AREPO%23ann%23notes%22%5D")
        first.wait_for_items(5)
        first.page.keyboard.press("h")
        first.page.get_by_label("Name", exact=True).fill("the notes")
        first.page.keyboard.press("Enter")
        first.page.locator(".kept").get_by_text("the notes").wait_for()
        assert '"name": "the notes"' in file.read_text()
        second.open("#/t/Words/items")
        second.wait_for_items(7)
        second.page.keyboard.press("h")
        second.page.get_by_role("link", name="the notes").click()
        second.until("decodeURIComponent(location.hash).includes('REPO#ann#notes')")
        second.page.keyboard.press("h")
        second.page.get_by_role("button", name="Forget the notes").click()
        second.page.get_by_role("link", name="the notes").wait_for(state="hidden")
        assert file.read_text() == "[]\n"
        file.write_text("no JSON")
        first.page.keyboard.press("Escape")
        first.page.keyboard.press("h")
        first.page.get_by_text("is not a file of saved queries").wait_for()
        for bench, context in zip((first, second), contexts, strict=True):
            bench.check()
            context.close()


def test_the_most_expensive_queries_stand_first_each_with_explain(bench, database):
    with isotone.connect(bench.url, engine="isotone") as store:
        for number in range(12):
            scan = {
                "TableName": "Orders",
                "FilterExpression": "#s = :s",
                "ExpressionAttributeNames": {"#s": "status"},
                "ExpressionAttributeValues": {":s": {"S": f"PLACED{number}"}},
            }
            store.backend.execute("Scan", scan)
            key = {"customer": {"S": "2b5a41c0"}, "ordered_at": {"S": "x"}}
            store.backend.execute("GetItem", {"TableName": "Orders", "Key": key})
        word = {"list": {"S": "words"}, "word": {"S": "apple"}}
        both = [{"Get": {"TableName": "Orders", "Key": key}}]
        both += [{"Get": {"TableName": "Words", "Key": word}}]
        store.backend.execute("TransactGetItems", {"TransactItems": both})
        statements = {"Statements": [{"Statement": "SELECT * FROM Words WHERE list = 'a'"}]}
        store.backend.execute("BatchExecuteStatement", statements)
    bench.open("#/queries")
    bench.page.wait_for_selector(".shapes tbody tr")
    first = bench.page.locator(".shapes tbody tr").first
    assert "Scan Orders" in first.inner_text()
    assert "status = ?" in first.inner_text()
    assert first.locator(".waste").inner_text() == "720 · 100 %"
    bench.page.get_by_role("button", name="Calls").click()
    assert bench.page.locator(".chip.current").inner_text() == "Calls"
    together = bench.page.locator(".shapes tbody tr", has_text="TransactGetItems")
    assert "Get Orders; Get Words" in together.inner_text()
    assert together.get_by_role("link").all_inner_texts() == ["Orders", "Words"]
    assert together.get_by_role("button", name="Explain").count() == 1
    batch = bench.page.locator(".shapes tbody tr", has_text="BatchExecuteStatement")
    assert "SELECT * FROM Words WHERE list = ?" in batch.inner_text()
    assert batch.get_by_role("button").count() == 0
    check_screens(bench)
    bench.page.get_by_role("button", name="Units", exact=True).click()
    first.get_by_role("button", name="Explain").click()
    bench.page.wait_for_selector(".explained .costs")
    assert "PLACED" in bench.page.locator(".explained").inner_text()
    check_screens(bench)


def test_without_requests_the_page_of_queries_says_what_it_will_show(bench):
    bench.open("#/queries")
    bench.until(
        "document.querySelector('.queries')?.innerText.includes('No program has sent a request yet')"
    )
    check_screens(bench)
