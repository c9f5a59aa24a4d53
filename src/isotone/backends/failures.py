"""The exceptions that a client raises, for both families of `except` clauses.

A failed call raises an instance of its `isotone.errors` class that carries botocore's attributes,
`response` and `operation_name`. Where botocore has been imported by anybody, the instance is one of
`botocore.exceptions.ClientError` too (and so for the parameter and waiter errors); Isotone never
imports it by itself, so programs without botocore do not pay for it.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from isotone import errors
from isotone.backends.responses import restore_binary
from isotone.errors import ApiError, IsotoneError, UsageError

E = TypeVar("E", bound=Exception)

# The errors that botocore's model of DynamoDB declares: those that `client.exceptions` has, and whose
# members it copies to the top of `response`. ValidationException is not among them.
MODELED: Final = frozenset(
    (
        "BackupInUseException",
        "BackupNotFoundException",
        "ConditionalCheckFailedException",
        "ContinuousBackupsUnavailableException",
        "DuplicateItemException",
        "ExportConflictException",
        "ExportNotFoundException",
        "GlobalTableAlreadyExistsException",
        "GlobalTableNotFoundException",
        "IdempotentParameterMismatchException",
        "ImportConflictException",
        "ImportNotFoundException",
        "IndexNotFoundException",
        "InternalServerError",
        "InvalidEndpointException",
        "InvalidExportTimeException",
        "InvalidRestoreTimeException",
        "ItemCollectionSizeLimitExceededException",
        "LimitExceededException",
        "PointInTimeRecoveryUnavailableException",
        "PolicyNotFoundException",
        "ProvisionedThroughputExceededException",
        "ReplicaAlreadyExistsException",
        "ReplicaNotFoundException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "ResourceInUseException",
        "ResourceNotFoundException",
        "TableAlreadyExistsException",
        "TableInUseException",
        "TableNotFoundException",
        "ThrottlingException",
        "TransactionCanceledException",
        "TransactionConflictException",
        "TransactionInProgressException",
    )
)


def _say(error: Exception, text: str) -> None:
    """Set the text without `super()`, whose next class may be one of botocore's with other arguments."""
    Exception.__init__(error, text)


class ClientFailure(ApiError):
    """An `ApiError` as a client raises it: with what botocore's `ClientError` carries.

    `response` is the parsed answer (`response["Error"]["Code"]`), `operation_name` the action.
    """

    def __init__(
        self, message: str, members: dict[str, Any], operation: str, metadata: dict[str, Any]
    ) -> None:
        self.message = message
        self.members = members
        _say(
            self,
            f"An error occurred ({self.code}) when calling the {operation} operation: {message}",
        )
        self.operation_name = operation
        self.response: dict[str, Any] = {
            "Error": {"Message": message, "Code": self.code},
            "ResponseMetadata": metadata,
        }
        if self.code in MODELED:
            self.response |= {self.message_member: message, **members}

    def __reduce__(self) -> tuple[Any, ...]:
        metadata = self.response["ResponseMetadata"]
        return _revive, (self.code, self.message, self.members, self.operation_name, metadata)


class ParamValidationError(UsageError):
    """The parameters of a call do not fit its action; nothing was sent."""

    def __init__(self, *, report: str) -> None:
        _say(self, f"Parameter validation failed:\n{report}")
        self.kwargs = {"report": report}


class WaiterError(IsotoneError):
    """What a waiter waited for did not come; `last_response` is the last answer that it saw."""

    def __init__(self, *, name: str, reason: str, last_response: dict[str, Any]) -> None:
        _say(self, f"Waiter {name} failed: {reason}")
        self.kwargs = {"name": name, "reason": reason}
        self.last_response = last_response


class PaginationError(UsageError):
    """A paginator was given a configuration or a token that it cannot follow."""

    def __init__(self, *, message: str) -> None:
        _say(self, f"Error during pagination: {message}")
        self.kwargs = {"message": message}


def client_failure(error: ApiError, operation: str, metadata: dict[str, Any]) -> ClientFailure:
    """The exception that a client raises for an error of the API; its members are copies."""
    members = msgspec.json.decode(msgspec.json.encode(error.members))
    restore_binary(members)
    made = _also_botocore(_failing(error.code), "ClientError")
    return made(error.message, members, operation, metadata)


def parameter_error(report: str) -> ParamValidationError:
    return _also_botocore(ParamValidationError, "ParamValidationError")(report=report)


def waiter_error(name: str, reason: str, last_response: dict[str, Any]) -> WaiterError:
    made = _also_botocore(WaiterError, "WaiterError")
    return made(name=name, reason=reason, last_response=last_response)


def pagination_error(message: str) -> PaginationError:
    return _also_botocore(PaginationError, "PaginationError")(message=message)


class ClientExceptions:
    """`client.exceptions`: the classes to catch, by name.

    They are those of `isotone.errors`; an exception is one of botocore's as well where that is loaded.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> type[Exception]:
        if name == "ClientError":
            module = sys.modules.get("botocore.exceptions")
            found: type[Exception] = ApiError if module is None else module.ClientError
            return found
        if name in MODELED:
            return error_class(name)
        raise AttributeError(
            f"{self} object has no attribute {name}. Valid exceptions are: {', '.join(sorted(MODELED))}"
        )

    def from_code(self, error_code: str) -> type[Exception]:
        """The class of an error code; the general one for a code that botocore does not declare."""
        return getattr(self, error_code if error_code in MODELED else "ClientError")  # type: ignore[no-any-return]


@cache
def error_class(code: str) -> type[ApiError]:
    """The class of an API error by its code; one that Isotone never raises itself is made here."""
    found = getattr(errors, code, None)
    return found if found is not None else type(code, (ApiError,), {})


@cache
def _failing(code: str) -> type[ClientFailure]:
    error = error_class(code)
    return type(error.__name__, (ClientFailure, error), {"__doc__": error.__doc__})


def _also_botocore(ours: type[E], name: str) -> type[E]:
    module = sys.modules.get("botocore.exceptions")
    return ours if module is None else _joined(ours, getattr(module, name))  # type: ignore[arg-type]


@cache
def _joined(ours: type[E], theirs: type[Exception]) -> type[E]:
    return type(ours.__name__, (ours, theirs), {"__doc__": ours.__doc__})


def _revive(
    code: str, message: str, members: dict[str, Any], operation: str, metadata: dict[str, Any]
) -> ClientFailure:
    made = _also_botocore(_failing(code), "ClientError")
    return made(message, members, operation, metadata)
