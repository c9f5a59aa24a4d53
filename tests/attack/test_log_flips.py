"""What is changed in the log of a process that was killed: nothing that was acknowledged is lost in silence.

`ISOTONE_FLIPS=1000 pytest -s tests/attack/test_log_flips.py` flips a bit in 200 logs; it prints what became of them.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.attack import flip_site
from tests.programs import isotone as run_isotone
from tests.programs import python
from tests.storage.made_logs import ENDS, frames_that_sqlite_reads

import isotone
from isotone.cli import main
from isotone.engine.repair import Repaired
from isotone.errors import DamagedLog

FLIPS = max(12, int(os.environ.get("ISOTONE_FLIPS", "40")) // 5)
SERVED = max(2, FLIPS // 20)  # flips that `isotone serve` is tried with
HEADER = 32
STRIDE = 24 + 8192
SITE = Path(__file__).with_name("killed_site.py")


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a killed process has left: a file, its log, and the log's index."""
    path = tmp_path_factory.mktemp("killed") / "shop.db"
    assert python(SITE, path, stdout=None).wait(120) == -signal.SIGKILL
    return {end: Path(f"{path}{end}").read_bytes() for end in ENDS}


@pytest.fixture(scope="module")
def used(killed: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> int:
    """How many frames of the log are of commits; older ones are behind them."""
    frames = frames_that_sqlite_reads(write(tmp_path_factory.mktemp("used") / "shop.db", killed))
    assert 100 < frames < (len(killed["-wal"]) - HEADER) // STRIDE
    return frames


def write(
    path: Path, content: dict[str, bytes], *, log: bytes | None = None, index: bool = True
) -> Path:
    for end in ENDS if index else ENDS[:2]:
        Path(f"{path}{end}").write_bytes(log if log and end == "-wal" else content[end])
    return path


def reads(path: Path) -> flip_site.Reads:
    with isotone.open(path, clock=isotone.ManualClock(flip_site.START)) as database:
        return flip_site.reads(database)


@pytest.fixture(scope="module")
def wanted(killed: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> flip_site.Reads:
    """What was acknowledged."""
    return reads(write(tmp_path_factory.mktemp("wanted") / "shop.db", killed))


def test_a_flipped_bit_in_a_log_loses_nothing_in_silence(
    killed: dict[str, bytes],
    used: int,
    wanted: flip_site.Reads,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(FLIPS):
        chance = random.Random(seed)
        # One of twenty behind the last commit, where a bit costs nothing.
        end = len(killed["-wal"]) if seed % 20 == 19 else HEADER + used * STRIDE
        bit = chance.randrange(8 * HEADER if seed % 20 == 9 else 8 * end)
        log = bytearray(killed["-wal"])
        log[bit // 8] ^= 1 << bit % 8
        folder = tmp_path / str(seed)
        folder.mkdir()
        caplog.clear()
        has_index = bool(seed % 2)
        path = write(folder / "shop.db", killed, log=bytes(log), index=has_index)
        if frames_that_sqlite_reads(path) == used:
            assert main(["check", str(path), "--quiet"]) == 0
            assert reads(path) == wanted
            assert not caplog.records
            seen["harmless"] += 1
            continue
        assert main(["check", str(path)]) == 1 or not has_index
        if "isotone repair" not in capsys.readouterr().out:
            assert_warned(path, bytes(log), caplog)
            seen["of the last commit, without an index: opened with a warning"] += 1
            continue
        assert_refused(path, capsys)
        if seed < SERVED:
            assert_not_served(path)
        seen["refused"] += 1
        seen["items and records lost, and reported"] += rescued(path, wanted)
        for each in folder.iterdir():
            each.unlink()
    with capsys.disabled():
        print(f"\n{FLIPS} flips in logs: {dict(seen)}")
    assert seen["refused"] > FLIPS // 2


def assert_warned(path: Path, log: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing shows that the last commit was acknowledged, so it is left out, and a copy of the log is kept."""
    isotone.open(path).close()
    assert "is not whole to its end" in caplog.text
    assert Path(f"{path}.damaged-wal").read_bytes() == log


def commands(path: Path, copy: Path) -> list[list[object]]:
    """Commands that open a file; all of them for one of ten flips."""
    few: list[list[object]] = [["backup", path, copy], ["restore", path, copy]]
    if int(path.parent.name) % 10:
        return few
    return [
        *few,
        ["compact", path],
        ["export", path, "Shop", copy],
        ["copy", path, copy],
        ["diff", path, path],
        ["tables", path],
    ]


def assert_refused(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every command and call refuses a file, and changes neither it nor its log."""
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    copy = path.with_name("copy.db")
    for words in commands(path, copy):
        assert main([str(word) for word in words]) != 0, words
        printed = "".join(capsys.readouterr())
        assert "its log" in printed, words
        assert "isotone repair" in printed, words
    with pytest.raises(DamagedLog, match="isotone repair"):
        isotone.open(path)
    assert Path(f"{path}.damaged-wal").read_bytes() == before["shop.db-wal"]
    assert {name: (path.parent / name).read_bytes() for name in before} == before


def rescued(path: Path, wanted: flip_site.Reads) -> int:
    """Repair a file; returns how many items and stream records were lost."""
    before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
    copy = path.with_name("copy.db")
    result = isotone.repair(path, copy)
    assert {name: (path.parent / name).read_bytes() for name in before} == before
    assert result.problems == []
    assert any("of the log" in lost["what"] for lost in result.lost)
    return assert_told(copy, wanted, result)


def assert_not_served(path: Path) -> None:
    server = run_isotone("serve", path, "--port", "0", stderr=subprocess.PIPE)
    _, err = server.communicate(timeout=60)
    assert server.returncode not in (0, None)
    assert "isotone repair" in err


@pytest.mark.parametrize("what", ["garbage", "zeros", "another frame"])
def test_what_a_repair_cannot_save_is_reported(
    killed: dict[str, bytes], used: int, wanted: flip_site.Reads, tmp_path: Path, what: str
) -> None:
    """In frames that have the latest content of their pages."""
    pages = {}
    for frame in range(used):
        place = HEADER + frame * STRIDE
        pages[killed["-wal"][place : place + 4]] = place
    latest = sorted(pages.values())
    lost = 0
    for seed in range(max(6, FLIPS // 10)):
        chance = random.Random(f"{what}{seed}")
        log = bytearray(killed["-wal"])
        for frame in chance.sample(latest, 3):
            place = frame + chance.randrange(STRIDE - 4096)
            other = chance.randrange(len(log) - 4096)
            log[place : place + 4096] = {
                "zeros": bytes(4096),
                "garbage": chance.randbytes(4096),
                "another frame": bytes(log[other : other + 4096]),
            }[what]
        folder = tmp_path / str(seed)
        folder.mkdir()
        path = write(folder / "shop.db", killed, log=bytes(log))
        with pytest.raises(DamagedLog):
            isotone.open(path)
        result = isotone.repair(path, folder / "new.db")
        lost += assert_told(folder / "new.db", wanted, result)
        for each in folder.iterdir():
            each.unlink()
    assert lost, "so it proves nothing"
    print(f"\n{what}: {lost} items and stream records lost, or as they were before")


def assert_told(copy: Path, wanted: flip_site.Reads, result: Repaired) -> int:
    """How much is missing, or is not as it was; fails if nothing says so."""
    found = reads(copy)
    changed = 0
    for read in ("scan Shop", "scan Plain", "stream"):
        there = {repr(one) for one in found[read]}
        changed += sum(repr(one) not in there for one in wanted[read])
    assert result.lost or not changed
    assert main(["check", str(copy), "--quiet"]) == (1 if result.problems else 0)
    return changed


def test_a_log_that_was_cut_short_after_a_kill_is_known(
    killed: dict[str, bytes], used: int, tmp_path: Path
) -> None:
    chance = random.Random(7)
    for number in range(6):
        end = chance.randrange(HEADER, HEADER + used * STRIDE - 1)
        path = write(tmp_path / f"{number}.db", killed, log=killed["-wal"][:end])
        for _ in range(2):
            with pytest.raises(DamagedLog, match="it ends after frame"):
                isotone.open(path)
        result = isotone.repair(path, tmp_path / f"new{number}.db")
        assert any("the log ends early" in lost["what"] for lost in result.lost)
