"""The settings of lint: codes, thresholds, what is ignored and why; from `pyproject.toml`, options or arguments."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from isotone import limits
from isotone.advisor.lint.catalogue import RULES, codes_of
from isotone.errors import UsageError

_GB: Final = 1024 * limits.MB


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The figures beyond which something is a finding. Shares are between 0 and 1."""

    hit_rate: float = 0.35
    filtered_items: int = 100
    """The least items that a filtered read must have read to be checked."""
    partition_share: float = 0.5
    partition_items: int = 1000
    """The least items that a partition must have to be checked."""
    item_bytes: int = 320 * limits.KB
    collection_bytes: int = 8 * _GB
    headroom: float = 0.3
    sequential: int = 50
    """The least consecutive partition keys that count as a sequence."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise UsageError(f"threshold {each.name} is {value!r}; give a number above 0")


@dataclass(frozen=True, slots=True)
class Settings:
    """What lint looks for. `ignore` has a reason for each code; `engines` are those that the model must run on."""

    select: frozenset[str] = field(default_factory=lambda: frozenset(RULES))
    ignore: Mapping[str, str] = field(default_factory=dict)
    engines: tuple[str, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)


_KNOWN: Final = frozenset({"select", "ignore", "engines", "thresholds"})


def settings_of(given: Mapping[str, Any]) -> Settings:
    """Read the settings from a table `[tool.isotone.lint]`; raises `UsageError` for unknown ones."""
    if unknown := sorted(given.keys() - _KNOWN):
        raise UsageError(
            f"{unknown[0]!r} is not a setting of lint; the settings are {', '.join(sorted(_KNOWN))}"
        )
    ignore = given.get("ignore", {})
    if not isinstance(ignore, Mapping):
        raise UsageError('ignore is a table of codes with reasons: ignore = {ISO103 = "…"}')
    thresholds = given.get("thresholds", {})
    if not isinstance(thresholds, Mapping):
        raise UsageError("thresholds is a table of figures: thresholds = {hit_rate = 0.5}")
    names = {each.name for each in fields(Thresholds)}
    if unknown := sorted(thresholds.keys() - names):
        raise UsageError(
            f"{unknown[0]!r} is not a threshold; the thresholds are {', '.join(sorted(names))}"
        )
    return Settings(
        selected(_texts(given, "select")),
        {code: str(why) for each, why in ignore.items() for code in sorted(codes_of(each))},
        _texts(given, "engines"),
        Thresholds(**thresholds),
    )


def _texts(given: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts; a single text becomes a list."""
    found = given.get(name, ())
    found = [found] if isinstance(found, str) else found
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        raise UsageError(f'{name} is {found!r}; write a list of texts: {name} = ["…"]')
    return tuple(found)


def selected(names: Sequence[str]) -> frozenset[str]:
    """The codes that the given codes, or beginnings of codes, stand for; all codes if none are given."""
    return frozenset(code for each in names for code in codes_of(each)) or frozenset(RULES)


def configured(folder: Path) -> Settings:
    """The settings in the `pyproject.toml` of a folder or the nearest folder above it."""
    for each in (folder, *folder.parents):
        file = each / "pyproject.toml"
        if file.exists():
            try:
                found = tomllib.loads(file.read_text(encoding="utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise UsageError(f"{file}: {error}") from None
            return settings_of(found.get("tool", {}).get("isotone", {}).get("lint", {}))
    return Settings()
