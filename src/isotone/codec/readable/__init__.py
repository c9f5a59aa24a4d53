"""Components of string keys that people can read, and that sort as their values do.

Each kind of value has a codec (`interface`). A `Template` joins literals and codecs into a key, and finds the
exact range of keys for a condition on values. docs/design/format.md describes the form of each kind under
"Readable components", with its reasons, and is the system of record.
"""

from isotone.codec.readable.choice import Choice, Flag
from isotone.codec.readable.identifiers import Ksuid, Ulid, Uuid
from isotone.codec.readable.interface import SEPARATOR, Codec, HasPrefixes, Measured
from isotone.codec.readable.numbers import (
    FixedPoint,
    Float,
    Integer,
    Natural,
    Unpadded,
    number_of,
    ordered_number,
)
from isotone.codec.readable.selection import Operator, SortKeySelection, beyond
from isotone.codec.readable.template import Part, Template
from isotone.codec.readable.texts import Hex, RawText, Text, escape, unescape
from isotone.codec.readable.times import (
    Day,
    EpochInstant,
    Instant,
    Precision,
    Span,
    TimeOfDay,
    Written,
)

__all__ = [
    "SEPARATOR",
    "Choice",
    "Codec",
    "Day",
    "EpochInstant",
    "FixedPoint",
    "Flag",
    "Float",
    "HasPrefixes",
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
    "SortKeySelection",
    "Span",
    "Template",
    "Text",
    "TimeOfDay",
    "Ulid",
    "Unpadded",
    "Uuid",
    "Written",
    "beyond",
    "escape",
    "number_of",
    "ordered_number",
    "unescape",
]
