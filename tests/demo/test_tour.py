"""Each chapter's question has the answer that its scenario says, by Isotone and by hand, and is drawn as it was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import isotone
from isotone.demo import samples
from isotone.demo.tour import CHAPTERS, Tour
from isotone.errors import UsageError

NAMES = [chapter.name for chapter in CHAPTERS]


@pytest.fixture(scope="module")
def database() -> Iterator[isotone.Database]:
    with isotone.open() as database:
        samples.load(database)
        samples.load(database)  # what exists stays as it is
        assert database.check() == []
        yield database


@pytest.fixture(scope="module")
def tour(database: isotone.Database) -> Tour:
    return Tour(database)


@pytest.fixture
def ask(tour: Tour) -> Callable[..., Any]:
    def ask(chapter: str, **parameters: str) -> Any:
        return tour.ask({"chapter": chapter, "parameters": parameters})

    return ask


def returned(asked: Any, component: str) -> list[str]:
    """The values of a component, or of an attribute, of the items that were returned, as they are stored."""
    found = []
    for row in (row for drawn in asked["collections"] for row in drawn["rows"]):
        if row.get("returned"):
            segments = [each for parts in row["keys"].values() for each in parts or ()]
            values = [meaning or text for text, name, meaning in segments if name == component]
            if not values and component in row["attributes"]:
                values = [str(value) for value in row["attributes"][component].values()]
            found += values[:1]
    return found


def test_every_scenario_has_a_chapter():
    assert {chapter.scenario for chapter in CHAPTERS} == set(range(1, 21))
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_chapter_is_reported_measured_and_drawn(tour, ask, name):
    (told,) = (each for each in tour.chapters()["chapters"] if each["name"] == name)
    assert 2 <= told["story"].count(".") <= 5
    assert all(told[name] for name in ("model", "question", "by_hand"))
    asked = ask(name)
    assert asked["cost"]["requests"] >= 1
    assert asked["cost"]["units"] > 0
    drawn = [row for each in asked["collections"] for row in each["rows"]]
    assert any(row.get("returned") for row in drawn)
    for each in asked["collections"]:
        shown = sum(1 if "keys" in row else row["gap"] for row in each["rows"])
        assert shown == each["total"]
        assert not [row for row in each["rows"] if row.get("returned") and not row["read"]]
    (chapter,) = (each for each in CHAPTERS if each.name == name)
    if chapter.refuse is not None:
        assert asked["refused"]
    if chapter.instead is not None:
        assert asked["instead"]["scanned"] > asked["cost"]["scanned"]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=NAMES)
def test_what_is_written_by_hand_finds_as_many(database, ask, chapter):
    by_hand = chapter.by_hand(database.client(), **chapter.values({}))
    asked = ask(chapter.name)
    answer = asked["answer"]
    assert len(by_hand) == (len(answer["rows"]) if answer else asked["cost"]["returned"])


def test_words_sort_by_their_bytes(ask):
    assert returned(ask("text-order"), "word") == [
        "#1",
        "Banana",
        "apple",
        "cherry",
        "é",
        "～",
        "😀",
    ]


def test_a_station_is_found_in_any_spelling(ask):
    for spelling in ("HAUPTSTRASSE", "hauptstraße", "HauptStrasse"):
        asked = ask("any-case", name=spelling, city="berlin")
        assert asked["collections"][0]["read"] == 1
        (row,) = (row for row in asked["collections"][0]["rows"] if row.get("read"))
        assert row["attributes"]["name"] == {"S": "Hauptstraße"}


def test_numbers_sort_by_value(ask):
    values = "-1e125 -2 -1.5 0 1e-130 2 10 123456789012345678901234567890.12345678"
    found = returned(ask("numbers"), "value")
    assert [float(each) for each in found] == [float(each) for each in values.split()]
    assert len(returned(ask("numbers", at_least="2"), "value")) == 3


def test_times_sort_by_instant(ask):
    assert returned(ask("time"), "name") == ["Tokyo", "London"]


def test_an_update_moves_a_ticket_to_the_top(tour, ask):
    tour.act({"chapter": "recently-updated"})
    assert returned(ask("recently-updated", tickets="1"), "title") == ["Looked at again"]


def test_a_repository_comes_with_each_of_its_relations_newest_first(ask):
    pulls = returned(ask("github", newest="1"), "number")
    assert pulls == ["157"]
    issues = [int(each) for each in returned(ask("github", relation="issues"), "number")]
    assert issues[0] < issues[-1] == 156  # read backwards, drawn as stored
    assert ask("github", relation="stars", newest="50")["cost"]["returned"] == 1 + 16
    assert returned(ask("github", relation="forks", newest="2"), "user") == ["ann", "dot"]


def test_an_organization_comes_with_users_or_teams(ask):
    users = ask("two-relations")["collections"][0]["rows"]
    assert {row["entity"] for row in users if row.get("read")} == {"Organization", "User"}
    teams = ask("two-relations", relation="teams")["collections"][0]["rows"]
    assert {row["entity"] for row in teams if row.get("read")} == {"Organization", "Team"}


def test_padded_issues_sort_as_numbers(ask):
    assert returned(ask("zero-padding"), "number") == [str(number) for number in range(2, 11)]


def test_orders_of_some_days_and_of_a_status(ask):
    statuses = returned(ask("sort-key-range"), "status")
    assert statuses == ["CANCELLED", "SHIPPED", "CANCELLED_BY_SHOP"]
    asked = ask("composite-key")
    assert asked["cost"]["scanned"] == 3
    assert returned(asked, "status") == ["CANCELLED"] * 3


def test_admins_alone_are_read_and_a_promotion_adds_one(tour, ask):
    before = returned(ask("sparse-by-role"), "name")
    assert {each.lower() for each in before} == {"charlie", "warren"}
    tour.act({"chapter": "sparse-by-role"})
    after = ask("sparse-by-role")
    assert after["cost"]["scanned"] == len(before) + 1


def test_customers_among_ten_thousand(ask):
    asked = ask("sparse-by-kind")
    assert asked["cost"]["scanned"] == 500
    assert asked["instead"]["scanned"] >= 10_000


def test_exactly_25_shipped_with_a_budget(ask):
    assert ask("filters")["cost"]["returned"] == 25
    assert ask("filters", units_at_most="10")["cost"]["returned"] < 25


def test_free_slots_of_a_day(ask):
    rows = ask("client-side")["answer"]["rows"]
    assert [(begin[-5:], end[-5:]) for begin, end in rows] == [
        ("08:00", "09:00"),
        ("12:00", "14:00"),
        ("15:00", "18:00"),
    ]


def test_trending_songs(ask):
    rows = ask("sorted-set")["answer"]["rows"]
    assert rows[0] == ["song:1", "1.1"]
    assert {tuple(row) for row in rows} >= {("song:4", "0.9"), ("song:3", "0.7")}


def test_the_ten_fastest_stores_in_ten_reads(ask):
    asked = ask("leaderboard")
    assert (asked["cost"]["scanned"], asked["cost"]["requests"]) == (10, 1)
    scores = [int(row[2]) for row in asked["answer"]["rows"]]
    assert scores == sorted(scores)


def test_a_timeline_is_newest_first_and_a_new_post_comes_first(tour, ask):
    times = [row[0] for row in ask("feed")["answer"]["rows"]]
    assert times == sorted(times, reverse=True)
    tour.act({"chapter": "feed"})
    assert ask("feed")["answer"]["rows"][0][1:] == ["eve", "Posted from the tour"]


def test_a_claimed_message_moves_to_the_end_of_the_queue(tour, ask):
    first = returned(ask("queue", first="1"), "entry")
    tour.act({"chapter": "queue"})
    assert returned(ask("queue", first="1"), "entry") != first


def test_a_wrong_parameter_is_refused_with_its_name(ask):
    with pytest.raises(UsageError, match="newest is 'many', which is no integer"):
        ask("github", newest="many")
    with pytest.raises(UsageError, match="relation is one of"):
        ask("github", relation="enemies")
    with pytest.raises(UsageError, match="no chapter 'nothing'"):
        ask("nothing")
