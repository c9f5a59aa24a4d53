"""The inputs that the fuzzers keep, and a few changes of each: nothing but answers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from tests.attack.fuzz.fuzzing import Fuzzer, inputs_of
from tests.attack.fuzz.targets import TARGETS
from tests.effort import LONG

SECONDS = 60.0 if LONG else 0.2


@pytest.fixture
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("target", TARGETS)
def test_what_the_fuzzers_found_is_answered(target: str) -> None:
    with TARGETS[target]() as run:
        for known in inputs_of(target):
            run(known)
        assert Fuzzer(target, run, seed=1).run(SECONDS, trace=LONG) == []
