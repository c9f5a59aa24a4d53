"""Ids are unique and sort in the order in which they were made, whatever the clock does."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from threading import Barrier, Thread
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from isotone.clock import ManualClock
from isotone.codec import ids
from isotone.codec.ids import KSUID, ULID, Ksuids, Ulids, Uuid7s, id_with, time_of, uuid7
from isotone.errors import MalformedKey, OutOfRange

LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)
NOW = datetime(2026, 3, 1, 12, 30, 15, tzinfo=UTC)
GENERATORS = [Ksuids, Ulids, Uuid7s]
MAKERS: list[Callable[[], Any]] = [KSUID.new, ULID.new, uuid7]
TICK = {Ksuids: timedelta(seconds=1), Ulids: timedelta(milliseconds=1)}
TICK[Uuid7s] = TICK[Ulids]

generators = pytest.mark.parametrize("generator", GENERATORS)


@pytest.mark.parametrize("make", MAKERS)
def test_a_hundred_thousand_are_unique_and_in_order(make: Callable[[], Any]) -> None:
    made = [make() for _ in range(100_000)]
    assert made == sorted(made)
    assert len(set(made)) == 100_000
    assert [str(each) for each in made] == sorted(map(str, made))


@generators
@settings(max_examples=examples(50))
@given(steps=st.lists(st.floats(-5, 5) | st.just(0.0), max_size=30))
def test_the_order_holds_whatever_the_clock_does(generator: Any, steps: list[float]) -> None:
    clock = ManualClock(NOW)
    maker = generator(clock)
    made = [maker.new()]
    for step in steps:
        clock.set(clock.now() + step)
        made.append(maker.new())
    assert all(one < other for one, other in pairwise(made))


@generators
def test_the_time_is_read_back(generator: Any) -> None:
    maker = generator(ManualClock(NOW))
    assert [time_of(maker.new()) for _ in range(100)] == [NOW] * 100
    later = generator(ManualClock(NOW + TICK[generator]))
    assert time_of(later.new()) == NOW + TICK[generator]


@generators
def test_the_largest_of_a_tick_carries_into_the_next(
    generator: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock(NOW)
    maker = generator(clock)
    monkeypatch.setattr(ids.os, "urandom", lambda size: b"\xff" * size)
    largest, carried = maker.new(), maker.new()
    assert time_of(largest) == NOW
    assert time_of(carried) == NOW + TICK[generator]
    # The next tick has already begun, so reaching it takes no lesser random bits.
    clock.advance(TICK[generator])
    monkeypatch.setattr(ids.os, "urandom", lambda size: b"\x00" * size)
    assert largest < carried < maker.new()


@generators
def test_writers_at_one_time_do_not_collide(generator: Any) -> None:
    clock = ManualClock(NOW)
    one, other = generator(clock), generator(clock)
    assert not {one.new() for _ in range(1000)} & {other.new() for _ in range(1000)}


@generators
def test_threads_share_a_generator(generator: Any) -> None:
    maker, start, made = generator(ManualClock(NOW)), Barrier(4), []

    def make() -> None:
        start.wait()
        mine = [maker.new() for _ in range(2000)]
        assert mine == sorted(mine)
        made.extend(mine)

    threads = [Thread(target=make) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 8000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without fork")
@generators
def test_a_forked_child_repeats_nothing(generator: Any) -> None:
    maker = generator(ManualClock(NOW))
    before = maker.new()
    with maker._lock:  # as another thread may hold it at that moment
        texts = in_child(lambda: [str(maker.new()) for _ in range(1000)])
    parents = [str(maker.new()) for _ in range(1000)]
    assert len(texts) == 1000
    assert texts == sorted(texts)
    assert texts[0] > str(before)
    assert not set(texts) & set(parents)


def in_child(make: Callable[[], list[str]]) -> list[str]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)  # a child that hangs ends, and the test fails
        try:
            os.write(writer, " ".join(make()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        texts = pipe.read().split()
    os.waitpid(child, 0)
    return texts


@pytest.mark.parametrize(
    ("generator", "year"), [(Ksuids, 2013), (Ksuids, 2151), (Ulids, 1969), (Uuid7s, 1969)]
)
def test_a_clock_beyond_all_ids_is_refused(generator: Any, year: int) -> None:
    with pytest.raises(OutOfRange, match="outside the range of times"):
        generator(ManualClock(datetime(year, 1, 1, tzinfo=UTC))).new()


def test_known_ids() -> None:
    """The examples of the specifications."""
    assert KSUID("0ujtsYcgvSTl8PAuAdqWYSMnLOv").time == datetime(2017, 10, 10, 4, 0, 47, tzinfo=UTC)
    assert time_of(ULID("01ARZ3NDEKTSV4RRFFQ69G5FAV")) == datetime(
        2016, 7, 30, 23, 54, 10, 259000, tzinfo=UTC
    )
    assert time_of(UUID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")) == datetime(
        2022, 2, 22, 19, 22, 22, tzinfo=UTC
    )


def test_uuids_say_what_they_are() -> None:
    made = uuid7()
    assert (made.version, made.variant) == (7, "specified in RFC 4122")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (KSUID, "0ujtsYcgvSTl8PAuAdqWYSMnLO"),
        (KSUID, "0ujtsYcgvSTl8PAuAdqWYSMnLO!"),
        (KSUID, "aWgEPTl1tmebfsQzFP4bxwgy80W"),
        (ULID, "81ARZ3NDEKTSV4RRFFQ69G5FAV"),
        (ULID, "01ARZ3NDEKTSV4RRFFQ69G5FAU"),
        (ULID, ""),
        (ULID, 7),
    ],
)
def test_other_texts_are_refused(kind: Any, text: Any) -> None:
    with pytest.raises(MalformedKey, match=f"is not a {kind.__name__}"):
        kind(text)


def test_the_greatest_are_taken() -> None:
    assert KSUID("aWgEPTl1tmebfsQzFP4bxwgy80V") == "aWgEPTl1tmebfsQzFP4bxwgy80V"
    assert ULID("7zzzzzzzzzzzzzzzzzzzzzzzzz") == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"


@pytest.mark.parametrize(
    "greatest", [ULID("7" + "Z" * 25), UUID("ffffffff-ffff-7fff-bfff-ffffffffffff")]
)
def test_a_time_after_the_year_9999_is_none(greatest: ULID | UUID) -> None:
    with pytest.raises(OutOfRange, match=f"'{greatest}' has a time after the year 9999"):
        time_of(greatest)
    assert time_of(id_with(type(greatest), LATEST, 0)) == LATEST


def test_other_uuids_hold_no_such_time() -> None:
    with pytest.raises(MalformedKey, match="neither a KSUID, a ULID nor a UUID of version 7"):
        time_of(UUID(int=4))


@pytest.mark.parametrize("kind", [KSUID, ULID])
def test_ids_are_strings_that_stay_what_they_are(kind: Any) -> None:
    made = kind.new()
    assert isinstance(made, str)
    assert kind(made) is made
    for copied in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert type(copied) is kind
        assert copied == made


@pytest.mark.parametrize("kind", [KSUID, ULID])
def test_ids_are_types_of_pydantic_fields(kind: Any) -> None:
    pydantic = pytest.importorskip("pydantic")
    fields = pydantic.TypeAdapter(dict[str, kind])
    made = kind.new()
    read = fields.validate_python({"id": str(made)})["id"]
    assert type(read) is kind
    assert read == made
    assert fields.dump_json({"id": made}) == f'{{"id":"{made}"}}'.encode()
    assert type(fields.validate_json(f'{{"id":"{made}"}}')["id"]) is kind
    with pytest.raises(pydantic.ValidationError, match="is no"):
        fields.validate_python({"id": "x"})


def test_importing_ids_imports_no_pydantic() -> None:
    program = "import sys, isotone.codec.ids; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
