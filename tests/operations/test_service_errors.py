"""Every error that the service model names for an action is raised, can be ordered as a fault, or is listed with a reason."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
import pytest
from tests.operations.session import CHAPTERS, FILES, Exchange, play
from tests.operations.session.failures import FAILURES
from tests.service_model import model, service_of

import isotone
from isotone.errors import ApiError
from isotone.operations.action import ACTIONS
from isotone.testing import Faults

BY_FAULTS: Final = (
    "InternalServerError",
    "ProvisionedThroughputExceededException",
    "ReplicatedWriteConflictException",
    "RequestLimitExceeded",
    "ThrottlingException",
    "TransactionConflictException",
)
"""The errors of a service of many machines and users: a test orders them."""

_QUOTA: Final = "an account has no quotas: docs/compatibility.md, 13"
_ALONE: Final = "requests run one after another: docs/compatibility.md, 8"
NEVER_RAISED: Final = {
    "*.ItemCollectionSizeLimitExceededException": "docs/compatibility.md, 9",
    "*.TransactionInProgressException": _ALONE,
    "*.BackupInUseException": _ALONE,
    "*.LimitExceededException": _QUOTA,
    "CreateBackup.ContinuousBackupsUnavailableException": (
        "a table can be backed up as soon as it is there: docs/compatibility.md, 20"
    ),
    "ListStreams.ResourceNotFoundException": (
        "a table that is not there has no streams, as in DynamoDB Local"
    ),
    "UpdateGlobalTableSettings.ResourceInUseException": "a change is complete at once: 1",
    "GetRecords.ResourceNotFoundException": (
        "an iterator keeps its stream, which is deleted a day after its table"
    ),
    "GetRecords.TrimmedDataAccessException": "an iterator expires before its records",
}
"""As `Action.Error`; `*` is any action that does not raise it all the same."""


def named() -> set[tuple[str, str]]:
    """Every action, with each error that the model names for it."""
    return {
        (action, error)
        for action in ACTIONS
        for error in model(service_of(action)).errors_of(action)
    }


@cache
def exchanges() -> list[Exchange]:
    played = [each for chapter in (*CHAPTERS, *FAILURES) for each in play(chapter)]
    return [each for each in played if each.action != FILES]


def failures() -> list[Exchange]:
    return [each for each in exchanges() if each.error is not None]


def test_every_error_is_raised_or_listed() -> None:
    raised = {(each.action, each.response["__type"]) for each in failures()}
    silent = {(action, error) for action, error in named() - raised if error not in BY_FAULTS}
    unlisted = {
        (action, error)
        for action, error in silent
        if not {f"{action}.{error}", f"*.{error}"} & set(NEVER_RAISED)
    }
    assert unlisted == set()
    entries = {entry for pair in silent for entry in (".".join(pair), f"*.{pair[1]}")}
    assert set(NEVER_RAISED) - entries == set(), "raised after all: remove them"


def test_errors_have_the_members_of_the_model() -> None:
    for exchange in failures():
        known = model(service_of(exchange.action))
        code = exchange.response["__type"]
        allowed = {*known.errors_of(exchange.action), "ValidationException"}
        assert code in allowed, (exchange.action, code)
        members = known.shapes.get(code, {}).get("members", {})
        given: dict[str, Any] = exchange.error.members if exchange.error else {}
        assert set(given) - set(members) == set(), (exchange.action, code)


@pytest.mark.parametrize("error", BY_FAULTS)
def test_an_error_can_be_ordered_of_each_action_that_has_it(error: str) -> None:
    actions = sorted(action for action, name in named() if name == error)
    assert actions
    requests = {each.action: each.request for each in exchanges() if each.error is None}
    faults = Faults()
    with isotone.open() as database, faults.on(database):
        faults.fail(actions, error)
        for action in actions:
            with pytest.raises(ApiError) as caught:
                database.send(action, msgspec.json.encode(requests[action]))
            assert caught.value.code == error, action
