"""Several tasks on one store, one request of one of them at a time."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from isotone import Store, errors
from isotone.model.steps import Call, Pause, Steps


class Interleaved:
    """Steps of several tasks, one request of one of them at a time, in an order by chance."""

    def __init__(self, store: Store, tasks: Iterable[Steps[Any]]) -> None:
        self._store = store
        self._waiting: list[tuple[Steps[Any], Call | Pause | None]]
        self._waiting = [(task, None) for task in tasks]

    def run(self, seed: int) -> None:
        chosen = random.Random(seed)
        while self._waiting:
            place = chosen.randrange(len(self._waiting))
            for _ in range(chosen.choice([1, 1, 2, 5])):
                if place < len(self._waiting):
                    self._step(place)

    def _step(self, place: int) -> None:
        task, call = self._waiting[place]
        try:
            if call is None:
                following = next(task)
            elif isinstance(call, Pause):
                following = task.send({})
            else:
                try:
                    answer = self._store.backend.execute(*call)
                except errors.ApiError as error:
                    following = task.throw(error)
                else:
                    following = task.send(answer)
        except StopIteration:
            del self._waiting[place]
        else:
            self._waiting[place] = (task, following)
