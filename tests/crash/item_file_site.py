"""A process that imports or exports: `python item_file_site.py import|export FOLDER`; it prints each state it saves."""

from __future__ import annotations

import sys
from pathlib import Path

from isotone import moving
from isotone.moving import exporting
from isotone.tables.job_state import JobState


def work(way: str, folder: Path) -> None:
    save = JobState.set

    def set_and_say(self: JobState, name: str, entry: object) -> None:
        save(self, name, entry)
        print("saved", flush=True)

    JobState.set = set_and_say  # type: ignore[method-assign] # to know when a kill is worth it
    exporting._SAVE = 0.0  # type: ignore[misc] # after each page
    state = folder / "state.json"
    if way == "import":
        moving.import_items(
            folder / "rows.csv",
            folder / "target.db",
            "Orders",
            key="id",
            bad_rows=folder / "bad.jsonl",
            state=state,
        )
    else:
        moving.export_items(folder / "target.db", "Orders", folder / "out.jsonl.gz", state=state)
    print("complete", flush=True)


if __name__ == "__main__":
    work(sys.argv[1], Path(sys.argv[2]))
