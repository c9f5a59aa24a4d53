"""The two files that a release uploads: what is in them, and that they are the same however they are made."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest

import isotone

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "isotone"
BESIDE = {"pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", ".gitignore"}
EXTRAS = {
    "aioboto3",
    "azure",
    "boto3",
    "mcp",
    "otel",
    "parquet",
    "plots",
    "postgres",
    "schema",
    "sqlalchemy",
    "vectors",
    "zstd",
}


def build(tree: Path, into: Path, kind: str) -> Path:
    """A wheel or an sdist of a tree, with the backend that is installed."""
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(into)]
    subprocess.run([*command, str(tree)], check=True, capture_output=True)
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


def source_files() -> set[str]:
    """What a user needs: the modules, their types' marker, and the pages of the workbench."""
    return {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name.removeprefix("isotone/") for name in names if name.startswith("isotone/")}
    assert package == source_files()
    assert {"py.typed", "workbench/static/index.html"} < package
    assert {name.split("/")[0] for name in names} == {
        "isotone",
        f"isotone-{isotone.__version__}.dist-info",
    }


def test_an_sdist_has_what_a_wheel_is_made_of_and_nothing_else(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    package = {name.removeprefix("src/isotone/") for name in names if name.startswith("src/")}
    assert package == source_files()
    assert {name for name in names if not name.startswith("src/")} == BESIDE


def test_a_wheel_made_of_the_sdist_is_the_same(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "tree", filter="data")
    (tree,) = (tmp_path / "tree").iterdir()
    assert build(tree, tmp_path / "again", "wheel").read_bytes() == wheel.read_bytes()


def test_an_extra_is_named_in_the_metadata_and_only_developers_need_more(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        about = BytesParser().parsebytes(
            archive.read(f"isotone-{isotone.__version__}.dist-info/METADATA")
        )
    assert set(about.get_all("Provides-Extra", [])) == EXTRAS | {"dev"}
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "Apache-2.0"
    assert (about["Name"], about["Version"]) == ("isotone", isotone.__version__)


@pytest.mark.parametrize("target", ["lowest", "quick", "suites", "oracle", "redis"])
def test_the_makefile_names_tests_that_exist(target: str) -> None:
    """Some targets are run so rarely that a renamed file would be noticed late."""
    command = ["make", "--dry-run", target]
    made = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    named = set(re.findall(r"\btests/[\w/.]+", made))
    assert named
    assert [each for each in named if not (ROOT / each).exists()] == []
