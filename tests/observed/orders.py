"""Requests with two and three faults, of every action: the answer is that of the first layer of its order.

    python -m tests.observed.orders [Action…] [--at ADDRESS] [--count N] [--seed N]

Each fault is sent alone first: its layer is the one that finds it (`checks.orders`). Of several faults in one request the
one of the first layer is answered, in the same words, or in a list with others of that layer. Some faults change what
another one is: a parameter that makes one useless, or one that cannot be combined (`TOGETHER`). Such a request is answered
by any layer.

With an address (`http://…`, `dynamodb://region`), the same requests are sent there, too: where it answers otherwise, its
order is another one. It must have no table named `tab`. Only `ITEMS_OF_TAB` are sent there: what the others change
remains.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import secrets
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from tests.observed.endpoints import Asked, Reply, at
from tests.oracle.base_requests import BASES_OF, GLOBAL, ITEMS_OF_TAB, OF_ITEMS, POLICY
from tests.oracle.endpoints import Answer
from tests.oracle.faults import ABSENT, ITEM, STREAMED, Path_
from tests.oracle.faulty import Case, Fault, faults, overlaps
from tests.oracle.prepared_tables import placed, prepare
from tests.oracle.scripts import Request

import isotone
from isotone.errors import ApiError, SerializationException
from isotone.operations.api import ACTIONS
from isotone.operations.checks.first_fault import OrderBranch
from isotone.operations.checks.first_fault import RefusedRequest as Refused
from isotone.operations.checks.orders import OTHERS, order_of

TOGETHER: Final = frozenset(
    {
        *("ConditionExpression", "UpdateExpression", "ProjectionExpression", "FilterExpression"),
        *("KeyConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"),
        *("Expected", "AttributeUpdates", "AttributesToGet", "ConditionalOperator", "Select"),
        *("KeyConditions", "QueryFilter", "ScanFilter", "ExclusiveStartKey", "IndexName"),
        *("Segment", "TotalSegments", "ConsistentRead", "SearchConditionExpression"),
        *("Statement", "Parameters"),
    }
)
"""Members of requests on items that make each other right or wrong."""

IN_GROUPS: Final = tuple(
    map(
        frozenset,
        (
            {
                *("BillingMode", "ProvisionedThroughput", "OnDemandThroughput", "WarmThroughput"),
                *("GlobalSecondaryIndexes", "GlobalSecondaryIndexUpdates", "TableName"),
                *("BillingModeOverride", "ProvisionedThroughputOverride"),
                *("VectorIndexes", "VectorIndexUpdates", "ReplicaUpdates"),
            },
            {
                *("KeySchema", "AttributeDefinitions", "LocalSecondaryIndexes"),
                *("GlobalSecondaryIndexes", "GlobalSecondaryIndexUpdates", "TableName"),
                *("VectorIndexes", "VectorIndexUpdates"),
            },
            {"GlobalTableName", "ReplicationGroup", "ReplicaUpdates"},
            {"SourceTableArn", "SourceTableName"},
            {"UseLatestRestorableTime", "RestoreDateTime"},
            {"ShardIteratorType", "SequenceNumber", "Timestamp"},
        ),
    )
)
"""Members of requests on tables of which one can make a rule on another one right or wrong."""

_NOW: Final = 1_767_225_600.0
_READY: Final = 600.0  # seconds until a table must be active
_NOTHING: Final = "At least one of "  # changes is required
_LISTED: Final = re.compile(r"\d+ validation errors? detected: ")


def body_of(request: Any) -> bytes:
    """A request with a token of its own."""
    return json.dumps(request).replace('"token"', f'"{secrets.token_hex(8)}"').encode()


class Ranked(msgspec.Struct, frozen=True):
    """A fault, the place of the layer that finds it, and what is answered for it alone."""

    fault: Fault
    layer: int
    message: str


class Orders:
    """A database with the tables of the requests, which tells the layer of each refusal."""

    def __init__(self) -> None:
        self._buckets = TemporaryDirectory()
        clock = isotone.ManualClock(_NOW)
        self._database = isotone.open(":memory:", s3=self._buckets.name, regions=True, clock=clock)
        self._api = self._database._api  # starts no work in the background
        away = self._database.region("eu-west-1")._api
        for name in ("glob", "free"):
            away.execute("CreateTable", {**GLOBAL, "TableName": name})
        self._names = prepare(self._ask)
        group = [{"RegionName": "us-east-1"}, {"RegionName": "eu-west-1"}]
        self._api.execute(
            "CreateGlobalTable", {"GlobalTableName": "glob", "ReplicationGroup": group}
        )
        policy = {"ResourceArn": self._names["VECTOR_ARN"], "Policy": POLICY}
        self._api.execute("PutResourcePolicy", policy)

    def close(self) -> None:
        self._database.close()
        self._buckets.cleanup()

    def answer(self, action: str, request: Any) -> str | None:
        """The message of a refusal; None for a success, which is undone."""
        with self._database.rolled_back():
            try:
                self._api.send(action, self._body(request))
            except ApiError as error:
                return error.message if not isinstance(error, SerializationException) else None
        return None

    def layer(self, action: str, request: Any) -> int | None:
        """The place of the layer that finds the first fault of a request; after all, that of the action itself."""
        try:
            refused = Refused(
                self._api.engine, action, ACTIONS[action].request, self._body(request)
            )
        except ApiError:  # what a decoder of its own refuses
            return None
        order = order_of(action)
        found = (place for place, each in enumerate(order) if each.fault(refused))
        return next(found, len(order))

    def ranked(self, action: str, number: int, dice: random.Random, most: int) -> list[Ranked]:
        """Faults of a valid request that are refused: all, or so many of them."""
        found: list[Ranked] = []
        known = faults(action, number)
        for fault in known if len(known) <= most else dice.sample(known, most):
            request = Case(action, number, (fault,)).request
            message = self.answer(action, request)
            layer = None if message is None else self.layer(action, request)
            if message is not None and layer is not None:
                found.append(Ranked(fault, layer, message))
        return found

    def _body(self, request: Any) -> bytes:
        return body_of(placed(request, self._names))

    def _ask(self, action: str, request: Request) -> Answer:
        return 200, self._api.execute(action, request)


def several(dice: random.Random, known: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """Two or three faults of different layers, no two of one member."""
    by_layer = defaultdict(list)
    for each in known:
        by_layer[each.layer].append(each)
    count = min(len(by_layer), dice.choice((2, 3)))
    chosen: list[Ranked] = []
    for layer in dice.sample(sorted(by_layer), count):
        each = dice.choice(by_layer[layer])
        if not any(overlaps(_place(each.fault), _place(other.fault)) for other in chosen):
            chosen.append(each)
    return tuple(sorted(chosen, key=lambda each: each.fault.label))


def _place(fault: Fault) -> Path_:
    """What a fault changes: a member that is left out of a list takes those behind it along."""
    is_cut = fault.value is ABSENT and isinstance(fault.path[-1], int)
    return fault.path[:-1] if is_cut else fault.path


def wrong(orders: Orders, action: str, number: int, chosen: Sequence[Ranked]) -> str | None:
    """What is wrong with the answer for several faults; None if it is that of the first layer."""
    case = Case(action, number, tuple(each.fault for each in chosen))
    try:
        request = case.request
    except (KeyError, IndexError, TypeError, AttributeError):  # one fault took the other's place
        return None
    message, first = orders.answer(action, request), min(chosen, key=lambda each: each.layer)
    if _affect_each_other(action, chosen):
        return None
    layer = None if message is None else orders.layer(action, request)
    if message is None or layer is None or layer > first.layer:
        return f"{case}\n    expected {first.message}\n    answered {message} (layer {layer})"
    if layer < first.layer or isinstance(order_of(action)[layer], OrderBranch):
        return None  # one that lists everything, because the request cannot be decoded
    if message == first.message or _sentences(first.message) <= _sentences(message):
        return None
    return f"{case}\n    expected {first.message}\n    answered {message}"


def _affect_each_other(action: str, chosen: Sequence[Ranked]) -> bool:
    if action in OF_ITEMS:
        return sum(not TOGETHER.isdisjoint(each.fault.path) for each in chosen) > 1
    members = len(OTHERS)  # a broken constraint is one whatever the rest is
    ruled = [each for each in chosen if each.layer >= members]
    if len(ruled) > 1 and any(each.message.startswith(_NOTHING) for each in ruled):
        return True  # another one is a change
    paths = [each.fault.path for each in ruled]
    if len({path[0] for path in paths}) < len(paths):
        return True
    return any(sum(not group.isdisjoint(path) for path in paths) > 1 for group in IN_GROUPS)


def _sentences(message: str) -> set[str]:
    listed = _LISTED.match(message)
    return set(message[listed.end() :].split("; ")) if listed else {message}


def requests(
    orders: Orders,
    actions: Sequence[str],
    count: int,
    dice: random.Random,
    most: int = sys.maxsize,
) -> Iterator[tuple[str, int, tuple[Ranked, ...]]]:
    """So many requests of each action, with their faults: of each valid request `most`, chosen at random."""
    for action in actions:
        places = range(len(BASES_OF[action]))
        known = [orders.ranked(action, number, dice, most) for number in places]
        for _ in range(count):
            number = dice.randrange(len(known))
            chosen = several(dice, known[number])
            if len(chosen) > 1:
                yield action, number, chosen


class Elsewhere:
    """An endpoint with the table of the requests."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        made = self._send("CreateTable", STREAMED)
        if made.status != 200:
            asked.close()
            raise SystemExit(f"the table cannot be made: {made}")
        deadline = time.monotonic() + _READY
        while not self._is_active():
            if time.monotonic() > deadline:
                asked.close()
                raise SystemExit("the table does not become active")
            time.sleep(1)
        self._put()

    def message(self, action: str, request: Any) -> str | None:
        """The message of a refusal; None for a success."""
        reply = self._asked.ask(action, body_of(request))
        if reply.status != 200:
            return reply.message
        self._put()
        return None

    def close(self) -> None:
        self._send("DeleteTable", {"TableName": "tab"})
        self._asked.close()

    def _is_active(self) -> bool:
        table = self._send("DescribeTable", {"TableName": "tab"}).body.get("Table", {})
        indexes = table.get("GlobalSecondaryIndexes", [])
        states = {table.get("TableStatus"), *(each["IndexStatus"] for each in indexes)}
        return states == {"ACTIVE"}

    def _put(self) -> None:
        self._send("PutItem", {"TableName": "tab", "Item": ITEM})

    def _send(self, action: str, request: Any) -> Reply:
        return self._asked.ask(action, json.dumps(request).encode())


def main(arguments: Sequence[str]) -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(prog="python -m tests.observed.orders")
    parser.add_argument("actions", nargs="*", help="all, if none is named")
    parser.add_argument("--at", help="also send them to http://… or dynamodb://region")
    parser.add_argument("--count", type=int, default=500, help="requests of each action")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    given = parser.parse_args(arguments)
    actions = given.actions or list(ITEMS_OF_TAB if given.at else BASES_OF)
    if given.at and not set(actions) <= set(ITEMS_OF_TAB):
        parser.error(f"only these are sent to an address: {', '.join(ITEMS_OF_TAB)}")
    print("seed", given.seed, flush=True)
    elsewhere = Elsewhere(at(given.at)) if given.at else None
    orders, sent, found = Orders(), 0, 0
    for action, number, chosen in requests(orders, actions, given.count, random.Random(given.seed)):
        sent += 1
        fault = wrong(orders, action, number, chosen) or (
            elsewhere and _otherwise(orders, elsewhere, action, number, chosen)
        )
        if fault:
            found += 1
            print(fault, flush=True)
    orders.close()
    if elsewhere is not None:
        elsewhere.close()
    print(f"{sent} requests, {found} are not answered by the first layer")
    return int(found > 0)


def _otherwise(
    orders: Orders, elsewhere: Elsewhere, action: str, number: int, chosen: Sequence[Ranked]
) -> str | None:
    """How the answer of the endpoint differs."""
    case = Case(action, number, tuple(each.fault for each in chosen))
    try:
        request = case.request
    except (KeyError, IndexError, TypeError, AttributeError):
        return None
    ours, theirs = orders.answer(action, request), elsewhere.message(action, request)
    return None if ours == theirs else f"{case}\n    here  {ours}\n    there {theirs}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
