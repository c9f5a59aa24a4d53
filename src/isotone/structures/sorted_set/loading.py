"""Many members at once, and ranks made anew: how a large set begins, and how a set gets ranks later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from isotone.errors import UsageError
from isotone.model.steps import Steps
from isotone.structures.operation import S, operation
from isotone.structures.ranking.keys import ranking_key
from isotone.structures.ranking.ranking import Ranking
from isotone.structures.sorted_set.bounds import Number, score_of
from isotone.structures.sorted_set.changing import SortedSetWriter
from isotone.structures.sorted_set.members import SortedSetMember

Progress = Callable[[int], None]

_PAGE = 1000  # members that are read with one request
_BATCH = 10_000  # keys that are given to the ranking at once


class SortedSetLoader(SortedSetWriter[S]):
    """What is done to a whole set while nobody else changes it."""

    @operation
    def load(
        self,
        scores: Mapping[str, Number] | Iterable[tuple[str, Number]],
        *,
        progress: Progress | None = None,
    ) -> Steps[int]:
        """Give many members their scores, in batches; how many there were. Writes 1 for each.

        Faster than `zadd` where there are ranks, which it makes anew at the end: until then, whoever reads
        or changes them gets `RankingIncomplete`. Interrupted, it is run again.
        """
        pairs = scores.items() if isinstance(scores, Mapping) else scores
        moment = yield from self._expiry.moment()
        members = (
            self._members.kind(
                **self._members.key_of(member), score=score_of(score), gone_at=moment
            )
            for member, score in pairs
        )
        if self.ranking is None:
            return (yield from self.calls.put_many(members))
        loaded, _ = yield from self._rerank(self.ranking, members, progress)
        return loaded

    @operation
    def rerank(self, *, progress: Progress | None = None) -> Steps[int]:
        """Make the ranks anew from the scores; how many members there are.

        For a set that was without ranks so far, or whose items were written by hand. Reads all, writes an
        item for some thirty members. While it goes on, whoever reads or changes ranks gets
        `RankingIncomplete`. Interrupted, it is run again. `progress` is called with the number of members.
        """
        if self.ranking is None:
            raise UsageError("a set without ranks has none to make anew; give it ranked=True")
        _, ranked = yield from self._rerank(self.ranking, (), progress)
        return ranked

    def _rerank(
        self, ranking: Ranking, members: Iterable[SortedSetMember], progress: Progress | None
    ) -> Steps[tuple[int, int]]:
        """Write members, then rank all that there are; how many of both."""
        loaded = 0
        batches: Iterator[list[str]] | None = None

        def batch() -> Steps[list[str]]:
            nonlocal loaded, batches
            if batches is None:  # from now on nobody else changes ranks
                loaded = yield from self.calls.put_many(members)
                batches = _batches((yield from self._keys()))
            return next(batches, [])

        ranked = yield from ranking.rebuild(batch, progress=progress)
        return loaded, ranked

    def _keys(self) -> Steps[list[str]]:
        """The ranking keys of all members, in order. Holds them in memory, some hundred bytes each."""
        keys: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            found, cursor = yield from self._members.scan(cursor, _PAGE)
            keys += (ranking_key(each.score, each.member) for each in found)
        keys.sort()
        return keys


def _batches(keys: list[str]) -> Iterator[list[str]]:
    for first in range(0, len(keys), _BATCH):
        yield keys[first : first + _BATCH]
