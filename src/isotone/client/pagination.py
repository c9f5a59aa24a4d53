"""Paginators, as in botocore: repeat a call until no page is left (PaginationConfig: PageSize, MaxItems).

`PaginationConfig` has botocore's members. `PageSize` is the limit of each call. `MaxItems` bounds the
items of all pages together. If it cuts a page, `resume_token` (`NextToken` in the full result) holds
the page's start key and the number of its items already returned; `StartingToken` continues there.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from isotone.client.exceptions import pagination_error
from isotone.client.responses import restore_binary

_SKIP: Final = "boto_truncate_amount"


class Paging(NamedTuple):
    """The members of an action's request and response that control paging."""

    input_token: str
    output_token: str
    limit: str | None
    results: tuple[str, ...]  # summed over pages; the first one contains the items
    from_first_page: tuple[str, ...] = ()


_ITEMS: Final = Paging(
    "ExclusiveStartKey",
    "LastEvaluatedKey",
    "Limit",
    ("Items", "Count", "ScannedCount"),
    ("ConsumedCapacity",),
)

PAGINATED: Final[Mapping[str, Paging]] = {
    "list_backups": Paging(
        "ExclusiveStartBackupArn", "LastEvaluatedBackupArn", "Limit", ("BackupSummaries",)
    ),
    "list_bulk_operations": Paging(
        "NextToken", "NextToken", "MaxResults", ("BulkOperationsSummaryList",)
    ),
    "list_tables": Paging(
        "ExclusiveStartTableName", "LastEvaluatedTableName", "Limit", ("TableNames",)
    ),
    "list_tags_of_resource": Paging("NextToken", "NextToken", None, ("Tags",)),
    "query": _ITEMS,
    "scan": _ITEMS,
}


class Paginator:
    """`client.get_paginator(name)`."""

    def __init__(self, method: Callable[..., Any], paging: Paging) -> None:
        self._method = method
        self._paging = paging

    def paginate(
        self, *, PaginationConfig: Mapping[str, Any] | None = None, **request: Any
    ) -> PageIterator:
        """The pages of a call with these arguments. Calls are made while the pages are iterated."""
        return PageIterator(self._method, self._paging, dict(PaginationConfig or {}), request)


class PageIterator:
    """Iterates over pages, each a response of the action. Costs one call per page."""

    def __init__(
        self, method: Any, paging: Paging, config: dict[str, Any], request: dict[str, Any]
    ) -> None:
        self._method = method
        self._paging = paging
        self._request = request
        self._max_items = None if config.get("MaxItems") is None else int(config["MaxItems"])
        self._start = _decode_token(config.get("StartingToken"))
        self._page_size(config.get("PageSize"))
        self.resume_token: str | None = None
        self.non_aggregate_part: dict[str, Any] = {}

    def _page_size(self, page_size: Any) -> None:
        if page_size is None:
            return
        if self._paging.limit is None:
            raise pagination_error(
                "PageSize parameter is not supported for the pagination interface for this operation."
            )
        self._request[self._paging.limit] = int(page_size)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        token, skip = self._start
        left = self._max_items
        page = self._first(token, skip)
        while True:
            returned = self._cut(page, left)
            if returned is not None:
                self.resume_token = self._encode_token(token, skip + returned)
            yield page
            if left is not None:
                left -= self._count(page)
            previous, token, skip = token, page.get(self._paging.output_token), 0
            if token is None or returned is not None:
                return
            if left == 0:
                self.resume_token = self._encode_token(token, 0)
                return
            if token == previous:
                raise pagination_error(f"The same next token was received twice: {token}")
            page = self._call(token)

    def _count(self, page: dict[str, Any]) -> int:
        return len(page.get(self._paging.results[0], ()))

    def _cut(self, page: dict[str, Any], left: int | None) -> int | None:
        """Cut a page to the `left` items that may still be returned; None if the page is not longer."""
        if left is None or self._count(page) <= left:
            return None
        primary = self._paging.results[0]
        page[primary] = page[primary][:left]
        return left

    def _first(self, token: Any, skip: int) -> dict[str, Any]:
        """The first page, without the items and counts that an earlier run returned."""
        page = self._call(token)
        once = self._paging.from_first_page
        self.non_aggregate_part = {name: page[name] for name in once if name in page}
        if self._start != (None, 0):
            primary, *others = self._paging.results
            page[primary] = page.get(primary, [])[skip:]
            page.update(dict.fromkeys(others, 0))
        return page

    def _call(self, token: Any) -> dict[str, Any]:
        request = self._request
        if token is not None:
            request = {**request, self._paging.input_token: token}
        page: dict[str, Any] = self._method(**request)
        return page

    def build_full_result(self) -> dict[str, Any]:
        """All pages as one response: items in one list, counts summed. Costs one call per page."""
        full: dict[str, Any] = {}
        for page in self:
            for name in self._paging.results:
                if name in page:
                    full[name] = full[name] + page[name] if name in full else page[name]
        full |= self.non_aggregate_part
        if self.resume_token is not None:
            full["NextToken"] = self.resume_token
        return full

    def search(self, expression: str) -> Iterator[Any]:
        """The results of a JMESPath expression in each page; needs the `jmespath` package."""
        import jmespath  # type: ignore[import-untyped] # it has no stubs

        compiled = jmespath.compile(expression)
        for page in self:
            result = compiled.search(page)
            if isinstance(result, list):
                yield from result
            else:
                yield result

    def _encode_token(self, token: Any, returned: int) -> str:
        resume = {self._paging.input_token: token, _SKIP: returned or None}
        present = {name: value for name, value in resume.items() if value is not None}
        return b64encode(msgspec.json.encode(present)).decode()


def _decode_token(token: Any) -> tuple[Any, int]:
    """The key to start at, and the number of items of that page to skip."""
    if token is None:
        return None, 0
    try:
        resume = msgspec.json.decode(b64decode(token, validate=True), type=dict[str, Any])
        returned = int(resume.pop(_SKIP, 0))
    except (ValueError, TypeError):
        raise pagination_error(f"Bad starting token: {token}") from None
    restore_binary(resume)
    return next(iter(resume.values()), None), returned
