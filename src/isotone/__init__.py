"""Isotone: DynamoDB inside your Python process.

    >>> import isotone
    >>> database = isotone.open(":memory:")     # or a path
    >>> client = database.client()              # the methods of boto3's DynamoDB client

Names load when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.backends.client import Client as Client
    from isotone.backends.embedded import Database as Database
    from isotone.backends.embedded import open as open  # noqa: A004
    from isotone.clock import ManualClock as ManualClock
    from isotone.clock import SystemClock as SystemClock

__version__ = "0.1.0"

_HOMES = {
    "Client": "isotone.backends.client",
    "Database": "isotone.backends.embedded",
    "ManualClock": "isotone.clock",
    "SystemClock": "isotone.clock",
    "open": "isotone.backends.embedded",
}

__all__ = ["Client", "Database", "ManualClock", "SystemClock", "__version__", "open"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isotone' has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
