"""`store.verify` of a million items in a file: how long it takes, and how much memory it needs.

    python -m bench verifying
    python -m bench.verifying FILE [ITEMS]      fills the file if it is missing, and verifies it

The items are orders with an index and a computed field; each hundredth is a customer with a unique value, whose
marker is an item as well. One in a thousand orders has a value of another type. The verification runs in a process
of its own, so that the memory is what it needs alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import isotone
from bench.measuring import Effort, Row, Target
from isotone import Attr, Entity, Global, Index, Key, Table, computed, field
from isotone.values.types import Item

TIME, MEMORY = "verifying a file", "memory of verifying a file"
TARGETS = (Target(MEMORY, "store.verify", "at most", 200),)
_CUSTOMERS_EVERY, _DAMAGED_EVERY = 100, 1000

shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Customer(Entity, table=shop):
    number: Attr[int] = field(max=99_999_999, alert=None)
    email: Attr[str] = field(unique=True)
    primary = Key("CUSTOMER", number).sort("CUSTOMER")


class Order(Entity, table=shop):
    customer: Attr[int] = field(max=99_999_999, alert=None)
    number: Attr[int] = field(max=99_999_999, alert=None)
    status: Attr[str] = field(default="OPEN")
    total: Attr[Decimal] = field(default=Decimal(0))
    note: Attr[str] = field(default="")
    label: Attr[str] = computed(lambda order: f"{order.status} {order.total}")
    primary = Key("CUSTOMER", customer).sort("ORDER", number)
    by_status = Index("GSI1", "STATUS", status).sort(number)


def _items(count: int) -> Iterator[Item]:
    """So many items, as the store would write them, but for the damaged ones."""
    schema, made = Order.__schema__, 0
    while made < count:
        customer = made // _CUSTOMERS_EVERY
        owner = Customer(number=customer, email=f"c{customer}@example.com")
        item = Customer.__schema__.to_item(owner.__dict__)
        key = {name: item[name] for name in ("PK", "SK")}
        marker = {"PK": {"S": f"_unique#Customer#email#{owner.email}"}, "SK": {"S": "_unique"}}
        yield item
        yield {**marker, "_type": {"S": "_unique"}, "_owner": {"M": key}}
        for number in range(made, made + _CUSTOMERS_EVERY - 2):
            order = Order(customer=customer, number=number, total=Decimal(number), note="x" * 60)
            item = schema.to_item(order.__dict__)
            yield item if number % _DAMAGED_EVERY else {**item, "note": {"N": "1"}}
        made += _CUSTOMERS_EVERY


def fill(path: Path, count: int) -> None:
    """A file with so many items."""
    with isotone.open(path, durability="none") as database:
        isotone.connect(database, check_keys=False).create_tables(shop)
        batch = []
        for item in _items(count):
            batch.append({"PutRequest": {"Item": item}})
            if len(batch) == 25:
                database.execute("BatchWriteItem", {"RequestItems": {"shop": batch}})
                batch = []
        assert not batch


def verify(path: Path) -> dict[str, float]:
    """What a verification of the file found, its seconds, and the greatest memory that it needed in MB.

    `resident` includes the pages of the file that are mapped into the process, which the system takes back when it
    needs them; `own` does not.
    """
    own: list[float] = []
    # As `isotone verify` opens a file; otherwise the walk maps all of it.
    with isotone.open(path, memory_map=64 << 20) as database, isotone.connect(database) as store:
        began = time.perf_counter()
        found = store.verify(shop, progress=lambda _: own.append(_megabytes("RssAnon")))
        seconds = time.perf_counter() - began
    return {
        "items": found.items,
        "invalid": found.count("invalid"),
        "findings": sum(each.count for each in found.findings),
        "seconds": seconds,
        "own": max(own),
        "resident": _megabytes("VmHWM"),
    }


def _megabytes(name: str) -> float:
    """A figure that Linux has of this process."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    (line,) = (line for line in status.splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


def run(effort: Effort) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "shop.db"
        fill(path, effort.items)
        command = [sys.executable, "-m", "bench.verifying", str(path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(ended.stdout)
    assert found["items"] == effort.items
    assert found["findings"] == found["invalid"] > 0
    name = f"store.verify of {effort.items:,} items"
    return [
        Row(TIME, name, "s", [found["seconds"]]),
        Row(MEMORY, "store.verify", "MB", [found["own"]]),
        Row(MEMORY, "with the file's pages", "MB", [found["resident"]]),
    ]


if __name__ == "__main__":
    file = Path(sys.argv[1])
    if not file.exists():
        fill(file, int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000)
    print(json.dumps(verify(file)))
