"""Whether the database can be read and written now (`/healthz`; 64 MB free), and its gauges (isotone_wal_bytes …)."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from isotone.engine import stream_lag
from isotone.engine.engine import Engine
from isotone.errors import IsotoneError, StorageBusy

_LEAST_ROOM: Final = 64 << 20  # bytes of free disk; with less, writes will soon fail
_LOG: Final = "-wal"

Series = tuple[str, tuple[tuple[str, str], ...], float]
"""The name, labels and value of a metric."""


def health(engine: Engine) -> str:
    """Why the database cannot be read or written; empty if it can. Another process that is writing does not count."""
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
    room = _free(path)
    if room < _LEAST_ROOM:
        return f"the disk has {room >> 20} MB left"
    return ""


def _free(path: Path) -> int:
    """The free bytes of the disk that has a file."""
    import shutil  # not at the top, because it loads three compressors, and a program may never ask for this

    return shutil.disk_usage(path.absolute().parent).free


def gauges(engine: Engine) -> dict[str, float]:
    """Sizes, counts and waits, by their Prometheus names."""
    found = {
        "isotone_tables": float(
            sum(len(each.catalog.tables) for each in list(engine.regions.values()))
        ),
        "isotone_file_lock_waits_total": float(engine.writer_waits.count),
        "isotone_file_lock_wait_seconds_total": engine.writer_waits.seconds,
    }
    path = _path(engine)
    if path is not None:
        found["isotone_file_bytes"] = _size(path)
        found["isotone_wal_bytes"] = _size(path.with_name(path.name + _LOG))
        found["isotone_disk_free_bytes"] = float(_free(path))
    return found


def measure(engine: Engine, measured: bool = True) -> None:
    """Start or stop measuring consumed capacity and stream lag."""
    with engine.lock:
        for each in list(engine.regions.values()):
            if measured == (each.catalog.units is not None):
                continue
            each.catalog.count_units(measured)
            if measured:
                stream_lag.watch(each)
            else:
                each.watched_streams = None


def series(engine: Engine) -> list[Series]:
    """The measurements that `measure` enables, by their Prometheus names: consumed units by table and index, and the
    lag of each shard.
    """
    found: list[Series] = []
    for region, each in sorted(engine.regions.items()):
        for table, index, units in each.catalog.units or ():
            labels = (("region", region), ("table", table), ("index", index))
            found.append(("isotone_consumed_read_units_total", labels, units.read_units))
            found.append(("isotone_consumed_write_units_total", labels, units.write_units))
        for table, shard, seconds in _lags(each):
            labels = (("region", region), ("table", table), ("shard", shard))
            found.append(("isotone_stream_lag_seconds", labels, seconds))
    return found


Consumed = list[tuple[str, str, str, float, float]]
"""Region, table, index, and the units that were read and written."""


def take_consumed(engine: Engine) -> Consumed:
    """The units that this process has counted since the last call, for the process that shows them."""
    found: Consumed = []
    for region, each in list(engine.regions.items()):
        for table, index, units in each.catalog.units or ():
            found.append((region, table, index, units.read_units, units.write_units))
            units.read_units = units.write_units = 0.0
    return found


def add_consumed(engine: Engine, consumed: Consumed) -> None:
    """Count what another process has taken."""
    for region, table, index, read_units, write_units in consumed:
        counters = engine.regions.get(region, engine).catalog.units
        if counters is not None:
            counters.add(table, index, read_units, write_units)


def _lags(engine: Engine) -> list[tuple[str, str, float]]:
    try:
        return stream_lag.lags(engine)
    except IsotoneError:  # the counters can still be shown, and `health` reports the reason
        return []


def _path(engine: Engine) -> Path | None:
    path = getattr(engine.store, "path", None)
    return None if path is None else Path(path)


def _size(path: Path) -> float:
    try:
        return float(path.stat().st_size)
    except FileNotFoundError:
        return 0.0
