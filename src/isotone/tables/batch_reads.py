"""Reads many items by their keys: BatchGetItem, repeated until every key is answered, or `BatchIncomplete`.

    items = yield from fetch("Orders", keys)                # in the order of the keys
    items = read_items(backend, "Orders", keys, pace)       # from a thread, those that exist

The service answers as much of a batch as its limits allow, and returns the other keys. They are requested again. After
a request that returned nothing there is a pause; it doubles each time, and its length is random so that many clients do
not retry at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from isotone import limits
from isotone.backends.interface import Backend, Response
from isotone.backends.request_retries import THROTTLES
from isotone.errors import BatchIncomplete
from isotone.tables.pace import Pace
from isotone.tables.retries import PACED, THROTTLING
from isotone.tables.steps import Call, Steps
from isotone.text_table import pluralized
from isotone.values.types import Item


class Fetched(NamedTuple):
    """The progress of a batch: the number of keys answered and requested."""

    done: int
    total: int


FetchProgress = Callable[[Fetched], None]


def fetch(
    table: str,
    keys: Sequence[Item],
    *,
    consistent: bool = False,
    projection: object | None = None,
    progress: FetchProgress | None = None,
    count: Callable[[Response], None] | None = None,
) -> Steps[list[Item | None]]:
    """The items with these keys, in the order of the keys; None for each that is missing.

    `projection` is a ProjectionExpression that includes the key, as a tree or as text without placeholders. `count` is
    called with each response, to count its units. Raises `BatchIncomplete` with the keys that the service
    kept leaving out.
    """
    further: dict[str, Any] = {"ConsistentRead": True} if consistent else {}
    if projection is not None:
        further["ProjectionExpression"] = projection
    texts = [_text_of_key(key) for key in keys]
    pending = deque(dict(zip(texts, keys, strict=True)).values())  # a batch must not repeat a key
    total = len(pending)
    items: dict[bytes, Item] = {}
    attempt = 0
    while pending:
        batch = [pending.popleft() for _ in range(min(limits.BATCH_GET_ITEMS, len(pending)))]
        answered, left = yield from _answer(table, {"Keys": batch, **further}, count)
        for item in answered:
            items[_text_of_key({name: item[name] for name in batch[0]})] = item
        pending.extendleft(reversed(left))
        if progress is not None:
            progress(Fetched(total - len(pending), total))
        attempt = attempt + 1 if len(left) == len(batch) else 0
        if attempt == THROTTLING.attempts:
            raise BatchIncomplete(
                f"{table}: after {attempt} attempts that returned nothing, {len(pending)} of "
                f"{pluralized(total, 'key')} are not read; the table has too little throughput",
                list(pending),
            )
        if attempt:
            yield THROTTLING.pause(attempt)
    return [items.get(text) for text in texts]


def _answer(
    table: str, members: dict[str, Any], count: Callable[[Response], None] | None
) -> Steps[tuple[list[Item], list[Item]]]:
    """The items of one request, and the keys that it left out."""
    request: dict[str, Any] = {"RequestItems": {table: members}}
    if count is not None:
        request["ReturnConsumedCapacity"] = "TOTAL"
    try:
        response = yield Call("BatchGetItem", request)
    except THROTTLES:
        return [], members["Keys"]
    if count is not None:
        count(response)
    left = response.get("UnprocessedKeys", {}).get(table, {}).get("Keys", [])
    return response.get("Responses", {}).get(table, []), left


def read_items(backend: Backend, table: str, keys: list[Item], pace: Pace) -> list[Item]:
    """The items with these keys that exist, read consistently; at most 100 keys.

    Raises `BatchIncomplete` if the service keeps leaving keys out.
    """
    found: list[Item] = []
    wanted: dict[str, Any] = {table: {"Keys": keys, "ConsistentRead": True}}
    attempt = 0
    while wanted:
        request = {"RequestItems": wanted, "ReturnConsumedCapacity": "TOTAL"}
        response = pace.execute(backend, "BatchGetItem", request)
        items = response.get("Responses", {}).get(table, [])
        found += items
        wanted = response.get("UnprocessedKeys") or {}
        attempt = 0 if items else attempt + 1
        if wanted and attempt > PACED.attempts:
            left = wanted[table]["Keys"]
            raise BatchIncomplete(
                f"{table}: after {attempt} attempts that returned nothing, {pluralized(len(left), 'key')} of "
                f"{len(keys)} are not read; the table has too little throughput",
                left,
            )
        if wanted and attempt:
            pace.throttled(attempt)
    return found


def _text_of_key(key: Item) -> bytes:
    return msgspec.json.encode(key, order="sorted")
