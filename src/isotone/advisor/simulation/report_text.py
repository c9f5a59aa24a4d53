"""A forecast as text for a terminal: load, hot keys, storage, cost, advice, and what it assumes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isotone.advisor.simulation.forecast import BUSY, Comparison, Forecast, HotKey
from isotone.advisor.simulation.partitions import READS, WRITES
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


def report(forecast: Forecast, comparisons: Sequence[Comparison] = ()) -> str:
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
    return f"{forecast.workload.name}: {sizes or 'no populations'}\nfrom a run with {sampled or 'none'}"


def _places(forecast: Forecast) -> str:
    rows = [
        [
            str(each.place),
            f"{each.peak.reads:,.0f}",
            f"{each.peak.writes:,.0f}",
            f"{each.partitions:,}",
            _bytes(each.stored),
            f"+{_bytes(each.growth)}",
            _percent(each.throttled),
        ]
        for each in forecast.places
    ]
    header = ["busiest hour", "reads/s", "writes/s", "partitions", "stored", "a day", "throttled"]
    return aligned(header, rows, right=range(1, 7))


def _keys(forecast: Forecast) -> str:
    rows = [
        [
            key.label if key.shards == 1 else f"{key.label} / {key.shards}",
            f"{key.load.reads:,.0f}",
            f"{key.load.writes:,.0f}",
            f"{key.load.use:.0%}",
            _percent(key.throttled),
        ]
        for key in forecast.hottest[:_KEYS]
    ]
    if not rows:
        return "no key is touched twice"
    return aligned(
        ["hottest keys", "reads/s", "writes/s", "of a partition", "throttled"],
        rows,
        right=range(1, 5),
    )


def _money(forecast: Forecast) -> str:
    costs, prices = forecast.costs, forecast.prices
    lines = [
        f"A month in {prices.region}, at the prices of {prices.as_of}, in {prices.currency}",
        f"  {costs.on_demand:>14,.2f}  on demand",
        f"  {costs.provisioned:>14,.2f}  provisioned instead, scaled with the load to 70 % utilization",
        f"  {costs.storage:>14,.2f}  storage",
    ]
    if forecast.amplification > 1.005:
        lines.append(
            f"  each write unit of a table is {forecast.amplification:.2f} units with its indexes"
        )
    return "\n".join(lines)


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


def _checked(comparisons: Sequence[Comparison]) -> str:
    rows = [
        [each.what, f"{each.predicted:,.3g}", f"{each.measured:,.3g}", f"{each.difference:+.1%}"]
        for each in comparisons
    ]
    return aligned(
        ["checked at a larger size", "forecast", "measured", "off by"], rows, right={1, 2, 3}
    )


def _percent(share: float) -> str:
    return "–" if share < 0.0005 else f"{share:.1%}"


def _bytes(size: float) -> str:
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if abs(size) < 1000 or unit == "TB":
            return f"{size:,.0f} {unit}" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size} B"
