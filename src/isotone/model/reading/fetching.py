"""Many items by their keys: BatchGetItem, until nothing of the batch is left.

The service answers as much of a batch as its limits of size and throughput let it and hands the rest
back. The rest is asked for again; where nothing at all was answered, after a pause that doubles, of
random length so that many clients do not come back at once.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from isotone import limits
from isotone.errors import (
    BatchIncomplete,
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
)
from isotone.model.declaring.table import Table
from isotone.model.steps import Call, Pause, Steps
from isotone.values.types import Item

_ATTEMPTS: Final = 10  # in a row that bring nothing
_FIRST_PAUSE: Final = 0.05  # seconds
_LONGEST_PAUSE: Final = 10.0


class Fetched(NamedTuple):
    """How far a batch is: keys answered, of those asked for."""

    done: int
    total: int


FetchProgress = Callable[[Fetched], None]


def fetch(
    table: Table,
    keys: Sequence[Item],
    *,
    consistent: bool = False,
    progress: FetchProgress | None = None,
) -> Steps[list[Item | None]]:
    """The items with these keys, in the order of the keys; None for each that is not there.

    Raises `BatchIncomplete` with the keys that the service kept leaving out.
    """
    places = [_place(key) for key in keys]
    pending = deque(dict(zip(places, keys, strict=True)).values())  # a batch refuses a key twice
    total, found = len(pending), {}
    attempt = 0
    while pending:
        batch = [pending.popleft() for _ in range(min(limits.BATCH_GET_ITEMS, len(pending)))]
        items, left = yield from _ask(table, batch, consistent)
        for item in items:
            found[_place({name: item[name] for name in batch[0]})] = item
        pending.extendleft(reversed(left))
        if progress is not None:
            progress(Fetched(total - len(pending), total))
        attempt = attempt + 1 if len(left) == len(batch) else 0
        if attempt == _ATTEMPTS:
            raise BatchIncomplete(
                f"{table.name}: after {attempt} attempts that brought nothing, {len(pending)} of "
                f"{total} keys are not read; the table has too little throughput",
                list(pending),
            )
        if attempt:
            yield Pause(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))
    return [found.get(place) for place in places]


def _ask(table: Table, batch: list[Item], consistent: bool) -> Steps[tuple[list[Item], list[Item]]]:
    """The items of one request, and the keys that it left out."""
    asked: dict[str, Any] = {"Keys": batch}
    if consistent:
        asked["ConsistentRead"] = True
    try:
        response = yield Call("BatchGetItem", {"RequestItems": {table.name: asked}})
    except (ProvisionedThroughputExceededException, RequestLimitExceeded):
        return [], batch
    left = response.get("UnprocessedKeys", {}).get(table.name, {}).get("Keys", [])
    return response.get("Responses", {}).get(table.name, []), left


def _place(key: Item) -> bytes:
    return msgspec.json.encode(key, order="sorted")
