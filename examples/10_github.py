"""A repository with its issues, pull requests, stars and forks.

Show a repository with its newest issues, its newest pull requests, or the users who starred it, each in one
query. Issues sort before the repository and are read backwards, from the repository to the newest. Pull requests
sort after it and are read forwards, so their numbers are stored as the difference from the greatest:
99999 − 157 = 99842 puts the newest first.

    python examples/10_github.py [ADDRESS]
"""

from __future__ import annotations

import sys
from typing import Any

import isotone
from isotone import Attr, Entity, Global, Index, Key, Store, Table, desc, field
from isotone.advisor.simulation import Workload, WorkloadCall

github = Table(
    "github",
    indexes={"numbers": Global("GSI1PK", "GSI1SK"), "forks": Global("GSI2PK", "GSI2SK")},
)


class Repository(Entity, table=github):
    owner: Attr[str] = field()
    name: Attr[str] = field()

    primary = Key("REPO", owner, name).sort("REPO", owner, name)
    numbers = Index("numbers", "REPO", owner, name).sort("REPO")
    forks = Index("forks", "REPO", owner, name).sort("REPO")


class Issue(Entity, table=github):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    title: Attr[str] = field()

    primary = Repository.primary.children(owner, repository).before("ISSUE", number)
    numbers = Repository.numbers.children(owner, repository).before("ISSUE", number)


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


with_issues = Repository.primary.with_children(Issue.primary)
with_stars = Repository.primary.with_children(Star.primary)
with_pulls = Repository.numbers.with_children(PullRequest.numbers)
with_issues_too = Repository.numbers.with_children(Issue.numbers)
with_forks = Repository.forks.with_children(Fork.forks)

hello = (Repository.owner == "octo", Repository.name == "hello")


def fill(store: Store) -> None:
    """Issues and pull requests share one sequence of numbers, as on GitHub."""
    of_hello: Any = {"owner": "octo", "repository": "hello"}
    store.put(Repository(owner="octo", name="hello"))
    for number in (1, 9, 99, 156):
        store.put(Issue(**of_hello, number=number, title=f"Issue {number}"))
    for number in (2, 10, 100, 157):
        store.put(PullRequest(**of_hello, number=number, title=f"Pull request {number}"))
    for user in ("dot", "ann", "bob"):
        store.put(Star(**of_hello, user=user))
    for user in ("eve", "cem"):
        store.put(Fork(**of_hello, user=user))


# What many users would do: isotone simulate 10_github
load = Workload("github", tables=[github])
repositories = load.population("repository", 1_000_000, popularity=0.9)
users = load.population("user", 5_000_000, activity=0.5)


@repositories.starts_with
def publish(call: WorkloadCall) -> None:
    call.store.put(Repository(owner="octo", name=call.member.id))


@load.action(by=users, per_day=0.5)
def star(call: WorkloadCall) -> None:
    repository = call.draw(repositories).id
    call.store.put(Star(owner="octo", repository=repository, user=call.member.id))


@load.action(by=users, per_day=0.2)
def report(call: WorkloadCall) -> None:
    repository, number = call.draw(repositories).id, call.chance.randrange(20_000)
    call.store.put(Issue(owner="octo", repository=repository, number=number, title="It fails"))


@load.action(by=users, per_day=10)
def look(call: WorkloadCall) -> None:
    name = Repository.name == call.draw(repositories).id
    call.store.family(with_issues.where(Repository.owner == "octo", name), children=25)


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(github)
        fill(store)

        print("The repository with its three newest issues")
        isotone.show(store.family(with_issues.where(*hello), children=3))
        print("\nThe repository with its stars")
        isotone.show(store.family(with_stars.where(*hello)))
        print("\nThe repository with its three newest pull requests")
        pulls = store.family(with_pulls.where(*hello), children=3)
        isotone.show(pulls, by=Repository.numbers)
        print("\nThe same index the other way: the repository with its three newest issues")
        issues = store.family(with_issues_too.where(*hello), children=3)
        isotone.show(issues, by=Repository.numbers)
        print("\nThe repository with its forks")
        isotone.show(store.family(with_forks.where(*hello)), by=Repository.forks)

        print("\nThe collection of the table as it is stored")
        both = Repository.primary.with_children(Issue.primary, Star.primary)
        isotone.show(store.all(both.where(*hello)))
        print("\nThe collection of the index of numbers as it is stored")
        both_numbered = Repository.numbers.with_children(Issue.numbers, PullRequest.numbers)
        isotone.show(store.all(both_numbered.where(*hello)), by=Repository.numbers)


if __name__ == "__main__":
    main(*sys.argv[1:])
