"""Finds design problems in a model or in a table: `isotone.lint`."""

from __future__ import annotations

from isotone.advisor.lint.catalogue import RULES, Rule
from isotone.advisor.lint.finding import Finding, LintReport, Place, Suppressed
from isotone.advisor.lint.linting import lint
from isotone.advisor.lint.settings import Settings, Thresholds

__all__ = [
    "RULES",
    "Finding",
    "LintReport",
    "Place",
    "Rule",
    "Settings",
    "Suppressed",
    "Thresholds",
    "lint",
]
