"""The measurements of feeds run, on a small site."""

from __future__ import annotations

import pytest
from bench.measuring import Effort

from bench import feed


def test_a_small_site_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_FOLLOWERS", {feed.LARGE: 20, feed.SMALL: 5})
    monkeypatch.setattr(feed, "_POSTS", {feed.LARGE: 1, feed.SMALL: 2})
    rows = feed.run(Effort(seconds=0, rounds=1, calls=20, items=0))
    assert {row.measure for row in rows} == {feed.FAN_OUT, feed.READ}
    assert all(row.value > 0 for row in rows)
