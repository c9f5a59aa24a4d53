"""Which host names and which web pages a server answers to.

A browser lets every web page send requests to every address, localhost included: it only keeps the answers from the
page. Two headers that no page can change tell its requests apart:

    Origin  a page of another origin sends it with every request that could write. It must be allowed by name.
    Host    a page whose own name was made to point to this machine (DNS rebinding) sends that name. On loopback it
            must be a name of this machine, the address that the server is bound to, or allowed by name.

A page that this server itself has served sends an Origin that names the Host of the request. It is admitted if that
host is known to be this server: one of its names, or an address.

So neither a simple POST, which a browser sends without asking, nor one after a preflight reaches the database. A
preflight for a private network (a page of the internet asks for an address of this one) is always refused.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from isotone.errors import AccessDeniedException, UsageError
from isotone.server.response import BAD_REQUEST, JSON_1_0, Page

ANY: Final = "*"
_KNOWN_HOSTS: Final = 512  # Host headers that are remembered; bounds what a hostile client can fill
_PRIVATE_NETWORK: Final = (
    b"access-control-request-private-network",
    b"access-control-request-local-network",
)


class Admission:
    """The hosts and origins that are allowed.

    `names` are in lower case and without a port; None allows every one. `known_hosts` are Host headers that were
    admitted before, as they are sent: a look-up in it is all that an ordinary request costs.
    """

    __slots__ = ("_names", "_origins", "known_hosts")

    def __init__(self, names: Iterable[str] | None = None, origins: Iterable[str] = ()) -> None:
        names = None if names is None else list(names)
        for name in names or ():
            if "/" in name:
                raise UsageError(
                    f"{name!r} is not the name of a host; write it without scheme and path, such as db.internal"
                )
        self._names = None if names is None else {_host_name(name) for name in names}
        self._origins = {_checked_origin(origin) for origin in origins}
        self.known_hosts: set[bytes] = set()

    def refusal(self, headers: Mapping[bytes, bytes]) -> Page | None:
        """The answer to a request that is refused; None if it is admitted. Header names are in lower case."""
        host = headers.get(b"host")
        if self._names is not None:
            if host is None:
                return BAD_REQUEST
            name = _host_name(host.decode("latin-1"))
            if name not in self._names and not is_loopback(name):
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
        if host is not None and self._is_own(text.lower(), host.decode("latin-1").lower()):
            return None
        if any(name in headers for name in _PRIVATE_NETWORK):
            return _refused(f"Pages of another network, such as {text}, may not use this server.")
        if ANY in self._origins or text.lower() in self._origins:
            return None
        return _refused(
            f"Pages of the origin {text} may not use this server. "
            f"To allow them, start it with --allow-origin {text}"
        )

    def _is_own(self, origin: str, host: str) -> bool:
        """Whether a page of this server sent the request.

        A name that was not configured proves nothing: it may be another site's, which now leads here.
        """
        if origin not in (f"http://{host}", f"https://{host}"):
            return False
        name = _host_name(host)
        return _is_address(name) or is_loopback(name) or name in (self._names or ())


def admission_for(
    address: str,
    bound: str,
    *,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> Admission:
    """The admission of a server that was told to listen on `address`, and is bound to `bound`.

    Beyond loopback a server has names that it cannot know, so every host is allowed unless some are listed.
    """
    hosts = set(hosts)
    if ANY in hosts or not (hosts or is_loopback(bound)):
        return Admission(None, origins)
    return Admission({address, bound, *hosts}, origins)


def is_loopback(host: str) -> bool:
    """Whether a name or an address always means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        name = host.lower()
        return name == "localhost" or name.endswith(".localhost")


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str:
    """The name in a Host header, without port, brackets and final dot."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    if host.count(":") == 1:
        host = host.partition(":")[0]
    return host.removesuffix(".")


def _checked_origin(origin: str) -> str:
    scheme, separator, host = origin.partition("://")
    is_whole = bool(separator and scheme and host) and "/" not in host
    if origin not in (ANY, "null") and not is_whole:
        raise UsageError(
            f"{origin!r} is not an origin; write the scheme, the host and the port as the browser sends them, "
            "such as http://localhost:3000"
        )
    return origin.lower()


def _refused(message: str) -> Page:
    body = msgspec.json.encode(AccessDeniedException(message).body())
    return Page(403, body, headers=((b"Content-Type", JSON_1_0),))
