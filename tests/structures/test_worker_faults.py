"""What handlers and stores do wrong, and what a worker makes of it: it is told, counted, and holds up nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.structures.working import Bench, bench, write

from isotone import Store
from isotone.errors import ConnectionFailed, UsageError
from isotone.structures import Context


@pytest.fixture
def kit(table_name: str) -> Bench:
    return bench(table_name)


# What can never work is refused


def test_a_handler_that_would_never_be_run_is_refused(kit: Bench) -> None:
    async def awaited(event: Any, context: Context) -> None: ...

    def steps(event: Any, context: Context) -> Any:
        yield from ()

    class Called:
        async def __call__(self, event: Any, context: Context) -> None: ...

    for function in (awaited, steps, Called()):
        with pytest.raises(UsageError, match="would not be run"):
            kit.worker.on(kit.post)(function)


def test_a_worker_without_handlers_or_members_is_refused(memory: Store, kit: Bench) -> None:
    kit.worker.create_tables(memory)
    with pytest.raises(UsageError, match="no handlers"):
        kit.worker.run(memory, until_idle=True)
    kit.worker.on(kit.post)(lambda event, context: None)
    with pytest.raises(UsageError, match="1 or more"):
        kit.worker.run(memory, workers=0, until_idle=True)


# Whatever a handler raises is its event's


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "CancelledError: "),
        (OSError("no file 'a\udc80'"), "OSError: no file 'a?'"),
        (Unspeakable(), "Unspeakable: "),
    ],
)
def test_whatever_is_raised_ends_as_a_dead_letter(
    memory: Store, kit: Bench, error: BaseException, said: str
) -> None:
    @kit.worker.on(kit.post, "inserted")
    def fall(event: Any, context: Context) -> None:
        if event.entity.number == 1:
            raise error

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(3))
    done = kit.worker.run(memory, until_idle=True)
    assert (done.deliveries, done.dead_letters) == (2, 1)
    assert [each.error for each in kit.worker.dead_letters(memory)] == [said]
    assert kit.worker.redrive(memory) == (0, 1)


def test_a_store_that_does_not_answer_a_handler_makes_no_dead_letters(
    memory: Store, kit: Bench
) -> None:
    tries: list[int] = []

    @kit.worker.on(kit.post, "inserted")
    def write_elsewhere(event: Any, context: Context) -> None:
        tries.append(context.attempt)
        if len(tries) < 20:
            raise ConnectionFailed("no answer")

    kit.worker.create_tables(memory)
    write(memory, kit, "ann", range(1))
    done = kit.worker.run(memory, until_idle=True)
    assert (done.deliveries, done.dead_letters, done.retries) == (1, 0, 19)
    assert tries == [*range(1, 21)]
