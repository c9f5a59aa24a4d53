"""Analyses a table's design: explained queries, drawings of item collections, lint, simulations."""

from __future__ import annotations

from isotone.advisor.collection_drawing import CollectionDrawing
from isotone.advisor.drawing import draw
from isotone.advisor.drawn_collections import (
    DrawnCollection,
    DrawnItem,
    DrawnKeyPart,
    DrawnView,
    Gap,
)
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
    "CollectionDrawing",
    "Cost",
    "DrawnCollection",
    "DrawnItem",
    "DrawnKeyPart",
    "DrawnView",
    "EntryWrite",
    "Explanation",
    "Gap",
    "KeyRangePart",
    "draw",
    "explain",
]
