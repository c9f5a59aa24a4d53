"""The consistency check as a whole: cuts a database into parts, and goes on after damage; `checked_trees` checks each.

It reads every entry once and keeps none, so it needs little memory for a file of any size. Damage does not stop it: it
becomes one more problem, and the check continues with the next entry or, if a tree cannot be read further, with the
next part.

The work is split into parts, each a range of keys of one tree (`checked_trees` has the checks of each kind):

    survey = Survey(engine)
    for parts in survey.rounds():           what one round finds may need another
        for part in parts:
            survey.add(part, survey.check(part))
    survey.problems()

Here they are checked one after the other. `check_processes` distributes the parts of a file among several processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import chain, pairwise
from typing import Final, NamedTuple, TypeVar

from isotone.engine import backups, damage, streams, views
from isotone.engine.checked_trees import (
    CheckedBackup,
    CheckedEntries,
    CheckedHistory,
    CheckedItems,
    CheckedRecords,
    CheckedTree,
    Suspects,
    TreeFindings,
)
from isotone.engine.engine import SYSTEM_TREES, Engine, is_of_region
from isotone.engine.streams import HASHES, Stream
from isotone.errors import DamagedItem, StorageCorrupt
from isotone.storage.interface import NoSuchTree, OrderedStore, TreePart
from isotone.text_table import pluralized

Progress = Callable[[str, int], None]
"""Called with a table's name and the number of items checked so far."""

T = TypeVar("T")

PART_SIZE: Final = 4096  # pages of a part
_EVERY: Final = 10_000  # entries between two calls of `Step`


class Part(NamedTuple):
    """A range of the keys of a tree. Without a tree, it is the structure of the file.

    With `suspects`, it is read again for the entries in those buckets.
    """

    tree: str | None
    keys: TreePart = TreePart()
    suspects: Suspects | None = None


Step = Callable[[Part, int], object]
"""Called with a part and the number of entries read in it since the last call; also at its end."""

Note = Callable[[Exception | str], object]
"""Called with each problem that is found."""


def check(engine: Engine, progress: Progress | None = None) -> list[str]:
    """The problems, one message each; empty if there are none. Reads every item and every index entry.

    Reads a snapshot, so other processes can continue to write.
    """
    with engine.reading:
        survey = Survey(engine)
        items: Counter[str] = Counter()

        def step(part: Part, count: int) -> None:
            table = survey.table_of_items(part)
            if progress is not None and table is not None:
                items[table] += count
                progress(table, items[table])

        for part in chain.from_iterable(survey.rounds()):
            survey.add(part, survey.check(part, step))
        return survey.problems()


def check_entries(store: OrderedStore) -> list[str]:
    """The problems of a store whose tables are not known: in its structure and in each entry. Reads everything."""
    problems = store.check()

    def note(error: DamagedItem) -> None:
        problems.append(str(error))

    for tree in store.trees():
        try:
            for _ in store.range(tree, b"", None, on_damage=note):
                pass
        except StorageCorrupt as error:
            problems.append(str(error))
    return problems


class Survey:
    """The check of a region of a database, or of some of its tables.

    All methods must be called within one `engine.reading`. Surveys of the same snapshot in several processes have the
    same trees, so one can check a part for another.
    """

    def __init__(self, engine: Engine, tables: Collection[str] = ()) -> None:
        self._engine = engine
        self._chosen = tables
        self._listing: list[str] = []  # problems of the lists of trees
        self._structure: list[str] = []
        self._there = set(engine.store.trees())
        catalog = engine.catalog
        self._tables = [
            each for each in (*catalog, *catalog.creating.values()) if self._has(each.name)
        ]
        self._streams = [each for each in self._listed(streams.known) if self._has(each.table)]
        self._backups = [] if tables else self._listed(backups.known)
        self._views = [] if tables else self._listed(views.opened)
        self._trees = {tree.tree: tree for tree in self._known() if tree.tree in self._there}
        self._trees |= {tree: CheckedTree(tree) for tree in self._others()}
        self._found = {tree: _InTree() for tree in self._trees}

    # The trees

    def _has(self, table: str) -> bool:
        return not self._chosen or table in self._chosen

    def _listed(self, known: Callable[[Engine], Iterable[T]]) -> list[T]:
        """The trees that the database lists in its own tree; none if that list is damaged, which is a problem."""
        try:
            return list(known(self._engine))
        except StorageCorrupt as error:
            self._listing.append(self._finding(error))
            return []

    def _known(self) -> Iterator[CheckedTree]:
        """The trees with known contents, in the order in which their problems are reported."""
        for table in self._tables:
            yield CheckedItems(self._engine, table)
            complete = [index for index in table.indexes if index.filled]
            yield from (CheckedEntries(self._engine, table, index) for index in complete)
            if table.history is not None:
                yield CheckedHistory(table.history, table)
        yield from (CheckedRecords(self._engine, stream) for stream in self._streams)
        yield from (CheckedBackup(backup) for backup in self._backups if backup.view is None)

    def _others(self) -> list[str]:
        """All other trees of the region. The home also has those of regions that cannot be opened."""
        if self._chosen:
            of_tables = {tree for table in self._tables for tree in table.trees}
            return sorted((of_tables & self._there) - self._trees.keys())
        home = self._engine.home
        open_regions = [each for each in home.regions.values() if self._engine is home is not each]
        prefixes = tuple(region.prefix for region in open_regions)
        own = {tree for tree in self._there if not tree.startswith(prefixes)}
        return sorted(own - self._trees.keys())

    def _out_of_place(self) -> Iterator[str]:
        """Trees that are missing, and trees that belong to nothing."""
        known = {tree for table in self._tables for tree in table.trees}
        known.update(stream.tree for stream in self._streams)
        if not self._chosen:
            known.update(SYSTEM_TREES, (backup.tree for backup in self._backups))
            known.update(tree for view in self._views for tree in views.trees(view))
            there = {tree for tree in self._there if not is_of_region(tree)}
            # If a list of trees is damaged, the owner of a tree may be unknown.
            for tree in sorted(there - known) if not self._listing else ():
                yield f"tree {tree} belongs to no table"
        for tree in sorted(known - self._there):
            yield self._missing(tree)

    # The parts

    def rounds(self) -> Iterator[list[Part]]:
        """The parts to check and, after their findings are added, the parts to check again."""
        cut = self._engine.store.parts(list(self._trees), PART_SIZE)
        yield [Part(None), *(Part(tree, keys) for tree in self._trees for keys in cut[tree])]
        torn = [tree for tree, found in self._found.items() if found.is_torn]
        for tree in torn:
            self._found[tree] = _InTree()
        yield [Part(tree) for tree in torn]
        suspects = self._suspects()
        suspected = {*suspects, *self._items_of(suspects)}
        yield [
            Part(tree, keys, suspects)
            for tree in self._trees
            if tree in suspected
            for keys in cut[tree]
        ]

    def _suspects(self) -> dict[str, frozenset[int]]:
        entries = [tree for tree in self._trees.values() if isinstance(tree, CheckedEntries)]
        buckets = {tree.tree: tree.suspects(self._found_in) for tree in entries}
        return {tree: differing for tree, differing in buckets.items() if differing}

    def _items_of(self, indexes: Collection[str]) -> list[str]:
        return [
            table.tree
            for table in self._tables
            if any(index.tree in indexes for index in table.indexes)
        ]

    def table_of_items(self, part: Part) -> str | None:
        """The table whose items a part has, unless it is read again."""
        tree = None if part.tree is None or part.suspects is not None else self._trees[part.tree]
        return tree.table if isinstance(tree, CheckedItems) else None

    def size(self, parts: Iterable[Part]) -> int:
        """How many entries the trees of these parts have, as far as they are counted."""
        try:
            return sum(
                self._engine.counts.of(tree)[0] for tree in {part.tree for part in parts} if tree
            )
        except StorageCorrupt:
            return 0

    @property
    def items(self) -> int:
        """How many items of tables could be read."""
        trees = [tree.tree for tree in self._trees.values() if isinstance(tree, CheckedItems)]
        return sum(self._found[tree].total.items for tree in trees)

    def check(self, part: Part, step: Step) -> TreeFindings:
        """Check one part."""
        found = TreeFindings()

        def note(error: Exception | str) -> None:
            found.problems.append(self._finding(error))

        try:
            if part.tree is None:
                chosen = list(self._trees) if self._chosen else None
                found.problems += map(self._finding, self._engine.store.check_structure(chosen))
            else:
                self._read(part, self._trees[part.tree], found, note, step)
        except StorageCorrupt as error:
            note(error)
            found.is_whole = False
        return found

    def _read(
        self, part: Part, tree: CheckedTree, found: TreeFindings, note: Note, step: Step
    ) -> None:
        entries = self._entries(part, tree.tree, found, note, step)
        if part.suspects is not None:
            problems = tree.look_again(entries, part.suspects)
        else:
            for error in self._engine.store.check_keys(tree.tree, part.keys):
                note(error)
            problems = tree.read(entries, found)
        for problem in problems:
            note(problem)

    def _entries(
        self, part: Part, tree: str, found: TreeFindings, note: Note, step: Step
    ) -> Iterator[tuple[bytes, bytes]]:
        """The sound entries of a part; damage is passed to `note`.

        Stops only at a sound key beyond the part. A damaged key may only seem to be beyond it, and more entries may
        follow.
        """
        low, high, _ = part.keys
        count = 0
        for key, record in self._engine.store.range(tree, low, None, on_damage=note):
            if not count:
                found.first = key
            if high is not None and key >= high:
                found.following = key
                break
            count += 1
            if count % _EVERY == 0:
                step(part, _EVERY)
            yield key, record
        step(part, count % _EVERY)

    # The findings

    def add(self, part: Part, found: TreeFindings) -> None:
        """Add the findings of a part that was checked here or in another process."""
        if part.tree is None:
            self._structure += found.problems
        else:
            self._found[part.tree].add(part, found)

    def problems(self) -> list[str]:
        """All problems, each once. An entry with two wrong checksums is one problem."""
        engine = self._engine
        found = [*self._structure, *self._listing, *self._noted(self._out_of_place())]
        of_trees = {
            tree.tree: [
                *self._found[tree.tree].problems(),
                *self._noted(tree.conclude(self._found_in)),
            ]
            for tree in self._trees.values()
        }
        found += chain.from_iterable(of_trees.values())
        found += self._noted(_of_cached_vectors(engine, self._holder))
        for stream in self._streams:
            where = f"stream {stream.label} of table {stream.table}"
            found += [f"{where}: {problem}" for problem in self._noted(_of_shards(engine, stream))]
        return list(dict.fromkeys(found))

    def _found_in(self, tree: str) -> TreeFindings | None:
        found = self._found.get(tree)
        return None if found is None or not found.total.is_whole else found.total

    def _noted(self, problems: Iterator[str]) -> list[str]:
        """Problems until the file cannot be read any further, which is one more problem."""
        noted: list[str] = []
        try:
            noted.extend(problems)
        except StorageCorrupt as error:
            noted.append(self._finding(error))
        return noted

    def _finding(self, problem: Exception | str) -> str:
        if isinstance(problem, NoSuchTree):
            return self._missing(problem.tree)
        return damage.finding(problem, getattr(self._engine.store, "path", ""))

    def _missing(self, tree: str) -> str:
        return f"{self._holder(tree)} is missing"

    def _holder(self, tree: str) -> str:
        """The table or the index that a tree belongs to."""
        catalog = self._engine.catalog
        return damage.holder(damage.roles([*catalog, *catalog.creating.values()]).get(tree), tree)


class _InTree:
    """The findings in the parts of one tree so far."""

    def __init__(self) -> None:
        self.total = TreeFindings()
        self._ends: dict[bytes, tuple[bytes | None, bytes | None]] = {}
        self._problems: dict[tuple[bool, bytes], list[str]] = {}

    def add(self, part: Part, found: TreeFindings) -> None:
        low, is_again = part.keys.low, part.suspects is not None
        self._problems[is_again, low] = found.problems
        if not is_again:
            self._ends[low] = found.first, found.following
            self.total.add(found)

    def problems(self) -> list[str]:
        return [problem for _, problems in sorted(self._problems.items()) for problem in problems]

    @property
    def is_torn(self) -> bool:
        """Whether a part does not begin where the part before it ended: damage has misled a search in the tree."""
        ends = [ends for _, ends in sorted(self._ends.items())]
        return self.total.is_whole and any(one[1] != other[0] for one, other in pairwise(ends))


def _of_cached_vectors(engine: Engine, holder: Callable[[str], str]) -> Iterator[str]:
    """The problems of cached vectors: each must equal its index entry, and none may be missing."""
    for tree, rows in engine.vectors.kept():
        stored = {
            key: rows.index.vector_of(record)
            for key, record in engine.store.range(tree, rows.low, rows.high)
        }
        if dict(zip(rows.keys, rows.packed(), strict=True)) != stored:
            yield f"{holder(tree)}: the vectors in memory are not those of its entries"


def _of_shards(engine: Engine, stream: Stream) -> Iterator[str]:
    """The problems of a stream: its open shards must cover all hashes once, and match the table's list."""
    opened = streams.open_shards(engine, stream)
    if stream.disabled is not None:
        if opened:
            yield f"it is disabled, but {pluralized(len(opened), 'shard')} {'is' if len(opened) == 1 else 'are'} open"
        return
    bounds = [0, *(shard.high for shard in opened)]
    if bounds != [*(shard.low for shard in opened), HASHES]:
        yield "its open shards do not cover all hashes exactly once"
    table = engine.catalog.tables.get(stream.table)
    recording = None if table is None else table.stream
    expected = streams.recording(stream, opened)
    if recording is None or (recording.shards, recording.lows) != (expected.shards, expected.lows):
        yield "its table lists other shards than the open ones"
    elif recording != expected:
        yield "it is enabled, but its table writes to another stream"
