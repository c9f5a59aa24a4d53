"""How far random tests search: a quick form for every day, a long one for `make long`.

`ISOTONE_LONG=1` asks for the long form.
"""

from __future__ import annotations

import os

LONG = bool(os.environ.get("ISOTONE_LONG"))
FEWEST = 8


def examples(number: int) -> int:
    """This many random examples in the long form; an eighth of them in the quick one, but not too few."""
    return number if LONG else max(number // 8, min(number, FEWEST))
