"""Prints the lowest version that pyproject.toml allows of each dependency and extra, as constraints for pip; or
`--extras`, the names of the extras that are tried with them.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
# Their packages need newer versions of ours than the lowest, so they cannot be tried with these.
NEEDS_NEWER = {"mcp"}
_BOUND = re.compile(r"^[\w.-]+(\[\w+\])?>=[\d.]+(; .*)?$")
_EXTRAS = re.compile(r"\[\w+\]")  # pip allows none in a constraint


def lowest(project: str) -> list[str]:
    """`msgspec==0.19` for each `msgspec>=0.19`. The packages of developers are left out."""
    needed = {
        *tomllib.loads(project)["project"]["dependencies"],
        *(each for name in tried(project) for each in extras(project)[name]),
    }
    wrong = [each for each in needed if _BOUND.match(each) is None]
    if wrong:
        raise ValueError(f"give {wrong[0]!r} one lower bound, such as 'msgspec>=0.19'")
    return sorted(_EXTRAS.sub("", each).replace(">=", "==", 1) for each in needed)


def extras(project: str) -> dict[str, list[str]]:
    """The packages of each extra that is for users."""
    found: dict[str, list[str]] = tomllib.loads(project)["project"]["optional-dependencies"]
    return {name: packages for name, packages in found.items() if name != "dev"}


def tried(project: str) -> list[str]:
    """The extras that are tried with the lowest versions."""
    return [name for name in extras(project) if name not in NEEDS_NEWER]


if __name__ == "__main__":
    about = PROJECT.read_text(encoding="utf-8")
    print(",".join(tried(about)) if "--extras" in sys.argv else "\n".join(lowest(about)))
