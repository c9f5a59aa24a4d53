"""A suite of 300 small tests, each in its own mock, by pytest: moto's `mock_aws` against Isotone's.

Both run in the same Python with the same boto3, one after the other; the time is that of the whole command. moto comes
from the environment of the peers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from bench.measuring import QUICK, Effort, Row, Target
from bench.peers import MOTO, ROOT

MEASURE = "300 small tests, each in its own mock"
OURS, THEIRS = "Isotone mock_aws", "moto mock_aws"
TARGETS = (Target(MEASURE, OURS, "at most", 0.5, THEIRS),)

_MODULES = {OURS: "isotone.testing", THEIRS: "moto"}
_SUITE = """
import boto3
import pytest
from {module} import mock_aws


@mock_aws
@pytest.mark.parametrize("number", range({tests}))
def test_order(number):
    client = boto3.client("dynamodb", region_name="us-east-1")
    client.create_table(
        TableName="orders",
        KeySchema=[
            {{"AttributeName": "customer", "KeyType": "HASH"}},
            {{"AttributeName": "number", "KeyType": "RANGE"}},
        ],
        AttributeDefinitions=[
            {{"AttributeName": "customer", "AttributeType": "S"}},
            {{"AttributeName": "number", "AttributeType": "N"}},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    order = {{"customer": {{"S": "ann"}}, "number": {{"N": str(number)}}}}
    client.put_item(TableName="orders", Item=order)
    found = client.query(
        TableName="orders",
        KeyConditionExpression="customer = :customer",
        ExpressionAttributeValues={{":customer": {{"S": "ann"}}}},
    )
    assert found["Items"] == [order]
"""


def run(effort: Effort) -> list[Row]:
    if not MOTO.exists():
        return [Row(MEASURE, name, "s", absent="moto is not installed") for name in _MODULES]
    tests = 30 if effort == QUICK else 300
    samples: dict[str, list[float]] = {name: [] for name in _MODULES}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(effort.rounds):
            for name, module in _MODULES.items():
                suite = Path(folder, f"test_with_{module.partition('.')[0]}.py")
                suite.write_text(_SUITE.format(module=module, tests=tests), encoding="utf-8")
                samples[name].append(_seconds(suite))
    return [Row(MEASURE, name, "s", taken) for name, taken in samples.items()]


def _seconds(suite: Path) -> float:
    """How long pytest takes for a suite."""
    ours = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    environment = {**os.environ, "PYTHONPATH": ours, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(suite.parent)]
    command = [str(MOTO / "python"), "-m", "pytest", *options, str(suite)]
    began = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{suite.name} failed on {sys.executable}:\n{done.stdout[-2000:]}")
    return took
