"""Tests on DynamoDB without DynamoDB: `mock_dynamodb`, `attach`, and the pytest plugin.

A module is imported, and boto3 with it, only when one of its names is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.testing.attachment import Attachment as Attachment
    from isotone.testing.attachment import attach as attach
    from isotone.testing.faults import Faults as Faults
    from isotone.testing.faults.replica_lag import replication as replication
    from isotone.testing.mock import MockDynamoDB as MockDynamoDB
    from isotone.testing.mock import mock_aws as mock_aws
    from isotone.testing.mock import mock_dynamodb as mock_dynamodb

_HOMES = {
    "Attachment": "isotone.testing.attachment",
    "Faults": "isotone.testing.faults",
    "MockDynamoDB": "isotone.testing.mock",
    "attach": "isotone.testing.attachment",
    "mock_aws": "isotone.testing.mock",
    "mock_dynamodb": "isotone.testing.mock",
    "replication": "isotone.testing.faults.replica_lag",
}

__all__ = [
    "Attachment",
    "Faults",
    "MockDynamoDB",
    "attach",
    "mock_aws",
    "mock_dynamodb",
    "replication",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'isotone.testing' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name not in ("boto3", "botocore"):
            raise
        from isotone.errors import UsageError

        raise UsageError(f"{name} needs boto3: pip install 'isotone[boto3]'") from None
