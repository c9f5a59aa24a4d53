"""Sends writes: one request or one transaction; reads the item if needed, explains refusals, retries lost races.

A single action is sent as PutItem, UpdateItem or DeleteItem. Several actions, of one write or of many, are sent as one
TransactWriteItems. If an action is refused because its item changed after planning, the error contains the current
item, and the write is planned again. The reason why a write reads its item first is logged at debug level.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from isotone import limits
from isotone.backends.interface import Request, as_text
from isotone.clock import Clock
from isotone.errors import (
    ConditionalCheckFailedException,
    Contended,
    Failure,
    TransactionCanceledException,
    TransactionConflictException,
    TransactionFailed,
    UsageError,
    ValidationException,
    WriteRefused,
)
from isotone.model.writing import uniqueness
from isotone.model.writing.write import (
    MustRead,
    PlannedWrite,
    Returned,
    Write,
    WriteAction,
    key_in,
    place_of,
    read_item,
    with_hint,
)
from isotone.tables.retries import CONTENTION
from isotone.tables.steps import Call, Steps
from isotone.values.types import Item

R = TypeVar("R")
_LOGGER: Final = logging.getLogger("isotone.writes")

# The request for a single action, and its ReturnValues.
_PLAIN: Final[Mapping[str, tuple[str, str | None]]] = {
    "Put": ("PutItem", None),
    "Update": ("UpdateItem", "ALL_NEW"),
    "Delete": ("DeleteItem", "ALL_OLD"),
}
_RACES: Final = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


def execute(write: Write[R], clock: Clock, *, is_prepared: bool = False) -> Steps[R]:
    """Execute one write; raises the error of a refusal."""
    if not is_prepared:
        write.prepare()
    for attempt in range(1, CONTENTION.attempts + 1):
        plan = yield from _plan(write, clock.now())
        if len(plan.actions) != 1 or plan.actions[0].kind not in _PLAIN:
            try:
                (result,) = yield from _execute_planned([write], [plan], clock)
            except TransactionFailed as failed:
                raise failed.failures[0].reason from None
            return result  # type: ignore[no-any-return] # the write's own
        action = plan.actions[0]
        try:
            response = yield _plain_call(action, write.returned)
        except ConditionalCheckFailedException as error:
            item = error.members.get("Item")
            failure = action.explain(item)
            if failure is not None:
                raise failure from None
            write.saw(item)
        except TransactionConflictException:
            pass
        except ValidationException as error:
            raise with_hint(error) from None
        else:
            if write.returned is None:
                return write.finish(plan, response.get("Attributes"))
            return write.finish_otherwise(plan, response.get("Attributes"))  # type: ignore[no-any-return] # asked for
        yield CONTENTION.pause(attempt)
    raise _contended([write])


def execute_together(writes: Sequence[Write[Any]], clock: Clock) -> Steps[list[Any]]:
    """Execute prepared writes, all or none; raises `TransactionFailed` if one is refused."""
    return _execute_planned(writes, None, clock)


def _execute_planned(
    writes: Sequence[Write[Any]], plans: list[PlannedWrite] | None, clock: Clock
) -> Steps[list[Any]]:
    """Send the plans in one transaction; after a lost race, plan and send again."""
    for attempt in range(1, CONTENTION.attempts + 1):
        if plans is None:
            plans = yield from _plan_all(writes, clock.now())
        _check_distinct(writes, plans)
        try:
            attributes = yield from _send([action for plan in plans for action in plan.actions])
        except _RefusedTransaction as refused:
            _note_refusals(writes, plans, refused.reasons)
            yield CONTENTION.pause(attempt)
            plans = None
        else:
            return [
                write.finish(plan, attributes)
                if write.returned is None
                else write.finish_otherwise(plan, attributes)
                for write, plan in zip(writes, plans, strict=True)
            ]
    raise _contended(writes)


def _contended(writes: Sequence[Write[Any]]) -> Contended:
    return Contended(
        f"others changed {', '.join(write.schema.tag for write in writes)} "
        f"during each of {CONTENTION.attempts} attempts; try again later"
    )


def _plan_all(writes: Sequence[Write[Any]], now: float) -> Steps[list[PlannedWrite]]:
    """The plans of all writes; raises `TransactionFailed` if one cannot be planned."""
    plans = []
    for place, write in enumerate(writes):
        try:
            plans.append((yield from _plan(write, now)))
        except WriteRefused as failure:
            raise _failed([Failure(place, write.entity_key, failure)]) from None
    return plans


def _plan(write: Write[Any], now: float) -> Steps[PlannedWrite]:
    """The plan of a write; reads the item if planning needs it."""
    if write.is_seen or not write.reads:
        try:
            plan = write.plan(now)
            return _owned(write, plan) if write.not_owned else plan
        except MustRead as reason:
            _LOGGER.debug("%s reads the item first, to know %s", write, reason)
    write.saw((yield from read_item(write.schema, write.key)))
    plan = write.plan(now)
    return _owned(write, plan) if write.not_owned else plan


def _owned(write: Write[Any], plan: PlannedWrite) -> PlannedWrite:
    """The plan, without deleting markers that belong to other items."""
    others = write.not_owned
    kept = [
        each for each in plan.actions if each.kind != "Delete" or each.members["Key"] not in others
    ]
    return PlannedWrite(kept, plan.outcome)


def _check_distinct(writes: Sequence[Write[Any]], plans: Sequence[PlannedWrite]) -> None:
    """Refuse two actions on one item, as DynamoDB does."""
    if len(plans) == 1:
        return
    seen: dict[bytes, int] = {}
    for place, (write, plan) in enumerate(zip(writes, plans, strict=True)):
        for action in plan.actions:
            members = action.members
            put = action.kind == "Put"
            key = key_in(write.schema, members["Item"]) if put else members["Key"]
            where = place_of(write.schema, key)
            if where in seen:
                raise UsageError(
                    f"entries {seen[where]} and {place} of the transaction write "
                    + (
                        "the same value of a unique field; use two transactions, one after the other"
                        if uniqueness.is_marker(key)
                        else f"the same {write.schema.tag}; join them into one update, or put a "
                        "condition into when="
                    )
                )
            seen[where] = place


class Reason(NamedTuple):
    """Why an action was refused; a failed condition comes with the current item."""

    is_condition: bool
    item: Item | None


class _RefusedTransaction(Exception):
    """The service refused a transaction. `reasons` has one entry for each action; None if it was not the cause."""

    def __init__(self, reasons: Sequence[Reason | None]) -> None:
        super().__init__()
        self.reasons = reasons


def _note_refusals(
    writes: Sequence[Write[Any]],
    plans: Sequence[PlannedWrite],
    reasons: Sequence[Reason | None],
) -> None:
    """Raise failures that a retry cannot fix; give the other refused writes their current items."""
    failures: list[Failure] = []
    left: Iterator[Reason | None] = iter(reasons)
    for place, (write, plan) in enumerate(zip(writes, plans, strict=True)):
        refused = [
            (action, reason) for action in plan.actions if (reason := next(left)) is not None
        ]
        failure = _failure(write, plan, refused)
        if failure is not None:
            failures.append(Failure(place, write.entity_key, failure))
    if failures:
        raise _failed(failures)


def _failed(failures: Sequence[Failure]) -> TransactionFailed:
    """The error for refused writes; its message names each one's entity."""
    reasons = [
        str(reason) if key.entity.__schema__.tag in str(reason) else f"{key!r}: {reason}"
        for _, key, reason in failures
    ]
    return TransactionFailed(f"nothing was written: {'; '.join(reasons)}", failures)


def _failure(
    write: Write[Any], plan: PlannedWrite, refused: Sequence[tuple[WriteAction, Reason]]
) -> WriteRefused | None:
    """Why a write failed; None if it should be planned again."""
    conditions = [(action, reason.item) for action, reason in refused if reason.is_condition]
    for action, item in conditions:
        failure = action.explain(item)
        if failure is not None:
            return failure
        if action is plan.actions[0]:
            write.saw(item)
            return None  # the other actions were planned from the same item
        if action.kind == "Delete" and uniqueness.is_marker(action.members["Key"]):
            write.not_owned += (action.members["Key"],)
    if conditions:
        write.is_seen = False
    return None


def _plain_call(action: WriteAction, returned: Returned | None = None) -> Call:
    """The request for a single action, with the return values that the caller or its write needs."""
    operation, needed = _PLAIN[action.kind]
    request = action.members
    if returned is not None or needed is not None:
        request["ReturnValues"] = returned or needed
    if "ConditionExpression" in request:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return Call(operation, request)


def _send(actions: Sequence[WriteAction]) -> Steps[Item | None]:
    """Send actions as a transaction; a single one as a plain request, which costs half. Returns its attributes."""
    if not actions:
        return None
    if len(actions) == 1 and actions[0].kind in _PLAIN:
        try:
            response = yield _plain_call(actions[0])
        except ConditionalCheckFailedException as error:
            raise _RefusedTransaction([Reason(True, error.members.get("Item"))]) from None
        except TransactionConflictException:
            raise _RefusedTransaction([Reason(False, None)]) from None
        except ValidationException as error:
            raise with_hint(error) from None
        attributes: Item | None = response.get("Attributes")
        return attributes
    yield from _send_transaction(actions)
    return None


def _send_transaction(actions: Sequence[WriteAction]) -> Steps[None]:
    if len(actions) > limits.TRANSACTION_ITEMS:
        raise UsageError(
            f"a transaction writes at most {limits.TRANSACTION_ITEMS} items, not {len(actions)} "
            "(a unique value counts as one); use several transactions"
        )
    entries = _entries(actions)
    # With a token, a retry after a lost response does not execute the transaction twice.
    request = {"TransactItems": entries, "ClientRequestToken": os.urandom(16).hex()}
    try:
        yield Call("TransactWriteItems", request)
    except TransactionCanceledException as error:
        reasons = reasons_of(error)
        if len(reasons) != len(actions) or not any(reasons):
            raise with_hint(_with_reasons(error)) from None
        raise _RefusedTransaction(reasons) from error
    except ValidationException as error:
        raise with_hint(error) from None


def _entries(actions: Sequence[WriteAction]) -> list[dict[str, Any]]:
    """The actions as the entries of a transaction."""
    entries: list[dict[str, Any]] = []
    for action in actions:
        if "ConditionExpression" in action.members:
            action.members["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        entries.append({action.kind: action.members})
    return entries


def request_of(write: Write[Any], clock: Clock) -> Steps[Request]:
    """The request for a write, without sending it. Reads the item if planning needs it."""
    write.prepare()
    actions = (yield from _plan(write, clock.now())).actions
    if len(actions) == 1 and actions[0].kind in _PLAIN:
        return as_text(_plain_call(actions[0]).request)
    return as_text({"TransactItems": _entries(actions)})


def reasons_of(error: TransactionCanceledException) -> list[Reason | None]:
    """The reason for each action; None if it was not the cause, or if a retry cannot fix it."""
    return [_reason(member) for member in error.members.get("CancellationReasons", ())]


def _reason(member: Mapping[str, Any]) -> Reason | None:
    code = member.get("Code")
    if code == "ConditionalCheckFailed":
        return Reason(True, member.get("Item"))
    return Reason(False, None) if code in _RACES else None


def _with_reasons(error: TransactionCanceledException) -> TransactionCanceledException:
    """The error with the reasons' messages; AWS's own message has only their codes."""
    messages = [
        f"{reason['Code']} of entry {place}: {reason['Message']}"
        for place, reason in enumerate(error.members.get("CancellationReasons", ()))
        if reason.get("Message")
    ]
    return TransactionCanceledException("; ".join([error.message, *messages]), **error.members)
