"""Draws item collections as SVG: one self-contained file, light and dark, with a title and a description.

No font can be measured here, so widths are computed from the number of characters in a monospaced font.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from isotone.advisor.drawn_collections import (
    DrawnCollection,
    DrawnItem,
    DrawnView,
    Gap,
    KeyParts,
    fields_of,
    gap_text,
    hidden_text,
    kinds_of,
    shortened,
    text_of,
)
from isotone.text_table import cell, printable, width

SVG_BEGIN: Final = '<svg xmlns="http://www.w3.org/2000/svg" class="isotone-drawing"'
"""How each drawing begins, so that an earlier one is told from other files."""

CHARACTER: Final = 7.83  # pixels of a column at 13 px
SMALL: Final = 6.7  # at 12 px
BOLD: Final = 7.2  # at 11 px, bold
_ROW: Final = 28
_HEAD: Final = 62  # title and names of the key attributes
_MARGIN: Final = 20
_PAD: Final = 14
_GUTTER: Final = 34  # between partition key and sort keys; has the range and its direction
_BETWEEN: Final = 8  # between collections
_WIDEST_KEY: Final = 52
_WIDEST_DETAILS: Final = 56
_SIDE_BY_SIDE: Final = 1180  # the width in pixels up to which views are placed side by side
HUES: Final = 6

STYLE: Final = """
.isotone-drawing{--ink:#1f2328;--soft:#6e7781;--line:#d0d7de;--paper:#ffffff;--group:#f6f8fa;--band:#0969da;
--c0:#0550ae;--c1:#953800;--c2:#8250df;--c3:#116329;--c4:#a40e26;--c5:#6f5200;
--k0:#57606a;--k1:#0a7b83;--k2:#bf3989;--k3:#5a4fcf;--k4:#7a6a00;--k5:#2c7a4b;
font-family:ui-sans-serif,system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif}
@media (prefers-color-scheme:dark){.isotone-drawing{--ink:#e6edf3;--soft:#8d96a0;--line:#30363d;--paper:#0d1117;
--group:#161b22;--band:#4493f8;--c0:#79c0ff;--c1:#ffa657;--c2:#d2a8ff;--c3:#7ee787;--c4:#ff7b72;--c5:#e3b341;
--k0:#adbac7;--k1:#56d4dd;--k2:#f778ba;--k3:#a5b4fc;--k4:#d8c45a;--k5:#6bc46d}}
.isotone-drawing .paper{fill:var(--paper)}
.isotone-drawing .group{fill:var(--group);stroke:var(--line)}
.isotone-drawing .rule{stroke:var(--line)}
.isotone-drawing text{fill:var(--ink);font-size:13px;white-space:pre}
.isotone-drawing .key{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
.isotone-drawing .title{font-size:16px;font-weight:600}
.isotone-drawing .soft{fill:var(--soft);font-size:12px;font-weight:400}
.isotone-drawing .name{fill:var(--soft);font-size:11px;font-weight:600;letter-spacing:.04em}
.isotone-drawing .literal{fill:var(--soft)}
.isotone-drawing .f0{fill:var(--c0)}.isotone-drawing .f1{fill:var(--c1)}.isotone-drawing .f2{fill:var(--c2)}
.isotone-drawing .f3{fill:var(--c3)}.isotone-drawing .f4{fill:var(--c4)}.isotone-drawing .f5{fill:var(--c5)}
.isotone-drawing .k0{fill:var(--k0)}.isotone-drawing .k1{fill:var(--k1)}.isotone-drawing .k2{fill:var(--k2)}
.isotone-drawing .k3{fill:var(--k3)}.isotone-drawing .k4{fill:var(--k4)}.isotone-drawing .k5{fill:var(--k5)}
.isotone-drawing .badge{fill-opacity:.16}
.isotone-drawing .kind{font-size:11px;font-weight:600}
.isotone-drawing .band{fill:var(--band);fill-opacity:.1}
.isotone-drawing .arrow{stroke:var(--band);stroke-width:2;fill:none;stroke-linecap:round;stroke-linejoin:round}
.isotone-drawing .dot{fill:var(--band);stroke:var(--band);stroke-width:1.5}
.isotone-drawing .hollow{fill:var(--paper)}
.isotone-drawing .dropped{opacity:.5}
""".replace("\n", "")


def drawn_svg(
    views: tuple[DrawnView, ...],
    title: str,
    *,
    fields: dict[str, int] | None = None,
    kinds: dict[str, int] | None = None,
) -> str:
    """The views side by side, or one below the other if they are wide.

    `fields` and `kinds` are the numbers of colours that another drawing gives to components of keys and to entities.
    """
    fields = _numbered(fields_of(views), fields)
    kinds = _numbered(kinds_of(views), kinds)
    panels = [_Panel(view, fields, kinds) for view in views]
    beside = sum(panel.width + _MARGIN for panel in panels) + _MARGIN <= _SIDE_BY_SIDE
    x = y = _MARGIN
    wide = high = 0.0
    drawn: list[str] = []
    for panel in panels:
        drawn.append(f'<g transform="translate({x} {y})">{"".join(panel.draw())}</g>')
        wide, high = max(wide, x + panel.width), max(high, y + panel.height)
        x, y = (x + round(panel.width) + _MARGIN, y) if beside else (x, y + panel.height + _MARGIN)
    legend = _legend(fields, _MARGIN, high + 14) if len(fields) > 1 else ""
    wide = max(wide, legend_width(fields) if legend else 0)
    whole, tall = round(wide + _MARGIN), round(high + (30 if legend else 0) + _MARGIN)
    name = title or ", ".join(view.title for view in views) or "Item collections"
    return (
        f'{SVG_BEGIN} role="img" aria-label="{xml_attribute(name)}" width="{whole}" height="{tall}" viewBox="0 0 {whole} {tall}">'
        f"<title>{xml_text(name)}</title><desc>{xml_text(_description(views))}</desc>"
        f"<style>{STYLE}</style>"
        f'<rect class="paper" width="{whole}" height="{tall}" rx="10"/>'
        f"{''.join(drawn)}{legend}</svg>\n"
    )


def _numbered(names: dict[str, int], known: dict[str, int] | None) -> dict[str, int]:
    """The numbers that are known, and others for further names."""
    if known is None:
        return names
    return {name: known.get(name, len(known) + number) for name, number in names.items()}


def legend_width(fields: dict[str, int]) -> float:
    """The pixels of the legend, with its margin."""
    return _MARGIN + sum(36 + width(name) * SMALL for name in fields)


def _legend(fields: dict[str, int], x: float, y: float) -> str:
    """The components of the keys, each in its colour."""
    drawn = []
    for name, number in fields.items():
        hue = number % HUES
        drawn.append(
            f'<rect class="f{hue}" x="{x:g}" y="{y:g}" width="9" height="9" rx="2"/>'
            f'<text class="soft" x="{x + 14:g}" y="{y + 9:g}">{xml_text(name)}</text>'
        )
        x = round(x + 36 + width(name) * SMALL, 1)
    return "".join(drawn)


class _Panel:
    """One view: its title, the names of its key attributes, and its collections."""

    def __init__(self, view: DrawnView, fields: dict[str, int], kinds: dict[str, int]) -> None:
        self._view = view
        self._fields = fields
        self._kinds = kinds
        rows = [row for each in view.collections for row in each.rows]
        items = [row for row in rows if isinstance(row, DrawnItem)]
        partitions = [view.partition_name, *(text_of(each.partition) for each in view.collections)]
        self._has_filter = any(item.state == "dropped" for item in items)
        self._partition = _columns(partitions) * CHARACTER + 2 * _PAD
        sorts = [view.sort_name, *(text_of(item.sort) for item in items)]
        self._sort = _columns(sorts) * CHARACTER + _PAD
        kind = max((width(item.kind) for item in items), default=0)
        self._kind = kind * BOLD + 32 if kind else 0
        details = max((width(_details(item)) for item in items), default=0)
        self._details = min(details, _WIDEST_DETAILS) * SMALL + (_PAD if details else 0)
        inner = self._sort + self._kind + self._details
        gaps = [width(gap_text(row)) * SMALL + 30 for row in rows if isinstance(row, Gap)]
        titles = width(view.title) * 10 + width(view.subtitle) * SMALL + 24
        body = self._partition + _GUTTER + max([inner, *gaps]) + _PAD
        self.width = round(max(body, titles))
        shown = sum(_ROW * len(each.rows) + _PAD + _BETWEEN for each in view.collections)
        self.height = _HEAD + (shown or _ROW) + (24 if view.hidden != 0 else 0) - _BETWEEN

    def draw(self) -> Iterator[str]:
        view = self._view
        yield (
            f'<text class="title" x="0" y="18">{xml_text(view.title)}'
            f'<tspan class="soft" dx="10">{xml_text(view.subtitle)}</tspan></text>'
        )
        x = self._partition + _GUTTER
        yield f'<text class="name" x="{_PAD}" y="48">{xml_text(view.partition_name)}</text>'
        yield f'<text class="name" x="{x:g}" y="48">{xml_text(view.sort_name)}</text>'
        y: float = _HEAD
        for collection in view.collections:
            yield from self._collection(collection, y)
            y += _ROW * len(collection.rows) + _PAD + _BETWEEN
        if not view.collections:
            yield f'<text class="soft" x="{_PAD}" y="{y + 8:g}">no items</text>'
        if view.hidden != 0:
            yield (
                f'<text class="soft" x="{_PAD}" y="{y + 14:g}">⋮ {hidden_text(view.hidden)}</text>'
            )

    def _collection(self, collection: DrawnCollection, y: float) -> Iterator[str]:
        height = _ROW * len(collection.rows) + _PAD
        edge = round(self._partition, 1)
        yield f'<rect class="group" x=".5" y="{y + 0.5:g}" width="{self.width - 1}" height="{height}" rx="8"/>'
        yield f'<line class="rule" x1="{edge}" y1="{y + 0.5:g}" x2="{edge}" y2="{y + height + 0.5:g}"/>'
        yield self._key(collection.partition, _PAD, y + height / 2 + 4.5, self._partition)
        top = y + _PAD / 2
        yield from self._range(collection.rows, edge, top)
        for place, row in enumerate(collection.rows):
            middle = top + place * _ROW + _ROW / 2
            if isinstance(row, Gap):
                x = edge + _GUTTER
                yield f'<text class="soft" x="{x:g}" y="{middle + 4:g}">⋮ {gap_text(row)}</text>'
            else:
                yield from self._item(row, edge, middle)

    def _range(self, rows: Sequence[DrawnItem | Gap], edge: float, top: float) -> Iterator[str]:
        """The range that is read: a band over its rows, and an arrow in the direction of the query."""
        read = [
            place
            for place, row in enumerate(rows)
            if (row.state if isinstance(row, DrawnItem) else row.is_read)
        ]
        if not read:
            return
        first, last = top + read[0] * _ROW, top + (read[-1] + 1) * _ROW
        right = self.width - edge - 12
        yield f'<rect class="band" x="{edge + 6:g}" y="{first + 1:g}" width="{right:g}" height="{last - first - 2:g}" rx="5"/>'
        if self._view.direction is None:
            return
        x = edge + 18
        low, high = first + 4, last - 4
        start, end, way = (low, high, -1) if self._view.direction == "forward" else (high, low, 1)
        yield (
            f'<path class="arrow" d="M{x:g} {start:g}V{end:g}M{x - 4:g} {end + way * 5:g}L{x:g} {end:g}'
            f'L{x + 4:g} {end + way * 5:g}"/>'
        )

    def _item(self, item: DrawnItem, edge: float, middle: float) -> Iterator[str]:
        dropped = item.state == "dropped"
        if item.state and (self._has_filter or self._view.direction is None):
            hollow = " hollow" if dropped else ""
            yield f'<circle class="dot{hollow}" cx="{edge + 18:g}" cy="{middle:g}" r="3.5"/>'
        x = edge + _GUTTER
        yield '<g class="dropped">' if dropped else "<g>"
        yield self._key(item.sort, x, middle + 4.5, self._sort)
        x = round(x + self._sort, 1)
        if item.kind:
            wide = round(width(item.kind) * BOLD + 16, 1)
            hue = self._kinds[item.kind] % HUES
            yield f'<rect class="badge k{hue}" x="{x:g}" y="{middle - 9:g}" width="{wide:g}" height="18" rx="9"/>'
            yield (
                f'<text class="kind k{hue}" x="{x + wide / 2:g}" y="{middle + 4:g}" '
                f'text-anchor="middle">{xml_text(item.kind)}</text>'
            )
        x = round(x + self._kind, 1)
        if item.attributes:
            details = cell(_details(item), _WIDEST_DETAILS)
            yield f'<text class="soft" x="{x:g}" y="{middle + 4:g}">{xml_text(details)}</text>'
        yield "</g>"

    def _key(self, parts: KeyParts, x: float, y: float, space: float) -> str:
        spans = "".join(
            f'<tspan class="{self._hue(part.field)}">{xml_text(part.text)}</tspan>'
            for part in shortened(parts, _WIDEST_KEY)
        )
        return f'<text class="key" x="{x:g}" y="{y:g}">{spans}</text>'

    def _hue(self, field: str) -> str:
        number = self._fields.get(field)
        return "literal" if number is None else f"f{number % HUES}"


def _columns(texts: Sequence[str]) -> int:
    return min(max(width(printable(text)) for text in texts), _WIDEST_KEY)


def _details(item: DrawnItem) -> str:
    return "   ".join(f"{name} {value}" for name, value in item.attributes)


def _description(views: tuple[DrawnView, ...]) -> str:
    """The drawing in words, for screen readers."""
    sentences = []
    for view in views:
        sentences.append(f"{view.title}, {view.subtitle}.")
        for collection in view.collections:
            items = [row for row in collection.rows if isinstance(row, DrawnItem)]
            keys = ", ".join(
                text_of(item.sort)
                + ({"returned": " (read)", "dropped": " (dropped)"}.get(item.state, ""))
                for item in items
            )
            sentences.append(f"{view.partition_name} {text_of(collection.partition)}: {keys}.")
    return " ".join(printable(each) for each in sentences)


def xml_text(text: str) -> str:
    return escape(printable(text))  # XML has no control characters


def xml_attribute(text: str) -> str:
    return escape(printable(text), {'"': "&quot;"})
