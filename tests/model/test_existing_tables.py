"""Tables that are there already: filled by hand, with keys of every form, and used as they are.

The items are put through the client, under keys that f-strings make; the library has to find them there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Store,
    Table,
    desc,
    field,
    in_order,
    raw,
    since_epoch,
    written,
)
from isotone.errors import OutOfRange, Unanswerable, UsageError

legacy = Table("legacy", tag="kind", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class User(Entity, table=legacy, tag="user"):
    user_id: Attr[int] = field()
    name: Attr[str] = field(default="")

    primary = Key("USER", raw(user_id), separator="_").sort("profile")
    by_name = Index("GSI1", "users").sort("name:", name, separator="")


class Order(Entity, table=legacy, tag="order"):
    user_id: Attr[int] = field()
    day: Attr[date] = field()
    shop: Attr[str] = field()
    number: Attr[int] = field(max=999_999)
    state: Attr[Literal["open", "sent"]] = field(default="open")

    primary = Key("USER", raw(user_id), separator="_").sort(
        "order", day, shop, number, separator="|"
    )
    by_state = Index("GSI1", "orders", state, separator="::").sort(shop, day, raw(number))


class Reading(Entity, table=legacy, tag="reading"):
    sensor: Attr[str] = field()
    at: Attr[datetime] = field()
    note: Attr[str] = field(default="")

    primary = Key("SENSOR", raw(sensor), "v", "READINGS").sort(written(at, "%Y-%m-%d %H:%M:%S"))
    by_time = Index("GSI1", "readings").sort(since_epoch(at, "milliseconds"), raw(note))


START = datetime(2020, 1, 11, tzinfo=UTC)


@contextmanager
def memory(_: Path) -> Iterator[isotone.Database]:
    with isotone.open(":memory:") as database:
        yield database


@contextmanager
def file(place: Path) -> Iterator[isotone.Database]:
    with isotone.open(place / "legacy.db") as database:
        yield database


@pytest.fixture(params=[memory, file], ids=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[isotone.Database]:
    with request.param(tmp_path) as database:
        yield database


def put(database: isotone.Database, **item: Any) -> None:
    """Put an item as another program did."""
    wire = {
        name: {"N": str(value)} if isinstance(value, int) else {"S": value}
        for name, value in item.items()
    }
    database.client().put_item(TableName="legacy", Item=wire)


def filled(database: isotone.Database) -> Store:
    store = isotone.connect(database)
    store.create_tables(legacy)
    put(
        database,
        PK="USER_7",
        SK="profile",
        user_id=7,
        name="Ann Lee",
        GSI1PK="users",
        GSI1SK="name:Ann Lee",
    )
    put(
        database,
        PK="USER_70",
        SK="profile",
        user_id=70,
        name="Bo",
        GSI1PK="users",
        GSI1SK="name:Bo",
    )
    for day, shop, number in [(1, "a b", 5), (1, "a!", 12), (2, "a", 3), (10, "a", 100)]:
        put(
            database,
            PK="USER_7",
            SK=f"order|2020-01-{day:02}|{shop}|{number:06}",
            GSI1PK="orders::open",
            GSI1SK=f"{shop}::2020-01-{day:02}::{number}",
            state="open",
        )
    put(database, PK="USER_7", SK="order}", name="of another program")
    for hour in range(3):
        at = START + timedelta(hours=hour)
        put(
            database,
            PK="SENSOR#no. 1, roof#v#READINGS",
            SK=f"{at:%Y-%m-%d %H:%M:%S}",
            GSI1PK="readings",
            GSI1SK=f"{int(at.timestamp()) * 1000}#warm#dry"
            if hour
            else f"{int(at.timestamp()) * 1000}#",
        )
    return store


MINE = Order.user_id == 7


def numbers(orders: list[Order]) -> list[int]:
    return [each.number for each in orders]


def test_items_are_read_by_keys_of_their_own_form(database: isotone.Database) -> None:
    store = filled(database)
    assert store.get(User, user_id=7) == User(user_id=7, name="Ann Lee")
    order = store.get(Order, user_id=7, day=date(2020, 1, 1), shop="a b", number=5)
    assert order == Order(user_id=7, day=date(2020, 1, 1), shop="a b", number=5)
    reading = store.get(Reading, sensor="no. 1, roof", at=START)
    assert reading == Reading(sensor="no. 1, roof", at=START)


def test_what_an_item_has_in_its_keys_alone_is_parsed_from_them(database: isotone.Database) -> None:
    store = filled(database)
    found = store.all(Reading.primary.where(Reading.sensor == "no. 1, roof"))
    assert [each.at.hour for each in found] == [0, 1, 2]
    assert {each.sensor for each in found} == {"no. 1, roof"}


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (lambda: Order.primary.where(MINE), [5, 12, 3, 100]),
        (lambda: Order.primary.where(MINE, Order.day > date(2020, 1, 1)), [3, 100]),
        (lambda: Order.primary.where(MINE, Order.day <= date(2020, 1, 2)), [5, 12, 3]),
        (lambda: Order.primary.where(MINE, Order.day <= date(2020, 1, 2)).newest_first(), [3, 12, 5]),
        (lambda: Order.primary.where(MINE, Order.day == date(2020, 1, 1), Order.shop == "a b"), [5]),
        (lambda: Order.primary.where(MINE, Order.day == date(2020, 1, 1), Order.shop.begins_with("a")), [5, 12]),
        (lambda: Order.primary.where(Order.user_id == 70), []),
        (lambda: Order.by_state.where(Order.state == "open", Order.shop == "a"), [3, 100]),
        (
            lambda: Order.by_state.where(
                Order.state == "open", Order.shop == "a", Order.day >= date(2020, 1, 10)
            ),
            [100],
        ),
        (
            lambda: Order.by_state.where(
                Order.state == "open", Order.shop == "a", Order.day == date(2020, 1, 2), Order.number == 3
            ),
            [3],
        ),
    ],
)  # fmt: skip
def test_queries(database: isotone.Database, ask: Callable[[], Any], wanted: list[int]) -> None:
    assert numbers(filled(database).all(ask())) == wanted


def test_what_is_only_a_bound_is_neither_read_nor_counted(database: isotone.Database) -> None:
    store = filled(database)  # with an item at "order}", which closes the range of "order|"
    query = Order.primary.where(MINE)
    assert len(store.all(query)) == store.count(query) == 4
    assert [len(page) for page in pages_of(store, query)] == [3, 1]


def pages_of(store: Store, query: Any) -> Iterator[list[Any]]:
    cursor, more = None, True
    while more:
        page = store.page(query, size=3, cursor=cursor)
        yield page.items
        cursor, more = page.cursor, page.cursor is not None


def test_texts_at_the_end_have_all_conditions(database: isotone.Database) -> None:
    store = filled(database)
    for conditions, wanted in [
        ((), ["Ann Lee", "Bo"]),
        ((User.name > "Ann Lee",), ["Bo"]),
        ((User.name < "Bo",), ["Ann Lee"]),
        ((User.name.begins_with("Ann "),), ["Ann Lee"]),
    ]:
        found = store.all(User.by_name.where(*conditions))
        assert [each.name for each in found] == wanted


def test_an_index_of_milliseconds(database: isotone.Database) -> None:
    store = filled(database)
    query = Reading.by_time.where(Reading.at >= START + timedelta(hours=1)).newest_first()
    assert [(each.at.hour, each.note) for each in store.all(query)] == [
        (2, "warm#dry"),
        (1, "warm#dry"),
    ]


def test_a_write_uses_the_keys_that_the_other_program_reads(database: isotone.Database) -> None:
    store = filled(database)
    changed = store.update(User, User.name.set("Ann B. Lee"), user_id=7)
    assert changed.name == "Ann B. Lee"
    store.update(
        Order, Order.state.set("sent"), user_id=7, day=date(2020, 1, 2), shop="a", number=3
    )
    store.put(Order(user_id=8, day=date(2021, 2, 3), shop="x y", number=1))
    items = database.client().scan(TableName="legacy")["Items"]
    keys = {
        tuple(item[name]["S"] for name in ("PK", "SK", "GSI1PK", "GSI1SK") if name in item)
        for item in items
    }
    assert ("USER_7", "profile", "users", "name:Ann B. Lee") in keys
    assert ("USER_7", "order|2020-01-02|a|000003", "orders::sent", "a::2020-01-02::3") in keys
    assert ("USER_8", "order|2021-02-03|x y|000001", "orders::open", "x y::2021-02-03::1") in keys
    assert len(items) == 12  # with the record of the keys


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (
            lambda: Order(user_id=7, day=date(2020, 1, 1), shop="a|b", number=1),
            r"field 'shop': 'a\|b' contains '\|'.*declare another separator",
        ),
        (
            lambda: Order(user_id=7, day=date(2020, 1, 1), shop="a:", number=1),
            "field 'shop': 'a:' contains '::' or ends as it begins",
        ),
        (lambda: Reading(sensor="a#b", at=START), "field 'sensor': 'a#b' contains '#'"),
        (lambda: User(user_id=-7), "field 'user_id': -7 does not fit.*declare a minimum"),
        (lambda: Reading(sensor="a", at=START.replace(microsecond=1)), "field 'at': .* is finer"),
    ],
)
def test_what_would_be_read_back_as_something_else_is_not_written(
    database: isotone.Database, write: Callable[[], Entity], message: str
) -> None:
    store = filled(database)
    with pytest.raises(OutOfRange, match=message):
        store.put(write())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: Order.primary.where(MINE, Order.day == date(2020, 1, 1), Order.shop > "a"),
            r"primary has 'shop' in a form that does not sort.*give shop == …, or .begins_with",
        ),
        (
            lambda: Order.by_state.where(
                Order.state == "open", Order.shop == "a", Order.day == date(2020, 1, 1),
                Order.number < 10,
            ),
            "by_state has 'number' in a form that does not sort.*order of number",
        ),
        (
            lambda: Order.by_state.where(Order.state == "open").newest_first(),
            r"has 'shop' in a form that does not sort.*\.reversed\(\)",
        ),
        (
            lambda: Order.by_state.where(Order.state == "open", Order.shop.begins_with("a:")),
            "ends in the beginning of '::'",
        ),
    ],
)  # fmt: skip
def test_what_the_keys_cannot_answer_is_refused(ask: Callable[[], Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ask()


def test_find_looks_for_a_key_that_sorts() -> None:
    assert Order.find(MINE, Order.day > date(2020, 1, 1)).name == "Order.primary"
    with pytest.raises(Unanswerable, match="by_state has 'shop' in a form that does not sort"):
        Order.find(Order.state == "open", Order.shop > "a")


# What a definition refuses

other = Table("other")


class Page(Entity, table=other):
    name: Attr[str] = field()
    number: Attr[int] = field(max=99)

    primary = Key("PAGE", name, separator="_").sort("PAGE", number)


def test_a_key_that_may_be_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"could equal one of Page: .*'PAGE_DATA'"):

        class Data(Entity, table=other):
            number: Attr[int] = field(max=99)
            primary = Key("PAGE_DATA").sort("PAGE", number, separator="_")

    class Line(Entity, table=other):
        name: Attr[str] = field()
        number: Attr[int] = field(max=99)
        primary = Key("PAGE", name, "LINES", separator="_").sort("PAGE", number)

    assert Line.primary.where(Line.name == "a").request()["ExpressionAttributeValues"] == {
        ":v0": {"S": "PAGE_a_LINES"},
        ":v1": {"S": "PAGE_"},
    }


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (lambda f: Key(f.name, f.number, separator="").sort("X"), "nothing marks where RawText ends"),
        (lambda f: Key("A", f.name, separator="\n").sort("X"), "is not a separator"),
        (lambda f: Key("A", raw(f.day)).sort("X"), r"raw\(day\) is a date, .* leave raw\(…\) out"),
        (lambda f: Key("A", raw(f.share)).sort("X"), r"raw\(share\) is a float"),
        (lambda f: Key("A", desc(raw(f.number))).sort("X"), "a number that is not padded has no order"),
        (lambda f: Key("A", written(f.name, "%Y%m%d")).sort("X"), "neither a date nor a datetime"),
        (lambda f: Key("A", written(f.day, "%d.%m.%Y")).sort("X"), "does not sort"),
        (lambda f: Key("A", since_epoch(f.day)).sort("X"), "since_epoch.day. is a date; declare"),
        (
            lambda f: Key("A", in_order(f.state), "B", separator="_").sort("X"),
            "Choice can contain '_', which follows it",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(key: Callable[[Any], Key], message: str) -> None:
    with pytest.raises(UsageError, match=message):

        class Wrong(Entity, table=Table("wrong")):
            name: Attr[str] = field()
            number: Attr[int] = field(max=99)
            share: Attr[float] = field()
            day: Attr[date] = field()
            state: Attr[Literal["a", "b"]] = field()
            primary = key(type("Fields", (), dict(locals())))


def test_a_field_that_is_a_key_attribute_has_no_other_form() -> None:
    with pytest.raises(
        UsageError, match="holds 'day' as it is, not in another form; give the field"
    ):

        class Wrong(Entity, table=Table("wrong", partition="day", sort=None)):
            day: Attr[date] = field()
            primary = Key(written(day, "%Y%m%d"))

    class Right(Entity, table=Table("right", partition="day", sort=None)):
        day: Attr[date] = field(name="of_day")
        primary = Key(written(day, "%Y%m%d"))

    assert Right.primary.where(Right.day == date(2020, 1, 1)).request()[
        "ExpressionAttributeValues"
    ] == {":v0": {"S": "20200101"}}


def test_children_have_the_separators_of_their_parent(database: isotone.Database) -> None:
    teams = Table("teams")

    class Team(Entity, table=teams):
        name: Attr[str] = field()
        primary = Key("TEAM", name, separator="_").sort("TEAM", separator="-")

    class Member(Entity, table=teams):
        team: Attr[str] = field()
        number: Attr[int] = field(max=99)
        primary = Team.primary.children(team).after("MEMBER", number)

    class Note(Entity, table=teams):
        team: Attr[str] = field()
        number: Attr[int] = field(max=99)
        primary = Team.primary.children(team).before("NOTE", number)

    store = isotone.connect(database)
    store.create_tables(teams)
    store.put(Team(name="ops"))
    for number in (2, 1):
        store.put(Member(team="ops", number=number))
        store.put(Note(team="ops", number=number))
    family = store.family(Team.primary.with_children(Member.primary).where(Team.name == "ops"))
    assert [type(each).__name__ for each in family] == ["Team", "Member", "Member"]
    items = database.client().scan(TableName="teams")["Items"]
    assert sorted((item["PK"]["S"], item["SK"]["S"]) for item in items) == [
        ("TEAM_ops", "NOTE-01"),
        ("TEAM_ops", "NOTE-02"),
        ("TEAM_ops", "TEAM"),
        ("TEAM_ops", "~MEMBER-01"),
        ("TEAM_ops", "~MEMBER-02"),
        ("_keys", "_keys"),
    ]


def test_children_are_placed_by_the_separator_of_their_parent() -> None:
    teams = Table("teams", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    class Team(Entity, table=teams):
        name: Attr[str] = field()
        primary = Key("TEAM", name).sort("TEAM")
        by_name = Index("GSI1", "TEAM", name, separator="_").sort("TEAM", name, separator="-")

    class Member(Entity, table=teams):
        team: Attr[str] = field()
        primary = Key("MEMBER", team).sort("MEMBER")
        by_team = Team.by_name.children(team).after("TEAM%", team)

    request = Member.by_team.where(Member.team == "ops").request()
    assert request["ExpressionAttributeValues"] == {
        ":v0": {"S": "TEAM_ops"},
        ":v1": {"S": "~TEAM%-ops"},  # TEAM%- would come before TEAM-
    }
    assert Team.by_name.with_children(Member.by_team)


def test_widened_numbers_keep_their_separators(database: isotone.Database) -> None:
    store = isotone.connect(database)

    def entity(maximum: int, was: int | None) -> Any:
        class Ticket(Entity, table=Table("tickets"), tag="ticket"):
            number: Attr[int] = field(max=maximum, was=was, alert=2)
            name: Attr[str] = field(default="")
            primary = Key("t", separator="_").sort("ticket", number, name, separator="-")

        return Ticket

    narrow, wide = entity(99, None), entity(9999, 99)
    store.create_tables(narrow.__schema__.table)
    store.put(narrow(number=7, name="a b"))
    assert store.get(wide, number=7, name="a b") == wide(number=7, name="a b")
    store.widen(wide)
    items = database.client().scan(TableName="tickets")["Items"]
    keys = sorted((item["PK"]["S"], item["SK"]["S"]) for item in items)
    assert keys == [("_keys", "_keys"), ("t", "ticket-0007-a b")]


# Whatever is asked of keys that f-strings made, the answer is the rows filtered in memory

rows = Table(
    "rows", indexes={"GSI1": Global("GSI1PK", "GSI1SK"), "GSI2": Global("GSI2PK", "GSI2SK")}
)


class Row(Entity, table=rows):
    group: Attr[str] = field()
    name: Attr[str] = field()
    day: Attr[date] = field()
    count: Attr[int] = field(min=-20, max=200, alert=2)
    at: Attr[datetime] = field()

    primary = Key("G", group, separator="_").sort(name, day, "at", since_epoch(at), separator="::")
    by_day = Index("GSI1", "rows/", raw(group), "/days", separator="").sort(
        "d", written(day, "%Y%m%d"), name, separator=""
    )
    by_count = Index("GSI2", "c", raw(count), "g", raw(group)).sort(
        raw(name), written(at, "%Y-%m-%d %H:%M:%S")
    )


def item_of(row: tuple[str, str, date, int, datetime]) -> dict[str, Any]:
    group, name, day, count, at = row
    texts = {
        "PK": f"G_{group}",
        "SK": f"{name}::{day}::at::{int(at.timestamp()):010}",
        "GSI1PK": f"rows/{group}/days",
        "GSI1SK": f"d{day:%Y%m%d}{name}",
        "GSI2PK": f"c#{count}#g#{group}",
        "GSI2SK": f"{name}#{at:%Y-%m-%d %H:%M:%S}",
    }
    return {name: {"S": text} for name, text in texts.items()}


GROUPS = st.sampled_from(["g", "g g", "h:"])
NAMES = st.sampled_from(["", "a", "a b", "a!", "a-b", "ab", "a:b", "é", "~", "b$", "B"])
DAYS = st.dates(date(2020, 1, 1), date(2020, 1, 4))
COUNTS = st.integers(-20, 20)
TIMES = st.integers(0, 3).map(lambda second: START + timedelta(seconds=second))
ROWS = st.tuples(GROUPS, NAMES, DAYS, COUNTS, TIMES)

COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "==": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
ORDERS: dict[str, tuple[list[str], list[str]]] = {
    "primary": (["group"], ["name", "day", "at"]),
    "by_day": (["group"], ["day", "name"]),
    "by_count": (["count", "group"], ["name", "at"]),
}
FIELDS = ["group", "name", "day", "count", "at"]


@settings(max_examples=examples(120), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=st.lists(ROWS, min_size=1, max_size=12), data=st.data())
def test_the_answer_is_the_rows_filtered(found: list[Any], data: st.DataObject) -> None:
    kept = list({item_of(row)["PK"]["S"] + item_of(row)["SK"]["S"]: row for row in found}.values())
    name = data.draw(st.sampled_from(sorted(ORDERS)))
    grouped, ordered = ORDERS[name]
    model = dict(zip(FIELDS, data.draw(st.sampled_from(found)), strict=True))
    other = dict(zip(FIELDS, data.draw(st.sampled_from(found)), strict=True))
    fixed = data.draw(st.integers(0, len(ordered) - 1))
    free = ordered[fixed]
    refused = free == "name" and name != "by_day"
    operator = data.draw(st.sampled_from(["==", "prefix"] if refused else list(COMPARED)))
    conditions = [getattr(Row, each) == model[each] for each in [*grouped, *ordered[:fixed]]]
    if operator == "prefix":
        prefix = data.draw(st.sampled_from(["", "a", "a ", "a!", "~"]))
        conditions.append(Row.name.begins_with(prefix))
    else:
        conditions.append(COMPARED[operator](getattr(Row, free), other[free]))

    def wanted(row: Any) -> bool:
        values = dict(zip(FIELDS, row, strict=True))
        if any(values[each] != model[each] for each in [*grouped, *ordered[:fixed]]):
            return False
        if operator == "prefix":
            return bool(values["name"].startswith(prefix))
        return bool(COMPARED[operator](values[free], other[free]))

    with isotone.open(":memory:") as database:
        store = isotone.connect(database)
        store.create_tables(rows)
        for row in kept:
            count = {"count": {"N": str(row[3])}}
            database.client().put_item(TableName="rows", Item={**item_of(row), **count})
        query = getattr(Row, name).where(*conditions)
        answer = [tuple(getattr(each, field) for field in FIELDS) for each in store.all(query)]
    assert sorted(answer) == sorted(filter(wanted, kept))
    texts = [
        item_of(row)["SK" if name == "primary" else "GSI1SK" if name == "by_day" else "GSI2SK"]["S"]
        for row in answer
    ]
    assert texts == sorted(texts)
    values = [row[FIELDS.index(free)] for row in answer]
    assert refused or values == sorted(values)
