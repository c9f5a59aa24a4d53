"""A queue loses nothing, gives nothing to two at once, and keeps the order of a group."""

from __future__ import annotations

import asyncio
import itertools
import logging
import subprocess
import time
from collections import Counter as Multiset
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.effort import LONG, examples
from tests.headroom import forget_notices
from tests.programs import python, together
from tests.structures.simulation import Hasty, Overtaken, Repeating, Requests

import isotone
from isotone import ManualClock, Store, errors
from isotone.structures import Message, Queue, QueueEntry

PROGRAM = Path(__file__).with_name("consuming.py")


def bodies(messages: list[Message]) -> list[object]:
    return [each.body for each in messages]


@pytest.fixture
def queue(memory: Store) -> Queue:
    queue = Queue(memory, "q", hold=30, attempts=3, priorities=3)
    queue.create_table()
    return queue


def corrupt(
    queue: Queue, entity: type[isotone.Entity], key: dict[str, Any], attribute: str
) -> None:
    """Give an item a value that is not what it declares, as another program might."""
    stored = entity.__schema__.identify(key)
    queue.store.backend.execute(
        "UpdateItem",
        {
            "TableName": "queues",
            "Key": stored,
            "UpdateExpression": "SET #a = :a",
            "ExpressionAttributeNames": {"#a": attribute},
            "ExpressionAttributeValues": {":a": {"BOOL": True}},
        },
    )


@pytest.mark.parametrize("attribute", ["attempts", "put_at"])  # in the index, and only in the item
def test_an_invalid_entry_holds_up_no_other(
    queue: Queue, attribute: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = queue.put("broken")
    queue.put_many(["one", "two"])
    corrupt(queue, queue._plan.entries, queue._plan.key(first), attribute)
    with caplog.at_level(logging.ERROR, "isotone.queue"):
        assert sorted(bodies(queue.claim(5))) == ["one", "two"]
        assert queue.claim(5) == []
    (record,) = caplog.records
    assert attribute in record.getMessage()
    counts = queue.counts()
    is_seen = attribute == "attempts"  # the index, from which messages are counted, shows it
    assert (counts.in_flight, counts.invalid) == ((2, 1) if is_seen else (3, 0))


def test_an_invalid_message_of_a_group_holds_up_no_other_group(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.put("broken", group="g")
    queue.put("one", group="h")
    corrupt(queue, queue._plan.messages, queue._plan.message_key("g", 1), "put_at")
    with caplog.at_level(logging.ERROR, "isotone.queue"):
        assert bodies(queue.claim(5)) == ["one"]
    (record,) = caplog.records
    assert "put_at" in record.getMessage()


@pytest.mark.parametrize("group", [None, "g"])
def test_a_message_without_a_valid_time_becomes_a_dead_letter(
    queue: Queue, clock: ManualClock, group: str | None
) -> None:
    put = queue.put("broken", group=group)
    if group is None:
        corrupt(queue, queue._plan.entries, queue._plan.key(put), "put_at")
    else:
        corrupt(queue, queue._plan.messages, queue._plan.message_key(group, 1), "put_at")
        queue.put("next", group=group)
    for _ in range(queue.attempts):
        assert queue.claim(5) == []
        assert list(queue.dead_letters()) == []
        clock.advance(queue.hold)
    queue.claim(5)
    (letter,) = queue.dead_letters()
    assert (letter.id, letter.body, letter.group) == (put, "broken", group)
    assert letter.reason is not None
    assert "put_at" in letter.reason
    assert "{'BOOL': True}" in letter.reason
    if group is not None:
        assert bodies(queue.claim(5)) == ["next"]
    assert queue.redrive() == 1
    assert "broken" in bodies(queue.claim(5)) or group is not None
    assert queue.counts().dead == 0


@pytest.mark.parametrize("attribute", ["attempts", "put_at"])
def test_an_invalid_dead_letter_hides_no_other(
    queue: Queue, attribute: str, caplog: pytest.LogCaptureFixture
) -> None:
    ids = queue.put_many(["broken", "one", "two"])
    for message in queue.claim(5):
        queue.bury(message)
    corrupt(queue, queue._plan.entries, queue._plan.key(ids[0]), attribute)
    with caplog.at_level(logging.ERROR, "isotone.queue"):
        assert sorted(bodies(list(queue.dead_letters()))) == ["one", "two"]
        assert queue.redrive() == 2
    (record,) = caplog.records
    assert attribute in record.getMessage()
    assert sorted(bodies(queue.claim(5))) == ["one", "two"]
    assert queue.counts().dead == 1


def test_messages_that_were_claimed_before_an_error_are_returned(
    memory: Store, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise errors.ResourceNotFoundException("the table was deleted")

    overtaken = Overtaken(memory.backend)
    with isotone.connect(overtaken, clock=memory.clock) as failing:
        queue = Queue(failing, "q")
        queue.create_table()
        queue.put_many(range(3))
        overtaken.before["UpdateItem"] = [lambda: None, lambda: None, fail, fail]
        with caplog.at_level(logging.WARNING, "isotone.queue"):
            assert len(queue.claim(3)) == 2
        (record,) = caplog.records
        assert "after 2 of 3 messages" in record.getMessage()
        assert record.exc_info is not None
        assert "the table was deleted" in str(record.exc_info[1])
        with pytest.raises(errors.IsotoneError, match="the table was deleted"):
            queue.claim(3)  # nothing was claimed before it


@pytest.mark.parametrize("further", [0, 2])
def test_an_undeclared_priority_costs_queries_only_while_it_is_there(
    memory: Store, further: int
) -> None:
    producer, requests = Queue(memory, "q", priorities=10), Requests()
    producer.create_table()
    producer.put("urgent", priority=9)
    observed = isotone.connect(memory.backend, observe=[isotone.at_end(requests.see)])
    consumer = Queue(observed, "q")
    (message,) = consumer.claim()
    producer.put_many(range(further))
    consumer.acknowledge(message)
    consumer.claim()  # looks at each priority once more
    requests.taken()
    consumer.claim()
    assert requests.taken()["Query"] == 1


def test_a_message_is_claimed_and_acknowledged_everywhere(
    store: Store, clock: ManualClock, table_name: str
) -> None:
    table = Queue.layout(table_name)
    queue = Queue(store, "q", hold=30, attempts=2, table=table)
    queue.create_table()
    first = queue.put({"to": "ann", "n": 1})
    later = queue.put("later", delay=60)
    assert queue.put("first", token="t") == queue.put("again", token="t")
    clock.advance(1)
    (message, other) = queue.claim(5)
    assert (message.id, message.body, message.attempts) == (first, {"to": "ann", "n": 1}, 1)
    assert other.body == "first"
    assert queue.claim() == []
    counts = queue.counts()
    assert (counts.ready, counts.in_flight, counts.delayed, counts.depth) == (0, 2, 1, 3)
    queue.acknowledge(other)
    message = queue.extend(message, 50)
    clock.advance(49)
    assert queue.claim() == []
    queue.give_back(message, reason="busy")
    (message,) = queue.claim()
    assert (message.attempts, message.reason) == (2, "busy")
    queue.give_back(message, reason="broken")
    (dead,) = queue.dead_letters()
    assert (dead.id, dead.reason, dead.attempts) == (first, "broken", 2)
    assert (queue.redrive(), queue.redrive()) == (1, 0)
    assert bodies(queue.claim(5)) == [{"to": "ann", "n": 1}]
    clock.advance(11)
    (late,) = queue.claim()
    assert late.id == later


def test_a_group_is_in_order_everywhere(store: Store, clock: ManualClock, table_name: str) -> None:
    queue = Queue(store, "q", hold=30, attempts=2, shards=3, table=Queue.layout(table_name))
    queue.create_table()
    queue.put_many(range(3), group="a")
    queue.put(10, group="b")
    queue.put_many(["x", "y"])
    queue.put(3, group="a")
    clock.advance(1)
    claimed = queue.claim(10)
    assert Multiset(bodies(claimed)) == Multiset([0, 10, "x", "y"])
    by_body = {each.body: each for each in claimed}
    assert queue.counts().behind == 3
    queue.acknowledge(by_body[0])
    (one,) = queue.claim(10)
    assert one.body == 1
    queue.bury(one, "bad")
    (two,) = queue.claim(10)
    assert two.body == 2
    assert queue.redrive() == 1
    queue.acknowledge(two)
    (three,) = queue.claim(10)
    assert three.body == 3
    queue.acknowledge(three)
    (again,) = queue.claim(10)
    assert (again.body, again.group, again.attempts) == (1, "a", 1)
    queue.acknowledge(again)
    assert queue.claim(10) == []
    assert queue.counts().in_flight == 3


@dataclass
class Known:
    """A message as the naive queue knows it."""

    body: int
    group: str | None
    priority: int
    due: float
    attempts: int = 0
    receipt: int | None = None
    dead: bool = False


class Life(RuleBasedStateMachine):
    """One queue, consumers who come late or never, and time."""

    @initialize(shards=st.sampled_from([1, 1, 3]))
    def begin(self, shards: int) -> None:
        self.clock = ManualClock()
        self.store = isotone.connect(clock=self.clock)
        self.queue = Queue(self.store, "q", hold=10, attempts=3, shards=shards, priorities=2)
        self.queue.create_table()
        self.known: dict[int, Known] = {}  # in the order in which they were put
        self.held: list[tuple[Message, int]] = []
        self.numbers = itertools.count()
        self.groups: dict[str, list[int]] = {}
        self.done: list[int] = []

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    # The naive queue: of a group, its first message alone can be claimed.

    def can_be_claimed(self) -> list[Known]:
        now = self.clock.now()
        found = [
            each
            for each in self.known.values()
            if not each.dead
            and each.due <= now
            and (each.group is None or self.groups[each.group][0] == each.body)
        ]
        return sorted(found, key=lambda each: (-each.priority, each.due))

    def leave_group(self, known: Known) -> None:
        if known.group is None:
            return
        waiting = self.groups[known.group]
        waiting.remove(known.body)
        if waiting:
            self.known[waiting[0]].due = self.clock.now()

    def bury(self, known: Known) -> None:
        known.dead, known.receipt, known.due = True, None, self.clock.now()
        self.leave_group(known)

    # What is done

    @rule(delay=st.sampled_from([0, 0, 4]), priority=st.integers(0, 1))
    def put(self, delay: float, priority: int) -> None:
        body = next(self.numbers)
        self.queue.put(body, delay=delay, priority=priority)
        self.known[body] = Known(body, None, priority, self.clock.now() + delay)

    @rule(group=st.sampled_from("ab"), number=st.integers(1, 3))
    def put_in_group(self, group: str, number: int) -> None:
        new = [next(self.numbers) for _ in range(number)]
        self.queue.put_many(new, group=group)
        for body in new:
            self.known[body] = Known(body, group, 0, self.clock.now())
            self.groups.setdefault(group, []).append(body)

    @rule(most=st.integers(1, 4))
    def claim(self, most: int) -> None:
        claimed = self.queue.claim(most)
        expected = self.can_be_claimed()
        fresh = [each for each in expected if each.attempts < 3]
        for spent in (each for each in expected if each.attempts >= 3):
            # It is buried when a claim comes upon it, which is before anything that is after it.
            if len(claimed) < most or self.comes_first(spent, claimed):
                self.bury(spent)
        assert len(claimed) == min(most, len(fresh))
        if self.queue.shards == 1:
            of = [self.known[each.body] for each in claimed]
            order = [(each.priority, each.due) for each in of]
            assert order == [(each.priority, each.due) for each in fresh[: len(order)]]
        for message in claimed:
            known = self.known[message.body]
            assert known in fresh
            known.attempts += 1
            known.due = self.clock.now() + 10
            known.receipt = next(self.numbers)
            assert (message.attempts, message.group) == (known.attempts, known.group)
            self.held.append((message, known.receipt))

    def comes_first(self, spent: Known, claimed: list[Message]) -> bool:
        return self.is_dead(spent)

    def is_dead(self, known: Known) -> bool:
        return any(each.body == known.body for each in self.queue.dead_letters())

    @rule(data=st.data(), what=st.sampled_from(["acknowledge", "extend", "give_back", "bury"]))
    def end(self, data: st.DataObject, what: str) -> None:
        if not self.held:
            return
        message, receipt = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        known = self.known.get(message.body)
        if known is None or known.receipt != receipt:
            if (
                what == "acknowledge"
                and message.group is None
                and known is None
                and self.clock.now() < message.until.timestamp()
            ):
                self.queue.acknowledge(message)  # done is done
            else:
                with pytest.raises(errors.LeaseLost, match=message.id):
                    getattr(self.queue, what)(message)
            return
        getattr(self.queue, what)(message)
        if what == "acknowledge":
            self.leave_group(known)
            del self.known[known.body]
            self.done.append(known.body)
        elif what == "extend":
            known.due = self.clock.now() + 10
            self.held.append((message, receipt))
        elif what == "bury" or known.attempts >= 3:
            self.bury(known)
        else:
            known.due, known.receipt = self.clock.now(), None

    @rule()
    def redrive(self) -> None:
        dead = [each for each in self.known.values() if each.dead]
        assert self.queue.redrive() == len(dead)
        letters = sorted(dead, key=lambda each: each.due)
        for known in letters:
            known.dead, known.attempts, known.due = False, 0, self.clock.now()
        groups: dict[str, list[int]] = {}
        for known in letters:
            if known.group is not None:
                groups.setdefault(known.group, []).append(known.body)
        for group, revived in groups.items():
            # Behind the others; among themselves as the queue says, where they died at the same moment.
            there = self.groups[group]
            there += self.order_of(group, set(revived))

    def order_of(self, group: str, revived: set[int]) -> list[int]:
        steps = self.store.all(
            self.queue._plan.messages.primary.where(
                self.queue._plan.messages.queue == "q", self.queue._plan.messages.group == group
            )
        )
        return [each.body for each in steps if each.body in revived]

    @rule(seconds=st.sampled_from([0.001, 3, 11]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "queue"):
            return
        counts, now = self.queue.counts(), self.clock.now()
        alive = [each for each in self.known.values() if not each.dead]
        heads = [
            each for each in alive if each.group is None or self.groups[each.group][0] == each.body
        ]
        assert counts.depth == len(alive)
        assert counts.dead == len(self.known) - len(alive)
        assert counts.ready == sum(each.due <= now for each in heads)
        assert counts.behind == len(alive) - len(heads)
        waits = [now - each.due for each in heads if each.due <= now]
        assert counts.age == pytest.approx(max(waits, default=0), abs=1e-5)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=examples(80), stateful_step_count=40, deadline=None)


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    "body",
    [
        "text",
        "2026-01-01T00:00:00Z",
        7,
        -(10**30),
        Decimal("1.5"),
        Decimal("2.00"),
        None,
        True,
        b"\0",
        bytearray(b"raw"),
        [1, [2, {"a": -3}], None, False],
        {"a": {1, 2}, "b": {Decimal("0.5")}, "c": {"x"}, "d": {b"y"}},
        frozenset({1}),
        {"deep": [{"deeper": {"ä": [0]}}]},
        {"colour": Colour.RED, Colour.RED: OrderedDict(a=1)},
        {},
        [],
        "",
    ],
)
def test_a_body_comes_back_as_it_was_put(queue: Queue, body: object) -> None:
    queue.put(body)
    queue.put_many([body], group="g")
    for message in queue.claim(2):
        assert message.body == body


PLAIN = st.none() | st.booleans() | st.integers(-(10**37), 10**37) | st.text() | st.binary()
BODIES = st.recursive(
    PLAIN
    | st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-1e9, max_value=1e9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1), inner, max_size=3)
        | st.sets(st.integers(-9, 9), min_size=1)
    ),
    max_leaves=10,
)


@given(BODIES)
def test_any_body_comes_back_as_it_was_put(body: object) -> None:
    with isotone.connect() as store:
        queue = Queue(store, "q")
        queue.create_table()
        queue.put(body)
        (message,) = queue.claim()
        assert message.body == body


def test_a_number_without_decimals_is_an_int(queue: Queue) -> None:
    queue.put([1, Decimal("2.0"), {"three": {3}}])
    (message,) = queue.claim()
    assert repr(message.body) == "[1, 2, {'three': {3}}]"


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        (0.5, r"0.5 is of type float, .*; put Decimal\(str"),
        ((1, 2), "is of type tuple, .*; put a list"),
        (datetime(2026, 1, 1, tzinfo=UTC), r"is of type datetime, .*; put its isoformat\(\)"),
        (date(2026, 1, 1), r"is of type date, .*; put its isoformat\(\)"),
        ({1: "a"}, "keys of a dict in a body must be strings, not 1; put '1'"),
        (set(), "is of type set, .*; put None, or a list"),
        ({"a", 1}, "cannot be a set"),
        ("\ud800", "has half of a surrogate"),
        (object(), "is of type object, .*; put strings, ints"),
    ],
)
def test_a_body_that_would_come_back_as_another_is_refused(
    queue: Queue, body: object, instead: str
) -> None:
    for put in (queue.put, lambda body: queue.put_many(["x", body], group="g")):
        for within in (body, [{"here": body}]):
            with pytest.raises(errors.UsageError, match=instead):
                put(within)
    assert queue.counts().depth == 0


@pytest.mark.parametrize("one", ["text", b"bytes", {"to": "ann"}])
def test_many_are_not_one(queue: Queue, one: Any) -> None:
    with pytest.raises(errors.UsageError, match="put_many takes a list of bodies"):
        queue.put_many(one)


def test_all_shards_and_priorities_may_be_used(memory: Store) -> None:
    heard: list[object] = []
    end = isotone.on_headroom(heard.append)
    forget_notices()  # what is reported once in a process
    queue = Queue(memory, "q", shards=1000, priorities=10, table=Queue.layout("full"))
    queue.create_table()
    ids = queue.put_many(range(500), priority=9)
    groups = {queue.put(number, group=f"{number}") for number in range(500)}
    end()
    assert heard == []
    assert len({*ids, *groups}) == 1000


def test_a_higher_priority_comes_first(queue: Queue) -> None:
    for body, priority in [("b", 0), ("a", 2), ("c", 1), ("d", 2)]:
        queue.put(body, priority=priority)
    assert bodies(queue.claim(10)) == ["a", "d", "c", "b"]


def test_a_consumer_that_declares_fewer_priorities_gets_all(
    memory: Store, clock: ManualClock
) -> None:
    producer, consumer = Queue(memory, "q", priorities=10), Queue(memory, "q", shards=1)
    producer.create_table()
    consumer.put("lowest")
    assert [each.body for each in consumer.claim()] == ["lowest"]
    for priority in (2, 9, 0, 5):
        producer.put(priority, priority=priority)
    assert bodies(consumer.claim(10)) == [9, 5, 2, 0]
    clock.advance(61)
    assert bodies(consumer.claim(10)) == [9, 5, 2, "lowest", 0]


@pytest.mark.parametrize("priorities", [1, 3, 9])
def test_what_waits_at_an_undeclared_priority_hides_nothing(memory: Store, priorities: int) -> None:
    producer, consumer = (
        Queue(memory, "q", priorities=10),
        Queue(memory, "q", priorities=priorities),
    )
    producer.create_table()
    producer.put_many(range(20), priority=9, delay=60)
    producer.put_many(range(20), priority=8, delay=60)
    producer.put("due")
    assert bodies(list(consumer.consume(idle=0))) == ["due"]


@pytest.mark.parametrize("group", [None, "g"])
def test_a_late_consumer_learns_that_another_has_finished(
    queue: Queue, clock: ManualClock, group: str | None
) -> None:
    queue.put("a", group=group)
    (late,) = queue.claim(hold=10)
    clock.advance(11)
    (other,) = queue.claim(hold=10)
    queue.acknowledge(other)
    with pytest.raises(errors.LeaseLost, match=late.id):
        queue.acknowledge(late)
    with pytest.raises(errors.LeaseLost, match=late.id), queue.handling(late):
        pass


def test_an_acknowledgement_whose_answer_is_lost_is_done(memory: Store) -> None:
    queue = Queue(memory, "q")
    queue.create_table()
    queue.put("a")
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        other = Queue(repeating, "q")
        (message,) = other.claim()
        other.acknowledge(message)
    assert queue.counts().depth == 0


def test_a_message_that_is_never_acknowledged_is_a_dead_letter(
    queue: Queue, clock: ManualClock
) -> None:
    queue.put("bad")
    queue.put("worse", group="g")
    for attempt in (1, 2, 3):
        assert {each.attempts for each in queue.claim(5)} == {attempt}
        clock.advance(31)
    assert queue.claim(5) == []
    dead = list(queue.dead_letters())
    assert {each.body for each in dead} == {"bad", "worse"}
    assert {each.attempts for each in dead} == {3}
    assert all(each.reason and "no consumer acknowledged" in each.reason for each in dead)
    assert (queue.redrive(most=1), queue.counts().dead) == (1, 1)


def test_a_token_is_remembered(memory: Store, clock: ManualClock) -> None:
    queue = Queue(memory, "q", remember=60)
    queue.create_table()
    for group in (None, "g"):
        first = queue.put(1, token=f"t{group}", group=group)
        (message,) = queue.claim()
        queue.acknowledge(message)
        assert queue.put(2, token=f"t{group}", group=group) == first
        assert queue.claim() == []
        clock.advance(61)
        assert queue.put(3, token=f"t{group}", group=group) != first
        assert [queue.acknowledge(each) for each in queue.claim()] == [None]


def test_a_queue_is_consumed_until_it_is_empty(queue: Queue, clock: ManualClock) -> None:
    queue.put_many(range(7))
    hasty = Queue(Hasty.over(queue.store), "q", priorities=3)
    began, seen = clock.now(), []
    for message in hasty.consume(batch=3, idle=5):
        with hasty.handling(message) as same:
            seen.append(same.body)
    assert sorted(seen) == list(range(7))
    assert 4.99 < clock.now() - began < 7
    assert hasty.counts().depth == 0


def test_polling_without_a_pause_pauses_a_little(queue: Queue, clock: ManualClock) -> None:
    hasty = Queue(Hasty.over(queue.store), "q", priorities=3)
    began = clock.now()
    assert list(hasty.consume(poll=0, idle=0.01)) == []
    assert 0.01 <= clock.now() - began < 0.012


def test_consuming_ends_when_it_is_stopped(queue: Queue) -> None:
    queue.put_many(range(7))
    seen: list[int] = []
    for message in queue.consume(until=lambda: len(seen) == 3):
        seen.append(message.body)
        queue.acknowledge(message)
    assert seen == [0, 1, 2]
    assert queue.counts().ready == 4


def test_what_fails_is_tried_again_later(
    queue: Queue, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    queue.put("bad")
    hasty = Queue(Hasty.over(queue.store), "q", priorities=3, attempts=3)
    began, times = clock.now(), []
    with caplog.at_level(logging.WARNING, "isotone.queue"):
        for message in hasty.consume(idle=10, poll=0.1):
            with hasty.handling(message):
                times.append(round(clock.now() - began))
                raise ZeroDivisionError("by nothing")
    assert times == [0, 1, 3]
    assert [each.levelname for each in caplog.records] == ["WARNING"] * 3
    (dead,) = hasty.dead_letters()
    assert (dead.body, dead.reason) == ("bad", "ZeroDivisionError: by nothing")


def test_an_interruption_gives_the_message_back_and_continues(queue: Queue) -> None:
    queue.put("work")
    (message,) = queue.claim()

    def work() -> None:
        with queue.handling(message):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    (again,) = queue.claim()
    assert (again.id, again.reason) == (message.id, "interrupted by KeyboardInterrupt")


def test_what_is_kept_is_held_as_long_as_the_block_runs(queue: Queue, clock: ManualClock) -> None:
    queue.hold = 0.006  # of the thread's own time: it extends every 2 ms
    queue.put("long")
    (message,) = queue.claim(hold=30)
    entries = queue.bind(QueueEntry)

    def due() -> float:
        entry = queue.store.get(entries, queue="q", kind="MESSAGE", entry=message.id)
        assert entry is not None
        return entry.due.timestamp()

    with queue.handling(message, keep=True):
        for _ in range(3):
            clock.advance(20)
            while due() < clock.now():
                pass  # until the thread has extended it
    assert queue.counts().depth == 0


def test_what_is_kept_and_lost_is_not_acknowledged(queue: Queue, clock: ManualClock) -> None:
    queue.put("long")
    (message,) = queue.claim()

    def handle() -> None:
        with queue.handling(message, keep=True):
            clock.advance(31)
            queue.claim()

    with pytest.raises(errors.LeaseLost):
        handle()
    assert queue.counts().in_flight == 1


def test_answers_that_are_lost_do_no_harm(memory: Store) -> None:
    Queue(memory, "q").create_table()
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        queue = Queue(repeating, "q")
        queue.put("a")
        queue.put_many(["b"])
        queue.put("c", group="g", token="t")
        queue.put("d", group="g")
        for expected in (["a", "b", "c"], ["d"], []):
            claimed = queue.claim(5)
            assert sorted(bodies(claimed)) == expected
            for message in claimed:
                queue.extend(message)
                queue.acknowledge(message)
        assert queue.counts().depth == 0


def test_many_consumers_do_not_all_fight_for_the_first(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "q.db", durability="none") as store:
        queue = Queue(store, "q")
        queue.create_table()
        queue.put_many(range(120))

        def work(number: int) -> list[object]:
            mine = Queue(store, "q")
            found: list[object] = []
            while claimed := mine.claim(3):
                for message in claimed:
                    mine.acknowledge(message)
                found += bodies(claimed)
            return found

        with ThreadPoolExecutor(6) as pool:
            done = list(itertools.chain.from_iterable(pool.map(work, range(6))))
        done += work(7)  # a consumer that lost each of its candidates has left some
        assert sorted(done) == list(range(120))


def test_an_overtaken_consumer_makes_room_for_a_while(queue: Queue, memory: Store) -> None:
    queue.put_many(range(60))
    overtaken = Overtaken(memory.backend)
    overtaken.before["UpdateItem"] = [lambda: queue.claim() and None] * 3
    with isotone.connect(overtaken, clock=memory.clock) as late:
        other = Queue(late, "q", priorities=3)
        claimed = bodies(other.claim(3))
        assert len(claimed) == 3
        assert 0 not in claimed  # it went to the first, and another had been faster
        for _ in range(30):  # alone again, it comes back to the order
            other.claim()
        rest = [body for _ in range(20) for body in bodies(other.claim())]
    assert rest == sorted(rest, key=int)


def test_a_claim_of_the_same_moment_is_not_taken_for_ones_own(
    queue: Queue, clock: ManualClock
) -> None:
    queue.put_many([1, 2], group="a")
    (slow,) = queue.claim()
    clock.advance(queue.hold + 1)
    (first,) = queue.claim()
    queue.acknowledge(first)
    (second,) = queue.claim()  # until the time to which the slow consumer would extend its claim
    with pytest.raises(errors.LeaseLost):
        queue.extend(slow)
    queue.acknowledge(second)


def test_groups_are_put_and_done_at_the_same_time(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "q.db", durability="none") as store:
        Queue(store, "q").create_table()
        done: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}

        def put(group: str, producer: int) -> None:
            for number in range(15):
                Queue(store, "q").put([producer, number], group=group)

        def work() -> None:
            mine = Queue(store, "q")
            for _ in range(5000):
                if sum(map(len, done.values())) == 60:
                    return
                for message in mine.claim(2):
                    done[str(message.group)].append(tuple(message.body))
                    mine.acknowledge(message)

        with ThreadPoolExecutor(7) as pool:
            running = [pool.submit(put, group, number) for group in "ab" for number in (0, 1)]
            running += [pool.submit(work) for _ in range(3)]
            for each in running:
                each.result()
        for group in "ab":
            for producer in (0, 1):
                of = [number for who, number in done[group] if who == producer]
                assert of == list(range(15))
        assert Queue(store, "q").counts().depth == 0


def test_processes_share_a_queue(tmp_path: Path) -> None:
    file = tmp_path / "q.db"
    with isotone.connect(file, durability="none") as store:
        queue = Queue(store, "q", shards=2)
        queue.create_table()
        queue.put_many(range(100))
        for group in "abc":
            queue.put_many(range(20), group=group)
        printed = together(PROGRAM, str(file), "drain", processes=4)
        assert queue.counts().depth == 0
    done = [line.split() for each in printed for line in each.splitlines()]
    assert sorted(int(body) for group, body in done if group == "None") == list(range(100))
    for group in "abc":
        assert sorted(int(body) for each, body in done if each == group) == list(range(20))


def test_a_killed_consumer_holds_nothing_for_longer_than_it_said(tmp_path: Path) -> None:
    file, clock = tmp_path / "q.db", ManualClock(time.time())
    with isotone.connect(file, clock=clock) as store:
        queue = Queue(store, "q", shards=2, hold=60)
        queue.create_table()
        queue.put_many(["a", "b"])
        queue.put_many(["c", "d"], group="g")
        doomed = python(PROGRAM, file, "die", 0, stdin=subprocess.PIPE)
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "3\n"
        doomed.kill()
        doomed.communicate()
        clock.set(time.time())
        assert queue.claim(5) == []
        clock.advance(61)
        again = queue.claim(5)
        assert sorted(bodies(again)) == ["a", "b", "c"]
        assert {each.attempts for each in again} == {2}


def test_consumers_that_are_killed_at_any_moment_lose_nothing(tmp_path: Path) -> None:
    file, clock = tmp_path / "q.db", ManualClock(time.time())
    seen: list[tuple[str, int]] = []
    with isotone.connect(file, clock=clock, durability="none") as store:
        queue = Queue(store, "q", shards=2, attempts=1_000)
        queue.create_table()
        queue.put_many(range(60))
        for group in "abc":
            queue.put_many(range(30), group=group)
        for lines in (1, 7, 20, 3, 12, 5) if LONG else (1, 20, 5):
            doomed = python(PROGRAM, file, "storm", 0)
            assert doomed.stdout is not None
            printed = [doomed.stdout.readline() for _ in range(lines)]
            doomed.kill()
            printed += doomed.communicate()[0].splitlines()
            seen += [(line.split()[0], int(line.split()[1])) for line in printed if line.strip()]
        clock.advance(2_000)
        while claimed := queue.claim(10):
            for message in claimed:
                seen.append((str(message.group), message.body))
                queue.acknowledge(message)
        assert queue.counts().depth == 0
    assert {body for group, body in seen if group == "None"} == set(range(60))
    for group in "abc":
        order = [body for each, body in seen if each == group]
        assert order == sorted(order)  # one may come again, before the next one comes
        assert set(order) == set(range(30))


def test_a_queue_costs_as_documented(clock: ManualClock) -> None:
    requests = Requests()
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        queue = Queue(store, "q")
        queue.create_table()
        requests.taken()
        queue.put("a")
        assert requests.taken() == {"PutItem": 1}
        queue.put("b", token="t")
        assert requests.taken() == {"TransactWriteItems": 1}
        queue.put_many(range(50))
        assert requests.taken() == {"BatchWriteItem": 2}
        message, *_ = queue.claim(3)
        assert requests.taken() == {"Query": 1, "UpdateItem": 3}
        queue.extend(message)
        assert requests.taken() == {"UpdateItem": 1}
        queue.give_back(message)
        assert requests.taken() == {"UpdateItem": 1}
        (message,) = queue.claim()
        requests.taken()
        queue.acknowledge(message)
        assert requests.taken() == {"DeleteItem": 1}
        queue.counts()
        assert requests.taken() == {"Query": 2}

        grouped = Queue(store, "groups")
        grouped.put("a", group="g")
        assert requests.taken() == {"GetItem": 1, "TransactWriteItems": 1}
        grouped.put_many(range(100), group="g")
        assert requests.taken() == {"GetItem": 2, "TransactWriteItems": 2}
        (message,) = grouped.claim()
        assert requests.taken() == {"Query": 2, "UpdateItem": 1}
        grouped.acknowledge(message)
        assert requests.taken() == {"TransactWriteItems": 1}


def test_what_makes_no_sense_is_refused(memory: Store) -> None:
    with pytest.raises(errors.UsageError, match="1 to 1000 shards"):
        Queue(memory, "q", shards=0)
    with pytest.raises(errors.UsageError, match="attempts must be 1 or more, not 0"):
        Queue(memory, "q", attempts=0)
    with pytest.raises(errors.UsageError, match=r"Queue\(…, priorities=…\)"):
        Queue(memory, "q").put(1, priority=1)
    with pytest.raises(errors.UsageError, match="no delay and no priority"):
        Queue(memory, "q").put(1, group="g", delay=1)
    for number in (0, -1, -10):
        with pytest.raises(errors.UsageError, match=f"^batch must be 1 or more, not {number}"):
            list(Queue(memory, "q").consume(batch=number, idle=0))
        with pytest.raises(errors.UsageError, match=f"^most must be 1 or more, not {number}"):
            Queue(memory, "q").claim(number)


@pytest.mark.parametrize("length", [-5, float("nan"), float("inf"), 1e30])
def test_a_time_that_is_none_is_refused(queue: Queue, length: float) -> None:
    queue.put("kept")
    (message,) = queue.claim()
    refused: list[tuple[str, Callable[[], object]]] = [
        ("hold must be more", lambda: Queue(queue.store, "q", hold=length)),
        ("hold must be more", lambda: Queue(queue.store, "q", hold=0)),
        ("remember must be more", lambda: Queue(queue.store, "q", remember=length)),
        ("remember must be more", lambda: Queue(queue.store, "q", remember=0)),
        ("hold must be more", lambda: queue.claim(hold=length)),
        ("hold must be more", lambda: queue.claim(hold=0)),
        ("hold must be more", lambda: queue.extend(message, length)),
        ("hold must be more", lambda: queue.extend(message, 0)),
        ("hold must be more", lambda: list(queue.consume(hold=length, idle=0))),
        ("poll must be 0", lambda: list(queue.consume(poll=length, idle=0))),
        ("delay must be 0", lambda: queue.put("x", delay=length)),
        ("delay must be 0", lambda: queue.put_many(["x"], delay=length)),
        ("delay must be 0", lambda: queue.give_back(message, delay=length)),
    ]
    for said, call in refused:
        with pytest.raises(errors.UsageError, match=f"^{said}.* a century, not "):
            call()
    counts = queue.counts()
    assert (counts.in_flight, counts.depth) == (1, 1)


def test_a_handler_is_seen_to_have_failed_though_its_time_of_rest_is_wrong(memory: Store) -> None:
    queue = Queue(memory, "q", retry_after=lambda attempts: -attempts)
    queue.create_table()
    queue.put("x")
    (message,) = queue.claim()
    with pytest.raises(ZeroDivisionError) as raised, queue.handling(message):
        raise ZeroDivisionError
    assert "retry_after must be 0 seconds or more" in str(raised.value.__context__)


def test_handling_takes_one_message(queue: Queue) -> None:
    wrong: Any = ["a message"]
    with pytest.raises(errors.UsageError, match="message takes Message, not list"):
        queue.handling(wrong)


def test_a_block_of_the_other_kind_does_nothing() -> None:
    handled: list[str] = []

    async def program(store: Store) -> None:
        waiting = Queue(store, "q")
        waiting.create_table()
        waiting.put("x")
        block: Any = waiting.handling(waiting.claim()[0])
        with pytest.raises(errors.UsageError, match="use `with`, not `async with`"):
            async with block:
                handled.append("waiting")
        assert waiting.counts().in_flight == 1
        async with isotone.aconnect() as other:
            awaited = Queue(other, "q")
            await awaited.create_table()
            await awaited.put("x")
            block = awaited.handling((await awaited.claim())[0])
            with pytest.raises(errors.UsageError, match="use `async with`, not `with`"), block:
                handled.append("awaited")
            assert (await awaited.counts()).in_flight == 1

    with isotone.connect() as store:
        asyncio.run(program(store))
    assert handled == []


def test_an_error_is_raised_where_that_is_wanted(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    queue.put("x")
    (message,) = queue.claim()
    with pytest.raises(AssertionError, match="by a test"), queue.handling(message, raising=True):
        raise AssertionError("by a test")
    assert caplog.records == []
    assert queue.counts().delayed == 1  # until it is tried again


def test_awaited(clock: ManualClock) -> None:
    async def program() -> list[int]:
        async with isotone.aconnect(clock=clock) as store:
            queue = Queue(store, "q", attempts=2, retry_after=lambda attempts: 0)
            await queue.create_table()
            await queue.put_many(range(5))
            await queue.put_many(range(5, 8), group="g")
            done: list[int] = []

            async def work() -> None:
                async for message in queue.consume(until=lambda: len(done) >= 8, poll=0.01):
                    async with queue.handling(message):
                        if message.attempts == 1:
                            raise ZeroDivisionError
                        done.append(message.body)

            await asyncio.gather(work(), work(), work())
            assert [each async for each in queue.dead_letters()] == []
            assert (await queue.counts()).depth == 0
            return done

    logging.getLogger("isotone.queue").setLevel(logging.CRITICAL)
    try:
        done = asyncio.run(program())
    finally:
        logging.getLogger("isotone.queue").setLevel(logging.NOTSET)
    assert sorted(done) == list(range(8))
    assert [each for each in done if each >= 5] == [5, 6, 7]


def test_what_is_given_back_or_buried_is_so_though_the_answer_is_lost(memory: Store) -> None:
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        queue = Queue(repeating, "q", attempts=2)
        queue.create_table()
        queue.put("a")
        for _ in range(2):
            (message,) = queue.claim()
            queue.give_back(message)
        assert queue.counts().dead == 1


def test_a_dead_letter_is_deleted_and_takes_nothing_of_its_group_along(queue: Queue) -> None:
    queue.put_many(["a", "b", "c"], group="g")
    queue.bury(queue.claim()[0], "no")
    (letter,) = queue.dead_letters()
    for settle in (queue.extend, queue.give_back, queue.bury):
        with pytest.raises(errors.UsageError, match="dead letter"):
            settle(letter)
    queue.acknowledge(letter)
    queue.acknowledge(letter)
    assert (queue.counts().dead, queue.counts().depth) == (0, 2)
    for expected in ("b", "c"):
        (message,) = queue.claim()
        assert message.body == expected
        queue.acknowledge(message)


@pytest.mark.parametrize("text", ["x" * 500_000, "a file name: \udcff", "\0"])
def test_an_error_of_any_text_gives_the_message_back(
    queue: Queue, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest's own report of what was logged could not be written with half a character in it
    monkeypatch.setattr(logging.getLogger("isotone.queue"), "disabled", True)
    queue.put("a")
    (message,) = queue.claim()
    with queue.handling(message):
        raise ValueError(text)
    assert queue.counts().in_flight == 0


def test_what_was_claimed_is_given_though_the_next_one_is_throttled(
    queue: Queue, memory: Store
) -> None:
    queue.put_many(["a", "b", "c"])
    updates = itertools.count()

    def throttled() -> None:
        if next(updates) > 0:
            raise errors.InternalServerError("later")

    backend = Overtaken(memory.backend)
    with isotone.connect(backend, clock=memory.clock) as throttling:
        backend.before["UpdateItem"] = [throttled] * 2
        assert len(Queue(throttling, "q", hold=30).claim(3)) == 1


def test_what_was_claimed_is_given_though_another_shard_is_throttled(
    queue: Queue, memory: Store
) -> None:
    queue.put("a", priority=1)
    queue.put("b")
    queries = itertools.count()

    def throttled() -> None:
        if next(queries) > 1:
            raise errors.InternalServerError("later")

    backend = Overtaken(memory.backend)
    with isotone.connect(backend, clock=memory.clock) as throttling:
        backend.before["Query"] = [throttled] * 3
        assert bodies(Queue(throttling, "q", hold=30, priorities=3).claim(3)) == ["a"]


def test_what_was_claimed_is_given_though_another_cannot_be_buried(
    queue: Queue, memory: Store, clock: ManualClock
) -> None:
    queue.put("spent", group="g")
    for _ in range(3):
        assert queue.claim()
        clock.advance(31)
    queue.put("fresh", priority=1)

    def throttled() -> None:
        raise errors.InternalServerError("later")

    backend = Overtaken(memory.backend)
    with isotone.connect(backend, clock=memory.clock) as throttling:
        backend.before["TransactWriteItems"] = [throttled]
        other = Queue(throttling, "q", hold=30, attempts=3, priorities=3)
        assert bodies(other.claim(3)) == ["fresh"]
    clock.advance(31)
    assert bodies(queue.claim(3)) == ["fresh"]
    assert [each.body for each in queue.dead_letters()] == ["spent"]


def test_what_is_kept_is_held_from_the_beginning(queue: Queue, clock: ManualClock) -> None:
    queue.put("long")
    (message,) = queue.claim(hold=1)
    with queue.handling(message, keep=True) as same:
        until, began = same.until.timestamp(), clock.now()
        clock.advance(29)  # the thread has not woken up yet
        others = queue.claim()
    assert (until, others, queue.counts().depth) == (began + 30, [], 0)


def test_the_largest_body_can_be_buried_with_a_long_reason(queue: Queue) -> None:
    largest = "ä" * 195_000
    queue.put(largest)
    queue.put(largest, group="g" * 900)
    for message in queue.claim(2):
        queue.bury(message, "\N{SNAKE}" * 2000)
    assert [each.body for each in queue.dead_letters()] == [largest] * 2
    assert queue.redrive() == 2
    assert queue.counts().ready == 2


def test_a_body_that_does_not_fit_is_refused_before_anything_is_sent(clock: ManualClock) -> None:
    requests = Requests()
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        queue, large = Queue(store, "q"), ["x" * 200_000, {"a": b"x" * 200_000}]
        for group in (None, "g"):
            with pytest.raises(errors.UsageError, match=r"400,0\d\d bytes is too large"):
                queue.put(large, group=group, token="t")
            with pytest.raises(errors.UsageError, match="put it elsewhere"):
                queue.put_many([1, large], group=group)
        assert requests.taken() == {}


def test_large_messages_of_a_group_are_put_in_several_transactions(queue: Queue) -> None:
    sent = [f"{number}{'x' * 300_000}" for number in range(20)]
    queue.put_many(sent, group="g")
    found = []
    while claimed := queue.claim():
        found += bodies(claimed)
        queue.acknowledge(claimed[0])
    assert found == sent


def test_only_one_of_two_redrives_moves_a_message(queue: Queue, memory: Store) -> None:
    queue.put("a")
    queue.put("b", group="g")
    for message in queue.claim(2):
        queue.bury(message)
    backend = Overtaken(memory.backend)
    with isotone.connect(backend, clock=memory.clock) as slow:
        backend.before["UpdateItem"] = [lambda: queue.redrive() and None]
        assert Queue(slow, "q", priorities=3).redrive() == 0
    assert (queue.counts().depth, queue.counts().dead) == (2, 0)
    assert sorted(bodies(queue.claim(5))) == ["a", "b"]


def test_a_letter_that_is_tried_anew_is_as_old_as_it_was(queue: Queue, clock: ManualClock) -> None:
    queue.put_many(["a", "b"], group="g")
    (message,) = queue.claim()
    queue.bury(message)
    clock.advance(60)
    assert queue.redrive() == 1
    for expected in ("b", "a"):
        (again,) = queue.claim()
        assert (again.body, again.put_at) == (expected, message.put_at)
        queue.acknowledge(again)


def test_a_lost_message_does_not_hide_an_interruption(queue: Queue, clock: ManualClock) -> None:
    queue.put("a")
    (message,) = queue.claim()
    clock.advance(31)
    assert queue.claim()
    with pytest.raises(KeyboardInterrupt), queue.handling(message):
        raise KeyboardInterrupt


def test_a_group_that_began_anew_keeps_its_order(queue: Queue, memory: Store) -> None:
    queue.put("a", group="g")

    def others() -> None:
        queue.put_many(["b", "c"], group="g")
        for _ in range(2):
            queue.acknowledge(queue.claim()[0])

    backend = Overtaken(memory.backend)
    with isotone.connect(backend, clock=memory.clock) as slow:
        backend.before["TransactWriteItems"] = [others]
        Queue(slow, "q").put("d", group="g")
    for expected in ("c", "d"):
        (message,) = queue.claim()
        assert message.body == expected
        queue.acknowledge(message)


@pytest.mark.parametrize("others", [0, 3])
def test_a_group_without_messages_ends(
    queue: Queue, memory: Store, caplog: pytest.LogCaptureFixture, others: int
) -> None:
    queue.put_many(range(2), group="g")
    table = queue.table.name
    for item in memory.backend.execute("Scan", {"TableName": table})["Items"]:
        if item["_type"] == {"S": "QueueMessage"}:  # deleted by hand
            key = {name: item[name] for name in ("PK", "SK")}
            memory.backend.execute("DeleteItem", {"TableName": table, "Key": key})
    queue.put_many(range(10, 10 + others))
    assert Multiset(bodies(queue.claim(5))) == Multiset(range(10, 10 + others))
    assert "group 'g' of 'q' has no messages" in caplog.text
    assert queue.counts().depth == others
    queue.put("anew", group="g")
    (message,) = queue.claim()
    assert message.body == "anew"
    queue.acknowledge(message)
    assert queue.counts().depth == others
