"""Files as older versions of Isotone wrote them."""

from __future__ import annotations

from pathlib import Path

import apsw


def to_format_1(path: Path) -> None:
    """Turn a closed file into one of format 1: its tables have no checksums."""
    old = path.with_name(path.name + ".format1")
    source, target = apsw.Connection(str(path)), apsw.Connection(str(old))
    target.execute("PRAGMA page_size=8192; PRAGMA journal_mode=WAL")
    target.execute(f"PRAGMA application_id={0x49534F54}; PRAGMA user_version=1; BEGIN")
    for (name,) in source.execute("SELECT name FROM sqlite_schema").fetchall():
        target.execute(
            f'CREATE TABLE "{name}" (key BLOB PRIMARY KEY, value BLOB NOT NULL) STRICT, WITHOUT ROWID'
        )
        rows = source.execute(f'SELECT key, value FROM "{name}"').fetchall()
        target.cursor().executemany(f'INSERT INTO "{name}" VALUES (?, ?)', rows)
    target.execute("COMMIT")
    source.close()
    target.close()
    old.replace(path)
