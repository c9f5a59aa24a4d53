"""cfn-lint, which has CloudFormation's own schemas, finds nothing in our templates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.schema_tools.definitions import sources
from tests.schema_tools.install import HOW, PYTHON_TOOLS

from isotone.schema.formats import FORMATS, written

LINT = PYTHON_TOOLS / "bin" / "cfn-lint"
pytestmark = pytest.mark.skipif(not LINT.exists(), reason=f"cfn-lint is not installed; {HOW}")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(LINT), "--format", "parseable", *map(str, sorted(folder.iterdir()))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["cloudformation", "cloudformation-json", "sam"])
def test_nothing_is_found_in_our_templates(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    for source, tables in sources().items():
        path = tmp_path / f"{source}{form.endings[0]}"
        path.write_text(written(tables, form)[0], encoding="utf-8")
    done = lint(tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_wrong_template_is_found(tmp_path: Path) -> None:
    text = written(sources()["features"], FORMATS["cloudformation"])[0]
    (tmp_path / "wrong.yaml").write_text(text.replace("KeyType: HASH", "KeyType: HUSH"), "utf-8")
    done = lint(tmp_path)
    assert done.returncode != 0
    assert "HUSH" in done.stdout
