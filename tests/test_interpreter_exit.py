"""Programs that end while something of ours runs in the background: each ends by itself, and keeps its data.

Each program ends with everything open, as after `sys.exit`. It is held by a generator or a variable, so that Python
cleans it up only when it has stopped the daemon threads already.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import isotone

LONGEST = 60.0  # seconds; an ending takes one at most, and the machine may be slow
BEGIN = """
import atexit, os, signal, socket, sys, threading, time
import isotone

FILE = "shop.db"
ITEMS = 2000
TEXT = {"AttributeName": "id", "AttributeType": "S"}
TABLE = {
    "TableName": "Orders", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [TEXT], "BillingMode": "PAY_PER_REQUEST",
}
INDEX = {
    "TableName": "Orders", "AttributeDefinitions": [TEXT, {"AttributeName": "at", "AttributeType": "S"}],
    "GlobalSecondaryIndexUpdates": [{"Create": {
        "IndexName": "by_at", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": "at", "KeyType": "HASH"}],
    }}],
}
held = []

def hold(generator):
    held.append(generator)
    return next(generator)

def fill(database):
    database.execute("CreateTable", TABLE)
    for first in range(0, ITEMS, 25):
        items = [{"id": {"S": str(each)}, "at": {"S": str(each)}} for each in range(first, first + 25)]
        database.execute("BatchWriteItem", {"RequestItems": {"Orders": [{"PutRequest": {"Item": each}} for each in items]}})

def opened(target=FILE, **options):
    with isotone.open(target, **options) as database:
        yield database

def connected(url):
    with isotone.connect(url) as store:
        yield store.backend

def running_server(database, **options):
    from isotone.server import running_server  # most programs have no server, and end sooner without it

    return running_server(database, **options)

def served(database, **options):
    with running_server(database, **options) as url:
        yield url
"""

SERVERS = {
    "held": "context = running_server(isotone.open()); context.__enter__(); sys.exit(0)",
    "not held": "running_server(isotone.open()).__enter__(); sys.exit(0)",
    "in a generator": "hold(served(hold(opened()))); sys.exit(0)",
    "threaded": "hold(served(hold(opened()), threaded=True)); sys.exit(0)",
    "in a daemon thread": """
begun = threading.Event()
def serve():
    with isotone.open() as database, running_server(database):
        begun.set()
        time.sleep(600)
threading.Thread(target=serve, daemon=True).start()
begun.wait()
sys.exit(0)""",
    "in a thread that outlives the main one": """
def serve():
    with isotone.open() as database, running_server(database):
        begun.set()
        threading.main_thread().join()
begun = threading.Event()
threading.Thread(target=serve).start()
begun.wait()
""",
    "in a coroutine": """
import asyncio
async def main():
    hold(served(hold(opened())))
    sys.exit(0)
asyncio.run(main())""",
    "with a connection": """
url = hold(served(hold(opened())))
client = socket.create_connection(url.removeprefix("http://").split(":"))
client.sendall(b"POST / HTTP/1.1\\r\\nHost: localhost\\r\\nContent-Length: 100\\r\\n\\r\\n")
sys.exit(0)""",
    "while a request is in a call": """
class Stopping(isotone.SystemClock):
    def now(self):
        if threading.current_thread().name == "isotone-server" and not reading.is_set():
            begun.set()
            time.sleep(600)
        return super().now()
reading = threading.Event()
reading.set()
begun = threading.Event()
url = hold(served(hold(opened(clock=Stopping()))))
reading.clear()
client = hold(connected(url))
threading.Thread(target=client.execute, args=("CreateTable", TABLE), daemon=True).start()
begun.wait()
sys.exit(0)""",
    "after an error": "hold(served(hold(opened()))); raise SystemExit('an error')",
    "after Ctrl-C": "hold(served(hold(opened()))); signal.raise_signal(signal.SIGINT)",
    "stopped by the program at exit": """
context = running_server(isotone.open()); context.__enter__()
atexit.register(context.__exit__, None, None, None)
sys.exit(0)""",
    "stopped before": """
context = running_server(isotone.open()); context.__enter__()
context.__exit__(None, None, None)
sys.exit(0)""",
}

FORKS = {
    "a server": """
url = hold(served(isotone.open()))
child = os.fork()
if not child:
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
with isotone.connect(url) as store:
    pass
""",
    "a database with a worker": """
database = hold(opened(":memory:"))
fill(database)
database.start_maintenance()
child = os.fork()
if not child:
    database.execute("UpdateTable", INDEX)
    while database.execute("DescribeTable", {"TableName": "Orders"})["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] != "ACTIVE":
        time.sleep(0.01)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
""",
}

DATABASES = {
    "not closed": "database = isotone.open(FILE); fill(database); database.execute('UpdateTable', INDEX); sys.exit(0)",
    "in a generator": "database = hold(opened()); fill(database); database.execute('UpdateTable', INDEX); sys.exit(0)",
    "after an error": """
database = hold(opened())
fill(database)
database.execute("UpdateTable", INDEX)
raise SystemExit("an error")""",
    "at the end of the program": """
database = hold(opened())
fill(database)
database.execute("UpdateTable", INDEX)
database.start_maintenance()
""",
    "while items may expire": """
database = hold(opened())
fill(database)
database.execute("UpdateTimeToLive", {"TableName": "Orders", "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "until"}})
""",
    "in a rollback": """
def rolled_back():
    with isotone.open(FILE) as database:
        fill(database)
        with database.rolled_back():
            yield database
database = hold(rolled_back())
database.execute("PutItem", {"TableName": "Orders", "Item": {"id": {"S": "rolled back"}}})
sys.exit(0)""",
    "while a daemon thread reads": """
database = hold(opened())
fill(database)
def read():
    while True:
        database.execute("Scan", {"TableName": "Orders"})
for _ in range(3):
    threading.Thread(target=read, daemon=True).start()
sys.exit(0)""",
    "while a daemon thread is in a call": """
class Stopping(isotone.SystemClock):
    def now(self):
        if threading.current_thread().daemon:
            begun.set()
            time.sleep(600)
        return super().now()
begun = threading.Event()
database = hold(opened(clock=Stopping()))
fill(database)
threading.Thread(target=database.execute, args=("CreateTable", TABLE | {"TableName": "More"}), daemon=True).start()
begun.wait()
sys.exit(0)""",
    "with a server": """
database = hold(opened())
hold(served(database))
fill(database)
database.execute("UpdateTable", INDEX)
sys.exit(0)""",
    "with a job that waits for S3": """
deaf = socket.create_server(("127.0.0.1", 0))
credentials = isotone.Credentials("a", "b")
buckets = isotone.S3(f"http://127.0.0.1:{deaf.getsockname()[1]}", credentials=credentials)
database = hold(opened(s3=buckets))
fill(database)
database.execute("UpdateContinuousBackups", {"TableName": "Orders", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}})
arn = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]["TableArn"]
database.execute("ExportTableToPointInTime", {"TableArn": arn, "S3Bucket": "exports"})
deaf.accept()
sys.exit(0)""",
}

BEGIN_MODEL = """
from isotone import Attr, Entity, Key, Table, field
from isotone.structures import Lock, Worker

site = Table("site", stream="NEW_AND_OLD_IMAGES")

class Post(Entity, table=site):
    number: Attr[int] = field(max=9999)
    primary = Key("POST", number).sort("POST")

store = isotone.connect("posts.db")
worker = Worker("fan-out", site)
worker.create_tables(store)
store.put_many(Post(number=number) for number in range(200))
"""

STRUCTURES = {
    "a lock": """
def locked():
    with Lock(store, "job", table=site, lease=1.5).held(every=0.001):
        yield
hold(locked())
time.sleep(0.05)
sys.exit(0)""",
    "a lock, at the end of the program": """
def locked():
    with Lock(store, "job", table=site, lease=1.5).held(every=0.001):
        yield
hold(locked())
""",
    "a worker": """
begun = threading.Event()
@worker.on(Post)
def handle(event, context):
    begun.set()
def working():
    with worker.start(store):
        yield
hold(working())
begun.wait()
sys.exit(0)""",
    "a worker whose handler does not end": """
begun = threading.Event()
@worker.on(Post)
def handle(event, context):
    begun.set()
    time.sleep(600)
def working():
    with worker.start(store):
        yield
hold(working())
begun.wait()
sys.exit(0)""",
    "a scan": "posts = store.scan(Post.primary.scan(), segments=4); next(posts); sys.exit(0)",
    "an async scan": """
import asyncio
async def main():
    async with isotone.aconnect("posts.db") as store:
        posts = store.scan(Post.primary.scan(), segments=4)
        await anext(posts)
        held.append(posts)
        sys.exit(0)
asyncio.run(main())""",
}


def end(folder: Path, program: str, *, status: int = 0) -> None:
    """Run a program, which must end by itself."""
    # Python 3.12 and later warn of every fork beside threads, which is what is tried here.
    words = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", BEGIN + program]
    with subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, complaints = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert process.returncode == status, complaints
    assert status or complaints == ""


@pytest.mark.parametrize("program", SERVERS)
def test_a_program_with_a_server_ends(tmp_path, program):
    status = {"after an error": 1, "after Ctrl-C": -signal.SIGINT}.get(program, 0)
    end(tmp_path, SERVERS[program], status=status)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("program", FORKS)
def test_a_forked_process_ends(tmp_path, program):
    end(tmp_path, FORKS[program])


@pytest.mark.parametrize("program", DATABASES)
def test_a_program_with_a_database_ends_and_loses_nothing(tmp_path, program):
    end(tmp_path, DATABASES[program], status=1 if program == "after an error" else 0)
    with isotone.open(tmp_path / "shop.db") as database:
        database.finish_maintenance()
        assert database.check() == []
        table = database.execute("DescribeTable", {"TableName": "Orders"})["Table"]
        assert [each["IndexStatus"] for each in table.get("GlobalSecondaryIndexes", [])] in (
            [],
            ["ACTIVE"],
        )
        assert database.execute("Scan", {"TableName": "Orders", "Select": "COUNT"})["Count"] == 2000


@pytest.mark.parametrize("program", STRUCTURES)
def test_a_program_with_a_structure_ends(tmp_path, program):
    end(tmp_path, BEGIN_MODEL + STRUCTURES[program])
    with isotone.open(tmp_path / "posts.db") as database:
        assert database.check() == []


def test_a_program_that_is_killed_by_ctrl_c_in_a_block_ends(tmp_path):
    program = """
database = hold(opened())
fill(database)
with running_server(database) as url:
    threading.Timer(0.2, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT]).start()
    time.sleep(600)"""
    end(tmp_path, program, status=-signal.SIGINT)
