"""Finds the table of a name or an ARN: ResourceNotFoundException ("Requested resource not found"), invalid names.

Control-plane and data-plane calls have different messages for a bad name and for a missing table.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from isotone.engine.engine import Engine
from isotone.engine.table_indexes import StoredTable
from isotone.errors import (
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from isotone.operations.action import ActionRule
from isotone.operations.request_grammar import NAME_CONSTRAINTS
from isotone.operations.request_members import NAME_PATTERN
from isotone.operations.request_validation import detected, problem

IN_USE: Final = "Attempt to change a resource which is still in use: "
REQUIRED: Final = "The parameter '{member}' is required but was not present in the request"
_PARTITIONS: Final = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-isob-": "aws-iso-b",
    "us-isof-": "aws-iso-f",
    "eu-isoe-": "aws-iso-e",
    "us-iso-": "aws-iso",
    "eusc-": "aws-eusc",
}
_ARN: Final = re.compile(
    rf"arn:[a-z-]{{1,20}}:dynamodb:[a-z0-9-]{{0,40}}:[0-9]{{0,20}}:table/(?=.{{3,255}}\Z)({NAME_PATTERN})"
)


@lru_cache(maxsize=1024)
def table_name(text: str, path: str = "tableName") -> str:
    """The plain name in a `TableName` member; ValidationException if it is neither name nor ARN.

    Costs a cache lookup for a name seen before.
    """
    arn = _ARN.fullmatch(text)
    if arn is not None:
        return arn[1]
    if text.startswith("arn:"):
        raise ValidationException(f"Invalid table ARN: {text}")
    broken = [rule for rule in NAME_CONSTRAINTS if not rule.holds(text)]
    if broken:
        raise detected(*(problem(f"'{text}'", path, rule.sentence) for rule in broken))
    return text


def check_arn(arn: str) -> None:
    """Refuse a text that does not begin like an ARN."""
    if not arn.startswith("arn:"):
        raise ValidationException(
            f"One or more parameter values were invalid: ARNs must start with 'arn:': {arn}"
        )


def check_control_name(member: str, text: str | None) -> None:
    """Refuse a missing, short, long or malformed name, as control-plane calls do."""
    if text is None:
        raise ValidationException(REQUIRED.format(member=member))
    if not text.startswith("arn:") and not 3 <= len(text) <= 255:
        raise ValidationException(
            f"{member} must be at least 3 characters long and at most 255 characters long"
        )
    table_name(text)


def open_table(engine: Engine, name: str) -> StoredTable:
    """The table of a data-plane request, by its name or its ARN."""
    try:
        return engine.catalog.tables[name]
    except KeyError:
        table = engine.catalog.tables.get(table_name(name))
    if table is None:
        raise ResourceNotFoundException("Requested resource not found")
    return table


def named_table(engine: Engine, name: str) -> StoredTable:
    """The table of a PartiQL statement, which only takes a name. A malformed name is simply not found."""
    table = engine.catalog.tables.get(name)
    if table is None:
        raise ResourceNotFoundException("Requested resource not found")
    return table


def described_table(engine: Engine, name: str) -> StoredTable:
    """The table of a control-plane request, even while it is being created. The error names the table."""
    plain = table_name(name)
    table = engine.catalog.find(plain)
    if table is None:
        raise ResourceNotFoundException(f"Requested resource not found: Table: {plain} not found")
    return table


def changed_table(engine: Engine, name: str) -> StoredTable:
    """The table that a control-plane request changes. Refuses one that is being created."""
    table = described_table(engine, name)
    if table.schema.is_creating:
        raise ResourceInUseException(f"{IN_USE}Table is being created: {table.name}")
    return table


TABLE_IS_KNOWN: Final = ActionRule(
    "no such table", lambda engine, request: described_table(engine, request.table_name)
)
"""The rule on the table of a control-plane request."""

TABLE_CHANGES: Final = ActionRule(
    "no such table, or one that is being created",
    lambda engine, request: changed_table(engine, request.table_name),
)
"""The rule on the table that a control-plane request changes."""


def table_of_arn(engine: Engine, arn: str) -> StoredTable:
    """The table with a resource's ARN (tags use ARNs)."""
    table = engine.catalog.find(arn.rpartition("/")[2])
    if table is None or table_arn(engine, table.name) != arn:
        raise ResourceNotFoundException(
            f"Requested resource not found: ResourcArn: {arn} not found"
        )
    return table


def table_arn(engine: Engine, name: str) -> str:
    """The ARN of a table."""
    partition = partition_of(engine.region)
    return f"arn:{partition}:dynamodb:{engine.region}:{engine.account}:table/{name}"


def partition_of(region: str) -> str:
    """The partition of a region, the second part of its ARNs: `aws`, or that of a separate cloud."""
    return next(
        (partition for prefix, partition in _PARTITIONS.items() if region.startswith(prefix)), "aws"
    )
