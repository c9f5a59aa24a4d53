"""What a server tells its operators: `/healthz`, `/metrics`, `/hotkeys`, and the budget for the bodies that it holds.

Any client may ask for the health. The metrics show the names of actions and tables and how much is done, so they are for
clients on this machine, unless an option shows them to all. A server with credentials names tables only if an option shows
its metrics, because they need no signature. Hot keys are data: only clients on this machine get them, and a
server with credentials shows them to nobody.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from isotone.server.dispatcher import Service, Thread
from isotone.server.exposition import CONTENT_TYPE, MetricFamily, text
from isotone.server.hot_keys import HotKeys
from isotone.server.metrics import Bodies, Metrics
from isotone.server.response import BROKEN, HEALTH, HOT_KEYS, NOT_FOUND, PlainResponse

BODY_BUDGET: Final = 256 << 20
"""Bytes of the bodies that have arrived and whose requests are not answered, over all connections."""

log: logging.Logger = logging.getLogger("isotone.server")

_TEXT: Final = b"text/plain; charset=utf-8"
_JSON: Final = b"application/json"


class Monitor:
    """The counts of one server, and the pages for its operators."""

    asks_others = False
    """Whether pages are made of what several processes know, so that none is there at once."""

    def __init__(
        self,
        service: Service,
        loop: asyncio.AbstractEventLoop,
        connections: Callable[[], int],
        *,
        body_budget: int = BODY_BUDGET,
        access_log: bool = False,
        metrics_for_all: bool = False,
        names_tables: bool = True,
    ) -> None:
        self.metrics: Metrics = Metrics(access_log=access_log)
        self.bodies: Bodies = Bodies(body_budget)
        self.hot_keys: HotKeys | None = None
        self._service = service
        self._scrapes: Thread[Any] = Thread(loop, "isotone-metrics")
        self._connections = connections
        self._metrics_for_all = metrics_for_all
        self.names_tables: bool = names_tables or metrics_for_all

    def page(self, request: PlainResponse, peer: Any) -> PlainResponse:
        """The page that a client asks for: `METRICS`, `HEALTH` or `HOT_KEYS`."""
        if request is HEALTH:
            return health_page(self._service.health())
        if not self.shows(request, peer):
            return NOT_FOUND
        if request is HOT_KEYS:
            assert self.hot_keys is not None
            return hot_keys_page(self.hot_keys.json())
        return metrics_page(self.families(of_tables=self.names_tables))

    def shows(self, request: PlainResponse, peer: Any) -> bool:
        """Whether a client may see a page."""
        if request is HOT_KEYS:
            return self.hot_keys is not None and _is_here(peer)
        return request is HEALTH or self._metrics_for_all or _is_here(peer)

    def page_later(
        self, request: PlainResponse, peer: Any, answer: Callable[[PlainResponse], None]
    ) -> None:
        """Answer with a page, made in a thread: metrics of many tables and streams take a while."""
        self._scrapes.run(partial(self._page, request, peer), answer)

    def measure(self, of_tables: bool, then: Callable[[list[MetricFamily]], None]) -> None:
        """Pass on what is counted, from the same thread."""
        self._scrapes.run(partial(self._families, of_tables), then)

    def stop(self) -> None:
        """End the thread, which need not finish."""
        self._scrapes.stop()

    def _page(self, request: PlainResponse, peer: Any) -> PlainResponse:
        try:
            return self.page(request, peer)
        except Exception:
            log.exception("the metrics could not be made")
            return BROKEN

    def _families(self, of_tables: bool) -> list[MetricFamily]:
        try:
            return self.families(of_tables=of_tables)
        except Exception:
            log.exception("the metrics could not be made")
            return []

    def families(self, *, of_tables: bool = True) -> list[MetricFamily]:
        """Everything that is counted and measured, with or without the names of tables. Any thread may ask."""
        gauges = {
            "isotone_connections": float(self._connections()),
            "isotone_bodies_bytes": float(self.bodies.held),
            "isotone_bodies_limit_bytes": float(self.bodies.limit),
            **self._service.gauges(),
        }
        return self.metrics.families(gauges, self._service.series() if of_tables else ())


def health_page(trouble: str) -> PlainResponse:
    """The answer to `GET /healthz`: why the service cannot read or write, or that it can."""
    body = f"{trouble or 'ok'}\n".encode(errors="replace")
    return PlainResponse(503 if trouble else 200, body, headers=((b"Content-Type", _TEXT),))


def hot_keys_page(counted: bytes) -> PlainResponse:
    """The answer to `GET /hotkeys`."""
    return PlainResponse(200, counted, headers=((b"Content-Type", _JSON),))


def metrics_page(families: Iterable[MetricFamily]) -> PlainResponse:
    """The answer to `GET /metrics`."""
    return PlainResponse(200, text(families), headers=((b"Content-Type", CONTENT_TYPE),))


def _is_here(peer: Any) -> bool:
    """Whether a client is on this machine."""
    if not isinstance(peer, tuple):
        return False
    try:
        return ipaddress.ip_address(str(peer[0]).partition("%")[0]).is_loopback
    except ValueError:
        return False
