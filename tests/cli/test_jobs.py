"""What jobs print: the reason of a failure once, and the warnings of a database after which they went on."""

from __future__ import annotations

import argparse
import json
import logging
import threading
from pathlib import Path

import apsw
import pytest
from tests.cli.conftest import Run
from tests.crash.disk import Fault, recording_disk

from isotone.cli import jobs
from isotone.errors import IsotoneError
from isotone.tables.pace import Pace
from isotone.tables.progress import Progress

ARGUMENTS = argparse.Namespace(quiet=True)
log = logging.getLogger("isotone")


def full() -> apsw.Error:
    return apsw.FullError("database or disk is full")


# APSW reports what a VFS in Python raises also where SQLite goes on without it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_import_on_a_full_disk_says_the_reason_once(
    isotone: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows, file = tmp_path / "rows.jsonl", tmp_path / "shop.db"
    rows.write_text("".join(json.dumps({"id": str(each)}) + "\n" for each in range(2000)))
    with recording_disk() as disk:
        assert isotone("create", file, "Orders", "id").code == 0
        disk.fault = Fault("write", "-wal", 10, full)
        assert isotone("import", rows, file, "Orders") == (
            1,
            "",
            f"isotone: the disk is full under {file}: free some space, then write again "
            "(database or disk is full)\n",
        )
        assert disk.fault.raised


def test_a_warning_is_printed_once_where_the_job_continues(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_A_MOMENT", 0.0)
    with jobs.running_job("import", ARGUMENTS) as (job, _):
        log.warning("the disk is slow")
        log.warning("the disk is slow")
        job.report(Progress("import", "Orders", 1))
        assert capsys.readouterr().err == "isotone: the disk is slow\n"
        log.warning("the disk is slow")
        log.warning("the disk is slower")
    assert capsys.readouterr().err == "isotone: the disk is slower\n"


def test_another_warning_is_printed_beside_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        log.warning("PutItem failed: the disk is full")
        log.warning("the disk is slow")
        raise IsotoneError("the disk is full")

    with pytest.raises(IsotoneError), jobs.running_job("import", ARGUMENTS):
        fail()
    assert capsys.readouterr().err == "isotone: the disk is slow\n"


def test_a_job_that_is_stopped_before_it_has_a_state_was_interrupted() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt), jobs.running_job("diff", ARGUMENTS):
        Pace(stop=stop).wait()
