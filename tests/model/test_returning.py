"""What writes return when they are asked for the old entity or for nothing, and their requests without sending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.model.conftest import START, Desk

import isotone
from isotone import (
    Attr,
    Entity,
    Global,
    Index,
    Key,
    Table,
    expires,
    field,
    updated,
    upgrade,
    version,
)
from isotone.backends.interface import as_text
from isotone.errors import AlreadyExists, ConditionFailed, NotFound, UsageError, VersionConflict

depot = Table("depot", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Plain(Entity, table=depot):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)
    seen_at: Attr[datetime | None] = updated()
    until: Attr[datetime | None] = expires(default=None)

    primary = Key("PLAIN", name).sort("PLAIN")


class Ranked(Entity, table=depot):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0, max=9999, alert=None)
    revision: Attr[int] = version()

    primary = Key("RANKED", name).sort("RANKED")
    by_count = Index("GSI1", "RANKED").sort(count)


class Unique(Entity, table=depot):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)
    mail: Attr[str | None] = field(default=None, unique=True)

    primary = Key("UNIQUE", name).sort("UNIQUE")


class Upgraded(Entity, table=depot, tag="Upgraded", version=2):
    name: Attr[str] = field()
    count: Attr[int] = field(default=0)

    primary = Key("UPGRADED", name).sort("UPGRADED")

    @staticmethod
    @upgrade(1)
    def doubled(item: dict[str, Any]) -> dict[str, Any]:
        return {**item, "count": item["count"] * 2}


KINDS: list[Any] = [Plain, Ranked, Unique, Upgraded]


@pytest.fixture
def shelves(desk: Desk) -> Desk:
    desk.store.create_tables(depot)
    return desk


@pytest.mark.parametrize("kind", KINDS)
def test_the_old_entity_is_returned(shelves: Desk, kind: Any) -> None:
    store = shelves.store
    old = store.returning("old")
    first = kind(name="a", count=1)
    assert old.put(first) is None
    stored = store.get(kind, name="a")
    assert old.update(kind, kind.count.add(1), name="a") == stored
    second = store.get(kind, name="a")
    assert second.count == 2
    assert old.upsert(kind, kind.count.add(1), name="a") == second
    third = store.get(kind, name="a")
    assert old.replace(third.replace(count=9)) == third
    fourth = store.get(kind, name="a")
    assert (fourth.count, old.put(fourth.replace(count=9))) == (9, fourth)
    assert old.delete(kind, name="a").count == 9
    assert old.delete(kind, name="a") is None
    assert old.upsert(kind, kind.count.add(1), name="a") is None
    assert store.get(kind, name="a").count == 1
    with pytest.raises(NotFound):
        old.update(kind, kind.count.add(1), name="none")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_returned(shelves: Desk, kind: Any) -> None:
    store, none = shelves.store, shelves.store.returning("none")
    assert none.upsert(kind, kind.count.add(1), name="a") is None  # type: ignore[func-returns-value]
    assert none.update(kind, kind.count.add(1), name="a") is None  # type: ignore[func-returns-value]
    assert store.get(kind, name="a").count == 2
    assert none.delete(kind, name="a") is None  # type: ignore[func-returns-value]
    assert store.get(kind, name="a") is None


def test_no_item_is_transferred(shelves: Desk) -> None:
    store = shelves.store
    store.put(Plain(name="a"))
    for call in (
        lambda: store.returning("none").update(Plain, Plain.count.add(1), name="a"),
        lambda: store.returning("none").delete(Plain, name="a"),
    ):
        shelves.asked.clear()
        call()
        ((_, request),) = shelves.asked
        assert request["ReturnValues"] == "NONE"


def test_a_put_still_fills_its_entity(shelves: Desk) -> None:
    entity = Ranked(name="a")
    assert shelves.store.returning("old").put(entity) is None
    assert entity.revision == 1
    before = shelves.store.returning("old").put(entity)
    assert before is not None
    assert (before.revision, entity.revision) == (1, 2)


def test_refusals_are_those_of_the_store(shelves: Desk) -> None:
    store = shelves.store
    stale = store.put(Ranked(name="a"))
    store.update(Ranked, Ranked.count.add(1), name="a")
    with pytest.raises(VersionConflict):
        store.returning("old").put(stale)
    with pytest.raises(ConditionFailed) as refused:
        store.returning("none").update(Ranked, Ranked.count.add(1), name="a", when=Ranked.count > 5)
    assert refused.value.current == store.get(Ranked, name="a")
    wrong: Any = "new"
    with pytest.raises(UsageError, match="'old' or 'none', not 'new'"):
        store.returning(wrong)


def test_an_expired_entity_was_not_there(shelves: Desk) -> None:
    store = shelves.store
    store.put(Plain(name="a", until=START + timedelta(hours=1)))
    shelves.clock.advance(timedelta(hours=2))
    assert store.returning("old").put(Plain(name="a")) is None


def test_an_item_of_an_older_version_is_returned_upgraded(shelves: Desk) -> None:
    key = Upgraded.__schema__.primary_key({"name": "a"})
    item = {**key, "_type": {"S": "Upgraded"}, "name": {"S": "a"}, "count": {"N": "4"}}
    shelves.backend.execute("PutItem", {"TableName": "depot", "Item": item})
    old = shelves.store.returning("old")
    assert old.update(Upgraded, Upgraded.count.add(1), name="a").count == 8
    assert old.update(Upgraded, Upgraded.count.add(1), name="a").count == 9


def test_an_async_store_has_them_too() -> None:
    async def main() -> None:
        async with isotone.aconnect(":memory:") as store:
            await store.create_tables(depot)
            assert await store.returning("old").put(Plain(name="a")) is None
            before = await store.returning("old").update(Plain, Plain.count.add(1), name="a")
            assert before.count == 0
            await store.returning("none").delete(Plain, name="a")
            request = await store.requests.delete(Plain, name="a")
            assert request["TableName"] == "depot"

    asyncio.run(main())


# Requests

CALLS: list[tuple[str, Callable[[Any], Any]]] = [
    ("put", lambda verbs: verbs.put(Plain(name="b", count=1))),
    ("put if", lambda verbs: verbs.put(Ranked(name="b"), when=Ranked.count.missing())),
    ("create", lambda verbs: verbs.create(Plain(name="b", count=1))),
    ("replace", lambda verbs: verbs.replace(Plain(name="a", count=1))),
    ("update", lambda verbs: verbs.update(Plain, Plain.count.add(1), name="a")),
    ("update of a key", lambda verbs: verbs.update(Ranked, Ranked.count.add(1), name="a")),
    ("upsert", lambda verbs: verbs.upsert(Ranked, Ranked.count.set(1), name="b")),
    ("move", lambda verbs: verbs.move(Plain, Plain.name.set("c"), name="a")),
    ("delete", lambda verbs: verbs.delete(Plain, name="a", when=Plain.count < 3)),
    ("unique", lambda verbs: verbs.put(Unique(name="b", mail="x"))),
    ("unique update", lambda verbs: verbs.update(Unique, Unique.mail.set("y"), name="a")),
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_a_request_is_what_would_be_sent(
    shelves: Desk, name: str, call: Callable[[Any], Any]
) -> None:
    store = shelves.store
    for kind in KINDS:
        store.put(kind(name="a"))
    before = store.all(Plain.primary.scan())
    shelves.asked.clear()
    shown = call(store.requests)
    assert {operation for operation, _ in shelves.asked} <= {"GetItem"}
    assert store.all(Plain.primary.scan()) == before
    shelves.asked.clear()
    call(store)
    sent = dict(as_text(shelves.asked[-1][1]))
    sent.pop("ClientRequestToken", None)
    assert shown == sent
    assert all(isinstance(text, str) for text in _expressions(shown))


def _expressions(request: Any) -> Iterator[Any]:
    for entry in request.get("TransactItems", [{"": request}]):
        for members in entry.values():
            yield from (value for name, value in members.items() if name.endswith("Expression"))


def test_a_request_leaves_the_entity_alone(shelves: Desk) -> None:
    class Hooked(Entity, table=Table("hooked")):
        name: Attr[str] = field()
        count: Attr[int] = field(default=0)
        revision: Attr[int] = version()

        primary = Key("HOOKED", name).sort("HOOKED")

        def before_put(self) -> None:
            self.count += 1

        def before_delete(self) -> None:
            self.count += 1

    entity = Hooked(name="a")
    request = shelves.store.requests.put(entity)
    assert request["Item"]["count"] == {"N": "1"}
    assert request["Item"]["revision"] == {"N": "1"}
    shelves.store.requests.delete(entity)
    assert (entity.count, entity.revision) == (0, 0)


def test_a_request_has_the_names_of_the_tables(shelves: Desk) -> None:
    store = isotone.connect(shelves, table_prefix="staging-")
    assert store.requests.put(Plain(name="a"))["TableName"] == "staging-depot"
    moved = store.requests.create(Unique(name="a", mail="x"))
    assert {entry["Put"]["TableName"] for entry in moved["TransactItems"]} == {"staging-depot"}


def test_an_update_that_needs_its_item_needs_it_for_its_request(shelves: Desk) -> None:
    with pytest.raises(NotFound):
        shelves.store.requests.update(Ranked, Ranked.count.add(1), name="none")


# Any writes

WRITES = st.lists(
    st.tuples(
        st.sampled_from(["put", "replace", "create", "update", "upsert", "delete"]),
        st.sampled_from("ab"),
        st.integers(1, 3),
    ),
    max_size=12,
)


@given(st.sampled_from(KINDS), WRITES)
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_old_is_what_a_read_before_it_would_have_found(
    pool: Desk, kind: Any, writes: list[tuple[str, str, int]]
) -> None:
    store, old = pool.store, pool.store.returning("old")
    store.delete_all(kind.primary.scan())
    for verb, name, count in writes:
        before = store.get(kind, name=name)
        entity = kind(name=name, count=count)
        if before is not None:
            entity = before.replace(count=count)
        try:
            if verb == "create":
                store.create(kind(name=name, count=count))
                continue
            if verb in ("put", "replace"):
                found = getattr(old, verb)(entity)
            elif verb == "delete":
                found = old.delete(kind, name=name)
            else:
                found = getattr(old, verb)(kind, kind.count.add(count), name=name)
        except (NotFound, AlreadyExists):
            continue
        assert found == before


@pytest.fixture(scope="module")
def pool() -> Iterator[Desk]:
    clock = isotone.ManualClock(datetime(2026, 1, 1, tzinfo=UTC))
    with isotone.open(":memory:", clock=clock) as database:
        desk = Desk(database, clock)
        desk.store.create_tables(depot)
        yield desk
