"""The database in memory and the calls of the operations' tests, for what shows best through the API."""

from __future__ import annotations

from tests.operations.conftest import ask

__all__ = ["ask"]
