"""A cluster: its address, the order of its nodes, failover, and what is not repeated. Nodes are servers on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import isotone
from isotone import Attr, Entity, Key, Retries, Table, Timeouts, field
from isotone.backends.alternator import (
    Address,
    Cluster,
    NodeAddress,
    RequestDelivery,
    address_of,
)
from isotone.backends.http_messages import HttpReply
from isotone.backends.repeatable import is_repeatable
from isotone.backends.request_retries import Attempts
from isotone.errors import ConnectionFailed, InternalServerError, UsageError

TOKEN = isotone.Credentials("any", "any")


# Addresses


@pytest.mark.parametrize(
    ("url", "scheme", "seeds"),
    [
        ("alternator://a,b:8001", "http", [("a", 8001), ("b", 8001)]),
        ("alternator://a", "http", [("a", 8000)]),
        ("alternator://a:1,b:2", "http", [("a", 1), ("b", 2)]),
        ("alternator://a, b", "http", [("a", 8000), ("b", 8000)]),
        ("alternator+https://a,b", "https", [("a", 8043), ("b", 8043)]),
        ("alternator://[::1],[::2]:9", "http", [("::1", 9), ("::2", 9)]),
    ],
)
def test_an_address_lists_nodes(url: str, scheme: str, seeds: list[tuple[str, int]]) -> None:
    address = address_of(url)
    assert (address.scheme, [tuple(node) for node in address.seeds]) == (scheme, seeds)


def test_an_address_may_name_a_place() -> None:
    address = address_of("alternator://a:1?datacenter=dc1&rack=r1")
    assert (address.datacenter, address.rack) == ("dc1", "r1")
    assert Cluster(address).list_paths() == ["/localnodes?dc=dc1&rack=r1", "/localnodes?dc=dc1"]


@pytest.mark.parametrize(
    "url",
    [
        *("alternator://", "alternator://a,,b", "alternator://a:b:c", "alternator://a:99999"),
        *("alternator://a:0", "alternator://a/b", "alternator://ann@a", "alternator://ann:pass@a"),
    ],
)
def test_a_wrong_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="write alternator://node1,node2:8000") as error:
        isotone.connect(url)
    assert "pass" not in str(error.value)


@pytest.mark.parametrize("option", [{"memory_map": 5}, {"durability": "none"}, {"profile": "p"}])
def test_options_of_other_engines_are_refused(option: Any) -> None:
    (name,) = option
    with pytest.raises(UsageError, match=f"{name}= is not for a cluster of Alternator"):
        isotone.connect("alternator://a", **option)


def test_wrong_parameters_are_refused() -> None:
    with pytest.raises(UsageError, match="no parameter 'zone'; it may have datacenter and rack"):
        isotone.connect("alternator://a?zone=1")
    with pytest.raises(UsageError, match="profile= is not for a cluster"):
        isotone.connect("alternator://a", profile="work")


# The order of nodes


def reply_of(nodes: list[str], status: int = 200) -> HttpReply:
    body = json.dumps(nodes).encode()
    reply = HttpReply()
    reply.feed(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
    return reply


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


SEEDS = (NodeAddress("a", 1), NodeAddress("b", 1), NodeAddress("c", 1))


def cluster(clock: Clock) -> Cluster:
    return Cluster(Address("http", SEEDS, None, None), clock)


def test_requests_go_round() -> None:
    asked = cluster(Clock())
    assert [asked.order()[0].host for _ in range(6)] == ["a", "b", "c", "a", "b", "c"]


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("fo"), st.integers(0, 40))))
def test_all_nodes_are_always_tried_and_those_in_trouble_last(
    steps: list[tuple[str, str, int]],
) -> None:
    clock = Clock()
    asked = cluster(clock)
    asked.learn(reply_of(["b", "c", "d"]), SEEDS[0])
    until: dict[str, tuple[int, float]] = {}
    for host, what, seconds in steps:
        node = NodeAddress(host, 1)
        if what == "f":
            asked.failed(node)
            failures = until.get(host, (0, 0.0))[0] + 1
            until[host] = failures, clock.time + min(30.0, 2.0 ** (failures - 1))
        else:
            asked.answered(node)
            until.pop(host, None)
        clock.time += seconds
        order = [node.host for node in asked.order()]
        assert sorted(order) == ["a", "b", "c", "d"]
        avoided = {name for name, (_, end) in until.items() if end > clock.time}
        assert set(order[len(order) - len(avoided) :]) == avoided


def test_the_list_is_read_now_and_then_and_soon_after_a_failure() -> None:
    clock = Clock()
    asked = cluster(clock)
    assert (asked.is_due(), asked.is_due()) == (True, False)
    clock.time += 9.9
    assert not asked.is_due()
    clock.time += 0.1
    assert asked.is_due()
    asked.failed(SEEDS[0])
    assert (asked.is_due(), asked.is_due()) == (True, False)
    asked.failed(SEEDS[0])
    assert not asked.is_due()
    clock.time += 1
    assert asked.is_due()


@pytest.mark.parametrize(
    ("listed", "nodes"),
    [
        (["10.0.0.1", "10.0.0.2"], [("10.0.0.1", 7), ("10.0.0.2", 7)]),
        (["127.0.0.1:8", "127.0.0.1:9"], [("127.0.0.1", 8), ("127.0.0.1", 9)]),
        (["::1", "[::2]:9"], [("::1", 7), ("::2", 9)]),
    ],
)
def test_a_list_of_nodes_is_taken_over(listed: list[str], nodes: list[tuple[str, int]]) -> None:
    asked = cluster(Clock())
    assert asked.learn(reply_of(listed), NodeAddress("x", 7))
    assert [tuple(node) for node in asked.nodes] == nodes


@pytest.mark.parametrize("reply", [reply_of([]), reply_of(["a"], 404)])
def test_an_empty_list_changes_nothing(reply: HttpReply) -> None:
    asked = cluster(Clock())
    assert not asked.learn(reply, SEEDS[0])
    assert asked.nodes == SEEDS


# What may be repeated


@pytest.mark.parametrize(
    ("operation", "request_", "may_be"),
    [
        ("GetItem", {}, True),
        ("Query", {}, True),
        ("PutItem", {"Item": {}}, True),
        ("PutItem", {"Item": {}, "ReturnValues": "ALL_OLD"}, False),
        ("PutItem", {"ConditionExpression": "attribute_not_exists(a)"}, False),
        ("PutItem", {"Expected": {"a": {"Exists": False}}}, False),
        ("DeleteItem", {}, True),
        ("DeleteItem", {"ConditionExpression": "a = :b"}, False),
        ("UpdateItem", {}, True),
        ("UpdateItem", {"UpdateExpression": "SET a = :a, #b.c = :b REMOVE d"}, True),
        ("UpdateItem", {"UpdateExpression": "remove d set a = :a"}, True),
        ("UpdateItem", {"UpdateExpression": "SET a = a + :a"}, False),
        ("UpdateItem", {"UpdateExpression": "SET a = :a, b = if_not_exists(b, :b)"}, False),
        ("UpdateItem", {"UpdateExpression": "REMOVE a[0]"}, False),
        ("UpdateItem", {"UpdateExpression": "ADD a :a"}, False),
        ("UpdateItem", {"AttributeUpdates": {}}, False),
        ("BatchWriteItem", {}, True),
        ("TransactWriteItems", {}, True),
        ("CreateTable", {}, True),
        ("ExecuteStatement", {"Statement": " select * from t"}, True),
        ("ExecuteStatement", {"Statement": "UPDATE t SET a = 1 WHERE b = 2"}, False),
        ("BatchExecuteStatement", {"Statements": [{"Statement": "SELECT 1"}] * 2}, True),
        ("ExecuteTransaction", {}, False),
        ("RestoreTableFromBackup", {}, False),
    ],
)
def test_what_may_be_repeated(operation: str, request_: dict[str, Any], may_be: bool) -> None:
    assert is_repeatable(operation, request_) == may_be


# Deliveries


def delivery(operation: str, request_: dict[str, Any], attempts: Attempts) -> RequestDelivery:
    return RequestDelivery(cluster(Clock()), operation, request_, attempts)


ADDITION = {"TableName": "t", "UpdateExpression": "ADD n :one"}


def test_an_error_that_a_node_answered_is_not_called_lost() -> None:
    sent = delivery("UpdateItem", ADDITION, Retries().begin())
    with pytest.raises(ConnectionFailed) as caught:
        sent.delay_after(InternalServerError("boom"))
    assert str(caught.value).startswith(
        "a:1 answered UpdateItem with status 500 (boom), and may have executed it; it was not "
        "repeated on another node"
    )
    assert caught.value.sent
    sent = delivery("UpdateItem", ADDITION, Retries().begin())
    with pytest.raises(ConnectionFailed, match=r"the answer .* was lost \(gone\), so a:1 may have"):
        sent.delay_after(ConnectionFailed("gone"))


@pytest.mark.parametrize("deadline", [None, 0.0])
def test_no_node_is_tried_after_the_deadline(deadline: float | None) -> None:
    retries = Retries(within=-1 if deadline is None else 60)
    sent = delivery("GetItem", {"TableName": "t"}, retries.begin(deadline))
    with pytest.raises(ConnectionFailed, match=r"^gone$"):
        sent.delay_after(ConnectionFailed("gone", sent=False))
    sent = delivery("GetItem", {"TableName": "t"}, Retries().begin())
    assert sent.delay_after(ConnectionFailed("gone", sent=False)) == 0
    assert sent.node == SEEDS[1]


# Nodes


class FakeNode(http.server.ThreadingHTTPServer):
    """A node that executes what it is asked on a shared database, and can lose its answers."""

    def __init__(self, database: isotone.Database) -> None:
        self.database = database
        self.asked: list[str] = []
        self.lose: Callable[[str], bool] = lambda operation: False
        self.listed: dict[str, list[str]] = {}
        self.connections = 0
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def name(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeNode

    def setup(self) -> None:
        self.server.connections += 1
        super().setup()

    def finish(self) -> None:
        super().finish()
        self.server.connections -= 1

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self._send(200, json.dumps(self.server.listed.get(self.path, [])).encode())

    def do_POST(self) -> None:
        operation = self.headers["X-Amz-Target"].partition(".")[2]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append(operation)
        try:
            status, answer = 200, self.server.database.send(operation, body)
        except isotone.errors.ApiError as error:
            status, answer = error.status, msgspec.json.encode(error.body())
        if self.server.lose(operation):
            self.close_connection = True
            return
        self._send(status, answer)

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def nodes(count: int = 3) -> Iterator[list[FakeNode]]:
    with isotone.open() as database, contextlib.ExitStack() as stack:
        made = [FakeNode(database) for _ in range(count)]
        for node in made:
            node.listed["/localnodes"] = [each.name for each in made]
            thread = threading.Thread(target=node.serve_forever, args=(0.01,), daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(node.server_close)
            stack.callback(node.shutdown)
        yield made


def of(made: list[FakeNode], more: str = "") -> str:
    return f"alternator://{','.join(node.name for node in made)}{more}"


counts = Table("counts")


class Count(Entity, table=counts):
    name: Attr[str] = field()
    value: Attr[int] = field(default=0)
    note: Attr[str] = field(default="")
    primary = Key("COUNT", name).sort("COUNT")


def test_requests_are_spread_over_the_nodes_that_one_lists() -> None:
    with nodes() as made, isotone.connect(of(made[:1])) as store:
        store.create_tables(counts)
        for number in range(9):
            store.put(Count(name=str(number)))
        puts = [node.asked.count("PutItem") for node in made]
        assert sum(puts) >= 9
        assert max(puts) - min(puts) <= 1


def test_connections_to_nodes_that_left_are_closed() -> None:
    with nodes() as made, isotone.connect(of(made[:1])) as store:
        store.create_tables(counts)
        for number in range(3):
            store.put(Count(name=str(number)))
        assert all(node.connections for node in made)
        for node in made:
            node.listed["/localnodes"] = [each.name for each in made[:2]]
        end = time.monotonic() + 20
        while made[2].connections:
            assert time.monotonic() < end
            lost_once(made[0], "GetItem")  # so the list is read anew
            assert store.get(Count, name="0") is not None


def test_a_rack_without_nodes_falls_back_to_its_data_center() -> None:
    with nodes(2) as made:
        made[0].listed = {"/localnodes?dc=d": [made[1].name]}
        with isotone.connect(of(made[:1], "?datacenter=d&rack=r")) as store:
            store.create_tables(counts)
        assert made[0].asked == ["/localnodes?dc=d&rack=r", "/localnodes?dc=d"]
        assert "CreateTable" in made[1].asked


def lost_once(node: FakeNode, operation: str) -> None:
    """Lose the next answer to an operation, after it was executed."""
    pending = [operation]

    def lose(asked: str) -> bool:
        if asked in pending:
            pending.remove(asked)
            return True
        return False

    node.lose = lose


def prepared(made: list[FakeNode]) -> None:
    with isotone.connect(of(made)) as store:
        store.create_tables(counts)
        store.put(Count(name="a", value=1))


def test_a_put_and_a_read_whose_answer_is_lost_go_to_the_next_node() -> None:
    with nodes() as made, isotone.connect(of(made), retries=Retries(base=0.001)) as store:
        prepared(made)
        for node in made:
            lost_once(node, "PutItem")
        store.put(Count(name="a", value=2))
        for node in made:
            lost_once(node, "GetItem")
        got = store.get(Count, name="a")
        assert got is not None
        assert got.value == 2


def test_an_addition_whose_answer_is_lost_is_not_repeated() -> None:
    patient = Retries(base=0.001)
    with nodes() as made, isotone.connect(of(made), retries=patient, check_keys=False) as store:
        prepared(made)
        for node in made:
            node.asked.clear()
        for node in made:
            lost_once(node, "UpdateItem")
        with pytest.raises(
            ConnectionFailed, match=r"may have executed it; it was not repeated"
        ) as e:
            store.update(Count, Count.value.add(1), name="a")
        assert e.value.sent
        assert sum(node.asked.count("UpdateItem") for node in made) == 1
        got = store.get(Count, name="a")
        assert got is not None
        assert got.value == 2


def test_a_node_that_is_down_is_passed_over_for_any_request() -> None:
    with nodes() as made, isotone.connect(of(made), timeouts=Timeouts(connect=1, read=5)) as store:
        prepared(made)
        made[0].shutdown()
        made[0].server_close()
        for _ in range(12):
            store.update(Count, Count.value.add(1), name="a")
        got = store.get(Count, name="a")
        assert got is not None
        assert got.value == 13


def test_a_cluster_that_is_down_fails_after_its_retries() -> None:
    with nodes(2) as made:
        address = of(made)
    with (
        isotone.connect(address, retries=Retries(attempts=3, base=0.001)) as store,
        pytest.raises(ConnectionFailed, match=r"cannot connect to http://127\.0\.0\.1"),
    ):
        store.get(Count, name="a")


def test_the_async_store_does_the_same() -> None:
    async def main(made: list[FakeNode]) -> None:
        retries = Retries(base=0.001)
        async with isotone.aconnect(of(made[:2]), retries=retries, credentials=TOKEN) as store:
            await asyncio.gather(*(store.put(Count(name=f"n{each}")) for each in range(9)))
            for each in range(9, 12):  # when the list has been read
                await store.put(Count(name=f"n{each}"))
            assert all(node.asked.count("PutItem") for node in made)
            for node in made:
                lost_once(node, "UpdateItem")
            with pytest.raises(ConnectionFailed, match="read the item, then decide"):
                await store.update(Count, Count.value.add(1), name="a")
            for node in made:
                node.lose = lambda operation: False
            made[0].shutdown()
            made[0].server_close()
            for _ in range(6):
                await store.update(Count, Count.value.add(1), name="n1")
            got = await store.get(Count, name="n1")
            assert got is not None
            assert got.value == 6

    with nodes() as made:
        prepared(made)
        asyncio.run(main(made))
