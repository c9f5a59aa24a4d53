"""The requests to Azure Table storage as steps, and the two hosts that execute them with Microsoft's SDK.

An action is a generator that yields steps and does no I/O. `AzureService` executes the steps with `azure-data-tables`,
`AsyncService` with its async form. The SDK's errors are translated here, and only here: an entity that another writer
changed raises `Conflict`, a missing table `TableGone`.

The SDK retries requests that Azure did not answer, or answered with 5xx, as `Retries` says. A change that depends on
the stored entity is sent only once: if the change was made and its answer lost, a retry would fail as if another writer
had won, and the action would be executed on its own result.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from isotone.backends.azure_table.entities import PARTITION, ROW, Entity
from isotone.errors import (
    AccessDeniedException,
    ConnectionFailed,
    DeadlineExceeded,
    InternalServerError,
    ProvisionedThroughputExceededException,
    ResourceInUseException,
    ThrottlingException,
    ValidationException,
)

R = TypeVar("R")

_AT_ONCE: Final = 10  # requests of one action that run in parallel


class Conflict(Exception):
    """Another writer changed, created or deleted an entity since it was read."""


class Absent(Conflict):
    """The entity does not exist."""


class TableGone(Exception):
    """Azure has no table of this name."""


class TableExists(Exception):
    """Azure has a table of this name."""


# Steps


class FoundEntity(NamedTuple):
    """An entity as it was read, and its ETag."""

    entity: Entity
    etag: str


class GetEntity(NamedTuple):
    """Read an entity: `FoundEntity`, or None."""

    table: str
    partition: str
    row: str


class ListEntities(NamedTuple):
    """Read some entities in order of their keys: the entities, and the token of the next page or None."""

    table: str
    filter: str
    top: int
    token: Any = None


class InsertEntity(NamedTuple):
    """Write an entity that must not exist."""

    entity: Entity


class Replace(NamedTuple):
    """Replace an entity that has this ETag; without an ETag, write over any or none."""

    entity: Entity
    etag: str | None = None


class RemoveEntity(NamedTuple):
    """Delete the entity that has this ETag; without an ETag, whatever is stored."""

    partition: str
    row: str
    etag: str | None = None


EntityChange: TypeAlias = InsertEntity | Replace | RemoveEntity


class WriteEntity(NamedTuple):
    """Make one change. Raises `Conflict`."""

    table: str
    change: EntityChange


class WriteTogether(NamedTuple):
    """Make all changes, which are in one partition, or none. Raises `Conflict`."""

    table: str
    changes: Sequence[EntityChange]


class MakeTable(NamedTuple):
    """Create a table. Raises `TableExists`."""

    table: str


class DropTable(NamedTuple):
    """Delete a table, if it exists."""

    table: str


class Sleep(NamedTuple):
    """Wait."""

    seconds: float


Request: TypeAlias = GetEntity | ListEntities | WriteEntity | WriteTogether | MakeTable | DropTable


class Many(NamedTuple):
    """Execute requests in parallel: returns the answer or the exception of each."""

    requests: Sequence[Request]


Step: TypeAlias = Request | Sleep | Many
Steps: TypeAlias = Generator[Step, Any, R]


# Hosts


class AzureService:
    """Executes steps, and waits for each."""

    __slots__ = ("_client", "_lock", "_sleep", "_tables", "_threads")

    def __init__(self, client: Any, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._sleep = sleep
        self._tables: dict[str, Any] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._lock = Lock()

    def run(self, steps: Steps[R], deadline: float | None) -> R:
        """Execute all steps; returns their result."""
        answer: Any = None
        error: Exception | None = None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                result: R = end.value
                return result
            answer = error = None
            if isinstance(step, Sleep):
                error = _passed(deadline, step)
                if error is None:
                    self._sleep(step.seconds)
            elif isinstance(step, Many):
                answer = self._execute_many(step.requests, deadline)
            else:
                answer = self._attempt(step, deadline)
                if isinstance(answer, Exception):
                    answer, error = None, answer

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown()
        self._client.close()

    def _execute_many(self, requests: Sequence[Request], deadline: float | None) -> list[Any]:
        if len(requests) == 1:
            return [self._attempt(requests[0], deadline)]
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="isotone-azure")
            results = self._threads.map(lambda each: self._attempt(each, deadline), requests)
        return list(results)

    def _attempt(self, request: Request, deadline: float | None) -> Any:
        """The answer, or the translated exception."""
        try:
            return self._execute(request, _options(request, deadline))
        except Exception as error:  # noqa: BLE001 - `translated` returns other exceptions as they are
            return translated(error)

    def _execute(self, request: Request, options: dict[str, Any]) -> Any:
        if isinstance(request, ListEntities):
            paged = self._table(request.table).query_entities(
                request.filter, results_per_page=request.top, **options
            )
            pages = paged.by_page(request.token)
            entities = list(next(pages, ()))
            return [_found(each) for each in entities], pages.continuation_token
        if isinstance(request, MakeTable):
            return self._client.create_table(request.table, **options)
        table = self._table(request.table)
        if isinstance(request, DropTable):
            return table.delete_table(**options)
        if isinstance(request, GetEntity):
            return _found(table.get_entity(request.partition, request.row, **options))
        method, arguments = _call(request)
        return getattr(table, method)(**arguments, **options) and None

    def _table(self, name: str) -> Any:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._client.get_table_client(name)
        return table


class AsyncService:
    """Executes steps, and awaits each.

    A connection belongs to the event loop that opened it, so each loop has a client of its own, made by `connect`. Call
    `close` before the loop is closed; a later request opens new connections.
    """

    __slots__ = ("_clients", "_connect")

    def __init__(self, connect: Callable[[], tuple[Any, Callable[[], None]]]) -> None:
        self._connect = connect
        self._clients: dict[
            asyncio.AbstractEventLoop, tuple[Any, Callable[[], None], dict[str, Any]]
        ] = {}

    async def run(self, steps: Steps[R], deadline: float | None) -> R:
        """Execute all steps; returns their result."""
        answer: Any = None
        error: Exception | None = None
        while True:
            try:
                step = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                result: R = end.value
                return result
            answer = error = None
            if isinstance(step, Sleep):
                error = _passed(deadline, step)
                if error is None:
                    await asyncio.sleep(step.seconds)
            elif isinstance(step, Many):
                answer = await self._execute_many(step.requests, deadline)
            else:
                answer = await self._attempt(step, deadline)
                if isinstance(answer, Exception):
                    answer, error = None, answer

    def close(self) -> None:
        """Close the connections."""
        clients, self._clients = self._clients, {}
        for _, close, _ in clients.values():
            close()

    async def _execute_many(self, requests: Sequence[Request], deadline: float | None) -> list[Any]:
        free = asyncio.Semaphore(_AT_ONCE)

        async def attempt(request: Request) -> Any:
            async with free:
                return await self._attempt(request, deadline)

        return list(await asyncio.gather(*map(attempt, requests)))

    async def _attempt(self, request: Request, deadline: float | None) -> Any:
        """The answer, or the translated exception."""
        try:
            return await self._execute(request, _options(request, deadline))
        except Exception as error:  # noqa: BLE001 - `translated` returns other exceptions as they are
            return translated(error)

    async def _execute(self, request: Request, options: dict[str, Any]) -> Any:
        client, tables = self._client()
        if isinstance(request, MakeTable):
            return await client.create_table(request.table, **options)
        table = tables.get(request.table)
        if table is None:
            table = tables[request.table] = client.get_table_client(request.table)
        if isinstance(request, ListEntities):
            paged = table.query_entities(
                request.filter, results_per_page=request.top, **options
            ).by_page(request.token)
            async for page in paged:
                entities = [_found(each) async for each in page]
                return entities, paged.continuation_token
            return [], None
        if isinstance(request, DropTable):
            return await table.delete_table(**options)
        if isinstance(request, GetEntity):
            return _found(await table.get_entity(request.partition, request.row, **options))
        method, arguments = _call(request)
        waiting: Awaitable[Any] = getattr(table, method)(**arguments, **options)
        await waiting
        return None

    def _client(self) -> tuple[Any, dict[str, Any]]:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            for other in [each for each in self._clients if each.is_closed()]:
                self._clients.pop(other)[1]()
            self._clients[loop] = (*self._connect(), {})
        client, _, tables = self._clients[loop]
        return client, tables


def _passed(deadline: float | None, pause: Sleep) -> DeadlineExceeded | None:
    """The error to raise if an attempt after the pause would start too late; None otherwise."""
    if deadline is None or time.monotonic() + pause.seconds <= deadline:
        return None
    return DeadlineExceeded(
        "gave up while other writers changed the same items: the time for retries is used up; try again later, "
        "or connect with a longer deadline="
    )


def _options(request: Request, deadline: float | None) -> dict[str, Any]:
    """The SDK's options for a request: which retries it makes, and the deadline of all attempts together."""
    options: dict[str, Any] = {}
    if _is_conditional(request):
        options |= {"retry_read": 0, "retry_status": 0}  # only connecting is retried
    if deadline is not None:
        options["timeout"] = max(0.001, deadline - time.monotonic())
    return options


def _is_conditional(request: Request) -> bool:
    """Whether a request changes an entity only if it is unchanged since it was read."""
    if not isinstance(request, WriteEntity | WriteTogether):
        return False
    changes = request.changes if isinstance(request, WriteTogether) else (request.change,)
    return any(isinstance(each, InsertEntity) or each.etag is not None for each in changes)


def _found(entity: Any) -> FoundEntity:
    return FoundEntity(entity, entity.metadata["etag"])


def _call(request: WriteEntity | WriteTogether) -> tuple[str, dict[str, Any]]:
    """The method of the SDK's table client that makes a change, and its arguments."""
    changes = request.changes if isinstance(request, WriteTogether) else [request.change]
    operations = [_operation(each) for each in changes]
    method, entity, options = operations[0]
    # The SDK's `delete_entity` does not report that there was nothing to delete; a transaction
    # does.
    if isinstance(request, WriteTogether) or (method == "delete" and options):
        return "submit_transaction", {"operations": operations}
    return f"{method}_entity", {"entity": entity, **options}


def _operation(change: EntityChange) -> tuple[str, Entity, dict[str, Any]]:
    """A change as an operation of the SDK: its name, the entity, and its options."""
    from azure.core import MatchConditions
    from azure.data.tables import UpdateMode

    if isinstance(change, InsertEntity):
        return "create", change.entity, {}
    etag = change.etag
    unchanged = {"etag": etag, "match_condition": MatchConditions.IfNotModified} if etag else {}
    if isinstance(change, RemoveEntity):
        return "delete", {PARTITION: change.partition, ROW: change.row}, unchanged
    if etag is None:
        return "upsert", change.entity, {"mode": UpdateMode.REPLACE}
    return "update", change.entity, {"mode": UpdateMode.REPLACE, **unchanged}


# Errors

_LOST_RACES: Final = frozenset(
    ("EntityAlreadyExists", "UpdateConditionNotSatisfied", "ConditionNotMet")
)
_ABSENT: Final = frozenset(("ResourceNotFound", "EntityNotFound"))
_BUSY: Final = frozenset(("ServerBusy", "TooManyRequests"))
_DENIED: Final = frozenset((401, 403))
_BY_STATUS: Final = {404: "ResourceNotFound", 409: "EntityAlreadyExists", 412: "ConditionNotMet"}


def translated(error: Exception) -> Exception:
    """An exception of the SDK as one of this library; other exceptions are returned as they are."""
    from azure.core.exceptions import AzureError, HttpResponseError, ServiceRequestError

    if not isinstance(error, AzureError):
        return error
    if not isinstance(error, HttpResponseError) or error.status_code is None:
        is_sent = not isinstance(error, ServiceRequestError)
        return ConnectionFailed(f"Azure Table storage did not answer: {error}", sent=is_sent)
    code, status = _code(error), int(error.status_code)
    reason = str(error.message).partition("\nRequestId")[0].partition("\nTime:")[0].strip()
    text = f"Azure Table storage: {code}: {reason}"
    if code in _LOST_RACES:
        return Conflict(text)
    if code in _ABSENT:
        return Absent(text)
    if code == "TableNotFound":
        return TableGone(text)
    if code == "TableAlreadyExists":
        return TableExists(text)
    if code == "TableBeingDeleted":
        return ResourceInUseException(text)
    if code in _BUSY:
        return ProvisionedThroughputExceededException(text)
    if status in _DENIED:
        return AccessDeniedException(text)
    if status == 429:
        return ThrottlingException(text)
    if status >= 500:
        return InternalServerError(text)
    return ValidationException(text)


def _code(error: Any) -> str:
    """Azure's code of an error: the SDK's, or if it has none, from the headers or the status."""
    code = getattr(error, "error_code", None)
    if code is None and error.response is not None:
        code = error.response.headers.get("x-ms-error-code")
    code = getattr(code, "value", code)
    return str(code or _BY_STATUS.get(error.status_code, "unknown error"))
