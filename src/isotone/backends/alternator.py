"""A cluster of ScyllaDB's Alternator: requests go to its live nodes in turn; a failed one is sent to the next node.

    alternator://10.0.0.1,10.0.0.2:8000?datacenter=dc1&rack=r1

`GET /localnodes` of any node lists the live nodes of its data center. The list is read before the first request, at
most every ten seconds after that, and after a failure. A failed node is tried again after a second, or after up to half
a minute if it keeps failing; earlier only if all other nodes fail, too.

A request that was not sent goes to the next node. A request whose answer was lost goes there only if a second execution
changes nothing (`repeatable`), and so does one that a node answered with an error of its own (5xx); otherwise
`ConnectionFailed` says that the write may have been made. All attempts end with the time of the request. `Cluster`
decides all this without I/O, and two backends execute it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from threading import Lock
from typing import Any, Final, NamedTuple, Self
from urllib.parse import parse_qs, urlencode

import msgspec

from isotone.backends.async_remote import AsyncRemote
from isotone.backends.credentials import Credentials, CredentialSource
from isotone.backends.endpoint import Endpoint, Timeouts, endpoint_of
from isotone.backends.http_messages import HttpReply, encode_request
from isotone.backends.interface import Native, Request, Response
from isotone.backends.remote import Remote
from isotone.backends.repeatable import is_repeatable
from isotone.backends.request_retries import Attempts, Retries
from isotone.errors import ApiError, ConnectionFailed, UsageError

_SCHEMES: Final = {"alternator": ("http", 8000), "alternator+https": ("https", 8043)}
_PLACES: Final = ("datacenter", "rack")
_REFRESH: Final = 10.0  # seconds between two reads of the list
_REFRESH_AFTER_FAILURE: Final = 1.0
_AVOIDED: Final = 1.0  # seconds for which a failed node comes last, doubled with each failure
_LONGEST_AVOIDED: Final = 30.0
_LIST_TIMEOUTS: Final = Timeouts(connect=2.0, read=2.0)  # for reading the list of nodes
_LIST_WITHIN: Final = 4.0  # seconds for the whole list of one node
_NODE: Final = re.compile(
    r"\[(?P<six>[0-9a-fA-F:.%]+)\](:(?P<p6>\d+))?|(?P<host>[^:/?#@\[\]\s]+)(:(?P<port>\d+))?"
)
_PORTS: Final = range(1, 65536)


class NodeAddress(NamedTuple):
    """The address of a node."""

    host: str
    port: int


class _NodeFailures(NamedTuple):
    """How often a node failed in a row, and the time until which it is avoided."""

    failures: int
    until: float


_NO_FAILURES: Final = _NodeFailures(0, 0.0)


class Address(NamedTuple):
    """The parts of a cluster's address."""

    scheme: str
    seeds: tuple[NodeAddress, ...]
    datacenter: str | None
    rack: str | None


def address_of(url: str) -> Address:
    """The parts of `alternator://node1,node2:8000?datacenter=…&rack=…`; raises `UsageError`."""
    named, _, rest = url.partition("://")
    scheme, port = _SCHEMES[named]
    hosts, _, query = rest.partition("?")
    nodes = [_node(each, None) for each in hosts.rstrip("/").split(",")]
    if not all(nodes):
        shown = re.sub("//.*@", "//…@", url)  # the part before @ may be a secret
        raise UsageError(
            f"{shown!r} is not an address of a cluster; write alternator://node1,node2:8000"
        )
    common = nodes[-1][1] if nodes[-1] and nodes[-1][1] else port
    seeds = tuple(NodeAddress(host, own or common) for host, own in filter(None, nodes))
    places = parse_qs(query)
    for name in places.keys() - set(_PLACES):
        raise UsageError(
            f"an address of a cluster has no parameter {name!r}; it may have {' and '.join(_PLACES)}"
        )
    place = {name: values[-1] for name, values in places.items()}
    return Address(scheme, seeds, place.get("datacenter"), place.get("rack"))


def _node(text: str, port: int | None) -> tuple[str, int | None] | None:
    found = _NODE.fullmatch(text.strip())
    if found is None:
        return None
    given = found["p6"] or found["port"]
    if given and int(given) not in _PORTS:
        return None
    return found["six"] or found["host"], int(given) if given else port


class Cluster:
    """The nodes of a cluster: which one is next, and when their list is read. Thread-safe."""

    def __init__(self, address: Address, now: Callable[[], float] = time.monotonic) -> None:
        self.address = address
        self.nodes: tuple[NodeAddress, ...] = address.seeds
        self._now = now
        self._lock = Lock()
        self._turn = 0
        self._due = now()
        self.avoided: dict[NodeAddress, _NodeFailures] = {}

    def order(self) -> list[NodeAddress]:
        """All nodes, the next one in turn first, and recently failed ones last."""
        with self._lock:
            turn, self._turn = self._turn, self._turn + 1
            nodes = self.nodes
        start = turn % len(nodes)
        rotated = [*nodes[start:], *nodes[:start]]
        rotated += (seed for seed in self.address.seeds if seed not in nodes)
        if not self.avoided:
            return rotated
        now = self._now()
        return sorted(rotated, key=lambda node: self.avoided.get(node, _NO_FAILURES).until > now)

    def failed(self, node: NodeAddress) -> None:
        """Avoid a node for a while, and read the list of nodes soon."""
        with self._lock:
            now = self._now()
            failures = self.avoided.get(node, _NO_FAILURES).failures + 1
            seconds = min(_AVOIDED * 2.0 ** min(failures - 1, 10), _LONGEST_AVOIDED)
            self.avoided[node] = _NodeFailures(failures, now + seconds)
            self._due = min(self._due, now if failures == 1 else now + _REFRESH_AFTER_FAILURE)

    def answered(self, node: NodeAddress) -> None:
        """Stop avoiding a node."""
        with self._lock:
            self.avoided.pop(node, None)

    def is_due(self) -> bool:
        """Whether the caller must read the list now. Returns True to one caller at a time."""
        if self._now() < self._due:
            return False
        with self._lock:
            now = self._now()
            if now < self._due:
                return False
            self._due = now + _REFRESH
            return True

    def list_paths(self) -> list[str]:
        """The paths that list the nodes: those of the rack, and if there are none, those of its data center."""
        asked = {"dc": self.address.datacenter, "rack": self.address.rack}
        given = {name: value for name, value in asked.items() if value is not None}
        paths = [f"/localnodes?{urlencode(given)}" if given else "/localnodes"]
        if "rack" in given:
            del given["rack"]
            paths.append(f"/localnodes?{urlencode(given)}" if given else "/localnodes")
        return paths

    def learn(self, reply: HttpReply, asked: NodeAddress) -> bool:
        """Replace the list by the one in an answer; returns whether it has any node.

        An address without a port gets the port of `asked`.
        """
        try:
            listed = (
                msgspec.json.decode(reply.content, type=list[str]) if reply.status == 200 else []
            )
        except msgspec.MsgspecError:
            return False
        nodes = []
        for each in listed:
            parsed = (each, None) if each.count(":") > 1 and "[" not in each else _node(each, None)
            if parsed is not None:
                nodes.append(NodeAddress(parsed[0], parsed[1] or asked.port))
        if not nodes:
            return False
        with self._lock:
            self.nodes = tuple(dict.fromkeys(nodes))
            members = self.members()
            self.avoided = {node: each for node, each in self.avoided.items() if node in members}
        return True

    def members(self) -> set[NodeAddress]:
        """The nodes that requests may go to: those on the list, and those in the address."""
        return {*self.nodes, *self.address.seeds}


class RequestDelivery:
    """One request on its way: the nodes that are left in this round, and the consequence of a failure."""

    __slots__ = ("_attempts", "_cluster", "_left", "_operation", "_request", "node")

    def __init__(
        self, cluster: Cluster, operation: str, request: Request, attempts: Attempts
    ) -> None:
        self._cluster = cluster
        self._operation = operation
        self._request = request
        self._attempts = attempts
        self._left = cluster.order()
        self.node: NodeAddress = self._left.pop(0)

    def delay_after(self, error: ApiError | ConnectionFailed) -> float:
        """Seconds to wait before the request is sent to `node`, the next one. Raises the error if there is no retry."""
        is_lost = isinstance(error, ConnectionFailed)
        if is_lost:
            self._cluster.failed(self.node)
        may_be_done = error.sent if isinstance(error, ConnectionFailed) else error.status >= 500
        if may_be_done and not is_repeatable(self._operation, self._request):
            raise self._unclear(error) from error
        if is_lost and self._left and not self._attempts.is_over:
            self.node = self._left.pop(0)
            return 0.0
        delay = self._attempts.delay(error)
        if delay is None:
            raise error
        self._left = self._cluster.order()
        self.node = self._left.pop(0)
        return delay

    def _unclear(self, error: ApiError | ConnectionFailed) -> ConnectionFailed:
        node = f"{self.node.host}:{self.node.port}"
        if isinstance(error, ConnectionFailed):
            event = f"the answer to {self._operation} was lost ({error}), so {node}"
        else:
            event = f"{node} answered {self._operation} with status {error.status} ({error}), and"
        return ConnectionFailed(
            f"{event} may have executed it; it was not repeated on another node, because a second execution "
            "could change the result: read the item, then decide"
        )


class _Nodes:
    """The base of both cluster backends: the nodes, their endpoints, and the retries."""

    def __init__(
        self,
        url: str,
        *,
        region: str | None = None,
        credentials: Credentials | CredentialSource | None = None,
        retries: Retries | None = None,
    ) -> None:
        self.cluster = Cluster(address_of(url))
        self.retries = retries or Retries()
        self._region = region
        self._credentials = credentials

    def endpoint(self, node: NodeAddress) -> Endpoint:
        host = f"[{node.host}]" if ":" in node.host else node.host
        url = f"{self.cluster.address.scheme}://{host}:{node.port}"
        return endpoint_of(url, region=self._region, credentials=self._credentials)


class Alternator(Native):
    """The `Backend` of a cluster. Nothing is connected before the first request."""

    takes_json = True

    def __init__(
        self,
        url: str,
        *,
        timeouts: Timeouts | None = None,
        connections: int = 10,
        sleep: Callable[[float], None] = time.sleep,
        **options: Any,
    ) -> None:
        self._nodes = _Nodes(url, **options)
        self._transport: Mapping[str, Any] = {"timeouts": timeouts, "connections": connections}
        self._sleep = sleep
        self._remotes: dict[NodeAddress, Remote] = {}

    def execute(self, operation: str, request: Request, deadline: float | None = None) -> Response:
        """Answer one action; raises `ApiError`, or `ConnectionFailed` if no node answered."""
        cluster = self._nodes.cluster
        if cluster.is_due():
            self._refresh()
        body = encode_request(operation, request)
        delivery = RequestDelivery(cluster, operation, request, self._nodes.retries.begin(deadline))
        while True:
            try:
                response = self._remote(delivery.node).attempt(operation, body)
            except (ApiError, ConnectionFailed) as error:
                delay = delivery.delay_after(error)
            else:
                if cluster.avoided:
                    cluster.answered(delivery.node)
                return response
            if delay:
                self._sleep(delay)
            if cluster.is_due():
                self._refresh()

    def _refresh(self) -> None:
        """Read the list of nodes from the first node that answers; if none does, keep the old list."""
        cluster = self._nodes.cluster
        for node in cluster.order():
            with Remote(self._nodes.endpoint(node), timeouts=_LIST_TIMEOUTS) as remote:
                try:
                    for path in cluster.list_paths():
                        if cluster.learn(remote.get(path, _LIST_WITHIN), node):
                            self._close_left()
                            return
                except ConnectionFailed:
                    cluster.failed(node)

    def _close_left(self) -> None:
        """Close the idle connections to nodes that have left the cluster."""
        for node in set(self._remotes) - self._nodes.cluster.members():
            if remote := self._remotes.pop(node, None):  # another thread may have removed it
                remote.close()

    def _remote(self, node: NodeAddress) -> Remote:
        known = self._remotes.get(node)
        if known is None:
            made = Remote(self._nodes.endpoint(node), **self._transport)
            known = self._remotes.setdefault(node, made)
        return known

    def close(self) -> None:
        """Close the idle connections. A later request opens new ones."""
        for remote in list(self._remotes.values()):
            remote.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncAlternator(Native):
    """The `AsyncBackend` of a cluster."""

    takes_json = True

    def __init__(
        self,
        url: str,
        *,
        timeouts: Timeouts | None = None,
        connections: int = 10,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        **options: Any,
    ) -> None:
        self._nodes = _Nodes(url, **options)
        self._transport: Mapping[str, Any] = {"timeouts": timeouts, "connections": connections}
        self._sleep = sleep
        self._remotes: dict[NodeAddress, AsyncRemote] = {}

    async def execute(
        self, operation: str, request: Request, deadline: float | None = None
    ) -> Response:
        """Answer one action; raises `ApiError`, or `ConnectionFailed` if no node answered."""
        cluster = self._nodes.cluster
        if cluster.is_due():
            await self._refresh()
        body = encode_request(operation, request)
        delivery = RequestDelivery(cluster, operation, request, self._nodes.retries.begin(deadline))
        while True:
            try:
                response = await self._remote(delivery.node).attempt(operation, body)
            except (ApiError, ConnectionFailed) as error:
                delay = delivery.delay_after(error)
            else:
                if cluster.avoided:
                    cluster.answered(delivery.node)
                return response
            if delay:
                await self._sleep(delay)
            if cluster.is_due():
                await self._refresh()

    async def _refresh(self) -> None:
        """Read the list of nodes from the first node that answers; if none does, keep the old list."""
        cluster = self._nodes.cluster
        for node in cluster.order():
            remote = AsyncRemote(self._nodes.endpoint(node), timeouts=_LIST_TIMEOUTS)
            try:
                for path in cluster.list_paths():
                    if cluster.learn(await remote.get(path, _LIST_WITHIN), node):
                        self._close_left()
                        return
            except ConnectionFailed:
                cluster.failed(node)
            finally:
                remote.close()

    def _close_left(self) -> None:
        """Close the idle connections to nodes that have left the cluster."""
        for node in self._remotes.keys() - self._nodes.cluster.members():
            self._remotes.pop(node).close()

    def _remote(self, node: NodeAddress) -> AsyncRemote:
        known = self._remotes.get(node)
        if known is None:
            known = self._remotes[node] = AsyncRemote(self._nodes.endpoint(node), **self._transport)
        return known

    def close(self) -> None:
        """Close the idle connections. A later request opens new ones."""
        for remote in self._remotes.values():
            remote.close()
