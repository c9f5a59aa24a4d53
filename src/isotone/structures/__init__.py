"""Structures on ordered keys. They use only the model's public API, and run on every store.

    from isotone.structures import SortedSet

    trending = SortedSet(store, "trending:2026-01-31")
    trending.create_table()
    trending.zincrby(1, "song:1")

Over a `Store`, methods return their results; over an `AsyncStore`, they must be awaited. A module is imported when one
of its names is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.structures.adjacency import Adjacency as Adjacency
    from isotone.structures.adjacency import AdjacencyEdge as AdjacencyEdge
    from isotone.structures.adjacency import EdgeWrites as EdgeWrites
    from isotone.structures.counter import Counter as Counter
    from isotone.structures.counter import Sequence as Sequence
    from isotone.structures.counter import ShardedCounter as ShardedCounter
    from isotone.structures.feed import Feed as Feed
    from isotone.structures.feed_followers import Followers as Followers
    from isotone.structures.feed_followers import RelationalFollowers as RelationalFollowers
    from isotone.structures.feed_timelines import FeedPage as FeedPage
    from isotone.structures.feed_timelines import FeedPost as FeedPost
    from isotone.structures.idempotency import Idempotency as Idempotency
    from isotone.structures.leaderboard import Leaderboard as Leaderboard
    from isotone.structures.leaderboard import ScoreEvent as ScoreEvent
    from isotone.structures.leaderboard import Standing as Standing
    from isotone.structures.leaderboard import Standings as Standings
    from isotone.structures.lease_block import LeaseBlock as LeaseBlock
    from isotone.structures.lock import Lock as Lock
    from isotone.structures.lock import LockHolder as LockHolder
    from isotone.structures.queue import Queue as Queue
    from isotone.structures.queue_messages import Message as Message
    from isotone.structures.queue_messages import QueueCounts as QueueCounts
    from isotone.structures.queue_messages import QueueEntry as QueueEntry
    from isotone.structures.sorted_set import SortedSet as SortedSet
    from isotone.structures.sorted_set_reads import SortedSetMember as SortedSetMember
    from isotone.structures.time_series import PointPage as PointPage
    from isotone.structures.time_series import TimeSeries as TimeSeries
    from isotone.structures.time_series_points import Point as Point
    from isotone.structures.time_series_points import Summary as Summary
    from isotone.structures.time_windows import Window as Window
    from isotone.structures.time_windows import Windows as Windows
    from isotone.structures.unique import Unique as Unique
    from isotone.structures.unique import UniqueWrites as UniqueWrites
    from isotone.structures.worker import Worker as Worker
    from isotone.structures.worker_delivery import Context as Context
    from isotone.structures.worker_delivery import WorkerProgress as WorkerProgress
    from isotone.structures.worker_delivery import WorkerSettings as WorkerSettings
    from isotone.structures.worker_leases import WorkerDeadLetter as WorkerDeadLetter
    from isotone.structures.worker_members import RunningWorker as RunningWorker

_HOMES: dict[str, str] = {
    "SortedSetMember": "isotone.structures.sorted_set_reads",
    "LeaseBlock": "isotone.structures.lease_block",
    "UniqueWrites": "isotone.structures.unique",
    "EdgeWrites": "isotone.structures.adjacency",
    "Adjacency": "isotone.structures.adjacency",
    "AdjacencyEdge": "isotone.structures.adjacency",
    "Context": "isotone.structures.worker_delivery",
    "Counter": "isotone.structures.counter",
    "Feed": "isotone.structures.feed",
    "FeedPage": "isotone.structures.feed_timelines",
    "FeedPost": "isotone.structures.feed_timelines",
    "Followers": "isotone.structures.feed_followers",
    "Idempotency": "isotone.structures.idempotency",
    "Leaderboard": "isotone.structures.leaderboard",
    "Lock": "isotone.structures.lock",
    "LockHolder": "isotone.structures.lock",
    "Message": "isotone.structures.queue_messages",
    "Point": "isotone.structures.time_series_points",
    "PointPage": "isotone.structures.time_series",
    "Queue": "isotone.structures.queue",
    "QueueCounts": "isotone.structures.queue_messages",
    "QueueEntry": "isotone.structures.queue_messages",
    "RelationalFollowers": "isotone.structures.feed_followers",
    "RunningWorker": "isotone.structures.worker_members",
    "ScoreEvent": "isotone.structures.leaderboard",
    "Sequence": "isotone.structures.counter",
    "ShardedCounter": "isotone.structures.counter",
    "SortedSet": "isotone.structures.sorted_set",
    "Standing": "isotone.structures.leaderboard",
    "Standings": "isotone.structures.leaderboard",
    "Summary": "isotone.structures.time_series_points",
    "TimeSeries": "isotone.structures.time_series",
    "Unique": "isotone.structures.unique",
    "Window": "isotone.structures.time_windows",
    "Windows": "isotone.structures.time_windows",
    "Worker": "isotone.structures.worker",
    "WorkerDeadLetter": "isotone.structures.worker_leases",
    "WorkerProgress": "isotone.structures.worker_delivery",
    "WorkerSettings": "isotone.structures.worker_delivery",
}

__all__ = [
    "Adjacency",
    "AdjacencyEdge",
    "Context",
    "Counter",
    "EdgeWrites",
    "Feed",
    "FeedPage",
    "FeedPost",
    "Followers",
    "Idempotency",
    "Leaderboard",
    "LeaseBlock",
    "Lock",
    "LockHolder",
    "Message",
    "Point",
    "PointPage",
    "Queue",
    "QueueCounts",
    "QueueEntry",
    "RelationalFollowers",
    "RunningWorker",
    "ScoreEvent",
    "Sequence",
    "ShardedCounter",
    "SortedSet",
    "SortedSetMember",
    "Standing",
    "Standings",
    "Summary",
    "TimeSeries",
    "Unique",
    "UniqueWrites",
    "Window",
    "Windows",
    "Worker",
    "WorkerDeadLetter",
    "WorkerProgress",
    "WorkerSettings",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isotone.structures' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
