"""The versions in a report, and peers that are half installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import peers, versions

NAMED = '[v1]\n"dynoxide-rs 3.2.0 (registry)" = ["dynoxide"]\n'


@pytest.mark.parametrize(("record", "version"), [("", "absent"), (NAMED, "3.2.0")])
def test_a_peer_without_a_whole_record_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record: str, version: str
) -> None:
    monkeypatch.setattr(peers, "PEERS", tmp_path)
    (tmp_path / "dynoxide").mkdir()
    (tmp_path / "dynoxide" / ".crates.toml").write_text(record)
    assert versions.versions()["dynoxide"] == version
