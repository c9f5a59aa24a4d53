"""The content of a drawing as plain data: views, collections, items, gaps, and the parts of keys.

A view is a table or an index. Its collections are groups of items with the same partition key, in the order of their
sort keys. The renderers (`collection_text`, `collection_svg`) use nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from isotone.text_table import pluralized, printable, width

State = Literal["", "returned", "dropped"]
"""The state of an item: outside of the range; read and returned; or read and dropped by the filter."""


@dataclass(frozen=True, slots=True)
class DrawnKeyPart:
    """A part of a key: `field` names the component, and is empty for a literal or a separator."""

    text: str
    field: str = ""


KeyParts = tuple[DrawnKeyPart, ...]


def text_of(parts: KeyParts) -> str:
    """The key that the parts form."""
    return "".join(part.text for part in parts)


def shortened(parts: KeyParts, widest: int) -> KeyParts:
    """The key, printable, and shortened if it takes more columns."""
    shown = tuple(DrawnKeyPart(printable(part.text), part.field) for part in parts if part.text)
    left = widest - (width(text_of(shown)) > widest)
    kept: list[DrawnKeyPart] = []
    for part in shown:
        if width(part.text) > left:
            cut = part.text[:left]
            while width(cut) > left:
                cut = cut[:-1]
            return (*kept, DrawnKeyPart(f"{cut}…", part.field))
        kept.append(part)
        left -= width(part.text)
    return tuple(kept)


@dataclass(frozen=True, slots=True)
class DrawnItem:
    """An item: its sort key, its kind of entity, and some of its attributes with their values."""

    sort: KeyParts
    kind: str = ""
    attributes: tuple[tuple[str, str], ...] = ()
    state: State = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Hidden items: how many, and how many of them are read. Of an unknown number, `read` is above 0 if all are read.

    Without items it stands for the position of an empty range.
    """

    items: int | None
    """None if unknown."""
    read: int = 0
    least: int = 0
    """The items that there are at least, if their number is unknown."""

    @property
    def is_read(self) -> bool:
        """Whether the range reaches into the gap."""
        return self.read > 0 or self.items == 0


@dataclass(frozen=True, slots=True)
class DrawnCollection:
    """The items of one partition, in the order of their sort keys. Gaps stand for hidden items."""

    partition: KeyParts
    rows: tuple[DrawnItem | Gap, ...]


@dataclass(frozen=True, slots=True)
class DrawnView:
    """A table, or one of its indexes (`index`), with some of its collections.

    `direction` is the direction of a query: "forward" in the order of the sort key, or "backward". `hidden` counts the
    collections that are not shown (None if unknown), `absent` the items of the table that a sparse index leaves out.
    """

    table: str
    index: str | None
    partition_name: str
    sort_name: str
    collections: tuple[DrawnCollection, ...]
    direction: Literal["forward", "backward"] | None = None
    hidden: int | None = 0
    absent: int = 0

    @property
    def title(self) -> str:
        """The name of the index or of the table."""
        return self.table if self.index is None else self.index

    @property
    def subtitle(self) -> str:
        """What the title names, and how many items a sparse index leaves out."""
        what = "table" if self.index is None else f"index of {self.table}"
        if not self.absent:
            return what
        return f"{what}, without {pluralized(self.absent, 'item')} of the table"


def hidden_text(hidden: int | None) -> str:
    """The line that stands for hidden collections."""
    if hidden is None:
        return "more collections"
    return pluralized(hidden, "more collection")


def gap_text(gap: Gap) -> str:
    """The line that stands for hidden items."""
    if gap.items is None and not gap.least:
        return "perhaps more items"
    if gap.items is None:
        return "more items, all read" if gap.read else "more items"
    if gap.items == 0:
        return "no item in the range"
    read = f", {gap.read} of them read" if 0 < gap.read < gap.items else ""
    return f"{pluralized(gap.items, 'more item')}{read}"


def fields_of(views: tuple[DrawnView, ...]) -> dict[str, int]:
    """Numbers the key components by name, in the order of their appearance; the number chooses a colour."""
    names: dict[str, int] = {}
    for view in views:
        for collection in view.collections:
            keys = [collection.partition]
            keys += [row.sort for row in collection.rows if isinstance(row, DrawnItem)]
            for part in (part for key in keys for part in key):
                if part.field:
                    names.setdefault(part.field, len(names))
    return names


def kinds_of(views: tuple[DrawnView, ...]) -> dict[str, int]:
    """Numbers the kinds of entities, in the order of their appearance."""
    names: dict[str, int] = {}
    for view in views:
        for collection in view.collections:
            for row in collection.rows:
                if isinstance(row, DrawnItem) and row.kind:
                    names.setdefault(row.kind, len(names))
    return names
