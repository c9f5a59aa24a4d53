"""Each request of the scenarios' programs is explained before it runs; the estimate must be what it then costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.examples.printed import NAMES, run

import isotone
from isotone.advisor import Cost

EXPLAINED = {
    *("GetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem"),
    *("BatchGetItem", "BatchWriteItem", "TransactGetItems", "TransactWriteItems"),
}
SAMPLE = 20_000  # items: all that any example has
SMALL_SAMPLE = 10  # items: a part of what an example has
AT_MOST = 25  # requests of one kind on one table that are compared


READS = {"Query", "Scan"}


def figures_of(estimate: Cost) -> tuple[float, int, int]:
    return estimate.units, estimate.items_read, estimate.items_returned


def cost_of(observation: isotone.Observation) -> tuple[float, int, int]:
    return observation.units, observation.scanned, observation.returned


class Comparison:
    """Observes the requests of a program, and compares what each costs with its estimate."""

    def __init__(self, store: isotone.Store) -> None:
        self.store = store
        self.compared: Counter[str] = Counter()
        self.seen: Counter[tuple[str, Any]] = Counter()
        self.wrong: list[str] = []
        self.outside: list[str] = []
        self.tried = 0

    def __call__(self, operation: str, request: Any) -> Any:
        kind = (operation, request.get("TableName"))
        self.seen[kind] += 1
        if operation not in EXPLAINED or self.seen[kind] > AT_MOST:
            return lambda observation: None
        explained = isotone.explain(self.store, (operation, request), sample=SAMPLE)
        if operation in READS and "Segment" not in request:
            self.compare_interval(operation, request)
        if explained.estimate.requests > 1:  # this request is only its first page
            explained = isotone.explain(self.store, (operation, request), sample=SAMPLE, run=True)
            assert explained.estimate.units == (explained.measured or explained.estimate).units
            return lambda observation: None

        def ended(observation: isotone.Observation) -> None:
            if observation.error is not None:
                return
            self.compared[operation] += 1
            estimate = explained.estimate
            if operation == "Scan" and not estimate.exact:
                return  # a segment, or the start is gone: only the engine knows its hashes
            if operation not in READS:
                if not estimate.exact or estimate.units != observation.units:
                    self.wrong.append(f"{operation} {request}: {estimate} but {observation.units}")
                return
            if figures_of(estimate) != cost_of(observation):
                # The engine may have deleted an expired item in between.
                again = isotone.explain(self.store, (operation, request), sample=SAMPLE)
                estimate = again.estimate
            if not estimate.exact or figures_of(estimate) != cost_of(observation):
                self.wrong.append(f"{operation} {request}: {estimate} but {observation}")

        return ended

    def compare_interval(self, operation: str, request: Any) -> None:
        """Compare what the request costs with the bounds of an estimate from a small part of the table."""
        some = isotone.explain(self.store, (operation, request), sample=SMALL_SAMPLE, run=True)
        estimate, cost = some.estimate, some.measured
        assert cost is not None
        most = estimate.most
        is_inside = estimate.least.units <= cost.units and (
            most is None or cost.units <= most.units
        )
        is_near = abs(estimate.units - cost.units) <= max(0.25 * cost.units, 0.5)
        is_near = is_near or "ExclusiveStartKey" in request  # only the engine knows what follows
        self.tried += 1
        if not is_inside or not is_near:
            self.outside.append(f"{operation} {request}: {estimate} but {cost}")


@pytest.mark.parametrize("name", NAMES)
def test_estimates_are_what_requests_cost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    comparisons: list[Comparison] = []
    connect = isotone.connect

    def observed(address: str = ":memory:", **options: Any) -> isotone.Store:
        if address != ":memory:":
            return connect(address, **options)
        clock = options.get("clock")
        database = isotone.open(":memory:", **({} if clock is None else {"clock": clock}))
        comparisons.append(Comparison(connect(database)))
        observers = [*options.pop("observe", ()), comparisons[-1]]
        return connect(database, **options, observe=observers)

    monkeypatch.setattr(isotone, "connect", observed)
    run(name, ":memory:")
    compared = sum((each.compared for each in comparisons), Counter())
    wrong = [each for comparison in comparisons for each in comparison.wrong]
    assert not wrong, f"{len(wrong)} of {compared.total()}: " + "\n".join(wrong[:5])
    assert compared.total()
    outside = [each for comparison in comparisons for each in comparison.outside]
    tried = sum(comparison.tried for comparison in comparisons)
    assert len(outside) <= tried * 0.05, f"{len(outside)} of {tried}: " + "\n".join(outside[:5])
