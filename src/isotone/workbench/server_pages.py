"""Reads `/metrics`, `/hotkeys` and `/queries` of an Isotone server elsewhere, which the browser may not request.

The page requests those of its own server directly. Proxies and certificates are those of every other request.
"""

from __future__ import annotations

from typing import Any, Final

from isotone.backends.addresses import whole
from isotone.backends.credentials import PLACEHOLDER
from isotone.backends.endpoint import Timeouts, endpoint_of
from isotone.backends.engines import without_engine
from isotone.backends.remote import Remote
from isotone.errors import ConnectionFailed, UsageError

_TIMEOUTS: Final = Timeouts(connect=5.0, read=5.0)
_WITHIN: Final = 10.0  # seconds for a page
_OURS: Final = {
    "metrics": b"isotone_requests_total",
    "hotkeys": b'"looked_at"',
    "queries": b'"queries"',
}


def server_page(target: str, name: str) -> dict[str, Any]:
    """The text of one of the pages, or None with the reason."""
    try:
        endpoint = endpoint_of(without_engine(whole(target))[0], credentials=PLACEHOLDER)
    except UsageError:
        return _none(f"{target} is not a server of Isotone")
    if endpoint.is_amazon:
        return _none(f"{target} is not a server of Isotone")
    try:
        with Remote(endpoint, timeouts=_TIMEOUTS) as remote:
            reply = remote.get(f"/{name}", _WITHIN)
        body = reply.content
    except (ConnectionFailed, UsageError) as error:
        return _none(f"{target}/{name} does not answer: {error}")
    if reply.status >= 500:
        return _none(f"{target}/{name} does not answer: status {reply.status}")
    if reply.status != 200 or _OURS[name] not in body:
        return _none(
            f"{target} has no /{name}: it is another engine, or shows it to clients on its own machine only"
        )
    return {"text": body.decode(errors="replace"), "reason": ""}


def _none(reason: str) -> dict[str, Any]:
    return {"text": None, "reason": reason}
