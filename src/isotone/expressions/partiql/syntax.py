"""The syntax tree of a PartiQL statement, before `translation` checks which parts DynamoDB supports.

PartiQL allows much that DynamoDB refuses, each with its own message. So the whole statement is parsed first, and
`translation` turns its parts into the nodes of expressions. Each node has a position in the statement: that of its
name, operator or first character.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec


class Syntax(msgspec.Struct, frozen=True):
    """A part of a statement; `start` and `end` are its position."""

    start: int
    end: int


class Variable(Syntax, frozen=True):
    """A name: of an attribute, a table or an index."""

    name: str


class TextLiteral(Syntax, frozen=True):
    """A string literal."""

    text: str


class Number(Syntax, frozen=True):
    """A number literal, as written."""

    digits: str


class KeywordLiteral(Syntax, frozen=True):
    """TRUE, FALSE, NULL or MISSING."""

    word: str


class Parameter(Syntax, frozen=True):
    """`?`, the value of the request's parameter at this position, from 0."""

    position: int


class Ion(Syntax, frozen=True):
    """An Ion literal, between backticks."""

    text: str


class ListLiteral(Syntax, frozen=True):
    """`[a, b]` or `(a, b)`."""

    members: tuple[Expression, ...]


class Bag(Syntax, frozen=True):
    """`<<a, b>>`."""

    members: tuple[Expression, ...]


class Struct(Syntax, frozen=True):
    """`{'name': value}`."""

    members: tuple[tuple[Expression, Expression], ...]


class Wildcard(Syntax, frozen=True):
    """`.*` or `[*]` in a path; `form` says which."""

    form: Literal[".*", "[*]"]


class PathSyntax(Syntax, frozen=True):
    """`root.name[index]`; each step is the name or the expression in brackets."""

    root: Expression
    steps: tuple[Expression, ...]


class Operation(Syntax, frozen=True):
    """An operator and its operands: one, two, or three for BETWEEN."""

    operator: str
    operands: tuple[Expression, ...]


class Is(Syntax, frozen=True):
    """`value IS [NOT] type`."""

    value: Expression
    type: str
    negated: bool


class CallSyntax(Syntax, frozen=True):
    """`function(argument, …)`, with the name in lower case."""

    function: str
    arguments: tuple[Expression, ...]


class UnsupportedSyntax(Syntax, frozen=True):
    """A PartiQL construct that DynamoDB never supports, such as CASE."""

    token: str


class Clause(Syntax, frozen=True):
    """A statement in the position of an expression: the whole text, or a subquery."""

    statement: StatementSyntax


Expression: TypeAlias = (
    Variable
    | TextLiteral
    | Number
    | KeywordLiteral
    | Parameter
    | Ion
    | ListLiteral
    | Bag
    | Struct
    | Wildcard
    | PathSyntax
    | Operation
    | Is
    | CallSyntax
    | UnsupportedSyntax
    | Clause
)


class SelectSyntax(msgspec.Struct, frozen=True):
    """A SELECT statement. `columns` is None for `*`; `order` has an expression and whether it is descending."""

    columns: tuple[Expression, ...] | None
    source: Expression
    where: Expression | None
    order: tuple[tuple[Expression, bool], ...]


class InsertSyntax(msgspec.Struct, frozen=True):
    """An INSERT statement."""

    target: Expression
    value: Expression


class Assignment(msgspec.Struct, frozen=True):
    """`SET target = value`, or `REMOVE target` without a value."""

    target: Expression
    value: Expression | None


Returning: TypeAlias = Literal["ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"]


class UpdateSyntax(msgspec.Struct, frozen=True):
    """An UPDATE statement."""

    target: Expression
    assignments: tuple[Assignment, ...]
    where: Expression | None
    returning: Returning | None


class DeleteSyntax(msgspec.Struct, frozen=True):
    """A DELETE statement."""

    target: Expression
    where: Expression | None
    returning: Returning | None


class ExistsSyntax(msgspec.Struct, frozen=True):
    """`EXISTS(SELECT …)` as a statement in a transaction."""

    select: SelectSyntax


StatementSyntax: TypeAlias = (
    SelectSyntax | InsertSyntax | UpdateSyntax | DeleteSyntax | ExistsSyntax
)
