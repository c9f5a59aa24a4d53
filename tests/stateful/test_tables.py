"""Any history of writes and reads gives the answers of the naive model, wherever the data lives."""

from __future__ import annotations

import contextlib
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.effort import examples
from tests.stateful.backends import all_backends
from tests.stateful.model import SCHEMA, SOURCES, Model, number

partitions = st.sampled_from(["a", "b", "a\x00", "\x01", "é"])
numbers = st.sampled_from(
    ["-1E125", "-2", "-1.5", "0", "1E-130", "1.25", "2", "10", "99999999999999999999"]
)
groups = st.sampled_from(["x", "y", "x#"])
keys = st.builds(lambda p, s: {"p": {"S": p}, "s": {"N": plain(s)}}, partitions, numbers)
extras = st.fixed_dictionaries(
    {},
    optional={
        "g": st.builds(lambda value: {"S": value}, groups),
        "n": st.builds(lambda value: {"N": plain(value)}, numbers),
        "text": st.builds(lambda value: {"S": value}, st.text(max_size=3)),
        "flag": st.builds(lambda value: {"BOOL": value}, st.booleans()),
    },
)
items = st.builds(lambda key, extra: {**key, **extra}, keys, extras)
sources = st.sampled_from(list(SOURCES))
operators = st.sampled_from([None, "=", "<", "<=", ">", ">=", "BETWEEN"])
limits = st.integers(1, 5)


def plain(text: str) -> str:
    """The number as DynamoDB writes it."""
    return f"{Decimal(text):f}"


class Tables(RuleBasedStateMachine):
    """One table, driven at random on all backends at once."""

    def __init__(self) -> None:
        super().__init__()
        self.open = contextlib.ExitStack()
        folder = self.open.enter_context(tempfile.TemporaryDirectory())
        self.backends = self.open.enter_context(all_backends(Path(folder)))
        self.model = Model()

    def teardown(self) -> None:
        try:
            for name, (_, database) in self.backends.items():
                assert database.check() == [], name
        finally:
            self.open.close()

    def ask(self, operation: str, **request: Any) -> tuple[str, dict[str, Any]]:
        """The answer, which must be the same everywhere."""
        answers = {
            name: ask(operation, {"TableName": "tab", **request})
            for name, (ask, _) in self.backends.items()
        }
        assert answers["file"] == answers["memory"]
        assert answers["http"] == answers["memory"]
        return answers["memory"]

    @initialize()
    def create(self) -> None:
        for ask, _ in self.backends.values():  # ids and times differ, so no comparison here
            assert ask("CreateTable", {"TableName": "tab", **SCHEMA})[0] == "ok"

    @rule(item=items)
    def put(self, item: dict[str, Any]) -> None:
        old = self.model.get(item)
        code, answer = self.ask("PutItem", Item=item, ReturnValues="ALL_OLD")
        assert (code, answer.get("Attributes")) == ("ok", old)
        self.model.put(item)

    @rule(item=items)
    def put_if_absent(self, item: dict[str, Any]) -> None:
        code, _ = self.ask("PutItem", Item=item, ConditionExpression="attribute_not_exists(p)")
        if self.model.get(item) is None:
            assert code == "ok"
            self.model.put(item)
        else:
            assert code == "ConditionalCheckFailedException"

    @rule(key=keys)
    def get(self, key: dict[str, Any]) -> None:
        assert self.ask("GetItem", Key=key)[1].get("Item") == self.model.get(key)

    @rule(key=keys)
    def delete(self, key: dict[str, Any]) -> None:
        old = self.model.get(key)
        _, answer = self.ask("DeleteItem", Key=key, ReturnValues="ALL_OLD")
        assert answer.get("Attributes") == old
        self.model.delete(key)

    @rule(key=keys, changes=extras)
    def update(self, key: dict[str, Any], changes: dict[str, Any]) -> None:
        for name, value in changes.items():
            code, answer = self.ask(
                "UpdateItem",
                Key=key,
                UpdateExpression="SET #a = :v",
                ExpressionAttributeNames={"#a": name},
                ExpressionAttributeValues={":v": value},
                ReturnValues="ALL_NEW",
            )
            self.model.set(key, name, value)
            assert (code, answer["Attributes"]) == ("ok", self.model.get(key))

    @rule(key=keys, name=st.sampled_from(["g", "n", "text"]))
    def leave_index(self, key: dict[str, Any], name: str) -> None:
        if self.model.get(key) is None:
            return
        self.ask(
            "UpdateItem",
            Key=key,
            UpdateExpression="REMOVE #a",
            ExpressionAttributeNames={"#a": name},
        )
        self.model.remove(key, name)

    @rule(puts=st.lists(items, min_size=1, max_size=4), condition=st.booleans())
    def transact(self, puts: list[dict[str, Any]], condition: bool) -> None:
        unique = {self.model.key(item): item for item in puts}
        writes = [{"Put": {"TableName": "tab", "Item": item}} for item in unique.values()]
        if condition:
            for write in writes:
                write["Put"]["ConditionExpression"] = "attribute_not_exists(p)"
        code, _ = self.ask("TransactWriteItems", TransactItems=writes)
        if condition and any(self.model.get(item) is not None for item in unique.values()):
            assert code == "TransactionCanceledException"
            return
        assert code == "ok"
        for item in unique.values():
            self.model.put(item)

    @rule(puts=st.lists(items, min_size=1, max_size=5), deleted=keys)
    def batch(self, puts: list[dict[str, Any]], deleted: dict[str, Any]) -> None:
        unique = {self.model.key(item): item for item in puts}
        writes: list[dict[str, Any]] = [{"PutRequest": {"Item": item}} for item in unique.values()]
        if self.model.key(deleted) not in unique:
            writes.append({"DeleteRequest": {"Key": deleted}})
            self.model.delete(deleted)
        assert self.ask("BatchWriteItem", RequestItems={"tab": writes})[0] == "ok"
        for item in unique.values():
            self.model.put(item)

    @rule(
        index=sources,
        partition=st.one_of(partitions, groups),
        operator=operators,
        bounds=st.tuples(numbers, numbers),
        limit=limits,
        forward=st.booleans(),
    )
    def query(
        self,
        index: str | None,
        partition: str,
        operator: str | None,
        bounds: tuple[str, str],
        limit: int,
        forward: bool,
    ) -> None:
        hash_name, range_name = SOURCES[index]
        ends = sorted(Decimal(bound) for bound in bounds)
        text, used = condition_text(operator, ends)
        request: dict[str, Any] = {
            "KeyConditionExpression": f"#h = :h{text}",
            "ExpressionAttributeNames": {"#h": hash_name, **({"#r": range_name} if text else {})},
            "ExpressionAttributeValues": {":h": {"S": partition}, **used},
            "ScanIndexForward": forward,
        }
        if index is not None:
            request["IndexName"] = index
        expected = self.model.query(index, partition, operator, ends)
        whole = self.ask("Query", **request)[1]
        assert whole["Count"] == whole["ScannedCount"] == len(expected)
        paged = self.pages("Query", limit, request)
        assert paged == whole["Items"], "paging must give each item once, in the same order"
        in_order = [number(item[range_name]) for item in paged]
        assert in_order == sorted(in_order, reverse=not forward)
        assert as_set(paged) == as_set(expected)

    def run(self, statement: str, *parameters: Any, **more: Any) -> tuple[str, dict[str, Any]]:
        """The answer to a PartiQL statement."""
        if parameters:
            more["Parameters"] = [*parameters]
        return self.ask("ExecuteStatement", Statement=statement, **more)

    @rule(item=items)
    def insert(self, item: dict[str, Any]) -> None:
        value = ", ".join(f"'{name}': ?" for name in item)
        code, _ = self.run(f"INSERT INTO tab VALUE {{{value}}}", *item.values())
        if self.model.get(item) is None:
            assert code == "ok"
            self.model.put(item)
        else:
            assert code == "DuplicateItemException"

    @rule(key=keys, changes=extras)
    def update_by_statement(self, key: dict[str, Any], changes: dict[str, Any]) -> None:
        if not changes:
            return
        sets = " ".join(f'SET "{name}" = ?' for name in changes)
        code, answer = self.run(
            f"UPDATE tab {sets} WHERE p = ? AND s = ? RETURNING ALL NEW *",
            *(*changes.values(), key["p"], key["s"]),
        )
        if self.model.get(key) is None:
            assert code == "ConditionalCheckFailedException"
            return
        for name, value in changes.items():
            self.model.set(key, name, value)
        assert (code, answer["Items"]) == ("ok", [self.model.get(key)])

    @rule(key=keys)
    def delete_by_statement(self, key: dict[str, Any]) -> None:
        old = self.model.get(key)
        statement = "DELETE FROM tab WHERE p = ? AND s = ? RETURNING ALL OLD *"
        _, answer = self.run(statement, key["p"], key["s"])
        assert answer["Items"] == ([] if old is None else [old])
        self.model.delete(key)

    @rule(
        index=sources,
        chosen=st.lists(st.one_of(partitions, groups), min_size=1, max_size=3, unique=True),
        operator=operators,
        bounds=st.tuples(numbers, numbers),
        limit=limits,
        forward=st.booleans(),
    )
    def select(
        self,
        index: str | None,
        chosen: list[str],
        operator: str | None,
        bounds: tuple[str, str],
        limit: int,
        forward: bool,
    ) -> None:
        hash_name, range_name = SOURCES[index]
        ends = sorted(Decimal(bound) for bound in bounds)
        text, used = condition_text(operator, ends)
        for name in used:
            text = text.replace(name, "?")
        source = "tab" if index is None else f'"tab"."{index}"'
        statement = (
            f"SELECT * FROM {source} WHERE {hash_name} IN [{', '.join('?' * len(chosen))}]"
            f"{text.replace('#r', range_name)} ORDER BY {hash_name}, {range_name}"
            f"{'' if forward else ' DESC'}"
        )
        parameters = [*({"S": name} for name in chosen), *used.values()]
        found = self.all_of(statement, parameters, limit)
        assert found == self.all_of(statement, parameters, None)
        in_order = [(item[hash_name]["S"].encode(), number(item[range_name])) for item in found]
        expected = sorted(in_order, key=lambda place: place[1], reverse=not forward)
        assert in_order == sorted(expected, key=lambda place: place[0])
        every = [self.model.query(index, name, operator, ends) for name in chosen]
        assert as_set(found) == as_set([item for items in every for item in items])
        assert len(found) == sum(map(len, every))

    def all_of(self, statement: str, parameters: list[Any], limit: int | None) -> list[Any]:
        """The items of all pages of a statement."""
        more: dict[str, Any] = {} if limit is None else {"Limit": limit}
        found: list[Any] = []
        while True:
            code, page = self.run(statement, *parameters, **more)
            assert code == "ok", page
            assert len(page["Items"]) <= (limit or 10_000)
            found += page["Items"]
            if "NextToken" not in page:
                return found
            more["NextToken"] = page["NextToken"]

    @rule(index=sources, limit=limits, segments=st.integers(1, 4))
    def scan(self, index: str | None, limit: int, segments: int) -> None:
        found = []
        for segment in range(segments):
            request: dict[str, Any] = {"Segment": segment, "TotalSegments": segments}
            if index is not None:
                request["IndexName"] = index
            found += self.pages("Scan", limit, request)
        expected = list(self.model.entries(index))
        assert len(found) == len(expected)
        assert as_set(found) == as_set(expected)

    def pages(self, operation: str, limit: int, request: dict[str, Any]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            code, page = self.ask(operation, **request, **start, Limit=limit)
            assert code == "ok", page
            assert len(page["Items"]) <= limit
            found += page["Items"]
            if "LastEvaluatedKey" not in page:
                return found
            start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}

    @invariant()
    def counts_are_true(self) -> None:
        for ask, _ in self.backends.values():
            code, answer = ask("DescribeTable", {"TableName": "tab"})
            if code == "ok":
                assert answer["Table"]["ItemCount"] == len(self.model.items)


def condition_text(operator: str | None, ends: list[Decimal]) -> tuple[str, dict[str, Any]]:
    """The sort key's part of a key condition, and its values."""
    low, high = ({"N": f"{end:f}"} for end in ends)
    if operator is None:
        return "", {}
    if operator == "BETWEEN":
        return " AND #r BETWEEN :low AND :high", {":low": low, ":high": high}
    return f" AND #r {operator} :low", {":low": low}


def as_set(items: list[dict[str, Any]]) -> set[str]:
    return {repr(sorted(item.items())) for item in items}


TestTables = Tables.TestCase
TestTables.settings = settings(
    max_examples=examples(40),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
