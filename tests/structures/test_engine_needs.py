"""What structures need of an engine, measured: calls on an engine that refuses every request it lacks a feature for."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import pytest

import isotone
from isotone import ENGINES, Attr, Capabilities, Entity, Global, Key, Local, Number, Table, field
from isotone.backends.interface import Request, Response, as_text
from isotone.errors import Unsupported
from isotone.structures import (
    Adjacency,
    Counter,
    Feed,
    Idempotency,
    Leaderboard,
    Lock,
    Point,
    Queue,
    ScoreEvent,
    Sequence,
    ShardedCounter,
    SortedSet,
    TimeSeries,
    Unique,
)

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)
FEATURES: Final = (
    "transactions",
    "conditional_writes",
    "global_indexes",
    "local_indexes",
    "streams",
)

# As docs/structures/README.md declares it for all structures together.
app = Table(
    "app",
    indexes={
        "GSI1": Global("GSI1PK", "GSI1SK"),
        "by_score": Local(Number("score")),
        "inverted": Global("EPK", "ESK"),
        "queue": Global("QPK", "QSK", projection=Queue.layout().indexes["queue"].projection),
    },
    stream="NEW_AND_OLD_IMAGES",
)


class Order(Entity, table=app):
    number: Attr[int] = field(max=99_999)
    primary = Key("ORDER", number).sort("ORDER")


class Sent(AssertionError):
    """A request reached the engine that lacks what it needs."""


class StrictEngine:
    """A database in memory that takes only what its capabilities have, and notes which features were used."""

    def __init__(self, database: isotone.Database, capabilities: Capabilities) -> None:
        self.backend = isotone.connect(database).backend
        self.capabilities = capabilities
        self.used: set[str] = set()

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        request = as_text(request)
        for feature in self._features(operation, request):
            self.used.add(feature)
            if not getattr(self.capabilities, feature):
                if operation == "TransactWriteItems" and self.capabilities.partition_transactions:
                    self._check_partitions(request)
                    continue
                raise Sent(f"{operation} needs {feature}: {request}")
        return self.backend.execute(operation, request)

    def _features(self, operation: str, request: Request) -> Iterator[str]:
        if operation.startswith("Transact"):
            yield "transactions"
        if operation in ("GetRecords", "GetShardIterator", "DescribeStream"):
            yield "streams"
        for action in self._writes(request):
            # Both read the item before they write it.
            if "ConditionExpression" in action or "ADD " in action.get("UpdateExpression", ""):
                yield "conditional_writes"
        if "IndexName" in request:
            kind = app.indexes[request["IndexName"]].kind
            yield f"{kind}_indexes"

    def _writes(self, request: Request) -> list[Any]:
        items = request.get("TransactItems")
        return [request] if items is None else [each for item in items for each in item.values()]

    def _check_partitions(self, request: Request) -> None:
        places = {
            action.get("Key", action.get("Item"))["PK"]["S"] for action in self._writes(request)
        }
        if len(places) > 1:
            raise Unsupported(f"a transaction has items of {len(places)} partitions")


class Case(NamedTuple):
    """A structure, its calls, those that need transactions, and what the constructor needs."""

    make: Callable[[Any], Any]
    calls: dict[str, Callable[[Any], object]]
    needs: set[str]
    transactional: frozenset[str] = frozenset()


def _in_transaction(write: Callable[[Any, Any], object]) -> Callable[[Any], object]:
    def call(structure: Any) -> object:
        with structure.store.transaction() as tx:
            write(structure, tx)
            tx.create(Order(number=7))
        return None

    return call


def _held(lock: Lock) -> Lock:
    lock.acquire(timeout=0)
    return lock


def _claimed(queue: Queue, **how: Any) -> Any:
    queue.put("a", **how)
    (message,) = queue.claim(1)
    return message


def _settle(once: Idempotency, tx: Any) -> None:
    once.settle(tx, "k", result=1)


_COUNTER: Final = {
    "add": lambda counter: counter.add(),
    "value": lambda counter: counter.value(),
    "add_once": lambda counter: counter.add_once("t"),
    "reset": lambda counter: (counter.add(), counter.reset()),
}
_SORTED_SET: Final = {
    "zadd": lambda it: it.zadd({"a": 1, "b": 2}),
    "zadd_nx": lambda it: it.zadd({"a": 1}, nx=True),
    "zincrby": lambda it: it.zincrby(1, "a"),
    "zrem": lambda it: (it.zadd({"a": 1, "b": 2}), it.zrem("a", "b")),
    "zpopmin": lambda it: (it.zadd({"a": 1, "b": 2}), it.zpopmin(2)),
    "zrange": lambda it: it.zrange(0, -1),
    "zrank": lambda it: (it.zadd({"a": 1}), it.zrank("a")),
    "zcount": lambda it: it.zcount(0, 5),
    "zrangebylex": lambda it: it.zrangebylex("-", "+"),
    "zrangebyscore": lambda it: it.zrangebyscore(0, 5),
    "zremrangebyrank": lambda it: (it.zadd({"a": 1, "b": 1}), it.zremrangebyrank(0, 1)),
    "zunionstore": lambda it: (it.zadd({"a": 1}), it.zunionstore([it])),
    "zcard": lambda it: it.zcard(),
    "zscan": lambda it: it.zscan(),
    "load": lambda it: it.load({"a": 1}),
    "delete": lambda it: (it.zadd({"a": 1}), it.delete()),
}
_BOARD: Final = {
    "record": lambda board: board.record("a", 1, at=START),
    "record again": lambda board: [board.record("a", n, at=START) for n in (1, 2)],
    "record_many": lambda board: board.record_many([ScoreEvent("a", 1), ScoreEvent("b", 2)]),
    "record once": lambda board: board.record("a", 1, at=START, once="t"),
    "record_many once": lambda board: board.record_many([ScoreEvent("a", 1)], once="t"),
    "remove": lambda board: (board.record("a", 1), board.remove("a")),
    "top": lambda board: board.top(),
    "standing": lambda board: (board.record("a", 1), board.standing("a")),
    "around": lambda board: (board.record("a", 1), board.around("a")),
    "count": lambda board: board.count(),
    "drop_ranks": lambda board: board.drop_ranks(at=START),
}
_SERIES: Final = {
    "add": lambda series: series.add("s", 1, at=START),
    "add in two buckets": lambda series: [series.add("s", 1, at=START + n * DAY) for n in (0, 1)],
    "add_many": lambda series: series.add_many("s", [Point(1, START), Point(2, START + DAY)]),
    "replace": lambda series: (series.add("s", 1, at=START), series.replace("s", 2, at=START)),
    "remove": lambda series: (series.add("s", 1, at=START), series.remove("s", at=START)),
    "points": lambda series: list(series.points("s", START, START + DAY)),
    "latest": lambda series: series.latest("s"),
}
_ONCE: Final = frozenset({"record once", "record_many once"})


def _board(**options: Any) -> Case:
    return Case(
        lambda store: Leaderboard(store, "b", table=app, **options),
        _BOARD,
        {"conditional_writes", "global_indexes"},
        _ONCE,
    )


CASES: Final[dict[str, Case]] = {
    "Counter": Case(
        lambda store: Counter(store, "c", table=app),
        _COUNTER,
        {"conditional_writes"},
        frozenset({"add_once", "reset"}),
    ),
    "ShardedCounter": Case(
        lambda store: ShardedCounter(store, "c", 4, table=app),
        _COUNTER,
        {"conditional_writes"},
        frozenset({"add_once", "reset"}),
    ),
    "Sequence": Case(
        lambda store: Sequence(store, "s", table=app),
        {
            "next": lambda numbers: numbers.next(),
            "last": lambda numbers: numbers.last(),
            "reserve": lambda numbers: numbers.reserve(3),
            "assign": lambda numbers: numbers.assign(lambda number: Order(number=number)),
        },
        {"conditional_writes"},
        frozenset({"assign"}),
    ),
    "Lock": Case(
        lambda store: Lock(store, "l", table=app),
        {
            "acquire": _held,
            "renew": lambda lock: _held(lock).renew(),
            "release": lambda lock: _held(lock).release(),
            "holder": lambda lock: lock.holder(),
        },
        {"conditional_writes"},
    ),
    "Idempotency": Case(
        lambda store: Idempotency(store, "i", table=app),
        {
            "once": lambda it: it.once("k", lambda: "done"),
            "forget": lambda it: (it.once("k", lambda: "done"), it.forget("k")),
            "settle": _in_transaction(_settle),
        },
        {"conditional_writes"},
        frozenset({"settle"}),
    ),
    "Unique": Case(
        lambda store: Unique(store, "u", table=app),
        {
            "reserve": lambda names: names.reserve("a", "1"),
            "release": lambda names: (names.reserve("a", "1"), names.release("a", "1")),
            "transfer": lambda names: (names.reserve("a", "1"), names.transfer("a", "1", "2")),
            "owner_of": lambda names: names.owner_of("a"),
            "within": _in_transaction(lambda names, tx: names.within(tx).reserve("a", "1")),
        },
        {"conditional_writes"},
        frozenset({"within"}),
    ),
    "Queue": Case(
        lambda store: Queue(store, "q", table=app),
        {
            "put": lambda queue: queue.put("a"),
            "put_many": lambda queue: queue.put_many(["a", "b"]),
            "put group": lambda queue: queue.put("a", group="g"),
            "put token": lambda queue: queue.put("a", token="t"),
            "claim": lambda queue: queue.claim(),
            "acknowledge": lambda queue: queue.acknowledge(_claimed(queue)),
            "extend": lambda queue: queue.extend(_claimed(queue)),
            "give_back": lambda queue: queue.give_back(_claimed(queue)),
            "redrive": lambda queue: (queue.bury(_claimed(queue), "x"), queue.redrive()),
            "dead_letters": lambda queue: list(queue.dead_letters()),
            "counts": lambda queue: queue.counts(),
        },
        {"conditional_writes", "global_indexes"},
        frozenset({"put group", "put token"}),
    ),
    "SortedSet": Case(
        lambda store: SortedSet(store, "z", table=app),
        _SORTED_SET,
        {"conditional_writes", "local_indexes"},
    ),
    "SortedSet, ranked": Case(
        lambda store: SortedSet(store, "z", table=app, ranked=True),
        _SORTED_SET,
        {"conditional_writes", "local_indexes", "transactions"},
    ),
    "Leaderboard": _board(),
    "Leaderboard, average": _board(score="average", window="day"),
    "Leaderboard, best": _board(score="best", history=True, window="day"),
    "Leaderboard, last": _board(score="last", shards=2),
    "Leaderboard, ranked": Case(
        lambda store: Leaderboard(store, "b", table=app, ranked=True),
        _BOARD,
        {"conditional_writes", "global_indexes", "transactions"},
    ),
    "TimeSeries": Case(
        lambda store: TimeSeries(store, "t", table=app, roll_ups={}),
        _SERIES,
        {"conditional_writes"},
    ),
    "TimeSeries, with roll-ups": Case(
        lambda store: TimeSeries(store, "t", table=app),
        _SERIES,
        {"conditional_writes", "transactions"},
    ),
    "Adjacency": Case(
        lambda store: Adjacency(store, "r", table=app),
        {
            "link": lambda edges: edges.link("a", "b"),
            "link_many": lambda edges: edges.link_many([("a", "b"), ("a", "c")]),
            "describe": lambda edges: (edges.link("a", "b"), edges.describe("a", "b", {"x": 1})),
            "unlink": lambda edges: (edges.link("a", "b"), edges.unlink("a", "b")),
            "rights": lambda edges: list(edges.all_rights("a")),
            "lefts": lambda edges: list(edges.all_lefts("a")),
            "within": _in_transaction(lambda edges, tx: edges.within(tx).link("a", "b")),
        },
        {"conditional_writes", "global_indexes"},
        frozenset({"within"}),
    ),
    "Feed": Case(
        lambda store: Feed(store, table=app),
        {
            "post": lambda feed: feed.post("ann", "hello"),
            "follow": lambda feed: feed.follow("bob", "ann"),
            "unfollow": lambda feed: (feed.follow("bob", "ann"), feed.unfollow("bob", "ann")),
            "read": lambda feed: feed.read("bob"),
        },
        {"conditional_writes", "transactions", "streams"},
    ),
}


class Result(NamedTuple):
    """What came of a call: `refused` is the constructor's error, `unsupported` the call's."""

    refused: str | None
    unsupported: str | None
    used: frozenset[str]


class Shop(NamedTuple):
    """A database that has the table of all structures, and nothing in it."""

    database: isotone.Database
    clock: isotone.ManualClock


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    """The calls are a thousand, and each writes a few items: so they share a database, which takes them back."""
    clock = isotone.ManualClock(START)
    with isotone.open(":memory:", clock=clock) as database:
        isotone.connect(database).create_tables(app)
        yield Shop(database, clock)


def run(
    shop: Shop, case: Case, call: Callable[[Any], object], capabilities: Capabilities
) -> Result:
    database, clock = shop
    clock.set(START)
    engine = StrictEngine(database, capabilities)
    store = isotone.connect(engine, capabilities=capabilities, clock=clock)
    with database.rolled_back():
        try:
            structure = case.make(store)
        except Unsupported as error:
            return Result(str(error), None, frozenset())
        if isinstance(structure, Feed):
            isotone.connect(database).create_tables(structure.timelines)
        try:
            call(structure)
        except Unsupported as error:
            return Result(None, str(error), frozenset(engine.used))
        return Result(None, None, frozenset(engine.used))


def _lacking(feature: str) -> Capabilities:
    return dataclasses.replace(ENGINES["isotone"], **{feature: False})


@pytest.mark.parametrize("name", CASES)
def test_the_constructor_refuses_exactly_the_engines_that_lack_a_need(
    shop: Shop, name: str
) -> None:
    case = CASES[name]
    first = next(iter(case.calls.values()))
    for feature in FEATURES:
        refused = run(shop, case, first, _lacking(feature)).refused
        assert (refused is not None) == (feature in case.needs), (feature, refused)
        if refused is not None:
            assert f"needs {feature.replace('_', ' ')}, which" in refused


@pytest.mark.parametrize("name", CASES)
def test_a_need_is_one_that_its_calls_use(shop: Shop, name: str) -> None:
    case = CASES[name]
    used: set[str] = set()
    for call in case.calls.values():
        result = run(shop, case, call, ENGINES["isotone"])
        assert result.refused is result.unsupported is None
        used |= result.used
    # Its worker reads the stream of a feed; transactions of other structures may be those of single calls.
    assert case.needs - {"streams"} <= used
    assert used <= case.needs | {"transactions"}


@pytest.mark.parametrize("name", CASES)
def test_where_it_is_accepted_its_calls_work_except_those_that_need_transactions(
    shop: Shop, name: str
) -> None:
    case = CASES[name]
    if "transactions" in case.needs:
        return
    engines = [
        _lacking("transactions"),
        ENGINES["alternator"],
        dataclasses.replace(_lacking("transactions"), partition_transactions=True),
        ENGINES["azure-table"],
    ]
    for capabilities in engines:
        for called, call in case.calls.items():
            result = run(shop, case, call, capabilities)
            if result.refused is not None:
                assert any(not getattr(capabilities, need) for need in case.needs)
                continue
            is_refused = result.unsupported is not None
            if capabilities.partition_transactions:  # which may be enough
                assert is_refused <= (called in case.transactional), (called, result)
            else:
                assert is_refused == (called in case.transactional), (called, result)
            if is_refused:
                assert "transaction" in str(result.unsupported)


def test_the_table_of_a_structure_may_have_what_the_engine_lacks_until_it_is_created() -> None:
    with isotone.connect(":memory:", capabilities=ENGINES["azure-table"]) as store:
        assert Sequence(store, "orders", table=app).name == "orders"
        with (
            warnings.catch_warnings(),
            pytest.raises(Unsupported, match=r"table 'app' .*needs streams, which Azure"),
        ):
            store.create_tables(app)
