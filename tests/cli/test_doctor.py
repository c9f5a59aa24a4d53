"""`isotone doctor`: what a bug report needs, and nothing that is secret."""

from __future__ import annotations

import json
import os

import pytest

from isotone import __version__


def test_doctor_shows_versions_system_and_the_state_of_a_file(isotone, shop):
    report = json.loads(isotone("doctor", shop, "--json").out)
    assert report["versions"]["isotone"] == __version__
    assert report["system"]["cores"] >= 1
    assert report["file"]["bytes"] == shop.stat().st_size
    assert (report["file"]["tables"], report["file"]["writable"]) == (1, True)
    assert "it opens" in report["file"]["state"]
    shown = isotone("doctor", shop)
    assert shown.code == 0
    assert "  tables                  1\n" in shown.out


def test_a_file_that_cannot_be_opened_is_described(isotone, tmp_path):
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"no database" * 1000)
    found = json.loads(isotone("doctor", bad, "--json").out)["file"]
    assert found["bytes"] == 11_000
    assert "tables" not in found
    assert "bad.db" in found["state"]
    assert bad.read_bytes() == b"no database" * 1000


def test_a_missing_file_is_not_made(isotone, tmp_path):
    assert "there is no such file" in isotone("doctor", tmp_path / "missing.db").out
    assert not (tmp_path / "missing.db").exists()


@pytest.mark.skipif(os.name == "nt", reason="pipes as POSIX has them")
def test_what_is_no_file_is_said_to_be_none(isotone, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name, kind in (("pipe", "a pipe"), (".", "a folder")):
        code, _, err = isotone("doctor", tmp_path / name)
        assert code == 1
        assert f"{tmp_path / name} is {kind}, not a regular file" in err


def test_of_variables_only_the_names_are_shown(isotone, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden-value")
    shown = isotone("doctor").out
    assert "AWS_SECRET_ACCESS_KEY" in shown
    assert "hidden-value" not in shown
