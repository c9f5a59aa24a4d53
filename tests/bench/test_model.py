"""The measurements of the modelling library run, and measure what they say."""

from __future__ import annotations

import pytest
from bench.measuring import Effort, Row, Target
from bench.model_values import values

from bench import model

BRIEF = Effort(seconds=0, rounds=1, calls=40, items=0)


@pytest.fixture(scope="module")
def rows() -> dict[tuple[str, str], Row]:
    return {(row.measure, row.subject): row for row in model.run(BRIEF)}


@pytest.mark.parametrize("target", model.TARGETS, ids=lambda each: each.measure)
def test_what_is_promised_is_measured(rows: dict[tuple[str, str], Row], target: Target) -> None:
    assert rows[target.measure, target.subject].value > 0
    if target.reference:
        peer = rows[target.measure, target.reference]
        assert peer.absent or peer.value > 0


def test_the_order_has_ten_fields_of_many_types() -> None:
    assert len(values()) == 10
    assert len({type(value) for value in values().values()}) == 7
