"""aws-sdk-dynamodb, AWS's new SDK for Python, in an environment of its own: it needs Python 3.12."""

from __future__ import annotations

import subprocess

import pytest
from tests.sdks.install import AWS_SDK, HERE, HOW

PYTHON = AWS_SDK / "bin" / "python"
STORY = HERE / "awssdk" / "story.py"
PARTS = ("tables", "items", "transactions", "statements", "backups")


@pytest.mark.skipif(not PYTHON.exists(), reason=f"aws-sdk-dynamodb is not installed; {HOW}")
def test_the_story(url: str, name: str) -> None:
    done = subprocess.run(
        [str(PYTHON), str(STORY), url, name], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [f"{part}: passed" for part in PARTS]
