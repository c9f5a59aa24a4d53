"""Random requests of every action that DynamoDB Local answers; valid, or with faults.

All are about the tables `tab` (with indexes and a stream) and `new`. Texts in capitals stand for what each side
has of its own (`faults.Prepared`). Faults are made from the service model: a member is dropped, renamed, or gets
a value of another type or out of its range.

`Dice` draws: values and items from pools that Hypothesis fills once, all else from a `random.Random`. Hypothesis
alone takes longer for a request than both databases.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.oracle.faults import ABSENT, BASES, STREAMED, STREAMS, Path_, wrong_values
from tests.oracle.grammar import Text, items, values
from tests.oracle.scripts import Request, index, n, s
from tests.service_model import Model, model

KEYS: Final = tuple({"p": s(name), "s": n(number)} for name in "ab" for number in (1, 2))
INDEXED_ATTRIBUTES: Final[dict[str, tuple[Request, Request]]] = {
    "g": (s("g"), s("h")),
    "r": (n(1), n(2)),
    "l": (s("k"), s("l")),
    "x": (s("x"), s("y")),
}
POOL: Final = 200
SCALARS: Final = values.filter(lambda value: value not in (s(""), {"B": ""}))
"""Parameters of statements."""
WRONG_VALUES: Final = (
    *({}, {"S": 5}, {"X": "a"}, {"S": "a", "N": "1"}, {"N": "abc"}, {"N": ""}, {"N": "1e200"}),
    *({"N": "1" * 39}, {"NS": ["1", "1.0"]}, {"SS": []}, {"BS": ["!"]}, {"B": "!"}, {"L": {}}),
    *({"NULL": False}, {"BOOL": "true"}, {"BOOL": 1}, {"M": {"": s("a")}}, {"M": []}, "text", None),
    *({"S": ""}, {"B": ""}, {"N": "1"}, {"S": "long" * 600}, {"L": [None]}, {"S": None}),
)


class Drawn(NamedTuple):
    """A request, and how many faults were put into it."""

    action: str
    request: Request
    faults: int


class Dice:
    """A source of random values: the same for the same start."""

    def __init__(self, start: int) -> None:
        self._start = start
        self.random = random.Random(start)
        self._pools: dict[int, list[Any]] = {}

    def draw(self, strategy: st.SearchStrategy[Any]) -> Any:
        """A value of a strategy, which must outlive the dice: its pool is found by its identity."""
        if id(strategy) not in self._pools:
            self._pools[id(strategy)] = self._pool(strategy)
        return self.random.choice(self._pools[id(strategy)])

    def _pool(self, strategy: st.SearchStrategy[Any]) -> list[Any]:
        pool: list[Any] = []

        @seed(self._start)
        @settings(
            max_examples=POOL,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def fill(value: Any) -> None:
            pool.append(value)

        fill()
        return pool


@dataclass
class Parts(Text):
    """The parts of one request, whose expressions share their values."""

    dice: Dice = field(kw_only=True)

    def any_of(self, *choices: Any) -> Any:
        return self.dice.random.choice(choices)

    def maybe(self, make: Callable[[], Any], chances: int = 4) -> Any:
        """A part once in so many times, else None."""
        return None if self.dice.random.randrange(chances) else make()

    def key(self) -> Request:
        return self.any_of(*KEYS)  # type: ignore[no-any-return] # a member of KEYS

    def item(self) -> Request:
        more = {
            name: self.any_of(*either)
            for name, either in INDEXED_ATTRIBUTES.items()
            if self.any_of(True, False)
        }
        return {**self.draw(items), **more, **self.key()}

    def request(self, **members: Any) -> Request:
        """The members that are not None, and the values of the expressions."""
        members = {"TableName": "tab", **members, "ExpressionAttributeValues": self.placeholders}
        return {name: value for name, value in members.items() if value not in (None, {})}

    def update(self) -> str:
        """An update that is never of removals alone, which create an item in DynamoDB Local (`known_differences.py`)."""
        text = super().update()
        return text if "SET" in text or "ADD" in text else f"{text} SET y = {self.value()}"

    def flag(self) -> Any:
        return self.maybe(lambda: self.any_of(True, False))

    def key_condition(self, names: str) -> str:
        """A condition on the key attributes of the table or of an index."""
        partition, sort = names
        text = f"{partition} = {self.placeholder(s(self.any_of(*'agbh')))}"
        if self.any_of(True, False):
            return text
        either = (n(1), n(2)) if sort in "rs" else (s("k"), s("l"))
        first = self.placeholder(self.any_of(*either))
        if self.any_of(True, False, False):
            return f"{text} AND {sort} BETWEEN {first} AND {self.placeholder(self.any_of(*either))}"
        return f"{text} AND {sort} {self.any_of('=', '<', '<=', '>', '>=')} {first}"

    def expected(self) -> Request:
        """Legacy conditions on one attribute."""
        condition = self.any_of(
            {"Exists": False},
            {"Value": self.draw(values)},
            {"ComparisonOperator": "NULL"},
            {"ComparisonOperator": "GE", "AttributeValueList": [self.draw(values)]},
        )
        return {self.any_of("a", "b"): condition}

    def attribute_updates(self) -> Request:
        """Legacy changes of one attribute."""
        change = {"Action": self.any_of("PUT", "ADD"), "Value": self.draw(values)}
        return {self.any_of("a", "b"): change}


def parts(dice: Dice) -> Parts:
    """The parts of a new request."""
    return Parts(dice.draw, dice=dice)


def _put(it: Parts) -> Request:
    condition = it.maybe(it.condition)
    return it.request(
        Item=it.item(),
        ConditionExpression=condition,
        Expected=None if condition else it.maybe(it.expected, 8),
        ReturnValues=it.maybe(lambda: it.any_of("NONE", "ALL_OLD"), 2),
        ReturnValuesOnConditionCheckFailure=it.maybe(lambda: it.any_of("NONE", "ALL_OLD")),
    )


def _update(it: Parts) -> Request:
    returned = ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
    legacy = it.maybe(it.attribute_updates, 8)
    return it.request(
        Key=it.key(),
        AttributeUpdates=legacy,
        Expected=it.maybe(it.expected) if legacy else None,
        UpdateExpression=None if legacy else it.update(),
        ConditionExpression=None if legacy else it.maybe(it.condition),
        ReturnValues=it.maybe(lambda: it.any_of(*returned), 2),
    )


def _delete(it: Parts) -> Request:
    return it.request(
        Key=it.key(),
        ConditionExpression=it.maybe(it.condition),
        ReturnValues=it.maybe(lambda: it.any_of("NONE", "ALL_OLD"), 2),
    )


def _get(it: Parts) -> Request:
    return it.request(
        Key=it.key(), ProjectionExpression=it.maybe(it.projection), ConsistentRead=it.flag()
    )


def _query(it: Parts) -> Request:
    names, where = it.any_of(("ps", None), ("ps", None), ("pl", "l-all"), ("gr", "g-all"))
    return it.request(
        IndexName=where,
        KeyConditionExpression=it.key_condition(names),
        FilterExpression=it.maybe(it.condition),
        ProjectionExpression=it.maybe(it.projection),
        Limit=it.maybe(lambda: it.any_of(1, 2, 3)),
        ScanIndexForward=it.flag(),
        ConsistentRead=it.flag() if where != "g-all" else None,
        Select=it.maybe(lambda: it.any_of("COUNT", "ALL_ATTRIBUTES"), 12),
    )


def _scan(it: Parts) -> Request:
    return it.request(
        IndexName=it.maybe(lambda: it.any_of("g-all", "l-all")),
        FilterExpression=it.maybe(it.condition, 2),
        ProjectionExpression=it.maybe(it.projection),
        Select=it.maybe(lambda: it.any_of("COUNT", "ALL_ATTRIBUTES"), 12),
    )


def _batch_get(it: Parts) -> Request:
    keys = [it.key() for _ in range(it.any_of(1, 2, 3))]
    entry = {"Keys": keys, "ProjectionExpression": it.maybe(it.projection)}
    return {"RequestItems": {"tab": {name: each for name, each in entry.items() if each}}}


def _batch_write(it: Parts) -> Request:
    entries = [
        it.any_of({"PutRequest": {"Item": it.item()}}, {"DeleteRequest": {"Key": it.key()}})
        for _ in range(it.any_of(1, 2, 3))
    ]
    return {"RequestItems": {"tab": entries}}


def _transact_get(it: Parts) -> Request:
    entry = {"TableName": "tab", "Key": it.key()}
    if projection := it.maybe(it.projection):
        entry["ProjectionExpression"] = projection
    return {"TransactItems": [{"Get": entry}, {"Get": {"TableName": "tab", "Key": it.key()}}]}


def _transact_write(it: Parts) -> Request:
    return {"TransactItems": [_transacted(it.dice) for _ in range(it.any_of(1, 2, 2, 3))]}


def _transacted(dice: Dice) -> Request:
    it = parts(dice)
    kind = it.any_of("Put", "Update", "Delete", "ConditionCheck")
    condition = it.condition() if kind == "ConditionCheck" else it.maybe(it.condition)
    members = {"Item": it.item()} if kind == "Put" else {"Key": it.key()}
    if kind == "Update":
        members["UpdateExpression"] = it.update()
    returned = it.maybe(lambda: it.any_of("NONE", "ALL_OLD"))
    return {
        kind: it.request(
            **members, ConditionExpression=condition, ReturnValuesOnConditionCheckFailure=returned
        )
    }


def _statement(it: Parts) -> Request:
    key = it.key()
    where = f"WHERE p = '{key['p']['S']}' AND s = {key['s']['N']}"
    text = it.any_of(
        f"SELECT * FROM tab {where}",
        "SELECT a, b FROM tab WHERE p = 'a' ORDER BY s DESC",
        'SELECT * FROM "tab"."g-all" WHERE g = \'g\'',
        "SELECT * FROM tab WHERE a = ?",
        f"UPDATE tab SET a = ? {where} RETURNING ALL NEW *",
        f"UPDATE tab REMOVE b {where}",
        f"DELETE FROM tab {where}",
        f"INSERT INTO tab VALUE {{'p': '{key['p']['S']}', 's': {key['s']['N']}, 'a': ?}}",
    )
    more = {"Parameters": [it.draw(SCALARS)]} if "?" in text else {}
    return {"Statement": text, **more}


def _batch_statements(it: Parts) -> Request:
    return {"Statements": [_statement(it) for _ in range(it.any_of(1, 2))]}


def _statements(it: Parts) -> Request:
    return {"TransactStatements": [_statement(it) for _ in range(it.any_of(1, 2))]}


def _create(it: Parts) -> Request:
    return copy.deepcopy({**STREAMED, "TableName": it.any_of("new", "new", "tab")})


def _update_table(it: Parts) -> Request:
    added = {
        "AttributeDefinitions": [
            {"AttributeName": "x", "AttributeType": "S"},
            {"AttributeName": "p", "AttributeType": "S"},
            {"AttributeName": "s", "AttributeType": "N"},
        ],
        "GlobalSecondaryIndexUpdates": [{"Create": index("added", "x")}],
    }
    removed = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "added"}}]}
    change = it.any_of({"DeletionProtectionEnabled": False}, added, removed)
    return {"TableName": it.any_of("tab", "new"), **copy.deepcopy(change)}


def _of_base(action: str) -> Callable[[Parts], Request]:
    return lambda it: copy.deepcopy(BASES[action])


_LACKING: Final = ("TagResource", "UntagResource", "ListTagsOfResource", "DescribeEndpoints")
"""What DynamoDB Local does not answer."""

MAKERS: Final[dict[str, Callable[[Parts], Request]]] = {
    **{action: _of_base(action) for action in BASES if action not in _LACKING},
    "PutItem": _put,
    "UpdateItem": _update,
    "DeleteItem": _delete,
    "GetItem": _get,
    "Query": _query,
    "Scan": _scan,
    "BatchGetItem": _batch_get,
    "BatchWriteItem": _batch_write,
    "TransactGetItems": _transact_get,
    "TransactWriteItems": _transact_write,
    "ExecuteStatement": _statement,
    "BatchExecuteStatement": _batch_statements,
    "ExecuteTransaction": _statements,
    "CreateTable": _create,
    "UpdateTable": _update_table,
}
# Actions on items come more often than those on tables, which take DynamoDB Local long.
_ITEMS: Final = tuple(
    each
    for each in MAKERS
    if each.endswith(("Item", "Items", "Query", "Scan", "Transaction", "Statement"))
)
_OTHERS: Final = tuple(each for each in MAKERS if each not in _ITEMS)
_ALL: Final = (*(_ITEMS * 7 * len(_OTHERS)), *(_OTHERS * len(_ITEMS)))


def model_of(action: str) -> Model:
    """The service model that has the action."""
    return model("dynamodbstreams" if action in STREAMS else "dynamodb")


def places(known: Model, name: str, value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, str]]:
    """The path and the shape of each member that a value of a shape has, or could have."""
    shape = known.shapes[name]
    if name == "AttributeValue":
        return
    inside: list[tuple[str | int, str]] = []
    if shape["type"] == "structure" and isinstance(value, dict):
        inside = list(shape["members"].items())
    elif shape["type"] == "map" and isinstance(value, dict):
        inside = [(key, shape["value"]) for key in value]
    elif shape["type"] == "list" and isinstance(value, list):
        inside = [(place, shape["member"]) for place in range(len(value))]
    for step, of in inside:
        yield (*path, step), of
        present = isinstance(step, int) or step in value
        if present:
            yield from places(known, of, value[step], (*path, step))


def spoil(dice: Dice, action: str, request: Request) -> Request:
    """The request with one fault more."""
    known = model_of(action)
    every = list(places(known, known.input_of(action), request))
    if not every:
        return request
    path, name = dice.random.choice(every)
    spoiled = copy.deepcopy(request)
    parent: Any = spoiled
    for step in path[:-1]:
        parent = parent[step]
    last: Any = path[-1]
    wrong = WRONG_VALUES if name == "AttributeValue" else [v for _, v in wrong_values(known, name)]
    value = dice.random.choice([ABSENT, ABSENT, None, *wrong])
    if value is not ABSENT:
        parent[last] = copy.deepcopy(value)
    elif isinstance(parent, list) or last in parent:
        removed = parent.pop(last)
        if isinstance(parent, dict) and dice.random.randrange(2):
            parent[f"{last}x"] = removed
    return request if _lacks_an_action(spoiled) else spoiled


def _lacks_an_action(request: Request) -> bool:
    """Whether a legacy change has no Action, which means PUT: DynamoDB Local changes nothing, and says so to nobody."""
    changes = request.get("AttributeUpdates")
    every = changes.values() if isinstance(changes, dict) else ()
    return any(
        each is None or (isinstance(each, dict) and each.get("Action") is None) for each in every
    )


def random_request(dice: Dice) -> Drawn:
    """A random request; half of them have no fault."""
    action = dice.random.choice(_ALL)
    request = MAKERS[action](parts(dice))
    faults = dice.random.choice((0, 0, 0, 1, 1, 2))
    for _ in range(faults):
        request = spoil(dice, action, request)
    return Drawn(action, request, faults)
