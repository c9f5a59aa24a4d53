"""`HeadroomWarning`, `on_headroom`: reports numbers that approach the `max` declared for them in a key.

The first value above a field's `alert` share of its maximum is reported once per process and key: as a
`HeadroomWarning`, as a `HeadroomNotice` to each listener, and in `headroom_notices()`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from isotone.codec.readable import Measured
from isotone.model.declaring.keys import StringSlot
from isotone.model.warn_caller import warn_caller

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.declaring.fields import FieldOptions


class HeadroomWarning(UserWarning):
    """A number in a key approaches its declared maximum; the keys should be widened."""


@dataclass(frozen=True, slots=True)
class HeadroomNotice:
    """A value that approaches the maximum declared for its field in a key."""

    entity: str
    key: str
    field: str
    value: Any
    maximum: Any
    share: float

    def __str__(self) -> str:
        return (
            f"{self.entity}.{self.field} has reached {self.value}, {self.share:.0%} of the {self.maximum} "
            f"that key {self.key!r} has room for; declare a larger max with was={self.maximum}, "
            "and widen the existing keys"
        )


class Gauge(NamedTuple):
    """One number in one key, and when to report it."""

    key: str
    field: str
    to_codec: Callable[[Any], Any] | None
    codec: Measured[Any]
    alert: float
    maximum: Any


Listener = Callable[[HeadroomNotice], None]

DEFAULT_ALERT: Final = 0.3
# 999, 9999, … and 1000, 10000, … are widths. Two digits and 100 are not: those are levels, shards and percentages.
_WIDTHS: Final = frozenset(
    text for digits in range(3, 39) for text in ("9" * digits, "1" + "0" * digits)
)

_lock = threading.Lock()
_listeners: list[Listener] = []
_notices: dict[tuple[str, str, str, str], HeadroomNotice] = {}


def on_headroom(listener: Listener) -> Callable[[], None]:
    """Call `listener` with every new notice; returns a function that removes the listener.

    The listener runs in the thread of the write, before the request. Its exceptions reach the caller.

        remove = isotone.on_headroom(lambda notice: log.warning("%s", notice))
    """
    _listeners.append(listener)

    def end() -> None:
        with contextlib.suppress(ValueError):  # it may be removed already
            _listeners.remove(listener)

    return end


def headroom_notices() -> list[HeadroomNotice]:
    """All notices of this process, for metrics.

    >>> isinstance(isotone.headroom_notices(), list | tuple)
    True
    """
    return list(_notices.values())


def forget() -> None:
    """Forget all notices, for tests."""
    _notices.clear()


def watch(schema: EntitySchema, values: Mapping[str, Any]) -> None:
    """Report values that approach their maximum. O(numbers in keys)."""
    for gauge in _gauges(schema):
        value = values[gauge.field] if gauge.field in values else None  # noqa: SIM401 - `Known.get` raises
        if value is None:
            continue
        convert = gauge.to_codec
        share = gauge.codec.share(value if convert is None else convert(value))
        if share >= gauge.alert:
            _report(schema, gauge, value, share)


def near_maximum(schema: EntitySchema, values: Mapping[str, Any]) -> list[HeadroomNotice]:
    """The values that approach their maximum, for programs that inspect stored items."""
    notices = []
    for gauge in _gauges(schema):
        value = values.get(gauge.field)
        if value is None:
            continue
        share = gauge.codec.share(value if gauge.to_codec is None else gauge.to_codec(value))
        if share >= gauge.alert:
            notices.append(_notice(schema, gauge, value, share))
    return notices


def _notice(schema: EntitySchema, gauge: Gauge, value: Any, share: float) -> HeadroomNotice:
    return HeadroomNotice(schema.tag, gauge.key, gauge.field, value, gauge.maximum, share)


def _report(schema: EntitySchema, gauge: Gauge, value: Any, share: float) -> None:
    place = (schema.table.name, schema.tag, gauge.key, gauge.field)
    notice = _notice(schema, gauge, value, share)
    with _lock:
        if place in _notices:
            return
        _notices[place] = notice
    for listener in tuple(_listeners):
        listener(notice)
    warn_caller(HeadroomWarning(str(notice)))


@lru_cache(maxsize=512)
def _gauges(schema: EntitySchema) -> tuple[Gauge, ...]:
    """The numbers of declared width in an entity's keys."""
    return tuple(
        Gauge(
            key.name,
            component.field.name,
            slot.converter(place),
            codec,
            alert,
            component.field.options.max,
        )
        for key in schema.keys.values()
        for slot in key.slots
        if isinstance(slot, StringSlot)
        for place, (component, codec) in enumerate(
            zip(slot.components, slot.template.codecs, strict=True)
        )
        if isinstance(codec, Measured) and (alert := _alert(component.field.options)) is not None
    )


def _alert(options: FieldOptions) -> float | None:
    """The share at which to report a field; None for never."""
    if options.alert != "growing":
        return options.alert
    return DEFAULT_ALERT if _is_a_width(options.max) else None


def _is_a_width(maximum: object) -> bool:
    """Whether a maximum states a number of digits (99_999) rather than the end of a scale (23, 365, 86_399)."""
    return str(maximum).replace(".", "") in _WIDTHS
