"""Conditions as people type them, and the requests they become."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotone.cli.conditions import ConditionWords, parse_conditions
from isotone.cli.query_plan import plan_query, plan_scan
from isotone.cli.table_keys import key_from
from isotone.errors import UsageError
from isotone.tables.description import description_of

TYPES = {"customer": "S", "placed_at": "S", "status": "S", "total": "N"}


def schema(partition, sort):
    parts = [*((name, "HASH") for name in partition), *((name, "RANGE") for name in sort)]
    return [{"AttributeName": name, "KeyType": kind} for name, kind in parts]


TABLE = description_of(
    {
        "TableName": "Orders",
        "KeySchema": schema(["customer"], ["placed_at"]),
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": code} for name, code in TYPES.items()
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": name, "KeySchema": schema(*key)}
            for name, key in {
                "by_status": (["status"], ["placed_at"]),
                "by_total": (["customer"], ["total"]),
                "by_both": (["status", "customer"], ["placed_at", "total"]),
            }.items()
        ],
    }
)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("customer=ann", ConditionWords("customer", "=", ("ann",))),
        (" customer =  ann b ", ConditionWords("customer", "=", ("ann b",))),
        ("customer=", ConditionWords("customer", "=", ("",))),
        ("a<=5", ConditionWords("a", "<=", ("5",))),
        ("a!=5", ConditionWords("a", "<>", ("5",))),
        ("a = b=c", ConditionWords("a", "=", ("b=c",))),
        ("at begins_with 2020", ConditionWords("at", "begins_with", ("2020",))),
        ("at BEGINS_WITH 2020", ConditionWords("at", "begins_with", ("2020",))),
        ("at between 1 and 2", ConditionWords("at", "between", ("1", "2"))),
        ("note exists", ConditionWords("note", "exists", ())),
        ("note missing", ConditionWords("note", "missing", ())),
        ('"my name" = x', ConditionWords("my name", "=", ("x",))),
        ("a.b = x", ConditionWords("a.b", "=", ("x",))),
    ],
)
def test_one_condition(text, condition):
    assert parse_conditions([text]) == [condition]


@pytest.mark.parametrize(
    "words",
    [
        ["a=1", "b between 2 and 3", "c exists"],
        ["a=1 and b between 2 and 3 and c exists"],
        ["a=1", "and", "b", "between", "2", "and", "3", "and", "c", "exists"],
        ["a = 1 AND b between 2 AND 3", "c exists"],
        ["a=1", "b", "between", "2", "and", "3", "c", "exists"],
        ["a=", "1", "b between", "2 and 3", "c exists"],
    ],
)
def test_conditions_come_in_words_or_joined(words):
    assert parse_conditions(words) == [
        ConditionWords("a", "=", ("1",)),
        ConditionWords("b", "between", ("2", "3")),
        ConditionWords("c", "exists", ()),
    ]


@pytest.mark.parametrize("text", ["", "ann", "= ann", "a between 1", "a exists now", "a like b"])
def test_what_is_no_condition_is_refused(text):
    with pytest.raises(UsageError, match=r"condition|takes"):
        parse_conditions([text])


@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_any_words_are_conditions_or_a_usage_error(words):
    try:
        conditions = parse_conditions(words)
    except UsageError:
        return
    assert all(condition.name for condition in conditions)


def plan(*texts, index=None):
    return plan_query(TABLE, parse_conditions(texts), index)


def test_the_key_decides_what_is_read_and_the_rest_filters():
    found = plan("customer=ann", "placed_at begins_with 2020", "note contains gift", "size > 10")
    assert found.index is None
    assert found.filtered
    assert found.parameters == {
        "KeyConditionExpression": "#n0 = :v0 AND begins_with(#n1, :v1)",
        "FilterExpression": "contains(#n2, :v2) AND #n3 > :v3",
        "ExpressionAttributeNames": {
            "#n0": "customer",
            "#n1": "placed_at",
            "#n2": "note",
            "#n3": "size",
        },
        "ExpressionAttributeValues": {
            ":v0": {"S": "ann"},
            ":v1": {"S": "2020"},
            ":v2": {"S": "gift"},
            ":v3": {"N": "10"},
        },
    }


def test_the_index_that_suits_is_found():
    assert plan("status=OPEN").index == "by_status"
    assert plan("customer=ann", "total between 1 and 2").index == "by_total"
    assert plan("customer=ann").index is None
    assert plan("customer=ann", "status=OPEN", "placed_at > 2020").index == "by_both"


def test_a_named_index_is_taken():
    found = plan("customer=ann", "placed_at > 2020", index="by_total")
    assert found.parameters["IndexName"] == "by_total"
    assert found.parameters["KeyConditionExpression"] == "#n0 = :v0"
    assert found.parameters["FilterExpression"] == "#n1 > :v1"


def test_parts_of_a_sort_key_are_taken_from_the_left():
    found = plan("status=OPEN", "customer=ann", "placed_at=2020", "total < 5", index="by_both")
    assert not found.filtered
    assert found.parameters["ExpressionAttributeValues"][":v3"] == {"N": "5"}
    with pytest.raises(UsageError, match="sort key placed_at total one condition"):
        plan("status=OPEN", "customer=ann", "total < 5", index="by_both")  # no filter on the key


def test_values_of_keys_have_the_type_of_the_key():
    found = plan("customer=10", "total=10")
    assert found.parameters["ExpressionAttributeValues"] == {":v0": {"S": "10"}, ":v1": {"N": "10"}}


def test_a_query_without_a_partition_key_says_which_ones_there_are():
    with pytest.raises(UsageError) as refusal:
        plan("placed_at > 2020")
    assert "customer=…" in str(refusal.value)
    assert "status=… (index by_status)" in str(refusal.value)
    assert "isotone scan" in str(refusal.value)
    with pytest.raises(UsageError):
        plan("status=OPEN", index="by_total")


def test_an_unknown_index_is_refused_with_those_there_are():
    with pytest.raises(
        UsageError, match="no index nope; its indexes: by_status, by_total, by_both"
    ):
        plan("customer=ann", index="nope")


def test_a_scan_only_filters():
    assert plan_scan(TABLE, [], None).parameters == {}
    found = plan_scan(TABLE, parse_conditions(["customer=ann"]), "by_total")
    assert found.parameters["FilterExpression"] == "#n0 = :v0"
    assert found.parameters["IndexName"] == "by_total"


def test_a_key_is_read_in_order_or_by_name():
    key = {"customer": {"S": "ann"}, "placed_at": {"S": "2020"}}
    assert key_from(TABLE, ["ann", "2020"]) == key
    assert key_from(TABLE, ["placed_at=2020", "customer=ann"]) == key
    assert key_from(TABLE, ["a=b", "2020"])["customer"] == {"S": "a=b"}
    with pytest.raises(
        UsageError, match=r"has 2 values: customer \(S\) · placed_at \(S\); you gave 1"
    ):
        key_from(TABLE, ["ann"])
