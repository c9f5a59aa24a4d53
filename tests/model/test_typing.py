"""What type checkers see: mypy always, pyright where it is installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TYPED = Path(__file__).parent / "typed"
RIGHT, WRONG = TYPED / "right.py", TYPED / "wrong.py"


def marked(path: Path) -> set[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}


def by_mypy() -> dict[Path, set[int]]:
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(RIGHT), str(WRONG)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=None)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[Path, set[int]] = {RIGHT: set(), WRONG: set()}
    for path, line in re.findall(r"^(\S+?):(\d+): error", run.stdout, re.M):
        found[(ROOT / path).resolve()].add(int(line))
    return found


def by_pyright() -> dict[Path, set[int]]:
    pyright = shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, str(RIGHT), str(WRONG)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    found: dict[Path, set[int]] = {RIGHT: set(), WRONG: set()}
    for each in json.loads(run.stdout)["generalDiagnostics"]:
        if each["severity"] == "error":
            found[Path(each["file"])].add(each["range"]["start"]["line"] + 1)
    return found


@pytest.mark.parametrize("check", [by_mypy, by_pyright])
def test_type_checkers_refuse_what_is_wrong_and_nothing_else(check: object) -> None:
    found = check()  # type: ignore[operator]
    assert found[RIGHT] == set()
    assert found[WRONG] == marked(WRONG)
