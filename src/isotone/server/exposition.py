"""The text of `/metrics` in Prometheus's format (0.0.4), and `MetricFamily`: one metric with its samples.

All exporters start from metric families: `/metrics` formats them as text, `telemetry` exports them to OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"

Labels = tuple[tuple[str, str], ...]
Kind = Literal["counter", "gauge", "histogram"]

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_HELP_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})


class MetricSample(NamedTuple):
    """One value of a family. A histogram's samples have a suffix after its name: `_bucket`, `_sum`, `_count`."""

    value: float
    labels: Labels = ()
    suffix: str = ""


class MetricFamily(NamedTuple):
    """One metric: its name, its kind, what it means, and its values."""

    name: str
    kind: Kind
    help: str
    samples: list[MetricSample]


def text(families: Iterable[MetricFamily]) -> bytes:
    """The families in Prometheus's text format. A family without samples has its HELP and TYPE lines only."""
    lines: list[str] = []
    for family in families:
        lines.append(f"# HELP {family.name} {family.help.translate(_HELP_ESCAPES)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [
            f"{family.name}{sample.suffix}{_shown(sample.labels)} {sample.value:.15g}"
            for sample in family.samples
        ]
    return ("\n".join(lines) + "\n").encode()


def _shown(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(_ESCAPES)}"' for name, value in labels) + "}"
