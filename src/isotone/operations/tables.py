"""Tables as requests name them."""

from __future__ import annotations

from isotone.engine.engine import Engine
from isotone.engine.table import Table
from isotone.errors import ResourceNotFoundException
from isotone.operations.names import table_name


def open_table(engine: Engine, name: str) -> Table:
    """The table of a data-plane request, which names it or gives its ARN."""
    found = engine.catalog.find(name)
    return found if found is not None else engine.catalog.table(table_name(name))


def described_table(engine: Engine, name: str) -> Table:
    """The table of a control-plane request, whose refusal names the table."""
    plain = table_name(name)
    found = engine.catalog.find(plain)
    if found is None:
        raise ResourceNotFoundException(f"Requested resource not found: Table: {plain} not found")
    return found


def table_of_arn(engine: Engine, arn: str) -> Table:
    """The table that a resource's ARN stands for (tags are kept by ARN)."""
    found = engine.catalog.find(arn.rpartition("/")[2])
    if found is None or table_arn(engine, found.name) != arn:
        raise ResourceNotFoundException(
            f"Requested resource not found: ResourcArn: {arn} not found"
        )
    return found


def table_arn(engine: Engine, name: str) -> str:
    """The ARN of a table."""
    return f"arn:aws:dynamodb:{engine.region}:{engine.account}:table/{name}"
