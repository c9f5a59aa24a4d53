"""Sample tables and chapters about reading less: ranges, composite keys, sparse indexes, filters with their cost."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

from isotone import Attr, Entity, Global, Index, Key, ManualClock, Store, Table, field
from isotone.demo.chapter import Chapter

# 11, 12  Orders

Status = Literal["PLACED", "SHIPPED", "CANCELLED", "CANCELLED_BY_SHOP"]

orders = Table(
    "orders",
    indexes={
        "status-time": Global("GSI1PK", "GSI1SK"),
        "time-status": Global("GSI2PK", "GSI2SK"),
    },
)


class Order(Entity, table=orders):
    customer: Attr[str] = field()
    ordered_at: Attr[datetime] = field()
    status: Attr[Status] = field()
    product: Attr[str] = field()

    primary = Key("CUSTOMER", customer).sort("ORDER", ordered_at)
    by_status = Index("status-time", "CUSTOMER", customer).sort(status, ordered_at)
    # isotone: ignore[ISO105] the reverse composite, to show what it wastes
    by_time = Index("time-status", "CUSTOMER", customer).sort(ordered_at, status)


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_STATUSES: Final[tuple[Status, ...]] = ("PLACED", "SHIPPED", "CANCELLED", "CANCELLED_BY_SHOP")
_PRODUCTS: Final = ("tea", "lamp", "cup", "chair", "desk", "spoon", "rug")
_JANUARY: Final[tuple[tuple[str, Status], ...]] = (
    ("2020-01-10T23:59:59.999999", "PLACED"),
    ("2020-01-11T00:00:00", "CANCELLED"),
    ("2020-01-20T12:00:00", "SHIPPED"),
    ("2020-02-01T00:00:00", "CANCELLED_BY_SHOP"),
    ("2020-02-01T00:00:00.000001", "CANCELLED"),
)
_THIRD_QUARTER: Final[tuple[tuple[str, Status], ...]] = (
    ("2019-06-30T23:59:59.999999", "CANCELLED"),
    ("2019-07-01T00:00:00", "CANCELLED"),
    ("2019-07-14T09:30:00", "SHIPPED"),
    ("2019-08-01T08:00:00", "CANCELLED_BY_SHOP"),
    ("2019-08-15T12:00:00", "CANCELLED"),
    ("2019-09-01T10:00:00", "PLACED"),
    ("2019-09-30T23:59:59.999999", "CANCELLED"),
    ("2019-10-01T00:00:00", "CANCELLED"),
)


def fill_orders(store: Store, clock: ManualClock) -> None:
    chance = random.Random(11)
    all_orders: list[Order] = []

    def add(customer: str, at: datetime, status: Status) -> None:
        product = chance.choice(_PRODUCTS)
        all_orders.append(Order(customer=customer, ordered_at=at, status=status, product=product))

    for at, status in _JANUARY:
        add("36ab55a589e4", _at(at), status)
    for number in range(60):  # before and after the days of the question
        year = 2019 if number % 2 else 2020
        day = datetime(year, 3, 1, 8, tzinfo=UTC) + timedelta(days=4 * number, hours=number % 9)
        add("36ab55a589e4", day, chance.choice(_STATUSES))
    for at, status in _THIRD_QUARTER:
        add("2b5a41c0", _at(at), status)
    for number in range(80):  # in all quarters; those of the third one are not cancelled
        day = datetime(2018, 11, 1, 9, tzinfo=UTC) + timedelta(days=7 * number, hours=number % 11)
        in_quarter = _at("2019-07-01") <= day < _at("2019-10-01")
        kinds = ("PLACED", "SHIPPED", "CANCELLED_BY_SHOP") if in_quarter else _STATUSES
        add("2b5a41c0", day, chance.choice(kinds))
    for customer in ("2b5a41", "36ab", "9f00e1d2", "77aa10b3"):
        for number in range(40):
            day = datetime(2019, 1, 2, 10, tzinfo=UTC) + timedelta(days=9 * number)
            add(customer, day, chance.choice(_STATUSES))
    store.put_many(all_orders)


def of_some_days(
    store: Store,
    customer: str = "36ab55a589e4",
    start: datetime = datetime(2020, 1, 11, tzinfo=UTC),
    end: datetime = datetime(2020, 2, 1, tzinfo=UTC),
) -> Any:
    return store.page(
        Order.primary.where(Order.customer == customer, Order.ordered_at.between(start, end)),
        size=100,
    )


def of_some_days_by_hand(
    client: Any,
    customer: str = "36ab55a589e4",
    start: datetime = datetime(2020, 1, 11, tzinfo=UTC),
    end: datetime = datetime(2020, 2, 1, tzinfo=UTC),
) -> Any:
    def stored(at: datetime) -> str:
        return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return client.query(
        TableName="orders",
        KeyConditionExpression="PK = :customer AND SK BETWEEN :start AND :end",
        ExpressionAttributeValues={
            ":customer": {"S": f"CUSTOMER#{customer}"},
            ":start": {"S": f"ORDER#{stored(start)}"},
            ":end": {"S": f"ORDER#{stored(end)}"},
        },
    )["Items"]


def of_some_days_by_scan(
    store: Store,
    customer: str = "36ab55a589e4",
    start: datetime = datetime(2020, 1, 11, tzinfo=UTC),
    end: datetime = datetime(2020, 2, 1, tzinfo=UTC),
) -> Any:
    mine = (Order.customer == customer) & Order.ordered_at.between(start, end)
    return store.page(Order.primary.scan().filter(mine), size=1_000)


def with_status(
    store: Store,
    customer: str = "2b5a41c0",
    status: Status = "CANCELLED",
    start: datetime = datetime(2019, 7, 1, tzinfo=UTC),
    end: datetime = datetime(2019, 9, 30, 23, 59, 59, 999_999, tzinfo=UTC),
) -> Any:
    return store.page(
        Order.by_status.where(
            Order.customer == customer,
            Order.status == status,
            Order.ordered_at.between(start, end),
        ),
        size=100,
    )


def with_status_by_hand(
    client: Any,
    customer: str = "2b5a41c0",
    status: Status = "CANCELLED",
    start: datetime = datetime(2019, 7, 1, tzinfo=UTC),
    end: datetime = datetime(2019, 9, 30, 23, 59, 59, 999_999, tzinfo=UTC),
) -> Any:
    # Note the separator after the status: without it, CANCELLED_BY_SHOP is a hit, too.
    def stored(at: datetime) -> str:
        return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return client.query(
        TableName="orders",
        IndexName="status-time",
        KeyConditionExpression="GSI1PK = :customer AND GSI1SK BETWEEN :start AND :end",
        ExpressionAttributeValues={
            ":customer": {"S": f"CUSTOMER#{customer}"},
            ":start": {"S": f"{status}#{stored(start)}"},
            ":end": {"S": f"{status}#{stored(end)}"},
        },
    )["Items"]


def with_status_by_filter(
    store: Store,
    customer: str = "2b5a41c0",
    status: Status = "CANCELLED",
    start: datetime = datetime(2019, 7, 1, tzinfo=UTC),
    end: datetime = datetime(2019, 9, 30, 23, 59, 59, 999_999, tzinfo=UTC),
) -> Any:
    quarter = Order.by_time.where(Order.customer == customer, Order.ordered_at.between(start, end))
    return store.page(quarter.filter(Order.status == status), size=100)


def the_reverse_composite(store: Store) -> Any:
    store.all(Order.by_time.where(Order.customer == "2b5a41c0", Order.status == "CANCELLED"))


# 13  Sparse by role

subscriptions = Table("subscriptions", indexes={"admins": Global("GSI1PK", "GSI1SK")})


class Member(Entity, table=subscriptions):
    organization: Attr[str] = field()
    name: Attr[str] = field(case="lower")
    role: Attr[Literal["Admin", "Member"]] = field(default="Member")

    primary = Key("ORG", organization).sort("USER", name)
    admins = Index("admins", "ORG", organization, when=role == "Admin").sort("ADMIN", name)


def fill_subscriptions(store: Store, clock: ManualClock) -> None:
    for organization, count, admins in (
        ("BERKSHIRE", 240, ("Warren", "Charlie")),
        ("FACEBOOK", 120, ("Mark",)),
    ):
        store.put_many(
            Member(organization=organization, name=f"user-{number:03}") for number in range(count)
        )
        store.put_many(
            Member(organization=organization, name=name, role="Admin") for name in admins
        )


def admins_of(store: Store, organization: str = "BERKSHIRE") -> Any:
    return store.page(Member.admins.where(Member.organization == organization), size=100)


def admins_of_by_hand(client: Any, organization: str = "BERKSHIRE") -> Any:
    # And on every promotion: SET GSI1PK, GSI1SK. On every demotion: REMOVE them. In the same write, always.
    return client.query(
        TableName="subscriptions",
        IndexName="admins",
        KeyConditionExpression="GSI1PK = :organization",
        ExpressionAttributeValues={":organization": {"S": f"ORG#{organization}"}},
    )["Items"]


def admins_by_filter(store: Store, organization: str = "BERKSHIRE") -> Any:
    everybody = Member.primary.where(Member.organization == organization)
    return store.page(everybody.filter(Member.role == "Admin"), size=1_000)


def promote(store: Store) -> Any:
    members = Member.primary.where(Member.organization == "BERKSHIRE")
    someone = store.first(members.filter(Member.role == "Member"))
    assert someone is not None
    store.update(Member, Member.role.set("Admin"), organization="BERKSHIRE", name=someone.name)


# 14  Sparse by kind

shop = Table("shop", indexes={"customers": Global("CUSTOMER", one_kind=True)})


class Customer(Entity, table=shop):
    id: Attr[int] = field(max=99_999)
    email: Attr[str] = field()

    primary = Key("CUSTOMER", id).sort("CUSTOMER")
    everyone = Index("customers", "CUSTOMER", id)


class Purchase(Entity, table=shop):
    customer: Attr[int] = field(max=99_999)
    number: Attr[int] = field(max=99_999)

    primary = Key("CUSTOMER", customer).sort("ORDER", number)


class Product(Entity, table=shop):
    id: Attr[int] = field(max=99_999)

    primary = Key("PRODUCT", id).sort("PRODUCT")


class Review(Entity, table=shop):
    product: Attr[int] = field(max=99_999)
    customer: Attr[int] = field(max=99_999)

    primary = Key("PRODUCT", product).sort("REVIEW", customer)


def fill_shop(store: Store, clock: ManualClock) -> None:
    """10,000 items, 500 of them customers."""
    items: list[Entity] = [
        Customer(id=number, email=f"customer-{number}@example.com") for number in range(500)
    ]
    items += [Purchase(customer=number % 500, number=number) for number in range(6_000)]
    items += [Product(id=number) for number in range(1_000)]
    items += [Review(product=number % 1_000, customer=number // 1_000) for number in range(2_500)]
    store.put_many(items)


def all_customers(store: Store) -> Any:
    return store.page(Customer.everyone.scan(), size=1_000)


def all_customers_by_hand(client: Any) -> Any:
    return client.scan(TableName="shop", IndexName="customers")["Items"]


def customers_by_scan(store: Store) -> Any:
    return store.page(Customer.primary.scan(), size=1_000)


def a_second_kind(store: Store) -> Any:
    class Supplier(Entity, table=shop):
        id: Attr[int] = field(max=99_999)

        primary = Key("SUPPLIER", id).sort("SUPPLIER")
        everyone = Index("customers", "SUPPLIER", id)


# 15  Filters

parcels = Table("parcels")


class Parcel(Entity, table=parcels):
    depot: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    status: Attr[Literal["PLACED", "SHIPPED"]] = field()
    label: Attr[str] = field()

    primary = Key("DEPOT", depot).sort("PARCEL", number)


def fill_parcels(store: Store, clock: ManualClock) -> None:
    store.put_many(
        Parcel(
            depot="north",
            number=number,
            status="SHIPPED" if number % 10 == 0 else "PLACED",
            label="█▌▐" * 300,
        )
        for number in range(1, 401)
    )


def exactly(store: Store, shipped: int = 25, units_at_most: int = 400) -> Any:
    north = Parcel.primary.where(Parcel.depot == "north")
    return store.page(
        north.filter(Parcel.status == "SHIPPED").max_units(units_at_most),
        size=shipped,
    )


def exactly_by_hand(client: Any, shipped: int = 25, units_at_most: int = 400) -> Any:
    # Limit counts what is read, not what is returned: a page may be empty, and the loop is yours.
    request: Any = {
        "TableName": "parcels",
        "KeyConditionExpression": "PK = :depot",
        "FilterExpression": "#status = :status",
        "ExpressionAttributeNames": {"#status": "status"},
        "ExpressionAttributeValues": {":depot": {"S": "DEPOT#north"}, ":status": {"S": "SHIPPED"}},
        "ReturnConsumedCapacity": "TOTAL",
    }
    found: list[Any] = []
    units = 0.0
    while len(found) < shipped and units < units_at_most:
        page = client.query(**request)
        found += page["Items"]
        units += page["ConsumedCapacity"]["CapacityUnits"]
        if "LastEvaluatedKey" not in page:
            break
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    return found[:shipped]


# 16  Client-side filtering

calendars = Table("calendars")


class Appointment(Entity, table=calendars):
    calendar: Attr[str] = field()
    starts: Attr[datetime] = field(precision="seconds")
    ends: Attr[datetime] = field()
    title: Attr[str] = field()

    primary = Key("CALENDAR", calendar).sort("APPOINTMENT", starts, title)


class Attachment(Entity, table=calendars):
    calendar: Attr[str] = field()
    name: Attr[str] = field()
    content: Attr[bytes] = field()

    primary = Key("ATTACHMENTS", calendar).sort("FILE", name)


def _hour(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 12, hour, minute, tzinfo=UTC)


def fill_calendars(store: Store, clock: ManualClock) -> None:
    for starts, ends, title in (
        (_hour(14), _hour(15), "Review"),
        (_hour(9), _hour(9, 30), "Stand-up"),
        (_hour(10), _hour(12), "Interview"),
        (_hour(11), _hour(11, 30), "Call"),
        (_hour(9, 30), _hour(10), "Planning"),
    ):
        store.put(Appointment(calendar="ann", starts=starts, ends=ends, title=title))
    for number in range(5):
        store.put(Attachment(calendar="ann", name=f"{number}.pdf", content=bytes(300_000)))


def free_slots(
    store: Store,
    calendar: str = "ann",
    opens: datetime = datetime(2026, 1, 12, 8, tzinfo=UTC),
    closes: datetime = datetime(2026, 1, 12, 18, tzinfo=UTC),
) -> Any:
    day = store.load(Appointment.primary.where(Appointment.calendar == calendar))
    return day.gaps(Appointment.starts, Appointment.ends, between=(opens, closes))


def free_slots_by_hand(
    client: Any,
    calendar: str = "ann",
    opens: datetime = datetime(2026, 1, 12, 8, tzinfo=UTC),
    closes: datetime = datetime(2026, 1, 12, 18, tzinfo=UTC),
) -> Any:
    page = client.query(
        TableName="calendars",
        KeyConditionExpression="PK = :calendar",
        ExpressionAttributeValues={":calendar": {"S": f"CALENDAR#{calendar}"}},
    )
    assert "LastEvaluatedKey" not in page  # otherwise the rest of the day is missing, silently
    free, reached = [], opens
    for item in page["Items"]:
        starts = datetime.fromisoformat(item["SK"]["S"].split("#")[1])
        ends = datetime.fromisoformat(item["ends"]["S"])
        if starts > reached:
            free.append((reached, starts))
        reached = max(reached, ends)
    return [*free, (reached, closes)] if reached < closes else free


def too_much_to_load(store: Store) -> Any:
    store.load(Attachment.primary.where(Attachment.calendar == "ann"))


CHAPTERS: Final = (
    Chapter(
        "sort-key-range",
        11,
        "Filtering",
        "Read the days you need, and nothing else",
        "A customer's orders from 11 January to 1 February. The partition key picks the customer, the sort key the range: "
        "what lies outside is never read, and never paid. Scanning with a filter finds the same orders, at another price.",
        ("orders", "Order"),
        of_some_days,
        of_some_days_by_hand,
        instead=of_some_days_by_scan,
        instead_title="a scan with a filter",
    ),
    Chapter(
        "composite-key",
        12,
        "Filtering",
        "Cancelled orders of a quarter, as neighbours",
        "Two conditions at once: a status and a range of time. With the status before the time in an index, exactly these "
        "orders lie side by side. The other way around they are scattered, and Isotone says so before you pay for it.",
        ("orders", "Order"),
        with_status,
        with_status_by_hand,
        instead=with_status_by_filter,
        instead_title="time before status, and a filter",
        refuse=the_reverse_composite,
    ),
    Chapter(
        "sparse-by-role",
        13,
        "Filtering",
        "Two admins among hundreds of users",
        "An item without the index's attributes is not in the index. `when=` declares which items are: a promotion writes the "
        "entry, a demotion removes it, in the same write. Reading all admins reads admins alone.",
        ("subscriptions", "Member"),
        admins_of,
        admins_of_by_hand,
        instead=admins_by_filter,
        instead_title="a filter over all users",
        act=promote,
        act_title="Promote a user",
    ),
    Chapter(
        "sparse-by-kind",
        14,
        "Filtering",
        "500 customers among 10,000 items",
        "One table holds orders, products, reviews and customers. A scan for customers would read them all. An index that "
        "only customers have attributes for reads 500, and `one_kind=True` keeps others out for good.",
        ("shop", "Customer", "Purchase"),
        all_customers,
        all_customers_by_hand,
        instead=customers_by_scan,
        instead_title="a scan of the table",
        refuse=a_second_kind,
    ),
    Chapter(
        "filters",
        15,
        "Filtering",
        "A filter, with its price on it",
        "A filter drops items after they were read and charged. Sometimes it is still right, so Isotone shows what it "
        "wasted, and reports a poor one together with the index that would help. “Exactly 25 shipped” is one call with a "
        "budget.",
        ("parcels", "Parcel"),
        exactly,
        exactly_by_hand,
    ),
    Chapter(
        "client-side",
        16,
        "Filtering",
        "Load a small collection once",
        "A day's calendar is a few hundred bytes: read it whole, then filter and sort it in memory as you like. Free slots "
        "are the gaps between appointments. A collection too large for this is refused with its size.",
        ("calendars", "Appointment"),
        free_slots,
        free_slots_by_hand,
        columns=("from", "to"),
        refuse=too_much_to_load,
    ),
)

SAMPLES: Final = (
    (orders, fill_orders),
    (subscriptions, fill_subscriptions),
    (shop, fill_shop),
    (parcels, fill_parcels),
    (calendars, fill_calendars),
)
