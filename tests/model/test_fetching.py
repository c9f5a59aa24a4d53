"""Many keys at once: in their order, whatever the service leaves out."""

from __future__ import annotations

from typing import Any

import pytest

from isotone.errors import BatchIncomplete, ProvisionedThroughputExceededException
from isotone.model.declaring.table import Table
from isotone.model.reading.reader import Fetched, fetch
from isotone.model.steps import Call, Pause, Steps

TABLE = Table("tab", "PK", None)


def key(number: int) -> dict[str, Any]:
    return {"PK": {"S": str(number)}}


class Service:
    """Answers at most so many keys of each batch, in reverse, and knows the even numbers."""

    def __init__(self, answers: int, failures: int = 0) -> None:
        self.answers = answers
        self.failures = failures
        self.batches: list[int] = []
        self.pauses: list[float] = []

    def run(self, steps: Steps[Any]) -> Any:
        try:
            asked = next(steps)
            while True:
                if isinstance(asked, Pause):
                    self.pauses.append(asked.seconds)
                    asked = steps.send({})
                elif self.failures:
                    self.failures -= 1
                    asked = steps.throw(ProvisionedThroughputExceededException("slow down"))
                else:
                    asked = steps.send(self.answer(asked))
        except StopIteration as end:
            return end.value

    def answer(self, call: Call) -> dict[str, Any]:
        keys = call.request["RequestItems"]["tab"]["Keys"]
        self.batches.append(len(keys))
        done, left = keys[: self.answers], keys[self.answers :]
        items = [each for each in reversed(done) if int(each["PK"]["S"]) % 2 == 0]
        unprocessed = {"tab": {"Keys": left}} if left else {}
        return {"Responses": {"tab": items}, "UnprocessedKeys": unprocessed}


def test_items_come_in_the_order_of_their_keys() -> None:
    numbers = [4, 1, 2, 4, 0]
    found = Service(100).run(fetch(TABLE, [key(number) for number in numbers]))
    assert found == [key(4), None, key(2), key(4), key(0)]


def test_a_hundred_go_into_a_request_and_progress_is_told() -> None:
    service, told = Service(100), []
    service.run(fetch(TABLE, [key(number) for number in range(250)], progress=told.append))
    assert service.batches == [100, 100, 50]
    assert told == [Fetched(100, 250), Fetched(200, 250), Fetched(250, 250)]
    assert service.pauses == []


def test_what_is_left_out_is_asked_for_again() -> None:
    service = Service(30)
    found = service.run(fetch(TABLE, [key(number) for number in range(120)]))
    assert [each is not None for each in found] == [number % 2 == 0 for number in range(120)]
    assert service.pauses == []


def test_pauses_grow_while_nothing_comes() -> None:
    service = Service(100, failures=4)
    assert service.run(fetch(TABLE, [key(2)])) == [key(2)]
    assert len(service.pauses) == 4
    assert all(0 <= pause <= 0.05 * 2 ** (place + 1) for place, pause in enumerate(service.pauses))


def test_who_never_answers_is_given_up() -> None:
    service = Service(0)
    with pytest.raises(BatchIncomplete, match="2 of 2 keys") as incomplete:
        service.run(fetch(TABLE, [key(1), key(2)]))
    assert incomplete.value.remaining == [key(1), key(2)]


def test_no_keys_make_no_request() -> None:
    service = Service(100)
    assert service.run(fetch(TABLE, [])) == []
    assert service.batches == []
