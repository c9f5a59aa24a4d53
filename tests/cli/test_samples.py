"""The sample tables answer their questions as the scenarios say."""

from __future__ import annotations

import json
import shlex

import pytest

import isotone as package
from isotone.cli.samples import SAMPLES
from isotone.cli.serving import load

QUESTIONS = {sample.table: sample.question for sample in SAMPLES}


@pytest.fixture
def samples(tmp_path):
    file = tmp_path / "samples.db"
    with package.open(file, durability="none") as database:
        load(database)
        assert database.check() == []
        load(database)  # a second time changes nothing
    return file


@pytest.fixture
def ask(isotone, samples):
    def ask(table, question=None):
        words = shlex.split(QUESTIONS[table] if question is None else question)
        outcome = isotone("query", samples, table, *words, "--format", "jsonl")
        assert outcome.code == 0, outcome.err
        return [json.loads(line) for line in outcome.out.splitlines()]

    return ask


def test_every_question_has_an_answer(ask):
    assert all(ask(table) for table in QUESTIONS)


def test_words_sort_by_their_bytes(ask):
    assert [item["word"] for item in ask("Words")] == [
        "#1",
        "Banana",
        "apple",
        "cherry",
        "é",
        "～",
        "😀",
    ]


def test_numbers_sort_by_value(ask):
    assert [item["written"] for item in ask("Numbers")] == [
        "-1e125", "-2", "-1.5", "0", "1e-130", "2", "10",
        "123456789012345678901234567890.12345678",
    ]  # fmt: skip


def test_tickets_come_most_recently_updated_first(ask):
    updated = [item["updated_at"] for item in ask("Tickets")]
    assert len(updated) == 8
    assert updated == sorted(updated, reverse=True)


def test_scores_come_highest_first_both_ways(ask):
    stored = [item["score"] for item in ask("Scores", "game=tetris")]
    assert stored == sorted(stored, reverse=True)
    read = ask("Scores", "game=tetris 'score >= 0' --reverse")
    assert [item["score"] for item in read] == stored


def test_a_sensor_comes_with_its_newest_readings(ask):
    sensor, *readings = ask("Sensors")
    assert sensor["sk"] == "SENSOR"
    assert [reading["sk"] for reading in readings] == [
        f"READING#2020-01-01T{hour}:00:00Z" for hour in (23, 22, 21, 20, 19)
    ]


def test_an_organization_comes_with_its_users_or_its_teams(ask):
    assert [item["type"] for item in ask("Organizations")] == ["Organization", "User", "User"]
    teams = ask("Organizations", "pk=ORG#BERKSHIRE 'sk <= ORG#BERKSHIRE'")
    assert [item["type"] for item in teams] == ["Team", "Team", "Organization"]


def test_padded_issues_sort_as_numbers(ask):
    assert [int(item["issue"][6:]) for item in ask("Issues")] == [
        1,
        2,
        9,
        10,
        11,
        99,
        100,
        157,
        1000,
    ]


def test_a_repository_comes_with_what_belongs_to_it_newest_first(ask):
    numbers = [item.get("number") for item in ask("GitHub")]
    assert numbers == [None, 159, 11, 3]
    repo = "REPO#ann#notes"
    issues = ask("GitHub", f"pk={repo} 'sk between ISSUE# and {repo}' --reverse")
    assert [item.get("number") for item in issues] == [None, 158, 157, 10, 2]
    stars = ask("GitHub", f"pk={repo} 'sk between {repo} and STAR#~'")
    assert [item.get("user") for item in stars] == [None, "ann", "bob", "zoe"]


def test_cancelled_orders_are_not_those_cancelled_by_the_shop(ask):
    orders = ask("Orders")
    assert orders
    assert {order["status"] for order in orders} == {"CANCELLED"}
    assert all("2019-07-01" <= order["ordered_at"] < "2019-10-01" for order in orders)
    dated = ask("Orders", "customer=36ab55a589e4 'ordered_at between 2020-01-11 and 2020-02-01'")
    assert dated
    assert all("2020-01-11" <= order["ordered_at"] <= "2020-02-01" for order in dated)
