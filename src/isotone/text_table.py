"""Text for a terminal: counts with their noun, the width of a text, shortened cells, and aligned rows.

>>> print(aligned(["table", "items"], [["orders", "1200"], ["tags", "7"]], right={1}))
table   items
──────  ─────
orders   1200
tags        7
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from typing import Final

WIDEST: Final = 48
"""The most terminal columns that a cell may take."""

_WIDE: Final = frozenset("WF")


def pluralized(number: float, noun: str, several: str = "", *, form: str = ",") -> str:
    """A number with its noun; `several` is the plural, if it is not the noun plus s.

    >>> pluralized(1, "item"), pluralized(2500, "item"), pluralized(2, "entry", "entries"), pluralized(0.5, "unit")
    ('1 item', '2,500 items', '2 entries', '0.5 units')
    """
    text = format(number, form)
    return f"{text} {noun if text == '1' else several or noun + 's'}"


def width(text: str) -> int:
    """The number of terminal columns that a text takes."""
    return sum(
        0
        if unicodedata.combining(char)
        else 2
        if unicodedata.east_asian_width(char) in _WIDE
        else 1
        for char in text
    )


def printable(text: str) -> str:
    """The text with control characters escaped."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def cell(text: str, widest: int = WIDEST) -> str:
    """A text in a table: printable, and cut if it is long."""
    shown = printable(text)
    if width(shown) <= widest:
        return shown
    shown = shown[: widest - 1]
    while width(shown) > widest - 1:
        shown = shown[:-1]
    return shown + "…"


def aligned(
    header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()
) -> str:
    """Columns under a header; `right` has the numbers of the columns that are aligned right."""
    widths = [max(map(width, column)) for column in zip(header, *rows, strict=True)]
    rule = ["─" * each for each in widths]
    return "\n".join(_line(row, widths, right) for row in (header, rule, *rows))


def _line(cells: Sequence[str], widths: Sequence[int], right: Collection[int]) -> str:
    padded = []
    for place, (text, wide) in enumerate(zip(cells, widths, strict=True)):
        padding = " " * (wide - width(text))
        padded.append(padding + text if place in right else text + padding)
    return "  ".join(padded).rstrip()
