"""Scenario 19 exactly."""

from __future__ import annotations

from collections.abc import Callable

from tests.examples.printed import Printed

Example = Callable[[str], Printed]
NAME = "19_time_ordered_feed"

OWN = ["09:00:00  ann   … in the same tick", "09:00:00  ann   Good morning"]
ALL = [*OWN, "09:00:00  eve   The train is late"]


def test_the_own_post_is_there_at_once_and_the_others_are_brought(example: Example) -> None:
    assert example(NAME).section("Ann reads her own posts").lines == OWN
    assert example(NAME).section("Bob, before the worker").lines == ["0 posts"]
    assert example(NAME).section("Bob, after it").lines == ALL


def test_keys_have_the_ticks_that_are_left(example: Example) -> None:
    section = example(NAME).section("His timeline")
    last = 9_999_999_999_999_999_999
    ticks = [14331492000000001, 14331492000000000, 14331492000000000]
    assert section.column("tick") == [str(tick) for tick in ticks]
    assert section.column("SK") == [
        f"ENTRY#{last - tick}#{author}"
        for tick, author in zip(ticks, ("ann", "ann", "eve"), strict=True)
    ]


def test_cursors_stay_while_new_posts_arrive(example: Example) -> None:
    assert example(NAME).section("Two at a time").lines == [
        *OWN,
        "and after the cursor:",
        ALL[2],
        "and what is new since:",
        "09:01:00  eve   It is here",
    ]


def test_an_edit_and_a_deletion_are_seen(example: Example) -> None:
    lines = example(NAME).section("An edit and a deletion").lines
    assert lines == [OWN[0], "09:00:00  ann   Good morning, all", ALL[2]]


def test_a_channel_is_merged_in_order(example: Example) -> None:
    lines = example(NAME).section("Ann has many followers").lines
    assert lines[:3] == [
        "6 followers, 'read'",
        "09:03:00  eve   At work",
        "09:02:00  ann   To all of you",
    ]
    lines = example(NAME).section("Bob does not follow her any more").lines
    assert lines == ["09:03:00  eve   At work", ALL[2]]
