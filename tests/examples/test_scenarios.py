"""The answers of scenarios 1 to 16, as the scenarios give them, from every kind of address."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.examples.printed import FOLDER, NAMES, Printed, run

import isotone

Example = Callable[[str], Printed]


def test_an_example_is_a_program_that_takes_an_address(example: Example, tmp_path: Path) -> None:
    program, file = FOLDER / "01_text_order.py", tmp_path / "words.db"
    command = [sys.executable, str(program), str(file)]
    ended = subprocess.run(
        command, capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"}
    )
    assert ended.stdout.decode("utf-8").splitlines() == example("01_text_order").text.splitlines()
    assert file.exists()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_how_it_is_run(name: str) -> None:
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    assert f"\n    python examples/{name}.py [ADDRESS]\n" in text


def test_there_is_a_program_for_each_scenario() -> None:
    numbers = [int(name[:2]) for name in NAMES]
    assert len(numbers) == len(set(numbers))
    assert {*range(1, 19)} <= set(numbers) <= {*range(1, 21)}


def test_the_page_of_scenarios_names_every_program() -> None:
    page = (FOLDER.parent / "docs" / "scenarios.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"../examples/{name}.py)" not in page] == []


def test_1_text_is_in_the_order_of_its_bytes(example: Example) -> None:
    printed = example("01_text_order")
    words = printed.section("Words").column("word")
    assert words == ["#1", "Banana", "apple", "cherry", "é", "～", "😀"]
    assert words == sorted(words, key=str.encode)


def test_1_spellings_are_one_and_keep_their_case(example: Example) -> None:
    printed = example("01_text_order")
    (lower,) = printed.section("Three spellings").rows
    (upper,) = printed.section("In upper case").rows
    (folded,) = printed.section("Folded").rows
    assert (lower["SK"], lower["name"]) == ("FRUIT#banana", "Banana")
    assert (upper["SK"], upper["name"]) == ("STATION#BANANA", "Banana")
    assert (folded["SK"], folded["name"]) == ("STREET#hauptstrasse", "HAUPTSTRASSE")
    asked = ["Banana: Banana", "banana: Banana", "BANANA: Banana"]
    assert printed.section("Asked for in any case").lines == asked


NUMBERS = [
    *("-1E+125", "-2", "-1.5", "0", "1E-130", "2", "10"),
    "123456789012345678901234567890.12345678",
]


@pytest.mark.parametrize("heading", ["In a number key", "In a string key"])
def test_2_numbers_are_in_the_order_of_their_values(example: Example, heading: str) -> None:
    assert example("02_numbers").section(heading).column("value") == NUMBERS


def test_2_a_number_without_a_width_is_refused(example: Example) -> None:
    (message,) = example("02_numbers").section("Without a declared width").lines
    assert "10 would come before 2" in message
    assert "field(max=" in message


HAPPENED = ["Tokyo", "London", "London + 1 µs", "London + 0.5 s", "New York"]


@pytest.mark.parametrize("form", ["as text", "as a number"])
def test_3_times_are_in_the_order_of_their_instants(example: Example, form: str) -> None:
    section = example("03_time").section(f"By their instant, {form}")
    assert section.column("name") == HAPPENED


def test_3_instants_have_a_fixed_width_in_utc_or_are_seconds(example: Example) -> None:
    printed = example("03_time")
    assert printed.section("By their instant, as text").column("SK") == [
        "AT#2020-01-11T00:00:00.000000Z",
        "AT#2020-01-11T00:30:00.000000Z",
        "AT#2020-01-11T00:30:00.000001Z",
        "AT#2020-01-11T00:30:00.500000Z",
        "AT#2020-01-11T01:00:00.000000Z",
    ]
    assert printed.section("By their instant, as a number").column("at") == [
        *("1578700800", "1578702600", "1578702600.000001", "1578702600.5", "1578704400")
    ]
    assert printed.section("From midnight").column("name") == ["Tokyo", "London"]


def test_3_naive_times_and_display_forms_are_refused(example: Example) -> None:
    naive, display = example("03_time").section("Refused").lines
    assert "no time zone" in naive
    assert "May 26, 1988" in display


def test_4_ids_are_unique_sorted_and_show_their_time() -> None:
    text = run("04_sortable_ids", ":memory:", in_full=True).text
    for kind, width in (("KSUID", 27), ("ULID", 26), ("UUIDv7", 36)):
        assert f"{kind}: {width} characters\n  unique: 100,000 of 100,000\n" in text
        assert f"  {kind}: 20,000 different ids of 20,000\n" in text
    assert text.count("sorted as they were made: True") == 3
    assert text.count("the time in it is now: True") == 3


def test_4_items_with_such_ids_come_as_they_were_made(example: Example) -> None:
    section = example("04_sortable_ids").section("Log lines")
    assert section.column("text") == ["started", "read the list", "sent 3 mails", "ended"]


def test_5_an_update_moves_a_ticket_to_the_top_in_the_same_write(example: Example) -> None:
    printed = example("05_recently_updated")
    assert printed.section("The most recently updated").column("number") == ["3", "2", "1"]
    after = printed.section("After an update of ticket 1: UpdateItem")
    assert after.heading.endswith(": UpdateItem")
    assert after.column("number") == ["1", "3", "2"]
    assert after.column("UPDATED") == sorted(after.column("UPDATED"), reverse=True)


def test_5_the_primary_key_is_changed_by_moving(example: Example) -> None:
    printed = example("05_recently_updated")
    (message,) = printed.section("Its number is part of the primary key").lines
    assert "store.move(" in message
    assert "one transaction" in message
    moved = printed.section("Moved:")
    assert moved.heading == "Moved: GetItem, TransactWriteItems"
    assert moved.column("SK") == ["TICKET#00002", "TICKET#00003", "TICKET#00004"]


def test_6_the_newest_and_the_highest_come_first(example: Example) -> None:
    printed = example("06_both_directions")
    readings = printed.section("Readings, the newest first").column("SK")
    assert readings == [f"READING#2026-01-01T12:0{minute}:00Z" for minute in (4, 3, 2, 1, 0)]
    results = printed.section("Results, the highest first")
    assert results.column("points") == ["9999", "1000", "157", "100", "99", "10", "2"]
    assert results.column("SK") == sorted(results.column("SK"))
    assert results.column("SK")[2] == f"POINTS#{999_999 - 157}#eve"


KEYS = [
    *("by_number", "by_bytes", "by_text", "down_integer", "down_decimal", "down_text"),
    *("down_time", "down_date", "down_bytes", "down_id"),
]


def test_6_pages_lead_on_and_back_for_every_type_of_key(example: Example) -> None:
    players = ["ann", "bob", "cem", "dot", "eve", "fay", "gus"]
    lines = []
    for key in KEYS:
        down, up = pages_of_three(players[::-1]), pages_of_three(players)
        lines += [f"Result.{key}", f"  highest first: {down}", f"  lowest first:  {up}"]
    assert example("06_both_directions").section("Pages of three").lines == lines


def pages_of_three(players: list[str]) -> str:
    pages = [" ".join(players[at : at + 3]) for at in range(0, len(players), 3)]
    return " | ".join(pages + pages[-2::-1])


def test_7_a_sensor_with_its_newest_readings_in_one_read(example: Example) -> None:
    section = example("07_parent_and_children").section("The sensor and its three newest")
    assert section.heading.endswith(": 1 request, 4 items read")
    assert section.column("_type") == ["Sensor", "Reading", "Reading", "Reading"]
    assert section.column("celsius") == ["", "3", "3.2", "3.9"]


def test_7_a_sensor_with_its_oldest_readings_in_one_read(example: Example) -> None:
    section = example("07_parent_and_children").section("The sensor and its three oldest")
    assert section.heading.endswith(": 1 request, 4 items read")
    assert section.column("celsius") == ["", "4.5", "4.1", "3.9"]


@pytest.mark.parametrize(
    ("collection", "key", "kinds"),
    [
        ("of the table", "SK", ["Reading"] * 5 + ["Sensor"]),
        ("of the index", "GSI1SK", ["Sensor"] + ["Reading"] * 5),
    ],
)
def test_7_the_parent_is_last_or_first(
    example: Example, collection: str, key: str, kinds: list[str]
) -> None:
    section = example("07_parent_and_children").section(f"The collection {collection}")
    assert section.column("_type") == kinds
    assert section.column(key) == sorted(section.column(key))


def test_8_an_organization_with_its_users_alone(example: Example) -> None:
    section = example("08_two_relations").section("The organization and its users")
    assert section.heading.endswith(": 1 request, 5 items read")
    assert section.column("name") == ["BERKSHIRE", "Ajit", "charlie", "Greg", "Warren"]
    assert section.column("_type") == ["Organization"] + ["User"] * 4


def test_8_an_organization_with_its_teams_alone(example: Example) -> None:
    section = example("08_two_relations").section("The organization and its teams")
    assert section.heading.endswith(": 1 request, 3 items read")
    assert section.column("_type") == ["Organization", "Team", "Team"]
    assert all(sort.startswith("#TEAM#") for sort in section.column("SK")[1:])


def test_8_the_organization_stands_between_and_nothing_may_interleave(example: Example) -> None:
    printed = example("08_two_relations")
    stored = printed.section("The collection as it is stored")
    assert stored.column("_type") == ["Team"] * 2 + ["Organization"] + ["User"] * 4
    assert stored.column("SK") == sorted(stored.column("SK"))
    (message,) = printed.section("A third kind").lines
    assert "Site" in message
    assert "the other side of the parent" in message


def test_9_numbers_are_padded_to_their_declared_maximum(example: Example) -> None:
    section = example("09_zero_padding").section("2 before 10")
    assert section.column("SK") == ["ISSUE#00000002", "ISSUE#00000010", "ISSUE#00000157"]


def test_9_thirty_percent_are_reported_once_in_three_ways(example: Example) -> None:
    callback, warning, metric = example("09_zero_padding").section("30 % are reached").lines
    assert callback == "callback: 30%"
    assert warning.startswith("HeadroomWarning: Issue.number has reached 30000000, 30% of ")
    assert metric == "metric: Issue.primary.number 0.30"


def test_9_beyond_the_width_nothing_is_written(example: Example) -> None:
    message, counts = example("09_zero_padding").section("Beyond the width").lines
    assert "number" in message
    assert "100000000" in message
    assert "99999999" in message
    assert counts == "issues before: 6, after: 6"


def test_9_widening_reads_both_widths_and_continues_where_it_stopped(example: Example) -> None:
    printed = example("09_zero_padding")
    numbers = ["2", "10", "157", "29999999", "30000000", "30000001", "100000000"]
    assert printed.section("Widening: both widths").column("number") == numbers
    lines = printed.section("Widening: interrupted").lines
    assert lines[-2:] == ["interrupted", "507 issues are seen, 506 rewritten"]
    widened = printed.text.split("\n\nWidened\n")[1]
    assert [line.split()[1] for line in widened.splitlines()[2:9]] == [
        f"ISSUE#{int(number):010}" for number in numbers
    ]
    assert widened.endswith("\nand 500 more\n")


def test_10_a_repository_with_its_newest_issues_and_with_its_stars(example: Example) -> None:
    printed = example("10_github")
    issues = printed.section("The repository with its three newest issues")
    assert issues.column("number") == ["", "156", "99", "9"]
    assert issues.column("_type") == ["Repository"] + ["Issue"] * 3
    stars = printed.section("The repository with its stars")
    assert stars.column("user") == ["", "ann", "bob", "dot"]
    assert stars.column("_type") == ["Repository"] + ["Star"] * 3
    stored = printed.section("The collection of the table").column("_type")
    assert stored == ["Issue"] * 4 + ["Repository"] + ["Star"] * 3


def test_10_issues_and_pull_requests_are_both_newest_first(example: Example) -> None:
    printed = example("10_github")
    pulls = printed.section("The repository with its three newest pull requests")
    assert pulls.column("number") == ["", "157", "100", "10"]
    assert pulls.column("GSI1SK")[1].endswith("#99842")
    issues = printed.section("The same index the other way")
    assert issues.column("number") == ["", "156", "99", "9"]
    stored = printed.section("The collection of the index").column("_type")
    assert stored == ["Issue"] * 4 + ["Repository"] + ["PullRequest"] * 4


def test_10_a_repository_with_its_forks(example: Example) -> None:
    forks = example("10_github").section("The repository with its forks")
    assert forks.column("user") == ["", "cem", "eve"]


ORDERED = [
    "2020-01-10T23:59:59.999999Z",
    "2020-01-11T00:00:00.000000Z",
    "2020-01-20T12:00:00.000000Z",
    "2020-02-01T00:00:00.000000Z",
    "2020-02-01T00:00:00.000001Z",
]


def test_11_a_customers_orders_between_two_days(example: Example) -> None:
    section = example("11_sort_key_conditions").section("From 2020-01-11 to 2020-02-01")
    assert section.heading.endswith(": 3 items read")
    assert section.column("ordered_at") == ORDERED[1:4]
    assert set(section.column("customer")) == {"36ab55a589e4"}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("= January 11", ORDERED[1:2]),
        ("< January 11", ORDERED[:1]),
        ("<= January 11", ORDERED[:2]),
        ("> January 11", ORDERED[2:]),
        (">= January 11", ORDERED[1:]),
        ("BETWEEN", ORDERED[1:4]),
    ],
)
def test_11_every_operator(example: Example, condition: str, expected: list[str]) -> None:
    section = example("11_sort_key_conditions").section(f"Ordered {condition}")
    assert section.column("ordered_at") == expected


@pytest.mark.parametrize(
    ("condition", "statuses"),
    [
        ("= CANCELLED", ["CANCELLED"] * 2),
        ("begins_with CANCELLED", ["CANCELLED"] * 2 + ["CANCELLED_BY_SHOP"]),
        (">= CANCELLED_BY_SHOP", ["CANCELLED_BY_SHOP", "PLACED", "SHIPPED"]),
    ],
)
def test_11_bounds_are_exact_for_each_component(
    example: Example, condition: str, statuses: list[str]
) -> None:
    section = example("11_sort_key_conditions").section(f"Status {condition}")
    assert section.column("status") == statuses
    assert section.heading.endswith(f": {len(statuses)} items read")


def test_12_cancelled_orders_of_a_quarter_and_no_other_item_read(example: Example) -> None:
    section = example("12_composite_sort_key").section("Cancelled in the third quarter")
    assert section.heading.endswith(": 3 items read, 3 returned (100%)")
    assert section.column("ordered_at") == [
        "2019-07-01T00:00:00.000000Z",
        "2019-08-15T12:00:00.000000Z",
        "2019-09-30T23:59:59.999999Z",
    ]
    assert set(section.column("status")) == {"CANCELLED"}
    assert set(section.column("customer")) == {"2b5a41c0"}


def test_12_the_reverse_composite_is_refused_or_reports_its_waste(example: Example) -> None:
    printed = example("12_composite_sort_key")
    (message,) = printed.section("The reverse composite, asked by status").lines
    assert "orders by 'ordered_at' before 'status'" in message
    assert ".filter(" in message
    section = printed.section("The reverse composite, with a filter")
    assert section.heading.endswith(": 6 items read, 3 returned (50%)")
    assert section.column("number") == ["2", "5", "7"]


def test_13_all_admins_and_nobody_else_is_read(example: Example) -> None:
    section = example("13_sparse_by_role").section("All admins of BERKSHIRE")
    assert section.heading.endswith(": 2 items read")
    assert section.column("name") == ["Charlie", "Warren"]


def test_13_promotion_and_demotion_write_the_index_in_the_same_write(example: Example) -> None:
    printed = example("13_sparse_by_role")
    promoted = printed.section("user-07 is promoted")
    assert promoted.heading.endswith("by UpdateItem")
    assert promoted.column("name") == ["Charlie", "user-07", "Warren"]
    demoted = printed.section("Charlie is demoted")
    assert demoted.heading.endswith("by UpdateItem")
    assert demoted.column("name") == ["user-07", "Warren"]


def test_13_the_items_of_admins_alone_have_the_attributes_of_the_index(
    tmp_path: Path,
) -> None:
    address = str(tmp_path / "examples.db")
    run("13_sparse_by_role", address)
    with isotone.connect(address) as store:
        items = store.backend.execute("Scan", {"TableName": "subscriptions"})["Items"]
    items = [item for item in items if item["_type"] != {"S": "_keys"}]
    assert len(items) == 53
    admins = sorted(item["name"]["S"] for item in items if item["role"] == {"S": "Admin"})
    assert admins == ["Mark", "Warren", "user-07"]
    for item in items:
        is_admin = item["role"] == {"S": "Admin"}
        assert ("GSI1PK" in item, "GSI1SK" in item) == (is_admin, is_admin)


def test_14_a_scan_of_the_customers_reads_customers_alone(example: Example) -> None:
    printed = example("14_sparse_by_kind")
    assert printed.text.startswith("10,000 items are written\n")
    section = printed.section("Three customers of a scan of their index")
    assert section.heading.endswith(": 500 items read, 500 returned")
    assert printed.section("The same by a scan of the table").lines[-1] == (
        "10,001 items read, 500 returned"  # with the record of the keys
    )


def test_14_a_second_kind_is_refused(example: Example) -> None:
    (message,) = example("14_sparse_by_kind").section("A second kind").lines
    assert message.startswith("Supplier: index 'customers'")
    assert "Customer" in message


def test_15_a_page_says_what_it_cost(example: Example) -> None:
    (line,) = example("15_filter_expressions").section("A page without a filter").lines
    assert line.startswith("10 scanned, 10 returned (100%), ")
    assert " units, " in line


def test_15_a_low_hit_rate_is_reported_with_the_index_that_would_help(example: Example) -> None:
    section = example("15_filter_expressions").section("All shipped orders, by a filter")
    report, count = section.lines
    assert "400 items, to return 40 (10.0%)" in report
    assert 'Index("…", shop).sort(status)' in report
    assert count == "40 orders"


def test_15_exactly_25_in_one_call(example: Example) -> None:
    section = example("15_filter_expressions").section("Exactly 25 shipped orders, in one call")
    assert section.column("number") == [str(10 * place) for place in range(1, 26)]
    assert set(section.column("status")) == {"SHIPPED"}


def test_15_bounded_by_units(example: Example) -> None:
    first, *_, last = example("15_filter_expressions").section("The same, for 10 units").lines
    assert "cut short: True" in first
    found = int(first.split()[0])
    assert found < 25
    assert last == f"and on from there: 25 orders, from number {10 * (found + 1)}"


def test_15_what_has_expired_is_left_out(example: Example) -> None:
    printed = example("15_filter_expressions")
    assert printed.section("Sessions").column("token") == ["a", "b", "c"]
    later = printed.text.split("Two hours later\n")[1].splitlines()
    assert [line.split()[3] for line in later[2:4]] == ["b", "c"]
    assert later[4:] == ["count: 2, get: None"]


def test_16_any_column_filters_and_sorts(example: Example) -> None:
    printed = example("16_client_side")
    by_room = printed.section("By room, the latest first").column("title")
    assert by_room == ["Review", "Interview", "Planning", "Stand-up", "Call"]
    chosen = printed.section("In the green or the blue room").column("title")
    assert chosen == ["Interview", "Planning", "Review", "Stand-up"]


def test_16_free_slots_of_a_calendar(example: Example) -> None:
    free = example("16_client_side").section("Free between 8 and 18 o'clock").lines
    assert free == ["08:00 – 09:00", "12:00 – 14:00", "15:00 – 18:00"]


def test_16_a_larger_collection_is_refused_with_its_size(example: Example) -> None:
    (message,) = example("16_client_side").section("A larger collection").lines
    assert "1.4 MB" in message
