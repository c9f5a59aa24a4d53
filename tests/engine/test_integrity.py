"""The consistency check finds damage of every kind, also in a tree that it reads in parts, by one process or several.

What is damaged here has the right checksums: only the comparison of trees can notice it.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.effort import examples

import isotone
from isotone.backends import embedded
from isotone.engine import history, integrity
from isotone.engine.engine import Engine
from isotone.engine.index_entries import IndexEntry
from isotone.errors import StorageError, UsageError
from isotone.storage.sqlite import SQLiteStore

ITEMS = 600
PAGE = 8192
SMALLEST_ROW = 16  # bytes
START = 1_800_000_000


def build(path: Path) -> None:
    """A file with a table of some hundred pages, an index of each kind, a stream, a history, a backup, and another region."""
    with isotone.open(path, durability="none", clock=isotone.ManualClock(START)) as database:
        client = database.client()
        client.create_table(
            TableName="Orders",
            KeySchema=_keys("customer", "number"),
            AttributeDefinitions=_types(customer="S", number="N", state="S", day="S"),
            GlobalSecondaryIndexes=[
                _index("by_state", "state", "number", "KEYS_ONLY"),
                _index("by_day", "day", "customer", "ALL"),
            ],
            LocalSecondaryIndexes=[_index("local", "customer", "day", "KEYS_ONLY")],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
            BillingMode="PAY_PER_REQUEST",
        )
        client.create_table(
            TableName="Small",
            KeySchema=_keys("id"),
            AttributeDefinitions=_types(id="S"),
            BillingMode="PAY_PER_REQUEST",
        )
        client.update_time_to_live(
            TableName="Orders",
            TimeToLiveSpecification={"Enabled": True, "AttributeName": "until"},
        )
        client.update_continuous_backups(
            TableName="Small",
            PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
        )
        numbers = list(range(ITEMS))
        random.Random(1).shuffle(numbers)
        for number in numbers:
            client.put_item(TableName="Orders", Item=order(number))
        for version in range(2):
            for number in range(10):
                item = {"id": {"S": f"{number}"}, "version": {"N": f"{version}"}}
                client.put_item(TableName="Small", Item=item)
        client.create_backup(TableName="Small", BackupName="nightly")
        database.finish_maintenance()
        assert database.check() == []


def _keys(*names: str) -> list[Any]:
    return [
        {"AttributeName": name, "KeyType": kind}
        for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def _types(**types: str) -> list[Any]:
    return [{"AttributeName": name, "AttributeType": kind} for name, kind in types.items()]


def _index(name: str, partition: str, sort: str, projection: str) -> Any:
    keys, kind = _keys(partition, sort), {"ProjectionType": projection}
    return {"IndexName": name, "KeySchema": keys, "Projection": kind}


def order(number: int) -> dict[str, Any]:
    return {
        "customer": {"S": f"c{number // 20}"},
        "number": {"N": str(number % 20)},
        "state": {"S": ("open", "paid", "sent")[number % 3]},
        "day": {"S": f"2026-01-{number % 28 + 1:02}"},
        "until": {"N": str(START + 10_000 + number)},
        "note": {"S": "n" * (number % 900)},
    }


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("integrity") / "sound.db"
    build(path)
    return path


@pytest.fixture
def path(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(sound, tmp_path / "shop.db"))


class Damager:
    """Changes entries without the engine: their checksums are right, and nothing else knows."""

    def __init__(self, engine: Engine) -> None:
        self.store = engine.store
        self.tables = engine.catalog.tables
        self.table = self.tables["Orders"]
        self.items = self.table.tree

    def tree(self, index: str) -> str:
        return next(
            each.tree for each in self.table.indexes if getattr(each, "name", "expiry") == index
        )

    def of(self, number: int) -> tuple[bytes, bytes]:
        """Where an order is, and its record."""
        key = self.table.keyspace.key(order(number))
        record = self.store.get(self.items, key)
        assert record is not None
        return key, record

    def entry(self, index: str, number: int, /, **changed: Any) -> IndexEntry:
        """The entry of an order, or that which it would have with other attributes."""
        found = next(each for each in self.table.indexes if each.tree == self.tree(index))
        item = {**order(number), **changed}
        entry = found.entry(item, self.table.keyspace.key(item), self.of(number % ITEMS)[1])
        assert entry is not None
        return entry

    def put(self, tree: str, key: bytes, value: bytes) -> None:
        with self.store.transaction():
            self.store.put(tree, key, value)

    def delete(self, tree: str, key: bytes) -> None:
        with self.store.transaction():
            assert self.store.get(tree, key) is not None
            self.store.delete(tree, key)


@contextmanager
def damaged(path: Path) -> Iterator[Damager]:
    with closing(Engine(SQLiteStore(path, durability="none"))) as engine:
        yield Damager(engine)


@contextmanager
def opened(path: Path) -> Iterator[isotone.Database]:
    with isotone.open(path, durability="none", clock=isotone.ManualClock(START)) as database:
        yield database


def key_of(number: int) -> dict[str, Any]:
    return {name: order(number)[name] for name in ("customer", "number")}


THIRD = f"table Orders, item {key_of(3)}"
NEW = {"customer": {"S": "nobody"}, "number": {"N": "1"}}


def drop_entry(damager: Damager, index: str) -> None:
    damager.delete(damager.tree(index), damager.entry(index, 3).key)


def change_entry(damager: Damager, index: str) -> None:
    entry = damager.entry(index, 3)
    damager.put(damager.tree(index), entry.key, entry.record + b" ")


def add_entry_of_nobody(damager: Damager, index: str) -> None:
    entry = damager.entry(index, 3, **NEW)
    damager.put(damager.tree(index), entry.key, entry.record)


def move_entry(damager: Damager, index: str) -> None:
    """Put the entry of an order where it would be if the order had other attributes."""
    other = {"state": {"S": "lost"}, "day": {"S": "1999-01-01"}, "until": {"N": "12"}}
    drop_entry(damager, index)
    moved = damager.entry(index, 3, **other)
    damager.put(damager.tree(index), moved.key, moved.record)


def drop_item(damager: Damager) -> None:
    damager.delete(damager.items, damager.of(3)[0])


def misplace_item(damager: Damager) -> None:
    key, record = damager.of(3)
    damager.delete(damager.items, key)
    damager.put(damager.items, damager.of(4)[0] + b"\x20x\x00", record)


def change_size(damager: Damager) -> None:
    key, record = damager.of(3)
    damager.put(damager.items, key, b"\x00\x00\x00\x07" + record[4:])


def change_item(damager: Damager) -> None:
    key, record = damager.of(3)
    damager.put(
        damager.items, key, record.replace(b'"sent"', b'"paid"').replace(b'"open"', b'"paid"')
    )


def change_count(damager: Damager) -> None:
    damager.put("counts", damager.tree("by_day").encode(), bytes(7) + b"\x05" + bytes(8))


def drop_backup_entry(damager: Damager) -> None:
    (tree,) = [each for each in damager.store.trees() if re.fullmatch(r"b\d+", each)]
    damager.delete(tree, next(iter(damager.store.range(tree, b"", None)))[0])


def misplace_history(damager: Damager) -> None:
    """Let a history keep the old record of another item."""
    tree = damager.tables["Small"].history
    assert tree is not None
    entries = list(damager.store.range(tree, b"", None))
    changes = [history.change_in(*entry) for entry in entries]
    one, other = [change for change in changes if change.old][:2]
    value = dict(entries)[one.position]
    damager.put(tree, one.position, value.removesuffix(one.old) + other.old)


def renumber_record(damager: Damager) -> None:
    """Put a record of the stream where those of a shard would be that does not exist."""
    stream = damager.table.stream
    assert stream is not None
    key, value = next(iter(damager.store.range(stream.tree, b"", None)))
    damager.delete(stream.tree, key)
    damager.put(stream.tree, b"\x77" * (len(key) - 8) + key[-8:], value)


def add_tree(damager: Damager) -> None:
    with damager.store.transaction():
        damager.store.create_tree("t99")


def drop_tree(damager: Damager) -> None:
    with damager.store.transaction():
        damager.store.drop_tree(damager.tree("by_day"))


def _entries(index: str, there: int) -> list[str]:
    """What is said of an index that has another number of entries than its table has items."""
    name = "its index for expiry" if index == "expiry" else f"index {index}"
    return [
        f"table Orders: {name} has {there} readable entries instead of {ITEMS}",
        f"table Orders: the count of {name} is {ITEMS}, but it has {there} readable entries",
    ]


def _cases_of(index: str) -> dict[str, tuple[Callable[[Damager], None], list[str]]]:
    name = "its index for expiry" if index == "expiry" else f"index {index}"
    lost = f"{THIRD}: its entry in {name} is missing or outdated"
    stray = f"table Orders: {name} has an entry of item"
    outdated = [lost]
    if index == "expiry":  # whose records hold the keys of items
        outdated.append(f"table Orders: {name} has an entry that is of no item: its key is ")
    return {
        "an entry is missing": (
            lambda damager: drop_entry(damager, index),
            [lost, *_entries(index, ITEMS - 1)],
        ),
        "an entry is outdated": (lambda damager: change_entry(damager, index), outdated),
        "an entry is of no item": (
            lambda damager: add_entry_of_nobody(damager, index),
            [f"{stray} {NEW}, which does not exist", *_entries(index, ITEMS + 1)],
        ),
        "an entry is elsewhere": (
            lambda damager: move_entry(damager, index),
            [lost, f"{stray} {key_of(3)} that the item does not have"],
        ),
    }


INDEXES = ("by_state", "by_day", "local", "expiry")
COUNT = rf"table Orders: its count is {ITEMS} items of [\d,]+ bytes, but there are {{}} readable items of [\d,]+ bytes"
ALL_INDEXES = ["index by_state", "index by_day", "index local", "its index for expiry"]
STRAY = [
    rf"table Orders: {name} has an entry of item {re.escape(str(key_of(3)))}, which does not exist"
    for name in ALL_INDEXES
]

CASES: dict[str, tuple[Callable[[Damager], None], list[str]]] = {
    f"{index}: {name}": (change, [re.escape(text) + "[0-9a-f]*" for text in texts])
    for index in INDEXES
    for name, (change, texts) in _cases_of(index).items()
    if (index, name) != ("local", "an entry is of no item")
} | {
    "an item is missing": (
        drop_item,
        [COUNT.format(ITEMS - 1), *STRAY]
        + [
            f"table Orders: {name} has {ITEMS} readable entries instead of {ITEMS - 1}"
            for name in ALL_INDEXES
        ],
    ),
    "a size is wrong": (
        change_size,
        [
            re.escape(THIRD) + r": its recorded size is 7, but it has \d+ bytes",
            COUNT.format(ITEMS),
            re.escape(THIRD) + ": its entry in index by_day is missing or outdated",
        ],
    ),
    "an attribute is wrong": (
        change_item,
        [
            re.escape(f"{THIRD}: its entry in {name} is missing or outdated")
            for name in ("index by_state", "index by_day")
        ]
        + [
            re.escape(
                f"table Orders: index by_state has an entry of item {key_of(3)} that the item does not have"
            )
        ],
    ),
    "a count is wrong": (
        change_count,
        [f"table Orders: the count of index by_day is 5, but it has {ITEMS} readable entries"],
    ),
    "a backup lacks an item": (
        drop_backup_entry,
        [r"backup nightly of table Small has 9 readable items of \d+ bytes instead of 10 of \d+"],
    ),
    "a history has another item": (
        misplace_history,
        ["table Small: its history has an item under a key that is not its own"],
    ),
    "a record is in no shard": (
        renumber_record,
        [r"stream .* of table Orders: record 1 is in shard \d+, which does not exist"],
    ),
    "a tree is of nothing": (add_tree, ["tree t99 belongs to no table"]),
    "a tree is missing": (drop_tree, ["table Orders: index by_day is missing"]),
}


def whole(path: Path) -> list[str]:
    with opened(path) as database:
        return database.check()


def in_parts(path: Path, monkeypatch: pytest.MonkeyPatch, pages: int = 3) -> list[str]:
    """What a check finds that reads a few pages at a time."""
    with monkeypatch.context() as patch:
        patch.setattr(integrity, "PART_SIZE", pages)
        with opened(path) as database:
            return database.check()


def assert_are(problems: list[str], expected: list[str]) -> None:
    """Each problem is one of the expected, and each of the expected is one of the problems."""
    missing = [text for text in expected if not any(re.fullmatch(text, each) for each in problems)]
    others = [each for each in problems if not any(re.fullmatch(text, each) for text in expected)]
    assert (missing, others) == ([], [])


@pytest.mark.parametrize("name", CASES)
def test_damage_is_found(path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    change, expected = CASES[name]
    with damaged(path) as damager:
        change(damager)
    problems = whole(path)
    assert_are(problems, expected)
    assert sorted(in_parts(path, monkeypatch)) == sorted(problems)


def test_what_is_sound_has_no_problems(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[embedded.CheckProgress] = []
    assert embedded.check(path, watch=reports.append) == ([], ITEMS + 10)
    assert in_parts(path, monkeypatch) == []
    assert embedded.check(path, processes=3) == ([], ITEMS + 10)
    assert reports[-1].items == ITEMS + 10
    assert str(reports[-1]) == "610 items, 100 %"
    assert reports == sorted(reports)


def test_processes_find_the_same(path: Path) -> None:
    with damaged(path) as damager:
        for change in (
            change_size,
            misplace_history,
            drop_backup_entry,
            renumber_record,
            add_tree,
            change_count,
        ):
            change(damager)
        move_entry(damager, "by_state")
    problems = embedded.check(path, processes=1)
    assert len(problems.problems) > 8
    assert embedded.check(path, processes=2) == problems


def pages_of_trees(content: bytes) -> list[int]:
    """The numbers of the pages that have rows."""
    return [
        number
        for number in range(1, len(content) // PAGE)
        if content[number * PAGE] in (2, 10) and rows_of(content, number)
    ]


def rows_of(content: bytes, number: int) -> list[int]:
    """Where the rows of a page begin in the file."""
    page = content[number * PAGE : (number + 1) * PAGE]
    first = 12 if page[0] == 2 else 8
    ends = range(first, first + 2 * int.from_bytes(page[3:5], "big"), 2)
    return [number * PAGE + int.from_bytes(page[at : at + 2], "big") for at in ends]


def flip(path: Path, sound: Path, chosen: random.Random, page: int) -> None:
    """Make a copy of a file in which one bit of one row of a page is another."""
    content = bytearray(sound.read_bytes())
    place = chosen.choice(rows_of(content, page)) + chosen.randrange(SMALLEST_ROW)
    content[place] ^= 1 << chosen.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize("tree", ["any", "interior"])
def test_a_flipped_bit_in_a_row_of_any_page_is_noticed(
    path: Path, sound: Path, tree: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, chosen = sound.read_bytes(), random.Random(7)
    pages = pages_of_trees(content)
    if tree == "interior":  # whose keys lead to the parts
        pages = [page for page in pages if content[page * PAGE] == 2]
    assert len(pages) > 5
    for page in chosen.choices(pages, k=examples(40)):
        flip(path, sound, chosen, page)
        try:
            assert whole(path), page
        except StorageError:
            continue  # it cannot be opened
        assert in_parts(path, monkeypatch), page


def test_processes_notice_flipped_bits_and_report_them(path: Path, sound: Path) -> None:
    chosen = random.Random(8)
    for page in chosen.sample(pages_of_trees(sound.read_bytes()), 3):
        flip(path, sound, chosen, page)
        found = embedded.check(path, processes=2)
        assert found.problems
        assert set(found.problems) == set(embedded.check(path, processes=1).problems)


def test_a_table_is_checked_alone(path: Path) -> None:
    with damaged(path) as damager:
        change_size(damager)
        drop_backup_entry(damager)
        add_tree(damager)
    assert embedded.check(path, tables=["Small"]) == ([], 10)
    found = embedded.check(path, tables=["Orders"], processes=2)
    assert found.items == ITEMS
    assert_are(found.problems, CASES["a size is wrong"][1])
    assert len(embedded.check(path, tables=["Orders", "Small"]).problems) == len(found.problems)
    with pytest.raises(UsageError, match="there is no table Order: Orders, Small can be checked"):
        embedded.check(path, tables=["Orders", "Order"])
    with pytest.raises(UsageError, match="0 processes cannot check a file: give 1 or more"):
        embedded.check(path, processes=0)


# Processes


def test_all_processes_read_the_same_moment_while_others_write(path: Path) -> None:
    """Each write changes an item and its entries: a process that saw a later moment would miss some of them."""
    ends, written = threading.Event(), 0

    def write() -> None:
        nonlocal written
        with isotone.open(path, durability="none") as database:
            client = database.client()
            while not ends.is_set():
                item = {**order(written % ITEMS), "day": {"S": f"day {written}"}}
                client.put_item(TableName="Orders", Item=item)
                written += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            before = written
            assert embedded.check(path, processes=2) == ([], ITEMS + 10)
            assert written > before
    finally:
        ends.set()
        writer.join()


def test_a_process_that_dies_is_reported(path: Path) -> None:
    def kill(_: object) -> None:
        for process in multiprocessing.active_children():
            process.kill()
            process.join()

    with pytest.raises(
        StorageError, match=r"ended with code -?\d+: check it with --processes 1"
    ) as raised:
        embedded.check(path, processes=2, watch=kill)
    assert str(path) in str(raised.value)
    assert multiprocessing.active_children() == []


INTERRUPTED = """
import signal, sys, time
from isotone.backends import embedded

def wait(progress):
    print("ready", flush=True)
    time.sleep(600)

if __name__ == "__main__":
    try:
        embedded.check(sys.argv[1], processes=2, watch=wait)
    except KeyboardInterrupt:
        import multiprocessing
        print(multiprocessing.active_children())
"""


@pytest.mark.skipif(os.name == "nt", reason="terminals of Windows send no signal to a group")
def test_ctrl_c_ends_all_processes_and_leaves_nothing(path: Path, tmp_path: Path) -> None:
    """A terminal sends it to all processes: only the first one may say something."""
    program, folder = tmp_path / "program.py", tmp_path / "temporary"
    program.write_text(INTERRUPTED)
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, str(program), str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(folder)},
    ) as checking:
        assert checking.stdout is not None
        assert checking.stdout.readline() == "ready\n"
        os.killpg(checking.pid, signal.SIGINT)
        out, err = checking.communicate(timeout=60)  # until the last process has closed its outputs
    assert (out, err, checking.returncode) == ("[]\n", "", 0)
    assert list(folder.iterdir()) == []


def test_processes_end_with_the_one_that_started_them(path: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    with subprocess.Popen(
        [sys.executable, str(program), str(path)], stdout=subprocess.PIPE, text=True
    ) as checking:
        assert checking.stdout is not None
        assert checking.stdout.readline() == "ready\n"
        checking.kill()
        assert checking.communicate(timeout=60) == ("", None)
