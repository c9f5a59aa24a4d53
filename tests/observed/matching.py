"""Whether an answer is the one that was observed."""

from __future__ import annotations

import re
from typing import Any, Final

from tests.observed.endpoints import Reply

_ANY: Final = "{ANY}"
_SETS: Final = frozenset({"SS", "NS", "BS"})


def matches(expected: dict[str, Any], reply: Reply) -> bool:
    """Whether a reply is the expected answer."""
    if "status" in expected and expected["status"] != reply.status:
        return False
    if not _fits(expected.get("headers", {}), reply.headers):
        return False
    if "response" in expected:
        return reply.status == 200 and _fits(expected["response"], reply.body)
    if "error" not in expected:
        return True
    others = {
        name: member
        for name, member in expected.items()
        if name not in ("error", "message", "status", "headers")
    }
    return (
        reply.status != 200
        and reply.error == expected["error"]
        and _fits(expected.get("message", _ANY), reply.message)
        and _fits(others, reply.body)
    )


def has(expected: Any, found: Any) -> bool:
    """Whether a value has the members of another."""
    return _fits(expected, found)


def _fits(expected: Any, found: Any) -> bool:
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(
            found.get(name) is None if member is None else _fits_member(name, member, found)
            for name, member in expected.items()
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(_fits, expected, found))
        )
    if isinstance(expected, str) and isinstance(found, str):
        pattern = ".*".join(map(re.escape, expected.split(_ANY)))
        return re.fullmatch(pattern, found, re.DOTALL) is not None
    return bool(expected == found) and isinstance(expected, bool) == isinstance(found, bool)


def _fits_member(name: str, expected: Any, found: dict[str, Any]) -> bool:
    if name not in found:
        return False
    member = found[name]
    if name in _SETS and isinstance(expected, list) and isinstance(member, list):
        return _fits(sorted(expected), sorted(member))
    return _fits(expected, member)
