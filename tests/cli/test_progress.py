"""The progress of long commands: one option with the same values everywhere, lines for logs, JSON for scripts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import programs
from tests.cli.conftest import Run
from tests.moving.tables import NAME, create, fill, items, order

import isotone as package
from isotone.cli import copying, item_files
from isotone.cli.program import COMMANDS, parser_of
from isotone.cli.progress import Kind, ProgressOutput
from isotone.moving import Progress, export_items
from isotone.moving.output_files import FileOutput

LONG = (
    "put",
    "model",
    "worker",
    "verify",
    "rewrite",
    "seed",
    "apply",
    "simulate",
    "copy",
    "diff",
    "export",
    "import",
    "backup",
    "restore",
    "compact",
    "check",
    "repair",
)


@pytest.fixture(autouse=True)
def state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.mark.parametrize("command", LONG)
def test_every_long_command_takes_the_same_option(command: str) -> None:
    (action,) = [
        each for each in parser_of(command)._actions if "--progress" in each.option_strings
    ]
    assert action.choices == ("auto", "lines", "json", "none")
    assert action.default == "auto"


def test_no_other_command_has_a_progress_of_its_own() -> None:
    others = {
        command
        for command in COMMANDS
        for action in parser_of(command)._actions
        if "--progress" in action.option_strings
    }
    assert others == set(LONG)


# Lines and JSON


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def shown(
    kind: Kind, capsys: pytest.CaptureFixture[str], tables: tuple[str, ...] = ("Orders",)
) -> list[tuple[float, str]]:
    """What is printed in three minutes of reports five times a second, with the second of each line."""
    clock, found = Clock(), []
    output = ProgressOutput("copy", kind, now=clock)
    for tick in range(5 * 180):
        clock.time = 100.0 + tick / 5
        for table in tables:
            output.show(Progress("copy", table, tick), state="copying")
            found += [(tick / 5, line) for line in capsys.readouterr().err.splitlines()]
    return found


@pytest.mark.parametrize("kind", ["auto", "lines"])
def test_a_log_gets_a_line_after_five_seconds_and_then_one_a_minute(
    kind: Kind, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = shown(kind, capsys)
    assert [second for second, _ in lines] == [5.0, 65.0, 125.0]
    assert lines[0][1] == "copy Orders: 25 items"


def test_each_table_has_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("lines", capsys, ("Orders", "Users"))
    assert [line.split(":")[0] for _, line in lines] == ["copy Orders", "copy Users"] * 3


def test_a_script_gets_an_object_each_second(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("json", capsys)
    assert [second for second, _ in lines] == [float(second) for second in range(180)]
    first = json.loads(lines[0][1])
    assert first["command"] == "copy"
    assert first["state"] == "copying"
    assert (first["table"], first["items"], first["lag"]) == ("Orders", 0, None)
    assert json.loads(lines[-1][1])["seconds"] == 179.0


def test_none_is_silent_and_a_terminal_has_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shown("none", capsys) == []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output = ProgressOutput("copy")
    output.show("half of it", at_once=True)
    output.clear()
    assert capsys.readouterr().err == "\r\x1b[Khalf of it\r\x1b[K"


# Live copies


def live_copy(tmp_path: Path, *more: object) -> tuple[Any, Path, Path]:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    with package.open(source) as database:
        create(database)
        fill(database, 50)
    process = programs.isotone("copy", source, target, "--live", *more, stderr=subprocess.PIPE)
    return process, source, target


def read_until(process: Any, is_last: Callable[[str], bool]) -> list[str]:
    """The lines of standard error up to one."""
    lines = []
    for line in process.stderr:
        lines.append(line.rstrip("\n"))
        if is_last(line):
            return lines
    raise AssertionError(f"it has ended: {lines}")


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_a_live_copy_without_a_terminal_says_when_it_is_caught_up(tmp_path: Path) -> None:
    process, _, _ = live_copy(tmp_path)
    lines = read_until(process, lambda line: "no lag" in line)
    assert lines[-1].startswith("follow Orders: 50 items")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_json_of_a_live_copy_has_what_is_copied_the_lag_and_the_state(tmp_path: Path) -> None:
    process, source, target = live_copy(tmp_path, "--progress", "json", "--quiet")

    def is_caught_up(line: str) -> bool:
        return bool(json.loads(line)["state"] == "caught up")

    last = json.loads(read_until(process, is_caught_up)[-1])
    assert (last["command"], last["table"], last["copied"]) == ("copy", NAME, 50)
    assert last["lag"] == 0.0
    with package.open(source) as database:
        database.execute("PutItem", {"TableName": NAME, "Item": order(99)})
    lines = read_until(process, lambda line: json.loads(line)["changes"] >= 1)
    assert all(json.loads(line)["state"] in ("following", "caught up") for line in lines)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    (end,) = [json.loads(line) for line in rest.splitlines() if '"state":"interrupted"' in line]
    assert (end["copied"], end["changes"]) == (50, 1)
    assert Path(end["state_file"]).exists()
    with package.open(target) as copied:
        assert len(items(copied)) == 51


def test_until_caught_up_exits_with_0_and_can_go_on(isotone: Run, tmp_path: Path) -> None:
    source, target = tmp_path / "source.db", tmp_path / "target.db"
    with package.open(source) as database:
        create(database)
        fill(database, 50)
    words = ("copy", source, target, "--live", "--until-caught-up")
    first = isotone(*words)
    assert first.code == 0, first.err
    assert "all changes are applied" in first.out
    with package.open(source) as database:
        database.execute("PutItem", {"TableName": NAME, "Item": order(99)})
    second = isotone(*words, "--json", "--progress", "json")
    assert second.code == 0, second.err
    assert json.loads(second.out)["is_caught_up"]
    assert json.loads(second.err.splitlines()[-1])["state"] == "caught up"
    with package.open(source) as one, package.open(target) as two:
        assert items(one) == items(two)
    over = isotone("copy", source, target, "--cut-over", "--yes", "--progress", "json")
    assert over.code == 0, over.err
    assert json.loads(over.err.splitlines()[-1])["state"] == "complete"
    refused = isotone("copy", source, target, "--until-caught-up")
    assert refused.code == 1
    assert "write --live --until-caught-up" in refused.err


# The very end


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
def test_ctrl_c_after_the_last_item_does_not_undo_the_end(
    isotone: Run, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from isotone.moving import copying as copies

    apply = copies.apply_settings

    def interrupted(*arguments: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return apply(*arguments, **options)

    monkeypatch.setattr(copies, "apply_settings", interrupted)
    done = isotone("copy", shop, tmp_path / "target.db")
    assert (done.code, done.err) == (0, "")
    assert isotone("diff", shop, tmp_path / "target.db").code == 0


@pytest.mark.parametrize("module", [copying, item_files])
def test_a_job_that_ends_before_its_result_is_printed_is_complete_the_next_time(
    isotone: Run, shop: Path, tmp_path: Path, module: Any, state_folder: Path
) -> None:
    """The process is killed after all is done, and before anybody knows."""
    target = tmp_path / "target.db"
    words = {
        copying: ("copy", shop, target, "--json"),
        item_files: ("export", shop, "Orders", tmp_path / "orders.jsonl", "--json"),
    }[module]
    with pytest.MonkeyPatch.context() as patch:

        def killed(_: object) -> str:
            raise KeyboardInterrupt

        patch.setattr(module, "_json_of", killed)
        assert isotone(*words).code == 130
    assert list(state_folder.glob("isotone/*.json"))
    again = isotone(*words)
    assert (again.code, again.err) == (0, "")
    assert json.loads(again.out)["is_complete"]
    assert not list(state_folder.glob("isotone/*"))
    later = isotone(*words)
    assert later.code == 1
    assert "--into-existing" in later.err or "--force" in later.err


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", ["orders.jsonl", "orders.csv", "orders.jsonl.gz", "folder/"])
def test_an_export_that_dies_around_its_last_step_is_complete_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, name: str
) -> None:
    source, target, state = tmp_path / "source.db", f"{tmp_path}/{name}", tmp_path / "state.json"
    with package.open(source) as database:
        create(database)
        fill(database, 50)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        if place == "before":
            patch.setattr(FileOutput, "finish", killed)
        with pytest.raises(Killed):
            export_items(source, NAME, target, state=state, on_complete=killed)
    done = export_items(source, NAME, target, state=state)
    assert done.is_complete
    assert done.items == 50
    assert not state.exists()
    assert not list(tmp_path.rglob("*.part"))
    if name == "orders.jsonl":
        assert len((tmp_path / name).read_text().splitlines()) == 50
