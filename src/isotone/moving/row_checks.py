"""Checks whether an item fits a table before it is sent, so that one bad row does not fail a whole batch.

It checks the rules of every engine: the key exists, has the right type and is not empty, values are valid, and the item
is not too large. Other faults show when the engine refuses a batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from isotone import limits
from isotone.errors import ApiError
from isotone.tables.description import description_of
from isotone.values.attribute_validation import canonical_item, canonical_value
from isotone.values.known_shapes import Known
from isotone.values.types import AttributeValue, Item


class RowChecks:
    """The rules of one table, from its description."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        table = description_of(description)
        self.types: dict[str, str] = table.types
        self.key_names: tuple[str, ...] = table.key.names
        self._index_names = table.index_attributes

    @property
    def key_types(self) -> dict[str, str]:
        """The types of the key attributes."""
        return {name: self.types[name] for name in self.key_names}

    def accepts(self, known: Known) -> bool:
        """Whether an item with known types fits: by the contents of its key, and its size."""
        contents, size = known
        return all(contents) and size <= limits.ITEM_SIZE

    def checked(self, item: Item) -> Item:
        """The item in normal form. Raises `ValueError` with the reason if it does not fit."""
        try:
            found, size = canonical_item(item)
        except ApiError as error:
            raise ValueError(error.message) from None
        for name in self.key_names:
            self._check(name, found.get(name), "the key")
        for name, index in self._index_names.items():
            if name in found:
                self._check(name, found[name], f"the key of index {index}")
        if size > limits.ITEM_SIZE:
            raise ValueError(f"it has {size:,} bytes, and an item at most {limits.ITEM_SIZE:,}")
        return found

    def checked_key(self, key: Item) -> Item:
        """A key in normal form. Raises `ValueError` with the reason if it does not fit."""
        if key.keys() != set(self.key_names):
            raise ValueError(f"its key is {', '.join(key)}, not {', '.join(self.key_names)}")
        for name in self.key_names:
            self._check(name, key[name], "the key")
        return {name: canonical_value(value)[0] for name, value in key.items()}

    def _check(self, name: str, value: AttributeValue | None, what: str) -> None:
        code = self.types[name]
        if value is None:
            raise ValueError(f"it has no {name}, which is part of {what}")
        if code not in value:
            raise ValueError(
                f"{name} is of type {next(iter(value), 'none')}, and {what} needs type {code}"
            )
        if value[code] == "":
            raise ValueError(f"{name} is empty, which {what} must not be")
