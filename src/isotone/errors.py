"""Every exception that Isotone raises.

    IsotoneError
    ├── ApiError                    an error of the DynamoDB API, with AWS's message
    │   └── ValidationException, ResourceNotFoundException, … (one class per AWS error)
    ├── StorageError                the database file could not be read or written
    │   ├── StorageFull             the disk is full
    │   ├── StorageBusy             another process kept the file locked
    │   └── StorageCorrupt          the file is damaged, or is not an Isotone database
    │       ├── DamagedItem         an item is not as it was written: `table`, `key`
    │       └── DamagedLog          the log of a file is damaged, so the file was not opened
    ├── TakesLong                   a request takes longer than an event loop may be held
    ├── ConnectionFailed            a server did not respond, or not readably
    ├── TableDiffers                an existing table differs from its declaration
    ├── KeysChanged                 stored items have other keys than declared
    ├── WriteRefused                the stored data did not allow a write; nothing was written
    │   ├── ConditionFailed         the condition was false; `current` is the stored entity
    │   │   ├── AlreadyExists
    │   │   ├── NotFound
    │   │   └── VersionConflict     another writer changed the entity after it was read
    │   ├── NotUnique               another entity has the value
    │   ├── TransactionFailed       a write of a transaction was refused, so none was made
    │   └── Contended               other writers kept changing the same items
    ├── BatchIncomplete             part of a batch was not processed
    ├── DeadlineExceeded            the retries of a call used up its time
    ├── Unsupported                 the engine lacks a feature that a table or a structure needs
    ├── ChangesLost                 a stream dropped changes that a copy still needed
    ├── BadRow                      a row of a file is not an item that its table takes
    ├── ReadIncomplete              a read stopped before it had everything
    │   ├── BudgetSpent             it reached its limit of units or requests
    │   ├── TooMany                 there are more results than the caller allows
    │   └── TooLarge                there is too much data to hold in memory
    ├── Locked                      another owner holds the lock: `owner`, `until`
    │   └── InProgress              another attempt at the same work is running
    ├── LeaseLost                   a lease was not renewed in time
    ├── RankingIncomplete           ranks are being rebuilt or removed
    ├── MalformedKey                a key, or a part of it, does not have the declared form
    ├── InvalidItem                 a stored item is not what its entity declares
    │   └── NewerVersion            a later version of the entity wrote it
    └── UsageError                  a call of Isotone's Python API was wrong
        ├── InvalidEntity           values do not fit the fields of an entity
        ├── Unanswerable            a condition is not a range of its key
        ├── PayloadDiffers          an idempotency key was used before with another payload
        ├── InvalidCursor           a cursor was changed, has expired, or belongs to another query
        ├── NoCredentials           there is no access key to sign requests with
        ├── NotStarted              a mock is not active; also a RuntimeError
        └── OutOfRange              a value does not fit the declared range of its key component

An `ApiError` is part of the protocol: it is sent over HTTP, and clients raise it as the AWS SDKs do. The others
are Isotone's own. Their messages say what was wrong, with which value, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

_DYNAMODB: Final = "com.amazonaws.dynamodb.v20120810#"
_CORAL_VALIDATE: Final = "com.amazon.coral.validate#"
_CORAL_AVAILABILITY: Final = "com.amazon.coral.availability#"
_CORAL_SERVICE: Final = "com.amazon.coral.service#"


class IsotoneError(Exception):
    """The base class of all others. Pickling and copying keep an error's text and attributes."""

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self.args), vars(self)


E = TypeVar("E", bound=BaseException)


def restored(kind: type[E], args: tuple[Any, ...]) -> E:
    """Rebuilds a pickled error without calling its constructor, which would format the message a second time."""
    return kind.__new__(kind, *args)


class StorageError(IsotoneError):
    """The database file could not be read or written; no partial write remains."""


class StorageFull(StorageError):
    """The disk is full. The write was rolled back; writes succeed again once there is room."""


class StorageBusy(StorageError):
    """Another process held the write lock of the file for too long."""


class TakesLong(IsotoneError):
    """A request takes longer than its thread may: nothing was done, and it has to be executed in another one.

    Only a thread that may not be held, such as the event loop of a server, gets this error.
    """


class StorageCorrupt(StorageError):
    """The file is damaged, or is not an Isotone database."""


class DamagedItem(StorageCorrupt):
    """A stored item, or an index entry of one, has changed on the disk since it was written.

    `table` is the table's name, `key` the item's key as the API writes it; either is None where it cannot be read.
    """

    def __init__(
        self, message: str, table: str | None = None, key: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.table = table
        self.key = key


class DamagedLog(StorageCorrupt):
    """The log (`-wal`) of a file is damaged, and SQLite would drop commits that follow, so the file was not opened."""


class UsageError(IsotoneError, ValueError):
    """A call of Isotone's Python API was wrong."""


class NotStarted(UsageError, RuntimeError):
    """A mock is used before it was started or after it was stopped; also a `RuntimeError`, as in moto."""


class OutOfRange(UsageError):
    """A value does not fit the declared range of its key component; nothing was written."""


class InvalidEntity(UsageError):
    """Values do not fit the fields of an entity; `errors` has pydantic's details."""

    def __init__(self, message: str, errors: list[Any]) -> None:
        super().__init__(message)
        self.errors = errors


class Unanswerable(UsageError):
    """A condition is not a range of its key."""


class PayloadDiffers(UsageError):
    """An idempotency key was used before with another payload."""


class InvalidCursor(UsageError):
    """A cursor was changed, has expired, or belongs to another query."""


class NoCredentials(UsageError):
    """There is no access key to sign requests with."""


class ConnectionFailed(IsotoneError):
    """A server did not respond, or its response was damaged, after all retries.

    A write may or may not have been executed: only its response may have been lost. `sent` is False if the request
    never left, or was refused before it was executed.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class TableDiffers(IsotoneError):
    """An existing table differs from its declaration; `str()` of each of `differences` says how."""

    def __init__(self, differences: Sequence[object]) -> None:
        super().__init__(
            "; ".join(map(str, differences))
            + ". Missing indexes are added by add_indexes(); for the rest, change the declaration "
            "or give the table another name"
        )
        self.differences: list[object] = list(differences)


class KeysChanged(IsotoneError):
    """Stored items have other keys than their entity declares, so reads would miss them.

    `entity` and `table` are names, `changes` says how the keys differ.
    """

    def __init__(self, entity: str, table: str, changes: Sequence[str]) -> None:
        super().__init__(
            f"the items of {entity} in table {table!r} have other keys than declared: "
            + "; ".join(changes)
            + f". Reads would miss them. Change the declaration back, or rewrite the items with "
            f"store.rewrite({entity}); store.accept_keys({entity}) says that none needs it"
        )
        self.entity = entity
        self.table = table
        self.changes: list[str] = list(changes)


class WriteRefused(IsotoneError):
    """The stored data did not allow a write; nothing was written."""


class ConditionFailed(WriteRefused):
    """The condition of a write was false; `current` is the stored entity, or None."""

    def __init__(self, message: str, current: Any = None) -> None:
        super().__init__(message)
        self.current = current


class AlreadyExists(ConditionFailed):
    """An entity with this primary key already exists."""


class NotFound(ConditionFailed):
    """There is no entity with this primary key."""


class VersionConflict(ConditionFailed):
    """Another writer changed the entity after it was read; read it again and decide again."""


class NotUnique(WriteRefused):
    """Another entity has the value: `owner` is its primary key, or the name that reserved it."""

    def __init__(self, message: str, field: str, value: Any, owner: Any = None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.owner = owner


class Failure(NamedTuple):
    """A refused write of a transaction: its entity, and the reason.

    `position` is the number of the call in the transaction, from 0; entities that were only read come after all calls.
    `key` is an `EntityKey`: `key.entity` is the class, `key.fields` has the values of the primary key.
    """

    position: int
    key: Any
    reason: WriteRefused


class TransactionFailed(WriteRefused):
    """One or more writes of a transaction were refused, so none was made.

    `failures` has a `Failure` for each, in the order of the calls.
    """

    def __init__(self, message: str, failures: Sequence[Failure]) -> None:
        super().__init__(message)
        self.failures: list[Failure] = list(failures)

    @property
    def reasons(self) -> dict[int, WriteRefused]:
        """The error of each refused write, by its position among the calls."""
        return {failure.position: failure.reason for failure in self.failures}

    def reason_of(self, target: Any) -> WriteRefused | None:
        """The error of the refused write of an entity, given its class or `EntityKey`; None if it was not refused."""
        for _, key, reason in self.failures:
            if key == target or (isinstance(target, type) and issubclass(key.entity, target)):
                return reason
        return None


class Contended(WriteRefused):
    """Other writers changed the same items during every attempt."""


class DeadlineExceeded(IsotoneError):
    """The retries of a call used up its time."""


class Unsupported(IsotoneError):
    """The engine lacks a feature that a table or a structure needs."""


class BatchIncomplete(IsotoneError):
    """Part of a batch was not processed after several attempts; `remaining` was not written."""

    def __init__(self, message: str, remaining: list[Any]) -> None:
        super().__init__(message)
        self.remaining = remaining


class ChangesLost(IsotoneError):
    """A stream dropped changes before a copy had applied them, or its table was restored; the copy has to begin again."""


class BadRow(IsotoneError):
    """A row of a file is not an item that its table takes; everything before it was imported.

    `number` is the number of the line or row, from 1; `reason` is what is wrong; `text` is the row; `file` is its file
    in a folder.
    """

    def __init__(self, number: int, reason: str, text: str = "", file: str = "") -> None:
        place = f"row {number} of {file}" if file else f"row {number}"
        super().__init__(
            f"{place}: {reason}. Everything before it was imported; correct it, or continue with "
            "--bad-rows FILE (bad_rows=)"
        )
        self.number = number
        self.reason = reason
        self.text = text
        self.file = file


class ReadIncomplete(IsotoneError):
    """A read stopped before it had everything; `stats` has its cost."""

    def __init__(self, message: str, stats: Any = None) -> None:
        super().__init__(message)
        self.stats = stats


class BudgetSpent(ReadIncomplete):
    """A query reached its limit of units or requests; `page` reads the same in parts."""


class TooMany(ReadIncomplete):
    """There are more results than the caller allows."""


class TooLarge(ReadIncomplete):
    """A collection is too large to filter in memory."""


class Locked(IsotoneError):
    """Another owner holds the lock: `owner` names it, `until` is when its lease ends unless renewed."""

    def __init__(
        self, message: str, owner: str | None = None, until: datetime | None = None
    ) -> None:
        super().__init__(message)
        self.owner = owner
        self.until = until


class InProgress(Locked):
    """Another attempt at the same work is running; its result is not known yet."""


class LeaseLost(IsotoneError):
    """A lease was not renewed in time, and may have another owner now."""


class RankingIncomplete(IsotoneError):
    """Ranks are being rebuilt or removed, or that was interrupted and must be repeated."""


class MalformedKey(IsotoneError, ValueError):
    """A text is not a key of the declared form: another kind of item, or another declaration."""


class InvalidItem(IsotoneError):
    """A stored item is not what its entity declares.

    `table`, `key` (a dict of plain values) and `entity` (its tag) say which item. `field` is the field that has no
    valid value, `found` its stored value as DynamoDB JSON (None if there is none), `declared` its type in words.
    They are None where the item as a whole is not valid.
    """

    def __init__(
        self,
        message: str,
        *,
        table: str = "",
        key: Mapping[str, Any] | None = None,
        entity: str = "",
        field: str | None = None,
        found: Mapping[str, Any] | None = None,
        declared: str | None = None,
    ) -> None:
        super().__init__(message)
        self.table = table
        self.key: dict[str, Any] = dict(key or {})
        self.entity = entity
        self.field = field
        self.found = found
        self.declared = declared


class NewerVersion(InvalidItem):
    """A later version of the entity wrote the item: this program neither reads it nor writes over it."""


class ApiError(IsotoneError):
    """An error of the DynamoDB API, which DynamoDB returns instead of a result.

    `members` are the other members of the error's body (`CancellationReasons`, `Item`). `hint` is advice that the
    library adds after AWS's message. `follows_lost_answer`: an earlier attempt of this request got no answer and may
    have been executed, so a condition may be false because of it.
    """

    status: ClassVar[int] = 400
    namespace: ClassVar[str] = _DYNAMODB
    message_member: ClassVar[str] = "message"
    hint: str = ""
    follows_lost_answer: bool = False
    # The attribute that botocore's errors have; set on errors that a client raises.
    response: dict[str, Any]
    operation_name: str

    def __init__(self, message: str = "", **members: Any) -> None:
        super().__init__(message)
        self.message = message
        self.members = members

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text} ({self.hint})" if self.hint else text

    @property
    def code(self) -> str:
        """The name of the error in the AWS SDKs, such as `ValidationException`."""
        return type(self).__name__

    def body(self) -> dict[str, Any]:
        """The JSON object of the response."""
        answer: dict[str, Any] = {"__type": self.namespace + self.code, **self.members}
        if self.message:
            answer[self.message_member] = self.message
        return answer


class ValidationException(ApiError):
    """The request breaks a rule: a wrong key, expression, value or combination of parameters."""

    namespace = _CORAL_VALIDATE
    repeated_set: Sequence[str] = ()  # the members of the set, if one is there twice


class SerializationException(ApiError):
    """The request body is not the JSON that the action expects."""

    namespace = _CORAL_SERVICE
    message_member = "Message"


class UnknownOperationException(ApiError):
    """The X-Amz-Target header does not name an action."""

    namespace = _CORAL_SERVICE
    message_member = "Message"


class MissingAuthenticationTokenException(ApiError):
    """The request is not signed."""

    namespace = _CORAL_SERVICE


class IncompleteSignatureException(ApiError):
    """The Authorization header lacks a part of a signature."""

    namespace = _CORAL_SERVICE


class InvalidSignatureException(ApiError):
    """The signature is not that of the request, is too old, or is there in two forms."""

    namespace = _CORAL_SERVICE


class UnrecognizedClientException(ApiError):
    """No user has the access key, or the session token does not belong to it."""

    namespace = _CORAL_SERVICE


class ExpiredTokenException(ApiError):
    """The temporary access key has expired."""

    namespace = _CORAL_SERVICE


class AccessDeniedException(ApiError):
    """The user may not do this to the resource."""

    namespace = _CORAL_SERVICE
    message_member = "Message"


class ConditionalCheckFailedException(ApiError):
    """The condition of a write was false; `members` has `Item` if the request asked for it."""


class DuplicateItemException(ApiError):
    """An INSERT of an item whose key exists already."""


class TransactionCanceledException(ApiError):
    """A transaction was cancelled; `CancellationReasons` has one entry per action."""

    message_member = "Message"


class ReplicatedWriteConflictException(ApiError):
    """A request in another region is writing the item; the table has multi-region strong consistency."""


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
    """Too many operations of one kind at once."""


class ProvisionedThroughputExceededException(ApiError):
    """More units per second than provisioned."""


class ThrottlingException(ApiError):
    """More units per second than an on-demand table takes; `members` has `throttlingReasons`."""

    namespace = _CORAL_AVAILABILITY


class RequestLimitExceeded(ApiError):
    """More units per second than the account allows."""


class ResourceInUseException(ApiError):
    """The table or index is being created, changed or deleted, or the name is taken."""


class ResourceNotFoundException(ApiError):
    """The table, index or resource does not exist."""


class TableNotFoundException(ApiError):
    """The table does not exist (some actions use this name)."""


class TableInUseException(ApiError):
    """The table is being created, changed or deleted (some actions use this name)."""


class TableAlreadyExistsException(ApiError):
    """The table that a restore would create exists."""


class BackupNotFoundException(ApiError):
    """The backup does not exist."""


class BackupInUseException(ApiError):
    """The backup is being made, or a table is being restored from it."""


class ContinuousBackupsUnavailableException(ApiError):
    """Point-in-time recovery cannot be set yet: the table is being created."""


class PointInTimeRecoveryUnavailableException(ApiError):
    """Point-in-time recovery is not enabled for the table."""


class ExportNotFoundException(ApiError):
    """The export does not exist."""


class ExportConflictException(ApiError):
    """The client token was used within eight hours for another export."""


class InvalidExportTimeException(ApiError):
    """The table cannot be exported as of this time: it is in the future, or too long ago."""


class ImportNotFoundException(ApiError):
    """The import does not exist."""


class ImportConflictException(ApiError):
    """The client token was used within eight hours for another import."""


class InvalidRestoreTimeException(ApiError):
    """The table cannot be restored to this time: it is in the future, or too long ago."""


class IndexNotFoundException(ApiError):
    """The index does not exist (some actions use this name)."""


class PolicyNotFoundException(ApiError):
    """The resource has no policy, or none of the expected revision."""


class GlobalTableNotFoundException(ApiError):
    """There is no global table of version 2017.11.29 with this name."""


class GlobalTableAlreadyExistsException(ApiError):
    """One of the tables is a replica already."""


class ReplicaNotFoundException(ApiError):
    """The global table has no replica in the region."""


class ReplicaAlreadyExistsException(ApiError):
    """The global table has a replica in the region already."""


class ExpiredIteratorException(ApiError):
    """A shard iterator is more than 15 minutes old."""


class TrimmedDataAccessException(ApiError):
    """The position in a stream is older than the records that are still kept (24 hours)."""


class InternalServerError(ApiError):
    """The server failed; the request was rolled back."""

    status = 500
