"""Days and points in time in a form that a pattern tells: `%Y%m%d`, `%Y-%m-%d %H:%M:%S`.

    Written("%Y-%m-%d %H:%M:%S")                2020-01-11 00:00:00
    Written("%Y-%m-%dT%H:%M:%S+00:00")          2020-01-11T00:00:00+00:00
    Written("%Y%m%d", day=True)                 20200111
    Written("%Y%m%d", day=True).descending()    79799888

The directives are those of `strftime` from years to microseconds, in that order and without a gap, for
only so do texts sort as what they say. What stands between them is taken as it is. Instants are in UTC.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from isotone.codec.readable.calendar import day_of
from isotone.codec.readable.digits import complement, malformed
from isotone.codec.readable.instant import EPOCH, utc_of
from isotone.codec.readable.interface import Directed
from isotone.errors import OutOfRange, UsageError

# Each directive, from the most significant on: its attribute, its digits, and the unit that it counts.
_DIRECTIVES: Final = {
    "Y": ("year", 4, timedelta()),
    "m": ("month", 2, timedelta()),
    "d": ("day", 2, timedelta(days=1)),
    "H": ("hour", 2, timedelta(hours=1)),
    "M": ("minute", 2, timedelta(minutes=1)),
    "S": ("second", 2, timedelta(seconds=1)),
    "f": ("microsecond", 6, timedelta(microseconds=1)),
}
_SIGNIFICANCE: Final = "".join(_DIRECTIVES)
_DIRECTIVE: Final = re.compile("%(.?)")
_FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f#$\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Written(Directed):
    """An aware datetime, or with `day` a date, as a pattern of at least years, months and days says it.

    >>> Written("%Y-%m-%d %H:%M:%S").encode(datetime(2020, 1, 11, tzinfo=UTC))
    '2020-01-11 00:00:00'
    """

    pattern: str
    day: bool = False
    width: int = field(init=False, repr=False, compare=False)
    _form: str = field(init=False, repr=False, compare=False)
    _reads: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _finer: dict[str, Any] = field(init=False, repr=False, compare=False)
    _unit: timedelta = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = "".join(_DIRECTIVE.findall(self.pattern))
        greatest = 3 if self.day else len(_SIGNIFICANCE)
        if not (_SIGNIFICANCE.startswith(found) and 3 <= len(found) <= greatest):
            raise UsageError(_no_pattern(self.pattern, greatest))
        if _FORBIDDEN.search(self.pattern):
            raise UsageError(f"the pattern {self.pattern!r} holds #, $ or a control character")
        set_ = object.__setattr__
        set_(self, "_form", _DIRECTIVE.sub(_format_of, re.sub("[{}]", r"\g<0>\g<0>", self.pattern)))
        set_(self, "_reads", re.compile(_reading(self.pattern)))
        names = [name for name, *_ in _DIRECTIVES.values()][len(found) :]
        set_(self, "_finer", {} if self.day else dict.fromkeys(names, 0))
        set_(self, "_unit", _DIRECTIVES[found[-1]][2])
        set_(self, "width", len(self._form.format(EPOCH)))

    def encode(self, value: Any) -> str:
        known = self._checked(value)
        if known.replace(**self._finer) != known:
            raise OutOfRange(
                f"{value} is finer than {self.pattern!r}, the declared form: declare a finer one, or "
                "round the value"
            )
        text = self._form.format(known)
        return text if self.ascending else complement(text)

    def _checked(self, value: Any) -> date:
        return day_of(value) if self.day else utc_of(value)

    def decode(self, text: str) -> Any:
        found = self._reads.fullmatch(text if self.ascending else complement(text))
        if found is not None:
            numbers = [int(group) for group in found.groups()]
            try:
                return date(*numbers) if self.day else datetime(*numbers, tzinfo=UTC)  # type: ignore[misc, arg-type] # as many as the pattern has
            except ValueError:
                pass
        raise malformed(text, f"of the form {self.pattern!r}, such as {self.specimens()[1]}")

    def before(self, value: Any) -> Any:
        known = self._checked(value)
        return known - self._unit if known - self._edge(date.min) >= self._unit else None

    def after(self, value: Any) -> Any:
        known = self._checked(value)
        return known + self._unit if self._edge(date.max) - known >= self._unit else None

    def around(self, value: Any) -> tuple[Any, Any]:
        known = self._checked(value)
        below = known.replace(**self._finer)
        return below, below if below == known else self.after(below)

    def _edge(self, edge: date) -> Any:
        """The first or the last value that there is."""
        if self.day:
            return edge
        whole = datetime.min if edge == date.min else datetime.max
        return whole.replace(tzinfo=UTC, **self._finer)

    def specimens(self) -> tuple[str, ...]:
        middle = EPOCH.date() if self.day else EPOCH
        edges = self._edge(date.min), middle, self._edge(date.max)
        return tuple(map(self.encode, edges))


def _format_of(directive: re.Match[str]) -> str:
    name, digits, _ = _DIRECTIVES[directive[1]]
    return f"{{0.{name}:0{digits}}}"


def _reading(pattern: str) -> str:
    """The regular expression of what a pattern writes."""
    texts = _DIRECTIVE.split(pattern)
    expressions = [
        f"([0-9]{{{_DIRECTIVES[text][1]}}})" if place % 2 else re.escape(text)
        for place, text in enumerate(texts)
    ]
    return "".join(expressions)


def _no_pattern(pattern: str, greatest: int) -> str:
    order = "".join(f"%{each}" for each in _SIGNIFICANCE[:greatest])
    return (
        f"{pattern!r} is no form that sorts: years, months and days come first, then what is finer, "
        f"in the order of {order} and without a gap; what is written otherwise is a str field, raw(…)"
    )
