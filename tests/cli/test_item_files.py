"""`isotone export` and `isotone import`: what they print, and their exit codes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.conftest import Run


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def test_out_and_in_again(isotone: Run, shop: Path, tmp_path: Path) -> None:
    file, new = tmp_path / "orders.csv.gz", tmp_path / "new.db"
    assert isotone("export", shop, "Orders", file, "--with-table") == (
        0,
        f"5 items of Orders written to {file}\n",
        "",
    )
    code, _, err = isotone("export", shop, "Orders", file)
    assert (code, err) == (1, f"isotone: {file} exists; --force (force=True) replaces it\n")
    done = json.loads(isotone("export", shop, "Orders", file, "--force", "--json").out)
    assert (done["items"], done["is_complete"]) == (5, True)
    assert isotone("import", file, new, "Orders") == (0, "5 items written to Orders\n", "")
    assert "5 items" in isotone("query", new, "Orders", "customer=ann").out
    assert isotone("import", file, new, "Orders", "--quiet") == (0, "", "")
    assert json.loads(isotone("import", file, new, "Orders", "--json").out)["items"] == 5


def test_bad_rows_exit_with_1(isotone: Run, shop: Path, tmp_path: Path) -> None:
    file, bad = tmp_path / "orders.csv", tmp_path / "bad.jsonl"
    file.write_text("customer,placed_at,total\nbob,2026-01-01,5\n,2026-01-02,6\nbob,2026-01-03,x\n")
    words = ("import", file, shop, "Orders", "--types", "total:N")
    code, out, err = isotone(*words)
    assert (code, out) == (1, "")
    assert err == (
        "isotone: row 3: it has no customer, which is part of the key. Everything before it was imported; "
        "correct it, or continue with --bad-rows FILE (bad_rows=)\n"
    )
    code, out, err = isotone(*words, "--bad-rows", bad)
    assert (code, out, err) == (1, f"1 item written to Orders, 2 bad rows in {bad}\n", "")
    assert [json.loads(line)["row"] for line in bad.read_text().splitlines()] == [3, 4]


def test_standard_streams(
    isotone: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Out(io.StringIO):
        buffer = io.BytesIO()

    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", Out())
        code, _, err = isotone("export", shop, "Orders")
    assert (code, err) == (0, "5 items of Orders written to -\n")
    lines = Out.buffer.getvalue()
    assert len(lines.splitlines()) == 5
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines)))
    new = tmp_path / "new.db"
    key = ("--key", "customer", "--sort-key", "placed_at")
    assert isotone("import", "-", new, "Orders", *key).out == "5 items written to Orders\n"


def test_what_is_missing_is_named_and_not_made(isotone: Run, shop: Path, tmp_path: Path) -> None:
    none = tmp_path / "none.db"
    assert isotone("export", none, "Orders").err == f"isotone: there is no file {none}\n"
    assert isotone("import", "orders.csv", none, "Orders").err == (
        f"isotone: there is no file {none}; isotone create makes it, or --key here\n"
    )
    assert not none.exists()
    code, _, err = isotone("export", shop, "Other", tmp_path / "o.csv")
    assert (code, err) == (1, "isotone: there is no table Other at the source\n")
    code, _, err = isotone("import", "x.csv", shop, "Orders", "--types", "total")
    assert (code, err) == (
        1,
        "isotone: --types 'total' has no type; write it like total:N,paid:BOOL\n",
    )


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_leaves_a_state_that_the_same_command_continues(
    isotone: Run, tmp_path: Path
) -> None:
    rows, state, target = tmp_path / "rows.jsonl", tmp_path / "state.json", tmp_path / "new.db"
    count = 30_000
    rows.write_text("".join(f'{{"id": {number}}}\n' for number in range(count)))
    words = [str(each) for each in ("import", rows, target, "Orders", "--key", "id:N")]
    words += ["--state", str(state)]
    with subprocess.Popen(
        [sys.executable, "-m", "isotone", *words], stderr=subprocess.PIPE, text=True
    ) as command:
        while not state.exists():
            assert command.poll() is None, "it was complete before it could be interrupted"
            time.sleep(0.005)
        command.send_signal(signal.SIGINT)
        assert command.stderr is not None
        error = command.stderr.read()
    assert command.returncode == 130
    # On a busy machine, lines of progress come before.
    *_, last = error.splitlines()
    assert last == f"isotone: interrupted; the same command continues where it was ({state})"
    saved = json.loads(state.read_text())["entries"]["Orders"]
    assert 0 < saved["items"] < count
    assert isotone(*words).out == f"{count:,} items written to Orders\n"
    assert not state.exists()


def test_what_the_target_lacks_is_noted(isotone: Run, shop: Path, tmp_path: Path) -> None:
    file = tmp_path / "orders.jsonl"
    isotone("export", shop, "Orders", file, "--with-table")
    described = Path(f"{file}.table.json")
    described.write_text(json.dumps({**json.loads(described.read_text()), "has_recovery": True}))
    done = isotone("import", file, tmp_path / "new.db", "Orders")
    note = "isotone: note: point-in-time recovery: enable it on the target yourself\n"
    assert (done.code, done.err) == (0, note)
    assert isotone("import", file, tmp_path / "other.db", "Orders", "--quiet") == (0, "", "")
