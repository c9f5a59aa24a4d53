"""Returns the changes of a table as they happen: each call returns new records, or waits a while for some.

The page keeps the position: for each shard the iterator of the next records, and the sequence number of the last
record, from which it continues if the iterator has expired. A call without a position begins at the end of the stream,
or with `from_start` at its beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any, Final

from isotone.errors import ApiError, UsageError

Execute = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]

_WAIT: Final = 20.0  # seconds that a call waits for a change
_PAUSE: Final = 0.2
_PAGE: Final = 200
_SHARDS_EVERY: Final = 10.0  # seconds between two checks for new shards


async def next_changes(
    execute: Execute,
    stream: str | None,
    position: Mapping[str, Any] | None,
    *,
    from_start: bool = False,
) -> dict[str, Any]:
    """The next records of a stream, in the order of each shard, and the position after them."""
    if not stream:
        raise UsageError("this table has no stream; enable one to see its changes")
    iterators: dict[str, str | None] = dict((position or {}).get("iterators", {}))
    last: dict[str, str] = dict((position or {}).get("last", {}))
    if not iterators:
        kind = "TRIM_HORIZON" if from_start else "LATEST"
        await _add_shards(execute, stream, iterators, kind)
        if not from_start:  # no record is missed from here on
            return {"records": [], "position": {"iterators": iterators, "last": last}}
    end = monotonic() + _WAIT
    looked, pause = monotonic(), _PAUSE  # the pause between two looks while no shard is open
    while True:
        records = await _read(execute, stream, iterators, last)
        if records or monotonic() > end:
            return {"records": records, "position": {"iterators": iterators, "last": last}}
        is_open = any(iterators.values())
        if monotonic() > looked + (_SHARDS_EVERY if is_open else pause):
            await _add_shards(execute, stream, iterators, "TRIM_HORIZON")
            looked, pause = monotonic(), _PAUSE if is_open else min(2 * pause, _SHARDS_EVERY)
        await asyncio.sleep(_PAUSE)


async def _add_shards(
    execute: Execute, stream: str, iterators: dict[str, str | None], kind: str
) -> None:
    """Get iterators for new shards. A closed shard has no new records, so LATEST leaves it out."""
    start: str | None = None
    while True:
        request = {"StreamArn": stream}
        if start is not None:
            request["ExclusiveStartShardId"] = start
        described = (await execute("DescribeStream", request))["StreamDescription"]
        for shard in described["Shards"]:
            name = shard["ShardId"]
            is_closed = "EndingSequenceNumber" in shard["SequenceNumberRange"]
            if name in iterators:
                continue
            iterators[name] = (
                None
                if is_closed and kind == "LATEST"
                else await _begin(execute, stream, name, kind)
            )
        start = described.get("LastEvaluatedShardId")
        if start is None:
            return


async def _begin(
    execute: Execute, stream: str, shard: str, kind: str, after: str | None = None
) -> str | None:
    request = {"StreamArn": stream, "ShardId": shard, "ShardIteratorType": kind}
    if after is not None:
        request |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": after}
    answer = await execute("GetShardIterator", request)
    found: str | None = answer.get("ShardIterator")
    return found


async def _read(
    execute: Execute, stream: str, iterators: dict[str, str | None], last: dict[str, str]
) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for shard, iterator in list(iterators.items()):
        if iterator is None:
            continue
        try:
            page = await execute("GetRecords", {"ShardIterator": iterator, "Limit": _PAGE})
        except ApiError as error:
            if error.code not in ("ExpiredIteratorException", "TrimmedDataAccessException"):
                raise
            after = last.pop(shard, None) if error.code == "ExpiredIteratorException" else None
            iterators[shard] = await _begin(execute, stream, shard, "TRIM_HORIZON", after)
            continue
        iterators[shard] = page.get("NextShardIterator")
        records += page["Records"]
        if page["Records"]:
            last[shard] = page["Records"][-1]["dynamodb"]["SequenceNumber"]
    return records
