"""Recognizes the entity of an item and the components of its keys, by a loaded or an inferred model.

For a table without a model, `isotone.inference` reads a sample, and finds the kinds of items and the forms of their
keys. So a key is always parsed by the codecs that would write it. A key of unknown form is divided at its separators.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from isotone.errors import MalformedKey
from isotone.inference import OWN_MARKS, Inferred, infer, is_own
from isotone.model import (
    FINDING_KINDS,
    EntitySchema,
    ItemFinding,
    Store,
    Table,
    entity_of_item,
    findings_without_reading,
)

SAMPLE: Final = 1_000
SAMPLE_ELSEWHERE: Final = 300  # items; few, because an engine elsewhere may charge for them

_FEW: Final = 100  # items; a model that was inferred from fewer is inferred again after a change

_PARTS: Final = re.compile(r"([#|/:]+)")
_WORD: Final = re.compile(r"[~!]?[A-Z][A-Z_]*")

Segment = tuple[str, str | None, str | None]
"""A part of a stored key: its text, the name of its component (None: a literal), and its value if that differs."""


class Recognized(NamedTuple):
    """The name of an item's entity, and the parts of each of its key attributes.

    Of one of the library's own records, the name is its mark, such as `_unique`.
    """

    entity: str | None
    keys: dict[str, list[Segment]]


class Recognition:
    """The models of one engine's tables. Each table's model is inferred once, when it is first needed."""

    def __init__(
        self, store: Callable[[], Store], tables: Sequence[Table], *, sample: int = SAMPLE
    ) -> None:
        self._store = store
        self._sample = sample
        self._loaded = {table.name: table for table in tables}
        self._inferred: dict[str, tuple[Table | None, Inferred | None]] = {}

    def is_ready(self, table: str) -> bool:
        """Whether the table's model is ready; otherwise `model_of` takes a while."""
        return table in self._loaded or table in self._inferred

    def is_loaded(self, table: str) -> bool:
        """Whether the user's own model declares the table."""
        return table in self._loaded

    def model_of(self, table: str) -> Table | None:
        """The loaded or inferred model of a table; None if no model could be inferred."""
        if table in self._loaded:
            return self._loaded[table]
        if table not in self._inferred:
            self._inferred[table] = self._infer(table)
        return self._inferred[table][0]

    def inferred(self, table: str) -> Inferred | None:
        """The result of a table's inference, if there was one."""
        self.model_of(table)
        return self._inferred.get(table, (None, None))[1]

    def knows_little(self, table: str) -> bool:
        """Whether no model was found, or one from so few items that another item may change it."""
        model, inferred = self._inferred.get(table, (None, None))
        return inferred is not None and (model is None or inferred.items < _FEW)

    def forget(self, table: str) -> None:
        """Infer the table's model again when it is next needed."""
        self._inferred.pop(table, None)

    def _infer(self, table: str) -> tuple[Table | None, Inferred | None]:
        inferred = infer(self._store(), table, sample=self._sample)
        if not inferred.entities:
            return None, inferred
        module = inferred.load()
        found = next(each for each in vars(module).values() if isinstance(each, Table))
        return found, inferred

    def legend(self, table: str) -> dict[str, list[str]]:
        """The names of a table's entities and of the components of their keys, in the order of the model.

        `own` are the names of the library's own records.
        """
        model = self.model_of(table)
        schemas = [] if model is None else list(model.entities.values())
        components = [
            component.field.name
            for schema in schemas
            for key in schema.keys.values()
            for component in key.components
        ]
        return {
            "entities": [schema.tag for schema in schemas],
            "components": list(dict.fromkeys(components)),
            "own": list(OWN_MARKS),
        }

    def recognize(self, table: str, attributes: Sequence[str], items: Sequence[Any]) -> list[Any]:
        """The entity of each item, and the parts of these key attributes."""
        model = self.model_of(table)
        return [recognized(model, attributes, item) for item in items]

    def findings(self, table: str, items: Sequence[Any]) -> list[list[str]]:
        """What is wrong with each whole item, as the loaded model declares it; without one, nothing is known."""
        model = self._loaded.get(table)
        if model is None:
            return [[] for _ in items]
        found = findings_without_reading(model, items, time.time())
        return [list(map(_in_words, wrong)) for wrong in found]


def _in_words(finding: ItemFinding) -> str:
    what = FINDING_KINDS[finding.kind].meaning
    return what if finding.name is None else f"{finding.name}: {what}"


def recognize_without_model(attributes: Sequence[str], items: Sequence[Any]) -> list[Any]:
    """The parts of these key attributes of each item, divided at separators."""
    return [recognized(None, attributes, item) for item in items]


def recognized(
    model: Table | None, attributes: Sequence[str], item: Mapping[str, Any]
) -> Recognized:
    """The entity of an item and the parts of its keys."""
    schema = None if model is None else entity_of_item(model, dict(item))
    parts: dict[str, list[Segment]] = {}
    if schema is not None:
        for name, text in _by_schema(schema, item):
            parts.setdefault(name, text)
    for name in attributes:
        value = item.get(name)
        if name not in parts and value is not None:
            parts[name] = by_separators(name, value)
    return Recognized(_own_mark(model, item) if schema is None else schema.tag, parts)


def _own_mark(model: Table | None, item: Mapping[str, Any]) -> str | None:
    """The mark of one of the library's own records; None of another item."""
    partition = None if model is None else item.get(model.keys.partition[0].name)
    if partition is None or not is_own(partition):
        return None
    return str(partition["S"]).partition("#")[0]


def _by_schema(schema: EntitySchema, item: Mapping[str, Any]) -> list[tuple[str, list[Segment]]]:
    found = []
    for key in (schema.primary, *schema.indexes):
        for slot in key.slots:
            name = slot.attribute.name
            if name not in item:
                continue
            try:
                found.append((name, [_shown(each) for each in slot.segments(item[name])]))
            except MalformedKey:
                continue
    return found


def _shown(segment: Any) -> Segment:
    """A segment, with its value if the key shows another text."""
    if segment.field is None:
        return segment.text, None, None
    value = getattr(segment.value, "value", segment.value)  # the value of an enum's member
    text = str(value)
    return segment.text, segment.field, None if text == segment.text else text


def by_separators(name: str, value: Mapping[str, Any]) -> list[Segment]:
    """The parts of a key of unknown form: words in capitals are literals, other texts between separators components."""
    text = value.get("S")
    if text is None:
        ((_, other),) = value.items()
        return [(str(other), name, None)]
    pieces = [piece for piece in _PARTS.split(text) if piece]
    if len(pieces) == 1:
        return [(text, name, None)] if not _WORD.fullmatch(text) else [(text, None, None)]
    segments: list[Segment] = []
    label = name
    for piece in pieces:
        if _WORD.fullmatch(piece):
            label = piece.strip("~!").lower()
            segments.append((piece, None, None))
        elif _PARTS.fullmatch(piece):
            segments.append((piece, None, None))
        else:
            segments.append((piece, label, None))
    return segments
