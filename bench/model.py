"""What the modelling libraries cost: processor time of one operation on an order of ten fields.

Over HTTP the server answers at once what the library itself wrote, so all that is measured is the
library and its client. In the process there is no server: the figures of the entity stand beside those
of the raw client on the same database.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import isotone
from bench import peers
from bench.measuring import Effort, Row, Target
from bench.model_subjects import cost
from bench.model_values import CUSTOMER, NUMBER, PAGE, PARTITION, SORT, TABLE, values

PUT, GET, QUERY = (
    "put of an entity over HTTP, processor time",
    "get of an entity over HTTP, processor time",
    "query of 100 entities over HTTP, processor time",
)
INSIDE = INSIDE_PUT, INSIDE_UPDATE, INSIDE_GET, INSIDE_QUERY = (
    "put of an entity in the process, processor time",
    "update of an entity in the process, processor time",
    "get of an entity in the process, processor time",
    "query of 100 entities in the process, processor time",
)
DECLARE = "declaring an entity of ten fields"

OURS, RAW = "Isotone model", "Isotone client"
PYDYNOX, PYNAMODB, BOTO3 = "pydynox (Rust core)", "PynamoDB", "boto3 resource"

HERE: Final = Path(sys.executable)
SUBJECTS: Final = {
    OURS: ("isotone", HERE),
    PYDYNOX: ("pydynox", peers.MODELS / "python"),
    PYNAMODB: ("pynamodb", peers.MODELS / "python"),
    BOTO3: ("boto3", peers.MODELS / "python"),
}
TARGETS = (
    *(Target(measure, OURS, "at most", 0.7, PYDYNOX) for measure in (GET, PUT, QUERY)),
    *(Target(measure, OURS, "at most", 0.3, PYNAMODB) for measure in (GET, PUT, QUERY)),
    Target(INSIDE_GET, OURS, "at most", 60),
    Target(INSIDE_QUERY, OURS, "at most", 1.6, RAW),
    Target(DECLARE, OURS, "at most", 2),
)


def run(effort: Effort) -> list[Row]:
    return [*_over_http(effort), *_inside(effort), _declaration(effort)]


# Over HTTP


def _over_http(effort: Effort) -> list[Row]:
    taken: dict[str, list[list[float]]] = {subject: [] for subject in SUBJECTS}
    reasons: dict[str, str] = {}
    for _ in range(effort.rounds):
        for subject in SUBJECTS:
            if subject in reasons:
                continue
            try:
                taken[subject].append(_measured(subject, effort.calls // 2))
            except (OSError, subprocess.CalledProcessError) as error:
                reasons[subject] = getattr(error, "stderr", "").strip()[-200:] or str(error)
    rows = []
    for subject, rounds in taken.items():
        for place, measure in enumerate((PUT, GET, QUERY)):
            samples = [] if subject in reasons else [each[place] for each in rounds]
            rows.append(Row(measure, subject, "µs", samples, reasons.get(subject, "")))
    return sorted(rows, key=lambda row: (PUT, GET, QUERY).index(row.measure))


def _measured(subject: str, calls: int) -> list[float]:
    """Microseconds of put, get and query, by a process of the subject's own interpreter."""
    name, python = SUBJECTS[subject]
    with _server() as port:
        done = subprocess.run(
            [str(python), "-m", "bench.model_subjects", name, str(port), str(calls)],
            capture_output=True,
            text=True,
            check=True,
            cwd=peers.ROOT,
        )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def _server() -> Iterator[int]:
    port = peers.local.free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.model_server", str(port)], cwd=peers.ROOT
    )
    try:
        _wait_for(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


# In the process


def _inside(effort: Effort) -> list[Row]:
    from bench.model_entity import Order, orders

    with isotone.open(":memory:") as database, isotone.connect(database) as store:
        store.create_tables(orders)
        for number in range(PAGE):
            store.put(Order(**{**values(), "number": number + NUMBER}))
        calls = (effort.calls, effort.calls, effort.calls, max(20, effort.calls // 20))
        subjects = zip(INSIDE, _ours(store), _raw(database.client()), calls, strict=True)
        return [
            row
            for measure, ours, raw, count in subjects
            for row in _in_turns(measure, {OURS: ours, RAW: raw}, effort.rounds, count)
        ]


def _ours(store: isotone.Store) -> list[Callable[[], object]]:
    from bench.model_entity import Order

    return [
        lambda: store.put(Order(**values())),
        lambda: store.update(Order, Order.quantity.add(1), customer=CUSTOMER, number=NUMBER),
        lambda: store.get(Order, customer=CUSTOMER, number=NUMBER),
        lambda: store.all(Order.primary.where(Order.customer == CUSTOMER)),
    ]


def _raw(client: isotone.Client) -> list[Callable[[], object]]:
    """The same calls, with the items and the expressions that the model makes."""
    key = {"pk": {"S": PARTITION}, "sk": {"S": SORT}}
    item = client.get_item(TableName=TABLE, Key=key)["Item"]
    adding: dict[str, Any] = {
        "UpdateExpression": "ADD quantity :n",
        "ConditionExpression": "attribute_exists(pk)",
        "ExpressionAttributeValues": {":n": {"N": "1"}},
        "ReturnValues": "ALL_NEW",
    }
    asking: dict[str, Any] = {
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": PARTITION}},
    }
    return [
        lambda: client.put_item(TableName=TABLE, Item=item),
        lambda: client.update_item(TableName=TABLE, Key=key, **adding),
        lambda: client.get_item(TableName=TABLE, Key=key),
        lambda: client.query(TableName=TABLE, **asking),
    ]


def _in_turns(
    measure: str, subjects: Mapping[str, Callable[[], object]], rounds: int, calls: int
) -> list[Row]:
    samples: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(rounds):
        for name, call in subjects.items():
            samples[name].append(cost(call, calls))
    return [Row(measure, name, "µs", taken) for name, taken in samples.items()]


def _declaration(effort: Effort) -> Row:
    """Milliseconds of the class statement in a fresh interpreter, the library imported."""
    program = (
        "from isotone import Attr, Entity, Key, Table, field\n"
        "from bench.model_entity import SECONDS_TO_DECLARE; print(SECONDS_TO_DECLARE * 1000)"
    )
    taken = [
        float(
            subprocess.run(
                [sys.executable, "-c", program], capture_output=True, check=True, cwd=peers.ROOT
            ).stdout
        )
        for _ in range(max(3, effort.rounds))
    ]
    return Row(DECLARE, OURS, "ms", taken)
