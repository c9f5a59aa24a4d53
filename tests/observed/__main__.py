"""The command that puts observations to an endpoint."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

from tests.observed.endpoints import at
from tests.observed.observations import Observation, areas
from tests.observed.running import Run, Verdict


def chosen(area: str | None, name: str | None) -> dict[str, list[Observation]]:
    """The observations of an area, and of these the ones with a text in their names."""
    found = {
        each: [one for one in observations if name is None or name in one.name]
        for each, observations in areas().items()
        if area in (None, each)
    }
    return {each: observations for each, observations in found.items() if observations}


def report(address: str, observations: dict[str, list[Observation]], bucket: str | None) -> int:
    """Put observations to an address; print what differs. The exit code."""
    asked = at(address)
    run = Run(asked, {} if bucket is None else {"bucket": bucket})
    verdicts: list[Verdict] = []
    try:
        for area, each in observations.items():
            of_area = [run.verdict(observation) for observation in each]
            states = Counter(verdict.state for verdict in of_area)
            print(f"{area}: " + ", ".join(f"{count} {state}" for state, count in states.items()))
            for verdict in of_area:
                if verdict.is_bad:
                    print(f"  {verdict}".replace("\n", "\n  "), flush=True)
            verdicts += of_area
    finally:
        run.close()
        asked.close()
    states = Counter(verdict.state for verdict in verdicts)
    print(
        f"{len(verdicts)} observations: " + ", ".join(f"{n} {state}" for state, n in states.items())
    )
    return int(any(verdict.is_bad for verdict in verdicts))


def listed(observations: dict[str, list[Observation]]) -> int:
    """Print the observations."""
    for area, each in observations.items():
        for observation in each:
            regions = f"{observation.regions} regions"
            print(f"{area}  {observation.seen}  {regions}  {observation.name}")
    return 0


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.observed")
    parser.add_argument("address", nargs="?", help="http://…, dynamodb://region, memory: or a file")
    parser.add_argument("--area", help="only the observations of one file")
    parser.add_argument("--name", help="only those with this text in their names")
    parser.add_argument("--bucket", help="an S3 bucket that exports and imports may use")
    parser.add_argument("--list", action="store_true", help="show the observations")
    given = parser.parse_args(arguments)
    observations = chosen(given.area, given.name)
    if not observations:
        parser.error(f"no observation has area {given.area} and {given.name!r} in its name")
    if given.list or given.address is None:
        return listed(observations)
    return report(given.address, observations, given.bucket)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
