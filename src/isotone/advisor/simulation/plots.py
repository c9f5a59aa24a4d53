"""Plots a forecast: the day of each table, the hottest keys and their limit, the partitions, the growth.

Needs matplotlib: `pip install 'isotone[plots]'`.
"""

from __future__ import annotations

from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, Final

from isotone.advisor.simulation.forecast import Forecast
from isotone.errors import UsageError
from isotone.output_paths import OutputPath, check_output, write_whole

FORMATS: Final = ("png", "svg", "pdf")
_PROGRAM: Final = "isotone simulate"
_METADATA: Final[dict[str, dict[str, Any]]] = {
    "png": {"Software": _PROGRAM},
    "svg": {"Creator": _PROGRAM, "Date": None},
    "pdf": {"Creator": _PROGRAM},
}
_PLACES: Final = 5
_KEYS: Final = 8
_MONTHS: Final = 24
_SERIES: Final = ("#2563eb", "#d97706", "#059669", "#7c3aed", "#dc2626")
_OVER: Final = "#dc2626"
_UNDER: Final = "#2563eb"
_INK: Final = "#334155"
_GIGABYTE: Final = 1e9


def picture_output(option: str, path: str | PathLike[str]) -> OutputPath:
    """The `OutputPath` of a picture, which replaces an earlier one alone."""
    return OutputPath(option, path, mark=_PROGRAM.encode())


def save(forecast: Forecast, path: str | PathLike[str]) -> None:
    """Write the picture; the file's ending decides the format."""
    ending = Path(path).suffix.lstrip(".").lower()
    if ending not in FORMATS:
        raise UsageError(f"{path}: a picture ends in {', '.join(f'.{each}' for each in FORMATS)}")
    check_output(picture_output("the picture", path))
    picture = BytesIO()
    _figure(forecast).savefig(picture, format=ending, dpi=150, metadata=_METADATA[ending])
    write_whole(Path(path), picture.getvalue())


def _figure(forecast: Forecast) -> Any:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("plots need matplotlib: pip install 'isotone[plots]'") from None
    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": "#94a3b8",
        "axes.labelcolor": _INK,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlecolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
        "svg.hashsalt": "isotone",
    }
    with rc_context(style):
        figure = Figure(figsize=(11, 7.5), layout="constrained")
        sizes = ", ".join(f"{size:,} × {name}" for name, size in forecast.sizes.items())
        figure.suptitle(_plain(f"{forecast.workload.name}: {sizes}"), color=_INK, fontsize=12)
        axes = figure.subplots(2, 2)
        _day(axes[0][0], forecast)
        _keys(axes[0][1], forecast)
        _partitions(axes[1][0], forecast)
        _storage(axes[1][1], forecast)
    return figure


def _day(axes: Any, forecast: Forecast) -> None:
    hours = [*range(24), 24]
    day = forecast.workload.day
    for color, place in zip(_SERIES, forecast.places[:_PLACES], strict=False):
        for kind, line in (("writes", "-"), ("reads", "--")):
            average = getattr(place.average, kind)
            if average:
                values = [average * hour for hour in (*day, day[0])]
                axes.step(
                    hours, values, line, where="post", color=color, label=f"{place.place} {kind}"
                )
    axes.set(title="Units a second over a day", xlabel="hour", xlim=(0, 24), xticks=range(0, 25, 4))
    axes.set_ylim(bottom=0)
    _thousands(axes.yaxis)
    if axes.lines:
        axes.legend(frameon=False, fontsize=8)


def _keys(axes: Any, forecast: Forecast) -> None:
    keys = forecast.hottest[:_KEYS][::-1]
    uses = [key.load.use * 100 for key in keys]
    axes.barh(
        [_short(key.label) for key in keys],
        uses,
        color=[_OVER if use > 100 else _UNDER for use in uses],
        height=0.6,
    )
    axes.axvline(100, color=_INK, linewidth=1, linestyle=":")
    axes.set(title="Hottest keys, in % of what a partition serves")
    _thousands(axes.xaxis)


def _partitions(axes: Any, forecast: Forecast) -> None:
    if forecast.places:
        place = forecast.places[0]
        uses = [load.use * 100 for load in place.busiest]
        axes.bar(
            range(1, len(uses) + 1),
            uses,
            color=[_OVER if use > 100 else _UNDER for use in uses],
            width=0.6,
        )
        axes.set(
            title=f"{place.place}: busiest of {place.partitions:,} partitions, in % of their limit"
        )
        axes.set_xticks(range(1, len(uses) + 1))
    axes.axhline(100, color=_INK, linewidth=1, linestyle=":")
    _thousands(axes.yaxis)


def _storage(axes: Any, forecast: Forecast) -> None:
    months = range(_MONTHS + 1)
    places = forecast.places[:_PLACES]
    if places:
        sizes = [
            [(place.stored + place.growth * 365 / 12 * month) / _GIGABYTE for month in months]
            for place in places
        ]
        names = [str(place.place) for place in places]
        axes.stackplot(months, *sizes, labels=names, colors=_SERIES, alpha=0.8)
        axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.set(title="Storage in GB, if nothing is deleted", xlabel="month", xlim=(0, _MONTHS))
    _thousands(axes.yaxis)


def _thousands(axis: Any) -> None:
    axis.set_major_formatter("{x:,.0f}")


def _short(label: str) -> str:
    return _plain(label if len(label) <= 40 else f"{label[:39]}…")


def _plain(text: str) -> str:
    """The text with dollar signs escaped: matplotlib would typeset the text between them as mathematics."""
    return text.replace("$", r"\$")
