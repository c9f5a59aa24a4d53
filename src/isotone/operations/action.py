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


class ActionRule(msgspec.Struct, frozen=True):
    """One rule of an action: what breaks it, and the function that raises the error."""

    says: str
    check: Callable[..., object]


Rules: TypeAlias = tuple[ActionRule, ...]


class Action(msgspec.Struct, frozen=True):
    """One action: the structure of its request, and the function that executes it.

    `grouped` actions are small writes: a server collects waiting ones and commits them together. `starts_work` actions
    may create background work: an index to fill, items that expire, a stream.

    `before` are the rules on a request alone, `within` those that need the tables; `run` checks them in this order,
    which `checks.orders` reports. Actions on items have no rules: their `run` finds faults in any order.
    """

    name: str
    request: type[ApiStructure]
    run: Callable[[Engine, Any], Answer]
    grouped: bool
    starts_work: bool
    before: Rules = ()
    within: Rules = ()


NO_BODY: Final[Answer] = cast(Answer, msgspec.Raw(b""))
"""The response of an action without a response body (not even `{}`)."""

ACTIONS: Final[dict[str, Action]] = {}


def action(
    name: str,
    *,
    grouped: bool = False,
    starts_work: bool = False,
    before: Rules = (),
    reading: Rules = (),
    writing: Rules = (),
) -> Callable[[Run], Run]:
    """Register the decorated function as an action. The annotation of its `request` is the request structure.

    The function runs after the rules: those `before` on the request, then those on the engine and the request, in a
    transaction for `reading` or `writing` that the function shares.
    """

    def register(run: Run) -> Run:
        request = get_annotations(run, eval_str=True)["request"]
        within = (*reading, *writing)
        checked = _after(before, within, bool(writing), run) if before or within else run
        ACTIONS[name] = Action(name, request, checked, grouped, starts_work, before, within)
        return run

    return register


def _after(before: Rules, within: Rules, writes: bool, run: Run) -> Run:
    """The function that checks the rules of an action, then runs it."""

    def checked(engine: Engine, request: Any) -> Answer:
        for rule in before:
            rule.check(request)
        if not within:
            return run(engine, request)
        with engine.writing if writes else engine.reading_beside as engine:
            for rule in within:
                rule.check(engine, request)
            return run(engine, request)

    return cast(Run, checked)
