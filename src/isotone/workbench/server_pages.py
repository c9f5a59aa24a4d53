"""The `/metrics` and `/hotkeys` of a server of Isotone elsewhere, which the page itself may not ask.

The server that serves the page is asked by the page itself.
"""

from __future__ import annotations

import http.client
import ssl
from contextlib import closing
from typing import Any, Final
from urllib.parse import urlsplit

from isotone.authority import host_in

_PATIENCE: Final = 5.0
_LARGEST: Final = 4 << 20
_OURS: Final = {"metrics": b"isotone_requests_total", "hotkeys": b'"looked_at"'}


def server_page(target: str, name: str) -> dict[str, Any]:
    """The text of one of its pages; or None, and why there is none."""
    parts = urlsplit(target)
    if parts.scheme not in ("http", "https") or not parts.hostname or host_in(parts.netloc) is None:
        return _none(f"{target} is not a server of Isotone")
    try:
        connection = _connection(parts.scheme, parts.hostname, parts.port)
        with closing(connection):
            connection.request("GET", f"/{name}")
            response = connection.getresponse()
            body = response.read(_LARGEST)
    except (OSError, http.client.HTTPException) as error:
        return _none(f"{target}/{name} does not answer: {error}")
    if response.status != 200 or _OURS[name] not in body:
        return _none(
            f"{target} has no /{name}: it is another engine, or shows it to clients on its own machine only"
        )
    return {"text": body.decode(errors="replace"), "reason": ""}


def _connection(scheme: str, host: str, port: int | None) -> http.client.HTTPConnection:
    if scheme == "https":
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=_PATIENCE, context=context)
    return http.client.HTTPConnection(host, port, timeout=_PATIENCE)


def _none(reason: str) -> dict[str, Any]:
    return {"text": None, "reason": reason}
