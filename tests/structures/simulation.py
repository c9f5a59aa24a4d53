"""Stores for tests of what waits and what fails: pauses pass at once on the test's clock, and requests are
counted, or lost after they were carried out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar, cast

from isotone import ManualClock, Observation, Store
from isotone.backends.interface import Request, Response, with_token
from isotone.errors import IsotoneError
from isotone.model import Pause, Steps

R = TypeVar("R")

WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems", "BatchWriteItem"}


class Hasty(Store):
    """A store on a `ManualClock` whose pauses move the clock instead of taking time.

    `between` is called at each pause, for what others do meanwhile.
    """

    between: Callable[[], None] | None = None

    @classmethod
    def over(cls, store: Store) -> Hasty:
        assert isinstance(store.clock, ManualClock)
        hasty = copy.copy(store)
        hasty.__class__ = cls
        return cast(Hasty, hasty)

    def run(self, steps: Steps[R]) -> R:
        return super().run(self._hastened(steps))

    def _hastened(self, steps: Steps[R]) -> Steps[R]:
        """The same requests without the pauses."""
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self.clock.advance(step.seconds)  # type: ignore[attr-defined]
                    if self.between is not None:
                        self.between()
                    step = steps.send({})
                    continue
                try:
                    response = yield step
                except IsotoneError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(response)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]


class Repeating:
    """A backend whose answers to writes are lost once, so that each is sent twice, as `Remote` sends it."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        request = with_token(operation, request)
        response: Response = self._backend.execute(operation, request)
        return self._backend.execute(operation, request) if operation in WRITES else response


class Overtaken:
    """A backend that lets others go first: `before` is called ahead of the next request of an operation."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.before: dict[str, list[Callable[[], None]]] = {}

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        waiting = self.before.get(operation)
        if waiting:
            waiting.pop(0)()
        response: Response = self._backend.execute(operation, request)
        return response


class Slowed:
    """A backend whose requests take time: `moments` are run one by one, before a request and after its response."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.moments: list[Callable[[], None]] = []

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        self._pass()
        response: Response = self._backend.execute(operation, request)
        self._pass()
        return response

    def _pass(self) -> None:
        if self.moments:
            self.moments.pop(0)()


class Requests:
    """Counts the requests of a store that is made with `observe=[at_end(requests.see)]`, by operation."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()

    def see(self, observation: Observation) -> None:
        self.count[observation.operation] += 1

    def taken(self) -> dict[str, int]:
        """What was asked since the last time."""
        found = dict(self.count)
        self.count.clear()
        return found
