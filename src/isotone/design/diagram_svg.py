"""Draws the diagram of a model as SVG: one self-contained file, in the style of the drawings of item collections.

A table is a frame. At its left are the table and its indexes with their collections, at its right the entities with their
fields. No font can be measured here, so widths follow from numbers of characters, and nothing is ever cut.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from isotone.advisor.collection_svg import (
    BOLD,
    CHARACTER,
    HUES,
    SMALL,
    STYLE,
    SVG_BEGIN,
    xml_attribute,
    xml_text,
)
from isotone.advisor.drawn_collections import KeyParts, text_of
from isotone.text_table import width

if TYPE_CHECKING:
    from isotone.design.diagram import (
        DiagramCollection,
        DiagramEntity,
        DiagramField,
        DiagramKey,
        DiagramPlace,
        DiagramTable,
    )

_MARGIN: Final = 20
_PAD: Final = 14
_GAP: Final = 16  # between places, and between entities
_ROW: Final = 28
_LINE: Final = 20  # of a field
_FRAME_HEAD: Final = 48
_PLACE_HEAD: Final = 48  # the name of an index, and the names of the key attributes
_ENTITY_HEAD: Final = 40
_TITLE: Final = 9.6  # pixels of a character at 16 px, bold
_TYPE: Final = 7.3  # pixels of a column at 12 px, monospaced
_WIDEST_TYPE: Final = 36  # columns, then it takes a further line
_WIDE: Final = 1180  # pixels, if the keys allow that

_OWN_STYLE: Final = """
.isotone-drawing{--warn:#8a5200}
@media (prefers-color-scheme:dark){.isotone-drawing{--warn:#f2b866}}
.isotone-drawing .frame{fill:none;stroke:var(--line)}
.isotone-drawing .shared{fill:var(--band)}
.isotone-drawing .type{fill:var(--soft);font-size:12px}
.isotone-drawing .warn{fill:var(--warn)}
""".replace("\n", "")


class Box(Protocol):
    """Something that is drawn at a place, with a known size."""

    @property
    def width(self) -> float: ...
    @property
    def height(self) -> float: ...
    def draw(self) -> Iterator[str]:
        """The elements, in the box's own coordinates."""


def diagram_svg(tables: Sequence[DiagramTable], title: str) -> str:
    """The tables, one below the other."""
    name = title or f"The design of {', '.join(table.name for table in tables)}"
    frames = [_Frame(table) for table in tables]
    wide = round(max((frame.width for frame in frames), default=0)) + 2 * _MARGIN
    y = _MARGIN
    drawn = []
    for frame in frames:
        frame.width = wide - 2 * _MARGIN
        drawn.append(_placed(frame, _MARGIN, y))
        y += round(frame.height) + _MARGIN
    return (
        f'{SVG_BEGIN} role="img" '
        f'aria-label="{xml_attribute(name)}" width="{wide}" height="{y}" viewBox="0 0 {wide} {y}">'
        f"<title>{xml_text(name)}</title><desc>{xml_text(_described(tables))}</desc>"
        f"<style>{STYLE}{_OWN_STYLE}</style>"
        f'<rect class="paper" width="{wide}" height="{y}" rx="10"/>'
        f"{''.join(drawn)}</svg>\n"
    )


def _placed(box: Box, x: float, y: float) -> str:
    return f'<g transform="translate({x:g} {y:g})">{"".join(box.draw())}</g>'


class Hues:
    """The numbers of a table's colours: of entities, and of the components of its keys, in the order of declaration."""

    def __init__(self, table: DiagramTable) -> None:
        # The first colour is grey.
        self.entities: dict[str, int] = {
            each.name: at for at, each in enumerate(table.entities, start=1)
        }
        self.fields: dict[str, int] = {}
        for place in table.places:
            for collection in place.collections:
                for parts in (collection.partition, *(key.sort for key in collection.keys)):
                    for part in parts:
                        if part.field:
                            self.fields.setdefault(part.field, len(self.fields))

    def entity(self, name: str) -> str:
        return f"k{self.entities[name] % HUES}"

    def field(self, name: str) -> str:
        """The class of a component; none for a field that is in no key."""
        number = self.fields.get(name)
        return "" if number is None else f"f{number % HUES}"


class _Frame:
    """A table: its places at the left, and its entities beside them, or below if that would be too wide."""

    def __init__(self, table: DiagramTable) -> None:
        self._table = table
        hues = Hues(table)
        columns = _Columns(table)
        places = [_Place(each, hues, columns) for each in table.places]
        entities = [_Entity(each, hues) for each in table.entities]
        left = columns.whole
        card = max((each.width for each in entities), default=0)
        for entity in entities:
            entity.width = card
        beside = int((_WIDE - 2 * _PAD - left) // (card + _GAP)) if card else 0
        self._boxes = list(_below(places, _PAD, _FRAME_HEAD))
        if beside:
            x, y = _PAD + left + _GAP, float(_FRAME_HEAD)
        else:
            x, y = _PAD, _FRAME_HEAD + _height(places) + _GAP
            beside = max(int((max(left, _WIDE - 2 * _PAD) + _GAP) // (card + _GAP)), 1)
        self._boxes += _in_columns(entities, beside, x, y)
        head = width(table.name) * _TITLE + width(table.about) * SMALL + 40
        edge = max((x + box.width for box, x, _ in self._boxes), default=0)
        self.width: float = max(edge, head) + _PAD
        self.height = max((y + box.height for box, _, y in self._boxes), default=0) + _PAD

    def draw(self) -> Iterator[str]:
        yield f'<rect class="frame" x=".5" y=".5" width="{self.width - 1:g}" height="{self.height - 1:g}" rx="10"/>'
        yield (
            f'<text class="title" x="{_PAD}" y="29">{xml_text(self._table.name)}'
            f'<tspan class="soft" dx="10">{xml_text(self._table.about)}</tspan></text>'
        )
        for box, x, y in self._boxes:
            yield _placed(box, x, y)


def _height(boxes: Sequence[Box]) -> float:
    return sum(box.height + _GAP for box in boxes) - _GAP


def _below(boxes: Iterable[Box], x: float, y: float) -> Iterator[tuple[Box, float, float]]:
    for box in boxes:
        yield box, x, y
        y += box.height + _GAP


def _in_columns(
    boxes: Sequence[Box], columns: int, x: float, y: float
) -> Iterator[tuple[Box, float, float]]:
    """The boxes in their order, each in the column that is the shortest so far."""
    ends = [y] * min(columns, len(boxes))
    for box in boxes:
        column = ends.index(min(ends))
        yield box, x + column * (box.width + _GAP), ends[column]
        ends[column] += box.height + _GAP


class _Columns:
    """The widths of the columns, the same for a table and its indexes: partition key, sort key, entity, notes."""

    def __init__(self, table: DiagramTable) -> None:
        places = table.places
        collections = [each for place in places for each in place.collections]
        keys = [key for each in collections for key in each.keys]
        partitions = [place.partition for place in places]
        partitions += [text_of(each.partition) for each in collections]
        shared = _widest(map(_shared, collections)) * SMALL
        sorts = [place.sort for place in places] + [text_of(key.sort) for key in keys]
        self.partition: float = max(_widest(partitions) * CHARACTER, shared) + 2 * _PAD
        self.sort: float = _widest(sorts) * CHARACTER + _PAD
        self.entity: float = _widest(key.entity for key in keys) * BOLD + 16 + _PAD
        notes = [width(_noted(key)) * SMALL + 8 + _codes_width(key.findings) for key in keys]
        inner = self.partition + _PAD + self.sort + self.entity + max(notes, default=0) + _PAD
        heads = (width(each.name) * BOLD + width(each.about) * SMALL + 40 for each in places)
        self.whole: float = round(max(inner, *heads))


def _widest(texts: Iterable[str]) -> int:
    return max(map(width, texts), default=0)


class _Place:
    """A table or an index: the partition keys of its collections, and the sort keys of the entities in each."""

    def __init__(self, place: DiagramPlace, hues: Hues, columns: _Columns) -> None:
        self._place = place
        self._hues = hues
        self._columns = columns
        self.width: float = columns.whole
        rows = sum(_ROW * len(each.keys) + _PAD + 8 for each in place.collections)
        self.height: float = _PLACE_HEAD + (rows - 8 if rows else _ROW)

    def draw(self) -> Iterator[str]:
        place = self._place
        yield (
            f'<text class="kind" x="2" y="16">{xml_text(place.name)}'
            f'<tspan class="soft" dx="8">{xml_text(place.about)}</tspan></text>'
        )
        yield f'<text class="name" x="{_PAD}" y="38">{xml_text(place.partition)}</text>'
        yield f'<text class="name" x="{self._columns.partition + _PAD:g}" y="38">{xml_text(place.sort)}</text>'
        y = _PLACE_HEAD
        for collection in place.collections:
            yield from self._collection(collection, y)
            y += _ROW * len(collection.keys) + _PAD + 8
        if not place.collections:
            yield f'<text class="soft" x="{_PAD}" y="{y + 14}">no entity has a key in it</text>'

    def _collection(self, collection: DiagramCollection, y: float) -> Iterator[str]:
        height = _ROW * len(collection.keys) + _PAD
        yield f'<rect class="group" x=".5" y="{y + 0.5:g}" width="{self.width - 1:g}" height="{height}" rx="8"/>'
        edge = round(self._columns.partition, 1)
        yield f'<line class="rule" x1="{edge}" y1="{y + 0.5:g}" x2="{edge}" y2="{y + height + 0.5:g}"/>'
        shared = _shared(collection)
        middle = y + height / 2 + (-4.5 if shared else 4.5)
        yield self._key(collection.partition, _PAD, middle)
        if shared:
            yield f'<rect class="shared" x="{edge - 1.5:g}" y="{y + 8:g}" width="3" height="{height - 16}" rx="1.5"/>'
            yield f'<text class="soft" x="{_PAD}" y="{middle + 19:g}">{shared}</text>'
        for place, key in enumerate(collection.keys):
            yield from self._entry(key, y + _PAD / 2 + place * _ROW + _ROW / 2)

    def _entry(self, key: DiagramKey, middle: float) -> Iterator[str]:
        x = round(self._columns.partition + _PAD, 1)
        yield self._key(key.sort, x, middle + 4.5)
        x = round(x + self._columns.sort, 1)
        yield _badge(key.entity, self._hues.entity(key.entity), x, middle)
        x = round(x + self._columns.entity, 1)
        yield f'<text class="soft" x="{x:g}" y="{middle + 4:g}">{xml_text(_noted(key))}</text>'
        yield from _codes(key.findings, self.width - _PAD, middle)

    def _key(self, parts: KeyParts, x: float, y: float) -> str:
        spans = "".join(
            f'<tspan class="{self._hues.field(part.field) or "literal"}">{xml_text(part.text)}</tspan>'
            for part in parts
        )
        return f'<text class="key" x="{x:g}" y="{y:g}">{spans}</text>'


class _Entity:
    """An entity: its name, what it belongs to, and its fields with their types."""

    def __init__(self, entity: DiagramEntity, hues: Hues) -> None:
        self._entity = entity
        self._hues = hues
        self._name = _widest(each.name for each in entity.fields) * CHARACTER
        self._lines = {
            each.name: textwrap.wrap(each.type, _WIDEST_TYPE, break_long_words=False) or [""]
            for each in entity.fields
        }
        types = max((width(line) for lines in self._lines.values() for line in lines), default=0)
        self._type = types * _TYPE
        marks = max((_marks_width(each) for each in entity.fields), default=0)
        head = (
            width(entity.name) * BOLD
            + width(entity.about) * SMALL
            + _codes_width(entity.findings)
            + 40
        )
        inner = self._name + self._type + marks + 2 * _PAD
        self.width: float = round(max(inner, head) + 2 * _PAD)
        lines = sum(map(len, self._lines.values()))
        self.height: float = _ENTITY_HEAD + _LINE * max(lines, 1) + 8

    def draw(self) -> Iterator[str]:
        entity = self._entity
        yield f'<rect class="group" x=".5" y=".5" width="{self.width - 1:g}" height="{self.height - 1:g}" rx="8"/>'
        yield _badge(entity.name, self._hues.entity(entity.name), _PAD, 20)
        x = _PAD + width(entity.name) * BOLD + 26
        yield f'<text class="soft" x="{x:g}" y="24">{xml_text(entity.about)}</text>'
        yield from _codes(entity.findings, self.width - _PAD, 20)
        y = _ENTITY_HEAD + 11
        for each in entity.fields:
            yield from self._field(each, y)
            y += _LINE * len(self._lines[each.name])
        if not entity.fields:
            yield f'<text class="soft" x="{_PAD}" y="{y}">no fields of its own</text>'

    def _field(self, field: DiagramField, y: float) -> Iterator[str]:
        hue = self._hues.field(field.name)
        yield f'<text class="key {hue}" x="{_PAD}" y="{y:g}">{xml_text(field.name)}</text>'
        x = round(_PAD + self._name + _PAD, 1)
        for place, line in enumerate(self._lines[field.name]):
            yield f'<text class="key type" x="{x:g}" y="{y + place * _LINE:g}">{xml_text(line)}</text>'
        right = self.width - _PAD
        yield f'<text class="soft" x="{right - _codes_width(field.findings):g}" y="{y:g}" text-anchor="end">{xml_text(", ".join(field.marks))}</text>'
        yield from _codes(field.findings, right, y - 4)


def _badge(name: str, hue: str, x: float, middle: float) -> str:
    wide = round(width(name) * BOLD + 16, 1)
    return (
        f'<rect class="badge {hue}" x="{x:g}" y="{middle - 9:g}" width="{wide:g}" height="18" rx="9"/>'
        f'<text class="kind {hue}" x="{x + wide / 2:g}" y="{middle + 4:g}" text-anchor="middle">{xml_text(name)}</text>'
    )


def _codes(codes: Sequence[str], right: float, middle: float) -> Iterator[str]:
    """The codes of findings, in a warning's colour, that end at a place."""
    if codes:
        yield (
            f'<text class="kind warn" x="{right:g}" y="{middle + 4:g}" text-anchor="end">⚠ {" ".join(codes)}</text>'
        )


def _codes_width(codes: Sequence[str]) -> float:
    return (sum(map(len, codes)) + len(codes) + 2) * BOLD + _PAD if codes else 0


def _marks_width(field: DiagramField) -> float:
    return width(", ".join(field.marks)) * SMALL + _codes_width(field.findings)


def _noted(key: DiagramKey) -> str:
    return ", ".join((f"{key.pattern}", *key.notes))


def _shared(collection: DiagramCollection) -> str:
    """What is said of a collection with several entities."""
    count = len(collection.entities)
    return f"{count} entities share it" if count > 1 else ""


def _described(tables: Iterable[DiagramTable]) -> str:
    """The diagram in words, for those who do not see it."""
    sentences = []
    for table in tables:
        for place in table.places:
            sentences.append(f"{place.name}, {place.about}.")
            for each in place.collections:
                keys = (f"{key.entity}.{key.pattern} {text_of(key.sort)}" for key in each.keys)
                sentences.append(f"{text_of(each.partition)}: {', '.join(keys)}.")
        for entity in table.entities:
            fields = ", ".join(field.name for field in entity.fields)
            sentences.append(f"{entity.name} has {fields or 'no fields'}.")
    return " ".join(sentences)
