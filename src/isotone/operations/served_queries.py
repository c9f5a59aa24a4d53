"""The most expensive queries (`/queries`, `isotone top`): requests counted by shape, with units, items and p99.

Each shape has its calls, units, items read and returned, and a histogram of the time in the engine. All requests of a quiet
server are counted. Of a busy one, queries, scans and statements are counted if they consume 16 units or more; of cheaper ones,
one every 32 units or so: one that consumes four has a chance of one in eight, and counts as eight. Of its other requests, one
of 31 is counted. A batch or transaction is one request, whose shape has each kind of its parts once. Memory is bounded:
`MOST` shapes have counts of their own, and the cheapest ones count as others of their action when more appear.

A request finds its counts by one look-up, with its expressions as they are written. Requests that differ only in the
names of placeholders, or in the values in a statement, have the same shape, and so the same counts. PartiQL is imported
with the first statement.
"""

from __future__ import annotations

import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import cycle, repeat
from operator import attrgetter
from random import random
from time import perf_counter
from typing import Any, Final, TypeAlias

import msgspec

from isotone.engine.consumed_units import Spent, per_thread
from isotone.engine.engine import Engine
from isotone.errors import ValidationException
from isotone.operations.action import ACTIONS, Action, Answer

MOST: Final = 400
"""Shapes that have counts of their own."""
BOUNDS: Final = tuple(0.00005 * 1.5**step for step in range(36))
"""Seconds, up to a minute: the upper bounds of the histograms."""
BUSY = 1000.0
"""Requests a second from which a server is busy."""

_SPELLINGS: Final = 2000  # of requests, whose counts are known by their text
_STEP: Final = 32.0  # units of queries of a busy server, of which one is counted, on average
_SAMPLED: Final = 31  # other requests of a busy server, of which one is counted; no period of a program has this length
_LOOK: Final = 1000  # requests after which the rate is looked at
_LARGEST_EXAMPLE: Final = 4096  # bytes of a request that is kept to be explained
_LONGEST: Final = 400  # characters of an expression that are shown
_OTHER: Final = "(other)"
_NAMES: Final = re.compile(r"#[A-Za-z0-9_]+")
_VALUES: Final = re.compile(r":[A-Za-z0-9_]+")
_LISTED: Final = re.compile(r"\?(?:\s*,\s*\?)+")

# What distinguishes the requests of an action, besides the names of attributes.
_MEMBERS: Final[dict[str, tuple[str, ...]]] = {
    "Query": (
        *("table_name", "index_name", "key_condition_expression", "filter_expression"),
        *("projection_expression", "key_conditions", "query_filter"),
    ),
    "Scan": (
        *("table_name", "index_name", "filter_expression", "projection_expression"),
        "scan_filter",
    ),
    "GetItem": ("table_name", "projection_expression"),
    "PutItem": ("table_name", "condition_expression"),
    "DeleteItem": ("table_name", "condition_expression"),
    "UpdateItem": ("table_name", "update_expression", "condition_expression"),
    "ExecuteStatement": ("statement",),
}
_PARTS: Final = {
    "index_name": "index",
    "key_condition_expression": "key",
    "filter_expression": "filter",
    "projection_expression": "projection",
    "condition_expression": "condition",
    "update_expression": "update",
}

# A part of a batch or transaction: its action and table, its update, condition and projection, and their names.
_Part: TypeAlias = tuple[str, str, str | None, str | None, str | None, tuple[tuple[str, str], ...]]


def _gets_of_batch(request: Any) -> list[_Part]:
    return [
        ("Get", table, None, None, each.projection_expression, _items_of(each))
        for table, each in request.request_items.items()
    ]


def _writes_of_batch(request: Any) -> list[_Part]:
    return [
        ("Delete" if is_delete else "Put", table, None, None, None, ())
        for table, writes in request.request_items.items()
        for is_delete in {write.put_request is None for write in writes}
    ]


def _gets_of_transaction(request: Any) -> list[_Part]:
    gets = [entry.get for entry in request.transact_items]
    return [
        ("Get", get.table_name, None, None, get.projection_expression, _items_of(get))
        for get in gets
    ]


def _writes_of_transaction(request: Any) -> list[_Part]:
    parts: list[_Part] = []
    for entry in request.transact_items:
        part = entry.put or entry.update or entry.delete or entry.condition_check
        action = part.__class__.__name__
        update = part.update_expression if action == "Update" else None
        condition = part.condition_expression
        parts.append((action, part.table_name, update, condition, None, _items_of(part)))
    return parts


def _items_of(part: Any) -> tuple[tuple[str, str], ...]:
    names = part.expression_attribute_names
    return () if names is None else tuple(names.items())


_PARTS_OF: Final[dict[str, Callable[[Any], Iterable[_Part | str]]]] = {
    "BatchGetItem": _gets_of_batch,
    "BatchWriteItem": _writes_of_batch,
    "TransactGetItems": _gets_of_transaction,
    "TransactWriteItems": _writes_of_transaction,
    "BatchExecuteStatement": lambda request: [each.statement for each in request.statements],
    "ExecuteTransaction": lambda request: [each.statement for each in request.transact_statements],
}


def _distinct_parts(name: str) -> Callable[[Any], tuple[_Part | str, ...]]:
    """A function from a batch or transaction to its parts, each kind once."""
    parts_of = _PARTS_OF[name]
    return lambda request: tuple(dict.fromkeys(parts_of(request)))


_get: Final[dict[str, Callable[[Any], Any]]] = {
    **{action: attrgetter(*members) for action, members in _MEMBERS.items()},
    **{action: _distinct_parts(action) for action in _PARTS_OF},
}

_NAMED: Final = frozenset(_MEMBERS) - {"ExecuteStatement"}  # with names of attributes of their own
COUNTED: Final = frozenset(_get)
"""The actions whose requests are counted."""
MAY_BE_EXPENSIVE: Final = frozenset({"Query", "Scan", "ExecuteStatement"})
"""Those of them that are counted by their units."""


class ShapeCounts(msgspec.Struct):
    """A shape, and what its requests have cost. `request` is the last one that read the most, as JSON.

    `parts` says what a batch or transaction does; `table` then has all of its tables.
    """

    action: str
    table: str = ""
    index: str = ""
    key: str = ""
    filter: str = ""
    projection: str = ""
    condition: str = ""
    update: str = ""
    statement: str = ""
    parts: str = ""
    calls: int = 0
    units: float = 0.0
    read: int = 0
    returned: int = 0
    seconds: float = 0.0
    latencies: list[int] = []
    request: msgspec.Raw = msgspec.Raw(b"null")
    most_read: int = -1
    p99: float = 0.0
    """Seconds in which 99 of 100 requests were executed."""

    @property
    def shape(self) -> tuple[str, ...]:
        """What distinguishes the shape from others."""
        return (
            *(self.action, self.table, self.index, self.key, self.filter),
            *(self.projection, self.condition, self.update, self.statement, self.parts),
        )

    def add(self, other: ShapeCounts) -> None:
        """Add the counts of the same shape, from another process, or of one that is forgotten."""
        self.calls += other.calls
        self.units += other.units
        self.read += other.read
        self.returned += other.returned
        self.seconds += other.seconds
        self.latencies = [
            one + more for one, more in zip(self.latencies, other.latencies, strict=True)
        ]
        if other.most_read > self.most_read and self.action != _OTHER:
            self.most_read, self.request = other.most_read, other.request


class ServedQueries:
    """The counts of one process."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self._by_spelling: dict[Any, ShapeCounts] = {}
        self._by_shape: dict[tuple[str, ...], ShapeCounts] = {}
        self._every = 1
        self.is_sampled: dict[str, Callable[[], bool]] = _sampled(1)
        """For each action, whether its next request runs by `run`."""
        self._step = 0.0  # units of queries of which one is counted; a quiet server counts all
        self._left = 0.0  # units until the next is counted
        self._calls = 0
        self._looked_at = perf_counter()

    def run(self, engine: Engine, action: Action, request: Any, body: bytes) -> Answer:
        """Execute a request that is sampled, or that may be expensive, and count it."""
        spent = per_thread.spent
        spent.read = spent.returned = 0
        units = spent.units
        began = perf_counter()
        answer = action.run(engine, request)
        units = spent.units - units
        calls = self._every
        if action.name in MAY_BE_EXPENSIVE:
            calls = self._queries(units)
            if calls == 0:
                return answer
        now = perf_counter()
        self._pace(calls, now)
        self._count(action.name, request, body, spent, units, now - began, calls)
        return answer

    def _queries(self, units: float) -> int:
        """How many queries of these units the executed one counts for, so that all that were executed are counted."""
        step = self._step
        if units >= step / 2:
            return 1
        # Threads that write this at once lose one of their differences, which favours no shape.
        self._left -= units
        if self._left > 0.0:
            return 0
        self._left += step * (0.5 + random())
        return int(step / max(units, 0.5) + random())  # rounded up as often as the fraction says

    def _count(
        self,
        name: str,
        request: Any,
        body: bytes,
        spent: Spent,
        units: float,
        seconds: float,
        calls: int,
    ) -> None:
        """Count a request as so many calls."""
        spelling = _spelling(name, request)
        try:
            counts = self._by_spelling.get(spelling)
        except TypeError:  # the conditions of the old parameters are dicts
            spelling = _shape(name, request).shape
            counts = self._by_spelling.get(spelling)
        if counts is None:
            counts = self._find(spelling, _shape(name, request))
        read = spent.read
        counts.calls += calls
        counts.units += units * calls
        counts.read += read * calls
        counts.returned += spent.returned * calls
        counts.seconds += seconds * calls
        counts.latencies[bisect_left(BOUNDS, seconds)] += calls
        if read >= counts.most_read and len(body) <= _LARGEST_EXAMPLE:
            counts.most_read = read
            counts.request = msgspec.Raw(bytes(body))

    def _pace(self, calls: int, now: float) -> None:
        """Count each request of a quiet server, and one of some of a busy one."""
        self._calls += calls
        if self._calls >= _LOOK:
            is_busy = self._calls > BUSY * (now - self._looked_at)
            self._step, self._every = (_STEP, _SAMPLED) if is_busy else (0.0, 1)
            self.is_sampled = _sampled(self._every)
            self._calls, self._looked_at = 0, now

    def _find(self, spelling: Any, shape: ShapeCounts) -> ShapeCounts:
        """The counts of a request that is spelled as none before it."""
        with self._lock:
            if len(self._by_spelling) >= _SPELLINGS:
                self._by_spelling.clear()
            counts = self._by_spelling[spelling] = self._own(shape)
            return counts

    def _own(self, counts: ShapeCounts) -> ShapeCounts:
        """The counts that have this shape; the given ones if it is new."""
        known = self._by_shape.get(counts.shape)
        if known is not None:
            return known
        if len(self._by_shape) >= MOST:
            self._forget_the_cheapest()
        counts.latencies = [0] * (len(BOUNDS) + 1)
        self._by_shape[counts.shape] = counts
        return counts

    def _forget_the_cheapest(self) -> None:
        """Count half of the shapes, those with the fewest units, as others of their action."""
        cheap = sorted(self._by_shape.values(), key=lambda each: each.units)[: MOST // 2]
        for each in cheap:
            del self._by_shape[each.shape]
        self._by_spelling.clear()
        for each in cheap:
            others = ShapeCounts(each.action, table=_OTHER)
            known = self._by_shape.setdefault(others.shape, others)
            known.latencies = known.latencies or [0] * (len(BOUNDS) + 1)
            known.add(each)
            known.request = msgspec.Raw(b"null")

    def json(self) -> bytes:
        """All counts, the most expensive shape first."""
        with self._lock:
            found = sorted(self._by_shape.values(), key=lambda each: -each.units)
        for each in found:
            each.p99 = _quantile(each.latencies, 0.99)
        return msgspec.json.encode({"seconds": time.monotonic() - self._began, "queries": found})

    def json_with(self, others: Iterable[bytes]) -> bytes:
        """The counts of this process and of others, each as `json` returns them, as those of one."""
        whole = ServedQueries()
        whole._began = self._began
        for part in (self.json(), *others):
            whole.add(_decode_page(part).queries)
        return whole.json()

    def take(self) -> bytes:
        """The counts since the last call, for the process that shows them; empty if there are none."""
        with self._lock:
            found = [*self._by_shape.values()]
            self._by_shape.clear()
            self._by_spelling.clear()
        return msgspec.json.encode(found) if found else b""

    def add_taken(self, taken: bytes) -> None:
        """Add what another process has taken."""
        self.add(_decode(taken))

    def add(self, counts: Iterable[ShapeCounts]) -> None:
        """Add the counts of another process."""
        with self._lock:
            for each in counts:
                if each.calls:
                    self._own(msgspec.structs.replace(each, **_EMPTY)).add(each)


def _sampled(every: int) -> dict[str, Callable[[], bool]]:
    """Which requests are counted, by their action: all that may be expensive, and of others one of so many."""
    sampled = cycle([True] + [False] * (every - 1)).__next__
    expensive = dict.fromkeys(MAY_BE_EXPENSIVE, repeat(True).__next__)
    return {
        **dict.fromkeys(ACTIONS, repeat(False).__next__),
        **dict.fromkeys(COUNTED, sampled),
        **expensive,
    }


class _Page(msgspec.Struct):
    queries: list[ShapeCounts]


_EMPTY: Final = {
    "calls": 0,
    "units": 0.0,
    "read": 0,
    "returned": 0,
    "seconds": 0.0,
    "latencies": [],
    "request": msgspec.Raw(b"null"),
    "most_read": -1,
}
_decode: Final = msgspec.json.Decoder(list[ShapeCounts]).decode
_decode_page: Final = msgspec.json.Decoder(_Page).decode


def _quantile(counts: list[int], share: float) -> float:
    """The upper bound below which a share of a histogram lies."""
    left = sum(counts) * share
    for count, bound in zip(counts, BOUNDS, strict=False):
        left -= count
        if left <= 0:
            return bound
    return BOUNDS[-1]


def _spelling(name: str, request: Any) -> Any:
    """What distinguishes the request from those of other shapes, as its client has written it."""
    members = _get[name](request)
    if name not in _NAMED:
        return name, members
    names = request.expression_attribute_names
    return name, members, None if names is None else tuple(names.items())


def _shape(name: str, request: Any) -> ShapeCounts:
    """The shape of a request, with empty counts."""
    if name == "ExecuteStatement":
        text = request.statement
        return ShapeCounts(name, table=_table_of(text), statement=_without_values(text))
    if name in _PARTS_OF:
        return _shape_of_parts(name, _get[name](request))
    names = request.expression_attribute_names or {}
    parts = {
        _PARTS[member]: _resolved(value, names)
        for member in _MEMBERS[name]
        if member in _PARTS and (value := getattr(request, member)) is not None
    }
    legacy = _legacy_of(request)
    if legacy:
        parts["key" if name == "Query" else "filter"] = legacy
    counts = ShapeCounts(name, table=request.table_name)
    return msgspec.structs.replace(counts, **parts)


def _shape_of_parts(name: str, parts: Iterable[_Part | str]) -> ShapeCounts:
    """The shape of a batch or transaction. The order of its parts, and how many there are of a kind, make no difference."""
    tables = {_table_of(part) if isinstance(part, str) else part[1] for part in parts}
    texts = {_without_values(part) if isinstance(part, str) else _text_of(*part) for part in parts}
    return ShapeCounts(
        name,
        table=", ".join(sorted(filter(None, tables))),
        parts="; ".join(sorted(texts))[:_LONGEST],
    )


def _text_of(
    action: str,
    table: str,
    update: str | None,
    condition: str | None,
    projection: str | None,
    names: Iterable[tuple[str, str]],
) -> str:
    """A part as text: `Update orders SET total = ? if status = ?`."""
    clauses = (("", update), ("if ", condition), ("returns ", projection))
    resolved = [f"{word}{_resolved(text, dict(names))}" for word, text in clauses if text]
    return " ".join([action, table, *resolved])


def _resolved(text: str, names: Mapping[str, str]) -> str:
    """An expression with the names of attributes, and without values."""
    named = _NAMES.sub(lambda found: names.get(found[0], found[0]), text)
    return _LISTED.sub("?, …", _VALUES.sub("?", named))[:_LONGEST]


def _legacy_of(request: Any) -> str:
    """The conditions of the old parameters, as text."""
    found: list[str] = []
    for member in ("key_conditions", "query_filter", "scan_filter"):
        conditions: Mapping[str, Any] = getattr(request, member, None) or {}
        found += [f"{name} {conditions[name].comparison_operator}" for name in sorted(conditions)]
    return " AND ".join(found)[:_LONGEST]


@lru_cache(maxsize=512)
def _without_values(statement: str) -> str:
    """A statement with ? for each value in it."""
    from isotone.expressions.partiql.tokenizer import StatementTokenKind as Kind
    from isotone.expressions.partiql.tokenizer import tokenize

    parts, at = [], 0
    for token in tokenize(statement):
        if token.kind in (Kind.STRING, Kind.NUMBER, Kind.ION):
            parts += [statement[at : token.start], "?"]
            at = token.end
    text = " ".join("".join([*parts, statement[at:]]).split())
    return _LISTED.sub("?, …", text)[:_LONGEST]


def _table_of(statement: str) -> str:
    from isotone.expressions.partiql import parse_statement

    try:
        parsed: Any = parse_statement(statement)
    except ValidationException:
        return ""
    return str(parsed.table)
