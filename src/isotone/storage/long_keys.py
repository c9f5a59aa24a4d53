"""Keys that are too long for an index of PostgreSQL, which takes 2,704 bytes (`LONGEST`, `expanded`).

A key of DynamoDB with its index may have over 6,000. All keys of at least `LONGEST` bytes that begin with the same
`LONGEST` bytes share one row: its key is that beginning, its value the list of the rests with their values, in order. A
row with such a key is therefore always a bundle, and rows in order are entries in order. A write reads and writes the
whole bundle.

>>> bundle = changed(b"", {b"k" * 3000: b"one", b"k" * 2600: b"two"})
>>> [(len(key), value) for key, value in expanded([(b"k" * LONGEST, bundle)])]
[(2600, b'two'), (3000, b'one')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

LONGEST: Final = 2500
"""Bytes from which on a key is in a bundle."""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]]).decode


def expanded(
    rows: Iterable[tuple[bytes, bytes]], reverse: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """The entries of rows, bundles taken apart, in the same order."""
    for key, value in rows:
        if len(key) < LONGEST:
            yield key, value
        else:
            entries = _decode(value)
            for rest, own in reversed(entries) if reverse else entries:
                yield key + rest, own


def value_in(bundle: bytes | None, key: bytes) -> bytes | None:
    """The value of a long key in its bundle; None if it is not in it."""
    return None if bundle is None else dict(_decode(bundle)).get(key[LONGEST:])


def changed(bundle: bytes | None, written: Mapping[bytes, bytes | None]) -> bytes | None:
    """A bundle after writes to some of its keys, None for deleted ones; None if nothing is left."""
    entries: dict[bytes, bytes | None] = dict(_decode(bundle)) if bundle else {}
    entries.update({key[LONGEST:]: value for key, value in written.items()})
    left = sorted((rest, value) for rest, value in entries.items() if value is not None)
    return _encode(left) if left else None


def rows_of(keys: Sequence[bytes]) -> list[bytes]:
    """The keys of the rows that have some keys."""
    return sorted({key[:LONGEST] for key in keys})


def end_of_rows(high: bytes | None) -> bytes | None:
    """The upper bound of the rows in which the keys below `high` are."""
    return high if high is None or len(high) <= LONGEST else high[:LONGEST] + b"\0"


def entries_of(
    keys: Sequence[bytes],
    values: Sequence[bytes],
    low: bytes,
    high: bytes | None,
    reverse: bool,
) -> Iterator[tuple[bytes, bytes]]:
    """The entries of some rows. Bundles of long keys may have some outside of the range."""
    rows = zip(keys, values, strict=True)
    if max(map(len, keys)) < LONGEST:
        return rows
    return (
        (key, value)
        for key, value in expanded(rows, reverse)
        if low <= key and (high is None or key < high)
    )
