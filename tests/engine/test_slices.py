"""Slices of background work end in time, groups of entries by number and by bytes."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from isotone.engine.slices import chunks

entries = st.lists(st.tuples(st.binary(max_size=5), st.binary(max_size=20)), max_size=30)


def length(group: list[tuple[bytes, bytes]]) -> int:
    return sum(len(key) + len(value) for key, value in group)


@given(entries, st.integers(1, 9), st.integers(1, 60), st.integers(0, 30))
@example(
    [(b"a", b"bcdef"), (b"", b"")], 2, 6, 0
)  # the first entry has enough, the next one no bytes
def test_a_group_ends_at_a_number_or_as_soon_as_it_has_enough_bytes(
    given_entries: list[tuple[bytes, bytes]], most: int, size: int, begin: int
) -> None:
    groups = [list(group) for group in chunks(given_entries, most, size, begin)]
    assert [entry for group in groups for entry in group] == given_entries[begin:]
    assert all(1 <= len(group) <= most for group in groups)
    assert all(length(group[:-1]) < size for group in groups)
    assert all(len(group) == most or length(group) >= size for group in groups[:-1])
