"""Every operation that is promised a number of function calls runs, and is counted."""

from __future__ import annotations

from bench.measuring import QUICK

from bench import calls


def test_every_operation_is_counted() -> None:
    rows = {(row.measure, row.subject): row.value for row in calls.run(QUICK)}
    assert rows.keys() == {(target.measure, target.subject) for target in calls.TARGETS}
    assert all(value > 20 for value in rows.values())


def test_operations_call_as_few_functions_as_is_promised() -> None:
    rows = {(row.measure, row.subject): row.value for row in calls.run(QUICK)}
    for target in calls.TARGETS:
        assert rows[target.measure, target.subject] <= target.bound, target
