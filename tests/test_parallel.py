"""Tests in several processes: none is lost, whatever happens to a process."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
CONFTEST = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from tests.parallel import pytest_addoption, pytest_runtestloop
"""
TESTS = """
import os, pytest

@pytest.fixture(scope="session")
def folder():
    yield
    open(f"torn_down.{os.getpid()}", "w").close()

@pytest.mark.parametrize("number", range(40))
def test_passes(number, folder, tmp_path):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()

def test_fails():
    print("what it has printed")
    assert 1 == 2

def test_dies():
    os._exit(3)

def test_is_skipped():
    pytest.skip("for a reason")

@pytest.mark.xfail(strict=True)
def test_fails_as_expected():
    assert 1 == 2

@pytest.mark.parametrize("number", range(40))
def test_passes_too(number, folder):
    pass
"""


def test_each_test_is_run_and_reported(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    lean = ("-p", "no:hypothesispytest", "-p", "no:xdist")
    run = pytester.runpytest_subprocess("--processes", "2", "-rfs", *lean)
    run.assert_outcomes(passed=80, failed=2, skipped=1, xfailed=1)
    run.stdout.fnmatch_lines(["what it has printed"])
    run.stdout.fnmatch_lines(["the process that ran it has ended with exit code 3"])
    run.stdout.fnmatch_lines(["*for a reason*"])
    assert list(pytester.path.glob("torn_down.*"))
