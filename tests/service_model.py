"""The service models of DynamoDB and of its streams: each action, and the shape of its request and response.

    python -m tests.service_model botocore-1.44.5-py3-none-any.whl    make service_model.json anew

`service_model.json` is an extract of two files of botocore (© Amazon.com, Inc. or its affiliates, Apache-2.0):
`data/dynamodb/2012-08-10/service-2.json` and `data/dynamodbstreams/2012-08-10/service-2.json`. It leaves out the
documentation texts. It is usually newer than the botocore of the development environment.
"""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, Final

Shapes = dict[str, dict[str, Any]]

EXTRACT: Final = Path(__file__).with_suffix(".json")
SERVICES: Final = ("dynamodb", "dynamodbstreams")
# What is left of a shape.
_KEPT: Final = ("type", "required", "enum", "min", "max", "pattern", "exception")


class Model:
    """The shapes and actions of one service."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.shapes: Shapes = document["shapes"]
        self.operations: dict[str, dict[str, Any]] = document["operations"]

    def input_of(self, action: str) -> str:
        """The name of the shape of an action's request."""
        name: str = self.operations[action]["input"]
        return name

    def output_of(self, action: str) -> str | None:
        """The name of the shape of an action's response; None if it has none."""
        return self.operations[action].get("output")


@cache
def model(service: str) -> Model:
    """The model of `dynamodb` or of `dynamodbstreams`."""
    return Model(json.loads(EXTRACT.read_bytes())[service])


def extract(document: dict[str, Any]) -> dict[str, Any]:
    """A service model without its documentation."""
    return {
        "operations": {
            name: {
                part: operation[part]["shape"] for part in ("input", "output") if part in operation
            }
            | {"errors": [error["shape"] for error in operation.get("errors", [])]}
            for name, operation in document["operations"].items()
        },
        "shapes": {name: _bare(shape) for name, shape in document["shapes"].items()},
    }


def _bare(shape: dict[str, Any]) -> dict[str, Any]:
    bare = {name: shape[name] for name in _KEPT if name in shape}
    for part in ("member", "key", "value"):
        if part in shape:
            bare[part] = shape[part]["shape"]
    if "members" in shape:
        bare["members"] = {name: member["shape"] for name, member in shape["members"].items()}
    return bare


def read_wheel(path: Path) -> dict[str, Any]:
    """The extract of both models in a wheel of botocore."""
    with zipfile.ZipFile(path) as wheel:
        names = set(wheel.namelist())
        found: dict[str, Any] = {"source": f"{'-'.join(path.stem.split('-')[:2])}, Apache-2.0"}
        for service in SERVICES:
            name = f"botocore/data/{service}/2012-08-10/service-2.json"
            raw = wheel.read(name) if name in names else gzip.decompress(wheel.read(f"{name}.gz"))
            found[service] = extract(json.loads(raw))
    return found


def dump(document: dict[str, Any]) -> str:
    """One shape a line, so that a newer model shows as a readable change."""
    parts = []
    for service in SERVICES:
        sections = []
        for section, entries in document[service].items():
            lines = ",\n".join(
                f"{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'))}"
                for name, entry in sorted(entries.items())
            )
            sections.append(f'"{section}":{{\n{lines}\n}}')
        parts.append(f'"{service}":{{{",".join(sections)}}}')
    return f'{{"source":{json.dumps(document["source"])},\n' + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    EXTRACT.write_text(dump(read_wheel(Path(sys.argv[1]))), encoding="utf-8")
