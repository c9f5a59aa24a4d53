"""Many keys at once: in their order, whatever the service leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import isotone
from isotone import Attr, Entity, Key, Table, field
from isotone.backends.interface import Request, Response
from isotone.errors import BatchIncomplete, ProvisionedThroughputExceededException

table = Table("tab", sort=None)


class Thing(Entity, table=table):
    number: Attr[int] = field(max=999)

    primary = Key(number)


class Service:
    """Answers at most so many keys of each batch, in reverse, and knows the even numbers."""

    def __init__(self, answers: int, failures: int = 0) -> None:
        self.answers = answers
        self.failures = failures
        self.batches: list[int] = []

    def execute(self, operation: str, request: Request) -> Response:
        if self.failures:
            self.failures -= 1
            raise ProvisionedThroughputExceededException("slow down")
        keys = request["RequestItems"]["tab"]["Keys"]
        self.batches.append(len(keys))
        done, left = keys[: self.answers], keys[self.answers :]
        items = [item_of(int(key["PK"]["S"])) for key in reversed(done)]
        unprocessed = {"tab": {"Keys": left}} if left else {}
        return {
            "Responses": {"tab": [item for item in items if int(item["number"]["N"]) % 2 == 0]},
            "UnprocessedKeys": unprocessed,
        }


def item_of(number: int) -> dict[str, Any]:
    return {"PK": {"S": f"{number:03}"}, "number": {"N": str(number)}, "_type": {"S": "Thing"}}


def fetch(service: Service, numbers: Sequence[int], **more: Any) -> list[int | None]:
    """The numbers of the things that are there, None for the others."""
    keys = [{"number": number} for number in numbers]
    things = isotone.connect(service, check_keys=False).get_many(Thing, keys, **more)
    return [thing and thing.number for thing in things]


def test_items_come_in_the_order_of_their_keys() -> None:
    assert fetch(Service(100), [4, 1, 2, 4, 0]) == [4, None, 2, 4, 0]


def test_a_hundred_go_into_a_request_and_progress_is_reported(pauses: list[float]) -> None:
    service, told = Service(100), []
    fetch(service, range(250), progress=told.append)
    assert service.batches == [100, 100, 50]
    assert told == [(100, 250), (200, 250), (250, 250)]
    assert pauses == []


def test_what_is_left_out_is_asked_for_again(pauses: list[float]) -> None:
    wanted = [number if number % 2 == 0 else None for number in range(120)]
    assert fetch(Service(30), range(120)) == wanted
    assert pauses == []


def test_pauses_grow_while_nothing_comes(pauses: list[float]) -> None:
    assert fetch(Service(100, failures=4), [2]) == [2]
    assert len(pauses) == 4
    assert all(0 <= pause <= 0.05 * 2 ** (place + 1) for place, pause in enumerate(pauses))


def test_a_service_that_never_answers_is_given_up(pauses: list[float]) -> None:
    with pytest.raises(BatchIncomplete, match="2 of 2 keys") as incomplete:
        fetch(Service(0), [1, 2])
    assert incomplete.value.remaining == [{"PK": {"S": "001"}}, {"PK": {"S": "002"}}]
    assert len(pauses) == 9


def test_no_keys_make_no_request() -> None:
    service = Service(100)
    assert fetch(service, []) == []
    assert service.batches == []
