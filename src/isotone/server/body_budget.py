"""How many bytes of bodies all connections together may hold (--body-budget); a request beyond that gets 503."""

from __future__ import annotations

from typing import Final

BODY_BUDGET: Final = 256 << 20
"""Bytes of the bodies of all requests that are not answered yet; a request beyond it gets a 503."""


class Bodies:
    """The budget of bodies: bytes of the bodies of all requests that are not answered yet, and their limit."""

    __slots__ = ("held", "limit")

    def __init__(self, limit: int) -> None:
        self.limit: int = limit
        self.held: int = 0

    def fits(self, size: int) -> bool:
        return self.held + size <= self.limit
