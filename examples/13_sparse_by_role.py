"""The administrators of an organization, among thousands of users.

List all admins of an organization without reading its other users. Only admins have an entry in the index:
`when=` declares this, and the library writes the index attributes with a promotion and removes them with a
demotion, in the same write.

    python examples/13_sparse_by_role.py [ADDRESS]
"""

from __future__ import annotations

import sys
from typing import Literal

import isotone
from isotone import Attr, Entity, Global, Index, Key, Observation, Table, field
from isotone.advisor.simulation import Workload, WorkloadCall

saas = Table("subscriptions", indexes={"admins": Global("GSI1PK", "GSI1SK")})


class User(Entity, table=saas):
    organization: Attr[str] = field()
    name: Attr[str] = field(case="lower")
    role: Attr[Literal["Admin", "Member"]] = field(default="Member")

    primary = Key("ORG", organization).sort("USER", name)
    admins = Index("admins", "ORG", organization, when=role == "Admin").sort("ADMIN", name)


# What many users would do: isotone simulate 13_sparse_by_role
load = Workload("subscriptions", tables=[saas])
organizations = load.population("organization", 50_000, activity=0.7)


@organizations.starts_with
def subscribe(call: WorkloadCall) -> None:
    call.store.put(User(organization=call.member.id, name="ann", role="Admin"))
    for number in range(20):
        call.store.put(User(organization=call.member.id, name=f"user {number}"))


@load.action(by=organizations, per_day=10)
def find_admins(call: WorkloadCall) -> None:
    call.store.page(User.admins.where(User.organization == call.member.id), size=10)


@load.action(by=organizations, per_day=2)
def invite(call: WorkloadCall) -> None:
    name = f"user {call.chance.randrange(10**6)}"
    call.store.put(User(organization=call.member.id, name=name))


def main(address: str = ":memory:") -> None:
    sent: list[Observation] = []
    with isotone.connect(address, observe=[isotone.at_end(sent.append)]) as store:
        store.create_tables(saas)
        for number in range(50):
            store.put(User(organization="BERKSHIRE", name=f"user-{number:02}"))
        store.put(User(organization="BERKSHIRE", name="Warren", role="Admin"))
        store.put(User(organization="BERKSHIRE", name="Charlie", role="Admin"))
        store.put(User(organization="FACEBOOK", name="Mark", role="Admin"))

        admins = User.admins.where(User.organization == "BERKSHIRE")

        page = store.page(admins, size=100)
        print(f"All admins of BERKSHIRE: {page.stats.scanned} items read")
        isotone.show(page, by=User.admins)

        sent.clear()
        store.update(User, User.role.set("Admin"), organization="BERKSHIRE", name="user-07")
        print(f"\nuser-07 is promoted, by {' and '.join(each.operation for each in sent)}")
        isotone.show(store.all(admins), by=User.admins)

        sent.clear()
        store.update(User, User.role.set("Member"), organization="BERKSHIRE", name="Charlie")
        print(f"\nCharlie is demoted, by {' and '.join(each.operation for each in sent)}")
        isotone.show(store.all(admins), by=User.admins)


if __name__ == "__main__":
    main(*sys.argv[1:])
