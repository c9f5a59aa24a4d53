"""Copy the figures of the last run, or of several, into docs/design/measurements.md, below its line.

python -m bench.page                        the last run
python -m bench.page [TITLE=]JSON…          several, each with what it is of: "the database=.peers/database.json"
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.measuring import Row, Target
from bench.report import judged, table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "design" / "measurements.md"
LINE = "<!-- figures -->"


def rendered(found: dict[str, Any], title: str = "") -> str:
    """The run as Markdown: machine, versions, figures, targets."""
    of = f" of {title}" if title else ""
    rows = [Row(**{name: row[name] for name in Row.__slots__}) for row in found["rows"]]
    targets = [Target(**{name: one[name] for name in Target.__slots__}) for one in found["targets"]]
    machine = found["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    effort = found["effort"]
    text = table(rows, judged(targets, rows)).replace("\n\n", f"\n\n## Targets{of}\n\n")
    return (
        f"\n## Figures{of}\n\nMeasured {found['when']}, {effort['rounds']} rounds of {effort['seconds']} s, on {machine['cores']} cores of "
        f"{machine['processor']} ({machine['system']}), load average {machine['load']} at the beginning.\n\n"
        f"{versions}\n\n{text}\n"
    )


def main(sources: list[str]) -> None:
    """Rewrite the page."""
    head = PAGE.read_text(encoding="utf-8").partition(LINE)[0]
    figures = ""
    for source in sources:
        title, _, path = source.rpartition("=")
        figures += rendered(json.loads(Path(path).read_text(encoding="utf-8")), title)
    PAGE.write_text(head + LINE + "\n" + figures, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or [".peers/bench.json"])
