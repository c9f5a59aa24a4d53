"""Entries are given back in the order of their keys, from memory and from a file."""

from __future__ import annotations

from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.storage import sorting
from isotone.storage.sorting import Entry, NoRoomToSort, Sorter

entries = st.lists(
    st.tuples(st.binary(max_size=4), st.binary(max_size=9)), unique_by=lambda e: e[0]
)


def taken(sorter: Sorter, most: int, size: int) -> list[list[Entry]]:
    return list(iter(lambda: sorter.take(most, size), []))


@given(st.lists(entries, max_size=5), st.integers(0, 8), st.integers(1, 5), st.integers(1, 30))
def test_they_come_in_order(batches: list[list[Entry]], few: int, most: int, size: int) -> None:
    unique = {key: value for batch in batches for key, value in batch}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "FEW", few)
        sorter = Sorter()
        left = dict(unique)
        for batch in batches:
            sorter.add([(key, left.pop(key)) for key, _ in batch if key in left])
        assert len(sorter) == len(unique)
        groups = taken(sorter, most, size)
        sorter.close()
    assert [entry for group in groups for entry in group] == sorted(unique.items())
    for group in groups:
        assert len(group) <= most
        assert sum(len(key) + len(value) for key, value in group[:-1]) < size


def test_large_entries_are_not_kept_in_memory() -> None:
    sorter = Sorter()
    sorter.add([(b"a", b"x" * sorting.FEW_BYTES), (b"b", b"y")])
    assert sorter.connection is not None
    assert [key for key, _ in sorter.take(5, 1)] == [b"a"]
    assert sorter.take(5, 1) == [(b"b", b"y")]
    sorter.close()


def test_a_file_without_room_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> Any:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(sorting, "_temporary_file", full)
    sorter = Sorter()
    with pytest.raises(
        NoRoomToSort, match=r"name another one with SQLITE_TMPDIR \(database or disk"
    ):
        sorter.add([(b"a", b"x" * sorting.FEW_BYTES)])
