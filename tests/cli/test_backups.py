"""`isotone backup`, `restore` and `compact`: what they say, and their exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run


def test_a_backup_and_its_restore(isotone: Run, shop: Path, tmp_path: Path) -> None:
    copy, new = tmp_path / "copy.db", tmp_path / "new.db"
    code, out, err = isotone("backup", shop, copy)
    assert (code, err) == (0, "")
    assert out.startswith(f"{shop} was backed up to {copy} (")
    code, out, err = isotone("backup", shop, copy)
    assert (code, out) == (1, "")
    assert err == f"isotone: {copy} exists; --force (force=True) replaces it\n"
    assert isotone("backup", shop, copy, "--force", "--quiet") == (0, "", "")
    assert isotone("delete", shop, "Orders", "ann", "2026-01-01").code == 0
    result = json.loads(isotone("backup", shop, copy, "--update", "--json").out)
    assert result["size"] == copy.stat().st_size
    code, out, _ = isotone("restore", copy, new)
    assert code == 0
    assert out.startswith(f"{new} was restored from {copy} (")
    assert "4 items" in isotone("query", new, "Orders", "customer=ann").out
    assert isotone("restore", copy, new).code == 1
    assert isotone("restore", copy, new, "--force", "--quiet") == (0, "", "")


def test_compaction_prints_both_sizes(isotone: Run, shop: Path) -> None:
    code, out, err = isotone("compact", shop)
    assert (code, err) == (0, "")
    assert out.startswith(f"{shop}: ")
    assert " before, " in out
    sizes = json.loads(isotone("compact", shop, "--json").out)
    assert sizes["before"] == sizes["after"] == shop.stat().st_size


def test_a_missing_file_is_named(isotone: Run, tmp_path: Path) -> None:
    missing = tmp_path / "none.db"
    for command in (
        ("backup", missing, "x.db"),
        ("restore", missing, "x.db"),
        ("compact", missing),
    ):
        assert isotone(*command) == (1, "", f"isotone: there is no file {missing}\n")
