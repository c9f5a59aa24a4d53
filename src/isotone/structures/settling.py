"""Writes that hold what they have read: made again from a new reading until nobody came in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from isotone.errors import Contended, WriteRefused
from isotone.model import Steps, pause_after

R = TypeVar("R")

ATTEMPTS: Final = 200
_PATIENCE: Final = 4  # who lost more often waits no longer, or those who come later win for ever


def settled(attempt: Callable[[], Steps[R]], what: str, advice: str) -> Steps[R]:
    """Run an attempt (read, and write while that is so) until it gets through; raises `Contended`."""
    for number in range(ATTEMPTS):
        try:
            return (yield from attempt())
        except WriteRefused:
            yield pause_after(min(number, _PATIENCE))
    raise Contended(f"others wrote {what} during each of {ATTEMPTS} attempts; {advice}")
