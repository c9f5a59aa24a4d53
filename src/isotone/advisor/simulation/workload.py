"""A workload: the populations of an application, and the actions that their members call, at which rate.

    load = Workload("songs", tables=[songs])
    listeners = load.population("listener", 10_000_000, activity=0.7)
    titles = load.population("song", 2_000_000, popularity=1.0)

    @load.action(by=listeners, per_day=40)
    def play(call):
        call.store.update(Song.key(call.draw(titles).id), Song.plays + 1)

An action runs the application's own code against a small database. Its rate and the sizes of the populations are
those of the real application.
"""

from __future__ import annotations

import bisect
import math
import random
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from itertools import accumulate
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

from isotone.clock import ManualClock
from isotone.errors import UsageError
from isotone.model import Store

F = TypeVar("F", bound=Callable[..., object])

_SECONDS: Final = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_EXACT: Final = 1000  # ranks whose weights are added exactly
_LETTERS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_MIXER: Final = 0x9E3779B1  # odd, so that different numbers stay different
_ID_BITS: Final = 40

EVENING: Final = (
    *(0.55, 0.40, 0.30, 0.25, 0.25, 0.35, 0.55, 0.75, 0.90, 1.00, 1.05, 1.10),
    *(1.15, 1.15, 1.15, 1.15, 1.20, 1.30, 1.45, 1.65, 1.80, 1.75, 1.50, 1.10),
)
"""The load of each hour of the day, relative to the average: low at night, highest in the evening."""


class Ranks:
    """The shares of members 1 to `size`: the share of member k is proportional to 1 / k ** exponent."""

    __slots__ = ("_exponent", "_head", "_total", "size")

    def __init__(self, size: int, exponent: float) -> None:
        self.size: int = size
        self._exponent = exponent
        weights = (rank**-exponent for rank in range(1, min(size, _EXACT) + 1))
        self._head = list(accumulate(weights))
        self._total = self._below(size)

    def share(self, rank: int) -> float:
        """One member's share of the whole."""
        return float(rank**-self._exponent / self._total)

    def pick(self, chance: random.Random) -> int:
        """A random rank, according to the shares."""
        wanted = chance.random() * self._total
        if wanted <= self._head[-1]:
            return bisect.bisect_left(self._head, wanted) + 1
        low, high = len(self._head), self.size
        while low < high:
            middle = (low + high) // 2
            if self._below(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _below(self, rank: int) -> float:
        """The sum of the weights of ranks 1 to `rank`; approximated by an integral after the first ones."""
        if rank <= len(self._head):
            return float(self._head[rank - 1])
        start, end, s = len(self._head) + 0.5, rank + 0.5, self._exponent
        if s == 1.0:
            return float(self._head[-1] + math.log(end / start))
        return float(self._head[-1] + (end ** (1 - s) - start ** (1 - s)) / (1 - s))


@dataclass(frozen=True, slots=True)
class PopulationMember:
    """A member of a population. Number 1 is the most active and popular; `id` is a text in no order."""

    population: str
    number: int
    id: str


class Population:
    """The users of an application, or the things that they use: see `Workload.population`."""

    def __init__(self, name: str, size: int, activity: float, popularity: float) -> None:
        self.name = name
        self.size = size
        self.activity = activity
        self.popularity = popularity
        self.joins: Callable[[WorkloadCall], object] | None = None

    def starts_with(self, function: F) -> F:
        """Decorate the function that writes the initial items of a member, `call.member`."""
        self.joins = function
        return function

    def member(self, number: int) -> PopulationMember:
        """The member with a number."""
        mixed = number * _MIXER % (1 << _ID_BITS)
        letters = "".join(_LETTERS[mixed >> at & 31] for at in range(_ID_BITS - 5, -1, -5))
        return PopulationMember(self.name, number, f"{self.name}-{letters}")


@dataclass(frozen=True, slots=True)
class WorkloadAction:
    """A function that is called at a rate per second: by each member of `by`, or by the application itself (None)."""

    name: str
    run: Callable[[WorkloadCall], object]
    by: Population | None
    rate: float

    def rate_in_all(self, size: float | None = None) -> float:
        """The average calls a second, for a population of its own size or another one."""
        if self.by is None:
            return self.rate
        return self.rate * (self.by.size if size is None else size)


class WorkloadCall:
    """The argument of a workload's functions: the store, the calling member, and random choices.

    `world` is what the function under `@load.prepare` returned. `chance` is a `random.Random`, the same in each
    simulation with the same seed. `clock` shows the simulated time.
    """

    __slots__ = ("_draw", "_member", "chance", "clock", "store", "world")

    def __init__(
        self,
        store: Store,
        world: Any,
        member: PopulationMember | None,
        chance: random.Random,
        clock: ManualClock,
        draw: Callable[[Population | str], PopulationMember],
    ) -> None:
        self.store: Store = store
        self.world: Any = world
        self.chance: random.Random = chance
        self.clock: ManualClock = clock
        self._member = member
        self._draw = draw

    @property
    def member(self) -> PopulationMember:
        """The member that calls."""
        if self._member is None:
            raise UsageError("this action has no member: declare whose it is, by=…")
        return self._member

    def draw(self, population: Population | str) -> PopulationMember:
        """A random member of a population (or of its name); popular members are drawn more often."""
        return self._draw(population)


@dataclass(eq=False)
class Workload:
    """The populations and actions of an application.

    `tables` are created first. `hours`: the relative load of each hour of the day.
    """

    name: str
    tables: Sequence[Any] = ()
    hours: Sequence[float] = EVENING
    populations: dict[str, Population] = field(default_factory=dict, init=False)
    actions: dict[str, WorkloadAction] = field(default_factory=dict, init=False)
    prepares: Callable[[Store], Any] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if len(self.hours) != 24 or min(self.hours) < 0 or not any(self.hours):
            raise UsageError("hours= needs 24 numbers, the load of each hour of the day")

    @property
    def day(self) -> list[float]:
        """The load of each hour, relative to the average."""
        average = sum(self.hours) / 24
        return [hour / average for hour in self.hours]

    def population(
        self, name: str, size: int, *, activity: float = 0.0, popularity: float = 0.0
    ) -> Population:
        """Declare a population.

        `activity` and `popularity` are exponents: with 0 all members act, or are drawn, equally often; with 1 the first
        member k times as often as the k-th (Zipf's law).
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"population {name!r}: a name has letters, digits and _")
        if name in self.populations:
            raise UsageError(f"population {name!r} is declared twice")
        if type(size) is not int or size < 1:
            raise UsageError(f"population {name!r}: size {size!r} is not a number of members")
        for value in (activity, popularity):
            if not 0 <= value <= 3:
                raise UsageError(f"population {name!r}: exponent {value!r} is not in 0 to 3")
        made = self.populations[name] = Population(name, size, activity, popularity)
        return made

    def prepare(self, function: F) -> F:
        """Decorate the function that gets the empty store first; its result is `call.world`."""
        self.prepares = function
        return function

    def action(
        self,
        *,
        by: Population | None = None,
        name: str | None = None,
        per_second: float | None = None,
        per_minute: float | None = None,
        per_hour: float | None = None,
        per_day: float | None = None,
    ) -> Callable[[F], F]:
        """Decorate a function that is called at this rate: by each member of `by`, or without it in total."""
        rate = _rate({"second": per_second, "minute": per_minute, "hour": per_hour, "day": per_day})

        def declare(function: F) -> F:
            self._add(name or str(getattr(function, "__name__", "action")), function, by, rate)
            return function

        return declare

    def _add(
        self, name: str, run: Callable[[WorkloadCall], object], by: Population | None, rate: float
    ) -> None:
        if name in self.actions:
            raise UsageError(f"action {name!r} is declared twice; give one of them name=…")
        if by is not None and self.populations.get(by.name) is not by:
            raise UsageError(f"action {name!r}: {by.name!r} is a population of another workload")
        self.actions[name] = WorkloadAction(name, run, by, rate)

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> Workload:
        """Read a workload from a TOML file that names functions of a module; see docs/simulation.md."""
        try:
            found = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            why = getattr(error, "strerror", None) or error
            raise UsageError(f"the workload in {path} cannot be read: {why}") from None
        return _WorkloadFile(str(path), found).workload()


def _rate(given: Mapping[str, float | None]) -> float:
    """Calls a second."""
    rates = {unit: value for unit, value in given.items() if value is not None}
    if len(rates) != 1:
        raise UsageError("an action needs one of per_second=, per_minute=, per_hour=, per_day=")
    ((unit, value),) = rates.items()
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise UsageError(f"per_{unit}={value!r} is not a rate; write a number above 0")
    return value / _SECONDS[unit]


class _WorkloadFile:
    """A workload in TOML: tables `populations` and `actions`, functions as `module:name`."""

    def __init__(self, path: str, found: dict[str, Any]) -> None:
        self._path = path
        self._found = found

    def workload(self) -> Workload:
        found = self._taken(
            "", self._found, ("name", "tables", "hours", "prepare", "populations", "actions")
        )
        made = Workload(
            found.get("name", Path(self._path).stem),
            tables=[self._object(each) for each in found.get("tables", ())],
            hours=found.get("hours", EVENING),
        )
        if "prepare" in found:
            made.prepare(self._object(found["prepare"]))
        for name, options in found.get("populations", {}).items():
            taken = self._taken(
                f"populations.{name}", options, ("size", "activity", "popularity", "starts_with")
            )
            joins = taken.pop("starts_with", None)
            size = taken.pop("size", None)
            population = made.population(name, size, **taken)
            if joins is not None:
                population.starts_with(self._object(joins))
        for name, options in found.get("actions", {}).items():
            self._action(made, name, options)
        return made

    def _action(self, made: Workload, name: str, options: dict[str, Any]) -> None:
        rates = [f"per_{unit}" for unit in _SECONDS]
        taken = self._taken(f"actions.{name}", options, ("call", "by", *rates))
        if "call" not in taken:
            raise UsageError(f"{self._path}: actions.{name} needs call = 'module:function'")
        by = taken.pop("by", None)
        if by is not None and by not in made.populations:
            raise UsageError(f"{self._path}: actions.{name}: there is no population {by!r}")
        function = self._object(taken.pop("call"))
        population = None if by is None else made.populations[by]
        made.action(by=population, name=name, **taken)(function)

    def _taken(self, where: str, found: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
        if unknown := sorted(found.keys() - {*names}):
            place = f"{where}.{unknown[0]}" if where else unknown[0]
            raise UsageError(f"{self._path}: {place} is unknown; there are {', '.join(names)}")
        return dict(found)

    def _object(self, text: str) -> Any:
        module, _, name = text.partition(":")
        try:
            return getattr(import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise UsageError(f"{self._path}: {text!r} is not module:name: {error}") from None
