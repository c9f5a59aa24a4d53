"""An organization between its teams and its users.

Show an organization with its users in alphabetical order, and an organization with its teams, each in one query
that reads nothing else. One item collection serves both: teams sort before the organization, users after it.
The library chooses the prefixes, and refuses a kind that would sort between entities that are read together.

    python examples/08_two_relations.py [ADDRESS]
"""

from __future__ import annotations

import sys

import isotone
from isotone import Attr, Entity, Key, Stats, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall
from isotone.errors import UsageError

app = Table("organizations")


class Organization(Entity, table=app):
    name: Attr[str] = field()
    plan: Attr[str] = field()

    primary = Key("ORG", name).sort("ORG", name)


class Team(Entity, table=app):
    organization: Attr[str] = field()
    name: Attr[str] = field()

    primary = Organization.primary.children(organization).before("TEAM", name)


class User(Entity, table=app):
    organization: Attr[str] = field()
    name: Attr[str] = field(case="lower")

    primary = Organization.primary.children(organization).after("USER", name)


with_users = Organization.primary.with_children(User.primary)
with_teams = Organization.primary.with_children(Team.primary)


def cost(stats: Stats) -> str:
    return f"{stats.requests} request, {stats.scanned} items read"


# What many users would do: isotone simulate 08_two_relations
load = Workload("organizations", tables=[app])
organizations = load.population("organization", 100_000, activity=0.7)


@organizations.starts_with
def found(call: WorkloadCall) -> None:
    name = call.member.id
    call.store.put(Organization(name=name, plan="free"))
    for number in range(5):
        call.store.put(Team(organization=name, name=f"team {number}"))
        call.store.put(User(organization=name, name=f"user {number}"))


@load.action(by=organizations, per_day=50)
def show_users(call: WorkloadCall) -> None:
    call.store.family(with_users.where(Organization.name == call.member.id), children=25)


@load.action(by=organizations, per_day=1)
def invite(call: WorkloadCall) -> None:
    name = f"user {call.chance.randrange(10**6)}"
    call.store.put(User(organization=call.member.id, name=name))


def main(address: str = ":memory:") -> None:
    with isotone.connect(address) as store:
        store.create_tables(app)
        store.put(Organization(name="BERKSHIRE", plan="Enterprise"))
        for name in ["Warren", "charlie", "Ajit", "Greg"]:
            store.put(User(organization="BERKSHIRE", name=name))
        for name in ["Insurance", "Railways"]:
            store.put(Team(organization="BERKSHIRE", name=name))

        users = store.family(with_users.where(Organization.name == "BERKSHIRE"))
        print(f"The organization and its users: {cost(users.stats)}")
        isotone.show(users)

        teams = store.family(with_teams.where(Organization.name == "BERKSHIRE"))
        print(f"\nThe organization and its teams: {cost(teams.stats)}")
        isotone.show(teams)

        print("\nThe collection as it is stored")
        everybody = Organization.primary.with_children(Team.primary, User.primary)
        isotone.show(store.all(everybody.where(Organization.name == "BERKSHIRE")))

    print("\nA third kind, between the organization and its users")
    try:

        class Site(Entity, table=app):
            organization: Attr[str] = field()
            city: Attr[str] = field()

            primary = Organization.primary.children(organization).after("SITE", city)

    except UsageError as error:
        print(error)


if __name__ == "__main__":
    main(*sys.argv[1:])
