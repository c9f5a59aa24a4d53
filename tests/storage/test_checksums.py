"""What a read says of bytes that are not as they were written, and how old entries get their checksums."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.storage.old_format import to_format_1

from isotone import crc
from isotone.errors import DamagedItem, StorageError
from isotone.storage import file_copies
from isotone.storage.checksums import Sums
from isotone.storage.file import FORMAT, format_of
from isotone.storage.sqlite import SQLiteStore

KEYS = [b"%03d" % number for number in range(0, 200, 2)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    store = SQLiteStore(path, durability="none")
    with store.transaction():
        for tree in ("t", "other"):
            store.create_tree(tree)
            for key in KEYS:
                store.put(tree, key, b"value of " + key)
    store.close()
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path, durability="none")
    yield store
    store.close()


def change(path: Path, sql: str, *values: object) -> None:
    """Change a row behind Isotone's back: SQLite finds nothing wrong with it."""
    connection = apsw.Connection(str(path))
    connection.execute(sql, values)
    connection.close()


def test_a_changed_value_is_not_returned(path: Path, store: SQLiteStore) -> None:
    change(path, "UPDATE tree_t SET value = x'00' WHERE key = ?", b"010")
    with pytest.raises(DamagedItem, match=b"010".hex()):
        store.get("t", b"010")
    assert store.get("t", b"012") == b"value of 012"
    assert store.get("t", b"011") is None, "the key next to it is as it was"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_range_ends_at_damage_or_continues_behind_it(
    path: Path, store: SQLiteStore, reverse: bool
) -> None:
    change(path, "UPDATE tree_t SET value = x'00' WHERE key IN (?, ?)", b"010", b"110")
    wanted = [key for key in KEYS if key not in (b"010", b"110")]
    wanted.sort(reverse=reverse)
    first = wanted.index(b"112") + 1 if reverse else wanted.index(b"008") + 1
    found: list[bytes] = []
    with pytest.raises(DamagedItem):
        found.extend(key for key, _ in store.range("t", b"", None, reverse=reverse))
    assert found == wanted[:first]
    values: list[bytes] = []
    with pytest.raises(DamagedItem):
        values.extend(chain.from_iterable(store.values("t", b"", None, reverse=reverse)))
    assert values == [b"value of " + key for key in wanted[:first]]
    damage: list[DamagedItem] = []
    entries = store.range("t", b"", None, reverse=reverse, on_damage=damage.append)
    assert [key for key, _ in entries] == wanted
    assert len(damage) == 2


# The bytes of a key that was changed to another: it is still where it was.
@pytest.mark.parametrize("changed", [b"000", b"09", b"013", b"999", b"\xff"])
def test_a_changed_key_is_noticed_where_it_is_missed(path: Path, changed: bytes) -> None:
    content = path.read_bytes()
    at = content.index(b"010" + b"value of 010")
    path.write_bytes(content[:at] + changed.ljust(3, b"\0") + content[at + 3 :])
    store = SQLiteStore(path, durability="none")
    trees = [tree for tree in ("t", "other") if _is_missed(store, tree)]
    assert len(trees) == 1
    (tree,) = trees
    for low, high in [
        (b"", None),
        (b"010", b"011"),
        (b"004", b"020"),
        (b"009", None),
        (b"", b"011"),
    ]:
        for reverse in (False, True):
            with pytest.raises(DamagedItem):
                list(store.range(tree, low, high, reverse=reverse))
    store.close()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("high", [None, b"\xff"])
def test_a_changed_last_key_is_noticed_by_a_range_that_finds_nothing(
    path: Path, reverse: bool, high: bytes | None
) -> None:
    content = path.read_bytes()
    at = content.index(b"198" + b"value of 198")
    path.write_bytes(content[:at] + b"197" + content[at + 3 :])
    store = SQLiteStore(path, durability="none")
    (tree,) = [tree for tree in ("t", "other") if _is_missed(store, tree, b"198")]
    with pytest.raises(DamagedItem):
        list(store.range(tree, b"198", high, reverse=reverse))
    store.close()


def _is_missed(store: SQLiteStore, tree: str, key: bytes = b"010") -> bool:
    try:
        return store.get(tree, key) is None
    except DamagedItem:
        return True


@pytest.mark.parametrize("row", ["'text'", "1", "1.5", "NULL", "x''"])
def test_a_value_of_any_type_is_damage(path: Path, row: str) -> None:
    change(path, "PRAGMA writable_schema=ON")
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql = replace(replace(sql, 'STRICT, ', ''), 'NOT NULL', '')"
    )
    connection.close()
    change(path, f"UPDATE tree_t SET value = {row} WHERE key = ?", b"010")
    store = SQLiteStore(path, durability="none")
    with pytest.raises(DamagedItem):
        store.get("t", b"010")
    with pytest.raises(DamagedItem):
        list(store.range("t", b"", None))
    store.close()


def test_an_entry_does_not_pass_for_one_of_another_tree(path: Path, store: SQLiteStore) -> None:
    change(path, "DELETE FROM tree_t")
    change(path, "INSERT INTO tree_t SELECT * FROM tree_other")
    with pytest.raises(DamagedItem):
        store.get("t", b"010")


def test_a_backup_of_a_damaged_file_is_refused(path: Path, tmp_path: Path) -> None:
    change(path, "UPDATE tree_t SET value = x'00' WHERE key = ?", b"010")
    with pytest.raises(StorageError, match="does not have its checksum"):
        file_copies.back_up(str(path), str(tmp_path / "copy.db"))
    assert not (tmp_path / "copy.db").exists()


# The upgrade


def upgrade(store: SQLiteStore, is_sound: Any = lambda tree, key, value: True) -> int:
    slices = 0
    while store.is_upgrading():
        with store.transaction():
            store.upgrade(is_sound)
        slices += 1
    return slices


def test_an_old_file_is_read_and_written_at_once_and_upgraded_in_slices(path: Path) -> None:
    to_format_1(path)
    store = SQLiteStore(path, durability="none")
    assert format_of(store._connection) == FORMAT
    assert store.is_upgrading()
    with store.transaction():
        store.put("t", b"010", b"new")
        store.put("t", b"011", b"more")
        store.create_tree("fresh")
        store.put("fresh", b"a", b"b")
    wanted = {key: b"value of " + key for key in KEYS} | {b"010": b"new", b"011": b"more"}
    assert dict(store.range("t", b"", None)) == wanted
    assert store.check() == []
    assert upgrade(store) > 2
    assert dict(store.range("t", b"", None)) == wanted
    assert store.check() == []
    (none,) = store._execute("SELECT count(*) FROM tree_other WHERE row_sum IS NULL").fetchall()
    assert none == (0,)
    # From now on an entry without checksums is damaged.
    store._execute("UPDATE tree_t SET row_sum = NULL WHERE key = ?", (b"020",))
    with pytest.raises(DamagedItem):
        store.get("t", b"020")
    store.close()


def test_what_was_damaged_before_the_upgrade_stays_damaged(path: Path) -> None:
    to_format_1(path)
    store = SQLiteStore(path, durability="none")
    upgrade(store, lambda tree, key, value: key != b"010")
    with pytest.raises(DamagedItem):
        store.get("t", b"010")
    assert store.get("t", b"012") == b"value of 012"
    store.close()


def rewrite(path: Path, sql: str) -> None:
    """Give the tree t another description, which its rows need not keep to."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = 'tree_t'", (sql,))
    connection.close()


@pytest.mark.parametrize("value", ["'text'", "CAST(x'ff' AS TEXT)", "1", "1.5", "NULL"])
def test_a_value_whose_type_has_changed_does_not_stop_the_upgrade(path: Path, value: str) -> None:
    to_format_1(path)
    schema = "CREATE TABLE tree_t (key BLOB PRIMARY KEY, value%s) %sWITHOUT ROWID"
    rewrite(path, schema % ("", ""))
    change(path, f"UPDATE tree_t SET value = {value} WHERE key = ?", b"010")
    rewrite(path, schema.replace("tree_t", '"tree_t"') % (" BLOB NOT NULL", "STRICT, "))
    store = SQLiteStore(path, durability="none")
    upgrade(store)
    with pytest.raises(DamagedItem):
        store.get("t", b"010")
    assert store.get("t", b"012") == b"value of 012"
    store.close()


def test_a_process_that_has_an_old_backup_restored_under_it_continues(
    path: Path, tmp_path: Path, store: SQLiteStore
) -> None:
    backup = tmp_path / "backup.db"
    file_copies.back_up(str(path), str(backup))
    to_format_1(backup)
    connection = apsw.Connection(str(backup))
    assert connection.execute("PRAGMA journal_mode=DELETE").get == "delete"
    connection.close()
    with store.transaction():
        store.put("t", b"010", b"new")
    file_copies.restore(str(backup), str(path), force=True)
    assert store.get("t", b"010") == b"value of 010"
    assert len(list(store.range("t", b"", None))) == len(KEYS)
    with store.transaction():
        store.put("t", b"010", b"newer")
    upgrade(store)
    assert store.get("t", b"010") == b"newer"


def test_the_sums_are_what_the_format_says(store: SQLiteStore) -> None:
    row = store._execute("SELECT key_sum, row_sum FROM tree_t WHERE key = ?", (b"010",)).get
    number = crc32(b"t")
    start = crc32(number.to_bytes(4, "little"))
    of_key, of_row = crc32(b"010", start), crc32(b"010value of 010", start)
    assert row == tuple((each ^ number).to_bytes(4, "little") for each in (of_key, of_row))


@settings(max_examples=examples(200))
@given(
    rows=st.lists(
        st.tuples(st.binary(max_size=40), st.binary(max_size=200)), min_size=1, max_size=9
    ),
    data=st.data(),
)
def test_a_changed_bit_among_many_rows_is_always_noticed(
    rows: list[tuple[bytes, bytes]], data: st.DataObject
) -> None:
    sums = Sums("t")
    sealed = [(key, value, sums.of(key, value)[1]) for key, value in rows]
    cells = [*chain.from_iterable(sealed)]
    assert sums.size_of_sound(cells) == sum(map(len, cells))
    assert Sums("u").size_of_sound(cells) is None
    at = data.draw(st.sampled_from([at for at, cell in enumerate(cells) if cell]))
    content = bytearray(cells[at])
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    cells[at] = bytes(content)
    assert sums.size_of_sound(cells) is None
    row = at - at % 3
    assert not sums.holds(cells[row : row + 3], None)


@given(st.binary(), st.integers(0, 2**32 - 1))
def test_whoever_computes_it_a_crc_is_that_of_zlib(data: bytes, start: int) -> None:
    assert crc.crc32(data, start) == crc32(data, start)
