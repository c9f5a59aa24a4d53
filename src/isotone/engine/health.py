"""Whether a database can be read and written now, and what it measures of itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from isotone.engine.engine import Engine
from isotone.errors import IsotoneError, StorageBusy

_LEAST_ROOM: Final = 64 << 20  # bytes of the disk below which writes will soon fail
_LOG: Final = "-wal"


def health(engine: Engine) -> str:
    """Why the database cannot be read or written; empty if it can. That another process is writing is no reason."""
    try:
        with engine.reading:
            engine.store.trees()
        with engine.lock:
            attempt = engine.store.transaction(wait=False)
            try:
                attempt.__enter__()
            except StorageBusy:
                pass
            else:
                attempt.rollback()
                attempt.__exit__(None, None, None)
    except IsotoneError as error:
        return str(error)
    path = _path(engine)
    if path is None:
        return ""
    room = shutil.disk_usage(path.absolute().parent).free
    if room < _LEAST_ROOM:
        return f"the disk has {room >> 20} MB left"
    return ""


def gauges(engine: Engine) -> dict[str, float]:
    """Sizes, counts and waits, by the names of Prometheus."""
    found = {
        "isotone_tables": float(
            sum(len(each.catalog.tables) for each in list(engine.regions.values()))
        ),
        "isotone_file_lock_waits_total": float(engine.file_waits.count),
        "isotone_file_lock_wait_seconds_total": engine.file_waits.seconds,
    }
    path = _path(engine)
    if path is not None:
        found["isotone_file_bytes"] = _size(path)
        found["isotone_wal_bytes"] = _size(path.with_name(path.name + _LOG))
        found["isotone_disk_free_bytes"] = float(shutil.disk_usage(path.absolute().parent).free)
    return found


def _path(engine: Engine) -> Path | None:
    path = getattr(engine.store, "path", None)
    return None if path is None else Path(path)


def _size(path: Path) -> float:
    try:
        return float(path.stat().st_size)
    except FileNotFoundError:
        return 0.0
