"""Sends writes: one request or one transaction; `TransactionFailed`; repeats lost races, in the end `Contended`.

A single action is sent as PutItem, UpdateItem or DeleteItem. Several actions, of one write or of many, are sent as one
TransactWriteItems. If an action is refused because its item changed after planning, the error contains the current
item, and the write is planned again. The reason why a write reads its item first is logged at debug level.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from isotone import limits
from isotone.backends.interface import Request, as_text
from isotone.clock import Clock
from isotone.errors import (
    ApiError,
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
_REFUSALS: Final = (
    ConditionalCheckFailedException,
    TransactionConflictException,
    TransactionCanceledException,
)
_ATTEMPTS: Final = range(1, CONTENTION.attempts + 1)
_RACES: Final = frozenset(
    {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
)


def execute(write: Write[R], clock: Clock, *, is_prepared: bool = False) -> Steps[R]:
    """Execute one write; raises the error of a refusal."""
    return _execute((write,), clock, True, is_prepared)


def execute_together(writes: Sequence[Write[Any]], clock: Clock) -> Steps[list[Any]]:
    """Execute prepared writes, all or none; raises `TransactionFailed` if one is refused."""
    return _execute(writes, clock, False, True)


def _execute(
    writes: Sequence[Write[Any]], clock: Clock, is_alone: bool, is_prepared: bool
) -> Steps[Any]:
    """Plan writes and send them in one request; after a lost race, plan and send them again.

    The result and the errors of a write that `is_alone` are its own, not those of a transaction.
    """
    if not is_prepared:
        writes[0].prepare()
    for attempt in _ATTEMPTS:
        now = clock.now()
        plans: list[PlannedWrite] = []
        for write in writes:
            try:
                plan = yield from _plan(write, now)
            except WriteRefused as failure:
                raise _error(writes, {len(plans): failure}, is_alone=is_alone) from None
            plans += (plan,)  # no call, as this is hot
        if is_alone:
            actions = plan.actions
        else:
            _check_distinct(writes, plans)
            actions = [action for each in plans for action in each.actions]
        try:
            response = (yield _call(actions, writes[0].returned)) if actions else {}
        except _REFUSALS as error:
            failures = _failures(writes, plans, error)
            if failures:
                raise _error(writes, failures, is_alone=is_alone) from None
        except ValidationException as error:
            raise with_hint(error) from None
        else:
            attributes = response.get("Attributes")
            if not is_alone:
                return [
                    each.finish(plan, attributes) for each, plan in zip(writes, plans, strict=True)
                ]
            if write.returned is None:
                return write.finish(plan, attributes)
            return write.finish_otherwise(plan, attributes)
        yield CONTENTION.pause(attempt)
    raise Contended(
        f"others changed {', '.join(write.schema.tag for write in writes)} "
        f"during each of {CONTENTION.attempts} attempts; try again later"
    )


def _error(
    writes: Sequence[Write[Any]], failures: Mapping[int, WriteRefused], *, is_alone: bool
) -> WriteRefused:
    """The error for refused writes; the message of a transaction's names each one's entity."""
    if is_alone:
        return failures[0]
    listed = [Failure(place, writes[place].entity_key, why) for place, why in failures.items()]
    reasons = [
        str(reason) if key.entity.__schema__.tag in str(reason) else f"{key!r}: {reason}"
        for _, key, reason in listed
    ]
    return TransactionFailed(f"nothing was written: {'; '.join(reasons)}", listed)


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


def _failures(
    writes: Sequence[Write[Any]], plans: Sequence[PlannedWrite], error: ApiError
) -> dict[int, WriteRefused]:
    """The failures that a retry cannot fix, by the places of their writes; the other refused writes get their current items.

    Raises the error if no retry can fix it.
    """
    reasons = reasons_of(error)
    if len(reasons) != sum(len(plan.actions) for plan in plans) or not any(reasons):
        raise with_hint(_with_reasons(error)) from None
    failures: dict[int, WriteRefused] = {}
    left: Iterator[Reason | None] = iter(reasons)
    for place, (write, plan) in enumerate(zip(writes, plans, strict=True)):
        refused = [
            (action, reason) for action in plan.actions if (reason := next(left)) is not None
        ]
        failure = _failure(write, plan, refused)
        if failure is not None:
            failures[place] = failure
    return failures


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


def _call(actions: Sequence[WriteAction], returned: Returned | None = None) -> Call:
    """The request for actions: a plain one for a single action, which costs half, or a transaction.

    A plain one returns what its write needs, unless the caller wants something else to be `returned`. A transaction has
    no token yet: backends whose answers may be lost add one (`with_token`). A database in this process cannot lose an
    answer, and a cancelled transaction is planned again, so a token would only be stored in vain.
    """
    for action in actions:
        if "ConditionExpression" in action.members:
            action.members["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if not actions[1:] and action.kind in _PLAIN:
        operation, needed = _PLAIN[action.kind]
        if returned is not None or needed is not None:
            action.members["ReturnValues"] = returned or needed
        return Call(operation, action.members)
    if len(actions) > limits.TRANSACTION_ITEMS:
        raise UsageError(
            f"a transaction writes at most {limits.TRANSACTION_ITEMS} items, not {len(actions)} "
            "(a unique value counts as one); use several transactions"
        )
    entries = [{action.kind: action.members} for action in actions]
    return Call("TransactWriteItems", {"TransactItems": entries})


def request_of(write: Write[Any], clock: Clock) -> Steps[Request]:
    """The request for a write, without sending it. Reads the item if planning needs it."""
    write.prepare()
    plan = yield from _plan(write, clock.now())
    return as_text(_call(plan.actions).request)


def reasons_of(error: ApiError) -> list[Reason | None]:
    """The reason for each action; None if it was not the cause, or if a retry cannot fix it."""
    if isinstance(error, TransactionCanceledException):
        return [_reason(member) for member in error.members.get("CancellationReasons", ())]
    is_condition = isinstance(error, ConditionalCheckFailedException)
    return [Reason(is_condition, error.members.get("Item"))]


def _reason(member: Mapping[str, Any]) -> Reason | None:
    code = member.get("Code")
    if code == "ConditionalCheckFailed":
        return Reason(True, member.get("Item"))
    return Reason(False, None) if code in _RACES else None


def _with_reasons(error: ApiError) -> ApiError:
    """The error with the reasons' messages; AWS's own message has only their codes."""
    messages = [
        f"{reason['Code']} of entry {place}: {reason['Message']}"
        for place, reason in enumerate(error.members.get("CancellationReasons", ()))
        if reason.get("Message")
    ]
    return type(error)("; ".join([error.message, *messages]), **error.members)
