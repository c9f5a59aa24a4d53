"""How far random tests search: a quick form for every day, a long one for `make long`.

`ISOTONE_LONG=1` asks for the long form.
"""

from __future__ import annotations

import os

LONG = bool(os.environ.get("ISOTONE_LONG"))


def examples(number: int) -> int:
    """This many random examples in the long form, a third of them in the quick one."""
    return number if LONG else number // 3
