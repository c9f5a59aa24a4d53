"""A cache of what is made of texts, bounded by the memory that it takes.

What an expression or a statement compiles to grows with its text, so the text is the measure. A hit is one look-up in a
dict, without a call of a function.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_ENTRY: Final = 1500  # bytes of a small expression
_CHARACTER: Final = 100  # bytes that it takes for each character; measured, 20 to 150


class Cache(dict[K, V], Generic[K, V]):
    """`cache[key]` makes a value the first time. What was not used for long is forgotten.

    `make` gets the key and the length of its repr. `most` is how many bytes all values take, about, if each takes `entry`
    bytes, and `character` for each of this length.
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
        """What the values take, by estimate; those that are next to be forgotten are not counted."""
        return self._bytes

    def __missing__(self, key: K) -> V:
        length = len(repr(key))
        before = self._before
        value = before[key] if key in before else self._make(key, length)
        size = self._entry + self._character * length
        with self._lock:
            if key not in self:  # or another thread was faster
                if self._bytes + size > self._most // 2:
                    self._begin_new_half()
                self._bytes += size
                self[key] = value
        return value

    def _begin_new_half(self) -> None:
        """When half of the room is full, what is in the other half is forgotten, unless it is used again."""
        self._before = dict(self)
        self.clear()
        self._bytes = 0
