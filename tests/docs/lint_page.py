"""Writes the sections of docs/lint.md from the catalogue of rules: `python -m tests.docs.lint_page`."""

from __future__ import annotations

from tests.docs.pages import ROOT

from isotone.advisor.lint import RULES, LintRule

PAGE = ROOT / "docs" / "lint.md"
BEGIN = "<!-- The sections below are written from src/isotone/advisor/lint/catalogue.py: make files -->\n"


def section(rule: LintRule) -> str:
    """What the page says of a rule."""
    return (
        f"## {rule.code}\n\n**{_capital(rule.title)}.** Found in {rule.where}"
        f"{', as a note' if rule.level == 'note' else ''}. {rule.why}\n\n"
        f"```\n{rule.bad}\n```\n\n{rule.fix}\n\n```\n{rule.good}\n```\n"
    )


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def text() -> str:
    """The page with present sections."""
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    return head + BEGIN + "\n" + "\n".join(map(section, RULES.values()))


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
