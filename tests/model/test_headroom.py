"""A number that comes near the width of its key is reported once, in time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from tests.headroom import forget_notices

import isotone
from isotone import Attr, Entity, Global, HeadroomWarning, Index, Key, Table, desc, field
from isotone.errors import OutOfRange

repos = Table("repos", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})


class Issue(Entity, table=repos):
    repo: Attr[str] = field()
    number: Attr[int] = field(max=99_999)
    stars: Attr[int] = field(default=0, max=999, alert=0.5)
    cost: Attr[Decimal] = field(default=Decimal(0), max=100, scale=2)

    primary = Key("REPO", repo).sort("ISSUE", desc(number))
    by_stars = Index("GSI1", "REPO", repo).sort(stars)


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    forget_notices()
    yield
    forget_notices()


@pytest.fixture
def issues(desk: Any) -> Any:
    desk.store.create_tables(repos)
    return desk


def test_thirty_percent_are_reported_once(issues: Any) -> None:
    heard: list[isotone.HeadroomNotice] = []
    end = isotone.on_headroom(heard.append)
    issues.store.put(Issue(repo="r", number=29_999))
    with pytest.warns(HeadroomWarning, match=r"Issue.number has reached 30000, 30% of the 99999"):
        issues.store.put(Issue(repo="r", number=30_000))
    issues.store.put(Issue(repo="r", number=30_001))
    end()
    assert isotone.headroom_notices() == heard
    assert [(each.key, each.field, each.value) for each in heard] == [("primary", "number", 30_000)]


def test_each_key_has_its_own_threshold(issues: Any) -> None:
    issues.store.put(Issue(repo="r", number=1, stars=400))
    with pytest.warns(HeadroomWarning, match=r"Issue.stars has reached 500, 50%"):
        issues.store.update(Issue, Issue.stars.add(100), repo="r", number=1)


def test_a_number_in_no_key_has_no_width(issues: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        issues.store.put(Issue(repo="r", number=1, cost=Decimal(99)))


def test_beyond_the_width_nothing_is_written(issues: Any) -> None:
    with pytest.raises(OutOfRange, match="100000"):
        issues.store.put(Issue(repo="r", number=100_000))
    issues.store.put(Issue(repo="r", number=1, stars=1))
    with pytest.raises(OutOfRange):
        issues.store.update(Issue, Issue.stars.add(999), repo="r", number=1)
    assert issues.item(Issue(repo="r", number=1))["stars"] == {"N": "1"}


def test_a_negative_number_is_not_reported_in_place_of_the_largest(issues: Any) -> None:
    class Level(Entity, table=repos):
        height: Attr[int] = field(min=-10, max=99_999)

        primary = Key("LEVEL").sort("AT", height)

    issues.store.put(Level(height=-9))
    assert isotone.headroom_notices() == []
    with pytest.warns(HeadroomWarning, match="has reached 99998, 100% of the 99999"):
        issues.store.put(Level(height=99_998))


def test_a_number_that_may_use_all_of_its_width_is_not_reported(issues: Any) -> None:
    class Part(Entity, table=repos):
        repo: Attr[str] = field()
        shard: Attr[int] = field(max=9, alert=None)

        primary = Key("REPO", repo).sort("PART", shard)

    issues.store.put(Part(repo="r", shard=9))
    assert isotone.headroom_notices() == []


@pytest.mark.parametrize(
    ("maximum", "reported"),
    [
        *[(maximum, False) for maximum in (9, 23, 59, 99, 100, 365, 1439, 65_535, 86_399)],
        *[(maximum, True) for maximum in (999, 9_999, 1_000, 99_999_999, 1_000_000)],
    ],
)
def test_the_end_of_a_scale_is_not_reported(issues: Any, maximum: int, reported: bool) -> None:
    class Part(Entity, table=repos, tag=f"Part{maximum}"):
        number: Attr[int] = field(max=maximum)

        primary = Key(f"PART{maximum}").sort("AT", number)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        issues.store.put(Part(number=maximum))
    assert bool(isotone.headroom_notices()) == reported
