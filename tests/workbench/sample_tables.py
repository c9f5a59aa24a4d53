"""Sample tables: the data of the ordering and filtering scenarios, with hand-written keys.

Each sample is a table and a query that shows the purpose of its keys. The data is always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.cli.tables import table_request
from isotone.values.json import item_to_wire

Record = dict[str, Any]

_HIGHEST: Final = 99_999  # descending keys store the difference from this number
_START: Final = datetime(2020, 1, 1)


@dataclass(frozen=True, slots=True)
class Sample:
    """A table, its items, and an example query."""

    table: str
    shows: str
    key: tuple[str, ...]
    records: Callable[[], Iterator[Record]]
    question: str
    index: str | None = None


def _words() -> Iterator[Record]:
    for word in ("apple", "Banana", "cherry", "#1", "é", "～", "😀"):
        yield {"list": "words", "word": word, "bytes": word.encode().hex(" ")}


def _numbers() -> Iterator[Record]:
    values = "-1e125 -2 -1.5 0 1e-130 2 10 123456789012345678901234567890.12345678"
    for text in values.split():
        yield {"list": "numbers", "number": Decimal(text), "written": text}


def _tickets() -> Iterator[Record]:
    for number in range(1, 13):
        updated = _START + timedelta(hours=37 * number % 211, minutes=11 * number)
        yield {
            "ticket": f"T-{number:04}",
            "project": "apollo" if number % 3 else "gemini",
            "updated_at": f"{updated.isoformat()}Z",
            "title": f"Ticket number {number}",
            "status": ("OPEN", "CLOSED")[number % 4 == 0],
        }


def _scores() -> Iterator[Record]:
    players = ("ann", "bob", "cleo", "dan", "eve", "finn", "gus", "hana")
    for place, player in enumerate(players):
        score = 7919 * (place + 3) % 1000
        # The descending key stores the difference from the highest score, zero-padded: 999 sorts first.
        yield {
            "game": "tetris",
            "score_down": f"{_HIGHEST - score:05}#{player}",
            "score": score,
            "player": player,
        }


def _sensors() -> Iterator[Record]:
    for sensor in ("attic", "cellar"):
        key = f"SENSOR#{sensor}"
        # `SENSOR` sorts after every `READING#…`: the newest readings stand next to their sensor.
        yield {"pk": key, "sk": "SENSOR", "name": sensor, "unit": "°C"}
        for hour in range(24):
            at = _START + timedelta(hours=hour)
            degrees = Decimal(180 + (hour * 7 + len(sensor)) % 60) / 10
            yield {"pk": key, "sk": f"READING#{at.isoformat()}Z", "degrees": degrees}


def _organizations() -> Iterator[Record]:
    people = {"BERKSHIRE": ("CharlieMunger", "WarrenBuffett"), "FACEBOOK": ("SherylSandberg",)}
    teams = {"BERKSHIRE": ("insurance", "railways"), "FACEBOOK": ("ads", "growth", "infra")}
    for organization, users in people.items():
        key = f"ORG#{organization}"
        yield {"pk": key, "sk": key, "type": "Organization", "name": organization.title()}
        for user in users:
            yield {"pk": key, "sk": f"USER#{user.upper()}", "type": "User", "name": user}
        for team in teams[organization]:
            yield {"pk": key, "sk": f"#TEAM#{team.upper()}", "type": "Team", "name": team}


def _padded_issues() -> Iterator[Record]:
    for number in (1, 2, 9, 10, 11, 99, 100, 157, 1000):
        yield {"repo": "isotone", "issue": f"ISSUE#{number:08}", "title": f"Issue {number}"}


def _github() -> Iterator[Record]:
    """A repository between its issues and its stars; in the index `by_work`, between issues and pull requests.

    Both are read newest first. Issues are read backwards from the repository, so their keys have the number;
    pull requests are read forwards, so theirs have the difference from the highest number.
    """
    for name in ("alexdebrie#dynamodb-book", "ann#notes"):
        repo = f"REPO#{name}"
        yield {"pk": repo, "sk": repo, "work": repo, "type": "Repository", "stars": 3}
        for number in (2, 10, 157, 158):
            sk = f"ISSUE#{number:05}"
            yield {"pk": repo, "sk": sk, "work": sk, "type": "Issue", "number": number}
        for number in (3, 11, 159):
            sk = f"~PR#{_HIGHEST - number:05}"
            yield {"pk": repo, "sk": sk, "work": sk, "type": "Pull request", "number": number}
        for user in ("ann", "bob", "zoe"):
            yield {"pk": repo, "sk": f"STAR#{user}", "type": "Star", "user": user}
        for user in ("bob", "cleo"):
            yield {"pk": repo, "sk": f"FORK#{user}", "type": "Fork", "user": user}


def _orders() -> Iterator[Record]:
    statuses = ("PLACED", "SHIPPED", "CANCELLED", "CANCELLED_BY_SHOP", "DELIVERED")
    customers = {"36ab55a589e4": datetime(2019, 12, 20), "2b5a41c0": datetime(2019, 6, 10)}
    for customer, first in customers.items():
        for number in range(30):
            ordered = first + timedelta(days=4 * number, hours=number % 24, microseconds=number)
            at, status = ordered.isoformat(timespec="microseconds"), statuses[number % 5]
            yield {
                "customer": customer,
                "ordered_at": at,
                "status": status,
                "status_ordered_at": f"{status}#{at}",
                "total": Decimal(995 + 37 * number) / 100,
            }


SAMPLES: Final = (
    Sample("Words", "text sorts by its UTF-8 bytes", ("list", "word"), _words, "list=words"),
    Sample("Numbers", "numbers sort by value", ("list", "number:N"), _numbers, "list=numbers"),
    Sample(
        "Tickets",
        "most recently updated first, from an index on what changes",
        ("ticket",),
        _tickets,
        "project=apollo --reverse",
        "by_update=project,updated_at",
    ),
    Sample(
        "Scores",
        "highest first, stored backwards (by score_down) or read backwards (by_score)",
        ("game", "score_down"),
        _scores,
        "game=tetris --limit 3",
        "by_score=game,score:N",
    ),
    Sample(
        "Sensors",
        "a parent and its newest children in one read",
        ("pk", "sk"),
        _sensors,
        "pk=SENSOR#attic --reverse --limit 6",
    ),
    Sample(
        "Organizations",
        "two relations in one item collection",
        ("pk", "sk"),
        _organizations,
        "pk=ORG#BERKSHIRE 'sk >= ORG#BERKSHIRE'",
    ),
    Sample(
        "Issues", "zero-padded numbers in text", ("repo", "issue"), _padded_issues, "repo=isotone"
    ),
    Sample(
        "GitHub",
        "a repository with its pull requests, newest first (or its issues, or its stars)",
        ("pk", "sk"),
        _github,
        "pk=REPO#ann#notes 'work >= REPO#ann#notes'",
        "by_work=pk,work",
    ),
    Sample(
        "Orders",
        "a range of time, and a composite key of status and time",
        ("customer", "ordered_at"),
        _orders,
        "customer=2b5a41c0 'status_ordered_at between CANCELLED#2019-07-01 and CANCELLED#2019-10-01'",
        "by_status=customer,status_ordered_at",
    ),
)


def put_all(connection: Backend, table: str, items: Iterable[Any]) -> None:
    """Write items in batches, however many there are."""
    left = iter(items)
    while batch := [{"PutRequest": {"Item": item}} for item in islice(left, 25)]:
        connection.execute("BatchWriteItem", {"RequestItems": {table: batch}})


def load(connection: Backend) -> None:
    """Create the sample tables."""
    for sample in SAMPLES:
        indexes = [sample.index] if sample.index else []
        connection.execute("CreateTable", table_request(sample.table, list(sample.key), indexes))
        put_all(connection, sample.table, map(item_to_wire, sample.records()))
