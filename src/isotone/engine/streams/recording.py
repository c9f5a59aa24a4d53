"""Writing a record: every change of an item of a table with a stream, in the change's own transaction.

The service's rules: a write that changes nothing leaves no record, and the order of attributes, or of the
members of a set, is nothing. A record has the images that the stream's view type names.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import msgspec

from isotone.engine.engine import Engine
from isotone.engine.record import body_of, item_of, size_of
from isotone.engine.schema import StreamView
from isotone.engine.streams.entries import EXPIRE, INSERT, MODIFY, REMOVE, Entry, key, pack
from isotone.engine.streams.registry import next_sequence
from isotone.engine.table import Table
from isotone.expressions import equal
from isotone.values.attributes import Item
from isotone.values.size import item_size

_KEEPS_NEW: Final[frozenset[StreamView]] = frozenset({"NEW_IMAGE", "NEW_AND_OLD_IMAGES"})
_KEEPS_OLD: Final[frozenset[StreamView]] = frozenset({"OLD_IMAGE", "NEW_AND_OLD_IMAGES"})
_encode = msgspec.json.Encoder().encode


def record_change(
    engine: Engine,
    table: Table,
    item_key: bytes,
    old: bytes | None,
    new: bytes | None,
    item: Item | None = None,
    *,
    expired: bool = False,
) -> None:
    """Note that the record `old` of an item gave way to `new`, either of which may be missing.

    `item` is `new`, parsed, if the caller has it. Costs one write more.
    """
    stream = table.stream
    assert stream is not None
    item = item_of(new or old or b"") if item is None else item
    if old is not None and new is not None and _alike(old, new, item):
        return
    keys = table.schema.key_of(item)
    kept_new = new if stream.view in _KEEPS_NEW else None
    kept_old = old if stream.view in _KEEPS_OLD else None
    entry = Entry(
        time=int(engine.clock.now() * 1000),
        event=_event(old, new, expired=expired),
        size=item_size(keys) + _size(kept_new) + _size(kept_old),
        keys=_encode(keys),
        new=b"" if kept_new is None else body_of(kept_new),
        old=b"" if kept_old is None else body_of(kept_old),
    )
    shard = stream.shards[bisect_right(stream.lows, int.from_bytes(item_key[:2], "big")) - 1]
    sequence = next_sequence(engine, stream.tree)
    engine.store.put(stream.tree, key(shard, sequence), pack(entry))


def _event(old: bytes | None, new: bytes | None, *, expired: bool) -> int:
    if new is None:
        return EXPIRE if expired else REMOVE
    return INSERT if old is None else MODIFY


def _size(image: bytes | None) -> int:
    return 0 if image is None else size_of(image)


def _alike(old: bytes, new: bytes, item: Item) -> bool:
    """Whether two records are of equal items. Only one of the same length can be, and is parsed."""
    if old == new:
        return True
    return len(old) == len(new) and equal({"M": item_of(old)}, {"M": item})
