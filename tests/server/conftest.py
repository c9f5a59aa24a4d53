"""Servers on a fake service, each on a port of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.server.fakes import FakeService

from isotone.server import running_server
from isotone.server.http import Patience


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    with running_server(service) as url:
        yield url


@pytest.fixture
def hasty_url(service: FakeService) -> Iterator[str]:
    """A server that loses patience in a moment, and serves four at once."""
    patience = Patience(head=0.2, request=0.4, idle=0.6, farewell=0.3, sweep=0.05)
    with running_server(service, patience=patience, most_connections=4) as url:
        yield url
