"""Compiles PartiQL text to statements (`Select`, `Exists`, `InsertStatement` …); how the columns of SELECT are named.

A statement does not know its table; `planning` finds the part of its condition that selects keys of a key schema.
Statements are cached by text, with their compiled expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, TypeAlias

import msgspec

from isotone.errors import ValidationException
from isotone.expressions.condition import CompiledCondition
from isotone.expressions.expression import Expression
from isotone.expressions.messages import RefusalMessage
from isotone.expressions.nodes import (
    ConditionNode,
    Literal,
    Node,
    Path,
    ProjectionNode,
    UpdateNode,
    ValueRef,
)
from isotone.expressions.operands import lookup
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.parser import Malformed, parse
from isotone.expressions.partiql.syntax import (
    DeleteSyntax,
    ExistsSyntax,
    InsertSyntax,
    Parameter,
    PathSyntax,
    Returning,
    SelectSyntax,
    StatementSyntax,
    Struct,
    UpdateSyntax,
    Variable,
    Wildcard,
)
from isotone.expressions.partiql.syntax import Expression as Syntax
from isotone.expressions.partiql.translation import Translation, is_set
from isotone.expressions.projection import CompiledProjection
from isotone.expressions.rules import constant, resolved_path
from isotone.expressions.update import CompiledUpdate
from isotone.values.cache import Cache
from isotone.values.types import AttributeValue, Item

_CACHED: Final = 16 << 20  # bytes of cached statements
_is_name: Final = re.compile("[a-zA-Z0-9_.-]{3,255}").fullmatch


class Where:
    """The condition of a statement: its tree, and the compiled condition.

    `plans` and `beyond` cache the results of `planning` for as long as the statement is cached.
    """

    __slots__ = ("beyond", "condition", "node", "plans")

    def __init__(self, node: ConditionNode) -> None:
        self.node: ConditionNode = node
        self.plans: dict[tuple[tuple[str, ...], tuple[str, ...]], Any] = {}
        self.beyond: dict[tuple[str, ...], tuple[CompiledCondition | None]] = {}
        self.condition: CompiledCondition = CompiledCondition.from_node(node, parameter="")
        if not self.condition.values_used:  # all values are literals
            self.condition.check({})


class SelectedColumns(CompiledProjection):
    """The projection of a SELECT: each path under its last name, with the indexes after it.

    `a.b` is `b` in the result, and `a.b[0]` is `b[0]`.
    """

    __slots__ = ()

    def _compile(self, tree: ProjectionNode, nodes: list[Node]) -> None:
        named = {_column_name(path): path for path in tree.paths}
        if len(named) < len(tree.paths):
            names = [_column_name(path) for path in tree.paths]
            twice = next(name for at, name in enumerate(names) if name in names[:at])
            raise RefusalMessage(messages.DUPLICATE_COLUMN, name=twice)
        super()._compile(tree, nodes)  # refuses paths that overlap
        columns = [(name, lookup(resolved_path(path))) for name, path in named.items()]

        def project(item: Item) -> Item:
            found = [(name, find(item)) for name, find in columns]
            return {name: value for name, value in found if value is not None}

        self.project: Callable[[Item], Item] = project


def _column_name(path: Path) -> str:
    elements: tuple[Any, ...] = path.elements
    last = max(at for at, element in enumerate(elements) if type(element) is str)
    return str(elements[last]) + "".join(f"[{index}]" for index in elements[last + 1 :])


class _Unselectable(Exception):
    """Raised for a SELECT of something that cannot be a column; the argument is the message."""

    def __init__(self, refusal: RefusalMessage, table: str, index: str | None) -> None:
        super().__init__(str(refusal))
        self.table = table
        self.index = index


class Statement(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The base of all statements. `parameters` is their number.

    `set_parameters` are the parameters that must be sets, each with the message for another value. `refused` is why a
    write cannot write its target; it is reported after errors in the parameters.
    """

    text: str
    table: str
    parameters: int
    refused: str | None = None
    set_parameters: tuple[tuple[str, str], ...] = ()

    @property
    def nodes(self) -> int:
        """How many nodes its expressions have."""
        return sum(expression.nodes for expression in self.expressions)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The compiled expressions whose values must be checked."""
        return ()

    def bind(self, parameters: list[AttributeValue]) -> dict[str, AttributeValue]:
        """The values of the expressions' placeholders, from the parameters, which must be canonical.

        Surplus parameters are ignored, as the service does.
        """
        if len(parameters) < self.parameters:
            raise ValidationException(messages.PARAMETER_COUNT)
        values = {f":{position}": value for position, value in enumerate(parameters)}
        for name, message in self.set_parameters:
            if not is_set(values[name]):
                raise ValidationException(message)
        for expression in self.expressions:
            expression.check(values)
        if self.refused is not None:
            raise ValidationException(self.refused)
        return values


class OrderBy(msgspec.Struct, frozen=True):
    """An attribute of ORDER BY and its direction. `refused` is the message if it is not an attribute."""

    name: str
    descends: bool
    refused: str | None = None


# `dict=True` for the cached `projection`
class Select(Statement, frozen=True, eq=False, kw_only=True, dict=True):
    """Read items. `paths` are the selected paths, and `columns` picks them; both are None for `*`."""

    index: str | None
    paths: ProjectionNode | None
    columns: SelectedColumns | None
    where: Where | None
    order: tuple[OrderBy, ...]

    @cached_property
    def projection(self) -> CompiledProjection | None:
        """What batches and transactions return: the selected paths, each in its original position."""
        return (
            None if self.paths is None else CompiledProjection.from_node(self.paths, parameter="")
        )

    @property
    def selecting(self) -> tuple[Expression, ...]:
        """The expressions that select columns, if there are any."""
        return () if self.columns is None else (self.columns,)

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return () if self.where is None else (self.where.condition,)


class InsertStatement(Statement, frozen=True, eq=False, kw_only=True):
    """Put a new item; each attribute is a literal or a parameter."""

    attributes: Mapping[str, Literal | ValueRef]

    def item(self, values: Mapping[str, AttributeValue]) -> Item:
        """The item to put."""
        return {name: constant(value)(values) for name, value in self.attributes.items()}  # type: ignore[misc] # no path


class UpdateStatement(Statement, frozen=True, eq=False, kw_only=True):
    """Change one existing item."""

    update: CompiledUpdate
    where: Where | None
    returning: Returning | None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return (*(() if self.where is None else (self.where.condition,)), self.update)


class DeleteStatement(Statement, frozen=True, eq=False, kw_only=True):
    """Delete one item."""

    where: Where | None
    returning: Returning | None

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return () if self.where is None else (self.where.condition,)


class Exists(Statement, frozen=True, eq=False, kw_only=True):
    """Check a condition on one item, in a transaction."""

    select: Select

    @property
    def expressions(self) -> tuple[Expression, ...]:
        return self.select.expressions


AnyStatement: TypeAlias = Select | InsertStatement | UpdateStatement | DeleteStatement | Exists


def parse_statement(
    text: str, before_columns: Callable[[str, str | None], None] | None = None
) -> AnyStatement:
    """The statement of a text. O(length) the first time, then cached.

    Raises `ValidationException` with the service's message for a text that is not a statement, or that DynamoDB does
    not support. `before_columns` is called with the table and the index before a SELECT is refused for its columns,
    because the service looks up the index first.
    """
    try:
        return _statements[text]
    except _Unselectable as error:
        if before_columns is not None:
            before_columns(error.table, error.index)
        raise ValidationException(str(error)) from None


def _parsed(text: str, length: int) -> AnyStatement:
    try:
        tree, parameters = parse(text)
        return _Building(text, parameters).build(tree)
    except Malformed as error:
        raise ValidationException(messages.MALFORMED.format(reason=error)) from None
    except RefusalMessage as refusal:
        raise ValidationException(str(refusal)) from None
    except RecursionError:
        raise ValidationException(
            messages.MALFORMED.format(reason="Expression is nested too deeply")
        ) from None


_statements: Final = Cache(_parsed, _CACHED)


class _Building:
    """Builds the statement of one text."""

    def __init__(self, text: str, parameters: int) -> None:
        self._text = text
        self._parameters = parameters
        self._translation = Translation(text)

    def build(self, tree: StatementSyntax) -> AnyStatement:
        match tree:
            case SelectSyntax():
                return self._select(tree)
            case InsertSyntax():
                return self._insert(tree)
            case UpdateSyntax():
                return self._update(tree)
            case DeleteSyntax():
                return self._delete(tree)
            case ExistsSyntax(select=select):
                inner = self._select(select)
                return Exists(
                    text=self._text, table=inner.table, parameters=self._parameters, select=inner
                )

    def _select(self, tree: SelectSyntax) -> Select:
        table, *index = self._source(tree.source)
        paths = columns = None
        if tree.columns is not None:
            try:
                paths = ProjectionNode(tuple(map(self._column, tree.columns)))
                columns = SelectedColumns.from_node(paths, parameter="")
            except RefusalMessage as refusal:
                raise _Unselectable(refusal, table, index[0] if index else None) from None
        where = self._where(tree.where)
        order = tuple(self._order_by(key, descends) for key, descends in tree.order)
        return Select(
            text=self._text,
            table=table,
            parameters=self._parameters,
            index=index[0] if index else None,
            paths=paths,
            columns=columns,
            where=where,
            order=order,
        )

    def _column(self, node: Syntax) -> Path:
        if isinstance(node, PathSyntax) and any(isinstance(step, Wildcard) for step in node.steps):
            raise RefusalMessage(messages.HIERARCHY)
        return self._translation.path(node)

    def _order_by(self, node: Syntax, descends: bool) -> OrderBy:
        if isinstance(node, Variable):
            return OrderBy(node.name, descends)
        place = node.root if isinstance(node, PathSyntax) else node
        if isinstance(node, Parameter):
            kind = "PARAMETER"
        elif isinstance(node, PathSyntax):
            kind = "PATH"
        else:
            kind = self._text[node.start : node.end].replace("'", '"')
        refused = self._translation.refusal(messages.ORDER_TYPE, place, type=kind)
        return OrderBy("", descends, str(refused))

    def _insert(self, tree: InsertSyntax) -> InsertStatement:
        table = self._table(tree.target)
        if not isinstance(tree.value, Struct):
            raise self._translation.refusal(messages.INSERT_FORMAT, tree.value)
        attributes = {
            name: self._translation.constant(value)
            for name, value in self._translation.members(tree.value)
        }
        return InsertStatement(
            text=self._text, table=table, parameters=self._parameters, attributes=attributes
        )

    def _update(self, tree: UpdateSyntax) -> UpdateStatement:
        table, refused = self._target(tree.target)
        where = self._where(tree.where)
        actions = tuple(map(self._translation.action, tree.assignments))
        return UpdateStatement(
            text=self._text,
            table=table,
            refused=refused,
            parameters=self._parameters,
            update=CompiledUpdate.from_node(UpdateNode(actions), parameter=""),
            where=where,
            returning=tree.returning,
            set_parameters=tuple(self._translation.set_parameters),
        )

    def _delete(self, tree: DeleteSyntax) -> DeleteStatement:
        if tree.returning not in (None, "ALL OLD"):
            raise RefusalMessage(messages.RETURNING_IN_DELETE, returning=tree.returning)
        table, refused = self._target(tree.target)
        return DeleteStatement(
            text=self._text,
            table=table,
            refused=refused,
            parameters=self._parameters,
            where=self._where(tree.where),
            returning=tree.returning,
        )

    def _where(self, node: Syntax | None) -> Where | None:
        return None if node is None else Where(self._translation.condition(node))

    # Sources

    def _source(self, node: Syntax) -> list[str]:
        """The table that is read, and the index if there is one."""
        names = self._names(node)
        if not all(map(_is_name, names)):
            raise RefusalMessage(messages.TABLE_NAME)
        return names

    def _target(self, node: Syntax) -> tuple[str, str | None]:
        """The table of an UPDATE or a DELETE, and why it cannot be written, if so."""
        names = self._names(node)
        if not all(map(_is_name, names)):
            return names[0], messages.TABLE_NAME
        return names[0], messages.NOT_ON_INDEX if len(names) > 1 else None

    def _names(self, node: Syntax) -> list[str]:
        names = self._path_of_names(node)
        if not all(names):
            raise RefusalMessage(messages.EMPTY_NAME)
        if len(names) > 2:
            raise RefusalMessage(messages.LONG_SOURCE)
        return names

    def _path_of_names(self, node: Syntax) -> list[str]:
        match node:
            case Variable(name=name):
                return [name]
            case PathSyntax(root=Variable(name=name), steps=steps):
                return [name, *map(self._source_step, steps)]
        raise RefusalMessage(messages.UNEXPECTED_SOURCE)

    def _source_step(self, node: Syntax) -> str:
        match node:
            case Variable(name=name):
                return name
            case Wildcard():
                raise self._translation.refusal(messages.UNPIVOT_PATH, node)
        raise RefusalMessage(messages.LIST_IN_SOURCE)

    def _table(self, node: Syntax) -> str:
        """The table of an INSERT. Any name passes here: a table with a malformed name is not found later."""
        if isinstance(node, PathSyntax):
            raise self._translation.refusal(messages.ONE_TABLE, node.root)
        return self._names(node)[0]
