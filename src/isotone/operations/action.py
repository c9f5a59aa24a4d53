"""The registry of the API's actions: functions from a request to its response, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import get_annotations
from typing import Any, Final, TypeAlias, TypeVar, cast, final

import msgspec

from isotone.engine.engine import Engine
from isotone.operations.request_members import ApiStructure

Answer: TypeAlias = Mapping[str, Any]


@final
class Deferred(msgspec.Struct, frozen=True):
    """The rest of a long read, which needs no database any more: any thread may do it."""

    finish: Callable[[], Answer]


Run = TypeVar("Run", bound=Callable[[Engine, Any], Answer | Deferred])


class Action(msgspec.Struct, frozen=True):
    """One action: the structure of its request, and the function that executes it.

    `grouped` actions are small writes: a server collects waiting ones and commits them together.
    `starts_work` actions can give background work to do: an index to fill, items that expire, a stream.
    `run` may find the faults of a request in any order: which one is reported is in `check_orders`.
    """

    name: str
    request: type[ApiStructure]
    run: Callable[[Engine, Any], Answer | Deferred]
    grouped: bool
    starts_work: bool


NO_BODY: Final[Answer] = cast(Answer, msgspec.Raw(b""))
"""The response of an action whose responses have no body at all: not even `{}`."""

ACTIONS: Final[dict[str, Action]] = {}


def action(
    name: str,
    *,
    grouped: bool = False,
    starts_work: bool = False,
) -> Callable[[Run], Run]:
    """Register the decorated function as an action; its `request` is annotated with the structure."""

    def register(run: Run) -> Run:
        request = get_annotations(run, eval_str=True)["request"]
        ACTIONS[name] = Action(name, request, run, grouped, starts_work)
        return run

    return register
