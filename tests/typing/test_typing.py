"""Wrong uses of the modelling library are type errors, line by line, and right ones are not.

A line of `cases/` that ends in `# E: words` has to be refused by mypy with these words, and by pyright, and
no other line may be. `# E(pyright)` marks what mypy does not see. pyright comes from npm into `.peers/`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = sorted((HERE / "cases").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").rglob("*.py"))

_EXPECTED = re.compile(r"# E(?P<by>\(pyright\))?(?:: (?P<words>.*))?$")
_FOUND = re.compile(r"^(?P<path>.+?):(?P<line>\d+): error: (?P<message>.*)$")

Places = dict[tuple[str, int], str]


def expected(checker: str) -> Places:
    """The words for each line that has to be refused."""
    found: Places = {}
    for path in CASES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            mark = _EXPECTED.search(line)
            if mark is not None and not (mark["by"] and checker == "mypy"):
                found[path.name, number] = mark["words"] or ""
    return found


@pytest.fixture(scope="module")
def faults() -> dict[str, Places]:
    """What mypy in strict mode says of the cases and of the examples, as their users run it."""
    cache = ROOT / ".mypy_cache" / "typing"
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={cache}"]
    run = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, [*CASES, *EXAMPLES])],
        cwd=HERE / "cases",
        env={**os.environ, "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, Places] = {"cases": {}, "examples": {}}
    for line in run.stdout.splitlines():
        if error := _FOUND.match(line):
            path = (HERE / "cases" / error["path"]).resolve()
            places, place = found.setdefault(path.parent.name, {}), (path.name, int(error["line"]))
            places[place] = f"{places.get(place, '')}{error['message']}\n"
    return found


def pyright() -> Places:
    """What pyright says of the cases and the examples, by the project file beside this one."""
    program = shutil.which("pyright", path=ROOT / ".peers/pyright/node_modules/.bin")
    if program is None:
        pytest.skip("pyright is not installed: npm install --prefix .peers/pyright pyright")
    run = subprocess.run(
        [program, "--project", str(HERE), "--outputjson", "--pythonpath", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )
    found: Places = {}
    for each in json.loads(run.stdout)["generalDiagnostics"]:
        if each["severity"] == "error":
            place = Path(each["file"]).name, each["range"]["start"]["line"] + 1
            found[place] = f"{found.get(place, '')}{each['message']}\n"
    return found


def test_mypy_refuses_what_is_wrong_and_says_why(faults: dict[str, Places]) -> None:
    wanted, found = expected("mypy"), faults["cases"]
    assert found.keys() == wanted.keys()
    for place, words in wanted.items():
        assert words in found[place], place


def test_mypy_accepts_the_examples(faults: dict[str, Places]) -> None:
    assert EXAMPLES
    assert {name for name, places in faults.items() if places} <= {"cases"}, faults


def test_pyright_refuses_what_is_wrong_and_accepts_the_examples() -> None:
    assert pyright().keys() == expected("pyright").keys()


def test_there_is_something_to_refuse() -> None:
    assert len(expected("mypy")) > 60
