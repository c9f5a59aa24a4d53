from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.backends.http_messages import error_of
from isotone.backends.request_retries import Retries, is_retryable, is_transient
from isotone.errors import (
    ApiError,
    ConditionalCheckFailedException,
    ConnectionFailed,
    LimitExceededException,
    StorageBusy,
    StorageFull,
)

THROTTLED = [
    error_of({"__type": f"com.amazon.coral.availability#{code}"}, 400)
    for code in (
        "ThrottlingException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
    )
]
PASSING = [*THROTTLED, error_of({"__type": "x#InternalServerError"}, 500), ConnectionFailed("lost")]
FINAL: list[Exception] = [
    error_of({"__type": f"x#{code}"}, 400)
    for code in ("ValidationException", "ConditionalCheckFailedException", "LimitExceededException")
]


@given(
    attempt=st.integers(1, 30),
    luck=st.floats(0, 1, exclude_max=True),
    base=st.floats(0.001, 1),
    longest=st.floats(0.001, 60),
    error=st.sampled_from(PASSING),
)
def test_waits_stay_below_a_bound_that_doubles(
    attempt: int, luck: float, base: float, longest: float, error: Exception
) -> None:
    retries = Retries(attempts=20, base=base, longest=longest, random=lambda: luck)
    delay = retries.delay(attempt, error)
    if attempt >= 20:
        assert delay is None
    else:
        assert delay is not None
        assert 0 <= delay <= min(longest, base * 2 ** (attempt - 1))


def test_waits_are_spread_over_the_whole_bound() -> None:
    drawn = [Retries(base=1.0).delay(1, PASSING[0]) for _ in range(200)]
    assert min(drawn) < 0.2 < 0.8 < max(drawn)  # type: ignore[type-var,operator]


@pytest.mark.parametrize("error", FINAL)
def test_a_refusal_is_final(error: Exception) -> None:
    assert Retries().delay(1, error) is None


def test_none_repeats_nothing() -> None:
    assert Retries.none().delay(1, PASSING[0]) is None


def test_what_may_succeed_a_moment_later_is_recognised() -> None:
    assert all(map(is_retryable, PASSING))
    assert not any(map(is_retryable, [*FINAL, ApiError("other")]))


def test_a_wait_beyond_the_deadline_is_final() -> None:
    retries = Retries(base=1.0, random=lambda: 1.0)
    assert retries.delay(1, PASSING[0], time.monotonic() + 0.5) is None
    assert retries.delay(1, PASSING[0], time.monotonic() + 60) == 1.0


@pytest.mark.parametrize(
    "error", [*PASSING, LimitExceededException("many"), StorageBusy("busy"), StorageFull("full")]
)
def test_transient_errors_are_recognised(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize("error", [FINAL[0], FINAL[1], ValueError("x")])
def test_lasting_errors_are_not_transient(error: Exception) -> None:
    assert not is_transient(error)


def test_attempts_are_counted() -> None:
    attempts = Retries(attempts=3, base=1.0, random=lambda: 1.0).begin()
    assert [attempts.delay(THROTTLED[0]) for _ in range(3)] == [1.0, 2.0, None]


def test_attempts_end_at_the_deadline() -> None:
    retries = Retries(base=1.0, within=0.5, random=lambda: 1.0)
    assert retries.begin().delay(THROTTLED[0]) is None
    assert retries.begin(time.monotonic() + 60).delay(THROTTLED[0]) is None
    patient = Retries(base=1.0, random=lambda: 1.0)
    assert patient.begin(time.monotonic() + 0.5).delay(THROTTLED[0]) is None
    assert patient.begin(time.monotonic() + 60).delay(THROTTLED[0]) == 1.0
    assert patient.begin(0.0).delay(THROTTLED[0]) is None  # a time on any monotonic clock


def test_only_a_request_that_was_sent_has_a_lost_answer() -> None:
    for sent in (False, True):
        attempts, refused = Retries().begin(), ConditionalCheckFailedException("no")
        attempts.delay(ConnectionFailed("the connection broke", sent=sent))
        attempts.delay(refused)
        assert refused.follows_lost_answer is sent
