"""How every write of the library is carried out: planned, sent, explained, and tried again where it must.

A `Write` plans *actions*, the entries of a transaction. One action goes out as a plain PutItem,
UpdateItem or DeleteItem; several, of one write or of many, as one TransactWriteItems. Some writes follow
from what is stored (index keys made of fields that the caller does not know, unique values to release):
they read the item, and hold in the condition of their action whatever they made use of. Where that has
changed in the meantime the action is refused with the item as it now is, and the write is planned anew.
"""

from __future__ import annotations

import random
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, NamedTuple, TypeVar

from isotone import limits
from isotone.clock import Clock
from isotone.errors import (
    ConditionalCheckFailedException,
    Contended,
    TransactionCanceledException,
    TransactionConflictException,
    TransactionFailed,
    UsageError,
    WriteRefused,
)
from isotone.expressions import nodes
from isotone.model.derivation import Unknown
from isotone.model.steps import Call, Pause, Steps
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.schema import EntitySchema

R = TypeVar("R")

Kind = Literal["Put", "Update", "Delete", "ConditionCheck"]

ATTEMPTS: Final = 12  # of a write that others overtake
_FIRST_PAUSE: Final = 0.005  # seconds; doubled with each attempt, with full jitter
_LONGEST_PAUSE: Final = 0.5


class Action(NamedTuple):
    """One entry of a transaction.

    `explain` takes the item that stood in the way and gives the error to raise, or None where the action
    was planned for an item that is no longer so, and can be planned again.
    """

    kind: Kind
    members: dict[str, Any]
    explain: Callable[[Item | None], WriteRefused | None]


class Write(ABC, Generic[R]):
    """One write of the library, to be carried out once.

    `reads` says whether the item has to be known before the write can be planned. `current` is the item
    as it was last seen, where `is_seen`. `further` is a condition besides the write's own.
    """

    schema: EntitySchema
    reads: bool = False
    is_seen: bool = False
    current: Item | None = None
    further: nodes.ConditionNode | None = None

    @property
    @abstractmethod
    def key(self) -> Item:
        """The primary key of the item."""

    def prepare(self) -> None:
        """Run the hooks that come before."""

    @abstractmethod
    def plan(self, now: datetime) -> list[Action]:
        """What to send; the first action is that of the item itself.

        Raises `Unknown` where that takes the item, which is then read.
        """

    @abstractmethod
    def finish(self, attributes: Item | None) -> R:
        """The result, after success; `attributes` are those that a plain write answered with."""

    def saw(self, item: Item | None) -> None:
        """Take note of the item as it is."""
        self.current, self.is_seen = item, True


def carry_out(write: Write[R], clock: Clock) -> Steps[R]:
    """One write by itself; raises what refused it."""
    write.prepare()
    try:
        (result,) = yield from carry_out_together([write], clock)
    except TransactionFailed as failed:
        raise failed.failures[0] from None
    return result  # type: ignore[no-any-return]


def carry_out_together(writes: Sequence[Write[Any]], clock: Clock) -> Steps[list[Any]]:
    """All of the writes, which are prepared, or none; raises `TransactionFailed` where one was refused."""
    for attempt in range(ATTEMPTS):
        plans = yield from _planned(writes, datetime.fromtimestamp(clock.now(), UTC))
        try:
            attributes = yield from _send([action for plan in plans for action in plan])
        except _Refused as refused:
            _take_note(writes, plans, refused)
            yield Pause(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))
        else:
            return [write.finish(attributes) for write in writes]
    raise Contended(
        f"others changed {', '.join(write.schema.tag for write in writes)} "
        f"during each of {ATTEMPTS} attempts; try again later"
    )


def _planned(writes: Sequence[Write[Any]], now: datetime) -> Steps[list[list[Action]]]:
    """A plan for each write, made with the item where it takes that."""
    plans = []
    for place, write in enumerate(writes):
        try:
            if write.reads and not write.is_seen:
                write.saw((yield from read_item(write.schema, write.key)))
            try:
                plan = write.plan(now)
            except Unknown:
                write.saw((yield from read_item(write.schema, write.key)))
                plan = write.plan(now)
        except WriteRefused as failure:
            raise TransactionFailed(f"nothing was written: {failure}", {place: failure}) from None
        plans.append(plan)
    return plans


def read_item(schema: EntitySchema, key: Item) -> Steps[Item | None]:
    """The item as it is now. Cost: one consistent read."""
    request = {"TableName": schema.table.name, "Key": key, "ConsistentRead": True}
    response = yield Call("GetItem", request)
    item: Item | None = response.get("Item")
    return item


class _Refused(Exception):
    """The service refused actions: for each, None or the item that stood in the way."""

    def __init__(self, reasons: Sequence[_Reason | None]) -> None:
        super().__init__()
        self.reasons = reasons


class _Reason(NamedTuple):
    """Why an action was refused; a condition that did not hold comes with the item."""

    is_condition: bool
    item: Item | None


def _take_note(
    writes: Sequence[Write[Any]], plans: Sequence[Sequence[Action]], refused: _Refused
) -> None:
    """Raise what cannot be helped, and have the writes look again at what has changed."""
    failures: dict[int, WriteRefused] = {}
    reasons = iter(refused.reasons)
    for place, (write, plan) in enumerate(zip(writes, plans, strict=True)):
        found = [(action, next(reasons)) for action in plan]
        conditions = [
            (action, reason.item) for action, reason in found if reason and reason.is_condition
        ]
        if conditions:
            failure = _failure(write, plan, conditions)
            if failure is not None:
                failures[place] = failure
    if failures:
        raise TransactionFailed(
            "nothing was written: " + "; ".join(map(str, failures.values())), failures
        )


def _failure(
    write: Write[Any], plan: Sequence[Action], conditions: Sequence[tuple[Action, Item | None]]
) -> WriteRefused | None:
    """Why a write cannot be made; None where it can be planned again."""
    for action, item in conditions:
        failure = action.explain(item)
        if failure is not None:
            return failure
        if action is plan[0]:
            write.saw(item)
            return None  # what the further actions were planned from is no longer so either
    write.is_seen = False
    return None


# Sending


_PLAIN: Final[Mapping[str, tuple[str, str]]] = {
    "Put": ("PutItem", "NONE"),
    "Update": ("UpdateItem", "ALL_NEW"),
    "Delete": ("DeleteItem", "ALL_OLD"),
}


def _send(actions: Sequence[Action]) -> Steps[Item | None]:
    if not actions:
        return None
    if len(actions) == 1 and actions[0].kind in _PLAIN:
        return (yield from _send_one(actions[0]))
    yield from _send_together(actions)
    return None


def _send_one(action: Action) -> Steps[Item | None]:
    operation, wanted = _PLAIN[action.kind]
    request = {**action.members, "ReturnValues": wanted}
    if "ConditionExpression" in request:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    try:
        response = yield Call(operation, request)
    except ConditionalCheckFailedException as error:
        raise _Refused([_Reason(True, error.members.get("Item"))]) from None
    except TransactionConflictException:
        raise _Refused([_Reason(False, None)]) from None
    attributes: Item | None = response.get("Attributes")
    return attributes


def _send_together(actions: Sequence[Action]) -> Steps[None]:
    if len(actions) > limits.TRANSACTION_ITEMS:
        raise UsageError(
            f"a transaction writes at most {limits.TRANSACTION_ITEMS} items, not {len(actions)} "
            "(a unique value counts as one); write in several"
        )
    entries = [{action.kind: _entry(action)} for action in actions]
    # With a token of its own, a request that is repeated after a lost answer is carried out once.
    request = {"TransactItems": entries, "ClientRequestToken": str(uuid.uuid4())}
    try:
        yield Call("TransactWriteItems", request)
    except TransactionCanceledException as error:
        reasons = [_reason(each) for each in error.members.get("CancellationReasons", ())]
        if len(reasons) != len(actions) or not any(reasons):
            raise
        raise _Refused(reasons) from error


def _entry(action: Action) -> dict[str, Any]:
    if "ConditionExpression" not in action.members:
        return action.members
    return {**action.members, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


_PASSING: Final = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


def _reason(member: Mapping[str, Any]) -> _Reason | None:
    """One of CancellationReasons; None for an action that was not to blame, or cannot be helped."""
    code = member.get("Code")
    if code == "ConditionalCheckFailed":
        return _Reason(True, member.get("Item"))
    return _Reason(False, None) if code in _PASSING else None


# Keys


def identify(schema: EntitySchema, values: Mapping[str, Any]) -> Item:
    """The primary key that these fields make; raises `UsageError` for any other set of fields."""
    wanted = {component.field.name for component in schema.primary.components}
    if values.keys() != wanted:
        raise UsageError(
            f"{schema.tag} is identified by {', '.join(sorted(wanted)) or 'no field at all'}, "
            f"not by {', '.join(sorted(values)) or 'nothing'}"
        )
    return schema.primary_key(values)
