"""Components of string keys that people can read, and that sort as their values do.

Each kind of value has a codec (`interface`); `Template` joins them with `#`, or as
a table that is there already has it, and composes the exact
bounds of a condition (`composite`, `selection`). The forms are described, for every kind with its
reasons, in docs/design/format.md under "Readable components", and that page is the system of record.
"""

from isotone.codec.readable.calendar import Day, Span, TimeOfDay
from isotone.codec.readable.choice import Choice, Flag
from isotone.codec.readable.composite import Template
from isotone.codec.readable.delimiting import Part
from isotone.codec.readable.fixed_point import FixedPoint
from isotone.codec.readable.floating import Float
from isotone.codec.readable.hexadecimal import Hex
from isotone.codec.readable.identifiers import Ksuid, Ulid, Uuid
from isotone.codec.readable.instant import EpochInstant, Instant, Precision
from isotone.codec.readable.integer import Integer
from isotone.codec.readable.interface import SEPARATOR, Beginning, Codec, Measured
from isotone.codec.readable.natural import Natural
from isotone.codec.readable.selection import Operator, Selection, beyond
from isotone.codec.readable.text import RawText, Text
from isotone.codec.readable.unpadded import Unpadded
from isotone.codec.readable.written import Written

__all__ = [
    "SEPARATOR",
    "Beginning",
    "Choice",
    "Codec",
    "Day",
    "EpochInstant",
    "FixedPoint",
    "Flag",
    "Float",
    "Hex",
    "Instant",
    "Integer",
    "Ksuid",
    "Measured",
    "Natural",
    "Operator",
    "Part",
    "Precision",
    "RawText",
    "Selection",
    "Span",
    "Template",
    "Text",
    "TimeOfDay",
    "Ulid",
    "Unpadded",
    "Uuid",
    "Written",
    "beyond",
]
