"""The command line of the fuzzers."""

from __future__ import annotations

import argparse
import logging
import sys

from tests.attack.fuzz.fuzzing import Fuzzer
from tests.attack.fuzz.targets import TARGETS


def main() -> int:
    """Run one fuzzer, or each in turn; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.attack.fuzz")
    parser.add_argument("target", choices=[*TARGETS, "all"])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep inputs that reach new lines")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    is_failed = False
    for name in TARGETS if arguments.target == "all" else [arguments.target]:
        with TARGETS[name]() as run:
            fuzzer = Fuzzer(name, run, arguments.seed)
            failures = fuzzer.run(arguments.seconds, keep=arguments.keep)
        sys.__stdout__.write(  # type: ignore[union-attr] # it is open
            f"{name}: {fuzzer.tried:,} inputs, {fuzzer.reached:,} lines reached, "
            f"{fuzzer.kept} inputs kept, {len(failures)} failures (seed {arguments.seed})\n"
        )
        for failure in failures:
            is_failed = True
            sys.__stdout__.write(f"{failure}\n")  # type: ignore[union-attr] # it is open
    return int(is_failed)


sys.exit(main())
