"""The tour's calls: each runs a chapter's question, measures it, and draws the item collection that it read.

What a question reads is derived from the requests that it sent. Each request is sent again without its filter, to find
the items that it read. Then the collection around them is read, to show what was not read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from isotone import Observation, at_end
from isotone.backends.interface import Backend
from isotone.demo import filtering, github, sorting, structured
from isotone.demo.chapter import Chapter
from isotone.demo.samples import tables
from isotone.errors import IsotoneError, UsageError
from isotone.model import Store, connect
from isotone.tables.description import read_description
from isotone.tables.threads import in_thread
from isotone.workbench.recognition import recognized

CHAPTERS: Final[Sequence[Chapter]] = (
    *sorting.CHAPTERS,
    *github.CHAPTERS,
    *filtering.CHAPTERS,
    *structured.CHAPTERS,
)

_HEAD, _TAIL = 12, 3  # rows of a long range that are shown
_AROUND: Final = 3  # rows shown before and after the range
_AT_EDGE: Final = 1  # rows shown at the ends of the collection
_MOST: Final = 1_000  # items of a collection that are counted
_EQUALS: Final = re.compile(r"(#?\w+)\s*=\s*(:\w+)")
_DROPPED: Final = ("FilterExpression", "ProjectionExpression", "Select", "ReturnConsumedCapacity")

Answer = dict[str, Any]


class Tour:
    """The chapters over one backend; `calls` are the calls of the page."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._models = {table.name: table for table in tables()}
        self._chapters = {chapter.name: chapter for chapter in CHAPTERS}

    @property
    def calls(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """The calls by name, for the workbench."""
        return {
            "tour": self._threaded(lambda given: self.chapters()),
            "tour_ask": self._threaded(self.ask),
            "tour_act": self._threaded(self.act),
        }

    def _threaded(self, function: Callable[[Mapping[str, Any]], Answer]) -> Callable[..., Any]:
        async def call(given: Mapping[str, Any]) -> Answer:
            return await in_thread(function, given)

        return call

    def chapters(self) -> Answer:
        """All chapters with their stories and code."""
        return {
            "chapters": [
                {
                    "name": chapter.name,
                    "scenario": chapter.scenario,
                    "group": chapter.group,
                    "title": chapter.title,
                    "story": chapter.story,
                    "parameters": chapter.parameters(),
                    "instead_title": chapter.instead_title,
                    "act_title": chapter.act_title,
                    **chapter.code(),
                }
                for chapter in CHAPTERS
            ]
        }

    def act(self, given: Mapping[str, Any]) -> Answer:
        """Run the change that a chapter offers: `{"chapter"}`."""
        chapter = self._chapter(given)
        if chapter.act is None:
            raise UsageError(f"chapter {chapter.name!r} has nothing to try")
        with self._store([]) as store:
            chapter.act(store)
        return {}

    def ask(self, given: Mapping[str, Any]) -> Answer:
        """Run a chapter's question: `{"chapter", "parameters"}`."""
        chapter = self._chapter(given)
        values = chapter.values(given.get("parameters") or {})
        answer, sent, milliseconds = self._measured(chapter.ask, values)
        reads = [each for each in sent if each.operation in ("Query", "Scan")]
        return {
            "cost": _cost(sent, milliseconds),
            "instead": self._instead(chapter, values),
            "refused": self._refused(chapter),
            "answer": _rows(chapter.columns, answer),
            "request": None if not reads else _shown(reads[0]),
            "collections": self._collections(reads),
        }

    def _chapter(self, given: Mapping[str, Any]) -> Chapter:
        chapter = self._chapters.get(str(given.get("chapter")))
        if chapter is None:
            raise UsageError(f"the tour has no chapter {given.get('chapter')!r}")
        return chapter

    def _store(self, sent: list[Observation]) -> Store:
        return connect(self._backend, observe=[at_end(sent.append)], check_keys=False, report=None)

    def _measured(
        self, question: Callable[..., Any], values: Mapping[str, Any]
    ) -> tuple[Any, list[Observation], float]:
        sent: list[Observation] = []
        with self._store(sent) as store:
            began = time.perf_counter()
            answer = question(store, **values)
            milliseconds = (time.perf_counter() - began) * 1_000
        return answer, sent, milliseconds

    def _instead(self, chapter: Chapter, values: Mapping[str, Any]) -> Answer | None:
        if chapter.instead is None:
            return None
        _, sent, milliseconds = self._measured(chapter.instead, values)
        return _cost(sent, milliseconds)

    def _refused(self, chapter: Chapter) -> str | None:
        """The error that Isotone raises for a chapter's refused code."""
        if chapter.refuse is None:
            return None
        try:
            self._measured(chapter.refuse, {})
        except IsotoneError as error:
            return str(error)
        return None

    # The collection

    def _collections(self, reads: Sequence[Observation]) -> list[Answer]:
        """The collections that were read, one per partition; empty ones are left out."""
        found = [self._collection(group) for group in _by_partition(reads)]
        return [each for each in found if each["total"]]

    def _collection(self, reads: Sequence[Observation]) -> Answer:
        """The items around those that were read, in the order of their keys."""
        first = reads[0]
        table, index = first.tables[0], first.index
        keys = self._keys(table, index)
        primary = self._keys(table, None)

        def identity(item: Mapping[str, Any]) -> tuple[str, ...]:
            return tuple(str(item.get(name)) for name in (*primary, *keys))

        read: set[tuple[str, ...]] = set()
        returned: set[tuple[str, ...]] = set()
        for each in reads:
            request = {name: value for name, value in each.request.items() if name not in _DROPPED}
            found = self._backend.execute(each.operation, _trimmed(request))["Items"]
            read.update(map(identity, found))
            if "FilterExpression" in each.request:
                request["FilterExpression"] = each.request["FilterExpression"]
                found = self._backend.execute(each.operation, request)["Items"]
            returned.update(map(identity, found))
        items, is_whole = self._around(first, keys)
        marks = [(identity(item) in read, identity(item) in returned) for item in items]
        return {
            "table": table,
            "index": index,
            "keys": keys,
            "is_scan": first.operation == "Scan",
            "backwards": first.request.get("ScanIndexForward") is False,
            "total": len(items),
            "is_whole": is_whole,
            "read": len(read),
            "rows": [
                self._row(table, items[place], marks[place], primary + keys)
                if place is not None
                else {"gap": skipped, "read": read_too}
                for place, skipped, read_too in _chosen([each for each, _ in marks])
            ],
        }

    def _keys(self, table: str, index: str | None) -> list[str]:
        return [*read_description(self._backend, table).key_of(index).names]

    def _around(self, sent: Observation, keys: Sequence[str]) -> tuple[list[Any], bool]:
        """The whole partition that was read, or the beginning of a scanned table."""
        request: dict[str, Any] = {"TableName": sent.tables[0], "Limit": _MOST}
        if sent.index is not None:
            request["IndexName"] = sent.index
        if sent.operation == "Query":
            value = _partition_of(sent.request, keys[0])
            request |= {
                "KeyConditionExpression": "#partition = :partition",
                "ExpressionAttributeNames": {"#partition": keys[0]},
                "ExpressionAttributeValues": {":partition": value},
            }
        page = self._backend.execute(sent.operation, request)
        return page["Items"], "LastEvaluatedKey" not in page

    def _row(
        self, table: str, item: Mapping[str, Any], marks: tuple[bool, bool], keys: Sequence[str]
    ) -> Answer:
        entity, parts = recognized(self._models.get(table), keys, item)
        shown = {
            name: value
            for name, value in item.items()
            if name not in parts and not name.startswith("_")
        }
        return {
            "entity": entity,
            "keys": {name: parts.get(name) for name in keys},
            "attributes": shown,
            "read": marks[0],
            "returned": marks[1],
        }


def _by_partition(reads: Iterable[Observation]) -> list[list[Observation]]:
    """The requests grouped by the partition, of a table or an index, that they read."""
    groups: dict[str, list[Observation]] = {}
    for each in reads:
        condition = str(each.request.get("KeyConditionExpression", "")).partition(" AND ")[0]
        values = each.request.get("ExpressionAttributeValues", {})
        first = _EQUALS.search(condition)
        value = values.get(first.group(2)) if first else None
        groups.setdefault(str((each.tables, each.index, value)), []).append(each)
    return list(groups.values())


def _partition_of(request: Mapping[str, Any], attribute: str) -> Any:
    names = request.get("ExpressionAttributeNames", {})
    for name, value in _EQUALS.findall(request["KeyConditionExpression"]):
        if names.get(name, name) == attribute:
            return request["ExpressionAttributeValues"][value]
    raise AssertionError(f"no value for {attribute} in {request}")


def _trimmed(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request without names and values that its expressions no longer use; unused ones are an error."""
    used = str(request.get("KeyConditionExpression", ""))
    kept = dict(request)
    for member in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        if member not in kept:
            continue
        words = set(re.findall(r"[#:]\w+", used))
        kept[member] = {name: value for name, value in kept[member].items() if name in words}
        if not kept[member]:
            del kept[member]
    return kept


def _chosen(is_read: Sequence[bool]) -> Iterator[tuple[int | None, int, int]]:
    """The positions of the rows that are shown; (None, n, m) stands for n hidden rows, m of which were read."""
    places = [place for place, read in enumerate(is_read) if read]
    last = len(is_read) - 1
    shown = set(range(_AT_EDGE)) | set(range(last - _AT_EDGE + 1, last + 1))
    shown |= set(places if len(places) <= _HEAD + _TAIL else [*places[:_HEAD], *places[-_TAIL:]])
    if places:
        shown |= set(range(places[0] - _AROUND, places[0]))
        shown |= set(range(places[-1] + 1, places[-1] + 1 + _AROUND))
    skipped: list[bool] = []
    for place, read in enumerate(is_read):
        if place not in shown:
            skipped.append(read)
            continue
        if skipped:
            yield None, len(skipped), sum(skipped)
        skipped = []
        yield place, 0, 0


def _cost(sent: Sequence[Observation], milliseconds: float) -> Answer:
    return {
        "requests": len(sent),
        "scanned": sum(each.scanned for each in sent),
        "returned": sum(each.returned for each in sent),
        "units": sum(each.units for each in sent),
        "milliseconds": milliseconds,
    }


def _shown(sent: Observation) -> Answer:
    request = {name: value for name, value in sent.request.items() if name in _SHOWN}
    return {"action": sent.operation, "request": request}


_SHOWN: Final = (
    "TableName",
    "IndexName",
    "KeyConditionExpression",
    "FilterExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
    "ScanIndexForward",
    "Limit",
)


def _rows(columns: Sequence[str], answer: Any) -> Answer | None:
    """The answer as a table, if it does not consist of items."""
    if not columns:
        return None
    rows = []
    for each in answer:
        values = each if isinstance(each, tuple) else [getattr(each, name) for name in columns]
        rows.append([_readable(value) for value in values])
    return {"columns": list(columns), "rows": rows}


def _readable(value: Any) -> str:
    return f"{value:%Y-%m-%d %H:%M}" if hasattr(value, "strftime") else str(value)
