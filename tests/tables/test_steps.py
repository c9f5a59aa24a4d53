from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from isotone import aconnect, connect
from isotone.backends.interface import Native, Request, Response, Tape
from isotone.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.model import Call, Pause, Steps

GONE = ResourceNotFoundException("gone")


def both(steps: Any, *answers: Any) -> list[tuple[Any, list[Any]]]:
    """The result of steps run in both ways, with what they asked."""
    found = []
    for is_awaited in (False, True):
        tape = Tape(answers)
        result = (
            asyncio.run(aconnect(tape).run(steps())) if is_awaited else connect(tape).run(steps())
        )
        found.append((result, tape.asked))
    return found


def test_answers_are_sent_and_the_result_returned() -> None:
    def steps() -> Steps[int]:
        first = yield Call("A", {"x": 1})
        second = yield Call("B", {"x": first["n"]})
        return int(second["n"])

    expected = (3, [("A", {"x": 1}), ("B", {"x": 2})])
    assert both(steps, {"n": 2}, {"n": 3}) == [expected, expected]


def test_steps_that_ask_nothing() -> None:
    def steps() -> Steps[str]:
        return "done"
        yield Call("A", {})

    assert both(steps) == [("done", [])] * 2


def test_errors_are_thrown_where_the_request_was_made() -> None:
    def steps() -> Steps[str]:
        try:
            yield Call("A", {})
        except ResourceNotFoundException:
            response = yield Call("B", {})
        return str(response["n"])

    assert [result for result, _ in both(steps, GONE, {"n": "ok"})] == ["ok", "ok"]


def test_errors_that_nobody_catches_arrive() -> None:
    def steps() -> Steps[None]:
        yield Call("A", {})

    with pytest.raises(ResourceNotFoundException, match="gone"):
        connect(Tape([GONE])).run(steps())
    with pytest.raises(ResourceNotFoundException, match="gone"):
        asyncio.run(aconnect(Tape([GONE])).run(steps()))


def test_an_error_may_become_another() -> None:
    def steps() -> Steps[None]:
        try:
            yield Call("A", {})
        except ResourceNotFoundException:
            raise ValidationException("ours") from None

    with pytest.raises(ValidationException, match="ours"):
        connect(Tape([GONE])).run(steps())


def test_a_pause_waits_and_is_sent_nothing() -> None:
    def steps() -> Steps[Any]:
        return (yield Pause(0.03))

    for began in (time.perf_counter(),):
        assert both(steps) == [({}, []), ({}, [])]
        assert time.perf_counter() - began >= 0.06


def test_a_pause_does_not_block_the_loop() -> None:
    def steps() -> Steps[None]:
        yield Pause(0.1)

    async def many() -> None:
        store = aconnect(Tape())
        await asyncio.gather(*(store.run(steps()) for _ in range(20)))

    began = time.perf_counter()
    asyncio.run(many())
    assert time.perf_counter() - began < 1


def test_a_lost_connection_is_raised_where_the_call_made_its_request() -> None:
    class Broken:
        def execute(self, operation: str, request: Request) -> Response:
            raise ConnectionFailed("the line is dead")

    def call() -> Steps[str]:
        try:
            yield Call("ListTables", {})
        except ConnectionFailed:
            return "what was done before"
        return "everything"

    assert connect(Broken()).run(call()) == "what was done before"


def retried(pauses: list[int]) -> Steps[bool]:
    """Whether all pauses were granted."""
    try:
        for attempt in pauses:
            yield Pause(0.03, attempt)
    except DeadlineExceeded:
        return False
    return True


@pytest.mark.parametrize(
    ("pauses", "granted"),
    [
        ([1, 2], True),
        ([1, 2, 3, 4, 5, 6, 7, 8], False),
        ([0] * 8, True),  # waiting is not a retry
        ([1, 2] * 4, True),  # progress begins a new row of attempts
    ],
)
def test_one_deadline_for_all_retries(pauses: list[int], granted: bool) -> None:
    assert connect(Tape(), deadline=0.15).run(retried(pauses)) is granted
    assert asyncio.run(aconnect(Tape(), deadline=0.15).run(retried(pauses))) is granted


def test_an_operation_that_makes_progress_outlives_the_deadline_of_its_retries() -> None:
    left: list[float | None] = []

    class Noting(Native):
        def execute(
            self, operation: str, request: Request, deadline: float | None = None
        ) -> Response:
            left.append(None if deadline is None else deadline - time.monotonic())
            time.sleep(0.03)
            return {}

    def call() -> Steps[None]:
        yield Call("ListTables", {})
        yield Pause(0.001, 1)
        for _ in range(5):
            yield Call("ListTables", {})

    connect(Noting(), deadline=0.08).run(call())
    assert left[0] is None
    assert left[1] is not None
    assert 0 < left[1] <= 0.08
    assert left[-1] is None
    assert all(each is None or each > 0 for each in left)
