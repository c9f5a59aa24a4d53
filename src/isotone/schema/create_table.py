"""CreateTable's requests as JSON, as `aws dynamodb create-table --cli-input-json` takes them; one, or a list of several.

The answers of DescribeTable are read as well.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from isotone.schema.deployable import (
    DeployableTable,
    ReadTables,
    deployable_of,
    no_parameters,
    normal_request,
)
from isotone.schema.document import (
    REQUEST,
    DocumentValue,
    ObjectShape,
    parsed_json,
    taken,
)
from isotone.tables.definition import TableDefinition

_NAMED: Final = {"TableName": str, "KeySchema": REQUEST["KeySchema"]}
_ANSWERS: Final = ("Table", "TableDescription")


def write(tables: Sequence[DeployableTable]) -> str:
    """The requests of tables."""
    requests = [table.request for table in tables]
    content = requests[0] if len(requests) == 1 else requests
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def is_content(content: Any) -> bool:
    """Whether JSON has the form of a request, of an answer, or of a list of them."""
    first = content[0] if isinstance(content, list) and content else content
    return isinstance(first, dict) and any(name in first for name in ("TableName", *_ANSWERS))


def read(text: str, source: str, parameters: Mapping[str, str]) -> ReadTables:
    """The tables of a file."""
    no_parameters(source, parameters)
    root = DocumentValue(parsed_json(text, source), "", source)
    notes: list[str] = []
    each = root.elements() if isinstance(root.given, list) else [root]
    return ReadTables([_table(one, notes) for one in each], notes)


def _table(value: DocumentValue, notes: list[str]) -> DeployableTable:
    members = value.members()
    for name in _ANSWERS:
        if name in members:
            return _described(members[name], notes)
    unread: list[str] = []
    request = taken(value, ObjectShape(_NAMED, REQUEST), unread)
    notes += [f"{value.source}: {place} is not read" for place in unread]
    return DeployableTable(request=normal_request(request))


# DescribeTable's answers

_COUNTED_UNITS: Final = ObjectShape({}, {"ReadCapacityUnits": int, "WriteCapacityUnits": int})
_DESCRIBED: Final = ObjectShape(
    {**_NAMED, "AttributeDefinitions": REQUEST["AttributeDefinitions"]},
    {
        "LocalSecondaryIndexes": REQUEST["LocalSecondaryIndexes"],
        "GlobalSecondaryIndexes": [
            ObjectShape(
                {"IndexName": str, "KeySchema": REQUEST["KeySchema"]},
                {
                    **REQUEST["GlobalSecondaryIndexes"][0].optional,
                    "Projection": REQUEST["GlobalSecondaryIndexes"][0].required["Projection"],
                    "ProvisionedThroughput": _COUNTED_UNITS,
                },
            )
        ],
        "VectorIndexes": REQUEST["VectorIndexes"],
        "BillingModeSummary": ObjectShape({}, {"BillingMode": str}),
        "ProvisionedThroughput": _COUNTED_UNITS,
        "OnDemandThroughput": REQUEST["OnDemandThroughput"],
        "WarmThroughput": REQUEST["WarmThroughput"],
        "StreamSpecification": REQUEST["StreamSpecification"],
        "SSEDescription": ObjectShape({}, {"Status": str, "KMSMasterKeyArn": str}),
        "TableClassSummary": ObjectShape({}, {"TableClass": str}),
        "DeletionProtectionEnabled": bool,
        "Replicas": [ObjectShape({"RegionName": str})],
    },
)


def _described(value: DocumentValue, notes: list[str]) -> DeployableTable:
    described = taken(value, _DESCRIBED, [])  # the rest of an answer is no definition
    table, not_taken = deployable_of(TableDefinition(described))
    notes += not_taken
    return table
