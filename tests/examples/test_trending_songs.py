"""Scenario 17 exactly."""

from __future__ import annotations

from collections.abc import Callable

from tests.examples.printed import Printed

Example = Callable[[str], Printed]
NAME = "17_trending_songs"
TOP = [" 1  song:1  1.1", " 2  song:4  0.9", " 3  song:3  0.7", " 4  song:2  0.3"]


def test_the_top_twenty(example: Example) -> None:
    assert example(NAME).section("The top twenty").lines == TOP
    assert example(NAME).section("Spread over four partitions").lines == TOP


def test_the_index_has_the_songs_by_their_points(example: Example) -> None:
    section = example(NAME).section("The items of the day")
    assert section.column("member") == ["song:2", "song:3", "song:4", "song:1"]
    assert section.column("score") == ["0.3", "0.7", "0.9", "1.1"]


def test_nothing_drifts(example: Example) -> None:
    lines = example(NAME).section("A hundred increments").lines
    assert lines == ["song:5 has 10 points", "song:6 has None"]


def test_ranks_are_the_same_counted_and_kept(example: Example) -> None:
    ranks = ["song:5: 0", "song:1: 1", "song:2: 4", "song:6: None"]
    assert example(NAME).section("Ranks, by counting").lines == ranks
    *kept, count = example(NAME).section("The same from a set that keeps ranks").lines
    assert kept == ranks
    assert count.startswith("2 songs ")


def test_options_of_adding(example: Example) -> None:
    lines = example(NAME).section("Only better scores count").lines
    assert lines == [
        *("greater: 1 changed", "new: 1 added"),
        *(" 1  song:7  0.2", " 2  song:2  0.3", " 3  song:3  0.8"),
    ]


def test_a_weighed_union(example: Example) -> None:
    lines = example(NAME).section("The weekend").lines
    assert lines == ["7 songs", " 1  song:5  10", " 2  song:2  1.3", " 3  song:1  1.1"]


def test_pages_by_score(example: Example) -> None:
    assert example(NAME).section("Between two points").lines == ["song:2, song:3", "song:4, song:1"]


def test_a_set_of_the_day_is_gone(example: Example) -> None:
    assert example(NAME).section("A set of the day").lines == ["0 songs, ttl -2"]
