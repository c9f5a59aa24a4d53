"""Parses the host out of a Host header, an Origin, a URL; what is this machine (`localhost`, loopback addresses).

An authority is parsed whole or refused. A parser that takes the part in brackets, or the part before `#`, and ignores
the rest would mistake one host for another: `[::1]evil.com` for this machine.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

_NAME: Final = r"(?:[\w-]+(?:\.[\w-]+)*\.?)?"
_AUTHORITY: Final = re.compile(rf"(?:\[([0-9A-Fa-f:.]+)\]|({_NAME}))(?::[0-9]{{0,5}})?")
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(.+)")


def host_in(authority: str) -> str | None:
    """The host of `host`, `host:port` or `[address]:port`; None for any other text.

    A name is in lower case and without its final dot, an IPv6 address in its shortest form.

    >>> host_in("LOCALHOST.:8000"), host_in("[0:0::1]:80"), host_in("[::1]evil.com"), host_in("evil.com#.localhost")
    ('localhost', '::1', None, None)
    """
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        return None
    address, name = found.groups()
    if address is None:
        return str(name).lower().removesuffix(".")
    try:
        return str(ipaddress.IPv6Address(address))
    except ValueError:
        return None


def is_origin(text: str) -> bool:
    """Whether a text is the origin of a web page: a scheme and an authority with a host, without a path."""
    found = _ORIGIN.fullmatch(text)
    return found is not None and bool(host_in(found[1]))


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether a name or an address always means this machine.

    An address with a zone does not: `ipaddress` takes any text for one.
    """
    try:
        return ipaddress.ip_address(host).is_loopback and "%" not in host
    except ValueError:
        name = host_in(host) or ""
        return name == "localhost" or name.endswith(".localhost")
