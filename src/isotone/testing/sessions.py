"""Makes new sessions of boto3 cheap while a mock is active.

Each outermost mock has a default session of its own, so a test never sees the credentials or the event handlers of
another. botocore needs a tenth of a second for a session and its first client, nearly all of it for two things that
are equal in every session: the JSON of its data files, and the registration of its built-in handlers. Both are done
once in a process here:

- Files that botocore and boto3 ship are read once. Models in other folders (`AWS_DATA_PATH`, `~/.aws/models`) are
  read by each session, as botocore does.
- A new session gets a copy of an event emitter that has the built-in handlers. A package that adds handlers (moto)
  makes a new emitter necessary.
"""

from __future__ import annotations

import copy
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from botocore.hooks import HierarchicalEmitter

Replace = Callable[[type, str, Any], None]
"""Sets an attribute of a class until the mock ends."""


def make_sessions_cheap(replace: Replace) -> None:
    """Patch botocore, so that new sessions share everything that is equal in all of them."""
    from botocore.loaders import JSONFileLoader, Loader
    from botocore.session import Session

    replace(JSONFileLoader, "load_file", _read_once(JSONFileLoader.load_file))
    replace(Loader, "list_available_services", _listed_once(Loader.list_available_services))
    replace(Session, "__init__", _copying_handlers(Session.__init__))


# Data files

_files: Final[dict[str, Any]] = {}
_services: Final[dict[tuple[str, ...], list[str]]] = {}


def _is_shipped(path: str) -> bool:
    """Whether a path is in the data files of botocore or boto3."""
    return f"{path}{os.sep}".startswith(_shipped_folders())


@cache
def _shipped_folders() -> tuple[str, ...]:
    found = [importlib.util.find_spec(package) for package in ("botocore", "boto3")]
    return tuple(
        f"{Path(spec.origin).parent / 'data'}{os.sep}" for spec in found if spec and spec.origin
    )


def _read_once(load_file: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def load_file_once(loader: Any, file_path: str) -> Any:
        if not _is_shipped(file_path):
            return load_file(loader, file_path)
        if file_path not in _files:
            _files[file_path] = load_file(loader, file_path)
        return _files[file_path]

    return load_file_once


def _listed_once(list_services: Callable[[Any, str], list[str]]) -> Callable[..., list[str]]:
    def list_available_services(loader: Any, type_name: str) -> list[str]:
        folders = [path for path in loader.search_paths if Path(path).is_dir()]
        if not all(map(_is_shipped, folders)):
            return list_services(loader, type_name)
        known = (type_name, *folders)
        if known not in _services:
            _services[known] = list_services(loader, type_name)
        return list(_services[known])

    return list_available_services


# Event handlers


class _PreparedEmitter:
    """An event emitter with the built-in handlers, and the handlers that it was made from."""

    def __init__(self) -> None:
        self._handlers: list[Any] = []
        self._emitter: HierarchicalEmitter | None = None

    def emitter(self, initialize: Callable[..., None]) -> HierarchicalEmitter:
        """A new emitter with all handlers that are built in now."""
        from botocore.handlers import BUILTIN_HANDLERS
        from botocore.hooks import HierarchicalEmitter
        from botocore.session import Session

        if self._emitter is None or self._handlers != BUILTIN_HANDLERS:
            self._handlers = list(BUILTIN_HANDLERS)
            self._emitter = HierarchicalEmitter()
            initialize(Session.__new__(Session), event_hooks=self._emitter)
        return copy.copy(self._emitter)


_prepared: Final = _PreparedEmitter()


def _copying_handlers(initialize: Callable[..., None]) -> Callable[..., None]:
    from botocore.session import Session

    def __init__(  # noqa: N807 - it replaces one
        session: Any,
        session_vars: Any = None,
        event_hooks: Any = None,
        include_builtin_handlers: bool = True,
        profile: Any = None,
    ) -> None:
        # A subclass (aiobotocore's session) may register other handlers, or bring its own emitter.
        if type(session) is Session and event_hooks is None and include_builtin_handlers:
            event_hooks, include_builtin_handlers = _prepared.emitter(initialize), False
        initialize(session, session_vars, event_hooks, include_builtin_handlers, profile)

    return __init__
