"""`/healthz`, `/metrics`, `/hotkeys`, `/queries`: their responses, and which clients may read them (404 for others).

Any client may read the health. The metrics have the names of actions and tables, so they are for clients on this machine
unless an option (--metrics) shows them to all. They need no signature, so with credentials they name tables only with that
option. Hot keys are data, and so are the requests that stand for queries: only clients on this machine may read them, and
with credentials nobody.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from isotone.server.body_budget import BODY_BUDGET, Bodies
from isotone.server.dispatcher import Service, Thread
from isotone.server.exposition import CONTENT_TYPE, MetricFamily, text
from isotone.server.hot_keys import HotKeys
from isotone.server.metrics import Metrics
from isotone.server.process_messages import HEALTH_PATH, HOT_KEYS_PATH, METRICS_PATH, QUERIES_PATH
from isotone.server.response import BROKEN, NOT_FOUND, PlainResponse

log: logging.Logger = logging.getLogger("isotone.server")

_TEXT: Final = b"text/plain; charset=utf-8"
_JSON: Final = b"application/json"


class Monitor:
    """The counts of one server, and the pages that show them."""

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

    def page(
        self, path: str, peer: Any, answer: Callable[[PlainResponse], None]
    ) -> PlainResponse | None:
        """The page at a path; None if it is passed to `answer` later."""
        if not self.shows(path, peer):
            return NOT_FOUND
        if path == HEALTH_PATH:
            return health_page(self._service.health())
        if path == HOT_KEYS_PATH:
            assert self.hot_keys is not None
            return json_page(self.hot_keys.json())
        if path == QUERIES_PATH:
            return json_page(self._service.served())
        assert path == METRICS_PATH
        # In a thread, because those of many tables take a while.
        self._scrapes.run(self._metrics_page, answer)
        return None

    def shows(self, path: str, peer: Any) -> bool:
        """Whether a client may read a page."""
        if path in (HOT_KEYS_PATH, QUERIES_PATH):
            return self.hot_keys is not None and _is_on_this_machine(peer)
        return path == HEALTH_PATH or self._metrics_for_all or _is_on_this_machine(peer)

    def measure(self, of_tables: bool, then: Callable[[list[MetricFamily]], None]) -> None:
        """Collect all metrics in the same thread, and pass them to `then`."""
        self._scrapes.run(partial(self._families, of_tables), then)

    def stop(self) -> None:
        """End the thread without waiting for it."""
        self._scrapes.stop()

    def _metrics_page(self) -> PlainResponse:
        try:
            return metrics_page(self.families(of_tables=self.names_tables))
        except Exception:  # a page that fails must not end the server that it observes
            log.exception("the metrics could not be made")
            return BROKEN

    def _families(self, of_tables: bool) -> list[MetricFamily]:
        try:
            return self.families(of_tables=of_tables)
        except Exception:  # what is observed goes on without its metrics
            log.exception("the metrics could not be made")
            return []

    def families(self, *, of_tables: bool = True) -> list[MetricFamily]:
        """All metrics, with or without those of tables. Any thread may call this."""
        gauges = {
            "isotone_connections": float(self._connections()),
            "isotone_bodies_bytes": float(self.bodies.held),
            "isotone_bodies_limit_bytes": float(self.bodies.limit),
            **self._service.gauges(),
        }
        return self.metrics.families(gauges, self._service.series() if of_tables else ())


def health_page(trouble: str) -> PlainResponse:
    """The response to `GET /healthz`: 200 ok, or 503 and the reason why the service cannot read or write."""
    body = f"{trouble or 'ok'}\n".encode(errors="replace")
    return PlainResponse(503 if trouble else 200, body, headers=((b"Content-Type", _TEXT),))


def json_page(counted: bytes) -> PlainResponse:
    """The response to `GET /hotkeys` or `GET /queries`."""
    return PlainResponse(200, counted, headers=((b"Content-Type", _JSON),))


def metrics_page(families: Iterable[MetricFamily]) -> PlainResponse:
    """The response to `GET /metrics`."""
    return PlainResponse(200, text(families), headers=((b"Content-Type", CONTENT_TYPE),))


def _is_on_this_machine(peer: Any) -> bool:
    """Whether a client is on this machine."""
    if not isinstance(peer, tuple):
        return False
    try:
        return ipaddress.ip_address(str(peer[0]).partition("%")[0]).is_loopback
    except ValueError:
        return False
