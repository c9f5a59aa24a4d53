"""Scenario 20: what the order queue prints."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.examples.printed import Printed

Example = Callable[[str], Printed]
NAME = "20_order_queue"


def done(printed: Printed) -> list[int]:
    """The numbers of the orders, as they were done by those who lived to say so."""
    return [int(each) for each in re.findall(r"second has done order (\d)", printed.text)]


def test_20_orders_are_numbered_without_a_gap(example: Example) -> None:
    orders = example(NAME).section("Orders, numbered")
    assert orders.column("number") == ["1", "2", "3", "4", "5", "6"]
    assert orders.column("PK") == [f"ORDER#{number:05}" for number in range(1, 7)]


def test_20_customers_wait_in_the_order_of_their_next_order(example: Example) -> None:
    waiting = example(NAME).section("Customers in the queue")
    assert waiting.column("entry") == ["ann", "bob", "cem"]
    assert waiting.column("pending") == ["3", "2", "1"]
    assert waiting.column("due") == sorted(waiting.column("due"))


def test_20_what_is_held_is_due_again_when_its_time_is_over(example: Example) -> None:
    lines = example(NAME).section("A worker dies").lines
    assert lines[0].startswith("09:01:00  first has done order 1 of ann: tea, R1")
    ann = next(line for line in lines if line.startswith("ann"))
    assert "T09:02:00" in ann
    again = example(NAME).section("Another one works").lines
    assert "09:02:00  second has done order 1 of ann: tea, R1" in again  # the first one's receipt


def test_20_each_order_is_done_once_and_a_customers_in_order(example: Example) -> None:
    numbers = done(example(NAME))
    assert sorted(numbers) == [1, 2, 3, 4, 5, 6]
    assert [each for each in numbers if each in (1, 3, 6)] == [1, 3, 6]
    assert [each for each in numbers if each in (2, 5)] == [2, 5]
    (charged,) = re.findall(r"Charged: (.*)", example(NAME).text)
    assert charged == "1, 4, 3, 6"


def test_20_what_fails_three_times_is_put_aside_and_tried_anew(example: Example) -> None:
    printed = example(NAME)
    assert printed.text.count("second tries order 2") == 4
    assert printed.section("Put aside").lines == [
        "order 2 of bob: PermissionError: the card is refused",
        "order 5 of bob: PermissionError: the card is refused",
        "0 waiting, 2 dead",
    ]
    mended = printed.section("Bob's card").lines
    assert (mended[0], mended[-1]) == ("2 tried again", "0 waiting, 0 dead")


def test_20_it_is_known_from_both_sides_and_counted_once(example: Example) -> None:
    printed = example(NAME)
    assert printed.section("Who bought what").lines == [
        *("ann: cup, lamp, tea", "bob: lamp, tea", "tea: ann, bob, cem"),
        "ann and bob both: lamp, tea",
    ]
    assert printed.section("The report").lines == [
        *("Report 1: 81 taken", "Another one is refused: held by the office"),
        *("Report 2: 81 taken", "Another one is refused: held by the office"),
    ]
