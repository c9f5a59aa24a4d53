"""Several tasks on one store, one request of one of them at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from isotone import Store, errors
from isotone.model import Call, Pause, Steps


class Interleaved:
    """Steps of several tasks, one request of one of them at a time, in an order by chance.

    Some transactions meet another one, as at AWS, and are cancelled: so many of a hundred.
    """

    def __init__(self, store: Store, tasks: Iterable[Steps[Any]], conflicts: int = 10) -> None:
        self._store = store
        self._conflicts = conflicts
        self._waiting: list[tuple[Steps[Any], Call | Pause | None]]
        self._waiting = [(task, None) for task in tasks]

    def run(self, seed: int) -> None:
        chosen = random.Random(seed)
        while self._waiting:
            place = chosen.randrange(len(self._waiting))
            for _ in range(chosen.choice([1, 1, 2, 5])):
                if place < len(self._waiting):
                    self._step(place, is_met=chosen.randrange(100) < self._conflicts)

    def _step(self, place: int, *, is_met: bool) -> None:
        task, call = self._waiting[place]
        try:
            if call is None:
                following = next(task)
            elif isinstance(call, Pause):
                following = task.send({})
            else:
                try:
                    answer = self._answer(call, is_met)
                except errors.ApiError as error:
                    following = task.throw(error)
                else:
                    following = task.send(answer)
        except StopIteration:
            del self._waiting[place]
        else:
            self._waiting[place] = (task, following)

    def _answer(self, call: Call, is_met: bool) -> Any:
        if is_met and "TransactItems" in call.request:
            others = len(call.request["TransactItems"]) - 1
            reasons = [{"Code": "TransactionConflict"}, *({"Code": "None"} for _ in range(others))]
            raise errors.TransactionCanceledException("met", CancellationReasons=reasons)
        return self._store.backend.execute(call.operation, call.request)
