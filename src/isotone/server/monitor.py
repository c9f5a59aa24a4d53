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
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from isotone.server.dispatcher import Service, Thread
from isotone.server.exposition import CONTENT_TYPE, MetricFamily, text
from isotone.server.hot_keys import HotKeys
from isotone.server.metrics import Bodies, Metrics
from isotone.server.response import BROKEN, HEALTH, HOT_KEYS, METRICS, NOT_FOUND, PlainResponse

BODY_BUDGET: Final = 256 << 20
"""Bytes of the bodies that have arrived and whose requests are not answered, over all connections."""

log = logging.getLogger("isotone.server")

_TEXT: Final = b"text/plain; charset=utf-8"
_JSON: Final = b"application/json"


class Monitor:
    """The counts of one server, and the pages for its operators."""

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
        self.metrics = Metrics(access_log=access_log)
        self.bodies = Bodies(body_budget)
        self.hot_keys: HotKeys | None = None
        self._service = service
        self._scrapes: Thread[PlainResponse] = Thread(loop, "isotone-metrics")
        self._connections = connections
        self._metrics_for_all = metrics_for_all
        self._names_tables = names_tables or metrics_for_all

    def page(self, request: PlainResponse, peer: Any) -> PlainResponse:
        """The page that a client asks for: `METRICS`, `HEALTH` or `HOT_KEYS`."""
        if request is HEALTH:
            trouble = self._service.health()
            body = f"{trouble or 'ok'}\n".encode(errors="replace")
            return PlainResponse(503 if trouble else 200, body, headers=((b"Content-Type", _TEXT),))
        if request is HOT_KEYS:
            if self.hot_keys is None or not _is_here(peer):
                return NOT_FOUND
            return PlainResponse(200, self.hot_keys.json(), headers=((b"Content-Type", _JSON),))
        if not self._metrics_for_all and not _is_here(peer):
            return NOT_FOUND
        shown = text(self.families(of_tables=self._names_tables))
        return PlainResponse(200, shown, headers=((b"Content-Type", CONTENT_TYPE),))

    def scrape(self, peer: Any, answer: Callable[[PlainResponse], None]) -> None:
        """Answer with the metrics, made in a thread: of many tables and streams they take a while."""
        self._scrapes.run(partial(self._scraped, peer), answer)

    def stop(self) -> None:
        """End the thread, which need not finish."""
        self._scrapes.stop()

    def _scraped(self, peer: Any) -> PlainResponse:
        try:
            return self.page(METRICS, peer)
        except Exception:
            log.exception("the metrics could not be made")
            return BROKEN

    def families(self, *, of_tables: bool = True) -> list[MetricFamily]:
        """Everything that is counted and measured, with or without the names of tables. Any thread may ask."""
        gauges = {
            "isotone_connections": float(self._connections()),
            "isotone_bodies_bytes": float(self.bodies.held),
            "isotone_bodies_limit_bytes": float(self.bodies.limit),
            **self._service.gauges(),
        }
        return self.metrics.families(gauges, self._service.series() if of_tables else ())


def _is_here(peer: Any) -> bool:
    """Whether a client is on this machine."""
    if not isinstance(peer, tuple):
        return False
    try:
        return ipaddress.ip_address(str(peer[0]).partition("%")[0]).is_loopback
    except ValueError:
        return False
