"""Opens the backend of an address: `memory:`, a file, PostgreSQL, `http://…`, a region of AWS, Azure, a boto3 client.

":memory:"                  a database in memory
"shop.db", Path("shop.db")  a database in a file, which is created if it does not exist
"postgresql://db/app"       a database in PostgreSQL, which is created if it does not exist
"http://localhost:8000"     a server: Isotone's, DynamoDB Local, ScyllaDB Alternator, …; also "localhost:8000"
"dynamodb://eu-west-1"      Amazon's service, with the credentials that AWS's tools find
"azure-table://shop"        Azure Table storage: the account `shop`, or the emulator at a loopback address
"alternator://a,b:8000"     a cluster of ScyllaDB's Alternator: requests go to all its live nodes
an `isotone.Database`, a boto3 client or resource, or any `Backend`: used directly, and not closed
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypedDict, Unpack, cast

from isotone.backends import addresses
from isotone.backends.capabilities import Capabilities
from isotone.backends.engines import (
    ENGINES,
    EngineIdentity,
    capabilities_of,
    engine_of_answer,
    engine_of_scheme,
    without_engine,
)
from isotone.backends.interface import (
    AsyncBackend,
    AsyncPlain,
    Backend,
    InEventLoop,
    InThread,
    Native,
    OverTransport,
    Plain,
)
from isotone.clock import Clock
from isotone.errors import ConnectionFailed, UsageError
from isotone.postgres_address import NoDatabase, is_postgres, shown

if TYPE_CHECKING:
    from isotone.backends.credentials import Credentials, CredentialSource
    from isotone.backends.endpoint import Endpoint, Timeouts
    from isotone.backends.request_retries import Retries

MEMORY: Final = ":memory:"
_SERVERS: Final = ("http", "https", "dynamodb", "alternator", "alternator+https", "azure-table")
_OF_FILES: Final = ("durability", "memory_map", "busy_timeout")
_OF_SERVERS: Final = {"profile", "credentials", "retries", "timeouts", "connections"}
_IDENTIFY_TIMEOUT: Final = 2.0  # seconds that a server may take to identify itself

Target = Any
"""An address, a path, or an object that answers requests; see the module."""


class OpenOptions(TypedDict, total=False):
    """How to open an address.

    `region`, `profile`, `credentials`, `retries`, `timeouts` and `connections` (the most that stay open
    while idle) are for servers. `durability`, `memory_map` (the bytes of a file that are mapped into memory) and
    `busy_timeout` (the seconds that a write waits for another process) are for files. `clock` is the clock of the store,
    and of a database that it opens.
    """

    region: str
    profile: str
    credentials: Credentials | CredentialSource
    retries: Retries
    timeouts: Timeouts
    connections: int
    durability: Literal["disk", "process", "none"]
    memory_map: int
    busy_timeout: float
    clock: Clock


class Opened(NamedTuple):
    """A backend, and the function that closes it; for an object of the caller's, it does nothing."""

    backend: Backend
    close: Callable[[], None]


class OpenedAsync(NamedTuple):
    """An async backend, and the function that closes it."""

    backend: AsyncBackend
    close: Callable[[], None]


def open_backend(target: Target, **options: Unpack[OpenOptions]) -> Opened:
    """The backend of an address; raises `UsageError` for an invalid one."""
    if not isinstance(target, str | PathLike):
        _check_no_address_needed(options)
        return Opened(_backend_of(target), _nothing)
    address, _ = without_engine(_address(target))
    if _is_azure(address):
        from isotone.backends.azure_table import AzureTable

        azure = AzureTable(address, **_of_azure(address, options))
        return Opened(azure, azure.close)
    if _is_cluster(address):
        from isotone.backends.alternator import Alternator

        cluster = Alternator(address, **_of_cluster(options))
        return Opened(cluster, cluster.close)
    if _is_server(address):
        from isotone.backends.remote import Remote

        remote = Remote(_endpoint(address, options), **_transport(options))
        return Opened(remote, remote.close)
    return _open_database(address, options)


def open_async_backend(target: Target, **options: Unpack[OpenOptions]) -> OpenedAsync:
    """The async backend of an address; raises `UsageError` for an invalid one."""
    if not isinstance(target, str | PathLike):
        _check_no_address_needed(options)
        return OpenedAsync(_async_backend_of(target), _nothing)
    address, _ = without_engine(_address(target))
    if _is_azure(address):
        from isotone.backends.azure_table import AsyncAzureTable

        azure = AsyncAzureTable(address, **_of_azure(address, options))
        return OpenedAsync(azure, azure.close)
    if _is_cluster(address):
        from isotone.backends.alternator import AsyncAlternator

        cluster = AsyncAlternator(address, **_of_cluster(options))
        return OpenedAsync(cluster, cluster.close)
    if _is_server(address):
        from isotone.backends.async_remote import AsyncRemote

        remote = AsyncRemote(_endpoint(address, options), **_transport(options))
        return OpenedAsync(remote, remote.close)
    backend, close = _open_database(address, options)
    # A call in memory is faster than the switch to a thread; a call to a file may wait for the
    # disk.
    return OpenedAsync(InEventLoop(backend) if address == MEMORY else InThread(backend), close)


def region_of(backend: Backend) -> str | None:
    """The region whose tables a backend has: that of its requests, or of its database; None if it has none.

    >>> with open_backend(":memory:", region="eu-west-1").backend as database:
    ...     region_of(database)
    'eu-west-1'
    """
    place = getattr(backend, "endpoint", None) or getattr(backend, "engine", None)
    region: str | None = getattr(place, "region", None)
    return region


def is_new(target: str | PathLike[str]) -> bool:
    """Whether opening a file or PostgreSQL would create a database there: nothing is there, or an empty file."""
    if is_postgres(target):
        from isotone.backends import embedded

        try:
            embedded.check_exists(target)
        except NoDatabase:
            return True
        return False
    path = Path(addresses.file_name(target))
    if path.exists():
        return path.is_file() and not path.stat().st_size
    return path.absolute().parent.is_dir()


def _open_database(address: str, options: OpenOptions) -> Opened:
    from isotone.backends import embedded

    wrong = sorted(_OF_SERVERS & options.keys())
    if wrong:
        raise UsageError(
            f"{wrong[0]}= is for a server; {shown(address)!r} is a database in this process"
        )
    wanted = (*_OF_FILES, "clock", "region")
    used: Any = {name: options.get(name) for name in wanted}
    database = embedded.open(
        address, **{name: each for name, each in used.items() if each is not None}
    )
    return Opened(database, database.close)


def _endpoint(address: str, options: OpenOptions) -> Endpoint:
    from isotone.backends.endpoint import endpoint_of

    for name in _OF_FILES:
        if name in options:
            raise UsageError(f"{name}= is for a file; {address!r} is a server")
    return endpoint_of(
        address,
        region=options.get("region"),
        profile=options.get("profile"),
        credentials=options.get("credentials"),
    )


def _of_cluster(options: OpenOptions) -> Any:
    """The options of a cluster of Alternator."""
    for name in sorted(options.keys() & {*_OF_FILES, "profile"}):
        raise UsageError(f"{name}= is not for a cluster of Alternator")
    wanted = ("region", "credentials", "retries", "timeouts", "connections")
    return {name: each for name, each in options.items() if name in wanted}


def _transport(options: OpenOptions) -> Any:
    """The options of the connection to a server."""
    wanted = ("retries", "timeouts", "connections")
    return {name: each for name, each in options.items() if name in wanted}


def _is_azure(address: str) -> bool:
    return address.startswith("azure-table://")


def _of_azure(address: str, options: OpenOptions) -> Any:
    """The options of a connection to Azure. Credentials come from the environment, or are passed to `AzureTable`."""
    wrong = sorted(options.keys() - {"retries", "timeouts", "clock"})
    if wrong:
        raise UsageError(
            f"{wrong[0]}= is not for Azure Table storage; {address!r} takes retries=, timeouts= and clock="
        )
    return {name: each for name, each in options.items() if name != "clock"}


def _address(target: str | PathLike[str]) -> str:
    address = fspath(target)
    if not address:
        raise UsageError(f"the address is empty; write a path, {MEMORY!r} or a URL")
    return addresses.whole(address) if isinstance(target, str) else address


def _is_cluster(address: str) -> bool:
    return engine_of_scheme(address.partition("://")[0]) == "alternator"


def _is_server(address: str) -> bool:
    scheme, separator, _ = address.partition("://")
    if not separator or is_postgres(address):
        return False
    if scheme in ("dax", "daxs"):
        return True  # the endpoint refuses it, with the reason
    if scheme not in _SERVERS:
        raise UsageError(
            f"{address!r} is not an address; give a path, {MEMORY!r}, postgresql://…, http://…, https://…, "
            "dynamodb://region, alternator://node1,node2:8000 or azure-table://account"
        )
    return True


# Engines


def engine_of(
    target: Target, name: str | None = None, **options: Unpack[OpenOptions]
) -> EngineIdentity:
    """The engine of an address or an object, or the engine that the caller names. Sends no request yet."""
    if not isinstance(target, str | PathLike):
        return EngineIdentity(capabilities_of(name)) if name else _engine_of_object(target)
    address, named = without_engine(_address(target))
    if name or named:
        return EngineIdentity(capabilities_of(name or cast(str, named)))
    if not _is_server(address):
        return EngineIdentity(ENGINES["isotone"])
    known = engine_of_scheme(address.partition("://")[0])
    if known not in (None, "dynamodb"):
        return EngineIdentity(ENGINES[known])
    # The identifying request needs no signature, so the caller's keys are not looked up.
    from isotone.backends.credentials import PLACEHOLDER

    endpoint = _endpoint(address, {**options, "credentials": PLACEHOLDER})
    if endpoint.is_amazon:
        return EngineIdentity(ENGINES["dynamodb"])
    return EngineIdentity(None, partial(_ask, endpoint))


def _engine_of_object(target: Any) -> EngineIdentity:
    """The engine of an `isotone.Database`, of a boto3 client's endpoint, or an unknown one."""
    client = _boto_client(target)
    if client is not None:
        return engine_of(client.meta.endpoint_url)
    if (named := getattr(target, "ENGINE", None)) is not None:
        return EngineIdentity(capabilities_of(named))
    if hasattr(target, "engine") or _send_of_client(target) is not None:
        return EngineIdentity(ENGINES["isotone"])
    return EngineIdentity(ENGINES["dynamodb"])


def _ask(endpoint: Endpoint) -> Capabilities | None:
    from isotone.backends.endpoint import Timeouts
    from isotone.backends.remote import Remote

    with Remote(
        endpoint, timeouts=Timeouts(connect=_IDENTIFY_TIMEOUT, read=_IDENTIFY_TIMEOUT)
    ) as remote:
        try:
            reply = remote.get("/localnodes", _IDENTIFY_TIMEOUT)
            named = engine_of_answer(reply.status, reply.headers, reply.content)
        except ConnectionFailed:
            return None
    return ENGINES[named]


# Objects that answer requests


def _check_no_address_needed(options: OpenOptions) -> None:
    wrong = sorted(options.keys() - {"clock"})
    if wrong:
        raise UsageError(
            f"{wrong[0]}= is for an address; an object that answers requests is used as it is"
        )


def _backend_of(target: Any) -> Backend:
    if isinstance(target, Native):  # an isotone.Database, for example
        backend: Any = target
        return cast(Backend, backend)
    client = _boto_client(target)
    if client is not None:
        from isotone.backends.boto_client import BotoClient

        return BotoClient(client)
    if callable(getattr(target, "execute", None)):
        return Plain(target.execute)
    if (send := getattr(target, "send", None) or _send_of_client(target)) is not None:
        return OverTransport(send)
    raise UsageError(
        f"cannot connect to {target!r}; give a path, an address, an isotone.Database, a boto3 client, or an "
        "object with execute(operation, request)"
    )


def _async_backend_of(target: Any) -> AsyncBackend:
    from inspect import iscoroutinefunction

    client = _boto_client(target)
    if client is not None and iscoroutinefunction(client._make_api_call):
        from isotone.backends.boto_client import AsyncBotoClient

        return AsyncBotoClient(client)
    if iscoroutinefunction(getattr(target, "execute", None)):
        return (
            cast(AsyncBackend, target) if isinstance(target, Native) else AsyncPlain(target.execute)
        )
    return InThread(_backend_of(target))


def _send_of_client(target: Any) -> Any:
    """The transport of Isotone's own client; None for anything else."""
    from isotone.client import Client

    return target._send if isinstance(target, Client) else None


def _boto_client(target: Any) -> Any:
    """The botocore client in a client or a resource, or None."""
    client = getattr(getattr(target, "meta", None), "client", target)
    return client if hasattr(client, "_make_api_call") else None


def _nothing() -> None:
    """Close nothing: the caller opened the backend."""
