"""What needs an extra says which one to install, and an extra has the packages that are then missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.packaging.lowest import PROJECT, extras, lowest

EXTRAS = extras(PROJECT.read_text(encoding="utf-8"))

_AIO = """
import asyncio
from isotone.testing import fixture_clients
async def use(made):
    async with made:
        pass
asyncio.run(use(fixture_clients.{}(None, "eu-west-1")))
"""


class Use(NamedTuple):
    """A program that needs an extra, and the modules that only the extra installs."""

    extra: str
    modules: str
    program: str


USES = [
    Use("aioboto3", "aioboto3 aiobotocore", _AIO.format("aio_client")),
    Use("aioboto3", "aioboto3 aiobotocore", _AIO.format("aio_resource")),
    Use("azure", "aiohttp azure", "import isotone; isotone.connect('azure-table://127.0.0.1:1')"),
    Use("boto3", "boto3 botocore", "from isotone.testing import attach"),
    Use(
        "boto3",
        "boto3 botocore",
        "from isotone.testing import mock_dynamodb; mock_dynamodb().start()",
    ),
    Use("boto3", "boto3 botocore", "from isotone.testing.fixture_clients import FixtureClients"),
    Use(
        "boto3",
        "boto3 botocore",
        "import isotone; isotone.connect('dynamodb://eu-west-1?profile=a')",
    ),
    Use("mcp", "mcp", "from isotone.cli.mcp import check_installed; check_installed()"),
    Use("otel", "opentelemetry", "import isotone; isotone.to_spans()"),
    Use(
        "otel",
        "opentelemetry",
        "from isotone.server.listener import _new_telemetry; _new_telemetry(None, None)",
    ),
    Use("parquet", "pyarrow", "from isotone.moving.parquet_files import _library; _library()"),
    Use(
        "plots",
        "matplotlib",
        "from isotone.advisor.simulation import plots; plots.save(None, 'a.png')",
    ),
    Use(
        "postgres",
        "psycopg",
        "import isotone; isotone.open('postgresql://127.0.0.1:1/app')",
    ),
    Use(
        "schema",
        "yaml",
        "from isotone.schema.yaml_text import parsed_yaml; parsed_yaml('', 'a.yaml')",
    ),
    Use("schema", "hcl2", "from isotone.schema.hcl import parsed_hcl; parsed_hcl('', 'a.tf')"),
    Use(
        "sqlalchemy",
        "sqlalchemy",
        "from isotone.structures import RelationalFollowers; RelationalFollowers(None, None, None)",
    ),
    Use(
        "zstd",
        "zstandard compression.zstd",
        "from isotone.exchange.compression import compressor; compressor('ZSTD')",
    ),
]
FASTER = {"vectors"}  # searches work without it


def run(program: str, modules: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python that does not have these modules."""
    without = f"import sys\nsys.modules.update(dict.fromkeys({modules.split()!r}))\n"
    command = [sys.executable, "-c", without + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("use", USES, ids=lambda use: f"{use.extra}: {use.program[-40:]}")
def test_without_an_extra_the_error_says_which_to_install(use: Use, tmp_path: Path) -> None:
    ran = run(use.program, use.modules, tmp_path)
    last = ran.stderr.strip().rpartition("\n")[2]
    assert last.startswith("isotone.errors.UsageError: "), ran.stderr
    assert f"pip install 'isotone[{use.extra}]'" in last


def test_each_extra_is_needed_by_something() -> None:
    assert {use.extra for use in USES} == EXTRAS.keys() - FASTER


def test_a_search_works_without_numpy(tmp_path: Path) -> None:
    program = """
from isotone.engine.vector_scores import numpy_if_installed
assert numpy_if_installed() is None
"""
    assert run(program, "numpy", tmp_path).returncode == 0


def test_the_lowest_version_of_each_dependency_is_that_of_its_bound() -> None:
    project = """
[project]
dependencies = ["a>=1.2", "b_c[d]>=3; python_version < '3.14'"]
[project.optional-dependencies]
more = ["e>=0.5"]
dev = ["f>=9"]
"""
    assert lowest(project) == ["a==1.2", "b_c==3; python_version < '3.14'", "e==0.5"]
    with pytest.raises(ValueError, match="one lower bound"):
        lowest(project.replace("e>=0.5", "e"))
