"""Python warnings that point at the program's own line instead of a line in the library."""

from __future__ import annotations

import sys
import warnings


def warn_caller(message: Warning) -> None:
    """Warn at the innermost line outside the library."""
    depth, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("isotone."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, stacklevel=depth)
