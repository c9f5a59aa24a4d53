"""The verdicts of the benchmark: medians, ratios, and peers that are absent."""

from __future__ import annotations

import pytest
from bench.measuring import Effort, Row, Target, alternately
from bench.report import judged, table

RATES = [
    Row("get", "ours", "/s", [90.0, 300.0, 310.0]),
    Row("get", "peer", "/s", [100.0]),
    Row("get", "gone", "/s", absent="not installed"),
]


@pytest.mark.parametrize(
    ("target", "figure", "met"),
    [
        (Target("get", "ours", "at least", 3, "peer"), 3.0, True),
        (Target("get", "ours", "at least", 3.1, "peer"), 3.0, False),
        (Target("get", "ours", "at most", 3, "peer"), 3.0, True),
        (Target("get", "ours", "at most", 299), 300.0, False),
        (Target("get", "ours", "at least", 1, "gone"), None, None),
        (Target("get", "ours", "at least", 1, "never heard of"), None, None),
        (Target("put", "ours", "at least", 1), None, None),
    ],
)
def test_a_target_is_judged_by_medians(
    target: Target, figure: float | None, met: bool | None
) -> None:
    [verdict] = judged([target], RATES)
    assert (verdict.figure, verdict.met) == (figure, met)


def test_an_absent_peer_is_reported_and_never_beaten() -> None:
    text = table(RATES, judged([Target("get", "ours", "at least", 1, "gone")], RATES))
    assert "| get | gone | absent | | | not installed |" in text
    assert "| get | ours | ≥ 1 × gone |  | absent |" in text


def test_subjects_take_turns() -> None:
    turns: list[str] = []
    subjects = {name: lambda name=name: turns.append(name) for name in "ab"}
    rows = alternately("turns", subjects, Effort(seconds=0, rounds=2, calls=1, items=0))
    assert turns == ["a", "b", "a", "b", "a", "b"]
    assert [len(row.samples) for row in rows] == [2, 2]
