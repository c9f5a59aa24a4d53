"""What a sheet is asked for: how large tables are and how often each pattern is called, also as people type it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from isotone.design.sample_plan import SampleRequest, Several
from isotone.design.sheet import DEFAULT_PAGE, PatternSheet, sheet_of
from isotone.errors import UsageError
from isotone.model import Entity, Table
from isotone.prices import US_EAST_1, Prices

_FACTORS: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}


def amount(text: str) -> float:
    """A number as people write it: `50`, `2_500`, `0.5`, `10k` or `1M`; raises `UsageError` for anything else."""
    digits, factor = (text[:-1], _FACTORS[text[-1]]) if text[-1:] in _FACTORS else (text, 1)
    try:
        value = float(digits.replace("_", "").replace(",", "")) * factor
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{text!r} is not a number; write 2500, 10k or 10M")
    return value


@dataclass(frozen=True, kw_only=True)
class SheetRequest:
    """How large tables are, and how many calls a second each row of the sheet has; see `sheet_of`."""

    sample: SampleRequest = field(default_factory=SampleRequest)
    rates: Mapping[str, float] = field(default_factory=dict)
    reads: float = 1.0
    writes: float = 1.0
    page: int = DEFAULT_PAGE
    prices: Prices = US_EAST_1

    def sheet(self, *targets: Table | type[Entity], ignore_unknown: bool = False) -> PatternSheet:
        """The sheet of tables or entities; `ignore_unknown` leaves out names that are none of theirs."""
        return sheet_of(
            *targets,
            request=self.sample,
            rates=self.rates,
            reads=self.reads,
            writes=self.writes,
            page=self.page,
            prices=self.prices,
            ignore_unknown=ignore_unknown,
        )

    def with_typed(self, given: Mapping[str, Any]) -> SheetRequest:
        """The request with what was typed: `items` and `per` by entity, `rates` by row, `reads`, `writes`.

        An empty text is the default. Raises `UsageError` for a text that is not a number.
        """
        items, per, rates = dict(self.sample.items), dict(self.sample.per), dict(self.rates)
        for name, text in _texts(given, "items"):
            _put(items, name, text and round(amount(text)))
        for name, text in _texts(given, "per"):
            per = {pair: several for pair, several in per.items() if pair[0] != name}
            _put(per, (name, ""), text and Several.of(text))
        for name, text in _texts(given, "rates"):
            _put(rates, name, text and amount(text))
        return replace(
            self,
            sample=replace(self.sample, items=items, per=per),
            rates=rates,
            reads=amount(given["reads"]) if given.get("reads") else self.reads,
            writes=amount(given["writes"]) if given.get("writes") else self.writes,
        )


def _texts(given: Mapping[str, Any], member: str) -> list[tuple[str, str]]:
    """The texts that were typed for each name; raises `UsageError` for anything else."""
    found = given.get(member) or {}
    if not isinstance(found, Mapping) or not all(isinstance(each, str) for each in found.values()):
        raise UsageError(f"{member}={found!r} are not texts by name")
    return [(name, text.strip()) for name, text in found.items()]


def _put(found: dict[Any, Any], key: Any, value: Any) -> None:
    if value == "":
        found.pop(key, None)
    else:
        found[key] = value
