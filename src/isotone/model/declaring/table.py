"""`Table`: the names and types (`Number`, `Binary`) of its key attributes, its indexes (`Global`, `Local`), its entities."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from isotone import limits
from isotone.errors import UsageError

if TYPE_CHECKING:
    from isotone.model.declaring.entity_schema import EntitySchema
    from isotone.model.reading.families import Collection

VERSION_ATTRIBUTE: Final = "_v"
"""The attribute that stores the version of the entity that wrote an item, unless it is the first."""

KeyType = Literal["S", "N", "B"]
Projection = Literal["ALL", "KEYS_ONLY"] | tuple[str, ...]
StreamView = Literal["KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"]


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """A key attribute, or part of a key: a string unless made by `Number` or `Binary`."""

    name: str
    type: KeyType = "S"


def Number(name: str) -> KeyAttribute:  # noqa: N802 - named like the type that it declares
    """A key attribute of type number: `Table("readings", partition="device", sort=Number("at"))`."""
    return KeyAttribute(name, "N")


def Binary(name: str) -> KeyAttribute:  # noqa: N802
    """A key attribute of type binary.

    Table("files", partition=Binary("digest"), sort=None)
    """
    return KeyAttribute(name, "B")


KeyName = str | KeyAttribute
KeyNames = KeyName | tuple[KeyName, ...] | None


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """The key attributes of a table or an index."""

    partition: tuple[KeyAttribute, ...]
    sort: tuple[KeyAttribute, ...] = ()

    @property
    def attributes(self) -> tuple[KeyAttribute, ...]:
        return self.partition + self.sort

    @property
    def is_wide(self) -> bool:
        """Whether the partition or sort key has several attributes (global indexes only)."""
        return len(self.partition) > 1 or len(self.sort) > 1


@dataclass(frozen=True, slots=True)
class IndexLayout:
    """A secondary index of a table."""

    kind: Literal["global", "local"]
    keys: KeyLayout
    projection: Projection = "ALL"
    one_kind: bool = False


class VectorLayout(NamedTuple):
    """A vector index of a table: the attribute with the vectors, and the attributes that narrow a search."""

    attribute: str
    dimensions: int
    distance: str
    search: tuple[tuple[KeyAttribute, Literal["HASH", "INLINE_FILTER"]], ...] = ()
    projection: Projection = "ALL"


def Global(  # noqa: N802
    partition: KeyNames,
    sort: KeyNames = None,
    *,
    projection: Projection = "ALL",
    one_kind: bool = False,
) -> IndexLayout:
    """A global secondary index; up to four attributes in each part of its key.

    `one_kind` reserves it for one entity, so that scanning the index reads only that entity.

        Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK", projection="KEYS_ONLY")})
    """
    layout = KeyLayout(_attributes(partition), _attributes(sort))
    for part in (layout.partition, layout.sort):
        if len(part) > limits.INDEX_KEY_PARTS:
            raise UsageError(
                f"a part of an index key has at most {limits.INDEX_KEY_PARTS} attributes, not {len(part)}"
            )
    return IndexLayout("global", layout, projection, one_kind)


def Local(sort: KeyName, *, projection: Projection = "ALL") -> IndexLayout:  # noqa: N802
    """A local secondary index: the table's partition key with another sort key.

    Table("shop", indexes={"by_total": Local("total")})
    """
    return IndexLayout("local", KeyLayout((), _attributes(sort)), projection)


def _attributes(names: KeyNames) -> tuple[KeyAttribute, ...]:
    if names is None:
        return ()
    each = names if isinstance(names, tuple) else (names,)
    return tuple(name if isinstance(name, KeyAttribute) else KeyAttribute(name) for name in each)


_NAME: Final = re.compile(r"[a-zA-Z0-9_.-]{3,255}")


def check_name(what: str, name: str) -> None:
    """Raise `UsageError` for a name that DynamoDB does not allow for a table or an index."""
    if _NAME.fullmatch(name) is None and not name.startswith("arn:"):
        raise UsageError(
            f"{name!r} cannot name {what}: a name has 3 to 255 characters, each one of a-z, A-Z, 0-9 and _ . -"
        )


_SUCH_INDEXES: Final = "write indexes={'GSI1': Global('GSI1PK', 'GSI1SK')}"


@dataclass(eq=False)
class Table:
    """One table, which may hold many kinds of entities.

    >>> shop = Table("shop", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})

    `tag` is the attribute that names an item's entity; `ttl` is the attribute by which items expire. `stream` is what
    records of the table's stream contain besides keys; None for no stream.
    """

    name: str
    partition: KeyName = "PK"
    sort: KeyName | None = "SK"
    indexes: Mapping[str, IndexLayout] = field(default_factory=dict)
    tag: str = "_type"
    ttl: str = "_expires"
    stream: StreamView | None = None

    def __post_init__(self) -> None:
        check_name("a table", self.name)
        if self.stream is not None and self.stream not in get_args(StreamView):
            raise UsageError(
                f"stream={self.stream!r} is not a view of a stream; use one of {', '.join(get_args(StreamView))}"
            )
        if not isinstance(self.indexes, Mapping):
            raise UsageError(f"indexes={self.indexes!r} is not a dict; {_SUCH_INDEXES}")
        for name, index in self.indexes.items():
            check_name("an index", name)
            if not isinstance(index, IndexLayout):
                raise UsageError(f"index {name!r} is {index!r}; {_SUCH_INDEXES}")
        self.keys: KeyLayout = KeyLayout(_attributes(self.partition), _attributes(self.sort))
        self.entities: dict[str, EntitySchema] = {}
        """The entities that are defined on this table, by tag."""
        self.previous_tags: dict[str, EntitySchema] = {}
        """The entities by their former tags: `was_tag`."""
        self.has_kinds = False
        """Whether an entity of the table has kinds: classes that extend it and share its keys."""
        self.redeclared: set[str] = set()
        """The tags for which this program has several classes: versions of an entity."""
        self.collections: dict[str, Collection[Any, Any]] = {}
        """Parents with children that are read together, by name."""
        self.vectors: dict[str, VectorLayout] = {}
        """The vector indexes that entities declare, by name."""
        self.layouts: dict[str, KeyLayout] = {
            name: self._layout(index) for name, index in self.indexes.items()
        }

    def entity_of(self, tag: str) -> EntitySchema | None:
        """The entity with a tag, current or previous."""
        return self.entities.get(tag) or self.previous_tags.get(tag)

    def _layout(self, index: IndexLayout) -> KeyLayout:
        if index.kind == "global":
            return index.keys
        return KeyLayout(self.keys.partition, index.keys.sort)

    def layout(self, index: str | None) -> KeyLayout:
        """The key attributes of the table, or of an index; raises `UsageError` for an unknown one."""
        if index is None:
            return self.keys
        try:
            return self.layouts[index]
        except KeyError:
            known = ", ".join(self.layouts) or "none"
            raise UsageError(
                f"table {self.name!r} declares no index {index!r} (it has: {known}); "
                f"add it to Table(indexes={{...}})"
            ) from None

    def __repr__(self) -> str:
        return f"Table({self.name!r})"
