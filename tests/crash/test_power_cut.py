"""The power fails after every single write and sync: what was acknowledged is there, and nobody has to repair anything.

Each file is opened with the durability it was written with: `disk` promises that a log has no gaps, and a file whose log has
some is then refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import get_args

import pytest
from tests.crash.disk import Event, after_power_cut, recording_disk
from tests.crash.workload import State, content, history, run

from isotone.storage import file
from isotone.storage.file import Durability
from isotone.storage.sqlite import SQLiteStore

TRANSACTIONS = 24
SECTOR = 512


Remains = Callable[[Event], Event | None]


def torn(seed: int) -> Remains:
    """Each write is lost, or kept, or kept in part: whole sectors of its beginning."""
    random = Random(seed)

    def remains(event: Event) -> Event | None:
        sectors = len(event.data) // SECTOR
        match random.randrange(3):
            case 0:
                return None
            case 1 if event.kind == "write":
                return replace(event, data=event.data[: SECTOR * random.randint(0, sectors)])
            case _:
                return event

    return remains


def scattered(seed: int) -> Remains:
    """Each sector is lost or kept."""
    random = Random(seed)
    return lambda event: event if random.random() < 0.7 else None


def in_sectors(log: list[Event]) -> Iterator[Event]:
    """The same, with a write of its own for each sector that a write touches."""
    for event in log:
        if event.kind != "write":
            yield event
            continue
        place, end = event.offset, event.offset + len(event.data)
        while place < end:
            following = min(end, (place // SECTOR + 1) * SECTOR)
            part = event.data[place - event.offset : following - event.offset]
            yield replace(event, offset=place, data=part)
            place = following


HOW: dict[str, Callable[[int], Remains]] = {
    "lost": lambda _: lambda event: None,
    "kept": lambda _: lambda event: event,
    "torn": torn,
    "scattered": scattered,
}
Recording = tuple[list[Event], list[State]]


def record(folder: Path, durability: Durability) -> Recording:
    """What the disk saw of a history with many checkpoints, and the state after each commit."""
    states: list[State] = [{}]
    settings = [text.replace("checkpoint=1000", "checkpoint=8") for text in file._SETTINGS]
    assert settings != list(file._SETTINGS)
    with pytest.MonkeyPatch.context() as patch, recording_disk() as disk:
        patch.setattr(file, "_SETTINGS", settings)
        store = SQLiteStore(folder / "store.db", durability)
        for number, (step, state) in enumerate(history(TRANSACTIONS), start=1):
            disk.mark(("begun", number))
            run(step, store)
            disk.mark(("acknowledged", number))
            states.append(state)
        store.close()
    return disk.log, states


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> dict[Durability, Recording]:
    return {
        durability: record(tmp_path_factory.mktemp(durability), durability)
        for durability in get_args(Durability)
    }


def last_mark(log: list[Event], what: str) -> int:
    return max((event.mark[1] for event in log if event.mark and event.mark[0] == what), default=0)


def contents_after_cuts(
    log: list[Event], how: str, folder: Path, durability: Durability
) -> Iterator[tuple[int, State]]:
    """What each cut leaves, by the number of events before it. A disk is opened once for each content."""
    last: dict[str, bytes] = {}
    found: State = {}
    for length in range(len(log) + 1):
        seen = log[:length]
        disk = after_power_cut(
            list(in_sectors(seen)) if how == "scattered" else seen, HOW[how](length)
        )
        if length == 0 or disk != last:
            last, found = disk, content_of(disk, folder / str(length), durability)
        yield length, found


def content_of(disk: dict[str, bytes], folder: Path, durability: Durability) -> State:
    folder.mkdir()
    for name, data in disk.items():
        (folder / name).write_bytes(data)
    store = SQLiteStore(folder / "store.db", durability)
    try:
        assert store.check() == []
        return content(store)
    finally:
        store.close()


@pytest.mark.parametrize(
    ("durability", "how"),
    [
        ("disk", "lost"),
        ("disk", "torn"),
        ("disk", "scattered"),
        ("disk", "kept"),
        # That nothing is lost of what was written is what the death of the process alone looks like.
        ("process", "kept"),
        ("none", "kept"),
    ],
)
def test_an_acknowledged_commit_survives(
    recordings: dict[Durability, Recording], tmp_path: Path, durability: Durability, how: str
) -> None:
    log, states = recordings[durability]
    for length, found in contents_after_cuts(log, how, tmp_path, durability):
        seen = log[:length]
        possible = states[last_mark(seen, "acknowledged") : last_mark(seen, "begun") + 1]
        assert found in possible, f"after {length} events"


@pytest.mark.parametrize("how", ["lost", "torn", "scattered"])
def test_without_the_disk_a_cut_takes_the_last_commits_and_no_more(
    recordings: dict[Durability, Recording], tmp_path: Path, how: str
) -> None:
    log, states = recordings["process"]
    behind = 0
    for length, found in contents_after_cuts(log, how, tmp_path, "process"):
        seen = log[:length]
        possible = states[: last_mark(seen, "begun") + 1]
        assert found in possible, f"after {length} events"
        behind += found not in states[last_mark(seen, "acknowledged") :]
    assert behind, "this disk forgets nothing, so that it proves nothing"


def test_the_history_has_all_that_can_go_wrong(
    recordings: dict[Durability, Recording],
) -> None:
    log, _ = recordings["disk"]
    written = [event.name for event in log if event.kind == "write"]
    checkpoints = sum(
        1 for before, after in pairwise(written) if (before, after) == ("store.db-wal", "store.db")
    )
    assert checkpoints > 5
    assert sum(event.kind == "sync" for event in log) > TRANSACTIONS
