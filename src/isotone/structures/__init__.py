"""What people build on ordered keys, on the modelling library alone: each runs wherever a store does.

    from isotone.structures import SortedSet

    trending = SortedSet(store, "trending:2026-01-31")
    trending.create_table()
    trending.zincrby(1, "song:1")

Over a `Store` the methods give their results; over an `AsyncStore` they are awaited. Names load when they
are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.structures.counter import Counter as Counter
    from isotone.structures.counter import Sequence as Sequence
    from isotone.structures.counter import ShardedCounter as ShardedCounter
    from isotone.structures.lock import Lock as Lock
    from isotone.structures.lock import LockHolder as LockHolder

_HOMES: dict[str, str] = {
    "Counter": "isotone.structures.counter",
    "Lock": "isotone.structures.lock",
    "LockHolder": "isotone.structures.lock",
    "Sequence": "isotone.structures.counter",
    "ShardedCounter": "isotone.structures.counter",
}

__all__ = [
    "Counter",
    "Lock",
    "LockHolder",
    "Sequence",
    "ShardedCounter",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isotone.structures' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
