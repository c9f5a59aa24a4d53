"""The table that `python -m bench` prints: every figure, then every target with its verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from bench.measuring import Row, Target


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target with what was measured; `met` is None where a side was absent."""

    target: Target
    figure: float | None
    met: bool | None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self.target), "figure": self.figure, "met": self.met}

    @property
    def promise(self) -> str:
        sign = "≥" if self.target.kind == "at least" else "≤"
        bound = f"{self.target.bound:g}"
        return (
            f"{sign} {bound} × {self.target.reference}"
            if self.target.reference
            else f"{sign} {bound}"
        )


def judged(targets: Iterable[Target], rows: Iterable[Row]) -> list[Verdict]:
    """All targets against the rows."""
    known = {(row.measure, row.subject): row for row in rows}
    return [Verdict(target, *target.judge(known)) for target in targets]


def shown(value: float) -> str:
    """A figure with three significant digits, or whole where it is large."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Iterable[Row], verdicts: Iterable[Verdict]) -> str:
    """Both tables as Markdown."""
    lines = ["| measure | subject | median | lowest | highest | |", "|---|---|---:|---:|---:|---|"]
    for row in rows:
        if row.absent:
            lines.append(f"| {row.measure} | {row.subject} | absent | | | {row.absent} |")
            continue
        extra = ", ".join(f"{name} {value:,.0f}" for name, value in row.extra.items())
        low, high = shown(min(row.samples)), shown(max(row.samples))
        lines.append(
            f"| {row.measure} | {row.subject} | {shown(row.value)} {row.unit} | {low} | {high} | {extra} |"
        )
    lines += ["", "| target | ours | promise | figure | met |", "|---|---|---|---:|---|"]
    words = {True: "yes", False: "NO", None: "absent"}
    for one in verdicts:
        figure = "" if one.figure is None else shown(one.figure)
        target = one.target
        lines.append(
            f"| {target.measure} | {target.subject} | {one.promise} | {figure} | {words[one.met]} |"
        )
    return "\n".join(lines)
