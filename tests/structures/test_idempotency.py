"""A function runs once for each key, whoever calls, fails or dies."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import IntEnum
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from tests.effort import examples
from tests.structures.simulation import Hasty, Overtaken, Repeating, Requests

import isotone
from isotone import Attr, Entity, Key, ManualClock, Store, Table, errors, field
from isotone.structures import Idempotency
from isotone.structures.idempotency import _CallAttempt
from isotone.structures.idempotency_results import fingerprint_of, result_of, storable

orders = Table("orders")


@dataclass
class Receipt:
    number: int
    total: Decimal
    on: date


class Order(Entity, table=orders):
    order_id: Attr[str] = field()
    total: Attr[Decimal] = field(default=Decimal(0))

    primary = Key("ORDER", order_id).sort("ORDER")


class Worker:
    """Counts how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> int:
        self.calls += 1
        return self.calls

    def fail(self) -> int:
        self.calls += 1
        raise ZeroDivisionError


def test_an_idempotent_call_runs_once_everywhere(
    store: Store, clock: ManualClock, table_name: str
) -> None:
    once = Idempotency(store, "charge", table=Idempotency.layout(table_name))
    once.create_table()
    work = Worker()
    assert [once.once("a", work), once.once("a", work), once.once("b", work)] == [1, 1, 2]
    with pytest.raises(ZeroDivisionError):
        once.once("c", work.fail)
    assert once.once("c", work) == 4
    with pytest.raises(errors.PayloadDiffers, match="charge 'a' was used before"):
        once.once("a", work, payload={"total": 2})
    assert (once.forget("a"), once.forget("a"), once.once("a", work)) == (True, False, 5)
    clock.advance(86_401)
    assert once.once("a", work) == 6


def test_results_come_back_as_their_type(memory: Store) -> None:
    once = Idempotency(memory, "charge")
    once.create_table()
    receipt = Receipt(7, Decimal("19.90"), date(2026, 1, 2))
    for _ in range(2):
        assert once.once("a", lambda: receipt, result=Receipt) == receipt
    assert once.once("a", lambda: receipt) == {"number": 7, "total": "19.90", "on": "2026-01-02"}
    for _ in range(2):
        assert once.once("b", lambda: None) is None
        assert once.once("c", lambda: [receipt], result=list[Receipt]) == [receipt]
        assert once.once("d", lambda: Order(order_id="1"), result=Order) == Order(order_id="1")


def test_what_cannot_be_kept_is_said_once_and_not_done_again(memory: Store) -> None:
    once = Idempotency(memory, "charge")
    once.create_table()
    done: list[int] = []

    def work() -> object:
        done.append(1)
        return threading.Lock()

    with pytest.raises(errors.UsageError, match="the result cannot be stored"):
        once.once("a", work)
    for _ in range(2):
        with pytest.raises(errors.UsageError, match=r"could not be stored; forget\("):
            once.once("a", work)
    assert done == [1]
    with pytest.raises(errors.UsageError, match="payload=…"):
        once.once("b", work, payload=threading.Lock())


FINGERPRINT = """
from dataclasses import dataclass
from pydantic import BaseModel
from isotone.structures.idempotency_results import fingerprint_of

@dataclass
class Order:
    tags: set[str]

class Model(BaseModel):
    tags: set[str]

tags = set("abcdefgh")
print(fingerprint_of([((tags,), {"tags": frozenset(tags)}), Order(tags), Model(tags=tags)]))
"""


def test_a_set_is_the_same_payload_in_each_process() -> None:
    def printed(seed: str) -> str:
        command = [sys.executable, "-c", FINGERPRINT]
        env = {**os.environ, "PYTHONHASHSEED": seed}
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout

    assert len({printed(seed) for seed in "12"}) == 1


def test_equal_numbers_are_the_same_payload() -> None:
    def kinds(*payloads: Any) -> int:
        return len({fingerprint_of({"total": [each]}) for each in payloads})

    assert kinds(20, 20.0, Decimal("20.00"), Decimal("2E+1")) == 1
    assert kinds(Decimal("9.90"), Decimal("9.9"), Decimal("0.99E+1")) == 1
    assert kinds(Decimal("9.9"), Decimal("9.91"), Decimal("-9.9"), 9, Decimal("NaN")) == 5
    assert kinds(1, True, "1") == 3


def test_functions_are_decorated(memory: Store) -> None:
    once = Idempotency(memory, "charge")
    once.create_table()
    charged: list[str] = []

    @once.each(lambda order, **_: order.order_id)
    def charge(order: Order, *, currency: str = "EUR") -> Receipt:
        """Take the money."""
        charged.append(order.order_id)
        return Receipt(len(charged), order.total, date(2026, 1, 1))

    @once.each(lambda order: f"mail-{order.order_id}", payload=lambda order: None)
    def mail(order: Order) -> None:
        charged.append("mail")

    assert charge.__doc__ == "Take the money."
    first = charge(Order(order_id="1", total=Decimal(5)))
    assert (
        charge(Order(order_id="1", total=Decimal(5)))
        == first
        == Receipt(1, Decimal(5), date(2026, 1, 1))
    )
    with pytest.raises(errors.PayloadDiffers):
        charge(Order(order_id="1", total=Decimal(6)))
    with pytest.raises(errors.PayloadDiffers):
        charge(Order(order_id="1", total=Decimal(5)), currency="USD")
    mail(Order(order_id="1"))
    mail(Order(order_id="1", total=Decimal(1)))
    assert charged == ["1", "mail"]


def test_a_type_that_is_not_there_is_refused_where_it_is_said(memory: Store) -> None:
    def charge(order: str) -> Nothing:  # type: ignore[name-defined]  # noqa: F821
        raise NotImplementedError

    with pytest.raises(errors.UsageError, match="the return type of 'charge' cannot be read"):
        Idempotency(memory, "charge").each(str)(charge)


async def pay() -> str:
    return "paid"


class Payer:
    async def __call__(self) -> str:
        return "paid"


async def pay_bit_by_bit() -> AsyncIterator[str]:
    yield "paid"


@pytest.mark.parametrize("function", [pay, partial(pay), Payer(), lambda: pay(), pay_bit_by_bit])
def test_a_store_awaits_nothing_and_says_so_before_it_is_done(memory: Store, function: Any) -> None:
    once = Idempotency(memory, "pay")
    once.create_table()
    with pytest.raises(errors.UsageError, match="a Store cannot await"):
        once.once("a", function)
    assert once.once("a", lambda: "really done") == "really done"


def test_only_what_can_be_awaited_is_decorated_over_an_async_store(memory: Store) -> None:
    with pytest.raises(errors.UsageError, match="a Store cannot await"):
        Idempotency(memory, "pay").each(str)(pay)

    @wraps(pay)
    def paying() -> Any:
        return pay()

    async def program() -> None:
        async with isotone.aconnect() as store:
            once = Idempotency(store, "pay")
            await once.create_table()
            with pytest.raises(errors.UsageError, match="over an AsyncStore"):
                once.each(lambda: "a")(lambda: "paid")
            for function in (pay, partial(pay), Payer(), paying):
                decorated = once.each(lambda: "a")(function)
                assert asyncio.iscoroutinefunction(decorated)
                assert await decorated() == "paid"
            assert await once.once("b", lambda: 1) == await once.once("b", lambda: 2) == 1

    asyncio.run(program())


def fee() -> Decimal:
    return Decimal("1.50")


class Fee:
    def __call__(self) -> Decimal:
        return fee()

    async def later(self) -> Decimal:
        return fee()

    def some_time(self) -> Awaitable[Decimal]:
        return self.later()


@pytest.mark.parametrize("function", [fee, partial(fee), Fee(), Fee().__call__])
def test_what_a_function_says_it_returns_comes_back(memory: Store, function: Any) -> None:
    once = Idempotency(memory, "fee")
    once.create_table()
    found = [once.once("a", function), once.once("a", function)]
    assert [(type(each), each) for each in found] == [(Decimal, Decimal("1.50"))] * 2


def test_what_is_awaited_comes_back_as_its_type() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            once = Idempotency(store, "fee")
            await once.create_table()
            for name in ("later", "some_time"):
                for _ in range(2):
                    found = await once.once(name, getattr(Fee(), name))
                    assert (type(found), found) == (Decimal, Decimal("1.50"))

    asyncio.run(program())


class Kind(IntEnum):
    ONE = 1


@pytest.mark.parametrize(
    "result",
    [Decimal(1), (1, 2), {1}, {1: 2}, [Decimal(1)], b"x", date(2026, 1, 1), Kind.ONE, iter("ab")],
)
def test_a_result_that_would_come_back_as_another_is_refused(memory: Store, result: Any) -> None:
    once = Idempotency(memory, "work")
    once.create_table()
    with pytest.raises(errors.UsageError, match="the next time; give its exact type as result="):
        once.once("a", lambda: result)
    with pytest.raises(errors.UsageError, match="the work was done, but"):
        once.once("a", lambda: pytest.fail("done again"))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_what_json_has_comes_back_without_a_type(result: Any) -> None:
    assert result_of(storable(result, Any), Any) == result


def test_types_that_cannot_be_read_are_refused_before_anything_is_done(memory: Store) -> None:
    def lock() -> Fee:
        raise AssertionError

    once = Idempotency(memory, "work")
    once.create_table()
    for function, result in [(lock, Any), (fee, 5), (fee, Fee)]:
        with pytest.raises(errors.UsageError, match="a result cannot be stored as"):
            once.once("a", function, result=result)
    assert not once.forget("a")


def test_a_function_that_returns_something_else_than_it_says_is_reported(memory: Store) -> None:
    def count() -> int:
        return "many"  # type: ignore[return-value]

    once = Idempotency(memory, "work")
    once.create_table()
    with pytest.raises(
        errors.UsageError, match=r"the stored result, .*many.*, is not a <class 'int'>"
    ):
        once.once("a", count)
    once.once("b", lambda: "many")
    with pytest.raises(errors.UsageError, match="is not a <class 'int'>"):
        once.once("b", count)


def test_work_is_done_though_the_code_of_its_result_fails(memory: Store) -> None:
    class Odd(dict[str, int]):
        def __eq__(self, other: object) -> bool:
            raise ZeroDivisionError

        __ne__ = __eq__
        __hash__ = None  # type: ignore[assignment]

    once = Idempotency(memory, "work")
    once.create_table()
    with pytest.raises(ZeroDivisionError):
        once.once("a", lambda: Odd())
    with pytest.raises(errors.UsageError, match="the work was done, but"):
        once.once("a", dict)


@pytest.mark.parametrize("seconds", [-1, 0, float("nan")])
def test_times_that_undo_the_promise_are_refused(memory: Store, seconds: float) -> None:
    for option in ("lease", "remember"):
        with pytest.raises(errors.UsageError, match=f"{option} must be more than 0 seconds"):
            Idempotency(memory, "work", **{option: seconds})
    with pytest.raises(errors.UsageError, match="skew must be 0 seconds or more"):
        Idempotency(memory, "work", skew=-1)


def test_calls_that_make_no_sense_are_refused_at_the_call(memory: Store) -> None:
    once: Any = Idempotency(memory, "work")
    for call in (
        lambda: once.once("a", 5),
        lambda: once.once("a", None),
        lambda: once.once("a", fee, wait="5"),
        lambda: once.once(5, fee),
        lambda: once.each("a"),
        lambda: once.each(fee)("1"),
        lambda: once.settle(memory, "a"),
    ):
        with pytest.raises(errors.UsageError, match=r"takes|decorates"):
            call()


def test_a_call_that_is_spelled_otherwise_is_the_same(memory: Store) -> None:
    once = Idempotency(memory, "charge")
    once.create_table()

    class Desk:
        @once.each(lambda self, order, *_, **__: order)
        def capture(self, order: str, total: int = 5, **more: str) -> int:
            return total

    @once.each(lambda *_, **__: "plain")
    def capture(order: str, total: int = 5, *, currency: str = "EUR") -> int:
        return total

    for desk in (Desk(), Desk()):
        assert [desk.capture("1"), desk.capture("1", 5), desk.capture("1", total=5)] == [5, 5, 5]
    with pytest.raises(errors.PayloadDiffers):
        Desk().capture("1", note="urgent")
    assert [capture("1"), capture(total=5, order="1"), capture("1", currency="EUR")] == [5] * 3
    with pytest.raises(errors.PayloadDiffers):
        capture("1", 6)
    with pytest.raises(TypeError, match="missing a required argument: 'order'"):
        capture()


def test_a_second_caller_waits_or_gets_in_progress(memory: Store, clock: ManualClock) -> None:
    once, hasty = Idempotency(memory, "charge"), Hasty.over(memory)
    once.create_table()
    asked: list[Any] = []

    def work() -> str:
        with pytest.raises(errors.InProgress, match="'a' is in progress") as busy:
            once.once("a", work)
        asked.append(busy.value.until)
        with pytest.raises(errors.InProgress):
            Idempotency(hasty, "charge").once("a", work, wait=10)
        return "first"

    began = clock.now()
    assert once.once("a", work) == "first"
    assert asked == [datetime.fromtimestamp(began + 60, UTC)]
    assert 9.99 < clock.now() - began < 11


def attempt_of(once: Idempotency, key: str) -> _CallAttempt:
    return once.store.run(once._begin(_CallAttempt(once._record(key, None), Any), 0))


def finish(once: Idempotency, attempt: _CallAttempt, result: Any) -> None:
    attempt.result = result
    once.store.run(once._end(attempt, None))


def test_a_waiting_caller_gets_the_result(memory: Store) -> None:
    hasty = Hasty.over(memory)
    once = Idempotency(memory, "charge")
    once.create_table()
    theirs = attempt_of(once, "a")
    hasty.between = lambda: finish(once, theirs, "theirs")
    assert Idempotency(hasty, "charge").once("a", lambda: "mine", wait=10) == "theirs"


def test_an_attempt_that_outlives_its_lease_is_overtaken(memory: Store, clock: ManualClock) -> None:
    once = Idempotency(memory, "charge", lease=10)
    once.create_table()

    def slow() -> str:
        clock.advance(11)
        assert once.once("a", lambda: "fast") == "fast"
        return "slow"

    with pytest.raises(errors.LeaseLost, match="longer lease"):
        once.once("a", slow)
    assert once.once("a", slow) == "fast"


def test_only_one_of_two_callers_takes_over(memory: Store, clock: ManualClock) -> None:
    once, overtaken = Idempotency(memory, "charge", lease=10), Overtaken(memory.backend)
    once.create_table()
    attempt_of(once, "a")  # and dies
    clock.advance(11)
    work = Worker()
    overtaken.before["PutItem"] = [lambda: None, lambda: attempt_of(once, "a")]
    with isotone.connect(overtaken, clock=clock) as late, pytest.raises(errors.InProgress):
        Idempotency(late, "charge", lease=10).once("a", work)
    assert work.calls == 0


def test_a_takeover_keeps_a_result_of_the_last_moment(memory: Store, clock: ManualClock) -> None:
    once, overtaken = Idempotency(memory, "charge", lease=10), Overtaken(memory.backend)
    once.create_table()
    slow = attempt_of(once, "a")
    clock.advance(11)
    overtaken.before["PutItem"] = [lambda: None, lambda: finish(once, slow, "slow")]
    with isotone.connect(overtaken, clock=clock) as late:
        assert Idempotency(late, "charge", lease=10).once("a", lambda: "late") == "slow"


def test_a_slow_attempt_that_fails_takes_nothing_away(memory: Store, clock: ManualClock) -> None:
    once = Idempotency(memory, "charge", lease=10)
    once.create_table()

    def slow() -> str:
        clock.advance(11)
        once.once("a", lambda: "fast")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        once.once("a", slow)
    assert once.once("a", slow) == "fast"


class Attempts(RuleBasedStateMachine):
    """Attempts that end, fail, or never end; whoever calls meanwhile."""

    keys = st.sampled_from("ab")

    @initialize()
    def begin(self) -> None:
        self.clock = ManualClock()
        self.store = isotone.connect(clock=self.clock)
        self.once = Idempotency(self.store, "work", lease=10)
        self.once.create_table()
        self.done: dict[str, int] = {}
        self.running: dict[str, float] = {}
        self.number = 0

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()

    def work(self) -> int:
        self.number += 1
        return self.number

    def is_running(self, key: str) -> bool:
        return self.running.get(key, 0.0) > self.clock.now()

    @rule(key=keys)
    def call(self, key: str) -> None:
        before = self.number
        if key in self.done:
            assert self.once.once(key, self.work) == self.done[key]
            assert self.number == before
        elif self.is_running(key):
            with pytest.raises(errors.InProgress):
                self.once.once(key, self.work)
            assert self.number == before
        else:
            self.done[key] = self.once.once(key, self.work)
            assert self.number == self.done[key] == before + 1

    @rule(key=keys)
    def fail(self, key: str) -> None:
        if key in self.done or self.is_running(key):
            return
        with pytest.raises(ZeroDivisionError):
            self.once.once(key, lambda: 1 // 0)
        self.running.pop(key, None)

    @rule(key=keys)
    def die(self, key: str) -> None:
        """As a process does that is killed: nothing is written after the beginning."""
        if key in self.done or self.is_running(key):
            return
        attempt_of(self.once, key)
        self.running[key] = self.clock.now() + 10

    @rule(key=keys)
    def forget(self, key: str) -> None:
        self.once.forget(key)
        self.done.pop(key, None)
        self.running.pop(key, None)

    @rule()
    def wait(self) -> None:
        self.clock.advance(6)


TestAttempts = Attempts.TestCase
TestAttempts.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)


def test_of_many_threads_one_does_it(tmp_path: Path) -> None:
    with isotone.connect(tmp_path / "i.db", durability="none") as store:
        Idempotency(store, "work").create_table()
        work = Worker()

        def attempt(number: int) -> int:
            return Idempotency(store, "work").once(str(number % 5), work, wait=30)

        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(attempt, range(50)))
    assert work.calls == 5
    assert sorted(set(results)) == [1, 2, 3, 4, 5]


def test_an_answer_that_is_lost_does_no_harm(memory: Store) -> None:
    Idempotency(memory, "work").create_table()
    with isotone.connect(Repeating(memory.backend), clock=memory.clock) as repeating:
        once, work = Idempotency(repeating, "work"), Worker()
        with pytest.raises(ZeroDivisionError):
            once.once("a", work.fail)
        assert [once.once("a", work), once.once("a", work)] == [2, 2]


def test_a_transaction_is_made_once(memory: Store) -> None:
    once = Idempotency(memory, "orders")
    once.create_table()
    memory.create_tables(orders)
    memory.put(Order(order_id="1", total=Decimal(10)))

    def add() -> None:
        with memory.transaction() as together:
            together.update(Order, Order.total.add(5), order_id="1")
            once.settle(together, "message-7", result="added")

    add()
    with pytest.raises(errors.TransactionFailed) as failed:
        add()
    assert isinstance(failed.value.reasons[1], errors.AlreadyExists)
    assert memory.get(Order, order_id="1") == Order(order_id="1", total=Decimal(15))
    assert once.once("message-7", lambda: "not called") == "added"


def test_an_idempotent_call_costs_as_documented(clock: ManualClock) -> None:
    requests = Requests()
    with isotone.connect(clock=clock, observe=[isotone.at_end(requests.see)]) as store:
        once = Idempotency(store, "work")
        once.create_table()
        requests.taken()
        once.once("a", lambda: 1)
        assert requests.taken() == {"PutItem": 2}
        once.once("a", lambda: 1)
        assert requests.taken() == {"PutItem": 1}
        attempt_of(once, "b")  # and dies
        clock.advance(61)
        requests.taken()
        once.once("b", lambda: 1)
        assert requests.taken() == {"PutItem": 3}
        with pytest.raises(ZeroDivisionError):
            once.once("c", lambda: 1 // 0)
        assert requests.taken() == {"PutItem": 1, "DeleteItem": 1}


def test_awaited() -> None:
    async def program() -> None:
        async with isotone.aconnect() as store:
            once = Idempotency(store, "work")
            await once.create_table()
            calls: list[str] = []

            @once.each(lambda name: name, wait=30)
            async def greet(name: str) -> str:
                calls.append(name)
                await asyncio.sleep(0)
                if len(calls) == 1:
                    raise ZeroDivisionError
                return f"hello {name}"

            with pytest.raises(ZeroDivisionError):
                await greet("ann")
            greetings = await asyncio.gather(*(greet(each) for each in ["ann", "bob"] * 5))
            assert set(greetings) == {"hello ann", "hello bob"}
            assert sorted(calls) == ["ann", "ann", "bob"]

    asyncio.run(program())


def test_a_result_that_is_too_large_is_not_worked_for_again(memory: Store) -> None:
    once, calls = Idempotency(memory, "large"), []
    once.create_table()

    def work() -> str:
        calls.append(1)
        return "é" * 200_000

    with pytest.raises(errors.UsageError, match="too large"):
        once.once("a", work)
    with pytest.raises(errors.UsageError, match="could not be stored"):
        once.once("a", work)
    assert calls == [1]


def test_clocks_may_differ_by_the_skew(memory: Store, clock: ManualClock) -> None:
    once = Idempotency(memory, "work", lease=10)
    once.create_table()
    ahead = ManualClock(clock.now() + 0.9)
    with isotone.connect(memory.backend, clock=ahead) as store:
        other = Idempotency(store, "work", lease=10)

        def slow() -> str:
            clock.advance(9.5)
            ahead.advance(9.5)
            with pytest.raises(errors.InProgress):
                other.once("a", lambda: "theirs")
            return "mine"

        assert once.once("a", slow) == other.once("a", slow) == "mine"


def test_an_attempt_longer_than_all_times_is_kept_where_nobody_came(
    memory: Store, clock: ManualClock
) -> None:
    once = Idempotency(memory, "work", lease=10, remember=5)
    once.create_table()

    def slow() -> str:
        clock.advance(12)
        return "done"

    assert once.once("a", slow) == once.once("a", lambda: "again") == "done"


def test_a_result_that_cannot_be_kept_settles_nothing(memory: Store) -> None:
    once = Idempotency(memory, "work")
    for result, complaint in [(threading.Lock(), "cannot be stored"), ("x" * 400_000, "too large")]:
        with pytest.raises(errors.UsageError, match=complaint):
            once.settle(memory.calls.transaction(), "a", result=result)


def test_what_was_not_kept_is_said_again_whatever_its_type(memory: Store) -> None:
    once = Idempotency(memory, "work")
    once.create_table()
    for kind, result in [(Order, threading.Lock()), (Receipt, threading.Lock())]:
        with pytest.raises(errors.UsageError, match="cannot be stored"):
            once.once(kind.__name__, lambda result=result: result, result=kind)
        with pytest.raises(errors.UsageError, match="could not be stored"):
            once.once(kind.__name__, lambda: None, result=kind)


@pytest.mark.parametrize("slow", ["DeleteItem", "PutItem DeleteItem"])
@pytest.mark.parametrize("cancellations", [1, 2, 3])
def test_a_task_that_is_cancelled_again_and_again_can_be_tried_anew(
    slow: str, cancellations: int
) -> None:
    class Slow:
        slow = "DeleteItem"

        async def execute(self, operation: str, request: Any, deadline: float | None = None) -> Any:
            answer = await plain.backend.execute(operation, request)
            if operation in self.slow:
                await asyncio.sleep(0.01)
            return answer

    plain = isotone.aconnect()

    async def program() -> None:
        backend = Slow()
        once = Idempotency(isotone.aconnect(backend), "work")
        await once.create_table()
        backend.slow = slow
        working = asyncio.create_task(once.once("a", lambda: asyncio.sleep(60)))
        await asyncio.sleep(0.005)
        for _ in range(cancellations):
            working.cancel()
            await asyncio.sleep(0.002)
        with pytest.raises(asyncio.CancelledError):
            await working
        assert await once.once("a", lambda: asyncio.sleep(0, "done")) == "done"
        await plain.close()

    asyncio.run(program())
