"""How long to wait before looking again for what others have to do first."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

_FIRST: Final = 0.05  # seconds


def pauses(longest: float) -> Iterator[float]:
    """Seconds between looks: doubled with each, with jitter, up to the longest."""
    pause = min(_FIRST, longest)
    while True:
        yield random.uniform(pause / 2, pause)
        pause = min(pause * 2, longest)
