"""`CollectionDrawing`: the result of `isotone.draw`, as text, as SVG or as data."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from shutil import get_terminal_size
from typing import Any

from isotone.advisor.collection_svg import drawn_svg
from isotone.advisor.collection_text import drawn_text
from isotone.advisor.drawn_collections import DrawnItem, DrawnView


@dataclass(frozen=True, slots=True)
class CollectionDrawing:
    """Tables and indexes with their item collections: partitions as groups, items in the order of their sort keys.

    >>> drawing = isotone.draw(store, Order.by_status.where(Order.customer_id == "2b5a41c0"))
    >>> drawing.svg().startswith("<svg")
    True
    """

    views: tuple[DrawnView, ...]

    def text(self, columns: int | None = None, *, colour: bool = False) -> str:
        """The drawing in box characters, no wider than the terminal if the keys allow that."""
        wide = get_terminal_size().columns if columns is None else columns
        return drawn_text(self.views, wide, colour=colour)

    def svg(self, title: str = "") -> str:
        """The drawing as a self-contained file, light or dark as the reader prefers, with a title and a description."""
        return drawn_svg(self.views, title)

    def to_dict(self) -> dict[str, Any]:
        """The drawing as JSON values; rows are items, or gaps that stand for hidden items."""
        return {
            "views": [
                {
                    **asdict(view),
                    "title": view.title,
                    "subtitle": view.subtitle,
                    "collections": [
                        {
                            "partition": [asdict(part) for part in collection.partition],
                            "rows": [
                                {"row": "item" if isinstance(row, DrawnItem) else "gap"}
                                | asdict(row)
                                for row in collection.rows
                            ],
                        }
                        for collection in view.collections
                    ],
                }
                for view in self.views
            ]
        }

    def __str__(self) -> str:
        return self.text(columns=100)

    def _repr_html_(self) -> str:
        return self.svg()
