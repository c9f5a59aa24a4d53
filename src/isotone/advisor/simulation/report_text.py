"""A forecast as text: load, hot keys, storage, cost, advice, assumptions; "the sample is too small"."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from isotone.advisor.simulation.forecast import (
    BUSY,
    SURE,
    Figure,
    Forecast,
    HotKey,
    MeasuredFigure,
    PlaceForecast,
    of_key,
    of_place,
)
from isotone.advisor.simulation.partitions import READS, WRITES
from isotone.advisor.simulation.runs import CONFIDENCE
from isotone.text_table import aligned

_KEYS = 8

ASSUMPTIONS = (
    "calls come evenly within an hour; the hours of a day differ as declared",
    "member k is 1/k^exponent as active or popular as the first one, in the sample and in the whole",
    f"a partition serves {READS:,.0f} read and {WRITES:,.0f} write units a second; DynamoDB separates hot keys, but "
    "cannot divide one",
    "items stay until an action deletes them: expired ones are not taken off the storage",
    "no retries: a throttled request is not sent again",
)


def report(forecast: Forecast, comparisons: Sequence[MeasuredFigure] = ()) -> str:
    """A forecast as text; with the comparisons of `check`, if there are any."""
    parts = [_title(forecast), _places(forecast), _keys(forecast), _money(forecast)]
    if advice := list(_advice(forecast)):
        parts.append("What to change\n" + "\n".join(f"  - {each}" for each in advice))
    if comparisons:
        parts.append(_checked(comparisons))
    parts.append("Assumed\n" + "\n".join(f"  - {each}" for each in ASSUMPTIONS))
    return "\n\n".join(parts) + "\n"


def _title(forecast: Forecast) -> str:
    sizes = ", ".join(f"{size:,} × {name}" for name, size in forecast.sizes.items())
    sampled = ", ".join(f"{number:,}" for number in forecast.sampled.values())
    lines = [
        f"{forecast.workload.name}: {sizes or 'no populations'}",
        f"from a run with {sampled or 'none'}; ± is the interval of {CONFIDENCE:.0%} confidence",
    ]
    return "\n".join([*lines, *_warning(forecast)])


def _warning(forecast: Forecast) -> Iterator[str]:
    if members := forecast.wanted_members:
        what, part = forecast.least_sure
        yield (
            f"THE SAMPLE IS TOO SMALL: {what}{_plus_minus(part)}; for ±{SURE:.0%} it takes "
            f"about {members:,} members: --members {members}"
        )


def _places(forecast: Forecast) -> str:
    def row(each: PlaceForecast) -> list[str]:
        def shown(text: str, figure: Callable[[PlaceForecast], float]) -> str:
            return text + _unsure(forecast, of_place(each.place, figure))

        return [
            str(each.place),
            shown(f"{each.peak.reads:,.0f}", lambda place: place.peak.reads),
            shown(f"{each.peak.writes:,.0f}", lambda place: place.peak.writes),
            f"{each.partitions:,}",
            shown(_bytes(each.stored), lambda place: place.stored),
            shown(f"+{_bytes(each.growth)}", lambda place: place.growth),
            shown(_percent(each.throttled), lambda place: place.throttled),
        ]

    header = ["busiest hour", "reads/s", "writes/s", "partitions", "stored", "a day", "throttled"]
    return aligned(header, [row(each) for each in forecast.places], right=range(1, 7))


def _keys(forecast: Forecast) -> str:
    def row(key: HotKey) -> list[str]:
        def shown(text: str, figure: Callable[[HotKey], float]) -> str:
            return text + _unsure(forecast, of_key(key.label, figure))

        return [
            key.label if key.shards == 1 else f"{key.label} / {key.shards}",
            shown(f"{key.load.reads:,.0f}", lambda key: key.load.reads),
            shown(f"{key.load.writes:,.0f}", lambda key: key.load.writes),
            shown(f"{key.load.use:.0%}", lambda key: key.load.use),
            shown(_percent(key.throttled), lambda key: key.throttled),
        ]

    rows = [row(key) for key in forecast.hottest[:_KEYS]]
    if not rows:
        return "no key is touched twice"
    return aligned(
        ["hottest keys", "reads/s", "writes/s", "of a partition", "throttled"],
        rows,
        right=range(1, 5),
    )


def _money(forecast: Forecast) -> str:
    costs, prices = forecast.costs, forecast.prices

    def line(value: float, figure: Figure, what: str) -> str:
        return f"  {value:>14,.2f} {_unsure(forecast, figure).strip():<5} {what}"

    lines = [
        f"A month in {prices.region}, at the prices of {prices.as_of}, in {prices.currency}",
        line(costs.on_demand, lambda found: found.costs.on_demand, "on demand"),
        line(
            costs.provisioned,
            lambda found: found.costs.provisioned,
            "provisioned instead, scaled with the load to 70 % utilization",
        ),
        line(costs.storage, lambda found: found.costs.storage, "storage"),
    ]
    if forecast.amplification > 1.005:
        unsure = _unsure(forecast, lambda found: found.amplification)
        lines.append(
            f"  each write unit of a table is {forecast.amplification:.2f}{unsure} units with its indexes"
        )
    return "\n".join(lines)


def _unsure(forecast: Forecast, figure: Figure) -> str:
    """The relative uncertainty of a figure as text; empty for a figure of 0."""
    part = forecast.part_unsure(figure)
    return _plus_minus(part) if part else ""


def _plus_minus(part: float) -> str:
    return f" ±{math.ceil(part * 100):,}%"


def _advice(forecast: Forecast) -> Iterator[str]:
    for key in forecast.hot_keys[:_KEYS]:
        yield _about(key)
    for (action, place), trend in forecast.growing.items():
        if trend.exponent > 0:
            yield (
                f"{action}: what a call consumes in {place} grows with the number of members: "
                f"{trend.small:.2f} units among a {1 / trend.ratio:.0%} sample, {trend.big:.2f} in the whole sample"
            )


def _about(key: HotKey) -> str:
    writes = key.load.writes / WRITES >= key.load.reads / READS
    unit, limit, load = (
        ("write", WRITES, key.load.writes) if writes else ("read", READS, key.load.reads)
    )
    said = f"{key.label} gets {load:,.0f} {unit} units a second, and one key can have {limit:,.0f}"
    if key.load.use < 1:
        said += f": it is over {BUSY:.0%} of that, so watch it"
    elif not writes:
        return f"{said}: keep its answer in a cache, or {key.wanted_shards} copies of it"
    if key.is_shared or writes:
        return f"{said}; spread over {key.wanted_shards} keys it fits: --shard '{key.label}={key.wanted_shards}'"
    return said


def _checked(comparisons: Sequence[MeasuredFigure]) -> str:
    rows = [
        [
            each.what,
            f"{each.predicted:,.3g}",
            f"{each.interval.low:,.3g} to {each.interval.high:,.3g}",
            f"{each.measured:,.3g}",
            f"{each.difference:+.1%}" + ("" if each.measured in each.interval else " (outside)"),
        ]
        for each in comparisons
    ]
    return aligned(
        ["checked by another run", "forecast", "interval", "measured", "off by"],
        rows,
        right={1, 2, 3, 4},
    )


def _percent(share: float) -> str:
    return "–" if share < 0.0005 else f"{share:.1%}"


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(size) < 1000 or unit == "TB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size} B"
