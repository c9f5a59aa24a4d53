"""An LRU-like cache of compiled expressions and statements, limited by the memory that they take.

A compiled expression grows with its text, so the length of the text stands for its memory. A hit is one dict look-up,
without a function call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ENTRY: Final = 1500  # bytes of a small compiled expression
_CHARACTER: Final = 100  # bytes per character of the text; 20 to 150 measured


class Cache(dict[K, V], Generic[K, V]):
    """`cache[key]` makes a missing value. Values that have not been used recently are dropped.

    `make` is called with the key and the length of its repr. `most` limits the estimated bytes of all values: each
    takes `entry` bytes, and `character` bytes for each character of the key's repr.
    """

    __slots__ = ("_before", "_bytes", "_character", "_entry", "_lock", "_make", "_most")

    def __init__(
        self,
        make: Callable[[K, int], V],
        most: int,
        *,
        entry: int = _ENTRY,
        character: int = _CHARACTER,
    ) -> None:
        super().__init__()
        self._make = make
        self._most = most
        self._entry = entry
        self._character = character
        self._lock = threading.Lock()
        self._bytes = 0
        self._before: dict[K, V] = {}

    @property
    def bytes(self) -> int:
        """The estimated bytes of the values, without those that are dropped next."""
        return self._bytes

    def __missing__(self, key: K) -> V:
        length = len(repr(key))
        before = self._before
        value = before[key] if key in before else self._make(key, length)
        size = self._entry + self._character * length
        with self._lock:
            if key not in self:  # another thread may have made it meanwhile
                if self._bytes + size > self._most // 2:
                    self._begin_new_half()
                self._bytes += size
                self[key] = value
        return value

    def _begin_new_half(self) -> None:
        """Start a new half when this one is full. Values of the older half that are not used again are dropped."""
        self._before = dict(self)
        self.clear()
        self._bytes = 0
