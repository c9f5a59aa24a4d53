"""DynamoDB's error messages about expressions, each written once.

Inside this package an error is a `RefusalMessage`, which does not know the request. The four entry points (`condition`,
`update`, `projection`, `key_condition`) turn it into a `ValidationException` that names the request's parameter.
"""

from __future__ import annotations

from typing import Final

from isotone.errors import ValidationException
from isotone.limits import EXPRESSION_OPERATORS


class RefusalMessage(Exception):
    """One of the messages below, with its details filled in."""

    def __init__(self, sentence: str, **details: object) -> None:
        super().__init__(sentence.format(**details))


class RefusedAs:
    """Turns a `RefusalMessage` raised inside its block into the `ValidationException` about a request parameter."""

    __slots__ = ("_parameter",)

    def __init__(self, parameter: str) -> None:
        self._parameter = parameter

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, RefusalMessage | RecursionError):
            raise refused(self._parameter, error) from None


def refused(parameter: str, error: RefusalMessage | RecursionError) -> ValidationException:
    """The error that DynamoDB returns for an expression that raised this."""
    if isinstance(error, RecursionError):
        # An expression within the limit on operators does not nest this deeply.
        error = RefusalMessage(TOO_MANY_OPERATORS, count=EXPRESSION_OPERATORS + 1)
    return invalid(parameter, error)


def invalid(parameter: str, refusal: RefusalMessage) -> ValidationException:
    """The error that DynamoDB returns for an expression that it refuses; parts of a PartiQL statement have no
    parameter.
    """
    return ValidationException(f"Invalid {parameter}: {refusal}" if parameter else str(refusal))


def path_text(path: tuple[object, ...]) -> str:
    """A path as AWS's messages show it: `[a, b, [0]]`."""
    return f"[{', '.join(f'[{e}]' if isinstance(e, int) else str(e) for e in path)}]"


# The text
EMPTY: Final = "The expression can not be empty;"
TOO_LONG: Final = "Expression size has exceeded the maximum allowed size;"
HOW_LONG: Final = " expression size: {size}"
"""Follows `TOO_LONG` for a filter of Scan and for a condition in a transaction."""
SYNTAX: Final = 'Syntax error; token: "{token}", near: "{near}"'
REDUNDANT_PARENTHESES: Final = "The expression has redundant parentheses;"
SECTION_TWICE: Final = 'The "{section}" section can only be used once in an update expression;'
TOO_MANY_OPERATORS: Final = "The expression contains too many operators; operator count: {count}"
TOO_MANY_CHOICES: Final = (
    "The IN operator is provided with too many operands; number of operands: {count}"
)

# Placeholders; these messages name the parameter themselves
PLACEHOLDERS_EMPTY: Final = "{parameter} must not be empty"
PLACEHOLDER_INVALID: Final = "{parameter} contains invalid key: {wrong}"
PLACEHOLDER_EMPTY: Final = "The expression attribute map contains an empty key;"
PLACEHOLDER_TOO_LONG: Final = (
    "The expression attribute map contains a key that is too long; size of key: {size}"
)
PLACEHOLDER_SYNTAX: Final = 'Syntax error; key: "{key}"'
NAME_INVALID: Final = "{parameter} contains invalid value: {wrong} for key {key}"
NAME_EMPTY: Final = "Empty attribute name"
NAME_TOO_LONG: Final = "Attribute name is too large, must be less than {size} bytes"
UNUSED: Final = "Value provided in {parameter} unused in expressions: keys: {{{keys}}}"

# Names, values and paths
RESERVED: Final = "Attribute name is a reserved keyword; reserved keyword: {word}"
NAME_UNDEFINED: Final = (
    "An expression attribute name used in the document path is not defined; attribute name: {name}"
)
VALUE_UNDEFINED: Final = (
    "An expression attribute value used in expression is not defined; attribute value: {name}"
)
PATH_TOO_DEEP: Final = "The document path has too many nesting levels; nesting levels: {depth}"
INDEX_TOO_BIG: Final = "List index is not within the allowable range; index: [{index}]"
OVERLAP: Final = (
    "Two document paths overlap with each other; must remove or rewrite one of these paths; "
    "path one: {one}, path two: {two}"
)
CONFLICT: Final = (
    "Two document paths conflict with each other; must remove or rewrite one of these paths; "
    "path one: {one}, path two: {two}"
)
NESTED_KEY: Final = (
    "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: "
    "{label}: {attribute}"
)

# Functions and operands
UNKNOWN_FUNCTION: Final = "Invalid function name; function: {function}"
FUNCTION_MISPLACED: Final = (
    "The function is not allowed to be used this way in an expression; function: {function}"
)
FUNCTION_NOT_IN_UPDATE: Final = (
    "The function is not allowed in an update expression; function: {function}"
)
FUNCTION_NOT_IN_CONDITION: Final = (
    "The function is not allowed in a condition expression; function: {function}"
)
OPERAND_COUNT: Final = (
    "Incorrect number of operands for operator or function; "
    "operator or function: {operator}, number of operands: {count}"
)
NEEDS_PATH: Final = (
    "Operator or function requires a document path; operator or function: {operator}"
)
NOT_DISTINCT: Final = (
    "The first operand must be distinct from the remaining operands for this operator or function; "
    "operator: {operator}, first operand: {path}"
)
OPERAND_TYPE: Final = (
    "Incorrect operand type for operator or function; "
    "operator or function: {operator}, operand type: {type}"
)
ACTION_TYPE: Final = (
    "Incorrect operand type for operator or function; "
    "operator: {action}, operand type: {type}, typeSet: ALLOWED_FOR_{action}_OPERAND"
)
UNKNOWN_TYPE: Final = (
    "Invalid attribute type name found; type: {type}, valid types: {{B,NULL,SS,BOOL,L,BS,N,NS,S,M}}"
)
BOUNDS_ORDER: Final = (
    "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
    "lower bound operand: {low}, upper bound operand: {high}"
)
BOUNDS_TYPES: Final = (
    "The BETWEEN operator requires same data type for lower and upper bounds; "
    "lower bound operand: {low}, upper bound operand: {high}"
)

# The names of types in messages about ADD and DELETE …
LONG_TYPE_NAMES: Final = {
    "S": "STRING",
    "N": "NUMBER",
    "B": "BINARY",
    "SS": "STRING_SET",
    "NS": "NUMBER_SET",
    "BS": "BINARY_SET",
    "L": "LIST",
    "M": "MAP",
    "BOOL": "BOOLEAN",
    "NULL": "NULL",
}
# … and the name of an operand that could be of any type.
ALL_TYPES: Final = "{DECIMALSET,NS,DOUBLE,INT,SS,DOUBLESET,FLOAT,HDS,FS,S,BS,HD,BOOL,M,NULL,L,N,DECIMAL,INTSET,B,DICT}"

# Errors of an update that depend on the item; these do not name the parameter
PATH_INVALID: Final = "The document path provided in the update expression is invalid for update"
WRONG_TYPE: Final = "An operand in the update expression has an incorrect data type"
MISSING: Final = "The provided expression refers to an attribute that does not exist in the item"
TOO_NESTED: Final = "Nesting Levels have exceeded supported limits"

# Key conditions
KEY_MISSED: Final = "Query condition missed key schema element: {attribute}"
KEY_UNSUPPORTED: Final = "Query key condition not supported"
KEY_TOO_MANY: Final = (
    "The number of query conditions ({count}) exceeds "
    "the number of key attributes defined in the schema ({attributes})"
)
KEY_TWICE: Final = (
    "Invalid KeyConditionExpression: "
    "KeyConditionExpressions must only contain one condition per key"
)
KEY_OPERATOR: Final = "Invalid operator used in KeyConditionExpression: {operator}"
KEY_NESTED_PATH: Final = (
    "Invalid KeyConditionExpression: "
    "KeyConditionExpressions cannot have conditions on nested attributes"
)
KEY_NESTED_OPERATION: Final = (
    "Invalid KeyConditionExpression: KeyConditionExpressions cannot contain nested operations"
)
KEY_NO_ATTRIBUTE: Final = "Invalid condition in KeyConditionExpression: No key attribute specified"
KEY_MANY_ATTRIBUTES: Final = (
    "Invalid condition in KeyConditionExpression: Multiple attribute names used in one condition"
)
KEY_FIRST_OPERAND: Final = (
    "Invalid condition in KeyConditionExpression: {operator} operator must have the key attribute "
    "as its first operand"
)
KEY_PARTITION_PARTS: Final = (
    "HASH key attributes {attributes} must have equality conditions specified in the query"
)
KEY_SORT_PARTS: Final = (
    "RANGE key attributes {attributes} must have equality conditions specified in the query "
    "because a condition is present on key attribute {present}"
)

# Search conditions
SEARCH_TWICE: Final = "SearchConditionExpression must only contain one condition per attribute"
SEARCH_OPERATOR: Final = "Invalid operator used in SearchConditionExpression: {operator}"
SEARCH_COMPARATOR: Final = "Invalid comparator used in SearchConditionExpression"
SEARCH_NESTED_PATH: Final = "SearchConditionExpression cannot have conditions on nested attributes"
