"""Policies of retries: how often an attempt is repeated, after which pauses, and how nested loops count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import ConnectionFailed, Contended, DeadlineExceeded, StorageBusy
from isotone.model import Call, Pause, Steps
from isotone.tables.retries import (
    CONTENTION,
    READ_THEN_WRITE,
    STALE_READS,
    THROTTLING,
    RetryNeeded,
    RetryPolicy,
)

POLICIES = [READ_THEN_WRITE, CONTENTION, STALE_READS, THROTTLING]
QUICK = RetryPolicy(attempts=5, first=0.01, longest=0.1)


def gave_up(attempts: int) -> Contended:
    return Contended(f"gave up after {attempts}")


def carried_out(
    steps: Steps[Any], answer: Callable[[Call], Any] = lambda call: {}
) -> tuple[Any, list[Pause]]:
    """The result of steps, or their error, and the pauses that they made. `answer` may raise."""
    pauses: list[Pause] = []
    try:
        step = next(steps)
        while True:
            if isinstance(step, Pause):
                pauses.append(step)
                step = steps.send({})
                continue
            assert isinstance(step, Call)
            try:
                response = answer(step)
            except ConnectionFailed as error:
                step = steps.throw(error)
            else:
                step = steps.send(response)
    except StopIteration as end:
        return end.value, pauses
    except (Contended, StorageBusy, ConnectionFailed) as error:
        return error, pauses


class Losing:
    """An attempt that loses so many times, and says how often it ran."""

    def __init__(self, times: int) -> None:
        self.runs = 0
        self._times = times

    def __call__(self) -> Steps[str]:
        self.runs += 1
        yield Call("A", {})
        if self.runs <= self._times:
            raise RetryNeeded
        return "won"


@given(times=st.integers(0, 8), at_once=st.integers(0, 4))
def test_an_attempt_runs_until_it_wins_or_the_policy_ends(times: int, at_once: int) -> None:
    policy, attempt = RetryPolicy(6, 0.01, 0.02, at_once), Losing(times)
    result, pauses = carried_out(policy.run(attempt, gave_up))
    assert attempt.runs == min(times + 1, 6)
    assert (result == "won") is (times < 6)
    assert [each.attempt for each in pauses] == [*range(1, len(pauses) + 1)]
    assert len(pauses) == max(0, attempt.runs - 1 - at_once)
    assert all(0 <= each.seconds <= 0.02 for each in pauses)


@given(levels=st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_nested_loops_add_their_attempts_and_never_multiply_them(levels: list[int]) -> None:
    attempt = Losing(10_000)
    nested: Callable[[], Steps[str]] = attempt
    for attempts in levels:

        def outer(inner: Callable[[], Steps[str]] = nested, most: int = attempts) -> Steps[str]:
            return RetryPolicy(most, 0.01, 0.02).run(inner, gave_up, lost=(RetryNeeded, Contended))

        nested = outer
    result, pauses = carried_out(nested())
    assert str(result) == f"gave up after {levels[-1]}"
    assert attempt.runs <= levels[-1]
    assert [each.attempt for each in pauses] == [*range(1, len(pauses) + 1)]  # one series


def test_waiting_inside_an_attempt_is_not_counted() -> None:
    def attempt() -> Steps[str]:
        for _ in range(20):
            yield Pause(0.5)
        return "ready"

    result, pauses = carried_out(QUICK.run(attempt, gave_up))
    assert result == "ready"
    assert pauses == [Pause(0.5)] * 20


def test_an_attempt_gets_the_errors_of_its_requests() -> None:
    asked: list[str] = []

    def attempt() -> Steps[str]:
        try:
            yield Call("A", {})
        except ConnectionFailed:
            return f"lost {(yield Call('B', {}))['n']}"
        raise AssertionError

    def answer(call: Call) -> Any:
        asked.append(call.operation)
        if call.operation == "A":
            raise ConnectionFailed("no")
        return {"n": 3}

    assert carried_out(QUICK.run(attempt, gave_up), answer) == ("lost 3", [])
    assert asked == ["A", "B"]


def test_other_errors_end_the_attempts() -> None:
    def attempt() -> Steps[str]:
        yield Call("A", {})
        raise StorageBusy("others")

    result, pauses = carried_out(QUICK.run(attempt, gave_up))
    assert isinstance(result, StorageBusy)
    assert pauses == []


def test_the_last_error_is_the_cause_and_each_is_noted() -> None:
    noted: list[Exception] = []

    def attempt() -> Steps[str]:
        yield Call("A", {})
        raise StorageBusy(f"the {len(noted)}th")

    result, _ = carried_out(QUICK.run(attempt, gave_up, lost=StorageBusy, note=noted.append))
    assert isinstance(result, Contended)
    assert len(noted) == QUICK.attempts
    assert result.__cause__ is noted[-1]


def test_a_passed_deadline_ends_the_attempts() -> None:
    steps = QUICK.run(Losing(10), gave_up)
    assert isinstance(next(steps), Call)
    assert isinstance(steps.send({}), Pause)
    with pytest.raises(DeadlineExceeded):
        steps.throw(DeadlineExceeded("over"))


@pytest.mark.parametrize("policy", POLICIES)
def test_each_policy_ends_within_the_deadline_of_a_store(policy: RetryPolicy) -> None:
    """60 seconds, so that a call ends with the error that says who was in the way."""
    longest = [min(policy.longest, policy.first * 2**n) for n in range(policy.attempts - 1)]
    assert sum(longest) < 60
