"""Headroom is reported once in a process: a test that expects a report starts as a new process does."""

from __future__ import annotations

from isotone.model.writing.headroom import forget as forget_notices

__all__ = ["forget_notices"]
