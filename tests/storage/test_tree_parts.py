"""Where trees can be cut: parts have every key once and about so many pages, and name the pages that they are on."""

from __future__ import annotations

import os
import random
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from isotone.storage import reading_ahead, tree_parts
from isotone.storage.interface import TreePart
from isotone.storage.memory import MemoryStore
from isotone.storage.sqlite import SQLiteStore

PAGE = 8192


def made(path: Path, rows: int, *, seed: int = 1, longest: int = 400) -> SQLiteStore:
    """A store with two trees whose rows were written in random order, so that their pages are all over the file."""
    chosen = random.Random(seed)
    keys = [b"%06d" % number + b"k" * chosen.randrange(longest) for number in range(rows)]
    chosen.shuffle(keys)
    store = SQLiteStore(path, durability="none")
    with store.transaction():
        for tree in ("one", "other"):
            store.create_tree(tree)
        for key in keys:
            for tree in ("one", "other"):
                store.put(tree, key, b"v" * chosen.randrange(longest))
    return store


def pages_of(path: Path, tree: str) -> list[int]:
    """The pages of a tree as SQLite lists them, without those on which long rows continue."""
    connection = apsw.Connection(str(path))
    sql = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype <> 'overflow'"
    pages = [page for (page,) in connection.execute(sql, (f"tree_{tree}",))]
    connection.close()
    return sorted(pages)


@pytest.mark.parametrize(("rows", "longest"), [(20_000, 60), (3000, 400), (1000, 4000)])
def test_parts_have_every_key_once_and_the_pages_of_the_tree(
    tmp_path: Path, rows: int, longest: int
) -> None:
    store = made(tmp_path / "store.db", rows, longest=longest)
    whole = [key for key, _ in store.range("one", b"", None)]
    store.close()  # which takes the log into the file
    store = SQLiteStore(tmp_path / "store.db")
    parts = store.parts(["one", "other"], 8)["one"]
    assert len(parts) > 2
    assert parts[0].low == b""
    assert parts[-1].high is None
    assert [one.high for one, _ in pairwise(parts)] == [other.low for _, other in pairwise(parts)]
    found = [key for part in parts for key, _ in store.range("one", part.low, part.high)]
    assert found == whole
    assert sorted(page for part in parts for page in part.pages) == pages_of(
        tmp_path / "store.db", "one"
    )
    assert all(len(part.pages) >= 8 for part in parts[:-1])
    store.close()


def test_the_pages_of_a_part_are_those_that_have_its_keys(tmp_path: Path) -> None:
    made(tmp_path / "store.db", 3000).close()
    store = SQLiteStore(tmp_path / "store.db")
    content = (tmp_path / "store.db").read_bytes()
    for part in store.parts(["one"], 8)["one"]:
        own = b"".join(content[(page - 1) * PAGE : page * PAGE] for page in part.pages)
        missing = [key for key, _ in store.range("one", part.low, part.high) if key not in own]
        # Its first row may be on a page above it, which the part before it has.
        assert missing in ([], [part.low])
    store.close()


def test_parts_are_about_equal(tmp_path: Path) -> None:
    made(tmp_path / "store.db", 10_000).close()
    store = SQLiteStore(tmp_path / "store.db")
    parts = store.parts(["one"], 100)["one"]
    sizes = [sum(1 for _ in store.range("one", part.low, part.high)) for part in parts]
    assert len(sizes) > 2
    assert max(sizes) <= 2 * min(sizes[:-1])
    store.close()


def test_no_page_is_read_of_a_file_whose_holes_have_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a full tmpfs, it would end the process."""
    path = tmp_path / "store.db"
    made(path, 3000).close()
    os.truncate(path, path.stat().st_size + 2**20)
    store = SQLiteStore(path)
    assert len(store.parts(["one"], 8)["one"]) > 1
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=4096))
    assert store.parts(["one"], 8)["one"] == [TreePart()]
    store.close()


def test_a_small_tree_a_missing_one_and_memory_have_one_part(tmp_path: Path) -> None:
    store = made(tmp_path / "store.db", 1)
    whole = [(part.low, part.high) for part in (TreePart(),)]
    for tree, parts in store.parts(["one", "none"], 8).items():
        assert [(part.low, part.high) for part in parts] == whole, tree
    store.close()
    for in_memory in (SQLiteStore(":memory:"), MemoryStore()):
        with in_memory.transaction():
            in_memory.create_tree("one")
            for number in range(3000):
                in_memory.put("one", b"%06d" % number, b"v" * 100)
        parts = in_memory.parts(["one"], 8)["one"]
        assert [(part.low, part.high) for part in parts] == whole
        in_memory.close()


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("parts") / "store.db"
    made(path, 3000).close()
    return path.read_bytes()


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_damage_leaves_parts_that_have_every_key(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, data: st.DataObject
) -> None:
    """They are a hint: what they say of pages may be wrong then, but not that all keys are in some part."""
    interior = [
        number
        for number in range(1, len(content) // PAGE)
        if content[number * PAGE] == 2  # a page with children
    ]
    changed = bytearray(content)
    for _ in range(data.draw(st.integers(1, 20))):
        page = data.draw(st.sampled_from(interior))
        place = data.draw(st.one_of(st.integers(0, 40), st.integers(0, PAGE - 1)))
        changed[page * PAGE + place] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("parts") / "store.db"
    path.write_bytes(changed)
    connection = apsw.Connection(str(path))
    parts = tree_parts.cut(connection, ["one", "other"], 8)
    connection.close()
    for each in parts.values():
        bounds = [each[0].low, *(part.high for part in each[:-1])]
        assert [part.low for part in each] == bounds
        assert bounds == sorted(set(bounds))
        assert (each[0].low, each[-1].high) == (b"", None)


def test_reading_ahead_takes_any_pages(tmp_path: Path) -> None:
    store = made(tmp_path / "store.db", 3000)
    pages = [page for part in store.parts(["one"], 8)["one"] for page in part.pages]
    with (tmp_path / "store.db").open("rb") as file:  # the store is used no more
        for asked in (pages, [], [0], [1], [2**32 - 1], [*pages, 2**32 - 1]):
            reading_ahead.read_ahead(file.fileno(), asked)
        reading_ahead.read_through(file.fileno())
    store.close()
