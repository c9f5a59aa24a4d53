"""What all readers have in common: their result, and their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from isotone.errors import UsageError
from isotone.schema.deployable import DeployableTable


class ReadTables(NamedTuple):
    """The tables that a file defines, and notes about what of it was not read."""

    tables: list[DeployableTable]
    notes: list[str]


def no_parameters(source: str, parameters: Mapping[str, str]) -> None:
    """Refuse parameters for a file of a format that has none."""
    if parameters:
        raise UsageError(f"{source} has no parameters, so {next(iter(parameters))!r} means nothing")
