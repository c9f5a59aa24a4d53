"""One seed is one story of a database file: two writers, steps of the clock, kills, full disks and slow syncs.

    python -m tests.attack.simulation 17        tell the story of seed 17

A naive model keeps what each key may hold: the acknowledged value alone or, after a call that failed, that of before or
after. What a kill leaves is a copy of the files as they are at that moment, in the middle of whatever was going on.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, Final

import apsw
from tests.crash.disk import Disk, Event, Fault, recording_disk

import isotone
from isotone.errors import StorageError

STEPS: Final = 60
KEYS: Final = [str(number) for number in range(12)]
START: Final = 1_800_000_000
TABLE: Final = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "g", "AttributeType": "N"},
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_g",
            "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
}

Value = int | None
"""The number of an item; None if there is no item."""


def _full() -> apsw.Error:
    error = apsw.FullError("made by the simulation")
    error.extendedresult = apsw.SQLITE_FULL
    return error


class _SlowSync(Fault):
    """A sync during which minutes pass. It does not fail."""

    def __init__(self, clock: isotone.ManualClock) -> None:
        super().__init__("sync", "", 0, _full)
        self._clock = clock

    def strike(self, event: Event) -> None:
        if event.kind == "sync":
            self._clock.advance(180)


class Story:
    """What happens to one file; `told` has a line for each step."""

    def __init__(self, seed: int, folder: Path, disk: Disk) -> None:
        self.told: list[str] = []
        self.kills = self.acknowledged = self.refused = 0
        self._random = Random(seed)
        self._folder = folder
        self._disk = disk
        self._clock = isotone.ManualClock(START)
        self._may_be: dict[str, set[Value]] = {key: {None} for key in KEYS}
        self._number = 0
        self._path = folder / "0.db"
        self._writers: list[isotone.Database] = []
        self._open()
        self._writers[0].execute("CreateTable", TABLE)

    def run(self) -> None:
        """All steps, and the checks after each kill and at the end."""
        steps: list[Callable[[], None]] = [
            *[self._put] * 8,
            *[self._delete] * 3,
            *[self._transact] * 4,
            *[self._read] * 4,
            self._step_clock,
            self._fill_disk,
            self._slow_down,
            self._mend,
            self._mend,
            self._kill,
        ]
        for _ in range(STEPS):
            self._random.choice(steps)()
        self._mend()
        self._kill()
        self.close()

    def close(self) -> None:
        """Close what is open, also after a failure."""
        for writer in self._writers:
            writer.close()
        self._writers = []

    # What writers do

    def _put(self) -> None:
        key = self._random.choice(KEYS)
        self._number += 1
        self._write({key: self._number}, "PutItem", {"Item": _item(key, self._number)})

    def _delete(self) -> None:
        key = self._random.choice(KEYS)
        self._write({key: None}, "DeleteItem", {"Key": {"p": {"S": key}}})

    def _transact(self) -> None:
        """Two items together, or neither."""
        first, second = self._random.sample(KEYS, 2)
        self._number += 1
        actions = [
            {"Put": {"TableName": "tab", "Item": _item(first, self._number)}},
            {"Delete": {"TableName": "tab", "Key": {"p": {"S": second}}}},
        ]
        self._write(
            {first: self._number, second: None}, "TransactWriteItems", {"TransactItems": actions}
        )

    def _write(self, after: dict[str, Value], operation: str, request: dict[str, Any]) -> None:
        self.told.append(f"{operation} {after}")
        table = {} if operation == "TransactWriteItems" else {"TableName": "tab"}
        before = {key: self._may_be[key] for key in after}
        try:
            self._random.choice(self._writers).execute(operation, {**table, **request})
        except StorageError as error:
            self.refused += 1
            self.told.append(f"  {error}")
            self._may_be.update({key: before[key] | {after[key]} for key in after})
            return
        self.acknowledged += 1
        self._may_be.update({key: {after[key]} for key in after})

    def _read(self) -> None:
        key = self._random.choice(KEYS)
        answer = self._random.choice(self._writers).execute(
            "GetItem", {"TableName": "tab", "Key": {"p": {"S": key}}, "ConsistentRead": True}
        )
        found = _number_of(answer.get("Item"))
        assert found in self._may_be[key], f"{key} is {found}, not in {self._may_be[key]}"
        self._may_be[key] = {found}  # nobody else writes: it stays so

    # What happens to them

    def _step_clock(self) -> None:
        seconds = self._random.choice((-100_000, -3600, -1, 1, 3600, 100_000))
        self.told.append(f"the clock steps by {seconds}")
        self._clock.set(self._clock.now() + seconds)

    def _fill_disk(self) -> None:
        self.told.append("the disk is full")
        first = self._random.randrange(6)
        self._disk.fault = Fault("write", self._random.choice(("-wal", ".db")), first, _full)

    def _slow_down(self) -> None:
        self.told.append("syncs take minutes")
        self._disk.fault = _SlowSync(self._clock)

    def _mend(self) -> None:
        self._disk.fault = None

    def _kill(self) -> None:
        """Go on with what is in the files now, and compare all of it with the model."""
        self.told.append("kill")
        self.kills += 1
        fault, self._disk.fault = self._disk.fault, None
        path = self._folder / f"{self.kills}.db"
        for suffix in ("", "-wal"):
            if Path(f"{self._path}{suffix}").exists():
                shutil.copyfile(f"{self._path}{suffix}", f"{path}{suffix}")
        self.close()
        self._path = path
        self._open()
        self._verify()
        self._disk.fault = fault

    def _open(self) -> None:
        self._writers = [isotone.open(self._path, clock=self._clock) for _ in range(2)]

    def _verify(self) -> None:
        for writer in self._writers:
            writer.finish_maintenance()
            assert writer.check() == []
            answer = writer.execute("Scan", {"TableName": "tab"})
            found = {item["p"]["S"]: _number_of(item) for item in answer["Items"]}
            for key in KEYS:
                there = found.get(key)
                assert there in self._may_be[key], f"{key} is {there}, not in {self._may_be[key]}"
                self._may_be[key] = {there}
            for key, number in found.items():
                assert number is not None
                assert self._in_index(writer, number) >= {key}

    def _in_index(self, writer: isotone.Database, number: int) -> set[str]:
        request = {
            "TableName": "tab",
            "IndexName": "by_g",
            "KeyConditionExpression": "g = :g",
            "ExpressionAttributeValues": {":g": {"N": str(number % 5)}},
        }
        return {item["p"]["S"] for item in writer.execute("Query", request)["Items"]}


def _item(key: str, number: int) -> dict[str, Any]:
    return {
        "p": {"S": key},
        "n": {"N": str(number)},
        "g": {"N": str(number % 5)},
        "text": {"S": "t" * (number % 7 * 300)},
    }


def _number_of(item: dict[str, Any] | None) -> Value:
    return None if item is None else int(item["n"]["N"])


@contextmanager
def story(seed: int) -> Iterator[Story]:
    """The story of a seed, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder, recording_disk() as disk:
        told = Story(seed, Path(folder), disk)
        try:
            yield told
        finally:
            disk.fault = None
            told.close()


if __name__ == "__main__":
    with story(int(sys.argv[1])) as one:
        try:
            one.run()
        finally:
            print(*one.told, sep="\n")
