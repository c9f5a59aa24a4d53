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
from typing import Any

_HOMES: dict[str, str] = {}

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isotone.structures' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
