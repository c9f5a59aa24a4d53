"""Capacity units: what a read or a write of so many bytes costs.

A read unit is 4 KB read strongly consistently, or twice that eventually; a write unit is 1 KB written.
Sizes are rounded up, and nothing is free: an item that is not there costs as much as the smallest.
A transaction pays twice, once to prepare and once to commit.
"""

from __future__ import annotations

from isotone import limits


def read_units(size: int, consistent: bool) -> float:
    """What reading `size` bytes costs: one item, or all items of a page together.

    >>> read_units(4097, consistent=False)
    1.0
    """
    units = max(1, -(-size // limits.READ_UNIT))
    return float(units) if consistent else units / 2


def write_units(size: int) -> float:
    """What writing an item of `size` bytes costs: the larger of the item before and after."""
    return float(max(1, -(-size // limits.WRITE_UNIT)))


def transactional_read_units(size: int) -> float:
    """What reading one item inside a transaction costs; it is always strongly consistent."""
    return 2 * read_units(size, consistent=True)


def transactional_write_units(size: int) -> float:
    """What writing one item inside a transaction costs."""
    return 2 * write_units(size)
