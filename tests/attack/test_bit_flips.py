"""One flipped bit anywhere in a file is harmless, or noticed by the check and by each read that meets it.

`ISOTONE_FLIPS=1000 pytest -s tests/attack/test_bit_flips.py` for as many flips as one likes; it prints what became of them.

Outside of this are a few of SQLite's own bytes, which no checksum of rows can cover (docs/design/storage.md): the count of
rows in a page's header, and pointers to pages. There a read may miss rows; the check must notice.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.attack import flip_site

import isotone
from isotone.errors import IsotoneError, StorageError

FLIPS = int(os.environ.get("ISOTONE_FLIPS", "40"))
PAGE = 8192
START = 1_800_000_000


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("flips") / "source.db"
    flip_site.build(path)
    return path


def opened(path: Path) -> isotone.Database:
    return isotone.open(path, durability="none", clock=isotone.ManualClock(START))


@pytest.fixture(scope="module")
def wanted(source: Path) -> flip_site.Reads:
    copy = source.with_name("wanted.db")
    shutil.copyfile(source, copy)
    with opened(copy) as database:
        return flip_site.reads(database)


def test_a_flipped_bit_is_harmless_or_noticed(
    source: Path, wanted: flip_site.Reads, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("isotone"), "disabled", True)
    seen: Counter[str] = Counter()
    for seed in range(FLIPS):
        path = tmp_path / f"flip{seed}.db"
        bit = flip_site.flipped(source, path, seed)
        outcome = outcome_of(path, wanted)
        if outcome == "missed by a read, noticed by the check":
            assert is_bookkeeping(source.read_bytes(), bit // 8), f"seed {seed}, byte {bit // 8}"
        seen[outcome] += 1
        for each in tmp_path.glob(f"flip{seed}.db*"):
            each.unlink()
    print(f"\n{FLIPS} flips: {dict(seen)}")
    assert seen["harmless"] < FLIPS


def outcome_of(path: Path, wanted: flip_site.Reads) -> str:
    """What became of a copy. Fails if anything wrong is returned that the check does not notice."""
    try:
        database = opened(path)
    except StorageError:
        return "noticed when it is opened"
    with database:
        problems = database.check()
        found = flip_site.reads(database)
    errors = {name: answer for name, answer in found.items() if isinstance(answer, IsotoneError)}
    assert all(isinstance(error, StorageError) for error in errors.values()), errors
    wrong = [
        name for name, answer in found.items() if name not in errors and answer != wanted[name]
    ]
    if wrong:
        assert problems, f"{wrong} are wrong, and nobody notices"
        return "missed by a read, noticed by the check"
    if errors:
        assert problems, f"{errors} are not noticed by the check"
        return "noticed by reads and the check"
    return "noticed by the check, harmless for reads" if problems else "harmless"


def is_bookkeeping(content: bytes, byte: int) -> bool:
    """Whether a byte is of the count of rows of a page, or of a pointer to a page."""
    number, offset = divmod(byte, PAGE)
    page = content[number * PAGE : (number + 1) * PAGE]
    if number == 0:
        return True  # the schema
    if page[0] not in (0x02, 0x0A):
        return offset < 4
    if offset in (3, 4) or (page[0] == 0x02 and 8 <= offset < 12):
        return True
    header, rows = (12, int.from_bytes(page[3:5], "big")) if page[0] == 0x02 else (8, 0)
    cells = [int.from_bytes(page[at : at + 2], "big") for at in range(header, header + 2 * rows, 2)]
    return any(cell <= offset < cell + 4 for cell in cells)
