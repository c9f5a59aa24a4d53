"""The kinds of findings of `verify` and `rewrite` (invalid, stale keys …): meaning, advice, what a rewrite does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal[
    "unrecognized",
    "untagged",
    "previous_tag",
    "wrong_tag",
    "older_version",
    "newer_version",
    "upgrade_failed",
    "invalid",
    "missing",
    "implied",
    "other_form",
    "computed",
    "key",
    "overflow",
    "headroom",
    "index_missing",
    "index_stale",
    "index_orphaned",
    "undeclared_index",
    "unknown_attribute",
    "marker_missing",
    "marker_taken",
    "marker_orphaned",
]

OfRewrite = Literal["corrects", "attempts", "ignores", "refuses"]
"""What `store.rewrite` does about a finding.

It *corrects* an item by writing it again. It *attempts* to, where a `change=` function may be needed, and counts
failures. It *ignores* what only such a function can change. It *refuses* an item if nobody can know what the item
should be. It never meets items without an entity, nor single markers.
"""


@dataclass(frozen=True, slots=True)
class FindingKind:
    """The description of one kind of findings.

    `rewrite` is None if a rewrite never meets the kind. `advice` has placeholders for `{entity}` and `{name}`. A
    *notice* is not a difference from what the entity would write now. A finding that *hides values* means that the item
    may have values that cannot be read.
    """

    meaning: str
    advice: str
    rewrite: OfRewrite | None = "attempts"
    is_notice: bool = False
    hides_values: bool = False


FINDING_KINDS: Final[Mapping[Kind, FindingKind]] = {
    "unrecognized": FindingKind(
        "no entity of the program has such an item",
        "declare the entity of these items; a class that was renamed needs tag= with its former name",
        rewrite=None,
        hides_values=True,
    ),
    "untagged": FindingKind(
        "an item of the entity, by the form of its key, but without the tag",
        "store.rewrite({entity}) adds the tag",
        rewrite="corrects",
    ),
    "previous_tag": FindingKind(
        "the tag that the entity had before: was_tag",
        "store.rewrite({entity}) gives these items the present tag",
        rewrite="corrects",
    ),
    "wrong_tag": FindingKind(
        "the key is that of another entity than the tag says",
        "put each item again as the entity that its key is of, or delete it",
        rewrite="refuses",
        hides_values=True,
    ),
    "older_version": FindingKind(
        "an @upgrade applies",
        "reads upgrade these items; store.rewrite({entity}) writes them in the present version",
        rewrite="corrects",
    ),
    "newer_version": FindingKind(
        "a later program wrote it",
        "deploy the newer program; this one neither reads these items nor writes over them",
        rewrite="refuses",
        hides_values=True,
    ),
    "upgrade_failed": FindingKind(
        "an @upgrade does not take the item",
        "make the @upgrade of {entity} accept these items",
        hides_values=True,
    ),
    "invalid": FindingKind(
        "a value that is not of the field's type",
        "set {name} by store.update, or declare the type that is stored; until then reads raise InvalidItem",
        hides_values=True,
    ),
    "missing": FindingKind(
        "no attribute, and the field has no default",
        "declare a default for {name}, or add it by an @upgrade; until then reads raise InvalidItem",
        hides_values=True,
    ),
    "implied": FindingKind(
        "no attribute; reads take the value from the default or a key",
        "filters and conditions do not see {name} in these items; store.rewrite({entity}) writes it",
        rewrite="corrects",
    ),
    "other_form": FindingKind(
        "the right value, written in another way",
        "filters and conditions compare {name} as it is stored; store.rewrite({entity}) writes the declared form",
        rewrite="corrects",
    ),
    "computed": FindingKind(
        "not what the function of a computed field returns",
        "store.rewrite({entity}) computes {name} again",
        rewrite="corrects",
        hides_values=True,
    ),
    "key": FindingKind(
        "another primary key than the fields give",
        "reads by key miss these items; store.rewrite({entity}) moves them to their keys",
        rewrite="corrects",
    ),
    "overflow": FindingKind(
        "a value that does not fit into a key",
        "the next put of these items is refused; for a number declare a larger maximum with was=, then widen the "
        "keys; of another value the examples say what to change",
        hides_values=True,
    ),
    "headroom": FindingKind(
        "a number that approaches the maximum of its key",
        "declare a larger maximum of {name} with was=, then widen the keys",
        rewrite="ignores",
        is_notice=True,
    ),
    "index_missing": FindingKind(
        "not in an index in which it must be",
        "queries of {name} miss these items; store.rewrite({entity}) adds them",
        rewrite="corrects",
    ),
    "index_stale": FindingKind(
        "in an index under another key than the fields give",
        "queries of {name} find these items in a wrong place; store.rewrite({entity}) corrects them",
        rewrite="corrects",
    ),
    "index_orphaned": FindingKind(
        "in an index in which it must not be",
        "queries of {name} find these items, and must not; store.rewrite({entity}) removes them",
        rewrite="corrects",
    ),
    "undeclared_index": FindingKind(
        "in an index of which the entity has no key",
        "declare an Index of {entity} that has {name}, or remove the attribute",
        rewrite="ignores",
    ),
    "unknown_attribute": FindingKind(
        "an attribute that the entity does not declare",
        "declare a field for {name}, or remove the attribute",
        rewrite="ignores",
    ),
    "marker_missing": FindingKind(
        "nothing keeps others from taking a unique value",
        "nothing keeps others from taking these values of {name}; store.rewrite({entity}) reserves them",
        rewrite="corrects",
    ),
    "marker_taken": FindingKind(
        "another entity holds the unique value",
        "another item holds these values of {name}; change one of the two",
    ),
    "marker_orphaned": FindingKind(
        "a unique value is held for an entity that does not have it",
        "nobody has these values of {name}, and nobody can take them; delete the markers",
        rewrite=None,
    ),
}


def _those(is_meant: Callable[[FindingKind], bool]) -> frozenset[Kind]:
    return frozenset(kind for kind, what in FINDING_KINDS.items() if is_meant(what))


NOTICES: Final = _those(lambda what: what.is_notice)
IGNORED_BY_REWRITE: Final = _those(lambda what: what.rewrite == "ignores")
REFUSED_BY_REWRITE: Final = _those(lambda what: what.rewrite == "refuses")
HIDING_VALUES: Final = _those(lambda what: what.hides_values)
