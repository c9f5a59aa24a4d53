"""`serve`, `running_server`: port, options, most connections, shutdown, SIGHUP; --insecure for an address open to others.

A shutdown stops accepting, answers all received requests, and closes the connections and then the service. A connection that
does not finish within the grace period is aborted.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from isotone.authority import is_loopback
from isotone.clock import Clock, SystemClock
from isotone.daemon import Daemon
from isotone.errors import UsageError
from isotone.server.admission import Admission, admission_for
from isotone.server.audit import AuditLog
from isotone.server.body_budget import BODY_BUDGET
from isotone.server.connection import ConnectionTimeouts, ServerConnection
from isotone.server.dispatcher import (
    Address,
    Dispatcher,
    GatheringDispatcher,
    Service,
    ThreadedDispatcher,
)
from isotone.server.hot_keys import HotKeys
from isotone.server.monitor import Monitor
from isotone.server.pages import PageRequests, Pages
from isotone.server.tls import certificate
from isotone.shown_signature import shown

if TYPE_CHECKING:  # imported only by servers with these options
    from isotone.server.gate import Authenticator, Gate
    from isotone.server.lane_process import LaneKeeper
    from isotone.server.telemetry import Telemetry

GRACE: Final = 5.0  # seconds that a shutdown waits for unfinished requests
_BACKLOG: Final = 1024  # connections in the kernel's queue
_MOST_CONNECTIONS: Final = 4096
# Seconds after which a thread yields Python's lock (GIL) to the event loop
SWITCH_INTERVAL: Final = 0.0005
_SPARE_FILES: Final = 64  # file descriptors reserved for the database

log: logging.Logger = logging.getLogger("isotone.server")


class ServerOptions(TypedDict, total=False):
    """The options of a server, as keywords; `serve` documents most of them."""

    threaded: bool
    workers: int  # processes that speak HTTP; with 1, the server is this process alone
    nodes: Sequence[Address]
    allow_hosts: Sequence[str]
    allow_origins: Sequence[str]
    credentials: str | PathLike[str] | None
    insecure: bool
    tls_cert: str | PathLike[str] | None
    tls_key: str | PathLike[str] | None
    audit_log: str | PathLike[str] | None
    pages: Pages | None
    body_budget: int
    access_log: bool
    metrics_for_all: bool
    otel: bool
    lanes: LaneKeeper | None  # runs long requests in other processes, which open the same file
    timeouts: ConnectionTimeouts | None  # of connections
    most_connections: int | None  # by default limited by the file descriptors
    clock: Clock | None  # for signatures and the audit log


class Listener:
    """Serves one service on one address, on the running event loop."""

    def __init__(self, service: Service, **options: Unpack[ServerOptions]) -> None:
        _check_names(options)
        pages, credentials = options.get("pages"), options.get("credentials")
        if pages is not None and not (credentials is options.get("audit_log") is None):
            raise UsageError(
                "web pages are neither verified nor audited, so a server with credentials or an audit log has none; "
                "serve them with isotone workbench"
            )
        self._loop = asyncio.get_running_loop()
        self._connections: set[ServerConnection] = set()
        self._service = service
        self._options = options
        self._monitor = self._new_monitor()
        self._dispatcher = self._new_dispatcher()
        if (keeper := options.get("lanes")) is not None:
            from isotone.server.lanes import use_lanes

            use_lanes(self._dispatcher, service, keeper, options.get("workers", 1))
        if credentials is None:
            self._monitor.hot_keys = HotKeys(service, self._dispatcher.watch)
        self._page_requests = None if pages is None else PageRequests(pages, self._loop)
        self._certificate = certificate(options.get("tls_cert"), options.get("tls_key"))
        self._gate = self._new_gate()
        self._telemetry = (
            _new_telemetry(self._gate or self._dispatcher, self._monitor)
            if options.get("otel")
            else None
        )
        self._admission = Admission()
        self._timeouts = options.get("timeouts") or ConnectionTimeouts()
        self._most_connections = options.get("most_connections") or _affordable_connections()
        self._empty = asyncio.Event()
        self._empty.set()
        self._sweeper: asyncio.TimerHandle | None = None
        self._server: asyncio.AbstractServer | None = None
        self._stopping = False

    def _new_monitor(self) -> Monitor:
        options = self._options
        return Monitor(
            self._service,
            self._loop,
            lambda: len(self._connections),
            body_budget=options.get("body_budget", BODY_BUDGET),
            access_log=options.get("access_log", False),
            metrics_for_all=options.get("metrics_for_all", False),
            names_tables=options.get("credentials") is None,
        )

    def _new_gate(self) -> Gate | None:
        authenticator, audit = _checks_of(self._options)
        if authenticator is None and audit is None:
            return None
        from isotone.server.gate import Gate

        return Gate(self._dispatcher, self._service, authenticator, audit)

    def _new_dispatcher(self) -> Dispatcher:
        make: Callable[..., Dispatcher] = Dispatcher
        if self._options.get("threaded"):
            make = ThreadedDispatcher
        elif getattr(self._service, "reads_together", False):
            make = GatheringDispatcher
        nodes = self._options.get("nodes", ())
        return make(self._service, self._loop, nodes, self._monitor.metrics)

    async def start(self, host: str, port: int) -> str:
        """Start listening, and return the URL. Port 0 takes a free one. Raises `UsageError`."""
        listening = bind(host, port)
        try:
            self._admission = admission_of(host, listening, self._options)
        except UsageError:
            listening.close()
            raise
        self._server = await self._loop.create_server(
            self._new_connection,
            sock=listening,
            backlog=_BACKLOG,
            ssl=self._certificate,
            ssl_handshake_timeout=None if self._certificate is None else self._timeouts.head,
        )
        self._begin(listening)
        self._service.start_maintenance()
        return url_of(listening, secure=self._certificate is not None)

    def _begin(self, listening: socket.socket) -> None:
        """Start the time-outs of connections, and the counts of the service."""
        self._sweeper = self._loop.call_later(self._timeouts.sweep, self._sweep)
        self._service.measure()
        if self._telemetry is not None:
            self._telemetry.start(listening.getsockname()[:2])

    @property
    def has_files(self) -> bool:
        """Whether SIGHUP has a file to read again: credentials, audit log or certificate."""
        return self._gate is not None or self._certificate is not None

    def reload(self) -> None:
        """Read the files of the options again. For a broken file the old content stays in use."""
        if self._gate is not None:
            self._gate.reload()
        if self._certificate is not None:
            try:
                self._certificate.load()
            except UsageError as error:
                log.error("the certificate stays as it is: %s", error)
            else:
                log.info("the certificate was read again")

    async def stop(self, grace: float = GRACE) -> None:
        """Stop accepting, answer received requests, close every connection."""
        self._stopping = True
        if self._server is not None:
            self._server.close()
        for connection in list(self._connections):
            connection.finish()
        self._dispatcher.run_group()
        if self._page_requests is not None:
            self._page_requests.stop()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), grace)
        self._dispatcher.stop()
        self._monitor.stop()
        for connection in list(self._connections):
            connection.abort()
        if self._sweeper is not None:
            self._sweeper.cancel()
        await asyncio.sleep(0)  # the aborted connections close their sockets
        if self._gate is not None:
            self._gate.stop()
        if self._telemetry is not None:
            self._telemetry.stop()

    def _new_connection(self) -> ServerConnection:
        return ServerConnection(
            self._telemetry or self._gate or self._dispatcher,
            self._admission,
            self._connected,
            self._disconnected,
            self._monitor,
            self._gate,
            self._page_requests,
            self._telemetry,
        )

    def _connected(self, connection: ServerConnection) -> None:
        """Count a connection once it is established (with TLS: after the handshake), or refuse it."""
        if self._is_full():
            connection.refuse_overload()
            return
        self._connections.add(connection)
        self._empty.clear()
        if self._stopping:
            connection.finish()

    def _is_full(self) -> bool:
        return len(self._connections) >= self._most_connections

    def _disconnected(self, connection: ServerConnection) -> None:
        self._connections.discard(connection)
        if not self._connections:
            self._empty.set()

    def _sweep(self) -> None:
        self._sweeper = self._loop.call_later(self._timeouts.sweep, self._sweep)
        for connection in list(self._connections):
            connection.sweep(self._timeouts.sweep, self._timeouts)


def check_options(
    host: str = "127.0.0.1", port: int = 8000, **options: Unpack[ServerOptions]
) -> None:
    """Raise `UsageError` for an address or a file that `serve` would refuse; before the database is opened."""
    _check_names(options)
    workers = options.get("workers", 1)
    if workers > 1 and sys.platform == "win32":
        raise UsageError("several workers need Linux or macOS; on Windows a server is one process")
    with bind(host, port, listen=False) as bound:  # nobody is to connect to it yet
        admission_of(host, bound, options)
    certificate(options.get("tls_cert"), options.get("tls_key"))
    _, audit = _checks_of(options)
    if audit is not None:
        audit.close()


def _check_names(options: ServerOptions) -> None:
    """Raise `TypeError` for an unknown keyword, as Python does for a function that declares its keywords."""
    unknown = options.keys() - ServerOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"a server has no option {', '.join(sorted(unknown))}")


def _check_single_process(options: ServerOptions) -> None:
    """Refuse `workers` for a service that is open already: forked processes could not share it."""
    if options.get("workers", 1) != 1:
        raise UsageError(
            "a server inside a program is one process; for more, start isotone serve FILE --workers N beside it"
        )


def admission_of(host: str, bound: socket.socket, options: ServerOptions) -> Admission:
    """The allowed hosts and origins. Raises `UsageError` if other machines can connect without credentials."""
    address = bound.getsockname()[0]
    is_protected = options.get("insecure") or options.get("credentials") is not None
    if not is_protected and not is_loopback(address):
        raise UsageError(_unprotected(host))
    return admission_for(
        host,
        address,
        hosts=options.get("allow_hosts", ()),
        origins=options.get("allow_origins", ()),
    )


def _checks_of(options: ServerOptions) -> tuple[Authenticator | None, AuditLog | None]:
    """The authenticator and the audit log, each if its option is given."""
    clock = options.get("clock") or SystemClock()
    credentials, audit_log = options.get("credentials"), options.get("audit_log")
    authenticator: Authenticator | None = None
    if credentials is not None:
        from isotone.server.gate import (
            Authenticator,  # imported late: it takes a tenth of the start
        )

        authenticator = Authenticator(credentials, clock)
    return authenticator, None if audit_log is None else _opened_audit_log(audit_log, clock)


def _opened_audit_log(audit_log: str | PathLike[str], clock: Clock) -> AuditLog:
    try:
        return AuditLog(audit_log, clock)
    except OSError as error:
        raise UsageError(
            f"the audit log {audit_log} cannot be written: {error.strerror or error}"
        ) from None


def _new_telemetry(dispatcher: Dispatcher | Gate, monitor: Monitor) -> Telemetry:
    try:
        from isotone.server.telemetry import Telemetry
    except ImportError:
        raise UsageError(
            "spans and metrics for OpenTelemetry need its API: pip install 'isotone[otel]'"
        ) from None
    return Telemetry(dispatcher, monitor)


def bind(host: str, port: int, *, listen: bool = True) -> socket.socket:
    """A socket that listens on the address. Raises `UsageError` with the reason if it cannot be bound."""
    if not 0 <= port <= 65535:
        raise UsageError(f"cannot listen on port {port}: ports are 0 (any free one) to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise UsageError(f"cannot listen on {host}: {error.strerror}") from None
    listening = socket.socket(family, kind, protocol)
    if os.name == "posix":
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        if listen:
            listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(_refusal(host, port, error)) from None
    return listening


def _unprotected(host: str) -> str:
    return (
        f"other machines can reach {host}, and without credentials any access key reads and writes everything; "
        "give --credentials FILE (isotone user add makes one; credentials= in Python), "
        "or --insecure (insecure=True) to serve it to all of them"
    )


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use by another program; "
            "choose another port, or 0 for any free one"
        )
    if error.errno == errno.EACCES:
        return f"port {port} may not be used by this user; choose one above 1023"
    return f"cannot listen on {host}:{port}: {error.strerror}"


def url_of(listening: socket.socket, *, secure: bool = False) -> str:
    """The URL of the socket for clients on this machine."""
    scheme = "https" if secure else "http"
    host, port = listening.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        host = "localhost"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def _affordable_connections() -> int:
    if sys.platform == "win32":  # no limit on file descriptors
        return _MOST_CONNECTIONS
    import resource

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return max(min(_MOST_CONNECTIONS, files - _SPARE_FILES), 16)


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's event loop if it is installed, asyncio's otherwise."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


@shown
def serve(
    service: Service,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    ready: Callable[[str], None] | None = None,
    **options: Unpack[ServerOptions],
) -> None:
    """Serve until SIGINT or SIGTERM, then stop cleanly and close the service.

    `ready` is called with the URL once requests are accepted. `threaded` runs each request in a thread, for a service
    that waits. `nodes` are the addresses of all servers of a cluster, for `GET /localnodes`. `allow_hosts` are accepted
    Host headers, `allow_origins` the origins of web pages that may send requests; "*" allows all.

    `credentials` is a file with users and their keys: with it, signatures are verified. An address beyond loopback needs it,
    or `insecure`. With `tls_cert` connections are encrypted; the key is in the same file, or in `tls_key`. `audit_log` is
    a file to which a line for each request is added, or "-" for standard output. On SIGHUP these files are read again.

    `body_budget` limits the bytes of all bodies whose requests are not answered yet. `access_log` logs each request to the
    logger isotone.access; `metrics_for_all` shows `/metrics` to other machines, too. `otel` exports a span of each request,
    and all metrics, to the OpenTelemetry providers that the program has configured.

    `pages` returns the handlers of requests for web pages. A second signal ends the process immediately. Raises `UsageError`
    if the address or a file cannot be used.
    """
    _check_names(options)  # before the `finally` below, which closes the caller's service
    _check_single_process(options)
    loop = new_event_loop()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    try:
        loop.run_until_complete(_serve(partial(Listener, service, **options), host, port, ready))
    finally:
        sys.setswitchinterval(interval)
        service.close()
        loop.close()


async def _serve(
    make_listener: Callable[[], Listener],
    host: str,
    port: int,
    ready: Callable[[str], None] | None,
) -> None:
    stopping = asyncio.Event()
    listener = make_listener()
    with _on_signal(stopping.set), _on_sighup(listener):
        url = await listener.start(host, port)
        if ready is not None:
            ready(url)
        gc.freeze()  # garbage collections skip the loaded modules
        await stopping.wait()
        await listener.stop()


@contextlib.contextmanager
def _on_signal(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` on the first SIGINT or SIGTERM; leave the second to the operating system."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.getsignal(number) for number in signals}

    def first() -> None:
        for number in signals:
            if sys.platform != "win32":
                loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        stop()

    for number in signals:
        if sys.platform != "win32":
            loop.add_signal_handler(number, first)
        else:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(first))
    try:
        yield
    finally:
        for number, handler in before.items():
            if sys.platform != "win32":
                loop.remove_signal_handler(number)
            signal.signal(number, handler or signal.SIG_DFL)


@contextlib.contextmanager
def _on_sighup(listener: Listener) -> Iterator[None]:
    """Read the files again on each SIGHUP. It ends a server without such files; Windows has no SIGHUP."""
    if sys.platform == "win32" or not listener.has_files:
        yield
        return
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGHUP)
    loop.add_signal_handler(signal.SIGHUP, listener.reload)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        signal.signal(signal.SIGHUP, before or signal.SIG_DFL)


@shown
@contextlib.contextmanager
def running_server(
    service: Service,
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Unpack[ServerOptions],
) -> Iterator[str]:
    """Serve from its own thread while the block runs; yields the URL.

    The service stays open; the caller closes it. The options are those of `serve`; `timeouts` has the time-outs of
    connections, `clock` is that of signatures.

    >>> with running_server(service) as url:
    ...     client = boto3.client("dynamodb", endpoint_url=url)
    """
    _check_single_process(options)
    server = _ServerThread()
    try:
        yield server.start(partial(Listener, service, **options), host, port)
    finally:
        server.stop()


class _ServerThread:
    """A listener on an event loop of its own, in a thread that ends with the interpreter at the latest."""

    def __init__(self) -> None:
        self._loop = new_event_loop()
        self._listener: Listener | None = None
        self._stopping: asyncio.Task[None] | None = None
        self._thread = Daemon(self._run, "isotone-server", end=self._ask_to_stop)

    def start(self, make_listener: Callable[[], Listener], host: str, port: int) -> str:
        """Start listening, and return the URL."""

        async def start() -> str:
            self._listener = make_listener()
            return await self._listener.start(host, port)

        return asyncio.run_coroutine_threadsafe(start(), self._loop).result()

    def stop(self) -> None:
        """Stop the listener and end the thread. A process that was forked meanwhile has no thread to end."""
        if self._thread.is_alive:
            self._ask_to_stop()
            self._thread.join()
            if self._stopping is not None and self._stopping.done():
                self._stopping.result()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _ask_to_stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # another thread has closed the loop
            self._loop.call_soon_threadsafe(self._begin_to_stop)

    def _begin_to_stop(self) -> None:
        if self._stopping is None:
            self._stopping = self._loop.create_task(self._stop())

    async def _stop(self) -> None:
        try:
            if self._listener is not None:
                await self._listener.stop()
        finally:
            self._loop.stop()
