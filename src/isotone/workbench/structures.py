"""The page Structures: recognizes structures in tables and reads them: ranks, a leaderboard, a queue, a feed, a worker.

They are found by the tags of items in the first page of each table. A set and a leaderboard are then read through the
index that orders them; a queue and a feed are shown as far as that page goes. `is_whole` tells whether the page is the
whole table, and `sample` how many items it may have; of a larger table, some shards of a set may be missing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, NamedTuple

from isotone.backends.interface import Backend
from isotone.errors import AccessDeniedException, ResourceNotFoundException, UsageError
from isotone.tables.description import table_names
from isotone.values.json import item_from_wire
from isotone.workbench.recognition import SAMPLE
from isotone.workbench.workers import worker

_SHOWN: Final = 200
_MOST_SHARDS: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TAG: Final = "_type"

# The structure that an item's tag belongs to, and the attribute that has the structure's name.
_KINDS: Final = {
    "SortedSetMember": ("set", "name"),
    "LeaderboardEntry": ("leaderboard", "group"),
    "NamedLeaderboardEntry": ("leaderboard", "group"),
    "QueueEntry": ("queue", "queue"),
    "FeedPost": ("feed", "feed"),
    "WorkerLease": ("worker", "worker"),
    "WorkerDeadLetter": ("worker", "worker"),
}

Record = dict[str, Any]
Answer = dict[str, Any]


def structures(backend: Backend, sample: int = SAMPLE) -> Answer:
    """All structures: kind, table, name, and the number of their items among the `sample` items of each table.

    `denied` are tables that may not be scanned.
    """
    found: dict[tuple[str, str, str], int] = {}
    denied: list[str] = []
    for table in table_names(backend):
        try:
            records, _ = _page(backend, table, sample)
        except ResourceNotFoundException:  # it was deleted meanwhile
            continue
        except AccessDeniedException:
            denied.append(table)
            continue
        for _, kind, name in _tagged(records):
            key = (kind, table, name)
            found[key] = found.get(key, 0) + 1
    return {
        "structures": [
            {"kind": kind, "table": table, "name": name, "items": items}
            for (kind, table, name), items in sorted(found.items())
        ],
        "sample": sample,
        "denied": denied,
    }


class _StructureRequest(NamedTuple):
    """The table of a requested structure, and the requested order."""

    backend: Backend
    table: str
    now: datetime
    lowest: bool | None


def structure(
    backend: Backend,
    kind: str,
    table: str,
    name: str,
    now: datetime,
    sample: int = SAMPLE,
    *,
    lowest: bool | None = None,
) -> Answer:
    """One structure with its rows in order; raises `UsageError` for items of another form.

    A set or a leaderboard begins with its highest score, or with its `lowest`. By default a leaderboard begins with its
    best score, if its entries tell which is best.
    """
    records, is_whole = _page(backend, table, sample)
    mine = [record for record, *rest in _tagged(records) if rest == [kind, name]]
    try:
        view = _VIEWS.get(kind, _nothing) if mine else _nothing
        answer = view(_StructureRequest(backend, table, now, lowest), mine)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(
            f"items of {name!r} in {table} have the tag of a {kind}, and not its form: "
            f"{type(error).__name__}: {error}"
        ) from None
    shown = {"kind": kind, "table": table, "name": name, "is_whole": is_whole, "sample": sample}
    return {**shown, **answer}


def _nothing(wanted: _StructureRequest, records: list[Record]) -> Answer:
    return {"rows": []}


def _page(backend: Backend, table: str, sample: int) -> tuple[list[Record], bool]:
    page = backend.execute("Scan", {"TableName": table, "Limit": sample})
    return list(map(item_from_wire, page["Items"])), "LastEvaluatedKey" not in page


def _tagged(records: Iterable[Record]) -> Iterable[tuple[Record, str, str]]:
    for record in records:
        tag = record.get(_TAG)
        kind, attribute = _KINDS.get(tag if isinstance(tag, str) else "", (None, ""))
        if kind is not None:
            name = str(record.get(attribute, ""))
            yield record, kind, name.partition("#")[0] if kind == "leaderboard" else name


def _entries(
    wanted: _StructureRequest,
    index: str,
    partition: tuple[str, str],
    *,
    beginning: tuple[str, str],
    most: int,
) -> list[Record]:
    """The first or last entries in a partition of an index whose sort key begins with a text."""
    request: dict[str, Any] = {
        "TableName": wanted.table,
        "IndexName": index,
        "KeyConditionExpression": "#p = :p",
        "ExpressionAttributeNames": {"#p": partition[0]},
        "ExpressionAttributeValues": {":p": {"S": partition[1]}},
        "Limit": most,
        "ScanIndexForward": wanted.lowest is True,
    }
    if beginning[1]:
        request["KeyConditionExpression"] += " AND begins_with(#s, :s)"
        request["ExpressionAttributeNames"]["#s"] = beginning[0]
        request["ExpressionAttributeValues"][":s"] = {"S": beginning[1]}
    return list(map(item_from_wire, wanted.backend.execute("Query", request)["Items"]))


def _set(wanted: _StructureRequest, records: list[Record]) -> Answer:
    found = [
        entry
        for shard in sorted({str(record["PK"]) for record in records})
        for entry in _entries(
            wanted, "by_score", ("PK", shard), beginning=("score", ""), most=_SHOWN
        )
    ]
    found.sort(key=lambda record: (record["score"], record["member"]), reverse=not wanted.lowest)
    rows = [
        {"rank": rank, "member": record["member"], "score": _plain(record["score"])}
        for rank, record in enumerate(found[:_SHOWN], start=1)
    ]
    return {"rows": rows, "lowest": wanted.lowest is True}


def _leaderboard(wanted: _StructureRequest, records: list[Record]) -> Answer:
    """The latest window of a board, over all shards. An entry's sort key is its window and its score."""
    options = str(records[0]["kind"])
    if wanted.lowest is None:
        wanted = wanted._replace(lowest="lowest" in options)
    key = "GSI1PK", "GSI1SK"
    shards = _shards(str(records[0][key[0]]), options)
    newest = [
        entry
        for shard in shards
        for entry in _entries(
            wanted._replace(lowest=False), "GSI1", (key[0], shard), beginning=(key[1], ""), most=1
        )
    ]
    latest = max(str(record["window"]) for record in newest)
    entries = [
        entry
        for shard in shards
        for entry in _entries(
            wanted, "GSI1", (key[0], shard), beginning=(key[1], f"{latest}#"), most=_SHOWN
        )
    ]
    entries.sort(key=lambda record: str(record["order"]), reverse=not wanted.lowest)
    rows: list[Answer] = []
    for place, record in enumerate(entries[:_SHOWN], start=1):
        is_tie = rows and record["order"] == entries[place - 2]["order"]
        next_rank = rows[-1]["rank"] + 1 if rows and "dense ties" in options else place
        rows.append(
            {
                "rank": rows[-1]["rank"] if is_tie else next_rank,
                "member": record["member"],
                "score": _score(record, options),
                "count": _plain(record["count"]),
            }
        )
    return {"rows": rows, "window": latest, "about": options, "lowest": wanted.lowest}


def _shards(partition: str, options: str) -> list[str]:
    """The partitions of a board's index, derived from one of them and the board's options."""
    number = re.search(r"\b(\d+) shards", options)
    if number is None:
        return [partition]
    board, shards = partition.rpartition("#")[0], int(number[1])
    if shards > _MOST_SHARDS:
        raise ValueError(f"a board of more than {_MOST_SHARDS} shards")
    return [f"{board}#{shard}" for shard in range(shards)]


def _score(record: Record, options: str) -> str:
    """The score as the board rounds it: half up, to its number of digits."""
    scale = int(re.findall(r"\b\d{1,2}\.(\d{1,2}) digits", options)[0])
    exact = Fraction(record["total"])
    if "average" in options:
        exact /= int(record["count"])
    units = (exact * 10**scale * 2 + 1) // 2
    return _plain(Decimal(units).scaleb(-scale))


def _queue(wanted: _StructureRequest, records: list[Record]) -> Answer:
    rows = [
        {
            "state": _state(record, wanted.now),
            "entry": record["entry"],
            "due": str(record["due"]),
            "attempts": _plain(record["attempts"]),
            "reason": record.get("reason"),
            "body": _text(record.get("body")),
        }
        for record in sorted(records, key=lambda record: str(record["due"]))
    ]
    counts: Counter[str] = Counter()
    shown = []
    for row in rows:  # the first of each state, so that many of one do not hide the others
        counts[row["state"]] += 1
        if counts[row["state"]] <= _SHOWN:
            shown.append(row)
    return {"rows": shown, "counts": counts}


def _state(record: Mapping[str, Any], now: datetime) -> str:
    if record["state"] == "DEAD":
        return "dead"
    if datetime.fromisoformat(str(record["due"])) <= now:
        return "ready"
    return "in flight" if record.get("claim") else "delayed"


def _feed(wanted: _StructureRequest, records: list[Record]) -> Answer:
    newest = sorted(records, key=lambda record: int(record["tick"]), reverse=True)
    return {
        "rows": [
            {
                "at": (_EPOCH + timedelta(microseconds=int(record["tick"]) // 10)).isoformat(),
                "author": record["author"],
                "content": record["content"],
            }
            for record in newest[:_SHOWN]
        ]
    }


def _worker(wanted: _StructureRequest, records: list[Record]) -> Answer:
    return worker(wanted.backend, wanted.table, records, wanted.now)


_VIEWS: Final[dict[str, Callable[[_StructureRequest, list[Record]], Answer]]] = {
    "set": _set,
    "leaderboard": _leaderboard,
    "queue": _queue,
    "feed": _feed,
    "worker": _worker,
}


def _plain(number: Any) -> str:
    return f"{Decimal(number).normalize():f}"


def _text(body: Any) -> str:
    if isinstance(body, dict):
        return ", ".join(f"{name}: {_text(value)}" for name, value in body.items())
    return _plain(body) if isinstance(body, Decimal) else str(body)
