"""Reads workers from their table of leases: shards, how far each is behind, and dead letters.

How far a shard is behind is read from the stream: its oldest change after the checkpoint, and the number of waiting
changes, up to a page. If the stream has dropped changes after the checkpoint, some may be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.errors import ApiError, TrimmedDataAccessException

_MOST_SHARDS: Final = 20  # shards that are checked
_PAGE: Final = 1_000
_DEAD_SHOWN: Final = 50

Record = dict[str, Any]
Answer = dict[str, Any]


def worker(backend: Backend, table: str, records: list[Record], now: datetime) -> Answer:
    """The shards of a worker, the most delayed one first, and its dead letters."""
    leases = [each for each in records if each["_type"] == "WorkerLease" and not each["finished"]]
    dead = [each for each in records if each["_type"] == "WorkerDeadLetter"]
    shards = [_shard(backend, lease, now) for lease in leases[:_MOST_SHARDS]]
    shards.sort(key=lambda shard: shard["lag"] is not None and -shard["lag"])
    known = [shard["lag"] for shard in shards if shard["lag"] is not None]
    return {
        "rows": shards,
        "lag": max(known, default=None),
        "is_lost": any(shard["is_lost"] for shard in shards),
        "shards": len(leases),
        "finished": sum(each["_type"] == "WorkerLease" for each in records) - len(leases),
        "dead": [
            {
                "failed": str(each["failed"]),
                "handler": str(each["handler"]),
                "keys": str(each.get("keys", "")),
                "error": str(each["error"]),
                "attempts": int(each["attempts"]),
            }
            for each in sorted(dead, key=lambda each: str(each["failed"]), reverse=True)
        ][:_DEAD_SHOWN],
        "dead_letters": len(dead),
    }


def _shard(backend: Backend, lease: Record, now: datetime) -> Answer:
    until = lease.get("until")
    is_held = until is not None and datetime.fromisoformat(str(until)) > now
    checkpoint = lease.get("checkpoint")
    lag, waiting, is_more, is_lost = None, 0, False, False
    try:
        lag, waiting, is_more = _behind(backend, lease, checkpoint, now)
    except TrimmedDataAccessException:
        lag, waiting, is_more = _behind(backend, lease, None, now)
        is_lost = waiting > 0
    except ApiError:  # the stream was deleted, or may not be read
        pass
    return {
        "shard": str(lease["shard"]),
        "owner": str(lease["owner"]) if is_held and lease.get("owner") else None,
        "lag": lag,
        "waiting": waiting,
        "is_more": is_more,
        "is_lost": is_lost,
        "crashes": int(lease["crash_count"]),
    }


def _behind(
    backend: Backend, lease: Mapping[str, Any], checkpoint: Any, now: datetime
) -> tuple[float, int, bool]:
    """Seconds since the oldest undelivered change, the number of waiting changes, and whether there are more."""
    position = (
        {"ShardIteratorType": "TRIM_HORIZON"}
        if checkpoint is None
        else {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": str(checkpoint)}
    )
    request = {"StreamArn": str(lease["stream"]), "ShardId": str(lease["shard"]), **position}
    iterator = backend.execute("GetShardIterator", request)["ShardIterator"]
    page = backend.execute("GetRecords", {"ShardIterator": iterator, "Limit": _PAGE})
    records = page["Records"]
    if not records:
        return 0.0, 0, False
    oldest = records[0]["dynamodb"]["ApproximateCreationDateTime"]
    seconds = oldest.timestamp() if isinstance(oldest, datetime) else float(oldest)
    return max(0.0, now.timestamp() - seconds), len(records), len(records) == _PAGE
