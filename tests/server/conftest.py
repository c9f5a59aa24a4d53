"""Servers on a fake service, each on a port of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.server.fakes import FakeService

from isotone.server import listener, running_server
from isotone.server.connection import ConnectionTimeouts


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture(params=["uvloop", "asyncio"])
def event_loop_of_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both event loops must serve alike; asyncio's own is what Windows has."""
    if request.param == "asyncio":
        monkeypatch.setattr(listener, "new_event_loop", asyncio.new_event_loop)
    else:
        pytest.importorskip("uvloop")


@pytest.fixture
def url(service: FakeService, event_loop_of_server: None) -> Iterator[str]:
    with running_server(service) as url:
        yield url


@pytest.fixture
def hasty_url(service: FakeService, event_loop_of_server: None) -> Iterator[str]:
    """A server that loses patience in a moment, and serves four at once."""
    timeouts = ConnectionTimeouts(
        head=0.2, request=0.4, idle=0.6, stalled=0.2, closing=0.3, sweep=0.05
    )
    with running_server(service, timeouts=timeouts, most_connections=4) as url:
        yield url
