"""Two processes over one database in PostgreSQL: what all their transactions saw fits into one order.

`ISOTONE_TRANSACTIONS=100000 pytest -s tests/stateful/test_postgres_transactions.py` for as many as one likes.
"""

from __future__ import annotations

import os
from collections import Counter

import msgspec
import pytest
from tests import figures
from tests.postgres_server import needs_postgres, shared
from tests.programs import python
from tests.stateful.serializability import Transaction, violation
from tests.stateful.transactions_site import ACCOUNTS, TABLE, create

import isotone
from isotone.backends import embedded

TRANSACTIONS = int(os.environ.get("ISOTONE_TRANSACTIONS", "1000"))
PROCESSES = 2


@needs_postgres
def test_transactions_of_two_processes_have_one_order() -> None:
    address = shared().new_address()
    with isotone.open(address) as database:
        create(database)
    each = -(-TRANSACTIONS // PROCESSES)
    site = "tests.stateful.transactions_site"
    processes = [python("-m", site, address, f"p{number}", each) for number in range(PROCESSES)]
    history = []
    for process in processes:
        output, _ = process.communicate()
        assert process.returncode == 0
        history += [msgspec.json.decode(line, type=Transaction) for line in output.splitlines()]
    assert len(history) >= TRANSACTIONS
    assert violation(history) == ""
    written = Counter(account for made in history for account in made.writes)
    assert min(written.values()) > len(history) / 50  # all of them were fought for
    with isotone.open(address) as database:
        items = database.execute("Scan", {"TableName": TABLE, "ConsistentRead": True})["Items"]
    assert {item["pk"]["S"]: int(item["version"]["N"]) for item in items} == written
    assert sum(int(item["sum"]["N"]) for item in items) == 0
    assert len(items) == len(ACCOUNTS)
    assert embedded.check(address).problems == []
    refused = sum(not made.reads and not made.writes for made in history)
    figures.note(
        "transactions",
        f"{len(history)} of {PROCESSES} processes, {refused} of them refused by a condition; they have one order",
    )


# The checker: it finds what must not be


def made(name: str, began: float, **what: dict[str, object]) -> Transaction:
    """A transaction of a session of its own, which took half a second."""
    found = {"name": name, "session": name, "began": began, "ended": began + 0.5, **what}
    return msgspec.convert(found, Transaction)


WRITE = made("w", 0.0, reads={"x": [0, ""], "y": [0, ""]}, writes={"x": 1, "y": 1})


@pytest.mark.parametrize(
    ("history", "found"),
    [
        ([WRITE, made("r", 1.0, reads={"x": [1, "w"], "y": [1, "w"]})], ""),
        ([WRITE, made("r", 0.2, reads={"x": [0, ""], "y": [0, ""]})], ""),
        ([WRITE, made("r", 1.0, reads={"x": [0, ""]})], "no order"),  # stale
        ([WRITE, made("r", 0.2, reads={"x": [1, "w"], "y": [0, ""]})], "no order"),  # a half
        ([WRITE, made("v", 0.2, reads={"x": [0, ""]}, writes={"x": 1})], "both written"),  # lost
        (
            [
                made("a", 0.0, reads={"x": [0, ""], "y": [0, ""]}, writes={"x": 1}),
                made("b", 0.2, reads={"x": [0, ""], "y": [0, ""]}, writes={"y": 1}),
            ],
            "no order",  # write skew
        ),
        (
            [
                made("a", 0.0, writes={"x": None}),
                made("r", 1.0, reads={"x": [1, "a"]}),
                made("s", 2.0, reads={"x": [0, ""]}),
            ],
            "no order",  # back in time, after a write whose version only a reader knows
        ),
    ],
)
def test_the_checker(history: list[Transaction], found: str) -> None:
    result = violation(history)
    assert found in result
    assert bool(found) == bool(result)
