"""The newest service models of DynamoDB and of its streams: each action, and the shapes of its request and response.

    python -m tests.service_model botocore-1.44.5-py3-none-any.whl    read a newer model

The files are botocore's (© Amazon.com, Inc. or its affiliates, Apache-2.0), without the documentation texts, one shape
a line. They have actions and members that the installed botocore may lack. `FOLDER` is a data path for its loader.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

Shapes = dict[str, dict[str, Any]]

FOLDER: Final = Path(__file__).parent
VERSION: Final = "2012-08-10"
SERVICES: Final = ("dynamodb", "dynamodbstreams")

# Members for global tables of several accounts. Only with them can a CreateTable have no keys.
NOT_SUPPORTED: Final = {
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
    "DisassociationProtectionEnabled",
}
REQUIRED_WITHOUT_THEM: Final = {"CreateTable": {"AttributeDefinitions", "KeySchema"}}

# What the tests compare of a shape.
_COMPARED: Final = ("type", "required", "enum", "min", "max", "pattern", "exception")


class Model:
    """The shapes and actions of one service; a member is the name of its shape."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.shapes: Shapes = {name: _bare(shape) for name, shape in document["shapes"].items()}
        self.operations: dict[str, dict[str, Any]] = {
            name: _operation(operation) for name, operation in document["operations"].items()
        }

    def input_of(self, action: str) -> str:
        """The name of the shape of an action's request."""
        name: str = self.operations[action]["input"]
        return name

    def output_of(self, action: str) -> str | None:
        """The name of the shape of an action's response; None if it has none."""
        return self.operations[action].get("output")

    def errors_of(self, action: str) -> list[str]:
        """The names of the errors that an action may raise."""
        names: list[str] = self.operations[action]["errors"]
        return names


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    parts = {part: operation[part]["shape"] for part in ("input", "output") if part in operation}
    return parts | {"errors": [error["shape"] for error in operation.get("errors", [])]}


def _bare(shape: dict[str, Any]) -> dict[str, Any]:
    bare = {name: shape[name] for name in _COMPARED if name in shape}
    for part in ("member", "key", "value"):
        if part in shape:
            bare[part] = shape[part]["shape"]
    if "members" in shape:
        bare["members"] = {name: member["shape"] for name, member in shape["members"].items()}
    return bare


def path_of(service: str) -> Path:
    """The file of a service, where botocore's loader looks for it."""
    return FOLDER / service / VERSION / "service-2.json"


@cache
def document(service: str) -> dict[str, Any]:
    """The model of a service as botocore writes it: `botocore.model.ServiceModel(document("dynamodb"))`."""
    found: dict[str, Any] = json.loads(path_of(service).read_bytes())
    return found


@cache
def model(service: str) -> Model:
    """The model of `dynamodb` or of `dynamodbstreams`."""
    return Model(document(service))


def service_of(action: str) -> str:
    """The service that has an action."""
    return next(each for each in SERVICES if action in model(each).operations)


def newest_session(session: Any) -> Any:
    """A boto3 session, with the newest model from now on."""
    loader = session._session.get_component("data_loader")
    loader._search_paths.insert(0, str(FOLDER))
    return session


def newest_client(session: Any, **options: Any) -> Any:
    """A client of DynamoDB from a boto3 session, with the methods and parameters of the newest model."""
    return newest_session(session).client("dynamodb", **options)
