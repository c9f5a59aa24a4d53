"""Draws item collections for a terminal: box characters, and colours if the terminal has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from isotone.advisor.drawn_collections import (
    DrawnCollection,
    DrawnItem,
    DrawnView,
    Gap,
    KeyParts,
    fields_of,
    gap_text,
    hidden_text,
    shortened,
    text_of,
)
from isotone.text_table import cell, printable, width

_COLOURS: Final = ("36", "33", "35", "32", "34", "31")  # for the components of keys
_DIM: Final = "2"
_BOLD: Final = "1"
_SHORTEST: Final = 12  # columns; narrower attributes are left out
_WIDEST_KEY: Final = 44
_MARKS: Final = {"": " ", "returned": "●", "dropped": "○"}
_ARROWS: Final = {"forward": "↓", "backward": "↑", None: " "}


def drawn_text(views: tuple[DrawnView, ...], columns: int, *, colour: bool) -> str:
    """The views, one below the other."""
    pen = _Pen(fields_of(views), colour=colour)
    return "\n\n".join(_Box(view, columns, pen).text() for view in views)


class _Pen:
    """Colours texts, or leaves them uncoloured."""

    def __init__(self, fields: Mapping[str, int], *, colour: bool) -> None:
        self._fields = fields
        self._colour = colour

    def paint(self, text: str, *codes: str) -> str:
        if not self._colour or not codes or not text:
            return text
        return f"\x1b[{';'.join(codes)}m{text}\x1b[0m"

    def key(self, parts: KeyParts, wide: int, *extra: str) -> str:
        """A key in its colours, shortened or padded to a width."""
        shown = shortened(parts, wide)
        painted = ""
        for part in shown:
            number = self._fields.get(part.field)
            codes = (_DIM,) if number is None else (_COLOURS[number % len(_COLOURS)],)
            painted += self.paint(part.text, *(extra or codes))
        return painted + " " * (wide - width(text_of(shown)))


class _Box:
    """One view in a box: partition keys on the left, items on the right."""

    def __init__(self, view: DrawnView, columns: int, pen: _Pen) -> None:
        self._view = view
        self._pen = pen
        rows = [row for each in view.collections for row in each.rows]
        items = [row for row in rows if isinstance(row, DrawnItem)]
        partitions = [text_of(each.partition) for each in view.collections]
        self._partition = _widest([view.partition_name, *partitions])
        self._sort = _widest([view.sort_name, *(text_of(item.sort) for item in items)])
        self._kind = max((width(item.kind) for item in items), default=0)
        gaps = [width(gap_text(row)) for row in rows if isinstance(row, Gap)]
        used = self._partition + self._sort + self._kind + 13
        details = max((width(_details(item)) for item in items), default=0)
        left = max(0, min(details, columns - used))
        self._details = left if left >= min(details, _SHORTEST) else 0
        inner = 4 + self._sort + (2 + self._kind if self._kind else 0)
        inner += 2 + self._details if self._details else 0
        self._inner = max(inner, *(4 + gap for gap in gaps), 4) if gaps else inner

    def text(self) -> str:
        view, paint = self._view, self._pen.paint
        lines = [f"{paint(view.title, _BOLD)}  {paint(view.subtitle, _DIM)}"]
        names = f"  {cell(view.partition_name, self._partition):<{self._partition}}    "
        lines.append(paint(f"{names}  {cell(view.sort_name, self._sort)}", _DIM))
        lines.append(self._rule("╭", "┬", "╮"))
        for place, collection in enumerate(view.collections):
            if place:
                lines.append(self._rule("├", "┼", "┤"))
            lines += self._collection(collection)
        if not view.collections:
            lines.append(f"│ {'':<{self._partition}} │ {'no items':<{self._inner}}│")
        lines.append(self._rule("╰", "┴", "╯"))
        if view.hidden != 0:
            lines.append(paint(f"  ⋮ {hidden_text(view.hidden)}", _DIM))
        return "\n".join(line.rstrip() for line in lines)

    def _rule(self, left: str, middle: str, right: str) -> str:
        line = f"{left}{'─' * (self._partition + 2)}{middle}{'─' * (self._inner + 1)}{right}"
        return self._pen.paint(line, _DIM)

    def _collection(self, collection: DrawnCollection) -> list[str]:
        bar = self._pen.paint("│", _DIM)
        rows: Sequence[DrawnItem | Gap] = collection.rows
        lines = []
        for place, row in enumerate(rows):
            parts = collection.partition if place == 0 else ()
            partition = self._pen.key(parts, self._partition)
            shown, wide = self._item(row) if isinstance(row, DrawnItem) else self._gap(row)
            padding = " " * (self._inner - wide)
            lines.append(f"{bar} {partition} {bar} {shown}{padding}{bar}")
        return lines

    def _item(self, item: DrawnItem) -> tuple[str, int]:
        paint = self._pen.paint
        faded = (_DIM,) if item.state == "dropped" else ()
        mark = _MARKS[item.state]
        arrow = _ARROWS[self._view.direction] if item.state else " "
        text = paint(f"{arrow}{mark}", _BOLD) + " " + self._pen.key(item.sort, self._sort, *faded)
        wide = 3 + self._sort
        if self._kind:
            text += (
                "  "
                + paint(item.kind, *(faded or (_BOLD,)))
                + " " * (self._kind - width(item.kind))
            )
            wide += 2 + self._kind
        if self._details:
            details = cell(_details(item), self._details)
            text += "  " + paint(details, _DIM)
            wide += 2 + width(details)
        return text, wide

    def _gap(self, gap: Gap) -> tuple[str, int]:
        arrow = _ARROWS[self._view.direction] if gap.is_read else " "
        text = f"{arrow}⋮ {gap_text(gap)}"
        return self._pen.paint(text, _DIM), width(text)


def _widest(texts: Sequence[str]) -> int:
    return min(max(width(printable(text)) for text in texts), _WIDEST_KEY)


def _details(item: DrawnItem) -> str:
    return " · ".join(f"{name} {value}" for name, value in item.attributes)
