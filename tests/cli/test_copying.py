"""`isotone copy` and `isotone diff`: words, output, exit codes, interruptions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests import programs
from tests.cli.conftest import Run
from tests.moving.tables import NAME, create, fill, items

import isotone as package


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_copy_says_what_it_did_and_both_are_equal(
    isotone: Run, shop: Path, tmp_path: Path
) -> None:
    target = tmp_path / "target.db"
    done = isotone("copy", shop, target)
    assert done.code == 0, done.err
    assert done.err == ""
    assert done.out.startswith("copy Orders: 5 items")
    same = isotone("diff", shop, target)
    assert same == (0, "Orders: equal, 5 items\n", "")


def test_the_tables_of_a_model_are_copied_with_their_sample_items(
    isotone: Run, shop: Path, tmp_path: Path
) -> None:
    model = Path(__file__).parent.parent / "schema" / "models" / "chat.json"
    target = tmp_path / "chat.db"
    assert isotone("copy", str(model), str(target), "--quiet").code == 0
    assert len(isotone("scan", str(target), "Chat", "--format", "jsonl").out.splitlines()) == 6
    again = isotone("copy", str(model), str(target), "--quiet")
    assert (again.code, "has items" in again.err) == (1, True)
    for words, said in (
        ([str(model), str(tmp_path / "live.db"), "--live"], "which nobody writes to"),
        ([str(shop), str(tmp_path / "p.db"), "--parameter", "A=b"], "has no parameters"),
        ([str(tmp_path / "no.json"), str(tmp_path / "no.db")], "no.json"),
    ):
        refused = isotone("copy", *words, "--quiet")
        assert refused.code == 1
        assert said in refused.err
    assert not {*tmp_path.glob("live.db"), *tmp_path.glob("p.db"), *tmp_path.glob("no.db")}


def test_a_difference_is_shown_and_exits_with_1(isotone: Run, shop: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    assert isotone("copy", shop, target, "--quiet") == (0, "", "")
    isotone("put", target, "Orders", '{"customer": "ann", "placed_at": "2026-01-02", "total": 7}')
    isotone("put", target, "Orders", '{"customer": "bob", "placed_at": "2026-01-09"}')
    isotone("delete", target, "Orders", "ann", "2026-01-03")
    found = isotone("diff", shop, target)
    assert found.code == 1
    assert found.out == (
        "Orders: 5 and 5 items, 1 only in the source, 1 only in the target, 1 different\n"
        '- {"customer": "ann", "placed_at": "2026-01-03"}  only in the source\n'
        '+ {"customer": "bob", "placed_at": "2026-01-09"}  only in the target\n'
        '! {"customer": "ann", "placed_at": "2026-01-02"}\n'
        '    status: "OPEN" → (missing)\n'
        "    total: 2.5 → 7\n"
    )
    as_json = isotone("diff", shop, target, "--json")
    assert as_json.code == 1
    document = json.loads(as_json.out)
    assert not document["is_equal"]
    assert document["tables"]["Orders"]["changed"] == 1
    assert isotone("diff", shop, tmp_path / "absent.db").code == 2
    assert "no file" in isotone("copy", tmp_path / "absent.db", target).err
    assert isotone("diff", shop, target, "Nothing").code == 2


def test_a_dry_run_and_json(isotone: Run, shop: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    dry = isotone("copy", shop, target, "--dry-run")
    assert dry == (0, "Orders: about 5 items would be copied\n", "")
    done = json.loads(isotone("copy", shop, target, "Orders=Mine", "--json").out)
    assert done["is_complete"]
    assert done["tables"]["Orders"]["items"] == 5
    assert isotone("diff", shop, target, "Orders=Mine").code == 0
    again = isotone("copy", shop, target, "Orders=Mine")
    assert again.code == 1
    assert "--into-existing" in again.err
    assert isotone("copy", shop, target, "Orders=Mine", "--into-existing").code == 0


def test_a_live_copy_is_cut_over(isotone: Run, shop: Path, tmp_path: Path) -> None:
    target = tmp_path / "target.db"
    asked = isotone("copy", shop, target, "--cut-over")
    assert asked.code == 1
    assert "--yes" in asked.err
    done = isotone("copy", shop, target, "--live", "--cut-over", "--yes")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == f"both sides are equal: switch to {target} now"


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_leaves_a_state_that_the_same_command_continues_with(
    isotone: Run, tmp_path: Path, state_folder: Path
) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    with package.open(source) as database:
        create(database)
        fill(database, 2000)
    words = ("copy", source, target, "--live", "--write-units", 1000)
    process = programs.isotone(*words, stderr=subprocess.PIPE)
    while not list(state_folder.glob("isotone/*.json")):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command continues where it was" in err
    assert "copy Orders" in out
    over = isotone("copy", source, target, "--cut-over", "--yes")
    assert over.code == 0, over.err
    with package.open(source) as one, package.open(target) as two:
        assert items(one) == items(two)
        assert len(items(one, NAME)) == 2000
    assert not list(state_folder.glob("isotone/*"))
