"""Finds design problems in a model or in a table: `isotone.lint`."""

from __future__ import annotations

from isotone.advisor.lint.catalogue import RULES, LintRule
from isotone.advisor.lint.finding import FindingPlace, LintFinding, LintReport, Suppressed
from isotone.advisor.lint.linting import lint
from isotone.advisor.lint.settings import Settings, Thresholds

__all__ = [
    "RULES",
    "FindingPlace",
    "LintFinding",
    "LintReport",
    "LintRule",
    "Settings",
    "Suppressed",
    "Thresholds",
    "lint",
]
