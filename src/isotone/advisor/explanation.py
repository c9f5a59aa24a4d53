"""Explanations: what a query, a statement or a write does and costs, as text, JSON values and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any, Final, Literal

from isotone.advisor.collection_drawing import CollectionDrawing
from isotone.backends.interface import Request
from isotone.text_table import aligned, pluralized, printable
from isotone.values.types import AttributeValue

_TITLE: Final = 11  # columns
_LOW_HIT_RATE: Final = 0.35


@dataclass(frozen=True, slots=True)
class CostBound:
    """The least or the most that an estimate expects."""

    requests: int = 0
    items_read: int = 0
    items_returned: int = 0
    units: float = 0.0
    bytes: int = 0

    def __add__(self, other: CostBound) -> CostBound:
        """The bound of both."""
        return CostBound(
            self.requests + other.requests,
            self.items_read + other.items_read,
            self.items_returned + other.items_returned,
            self.units + other.units,
            self.bytes + other.bytes,
        )


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a read or a write: requests, items read and returned, capacity units, bytes.

    `exact` is False for an estimate from part of the data; then the cost lies between `low` and `high`, which is None
    if no most is known. `basis` says where the figures come from.
    """

    requests: int = 0
    items_read: int = 0
    items_returned: int = 0
    units: float = 0.0
    bytes: int = 0
    exact: bool = True
    basis: str = ""
    low: CostBound | None = None
    high: CostBound | None = None

    @property
    def least(self) -> CostBound:
        """The least that is expected; an exact cost itself."""
        return self.low or self._itself()

    @property
    def most(self) -> CostBound | None:
        """The most that is expected; an exact cost itself, None if no most is known."""
        return self._itself() if self.exact else self.high

    def _itself(self) -> CostBound:
        return CostBound(
            self.requests, self.items_read, self.items_returned, self.units, self.bytes
        )

    def __add__(self, other: Cost) -> Cost:
        """The cost of both."""
        exact = self.exact and other.exact
        low = high = None
        if not exact:
            low = self.least + other.least
            highs = self.most, other.most
            high = None if highs[0] is None or highs[1] is None else highs[0] + highs[1]
        return Cost(
            self.requests + other.requests,
            self.items_read + other.items_read,
            self.items_returned + other.items_returned,
            self.units + other.units,
            self.bytes + other.bytes,
            exact,
            self.basis or other.basis,
            low,
            high,
        )

    @property
    def hit_rate(self) -> float:
        """The fraction of the items read that are returned; 1.0 if nothing is read."""
        return self.items_returned / self.items_read if self.items_read else 1.0


@dataclass(frozen=True, slots=True)
class KeyRangePart:
    """A condition on one key attribute, with its values as they are stored."""

    attribute: str
    operator: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        if self.operator == "BETWEEN":
            return f"{self.attribute} BETWEEN {self.values[0]} AND {self.values[1]}"
        if self.operator == "IN":
            return f"{self.attribute} IN ({', '.join(self.values)})"
        if self.operator == "begins_with":
            return f"begins_with({self.attribute}, {self.values[0]})"
        return f"{self.attribute} {self.operator} {self.values[0]}"


@dataclass(frozen=True, slots=True)
class EntryWrite:
    """The effect of a write on the table (`index` is None) or on one of its indexes, and its units."""

    index: str | None
    change: Literal["insert", "replace", "move", "remove", "none"]
    units: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another way to get the same items: its cost, and why it was not used."""

    name: str
    why_not: str
    cost: Cost | None = None
    request: Request | None = None
    """Of an access pattern that answers a raw request: what it sends instead."""
    conditions: tuple[tuple[str, str, tuple[AttributeValue, ...]], ...] = ()
    """The conditions on attributes of fields that are in the key of that request, with an operator and values."""
    filters: tuple[tuple[str, str, tuple[AttributeValue, ...]], ...] = ()
    """Those that are in its filter, as far as they are a comparison or a test of one attribute."""


@dataclass(frozen=True)
class Explanation:
    """What one call does and costs. `str()` is a text for people, `to_dict()` has JSON values.

    `estimate` is made before anything runs; `measured` exists only with `run=True`. `parts` has the explanations of the
    single requests of a merge, a batch or a transaction.
    """

    title: str
    operation: str
    table: str
    estimate: Cost
    index: str | None = None
    reads: str = ""
    key_range: tuple[KeyRangePart, ...] = ()
    direction: Literal["forward", "backward"] | None = None
    order: str = ""
    filter: str = ""
    consistent: bool = False
    writes: tuple[EntryWrite, ...] = ()
    advice: str = ""
    notes: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    drawing: CollectionDrawing | None = None
    measured: Cost | None = None
    parts: tuple[Explanation, ...] = ()
    spent: float = 0.0
    """The units that the estimate itself cost."""
    request: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def cost(self) -> Cost:
        """The measured cost, or else the estimate."""
        return self.measured or self.estimate

    @property
    def wasted_units(self) -> float:
        """The units spent on items that the filter drops."""
        return round(self.cost.units * (1 - self.cost.hit_rate), 2) if self.filter else 0.0

    @property
    def is_wasteful(self) -> bool:
        """Whether less than 35 % of the items read are returned."""
        return self.cost.items_read > 0 and self.cost.hit_rate < _LOW_HIT_RATE

    def text(self, columns: int | None = None, *, colour: bool = False) -> str:
        """The explanation for a terminal, with the drawing of the range."""
        lines = [_paint(self.title, "1", colour=colour), ""]
        lines += [f"  {title:<{_TITLE}}{told}" for title, told in self._facts()]
        if self.drawing is not None:
            drawn = self.drawing.text(None if columns is None else columns - 2, colour=colour)
            lines += ["", *(f"  {line}" for line in drawn.splitlines())]
        lines += ["", *(f"  {line}" for line in self._costs().splitlines())]
        if self.writes:
            lines += ["", *(f"  {line}" for line in self._amplification().splitlines())]
        told = self._judgement()
        lines += ["", *(f"  {title:<{_TITLE}}{text}" for title, text in told)] if told else []
        for part in self.parts:
            lines += ["", *(f"  {line}" for line in part.text(columns, colour=colour).splitlines())]
        return "\n".join(line.rstrip() for line in lines)

    def _facts(self) -> list[tuple[str, str]]:
        facts = [("reads", self.reads)] if self.reads else []
        if self.key_range:
            facts.append(("stored", " AND ".join(map(str, self.key_range))))
        if self.direction:
            facts.append(("direction", self.direction + (f": {self.order}" if self.order else "")))
        if self.filter:
            facts.append(("filter", self.filter))
        if self.consistent:
            facts.append(("consistent", "yes, for twice the units"))
        facts += [("note", note) for note in self.notes]
        return [(title, printable(told)) for title, told in facts]

    def _costs(self) -> str:
        rows = [("estimate", self.estimate)]
        rows += [("measured", self.measured)] if self.measured is not None else []
        if self.writes:
            header = ["", "requests", "units", ""]
            cells = [[name, f"{cost.requests:,}", _units(cost), cost.basis] for name, cost in rows]
            return aligned(header, cells, right={1, 2})
        header = ["", "requests", "items read", "returned", "units", ""]
        cells = []
        for name, cost in rows:
            cells.append(
                [
                    name,
                    _about(cost, f"{cost.requests:,}"),
                    _about(cost, f"{cost.items_read:,}"),
                    _about(cost, f"{cost.items_returned:,}"),
                    _units(cost),
                    cost.basis,
                ]
            )
            if not cost.exact:
                cells += [_bound("at least", cost.least), _bound("at most", cost.most)]
        return aligned(header, cells, right={1, 2, 3, 4})

    def _amplification(self) -> str:
        rows = [
            [self.table if each.index is None else each.index, each.change, f"{each.units:g}"]
            for each in self.writes
        ]
        return aligned(["written", "change", "units"], rows, right={2})

    def _judgement(self) -> list[tuple[str, str]]:
        told = []
        if self.filter and self.cost.items_read:
            dropped = self.cost.items_read - self.cost.items_returned
            told.append(
                (
                    "waste",
                    f"{dropped:,} of {pluralized(self.cost.items_read, 'item')} are read and dropped: "
                    f"{self.wasted_units:g} of {pluralized(self.cost.units, 'unit', form='g')}",
                )
            )
        if self.advice:
            told.append(("cheaper", self.advice))
        for each in self.alternatives:
            cost = (
                ""
                if each.cost is None
                else f"{_units(each.cost)} unit{'s' * (each.cost.units != 1)}; "
            )
            told.append(("instead", f"{each.name}: {cost}{each.why_not}"))
        return [(title, printable(text)) for title, text in told]

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON values."""
        return {
            "title": self.title,
            "operation": self.operation,
            "table": self.table,
            "index": self.index,
            "reads": self.reads,
            "key_range": [asdict(part) for part in self.key_range],
            "direction": self.direction,
            "order": self.order,
            "filter": self.filter,
            "consistent": self.consistent,
            "estimate": asdict(self.estimate),
            "measured": None if self.measured is None else asdict(self.measured),
            "wasted_units": self.wasted_units,
            "advice": self.advice,
            "notes": list(self.notes),
            "writes": [asdict(each) for each in self.writes],
            "alternatives": [asdict(each) for each in self.alternatives],
            "drawing": None if self.drawing is None else self.drawing.to_dict(),
            "parts": [part.to_dict() for part in self.parts],
            "spent": self.spent,
            "request": dict(self.request),
        }

    def html(self) -> str:
        """The explanation as a fragment of HTML, with the drawing as SVG."""
        facts = "".join(
            f"<dt>{escape(title)}</dt><dd>{escape(told)}</dd>"
            for title, told in (*self._facts(), *self._judgement())
        )
        figures = self._costs() + ("\n\n" + self._amplification() if self.writes else "")
        drawing = "" if self.drawing is None else self.drawing.svg(self.title)
        parts = "".join(part.html() for part in self.parts)
        return (
            f'<section class="isotone-explanation"><h3>{escape(self.title)}</h3>{drawing}'
            f"<pre>{escape(figures)}</pre><dl>{facts}</dl>{parts}</section>"
        )

    def __str__(self) -> str:
        return self.text(columns=100)

    def _repr_html_(self) -> str:
        return self.html()


def _bound(name: str, bound: CostBound | None) -> list[str]:
    """The row of an end of an interval."""
    if bound is None:
        return [name, "", "", "", "?", "unknown: the engine does not count its items"]
    figures = bound.requests, bound.items_read, bound.items_returned
    return [name, *(f"{figure:,}" for figure in figures), _figure(bound.units), ""]


def _figure(units: float) -> str:
    return f"{units:,.1f}".removesuffix(".0")


def _about(cost: Cost, figure: str) -> str:
    return figure if cost.exact else f"~{figure}"


def _units(cost: Cost) -> str:
    return _about(cost, _figure(cost.units))


def _paint(text: str, code: str, *, colour: bool) -> str:
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text
