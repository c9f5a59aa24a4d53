"""What long tests have counted, shown together at the end of the run: kills, acknowledged writes, transactions.

Only what ran in this process is shown: `pytest --processes` runs tests in others.
"""

from __future__ import annotations

import pytest

_FIGURES: dict[str, str] = {}


def note(subject: str, figures: str) -> None:
    """Set what the end of the run says about a subject, and print it now."""
    _FIGURES[subject] = figures
    print(f"\n{subject}: {figures}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _FIGURES:
        terminalreporter.section("figures")
        for subject, figures in _FIGURES.items():
            terminalreporter.line(f"{subject}: {figures}")
