"""What Amazon charges for DynamoDB in us-east-1, as a dated list; a TOML file (`--prices`) has those of other regions.

US_EAST_1.on_demand(reads=1_000_000, writes=250_000)      # 0.28125 dollars
Prices.from_file("eu-central-1.toml")                     # the same fields, with your region's figures
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, Final

from isotone.errors import UsageError

GIGABYTE: Final = 10**9
HOURS_A_MONTH: Final = 730.0
DAYS_A_MONTH: Final = HOURS_A_MONTH / 24


@dataclass(frozen=True, slots=True)
class Prices:
    """The prices of a standard-class table in one region, without free tiers and taxes."""

    region: str
    as_of: str
    """The date of the price list that the figures are from."""
    million_read_units: float
    """On demand: a million read request units."""
    million_write_units: float
    """On demand: a million write request units."""
    read_unit_hour: float
    """Provisioned: one read capacity unit for an hour."""
    write_unit_hour: float
    """Provisioned: one write capacity unit for an hour."""
    gigabyte_month: float
    """Storage of the table and its indexes."""
    currency: str = "USD"

    def on_demand(self, *, reads: float = 0.0, writes: float = 0.0) -> float:
        """The price of units on demand."""
        return (reads * self.million_read_units + writes * self.million_write_units) / 1e6

    def provisioned(self, *, reads: float, writes: float, hours: float = HOURS_A_MONTH) -> float:
        """The price of provisioned units, for a month by default."""
        return (reads * self.read_unit_hour + writes * self.write_unit_hour) * hours

    def storage(self, size: float) -> float:
        """The price of bytes for a month."""
        return size / GIGABYTE * self.gigabyte_month

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Prices:
        """Read the prices from a TOML file that has each field of this class under its name."""
        try:
            found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise UsageError(f"the prices in {path} cannot be read: {error}") from None
        return cls(**_checked(found, path))


def _checked(found: dict[str, Any], path: str | PathLike[str]) -> dict[str, Any]:
    """The values of a file, if they are exactly the fields of this class."""
    texts = {"region", "as_of", "currency"}
    names = [each.name for each in fields(Prices)]
    if unknown := sorted(found.keys() - {*names}):
        raise UsageError(f"{path}: {unknown[0]!r} is not a price; there are {', '.join(names)}")
    if missing := [name for name in names if name not in found and name != "currency"]:
        raise UsageError(f"{path}: {missing[0]} is missing")
    values: dict[str, Any] = {}
    for name, value in found.items():
        if name in texts:
            values[name] = str(value)
        elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise UsageError(f"{path}: {name} = {value!r} is not a price; write a number")
        else:
            values[name] = float(value)
    return values


US_EAST_1: Final = Prices(
    region="us-east-1",
    as_of="2024-11-01",
    million_read_units=0.125,
    million_write_units=0.625,
    read_unit_hour=0.00013,
    write_unit_hour=0.00065,
    gigabyte_month=0.25,
)
