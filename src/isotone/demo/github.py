"""GitHub's shape in one table: a repository between its issues, pull requests, stars and forks."""

from __future__ import annotations

import random
from typing import Any, Final, Literal

from isotone import Attr, Entity, Global, Index, Key, ManualClock, Store, Table, desc, field
from isotone.demo.chapter import Chapter

github = Table(
    "github",
    indexes={"numbers": Global("GSI1PK", "GSI1SK"), "forks": Global("GSI2PK", "GSI2SK")},
)


class Repository(Entity, table=github):
    owner: Attr[str] = field()
    name: Attr[str] = field()
    about: Attr[str] = field()

    primary = Key("REPO", owner, name).sort("REPO", owner, name)
    numbers = Index("numbers", "REPO", owner, name).sort("REPO")
    forks = Index("forks", "REPO", owner, name).sort("REPO")


class Issue(Entity, table=github):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    title: Attr[str] = field()

    primary = Repository.primary.children(owner, repository).before("ISSUE", number)


class PullRequest(Entity, table=github):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    title: Attr[str] = field()

    primary = Key("PR", owner, repository, number).sort("PR")
    numbers = Repository.numbers.children(owner, repository).after("PR", desc(number))


class Star(Entity, table=github):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    user: Attr[str] = field()

    primary = Repository.primary.children(owner, repository).after("STAR", user)


class Fork(Entity, table=github):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    user: Attr[str] = field()

    primary = Key("FORK", owner, repository, user).sort("FORK")
    forks = Repository.forks.children(owner, repository).after("FORK", user)


_DOING: Final = ("Fix", "Speed up", "Document", "Remove", "Test", "Explain")
_WHAT: Final = ("the parser", "paging", "retries", "the cache", "key order", "sign-in", "exports")
_USERS: Final = [
    "ann",
    "bob",
    "cem",
    "dot",
    "eve",
    "fay",
    "gus",
    "hal",
    "ivy",
    "joe",
    "kim",
    "lea",
    "max",
    "ned",
    "ora",
    "pia",
]
_REPOSITORIES: Final = (
    ("octo", "hello", "Says hello", 157),
    ("octo", "spoon", "A fork for soup", 48),
    ("ann", "notes", "Plain notes", 90),
)


def fill_github(store: Store, clock: ManualClock) -> None:
    """Issues and pull requests share one sequence of numbers, as on GitHub."""
    chance = random.Random(10)
    for owner, repository, about, last in _REPOSITORIES:
        of: Any = {"owner": owner, "repository": repository}
        store.put(Repository(owner=owner, name=repository, about=about))
        items: list[Entity] = []
        for number in range(1, last + 1):
            title = f"{chance.choice(_DOING)} {chance.choice(_WHAT)}"
            is_pull = number == last or (number < last - 1 and chance.random() < 0.4)
            items.append((PullRequest if is_pull else Issue)(**of, number=number, title=title))
        items += [Star(**of, user=user) for user in _USERS]
        items += [Fork(**of, user=user) for user in _USERS[::3]]
        store.put_many(items)


def repository_with(
    store: Store,
    owner: str = "octo",
    repository: str = "hello",
    relation: Literal["pull requests", "issues", "stars", "forks"] = "pull requests",
    newest: int = 5,
) -> Any:
    both: Any = {
        "pull requests": Repository.numbers.with_children(PullRequest.numbers),
        "issues": Repository.primary.with_children(Issue.primary),
        "stars": Repository.primary.with_children(Star.primary),
        "forks": Repository.forks.with_children(Fork.forks),
    }[relation]
    this = Repository.owner == owner, Repository.name == repository
    return store.family(both.where(*this), children=newest)


def repository_with_by_hand(
    client: Any,
    owner: str = "octo",
    repository: str = "hello",
    relation: Literal["pull requests", "issues", "stars", "forks"] = "pull requests",
    newest: int = 5,
) -> Any:
    # Four prefixes, two directions, two subtractions from 99999, in every service that touches the table.
    key = f"REPO#{owner}#{repository}"
    index, names, operator, parent = {
        "pull requests": ("numbers", ("GSI1PK", "GSI1SK"), ">=", "REPO"),
        "issues": (None, ("PK", "SK"), "<=", key),
        "stars": (None, ("PK", "SK"), ">=", key),
        "forks": ("forks", ("GSI2PK", "GSI2SK"), ">=", "REPO"),
    }[relation]
    request: Any = {
        "TableName": "github",
        "KeyConditionExpression": f"{names[0]} = :key AND {names[1]} {operator} :parent",
        "ExpressionAttributeValues": {":key": {"S": key}, ":parent": {"S": parent}},
        "ScanIndexForward": operator == ">=",
        "Limit": newest + 1,
    }
    if index:
        request["IndexName"] = index
    return client.query(**request)["Items"]


CHAPTERS: Final = (
    Chapter(
        "github",
        10,
        "Sorting",
        "GitHub in one table",
        "Issues and pull requests count upwards together, and both are wanted newest first, beside their repository. "
        "Issues sort before it and are read backwards; pull requests sort after it, so their numbers are stored as "
        "99999 − n. One query returns a repository with any of its four relations.",
        ("github", "Repository", "Issue", "PullRequest", "Star", "Fork"),
        repository_with,
        repository_with_by_hand,
    ),
)

SAMPLES: Final = ((github, fill_github),)
