"""Every operation that is promised a number of function calls runs, and is counted."""

from __future__ import annotations

from bench.measuring import QUICK

from bench import calls


def test_every_operation_is_counted() -> None:
    rows = {(row.measure, row.subject): row.value for row in calls.run(QUICK)}
    measures = (calls.MEASURE, calls.IN_PYTHON)
    assert rows.keys() == {(measure, name) for measure in measures for name in calls.WANTED}
    assert {(each.measure, each.subject) for each in calls.TARGETS} <= rows.keys()
    assert all(value > 20 for value in rows.values())
