"""What a table's design does and costs: explained queries, drawings of item collections, findings."""

from __future__ import annotations

from isotone.advisor.collection_drawing import CollectionDrawing
from isotone.advisor.drawing import draw
from isotone.advisor.drawn_collections import Collection, DrawnItem, Gap, KeyPart, View
from isotone.advisor.explain import explain
from isotone.advisor.explanation import (
    Alternative,
    Cost,
    EntryWrite,
    Explanation,
    KeyRangePart,
)

__all__ = [
    "Alternative",
    "Collection",
    "CollectionDrawing",
    "Cost",
    "DrawnItem",
    "EntryWrite",
    "Explanation",
    "Gap",
    "KeyPart",
    "KeyRangePart",
    "View",
    "draw",
    "explain",
]
