"""`DamagedItem`: says which table, item, index or stream a corrupt entry belongs to.

The store notices that an entry is not as it was written (`storage.checksums`), but knows only its tree and key. The
catalog, if it is readable, tells here what they mean.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from isotone.codec import HASH_SIZE, decode_components
from isotone.engine.index_entries import TableIndex
from isotone.engine.layout import Keyspace, item_of, size_of
from isotone.engine.table_indexes import ExpiryIndex, SecondaryIndex, StoredTable
from isotone.errors import DamagedItem, MalformedKey, StorageCorrupt
from isotone.values.attribute_validation import Item
from isotone.values.size import item_size

log: logging.Logger = logging.getLogger("isotone")


_DAMAGED: Final = " is damaged: it is not as it was written"
_ADVICE: Final = ". `isotone check` lists all damage, `isotone repair` saves everything else"


class Role(NamedTuple):
    """What a tree contains: `table` is None for the database's own trees, `text` says what one of its entries is."""

    text: str
    table: StoredTable | None = None
    of_index: TableIndex | None = None
    has_items: bool = False


def roles(tables: Iterable[StoredTable]) -> dict[str, Role]:
    """The role of each tree of these tables."""
    return {tree: role for table in tables for tree, role in _roles(table)}


def _roles(table: StoredTable) -> Iterator[tuple[str, Role]]:
    of = f"of table {table.name}"
    yield table.tree, Role(f"the item {{item}} {of}", table, has_items=True)
    for index in table.indexes:
        if isinstance(index, ExpiryIndex):
            yield index.tree, Role(f"the expiry of item {{item}} {of}", table, index)
        else:
            name = getattr(index, "name", "")
            text = f"the entry of item {{item}} in index {name} {of}"
            yield index.tree, Role(text, table, index, isinstance(index, SecondaryIndex))
    stream = table.schema.stream
    others: dict[str | None, str] = {
        table.collections: "a size of the item collections",
        table.history: "an entry of the history",
        None if stream is None else stream.tree: "a record of the stream",
    }
    if table.replication is not None:
        others[table.replication.stamps] = "a stamp of the replication"
        others[table.replication.outbox] = "a waiting write of the replication"
    for tree, text in others.items():
        if tree is not None:
            yield tree, Role(f"{text} {of}", table)


def holder(role: Role | None, tree: str) -> str:
    """The owner of a tree as the user knows it: a table, or an index of a table."""
    if role is None or role.table is None:
        return f"tree {tree}"
    table = f"table {role.table.name}"
    if isinstance(role.of_index, ExpiryIndex):
        return f"{table}: its index for expiry"
    if role.of_index is not None:
        return f"{table}: index {getattr(role.of_index, 'name', '')}"
    return table if role.has_items else f"tree {tree} (each entry is {role.text})"


def describe(role: Role | None, path: str, tree: str, key: bytes | None) -> DamagedItem:
    """The exception for an entry of a tree."""
    item = None
    if role is None:
        text = f"an entry of {tree}"
    elif "{item}" not in role.text:
        text = role.text
    else:
        import json  # a start without damage does not pay for it

        item = None if key is None else item_key(role, key)
        shown = "(its key cannot be read)" if item is None else json.dumps(item, ensure_ascii=False)
        text = role.text.replace("{item}", shown)
    where = f"{path}: " if path else ""
    return DamagedItem(
        f"{where}{text}{_DAMAGED}{_ADVICE}",
        None if role is None or role.table is None else role.table.name,
        item,
    )


def finding(error: Exception | str, path: str = "") -> str:
    """The text for damage in a check: without the name of the file, and without the advice to run a check."""
    return str(error).removesuffix(_ADVICE).removeprefix(f"{path}: ")


def item_key(role: Role, key: bytes) -> Item | None:
    """The key attributes of the item that an entry belongs to."""
    assert role.table is not None
    keys: Keyspace = role.table.keyspace
    if role.of_index is None:
        return keys.item_key(key)
    try:
        if isinstance(role.of_index, ExpiryIndex):
            key = key[len(key) - _table_key_size(key, keys.length) - HASH_SIZE :]
            return keys.item_key(key)
        values = decode_components(key[HASH_SIZE:])
    except (MalformedKey, IndexError):
        return None
    # An index entry ends with the key of its item.
    return dict(zip(keys.names, values[-keys.length :], strict=False))


def _table_key_size(key: bytes, length: int) -> int:
    """How many bytes at the end of a key are the item's own key. The hash before it can have any bytes."""
    for start in range(len(key)):
        try:
            if len(decode_components(key[start + HASH_SIZE :])) == length:
                return len(key) - start - HASH_SIZE
        except MalformedKey:
            continue
    raise MalformedKey(f"the bytes {key.hex()} have no key of {length} parts")


def log_once(known: set[str], error: StorageCorrupt) -> None:
    """Log damage that background work has met and skips; once for each entry."""
    if str(error) not in known:
        known.add(str(error))
        log.error("%s", error)


def item_in(record: bytes) -> tuple[Item, int] | None:
    """The item in a record, and its size; None if there is no item. Only an old record without a checksum can lack one."""
    try:
        item = item_of(record)
        return item, item_size(item)
    except _NO_ITEM:
        return None


def is_sound(role: Role | None, key: bytes, value: bytes) -> bool:
    """Whether an entry without a checksum can be what was written. Costs as much as parsing it.

    Only items and their copies in indexes have a known form.
    """
    if role is None or role.table is None or not role.has_items:
        return True
    try:
        item = item_of(value)
        if item_size(item) != size_of(value):
            return False
        return role.of_index is not None or role.table.keyspace.key(item) == key
    except _NO_ITEM:
        return False


# Errors from an item that was damaged before it had a checksum.
_NO_ITEM: Final = (
    msgspec.DecodeError,
    ArithmeticError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
)
