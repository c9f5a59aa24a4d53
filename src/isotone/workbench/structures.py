"""The structures that tables hold, as what they are: a ranked set, a leaderboard, a queue, a feed, a worker.

They are found by the tags of their items in the first page of each table. A set and a leaderboard are then read through
the index that orders them; a queue and a feed are shown as far as that page goes. `is_whole` tells whether it is all, and
`sample` how many items it may have: of a larger table it may lack shards of a set, or the latest window of a leaderboard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from isotone.backends.interface import Backend
from isotone.errors import UsageError
from isotone.values.json import item_from_wire
from isotone.workbench.recognition import SAMPLE
from isotone.workbench.tables import table_names
from isotone.workbench.workers import worker

_SHOWN: Final = 200
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TAG: Final = "_type"

# The tag of an item → the kind of its structure, and the attribute that has the structure's name.
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
    """All structures: kind, table, name, and how many of the `sample` items of each table are theirs."""
    found: dict[tuple[str, str, str], int] = {}
    for table in table_names(backend):
        records, _ = _page(backend, table, sample)
        for _, kind, name in _tagged(records):
            key = (kind, table, name)
            found[key] = found.get(key, 0) + 1
    return {
        "structures": [
            {"kind": kind, "table": table, "name": name, "items": items}
            for (kind, table, name), items in sorted(found.items())
        ],
        "sample": sample,
    }


def structure(
    backend: Backend, kind: str, table: str, name: str, now: datetime, sample: int = SAMPLE
) -> Answer:
    """One structure with its rows, in the order that it is for; raises `UsageError` for items of another form."""
    records, is_whole = _page(backend, table, sample)
    mine = [record for record, *rest in _tagged(records) if rest == [kind, name]]
    try:
        view = _VIEWS.get(kind, _nothing) if mine else _nothing
        answer = view(backend, table, mine, now)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise UsageError(
            f"items of {name!r} in {table} have the tag of a {kind}, and not its form: "
            f"{type(error).__name__}: {error}"
        ) from None
    shown = {"kind": kind, "table": table, "name": name, "is_whole": is_whole, "sample": sample}
    return {**shown, **answer}


def _nothing(backend: Backend, table: str, records: list[Record], now: datetime) -> Answer:
    return {"rows": []}


def _page(backend: Backend, table: str, sample: int) -> tuple[list[Record], bool]:
    page = backend.execute("Scan", {"TableName": table, "Limit": sample})
    return list(map(item_from_wire, page["Items"])), "LastEvaluatedKey" not in page


def _tagged(records: Iterable[Record]) -> Iterable[tuple[Record, str, str]]:
    for record in records:
        tag = record.get(_TAG)
        kind, attribute = _KINDS.get(tag if isinstance(tag, str) else "", (None, ""))
        if kind is not None:
            yield record, kind, str(record.get(attribute, ""))


def _best(
    backend: Backend, table: str, index: str, attribute: str, records: list[Record], **more: Any
) -> list[Record]:
    """The first items of an index, of all partitions in which the structure has some."""
    found: list[Record] = []
    for partition in sorted({str(record[attribute]) for record in records if attribute in record}):
        request = {
            "TableName": table,
            "IndexName": index,
            "KeyConditionExpression": "#partition = :partition",
            "ExpressionAttributeNames": {"#partition": attribute},
            "ExpressionAttributeValues": {":partition": {"S": partition}},
            "Limit": _SHOWN,
            **more,
        }
        found += map(item_from_wire, backend.execute("Query", request)["Items"])
    return found


def _set(backend: Backend, table: str, records: list[Record], now: datetime) -> Answer:
    best = _best(backend, table, "by_score", "PK", records, ScanIndexForward=False)
    best.sort(key=lambda record: (record["score"], record["member"]), reverse=True)
    return {
        "rows": [
            {"rank": rank, "member": record["member"], "score": _plain(record["score"])}
            for rank, record in enumerate(best[:_SHOWN], start=1)
        ]
    }


def _leaderboard(backend: Backend, table: str, records: list[Record], now: datetime) -> Answer:
    latest = max(records, key=lambda record: str(record.get("began", "")))["window"]
    entries = [
        record
        for record in _best(backend, table, "GSI1", "GSI1PK", records)
        if record["window"] == latest
    ]
    entries.sort(key=lambda record: str(record["order"]))
    rows: list[Answer] = []
    for place, record in enumerate(entries[:_SHOWN], start=1):
        is_tie = rows and record["order"] == entries[place - 2]["order"]
        total = (
            record["total"] / record["count"] if "average" in record["kind"] else record["total"]
        )
        rows.append(
            {
                "rank": rows[-1]["rank"] if is_tie else place,
                "member": record["member"],
                "score": _plain(round(Decimal(total), 1)),
                "count": _plain(record["count"]),
            }
        )
    return {"rows": rows, "window": latest, "about": entries[0]["kind"] if entries else ""}


def _queue(backend: Backend, table: str, records: list[Record], now: datetime) -> Answer:
    rows = [
        {
            "state": _state(record, now),
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
    for row in rows:  # of each state the first, so that many of one hide none of another
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


def _feed(backend: Backend, table: str, records: list[Record], now: datetime) -> Answer:
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


_VIEWS: Final[dict[str, Callable[[Backend, str, list[Record], datetime], Answer]]] = {
    "set": _set,
    "leaderboard": _leaderboard,
    "queue": _queue,
    "feed": _feed,
    "worker": worker,
}


def _plain(number: Any) -> str:
    return f"{Decimal(number).normalize():f}"


def _text(body: Any) -> str:
    if isinstance(body, dict):
        return ", ".join(f"{name}: {_text(value)}" for name, value in body.items())
    return _plain(body) if isinstance(body, Decimal) else str(body)
