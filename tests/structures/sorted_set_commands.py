"""Random commands for sorted sets, and the two who carry them out: a Redis server, and ours.

A command is data: its name, the sets it is about, and its other arguments under redis-py's names. Scores
are quarters, which floats and decimals have in common; there are few members and scores, so that ties,
overwritten members and empty results are common. Commands by bytes are for the set whose members have one
score, as Redis asks.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.structures import SortedSet

SCORED, LEXICAL = ("a", "b", "c"), "lex"
SETS = (*SCORED, LEXICAL)


@dataclass(frozen=True)
class Command:
    """One command; `sets` are the others it is about, with weights where it takes such."""

    name: str
    on: str
    arguments: dict[str, Any] = field(default_factory=dict)
    sets: Any = None

    def __repr__(self) -> str:
        others = "" if self.sets is None else f"{self.sets}, "
        inner = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.on}.{self.name}({others}{inner})"


members = st.sampled_from(["", "a", "b", "c", "A", "aa", "a b", "#", "$", "*", "é", "～", "😀"])
scores = st.integers(-8, 8).map(lambda quarters: quarters / 4)
counts = st.none() | st.integers(-1, 4)
flags = st.booleans()
ranks = st.integers(-6, 6)
seldom = st.integers(0, 3).map(lambda number: number == 0)

score_bounds = (
    scores
    | scores.map(lambda score: f"({score}")
    | st.sampled_from(["-inf", "+inf", "inf", "(inf", "(-inf", float("-inf"), float("inf"), "x"])
)
member_bounds = st.sampled_from(["-", "+", "a"]) | st.builds(
    lambda sign, member: sign + member, st.sampled_from("[("), members
)
limits = st.just({}) | st.fixed_dictionaries({"start": st.integers(-1, 4), "num": ranks})
slices = st.just({}) | st.fixed_dictionaries({"offset": st.integers(-1, 4), "num": ranks})
weights = st.sampled_from([0, 0.5, 1, 2, -1])
lists = st.lists(st.sampled_from(SETS), min_size=1, max_size=3, unique=True)
mappings = st.dictionaries(st.sampled_from(SETS), weights, min_size=1, max_size=3)
aggregates = st.sampled_from([None, "SUM", "MIN", "MAX", "min"])


def arguments(**each: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(each)


def with_limit(
    one: st.SearchStrategy[dict[str, Any]], other: st.SearchStrategy[dict[str, Any]]
) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda first, second: {**first, **second}, one, other)


by_rank = arguments(start=ranks, end=ranks, desc=flags)
by_score = with_limit(
    arguments(start=score_bounds, end=score_bounds, byscore=st.just(True), desc=flags), slices
)
by_lex = with_limit(
    arguments(start=member_bounds, end=member_bounds, bylex=st.just(True), desc=flags), slices
)
scored_range = arguments(min=score_bounds, max=score_bounds)
lexical_range = arguments(min=member_bounds, max=member_bounds)
popped = arguments(count=counts)

# What each command takes, on any set.
ANYWHERE: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "zrange": with_limit(by_rank, arguments(withscores=flags))
    | with_limit(by_score, arguments(withscores=flags)),
    "zrevrange": arguments(start=ranks, end=ranks, withscores=flags),
    "zrangebyscore": with_limit(with_limit(scored_range, limits), arguments(withscores=flags)),
    "zrevrangebyscore": with_limit(with_limit(scored_range, limits), arguments(withscores=flags)),
    "zrank": arguments(value=members, withscore=flags),
    "zrevrank": arguments(value=members, withscore=flags),
    "zcount": scored_range,
    "zscore": arguments(value=members),
    "zmscore": arguments(members=st.lists(members, max_size=4)),
    "zcard": arguments(),
    "zrem": arguments(values=st.lists(members, max_size=4)),
    "zremrangebyrank": arguments(min=ranks, max=ranks),
    "zremrangebyscore": scored_range,
    "zpopmin": popped,
    "zpopmax": popped,
    "zrandmember": arguments(count=st.none() | st.integers(-4, 4), withscores=flags),
    "zscan": arguments(
        match=st.sampled_from([None, "*", "a*", "[a-c]*", "[^a]*", r"\**", "*a", "a?", "[A"]),
        count=st.sampled_from([None, 1, 3]),
    ),
}
BY_BYTES: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "zrange": by_lex,
    "zrangebylex": with_limit(lexical_range, limits),
    "zrevrangebylex": with_limit(lexical_range, limits),
    "zlexcount": lexical_range,
    "zremrangebylex": lexical_range,
}
SCORING: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "zadd": arguments(
        mapping=st.dictionaries(members, scores, max_size=5),
        **dict.fromkeys(("nx", "xx", "ch", "gt", "lt", "incr"), seldom),
    )
    | arguments(mapping=st.dictionaries(members, scores, min_size=1, max_size=1), incr=flags),
    "zincrby": arguments(amount=scores, value=members),
}
READING_SEVERAL: dict[str, tuple[Any, Any]] = {
    "zunion": (lists | mappings, arguments(aggregate=aggregates, withscores=flags)),
    "zinter": (lists | mappings, arguments(aggregate=aggregates, withscores=flags)),
    "zdiff": (lists, arguments(withscores=flags)),
    "zintercard": (lists, arguments(limit=st.integers(-1, 3))),
}
STORING: dict[str, tuple[Any, Any]] = {
    "zunionstore": (lists | mappings, arguments(aggregate=aggregates)),
    "zinterstore": (lists | mappings, arguments(aggregate=aggregates)),
    "zdiffstore": (lists, arguments()),
    "zrangestore": (st.sampled_from(SETS), by_rank | by_score),
}
EXPIRING: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "expire": arguments(
        time=st.sampled_from([1_000, 10_000, 100_000, -1]),
        **dict.fromkeys(("nx", "xx", "gt", "lt"), seldom),
    ),
    "persist": arguments(),
    "ttl": arguments(),
    "delete": arguments(),
}
POPPING = arguments(min=flags, max=flags, count=st.integers(0, 3))
FILLING = arguments(mapping=st.dictionaries(members, scores, min_size=1, max_size=8))


def _of(table: dict[str, Any], sets: Iterable[str]) -> list[st.SearchStrategy[Command]]:
    return [
        st.builds(Command, st.just(name), st.sampled_from([*sets]), taken)
        for name, taken in table.items()
    ]


def _about(table: dict[str, tuple[Any, Any]]) -> list[st.SearchStrategy[Command]]:
    return [
        st.builds(Command, st.just(name), st.sampled_from(SCORED), taken, others)
        for name, (others, taken) in table.items()
    ]


same_score = st.builds(
    lambda chosen: {"mapping": dict.fromkeys(chosen, 0)}, st.lists(members, min_size=1, max_size=8)
)


@functools.cache  # A strategy that is made for each example takes longer than what it draws.
def commands(*, expiring: bool = False) -> st.SearchStrategy[list[Command]]:
    """Sequences of commands; sets are filled often enough for the others to find something."""
    filled = st.builds(Command, st.just("zadd"), st.sampled_from(SCORED), FILLING)
    lexical = st.builds(Command, st.just("zadd"), st.just(LEXICAL), same_score)
    popping = st.builds(Command, st.just("zmpop"), st.sampled_from(SETS), POPPING, lists)
    each = st.one_of(
        filled,
        lexical,
        popping,
        *_of(ANYWHERE, SETS),
        *_of(BY_BYTES, [LEXICAL]),
        *_of(SCORING, SCORED),
        *_about(READING_SEVERAL),
        *_about(STORING),
        *(_of(EXPIRING, SETS) if expiring else _of({"delete": arguments()}, SETS)),
    )
    return st.builds(
        lambda first, rest: [*first, *rest],
        st.tuples(filled, lexical, filled),
        st.lists(each, min_size=1, max_size=25),
    )


# Who carries them out

_names = itertools.count()


class Ours:
    """Our sorted sets; `result` makes of what a method gives what it is about: it may have to be awaited."""

    def __init__(
        self, make: Callable[[str], Any], result: Callable[[Any], Any] = lambda given: given
    ) -> None:
        number = next(_names)
        self.sets: dict[str, Any] = {name: make(f"{number}:{name}") for name in SETS}
        self._result = result

    def perform(self, command: Command) -> Any:
        try:
            return self._perform(command)
        except UsageError:
            return "refused"

    def _perform(self, command: Command) -> Any:
        given, taken = self.sets[command.on], dict(command.arguments)
        if command.name == "zscan":
            return self._scanned(given, taken)
        method = getattr(given, command.name)
        if command.name == "zrem":
            return self._result(method(*taken["values"]))
        if command.sets is None:
            return self._result(method(**taken))
        return self._result(method(self._others(command), **taken))

    def _others(self, command: Command) -> Any:
        if isinstance(command.sets, str):
            return self.sets[command.sets]
        if isinstance(command.sets, dict):
            return {self.sets[name]: weight for name, weight in command.sets.items()}
        return [self.sets[name] for name in command.sets]

    def _scanned(self, given: SortedSet, taken: dict[str, Any]) -> list[Any]:
        cursor: Any = 0
        seen: list[Any] = []
        while True:
            cursor, found = self._result(given.zscan(cursor, **taken))
            seen += found
            if cursor == 0:
                return sorted(seen)


class Theirs:
    """A Redis server, through redis-py."""

    def __init__(self, client: Any) -> None:
        import redis

        self._client = client
        self._refusals = (redis.ResponseError, redis.DataError)
        self._number = next(_names)

    def key(self, name: str) -> str:
        return f"{self._number}:{name}"

    def perform(self, command: Command) -> Any:
        try:
            return self._perform(command)
        except self._refusals:
            return "refused"

    def _perform(self, command: Command) -> Any:
        taken, key = dict(command.arguments), self.key(command.on)
        special = getattr(self, f"_{command.name}", None)
        if special is not None:
            return special(key, taken)
        method = getattr(self._client, command.name)
        if command.sets is None:
            return method(key, **taken)
        others = self._keys(command)
        if command.name == "zrangestore":
            return method(key, others, **taken)
        if command.name in STORING:
            return method(key, others, **taken)
        others = _first(key, others)
        if command.name in ("zmpop", "zintercard"):
            return method(len(others), others, **taken)
        return method(others, **taken)

    def _keys(self, command: Command) -> Any:
        if isinstance(command.sets, str):
            return self.key(command.sets)
        if isinstance(command.sets, dict):
            return {self.key(name): weight for name, weight in command.sets.items()}
        return [self.key(name) for name in command.sets]

    def _zrem(self, key: str, taken: dict[str, Any]) -> Any:
        return self._client.zrem(key, *taken["values"])

    def _zscan(self, key: str, taken: dict[str, Any]) -> Any:
        return sorted(self._client.zscan_iter(key, **taken))

    def _zrank(self, key: str, taken: dict[str, Any], name: str = "zrank") -> Any:
        """WITHSCORE is of a later version than many servers'."""
        rank = getattr(self._client, name)(key, taken["value"])
        if not taken["withscore"] or rank is None:
            return rank
        return [rank, self._client.zscore(key, taken["value"])]

    def _zrevrank(self, key: str, taken: dict[str, Any]) -> Any:
        return self._zrank(key, taken, "zrevrank")

    def _delete(self, key: str, taken: dict[str, Any]) -> Any:
        return self._client.delete(key)


def _first(key: str, others: Any) -> Any:
    """The set itself before the others, as our methods have it."""
    if isinstance(others, dict):
        return others if key in others else {key: 1, **others}
    return [key, *others]


# What they answer


def comparable(command: Command, answer: Any) -> Any:
    """An answer without what two servers may differ in."""
    if command.name == "zrandmember":
        return _form_of_random(command, answer)
    if command.name == "ttl":
        return min(answer, 1)
    if command.name == "zmpop" and isinstance(answer, list):
        name, found = answer
        return [name.partition(":")[2], [plain(each) for each in found]]
    return plain(paired(answer))


def _form_of_random(command: Command, answer: Any) -> Any:
    if not isinstance(answer, list):
        return answer is None
    return len(paired(answer))


def paired(answer: Any) -> Any:
    """Some answers of redis-py are flat: members and scores, as bytes, in turn."""
    if isinstance(answer, list) and any(isinstance(each, bytes) for each in answer):
        return list(zip(answer[::2], answer[1::2], strict=True))
    return answer


def plain(answer: Any) -> Any:
    """Numbers as floats, and pairs as lists."""
    if isinstance(answer, list | tuple):
        return [plain(each) for each in answer]
    if isinstance(answer, Decimal | float | bytes) or type(answer) is int:
        return float(answer)
    return answer
