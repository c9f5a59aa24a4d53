"""Azure Table storage as a backend: answers DynamoDB's requests through Microsoft's `azure-data-tables`.

Azure stores entities under two strings, and has neither expressions nor indexes. Items become entities (`entities`,
`keys`), and a table of Isotone's own lists the tables (`tables`). Requests are executed here, on the items that were
read (`evaluation`), and changes are written if ETags are unchanged (`actions`). `service` sends requests to Azure,
`account` parses its address.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from isotone.backends.azure_table.account import SCHEME, Account, account_of, credential_of
from isotone.backends.azure_table.actions import LARGEST_REVERSAL, Actions
from isotone.backends.azure_table.service import AsyncService, AzureService
from isotone.backends.endpoint import Timeouts
from isotone.backends.interface import Native, Request, Response
from isotone.backends.request_retries import Retries
from isotone.errors import UsageError

__all__ = ["LARGEST_REVERSAL", "SCHEME", "AsyncAzureTable", "AzureTable"]


class AzureTable(Native):
    """The `Backend` of an account of Azure Table storage, by its address. Safe to use from several threads.

    `credential` is an object of `azure-core` or `azure-identity`; without it the environment is searched.
    """

    ENGINE: ClassVar[str | None] = "azure-table"

    __slots__ = ("_actions", "_service")

    def __init__(
        self,
        address: str,
        *,
        credential: Any = None,
        retries: Retries | None = None,
        timeouts: Timeouts | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        account = account_of(address)
        with _extra():
            from azure.data.tables import TableServiceClient

            client = TableServiceClient(**_configuration(account, credential, retries, timeouts))
        self._actions = Actions()
        self._service = AzureService(client, sleep)

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action; raises `ApiError`, `Unsupported`, or `ConnectionFailed` if there was no answer."""
        return self._service.run(self._actions.answer(operation, request), deadline)

    def close(self) -> None:
        """Close the connections."""
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncAzureTable(Native):
    """The `AsyncBackend` of an account of Azure Table storage, by its address."""

    ENGINE: ClassVar[str | None] = "azure-table"

    __slots__ = ("_actions", "_service")

    def __init__(
        self,
        address: str,
        *,
        credential: Any = None,
        retries: Retries | None = None,
        timeouts: Timeouts | None = None,
    ) -> None:
        account = account_of(address)
        with _extra():
            import aiohttp
            from azure.core.pipeline.transport import AioHttpTransport
            from azure.data.tables.aio import TableServiceClient

            credential = credential or credential_of(account, awaited=True)
            configuration = _configuration(account, credential, retries, timeouts)

        def connect() -> tuple[Any, Callable[[], None]]:
            connector = aiohttp.TCPConnector()
            session = aiohttp.ClientSession(
                connector=connector,
                trust_env=True,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
            )
            transport = AioHttpTransport(session=session, session_owner=False)

            def close() -> None:
                closing = connector.close()
                with contextlib.suppress(StopIteration):
                    # The first step closes the connections; the rest waits until they are closed.
                    closing.send(None)
                closing.close()
                session.detach()

            return TableServiceClient(**configuration, transport=transport), close

        self._actions = Actions()
        self._service = AsyncService(connect)

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Answer one action; raises as `AzureTable.execute` does."""
        return await self._service.run(self._actions.answer(operation, request), deadline)

    def close(self) -> None:
        """Close the connections."""
        self._service.close()


def _configuration(
    account: Account, credential: Any, retries: Retries | None, timeouts: Timeouts | None
) -> dict[str, Any]:
    """The arguments of the SDK's client."""
    retries, timeouts = retries or Retries(), timeouts or Timeouts()
    return {
        "endpoint": account.endpoint,
        "credential": credential or credential_of(account),
        "retry_total": retries.attempts - 1,
        "retry_backoff_factor": retries.base,
        "retry_backoff_max": retries.longest,
        "connection_timeout": timeouts.connect,
        "read_timeout": timeouts.read,
    }


@contextlib.contextmanager
def _extra() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise UsageError(
            "Azure Table storage needs Microsoft's client; install it with: pip install 'isotone[azure]'"
        ) from error
