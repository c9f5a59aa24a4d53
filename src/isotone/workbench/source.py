"""What a workbench shows: an engine, its name for people, and how it may be used."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from isotone.backends.interface import Backend

if TYPE_CHECKING:
    from isotone.model import Table


class Source(NamedTuple):
    """An engine. `tables` are those of a loaded model; `remote` engines may charge, and may be shared.

    `is_endpoint`: the server of the page has the engine's API, too.
    """

    backend: Backend
    target: str
    tables: tuple[Table, ...]
    remote: bool
    writable: bool
    is_endpoint: bool
