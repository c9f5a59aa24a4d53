"""The lanes of `isotone serve FILE`: processes that start with the first long request, and of which none is left."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from tests import programs

from isotone.cli.database import connect

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

TABLE = {
    "TableName": "tab",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    "BillingMode": "PAY_PER_REQUEST",
}
ITEMS = 150
SCAN = {
    "TableName": "tab",
    "FilterExpression": "n < :n",
    "ExpressionAttributeValues": {":n": {"N": "1000"}},
}
BIG = {"p": {"S": "big"}}
LONG_WRITE = {
    "TableName": "tab",
    "Key": BIG,
    "UpdateExpression": "SET a = :one",
    "ConditionExpression": " OR ".join(f"contains(l, :v{number})" for number in range(60)),
    "ExpressionAttributeValues": {":one": {"N": "1"}}
    | {f":v{number}": {"N": str(-number)} for number in range(60)},
}


class Served:
    """A server of a file, its connection, and what it has started."""

    def __init__(self, process, url):
        self.process = process
        self.url = url

    def send(self, operation, request):
        with connect(self.url) as connection:
            return connection.execute(operation, request)

    def descendants(self, of=None):
        """The processes that it and they have started, but for those that have ended."""
        found = []
        number = self.process.pid if of is None else of
        children = Path(f"/proc/{number}/task/{number}/children")
        with contextlib.suppress(OSError):
            for child in map(int, children.read_text().split()):
                if " Z " not in Path(f"/proc/{child}/stat").read_text():
                    found += [child, *self.descendants(child)]
        return found


@pytest.fixture
def served(tmp_path):
    process = programs.isotone("serve", tmp_path / "f.db", "--port", 0, stderr=subprocess.PIPE)
    try:
        url = re.search(r"http://\S+:\d+", process.stdout.readline())[0]
        served = Served(process, url)
        served.send("CreateTable", TABLE)
        for start in range(0, ITEMS, 25):
            puts = [
                {"PutRequest": {"Item": {"p": {"S": str(number)}, "n": {"N": str(number)}}}}
                for number in range(start, start + 25)
            ]
            served.send("BatchWriteItem", {"RequestItems": {"tab": puts}})
        assert served.descendants() == []
        yield served
    finally:
        process.kill()
        process.communicate()


def gone(processes):
    """Wait until none of these processes is left."""
    deadline = time.monotonic() + 10
    while any(is_running(each) for each in processes):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_running(process):
    try:
        return " Z " not in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False


def test_a_long_read_starts_a_lane_and_a_short_one_does_not(served):
    assert served.send("Scan", {**SCAN, "Limit": 50})["Count"] == 50
    assert served.descendants() == []
    assert served.send("Scan", SCAN)["Count"] == ITEMS
    keeper, lane = served.descendants()
    served.send("PutItem", {"TableName": "tab", "Item": {"p": {"S": "new"}, "n": {"N": "0"}}})
    assert served.send("Scan", SCAN)["Count"] == ITEMS + 1  # it sees at once what was committed
    assert served.descendants() == [keeper, lane]


def test_a_long_write_is_seen_at_once_and_refused_like_a_short_one(served):
    item = {**BIG, "l": {"L": [{"N": str(number % 9)} for number in range(12_000)]}}
    served.send("PutItem", {"TableName": "tab", "Item": item})
    served.send("UpdateItem", LONG_WRITE)
    assert len(served.descendants()) == 2
    assert served.send("GetItem", {"TableName": "tab", "Key": BIG})["Item"]["a"] == {"N": "1"}
    wrong = json.loads(json.dumps(LONG_WRITE).replace(':v0": {"N": "0"}', ':v0": {"N": "77"}'))
    with pytest.raises(Exception, match="The conditional request failed"):
        served.send("UpdateItem", wrong)


def test_what_a_lane_consumes_is_in_the_metrics(served):
    def units():
        with urllib.request.urlopen(f"{served.url}/metrics") as page:
            text = page.read().decode()
        found = re.search(r'isotone_consumed_read_units_total\{.*table="tab".*\} (\S+)', text)
        return 0.0 if found is None else float(found[1])

    reported = served.send("Scan", {**SCAN, "ReturnConsumedCapacity": "TOTAL"})
    assert units() == reported["ConsumedCapacity"]["CapacityUnits"]
    served.send("Scan", SCAN)
    assert units() == 2 * reported["ConsumedCapacity"]["CapacityUnits"]


@pytest.mark.parametrize("killed", [[1], [0, 1], [0]], ids=["lane", "both", "keeper"])
def test_what_was_killed_is_replaced(served, killed):
    assert served.send("Scan", SCAN)["Count"] == ITEMS
    processes = served.descendants()
    for each in killed:
        os.kill(processes[each], signal.SIGKILL)
    gone([processes[each] for each in killed])
    for _ in range(3):
        assert served.send("Scan", SCAN)["Count"] == ITEMS


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_a_server_that_ended(served, number):
    assert served.send("Scan", SCAN)["Count"] == ITEMS
    processes = served.descendants()
    assert len(processes) == 2
    served.process.send_signal(number)
    served.process.wait(10)
    gone(processes)
    if number == signal.SIGTERM:
        assert (served.process.returncode, served.process.stderr.read()) == (0, "")
