"""The store on PostgreSQL: what it shares with other processes, what it does when the server is lost, what it costs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Any

import pytest
from tests.postgres_server import PostgresServer, needs_postgres, shared
from tests.storage import integrity

from isotone.errors import StorageBusy, StorageCorrupt, StorageError, UsageError
from isotone.postgres_address import address_of
from isotone.storage.interface import NoSuchTree

if TYPE_CHECKING:
    from isotone.storage.postgres import PostgresStore

pytestmark = needs_postgres

Open = Callable[..., "PostgresStore"]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens stores over one schema, in which the tree `t` has the entry `a`."""
    from isotone.storage.postgres import PostgresStore

    address = shared().new_address()
    with ExitStack() as stack:

        def one(**options: Any) -> PostgresStore:
            return stack.enter_context(closing(PostgresStore(address, **options)))

        with closing(one()) as first, first.transaction():
            first.create_tree("t")
            first.put("t", b"a", b"1")
        yield one


def sql(command: str) -> list[Any]:
    import psycopg

    with psycopg.connect(shared().libpq_address, autocommit=True) as connection:
        cursor = connection.execute(command)
        return cursor.fetchall() if cursor.description else []


def end_sessions(*connections: Any) -> None:
    """End the sessions of these connections at the server, as an administrator or a crash would."""
    for connection in connections:
        if connection.is_open:
            sql(f"SELECT pg_terminate_backend({connection._libpq.backend_pid}, 5000)")


def until_queued(store: PostgresStore) -> None:
    """Wait until the server has its request for the lock."""
    pid = store._writing._libpq.backend_pid
    while not sql(f"SELECT pid FROM pg_locks WHERE pid = {pid} AND NOT granted"):
        time.sleep(0.001)


def put(store: PostgresStore, key: bytes, value: bytes) -> None:
    with store.transaction():
        store.put("t", key, value)


# Several processes


def test_a_commit_is_seen_by_others_and_only_by_them(opened: Open) -> None:
    one, other = opened(), opened()
    put(one, b"a", b"2")
    assert not one.changed_elsewhere()
    assert other.get("t", b"a") == b"2"
    assert not other.is_current()
    assert other.has_seen_changes()
    assert not other.changed_elsewhere()
    with other.transaction():
        assert not other.changed_elsewhere()


def test_a_transaction_knows_of_commits_before_its_lock(opened: Open) -> None:
    one, other = opened(), opened()
    put(other, b"a", b"2")
    with one.transaction():
        assert one.changed_elsewhere()
        assert one.get("t", b"a") == b"2"


def test_a_schema_that_is_made_again_is_another_database(opened: Open) -> None:
    """Its tables have the names of the former ones, and both have had as many commits."""
    one = opened()
    schema = one._address.schema
    sql(f'DROP SCHEMA "{schema}" CASCADE')
    other = opened()
    with other.transaction():
        other.create_tree("u")
        other.put("u", b"a", b"9")
    with one.transaction():
        assert one.changed_elsewhere()
        assert one.trees() == ["u"]
        with pytest.raises(NoSuchTree):
            one.put("t", b"a", b"1")
    assert other.get("u", b"a") == b"9"


def test_a_snapshot_that_fails_ends_its_transaction(opened: Open) -> None:
    """A session whose transaction has failed refuses everything until that is rolled back."""
    one = opened()
    schema = one._address.schema
    sql(f'ALTER SCHEMA "{schema}" RENAME TO "{schema}_away"')
    for _ in range(2):
        with pytest.raises(StorageError, match="does not exist"), one.snapshot():
            pass
    sql(f'ALTER SCHEMA "{schema}_away" RENAME TO "{schema}"')
    with one.snapshot():
        assert one.get("t", b"a") == b"1"
    assert one.get("t", b"a") == b"1"


def test_a_schema_that_is_restored_is_noticed(opened: Open) -> None:
    """What was kept from its tables may not be in them any more, although the revision is not a new one."""
    one = opened()
    schema = one._address.schema
    ((before,),) = sql(f'SELECT revision FROM "{schema}".isotone_state')
    put(one, b"a", b"2")
    for begin in (one.snapshot, one.transaction):
        assert not one.changed_elsewhere()
        sql(f'UPDATE "{schema}".isotone_state SET revision = {before}')
        with begin():
            assert one.has_seen_changes()
        put(one, b"a", b"3")
        put(one, b"a", b"4")


def test_reads_of_two_moments_are_noticed(opened: Open) -> None:
    one, other = opened(), opened()
    assert one.get("t", b"a") == b"1"
    assert one.is_current()
    put(other, b"a", b"2")
    assert [*one.range("t", b"x", None)] == []
    assert not one.is_current()


def test_a_snapshot_is_one_moment(opened: Open) -> None:
    one, other = opened(), opened()
    with one.snapshot():
        put(other, b"a", b"2")
        put(other, b"b", b"2")
        assert [*one.range("t", b"", None)] == [(b"a", b"1")]
        assert one.get("t", b"b") is None
        assert not one.changed_elsewhere()
    assert one.changed_elsewhere()


def test_a_dropped_tree_stays_for_older_snapshots(opened: Open) -> None:
    one, other = opened(), opened()
    with one.snapshot():
        with other.transaction():
            other.drop_tree("t")
            other.create_tree("u")
        with other.transaction():
            other.create_tree("v")  # a commit like this deletes tables that nobody needs
        assert one.trees() == ["t"]
        assert one.get("t", b"a") == b"1"
    with pytest.raises(NoSuchTree):
        one.get("t", b"a")
    assert one.trees() == ["u", "v"]
    with other.transaction():
        other.create_tree("w")
    schema = address_of(one.address).schema
    assert sql(f"SELECT count(*) FROM {schema}.isotone_dropped") == [(0,)]
    assert len(sql(f"SELECT tablename FROM pg_tables WHERE schemaname = '{schema}'")) == 3 + 3


def test_a_tree_that_others_made_again_is_the_new_one(opened: Open) -> None:
    one, other = opened(), opened()
    for number in (b"2", b"3"):
        with other.transaction():
            other.drop_tree("t")
            other.create_tree("t")
            other.put("t", b"a", number)
        assert one.get("t", b"a") == number
        assert [*one.range("t", b"", None)] == [(b"a", number)]


def test_one_writes_at_a_time(opened: Open) -> None:
    one, other = opened(), opened(busy_timeout=0.1)
    with one.transaction():
        one.put("t", b"a", b"2")
        with pytest.raises(StorageBusy), other.transaction(wait=False):
            pass
        with pytest.raises(StorageBusy, match=r"0\.1 seconds"), other.transaction():
            pass
        assert other.get("t", b"a") == b"1"
    put(other, b"a", b"3")
    assert one.get("t", b"a") == b"3"


def test_whoever_queues_gets_the_next_turn(opened: Open) -> None:
    one, other = opened(), opened()
    with one.transaction():
        one.put("t", b"a", b"2")
        with pytest.raises(StorageBusy), other.transaction(wait=False):
            pass
        turn = other.queue()
        wait = turn.__enter__()
        wait(0.001)
        until_queued(other)
        with pytest.raises(StorageBusy), other.transaction(wait=False):
            pass
    with pytest.raises(StorageBusy), one.transaction(wait=False):
        pass  # the other one stands before it
    wait(5.0)
    with other.transaction(wait=False):
        assert other.get("t", b"a") == b"2"
    turn.__exit__(None, None, None)
    put(one, b"a", b"3")


def test_a_turn_that_nobody_takes_is_given_back(opened: Open) -> None:
    one, other = opened(), opened()
    with one.transaction(), other.queue() as wait:
        wait(0.001)
        until_queued(other)
    put(one, b"a", b"2")
    put(other, b"a", b"3")


def test_a_thread_that_queues_does_so_at_once_when_others_write(opened: Open) -> None:
    """One that does not, such as background work, is not refused without being tried."""
    one, other = opened(), opened()

    def meet_others() -> None:
        put(other, b"a", b"2")
        put(one, b"a", b"3")

    meet_others()
    with one.transaction(wait=False):
        pass
    with one.queue():
        pass
    meet_others()
    before = one._writing.round_trips
    with pytest.raises(StorageBusy), one.transaction(wait=False):
        pass
    assert one._writing.round_trips == before
    with one.queue() as wait:
        wait(5.0)
        with one.transaction(wait=False):
            pass
    time.sleep(0.03)
    with one.transaction(wait=False):
        pass


def test_writers_take_turns(opened: Open) -> None:
    """Two engines that always have something to write: neither is left out, however the threads run."""
    from isotone.engine.engine import Engine

    counts = [0, 0]
    until = time.monotonic() + 2

    def write(number: int) -> None:
        engine = engines[number]
        while time.monotonic() < until:
            with engine.writing:
                engine.store.put("t", b"%d" % number, b"%d" % counts[number])
            counts[number] += 1

    engines = [Engine(opened()), Engine(opened())]
    threads = [threading.Thread(target=write, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(counts) >= 0.4 * sum(counts), counts
    for number, engine in enumerate(engines):
        assert engine.store.get("t", b"%d" % number) == b"%d" % (counts[number] - 1)


def test_what_was_read_together_is_forgotten_when_trees_change(opened: Open) -> None:
    """A result that waits may be older than the list of trees, and is read again then."""
    one, other = opened(), opened()
    reads = [lambda: one.get("t", b"a"), lambda: next(one.values("t", b"", None))]
    with one.reading_together(reads):
        with other.transaction():
            other.create_tree("u")
            other.put("t", b"a", b"2")
        before = one._reading.round_trips
        assert [read() for read in reads] == [b"1", [b"1"]]
        assert one._reading.round_trips == before
        assert one.trees() == ["t", "u"]
        assert [read() for read in reads] == [b"2", [b"2"]]


# A server that is lost


def test_a_lookup_survives_the_end_of_its_session(opened: Open) -> None:
    store = opened()
    for _ in range(3):
        end_sessions(store._reading, store._writing)
        assert store.get("t", b"a") == b"1"
        end_sessions(store._reading)
        assert [*store.range("t", b"", None)] == [(b"a", b"1")]
        end_sessions(store._reading)
        with store.snapshot():
            assert store.trees() == ["t"]


def test_a_place_in_the_queue_survives_the_end_of_its_session(opened: Open) -> None:
    """Nothing has begun there, so the lock is asked for in another one, as without a queue."""
    one, other = opened(), opened()
    put(other, b"a", b"2")
    end_sessions(other._writing)
    with other.queue() as wait:
        wait(1.0)  # asks in the session that has ended
        with other.transaction(wait=False):
            other.put("t", b"a", b"3")
    with one.transaction(), other.queue() as wait:
        wait(0.001)
        until_queued(other)
        end_sessions(other._writing)
        wait(0.001)
        for _ in range(2):  # it begins again, and waits for the other one
            with pytest.raises(StorageBusy), other.transaction(wait=False):
                pass
            wait(0.001)
        until_queued(other)
    with other.queue() as wait:
        with one.transaction():
            wait(0.001)
            until_queued(other)
            end_sessions(other._writing)
        with other.transaction():
            other.put("t", b"a", b"4")
    assert one.get("t", b"a") == b"4"


def test_a_lost_server_ends_a_place_in_the_queue() -> None:
    from isotone.storage.postgres import PostgresStore

    with PostgresServer() as server, closing(PostgresStore(server.new_address())) as store:
        other = PostgresStore(store.address)
        other.transaction().__enter__()
        with store.queue() as wait:
            wait(0.001)
            server.kill()
            other.close()
            for _ in range(2):
                with pytest.raises(StorageError, match="cannot be used"), store.transaction():
                    pass
                with pytest.raises(StorageError, match="cannot be used"):
                    wait(0.001)


def test_after_a_lost_session_others_may_have_committed(opened: Open) -> None:
    """The server may be another one, which has not what this one had."""
    store = opened()
    assert not store.changed_elsewhere()
    end_sessions(store._reading)
    assert store.changed_elsewhere()


def test_a_snapshot_does_not_survive_the_end_of_its_session(opened: Open) -> None:
    store = opened()
    with store.snapshot():
        end_sessions(store._reading)
        for _ in range(2):  # and is not continued in another one
            with pytest.raises(StorageError, match="lost"):
                store.get("t", b"a")
    assert store.get("t", b"a") == b"1"


def test_a_transaction_does_not_survive_the_end_of_its_session(opened: Open) -> None:
    store = opened()

    def interrupted() -> None:
        with store.transaction():
            store.put("t", b"a", b"2")
            end_sessions(store._writing)

    with pytest.raises(StorageError, match=r"lost.*not known"):
        interrupted()

    def read_and_write() -> None:
        with store.transaction():
            store.put("t", b"a", b"2")
            end_sessions(store._writing)
            with pytest.raises(StorageError, match="lost"):
                store.get("t", b"z")
            store.put("t", b"b", b"2")

    with pytest.raises(StorageError, match="nothing of this transaction was stored"):
        read_and_write()
    assert [*store.range("t", b"", None)] == [(b"a", b"1")]
    put(store, b"a", b"3")
    assert store.get("t", b"a") == b"3"


def test_the_lock_of_a_dead_process_is_free(opened: Open) -> None:
    one, other = opened(), opened(busy_timeout=5)

    def die() -> None:
        with one.transaction():
            one.put("t", b"a", b"2")
            end_sessions(one._writing)

    with pytest.raises(StorageError):
        die()
    put(other, b"a", b"3")
    assert one.get("t", b"a") == b"3"


def test_a_server_that_is_restarted_is_found_again() -> None:
    from isotone.storage.postgres import PostgresStore

    with PostgresServer() as server, closing(PostgresStore(server.new_address())) as store:
        with store.transaction():
            store.create_tree("t")
            store.put("t", b"a", b"1")
        server.kill()
        for _ in range(2):
            with pytest.raises(StorageError, match="cannot be used"):
                store.get("t", b"a")
            with pytest.raises(StorageError), store.transaction():
                pass
        server.start()
        time.sleep(0.6)  # it is not tried more often than twice a second
        assert store.get("t", b"a") == b"1"
        put(store, b"a", b"2")
        assert integrity.check(store) == []


# Durability


def test_durability_is_that_of_synchronous_commit(opened: Open) -> None:
    from isotone.storage.postgres_connection import ServerStatement

    def setting(store: PostgresStore) -> bytes:
        (result,) = store._writing.exchange(ServerStatement(b"SHOW synchronous_commit"))
        found: bytes = result.get_value(0, 0)
        return found

    for durability, wanted in (("disk", b"on"), ("process", b"off"), ("none", b"off")):
        assert setting(opened(durability=durability)) == wanted
    store = opened()
    with store.transaction(synced=False):
        store.put("t", b"a", b"2")
        assert setting(store) == b"off"
    assert setting(store) == b"on"
    store.sync()
    assert store.get("t", b"a") == b"2"


# Addresses


def test_no_error_shows_a_password() -> None:
    from isotone.storage.postgres import PostgresStore

    for address in (
        "postgresql://ann:se%20cret@127.0.0.1:1/app?sslpassword=se%20cret&connect_timeout=2",
        "postgresql://ann:se%zzcret@127.0.0.1:1/app",
        "postgresql://ann:secret@127.0.0.1:1/app?password=secret&schema=A",
        "postgresql://ann:secret@127.0.0.1:1/app?what=secret&schema",
        "postgresql://ann:secret@127.0.0.1:1/app?what=1",
    ):
        with pytest.raises((StorageError, UsageError)) as caught:
            PostgresStore(address)
        assert "cret@" not in str(caught.value)
        assert "password" not in str(caught.value)
        assert "ann@127.0.0.1:1" in str(caught.value) or "schema" in str(caught.value)


@pytest.mark.parametrize("schema", ["", "A", "a b", "pg_a", 'a"b', "1a", "a" * 64])
def test_a_schema_has_a_plain_name(schema: str) -> None:
    from urllib.parse import quote

    with pytest.raises(UsageError, match="schema="):
        address_of(f"postgresql://host/db?schema={quote(schema)}")


def test_a_missing_database_is_not_made_by_a_reader() -> None:
    from isotone.storage.postgres import PostgresStore

    with pytest.raises(UsageError, match="no Isotone database"):
        PostgresStore(shared().new_address(), read_only=True)


def test_a_role_that_owns_its_schema_is_enough() -> None:
    from isotone.storage.postgres import PostgresStore

    address = shared().new_address()
    schema = address_of(address).schema
    role = f"role_{schema}"
    sql(f"CREATE ROLE {role} LOGIN; CREATE SCHEMA {schema} AUTHORIZATION {role}")
    own = address.replace("isotone@", f"{role}@")
    with closing(PostgresStore(own)) as store:
        with store.transaction():
            store.create_tree("t")
        assert store.trees() == ["t"]
    with pytest.raises(StorageError, match="permission denied"):
        PostgresStore(own.replace(f"schema={schema}", "schema=of_others"))


def test_another_format_is_refused(opened: Open) -> None:
    from isotone.storage.postgres import PostgresStore

    store = opened()
    sql(f"UPDATE {address_of(store.address).schema}.isotone_state SET format = '2'")
    with pytest.raises(StorageCorrupt, match="another version"):
        PostgresStore(store.address)


def test_a_tree_without_its_table_is_a_problem(opened: Open) -> None:
    store = opened()
    schema = address_of(store.address).schema
    ((relation,),) = sql(f"SELECT relation FROM {schema}.isotone_trees")
    sql(f'DROP TABLE {schema}."{relation}"')
    assert store.check() == [f"tree t has no table {relation}"]
    with pytest.raises(StorageError):
        store.get("t", b"a")


def test_several_open_at_once() -> None:
    """All of them find that there is nothing; one makes it."""
    from isotone.storage.postgres import PostgresStore

    address = shared().new_address()
    stores: list[Any] = []
    threads = [
        threading.Thread(target=lambda: stores.append(PostgresStore(address))) for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [store.trees() for store in stores] == [[]] * 5
    for store in stores:
        store.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_leaves_the_sessions_of_its_parent_alone(opened: Open) -> None:
    store = opened()
    put(store, b"a", b"2")
    child = os.fork()
    if child == 0:
        try:
            store.get("t", b"a")
        except UsageError as error:
            store.close()
            os._exit(0 if "before fork" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    losses = store._reading.losses
    assert store.get("t", b"a") == b"2"
    put(store, b"a", b"3")
    assert store._reading.losses == losses


def test_an_interruption_between_two_steps_of_a_transaction_locks_nobody_out(opened: Open) -> None:
    store = opened()
    store._gate.acquire()  # and a signal raises before the next step
    store.abandon()
    found: list[bool] = []
    other = threading.Thread(target=lambda: found.append(store._gate.acquire(timeout=5)))
    other.start()
    other.join()
    assert found == [True]


# Costs


def test_round_trips(opened: Open) -> None:
    store = opened()

    def trips(call: Callable[[], object]) -> int:
        before = store._reading.round_trips + store._writing.round_trips
        call()
        return store._reading.round_trips + store._writing.round_trips - before

    def many() -> None:
        with store.transaction():
            for number in range(500):
                store.put("t", b"%03d" % number, b"")
            with store.transaction() as inner:
                store.delete("t", b"a")
                inner.rollback()

    put(store, b"a", b"2")
    assert trips(lambda: store.get("t", b"a")) == 1
    assert trips(lambda: put(store, b"a", b"3")) == 2
    assert trips(many) == 2
    assert trips(lambda: next(store.values("t", b"", None, expected=100))) == 1
    assert trips(lambda: [*store.range("t", b"4", b"42")]) == 1
    assert trips(store.changed_elsewhere) == 1
    assert store.get("t", b"a") == b"3"


def test_the_range_of_a_large_tree(opened: Open) -> None:
    store = opened()
    keys = [b"%06d" % number for number in range(20_000)]
    with store.transaction():
        assert store.add("t", [(key, key * 3) for key in keys]) == 20_000
        assert store.add("t", [(keys[0], b""), (b"new", b"")]) == 1
        store.delete("t", b"new")
    before = store._reading.round_trips
    assert [key for key, _ in store.range("t", b"0", b"1")] == keys
    assert [key for key, _ in store.range("t", b"0", b"1", reverse=True)] == keys[::-1]
    assert store._reading.round_trips - before < 20
    found = [value for values in store.values("t", b"0", b"1") for value in values]
    assert found == [key * 3 for key in keys]
