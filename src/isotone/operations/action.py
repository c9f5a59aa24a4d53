"""The registry of API actions: maps names such as PutItem to the functions that execute them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import get_annotations
from typing import Any, Final, TypeAlias, TypeVar, cast

import msgspec

from isotone.engine.engine import Engine
from isotone.operations.request_members import ApiStructure

Answer: TypeAlias = Mapping[str, Any]


Run = TypeVar("Run", bound=Callable[[Engine, Any], Answer])


class Action(msgspec.Struct, frozen=True):
    """One action: the structure of its request, and the function that executes it.

    `grouped` actions are small writes: a server collects waiting ones and commits them together. `starts_work` actions
    may create background work: an index to fill, items that expire, a stream. `run` may find the faults of a request in
    any order; `check_orders` decides which one is reported.
    """

    name: str
    request: type[ApiStructure]
    run: Callable[[Engine, Any], Answer]
    grouped: bool
    starts_work: bool


NO_BODY: Final[Answer] = cast(Answer, msgspec.Raw(b""))
"""The response of an action without a response body (not even `{}`)."""

ACTIONS: Final[dict[str, Action]] = {}


def action(
    name: str,
    *,
    grouped: bool = False,
    starts_work: bool = False,
) -> Callable[[Run], Run]:
    """Register the decorated function as an action. The annotation of its `request` is the request structure."""

    def register(run: Run) -> Run:
        request = get_annotations(run, eval_str=True)["request"]
        ACTIONS[name] = Action(name, request, run, grouped, starts_work)
        return run

    return register
