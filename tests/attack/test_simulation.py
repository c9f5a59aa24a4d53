"""Stories of clocks, kills, full disks and slow syncs: whatever is acknowledged is there, whatever is there was written.

`ISOTONE_SEEDS=1000 pytest -s tests/attack/test_simulation.py` for as many stories as one likes; `python -m
tests.attack.simulation SEED` tells one.
"""

from __future__ import annotations

import logging
import os

import pytest
from tests.attack.simulation import story

SEEDS = int(os.environ.get("ISOTONE_SEEDS", "6"))

# SQLite goes on when a checkpoint fails, so that the exception for it has nowhere to go.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def test_every_story_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("isotone"), "disabled", True)
    kills = acknowledged = refused = 0
    for seed in range(SEEDS):
        with story(seed) as one:
            try:
                one.run()
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}\n" + "\n".join(one.told)) from error
        kills += one.kills
        acknowledged += one.acknowledged
        refused += one.refused
    print(f"\n{SEEDS} stories: {kills} kills, {acknowledged} acknowledged, {refused} refused")
    assert acknowledged > 20 * SEEDS
    assert SEEDS < 6 or refused
