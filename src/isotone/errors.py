"""Every exception that Isotone raises.

    IsotoneError
    ├── ApiError                      an answer of the DynamoDB API, in AWS's words
    │   ├── ValidationException, ResourceNotFoundException, … (one class an AWS error)
    │   └── TransactionCanceledException, …
    ├── StorageError                  the store under the database could not do its work
    │   ├── StorageFull               no room left on the disk
    │   ├── StorageBusy               another process kept the file locked for too long
    │   └── StorageCorrupt            the file is not what was written
    ├── ConnectionFailed              a remote engine gave no answer, or none that can be read
    ├── TableDiffers                  a table that exists is not as it was declared
    ├── WriteRefused                  what is stored did not allow a write; nothing of it was written
    │   ├── ConditionFailed           its condition did not hold; `current` is what is stored
    │   │   ├── AlreadyExists
    │   │   ├── NotFound
    │   │   └── VersionConflict       somebody else wrote it in between
    │   ├── NotUnique                 another entity has the value
    │   ├── TransactionFailed         one of several writes was refused, so none was made
    │   └── Contended                 others kept writing the same items
    ├── BatchIncomplete               the service kept refusing a part of a batch
    ├── DeadlineExceeded              retries used up the time that the call had for them
    ├── Unsupported                   the engine cannot do what a table or a structure needs
    ├── ReadIncomplete                a read ended before it had brought everything
    │   ├── BudgetSpent               its bound of units or requests was reached
    │   ├── TooMany                   there are more results than the caller can take
    │   └── TooLarge                  there is more data than can be held in memory
    ├── Locked                        somebody else holds it; `owner` and `until` say who, and how long
    │   └── InProgress                another attempt at the same work has not ended
    ├── LeaseLost                     what was held was not renewed in time, and is held no longer
    ├── MalformedKey                  a key, or a part of it, that is not as it was declared
    └── UsageError                    Isotone's own Python interface was used wrongly
        ├── InvalidEntity             values do not fit the fields of an entity
        ├── Unanswerable              no range of a key's order answers the conditions
        ├── PayloadDiffers            an idempotency key was used again for something else
        ├── InvalidCursor             a cursor that was changed, has expired, or is another query's
        ├── NoCredentials             there is no access key to sign requests with
        └── OutOfRange                a value that does not fit what was declared for it

An `ApiError` is part of the protocol: it travels over HTTP and comes out of a client as the AWS SDKs
know it. All others are ours and say what was wrong, with which value, and what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

_DYNAMODB: Final = "com.amazonaws.dynamodb.v20120810#"
_CORAL_VALIDATE: Final = "com.amazon.coral.validate#"
_CORAL_SERVICE: Final = "com.amazon.coral.service#"


class IsotoneError(Exception):
    """The root of the tree."""


class StorageError(IsotoneError):
    """The store could not do its work; nothing half done remains."""


class StorageFull(StorageError):
    """The disk has no room: the write was undone, and writes succeed again once there is room."""


class StorageBusy(StorageError):
    """Another process held the file's write lock for longer than we wait."""


class StorageCorrupt(StorageError):
    """The file is damaged, or was not made by Isotone."""


class UsageError(IsotoneError, ValueError):
    """A call that cannot be meant as written."""


class OutOfRange(UsageError):
    """A value beyond what its component of a key was declared to hold; nothing was written."""


class InvalidEntity(UsageError):
    """Values that do not fit the fields of an entity; `errors` has pydantic's account of each."""

    def __init__(self, message: str, errors: list[Any]) -> None:
        super().__init__(message)
        self.errors = errors


class Unanswerable(UsageError):
    """A condition that a key cannot answer by a range of its order."""


class PayloadDiffers(UsageError):
    """An idempotency key was used before, with another payload."""


class InvalidCursor(UsageError):
    """A cursor that was changed, has expired, or belongs to another query."""


class NoCredentials(UsageError):
    """Amazon's service wants signed requests, and no access key was found to sign them with."""


class ConnectionFailed(IsotoneError):
    """A remote engine gave no answer, or a damaged one, also after the retries.

    Whether a write was done is unknown: its answer may be all that was lost.
    """


class TableDiffers(IsotoneError):
    """A table exists that is not as declared; `differences` has each point, in words as its text."""

    def __init__(self, differences: Sequence[object]) -> None:
        super().__init__(
            "; ".join(map(str, differences))
            + ". Missing indexes are added by add_indexes(); for the rest, change the declaration "
            "or give the table another name"
        )
        self.differences = list(differences)


class WriteRefused(IsotoneError):
    """What is stored did not allow the write; nothing of it was written."""


class ConditionFailed(WriteRefused):
    """The condition of a write did not hold. `current` is the entity as it is stored, or None."""

    def __init__(self, message: str, current: Any = None) -> None:
        super().__init__(message)
        self.current = current


class AlreadyExists(ConditionFailed):
    """There is an entity with that primary key already."""


class NotFound(ConditionFailed):
    """There is no entity with that primary key."""


class VersionConflict(ConditionFailed):
    """The entity was written by somebody else since it was read; read it again and decide anew."""


class NotUnique(WriteRefused):
    """Somebody else has the value already: `owner`, or the entity whose item has `owner` as its primary key."""

    def __init__(self, message: str, field: str, value: Any, owner: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.owner = owner


class TransactionFailed(WriteRefused):
    """One or several writes of a transaction were refused, so that none was made.

    `failures` maps the place of each refused write, in the order of the calls, to its own error.
    """

    def __init__(self, message: str, failures: dict[int, WriteRefused]) -> None:
        super().__init__(message)
        self.failures = failures


class Contended(WriteRefused):
    """Others changed the same items during every attempt."""


class DeadlineExceeded(IsotoneError):
    """The retries of a call used up the time that it had for them."""


class Unsupported(IsotoneError):
    """The engine lacks a capability that a table or a structure needs."""


class BatchIncomplete(IsotoneError):
    """The service kept refusing a part of a batch; `remaining` is what was not written."""

    def __init__(self, message: str, remaining: list[Any]) -> None:
        super().__init__(message)
        self.remaining = remaining


class ReadIncomplete(IsotoneError):
    """A read ended before it had brought everything; `stats` tells what it cost."""

    def __init__(self, message: str, stats: Any = None) -> None:
        super().__init__(message)
        self.stats = stats


class BudgetSpent(ReadIncomplete):
    """The query's bound of units or requests was reached; `page` reads the same in parts."""


class TooMany(ReadIncomplete):
    """There are more results than the caller said that there can be."""


class TooLarge(ReadIncomplete):
    """There is more data than a collection that is filtered in memory may have."""


class Locked(IsotoneError):
    """Somebody else holds it: `owner` says who, `until` the time to which it is held unless renewed."""

    def __init__(
        self, message: str, owner: str | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(message)
        self.owner = owner
        self.until = until


class InProgress(Locked):
    """Another attempt at the same work has begun and not ended; its result is not known yet."""


class LeaseLost(IsotoneError):
    """What was held by a lease was not renewed in time, and may be somebody else's by now."""


class RankingIncomplete(IsotoneError):
    """Ranks are being made anew or taken away, or this was interrupted and is to be done again."""


class MalformedKey(IsotoneError, ValueError):
    """A text that the declared key never writes: another kind of item, or another declaration."""


class ApiError(IsotoneError):
    """An error of the DynamoDB API: what the service answers instead of a result.

    `members` are the further members of the error's body (`CancellationReasons`, `Item`). `hint` is what the
    library adds for people, behind AWS's words.
    """

    status: ClassVar[int] = 400
    namespace: ClassVar[str] = _DYNAMODB
    message_member: ClassVar[str] = "message"
    hint: str = ""
    # What botocore's errors have, and those of ours that a client has raised.
    response: dict[str, Any]
    operation_name: str

    def __init__(self, message: str = "", **members: Any) -> None:
        super().__init__(message)
        self.message = message
        self.members = members

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said} ({self.hint})" if self.hint else said

    @property
    def code(self) -> str:
        """The name an SDK knows the error by, such as `ValidationException`."""
        return type(self).__name__

    def body(self) -> dict[str, Any]:
        """The JSON object that the service sends."""
        answer: dict[str, Any] = {"__type": self.namespace + self.code, **self.members}
        if self.message:
            answer[self.message_member] = self.message
        return answer


class ValidationException(ApiError):
    """The request breaks a rule that does not depend on the table's state."""

    namespace = _CORAL_VALIDATE


class SerializationException(ApiError):
    """The request body is not the JSON that the action expects."""

    namespace = _CORAL_SERVICE
    message_member = "Message"


class UnknownOperationException(ApiError):
    """The X-Amz-Target header names no action."""

    namespace = _CORAL_SERVICE
    message_member = "Message"


class MissingAuthenticationTokenException(ApiError):
    """The request is not signed."""

    namespace = _CORAL_SERVICE


class IncompleteSignatureException(ApiError):
    """The Authorization header lacks a part of a signature."""

    namespace = _CORAL_SERVICE


class InvalidSignatureException(ApiError):
    """The request is signed in two ways at once, or wrongly."""

    namespace = _CORAL_SERVICE


class AccessDeniedException(ApiError):
    """The resource belongs to somebody else."""

    namespace = _CORAL_SERVICE
    message_member = "Message"


class ConditionalCheckFailedException(ApiError):
    """The condition of a write did not hold; `Item` is there where the request asked for it."""


class TransactionCanceledException(ApiError):
    """A transaction was refused as a whole; `CancellationReasons` has one entry an action."""

    message_member = "Message"


class TransactionConflictException(ApiError):
    """Another transaction holds the item."""


class TransactionInProgressException(ApiError):
    """A transaction with the same token has not ended yet."""

    message_member = "Message"


class IdempotentParameterMismatchException(ApiError):
    """A token was used again with other parameters."""

    message_member = "Message"


class ItemCollectionSizeLimitExceededException(ApiError):
    """An item collection of a table with local indexes would outgrow 10 GB."""


class LimitExceededException(ApiError):
    """Too many of something at once."""


class ProvisionedThroughputExceededException(ApiError):
    """More units a second than were provisioned."""


class RequestLimitExceeded(ApiError):
    """More units a second than the account allows."""


class ResourceInUseException(ApiError):
    """The table or index is being made, changed or dropped, or the name is taken."""


class ResourceNotFoundException(ApiError):
    """There is no such table, index or resource."""


class TableNotFoundException(ApiError):
    """There is no such table (where the service uses this name for it)."""


class TableInUseException(ApiError):
    """The table is being made, changed or dropped (where the service uses this name for it)."""


class IndexNotFoundException(ApiError):
    """There is no such index (where the service uses this name for it)."""


class ExpiredIteratorException(ApiError):
    """A shard iterator was used later than 15 minutes after it was made."""


class TrimmedDataAccessException(ApiError):
    """The position lies before records that were dropped from the stream after 24 hours."""


class InternalServerError(ApiError):
    """Something broke on our side; nothing of the request was kept."""

    status = 500
