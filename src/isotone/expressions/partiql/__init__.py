"""PartiQL: DynamoDB's SQL dialect, compiled to the trees of expressions.

    parse_statement("SELECT * FROM music WHERE artist = ?")    a compiled statement, cached by its text
    plan_where(statement.where, ("artist",), ("song",))        the part of the condition that selects keys

A text passes `tokenizer`, `parser` (a syntax tree of everything that PartiQL has) and `translation` (the nodes of
conditions, projections and updates). `statements` compiles the nodes, and `planning` finds what a condition reads.
`fault_places` says where the fault of a statement is.
"""

from __future__ import annotations

from isotone.expressions.partiql.fault_places import FaultPlace, fault_place
from isotone.expressions.partiql.planning import (
    WherePlan,
    beyond_key,
    compared_with_keys,
    key_of,
    plan_where,
)
from isotone.expressions.partiql.statements import (
    AnyStatement,
    DeleteStatement,
    Exists,
    InsertStatement,
    Select,
    UpdateStatement,
    Where,
    parse_statement,
)
from isotone.expressions.partiql.tokenizer import split_statements

__all__ = [
    "AnyStatement",
    "DeleteStatement",
    "Exists",
    "FaultPlace",
    "InsertStatement",
    "Select",
    "UpdateStatement",
    "Where",
    "WherePlan",
    "beyond_key",
    "compared_with_keys",
    "fault_place",
    "key_of",
    "parse_statement",
    "plan_where",
    "split_statements",
]
