"""One HTTP/1.1 connection: pipelining, keep-alive, Expect: 100-continue, when a request is refused for size or time.

A request for an unknown host, or of a web page of another origin, is refused once its headers have arrived (`admission`).

A request that arrives alone at a connection with nothing to do starts at once. Each other request, and each refusal, enters
the backlog; `_advance` alone decides what comes next. It starts the requests of the backlog in their order, but none

    while a response is outstanding     a write waits for its commit, a long request for its lane
    while the peer does not read        the transport asked to pause
    after a millisecond                 other connections get their turn; then it continues

Whatever ends one of these states calls it again. A connection that has sent its last response is *closing*: it discards
further input, so that the peer can read the response before the socket closes.

Errors stay within their connection. Malformed bytes get a 400 and close it; a slow peer gets a 408; a disconnected peer is
dropped. A head that is too large gets a 400, a body a 413, and a body for which the server has no memory left a 503.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import httptools
import msgspec

from isotone.server.admission import Admission
from isotone.server.compression import BODY_LIMIT
from isotone.server.dispatcher import LARGE_BODY, Dispatcher, Result
from isotone.server.metrics import EVERY, Observe
from isotone.server.monitor import Monitor
from isotone.server.pages import PageRequests, RoutedPageRequest
from isotone.server.request import (
    SINGLE_HEADERS,
    Decoded,
    HeaderNames,
    MonitorRequest,
    Note,
    Read,
    Received,
    ServiceCall,
    by_lower_name,
    known_header_names,
    read,
)
from isotone.server.response import (
    BAD_REQUEST,
    BROKEN,
    HEAD_TOO_LARGE,
    LOCAL_NODES,
    ORDINARY,
    OVERLOADED,
    TIMED_OUT,
    TOO_LARGE,
    TOO_MANY_BODIES,
    HttpRefusal,
    PlainResponse,
    ResponseStyle,
    encoded,
    ordinary,
    render,
)

if TYPE_CHECKING:  # imported only by servers with these options
    from isotone.server.gate import Gate
    from isotone.server.telemetry import Telemetry

HEAD_LIMIT: Final = 16 * 1024  # bytes of request line and headers
_LARGE_ANSWER: Final = 128 * 1024  # bytes; compressing more would block the event loop for too long
_CODED_BODY: Final = 1024  # compressed bytes, which decompress to at most a thousand times as many
_LARGE_LENGTH: Final = 6  # digits of a Content-Length that is checked against the budget of bodies
_BACKLOG_LIMIT: Final = 32  # pipelined requests; with more, the connection stops reading
# Seconds; then the pipelined requests of a connection wait for other connections
_TURN: Final = 0.001
# In metrics, the action of requests that were refused before theirs was known
_REFUSED: Final = "refused"
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_NO_PARSER: Final = cast(httptools.HttpRequestParser, None)  # of a lost connection

_Request: TypeAlias = Decoded | RoutedPageRequest | Received
_Waiting: TypeAlias = tuple[_Request, bool, float]
"""A request, whether the connection may stay open after it, and when its decoding began; 0.0 for a short one."""

log: logging.Logger = logging.getLogger("isotone.server")


class ConnectionTimeouts(msgspec.Struct, frozen=True):
    """Time-outs of a connection in seconds; checked every `sweep` seconds."""

    head: float = 20.0  # for the headers of a request
    request: float = 120.0  # for a whole request
    idle: float = 300.0  # between two requests
    stalled: float = 120.0  # for a client that does not read its response
    closing: float = 3.0  # for the client to close after the last response
    sweep: float = 1.0


class ServerConnection(asyncio.Protocol):
    """The server's side of one connection, from `connection_made` to `connection_lost`."""

    __slots__ = (
        "_admission",
        "_backlog",
        "_blocked",
        "_bodies",
        "_body",
        "_closing",
        "_counted",
        "_dispatcher",
        "_every",
        "_expects",
        "_fault",
        "_finishing",
        "_gate",
        "_head_only",
        "_header_names",
        "_headers",
        "_held",
        "_in_head",
        "_is_large",
        "_known_hosts",
        "_loop",
        "_monitor",
        "_notes",
        "_observe",
        "_on_lost",
        "_on_made",
        "_outstanding",
        "_page_requests",
        "_parser",
        "_paused",
        "_quiet",
        "_read",
        "_received",
        "_repeated",
        "_requests",
        "_telemetry",
        "_transport",
        "_turn_ends",
        "_unread",
        "_url",
        "on_body",
        "on_url",
    )

    def __init__(
        self,
        dispatcher: Dispatcher | Gate | Telemetry,
        admission: Admission,
        on_made: Callable[[ServerConnection], None],
        on_lost: Callable[[ServerConnection], None],
        monitor: Monitor,
        gate: Gate | None = None,
        page_requests: PageRequests | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._dispatcher = dispatcher
        self._gate = gate
        self._telemetry = telemetry
        self._read: Read = read
        self._notes: list[Note] = []
        self._admission = admission
        self._known_hosts = admission.known_hosts
        self._page_requests = page_requests
        self._on_made = on_made
        self._on_lost = on_lost
        self._monitor = monitor
        self._bodies = monitor.bodies
        self._held = 0  # bytes of this connection in the budget of bodies
        self._counted = 0  # of them, bytes of the request that is arriving
        self._observe: Observe = monitor.metrics.observe
        self._requests = monitor.metrics.requests
        self._every = 1 if monitor.metrics.has_access_log else EVERY
        self._loop: asyncio.AbstractEventLoop
        self._transport: asyncio.Transport
        self._url: list[bytes] = []
        self._headers: dict[bytes, bytes] = {}
        self._body: list[bytes] = []
        self.on_url: Callable[[bytes], None] = self._url.append
        self.on_body: Callable[[bytes], None] = self._body.append
        self._header_names: HeaderNames
        self._received = 0  # bytes since the last whole request
        self._is_large = False  # more bytes have arrived than a head may have
        # Bytes of headers that are not in `_headers` because their name is repeated.
        self._repeated = 0
        self._in_head = True
        self._unread = 0  # bytes of responses that the client had not read at the last sweep
        self._expects = False  # a client that waits for a 100 Continue has not got it
        self._fault: PlainResponse | None = None  # why the headers so far are refused
        self._quiet = 0.0  # seconds without activity, counted by the sweep
        # How the request is answered that has none yet, its action ("" if it is not measured), and when it began.
        self._outstanding: tuple[ResponseStyle, bool, str, float] | None = None
        self._backlog: deque[_Waiting] = deque()
        self._blocked = False  # the client does not read
        self._paused = False  # this connection does not read
        self._turn_ends = 0.0  # 0.0 before the first request of a turn
        self._finishing = False  # the next response is the last one
        self._head_only = False  # the last request was a HEAD: its response has no body
        self._closing = False
        self._parser = httptools.HttpRequestParser(self)

    # Called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = cast(asyncio.Transport, transport)
        self._observe = self._monitor.metrics.observer(transport.get_extra_info("peername"))
        if self._gate is not None:
            self._read = self._gate.reader(transport)
            self._notes += self._gate.notes(transport)
        if self._telemetry is not None:
            self._notes.append(self._telemetry.note)
        self._on_made(self)

    def data_received(self, data: bytes) -> None:
        if self._closing:
            return
        received = self._received
        if not received:
            self._quiet = 0.0
        self._received = received = received + len(data)
        self._is_large = received > HEAD_LIMIT
        self._turn_ends = 0.0
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._decline_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserCallbackError:
            log.exception("a request could not be answered")
            self._refuse(BROKEN)
        except httptools.HttpParserError:
            self._refuse(BAD_REQUEST)
        if self._is_large and self._received > HEAD_LIMIT and not self._closing:
            self._check_size()

    def eof_received(self) -> bool:
        """Keep our side open while there are responses to send; with TLS that is impossible."""
        self._finishing = True
        if not self._transport.can_write_eof():
            return False
        return self._outstanding is not None or bool(self._backlog)

    def pause_writing(self) -> None:
        self._blocked = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self._blocked = False
        self._take_turn()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._backlog.clear()
        # The parser and the bound methods refer to the connection: without them a body is freed at once.
        self._body.clear()
        self._headers.clear()
        self._parser = _NO_PARSER
        self._release()
        self._on_lost(self)

    # Called by the parser; on_url and on_body append to their lists

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # trailers are ignored
        headers = self._headers
        if name in headers:
            value = self._joined(name, value)
        headers[name] = value

    def on_headers_complete(self) -> None:
        self._in_head = False
        headers = self._headers
        self._header_names = header_names = known_header_names[tuple(headers)]
        length = headers.get(header_names.content_length, b"0")
        if (
            self._is_large
            or self._fault is not None
            or len(length) >= _LARGE_LENGTH
            or not header_names.host
            or headers[header_names.host] not in self._known_hosts
        ):
            self._check_head(length)

    def _check_head(self, length: bytes) -> None:
        """Refuse a request before its body arrives: it is too large, malformed, or not for this server."""
        if len(length) >= 8 and int(length) > BODY_LIMIT:
            self._refuse(TOO_LARGE)
        elif len(length) >= _LARGE_LENGTH and not self._bodies.fits(int(length)):
            self._refuse_body()
        elif self._fault is not None:
            self._refuse(self._fault)
        elif self._is_large and self._head_size() > HEAD_LIMIT:
            self._refuse(HEAD_TOO_LARGE)
        else:
            self._admit()
        if self._header_names.expect and not self._closing:
            self._expects = not self._parser.should_upgrade()  # then the request is parsed again
            self._ask_for_body()

    def _ask_for_body(self) -> None:
        """Send the 100 Continue that a client waits for, unless the response to an earlier request must be sent first."""
        is_free = self._outstanding is None and not self._backlog and not self._blocked
        if self._expects and is_free:
            self._expects = False
            if not self._in_head and self._header_names.expect:  # its body has not come meanwhile
                self._transport.write(_CONTINUE)

    def _joined(self, name: bytes, value: bytes) -> bytes:
        """The value of a repeated header: both values, in order; a fault if it may not be repeated."""
        before = self._headers[name]
        self._repeated += len(name) + 3
        if name.lower() in SINGLE_HEADERS:
            self._fault = BAD_REQUEST
        elif len(before) + len(value) > HEAD_LIMIT:
            self._fault = self._fault or HEAD_TOO_LARGE
        else:
            return before + b"," + value
        return before

    def _head_size(self) -> int:
        """The bytes of the request line and the headers, assuming the usual spaces."""
        line = len(self._parser.get_method()) + sum(map(len, self._url)) + len(b"  HTTP/1.1\r\n")
        line += self._repeated
        return line + sum(len(name) + len(value) + 4 for name, value in self._headers.items()) + 2

    def _admit(self) -> None:
        """Refuse a request for another host, or of a page of another origin, before its body arrives."""
        lowered = by_lower_name(self._headers)
        refusal = BAD_REQUEST if lowered is None else self._admission.refusal(lowered)
        if refusal is not None:
            self._refuse(refusal)

    def on_message_complete(self) -> None:
        if self._is_large and self._received > HEAD_LIMIT and not self._closing:
            self._count_body()
        parser, header_names = self._parser, self._header_names
        method = parser.get_method()
        is_usual = method == b"POST" and header_names.ordinary  # no Upgrade, no CONNECT
        if self._closing or (not is_usual and parser.should_upgrade()):
            return
        urls, headers, chunks = self._url, self._headers, self._body
        if method == b"HEAD":
            # Answered like a GET, as the last request: then only one response can lack its body.
            method, self._head_only = b"GET", True
        url = urls[0] if len(urls) == 1 else b"".join(urls)
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        request: _Request | None = None
        if self._page_requests is not None and not (url == b"/" and method == b"POST"):
            request = self._page_requests.routed(method, url, headers, body)
        if request is None:
            if header_names.ordinary and len(body) <= LARGE_BODY and not self._notes:
                request = self._read(method, url, headers, header_names, body)
            else:
                request = self._read_soon(Received(method, url, headers, header_names, body))
        keep_alive = parser.should_keep_alive() and not self._head_only
        urls.clear()
        headers.clear()
        chunks.clear()
        self._received = self._repeated = self._counted = 0
        self._in_head = True
        backlog = self._backlog
        if backlog or self._turn_ends or self._outstanding is not None or self._blocked:
            backlog.append((request, keep_alive, 0.0))
            if len(backlog) >= _BACKLOG_LIMIT:
                self._pause_reading()
            elif len(backlog) == 1:
                self._advance()
        else:
            now = perf_counter()
            self._turn_ends = now + _TURN
            self._start(request, keep_alive, now)
            if self._held:
                self._advance()

    def _read_soon(self, received: Received) -> Decoded | Received:
        """A request, decoded; as it arrived (`Received`) if decoding takes long."""
        most = _CODED_BODY if received.header_names.is_coded else LARGE_BODY
        if len(received.body) > most:
            return received._replace(headers=dict(received.headers))
        return self._after_reading(self._read(*received), received)

    def _after_reading(self, request: Decoded, received: Received) -> Decoded:
        """Count the bytes that decompression added to a body, and pass the request to the notes (log, spans)."""
        if type(request) is ServiceCall and not self._count_grown(
            len(request.body) - len(received.body)
        ):
            request = TOO_MANY_BODIES
        for note in self._notes:
            request = note(request, received)
        return request

    def _read_later(self, received: Received, keep_alive: bool) -> None:
        """Decode a request in the thread for long work, and then start it."""
        self._outstanding = ORDINARY, keep_alive, "", perf_counter()
        reading = partial(_read_or_broken, self._read, received)
        self._dispatcher.run_long(reading, partial(self._start_read, received))

    def _start_read(self, received: Received, request: Decoded) -> None:
        assert self._outstanding is not None
        _, keep_alive, _, began = self._outstanding
        self._outstanding = None
        if not self._transport.is_closing():
            self._backlog.appendleft((self._after_reading(request, received), keep_alive, began))
        self._take_turn()

    def _decline_upgrade(self, rest: bytes) -> None:
        """Parse the request again without its Upgrade header; the parser stopped before the body."""
        method, url = self._parser.get_method(), b"".join(self._url)
        if method == b"CONNECT":
            return self._refuse(BAD_REQUEST)
        kept = {name: value for name, value in self._headers.items() if name.lower() != b"upgrade"}
        head = b"".join(b"%b: %b\r\n" % header for header in kept.items())
        self._url.clear()
        self._headers.clear()
        self._received = self._repeated = 0
        self._in_head = True
        self._parser = httptools.HttpRequestParser(self)
        return self.data_received(b"%b %b HTTP/1.1\r\n%b\r\n%b" % (method, url, head, rest))

    # Requests and answers

    def _advance(self) -> None:
        """What comes next: start the requests of the backlog, as long as nothing holds them up."""
        backlog = self._backlog
        while backlog and self._outstanding is None and not self._blocked:
            now = perf_counter()
            if not self._turn_ends:
                self._turn_ends = now + _TURN
            elif now >= self._turn_ends:
                self._loop.call_soon(self._take_turn)
                return
            request, keep_alive, read_since = backlog.popleft()
            self._start(request, keep_alive, read_since or now)
        if self._held and self._outstanding is None and not backlog:
            self._release(self._counted)  # all are answered, even if the client has not read all
        if self._paused and not (backlog or self._blocked or self._transport.is_closing()):
            self._paused = False
            self._transport.resume_reading()
        if self._expects:
            self._ask_for_body()

    def _start(self, request: _Request, keep_alive: bool, began: float) -> None:
        """Answer a request, or leave it outstanding."""
        try:
            if type(request) is not ServiceCall:
                self._start_other(request, keep_alive)
                return
            operation, style = request.operation, request.style
            number = self._requests[operation] = self._requests[operation] + 1
            result = self._dispatcher.submit(request, self._answer)
            if result is None:
                self._outstanding = style, keep_alive, operation, began
                return
            if not number % self._every:
                self._observe(operation, result, began, self._every)
            elif type(result) is not bytes:
                self._monitor.metrics.count_error(operation, result)
            self._respond(style, result, keep_alive)
        except Exception:  # a fault of ours is a 500 for its client, not the end of the loop
            log.exception("a request could not be answered")
            self._break_off()

    def _take_turn(self) -> None:
        self._turn_ends = 0.0
        self._advance()

    def _pause_reading(self) -> None:
        self._paused = True
        self._transport.pause_reading()

    def _start_other(self, request: _Request, keep_alive: bool) -> None:
        """Start what is no decoded request of the service: one that must be decoded first, a page, or a refusal."""
        if type(request) is RoutedPageRequest:
            assert self._page_requests is not None
            self._outstanding = ORDINARY, keep_alive, "", 0.0
            self._page_requests.start(request, self._answer)
        elif type(request) is Received:
            self._read_later(request, keep_alive)
        elif type(request) is MonitorRequest:
            peer = self._transport.get_extra_info("peername")
            page = self._monitor.page(request.path, peer, self._answer)
            if page is None:
                self._outstanding = ORDINARY, keep_alive, "", 0.0
            else:
                self._respond(ORDINARY, page, keep_alive)
        elif type(request) is HttpRefusal:
            if request.error.status >= 500:
                log.error("a request was refused: %s", request.error)
            self._requests[_REFUSED] += 1
            self._observe(_REFUSED, request.error, perf_counter(), 1)
            self._respond(request.style, request.error, keep_alive)
        elif type(request) is PlainResponse:
            if request is LOCAL_NODES:
                host, port = self._transport.get_extra_info("sockname")[:2]
                request = request._replace(body=self._dispatcher.local_nodes((host, port)))
            self._respond(ORDINARY, request, keep_alive)

    def _answer(self, result: Result | PlainResponse) -> None:
        """Send the answer to the outstanding request, and continue."""
        assert self._outstanding is not None
        style, keep_alive, operation, began = self._outstanding
        self._outstanding = None
        if operation:
            self._observe(operation, result, began, 1)
        try:
            self._respond(style, result, keep_alive)
        except Exception:  # as in `_start`
            log.exception("a request could not be answered")
            self._break_off()
        if self._backlog or self._held or self._paused or self._expects:
            self._take_turn()

    def _respond(
        self, style: ResponseStyle, result: Result | PlainResponse, keep_alive: bool
    ) -> None:
        """Send a response. A large one is compressed in the thread for long work first."""
        transport = self._transport
        if (
            style is ORDINARY
            and keep_alive
            and type(result) is bytes
            and not (self._finishing or transport.is_closing())
        ):
            transport.write(ordinary(result))
            return
        if style.coding and type(result) is bytes and len(result) > _LARGE_ANSWER:
            self._outstanding = style, keep_alive, "", 0.0
            self._dispatcher.run_long(partial(_encoded_or_broken, style, result), self._answer)
            return
        if self._finishing and not self._backlog:
            keep_alive = False
        response = render(style, result, keep_alive)
        if not response:  # a test ordered that this response is lost
            transport.abort()
        if transport.is_closing():
            return
        if keep_alive:
            transport.write(response)
            return
        if self._head_only:
            response = response.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
        transport.write(response)
        self._end()

    # The end

    def _check_size(self) -> None:
        if self._in_head:
            self._refuse(HEAD_TOO_LARGE)
        elif self._received > BODY_LIMIT + HEAD_LIMIT:
            self._refuse(TOO_LARGE)
        else:
            self._count_body()

    def _count_body(self) -> None:
        """Count the bytes that arrived of a large body; refuse it if the bodies of all connections exceed the budget."""
        grown = self._received - self._counted
        if not self._bodies.fits(grown):
            return self._refuse_body()
        self._counted = self._received
        self._held += grown
        self._bodies.held += grown
        return None

    def _count_grown(self, grown: int) -> bool:
        """Count bytes that decompression has added to a body; False if they are over the budget."""
        if grown > 0:
            if not self._bodies.fits(grown):
                self._note_refused_body()
                return False
            self._held += grown
            self._bodies.held += grown
        return True

    def _refuse_body(self) -> None:
        self._note_refused_body()
        self._refuse(TOO_MANY_BODIES)

    def _note_refused_body(self) -> None:
        log.warning("a request was refused: the bodies of all requests are over the budget")
        self._monitor.metrics.refused_bodies += 1

    def _release(self, arriving: int = 0) -> None:
        """Remove the bodies from the budget, except what has come of the one that is arriving."""
        self._bodies.held -= self._held - arriving
        self._held = arriving

    def _refuse(self, page: PlainResponse) -> None:
        """Answer with an error page, after the requests before it, and close. Only the first refusal is sent."""
        if self._closing:
            return
        self._body.clear()
        if self._gate is not None:
            self._gate.refused(self._transport, page)
        self._closing = True
        self._backlog.append((page, False, 0.0))
        self._advance()

    def _break_off(self) -> None:
        """Answer a request of which nothing was sent with an error, and close."""
        self._backlog.clear()
        self._refuse(BROKEN)

    def _end(self) -> None:
        """Close after the last response, with time for the peer to read it."""
        self._closing = True
        self._backlog.clear()
        self._quiet = 0.0
        if self._received and self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            self._transport.close()

    def refuse_overload(self) -> None:
        """Answer that there are too many connections, and close."""
        log.warning("a connection was turned away: there are too many")
        self._monitor.metrics.refused_connections += 1
        self._refuse(OVERLOADED)

    def finish(self) -> None:
        """Close after all received requests are answered."""
        self._finishing = True
        if self._outstanding is None and not self._backlog and not self._received:
            self._transport.close()

    def abort(self) -> None:
        """Close immediately."""
        self._transport.abort()

    def sweep(self, seconds: float, timeouts: ConnectionTimeouts) -> None:
        """Count time without activity, and close the connection after its time-out.

        A client that reads its response, however slowly, is active.
        """
        if self._outstanding is not None:
            return
        self._quiet += seconds
        unread = self._transport.get_write_buffer_size()
        if unread:
            if unread != self._unread:
                self._quiet = 0.0
            self._unread = unread
            if self._quiet > timeouts.stalled:
                self._transport.abort()
        elif self._closing or self._transport.is_closing():
            if self._unread:  # the client has read the rest since the last sweep
                self._unread, self._quiet = 0, 0.0
            if self._quiet > timeouts.closing:
                self._transport.abort()
        elif self._received:
            if self._quiet > (timeouts.head if self._in_head else timeouts.request):
                self._refuse(TIMED_OUT)
        elif self._quiet > timeouts.idle:
            self._transport.close()


def _read_or_broken(reading: Read, received: Received) -> Decoded:
    try:
        return reading(*received)
    except Exception:  # runs in a thread, where nobody else would report it
        log.exception("a request could not be read")
        return BROKEN


def _encoded_or_broken(style: ResponseStyle, result: bytes) -> PlainResponse:
    try:
        return encoded(style, result)
    except Exception:  # runs in a thread, where nobody else would report it
        log.exception("a request could not be answered")
        return BROKEN
