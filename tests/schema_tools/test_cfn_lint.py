"""cfn-lint, which has CloudFormation's own schemas, finds nothing in our templates."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.schema.tables import VECTORS
from tests.schema_tools.definitions import sources
from tests.schema_tools.install import HOW, PYTHON_TOOLS

from isotone.schema.formats import FORMATS, written

LINT = PYTHON_TOOLS / "bin" / "cfn-lint"
pytestmark = pytest.mark.skipif(not LINT.exists(), reason=f"cfn-lint is not installed; {HOW}")


# It wants each attribute that is defined in a key, and does not count the search schema of a vector index.
NOT_FOR_VECTORS = ("--ignore-checks", "E3039")


def lint(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    files = map(str, sorted(folder.iterdir()))
    command = [str(LINT), "--format", "parseable", *options, "--", *files]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", ["cloudformation", "cloudformation-json", "sam"])
def test_nothing_is_found_in_our_templates(name: str, tmp_path: Path) -> None:
    form = FORMATS[name]
    for source, tables in sources().items():
        path = tmp_path / f"{source}{form.endings[0]}"
        keyed = [table for table in tables if table != VECTORS]
        path.write_text(written(keyed, form)[0], encoding="utf-8")
    done = lint(tmp_path)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_nothing_else_is_found_in_a_table_with_vectors(tmp_path: Path) -> None:
    text = written([VECTORS], FORMATS["cloudformation"])[0]
    (tmp_path / "vectors.yaml").write_text(text, "utf-8")
    done = lint(tmp_path, *NOT_FOR_VECTORS)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_a_wrong_template_is_found(tmp_path: Path) -> None:
    text = written(sources()["features"], FORMATS["cloudformation"])[0]
    (tmp_path / "wrong.yaml").write_text(text.replace("KeyType: HASH", "KeyType: HUSH"), "utf-8")
    done = lint(tmp_path)
    assert done.returncode != 0
    assert "HUSH" in done.stdout
