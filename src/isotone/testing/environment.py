"""The environment of a mock: AWS_ variables with dummy credentials, and boto3's default session; both are restored.

Both are restored when the outermost mock stops, so dummy credentials never outlive it.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from typing import Any, Final

DEFAULT_REGION: Final = "us-east-1"

_DUMMY: Final = "testing"
_KEYS: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_TOKENS: Final = ("AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")


@dataclass(frozen=True, slots=True)
class EnvironmentChanges:
    """The changes of a mock: dummy `credentials`, a missing `region`, a `fresh_session` of boto3."""

    credentials: bool = True
    region: bool = True
    fresh_session: bool = False


class MockEnvironment:
    """Makes the changes of a mock, and restores the former state."""

    def __init__(self) -> None:
        self._before: dict[str, str | None] = {}
        self._session: Any = None

    def set(self, wanted: EnvironmentChanges) -> None:
        """Set dummy values; real keys are replaced, so that no program uses them."""
        if wanted.credentials:
            present = [name for name in _TOKENS if name in os.environ]
            self._set(dict.fromkeys((*_KEYS, *present), _DUMMY))
        if wanted.region and "AWS_DEFAULT_REGION" not in os.environ:
            self._set({"AWS_DEFAULT_REGION": DEFAULT_REGION})
        boto3: Any = sys.modules.get("boto3")
        self._session = getattr(boto3, "DEFAULT_SESSION", None)
        if boto3 is not None and wanted.fresh_session:
            boto3.DEFAULT_SESSION = None

    def restore(self) -> None:
        """Restore the former state."""
        for name, value in self._before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        self._before.clear()
        if "boto3" in sys.modules:
            vars(sys.modules["boto3"])["DEFAULT_SESSION"] = self._session
        self._session = None

    def _set(self, values: dict[str, str]) -> None:
        for name, value in values.items():
            self._before[name] = os.environ.get(name)
            os.environ[name] = value
