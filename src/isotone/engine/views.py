"""Views: read a table as of a moment (PITR, backups, exports), in slices, while it is being written.

    view_id = views.open_table(engine, table, owner, moment)           the table as of `moment`
    view_id = views.open_changes(engine, table, owner, since, until)   what changed after `since`, until `until`
    view_id = views.open_tree(engine, tree, owner)                     a tree that nobody writes to: a backup

A view is a job: it is stored, so any process that has the file open can continue it after a `kill -9`. Its user calls,
in one transaction after another,

    with engine.writing:
        page = views.read(engine, view_id, 500)       # or read_changes
        ...                                        # store what was read, in the same transaction
        if page.last:
            views.close(engine, view_id)

until a page is the last. A page may be empty without being the last. The view's position is saved in the transaction:
what is stored in the same transaction is stored exactly once, and what is written elsewhere (a file) may be written
again after a crash. Pages come in the key order of items.

How it works: a table's history (`history`) has the old record of every change. Before each page, the changes that are
not yet in the view's *overlay* are added to it: for each key, the record that its first change after the moment
replaced. The page is then a merge of the present table with the overlay, which wins. Only changed items are copied. A
view starts the history of a table that has none, and pins the changes that it needs; closing the view ends both.
"""

from __future__ import annotations

from itertools import islice
from typing import Final, NamedTuple

import msgspec

from isotone.engine import history
from isotone.engine.engine import VIEWS, Engine
from isotone.engine.table_indexes import StoredTable
from isotone.errors import UsageError

CATCH_UP: Final = 2000  # changes added to an overlay before a page
_ABSENT: Final = b""  # an overlay's record for a missing item


class TableView(msgspec.Struct, array_like=True):
    """An open view. `id` is also the name of its overlay; `log` is the tree of its table's history.

    A view of a tree has no `log`; only a view of changes has `since`.
    """

    id: str
    owner: str
    source: str
    log: str | None = None
    position: bytes = history.BEGINNING
    since: bytes | None = None
    applied: bytes = history.BEGINNING
    reached: bytes = b""

    @property
    def changed(self) -> str:
        """In a view of changes, the tree of the changed keys."""
        return self.id + "_changed"


class ViewPage(NamedTuple):
    """Items with their keys, in order. `last` is True if no page follows."""

    records: list[tuple[bytes, bytes]]
    last: bool


class ViewChange(NamedTuple):
    """An item that changed between two moments. It occurs once, however often it was written.

    `old` is its record at the first moment, `new` at the second; None if it did not exist. `any` is one of its records,
    for its key attributes even if `old` and `new` are None. `time` (ms) is that of the last change up to the second
    moment.
    """

    key: bytes
    old: bytes | None
    new: bytes | None
    any: bytes
    time: int


class ViewChanges(NamedTuple):
    """Changes in key order. `last` is True if no page follows."""

    changes: list[ViewChange]
    last: bool


class _Changed(msgspec.Struct, array_like=True):
    """An entry of `TableView.changed`."""

    time: int
    old: bytes
    any: bytes


_encode = msgspec.msgpack.Encoder().encode
_view = msgspec.msgpack.Decoder(TableView).decode
_changed = msgspec.msgpack.Decoder(_Changed).decode


# Open and close


def open_table(engine: Engine, table: StoredTable, owner: str, moment: int | None = None) -> str:
    """Open a view of a table as of a moment (ms), or as of now; returns its id.

    The caller is in a transaction, and has checked that the table's history reaches back to the moment
    (`history.earliest`). `owner` is the job that continues the view (see `owned`).
    """
    tree = _history_of(engine, table)
    position = _position(engine, tree, moment)
    view = TableView(_new_id(engine), owner, table.tree, tree, position, applied=position)
    return _open(engine, view)


def open_changes(engine: Engine, table: StoredTable, owner: str, since: int, until: int) -> str:
    """Open a view of the items that changed after `since` and not after `until` (ms); otherwise like `open_table`."""
    tree = _history_of(engine, table)
    start, end = _position(engine, tree, since), _position(engine, tree, until)
    history.end_moment(engine, tree, until + 1)  # where the next period begins
    view = TableView(_new_id(engine), owner, table.tree, tree, end, start, applied=start)
    engine.store.create_tree(view.changed)
    return _open(engine, view)


def open_tree(engine: Engine, tree: str, owner: str) -> str:
    """Open a view of a tree of items that does not change while the view is open."""
    return _open(engine, TableView(_new_id(engine), owner, tree))


def close(engine: Engine, view_id: str) -> None:
    """End a view, whether or not it was read to its end."""
    ended = _find(engine, view_id)
    engine.store.delete(VIEWS, _key(view_id))
    if ended.log is None:
        return
    engine.store.drop_tree(ended.id)
    if ended.since is not None:
        engine.store.drop_tree(ended.changed)
    history.unpin(engine, ended.id, ended.log)
    table = next((table for table in engine.catalog if table.history == ended.log), None)
    if table is not None:
        history.end_if_unused(engine, table)


def opened(engine: Engine) -> list[TableView]:
    """All open views."""
    return [_view(stored) for _, stored in engine.store.range(VIEWS, b"v", b"w")]


def owned(engine: Engine, kind: str) -> TableView | None:
    """The oldest view whose owner has this kind: `backup` is the kind of the owner `backup:1`."""
    return next((view for view in opened(engine) if view.owner.startswith(f"{kind}:")), None)


def is_read(engine: Engine, tree: str) -> bool:
    """Whether any view reads a tree of items, so that it must not be dropped."""
    return any(view.source == tree for view in opened(engine))


def trees(view: TableView) -> list[str]:
    """The trees that belong to a view."""
    if view.log is None:
        return []
    return [view.id] if view.since is None else [view.id, view.changed]


def _open(engine: Engine, view: TableView) -> str:
    if view.log is not None:
        engine.store.create_tree(view.id)
        history.pin(engine, view.id, view.log, view.applied)
    _save(engine, view)
    return view.id


def _history_of(engine: Engine, table: StoredTable) -> str:
    schema = history.begin(engine, table.schema)
    if schema is not table.schema:
        engine.catalog.save(schema)
    assert schema.history is not None
    return schema.history


def _position(engine: Engine, tree: str, moment: int | None) -> bytes:
    """The position of a moment, or of now: all later changes come after it, even if the clock is set back.

    Those that are still to come in its millisecond do, too: they get higher sequence numbers.
    """
    reached = history.milliseconds(engine.clock.now()) if moment is None else moment
    history.end_moment(engine, tree, reached)
    latest = engine.counts.of(tree)[1]
    return history.position_at(engine, tree, latest if moment is None else moment)


def _new_id(engine: Engine) -> str:
    return engine.catalog.new_tree("v")


# Read


def read(engine: Engine, view_id: str, most: int) -> ViewPage:
    """The next items of a view of a table or a tree. Reads at most `most` items and 2,000 changes."""
    state = _find(engine, view_id)
    if state.since is not None:
        raise UsageError(f"{view_id} is a view of changes; read it with read_changes")
    if not _caught_up(engine, state):
        _save(engine, state)
        return ViewPage([], last=False)
    records, last = _merged(engine, state, most)
    _save(engine, state)
    return ViewPage(records, last)


def read_changes(engine: Engine, view_id: str, most: int) -> ViewChanges:
    """The next changes of a view of changes; costs as `read` does."""
    state = _find(engine, view_id)
    if state.since is None:
        raise UsageError(f"{view_id} is not a view of changes; read it with read")
    if not _caught_up(engine, state):
        _save(engine, state)
        return ViewChanges([], last=False)
    entries = list(islice(engine.store.range(state.changed, state.reached, None), most))
    if entries:
        state.reached = entries[-1][0] + b"\x00"
    _save(engine, state)
    changes = [_resolved(engine, state, key, _changed(value)) for key, value in entries]
    return ViewChanges(changes, last=len(entries) < most)


def _resolved(engine: Engine, view: TableView, key: bytes, changed: _Changed) -> ViewChange:
    new = engine.store.get(view.id, key)
    if new is None:
        new = engine.store.get(view.source, key)
    return ViewChange(
        key, changed.old or None, new or None, changed.old or new or changed.any, changed.time
    )


def _merged(engine: Engine, view: TableView, most: int) -> tuple[list[tuple[bytes, bytes]], bool]:
    """The next items, merged from the source and the overlay; advances the view."""
    entries = list(islice(engine.store.range(view.source, view.reached, None), most))
    if view.log is not None:
        overlay = dict(islice(engine.store.range(view.id, view.reached, None), most))
        # Each of the two has `most` entries, so the first `most` of both are complete.
        entries = sorted({**dict(entries), **overlay}.items())[:most]
    if entries:
        view.reached = entries[-1][0] + b"\x00"
    return [entry for entry in entries if entry[1] != _ABSENT], len(entries) < most


def _caught_up(engine: Engine, view: TableView) -> bool:
    """Add the changes since the last page to the overlay; False if there are more than one page may add."""
    if view.log is None:
        return True
    changes = history.changes_after(engine, view.log, view.applied, CATCH_UP)
    for change in changes:
        if view.since is not None and change.position <= view.position:
            _note(engine, view, change)
        elif _is_wanted(engine, view, change.key):
            engine.store.put(view.id, change.key, change.old)
    if changes:
        view.applied = changes[-1].position
        history.pin(engine, view.id, view.log, view.applied)
    return len(changes) < CATCH_UP


def _is_wanted(engine: Engine, view: TableView, key: bytes) -> bool:
    """Whether a change is the first one of its key, and the item has not been read yet."""
    if key < view.reached or engine.store.get(view.id, key) is not None:
        return False
    return view.since is None or engine.store.get(view.changed, key) is not None


def _note(engine: Engine, view: TableView, change: history.ReplacedRecord) -> None:
    """Record a change between the two moments."""
    stored = engine.store.get(view.changed, change.key)
    time = history.time_of(change.position)
    noted = _Changed(time, change.old, change.old) if stored is None else _changed(stored)
    noted.time = time
    noted.any = noted.any or change.old
    engine.store.put(view.changed, change.key, _encode(noted))


def _find(engine: Engine, view_id: str) -> TableView:
    stored = engine.store.get(VIEWS, _key(view_id))
    if stored is None:
        raise UsageError(f"there is no open view {view_id}; it was closed, or is of another file")
    return _view(stored)


def _save(engine: Engine, view: TableView) -> None:
    engine.store.put(VIEWS, _key(view.id), _encode(view))


def _key(view_id: str) -> bytes:
    # This makes views sort in the order in which they were opened.
    return b"v" + int(view_id[1:]).to_bytes(8, "big")
