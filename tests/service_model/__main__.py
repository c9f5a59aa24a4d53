"""Read the models out of a wheel of botocore, without their texts."""

from __future__ import annotations

import gzip
import json
import sys
import zipfile
from pathlib import Path
from typing import Any

from tests.service_model import SERVICES, VERSION, path_of


def without_texts(part: Any) -> Any:
    """A model without its documentation; a member named `documentation` would be a mapping, and stays."""
    if isinstance(part, dict):
        return {
            name: without_texts(each)
            for name, each in part.items()
            if name != "documentation" or isinstance(each, dict)
        }
    return [without_texts(each) for each in part] if isinstance(part, list) else part


def dump(model: dict[str, Any]) -> str:
    """One operation or shape a line, so that a newer model shows as a readable change."""
    sections = []
    for name, section in model.items():
        if name in ("operations", "shapes"):
            lines = ",\n".join(
                f"{json.dumps(entry)}:{json.dumps(each, separators=(',', ':'))}"
                for entry, each in section.items()
            )
            sections.append(f'"{name}":{{\n{lines}\n}}')
        else:
            sections.append(f'"{name}":{json.dumps(section)}')
    return "{" + ",\n".join(sections) + "}\n"


def read(wheel: Path) -> None:
    """Write the models that a wheel has over those of this folder."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        for service in SERVICES:
            folder = f"botocore/data/{service}/{VERSION}"
            raw = f"{folder}/service-2.json"
            body = archive.read(raw) if raw in names else gzip.decompress(archive.read(f"{raw}.gz"))
            path = path_of(service)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dump(without_texts(json.loads(body))), encoding="utf-8")
            rules = "endpoint-rule-set-1.json.gz"
            (path.parent / rules).write_bytes(archive.read(f"{folder}/{rules}"))


if __name__ == "__main__":
    read(Path(sys.argv[1]))
