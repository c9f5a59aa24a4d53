"""The saved queries of a team: a JSON file that can be committed, named by `--queries`, never by the page.

    [
      {
        "name": "Open orders of Ann",
        "words": "shop · GSI1: GSI1PK = STATUS#OPEN",
        "address": "#/t/shop/items?index=GSI1&pk=…"
      }
    ]

It is read again for each call, so what somebody else has committed appears, and replaced as a whole. A lock beside it
keeps two workbenches from replacing it at once, because one of them would drop what the other has saved. Queries are in the
order of their names, so that two people who add one each rarely edit the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, Final

import msgspec

from isotone.errors import UsageError
from isotone.file_lock import holding
from isotone.output_paths import OutputPath, check_output, check_regular, write_whole
from isotone.tables.threads import in_thread

Answer = dict[str, Any]
OPTION: Final = "--queries"
_LOCK: Final = ".lock"


class SavedQuery(msgspec.Struct, forbid_unknown_fields=True):
    """A query by name; `address` is that of its view on the page."""

    name: str
    words: str
    address: str


class SavedQueries:
    """The saved queries of one workbench; without a file, the page keeps them in the browser."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._changing = Lock()

    @property
    def calls(self) -> dict[str, Callable[[Mapping[str, Any]], Any]]:
        """The calls by name."""
        return {
            "queries": self.queries,
            "save_query": self.save,
            "forget_query": self.forget,
        }

    async def queries(self, given: Mapping[str, Any]) -> Answer:
        """The queries in the file."""
        return await in_thread(lambda: {"queries": self._read()})

    async def save(self, given: Mapping[str, Any]) -> Answer:
        """Keep a query in the file: `{"name", "words", "address"}`; one of the same name is replaced."""
        try:
            query = msgspec.convert(dict(given), SavedQuery)
        except msgspec.ValidationError as error:
            raise UsageError(f"a query needs a name, words and an address: {error}") from None
        _check(query)
        return await in_thread(self._change, query.name, query)

    async def forget(self, given: Mapping[str, Any]) -> Answer:
        """Remove a query from the file: `{"name"}`."""
        return await in_thread(self._change, str(given.get("name")), None)

    def _change(self, name: str, query: SavedQuery | None) -> Answer:
        path = self._file()
        check_output(OutputPath(OPTION, path, beside=(_LOCK,)))
        with self._changing, holding(path.with_name(path.name + _LOCK)):
            kept = [each for each in self._read() if each.name != name]
            if query is not None:
                kept.append(query)
            kept.sort(key=lambda each: (each.name.casefold(), each.name))
            text = msgspec.json.format(msgspec.json.encode(kept), indent=2)
            write_whole(path, text + b"\n")
            return {"queries": kept}

    def _read(self) -> list[SavedQuery]:
        path = self._file()
        check_regular(path)
        try:
            found = msgspec.json.decode(path.read_bytes(), type=list[SavedQuery])
            for each in found:
                _check(each)
        except FileNotFoundError:
            return []
        except (msgspec.DecodeError, UnicodeDecodeError, UsageError) as error:
            raise UsageError(
                f"{path} is not a file of saved queries ({error}); put it right, or give {OPTION} another one"
            ) from None
        return found

    def _file(self) -> Path:
        if self._path is None:
            raise UsageError(f"there is no file of saved queries; start with {OPTION} FILE")
        return self._path


def _check(query: SavedQuery) -> None:
    """Refuse an address that leads elsewhere than to a view of the page."""
    if not query.address.startswith("#/"):
        raise UsageError(f"the address of {query.name!r} is not one of a view: {query.address!r}")
