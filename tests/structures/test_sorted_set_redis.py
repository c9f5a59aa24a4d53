"""Random commands have the answers that a real Redis server gives, for sets of every kind, everywhere."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.structures import redis_server
from tests.structures.sorted_set_commands import (
    SETS,
    Command,
    Ours,
    Theirs,
    commands,
    comparable,
)

import isotone
from isotone import Store
from isotone.structures import SortedSet

EXAMPLES = int(os.environ.get("ISOTONE_REDIS_EXAMPLES", "24"))

KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sharded": {"shards": 3},
    "expiring": {"expires": True},
    "ranked": {"ranked": True},
    "ranked and sharded": {"ranked": True, "shards": 3},
}

of_any_kind = pytest.mark.parametrize("kind", KINDS)


def quickly(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A client of a Redis server that lives as long as the tests of this module."""
    if not redis_server.is_here():
        pytest.skip("there is no redis-server, or no redis-py: apt-get install redis-server")
    import redis

    with (
        redis_server.RedisServer(tmp_path_factory.mktemp("redis")) as server,
        redis.Redis("127.0.0.1", server.port, decode_responses=True) as client,
    ):
        yield client


def compare(sequence: list[Command], ours: Ours, theirs: Theirs) -> None:
    """Carry out the commands here and there; all answers, and in the end all members, are the same."""
    for command in sequence:
        note(repr(command))
        expected, answer = theirs.perform(command), ours.perform(command)
        if command.name == "zrandmember" and answer != "refused":
            check_random(command, answer, ours)
        assert comparable(command, answer) == comparable(command, expected), command
    for name in SETS:
        for last in (
            Command("zrange", name, {"start": 0, "end": -1, "withscores": True}),
            Command("zcard", name),
        ):
            assert comparable(last, ours.perform(last)) == comparable(last, theirs.perform(last)), (
                name
            )


def check_random(command: Command, answer: Any, ours: Ours) -> None:
    """What is drawn by lot is in the set, with its score, and once unless repetition is asked for."""
    everything = dict(
        ours.perform(Command("zrange", command.on, {"start": 0, "end": -1, "withscores": True}))
    )
    count = command.arguments["count"]
    drawn = [] if answer is None else [answer] if isinstance(answer, str) else answer
    if command.arguments["withscores"] and count is not None:
        assert all(everything[member] == score for member, score in drawn)
        drawn = [member for member, _ in drawn]
    assert everything.keys() >= set(drawn)
    assert count is None or count < 0 or len(set(drawn)) == len(drawn)


@of_any_kind
@given(st.data())
@quickly(EXAMPLES)
def test_answers_are_those_of_redis(memory: Store, redis: Any, kind: str, data: Any) -> None:
    sequence = data.draw(commands(expiring=kind == "expiring"))
    compare(sequence, sets_of(memory, kind), Theirs(redis))


@of_any_kind
@given(st.data())
@quickly(max(5, EXAMPLES // 12))
def test_answers_are_those_of_redis_everywhere(
    store: Store, redis: Any, kind: str, data: Any
) -> None:
    sequence = data.draw(commands(expiring=kind == "expiring"))
    compare(sequence, sets_of(store, kind), Theirs(redis))


@of_any_kind
@given(st.data())
@quickly(max(10, EXAMPLES // 3))
def test_answers_are_those_of_redis_when_awaited(redis: Any, kind: str, data: Any) -> None:
    sequence = data.draw(commands(expiring=kind == "expiring"))
    with asyncio.Runner() as runner:
        store = isotone.aconnect()

        def made(name: str) -> SortedSet[Any]:
            return SortedSet(store, name, **KINDS[kind])

        runner.run(made("any").create_table())
        compare(sequence, Ours(made, lambda given: runner.run(_awaited(given))), Theirs(redis))
        runner.run(store.close())


async def _awaited(given: Any) -> Any:
    return await given


def sets_of(store: Store, kind: str) -> Ours:
    SortedSet(store, "any").create_table()
    return Ours(lambda name: SortedSet(store, name, **KINDS[kind]))


# Arguments that say what Python knows without them, or which set is meant.
LEFT_OUT = {"self", "name", "key", "dest", "num_keys", "numkeys"}


def test_commands_have_the_arguments_of_redis_py() -> None:
    client = pytest.importorskip("redis").Redis
    commands = [name for name in dir(client) if name.startswith(("z", "bz"))]
    assert len(commands) > 30
    for name in [*commands, "expire", "expireat", "persist", "ttl"]:
        # The set that it is called on is where `zrangestore` writes to, so `name` is another one.
        left_out = LEFT_OUT - {"name"} if name == "zrangestore" else LEFT_OUT
        theirs = inspect.signature(getattr(client, name)).parameters
        ours = inspect.signature(getattr(SortedSet, name)).parameters
        assert list(ours)[1:] == [each for each in theirs if each not in left_out], name
