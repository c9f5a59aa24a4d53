"""SIGKILL during an import and an export: the same call continues, and nothing is lost, doubled or reported twice.

`ISOTONE_KILLS=50 pytest tests/crash/test_item_file_kill.py` for as many kills as one likes.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import time
from pathlib import Path
from random import Random

import pytest
from tests.crash import item_file_site
from tests.programs import python

import isotone

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")

KILLS = int(os.environ.get("ISOTONE_KILLS", "4"))
ROWS = 30_000


def is_bad(number: int) -> bool:
    return number % 100 == 50


def run_with_kills(way: str, folder: Path) -> int:
    """Run until it is complete, killed a random time after it has saved its state; returns the number of kills."""
    random = Random(way)
    kills = 0
    while True:
        saves = random.randrange(1, 4) if kills < KILLS else sys.maxsize
        site = python(item_file_site.__file__, way, folder)
        assert site.stdout is not None
        for line in site.stdout:
            if line == "complete\n":
                site.communicate()
                return kills
            saves -= 1
            if not saves:
                time.sleep(random.uniform(0, 0.05))
                site.kill()
                kills += 1
                break
        site.communicate()
        if site.returncode == 0:  # it was complete before the signal came
            return kills
        assert site.returncode == -signal.SIGKILL, "the site has failed"


def test_killed_imports_and_exports_are_continued(tmp_path: Path) -> None:
    def row(number: int) -> str:
        return f"{'' if is_bad(number) else f'o{number}'},{number},{'x' * 100}\n"

    lines = "id,n:N,text\n" + "".join(map(row, range(ROWS)))
    (tmp_path / "rows.csv").write_text(lines)
    assert run_with_kills("import", tmp_path)
    expected = {f"o{number}": number for number in range(ROWS) if not is_bad(number)}
    with isotone.open(tmp_path / "target.db") as database:
        assert database.check() == []
        pages = database.client().get_paginator("scan").paginate(TableName="Orders")
        items = [item for page in pages for item in page["Items"]]
    assert {item["id"]["S"]: int(item["n"]["N"]) for item in items} == expected
    bad = [json.loads(line)["row"] for line in (tmp_path / "bad.jsonl").read_text().splitlines()]
    assert bad == [number + 2 for number in range(ROWS) if is_bad(number)]
    assert not (tmp_path / "state.json").exists()

    assert run_with_kills("export", tmp_path)
    written = gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).splitlines()
    exported = [json.loads(line) for line in written]
    assert {item["id"]: item["n"] for item in exported} == expected
    assert len(exported) == len(expected)
    assert not list(tmp_path.glob("*.part"))
