"""How fast ImportTable fills a file with durability "disk", and how long reads take meanwhile.

    python -m bench.importing [--items 1000000] [--folder /tmp]

Writes gzipped DynamoDB JSON in four objects, imports it as a server does (one background thread), and reads another
table from a second thread every ten milliseconds. Wall time depends on what else the machine does, so the CPU time of the
process and the speed of an empty loop are printed with it.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import threading
import time
from pathlib import Path

import isotone

OBJECTS = 4
KEYS = [
    {"AttributeName": "pk", "KeyType": "HASH"},
    {"AttributeName": "sk", "KeyType": "RANGE"},
]
TYPES = [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")]
TABLE = {
    "KeySchema": KEYS,
    "AttributeDefinitions": TYPES,
    "BillingMode": "PAY_PER_REQUEST",
}


def line(number: int) -> str:
    """An order of about 190 bytes."""
    return (
        f'{{"Item":{{"pk":{{"S":"customer#{number // 10:08}"}},"sk":{{"S":"order#{number % 10:06}"}},'
        f'"status":{{"S":"SHIPPED"}},"total":{{"N":"{number % 1000}.25"}},'
        f'"at":{{"S":"2026-01-01T00:00:00Z"}},"note":{{"S":"{"x" * 60}"}}}}}}\n'
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


def measure(folder: Path, items: int) -> None:
    """Import once, and print the figures."""
    write_objects(folder / "buckets", items)
    loop = empty_loop()
    with isotone.open(folder / "bench.db", s3=folder / "buckets") as database:
        client = database.client()
        reader = Reader(database)
        reader.start()
        wall, cpu = time.perf_counter(), time.process_time()
        arn = client.import_table(
            S3BucketSource={"S3Bucket": "input"},
            InputFormat="DYNAMODB_JSON",
            InputCompressionType="GZIP",
            TableCreationParameters={"TableName": "orders", **TABLE},
        )["ImportTableDescription"]["ImportArn"]
        while (
            client.describe_import(ImportArn=arn)["ImportTableDescription"]["ImportStatus"]
            == "IN_PROGRESS"
        ):
            time.sleep(0.05)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        reader.ended.set()
        reader.join()
        done = client.describe_import(ImportArn=arn)["ImportTableDescription"]
        assert done["ImportedItemCount"] == items // OBJECTS * OBJECTS
    times = sorted(reader.times)
    print(f"{items:,} items: {items / wall:,.0f}/s wall, {items / cpu:,.0f}/s of CPU time")
    print(
        f"reads meanwhile: median {times[len(times) // 2] * 1000:.1f} ms, "
        f"99% {times[int(len(times) * 0.99)] * 1000:.1f} ms, longest {times[-1] * 1000:.0f} ms"
    )
    print(f"empty loop {loop:.2f} s; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--folder", default=None, help="where to make the file; a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        measure(Path(folder), arguments.items)


if __name__ == "__main__":
    main()
