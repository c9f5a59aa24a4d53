"""How much is tested: how far random tests search, and whether a sample of the tests is enough.

`ISOTONE_LONG=1` asks for the long form of random tests; `--sample N:SEED` for one test of N.
"""

from __future__ import annotations

import os
from zlib import crc32

import pytest

LONG = bool(os.environ.get("ISOTONE_LONG"))
FEWEST = 8


def examples(number: int) -> int:
    """This many random examples in the long form; an eighth of them in the quick one, but not too few."""
    return number if LONG else max(number // 8, min(number, FEWEST))


def add_option(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sample",
        metavar="N:SEED",
        default="1:",
        help="run one test of N; which ones, follows from a seed, such as the commit",
    )


def sample(items: list[pytest.Item], asked: str) -> list[pytest.Item]:
    """The tests that `--sample` asks for."""
    number, _, seed = asked.partition(":")
    return [each for each in items if crc32(f"{seed}{each.nodeid}".encode()) % int(number) == 0]
