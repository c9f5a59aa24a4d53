"""Dead letters: events that a handler could not handle, kept with the reason until somebody decides."""

from __future__ import annotations

import json
import zlib
from datetime import UTC, datetime
from typing import Any, Final

from isotone.errors import UsageError
from isotone.model.declaring.table import Table
from isotone.model.steps import Steps
from isotone.model.store import Store
from isotone.model.tables.events import Event
from isotone.structures.operation import Structure, operation
from isotone.structures.worker.entities import WorkerDeadLetter

_LARGEST: Final = 350_000  # bytes of a record that fit into an item, beside the rest
_LONGEST_ERROR: Final = 2_000


class DeadLetters(Structure[Store]):
    """The dead letters of one worker."""

    def __init__(self, store: Store, table: Table, worker: str) -> None:
        super().__init__(store, table)
        self.worker = worker
        self.kind = self.kept(WorkerDeadLetter)

    @operation
    def add(
        self, event: Event[Any], handler: str, error: BaseException, attempts: int
    ) -> Steps[None]:
        """Keep an event. It has one letter for each handler, however often it comes. Cost: one write."""
        packed = zlib.compress(json.dumps(event.record).encode())
        yield from self.calls.put(
            self.kind(
                worker=self.worker,
                handler=handler,
                event=event.id,
                sequence=event.sequence,
                time=event.time,
                shard=event.shard,
                # Two images of 400 KB do not fit; keys and error do, and the record lives for a day.
                record=packed if len(packed) <= _LARGEST else None,
                keys=repr(event.keys),
                error=_said(error),
                attempts=attempts,
                failed=datetime.fromtimestamp(self.now(), UTC),
            )
        )

    @operation
    def all(self) -> Steps[list[WorkerDeadLetter]]:
        """All of them, the oldest event first. Cost: one query."""
        mine = self.kind.primary.where(self.kind.worker == self.worker)
        found: list[WorkerDeadLetter] = yield from self.calls.all(mine)
        return found

    @operation
    def remove(self, letter: WorkerDeadLetter) -> Steps[None]:
        """Forget one. Cost: one write."""
        yield from self.calls.delete_many([letter])


def _said(error: BaseException) -> str:
    """What an error says, as an item can hold it."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - it is told that there is one
        words = ""
    text = f"{type(error).__name__}: {words}"[:_LONGEST_ERROR]
    return text.encode(errors="replace").decode()  # a file's name may have half a character


def event_in(letter: WorkerDeadLetter, table: Table) -> Event[Any]:
    """The event of a letter; raises `UsageError` where it was too large to be kept."""
    if letter.record is None:
        raise UsageError(
            f"the record of {letter.keys} was too large to be kept; read the item and handle it by hand"
        )
    return Event(table, letter.shard, json.loads(zlib.decompress(letter.record)))
