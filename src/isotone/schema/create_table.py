"""CreateTable's requests as JSON, as `aws dynamodb create-table --cli-input-json` takes them; one, or a list of several.

The answers of DescribeTable are read as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from isotone.schema.deployable import REQUEST, DeployableTable, deployable, described_table
from isotone.schema.document import DocumentValue
from isotone.schema.shapes import ObjectShape, read_shape
from isotone.tables.definition import TableDefinition

_REQUEST: Final = ObjectShape({name: REQUEST[name] for name in ("TableName", "KeySchema")}, REQUEST)
ANSWERS: Final = ("Table", "TableDescription")
"""The members of answers that have a description."""


def write(tables: Sequence[DeployableTable]) -> Any:
    """The requests of tables."""
    requests = [table.definition for table in tables]
    return requests[0] if len(requests) == 1 else requests


def read(root: DocumentValue, parameters: Mapping[str, str]) -> list[DeployableTable]:
    """The tables of a file."""
    return [_table(each) for each in (root.elements() if isinstance(root.given, list) else [root])]


def _table(value: DocumentValue) -> DeployableTable:
    members = value.members()
    for name in ANSWERS:
        if name in members:
            table, notes = described_table(members[name], TableDefinition({}))
            value.notes.extend(notes)
            return table
    return deployable(read_shape(_REQUEST, value))
