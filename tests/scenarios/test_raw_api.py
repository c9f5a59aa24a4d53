"""The ordering and filtering scenarios at the level of the raw API, with keys made by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.stateful.backends import Ask, in_process, over_http

import isotone
from isotone.server import running_server

Call = Callable[..., dict[str, Any]]


@pytest.fixture(params=["memory", "file", "http"])
def call(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Call]:
    """Calls an action of a fresh database, which must accept it."""
    path = tmp_path / "scenario.db" if request.param == "file" else ":memory:"
    with isotone.open(path) as database:
        if request.param == "http":
            with running_server(database) as url, over_http(url) as ask:
                yield _accepting(ask)
        else:
            yield _accepting(in_process(database))


def _accepting(ask: Ask) -> Call:
    def call(operation: str, **request: Any) -> dict[str, Any]:
        code, answer = ask(operation, request)
        assert code == "ok", answer
        return answer

    return call


def make_table(call: Call, sort_type: str = "S", **indexes: tuple[str, str]) -> None:
    """A table `t` with keys PK and SK, and global indexes by name over two string attributes."""
    attributes = {"PK": "S", "SK": sort_type}
    attributes.update({name: "S" for keys in indexes.values() for name in keys})
    request: dict[str, Any] = {
        "TableName": "tab",
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": kind} for name, kind in attributes.items()
        ],
        "KeySchema": _key("PK", "SK"),
        "BillingMode": "PAY_PER_REQUEST",
    }
    if indexes:
        request["GlobalSecondaryIndexes"] = [
            {
                "IndexName": name,
                "KeySchema": _key(*keys),
                "Projection": {"ProjectionType": "ALL"},
            }
            for name, keys in indexes.items()
        ]
    call("CreateTable", **request)


def _key(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def put(call: Call, partition: str, sort: str, sort_type: str = "S", **attributes: str) -> None:
    item = {"PK": {"S": partition}, "SK": {sort_type: sort}}
    item.update({name: {"S": value} for name, value in attributes.items()})
    call("PutItem", TableName="tab", Item=item)


def query(call: Call, condition: str = "", forward: bool = True, **more: Any) -> dict[str, Any]:
    """Query partition `p`, with a further condition on SK over `:a` and `:b`."""
    values = more.pop("values", {})
    used = {f":{name}": {"S": value} for name, value in values.items()}
    return call(
        "Query",
        TableName="tab",
        KeyConditionExpression=f"PK = :p{condition}",
        ExpressionAttributeValues={":p": {"S": more.pop("partition", "p")}, **used},
        ScanIndexForward=forward,
        **more,
    )


def sorts(page: dict[str, Any], kind: str = "S") -> list[str]:
    return [item["SK"][kind] for item in page["Items"]]


def test_1_text_sorts_by_its_utf8_bytes(call: Call) -> None:
    make_table(call)
    for word in ["apple", "Banana", "cherry", "#1", "é", "～", "😀"]:
        put(call, "p", word)
    expected = ["#1", "Banana", "apple", "cherry", "é", "～", "😀"]
    assert sorts(query(call)) == expected
    assert sorts(query(call, forward=False)) == expected[::-1]


NUMBERS = [
    ("-1e125", "-1" + "0" * 125),
    ("-2", "-2"),
    ("-1.5", "-1.5"),
    ("0", "0"),
    ("1e-130", "0." + "0" * 129 + "1"),
    ("2", "2"),
    ("10", "10"),
    ("123456789012345678901234567890.12345678", "123456789012345678901234567890.12345678"),
]


def test_2_numbers_sort_by_value_and_keep_all_their_digits(call: Call) -> None:
    make_table(call, sort_type="N")
    for written, _ in reversed(NUMBERS):
        put(call, "p", written, sort_type="N")
    assert sorts(query(call), "N") == [shown for _, shown in NUMBERS]
    assert sorts(query(call, forward=False), "N") == [shown for _, shown in NUMBERS][::-1]


def test_5_an_updated_ticket_moves_to_the_top_in_the_same_write(call: Call) -> None:
    make_table(call, recent=("board", "updated_at"))
    for number, day in (("1", "01"), ("2", "02"), ("3", "03")):
        put(call, "TICKET", number, board="b", updated_at=f"2026-01-{day}")
    assert recently_updated(call) == ["3", "2", "1"]
    call(
        "UpdateItem",
        TableName="tab",
        Key={"PK": {"S": "TICKET"}, "SK": {"S": "1"}},
        UpdateExpression="SET updated_at = :now",
        ExpressionAttributeValues={":now": {"S": "2026-01-04"}},
    )
    assert recently_updated(call) == ["1", "3", "2"]


def recently_updated(call: Call) -> list[str]:
    page = call(
        "Query",
        TableName="tab",
        IndexName="recent",
        KeyConditionExpression="board = :b",
        ExpressionAttributeValues={":b": {"S": "b"}},
        ScanIndexForward=False,
    )
    return sorts(page)


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 10])
def test_6_pages_in_both_directions_and_back_again(call: Call, forward: bool, size: int) -> None:
    make_table(call)
    all_sorts = [f"READING#2026-01-{day:02}" for day in range(1, 8)]
    for sort in all_sorts:
        put(call, "p", sort)
    pages = []
    start: dict[str, Any] = {}
    while True:
        page = query(call, forward=forward, Limit=size, **start)
        pages.append(sorts(page))
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    expected = all_sorts if forward else all_sorts[::-1]
    assert [sort for each in pages for sort in each] == expected
    # Back to the page before: read the other way from the first item of a page.
    for before, after in pairwise(pages):
        if after:
            back = {"PK": {"S": "p"}, "SK": {"S": after[0]}}
            page = query(call, forward=not forward, Limit=size, ExclusiveStartKey=back)
            assert sorts(page)[::-1] == before


def test_7_a_parent_and_its_newest_children_in_one_read(call: Call) -> None:
    make_table(call)
    days = [f"{day:02}" for day in range(1, 6)]
    # The sensor's own item sorts behind all of its readings: it comes first in descending order.
    put(call, "p", "SENSOR")
    for day in days:
        put(call, "p", f"READING#2026-01-{day}")
    newest = query(call, forward=False, Limit=4)
    assert sorts(newest) == [
        "SENSOR",
        "READING#2026-01-05",
        "READING#2026-01-04",
        "READING#2026-01-03",
    ]
    assert newest["ScannedCount"] == 4


def test_7_a_parent_before_ascending_children(call: Call) -> None:
    make_table(call)
    put(call, "p", "#SENSOR")
    for day in ("03", "01", "02"):
        put(call, "p", f"READING#2026-01-{day}")
    assert sorts(query(call, Limit=2)) == ["#SENSOR", "READING#2026-01-01"]


REPOSITORY = "REPO#octo#hello"


def make_repository(call: Call) -> None:
    """Forks, issues and pull requests before the repository, stars behind it; numbers newest first."""
    make_table(call)
    for number in (2, 10, 157):
        put(call, "p", f"ISSUE#{99999 - number:05}")
        put(call, "p", f"PR#{99999 - number:05}")
    put(call, "p", REPOSITORY)
    for user in ("bob", "alice"):
        put(call, "p", f"STAR#{user}")
        put(call, "p", f"FORK#{user}")


def test_10_a_zero_padded_difference_puts_the_newest_first(call: Call) -> None:
    make_repository(call)
    for kind in ("ISSUE", "PR"):
        page = query(call, " AND begins_with(SK, :a)", values={"a": f"{kind}#"})
        assert sorts(page) == [f"{kind}#99842", f"{kind}#99989", f"{kind}#99997"]


def test_10_the_repository_with_its_pull_requests(call: Call) -> None:
    make_repository(call)
    between = {"a": "PR#", "b": REPOSITORY}
    page = query(call, " AND SK BETWEEN :a AND :b", forward=False, values=between)
    assert sorts(page) == [REPOSITORY, "PR#99997", "PR#99989", "PR#99842"]
    assert page["ScannedCount"] == 4


def test_10_the_repository_with_its_stars(call: Call) -> None:
    make_repository(call)
    page = query(call, " AND SK >= :a", values={"a": REPOSITORY})
    assert sorts(page) == [REPOSITORY, "STAR#alice", "STAR#bob"]


ORDERS = [
    "2020-01-10T23:59:59.999999",
    "2020-01-11T00:00:00.000000",
    "2020-01-20T12:00:00.000000",
    "2020-02-01T00:00:00.000000",
    "2020-02-01T00:00:00.000001",
]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("SK = :a", ORDERS[1:2]),
        ("SK < :a", ORDERS[:1]),
        ("SK <= :a", ORDERS[:2]),
        ("SK > :a", ORDERS[2:]),
        ("SK >= :a", ORDERS[1:]),
        ("SK BETWEEN :a AND :b", ORDERS[1:4]),
        ("begins_with(SK, :c)", ORDERS[:3]),
    ],
)
def test_11_every_operator_a_sort_key_has(call: Call, condition: str, expected: list[str]) -> None:
    make_table(call)
    for ordered_at in ORDERS:
        put(call, "p", ordered_at)
        put(call, "another customer", ordered_at)
    values = {"a": ORDERS[1], "b": ORDERS[3], "c": "2020-01"}
    used = {name: value for name, value in values.items() if f":{name}" in condition}
    page = query(call, f" AND {condition}", values=used)
    assert sorts(page) == expected
    assert page["ScannedCount"] == len(expected)


def test_11_a_prefix_with_its_separator_is_exact(call: Call) -> None:
    make_table(call)
    for status in ("CANCELLED", "CANCELLED_BY_SHOP", "CANCELLED!", "SHIPPED"):
        put(call, "p", f"{status}#2020-01-11")
    page = query(call, " AND begins_with(SK, :a)", values={"a": "CANCELLED#"})
    assert sorts(page) == ["CANCELLED#2020-01-11"]
