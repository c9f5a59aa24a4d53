"""Tables made by hand: their items are written through the client, as another program would.

Each function creates one table, fills it, and returns its name. `TABLES` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import isotone

Fill = Callable[["isotone.Client"], str]

OWNERS = ("ann", "bo", "cem")


def wire(value: Any) -> Any:
    """A value in DynamoDB's form; one that is in it already stays."""
    if isinstance(value, dict):
        return value
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, str):
        return {"S": value}
    return {"NULL": True} if value is None else {"N": str(value)}


def put(client: isotone.Client, table: str, **attributes: Any) -> None:
    item = {name: wire(value) for name, value in attributes.items()}
    client.put_item(TableName=table, Item=item)


def create(
    client: isotone.Client,
    name: str,
    partition: str = "PK",
    sort: str | None = "SK",
    *,
    indexes: dict[str, tuple[str, ...]] | None = None,
    local: dict[str, str] | None = None,
    types: dict[str, str] | None = None,
    ttl: str | None = None,
) -> str:
    """Create a table. An index has a partition key, and perhaps a sort key."""
    keys = {None: (partition, sort) if sort else (partition,), **(indexes or {})}
    keys |= {index: (partition, attribute) for index, attribute in (local or {}).items()}  # type: ignore[misc]
    names = dict.fromkeys(attribute for key in keys.values() for attribute in key)
    request: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            {"AttributeName": each, "AttributeType": (types or {}).get(each, "S")} for each in names
        ],
        "KeySchema": schema(keys[None]),
    }
    for member, given in (("GlobalSecondaryIndexes", indexes), ("LocalSecondaryIndexes", local)):
        if given:
            request[member] = [
                {
                    "IndexName": index,
                    "KeySchema": schema(keys[index]),  # type: ignore[index]
                    "Projection": {"ProjectionType": "ALL"},
                }
                for index in given
            ]
    client.create_table(**request)
    if ttl is not None:
        specification = {"Enabled": True, "AttributeName": ttl}
        client.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)
    return name


def schema(key: tuple[str, ...]) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(key, ("HASH", "RANGE"), strict=False)
    ]


def github(client: isotone.Client) -> str:
    """Single-table design with padded numbers, and their differences from the greatest in an index."""
    name = create(
        client,
        "GitHubTable",
        indexes={"GSI1": ("GSI1PK", "GSI1SK"), "GSI2": ("GSI2PK", "GSI2SK")},
    )
    for owner, repo in (("alexdebrie", "dynamodb-book"), ("octo", "hello")):
        key = f"REPO#{owner}#{repo}"
        own = {"RepoOwner": owner, "RepoName": repo}
        indexed = {"GSI1PK": key, "GSI1SK": "REPO", "GSI2PK": key, "GSI2SK": "REPO"}
        put(client, name, PK=key, SK=key, Type="Repo", StarCount=3, **own, **indexed)
        for number in (4, 12, 157):
            issue = {"GSI1PK": key, "GSI1SK": f"#ISSUE#{99_999_999 - number:08}", "Type": "Issue"}
            put(client, name, PK=key, SK=f"ISSUE#{number:08}", IssueNumber=number, **own, **issue)
            pull = {"GSI1PK": key, "GSI1SK": f"PR#{99_999_999 - number:08}", "Type": "PullRequest"}
            text = f"PR#{owner}#{repo}#{number:08}"
            put(client, name, PK=text, SK=text, PRNumber=number, **own, **pull)
        for user in OWNERS:
            put(client, name, PK=key, SK=f"STAR#{user}", Type="Star", UserName=user, **own)
            fork = {"GSI2PK": key, "GSI2SK": f"FORK#{user}", "Type": "Fork", "ForkOwner": user}
            text = f"FORK#{owner}#{repo}#{user}"
            put(client, name, PK=text, SK=text, **own, **fork)
    return name


def shop(client: isotone.Client) -> str:
    """E-commerce: unpadded numbers, several separators in one key, no tag."""
    name = create(client, "shop", indexes={"GSI1": ("GSI1PK", "GSI1SK")})
    for user in range(1, 13):
        key = f"USER_{user}"
        put(client, name, PK=key, SK="profile", user_id=user, email=f"u{user}@x.com")
        for number in range(1, 5):
            day, state = f"2020-01-{user:02}", "sent" if number % 2 else "open"
            put(
                client,
                name,
                PK=key,
                SK=f"order|{day}|{number}",
                user_id=user,
                order_number=number,
                placed_on=day,
                state=state,
                total={"N": f"{user}.5"},
                lines={"L": [{"M": {"sku": {"S": f"a{user}"}, "count": {"N": "2"}}}]},
                GSI1PK=f"orders::{state}",
                GSI1SK=f"{day}#{user}/{number}",
            )
    return name


def untagged(client: isotone.Client) -> str:
    """No tags, and users and organizations whose names are only in the keys."""
    name = create(client, "app")
    for org in ("acme", "globex", "initech"):
        put(client, name, PK=f"ORG#{org}", SK=f"ORG#{org}", plan="free", seats=5)
        for user in OWNERS:
            put(client, name, PK=f"ORG#{org}", SK=f"USER#{user}", role="member", age=30)
            put(client, name, PK=f"USER#{user}", SK="PROFILE", bio="hello", joined="2020-02-01")
    return name


def orders(client: isotone.Client) -> str:
    """A composite sort key of an index, `OrderStatusDate`, from two attributes: filtering strategies."""
    name = create(
        client,
        "CustomerOrders",
        "CustomerId",
        "OrderTime",
        indexes={"OrderStatusDateGSI": ("CustomerId", "OrderStatusDate")},
    )
    for customer in ("36ab55a589e4", "2b5a41c0"):
        for number in range(1, 9):
            time = f"2020-01-{number:02}T00:00:00.000000"
            status = ("SHIPPED", "CANCELLED", "PLACED")[number % 3]
            put(
                client,
                name,
                CustomerId=customer,
                OrderTime=time,
                OrderStatus=status,
                OrderStatusDate=f"{status}#{time}",
                Amount={"N": f"{number}.25"},
            )
    return name


def subscriptions(client: isotone.Client) -> str:
    """A sparse index of administrators, and one of a single kind: filtering strategies."""
    name = create(
        client,
        "subscriptions",
        indexes={"GSI1": ("GSI1PK", "GSI1SK"), "CustomerIndex": ("CustomerIndexId",)},
    )
    for org in ("berkshire", "facebook"):
        key = f"ORG#{org}"
        put(client, name, PK=key, SK=key, OrgName=org, GSI1PK=key, GSI1SK=key, Plan="Pro")
        for number, user in enumerate(OWNERS):
            role = "Admin" if number == 0 else "Member"
            admin = {"GSI1PK": key, "GSI1SK": "Admin"} if role == "Admin" else {}
            put(
                client,
                name,
                PK=key,
                SK=f"USER#{user}",
                OrgName=org,
                UserName=user,
                Role=role,
                **admin,
            )
        for number in range(3):
            put(
                client,
                name,
                PK=f"CUSTOMER#{org}{number}",
                SK=f"CUSTOMER#{org}{number}",
                CustomerIndexId=f"{org}{number}",
                Mail="a@b.c",
            )
    return name


def tickets(client: isotone.Client) -> str:
    """Most recently updated tickets: an index by a time that changes: sorting strategies."""
    name = create(client, "tickets", indexes={"GSI1": ("GSI1PK", "UpdatedAt")})
    for org in ("acme", "globex"):
        for number in range(1, 7):
            put(
                client,
                name,
                PK=f"ORG#{org.upper()}",
                SK=f"TICKET#0ujsswThIGTUYm2K8FjOOfXtY{number}K",
                OrgName=org,
                TicketId=f"0ujsswThIGTUYm2K8FjOOfXtY{number}K",
                GSI1PK=f"ORG#{org.upper()}",
                UpdatedAt=f"2020-03-{number:02}T10:20:30.000Z",
                Title="help",
            )
    return name


def trending(client: isotone.Client) -> str:
    """A sorted set: a local index of points."""
    name = create(
        client,
        "Trending",
        "day",
        "song_id",
        local={"points-index": "points"},
        types={"points": "N"},
    )
    for day in ("20130419", "20130420"):
        for song, points in (("1", "1.1"), ("2", "0.3"), ("3", "0.7"), ("4", "0.9")):
            put(client, name, day=day, song_id=f"song_id:{song}", points={"N": points})
    return name


def speed_of_service(client: isotone.Client) -> str:
    """Cars by time, and a board by the average of a quarter of an hour, with six digits."""
    name = create(client, "speed", indexes={"gsi-1": ("gsipk-1", "gsisk-1")})
    for store in range(1, 6):
        for minute in range(10):
            put(
                client,
                name,
                PK=f"{store:06}",
                SK=f"2022-08-13 00:{minute:02}:00#LANE{minute % 2 + 1}",
                menu1=30 + minute,
                window=20,
            )
        put(
            client,
            name,
            **{"PK": "LEADERBOARD", "SK": f"{store:06}", "gsipk-1": "LEADERBOARD"},
            **{"gsisk-1": f"2022-08-13#2#{100 + store:06}", "OTDAverage": 100 + store},
        )
    return name


def feed(client: isotone.Client) -> str:
    """A feed by ticks that count down from the greatest 64-bit number."""
    name = create(
        client, "ticks_test_table", "partition_key", "range_key", types={"range_key": "N"}
    )
    for user in OWNERS:
        for tick in range(5):
            ticks = 2**63 - 1 - (1_433_149_200_000_000_000 + tick * 77_777_777)
            put(client, name, partition_key=user, range_key=ticks, content=f"post {tick}")
    return name


def electro(client: isotone.Client) -> str:
    """Keys as ElectroDB writes them: `$service#id_…`, in lower case, and its own attributes."""
    name = create(
        client, "electro", "pk", "sk", indexes={"gsi1pk-gsi1sk-index": ("gsi1pk", "gsi1sk")}
    )
    own = {"__edb_v__": "1"}
    for number in range(1, 5):
        employee, office = f"0EA{number}", f"Office {number % 2}"
        put(
            client,
            name,
            pk=f"$taskapp#employeeid_{employee.lower()}",
            sk="$employee_1",
            gsi1pk=f"$taskapp#office_{office.lower()}",
            gsi1sk=f"$employee_1#employeeid_{employee.lower()}",
            employeeId=employee,
            office=office,
            __edb_e__="employee",
            **own,
        )
        for task in ("t1", "t2"):
            project = f"P-{number}"
            put(
                client,
                name,
                pk=f"$taskapp#taskid_{task}{number}",
                sk=f"$task_1#project_{project.lower()}#employeeid_{employee.lower()}",
                taskId=f"{task}{number}",
                project=project,
                employeeId=employee,
                __edb_e__="task",
                **own,
            )
    return name


def threads(client: isotone.Client) -> str:
    """One type in a table, with keys that are its own attributes, as PynamoDB writes it; expiring items."""
    name = create(
        client,
        "Thread",
        "forum_name",
        "subject",
        indexes={"view_index": ("forum_name", "views")},
        types={"views": "N"},
        ttl="expires",
    )
    for number in range(12):
        put(
            client,
            name,
            forum_name=f"forum{number % 3}",
            subject=f"Subject {number}",
            views=number * 10,
            tags={"SS": ["a", "b"]},
            is_open=number % 2 == 0,
            last_post={"S": f"2021-05-{number + 1:02}T12:00:00.000000+0000"},
            created_at=1_600_000_000 + number,
            settings={"M": {"theme": {"S": "dark"}, "size": {"N": str(number)}}},
            answer=None if number % 4 else "yes",
            expires=4_000_000_000 + number,
        )
    return name


def measurements(client: isotone.Client) -> str:
    """Times in many forms: milliseconds since 1970 in a key, a day without dashes, an UUID."""
    name = create(client, "measurements", indexes={"GSI1": ("GSI1PK", "GSI1SK")})
    for sensor in range(1, 4):
        identity = f"018f3b1e-9f00-7000-8000-00000000000{sensor}"
        for hour in range(5):
            seconds = 1_578_700_800 + hour * 3600
            put(
                client,
                name,
                PK=f"SENSOR#{identity}",
                SK=f"READING#{seconds}000",
                sensor_id=identity,
                at=seconds,
                value={"N": f"{hour}.125"},
                day="2020-01-11",
                GSI1PK="DAY#20200111",
                GSI1SK=f"{9_999_999_999 - seconds}#{identity}",
                kind="reading",
            )
        put(
            client,
            name,
            PK=f"SENSOR#{identity}",
            SK="META",
            sensor_id=identity,
            place="roof",
            kind="sensor",
        )
    return name


TABLES: dict[str, Fill] = {
    fill.__name__: fill
    for fill in (
        github,
        shop,
        untagged,
        orders,
        subscriptions,
        tickets,
        trending,
        speed_of_service,
        feed,
        electro,
        threads,
        measurements,
    )
}
