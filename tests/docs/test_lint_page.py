from __future__ import annotations

from tests.docs.lint_page import PAGE, text
from tests.docs.pages import page

from isotone.advisor.lint import RULES, Thresholds


def test_the_sections_are_those_of_the_catalogue() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == text(), "docs/lint.md differs from the catalogue: make files"


def test_each_code_and_each_threshold_has_its_place() -> None:
    lint = page("docs/lint.md")
    assert {code.lower() for code in RULES} <= lint.anchors
    for name in Thresholds.__slots__:
        assert f"| `{name}` |" in lint.text
