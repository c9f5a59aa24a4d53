"""The JavaScript SDK, v3, under node's own test runner."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from tests.sdks.install import HERE, HOW, JAVASCRIPT

NODE = shutil.which("node")
SUITE = HERE / "javascript" / "orders.test.mjs"
LEAST = 20  # `toSorted` and a settled `node:test`


def node_version() -> int:
    answer = subprocess.run([str(NODE), "--version"], capture_output=True, text=True, check=True)
    return int(answer.stdout.lstrip("v").split(".")[0])


@pytest.mark.skipif(NODE is None, reason="there is no node")
@pytest.mark.skipif(
    not (JAVASCRIPT / "node_modules").exists(),
    reason=f"the JavaScript SDK is not installed; {HOW}",
)
def test_the_suite_in_javascript(url: str) -> None:
    if node_version() < LEAST:
        pytest.skip(f"node is older than {LEAST}")
    done = subprocess.run(
        [str(NODE), "--test", str(SUITE)],
        env={**os.environ, "ISOTONE_URL": url, "ISOTONE_JS": str(JAVASCRIPT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 0" not in done.stdout
