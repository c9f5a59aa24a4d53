"""Chooses the columns of exported CSV and Parquet files, and what a cell may hold; NULLs go to a JSON column.

    S N B BOOL     nearly all values have this type: the column contains them unchanged
    JSON           values of several types, or sets, lists, maps and nulls, each as in `isotone scan --format jsonl`
    *              the last column: a JSON object of all attributes that have no column, or do not fit theirs

Columns are chosen from a sample of the items; the last column takes what fits none, and whatever differs from the sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from isotone.errors import UsageError
from isotone.values.notation import item_text, parse_json, read_item, read_value, value_text
from isotone.values.types import AttributeValue, Item

REST: Final = "*"
JSON: Final = "JSON"
SCALARS: Final = ("S", "N", "B", "BOOL")
CODES: Final = (*SCALARS, JSON)

_NEARLY_ALL: Final = 0.9
_MOST: Final = 500  # columns; rarer attributes go to the last one


class Column(msgspec.Struct, frozen=True):
    """A column: the attribute, and the type of its values."""

    name: str
    code: str


class FileColumns(msgspec.Struct, frozen=True):
    """The columns of a file. `has_rest`: the last one has everything that does not fit into the others."""

    columns: tuple[Column, ...]
    has_rest: bool

    def split(
        self, item: Item, fits: Callable[[int, Any], bool] | None = None
    ) -> tuple[list[Any], str | None]:
        """The content of each column (None for an empty one), and the text of the last column.

        `fits` returns whether a content can be in the column at a position. Raises `UsageError` if something does not
        fit and the file has no last column.
        """
        left = dict(item)
        cells: list[Any] = []
        for place, column in enumerate(self.columns):
            value = left.get(column.name)
            content = None if value is None else content_for(column.code, value)
            if content is not None and (fits is None or fits(place, content)):
                del left[column.name]
                cells.append(content)
            else:
                cells.append(None)
        if left and not self.has_rest:
            raise UsageError(
                f"an item has {', '.join(sorted(left))}, which are not among the columns: it was written "
                "while the table was exported; export it again"
            )
        return cells, item_text(left) if left else None


def content_for(code: str, value: AttributeValue) -> Any:
    """The content of a column of a type for a value; None if the value does not fit."""
    return value_text(value) if code == JSON else value.get(code)


def columns_of(
    sample: Sequence[Item],
    first: Iterable[str],
    *,
    is_whole: bool,
    fits: Callable[[str, Any], bool] = lambda code, content: True,
) -> FileColumns:
    """The columns for items like these: `first`, then the others, the most frequent first.

    `is_whole`: these are all items. `fits` returns whether a content can be in a column of a type.
    """
    codes: dict[str, Counter[str]] = {name: Counter() for name in first}
    counts: Counter[str] = Counter()
    for item in sample:
        counts.update(item.keys())
        for name, value in item.items():
            codes.setdefault(name, Counter()).update(value.keys())
    leading = list(first)
    others = [name for name, _ in counts.most_common() if name not in leading]
    names = [name for name in (*leading, *others) if name != REST][:_MOST]
    columns = tuple(Column(name, _code(codes[name])) for name in names)
    made = FileColumns(columns, has_rest=True)
    check = _checked(columns, fits)
    is_exact = is_whole and all(made.split(item, check)[1] is None for item in sample)
    return FileColumns(columns, has_rest=not is_exact)


def _checked(
    columns: tuple[Column, ...], fits: Callable[[str, Any], bool]
) -> Callable[[int, Any], bool]:
    return lambda place, content: fits(columns[place].code, content)


def _code(codes: Counter[str]) -> str:
    """The type that nearly all values have; JSON if there is none, or if it is not a scalar."""
    if not codes:
        return "S"
    ((code, count),) = codes.most_common(1)
    return code if code in SCALARS and count >= _NEARLY_ALL * codes.total() else JSON


def add_rest(item: Item, text: str) -> None:
    """Add the attributes of a last column. Raises `UsageError` for malformed ones, and for one with its own column."""
    rest = read_item(parse_json(text))
    twice = sorted(item.keys() & rest.keys())
    if twice:
        raise UsageError(f"it has {', '.join(twice)}, which the row has in another column as well")
    item.update(rest)


def value_of(text: str) -> AttributeValue:
    """The value in a JSON column. Raises `UsageError` for any other text."""
    return read_value(parse_json(text))


def checked_types(types: Mapping[str, str]) -> dict[str, str]:
    """Check the types of columns that a caller gives. Raises `UsageError` for an unknown one."""
    for name, code in types.items():
        if code not in CODES:
            raise UsageError(
                f"{code!r} is not a type of column {name!r}; use one of {', '.join(CODES)}"
            )
    return dict(types)
