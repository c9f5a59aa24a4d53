"""The grammar of PartiQL: recursive-descent parser from tokens to a syntax tree (second stage).

    statement   := expression [ ; ]                   a select, insert, update or delete, or EXISTS ( select )
    select      := SELECT [ALL] ( * | column {, column} ) FROM path [WHERE expression] [ORDER BY key {, key}]
    insert      := INSERT INTO path VALUE expression
    update      := UPDATE path changes [WHERE expression] [returning]
                 | FROM path [WHERE expression] changes [returning]
    changes     := ( SET path = expression {, …} | REMOVE path )+
    delete      := DELETE FROM path [WHERE expression] [returning]
    returning   := RETURNING ( ALL | MODIFIED ) ( OLD | NEW ) *

    expression  := operators by PRECEDENCE over: [NOT | + | -] primary
    primary     := literal | ? | name | function ( … ) | ( … ) | [ … ] | << … >> | { … }, then { . name | [ … ] }
                 | select | insert | update | delete

A text that is not PartiQL raises `Malformed` with the reason that PartiQL's reference parser gives, because the service
shows it; invalid tokens have no reason. A statement that PartiQL has but DynamoDB lacks is refused with the service's
message, but only after the whole text was parsed: malformed text is reported first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeVar

from isotone.expressions.messages import RefusalMessage
from isotone.expressions.partiql import messages
from isotone.expressions.partiql.syntax import (
    Assignment,
    Bag,
    CallSyntax,
    Clause,
    DeleteSyntax,
    ExistsSyntax,
    Expression,
    InsertSyntax,
    Ion,
    Is,
    KeywordLiteral,
    ListLiteral,
    Number,
    Operation,
    Parameter,
    PathSyntax,
    Returning,
    SelectSyntax,
    StatementSyntax,
    Struct,
    Syntax,
    TextLiteral,
    UnsupportedSyntax,
    UpdateSyntax,
    Variable,
    Wildcard,
)
from isotone.expressions.partiql.tokenizer import StatementToken, StatementTokenKind, tokenize

Parsed = TypeVar("Parsed")

_NOT: Final = 3
_NAMES: Final = frozenset({StatementTokenKind.NAME, StatementTokenKind.QUOTED})
_TYPE_KINDS: Final = frozenset({StatementTokenKind.KEYWORD, StatementTokenKind.NAME})
_ALIASES: Final = ("AS", "AT", "BY")
_SIGNS: Final = frozenset({"+", "-"})
PRECEDENCE: Final = {
    "OR": 1,
    "AND": 2,
    **dict.fromkeys(("=", "<>", "!=", "IS", "IN"), 4),
    **dict.fromkeys(("<", "<=", ">", ">=", "BETWEEN", "LIKE"), 5),
    **dict.fromkeys(("+", "-", "||"), 6),
    **dict.fromkeys(("*", "/", "%"), 7),
}
"""How tightly each binary operator binds."""

_NEGATABLE: Final = frozenset({"IN", "BETWEEN", "LIKE"})
_WORDS: Final = frozenset({"TRUE", "FALSE", "NULL", "MISSING"})
# Keywords that are functions if a parenthesis follows, and those with a syntax of their own.
_FUNCTIONS: Final = frozenset(
    {
        *("BIT_LENGTH", "CHARACTER_LENGTH", "CHAR_LENGTH", "OCTET_LENGTH", "COALESCE", "NULLIF"),
        *("DATE_ADD", "DATE_DIFF", "EXISTS", "LOWER", "SIZE", "UPPER"),
    }
)
_CONSTRUCTS: Final = frozenset(
    ["AVG", "CASE", "CAST", "COUNT", "EXTRACT", "MAX", "MIN", "SUBSTRING", "SUM", "TRIM"]
)
_PLAIN_FUNCTIONS: Final = frozenset({"EXTRACT", "SUBSTRING", "TRIM"})
_AGGREGATES: Final = frozenset({"AVG", "COUNT", "MAX", "MIN", "SUM"})
_JOINS: Final = frozenset({",", "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS"})
# PartiQL's types: how many parameters each may have, and its other names.
_PARAMETERS_OF_TYPES: Final = {
    **dict.fromkeys(("FLOAT", "TIME", "CHARACTER", "CHARACTER_VARYING"), 1),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), 2),
    **dict.fromkeys(
        [
            "MISSING",
            "NULL",
            "BOOLEAN",
            "SMALLINT",
            "INTEGER4",
            "INTEGER8",
            "INTEGER",
            "REAL",
            "DOUBLE_PRECISION",
            "TIMESTAMP",
            "DATE",
            "STRING",
            "SYMBOL",
            "CLOB",
            "BLOB",
            "STRUCT",
            "TUPLE",
            "LIST",
            "SEXP",
            "BAG",
            "ANY",
            "TIME_WITH_TIME_ZONE",
        ],
        0,
    ),
}
_TYPE_ALIASES: Final = {
    "BOOL": "BOOLEAN",
    "INT": "INTEGER",
    "INT2": "SMALLINT",
    "INTEGER2": "SMALLINT",
    "INT4": "INTEGER4",
    "INT8": "INTEGER8",
    "BIGINT": "INTEGER8",
    "DEC": "DECIMAL",
    "CHAR": "CHARACTER",
    "VARCHAR": "CHARACTER_VARYING",
}
# Types whose names have several words, by the first word.
_LONG_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "DOUBLE": ("PRECISION",),
    "CHARACTER": ("VARYING",),
    "TIME": ("WITH", "TIME", "ZONE"),
}
# Statements of PartiQL that DynamoDB does not have.
_OPERATIONS: Final[dict[tuple[str, ...], str]] = {
    ("CREATE", "TABLE"): "CreateTable",
    ("DROP", "TABLE"): "DropTable",
    ("CREATE", "INDEX"): "CreateIndex",
    ("DROP", "INDEX"): "DropIndex",
}
# What the service calls an expression that stands alone, in the terms of its parser.
_ALONE: Final[dict[type[Syntax], str]] = {
    Variable: "Id",
    PathSyntax: "Path",
    TextLiteral: "Lit",
    Number: "Lit",
    KeywordLiteral: "Lit",
    Ion: "Lit",
    Parameter: "Parameter",
    ListLiteral: "List",
    Bag: "Bag",
    Struct: "Struct",
    Is: "IsType",
}


_CONFLICT: Final = "invalid ON CONFLICT syntax"
# What PartiQL's parser calls the symbols that it expects, and the kinds of tokens that it does not.
_TOKEN_NAMES: Final = {
    "(": "LEFT_PAREN",
    ")": "RIGHT_PAREN",
    "]": "RIGHT_BRACKET",
    "}": "RIGHT_CURLY",
    ">>": "RIGHT_DOUBLE_ANGLE_BRACKET",
    ":": "COLON",
}
_UNEXPECTED: Final = {
    StatementTokenKind.KEYWORD: "Unexpected keyword",
    StatementTokenKind.OPERATOR: "Unexpected operator",
}
_NO_TIME: Final = {
    "DATE": "Expected date string followed by the keyword DATE, found {found}",
    "TIME": (
        "Expected time string followed by the keyword TIME OR TIME WITH TIME ZONE, found {found}"
    ),
}
_ION_NAMES: Final = {StatementTokenKind.NUMBER: "INT"}
_NO_TERMS: Final = frozenset({"AS", "ASC", "AT", "BY", "DESC", "FIRST", "FOR", "LAST"})
# Keywords that cannot begin a select list; others are terms, or unexpected.
_NO_COLUMNS: Final = frozenset({"DELETE", "FROM", "REMOVE", "SELECT", "SET", "UPDATE", "WHERE"})
_CHANGES: Final = frozenset({"SET", "REMOVE", "INSERT"})


class Malformed(Exception):
    """The text is not a PartiQL statement; the argument is the reason as PartiQL's own parser words it.

    `token` is the number of the token at which the parser stands.
    """

    token = 0


_NO_TOKEN: Final = ""  # the reason for a text with invalid tokens


def parse(text: str) -> tuple[StatementSyntax, int]:
    """The syntax tree of a statement, and the number of its parameters. O(length).

    Raises `Malformed`, or a `RefusalMessage` for clauses and statements that DynamoDB lacks.
    """
    try:
        parser = _StatementParser(text)
        tree = parser.whole()
    except RecursionError:
        raise Malformed("Expression is nested too deeply") from None
    if parser.refusal is not None:
        raise parser.refusal
    return tree, parser.parameters


class _StatementParser:
    """A cursor over the tokens of a statement, with one method for each rule of the grammar.

    `refusal` is the first refusal, to be raised if the rest of the text is well formed.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = tokenize(text)
        if any(token.kind is StatementTokenKind.UNKNOWN for token in self._tokens):
            raise Malformed(_NO_TOKEN)
        self._at = 0
        self.parameters = 0
        self.refusal: RefusalMessage | None = None

    # The cursor

    @property
    def _token(self) -> StatementToken:
        return self._tokens[self._at]

    def _take(self) -> StatementToken:
        token = self._token
        if token.kind is StatementTokenKind.END:
            raise Malformed("Unexpected term")
        self._at += 1
        return token

    def _next_is(self, symbol: str, *more: str) -> bool:
        """Whether these are the next tokens."""
        if self._tokens[self._at].symbol != symbol:
            return False
        following = self._tokens[self._at + 1 : self._at + 1 + len(more)]
        return tuple(token.symbol for token in following) == more if more else True

    def _accept(self, *symbols: str) -> bool:
        """Take these tokens if they are next; returns whether they were."""
        if not self._next_is(*symbols):
            return False
        self._at += len(symbols)
        return True

    def _expect(self, *symbols: str, reason: str = "") -> None:
        """Take tokens that must be next; otherwise the statement is malformed for this `reason`."""
        if not self._accept(*symbols):
            shown = " ".join(_TOKEN_NAMES.get(symbol, symbol) for symbol in symbols)
            raise Malformed(reason or f"Expected {shown}")

    def _refuse(
        self, sentence: str, place: Expression | StatementToken | None = None, **details: object
    ) -> None:
        """Remember a refusal; only the first is kept."""
        if self.refusal is None:
            self.refusal = refusal(self._text, sentence, place, **details)

    def _list(self, rule: Callable[[], Parsed], closing: str = "") -> tuple[Parsed, ...]:
        """Parts separated by commas. A list with a closing symbol may be empty, and the symbol is taken."""
        if closing and self._accept(closing):
            return ()
        parts = [rule()]
        while self._accept(","):
            parts.append(rule())
        if closing:
            self._expect(closing)
        return tuple(parts)

    # Statements

    def whole(self) -> StatementSyntax:
        """The whole text. A text that is no statement raises `Malformed` with its place."""
        try:
            return self.statement()
        except Malformed as error:
            error.token = self._at
            raise

    def statement(self) -> StatementSyntax:
        """The statement, and nothing after it."""
        words = tuple(token.symbol for token in self._tokens[:2])
        operation = _OPERATIONS.get(words)
        if operation is not None and self._tokens[2].kind in _NAMES:
            raise RefusalMessage(messages.UNSUPPORTED_OPERATION, operation=operation)
        tree = self._expression()
        after = "semicolon. (Only one query is allowed.)" if self._accept(";") else "expression"
        if self._token.kind is not StatementTokenKind.END:
            raise Malformed(f"Unexpected token after {after}")
        match tree:
            case Clause(statement=statement):
                return statement
            case CallSyntax(
                function="exists", arguments=(Clause(statement=SelectSyntax() as select),)
            ):
                return ExistsSyntax(select)
        raise self._not_a_statement(tree)

    def _not_a_statement(self, tree: Expression) -> RefusalMessage:
        """Refuse an expression that stands alone. The service takes operations for EXISTS, which is a function."""
        if self.refusal is not None:
            return self.refusal
        name = "Lit" if is_signed_number(tree) else _ALONE.get(type(tree))
        if isinstance(tree, KeywordLiteral) and tree.word == "MISSING":
            name = "Missing"
        if isinstance(tree, UnsupportedSyntax) and tree.token == "CASE":
            name = "SearchedCase"
        if name is None:
            return RefusalMessage(messages.EXISTS_ALONE)
        return RefusalMessage(messages.UNSUPPORTED_OPERATION, operation=name)

    def _select(self) -> SelectSyntax:
        if self._accept("DISTINCT"):
            self._refuse(messages.UNSUPPORTED_TOKEN, token="DISTINCT", at="")
        else:
            self._accept("ALL")
        columns = self._columns()
        self._expect("FROM", reason="Expected FROM after SELECT list")
        source = self._source()
        where = self._where()
        self._unsupported_clauses()
        order: tuple[tuple[Expression, bool], ...] = ()
        if self._accept("ORDER", "BY"):
            order = self._list(self._order_key)
        if self._accept("LIMIT"):
            self._refuse(messages.UNSUPPORTED_CLAUSE, self._expression(), clause="LIMIT")
        return SelectSyntax(columns, source, where, order)

    def _columns(self) -> tuple[Expression, ...] | None:
        if self._accept("VALUE") or self._accept("PIVOT"):
            self._refuse(messages.VALUE_OR_PIVOT)
        columns = self._list(self._column)
        chosen = tuple(column for column in columns if column is not None)
        if chosen == columns:
            return chosen
        if len(columns) > 1:
            raise Malformed(messages.STAR_AND_COLUMNS)
        return None

    def _column(self) -> Expression | None:
        """A column; None for `*`."""
        if self._accept("*"):
            return None
        token = self._token
        inserts = token.symbol == "INSERT" and self._next_is("INSERT", "INTO")
        if token.symbol in _NO_COLUMNS or inserts:
            word = "insert_into" if inserts else token.symbol.lower()
            raise Malformed(messages.KEYWORD_IN_LIST.format(word=word))
        column = self._expression()
        _check_stars(column)
        if self._accept("AS"):
            self._name("Expected identifier for AS-alias")
            self._refuse(messages.ALIAS)
        elif self._token.kind in _NAMES:
            self._take()
            self._refuse(messages.ALIAS)
        return column

    def _source(self) -> Expression:
        """What follows FROM: a path. DynamoDB refuses anything more."""
        if self._accept("UNPIVOT"):
            self._refuse(messages.ONE_SOURCE)
        source = self._target()
        while self._token.symbol in _JOINS:
            self._refuse(messages.ONE_SOURCE)
            while self._token.symbol in _JOINS:
                self._take()
            self._target()
            if self._accept("ON"):
                self._expression()
        return source

    def _target(self) -> Expression:
        """The table or index that is read, and its alias, which DynamoDB refuses."""
        return self._unaliased(self._primary())

    def _unaliased(self, target: Expression) -> Expression:
        for word in _ALIASES:
            if self._accept(word):
                self._name(f"Expected identifier for {word}-alias")
                self._refuse(messages.ALIAS)
                return target
        if self._token.kind in _NAMES:
            self._take()
            self._refuse(messages.ALIAS)
        return target

    def _where(self) -> Expression | None:
        return self._expression() if self._accept("WHERE") else None

    def _unsupported_clauses(self) -> None:
        if self._accept("GROUP"):
            self._accept("PARTIAL")
            self._expect("BY")
            self._list(self._column)
            self._refuse(messages.UNSUPPORTED_CLAUSE, clause="GROUP BY", at="")
        if self._accept("HAVING"):
            self._refuse(messages.UNSUPPORTED_CLAUSE, self._expression(), clause="HAVING")

    def _order_key(self) -> tuple[Expression, bool]:
        key = self._expression()
        descends = self._accept("DESC")
        if not descends:
            self._accept("ASC")
        return key, descends

    def _insert(self, start: StatementToken) -> InsertSyntax:
        if not self._accept("INTO"):
            raise Malformed("Unexpected keyword")
        target = self._path()
        if not self._accept("VALUE"):
            # Rows of values, or a collection of items: PartiQL has both, DynamoDB neither.
            value = self._list(self._row)[0] if self._accept("VALUES") else self._expression()
            self._refuse(messages.UNSUPPORTED_OPERATION, operation="InsertOp")
            return InsertSyntax(target, value)
        value = self._expression()
        if self._accept("AT"):
            self._expression()
            self._refuse(messages.AT_IN_INSERT, start)
        if self._accept("ON", "CONFLICT"):
            self._expect("WHERE", reason=_CONFLICT)
            self._expression()
            self._expect("DO", "NOTHING", reason=_CONFLICT)
            self._refuse(messages.UNSUPPORTED_CLAUSE, clause="ON CONFLICT", at="")
        if self._returning() is not None:
            self._refuse(messages.RETURNING_IN_INSERT)
        return InsertSyntax(target, value)

    def _row(self) -> Expression:
        """A row of `VALUES`, in parentheses."""
        if not self._next_is("("):
            raise Malformed("Expected LEFT_PAREN for row value constructor")
        return self._expression()

    def _update(self, start: StatementToken) -> UpdateSyntax:
        target = self._unaliased(self._path())
        assignments = self._changes(start)
        return UpdateSyntax(target, assignments, self._where(), self._returning())

    def _from(self, start: StatementToken) -> UpdateSyntax:
        """An update in the other order: table and condition first."""
        target = self._source()
        where = self._where()
        return UpdateSyntax(target, self._changes(start), where, self._returning())

    def _changes(self, start: StatementToken) -> tuple[Assignment, ...]:
        """What an UPDATE or FROM changes in the item; `start` is its first word."""
        assignments: list[Assignment] = []
        words: list[str] = []
        while self._token.symbol in _CHANGES:
            words.append(self._token.symbol)
            assignments += self._change()
        if not words:
            raise Malformed("Expected data manipulation")
        if words == ["INSERT"]:
            self._refuse(messages.FROM_IN_INSERT, start)
        elif "INSERT" in words:
            self._refuse(messages.SET_AND_REMOVE)
        return tuple(assignments)

    def _change(self) -> tuple[Assignment, ...]:
        word = self._take()
        if word.symbol == "SET":
            return self._list(self._assignment)
        if word.symbol == "REMOVE":
            return (Assignment(self._path(), None),)
        self._insert(word)
        return ()

    def _change_alone(self, start: StatementToken) -> UpdateSyntax:
        """SET or REMOVE without a table."""
        self._at -= 1
        assignments = self._change()
        self._refuse(messages.ONE_SOURCE)
        return UpdateSyntax(Variable(start.start, start.end, ""), assignments, None, None)

    def _assignment(self) -> Assignment:
        target = self._path()
        self._expect("=", reason="Expected '='")
        return Assignment(target, self._expression())

    def _path(self) -> Expression:
        """A name and the steps after it."""
        if self._token.kind not in _NAMES:
            raise Malformed("Expected identifier for simple path")
        token = self._take()
        return self._steps(Variable(token.start, token.end, token.text), simple=True)

    def _delete(self, _start: StatementToken) -> DeleteSyntax:
        self._expect("FROM", reason="Expected FROM after DELETE")
        target = self._unaliased(self._path())
        return DeleteSyntax(target, self._where(), self._returning())

    def _returning(self) -> Returning | None:
        if not self._accept("RETURNING"):
            return None
        returning = self._returned()
        while self._accept(","):
            self._returned()
            self._refuse(messages.RETURNING_MANY)
        return returning

    def _returned(self) -> Returning:
        for words, returning in _RETURNING.items():
            if self._accept(*words):
                if not self._accept("*"):
                    self._expression()
                    self._refuse(messages.RETURNING_STAR)
                return returning
        raise Malformed("Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element.")

    # Expressions

    def _expression(self, power: int = 0) -> Expression:
        """An expression whose operators bind tighter than `power`."""
        left = self._prefixed()
        while True:
            negation = self._token if self._next_is("NOT") else None
            operator = self._tokens[self._at + (negation is not None)]
            if negation is not None and operator.symbol not in _NEGATABLE:
                return left
            binding = PRECEDENCE.get(operator.symbol, 0)
            if binding <= power:
                return left
            self._at += 1 + (negation is not None)
            left = self._operation(left, operator, binding)
            if negation is not None:
                left = Operation(negation.start, operator.end, "NOT", (left,))

    def _operation(self, left: Expression, operator: StatementToken, binding: int) -> Expression:
        """An operator and its right operands."""
        symbol, start, end = operator.symbol, operator.start, operator.end
        if symbol == "IS":
            negated = self._accept("NOT")
            return Is(start, end, left, self._type("is_not" if negated else "is"), negated)
        if symbol == "IN" and self._next_is("("):
            opening = self._token
            following = self._tokens[self._at + 1]
            if following.symbol not in ("SELECT", "VALUES"):
                self._take()
                right: Expression = ListLiteral(
                    opening.start, opening.end, self._list(self._expression)
                )
                self._expect(")")
                return Operation(start, end, symbol, (left, right))
        if self._token.kind is StatementTokenKind.END:
            raise Malformed("Missing right-hand side expression of infix operator")
        right = self._expression(binding)
        operands: tuple[Expression, ...] = (left, right)
        if symbol == "BETWEEN":
            operands = (left, right, self._third("AND", binding))
        elif symbol == "LIKE" and self._next_is("ESCAPE"):
            self._third("ESCAPE", binding)
        return Operation(start, end, symbol, operands)

    def _third(self, keyword: str, binding: int) -> Expression:
        """The operand after the second keyword of an operator, such as AND in BETWEEN."""
        self._expect(keyword, reason=f"Expected {keyword} keyword")
        if self._only_the_end():
            raise Malformed(f"Expected expression after {keyword}")
        return self._expression(binding)

    def _only_the_end(self) -> bool:
        ends = (
            self._token.symbol == ";" and self._tokens[self._at + 1].kind is StatementTokenKind.END
        )
        return ends or self._token.kind is StatementTokenKind.END

    def _type(self, operator: str) -> str:
        """The name of a type, as the service's parser spells it."""
        token = self._token
        word = token.text.upper() if token.kind in _TYPE_KINDS else ""
        name = _TYPE_ALIASES.get(word, word)
        more = _LONG_TYPES.get(word, ())
        if more and self._next_is(word, *more):
            name = "_".join((word, *more))
            self._at += len(more)
        if name not in _PARAMETERS_OF_TYPES:
            raise Malformed("Expected type name")
        self._at += 1
        parameters = self._list(self._expression) if self._accept("(") else ()
        if parameters:
            self._expect(")")
        most = _PARAMETERS_OF_TYPES[name]
        if len(parameters) > most:
            shown = f"{operator} type argument {name.lower()}"
            raise Malformed(f"{shown} must have arity of 0..{most}")
        if not all(isinstance(each, Number) and each.digits.isdecimal() for each in parameters):
            raise Malformed("Type parameter must be an unsigned integer literal")
        return name

    def _prefixed(self) -> Expression:
        """A primary, or a sign or NOT with its operand."""
        token = self._token
        if token.symbol == "NOT":
            self._at += 1
            return Operation(token.start, token.end, "NOT", (self._expression(_NOT),))
        if token.symbol in ("+", "-"):
            self._at += 1
            return Operation(token.start, token.end, token.symbol, (self._prefixed(),))
        return self._primary()

    def _primary(self) -> Expression:
        return self._steps(self._root())

    def _steps(self, root: Expression, *, simple: bool = False) -> Expression:
        """A path from a root; a simple path has no `*`."""
        steps: list[Expression] = []
        while True:
            if self._accept("."):
                if simple and self._next_is("*"):
                    raise Malformed("Invalid path dot component for simple path")
                steps.append(self._star(".*") or self._name("Invalid path dot component"))
            elif self._accept("["):
                steps.append(self._star("[*]") or self._expression())
                self._expect("]")
            else:
                break
        return PathSyntax(root.start, root.end, root, tuple(steps)) if steps else root

    def _star(self, form: Literal[".*", "[*]"]) -> Wildcard | None:
        token = self._token
        return Wildcard(token.start, token.end, form) if self._accept("*") else None

    def _name(self, reason: str) -> Variable:
        token = self._token
        self._at += token.kind is not StatementTokenKind.END
        if token.kind not in _NAMES:
            raise Malformed(reason)
        return Variable(token.start, token.end, token.text)

    def _root(self) -> Expression:
        if self._accept("@") and self._token.kind not in _NAMES:
            raise Malformed("Identifier must follow @-operator")
        token = self._take()
        kind, start, end = token.kind, token.start, token.end
        if token.symbol in _OPENINGS:
            return _OPENINGS[token.symbol](self, token)
        if kind in _NAMES:
            if self._next_is("("):
                return self._call(token)
            return Variable(start, end, token.text)
        if kind in _LITERALS:
            return _LITERALS[kind](start, end, token.text)
        if token.symbol in _WORDS:
            return KeywordLiteral(start, end, token.symbol)
        if token.symbol in _FUNCTIONS and self._next_is("("):
            return self._call(token)
        if token.symbol in _CONSTRUCTS:
            return self._construct(token)
        if token.symbol in _NO_TIME:
            return self._time(token)
        if token.symbol in _STATEMENTS:
            return Clause(start, end, _STATEMENTS[token.symbol](self, token))
        reason = "Unexpected term" if token.symbol in _NO_TERMS else _UNEXPECTED.get(kind)
        raise Malformed(reason or "Unexpected term")

    def _parameter(self, token: StatementToken) -> Expression:
        self.parameters += 1
        return Parameter(token.start, token.end, self.parameters - 1)

    def _parenthesized(self, token: StatementToken) -> Expression:
        members = self._list(self._expression)
        self._expect(")")
        return members[0] if len(members) == 1 else ListLiteral(token.start, token.end, members)

    def _brackets(self, token: StatementToken) -> Expression:
        return ListLiteral(token.start, token.end, self._list(self._expression, "]"))

    def _bag(self, token: StatementToken) -> Expression:
        return Bag(token.start, token.end, self._list(self._expression, ">>"))

    def _struct(self, token: StatementToken) -> Expression:
        return Struct(token.start, token.end, self._list(self._member, "}"))

    def _member(self) -> tuple[Expression, Expression]:
        name = self._expression()
        self._expect(":")
        return name, self._expression()

    def _call(self, token: StatementToken) -> Expression:
        self._expect("(")
        if self._next_is("*"):
            raise Malformed(f"{token.text.lower()}(*) is not allowed")
        arguments = self._list(self._expression, ")")
        return CallSyntax(token.start, token.end, token.text.lower(), arguments)

    def _construct(self, token: StatementToken) -> Expression:
        """CASE … END, or a function whose arguments have their own syntax, which is skipped."""
        if token.symbol == "CASE":
            self._skip_to("END", "CASE")
            return UnsupportedSyntax(token.start, token.end, "CASE")
        opening = self._token
        self._expect("(")
        self._skip_to(")", "(")
        if token.symbol in _PLAIN_FUNCTIONS:
            return CallSyntax(token.start, token.end, token.text.lower(), ())
        place = token if token.symbol in _AGGREGATES else opening
        return UnsupportedSyntax(place.start, place.end, token.text.lower())

    def _time(self, token: StatementToken) -> UnsupportedSyntax:
        """A date or time literal."""
        text = self._token
        if text.kind is not StatementTokenKind.STRING:
            found = _ION_NAMES.get(text.kind, "SYMBOL")
            raise Malformed(_NO_TIME[token.symbol].format(found=found))
        self._at += 1
        return UnsupportedSyntax(text.start, text.end, "UNKNOWN")

    def _skip_to(self, closing: str, opening: str) -> None:
        depth = 1
        while depth:
            symbol = self._take().symbol
            depth += (symbol == opening) - (symbol == closing)


def is_signed_number(node: Expression) -> bool:
    """Whether a node is a number literal after one or more signs."""
    while isinstance(node, Operation) and node.operator in _SIGNS and len(node.operands) == 1:
        node = node.operands[0]
    return isinstance(node, Number)


def _check_stars(column: Expression) -> None:
    """Refuse `*` in a column, except at the end of a path of names."""
    steps = column.steps if isinstance(column, PathSyntax) else ()
    stars = [step for step in steps if isinstance(step, Wildcard)]
    if (
        any(star.form == "[*]" for star in stars)
        or stars[:-1]
        or (stars and stars[-1] != steps[-1])
    ):
        raise Malformed("Invalid use of * in select list")
    if stars and not all(isinstance(step, Variable | Wildcard) for step in steps):
        raise Malformed("Cannot use [] and * together in SELECT list expression")


def refusal(
    text: str, sentence: str, place: Expression | StatementToken | None = None, **details: object
) -> RefusalMessage:
    """A refusal of a part of a statement; the message shows its position."""
    if place is not None:
        line = text.count("\n", 0, place.start) + 1
        column = place.start - text.rfind("\n", 0, place.start)
        details["at"] = f" at {line}:{column}:{place.end - place.start}"
    return RefusalMessage(sentence, **details)


_STATEMENTS: Final[dict[str, Callable[[_StatementParser, StatementToken], StatementSyntax]]] = {
    "SELECT": lambda parser, _: parser._select(),
    "INSERT": _StatementParser._insert,
    "UPDATE": _StatementParser._update,
    "DELETE": _StatementParser._delete,
    "FROM": _StatementParser._from,
    "SET": _StatementParser._change_alone,
    "REMOVE": _StatementParser._change_alone,
}
_RETURNING: Final[dict[tuple[str, str], Returning]] = {
    ("ALL", "OLD"): "ALL OLD",
    ("ALL", "NEW"): "ALL NEW",
    ("MODIFIED", "OLD"): "MODIFIED OLD",
    ("MODIFIED", "NEW"): "MODIFIED NEW",
}
_OPENINGS: Final[dict[str, Callable[[_StatementParser, StatementToken], Expression]]] = {
    "?": _StatementParser._parameter,
    "(": _StatementParser._parenthesized,
    "[": _StatementParser._brackets,
    "<<": _StatementParser._bag,
    "{": _StatementParser._struct,
}
_LITERALS: Final[dict[StatementTokenKind, Callable[[int, int, str], Expression]]] = {
    StatementTokenKind.STRING: TextLiteral,
    StatementTokenKind.NUMBER: Number,
    StatementTokenKind.ION: Ion,
}
