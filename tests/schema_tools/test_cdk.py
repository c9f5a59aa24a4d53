"""The AWS CDK synthesizes our stacks, and the templates that it makes define the tables that were written."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.schema_tools.definitions import sources
from tests.schema_tools.install import HERE, HOW, PYTHON_TOOLS, TYPESCRIPT_CDK

from isotone.schema.deployable import DeployableTable
from isotone.schema.formats import FORMATS, read_file, written

NODE = shutil.which("node")
PYTHON = PYTHON_TOOLS / "bin" / "python"
COMPILER = TYPESCRIPT_CDK / "node_modules" / "typescript" / "bin" / "tsc"
pytestmark = pytest.mark.skipif(NODE is None, reason="there is no node, which the CDK runs on")


def write_stacks(folder: Path, name: str) -> dict[str, list[DeployableTable]]:
    form = FORMATS[name]
    tables = sources()
    for source, each in tables.items():
        path = folder / f"{source}{form.endings[0]}"
        path.write_text(written(each, form)[0], encoding="utf-8")
    return tables


def check_templates(folder: Path, tables: dict[str, list[DeployableTable]]) -> None:
    for source, each in tables.items():
        found = read_file(str(folder / f"{source}.json"), {})
        assert found.tables == each, source
        assert found.notes == [], source


def run(*command: object, **environment: str) -> None:
    words: Sequence[str] = [str(word) for word in command]
    done = subprocess.run(
        words, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not PYTHON.exists(), reason=f"the CDK in Python is not installed; {HOW}")
def test_stacks_in_python_are_synthesized_to_the_same_tables(tmp_path: Path) -> None:
    tables = write_stacks(tmp_path, "cdk-python")
    run(PYTHON, HERE / "synthesize.py", tmp_path, JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION="1")
    check_templates(tmp_path, tables)


@pytest.mark.skipif(not COMPILER.exists(), reason=f"the CDK in TypeScript is not installed; {HOW}")
def test_stacks_in_typescript_compile_and_are_synthesized_to_the_same_tables(
    tmp_path: Path,
) -> None:
    tables = write_stacks(tmp_path, "cdk-typescript")
    (tmp_path / "node_modules").symlink_to(TYPESCRIPT_CDK / "node_modules")
    files = [tmp_path / f"{source}.ts" for source in tables]
    options = ["--strict", "--skipLibCheck", "--module", "commonjs", "--target", "es2022"]
    run(NODE, COMPILER, *options, *files)
    shutil.copy(HERE / "cdk" / "synthesize.cjs", tmp_path)
    run(NODE, tmp_path / "synthesize.cjs", tmp_path)
    check_templates(tmp_path, tables)
