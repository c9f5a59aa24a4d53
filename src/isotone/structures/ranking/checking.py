"""Is a ranking's tree as it should be? What nobody asks in production, and every test at its end."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from isotone.model import Steps
from isotone.structures.ranking.building import nodes_of
from isotone.structures.ranking.keys import HIGHEST, LOWEST
from isotone.structures.ranking.nodes import ROOT, Entry, total
from isotone.structures.ranking.tree import Tree


class Findings(NamedTuple):
    """What `verify` found: the faults in words, and how many keys there are."""

    faults: list[str]
    keys: int


def verify(tree: Tree) -> Steps[Findings]:
    """What is wrong; see `Ranking.verify`."""
    tree.forget()
    root, faults, items, there = (yield from tree.learn(ROOT)), list[str](), 0, 0
    if root is not None:
        level, number = root[0].level, sum(root[1])
        items = yield from _check(tree, faults, level, Entry(LOWEST, ROOT, number), HIGHEST)
    for kind in (tree.leaves, tree.counts, tree.shapes):
        there += len((yield from nodes_of(tree, kind)))
    if there != items:
        faults.append(f"{there} items where the tree has {items}")
    return Findings(faults, 0 if root is None else sum(root[1]))


def _check(tree: Tree, faults: list[str], level: int, entry: Entry, high: str) -> Steps[int]:
    """Check a node and all below it against the entry above; how many items these are."""
    name = f"{'inner node' if level else 'leaf'} {entry.node}"
    node = yield from tree.node(entry.node, level, entry.low, high)
    if node is None:
        faults.append(f"there is no {name} of level {level}")
        return 0
    lows = [each.low for each in node.entries]
    keys, is_alone = total(node.entries), (entry.low, high) == (LOWEST, HIGHEST)
    least = tree.sizes.least_children - 1 if level else tree.sizes.least_keys
    if is_alone:  # the root, or its only leaf
        least = min(level, 2)
    for fault, is_so in (
        (f"has {len(lows)} entries", not least <= len(lows) <= tree.sizes.most(level)),
        ("has another range", (node.low, node.high) != (entry.low, high)),
        ("has entries beyond its range", not all(entry.low <= low < high for low in lows)),
        ("has entries in no order", any(left >= right for left, right in pairwise(lows))),
        (f"has {keys} keys, counted {entry.number}", keys != entry.number),
    ):
        if is_so:
            faults.append(f"{name} {fault}")
    if level == 0:
        return 1
    items = 2
    for child, end in zip(node.entries, [*lows[1:], high], strict=True):
        items += yield from _check(tree, faults, level - 1, child, end)
    return items
