"""Lint findings and reports: as text, as JSON values and as SARIF."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any, Final
from urllib.parse import quote

from isotone.advisor.lint.catalogue import RULES
from isotone.text_table import pluralized

_SARIF: Final = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, order=True)
class FindingPlace:
    """Where a finding is: a line of a file, or a table, an index and a key; `name` is the declared name."""

    file: str = ""
    line: int = 0
    table: str = ""
    index: str = ""
    key: str = ""
    name: str = ""

    def __str__(self) -> str:
        if self.file:
            return f"{self.file}:{self.line}"
        if not self.table:
            return self.name
        index = f".{self.index}" if self.index else ""
        key = f" {self.key}" if self.key else ""
        return f"{self.table}{index}{key}"


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A fault: its code, its place, what is wrong, what it costs, and what to do."""

    code: str
    place: FindingPlace
    reason: str
    cost: str
    fix: str

    @property
    def level(self) -> str:
        """`warning`, or `note` for something that is not a fault yet."""
        return RULES[self.code].level

    def __str__(self) -> str:
        return (
            f"{self.place}: {self.code} {self.reason}\n    cost: {self.cost}\n    fix: {self.fix}"
        )


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding that a comment or the configuration suppresses, and the reason."""

    finding: LintFinding
    reason: str
    in_source: bool = False


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings of a run of lint. `checked` says what was checked."""

    findings: tuple[LintFinding, ...] = ()
    suppressed: tuple[Suppressed, ...] = ()
    checked: tuple[str, ...] = ()

    @property
    def codes(self) -> Counter[str]:
        """The number of findings of each code."""
        return Counter(finding.code for finding in self.findings)

    def __bool__(self) -> bool:
        """Whether there are findings."""
        return bool(self.findings)

    def only(self, codes: frozenset[str]) -> LintReport:
        """The report with only these codes."""
        kept = tuple(each for each in self.findings if each.code in codes)
        hidden = tuple(each for each in self.suppressed if each.finding.code in codes)
        return replace(self, findings=kept, suppressed=hidden)

    def text(self) -> str:
        """The report for a terminal."""
        count = len(self.findings)
        lines = [str(finding) for finding in self.findings]
        total = pluralized(count, "finding") if count else "no findings"
        hidden = f", {len(self.suppressed)} suppressed" if self.suppressed else ""
        checked = f" in {', '.join(self.checked)}" if self.checked else ""
        lines.append(f"{total}{hidden}{checked}")
        return "\n".join(lines)

    __str__ = text

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "findings": [asdict(each) | {"level": each.level} for each in self.findings],
            "suppressed": [
                {"finding": asdict(each.finding), "reason": each.reason} for each in self.suppressed
            ],
            "checked": list(self.checked),
        }

    def to_sarif(self) -> dict[str, Any]:
        """The report in SARIF 2.1.0, which code hosts show beside the source lines."""
        used = sorted({each.code for each in self._all()})
        rules = [
            {
                "id": code,
                "shortDescription": {"text": RULES[code].title},
                "fullDescription": {"text": RULES[code].why},
                "help": {"text": RULES[code].text()},
                "defaultConfiguration": {"level": RULES[code].level},
            }
            for code in used
        ]
        results = [_sarif_result(each, used) for each in self.findings]
        for each in self.suppressed:
            kind = "inSource" if each.in_source else "external"
            suppression = {"kind": kind, "justification": each.reason}
            results.append({**_sarif_result(each.finding, used), "suppressions": [suppression]})
        driver = {"name": "isotone lint", "rules": rules}
        return {
            "$schema": _SARIF,
            "version": "2.1.0",
            "runs": [{"tool": {"driver": driver}, "results": results}],
        }

    def _all(self) -> Sequence[LintFinding]:
        return [*self.findings, *(each.finding for each in self.suppressed)]


def _sarif_result(finding: LintFinding, rules: Sequence[str]) -> dict[str, Any]:
    place = finding.place
    location: dict[str, Any] = {}
    if place.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": _uri(PurePath(place.file))},
            "region": {"startLine": max(place.line, 1)},
        }
    else:
        location["logicalLocations"] = [{"fullyQualifiedName": str(place), "kind": "resource"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rules.index(finding.code),
        "level": finding.level,
        "message": {"text": f"{finding.reason} Cost: {finding.cost} Fix: {finding.fix}"},
        "locations": [location],
    }


def _uri(path: PurePath) -> str:
    """A path as SARIF expects it: relative to the checkout, or with its scheme."""
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
