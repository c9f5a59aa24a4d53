"""Syntax trees: what the parser makes of a statement, before it is known which parts DynamoDB supports.

PartiQL allows much that DynamoDB refuses, each with a message of its own. So a statement is parsed as a whole first,
and `translation` turns its parts into the nodes of expressions. Each node knows its place in the statement, which is
that of its name, operator or first character.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Syntax:
    """A part of a statement; `start` and `end` are its place."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Variable(Syntax):
    """A name: of an attribute, a table or an index."""

    name: str


@dataclass(frozen=True, slots=True)
class Text(Syntax):
    """A string literal."""

    text: str


@dataclass(frozen=True, slots=True)
class Number(Syntax):
    """A number literal, as written."""

    digits: str


@dataclass(frozen=True, slots=True)
class Word(Syntax):
    """TRUE, FALSE, NULL or MISSING."""

    word: str


@dataclass(frozen=True, slots=True)
class Parameter(Syntax):
    """`?`, the value of the request's parameter at this position, from 0."""

    position: int


@dataclass(frozen=True, slots=True)
class Ion(Syntax):
    """A literal between backticks."""

    text: str


@dataclass(frozen=True, slots=True)
class Sequence(Syntax):
    """`[a, b]` or `(a, b)`."""

    members: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Bag(Syntax):
    """`<<a, b>>`."""

    members: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Struct(Syntax):
    """`{'name': value}`."""

    members: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, slots=True)
class Star(Syntax):
    """`.*` in a path."""


@dataclass(frozen=True, slots=True)
class PathSyntax(Syntax):
    """`root.name[index]`; each step is the name or the expression in brackets."""

    root: Expression
    steps: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Operation(Syntax):
    """An operator and its operands: one, two, or three of BETWEEN."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Is(Syntax):
    """`value IS [NOT] type`."""

    value: Expression
    type: str
    negated: bool


@dataclass(frozen=True, slots=True)
class CallSyntax(Syntax):
    """`function(argument, …)`, the name in small letters."""

    function: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Unsupported(Syntax):
    """A construct of PartiQL that DynamoDB has in no expression, such as CASE or a subquery."""

    token: str


Expression: TypeAlias = (
    Variable
    | Text
    | Number
    | Word
    | Parameter
    | Ion
    | Sequence
    | Bag
    | Struct
    | Star
    | PathSyntax
    | Operation
    | Is
    | CallSyntax
    | Unsupported
)


@dataclass(frozen=True, slots=True)
class SelectSyntax:
    """A SELECT statement. `columns` is None for `*`; `order` has an expression and whether it descends."""

    columns: tuple[Expression, ...] | None
    source: Expression
    where: Expression | None
    order: tuple[tuple[Expression, bool], ...]


@dataclass(frozen=True, slots=True)
class InsertSyntax:
    """An INSERT statement."""

    target: Expression
    value: Expression


@dataclass(frozen=True, slots=True)
class Assignment:
    """`SET target = value`, or `REMOVE target` without a value."""

    target: Expression
    value: Expression | None


Returning: TypeAlias = Literal["ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"]


@dataclass(frozen=True, slots=True)
class UpdateSyntax:
    """An UPDATE statement."""

    target: Expression
    assignments: tuple[Assignment, ...]
    where: Expression | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class DeleteSyntax:
    """A DELETE statement."""

    target: Expression
    where: Expression | None
    returning: Returning | None


@dataclass(frozen=True, slots=True)
class ExistsSyntax:
    """`EXISTS(SELECT …)` as a statement of a transaction."""

    select: SelectSyntax


StatementSyntax: TypeAlias = (
    SelectSyntax | InsertSyntax | UpdateSyntax | DeleteSyntax | ExistsSyntax
)
