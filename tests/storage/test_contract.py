"""What every store does, one sentence a test."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from tests.postgres_server import needs_postgres, shared
from tests.storage import integrity

from isotone.errors import StorageError, UsageError
from isotone.storage.interface import NoSuchTree, OrderedStore
from isotone.storage.memory import MemoryStore
from isotone.storage.sqlite import SQLiteStore


def in_postgres() -> OrderedStore:
    from isotone.storage.postgres import PostgresStore

    return PostgresStore(shared().new_address())


@pytest.fixture(
    params=[
        "memory",
        "sqlite memory",
        "sqlite file",
        pytest.param("postgres", marks=needs_postgres),
    ]
)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OrderedStore]:
    makers: dict[str, Callable[[], OrderedStore]] = {
        "memory": MemoryStore,
        "sqlite memory": lambda: SQLiteStore(":memory:"),
        "sqlite file": lambda: SQLiteStore(tmp_path / "store.db"),
        "postgres": in_postgres,
    }
    store = makers[request.param]()
    with store.transaction():
        store.create_tree("t")
        store.put("t", b"a", b"1")
    yield store
    store.close()


WRITES: dict[str, Callable[[OrderedStore], None]] = {
    "put": lambda store: store.put("t", b"b", b"2"),
    "delete": lambda store: store.delete("t", b"a"),
    "create": lambda store: store.create_tree("u"),
    "drop": lambda store: store.drop_tree("t"),
}
USES: dict[str, Callable[[OrderedStore], object]] = {
    **WRITES,
    "get": lambda store: store.get("t", b"a"),
    "range": lambda store: next(store.range("t", b"", None)),
    "trees": lambda store: store.trees(),
}
# These begin a transaction where they need one, to see that they would go wrong even so.
USES_OF_A_TREE: dict[str, Callable[[OrderedStore], object]] = {
    "get": lambda store: store.get("none", b"a"),
    "put": lambda store: store.put("none", b"a", b""),
    "delete": lambda store: store.delete("none", b"a"),
    "range": lambda store: store.range("none", b"", None),
    "drop": lambda store: store.drop_tree("none"),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_needs_a_transaction(store: OrderedStore, write: str) -> None:
    with pytest.raises(UsageError, match=r"with store\.transaction"):
        WRITES[write](store)
    assert store.trees() == ["t"]
    assert list(store.range("t", b"", None)) == [(b"a", b"1")]


@pytest.mark.parametrize("use", USES_OF_A_TREE)
def test_an_unknown_tree_is_named(store: OrderedStore, use: str) -> None:
    with store.transaction(), pytest.raises(NoSuchTree, match="none"):
        USES_OF_A_TREE[use](store)
    # The error has done no harm to the transaction.
    with store.transaction():
        store.put("t", b"b", b"2")


@pytest.mark.parametrize("use", USES)
def test_a_closed_store_says_so(store: OrderedStore, use: str) -> None:
    store.close()
    store.close()
    with pytest.raises(UsageError, match=r"closed|transaction"):
        USES[use](store)


def test_a_tree_is_made_once(store: OrderedStore) -> None:
    with store.transaction(), pytest.raises(UsageError, match="'t'"):
        store.create_tree("t")


@pytest.mark.parametrize("name", ["", "T", "a b", 'a"b', "ä", "a\n", "a;b"])
def test_a_tree_has_a_plain_name(store: OrderedStore, name: str) -> None:
    with store.transaction(), pytest.raises(UsageError, match="lower-case"):
        store.create_tree(name)
    with pytest.raises(NoSuchTree):
        store.get(name, b"")


def test_an_empty_key_and_an_empty_value_are_a_key_and_a_value(store: OrderedStore) -> None:
    with store.transaction():
        store.put("t", b"", b"")
    assert store.get("t", b"") == b""
    assert next(store.range("t", b"", None)) == (b"", b"")


def test_a_range_upside_down_is_empty(store: OrderedStore) -> None:
    assert list(store.range("t", b"b", b"a")) == []
    assert list(store.range("t", b"a", b"a", reverse=True)) == []


def test_a_range_has_its_lower_bound_and_not_its_upper(store: OrderedStore) -> None:
    with store.transaction():
        for key in (b"a", b"b", b"b\x00", b"c"):
            store.put("t", key, key)
    for reverse in (False, True):
        found = [key for key, _ in store.range("t", b"a", b"c", reverse=reverse)]
        assert found == sorted([b"a", b"b", b"b\x00"], reverse=reverse)
    assert [key for key, _ in store.range("t", b"b", b"b\x00")] == [b"b"]


def test_what_a_transaction_wrote_is_seen_inside_it(store: OrderedStore) -> None:
    with store.transaction():
        store.put("t", b"b", b"2")
        with store.transaction():
            store.delete("t", b"a")
            assert list(store.range("t", b"", None)) == [(b"b", b"2")]


def test_an_exception_passes_through(store: OrderedStore) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():  # noqa: PT012
        store.put("t", b"b", b"2")
        raise ZeroDivisionError
    assert store.get("t", b"b") is None


def test_no_transaction_begins_in_a_snapshot(store: OrderedStore) -> None:
    with store.snapshot(), store.snapshot():
        with pytest.raises(UsageError, match="snapshot"), store.transaction():
            pass
        assert store.get("t", b"a") == b"1"
    with store.transaction(), store.snapshot(), store.transaction():
        store.put("t", b"a", b"2")
    assert store.get("t", b"a") == b"2"


def test_a_store_says_nothing_of_its_own_changes(store: OrderedStore) -> None:
    with store.transaction():
        store.put("t", b"a", b"2")
        store.create_tree("u")
    assert not store.changed_elsewhere()


def abandoning(store: OrderedStore) -> None:
    with store.transaction():
        store.put("t", b"b", b"2")
        with pytest.raises(ZeroDivisionError), store.transaction():  # noqa: PT012
            store.put("t", b"c", b"3")
            store.create_tree("u")
            store.abandon()
            raise ZeroDivisionError


def test_to_abandon_ends_all_that_is_open(store: OrderedStore) -> None:
    store.abandon()
    with pytest.raises(StorageError, match="abandoned"):
        abandoning(store)
    with store.snapshot():
        store.abandon()
    assert store.trees() == ["t"]
    assert list(store.range("t", b"", None)) == [(b"a", b"1")]
    assert integrity.check(store) == []


class Interrupted(Exception):
    pass


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interruption_anywhere_can_be_recovered_from(store: OrderedStore) -> None:
    def interrupt(*_: object) -> None:
        raise Interrupted

    def write_for_ever() -> None:
        for number in count():
            with store.transaction():
                store.put("t", b"a", b"%d" % number)
                store.put("t", b"%d" % number, b"")
                with store.transaction():
                    store.delete("t", b"%d" % (number - 3))
                store.put("t", b"b", b"%d" % number)

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        for attempt in range(300):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00005 + attempt * 0.0000007)
                write_for_ever()
            except (Interrupted, StorageError):
                store.abandon()
            assert integrity.check(store) == []
            number = int(store.get("t", b"b") or b"-1")
            assert int(store.get("t", b"a") or b"-1") in (number, 1)
            with store.transaction():
                for key, _ in list(store.range("t", b"", None)):
                    store.delete("t", key)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
