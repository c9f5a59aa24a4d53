"""`query.explain()`: the key of a read, its filter, order and cost, and why this key, as a text; reads nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isotone.model.reading.queries import Query, Read


def explain(read: Read[Any]) -> str:
    """The key that is read, what it answers, what is filtered, the order, the cost, and the reason for the key."""
    lines = [("", f"{read.operation} of {read.name}" + _of_index(read))]
    if read.is_empty:
        lines.append(("reads", "nothing: the conditions exclude one another"))
    else:
        lines.append(("reads", _range(read)))
        if read.filters:
            dropped = ", ".join(map(repr, read.filters))
            lines.append(
                ("filters", f"{dropped}: what does not satisfy it is read, paid for and dropped")
            )
        if read.operation == "Query":
            lines.append(("order", _order(read)))  # type: ignore[arg-type] # it is a query
        lines.append(("cost", _cost(read)))
    if read.because:
        lines.append(("because", read.because[0]))
        lines += [("not", reason) for reason in read.because[1:]]
    return "\n".join(_line(*line) for line in lines)


def _line(title: str, text: str) -> str:
    return f"  {title:<8} {text}" if title else text


def _of_index(read: Read[Any]) -> str:
    index = f"index {read.index!r} of " if read.index is not None else ""
    return f" ({index}table {read.table.name!r})"


def _range(read: Read[Any]) -> str:
    if read.bounds is None:
        what = "everything in the index" if read.index is not None else "everything in the table"
        return f"{what}, also other kinds of entities"
    return ", ".join(map(repr, read.asked)) or "the whole of the key's one partition"


def _order(read: Query[Any]) -> str:
    free = read.bounds.free
    if free is None:
        return "all items of the key are equal"
    if not all(key.sorts_by(free) for key in read.keys):
        return f"that of the texts in the key, which is not that of {free.field.name}"
    greatest = read.backward is not free.descending
    return f"{free.field.name}, the {'greatest' if greatest else 'least'} first"


def _cost(read: Read[Any]) -> str:
    units = "1 unit" if read.is_consistent else "0.5 units"
    what = "what is read" if read.filters or read.bounds is None else "the results"
    local = (
        "; a local index fetches attributes that it lacks, for further units"
        if read.index is not None
        and read.table.indexes[read.index].kind == "local"
        and read.table.indexes[read.index].projection != "ALL"
        else ""
    )
    return f"{units} for each 4 KB of {what}{local}"
