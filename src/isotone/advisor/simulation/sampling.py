"""Runs a workload against a small database in memory, and summarizes the touched keys as a footprint of each action.

A footprint says how many units a call consumes in each place (a table or a global index), and for whose keys:

    own        the keys of the member who calls, such as its profile
    drawn      the keys of a member that it draws, such as the song that is played
    shared     one key that many members touch, such as a leaderboard: the one that gets hot
    spread     keys that nobody touches again, such as a new order's, and scans

The first two are recognised by the member's id in the key, or because all calls that touched the key have one member in
common. If a call touches a population from which it drew no member, such as the artist of the song that it drew, the
key is counted for the member that it drew.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

from isotone.advisor.simulation.touches import PartitionSpace, PartitionTouch, TouchRecorder
from isotone.advisor.simulation.workload import (
    Population,
    PopulationMember,
    Ranks,
    Workload,
    WorkloadAction,
    WorkloadCall,
)
from isotone.backends.opening import open_backend
from isotone.clock import ManualClock
from isotone.errors import UsageError
from isotone.model import Store, connect
from isotone.tables.description import read_description, table_names

Kind = Literal["own", "drawn", "shared", "spread"]

_WINDOW: Final = 60.0  # seconds of simulated time
# the start of the window: 20:00 UTC of some day
_PEAK: Final = 20 * 3600 + 1_780_000_000 // 86400 * 86400
_LEAST_CALLS: Final = 200  # of each action, in the run with all members of the sample
_CALLS_A_MEMBER: Final = 2.0
# The most frequent action gets at most so many times the calls of the rarest.
_MAX_RATIO: Final = 2.0
_SMALLEST: Final = 10  # members of a population, if it has as many
_FORMS: Final = 20  # key forms of a population's members in one place; more are not told apart
_ENOUGH: Final = 600  # touches of a key that make its share of the calls reliable
# of the window; a key that is touched for less of it is used for part of the time
_SPAN: Final = 0.6


class Owner(NamedTuple):
    """The owner of a touched key. `form` is the key's text, with `{song}` in place of a member's id."""

    kind: Kind
    population: str = ""
    form: str = ""

    def label(self, number: int = 0) -> str:
        """The key of one member: `SONG#{song 1}`."""
        if not self.population:
            return self.form
        return self.form.replace(f"{{{self.population}}}", f"{{{self.population} {number}}}")


@dataclass(slots=True)
class CallUnits:
    """Units per call of an action."""

    reads: float = 0.0
    writes: float = 0.0

    def add(self, reads: float, writes: float) -> None:
        self.reads += reads
        self.writes += writes


@dataclass(slots=True)
class Touches:
    """How often a key was touched, and the units that this consumed per call of an action."""

    units: CallUnits = field(default_factory=CallUnits)
    number: int = 0


@dataclass(slots=True)
class Footprint:
    """The average units of a call of an action, and the growth of its items in bytes."""

    units: dict[tuple[PartitionSpace, Owner], CallUnits] = field(default_factory=dict)
    grown: dict[str, float] = field(default_factory=dict)
    in_use: dict[tuple[PartitionSpace, Owner], float] = field(default_factory=dict)
    """The share of the time in which a shared key is used, if not always: the key may contain the minute."""

    def of(self, place: PartitionSpace) -> CallUnits:
        """The units in one place."""
        total = CallUnits()
        for (where, _), units in self.units.items():
            if where == place:
                total.add(units.reads, units.writes)
        return total


@dataclass(slots=True)
class WorkloadSample:
    """The result of running a workload with some of its members."""

    largest: int
    """The members of the largest population; without populations, a number that the calls are proportional to."""
    members: dict[str, int]
    calls: dict[str, int]
    footprints: dict[str, Footprint]
    stored: dict[tuple[str, PartitionSpace], float]
    """The bytes in each place that a member of a population starts with."""
    index_bytes: dict[PartitionSpace, float]
    """The bytes in each index per byte in its table, at the end."""
    hottest: dict[tuple[PartitionSpace, str, str], Touches]
    """The units per call by place, label of the key, and action; only for keys that are touched often."""


class _Touched(NamedTuple):
    """A touch, with its call, action and time."""

    call: int
    action: str
    at: float
    touch: PartitionTouch


def sizes(workload: Workload, members: int) -> dict[str, int]:
    """The size of each population if the largest has `members` members."""
    largest = max((each.size for each in workload.populations.values()), default=1)
    scale = min(1.0, members / largest)
    return {
        name: min(each.size, max(_SMALLEST, round(each.size * scale)))
        for name, each in workload.populations.items()
    }


def calls_a_member(workload: Workload, members: int) -> float:
    """The calls of each action per member of the largest population that are needed for averages."""
    counts = sizes(workload, members)
    return max(_CALLS_A_MEMBER, _LEAST_CALLS / max(counts.values(), default=members))


class Run:
    """A run of a workload with `members` members of its largest population, the others in proportion.

    `calls` is the number of calls of each action per member. It must be equal in runs that are compared, because the
    cost of a call may depend on earlier calls. `steps` is the number of members that join plus the number of calls.
    """

    def __init__(
        self, workload: Workload, members: int, calls: float, *, seed: int | str = 0
    ) -> None:
        self._workload = workload
        self._counts = sizes(workload, members)
        self._largest = max(self._counts.values(), default=max(members, _SMALLEST))
        self._calls_a_member = calls
        self._calls = self._planned()
        self._progress: Callable[[int], object] = lambda done: None
        joining = (name for name, each in workload.populations.items() if each.joins is not None)
        self._joining = sum(self._counts[name] for name in joining)
        self.steps: int = self._joining + sum(self._calls.values())
        self.title: str = f"{self._largest:,} members"
        self._chance = random.Random(seed)
        self._clock = ManualClock(_PEAK)
        self._acting = self._ranks("activity")
        self._reached = self._ranks("popularity")
        self._drawn: list[PopulationMember] = []
        self._touched: list[_Touched] = []
        self._members: list[
            tuple[PopulationMember | None, list[PopulationMember]]
        ] = []  # of each call
        self._world: Any = None

    def _ranks(self, of: str) -> dict[str, Ranks]:
        return {
            name: Ranks(self._counts[name], getattr(each, of))
            for name, each in self._workload.populations.items()
        }

    def sample(self, progress: Callable[[int], object]) -> WorkloadSample:
        """Create the members, run the calls, and summarize; `progress` is called with the number of steps done."""
        self._progress = progress
        database, close = open_backend(":memory:", clock=self._clock)
        recorder = TouchRecorder(database)
        store = connect(recorder, clock=self._clock, engine="dynamodb", report=None)
        with ExitStack() as stack:
            stack.callback(close)
            self._store: Store = stack.enter_context(store)
            self._prepare()
            stored = self._join(recorder)
            self._run_calls(recorder)
            at_end = _sizes(database)
        everybody = [
            population.member(number)
            for name, population in self._workload.populations.items()
            for number in range(1, self._counts[name] + 1)
        ]
        condensed = _Condensed(self._touched, self._members, self._calls, everybody)
        base = {place.table: size for place, size in at_end.items() if place.index is None}
        ratio = {
            place: size / base[place.table] if base[place.table] else 1.0
            for place, size in at_end.items()
        }
        return WorkloadSample(
            *(self._largest, self._counts, self._calls, condensed.footprints(), stored, ratio),
            condensed.hottest(),
        )

    def _prepare(self) -> None:
        if self._workload.tables:
            self._store.create_tables(*self._workload.tables)
        if self._workload.prepares is not None:
            self._world = self._workload.prepares(self._store)

    def _join(self, recorder: TouchRecorder) -> dict[tuple[str, PartitionSpace], float]:
        """Create all members; returns what a member of each population stores."""
        stored: dict[tuple[str, PartitionSpace], float] = {}
        before = _sizes(recorder)
        joined = 0
        for name, population in self._workload.populations.items():
            if population.joins is None:
                continue
            number = self._counts[name]
            for each in range(1, number + 1):
                population.joins(self._call(population.member(each)))
                joined += 1
                self._progress(joined)
            after = _sizes(recorder)
            for place, size in after.items():
                stored[name, place] = (size - before.get(place, 0.0)) / number
            before = after
        recorder.take()
        return stored

    def _call(self, member: PopulationMember | None) -> WorkloadCall:
        self._drawn = []
        return WorkloadCall(self._store, self._world, member, self._chance, self._clock, self._draw)

    def _draw(self, population: Population | str) -> PopulationMember:
        name = population if isinstance(population, str) else population.name
        if name not in self._reached:
            raise UsageError(f"there is no population {name!r} in {self._workload.name!r}")
        number = self._reached[name].pick(self._chance)
        member = self._workload.populations[name].member(number)
        self._drawn.append(member)
        return member

    def _planned(self) -> dict[str, int]:
        """The number of calls of each action: enough for averages, and more for frequent actions."""
        rates = {name: each.rate_in_all() for name, each in self._workload.actions.items()}
        most = max(rates.values(), default=1.0)
        least = self._calls_a_member * self._largest
        return {
            name: round(least * max(1.0, _MAX_RATIO * rate / most)) for name, rate in rates.items()
        }

    def _run_calls(self, recorder: TouchRecorder) -> None:
        order = [name for name, number in self._calls.items() for _ in range(number)]
        self._chance.shuffle(order)
        step = _WINDOW / max(len(order), 1)
        for number, name in enumerate(order):
            action = self._workload.actions[name]
            member = self._who(action)
            action.run(self._call(member))
            self._members.append((member, self._drawn))
            at = number * step
            self._touched += [_Touched(number, name, at, each) for each in recorder.take()]
            self._clock.advance(step)
            self._progress(self._joining + number + 1)

    def _who(self, action: WorkloadAction) -> PopulationMember | None:
        if action.by is None:
            return None
        return action.by.member(self._acting[action.by.name].pick(self._chance))


def _sizes(backend: Any) -> dict[PartitionSpace, float]:
    """The bytes of each table and global index."""
    found: dict[PartitionSpace, float] = {}
    for name in table_names(backend):
        table = read_description(backend, name)
        local = sum(index.size for index in table.indexes if index.kind == "local")
        found[PartitionSpace(name)] = float(table.size + local)
        for index in table.indexes:
            if index.kind == "global":
                found[PartitionSpace(name, index.name)] = float(index.size)
    return found


class _Condensed:
    """Summarizes touches into the footprint of each action."""

    def __init__(
        self,
        touched: list[_Touched],
        members: list[tuple[PopulationMember | None, list[PopulationMember]]],
        calls: dict[str, int],
        everybody: list[PopulationMember],
    ) -> None:
        self._touched = touched
        self._members = members
        self._calls = calls
        self._everybody = {member.id: member for member in everybody}
        names = sorted({re.escape(member.population) for member in self._everybody.values()})
        self._ids = re.compile(f"(?:{'|'.join(names) or '(?!)'})-[0-9a-z]{{8}}")
        self._owners = self._found_owners()
        self._forms = self._found_forms()

    def footprints(self) -> dict[str, Footprint]:
        """The footprint of each action."""
        shares = self._shares_of_time()
        made = {name: Footprint() for name in self._calls}
        for call, action, _, touch in self._touched:
            number = self._calls[action]
            footprint = made[action]
            owner = self._owner_of(call, touch)
            units = footprint.units.setdefault((touch.place, owner), CallUnits())
            units.add(touch.reads / number, touch.writes / number)
            if owner.kind == "shared" and (touch.place, owner.form) in shares:
                footprint.in_use[touch.place, owner] = shares[touch.place, owner.form]
            table = touch.place.table
            footprint.grown[table] = footprint.grown.get(table, 0.0) + touch.grown / number
        return made

    def hottest(self) -> dict[tuple[PartitionSpace, str, str], Touches]:
        """The keys that were touched often, with their measured units."""
        found: dict[tuple[PartitionSpace, str, str], Touches] = defaultdict(Touches)
        for call, action, _, touch in self._touched:
            owner = self._owner_of(call, touch)
            if touch.key is None or owner.kind == "spread":
                continue
            member = self._reached_by(call, self._owners[touch.place, touch.key])
            label = owner.label(member.number if isinstance(member, PopulationMember) else 0)
            number = self._calls[action]
            measured = found[touch.place, label, action]
            measured.units.add(touch.reads / number, touch.writes / number)
            measured.number += 1
        return {key: each for key, each in found.items() if each.number >= _ENOUGH}

    def _owner_of(self, call: int, touch: PartitionTouch) -> Owner:
        """The owner of the key that this call touched."""
        if touch.key is None:
            return Owner("spread")
        found = self._owners[touch.place, touch.key]
        if not isinstance(found, PopulationMember):
            return Owner(found, "", touch.key if found == "shared" else "")
        form = self._forms[touch.place, touch.key]
        member = self._reached_by(call, found)
        if member != found:
            of = f"{{{found.population} of {{{member.population}}}}}"
            form = form.replace(f"{{{found.population}}}", of)
        kind: Kind = "own" if member == self._members[call][0] else "drawn"
        return Owner(kind, member.population, form)

    def _reached_by(self, call: int, owner: Any) -> Any:
        """The owner of a key, or the drawn member through which a call reached it, such as a song for its artist."""
        members = self._of_call(call)
        if not isinstance(owner, PopulationMember) or not members:
            return owner
        populations = {each.population for each in members}
        return owner if owner.population in populations else members[-1]

    def _found_owners(self) -> dict[tuple[PartitionSpace, str], PopulationMember | Kind]:
        """The owner of each key: a member, "shared", or "spread" for keys of one call."""
        calls: dict[tuple[PartitionSpace, str], set[int]] = defaultdict(set)
        for each in self._touched:
            if each.touch.key is not None:
                calls[each.touch.place, each.touch.key].add(each.call)
        return {key: self._owner(key[1], numbers) for key, numbers in calls.items()}

    def _found_forms(self) -> dict[tuple[PartitionSpace, str], str]:
        """The form of each member's key, without its id; one form for all if there are too many to tell apart."""
        forms: dict[tuple[PartitionSpace, str], str] = {}
        of_population: dict[tuple[PartitionSpace, str], set[str]] = defaultdict(set)
        for (place, text), owner in self._owners.items():
            if isinstance(owner, PopulationMember):
                name = f"{{{owner.population}}}"
                form = text.replace(owner.id, name) if owner.id in text else name
                forms[place, text] = form
                of_population[place, owner.population].add(form)
        for place, text in forms:
            owner = self._owners[place, text]
            if (
                isinstance(owner, PopulationMember)
                and len(of_population[place, owner.population]) > _FORMS
            ):
                forms[place, text] = f"{{{owner.population}}}"
        return forms

    def _owner(self, text: str, calls: set[int]) -> PopulationMember | Kind:
        if named := self._named(text):
            return named
        if len(calls) == 1:
            return "spread"
        first, *others = map(self._of_call, sorted(calls))
        common = [each for each in first if all(each in members for members in others)]
        if not common:
            return "shared"
        acting = {self._members[number][0] for number in calls}
        return next((each for each in common if each in acting), common[0])

    def _named(self, text: str) -> PopulationMember | None:
        """The first member whose id is in a key's text."""
        found = (self._everybody.get(each) for each in self._ids.findall(text))
        return next(filter(None, found), None)

    def _of_call(self, number: int) -> list[PopulationMember]:
        acting, drawn = self._members[number]
        return drawn if acting is None else [acting, *drawn]

    def _shares_of_time(self) -> dict[tuple[PartitionSpace, str], float]:
        """The share of the time in which each shared key is used; a key may contain the minute."""
        times: dict[tuple[PartitionSpace, str], list[float]] = defaultdict(list)
        for each in self._touched:
            key = (each.touch.place, each.touch.key or "")
            if self._owners.get(key) == "shared":
                times[key].append(each.at)
        return {key: share for key, at in times.items() if (share := _share(at)) < _SPAN}


def _share(times: list[float]) -> float:
    """The share of the window between the first and the last time; 1 if there are too few to tell."""
    return max((times[-1] - times[0]) / _WINDOW, 1 / 20) if len(times) >= 20 else 1.0
