"""How fast ImportTable and StartBulkPutItems fill a file with durability "disk", without and with an index.

    python -m bench.importing [--items 1000000] [--folder /tmp]

Writes gzipped DynamoDB JSON in four objects, loads it as a server does (one background thread), and reads another
table from a second thread every ten milliseconds. The clock depends on what else the machine does, so the processor time of
the process is printed with it, and the speed of an empty loop. The index is a global one of keys only.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isotone

OBJECTS = 4
KEYS = [
    {"AttributeName": "pk", "KeyType": "HASH"},
    {"AttributeName": "sk", "KeyType": "RANGE"},
]
TYPES = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
TABLE: dict[str, Any] = {
    "KeySchema": KEYS,
    "AttributeDefinitions": TYPES,
    "BillingMode": "PAY_PER_REQUEST",
}
INDEXED: dict[str, Any] = {
    **TABLE,
    "AttributeDefinitions": [
        *TYPES,
        {"AttributeName": "status", "AttributeType": "S"},
        {"AttributeName": "at", "AttributeType": "S"},
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by_status_and_time",
            "KeySchema": [
                {"AttributeName": "status", "KeyType": "HASH"},
                {"AttributeName": "at", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def line(number: int) -> str:
    """An order of about 190 bytes."""
    return (
        f'{{"Item":{{"pk":{{"S":"customer#{number // 10:08}"}},"sk":{{"S":"order#{number % 10:06}"}},'
        f'"status":{{"S":"SHIPPED-{number * 7919 % 1000}"}},"total":{{"N":"{number % 1000}.25"}},'
        f'"at":{{"S":"2026-01-{number % 28 + 1:02}T{number * 7 % 24:02}:00:00Z"}},"note":{{"S":"{"x" * 60}"}}}}}}\n'
    )


def write_objects(folder: Path, items: int) -> None:
    """The input, in the bucket `input`."""
    (folder / "input").mkdir(parents=True)
    each = items // OBJECTS
    for part in range(OBJECTS):
        with gzip.open(folder / "input" / f"{part}.json.gz", "wt", compresslevel=1) as file:
            file.writelines(map(line, range(part * each, (part + 1) * each)))


class Reader(threading.Thread):
    """Reads an item every ten milliseconds, and keeps how long each read took."""

    def __init__(self, database: isotone.Database) -> None:
        super().__init__(daemon=True)
        self.client = database.client()
        self.client.create_table(TableName="other", **TABLE)
        self.key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
        self.client.put_item(TableName="other", Item=self.key)
        self.times: list[float] = []
        self.ended = threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.01):
            begin = time.perf_counter()
            self.client.get_item(TableName="other", Key=self.key)
            self.times.append(time.perf_counter() - begin)


def empty_loop() -> float:
    """CPU seconds of ten million empty turns: about 0.25 on an idle core of a machine of 2024."""
    begin = time.process_time()
    for _ in range(10_000_000):
        pass
    return time.process_time() - begin


Load = Callable[[isotone.Client, dict[str, Any]], Callable[[], str]]
"""Starts to fill a table; returns a function that tells the job's state."""


def imported(client: isotone.Client, table: dict[str, Any]) -> Callable[[], str]:
    arn = client.import_table(
        S3BucketSource={"S3Bucket": "input"},
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
        TableCreationParameters={"TableName": "orders", **table},
    )["ImportTableDescription"]["ImportArn"]
    return lambda: str(
        client.describe_import(ImportArn=arn)["ImportTableDescription"]["ImportStatus"]
    )


def put_in_bulk(client: isotone.Client, table: dict[str, Any]) -> Callable[[], str]:
    client.create_table(TableName="orders", **table)
    arn = client.start_bulk_put_items(
        TableName="orders",
        InputS3Configuration={
            "S3Bucket": "input",
            "InputFormat": "DYNAMODB_JSON",
            "InputCompressionType": "GZIP",
        },
        OutputS3Configuration={"S3Bucket": "report", "OutputType": ["ERROR"]},
    )["BulkOperationDescription"]["BulkOperationArn"]
    return lambda: str(
        client.describe_bulk_operation(BulkOperationArn=arn)["BulkOperationDescription"][
            "BulkOperationStatus"
        ]
    )


def measure(name: str, buckets: Path, items: int, load: Load, table: dict[str, Any]) -> float:
    """Load once, print the figures, and return the processor time of an item in microseconds."""
    path = buckets.parent / "bench.db"
    with isotone.open(path, s3=buckets) as database:
        client = database.client()
        reader = Reader(database)
        reader.start()
        wall, cpu = time.perf_counter(), time.process_time()
        state = load(client, table)
        while state() in ("IN_PROGRESS", "INITIALIZING"):
            time.sleep(0.05)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        reader.ended.set()
        reader.join()
        assert state() == "COMPLETED"
        expected = items // OBJECTS * OBJECTS
        described = client.describe_table(TableName="orders")["Table"]
        counts = [described, *described.get("GlobalSecondaryIndexes", ())]
        assert [each["ItemCount"] for each in counts] == [expected] * len(counts)
    for each in path.parent.glob("bench.db*"):
        each.unlink()
    times = sorted(reader.times)
    p99 = times[int(len(times) * 0.99)]
    print(
        f"| {name} | {wall / items * 1e6:.1f} | {cpu / items * 1e6:.1f} | "
        f"{times[len(times) // 2] * 1000:.1f} | {p99 * 1000:.1f} | {times[-1] * 1000:.0f} |",
        flush=True,
    )
    return cpu / items * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--folder", default=None, help="where to make the file; a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        buckets = Path(folder) / "buckets"
        write_objects(buckets, arguments.items)
        loop = empty_loop()
        print(
            "| of an item | µs | µs of processor time | reads meanwhile, median ms | p99 ms | slowest ms |\n"
            "|---|---:|---:|---:|---:|---:|"
        )
        ratios = []
        for name, load in (("ImportTable", imported), ("StartBulkPutItems", put_in_bulk)):
            alone = measure(f"{name}, no index", buckets, arguments.items, load, TABLE)
            more = measure(f"{name}, one index", buckets, arguments.items, load, INDEXED)
            ratios.append(f"{name} {more / alone:.2f} ×")
    print(f"\nwith an index, in processor time: {', '.join(ratios)}")
    print(f"empty loop {loop:.2f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
