"""What a Query or Scan reads from: a table or one of its indexes, and positions inside it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from isotone.codec import segment_range
from isotone.engine.engine import Engine
from isotone.engine.indexes import SecondaryIndex
from isotone.engine.keyspace import MISMATCH, Bounds, Keyspace
from isotone.engine.record import item_of
from isotone.engine.table import Table
from isotone.errors import ValidationException
from isotone.values.attributes import Item, canonical_item

_INVALID_START = "The provided starting key is invalid"
_EVERYTHING: Bounds = (b"", None)


@dataclass(frozen=True)
class Source:
    """One table, or one index of it, as something that can be read in order."""

    engine: Engine
    table: Table
    index: SecondaryIndex | None = None

    @property
    def tree(self) -> str:
        return self.table.tree if self.index is None else self.index.tree

    @property
    def keyspace(self) -> Keyspace:
        return self.table.keyspace if self.index is None else self.index.keyspace

    @cached_property
    def key_names(self) -> tuple[str, ...]:
        """The attributes that tell one entry from all others: the index's keys, then the table's."""
        own = self.keyspace.schema.names
        return own + tuple(name for name in self.table.schema.keys.names if name not in own)

    def last_key(self, record: bytes) -> Item:
        """The `LastEvaluatedKey` that stands for a record."""
        item = item_of(record)
        return {name: item[name] for name in self.key_names}

    def start_key(self, requested: dict[str, Any]) -> tuple[bytes, Item]:
        """The physical key that an `ExclusiveStartKey` stands for, and its canonical attributes."""
        start, _ = canonical_item(requested)
        types = {part.name: part.type for part in self.table.schema.keys.parts}
        types.update((part.name, part.type) for part in self.keyspace.schema.parts)
        if start.keys() != types.keys() or any(
            kind not in start[name] for name, kind in types.items()
        ):
            # The service gives the reason only where the table's own key is meant.
            raise ValidationException(
                _INVALID_START if self.index else f"{_INVALID_START}: {MISMATCH}"
            )
        try:
            self.table.keyspace.check_values(start)
        except ValidationException as error:
            raise ValidationException(f"{_INVALID_START}: {error.message}") from None
        key = self.keyspace.key(start)
        return (key if self.index is None else key + self.table.keyspace.suffix(start)), start

    def entries(
        self, bounds: Bounds, start: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The entries within bounds, from just behind `start`, in key order or in reverse."""
        low, high = bounds
        if start is not None:
            if reverse:
                high = start if high is None else min(high, start)
            else:
                low = max(low, start + b"\x00")
        if high is not None and low >= high:
            return iter(())
        return self.engine.store.range(self.tree, low, high, reverse=reverse)

    def whole_item(self, record: bytes) -> bytes:
        """The table's record behind an index entry. One item read."""
        key = self.table.keyspace.key(item_of(record))
        return self.engine.store.get(self.table.tree, key) or record


def segment_bounds(segment: int | None, total: int | None) -> Bounds:
    """The part of a table or index that one worker of a parallel scan reads."""
    if segment is None or total is None:
        return _EVERYTHING
    return segment_range(segment, total)
