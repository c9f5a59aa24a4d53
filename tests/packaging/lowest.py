"""Prints the lowest version that pyproject.toml allows of each dependency and extra, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2] / "pyproject.toml"
_BOUND = re.compile(r"^[\w.-]+(\[\w+\])?>=[\d.]+(; .*)?$")


def lowest(project: str) -> list[str]:
    """`msgspec==0.19` for each `msgspec>=0.19`. The packages of developers are left out."""
    about = tomllib.loads(project)["project"]
    extras = {**about["optional-dependencies"]}
    del extras["dev"]
    needed = {*about["dependencies"], *(each for extra in extras.values() for each in extra)}
    wrong = [each for each in needed if _BOUND.match(each) is None]
    if wrong:
        raise ValueError(f"give {wrong[0]!r} one lower bound, such as 'msgspec>=0.19'")
    return sorted(each.replace(">=", "==", 1) for each in needed)


if __name__ == "__main__":
    print("\n".join(lowest(PROJECT.read_text(encoding="utf-8"))))
