"""The first calls of a process may come from several threads at the same time."""

from __future__ import annotations

import subprocess
import sys

# In a process of its own, because a failure is a crash. Each reload makes the next call the first one.
PROGRAM = """
import importlib, sys, threading
from concurrent.futures import ThreadPoolExecutor
from isotone.client import parameters

sys.setswitchinterval(1e-6)
request = {"TransactItems": [{"Put": {"TableName": "shop", "Item": {"PK": {"S": "a"}}}}]}
with ThreadPoolExecutor(8) as pool:
    for _ in range(20):
        importlib.reload(parameters)
        together = threading.Barrier(8)

        def call(_):
            together.wait()
            return parameters.encode_request("TransactWriteItems", request)

        assert len(set(pool.map(call, range(8)))) == 1
"""


def test_first_calls_from_several_threads() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
