"""Collections of many kinds: the types of their lists, and kinds that they do not have."""
# fmt: off

from __future__ import annotations

from typing import Any, assert_type

from shop import Customer, Order

import isotone
from isotone import Attr, Entity, Key, Page, Table, field

table = Table("crm")


class Tenant(Entity, table=table):
    name: Attr[str] = field()
    primary = Key("TENANT", name).sort("A")


class Child(Entity):
    tenant: Attr[str] = field()
    number: Attr[int] = field(max=99)


class Member(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("B", Child.number)


class Invoice(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("C", Child.number)


class Credit(Invoice):
    reason: Attr[str] = field()


class Payment(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("D", Child.number)


class Ticket(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("E", Child.number)


class Note(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("F", Child.number)


class Visit(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("G", Child.number)


class Device(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("H", Child.number)


class Badge(Child, table=table):
    primary = Tenant.primary.children(Child.tenant).after("I", Child.number)


store = isotone.connect(":memory:")
mine = Tenant.name == "t1"
four = Tenant.primary.with_children(Member.primary, Invoice.primary, Payment.primary)
page = store.page(four.where(mine), size=100)
assert_type(page, Page[Tenant | Member | Invoice | Payment])
assert_type(page.of(Tenant), list[Tenant])
assert_type(page.of(Payment), list[Payment])
assert_type(page.of(Credit), list[Credit])
assert_type(store.first(four.where(mine)), Tenant | Member | Invoice | Payment | None)
page.of(Ticket)  # E: expected "KindOf[Tenant | Member | Invoice | Payment, Ticket]"
page.of(Entity)  # E: expected "KindOf[Tenant | Member | Invoice | Payment, Entity]"
page.of("Member")  # E: incompatible type "str"
members: list[Tenant] = page.of(Member)  # E: expected "KindOf[Tenant | Member | Invoice | Payment, Tenant]"
print(page.of(Member)[0].reason)  # E: "Member" has no attribute "reason"
store.family(four.where(mine)).of(Ticket)  # E: expected "KindOf[Tenant | Member | Invoice | Payment, Ticket]"
store.page(Member.primary.where(Member.tenant == "a")).of(Tenant)  # E: expected "KindOf[Member, Tenant]"
Tenant.primary.with_children(Member)  # E: No overload variant of "with_children"
Tenant.primary.with_children()  # E: require at least one argument
store.family(Member.primary.where(Member.tenant == "a"))  # E: expected "FamilyQuery[

eight = Tenant.primary.with_children(
    Member.primary, Invoice.primary, Payment.primary, Ticket.primary, Note.primary, Visit.primary, Device.primary
)
assert_type(store.page(eight.where(mine)).of(Device), list[Device])
store.page(eight.where(mine)).of(Badge)  # E: , Badge]"

# With more kinds, type checkers no longer know which ones a page has; a list of one is exact.
nine = Tenant.primary.with_children(
    Member.primary, Invoice.primary, Payment.primary, Ticket.primary, Note.primary, Visit.primary, Device.primary,
    Badge.primary,
)
assert_type(store.page(nine.where(mine)), Page[Tenant | Any])
assert_type(store.page(nine.where(mine)).of(Badge), list[Badge])
assert_type(store.page(isotone.merge(Order.primary.where(Order.customer_id == "a"))).of(Order), list[Order])
store.page(Order.primary.where(Order.customer_id == "a")).of(Customer)  # E: expected "KindOf[Order, Customer]"
