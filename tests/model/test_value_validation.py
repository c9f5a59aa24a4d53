"""Values that do not fit are refused in words that say what to write."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest

from isotone import Attr, Entity, Key, Table, expires, field
from isotone.errors import UsageError

events = Table("events")
NAIVE: Any = datetime(2026, 1, 1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Event(Entity, table=events):
    at: Attr[datetime] = field(default=NOON)
    until: Attr[datetime | None] = expires(default=None)
    seen: Attr[list[datetime]] = field(default_factory=list)
    by_name: Attr[dict[str, datetime | None]] = field(default_factory=dict)
    pair: Attr[tuple[datetime, datetime] | None] = field(default=None)
    noted: Attr[Annotated[datetime, "when"] | None] = field(default=None)

    primary = Key("EVENT", at).sort("EVENT")


@pytest.mark.parametrize(
    "values",
    [
        {"at": NAIVE},
        {"at": "2026-01-01T12:00:00"},
        {"until": NAIVE},
        {"seen": [NOON, NAIVE]},
        {"by_name": {"a": NAIVE}},
        {"pair": (NOON, NAIVE)},
        {"noted": NAIVE},
    ],
)
def test_a_datetime_without_a_zone_names_no_instant(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"no time zone.*write datetime\(…, tzinfo=UTC\)"):
        Event(**values)
    (name,) = values
    event = Event()
    with pytest.raises(UsageError, match=f"Event: {name}"):
        setattr(event, name, values[name])


def test_what_has_a_zone_is_taken() -> None:
    event = Event(
        at="2026-01-01T12:00:00Z",  # type: ignore[arg-type] # as it comes from a request
        seen=[NOON],
        by_name={"a": NOON, "b": None},
        pair=(NOON, NOON),
        noted=NOON,
    )
    assert (event.at, event.seen, event.by_name) == (NOON, [NOON], {"a": NOON, "b": None})
