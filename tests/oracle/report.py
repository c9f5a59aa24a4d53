"""Play the corpus and write the mismatches of each topic to a file.

python -m tests.oracle.report FOLDER [NAME…]     only the scripts whose names begin with NAME
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from tests.oracle.compare import Mismatch, play
from tests.oracle.corpus import SCRIPTS
from tests.oracle.endpoints import Isotone
from tests.oracle.local import DynamoDBLocal
from tests.oracle.normalized_answers import canonical


def grouped(mismatches: list[Mismatch]) -> list[list[Mismatch]]:
    """Mismatches whose two answers are alike together, the most frequent first."""
    groups: dict[str, list[Mismatch]] = defaultdict(list)
    for mismatch in mismatches:
        groups[canonical([mismatch.theirs, mismatch.ours])].append(mismatch)
    return sorted(groups.values(), key=len, reverse=True)


def main(folder: Path, prefixes: tuple[str, ...]) -> int:
    """Print a line per topic; the status is 1 where anything differs."""
    found: dict[str, list[Mismatch]] = defaultdict(list)
    asked: dict[str, int] = defaultdict(int)
    with DynamoDBLocal() as theirs, Isotone() as ours:
        for script in SCRIPTS:
            if script.name.startswith(prefixes):
                topic = script.name.partition("/")[0]
                found[topic] += play(script, theirs, ours)
                asked[topic] += len(script.steps)
    for topic, count in asked.items():
        groups = grouped(found[topic])
        text = "\n".join(f"{len(alike)} × " + "".join(map(str, alike[:2])) for alike in groups)
        (folder / f"mismatches-{topic}.md").write_text(text, encoding="utf-8")
        mismatches = f"{len(found[topic]):4} mismatches of {len(groups):3} kinds"
        print(f"{topic:16} {count:5} requests {mismatches}")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), tuple(sys.argv[2:]) or ("",)))
