from __future__ import annotations

import pytest

from isotone.values.size import (
    read_units,
    write_units,
)


@pytest.mark.parametrize(
    ("size", "strong", "eventual"),
    [(0, 1, 0.5), (1, 1, 0.5), (4096, 1, 0.5), (4097, 2, 1), (8192, 2, 1), (409_600, 100, 50)],
)
def test_reads_by_four_kilobytes(size: int, strong: float, eventual: float) -> None:
    assert read_units(size, consistent=True) == strong
    assert read_units(size, consistent=False) == eventual


@pytest.mark.parametrize(
    ("size", "units"), [(0, 1), (1, 1), (1024, 1), (1025, 2), (3 * 1024, 3), (409_600, 400)]
)
def test_writes_by_one_kilobyte(size: int, units: float) -> None:
    assert write_units(size) == units


def test_units_are_floats_as_json_shows_them() -> None:
    assert all(type(units) is float for units in (read_units(9, True), write_units(9)))
