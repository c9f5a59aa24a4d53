"""The service's messages about PartiQL statements, each written once.

A message that ends in `{at}` shows a position in the statement: ` at line:column:length`. Messages about conditions,
updates and paths that PartiQL shares with expressions are in `isotone.expressions.messages`.
"""

from __future__ import annotations

from typing import Final

# The statement
MALFORMED: Final = "Statement wasn't well formed, can't be processed: {reason}"
KEYWORD_IN_LIST: Final = (
    "Expected identifier or an expression but found unexpected keyword '{word}' in a select list."
)
STAR_AND_COLUMNS: Final = (
    "Other expressions may not be present in the select list when '*' is used without dot notation."
)
UNSUPPORTED_OPERATION: Final = "Unsupported operation: {operation}"
UNSUPPORTED_CLAUSE: Final = "Unsupported clause: {clause}{at}"
UNSUPPORTED_TOKEN: Final = "Unsupported token in expression: {token}{at}"
NESTED_STATEMENT: Final = "Keyword {keyword} only expected at the top level in the query"
PARAMETER_COUNT: Final = "Number of parameters in request and statement don't match."

# What is selected, and from where
VALUE_OR_PIVOT: Final = "Select projection doesn't support value or pivot keywords"
HIERARCHY: Final = "Changing item's hierarchy while reading isn't supported"
ALIAS: Final = "Aliasing is not supported"
DUPLICATE_COLUMN: Final = "Duplicate identifiers in select clause: {name}"
UNEXPECTED_SOURCE: Final = "Unexpected from source"
LIST_IN_SOURCE: Final = "Invalid list expression in source."
UNPIVOT_PATH: Final = "Unpivot path component like a.*.b are not supported{at}"
WILDCARD_PATH: Final = "Wildcard path component like a[*].b are not supported{at}"
ONE_SOURCE: Final = "Only select from a single table or index is supported."
LONG_SOURCE: Final = "A path may contain at most 2 components in the FROM clause"
ONE_TABLE: Final = (
    "FROM clause may only contain a single table name in data manipulation statements{at}"
)
TABLE_NAME: Final = (
    "Table name should be within the length [3, 255] "
    "and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."
)
SEVERAL_KEY_ATTRIBUTES: Final = (
    "PartiQL statements cannot be executed on tables with multi-attribute HASH keys "
    "or multi-attribute RANGE keys."
)
NO_INDEX: Final = "The table does not have the specified index"
CONSISTENT_GLOBAL: Final = "Strongly consistent read is not supported on Global Secondary Indexes"
NOT_ON_INDEX: Final = "This operation is not supported on an index"

# Order
ORDER_WITHOUT_WHERE: Final = "Must have WHERE clause in the statement when using ORDER BY clause."
ORDER_WITHOUT_KEY: Final = (
    "Must have at least one non-optional hash key condition in WHERE clause "
    "when using ORDER BY clause."
)
ORDER_TYPE: Final = "Argument to ORDER BY must be of type VariableReference. Type: {type}{at}"
ORDER_NOT_KEY: Final = "Attribute {name} in ORDER BY clause must be part of the primary key"
ORDER_WITHOUT_PARTITION: Final = (
    "Must have hash key in ORDER BY clause when more than one hash key condition "
    "specified in WHERE clause."
)

# Paths and values
PATH_COMPONENT: Final = "Unexpected path component{at}"
EMPTY_NAME: Final = "Path component cannot be an empty string"
LIST_INDEX: Final = "List index is not within the allowable range; index: [{index}]{at}"
VALUE_TYPE: Final = "Unsupported data type: {type} under key {key}{at}"
ION: Final = "Ion Literals are not supported: {type} under key {key}{at}"
NEGATIVE_ZERO: Final = "Negative zero decimal is not supported under key {key}{at}"
EMPTY_BAG: Final = "Empty bags are not supported"
BAG_MEMBER: Final = (
    "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags{at}"
)
UNDER: Final = "{message} under {key}"
DUPLICATES: Final = (
    "One or more parameter values were invalid: Input collection [{members}] contains duplicates!"
)
TUPLE_KEY: Final = "Tuple keys must be of type String. Actual type: {type} under {key}{at}"
DUPLICATE_KEY: Final = "Duplicate keys in tuple. Key: {name} under {key}{at}"

# Conditions
NOT_BOOLEAN: Final = "WHERE clause must contain an expression that resolves to a boolean"
JUNCTION_OPERAND: Final = "The arguments to AND/OR must be Expressions"
NOT_OPERAND: Final = "The argument to NOT must be a Type or Expression"
IN_OPERANDS: Final = (
    "IN operator must have a left hand argument of type Variable Reference "
    "and right hand argument of type Seq with at least one member"
)
MISSING: Final = "MISSING must be compared using IS operator"
IS_OPERAND: Final = (
    "The left hand side argument to IS must be a Variable Reference, Literal, or Path"
)
IS_TYPE: Final = (
    "Unsupported data type for IS operator: {type}. Supported data types are "
    "[MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]{at}"
)
CONDITION_OPERATOR: Final = "Unsupported operator in Condition Expression. Operator: {operator}"
UNKNOWN_FUNCTION: Final = "Unrecognized function: {function}{at}"

# Keys
KEY_EQUALITY: Final = "Where clause does not contain a mandatory equality on all key attributes"
KEY_TWICE: Final = (
    "Multiple conditions on same key {name}. Only single item Update/Insert/Delete are supported"
)
KEY_TYPE: Final = (
    "Key attribute's data type should match its data type in table's schema: Key {name}"
)
KEY_ABSENT: Final = "Key attribute should be present in the item: Key {name}"
KEY_VALUE: Final = "Key value must be of type S, N, or B. Key name: {name}, Key type: {type}"
OVERLAPPING: Final = "Overlapping conditions with range keys are not supported in where clause"
TOO_MANY_READS: Final = "Too many decomposed read operations for a given query."

# Writes
UPDATE_OPERATOR: Final = "Unsupported operator in Update Expression. Operator: {operator}"
IS_IN_UPDATE: Final = "IS operator is not supported in update expressions"
SET_ARGUMENTS: Final = "{function} must have exactly two arguments{at}"
SET_TARGET: Final = "The first argument to {function} must equal the assignment value{at}"
SET_VALUE: Final = "The second argument to {function} must be a value with type SET{at}"
INSERT_FORMAT: Final = (
    "Unsupported format in item expression. Please use struct format {{...}} "
    "to express item values for insert statement.{at}"
)
AT_IN_INSERT: Final = "AT is not supported in insert statements.{at}"
FROM_IN_INSERT: Final = "Unsupported FROM ... WHERE ... clause in INSERT statement.{at}"
SET_AND_REMOVE: Final = "Only SET and REMOVE are supported in update expressions at this time"
RETURNING_IN_INSERT: Final = "RETURNING is not supported in INSERT"
RETURNING_STAR: Final = "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause"
RETURNING_MANY: Final = "Invalid syntax with multiple returning elements in RETURNING clause"
RETURNING_IN_DELETE: Final = (
    "Invalid returning clause: RETURNING {returning} *. "
    "Only RETURNING ALL OLD * is allowed in DELETE statements."
)

# Pages
INVALID_TOKEN: Final = "Invalid NextToken"
OTHER_TOKEN: Final = "NextToken does not match request"

# Several statements
EXISTS_ALONE: Final = "EXISTS can only be used in ExecuteTransaction write requests."
BATCH_KEY: Final = "Select statements within BatchExecuteStatement must specify the primary key in the where clause."
READ_AND_WRITE: Final = "Read and write requests together in the same batch is not supported."
READ_AND_WRITE_TRANSACTION: Final = (
    "ExecuteTransaction API does not support both read and write operations in the same request."
)
IN_TRANSACTION: Final = "Validation failed in TransactStatements[{position}]: {message}"
TRANSACTION_KEY: Final = (
    "Select statements within ExecuteTransaction must specify the primary key in the where clause."
)
TRANSACTION_INDEX: Final = "Reads on indices are not supported within transactions."
TRANSACTION_EXISTS: Final = "EXISTS() must contain a single item read with additional condition"
TRANSACTION_RETURNING: Final = "RETURNING clause is not supported in ExecuteTransaction."
