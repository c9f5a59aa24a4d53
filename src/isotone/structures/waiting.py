"""How long to wait before looking again for what others have to do first."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

_LEAST: Final = 0.001  # seconds: who waits is not to keep the database busy
_FIRST: Final = 0.05


def pauses(longest: float) -> Iterator[float]:
    """Seconds between looks: doubled with each, with jitter, up to the longest."""
    longest = max(longest, _LEAST)
    pause = min(_FIRST, longest)
    while True:
        yield random.uniform(pause / 2, pause)
        pause = min(pause * 2, longest)
