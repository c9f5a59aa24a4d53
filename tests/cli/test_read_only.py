"""Commands on a file, or in a folder, that cannot be written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import isotone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs permissions that bind root")

READS = [
    ("tables", "{file}"),
    ("get", "{file}", "Orders", "id=1"),
    ("query", "{file}", "Orders", "id=1"),
    ("scan", "{file}", "Orders"),
    ("export", "{file}", "Orders", "-"),
    ("sql", "{file}", "SELECT * FROM Orders WHERE id = '1'"),
    ("check", "{file}"),
]
# Root keeps its user, but loses the capability to pass over permissions (CAP_DAC_OVERRIDE), which takes effect with exec.
RUN = """
import ctypes, os, sys
if os.geteuid() == 0:
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "isotone", *sys.argv[1:]])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "closed"
    folder.mkdir()
    with isotone.open(folder / "shop.db") as database:
        client = database.client()
        client.create_table(
            TableName="Orders",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for number in range(3):
            client.put_item(TableName="Orders", Item={"id": {"S": str(number)}})
    yield folder
    folder.chmod(0o755)


def run_bound(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )


def close_to_writers(folder: Path, what: str) -> str:
    file = folder / "shop.db"
    if what == "file":
        folder.chmod(0o777)
        file.chmod(0o444)
    else:
        file.chmod(0o666)
        folder.chmod(0o555)
    return str(file)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_reads_work_and_a_write_says_why_it_does_not(folder: Path, what: str) -> None:
    file = close_to_writers(folder, what)
    before = Path(file).read_bytes()
    for words in READS:
        outcome = run_bound(*(word.format(file=file) for word in words))
        assert outcome.returncode == 0, (words, outcome.stderr)
        assert "Traceback" not in outcome.stderr
    shell = run_bound("shell", file, text="get Orders id=1\n")
    assert shell.returncode == 0, shell.stderr
    for write in (("put", file, "Orders", '{"id": "9"}'), ("create", file, "Other", "id")):
        outcome = run_bound(*write)
        assert outcome.returncode != 0
        assert "is read-only, so nothing can be written" in outcome.stderr
        assert "Traceback" not in outcome.stderr
    assert Path(file).read_bytes() == before
    assert [each.name for each in folder.iterdir()] == ["shop.db"]


def test_a_log_that_cannot_be_read_is_not_ignored(folder: Path) -> None:
    with isotone.open(folder / "shop.db") as database:
        database.client().put_item(TableName="Orders", Item={"id": {"S": "in the log"}})
        left = folder / "left.db"
        for end in ("", "-wal"):
            shutil.copyfile(f"{folder / 'shop.db'}{end}", f"{left}{end}")
            Path(f"{left}{end}").chmod(0o444)
    folder.chmod(0o555)
    outcome = run_bound("scan", str(left), "Orders")
    if outcome.returncode == 0:
        assert "in the log" in outcome.stdout
    else:
        assert "has a log" in outcome.stderr
