"""A strict reader of Prometheus' text form, version 0.0.4, written from its specification.

It refuses what Prometheus refuses, and what it accepts but a careful exporter does not write: samples without HELP and TYPE before
them, a family in two places, a series twice, a counter without `_total`, a histogram that does not add up.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

_METRIC = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_METRIC})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\n"])*)"(?:,(?=[a-zA-Z_])|$)')
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}
_ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = frozenset[tuple[str, str]]


@dataclass
class Family:
    """One metric; samples by their names with suffix, and their labels."""

    kind: str
    help: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


def read(text: str) -> dict[str, Family]:
    """The families of a scrape. Raises AssertionError for what is not as it must be."""
    assert text.endswith("\n")
    found: dict[str, Family] = {}
    name = meaning = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            name, _, meaning = line.removeprefix("# HELP ").partition(" ")
            assert re.fullmatch(_METRIC, name)
            assert meaning
            assert name not in found, f"{name} is in two places"
        elif line.startswith("# TYPE "):
            typed, kind = line.removeprefix("# TYPE ").split(" ")
            assert typed == name
            assert kind in ("counter", "gauge", "histogram")
            assert (kind == "counter") == name.endswith("_total")
            found[name] = Family(kind, meaning)
        else:
            _add(found[name], name, line)
    for name, family in found.items():
        _check(name, family)
    return found


def values(text: str) -> dict[str, float]:
    """All values by their names and labels, as a scrape spells them."""
    return {
        sample + (f"{{{shown}}}" if (shown := _shown(labels)) else ""): value
        for family in read(text).values()
        for (sample, labels), value in family.samples.items()
    }


def _shown(labels: Labels) -> str:
    order = ("region", "table", "index", "shard", "action", "error", "le")
    return ",".join(f'{k}="{v}"' for k, v in sorted(labels, key=lambda each: order.index(each[0])))


def _add(family: Family, name: str, line: str) -> None:
    match = _SAMPLE.fullmatch(line)
    assert match, line
    sample, labels, number = match.groups()
    assert sample in [name + suffix for suffix in _SUFFIXES.get(family.kind, ("",))], line
    key = sample, _labels(labels or "")
    assert key not in family.samples, f"{line} is there twice"
    family.samples[key] = float(number)


def _labels(text: str) -> Labels:
    found: dict[str, str] = {}
    end = 0
    while end < len(text):
        match = _LABEL.match(text, end)
        assert match, text
        assert match[1] not in found, text
        found[match[1]] = re.sub(r"\\.", lambda each: _ESCAPED[each[0]], match[2])
        end = match.end()
    return frozenset(found.items())


def _check(name: str, family: Family) -> None:
    """The same labels in all samples; no counter falls below 0; a histogram's buckets rise up to its count."""
    labels = {frozenset(label for label, _ in key[1] if label != "le") for key in family.samples}
    assert len(labels) <= 1, name
    if family.kind == "counter":
        assert all(value >= 0 for value in family.samples.values()), name
    if family.kind != "histogram":
        return
    buckets: dict[Labels, list[tuple[float, float]]] = {}
    for (sample, found), value in family.samples.items():
        if sample.endswith("_bucket"):
            bound = float(dict(found)["le"].replace("+Inf", "inf"))
            rest = frozenset(label for label in found if label[0] != "le")
            buckets.setdefault(rest, []).append((bound, value))
    for rest, of_one in buckets.items():
        assert of_one == sorted(of_one), name
        assert [count for _, count in of_one] == sorted(count for _, count in of_one), name
        assert of_one[-1] == (math.inf, family.samples[name + "_count", rest])
        assert (name + "_sum", rest) in family.samples
