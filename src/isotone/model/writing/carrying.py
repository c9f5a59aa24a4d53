"""How every write of the library is carried out: planned, sent, explained, and tried again where it must.

One action goes out as a plain PutItem, UpdateItem or DeleteItem; several, of one write or of many, as one
TransactWriteItems. Where an action is refused because the item that it was planned for has changed in the
meantime, the refusal comes with the item as it now is, and the write is planned anew. While the keys of
an entity are being widened, its item is brought under its new key before anything else.
"""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import msgspec

from isotone import limits
from isotone.clock import Clock
from isotone.errors import (
    AlreadyExists,
    ConditionalCheckFailedException,
    Contended,
    TransactionCanceledException,
    TransactionConflictException,
    TransactionFailed,
    UsageError,
    ValidationException,
    WriteRefused,
)
from isotone.model.declaring.former import former_key, former_of
from isotone.model.steps import Call, Pause, Steps
from isotone.model.writing import uniqueness
from isotone.model.writing.derivation import Unknown
from isotone.model.writing.rewriting import Rewrite
from isotone.model.writing.writing import Action, Write, read_item
from isotone.values.types import Item

if TYPE_CHECKING:
    from isotone.model.declaring.schema import EntitySchema

R = TypeVar("R")

ATTEMPTS: Final = 12  # of a write that others overtake
_NO_WAY: Final = "The document path provided in the update expression is invalid"
_FIRST_PAUSE: Final = 0.005  # seconds; doubled with each attempt, with full jitter
_LONGEST_PAUSE: Final = 0.5


def carry_out(write: Write[R], clock: Clock) -> Steps[R]:
    """One write by itself; raises what refused it."""
    write.prepare()
    try:
        results: list[R] = yield from carry_out_together([write], clock)
    except TransactionFailed as failed:
        raise failed.failures[0] from None
    return results[0]


def carry_out_together(writes: Sequence[Write[Any]], clock: Clock) -> Steps[list[Any]]:
    """All of the writes, which are prepared, or none; raises `TransactionFailed` where one was refused."""
    for write in writes:
        if former_of(write.schema) is not None:
            for key in (write.key, write.target):
                if key is not None:
                    yield from bring(write.schema, key, clock)
    try:
        return (yield from _attempt(writes, clock))
    except (ValidationException, TransactionCanceledException) as error:
        if _NO_WAY in error.message:
            error.hint = "what the path leads through is not there; set the whole of it first"
        raise


def bring(schema: EntitySchema, key: Item, clock: Clock) -> Steps[None]:
    """Put the item under its new key, where it is still under the one that its key had before widening."""
    former = former_key(schema, key)
    if former is None:
        return
    item = yield from read_item(schema, former)
    if item is not None:
        with contextlib.suppress(AlreadyExists):  # then the new one is what counts
            yield from rewrite(schema, former, item, clock)


def rewrite(schema: EntitySchema, key: Item, item: Item, clock: Clock) -> Steps[bool]:
    """Write an item that was seen under a key as it is declared now; whether it was still there.

    Raises `AlreadyExists` where its present key has an item already.
    """
    try:
        (result,) = yield from _attempt([Rewrite(schema, key, item)], clock)
    except TransactionFailed as failed:
        raise failed.failures[0] from None
    return bool(result)


def _attempt(writes: Sequence[Write[Any]], clock: Clock) -> Steps[list[Any]]:
    """Plan and send until nothing overtakes."""
    for attempt in range(ATTEMPTS):
        plans = yield from _planned(writes, datetime.fromtimestamp(clock.now(), UTC))
        if len(plans) > 1:
            _check_distinct(writes, plans)
        try:
            attributes = yield from _send([action for plan in plans for action in plan])
        except _Refused as refused:
            _take_note(writes, plans, refused)
            yield pause_after(attempt)
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


def _check_distinct(writes: Sequence[Write[Any]], plans: Sequence[Sequence[Action]]) -> None:
    """DynamoDB refuses two actions on one item."""
    seen: dict[bytes, int] = {}
    for place, (write, plan) in enumerate(zip(writes, plans, strict=True)):
        for action in plan:
            key = _key_of(write.schema, action)
            where = place_of(write.schema, key)
            if where in seen:
                raise UsageError(
                    f"entries {seen[where]} and {place} of the transaction are about "
                    + (
                        "the value of a unique field, which one alone can have; write one after the other"
                        if uniqueness.is_marker(key)
                        else f"the same {write.schema.tag}; join them into one update, or put a "
                        "condition into when="
                    )
                )
            seen[where] = place


def _key_of(schema: EntitySchema, action: Action) -> Item:
    members = action.members
    whole: Item = members["Item"] if action.kind == "Put" else members["Key"]
    return {each.name: whole[each.name] for each in schema.table.keys.attributes}


def place_of(schema: EntitySchema, key: Item) -> bytes:
    """What tells an item from all others, of any table."""
    return msgspec.json.encode((schema.table.name, key), order="sorted")


def pause_after(attempt: int) -> Pause:
    """How long to wait after attempt 0, 1, … that others overtook."""
    return Pause(random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt)))


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
    if len(actions) == 1 and actions[0].kind in _PLAIN:
        return _send_one(actions[0])
    return _send_together(actions)


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
    if not actions:
        return
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
        reasons = reasons_of(error)
        if len(reasons) != len(actions) or not any(reasons):
            raise _with_what_it_says(error) from None
        raise _Refused(reasons) from error


def _with_what_it_says(error: TransactionCanceledException) -> TransactionCanceledException:
    """The error with the messages of its reasons, of which its own message has but the codes."""
    said = [
        f"{reason['Code']} of entry {place}: {reason['Message']}"
        for place, reason in enumerate(error.members.get("CancellationReasons", ()))
        if reason.get("Message")
    ]
    return TransactionCanceledException("; ".join([error.message, *said]), **error.members)


def _entry(action: Action) -> dict[str, Any]:
    if "ConditionExpression" not in action.members:
        return action.members
    return {**action.members, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


_PASSING: Final = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


def reasons_of(error: TransactionCanceledException) -> list[_Reason | None]:
    """Why each action was refused; None for one that was not to blame, or cannot be helped."""
    return [_reason(each) for each in error.members.get("CancellationReasons", ())]


def _reason(member: Mapping[str, Any]) -> _Reason | None:
    code = member.get("Code")
    if code == "ConditionalCheckFailed":
        return _Reason(True, member.get("Item"))
    return _Reason(False, None) if code in _PASSING else None
