"""One process of the test of transactions: its threads read and write a few accounts, and print what they saw.

python -m tests.stateful.transactions_site ADDRESS NAME TRANSACTIONS
"""

from __future__ import annotations

import sys
import threading
import time
from random import Random
from typing import Any

import msgspec
from tests.stateful.serializability import Transaction

import isotone
from isotone.errors import ConditionalCheckFailedException, TransactionCanceledException

TABLE = "Accounts"
ACCOUNTS = [f"account{number}" for number in range(6)]
THREADS = 2
FIRST = "the first"  # who wrote the version 0


def create(database: isotone.Database) -> None:
    database.execute(
        "CreateTable",
        {
            "TableName": TABLE,
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    for account in ACCOUNTS:
        item = {"pk": {"S": account}, "by": {"S": FIRST}, "version": {"N": "0"}, "sum": {"N": "0"}}
        database.execute("PutItem", {"TableName": TABLE, "Item": item})


class Session:
    """One thread, which makes one transaction after the other."""

    def __init__(self, database: isotone.Database, name: str, count: int) -> None:
        self.history: list[Transaction] = []
        self.failure: BaseException | None = None
        self._database = database
        self._name = name
        self._count = count
        self._random = Random(name)
        self._seen: dict[str, tuple[int, str]] = {}

    def run(self) -> None:
        try:
            self._look(ACCOUNTS)
            while len(self.history) < self._count:
                step = self._random.choice(
                    (self._look_at_all, self._look_at_two, self._move, self._move, self._add, self._count_up)
                )  # fmt: skip
                step()
        except BaseException as failure:  # noqa: BLE001 - the process reports it
            self.failure = failure

    def _begin(self) -> Transaction:
        name = f"{self._name}.{len(self.history)}"
        return Transaction(name, self._name, time.monotonic(), 0.0)

    def _end(self, transaction: Transaction) -> None:
        transaction.ended = time.monotonic()
        self.history.append(transaction)

    def _look_at_all(self) -> None:
        self._look(ACCOUNTS)

    def _look_at_two(self) -> None:
        self._look(self._random.sample(ACCOUNTS, 2))

    def _look(self, accounts: list[str]) -> None:
        """Read some accounts; all of them have the sum 0."""
        made = self._begin()
        gets = [{"Get": {"TableName": TABLE, "Key": {"pk": {"S": each}}}} for each in accounts]
        answer = self._database.execute("TransactGetItems", {"TransactItems": gets})
        items = [response["Item"] for response in answer["Responses"]]
        made.reads = {item["pk"]["S"]: _version_of(item) for item in items}
        self._seen |= made.reads
        self._end(made)
        if accounts is ACCOUNTS:
            assert sum(int(item["sum"]["N"]) for item in items) == 0, items

    def _move(self) -> None:
        """Move an amount between two accounts that are still as they were seen, as a third one is."""
        giver, taker, watched = self._random.sample(ACCOUNTS, 3)
        made = self._begin()
        amount = self._random.randint(1, 9)
        seen = {each: self._seen[each] for each in (giver, taker, watched)}
        items = [
            self._update(made, giver, -amount, seen[giver]),
            self._update(made, taker, amount, seen[taker]),
            {"ConditionCheck": {"TableName": TABLE, "Key": {"pk": {"S": watched}}, **_is(seen[watched])}},
        ]  # fmt: skip
        self._random.shuffle(items)
        try:
            self._database.execute("TransactWriteItems", {"TransactItems": items})
        except TransactionCanceledException:
            made.reads = {}
            self._end(made)
            self._look(ACCOUNTS)
            return
        made.reads = seen
        made.writes = {each: seen[each][0] + 1 for each in (giver, taker)}
        self._seen |= {each: (seen[each][0] + 1, made.name) for each in (giver, taker)}
        self._end(made)

    def _add(self) -> None:
        """Move an amount whatever the accounts are: which versions it makes, only later readers know."""
        made = self._begin()
        giver, taker = self._random.sample(ACCOUNTS, 2)
        amount = self._random.randint(1, 9)
        moved = [self._update(made, giver, -amount), self._update(made, taker, amount)]
        self._database.execute("TransactWriteItems", {"TransactItems": moved})
        made.writes = {giver: None, taker: None}
        self._end(made)

    def _count_up(self) -> None:
        """One UpdateItem, which returns what was there."""
        made = self._begin()
        account = self._random.choice(ACCOUNTS)
        update = {**self._update(made, account, 0)["Update"], "ReturnValues": "ALL_OLD"}
        if self._random.random() < 0.5:
            condition = _is(self._seen[account])
            values = update["ExpressionAttributeValues"] | condition["ExpressionAttributeValues"]
            update |= condition | {"ExpressionAttributeValues": values}
        try:
            answer = self._database.execute("UpdateItem", update)
        except ConditionalCheckFailedException:
            self._end(made)
            return
        number, writer = _version_of(answer["Attributes"])
        made.reads, made.writes = {account: (number, writer)}, {account: number + 1}
        self._seen[account] = number + 1, made.name
        self._end(made)

    def _update(
        self, made: Transaction, account: str, amount: int, seen: tuple[int, str] | None = None
    ) -> dict[str, Any]:
        condition = _is(seen) if seen else {"ExpressionAttributeValues": {}}
        values = {":amount": {"N": str(amount)}, ":one": {"N": "1"}, ":by": {"S": made.name}}
        update = {
            "TableName": TABLE,
            "Key": {"pk": {"S": account}},
            **condition,
            "UpdateExpression": "ADD #sum :amount, version :one SET #by = :by",
            "ExpressionAttributeNames": {"#by": "by", "#sum": "sum"},
            "ExpressionAttributeValues": condition["ExpressionAttributeValues"] | values,
        }
        return {"Update": update}


def _is(seen: tuple[int, str]) -> dict[str, Any]:
    """The condition that an account is as it was seen."""
    return {
        "ConditionExpression": "version = :seen",
        "ExpressionAttributeValues": {":seen": {"N": str(seen[0])}},
    }


def _version_of(item: dict[str, Any]) -> tuple[int, str]:
    return int(item["version"]["N"]), item["by"]["S"]


def main(address: str, name: str, count: int) -> None:
    with isotone.open(address) as database:
        sessions = [
            Session(database, f"{name}.{number}", count // THREADS) for number in range(THREADS)
        ]
        threads = [threading.Thread(target=session.run) for session in sessions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for session in sessions:
        if session.failure is not None:
            raise session.failure
    for session in sessions:
        for transaction in session.history:
            print(msgspec.json.encode(transaction).decode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
