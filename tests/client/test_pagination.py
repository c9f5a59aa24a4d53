"""The oracle is botocore's own paginator over the same pages."""

from __future__ import annotations

from typing import Any

import botocore.exceptions
import botocore.session
import pytest
from botocore.paginate import Paginator as BotocorePaginator
from hypothesis import given
from hypothesis import strategies as st

from isotone.client.pagination import PAGINATED, Paginator

SESSION = botocore.session.Session()
MODEL = SESSION.get_service_model("dynamodb")
QUERY = {
    "input_token": "ExclusiveStartKey",
    "output_token": "LastEvaluatedKey",
    "limit_key": "Limit",
    "result_key": ["Items", "Count", "ScannedCount"],
    "non_aggregate_keys": ["ConsumedCapacity"],
}


class Table:
    """A query over items 0..n, in pages of given sizes (the last repeats), like the service's."""

    def __init__(self, items: int, sizes: list[int]) -> None:
        self.items = [{"n": {"N": str(n)}, "b": {"B": bytes([n])}} for n in range(items)]
        self.sizes = sizes
        self.requests: list[dict[str, Any]] = []

    def query(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        start = request.get("ExclusiveStartKey")
        first = 0 if start is None else int(start["n"]["N"]) + 1
        size = request.get("Limit") or self.sizes[first % len(self.sizes)]
        page = self.items[first : first + size]
        answer = {
            "Items": list(page),
            "Count": len(page),
            "ScannedCount": len(page),
            "ConsumedCapacity": {"CapacityUnits": float(first)},
        }
        if first + size < len(self.items):
            last = self.items[first + size - 1]
            answer["LastEvaluatedKey"] = {"n": last["n"], "b": last["b"]}
        return answer

    def list_tags_of_resource(self, **request: Any) -> dict[str, Any]:
        return {"Tags": []}


def botocore_pages(table: Table, config: dict[str, Any]) -> Any:
    paginator = BotocorePaginator(table.query, QUERY, MODEL.operation_model("Query"))
    return paginator.paginate(TableName="t", PaginationConfig=config)


def our_pages(table: Table, config: dict[str, Any]) -> Any:
    return Paginator(table.query, PAGINATED["query"]).paginate(
        TableName="t", PaginationConfig=config
    )


configs = st.fixed_dictionaries(
    {}, optional={"MaxItems": st.integers(1, 12), "PageSize": st.integers(1, 5)}
)


@given(st.integers(0, 12), st.lists(st.integers(1, 4), min_size=1, max_size=3), configs)
def test_gives_botocores_pages_and_result(
    items: int, sizes: list[int], config: dict[str, Any]
) -> None:
    ours, theirs = Table(items, sizes), Table(items, sizes)
    assert list(our_pages(ours, config)) == list(botocore_pages(theirs, config))
    assert ours.requests == theirs.requests
    ours_full = our_pages(ours, config).build_full_result()
    theirs_full = botocore_pages(theirs, config).build_full_result()
    assert ("NextToken" in ours_full) == ("NextToken" in theirs_full)
    ours_full.pop("NextToken", None), theirs_full.pop("NextToken", None)
    assert ours_full == theirs_full


@given(st.integers(0, 12), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 5))
def test_resuming_gives_each_item_once(items: int, sizes: list[int], most: int) -> None:
    table = Table(items, sizes)
    seen: list[Any] = []
    token = None
    while True:
        pages = our_pages(table, {"MaxItems": most, "StartingToken": token})
        full = pages.build_full_result()
        assert len(full["Items"]) <= most
        seen += full["Items"]
        token = full.get("NextToken")
        if token is None:
            break
    assert seen == table.items


def test_searches_with_jmespath() -> None:
    assert list(our_pages(Table(5, [2]), {}).search("Items[].n.N")) == list("01234")
    assert list(our_pages(Table(5, [2]), {}).search("Count")) == [2, 2, 1]


def test_stops_when_the_service_does_not_move_on() -> None:
    class Stuck(Table):
        def query(self, **request: Any) -> dict[str, Any]:
            return {"Items": [], "LastEvaluatedKey": {"n": {"N": "1"}}}

    with pytest.raises(botocore.exceptions.PaginationError, match="received twice"):
        list(our_pages(Stuck(1, [1]), {}))


@pytest.mark.parametrize("token", ["no base64!", "bm90IGpzb24=", 3])
def test_refuses_bad_tokens(token: Any) -> None:
    with pytest.raises(botocore.exceptions.PaginationError, match="Bad starting token"):
        our_pages(Table(1, [1]), {"StartingToken": token})


def test_refuses_a_page_size_where_there_is_no_limit() -> None:
    with pytest.raises(botocore.exceptions.PaginationError, match="PageSize"):
        Paginator(Table(1, [1]).list_tags_of_resource, PAGINATED["list_tags_of_resource"]).paginate(
            PaginationConfig={"PageSize": 1}
        )


def test_knows_the_actions_that_botocore_pages() -> None:
    model = SESSION.get_paginator_model("dynamodb")
    known = PAGINATED.keys() - {"list_bulk_operations"}  # newer than the botocore of the tests
    assert {name: model.get_paginator(_action(name)) for name in known} == {
        name: _described(name) for name in known
    }


def _action(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))


def _described(name: str) -> dict[str, Any]:
    paging = PAGINATED[name]
    results: Any = list(paging.results) if len(paging.results) > 1 else paging.results[0]
    described = {
        "input_token": paging.input_token,
        "output_token": paging.output_token,
        "limit_key": paging.limit,
        "result_key": results,
        "non_aggregate_keys": list(paging.from_first_page),
    }
    return {key: value for key, value in described.items() if value}
