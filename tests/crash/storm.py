"""A process that writes as fast as it can and tells what is acknowledged.

python storm.py numbers FILE DURABILITY     transactions in order, each number printed when committed
python storm.py counter FILE TIMES          adds 1 to a counter so many times
"""

from __future__ import annotations

import sys

from isotone.storage.sqlite import SQLiteStore


def entries_of(number: int) -> dict[bytes, bytes]:
    """What transaction `number` writes: 1 to 5 entries, among them large ones."""
    size = 9_000 if number % 7 == 0 else 40
    return {b"%09d-%d" % (number, part): bytes(size) for part in range(number % 5 + 1)}


def write_numbers(path: str, durability: str) -> None:
    store = SQLiteStore(path, durability)  # type: ignore[arg-type]
    last = next(store.range("numbers", b"", None, reverse=True), (b"000000000-", b""))[0]
    number = int(last[:9])
    while True:
        number += 1
        with store.transaction():
            for key, value in entries_of(number).items():
                store.put("numbers", key, value)
            store.put("newest", b"", b"%d" % number)
        print(number, flush=True)


def count(path: str, times: str) -> None:
    store = SQLiteStore(path, durability="none", busy_timeout=60)
    for _ in range(int(times)):
        with store.transaction():
            found = store.get("counter", b"") or b"0"
            store.put("counter", b"", b"%d" % (int(found) + 1))
    store.close()


if __name__ == "__main__":
    {"numbers": write_numbers, "counter": count}[sys.argv[1]](*sys.argv[2:])
