"""Sample tables and chapters about order: text, numbers, times, ids, directions, parents with their children."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Final, Literal

from isotone import (
    ULID,
    Attr,
    Entity,
    Global,
    Index,
    Key,
    ManualClock,
    Number,
    Store,
    Table,
    created_id,
    desc,
    field,
    updated,
)
from isotone.demo.chapter import Chapter

# 1  Text order

words = Table("words", partition="book", sort="word")


class Word(Entity, table=words):
    book: Attr[str] = field()
    word: Attr[str] = field()

    primary = Key(book).sort(word)


def fill_words(store: Store, clock: ManualClock) -> None:
    for word in ("😀", "～", "é", "cherry", "apple", "Banana", "#1"):
        store.put(Word(book="dictionary", word=word))


def in_byte_order(store: Store, book: str = "dictionary") -> Any:
    return store.page(Word.primary.where(Word.book == book), size=100)


def in_byte_order_by_hand(client: Any, book: str = "dictionary") -> Any:
    return client.query(
        TableName="words",
        KeyConditionExpression="book = :book",
        ExpressionAttributeValues={":book": {"S": book}},
    )["Items"]


# 1  Any case

names = Table("names")


class Station(Entity, table=names):
    city: Attr[str] = field(case="lower")
    name: Attr[str] = field(case="casefold")

    primary = Key("CITY", city).sort("STATION", name)


def fill_names(store: Store, clock: ManualClock) -> None:
    for name in (
        "Hauptstraße",
        "Alexanderplatz",
        "Zoo",
        "ADENAUERPLATZ",
        "bellevue",
        "Museumsinsel",
    ):
        store.put(Station(city="Berlin", name=name))
    for name in ("Odeonsplatz", "Marienplatz", "karlsplatz"):
        store.put(Station(city="München", name=name))


def in_any_case(store: Store, city: str = "BERLIN", name: str = "HAUPTSTRASSE") -> Any:
    return store.page(
        Station.primary.where(Station.city == city, Station.name == name),
        size=10,
    )


def in_any_case_by_hand(client: Any, city: str = "BERLIN", name: str = "HAUPTSTRASSE") -> Any:
    # Every writer and every reader must remember to fold, and in the same way.
    return client.query(
        TableName="names",
        KeyConditionExpression="PK = :pk AND SK = :sk",
        ExpressionAttributeValues={
            ":pk": {"S": f"CITY#{city.lower()}"},
            ":sk": {"S": f"STATION#{name.casefold()}"},
        },
    )["Items"]


# 2  Numbers

measurements = Table("measurements", partition="series", sort=Number("value"))


class Measurement(Entity, table=measurements):
    series: Attr[str] = field()
    value: Attr[Decimal] = field()

    primary = Key(series).sort(value)


_NUMBERS: Final = "10 2 -2 0 -1.5 1e-130 -1e125 123456789012345678901234567890.12345678"


def fill_measurements(store: Store, clock: ManualClock) -> None:
    for text in _NUMBERS.split():
        store.put(Measurement(series="a", value=Decimal(text)))


def by_value(store: Store, series: str = "a", at_least: Decimal = Decimal("-1e125")) -> Any:
    return store.page(
        Measurement.primary.where(Measurement.series == series, Measurement.value >= at_least),
        size=100,
    )


def by_value_by_hand(client: Any, series: str = "a", at_least: Decimal = Decimal("-1e125")) -> Any:
    return client.query(
        TableName="measurements",
        KeyConditionExpression="series = :series AND #value >= :least",
        ExpressionAttributeNames={"#value": "value"},
        ExpressionAttributeValues={":series": {"S": series}, ":least": {"N": str(at_least)}},
    )["Items"]


def a_number_without_a_width(store: Store) -> Any:
    class Invoice(Entity, table=names):
        number: Attr[int] = field()

        primary = Key("INVOICES").sort("INVOICE", number)


# 3  Time

events = Table("events")


class Event(Entity, table=events):
    calendar: Attr[str] = field()
    at: Attr[datetime] = field()
    name: Attr[str] = field()

    primary = Key("CALENDAR", calendar).sort("AT", at)


def fill_events(store: Store, clock: ManualClock) -> None:
    tokyo, new_york = timezone(timedelta(hours=9)), timezone(timedelta(hours=-5))
    half_past = datetime(2020, 1, 11, 0, 30, tzinfo=UTC)
    store.put_many(
        [
            Event(calendar="world", name="New York", at=datetime(2020, 1, 10, 20, tzinfo=new_york)),
            Event(calendar="world", name="London", at=half_past),
            Event(calendar="world", name="London + 1 µs", at=half_past + timedelta(microseconds=1)),
            Event(calendar="world", name="London + 0.5 s", at=half_past + timedelta(seconds=0.5)),
            Event(calendar="world", name="Tokyo", at=datetime(2020, 1, 11, 9, tzinfo=tokyo)),
            *(
                Event(
                    calendar="world", name=f"Round {hour}", at=half_past + timedelta(hours=7 * hour)
                )
                for hour in range(1, 40)
            ),
        ]
    )


def between_two_instants(
    store: Store,
    start: datetime = datetime(2020, 1, 11, tzinfo=UTC),
    end: datetime = datetime(2020, 1, 11, 0, 30, tzinfo=UTC),
) -> Any:
    return store.page(
        Event.primary.where(Event.calendar == "world", Event.at.between(start, end)),
        size=100,
    )


def between_two_instants_by_hand(
    client: Any,
    start: datetime = datetime(2020, 1, 11, tzinfo=UTC),
    end: datetime = datetime(2020, 1, 11, 0, 30, tzinfo=UTC),
) -> Any:
    # One width, one zone, everywhere: isoformat() alone leaves out microseconds that are zero.
    def stored(at: datetime) -> str:
        return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    return client.query(
        TableName="events",
        KeyConditionExpression="PK = :calendar AND SK BETWEEN :start AND :end",
        ExpressionAttributeValues={
            ":calendar": {"S": "CALENDAR#world"},
            ":start": {"S": f"AT#{stored(start)}"},
            ":end": {"S": f"AT#{stored(end)}"},
        },
    )["Items"]


def a_time_without_a_zone(store: Store) -> Any:
    store.put(Event(calendar="world", name="Lunch", at=datetime(2020, 1, 11, 12, 30)))


# 4  Sortable ids

logs = Table("logs")


class Line(Entity, table=logs):
    service: Attr[str] = field()
    id: Attr[ULID] = created_id()
    text: Attr[str] = field()

    primary = Key("SERVICE", service).sort("LINE", id)


def fill_logs(store: Store, clock: ManualClock) -> None:
    steps = ("started", "read the list", "sent 3 mails", "slept", "ended")
    for service in ("mailer", "biller"):
        store.put_many(
            Line(service=service, text=f"run {number}: {step}")
            for number in range(1, 21)
            for step in steps
        )


def newest_lines(store: Store, service: str = "mailer", lines: int = 5) -> Any:
    return store.page(
        Line.primary.where(Line.service == service).newest_first(),
        size=lines,
    )


def newest_lines_by_hand(client: Any, service: str = "mailer", lines: int = 5) -> Any:
    # And somewhere else: an id generator that keeps its order within a millisecond.
    return client.query(
        TableName="logs",
        KeyConditionExpression="PK = :service AND begins_with(SK, :line)",
        ExpressionAttributeValues={
            ":service": {"S": f"SERVICE#{service}"},
            ":line": {"S": "LINE#"},
        },
        ScanIndexForward=False,
        Limit=lines,
    )["Items"]


# 5  Most recently updated

tickets = Table("tickets", indexes={"recent": Global("BOARD", "UPDATED")})


class Ticket(Entity, table=tickets):
    board: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    title: Attr[str] = field()
    updated_at: Attr[datetime] = updated()

    primary = Key("BOARD", board).sort("TICKET", number)
    recent = Index("recent", "BOARD", board).sort(updated_at)


def fill_tickets(store: Store, clock: ManualClock) -> None:
    titles = ("Printer", "Password", "Projector", "Badge", "Laptop", "Phone", "Heating", "Coffee")
    for number in range(1, 121):
        title = f"{titles[number % 8]} {('is broken', 'is lost', 'is too loud')[number % 3]}"
        store.put(Ticket(board="help", number=number * 37 % 121 or 121, title=title))
        clock.advance(timedelta(minutes=47))


def most_recent(store: Store, board: str = "help", tickets: int = 5) -> Any:
    return store.page(
        Ticket.recent.where(Ticket.board == board).newest_first(),
        size=tickets,
    )


def most_recent_by_hand(client: Any, board: str = "help", tickets: int = 5) -> Any:
    # And in every update: SET updated_at = :now, UPDATED = :now_as_stored. Forget it once, and the order lies.
    return client.query(
        TableName="tickets",
        IndexName="recent",
        KeyConditionExpression="BOARD = :board",
        ExpressionAttributeValues={":board": {"S": f"BOARD#{board}"}},
        ScanIndexForward=False,
        Limit=tickets,
    )["Items"]


def touch_the_oldest(store: Store) -> Any:
    oldest = store.first(Ticket.recent.where(Ticket.board == "help"))
    assert oldest is not None
    store.update(Ticket, Ticket.title.set("Looked at again"), board="help", number=oldest.number)


def change_the_key(store: Store) -> Any:
    store.update(Ticket, Ticket.number.set(400), board="help", number=1)


# 6  Both directions

scores = Table("scores")


class Score(Entity, table=scores):
    game: Attr[str] = field()
    points: Attr[int] = field(max=999_999)
    player: Attr[str] = field()

    primary = Key("GAME", game).sort(desc(points), player)


def fill_scores(store: Store, clock: ManualClock) -> None:
    chance = random.Random(6)
    players = ("ann", "bob", "cem", "dot", "eve", "fay", "gus", "hal", "ivy", "joe")
    store.put_many(
        Score(game=game, points=chance.randrange(1_000, 250_000), player=player)
        for game in ("tetris", "pong")
        for player in players
        for _ in range(6)
    )


def highest(store: Store, game: str = "tetris", players: int = 5) -> Any:
    return store.page(Score.primary.where(Score.game == game), size=players)


def highest_by_hand(client: Any, game: str = "tetris", players: int = 5) -> Any:
    # The stored key is 999999 − points, padded: every writer subtracts, every reader subtracts again.
    return client.query(
        TableName="scores",
        KeyConditionExpression="PK = :game",
        ExpressionAttributeValues={":game": {"S": f"GAME#{game}"}},
        Limit=players,
    )["Items"]


# 7  Parent with children

telemetry = Table("telemetry")


class Sensor(Entity, table=telemetry):
    id: Attr[str] = field()
    place: Attr[str] = field()

    primary = Key("SENSOR", id).sort("SENSOR")


class Reading(Entity, table=telemetry):
    sensor: Attr[str] = field()
    at: Attr[datetime] = field(precision="seconds")
    celsius: Attr[Decimal] = field()

    primary = Sensor.primary.children(sensor).before("READING", at)


def fill_telemetry(store: Store, clock: ManualClock) -> None:
    chance = random.Random(7)
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    for sensor in ("roof", "attic", "cellar"):
        store.put(Sensor(id=sensor, place=f"The {sensor}"))
        store.put_many(
            Reading(
                sensor=sensor,
                at=begin + timedelta(minutes=30 * number),
                celsius=Decimal(chance.randint(-30, 180)) / 10,
            )
            for number in range(240)
        )


def with_newest_readings(store: Store, sensor: str = "roof", readings: int = 4) -> Any:
    return store.family(
        Sensor.primary.with_children(Reading.primary).where(Sensor.id == sensor),
        children=readings,
    )


def with_newest_readings_by_hand(client: Any, sensor: str = "roof", readings: int = 4) -> Any:
    # It works because "READING…" < "SENSOR". Rename one of them, and it does not.
    return client.query(
        TableName="telemetry",
        KeyConditionExpression="PK = :sensor AND SK <= :parent",
        ExpressionAttributeValues={
            ":sensor": {"S": f"SENSOR#{sensor}"},
            ":parent": {"S": "SENSOR"},
        },
        ScanIndexForward=False,
        Limit=readings + 1,
    )["Items"]


# 8  Two relations

organizations = Table("organizations")


class Organization(Entity, table=organizations):
    name: Attr[str] = field()
    plan: Attr[str] = field()

    primary = Key("ORG", name).sort("ORG", name)


class Team(Entity, table=organizations):
    organization: Attr[str] = field()
    name: Attr[str] = field()

    primary = Organization.primary.children(organization).before("TEAM", name)


class User(Entity, table=organizations):
    organization: Attr[str] = field()
    name: Attr[str] = field(case="lower")

    primary = Organization.primary.children(organization).after("USER", name)


_PEOPLE: Final = [
    "Ajit",
    "Becky",
    "Charlie",
    "Dhruv",
    "Elena",
    "Farid",
    "Greg",
    "Hana",
    "Ines",
    "Jorge",
    "Warren",
]


def fill_organizations(store: Store, clock: ManualClock) -> None:
    for name, plan, people in (("BERKSHIRE", "Enterprise", _PEOPLE), ("ACME", "Free", _PEOPLE[:3])):
        store.put(Organization(name=name, plan=plan))
        store.put_many(User(organization=name, name=person) for person in people)
        store.put_many(
            Team(organization=name, name=team) for team in ("Insurance", "Railways", "Energy")
        )


def organization_with(
    store: Store,
    organization: str = "BERKSHIRE",
    relation: Literal["users", "teams"] = "users",
) -> Any:
    children: Any = {"users": User.primary, "teams": Team.primary}[relation]
    both = Organization.primary.with_children(children)
    return store.family(both.where(Organization.name == organization))


def organization_with_by_hand(
    client: Any,
    organization: str = "BERKSHIRE",
    relation: Literal["users", "teams"] = "users",
) -> Any:
    # The prefix "#" puts teams before the organization. It must be remembered wherever a key is built.
    operator = {"users": ">=", "teams": "<="}[relation]
    key = f"ORG#{organization}"
    return client.query(
        TableName="organizations",
        KeyConditionExpression=f"PK = :key AND SK {operator} :key",
        ExpressionAttributeValues={":key": {"S": key}},
        ScanIndexForward=relation == "users",
    )["Items"]


def a_kind_between_them(store: Store) -> Any:
    class Site(Entity, table=organizations):
        organization: Attr[str] = field()
        city: Attr[str] = field()

        primary = Organization.primary.children(organization).after("SITE", city)


# 9  Zero-padding

issues = Table("issues")


class PaddedIssue(Entity, table=issues):
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999_999)
    title: Attr[str] = field()

    primary = Key("REPO", repository).sort("ISSUE", number)


def fill_issues(store: Store, clock: ManualClock) -> None:
    store.put_many(
        PaddedIssue(repository="hello", number=number, title=f"Issue {number}")
        for number in range(1, 158)
    )


def from_number(store: Store, first: int = 2, last: int = 10) -> Any:
    return store.page(
        PaddedIssue.primary.where(
            PaddedIssue.repository == "hello", PaddedIssue.number.between(first, last)
        ),
        size=100,
    )


def from_number_by_hand(client: Any, first: int = 2, last: int = 10) -> Any:
    return client.query(
        TableName="issues",
        KeyConditionExpression="PK = :repository AND SK BETWEEN :first AND :last",
        ExpressionAttributeValues={
            ":repository": {"S": "REPO#hello"},
            ":first": {"S": f"ISSUE#{first:08}"},
            ":last": {"S": f"ISSUE#{last:08}"},
        },
    )["Items"]


def a_number_too_wide(store: Store) -> Any:
    store.put(PaddedIssue(repository="hello", number=100_000_000, title="One too many"))


CHAPTERS: Final = (
    Chapter(
        "text-order",
        1,
        "Sorting",
        "Text sorts by its bytes",
        "DynamoDB has no collation: it compares the UTF-8 bytes of a key. Capitals come before small letters, and é "
        "after z. Know this order, because every key you design stands on it.",
        ("words", "Word"),
        in_byte_order,
        in_byte_order_by_hand,
    ),
    Chapter(
        "any-case",
        1,
        "Sorting",
        "One spelling in the key, yours in the item",
        "People type HAUPTSTRASSE, you stored Hauptstraße, and the lookup finds nothing. A field with a case is folded "
        "in its keys and in queries. The item keeps the spelling it was given.",
        ("names", "Station"),
        in_any_case,
        in_any_case_by_hand,
    ),
    Chapter(
        "numbers",
        2,
        "Sorting",
        "Numbers sort by value",
        "As text, 10 sorts before 2, and negative numbers run backwards. A number key sorts by value, to 38 digits. In a "
        "string key Isotone pads to a declared width, and refuses a number that has none.",
        ("measurements", "Measurement"),
        by_value,
        by_value_by_hand,
        refuse=a_number_without_a_width,
    ),
    Chapter(
        "time",
        3,
        "Sorting",
        "Times sort by instant",
        "An event at 9:00 in Tokyo happened before one at 20:00 in New York the evening before. Isotone stores every time "
        "in UTC with a fixed number of digits, so that text order is time order. A time without a zone is no instant, and "
        "is refused.",
        ("events", "Event"),
        between_two_instants,
        between_two_instants_by_hand,
        refuse=a_time_without_a_zone,
    ),
    Chapter(
        "sortable-ids",
        4,
        "Sorting",
        "Unique ids that sort by creation",
        "A random id is unique, and scatters your items. A ULID, KSUID or UUIDv7 begins with the time: unique without a "
        "central counter, and in the order of creation. The newest five are the last five of the collection.",
        ("logs", "Line"),
        newest_lines,
        newest_lines_by_hand,
    ),
    Chapter(
        "recently-updated",
        5,
        "Sorting",
        "Most recently updated first",
        "A support board shows what moved last. Put the time of the change into an index: one ordinary update moves the "
        "ticket to its top, with no delete and no second write. Try it: update the oldest ticket.",
        ("tickets", "Ticket"),
        most_recent,
        most_recent_by_hand,
        act=touch_the_oldest,
        act_title="Update the oldest ticket",
        refuse=change_the_key,
    ),
    Chapter(
        "both-directions",
        6,
        "Sorting",
        "Highest first, stored backwards",
        "A key can be read from its end, but sometimes the order itself must be reversed: highest points first, then "
        "players from a to z. `desc(points)` stores the difference from the maximum. You still read and write plain "
        "points.",
        ("scores", "Score"),
        highest,
        highest_by_hand,
    ),
    Chapter(
        "parent-and-children",
        7,
        "Sorting",
        "A parent and its newest children, in one read",
        "A sensor's page needs the sensor and its latest readings. Place the parent after its children, and read the "
        "collection from its end: one query returns both. Other databases join; here the order is the join.",
        ("telemetry", "Sensor", "Reading"),
        with_newest_readings,
        with_newest_readings_by_hand,
    ),
    Chapter(
        "two-relations",
        8,
        "Sorting",
        "Two relations in one collection",
        "An organization has teams and users. Teams sort before it, users after it, so each page reads exactly its half. "
        "Isotone chooses the prefixes, and refuses a kind that would come between.",
        ("organizations", "Organization", "Team", "User"),
        organization_with,
        organization_with_by_hand,
        refuse=a_kind_between_them,
    ),
    Chapter(
        "zero-padding",
        9,
        "Sorting",
        "Zero-padding with head-room",
        "Issue 10 must not come before issue 2. `max=` pads the number in the key, warns once when 30 % of the room is "
        "used, and refuses a number that does not fit. Widening later is an operation of the library, not a weekend.",
        ("issues", "PaddedIssue"),
        from_number,
        from_number_by_hand,
        refuse=a_number_too_wide,
    ),
)


SAMPLES: Final = (
    (words, fill_words),
    (names, fill_names),
    (measurements, fill_measurements),
    (events, fill_events),
    (logs, fill_logs),
    (tickets, fill_tickets),
    (scores, fill_scores),
    (telemetry, fill_telemetry),
    (organizations, fill_organizations),
    (issues, fill_issues),
)
