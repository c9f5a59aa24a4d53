"""The newest service model of DynamoDB (botocore 1.44.5, without its texts), for tests with an older botocore.

It has actions and members that the installed botocore may lack. `FOLDER` is a data path for botocore's loader.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
# Members for global tables. Only with them can a CreateTable have no keys.
NOT_SUPPORTED = {
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
    "DisassociationProtectionEnabled",
}
REQUIRED_WITHOUT_THEM = {"CreateTable": {"AttributeDefinitions", "KeySchema"}}


def newest_model() -> dict[str, Any]:
    """The operations and shapes of the model."""
    file = FOLDER / "dynamodb" / "2012-08-10" / "service-2.json.gz"
    model: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return model


def newest_session(session: Any) -> Any:
    """A boto3 session, with the newest model from now on."""
    loader = session._session.get_component("data_loader")
    loader._search_paths.insert(0, str(FOLDER))
    return session


def newest_client(session: Any, **options: Any) -> Any:
    """A client of DynamoDB from a boto3 session, with the methods and parameters of the newest model."""
    return newest_session(session).client("dynamodb", **options)
