"""Wrong uses of the modelling library are type errors, line by line, and right ones are not. Pages are well typed.

A line of `cases/` that ends in `# E: words` has to be refused by mypy with these words, and by pyright, and
no other line may be. `# E(pyright)` marks what mypy does not see. Every name of the package has a type that all type
checkers infer alike. The package pyright fetches its program from npm when it first runs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import PAGES, ROOT
from tests.typing.checking import CASES, EXAMPLES, Finding, check, modules_of

HERE = Path(__file__).parent

_EXPECTED = re.compile(r"# E(?P<by>\(pyright\))?(?:: (?P<words>.*))?$")

Places = dict[tuple[str, int], str]

# What a page writes wrongly, to show what is said.
SHOWN = {
    ("docs/tutorial.md", '"nmae"'),
    ("docs/testing.md", "botocore"),
    ("docs/cookbook.md", '"tenant"'),
}


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    """What mypy finds; one run answers for all tests."""
    return check(tmp_path_factory.mktemp("typing").resolve())


def expected(checker: str) -> Places:
    """The words for each line that has to be refused."""
    found: Places = {}
    for path in CASES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            mark = _EXPECTED.search(line)
            if mark is not None and not (mark["by"] and checker == "mypy"):
                found[path.name, number] = mark["words"] or ""
    return found


def pyright(*options: str) -> Any:
    """What pyright says, run with these options."""
    # It takes the packages of the Python that it finds on the path.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", *options],
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    if not run.stdout.startswith("{"):
        pytest.skip(f"pyright cannot run here: {run.stderr.strip()[-300:]}")
    return json.loads(run.stdout)


def refused_by_pyright() -> Places:
    """What pyright refuses in the cases and the examples, by the project file beside this one."""
    found: Places = {}
    for each in pyright("--project", str(HERE))["generalDiagnostics"]:
        if each["severity"] == "error":
            place = Path(each["file"]).name, each["range"]["start"]["line"] + 1
            found[place] = f"{found.get(place, '')}{each['message']}\n"
    return found


def test_mypy_refuses_what_is_wrong_and_says_why(findings: list[Finding]) -> None:
    found: Places = {}
    for path, line, message in findings:
        if path in CASES:
            found[path.name, line] = f"{found.get((path.name, line), '')}{message}\n"
    wanted = expected("mypy")
    assert found.keys() == wanted.keys()
    for place, words in wanted.items():
        assert words in found[place], place


def test_mypy_accepts_the_examples(findings: list[Finding]) -> None:
    assert EXAMPLES
    known = {*CASES, *(found.path for found in findings if found.path.parent.name == "pages")}
    assert not [found for found in findings if found.path not in known]


def test_pyright_refuses_what_is_wrong_and_accepts_the_examples() -> None:
    assert refused_by_pyright().keys() == expected("pyright").keys()


def test_every_name_has_a_type_that_checkers_infer_alike() -> None:
    # The schemas of the demonstration declare keys as users do: `primary = Key(…)`.
    found = pyright("--verifytypes", "isotone", "--ignoreexternal")["typeCompleteness"]["symbols"]
    names = [each for each in found if not each["name"].startswith("isotone.demo.")]
    assert {"isotone.Store", "isotone.testing.mock_dynamodb"} <= {each["name"] for each in names}
    unclear = [each for each in names if not each["isTypeKnown"] or each["isTypeAmbiguous"]]
    reasons = [
        f"{each['name']}: {reason['message']}"
        for each in unclear
        for reason in each["diagnostics"]
        if not reason["message"].startswith("No docstring")
    ]
    assert not unclear, "\n".join(reasons)


def test_there_is_something_to_refuse() -> None:
    assert len(expected("mypy")) > 60


def test_pages_are_well_typed(findings: list[Finding]) -> None:
    pages = {name: page for page in PAGES for name in modules_of(page)}
    wrong = [
        f"{page}:{line}: {message}"
        for path, line, message in findings
        if path.parent.name == "pages" and (page := pages[path.name].name)
        if not any(page == name and words in message for name, words in SHOWN)
    ]
    assert not wrong, "\n".join(wrong)
