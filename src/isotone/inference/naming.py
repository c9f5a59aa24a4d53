"""Names in the inferred module: Python identifiers from the names and values of a table.

A name that Python, the module or every entity already uses gets a final underscore. `field(name=…)` keeps the
attribute's own name.
"""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Collection
from typing import Final

from isotone.model import Entity

IMPORTED: Final = frozenset(
    {
        *("Any", "Attr", "Binary", "ConfigDict", "Decimal", "Entity", "Global", "Index", "KSUID"),
        *("Key", "Literal", "Local", "NotRequired", "Number", "Table", "TypedDict", "ULID", "UUID"),
        *("date", "datetime", "desc", "expires", "field", "in_order", "raw", "since_epoch"),
        *("with_config", "written", "isotone", "annotations"),
    }
)
_BUILTINS: Final = frozenset({"str", "int", "bool", "bytes", "list", "dict", "set", "frozenset"})
# parameters of calls that also take a key's fields by name
_PARAMETERS: Final = frozenset({"when", "consistent"})
RESERVED: Final = IMPORTED | _BUILTINS | _PARAMETERS | frozenset(dir(Entity))

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z][0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_OTHER: Final = re.compile(r"\W+")


def words(text: str) -> list[str]:
    """The words of a name in any style.

    >>> words("customerId"), words("GSI1PK"), words("order-total")
    (['customer', 'Id'], ['GSI1PK'], ['order', 'total'])
    """
    plain = unicodedata.normalize("NFKC", text)
    return [word for word in re.split(r"_+", _OTHER.sub("_", _CAMEL.sub("_", plain))) if word]


def field_name(text: str, taken: Collection[str], fallback: str = "value") -> str:
    """A name for a field: in snake case, an identifier, and not taken.

    >>> field_name("CustomerId", ()), field_name("class", ()), field_name("find", ())
    ('customer_id', 'class_', 'find_')
    """
    name = "_".join(words(text)).lower()
    if name and name[0].isdigit():
        name = f"{fallback}_{name}"
    if not name.isidentifier():
        name = fallback
    if keyword.iskeyword(name) or name in RESERVED:
        name += "_"
    return _free(name, taken)


def class_name(text: str, taken: Collection[str]) -> str:
    """A name for a class: in Pascal case, an identifier, and not taken.

    >>> class_name("order_line", ()), class_name("TABLE", ()), class_name("42", ())
    ('OrderLine', 'TableItem', 'Row42')
    """
    parts = words(text)
    name = "".join(
        word.capitalize() if word.isupper() or word.islower() else word[0].upper() + word[1:]
        for word in parts
    )
    if name and name[0].isdigit():
        name = "Row" + name
    if not name.isidentifier():
        name = "Row"
    if name in RESERVED or keyword.iskeyword(name) or hasattr(builtins, name):
        name += "Item"
    return _free(name, taken, "")


def _free(name: str, taken: Collection[str], joint: str = "_") -> str:
    if name not in taken:
        return name
    number = 2
    while f"{name.rstrip('_')}{joint}{number}" in taken:
        number += 1
    return f"{name.rstrip('_')}{joint}{number}"
