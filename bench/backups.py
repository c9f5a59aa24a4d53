"""What point-in-time recovery costs a write and the disk, and how fast tables are backed up and restored.

Times are of the processor, all threads of the process, so they do not depend on the disk.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import isotone
from bench import peers, requests
from bench.in_process import cycled
from bench.measuring import Effort, Row, Target

PUT, SPACE, SPEED = "PutItem with recovery", "disk per PutItem", "backups of a table with an index"
_RECOVERY = {"PointInTimeRecoveryEnabled": True}
_INDEXED: dict[str, Any] = {
    **requests.SCHEMA,
    "AttributeDefinitions": [
        *requests.SCHEMA["AttributeDefinitions"],
        {"AttributeName": "g", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}
TARGETS = (
    Target(PUT, "recovery (memory)", "at most", 1.3, "no recovery (memory)"),
    Target(PUT, "recovery (file, durable)", "at most", 1.5, "no recovery (file, durable)"),
)


def run(effort: Effort) -> list[Row]:
    with tempfile.TemporaryDirectory(dir=peers.data_folder()) as folder:
        return [
            *_writes(Path(folder), effort),
            *_space(Path(folder)),
            *_speed(Path(folder), effort),
        ]


def _open(stack: ExitStack, path: str | Path, recovery: bool, **settings: Any) -> isotone.Database:
    database = stack.enter_context(isotone.open(path, **settings))
    client = database.client()
    client.create_table(**requests.SCHEMA)
    if recovery:
        client.update_continuous_backups(
            TableName=requests.TABLE, PointInTimeRecoverySpecification=_RECOVERY
        )
    return database


def _writes(folder: Path, effort: Effort) -> list[Row]:
    puts: dict[str, Callable[[], object]] = {}
    with ExitStack() as stack:
        for place, path in (("memory", ":memory:"), ("file, durable", folder)):
            for recovery in (False, True):
                file = path if path == ":memory:" else folder / f"puts-{recovery}.db"
                client = _open(stack, file, recovery).client()
                name = f"{'recovery' if recovery else 'no recovery'} ({place})"
                puts[name] = cycled(partial(_put, client), _versions())
        return _alternately(puts, effort)


def _alternately(puts: Mapping[str, Callable[[], object]], effort: Effort) -> list[Row]:
    """Microseconds of processor time per call, in turns."""
    samples: dict[str, list[float]] = {name: [] for name in puts}
    for _ in range(effort.rounds):
        for name, call in puts.items():
            began = time.process_time()
            for _ in range(effort.calls):
                call()
            samples[name].append((time.process_time() - began) / effort.calls * 1e6)
    return [Row(PUT, name, "µs", taken) for name, taken in samples.items()]


def _put(client: isotone.Client, request: dict[str, Any]) -> None:
    client.put_item(**request)


def _versions() -> list[dict[str, Any]]:
    """Each item in one version, then in another, so that every put changes something."""
    return [requests.put(number, version) for version in (1, 2) for number in range(requests.ROWS)]


def _space(folder: Path) -> list[Row]:
    """How much longer a file is for each put of an item that is there."""
    length = {}
    for recovery in (False, True):
        path = folder / f"space-{recovery}.db"
        with ExitStack() as stack:
            client = _open(stack, path, recovery, durability="none").client()
            for request in _versions() * 5:
                client.put_item(**request)
        length[recovery] = path.stat().st_size
    each = (length[True] - length[False]) / (len(_versions()) * 5)
    item = len(json.dumps(requests.item(0), separators=(",", ":")))
    return [Row(SPACE, "recovery, over none", "B", [each], extra={"item's JSON, B": item})]


def _speed(folder: Path, effort: Effort) -> list[Row]:
    """Items per second of processor time of backups and restores, with nothing beside them."""
    items = effort.items // 20
    rows: list[Row] = []
    with isotone.open(folder / "speed.db", durability="none") as database:
        client = database.client()
        client.create_table(**_INDEXED)
        for first in range(0, items, 25):
            client.batch_write_item(RequestItems={requests.TABLE: _batch(first)})
        client.update_continuous_backups(
            TableName=requests.TABLE, PointInTimeRecoverySpecification=_RECOVERY
        )

        def timed(name: str, call: Callable[..., dict[str, Any]], **request: Any) -> dict[str, Any]:
            began = time.process_time()
            answer = call(**request)
            database.finish_maintenance()
            rate = items / (time.process_time() - began)
            rows.append(Row(SPEED, name, "items/s", [rate], extra={"items": items}))
            return answer

        made = timed("backup", client.create_backup, TableName=requests.TABLE, BackupName="copy")
        arn = made["BackupDetails"]["BackupArn"]
        restore = client.restore_table_from_backup
        timed("restore from a backup", restore, TargetTableName="again", BackupArn=arn)
        timed(
            "restore to a moment",
            client.restore_table_to_point_in_time,
            SourceTableName=requests.TABLE,
            TargetTableName="third",
            UseLatestRestorableTime=True,
        )
    return rows


def _batch(first: int) -> list[dict[str, Any]]:
    return [{"PutRequest": {"Item": _indexed(number)}} for number in range(first, first + 25)]


def _indexed(number: int) -> dict[str, Any]:
    more = {"sk": {"S": f"{number:09}"}, "g": {"S": f"g{number % 100}"}}
    return {**requests.item(number % requests.ROWS), **more}
