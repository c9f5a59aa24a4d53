"""`Source`: the engine that a workbench shows, and its settings: name, writable or not, model, tour, workload, design."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from isotone.backends.interface import Backend
from isotone.errors import UsageError

if TYPE_CHECKING:
    from isotone.advisor.simulation import Workload
    from isotone.model import Table
    from isotone.workbench.designs import DesignSource


Call = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""A call of the page: JSON objects in and out."""


def text_in(given: Mapping[str, Any], name: str) -> str:
    """The text that a call is given under a name; raises `UsageError` if there is none."""
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise UsageError(f"a call needs {name!r}")
    return value


class Source(NamedTuple):
    """An engine. `tables` are those of a loaded model; `remote` engines may charge, and may be shared.

    `is_endpoint`: the page's server also has the engine's API. `tour` has the calls of a guided tour, if there is one,
    `calls` further calls.
    `workload` is the workload that the page simulates. `snapshots` is the folder of its snapshots, if not the default;
    `queries` the file of its saved queries, if they are not kept in the browser. `design` has the models whose designs
    are shown.
    """

    backend: Backend
    target: str
    tables: tuple[Table, ...]
    remote: bool
    writable: bool
    is_endpoint: bool
    tour: Mapping[str, Call]
    calls: Mapping[str, Call]
    workload: Workload | None
    snapshots: Path | None = None
    queries: Path | None = None
    design: DesignSource | None = None
