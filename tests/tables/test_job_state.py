"""The state of a job survives the job, and belongs to one process at a time."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isotone.errors import InProgress, UsageError
from isotone.tables.job_state import JobState, address_text, default_path

JOB = ("copy", "a.db", "b.db")


def test_entries_survive_and_the_file_is_deleted_with_the_last(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "job.json"
    with JobState(path, JOB) as state:
        assert state.get("Orders", dict) is None
        state.set("Orders", {"at": 1})
        state.set("Users", {"at": 2})
    with JobState(path, JOB) as state:
        assert state.names == ["Orders", "Users"]
        assert state.get("Orders", dict[str, int]) == {"at": 1}
        state.drop("Orders", "Users")
    assert list(path.parent.iterdir()) == []


def test_two_runs_of_a_job_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    with JobState(path, JOB) as state:
        state.set("Orders", {})
        with pytest.raises(InProgress, match="another process"), JobState(path, JOB):
            pass
    with JobState(path, JOB):
        pass


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    with JobState(path, JOB) as state:
        state.set("Orders", {})
    with pytest.raises(UsageError, match="another job"), JobState(path, ("copy", "x", "y")):
        pass
    path.write_text("{]")
    with pytest.raises(UsageError, match="not the state of a job"), JobState(path, JOB):
        pass


def test_a_changed_entry_is_refused(tmp_path: Path) -> None:
    """Any change of an entry that is still JSON: a job that trusts it leaves items out."""
    path = tmp_path / "job.json"
    with JobState(path, JOB) as state:
        state.set("Orders", {"segments": [{"after": {"id": {"S": "k11028"}}, "is_over": False}]})
    saved = path.read_text()
    for old, new in (("k11028", "k91028"), ("false", "true"), ('"Orders"', '"Others"')):
        assert old in saved
        path.write_text(saved.replace(old, new))
        with (
            pytest.raises(UsageError, match=r"job.json is damaged; delete it"),
            JobState(path, JOB),
        ):
            pass
    path.write_text(saved)
    with JobState(path, JOB) as state:
        assert state.names == ["Orders"]


def test_memory_and_objects_have_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert address_text(":memory:") is None
    assert address_text(object()) is None
    assert address_text("shop.db") == str(tmp_path / "shop.db")
    assert address_text(Path("shop.db")) == str(tmp_path / "shop.db")
    assert address_text("http://localhost:8000") == "http://localhost:8000"
    assert default_path(JOB) == default_path(JOB)
    assert default_path(JOB) != default_path(("copy", "b.db", "a.db"))


def test_without_a_path_entries_are_kept_for_the_run() -> None:
    with JobState(None, JOB) as state:
        state.set("Orders", 1)
        assert state.get("Orders", int) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_a_state_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with JobState(path, ("copy", "a", "b")) as state:
        state.set("Orders", {"after": {"email": {"S": "ann@example.com"}}})
        assert path.stat().st_mode & 0o077 == 0


def test_an_entry_of_another_form_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    with JobState(path, ("copy", "a", "b")) as state:
        state.set("Orders", {"items": "many"})
        with pytest.raises(UsageError, match="delete it to start from the beginning"):
            state.get("Orders", dict[str, int])


def test_a_file_of_another_program_is_neither_a_lock_nor_overwritten(tmp_path: Path) -> None:
    """`--state poetry` would delete poetry.lock at the end."""
    for name in ("poetry.lock", "poetry.new"):
        other = tmp_path / name
        other.write_text("precious")
        with pytest.raises(UsageError, match=name), JobState(tmp_path / "poetry", JOB):
            pass
        assert other.read_text() == "precious"
        assert sorted(tmp_path.iterdir()) == [other]
        other.unlink()


@pytest.mark.parametrize("left", ["", '{"jo', '{"job":["copy"],"entr'])
def test_what_a_killed_run_has_left_is_no_obstacle(tmp_path: Path, left: str) -> None:
    (tmp_path / "job.json.new").write_text(left)
    (tmp_path / "job.json.lock").touch()
    with JobState(tmp_path / "job.json", JOB) as state:
        state.set("Orders", {})
        state.drop("Orders")
    assert not (tmp_path / "job.json").exists()
