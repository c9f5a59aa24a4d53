"""What is in the repository is what Vite builds of the sources."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from isotone.workbench.site import FILES

SOURCES = Path(__file__).parents[2] / "workbench"
VITE = SOURCES / "node_modules/.bin/vite"


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.skipif(
    shutil.which("node") is None or not VITE.exists(),
    reason="there is no Node, or nothing is installed: `cd workbench && npm ci`",
)
def test_the_built_files_are_those_of_the_sources(tmp_path):
    built = tmp_path / "static"
    command = [str(VITE), "build", "--outDir", str(built), "--logLevel", "error"]
    subprocess.run(command, cwd=SOURCES, check=True, timeout=120, env={**os.environ, "CI": "1"})
    assert files(built) == files(FILES), "the page is not built anew: `make workbench`"


def test_the_lock_file_names_no_registry():
    lock = json.loads((SOURCES / "package-lock.json").read_text())
    packages = lock["packages"]
    assert not [name for name, package in packages.items() if "resolved" in package]
    assert all("integrity" in package for name, package in packages.items() if name)
