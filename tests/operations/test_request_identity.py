"""The identity of a transaction: its bytes, which are stored, and what it leaves out."""

from __future__ import annotations

import copy
import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.operations.conftest import Asker

import isotone
from isotone.engine import transaction_tokens
from isotone.errors import IdempotentParameterMismatchException
from isotone.operations.request_identity import identity_before_forms, identity_of
from isotone.operations.statements import ParameterizedStatement
from isotone.operations.transactions import TransactWriteItem

UPDATE = {
    "Update": {
        "TableName": "tab",
        "Key": {"s": {"N": "1.0"}, "p": {"S": 'ü"'}},
        "UpdateExpression": "SET #a = :a, #b = :b",
        "ExpressionAttributeNames": {"#b": "b", "#a": "a"},
        "ExpressionAttributeValues": {":b": {"SS": ["y", "x"]}, ":a": {"M": {"n": {"NULL": True}}}},
    }
}
CANONICAL = (
    '{"ConditionCheck":null,"Delete":null,"Put":null,"Update":{"ConditionExpression":null,'
    '"ExpressionAttributeNames":{"#a":"a","#b":"b"},'
    '"ExpressionAttributeValues":{":a":{"M":{"n":{"NULL":true}}},":b":{"SS":["x","y"]}},'
    '"Key":{"p":{"S":"ü\\""},"s":{"N":"1.0"}},"ReturnValuesOnConditionCheckFailure":null,'
    '"TableName":"tab","UpdateExpression":"SET #a = :a, #b = :b"}}\n'
)


def entries(*wanted: dict[str, Any]) -> list[TransactWriteItem]:
    return msgspec.json.decode(json.dumps(wanted), type=list[TransactWriteItem])


def test_the_bytes_of_an_identity() -> None:
    expected = b"\x01" + hashlib.sha256(CANONICAL.encode() * 2).digest()
    assert identity_of(entries(UPDATE, UPDATE)) == expected


def test_the_bytes_of_a_statement() -> None:
    statement = ParameterizedStatement("DELETE FROM tab WHERE p = ?", [{"S": "1"}])
    text = (
        '{"Parameters":[{"S":"1"}],"ReturnValuesOnConditionCheckFailure":null,'
        '"Statement":"DELETE FROM tab WHERE p = ?"}\n'
    )
    assert identity_of([statement]) == b"\x01" + hashlib.sha256(text.encode()).digest()


def test_the_bytes_of_an_identity_before_forms() -> None:
    text = (
        "[TransactWriteItem(condition_check=None, put=Put(item={'p': {'S': '1'}}, table_name='tab', "
        "condition_expression=None, expression_attribute_names=None, expression_attribute_values=None, "
        "return_values_on_condition_check_failure=None), delete=None, update=None)]"
    )
    put = {"Put": {"TableName": "tab", "Item": {"p": {"S": "1"}}}}
    assert identity_before_forms(entries(put)) == hashlib.sha256(text.encode()).digest()


values = st.recursive(
    st.sampled_from([{"S": "x"}, {"N": "1"}, {"N": "1.0"}, {"BOOL": True}])
    | st.permutations(["a", "b", "c"]).map(lambda members: {"SS": members}),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda members: {"L": members})
        | st.dictionaries(st.sampled_from(["SS", "b", "ü"]), inner).map(
            lambda members: {"M": members}
        )
    ),
    max_leaves=8,
)
items = st.dictionaries(st.sampled_from(["p", "SS", "L", "q"]), values, min_size=1)


def shuffled(value: Any, dice: random.Random) -> Any:
    """The same request: members and sets in another order."""
    if isinstance(value, list):
        return [shuffled(member, dice) for member in value]
    if not isinstance(value, dict):
        return value
    members = [
        (
            name,
            dice.sample(member, len(member))
            if name == "SS" and isinstance(member, list)
            else shuffled(member, dice),
        )
        for name, member in value.items()
    ]
    dice.shuffle(members)
    return dict(members)


def meaning(value: Any) -> Any:
    """What a request says, by Python's own equality."""
    if isinstance(value, list):
        return [meaning(member) for member in value]
    if not isinstance(value, dict):
        return value
    return {
        name: set(member) if name == "SS" and isinstance(member, list) else meaning(member)
        for name, member in value.items()
    }


@given(item=items, other=items, seed=st.integers(0, 2**32))
def test_equal_requests_have_one_identity_and_others_another(
    item: dict[str, Any], other: dict[str, Any], seed: int
) -> None:
    def identity(item: dict[str, Any]) -> bytes:
        return identity_of(entries({"Put": {"TableName": "tab", "Item": item}}))

    assert identity(item) == identity(shuffled(item, random.Random(seed)))
    assert (identity(item) == identity(other)) == (meaning(item) == meaning(other))


@pytest.mark.parametrize("action", ["TransactWriteItems", "ExecuteTransaction"])
def test_a_repeated_transaction_may_have_its_members_in_another_order(
    ask: Asker, action: str
) -> None:
    ask.table()
    if action == "TransactWriteItems":
        add = {
            **UPDATE["Update"],
            "Key": {"p": {"S": "1"}},
            "UpdateExpression": "SET #a = :a ADD #b :b",
        }
        request: dict[str, Any] = {"TransactItems": [{"Update": add}]}
    else:
        value = {"M": {"a": {"SS": ["1", "2"]}, "b": {"N": "1"}}}
        insert = {"Statement": "INSERT INTO tab VALUE {'p': '1', 'v': ?}", "Parameters": [value]}
        request = {"TransactStatements": [insert]}
    dice = random.Random(7)
    for _ in range(5):
        ask(action, **shuffled(request, dice), ClientRequestToken="token")
    item = ask("GetItem", TableName="tab", Key={"p": {"S": "1"}})["Item"]
    assert item.keys() == ({"p", "a", "b"} if action == "TransactWriteItems" else {"p", "v"})


def test_a_token_of_the_form_before_is_recognised(
    ask: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask.table()
    add = {
        "TableName": "tab",
        "Key": {"p": {"S": "1"}},
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    request = {"TransactItems": [{"Update": add}], "ClientRequestToken": "token"}
    remember = transaction_tokens.remember
    monkeypatch.setattr(
        transaction_tokens,
        "remember",
        lambda engine, token, _: remember(
            engine, token, identity_before_forms(entries({"Update": add}))
        ),
    )
    for _ in range(2):
        ask("TransactWriteItems", **request)
    assert ask("GetItem", TableName="tab", Key={"p": {"S": "1"}})["Item"]["n"] == {"N": "1"}
    add["ExpressionAttributeValues"] = {":one": {"N": "2"}}
    error = ask.refused("TransactWriteItems", **request)
    assert error.code == "IdempotentParameterMismatchException"


# Two databases as older versions wrote them, with these transactions executed at this time. In one, an identity is the
# digest of the request's `repr`, in the other the digest of its canonical JSON.
WRITTEN_AT = 1_800_000_000.0
WRITTEN: list[tuple[str, dict[str, Any]]] = [
    (
        "TransactWriteItems",
        {
            "ClientRequestToken": "writes",
            "TransactItems": [
                {
                    "Update": {
                        "TableName": "tab",
                        "Key": {"p": {"S": "ü'\""}},
                        "UpdateExpression": "ADD #n :one SET #v = :v",
                        "ExpressionAttributeNames": {"#v": "v", "#n": "n"},
                        "ExpressionAttributeValues": {
                            ":v": {
                                "M": {
                                    "b": {"B": "AAE="},
                                    "s": {"SS": ["y", "x"]},
                                    "l": {"L": [{"NULL": True}, {"N": "1.0"}]},
                                }
                            },
                            ":one": {"N": "1"},
                        },
                    }
                },
                {
                    "Put": {
                        "TableName": "tab",
                        "Item": {"p": {"S": "put"}, "n": {"N": "1.0"}},
                        "ConditionExpression": "attribute_not_exists(p)",
                    }
                },
                {
                    "ConditionCheck": {
                        "TableName": "tab",
                        "Key": {"p": {"S": "none"}},
                        "ConditionExpression": "attribute_not_exists(p)",
                    }
                },
                {"Delete": {"TableName": "tab", "Key": {"p": {"S": "gone"}}}},
            ],
        },
    ),
    (
        "ExecuteTransaction",
        {
            "ClientRequestToken": "statements",
            "TransactStatements": [
                {
                    "Statement": "INSERT INTO tab VALUE {'p': 'statement', 'v': ?}",
                    "Parameters": [{"SS": ["2", "1"]}],
                }
            ],
        },
    ),
]


def other(request: dict[str, Any]) -> dict[str, Any]:
    """The request with one entry changed."""
    changed = copy.deepcopy(request)
    if "TransactItems" in changed:
        changed["TransactItems"][3]["Delete"]["Key"]["p"]["S"] = "other"
    else:
        changed["TransactStatements"][0]["Parameters"] = [{"SS": ["3", "1"]}]
    return changed


@pytest.mark.parametrize("form", ["repr", "form_1"])
def test_tokens_in_a_file_of_an_older_version_are_recognised(form: str, tmp_path: Path) -> None:
    packed = (Path(__file__).parent / f"tokens_{form}.db.gz").read_bytes()
    path = tmp_path / "shop.db"
    path.write_bytes(gzip.decompress(packed))
    clock = isotone.ManualClock(WRITTEN_AT + 1)
    with isotone.open(path, clock=clock) as database:
        before = database.execute("Scan", {"TableName": "tab"})["Items"]
        assert len(before) == 3
        for action, request in WRITTEN:
            database.execute(action, request)
            with pytest.raises(IdempotentParameterMismatchException):
                database.execute(action, other(request))
        assert database.execute("Scan", {"TableName": "tab"})["Items"] == before
        clock.advance(isotone.limits.TOKEN_LIFETIME + 1)
        with pytest.raises(isotone.errors.TransactionCanceledException):
            database.execute(*WRITTEN[0])  # a new transaction, whose condition fails
