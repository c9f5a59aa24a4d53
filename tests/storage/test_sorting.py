"""Entries are given back in the order of their keys, from memory and from a file."""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.errors import UsageError
from isotone.storage import sorting
from isotone.storage.sorting import KeyValue, NoRoomToSort, Sorter

entries = st.lists(st.tuples(st.binary(max_size=4), st.binary(max_size=9)))


def taken(sorter: Sorter) -> list[list[KeyValue]]:
    return list(iter(sorter.take, []))


@given(
    st.lists(entries, max_size=9),
    st.integers(1, 8),
    st.integers(0, 4000),
    st.integers(1, 3),
    st.integers(1, 3),
)
def test_entries_come_in_order(
    batches: list[list[KeyValue]], run: int, memory: int, block: int, merged: int
) -> None:
    """However they are spread over runs, blocks and the file."""
    sizes = {"RUN": run, "MEMORY": memory, "_BLOCK": block, "_STORED_BLOCK": block}
    with pytest.MonkeyPatch.context() as patch:
        for name, size in {**sizes, "_MERGED": merged}.items():
            patch.setattr(sorting, name, size)
        sorter = Sorter()
        for batch in batches:
            sorter.add(batch)
        groups = taken(sorter)
        sorter.close()
    given_back = [entry for group in groups for entry in group]
    everything = [entry for batch in batches for entry in batch]
    assert len(sorter) == len(everything)
    assert [key for key, _ in given_back] == sorted(key for key, _ in everything)
    assert sorted(given_back) == sorted(everything)


def many(count: int, size: int) -> list[KeyValue]:
    """Entries in no order."""
    return [(b"%04d" % (number * 7919 % count), b"x" * size) for number in range(count)]


def test_entries_come_in_groups_of_bounded_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large ones come by the megabyte, small ones by the thousand, from memory and from the file."""
    for memory in (sorting.MEMORY, 1 << 20):
        monkeypatch.setattr(sorting, "MEMORY", memory)
        for count, size in ((200, 200_000), (9000, 10)):
            sorter = Sorter()
            for start in range(0, count, 100):
                sorter.add(many(count, size)[start : start + 100])
            groups = taken(sorter)
            assert [entry for group in groups for entry in group] == sorted(many(count, size))
            assert max(len(group) * size for group in groups) < 25 << 20
            assert max(map(len, groups)) <= 2 * 20 * 200
            assert len(groups) > 1
            sorter.close()


def test_what_does_not_fit_in_memory_is_in_a_file_without_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path))
    monkeypatch.setattr(sorting, "MEMORY", 1 << 20)
    sorter = Sorter()
    for number in range(5):
        sorter.add([(b"%d" % (9 - number), b"x" * (1 << 20))])
        assert sorter._bytes < 1 << 20
    if os.name == "posix":
        assert not list(tmp_path.iterdir())
    assert [key for group in taken(sorter) for key, _ in group] == [b"5", b"6", b"7", b"8", b"9"]
    sorter.close()


def test_sharers_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_file() -> None:
        raise OSError("none")

    monkeypatch.setattr(sorting, "_temporary_file", no_file)
    half = [(b"a", b"x" * (sorting.MEMORY // 2))]
    Sorter().add(half)
    with pytest.raises(NoRoomToSort):
        Sorter(2).add(half)


def test_a_file_without_room_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path / "missing"))
    monkeypatch.setattr(sorting, "MEMORY", 0)
    with pytest.raises(NoRoomToSort, match=r"name another one with SQLITE_TMPDIR \(.*No such file"):
        Sorter().add([(b"a", b"x" * sorting.RUN_BYTES)])


def test_a_file_that_was_damaged_gives_nothing_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorting, "MEMORY", 0)
    file = (tmp_path / "file").open("w+b", buffering=0)
    monkeypatch.setattr(sorting, "_temporary_file", lambda: file)
    sorter = Sorter()
    sorter.add([(b"a", b"x" * sorting.RUN_BYTES)])
    file.seek(1000)
    file.write(b"y")
    with pytest.raises(NoRoomToSort, match="it was damaged"):
        sorter.take()
    sorter.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="without fork()")
def test_a_forked_child_leaves_the_file_to_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    """They would share one position in it."""
    monkeypatch.setattr(sorting, "MEMORY", 0)
    sorter = Sorter()
    sorter.add([(b"a", b"x" * sorting.RUN_BYTES)])

    def refused() -> None:
        with pytest.raises(UsageError, match="before fork"):
            sorter.take()
        sorter.close()

    child = multiprocessing.get_context("fork").Process(target=refused)
    child.start()
    child.join()
    assert child.exitcode == 0
    assert [key for key, _ in sorter.take()] == [b"a"]
    sorter.close()
