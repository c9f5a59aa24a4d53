"""Work that nobody waits for: backfills, expiry, streams, and forgetting old transaction tokens."""

from __future__ import annotations

from isotone.engine import backfill, tokens, ttl
from isotone.engine.engine import Engine
from isotone.engine.streams import upkeep

EXPIRY_INTERVAL = 1.0  # seconds between looks for expired items
IDLE_INTERVAL = 5.0  # seconds between looks for work that another process left


def is_wanted(engine: Engine) -> bool:
    """Whether there is an index to fill, a table whose items can expire, or a stream."""
    return bool(ttl.watched(engine)) or backfill.pending(engine) or upkeep.is_wanted(engine)


def step(engine: Engine) -> float:
    """Do one slice of what is due; the seconds after which to call again."""
    if backfill.step(engine):
        return 0.0
    if ttl.sweep(engine) >= ttl.SLICE:
        return 0.0
    if upkeep.step(engine):
        return 0.0
    tokens.forget_old(engine)
    return EXPIRY_INTERVAL if ttl.watched(engine) else IDLE_INTERVAL


def finish(engine: Engine) -> None:
    """Do all that is due now, and return when it is done."""
    while step(engine) == 0.0:
        pass
