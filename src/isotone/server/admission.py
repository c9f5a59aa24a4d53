"""Refuses requests for another Host (DNS rebinding) and of pages of another Origin (403): --allow-host, --allow-origin.

A browser lets every web page send requests to every address, localhost included; it only hides the answers from the page.
A page cannot change two headers of its requests:

    Origin  sent by a page of another origin with every request that could write. It must be allowed by name.
    Host    a page whose own name was made to resolve to this machine (DNS rebinding) sends that name. On loopback it
            must be a name of this machine, the address that the server is bound to, or allowed by name.

A page that this server itself has served sends an Origin that equals the Host of the request. It is admitted if the host is
known to be this server: one of its names, or an IP address.

So neither a simple POST, which browsers send without a preflight, nor one after a preflight reaches the database. A
preflight for a private network (from a page of a public network) is refused unless the page is this server's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from isotone.authority import host_in, is_address, is_loopback, is_origin
from isotone.errors import AccessDeniedException, UsageError
from isotone.server.response import BAD_REQUEST, JSON_1_0, PlainResponse

ANY: Final = "*"
_KNOWN_HOSTS: Final = 512  # Host headers that are cached; a limit, because clients choose them
_PRIVATE_NETWORK: Final = (
    b"access-control-request-private-network",
    b"access-control-request-local-network",
)


class Admission:
    """The hosts and origins that are allowed.

    `names` are in lower case and without a port; None allows all. `known_hosts` are Host headers that were admitted
    before, as they were sent: an ordinary request costs one look-up in it.
    """

    __slots__ = ("_names", "_origins", "known_hosts")

    def __init__(self, names: Iterable[str] | None = None, origins: Iterable[str] = ()) -> None:
        self._names = None if names is None else {_checked_name(name) for name in names}
        self._origins = {_checked_origin(origin) for origin in origins}
        self.known_hosts: set[bytes] = set()

    def refusal(self, headers: Mapping[bytes, bytes]) -> PlainResponse | None:
        """The response that refuses a request; None if it is admitted. Header names are in lower case."""
        host = headers.get(b"host")
        name = host_in("" if host is None else host.decode("latin-1"))
        if name is None or (host is None and self._names is not None):
            return BAD_REQUEST
        if self._names is not None and name not in self._names and not is_loopback(name):
            return _refused(
                f"This server does not answer to the host {name}. "
                f"To allow it, start the server with --allow-host {name}"
            )
        origin = headers.get(b"origin")
        if origin is None:
            if host is not None and len(self.known_hosts) < _KNOWN_HOSTS:
                self.known_hosts.add(host)
            return None
        text = origin.decode("latin-1")
        if host is not None and self._is_own(text.lower(), host.decode("latin-1").lower(), name):
            return None
        if any(name in headers for name in _PRIVATE_NETWORK):
            return _refused(f"Pages of another network, such as {text}, may not use this server.")
        if ANY in self._origins or text.lower() in self._origins:
            return None
        return _refused(
            f"Pages of the origin {text} may not use this server. "
            f"To allow them, start it with --allow-origin {text}"
        )

    def _is_own(self, origin: str, host: str, name: str) -> bool:
        """Whether a page of this server sent the request.

        A name that was not configured proves nothing: it may be another site's that now resolves to this machine.
        """
        if origin not in (f"http://{host}", f"https://{host}"):
            return False
        return is_address(name) or is_loopback(name) or name in (self._names or ())


def admission_for(
    address: str,
    bound: str,
    *,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> Admission:
    """The admission of a server that was asked to listen on `address`, and is bound to `bound`.

    Beyond loopback a server cannot know its own names, so every host is allowed unless `hosts` lists some.
    """
    hosts = set(hosts)
    if ANY in hosts or not (hosts or is_loopback(bound)):
        return Admission(None, origins)
    return Admission({address, bound, *hosts}, origins)


def _checked_name(name: str) -> str:
    """The name of an allowed host in the form that `host_in` returns. Raises `UsageError`."""
    host = host_in(f"[{name}]") or host_in(name) or (name if is_address(name) else None)
    if host is None:
        raise UsageError(
            f"{name!r} is not the name of a host; write it without scheme and path, such as db.internal"
        )
    return host


def _checked_origin(origin: str) -> str:
    if origin not in (ANY, "null") and not is_origin(origin):
        raise UsageError(
            f"{origin!r} is not an origin; write the scheme, the host and the port as the browser sends them, "
            "such as http://localhost:3000"
        )
    return origin.lower()


def _refused(message: str) -> PlainResponse:
    body = msgspec.json.encode(AccessDeniedException(message).body())
    return PlainResponse(403, body, headers=((b"Content-Type", JSON_1_0),))
