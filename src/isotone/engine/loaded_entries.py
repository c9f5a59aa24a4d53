"""Index entries of an import: collected while items load, then sorted and added to the indexes at the end.

At the end they are sorted by key and added to the indexes (`backfill`). An interrupted import loses them; the backfill
then makes them from the stored items.

Most lines of a file are never parsed: only the contents of their key attributes are known. That is enough for entries
that have only keys, or the whole item.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final

from isotone.codec import HASH_SIZE
from isotone.engine.index_entries import TableIndex
from isotone.engine.layout import SHORT, encode_item, size_prefix
from isotone.engine.table_indexes import SecondaryIndex, StoredTable
from isotone.storage.sorting import KeyValue, NoRoomToSort, Sorter
from isotone.values.attribute_validation import Item
from isotone.values.size import binary_size, number_size, text_size

log: logging.Logger = logging.getLogger("isotone")


@lru_cache(maxsize=1024)
def _excess_of_number(content: bytes) -> int:
    return number_size(content.decode()) - len(content)


_EXCESS: Final[dict[str, Callable[[bytes], int]]] = {
    "N": _excess_of_number,
    "B": lambda content: binary_size(content.decode()) - len(content),
}
"""How many bytes a content's size exceeds its length, by type. For a text, both are equal."""


_KnownItem = tuple[Sequence[bytes], bytes, bytes]
"""The contents of some attributes, and the key and the record of an item."""


class LoadedEntries:
    """The entries of the items loaded into a table, for each of its indexes.

    `optional` are the names and types of the attributes that the entries of an unparsed item need besides the table's
    keys, in this order. `needs_items`: that is not enough for some index. `are_all`: these are the entries of all items
    of the table.
    """

    __slots__ = (
        "_indexes",
        "_known",
        "_made",
        "_makers",
        "are_all",
        "needs_items",
        "optional",
        "sorters",
    )

    def __init__(self, table: StoredTable) -> None:
        types: dict[str, str] = {}
        for keyspace in (table.keyspace, *(index.keyspace for index in table.secondary)):
            types |= {part.name: part.type for part in keyspace.parts}
        self.optional: dict[str, str] = {
            n: kind for n, kind in types.items() if n not in table.key_names
        }
        self.are_all: bool = True
        self.needs_items: bool = not all(map(_can_be_made, table.indexes))
        self.sorters: dict[str, Sorter] = {
            index.tree: Sorter(len(table.indexes)) for index in table.indexes
        }
        self._indexes = table.indexes
        self._makers = () if self.needs_items else tuple(_Maker(i, types) for i in table.secondary)
        self._made: list[list[KeyValue]] = [[] for _ in table.indexes]
        self._known: list[_KnownItem] = []

    def add_known(self, contents: Sequence[bytes], key: bytes, record: bytes) -> bool:
        """Add the entries of an item from the contents of the table's keys and of `optional`; False if it must be
        parsed.
        """
        if len(record) > SHORT and max(map(len, contents)) > SHORT:
            return False  # it may not fit
        self._known.append((contents, key, record))
        return True

    def add(self, item: Item, key: bytes, record: bytes) -> None:
        """Add the entries of an item."""
        for made, index in zip(self._made, self._indexes, strict=True):
            entry = index.entry(item, key, record)
            if entry is not None:
                made.append((entry.key, entry.record))

    def sort(self) -> None:
        """Pass everything that was added since the last call to the sorters.

        If there is no room to sort, all entries are dropped; the backfill then makes them in smaller parts.
        """
        for made, maker in zip(self._made, self._makers, strict=False):
            made += maker.entries(self._known)
        self._known = []
        try:
            for made, sorter in zip(self._made, self.sorters.values(), strict=True):
                if self.are_all:
                    sorter.add(made)
                made.clear()
        except NoRoomToSort as error:
            log.warning("%s", error)
            self.are_all = False
            self.close()

    def close(self) -> None:
        """Drop all entries."""
        for sorter in self.sorters.values():
            sorter.close()


def _can_be_made(index: TableIndex) -> bool:
    """Whether the entries of an index have only keys, or the whole item."""
    return isinstance(index, SecondaryIndex) and index.schema.projection.kind != "INCLUDE"


class _Maker:
    """Makes the entries of one index from the contents of attributes with known types."""

    __slots__ = ("_contents", "_excess", "_key", "_keyspace", "_overhead", "_template")

    def __init__(self, index: SecondaryIndex, types: dict[str, str]) -> None:
        positions = {name: position for position, name in enumerate(types)}
        self._keyspace = index.keyspace
        self._key = _getter([positions[name] for name in index.keyspace.names])
        kept = sorted(index.key_names)
        self._contents = _getter([positions[name] for name in kept])
        self._excess = [
            (n, _EXCESS[types[name]]) for n, name in enumerate(kept) if types[name] != "S"
        ]
        self._template: bytes | None = None
        if index.schema.projection.kind == "KEYS_ONLY":
            members = {name: {types[name]: "%b"} for name in kept}
            json = encode_item({name.replace("%", "%%"): value for name, value in members.items()})
            self._template = json
            empty = json % ((b"",) * len(kept))
            # bytes of JSON that do not count towards the size
            self._overhead = len(empty) - sum(map(text_size, kept))

    def entries(self, known: Sequence[_KnownItem]) -> list[KeyValue]:
        """The entries of those items that belong in the index. Their contents are short, so all of them fit."""
        # A loop with few Python calls: an import spends its time per index here.
        own_of, key_of, contents_of = self._key, self._keyspace.key_of, self._contents
        template = self._template
        made: list[KeyValue] = []
        for contents, key, record in known:
            own_key = key_of(own_of(contents))
            if own_key is None:  # the content of a key attribute is empty: the item lacks it
                continue
            if template is not None:
                kept = contents_of(contents)
                json = template % kept
                size = len(json) - self._overhead
                for position, excess in self._excess:
                    size += excess(kept[position])
                record = size_prefix(size) + json
            made.append((own_key + key[HASH_SIZE:], record))
        return made


def _getter(positions: Sequence[int]) -> Callable[[Sequence[bytes]], tuple[bytes, ...]]:
    """A function that returns the contents at some positions, always as a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return itemgetter(slice(positions[0], positions[0] + 1))
