"""Rank and count in a few item reads: an order-statistic tree in the items of one partition.

Structures compose its generators; nobody runs them alone. Keys are texts that sort as what they stand
for (`ranking_keys`), without spaces or control characters. A key enters and leaves in the caller's own
transaction, together with whatever it is the rank of:

    def attempt() -> Steps[None]:
        member = yield from self.calls.get(…, consistent=True)
        together = self.calls.transaction()
        together.update(…, when=Member.score == member.score)
        yield from self.ranking.change(together, leaving=old, entering=new)
        yield from together.commit()

    yield from self.ranking.settle(attempt)

`change` adds at most eight entries. It may first commit a transaction of its own, in which a full node is
divided or an empty one joined to its neighbour: that moves keys between items, and changes no rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from isotone.errors import WriteRefused
from isotone.model.calls import Calls
from isotone.model.steps import Steps
from isotone.model.table import Table
from isotone.model.transactions import Transaction

R = TypeVar("R")

Batch = Callable[[], Steps[Sequence[str]]]
"""Reads the next keys, in ascending order; none at the end."""


class Overtaken(WriteRefused):
    """The leaving key is not there, or the entering one is: others changed the member. Read it again."""


class Ranking:
    """The order of the keys of one ranking; its table has string keys PK and SK, or others."""

    def __init__(self, calls: Calls, table: Table, name: str) -> None:
        self._calls = calls
        self._table = table
        self.name = name

    def settle(self, attempt: Callable[[], Steps[R]]) -> Steps[R]:
        """Run an attempt (read, `change`, commit) until none overtakes it; raises `Contended` in the end."""
        raise NotImplementedError

    def change(
        self, together: Transaction, *, leaving: str | None = None, entering: str | None = None
    ) -> Steps[None]:
        """Add to a transaction the writes by which one key leaves and another enters.

        Raises `Overtaken` where the leaving key is not there or the entering one is.
        """
        raise NotImplementedError

    def rank(self, key: str) -> Steps[int]:
        """How many keys are smaller; the key need not be there."""
        raise NotImplementedError

    def size(self) -> Steps[int]:
        """How many keys there are."""
        raise NotImplementedError

    def count(self, low: str, high: str) -> Steps[int]:
        """How many keys there are from `low` (included) to `high` (not included), at one moment."""
        raise NotImplementedError

    def at(self, rank: int, count: int, *, reverse: bool = False) -> Steps[list[str]]:
        """Up to `count` keys from a rank on; with `reverse`, ranks count from the greatest key.

        No skipped key is read. `read_ranking_key` gives score and member back.
        """
        raise NotImplementedError

    def rebuild(self, batch: Batch) -> Steps[int]:
        """Make the ranking anew from all keys in ascending order; how many there were.

        Writers get an error while it goes on. Interrupted, it is run again from its beginning.
        """
        raise NotImplementedError

    def clear(self) -> Steps[None]:
        """Delete everything that the ranking keeps."""
        raise NotImplementedError
