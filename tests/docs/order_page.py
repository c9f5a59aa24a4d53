"""Writes the lists of docs/design/order-of-checks.md from the orders: `python -m tests.docs.order_page`."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.pages import ROOT

from isotone.operations.api import ACTIONS
from isotone.operations.checks.first_fault import Order, OrderBranch
from isotone.operations.checks.orders import order_of

PAGE = ROOT / "docs" / "design" / "order-of-checks.md"
BEGIN = "<!-- The lists below are written from the orders and rules of src/isotone/operations: make files -->\n"


def section(actions: list[str], order: Order) -> str:
    """The list of the actions that have one order."""
    return f"## {', '.join(actions)}\n\n" + "\n".join(_lines(order)) + "\n"


def _lines(order: Order) -> Iterator[str]:
    for place, layer in enumerate(order, 1):
        if isinstance(layer, OrderBranch):
            yield f"{place}. If {layer.says}, only the older checks:"
            yield from _of_branch(layer, order)
        else:
            yield f"{place}. {layer.says}{' †' if layer.counted else ''}"


def _of_branch(branch: OrderBranch, order: Order) -> Iterator[str]:
    """The layers of a branch; those with which the order ends as well are not repeated."""
    said = [each.says for each in branch.layers]
    whole = [each.says for each in order]
    shared = 0
    while shared < len(said) and said[-1 - shared] == whole[-1 - shared]:
        shared += 1
    own = len(said) - shared
    for place, says in enumerate(said[:own], 1):
        yield f"   {place}. {says}"
    if shared:
        yield f"   {own + 1}. then those from {len(whole) - shared + 1} on, none of them counted"


def text() -> str:
    """The page with the present lists."""
    head = PAGE.read_text(encoding="utf-8").partition(BEGIN)[0]
    of_text: dict[str, list[str]] = {}
    for action in sorted(ACTIONS):  # they register as modules are imported, in any order
        of_text.setdefault("\n".join(_lines(order_of(action))), []).append(action)
    sections = (section(actions, order_of(actions[0])) for actions in of_text.values())
    return head + BEGIN + "\n" + "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
