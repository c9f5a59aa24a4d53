"""Parents and children in one collection: placed by the declaration, read by one query, never mixed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples

import isotone
from isotone import Attr, Entity, Global, Index, Key, Number, Store, Table, desc, field
from isotone.errors import Unanswerable, UsageError

START = datetime(2026, 1, 1, tzinfo=UTC)

app = Table("app", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Organization(Entity, table=app):
    name: Attr[str] = field()
    primary = Key("ORG", name).sort("ORG", name)


class Team(Entity, table=app):
    organization: Attr[str] = field()
    name: Attr[str] = field()
    primary = Organization.primary.children(organization).before("TEAM", name)


class User(Entity, table=app):
    organization: Attr[str] = field()
    name: Attr[str] = field()
    primary = Organization.primary.children(organization).after("USER", name)


WITH_TEAMS = Organization.primary.with_children(Team.primary)
WITH_USERS = Organization.primary.with_children(User.primary)
WHOLE = Organization.primary.with_children(Team.primary, User.primary)


class Sensor(Entity, table=app):
    serial: Attr[str] = field()
    primary = Key("SENSOR", serial).sort("SENSOR")


class Reading(Entity, table=app):
    """Ascending children, so the parent stands last."""

    sensor: Attr[str] = field()
    at: Attr[datetime] = field()
    primary = Sensor.primary.children(sensor).before("READING", at)


class Alarm(Entity, table=app):
    """Descending children, so the parent stands first."""

    sensor: Attr[str] = field()
    at: Attr[datetime] = field()
    primary = Sensor.primary.children(sensor).after("ALARM", desc(at))


class Repository(Entity, table=app):
    owner: Attr[str] = field()
    name: Attr[str] = field()
    primary = Key("REPO", owner, name).sort("REPO", owner, name)
    forks = Index("GSI1", "REPO", owner, name).sort("REPO")


class Issue(Entity, table=app):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999, alert=1)
    primary = Repository.primary.children(owner, repository).before("ISSUE", number)


class Pull(Entity, table=app):
    owner: Attr[str] = field()
    repository: Attr[str] = field()
    number: Attr[int] = field(max=99_999, alert=1)
    primary = Repository.primary.children(owner, repository).after("PULL", desc(number))


class Fork(Entity, table=app):
    owner: Attr[str] = field()
    of: Attr[str] = field()
    by: Attr[str] = field()
    primary = Key("FORK", owner, of).sort("FORK", by)
    forks = Repository.forks.children(owner, of).after("FORK", by)


@pytest.fixture
def store() -> Iterator[Store]:
    with isotone.connect(":memory:", report=None) as store:
        store.create_tables(app)
        yield store


@pytest.fixture
def berkshire(store: Store) -> Store:
    for organization in ("BERKSHIRE", "BERKSHIRE#2", "FACEBOOK"):
        store.put(Organization(name=organization))
        for name in ("c", "a", "b", "～"):
            store.put(Team(organization=organization, name=name))
            store.put(User(organization=organization, name=name))
    return store


def shown(entities: list[Any]) -> list[str]:
    return [f"{type(each).__name__} {each.name}" for each in entities]


def test_the_declaration_places_the_prefixes() -> None:
    schema = Team.primary.schema
    keys = schema.to_item({"organization": "BERKSHIRE", "name": "atlanta"})
    assert (keys["PK"], keys["SK"]) == ({"S": "ORG#BERKSHIRE"}, {"S": "#TEAM#atlanta"})
    keys = User.primary.schema.to_item({"organization": "BERKSHIRE", "name": "charlie"})
    assert keys["SK"] == {"S": "USER#charlie"}
    keys = Alarm.primary.schema.to_item({"sensor": "s", "at": START})
    assert keys["SK"]["S"].startswith("~ALARM#")


def test_an_organization_and_its_users_without_its_teams(berkshire: Store) -> None:
    query = WITH_USERS.where(Organization.name == "BERKSHIRE")
    page = berkshire.page(query, size=9)
    assert shown(page.items) == ["Organization BERKSHIRE", "User a", "User b", "User c", "User ～"]
    assert page.stats.scanned == 5


def test_an_organization_and_its_teams_without_its_users(berkshire: Store) -> None:
    query = WITH_TEAMS.where(Organization.name == "BERKSHIRE")
    page = berkshire.page(query.reversed(), size=9)
    assert shown(page.items) == ["Team a", "Team b", "Team c", "Team ～", "Organization BERKSHIRE"]
    assert page.stats.scanned == 5


def test_an_organization_between_its_teams_and_its_users(berkshire: Store) -> None:
    found = berkshire.all(WHOLE.where(Organization.name == "BERKSHIRE"))
    kinds = [type(each) for each in found]
    assert kinds == [Team] * 4 + [Organization] + [User] * 4


@pytest.mark.parametrize("kind", [Reading, Alarm])
def test_a_parent_and_its_newest_children(store: Store, kind: Any) -> None:
    for sensor in ("s1", "s2"):
        store.put(Sensor(serial=sensor))
        for hour in range(20):
            store.put(kind(sensor=sensor, at=START + timedelta(hours=hour)))
    collection: Any = Sensor.primary.with_children(kind.primary)
    family = store.family(collection.where(Sensor.serial == "s1"), children=5)
    assert family.parent == Sensor(serial="s1")
    assert [each.at for each in family.children] == [
        START + timedelta(hours=hour) for hour in (19, 18, 17, 16, 15)
    ]
    assert family.stats.scanned == 6


def test_a_family_without_a_parent_has_its_children(store: Store) -> None:
    for hour in range(4):
        store.put(Reading(sensor="s", at=START + timedelta(hours=hour)))
    query = Sensor.primary.with_children(Reading.primary).where(Sensor.serial == "s")
    family = store.family(query, children=2)
    assert family.parent is None
    assert [each.at.hour for each in family.children] == [3, 2]


def test_a_range_of_children_begins_at_the_parent(berkshire: Store) -> None:
    mine = Organization.name == "BERKSHIRE"
    assert shown(berkshire.all(WITH_USERS.where(mine, User.name <= "b"))) == [
        "Organization BERKSHIRE",
        "User a",
        "User b",
    ]
    assert shown(berkshire.all(WITH_TEAMS.where(mine, Team.name > "b"))) == [
        "Organization BERKSHIRE",
        "Team ～",
        "Team c",
    ]
    with pytest.raises(Unanswerable, match="does not begin next to the Organization"):
        WITH_USERS.where(mine, User.name > "b")


def test_a_number_of_children_is_counted_from_the_parent(berkshire: Store) -> None:
    query = WITH_USERS.where(Organization.name == "BERKSHIRE")
    with pytest.raises(UsageError, match="farthest"):
        berkshire.family(query.reversed(), children=2)


def test_a_filter_judges_its_own_kind_alone(berkshire: Store) -> None:
    query = WITH_USERS.where(Organization.name == "BERKSHIRE").limit(9)
    # `name` is no key attribute: the keys hold it in a form of their own.
    found = berkshire.all(query.filter(User.name.contains("～")))
    assert shown(found) == ["Organization BERKSHIRE", "User ～"]


def test_the_shape_of_github(store: Store) -> None:
    for owner in ("me", "you"):
        store.put(Repository(owner=owner, name="r"))
        for number in (2, 10, 157, 1):
            store.put(Issue(owner=owner, repository="r", number=number))
            store.put(Pull(owner=owner, repository="r", number=number))
        store.put(Fork(owner=owner, of="r", by="them"))
    mine = (Repository.owner == "me", Repository.name == "r")
    issues = Repository.primary.with_children(Issue.primary).where(*mine)
    assert [each.number for each in store.family(issues, children=3).children] == [157, 10, 2]
    pulls = Repository.primary.with_children(Pull.primary).where(*mine)
    assert [each.number for each in store.family(pulls, children=3).children] == [157, 10, 2]
    forks = store.family(Repository.forks.with_children(Fork.forks).where(*mine))
    assert forks.parent is not None
    assert [each.by for each in forks.children] == ["them"]


def test_a_kind_that_would_stand_between_is_refused_where_it_is_declared() -> None:
    with pytest.raises(UsageError, match="would also read Plan, whose keys are between theirs"):

        class Plan(Entity, table=app):
            organization: Attr[str] = field()
            primary = Organization.primary.children(organization).after("PLAN", organization)

    assert "Plan" not in app.entities


def test_children_that_no_parent_could_have_are_refused() -> None:
    firms = Table("firms")

    class Firm(Entity, table=firms):
        number: Attr[int] = field(max=99)
        primary = Key("FIRM", number).sort("FIRM")

    by = r"Firm.primary groups by FIRM#\{number: Natural width=2\}, and its children by FIRM#"
    with pytest.raises(UsageError, match=by + r"\{firm: Text\}"):

        class Named(Entity, table=firms):
            firm: Attr[str] = field()
            primary = Firm.primary.children(firm).after("NAMED")

    with pytest.raises(UsageError, match=by + r"\{firm: Natural width=3\}"):

        class Wide(Entity, table=firms):
            firm: Attr[int] = field(max=999)
            primary = Firm.primary.children(firm).after("WIDE")

    with pytest.raises(UsageError, match="is in table 'firms'; declare both in one table"):

        class Elsewhere(Entity, table=Table("elsewhere")):
            firm: Attr[int] = field(max=99)
            primary = Firm.primary.children(firm).after("ELSEWHERE")


def test_a_farther_kind_cannot_be_read_with_the_parent_alone() -> None:
    table = Table("other")

    class Parent(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("P", name).sort("P")

    class Near(Entity, table=table):
        name: Attr[str] = field()
        primary = Parent.primary.children(name).after("Q", name)

    class Far(Entity, table=table):
        name: Attr[str] = field()
        primary = Parent.primary.children(name).after("R", name)

    assert str(Parent.primary.with_children(Near.primary)) == "Parent.primary with Near.primary"
    with pytest.raises(UsageError, match="would also read Near"):
        Parent.primary.with_children(Far.primary)
    both: Any = Parent.primary.with_children(Near.primary, Far.primary)
    assert both.where(Parent.name == "x").begins_with_parent


@pytest.mark.parametrize(
    ("declare", "words"),
    [
        (lambda: Organization.primary.children().after("X"), "1 fields in their place, not 0"),
        (lambda: Organization.primary.children(User.name).after(User.name), "begin with a literal"),
        (
            lambda: Organization.primary.with_children(Fork.forks),
            "stands in index 'GSI1' .*, and Organization.primary in table 'app'",
        ),
        (
            lambda: Organization.primary.with_children(Fork.primary),
            "does not group its items as Organization.primary does",
        ),
        (lambda: Organization.primary.children(User.name).after("\U0010ffff"), None),
    ],
)
def test_what_is_no_collection_is_refused(declare: Any, words: str | None) -> None:
    if words is None:
        declare()
        return
    with pytest.raises(UsageError, match=words):
        declare()


def test_a_native_sort_key_has_no_place_for_kinds() -> None:
    table = Table("numbers", sort=Number("at"))

    class Point(Entity, table=table):
        name: Attr[str] = field()
        at: Attr[int] = field()
        primary = Key("P", name).sort(at)

    with pytest.raises(UsageError, match="begin with literals"):
        Point.primary.with_children(Point.primary)


WORDS = st.text("ABCPZ~", min_size=1, max_size=3)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(WORDS, WORDS, WORDS, st.lists(st.text("#!$ab~", min_size=1, max_size=3), unique=True))
def test_whatever_the_literals_children_stand_where_they_are_declared(
    parent: str, one: str, other: str, names: list[str]
) -> None:
    table = Table("any")

    class Parent(Entity, table=table):
        name: Attr[str] = field()
        primary = Key("P", name).sort(parent, name)

    try:

        class Before(Entity, table=table):
            of: Attr[str] = field()
            name: Attr[str] = field()
            primary = Parent.primary.children(of).before(one, name)

        class After(Entity, table=table):
            of: Attr[str] = field()
            name: Attr[str] = field()
            primary = Parent.primary.children(of).after(other, name)
    except UsageError:
        assert parent.startswith("~")  # nothing but such a parent leaves no room behind it
        return
    whole: Any = Parent.primary.with_children(Before.primary, After.primary)
    with isotone.connect(":memory:") as store:
        store.create_tables(table)
        for name in names:
            store.put(After(of="x", name=name))
            store.put(Before(of="x", name=name))
        store.put(Parent(name="x"))
        found = store.all(whole.where(Parent.name == "x"))
    expected = sorted(names)
    assert [each.name for each in found] == [*expected, "x", *expected]


def test_joined_conditions_are_those_one_by_one() -> None:
    mine, some = Organization.name == "a", User.name < "m"
    joined = WITH_USERS.where(mine & some)
    assert joined.request() == WITH_USERS.where(mine, some).request()
    assert WITH_USERS.where(mine & mine).request() == WITH_USERS.where(mine).request()


def test_several_parents_in_one_collection_are_no_family(store: Store) -> None:
    class Room(Entity, table=app):
        house: Attr[str] = field()
        number: Attr[int] = field(max=99, alert=2)
        primary = Key("HOUSE", house).sort("ROOM", number)

    class Chair(Entity, table=app):
        house: Attr[str] = field()
        number: Attr[int] = field(max=99, alert=2)
        primary = Room.primary.children(house).after("SEAT", number)

    query = Room.primary.with_children(Chair.primary).where(Room.house == "a")
    store.put_many([Room(house="a", number=1), Chair(house="a", number=1)])
    assert store.family(query).parent == Room(house="a", number=1)
    store.put(Room(house="a", number=2))
    with pytest.raises(UsageError, match="has several Room in one collection"):
        store.family(query)
    assert len(store.all(query)) == 3
