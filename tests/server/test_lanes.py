"""Lanes: started when needed, one request at a time, replaced when they die, ended when idle."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading

import pytest

from isotone.errors import InternalServerError, ValidationException
from isotone.server.lane_process import LaneKeeper, serve_lane
from isotone.server.lanes import Lanes
from isotone.server.request import ServiceCall
from isotone.server.response import ORDINARY


class LongService:
    """Echoes; waits where it is told to; counts what is consumed."""

    def __init__(self):
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.begun = threading.Semaphore(0)
        self.executed = []
        self.consumed = []

    def send(self, operation, body, *, region=""):
        self.executed.append((operation, body, region))
        self.begun.release()
        assert self.may_go_on.wait(10)
        if body == b"wrong":
            raise ValidationException("it is wrong")
        return operation.encode() + body

    def measure(self):
        pass

    def take_consumed(self):
        return [("eu-west-1", "orders", "", 2.5, 0.0)]

    def take_served(self):
        return b"served"

    def is_read(self, operation, body):
        return operation == "Scan"

    def add_consumed(self, consumed):
        self.consumed += consumed

    def add_served(self, taken):
        assert taken == b"served"


class ThreadKeeper:
    """Lanes that are threads; each can be killed by its number."""

    def __init__(self, service):
        self.service = service
        self.ends = []
        self.works = True
        self.stops = 0

    def start_lane(self):
        if not self.works:
            raise OSError("no more processes")
        ours, its = socket.socketpair()
        self.ends.append(its)
        threading.Thread(target=self._run, args=(its,), daemon=True).start()
        return ours

    def _run(self, end):
        with end, contextlib.suppress(OSError):  # it was killed
            serve_lane(end, self.service)

    def kill(self, number):
        self.ends[number].shutdown(socket.SHUT_RDWR)

    def stop(self):
        self.stops += 1


@pytest.fixture
def service():
    return LongService()


@pytest.fixture
def keeper(service):
    return ThreadKeeper(service)


def call(operation, body=b"", region=""):
    return ServiceCall(operation, body, ORDINARY, region)


class Answers:
    """Collects what is delivered, by the name of the request."""

    def __init__(self):
        self.by_name = {}

    def take(self, name):
        return lambda result: self.by_name.__setitem__(name, result)

    async def of(self, *names):
        async with asyncio.timeout(10):
            while not all(name in self.by_name for name in names):
                await asyncio.sleep(0.001)
        return [self.by_name[name] for name in names]


def run(keeper, steps, **options):
    """Run `steps(lanes, answers)` with lanes that do without processes by answering "alone"."""

    async def main():
        lanes = Lanes(
            keeper,
            asyncio.get_running_loop(),
            keeper.service,
            lambda call, deliver: deliver(b"alone"),
            **options,
        )
        try:
            return await steps(lanes, Answers())
        finally:
            lanes.stop()

    return asyncio.run(main())


async def until(reached):
    async with asyncio.timeout(10):
        while not reached():
            await asyncio.sleep(0.001)


def test_a_lane_answers_as_the_service_does(keeper):
    async def steps(lanes, answers):
        lanes.run(call("Scan", b"1", "eu-west-1"), answers.take(1))
        lanes.run(call("Scan", b"wrong"), answers.take(2))
        return await answers.of(1, 2)

    answer, error = run(keeper, steps, most=1)
    assert answer == b"Scan1"
    assert type(error) is ValidationException
    assert error.message == "it is wrong"
    assert keeper.service.executed == [("Scan", b"1", "eu-west-1"), ("Scan", b"wrong", "")]
    assert keeper.service.consumed == [("eu-west-1", "orders", "", 2.5, 0.0)] * 2


def test_lanes_are_started_while_all_are_busy_and_no_more_than_allowed(keeper):
    service = keeper.service
    service.may_go_on.clear()

    async def steps(lanes, answers):
        for number in range(4):
            lanes.run(call("Scan", b"%d" % number), answers.take(number))
        await until(lambda: len(service.executed) == 2)
        await asyncio.sleep(0.02)
        assert len(service.executed) == len(keeper.ends) == 2
        service.may_go_on.set()
        return await answers.of(*range(4))

    assert run(keeper, steps, most=2) == [b"Scan0", b"Scan1", b"Scan2", b"Scan3"]


def test_an_idle_lane_ends_and_the_keeper_with_the_last(keeper):
    async def steps(lanes, answers):
        lanes.run(call("Scan"), answers.take(1))
        await answers.of(1)
        assert not keeper.stops
        await until(lambda: keeper.stops)
        lanes.run(call("Scan"), answers.take(2))
        await answers.of(2)

    run(keeper, steps, idle=0.02)
    assert len(keeper.ends) == 2


def test_a_read_whose_lane_dies_is_executed_again(keeper, caplog):
    service = keeper.service
    service.may_go_on.clear()

    async def steps(lanes, answers):
        lanes.run(call("Scan"), answers.take(1))
        await until(lambda: service.executed)
        keeper.kill(0)
        await until(lambda: len(service.executed) == 2)
        service.may_go_on.set()
        return await answers.of(1)

    with caplog.at_level(logging.ERROR, "isotone.server"):
        assert run(keeper, steps) == [b"Scan"]
    assert "has died during Scan" in caplog.text


def test_a_write_whose_lane_dies_may_have_been_done(keeper):
    service = keeper.service
    service.may_go_on.clear()

    async def steps(lanes, answers):
        lanes.run(call("UpdateItem"), answers.take(1))
        await until(lambda: service.executed)
        keeper.kill(0)
        (error,) = await answers.of(1)
        service.may_go_on.set()
        lanes.run(call("UpdateItem", b"2"), answers.take(2))
        assert await answers.of(2) == [b"UpdateItem2"]
        return error

    error = run(keeper, steps)
    assert isinstance(error, InternalServerError)  # SDKs send it again
    assert "whether it was executed is not known" in error.message


def test_a_read_that_kills_every_lane_is_given_up(keeper):
    service = keeper.service
    service.may_go_on.clear()

    async def steps(lanes, answers):
        lanes.run(call("Scan"), answers.take(1))
        for number in range(2):
            await until(lambda number=number: len(service.executed) > number)
            keeper.kill(number)
        return await answers.of(1)

    (error,) = run(keeper, steps)
    assert isinstance(error, InternalServerError)
    assert len(service.executed) == 2
    service.may_go_on.set()


def test_without_processes_the_server_does_the_work(keeper, caplog):
    keeper.works = False

    async def steps(lanes, answers):
        lanes.run(call("Scan"), answers.take(1))
        lanes.run(call("Scan"), answers.take(2))
        return await answers.of(1, 2)

    with caplog.at_level(logging.ERROR, "isotone.server"):
        assert run(keeper, steps) == [b"alone"] * 2
    assert caplog.text.count("no lane can be started: no more processes") == 1


def test_a_lane_that_cannot_open_the_database_is_not_waited_for():
    keeper = LaneKeeper(["/bin/sh", "-c", "exit 1"])
    keeper.service = LongService()

    async def steps(lanes, answers):
        lanes.run(call("Scan"), answers.take(1))
        return await answers.of(1)

    assert run(keeper, steps) == [b"alone"]
