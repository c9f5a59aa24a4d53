"""Numbers that outgrow their keys get wider ones, while the table is in use."""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal, get_args

import pytest

from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Rewritten,
    Table,
    desc,
    field,
    in_order,
    version,
)
from isotone.backends.interface import Backend, Request, Response
from isotone.errors import AlreadyExists, NotUnique, OutOfRange, TransactionFailed, UsageError

INDEXES = {"GSI1": Global("GSI1PK", "GSI1SK")}
before, during, after = (Table("repos", indexes=INDEXES) for _ in "123")


class Old(Entity, table=before, tag="Issue"):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)
    title: Attr[str] = field(default="", unique=True)
    stars: Attr[int] = field(default=0, max=99, alert=2)
    revision: Attr[int] = version()

    primary = Key("REPO", repo).sort("ISSUE", desc(number))
    by_stars = Index("GSI1", "REPO", repo).sort(stars, number)


class Issue(Entity, table=during, tag="Issue"):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=999_999, was=999, alert=2)
    title: Attr[str] = field(default="", unique=True)
    stars: Attr[int] = field(default=0, max=99, alert=2)
    revision: Attr[int] = version()

    primary = Key("REPO", repo).sort("ISSUE", desc(number))
    by_stars = Index("GSI1", "REPO", repo).sort(stars, number)


class New(Entity, table=after, tag="Issue"):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=999_999, alert=2)
    title: Attr[str] = field(default="", unique=True)
    stars: Attr[int] = field(default=0, max=99, alert=2)
    revision: Attr[int] = version()

    primary = Key("REPO", repo).sort("ISSUE", desc(number))
    by_stars = Index("GSI1", "REPO", repo).sort(stars, number)


NUMBERS = [1, 2, 10, 157, 999]


@pytest.fixture
def repos(desk: Any) -> Any:
    desk.store.create_tables(before)
    for number in NUMBERS:
        desk.store.put(Old(repo="r", number=number, title=f"t{number}"))
    return desk


def items(desk: Any) -> Iterator[Any]:
    start: dict[str, Any] | None = {}
    while start is not None:
        page = desk.backend.execute("Scan", {"TableName": "repos", **start})
        yield from page["Items"]
        last = page.get("LastEvaluatedKey")
        start = {"ExclusiveStartKey": last} if last else None


def keys(desk: Any) -> list[str]:
    return sorted(item["SK"]["S"] for item in items(desk) if item["_type"]["S"] == "Issue")


def test_entities_are_read_under_either_key(repos: Any) -> None:
    repos.store.put(Issue(repo="r", number=100_000, title="new"))
    assert repos.store.get(Issue, repo="r", number=157).title == "t157"
    assert repos.store.get(Issue, repo="r", number=158) is None
    assert repos.store.get(Issue, repo="r", number=158_000) is None
    found = repos.store.get_many(Issue, [{"repo": "r", "number": n} for n in (2, 3, 100_000)])
    assert [each and each.number for each in found] == [2, None, 100_000]


def test_queries_see_both_widths_in_one_order(repos: Any) -> None:
    for number in (5, 1000, 100_000):
        repos.store.put(Issue(repo="r", number=number, title=f"t{number}"))
    everything = sorted([*NUMBERS, 5, 1000, 100_000])
    mine = Issue.primary.where(Issue.repo == "r")
    assert [each.number for each in repos.store.all(mine)] == everything[::-1]
    assert [each.number for each in repos.store.all(mine.oldest_first())] == everything
    assert [each.number for each in repos.store.all(mine.limit(3))] == everything[:-4:-1]
    for number in (4, 999, 5000, 100_000):
        below = Issue.primary.where(Issue.repo == "r", Issue.number < number).oldest_first()
        wanted = [each for each in everything if each < number]
        assert [each.number for each in repos.store.all(below)] == wanted
        assert [each.number for each in repos.store.all(below.limit(2))] == wanted[:2]
        assert repos.store.count(below) == len(wanted)
        first = repos.store.first(below)
        assert (first and first.number) == (wanted[0] if wanted else None)
    stars = Issue.by_stars.where(Issue.repo == "r", Issue.stars == 0)
    assert [each.number for each in repos.store.all(stars)] == everything


def test_pages_have_both_widths(repos: Any) -> None:
    for number in (5, 1000, 100_000):
        repos.store.put(Issue(repo="r", number=number, title=f"t{number}"))
    query = Issue.primary.where(Issue.repo == "r")
    first = repos.store.page(query, size=3)
    assert [each.number for each in first] == [100_000, 1000, 999]
    second = repos.store.page(query, size=3, cursor=first.cursor)
    assert [each.number for each in second] == [157, 10, 5]
    assert repos.store.page(query, size=3, cursor=second.previous).items == first.items
    assert [each.number for each in repos.store.iterate(query)][-2:] == [2, 1]


def test_writes_bring_the_item_first(repos: Any) -> None:
    key = {"repo": "r", "number": 157}
    changed = repos.store.update(Issue, Issue.stars.add(1), **key)
    assert (changed.stars, changed.revision) == (1, 2)
    assert keys(repos) == sorted(
        ["ISSUE#000", "ISSUE#989", "ISSUE#997", "ISSUE#998", "ISSUE#999842"]
    )
    with pytest.raises(NotUnique):
        repos.store.create(Issue(repo="r", number=3, title="t157"))
    gone = repos.store.delete(Issue, repo="r", number=10)
    assert gone.title == "t10"
    issue = repos.store.get(Issue, repo="r", number=2)
    issue.title = "two"
    repos.store.put(issue)
    assert keys(repos) == sorted(["ISSUE#000", "ISSUE#998", "ISSUE#999842", "ISSUE#999997"])
    repos.store.create(Issue(repo="r", number=3, title="t2"))


class Plain(Entity, table=before):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=999, alert=2)

    primary = Key("PLAIN", repo).sort("PLAIN", number)


class PlainNow(Entity, table=during, tag="Plain"):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=999_999, was=999, alert=2)

    primary = Key("PLAIN", repo).sort("PLAIN", number)


def plain(desk: Any) -> list[str]:
    return sorted(item["SK"]["S"] for item in items(desk) if item["_type"]["S"] == "Plain")


def test_batches_leave_nothing_under_the_former_key(repos: Any) -> None:
    repos.store.put_many([Plain(repo="r", number=number) for number in range(60)])
    changed = [PlainNow(repo="r", number=number) for number in range(30)]
    assert repos.store.put_many(changed) == 30
    wide, narrow = (lambda n: f"PLAIN#{n:06}"), (lambda n: f"PLAIN#{n:03}")
    assert plain(repos) == sorted([*map(wide, range(30)), *map(narrow, range(30, 60))])
    keys = [{"repo": "r", "number": number} for number in range(20, 50)]
    assert repos.store.delete_many(PlainNow, keys) == 30
    assert plain(repos) == sorted([*map(wide, range(20)), *map(narrow, range(50, 60))])
    repos.store.put_many([PlainNow(repo="r", number=100_000)])
    assert wide(100_000) in plain(repos)


def test_a_place_is_taken_by_what_lies_under_its_former_key(repos: Any) -> None:
    change = [Issue.number.set(10)]
    repos.store.put(Issue(repo="r", number=5000, title="t5000"))
    with pytest.raises(AlreadyExists):
        repos.store.move(Issue, *change, repo="r", number=5000)
    t = repos.store.transaction()
    t.move(Issue, *change, repo="r", number=5000)
    with pytest.raises(TransactionFailed, match="already exists"):
        t.commit()


def test_transactions_bring_what_they_read(repos: Any) -> None:
    t = repos.store.transaction()
    issue = t.get(Issue, repo="r", number=157)
    t.update(Issue, Issue.stars.set(issue.stars + 3), repo="r", number=157)
    t.update(Issue, Issue.stars.set(4), repo="r", number=2)
    t.commit()
    both = [(Issue, {"repo": "r", "number": number}) for number in (157, 2)]
    assert [each.stars for each in repos.store.get_together(*both)] == [3, 4]


def test_a_widening_is_complete_and_changes_nothing_else(repos: Any) -> None:
    told: list[Rewritten] = []
    wanted = [repos.item(Old(repo="r", number=number)) for number in NUMBERS]
    assert repos.store.widen(Issue, progress=told.append) == Rewritten(5, 5, 0, True)
    assert told[-1].is_complete
    assert keys(repos) == sorted(f"ISSUE#{999_999 - number}" for number in NUMBERS)
    for number, old in zip(NUMBERS, wanted, strict=True):
        issue = New(repo="r", number=number, title=f"t{number}", revision=1)
        assert repos.item(issue) == New.__schema__.to_item(issue.__dict__)
        assert {**old, **repos.item(issue)} == repos.item(issue)  # no attribute is lost
    page = repos.store.page(New.primary.where(New.repo == "r"), size=3)
    assert [each.number for each in page.items] == [999, 157, 10]
    assert repos.store.widen(Issue) == Rewritten(5, 0, 0, True)


class SmallPages:
    """A backend whose scans give three items at a time."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def execute(self, operation: str, request: Request) -> Response:
        if operation == "Scan":
            request = {**request, "Limit": 3}
        return self._backend.execute(operation, request)


def test_a_widening_that_was_stopped_continues(repos: Any) -> None:
    repos.backend = SmallPages(repos.backend)

    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    rng, stops = random.Random(7), 0
    while True:
        operation = rng.choice(["TransactWriteItems", "PutItem", "Scan"])
        repos.before = {operation: stop} if stops < 6 else {}
        try:
            state = repos.store.widen(Issue)
        except Stopped:
            stops += 1
        else:
            break
    assert state.is_complete
    assert keys(repos) == sorted(f"ISSUE#{999_999 - number}" for number in NUMBERS)
    tags = {item["_type"]["S"] for item in items(repos)}
    assert tags == {"Issue", "_unique", "_keys"}


def test_an_item_that_changes_meanwhile_is_rewritten_as_it_is(repos: Any) -> None:
    for number in NUMBERS[:-1]:
        repos.store.delete(Old, repo="r", number=number)
    repos.before["TransactWriteItems"] = lambda: repos.store.update(
        Old, Old.stars.add(7), repo="r", number=999
    )
    repos.store.widen(Issue)
    changed = repos.store.get(New, repo="r", number=999)
    assert (changed.stars, changed.revision) == (7, 2)


def test_what_is_written_under_both_keys_is_a_conflict(repos: Any) -> None:
    repos.store.put(Issue(repo="r", number=5, title="five"))
    repos.store.put(Old(repo="r", number=5, title="cinq"))  # a program left behind
    assert repos.store.widen(Issue).conflicts == 1
    assert repos.store.get(Issue, repo="r", number=5).title == "five"


def test_there_must_be_something_to_widen(repos: Any) -> None:
    with pytest.raises(UsageError, match="no key of Issue is being widened"):
        repos.store.widen(New)
    with pytest.raises(UsageError, match="cannot be widened from 99 to 9"):

        class Narrowed(Entity, table=Table("other")):
            number: Attr[int] = field(max=9, was=99)

            primary = Key("X").sort(number)


def test_beyond_the_width_nothing_is_written(repos: Any) -> None:
    with pytest.raises(OutOfRange):
        repos.store.put(Issue(repo="r", number=1_000_000))


# Keys that do not sort by the bare value


class Level(Enum):
    LOW = "low"
    HIGH = "high"


Urgency = Literal["later", "now"]


def ticket(table: Table, **width: Any) -> type[Entity]:
    """An entity whose sort key has an enum, a declared order, a text in lower case and a number."""

    class Ticket(Entity, table=table, tag="Ticket"):
        desk: Attr[str] = field()
        level: Attr[Level] = field()
        urgency: Attr[Urgency] = field()
        title: Attr[str] = field(case="lower")
        number: Attr[int] = field(alert=2, **width)

        primary = Key("DESK", desk).sort("T", level, desc(in_order(urgency)), title, number)

    return Ticket


def test_two_widths_come_in_the_order_of_the_key(desk: Any) -> None:
    old = ticket(Table("tickets"), max=99)
    new = ticket(Table("tickets"), max=9_999, was=99)
    done = ticket(Table("tickets"), max=9_999)
    desk.store.create_tables(old.__schema__.table)
    values = [
        {"desk": "d", "level": level, "urgency": urgency, "title": title, "number": number}
        for level in Level
        for urgency in get_args(Urgency)
        for title in ("b", "A", "B c")
        for number in (2, 10)
    ]
    for place, one in enumerate(values):
        desk.store.put((old if place % 2 else new)(**one))

    def read(entity: Any, **options: Any) -> list[Any]:
        query = entity.primary.where(entity.desk == "d")
        return [
            each.to_dict()
            for each in desk.store.all(query.reversed() if options.get("reversed") else query)
        ]

    forwards, backwards = read(new), read(new, reversed=True)
    desk.store.widen(new)
    assert forwards == read(done)
    assert backwards == read(done, reversed=True)
    assert len(forwards) == len(values)
