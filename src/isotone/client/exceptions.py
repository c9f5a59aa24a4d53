"""The exceptions of a client, which both kinds of `except` clauses catch: Isotone's and botocore's.

A failed call raises an instance of its `isotone.errors` class with botocore's attributes, `response`
and `operation_name`. If the program has imported botocore, the instance also belongs to
`botocore.exceptions.ClientError`; the parameter, waiter and pagination errors to their namesakes there.
Isotone never imports botocore for this, so programs without it do not pay for it.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from isotone import errors
from isotone.client.responses import restore_binary
from isotone.errors import ApiError, IsotoneError, UsageError, restored

E = TypeVar("E", bound=Exception)

# The errors declared in botocore's model of DynamoDB: `client.exceptions` has these, and botocore copies
# their members to the top of `response`. ValidationException is not among them.
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


class ClientError(ApiError):
    """An `ApiError` with the constructor and the attributes of botocore's `ClientError`.

    `response` is the parsed answer (`response["Error"]["Code"]`), `operation_name` the action.
    """

    def __init__(self, error_response: dict[str, Any], operation_name: str) -> None:
        error = error_response.get("Error", {})
        self.message: Any = error.get("Message", "Unknown")
        self.members: dict[str, Any] = {
            name: value for name, value in error_response.items() if name not in _FRAME
        }
        self.response = error_response
        self.operation_name = operation_name
        code = error.get("Code", "Unknown")
        _set_text(
            self,
            f"An error occurred ({code}) when calling the {operation_name} operation: {self.message}",
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if _is_importable(type(self)):
            return IsotoneError.__reduce__(self)
        return _restored_client_error, (self.code, self.args), vars(self)


_FRAME: Final = frozenset({"Error", "ResponseMetadata", "message", "Message"})


def _set_text(error: Exception, text: str) -> None:
    """Set an exception's text without `super()`: the next class may be botocore's, with other arguments."""
    Exception.__init__(error, text)


class _OfBotocore:
    """An error whose class may be joined with its namesake in botocore; pickle cannot import that class by name."""

    args: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        known = (kind for kind in type(self).__mro__ if _is_importable(kind))
        return _restored_joined, (next(known), self.args), vars(self)


class ParamValidationError(_OfBotocore, UsageError):
    """The parameters of a call are invalid; no request was sent."""

    def __init__(self, *, report: str) -> None:
        _set_text(self, f"Parameter validation failed:\n{report}")
        self.kwargs: dict[str, str] = {"report": report}


class WaiterError(_OfBotocore, IsotoneError):
    """A waiter gave up; `last_response` is the last answer that it received."""

    def __init__(self, *, name: str, reason: str, last_response: dict[str, Any]) -> None:
        _set_text(self, f"Waiter {name} failed: {reason}")
        self.kwargs: dict[str, str] = {"name": name, "reason": reason}
        self.last_response = last_response


class PaginationError(_OfBotocore, UsageError):
    """A paginator got a configuration or a token that it cannot use."""

    def __init__(self, *, message: str) -> None:
        _set_text(self, f"Error during pagination: {message}")
        self.kwargs: dict[str, str] = {"message": message}


def client_error(error: ApiError, operation: str, metadata: dict[str, Any]) -> ClientError:
    """The exception that a client raises for an error of the API; its members are copies."""
    response: dict[str, Any] = {
        "Error": {"Message": error.message, "Code": error.code},
        "ResponseMetadata": metadata,
    }
    if error.code in MODELED | MODELED_BY_STREAMS:
        members = msgspec.json.decode(msgspec.json.encode(error.members))
        restore_binary(members)
        response |= {error.message_member: error.message, **members}
    return _client_error(error.code, response, operation)


def parameter_error(report: str) -> ParamValidationError:
    return _also_botocore(ParamValidationError)(report=report)


def waiter_error(name: str, reason: str, last_response: dict[str, Any]) -> WaiterError:
    return _also_botocore(WaiterError)(name=name, reason=reason, last_response=last_response)


def pagination_error(message: str) -> PaginationError:
    return _also_botocore(PaginationError)(message=message)


class ClientExceptions:
    """`client.exceptions`: the classes to catch, by name.

    Each is a subclass of its namesake in `isotone.errors`. An exception that a client raises is an
    instance of both, and of botocore's `ClientError` if that is loaded.
    """

    __slots__ = ("_modeled",)

    def __init__(self, modeled: frozenset[str] = MODELED) -> None:
        self._modeled = modeled

    def __getattr__(self, name: str) -> type[ClientError]:
        if name == "ClientError":
            return _botocore(name) or ClientError
        if name in self._modeled:
            return _error_class(name)
        raise AttributeError(
            f"{self} object has no attribute {name}. Valid exceptions are: {', '.join(sorted(self._modeled))}"
        )

    def from_code(self, error_code: str) -> type[ClientError]:
        """The class of an error code; `ClientError` for a code that botocore does not declare."""
        name = error_code if error_code in self._modeled else "ClientError"
        error_class: type[ClientError] = getattr(self, name)
        return error_class


@cache
def _error_class(code: str) -> type[ClientError]:
    """The class of an error code, including codes that Isotone itself never raises."""
    error = getattr(errors, code, None) or type(code, (ApiError,), {})
    return type(code, (ClientError, error), {"__doc__": error.__doc__})


def _client_error(code: str, response: dict[str, Any], operation: str) -> ClientError:
    return _also_botocore(_error_class(code), "ClientError")(response, operation)


def _also_botocore(ours: type[E], name: str = "") -> type[E]:
    """The class, joined with its namesake in botocore if botocore is loaded."""
    theirs = _botocore(name or ours.__name__)
    return ours if theirs is None else _joined(ours, theirs)  # type: ignore[arg-type] # botocore is untyped


@cache
def _joined(ours: type[E], theirs: type[Exception]) -> type[E]:
    return type(ours.__name__, (ours, theirs), {"__doc__": ours.__doc__})


def _is_importable(kind: type) -> bool:
    return getattr(sys.modules.get(kind.__module__), kind.__qualname__, None) is kind


def _restored_joined(ours: type[E], args: tuple[Any, ...]) -> E:
    return restored(_also_botocore(ours), args)


def _restored_client_error(code: str, args: tuple[Any, ...]) -> ClientError:
    return restored(_also_botocore(_error_class(code), "ClientError"), args)


def _botocore(name: str) -> Any:
    """A class of botocore's exceptions, or None while botocore is not loaded."""
    return getattr(sys.modules.get("botocore.exceptions"), name, None)
