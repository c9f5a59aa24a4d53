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
MODELED_BY_STREAMS: Final = frozenset(
    (
        "ExpiredIteratorException",
        "InternalServerError",
        "LimitExceededException",
        "ResourceNotFoundException",
        "TrimmedDataAccessException",
    )
)


def _say(error: Exception, text: str) -> None:
    """Set the text without `super()`, whose next class may be one of botocore's with other arguments."""
    Exception.__init__(error, text)


class ClientFailure(ApiError):
    """An `ApiError` as a client raises it, made like botocore's `ClientError` and with what that carries.

    `response` is the parsed answer (`response["Error"]["Code"]`), `operation_name` the action.
    """

    def __init__(self, error_response: dict[str, Any], operation_name: str) -> None:
        error = error_response.get("Error", {})
        self.message = error.get("Message", "Unknown")
        self.members = {name: value for name, value in error_response.items() if name not in _FRAME}
        self.response = error_response
        self.operation_name = operation_name
        code = error.get("Code", "Unknown")
        _say(
            self,
            f"An error occurred ({code}) when calling the {operation_name} operation: {self.message}",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _revive, (self.code, self.response, self.operation_name)


_FRAME: Final = frozenset({"Error", "ResponseMetadata", "message", "Message"})


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
    response: dict[str, Any] = {
        "Error": {"Message": error.message, "Code": error.code},
        "ResponseMetadata": metadata,
    }
    if error.code in MODELED | MODELED_BY_STREAMS:
        members = msgspec.json.decode(msgspec.json.encode(error.members))
        restore_binary(members)
        response |= {error.message_member: error.message, **members}
    return _revive(error.code, response, operation)


def parameter_error(report: str) -> ParamValidationError:
    return _also_botocore(ParamValidationError, "ParamValidationError")(report=report)


def waiter_error(name: str, reason: str, last_response: dict[str, Any]) -> WaiterError:
    made = _also_botocore(WaiterError, "WaiterError")
    return made(name=name, reason=reason, last_response=last_response)


def pagination_error(message: str) -> PaginationError:
    return _also_botocore(PaginationError, "PaginationError")(message=message)


class ClientExceptions:
    """`client.exceptions`: the classes to catch, by name.

    Each is a subclass of its namesake in `isotone.errors`; an exception that a client raises is an
    instance of both, and of botocore's `ClientError` where that is loaded.
    """

    __slots__ = ("_modeled",)

    def __init__(self, modeled: frozenset[str] = MODELED) -> None:
        self._modeled = modeled

    def __getattr__(self, name: str) -> type[ClientFailure]:
        if name == "ClientError":
            return _botocore(name) or ClientFailure
        if name in self._modeled:
            return _failing(name)
        raise AttributeError(
            f"{self} object has no attribute {name}. Valid exceptions are: {', '.join(sorted(self._modeled))}"
        )

    def from_code(self, error_code: str) -> type[ClientFailure]:
        """The class of an error code; the general one for a code that botocore does not declare."""
        known: type[ClientFailure] = getattr(
            self, error_code if error_code in self._modeled else "ClientError"
        )
        return known


@cache
def _failing(code: str) -> type[ClientFailure]:
    """The class of a client's errors with a code; one that Isotone never raises by itself, too."""
    error = getattr(errors, code, None) or type(code, (ApiError,), {})
    return type(code, (ClientFailure, error), {"__doc__": error.__doc__})


def _botocore(name: str) -> Any:
    """A class of botocore's exceptions, or None while botocore is not loaded."""
    return getattr(sys.modules.get("botocore.exceptions"), name, None)


def _also_botocore(ours: type[E], name: str) -> type[E]:
    theirs = _botocore(name)
    return ours if theirs is None else _joined(ours, theirs)  # type: ignore[arg-type] # botocore is untyped


@cache
def _joined(ours: type[E], theirs: type[Exception]) -> type[E]:
    return type(ours.__name__, (ours, theirs), {"__doc__": ours.__doc__})


def _revive(code: str, response: dict[str, Any], operation: str) -> ClientFailure:
    return _also_botocore(_failing(code), "ClientError")(response, operation)
