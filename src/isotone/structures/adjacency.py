"""Many-to-many relations, read from either side, in order.

    enrolled = Adjacency(store, "enrolled", Student, Course)
    enrolled.link(ann, algebra, {"grade": 1})
    enrolled.rights(ann)            # the edges to her courses, in their order
    enrolled.lefts(algebra)         # the edges to its students

An edge is one item. Its primary key starts with the left node, and its index key with the right node, so
it is written once and read from both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from isotone.errors import AlreadyExists, UsageError
from isotone.model import (
    Attr,
    Condition,
    Entity,
    Global,
    Index,
    Key,
    Page,
    Query,
    Steps,
    Table,
    Transaction,
    created,
    field,
)
from isotone.structures.argument_checks import validated
from isotone.structures.structure import Batches, S, Structure, iteration, operation

Node = str | Entity
Side = Literal["left", "right"]
Progress = Callable[[int], None]
"""Called with the number of edges deleted so far."""


def layout(name: str = "adjacency") -> Table:
    """A table for edges."""
    return Table(name, indexes={"inverted": Global("EPK", "ESK")})


ADJACENCY: Final = layout()
_PAGE: Final = 25
_SEPARATOR: Final = "\n"  # between the attributes of a key; escaped inside them


class AdjacencyEdge(Entity):
    """An edge between two nodes, with data."""

    relation: Attr[str] = field()
    left: Attr[str] = field()
    right: Attr[str] = field()
    data: Attr[dict[str, Any]] = field(default_factory=dict)
    since: Attr[datetime | None] = created()

    primary: ClassVar[Key] = Key("EDGES", relation, left).sort("TO", right)
    inverted: ClassVar[Index] = Index("inverted", "EDGES", relation, right).sort("FROM", left)


_END: Final[dict[Side, Attr[str]]] = {"left": AdjacencyEdge.left, "right": AdjacencyEdge.right}


class Adjacency(Structure[S]):
    """The edges of one relation. Nodes are texts, or entities of the class given for their side.

    >>> takes = Adjacency(store, "takes")
    >>> created = takes.create_table()
    >>> edge = takes.link("ann", "algebra")
    >>> [edge.right for edge in takes.rights("ann")], [edge.left for edge in takes.lefts("algebra")]
    (['algebra'], ['ann'])
    """

    def __init__(
        self,
        store: S,
        relation: str,
        left: type[Entity] | None = None,
        right: type[Entity] | None = None,
        *,
        table: Table | None = None,
    ) -> None:
        super().__init__(store, table or ADJACENCY)
        self.relation = relation
        self._edges = self.bind(AdjacencyEdge)
        self._kinds: dict[Side, type[Entity] | None] = {"left": left, "right": right}

    @staticmethod
    def layout(name: str = "adjacency") -> Table:
        """A table for edges."""
        return layout(name)

    # One edge

    @operation
    def link(self, left: Node, right: Node, data: Mapping[str, Any] | None = None) -> Steps[bool]:
        """Create an edge; returns False, and changes nothing, if it exists. Cost: one write."""
        try:
            yield from self.calls.create(self._edge(left, right, data))
        except AlreadyExists:
            return False
        return True

    @operation
    def describe(self, left: Node, right: Node, data: Mapping[str, Any]) -> Steps[AdjacencyEdge]:
        """Replace the data of an edge; returns the edge. Cost: one write. Raises `NotFound`."""
        change = AdjacencyEdge.data.set(dict(data))
        return self.calls.update(self._edges, change, **self._key(left, right))

    @operation
    def unlink(self, left: Node, right: Node) -> Steps[bool]:
        """Delete an edge; returns whether it existed. Cost: one write."""
        was = yield from self.calls.delete(self._edges, **self._key(left, right))
        return was is not None

    @operation
    def edge(self, left: Node, right: Node) -> Steps[AdjacencyEdge | None]:
        """The edge between two nodes, or None. Cost: a consistent read."""
        key = self._key(left, right)
        return self.calls.get(self._edges, consistent=True, **key)

    @operation
    def link_many(self, pairs: Iterable[tuple[Node, Node]]) -> Steps[int]:
        """Create edges, replacing existing ones; returns how many. Cost: one write each."""
        return self.calls.put_many([self._edge(*_ends(pair), None) for pair in pairs])

    @validated
    def within(self, tx: Transaction) -> EdgeWrites:
        """The writes of edges as part of a transaction."""
        return EdgeWrites(self, tx)

    # From either side

    @operation
    def rights(
        self, left: Node, *, size: int = _PAGE, cursor: str | None = None
    ) -> Steps[Page[AdjacencyEdge]]:
        """A page of the edges of a left node, ordered by the right ones. Cost: a query."""
        return self.calls.page(self._from("left", left), size=size, cursor=cursor)

    @operation
    def lefts(
        self, right: Node, *, size: int = _PAGE, cursor: str | None = None
    ) -> Steps[Page[AdjacencyEdge]]:
        """A page of the edges of a right node, ordered by the left ones. Cost: a query of the index."""
        return self.calls.page(self._from("right", right), size=size, cursor=cursor)

    @iteration
    def all_rights(self, left: Node) -> Batches[AdjacencyEdge]:
        """All edges of a left node, ordered by the right ones: `for`, or `async for`."""
        return self._all(self._from("left", left))

    @iteration
    def all_lefts(self, right: Node) -> Batches[AdjacencyEdge]:
        """All edges of a right node, ordered by the left ones: `for`, or `async for`."""
        return self._all(self._from("right", right))

    @operation
    def degree(self, *, left: Node | None = None, right: Node | None = None) -> Steps[int]:
        """The number of edges of a node. Cost: a query of all of them."""
        return self.calls.count(self._of_one(left, right))

    @iteration
    def common_rights(self, one: Node, other: Node) -> Batches[str]:
        """The right nodes that two left ones have in common, in order; skips nodes that cannot be common.

        Cost: at most two queries for each 25 of both, fewer if one has few nodes or the nodes are far apart.
        """
        return self._common("left", one, other)

    @iteration
    def common_lefts(self, one: Node, other: Node) -> Batches[str]:
        """The left nodes that two right ones have in common; see `common_rights`."""
        return self._common("right", one, other)

    @operation
    def drop(
        self,
        *,
        left: Node | None = None,
        right: Node | None = None,
        progress: Progress | None = None,
    ) -> Steps[int]:
        """Delete all edges of a node; returns how many. After an interruption, call it again.

        Edges that are created meanwhile may remain. Cost: a query of them, and a write for each, 25 to a request.
        """
        traversal = self.calls.traverse(self._of_one(left, right).page_size(100))
        dropped = 0
        while not traversal.is_over:
            edges = yield from traversal.step()
            dropped += yield from self.calls.delete_many(edges)
            if progress is not None:
                progress(dropped)
        return dropped

    # The nodes themselves

    @operation
    def nodes(self, edges: Iterable[AdjacencyEdge], side: Side) -> Steps[list[Any]]:
        """The entities at one end of edges, in their order; None for each that does not exist.

        Cost: a read of each, a hundred to a request. Raises `UsageError` if no class was given.
        """
        kind = self._kinds[side]
        if kind is None:
            raise UsageError(
                f"relation {self.relation!r} has no class for its {side} nodes; give one: "
                "Adjacency(store, relation, Left, Right)"
            )
        keys = [_parsed(kind, getattr(edge, side)) for edge in edges]
        return self.calls.get_many(kind, keys)

    # Steps

    def _text(self, side: Side, node: Node) -> str:
        if isinstance(node, str):
            return node
        kind = self._kinds[side]
        if kind is None or not isinstance(node, kind):
            wanted = "texts" if kind is None else f"{kind.__name__}s, or texts"
            raise UsageError(
                f"the {side} nodes of {self.relation!r} are {wanted}, not a {type(node).__name__}"
            )
        return _written(node)

    def _key(self, left: Node, right: Node) -> dict[str, Any]:
        texts = {"left": self._text("left", left), "right": self._text("right", right)}
        return {"relation": self.relation, **texts}

    def _edge(self, left: Node, right: Node, data: Mapping[str, Any] | None) -> AdjacencyEdge:
        return self._edges(**self._key(left, right), data=dict(data or {}))

    def _from(self, side: Side, node: Node, *further: Condition) -> Query[AdjacencyEdge]:
        """The edges of a node, in the order of the nodes at the other end."""
        pattern = self._edges.primary if side == "left" else self._edges.inverted
        own = _END[side] == self._text(side, node)
        return pattern.where(AdjacencyEdge.relation == self.relation, own, *further)

    def _of_one(self, left: Node | None, right: Node | None) -> Query[AdjacencyEdge]:
        if left is not None and right is None:
            return self._from("left", left)
        if right is not None and left is None:
            return self._from("right", right)
        raise UsageError("give the node of one side, as left=… or right=…")

    def _all(self, query: Query[AdjacencyEdge]) -> Batches[AdjacencyEdge]:
        traversal = self.calls.traverse(query)
        while not traversal.is_over:
            yield traversal.step()

    def _common(self, side: Side, one: Node, other: Node) -> Batches[str]:
        """A merge join: read pages of both alternately, and skip to the next possible match."""
        place: str | None = ""

        def step() -> Steps[list[str]]:
            nonlocal place
            here = yield from self._neighbours(side, one, place or "")
            there = (yield from self._neighbours(side, other, here[0])) if here else []
            last = min((page[-1] for page in (here, there) if len(page) == _PAGE), default=None)
            if last is None or not there:
                place = None  # at least one of the nodes has no more edges
                return [node for node in here if node in there]
            ahead = [node for node in here + there if node > last]
            place = min(ahead, default=last + "\0")
            return [node for node in here if node in there and node <= last]

        while place is not None:
            yield step()

    def _neighbours(self, side: Side, node: Node, place: str) -> Steps[list[str]]:
        """The first neighbours of a node, from a position on."""
        far: Side = "right" if side == "left" else "left"
        ahead = (_END[far] >= place,) if place else ()
        edges = yield from self.calls.all(self._from(side, node, *ahead).limit(_PAGE))
        return [getattr(edge, far) for edge in edges]


class EdgeWrites:
    """The writes of an `Adjacency` in a transaction."""

    def __init__(self, adjacency: Adjacency[Any], tx: Transaction) -> None:
        self._adjacency = adjacency
        self._tx = tx

    @validated
    def link(self, left: Node, right: Node, data: Mapping[str, Any] | None = None) -> None:
        """Create an edge, which must not exist."""
        self._tx.create(self._adjacency._edge(left, right, data))

    def unlink(self, left: Node, right: Node) -> None:
        """Delete an edge."""
        self._tx.delete(self._adjacency._edges, **self._adjacency._key(left, right))


def _ends(pair: Any) -> tuple[Node, Node]:
    if not (isinstance(pair, tuple | list) and len(pair) == 2):
        raise UsageError(f"{pair!r} is not a pair of nodes; write (left, right)")
    left, right = pair
    return left, right


def _written(node: Entity) -> str:
    """A text that sorts like the entity's key: its only key field, or else its whole key."""
    schema = node.__schema__
    names = [part.name for part in schema.primary.fields]
    if _is_a_text(type(node)):
        return str(getattr(node, names[0]))
    key = schema.primary_key(node.__dict__)
    if any("S" not in value for value in key.values()):
        raise UsageError(
            f"the primary key of {schema.tag} has numbers or bytes; pass the nodes as texts"
        )
    return _SEPARATOR.join(value["S"] for value in key.values())


def _parsed(kind: type[Entity], text: str) -> dict[str, Any]:
    """The fields of the primary key, from the text of `_written`."""
    primary = kind.__schema__.primary
    if _is_a_text(kind):
        return {primary.fields[0].name: text}
    fields: dict[str, Any] = {}
    for slot, part in zip(primary.slots, text.split(_SEPARATOR), strict=True):
        fields.update(slot.parse({"S": part}))
    return fields


def _is_a_text(kind: type[Entity]) -> bool:
    fields = kind.__schema__.primary.fields
    return len(fields) == 1 and fields[0].annotation is str
