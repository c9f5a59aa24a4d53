"""The sizes that DynamoDB allows keys to have, looked at before anything is sent."""

from __future__ import annotations

from isotone import limits
from isotone.errors import UsageError
from isotone.model.declaring.keys import BoundKey, Slot
from isotone.values.types import Item


def check_sizes(tag: str, key: BoundKey, attributes: Item) -> None:
    """Raise `UsageError` for a key that is longer than DynamoDB takes. O(1) for short keys."""
    length = sum([len(value.get("S", "")) for value in attributes.values()])
    if 4 * length <= limits.SORT_KEY_SIZE:  # no character has more than 4 bytes
        return
    _check(tag, key, key.partition, attributes, limits.PARTITION_KEY_SIZE)
    _check(tag, key, key.sort, attributes, limits.SORT_KEY_SIZE)


def _check(tag: str, key: BoundKey, slots: tuple[Slot, ...], attributes: Item, limit: int) -> None:
    texts = [attributes[slot.attribute.name].get("S", "") for slot in slots]
    size = sum(len(text.encode()) for text in texts)
    if size > limit:
        names = ", ".join(repr(slot.attribute.name) for slot in slots)
        raise UsageError(
            f"{tag}: key {key.name!r} has {size} bytes in {names}, and DynamoDB takes {limit}; "
            f"it begins with {texts[0][:60]!r}"
        )
