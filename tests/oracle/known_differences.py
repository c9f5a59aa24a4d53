"""Where DynamoDB Local is not the service, and which of the two we follow.

An entry is about pairs of errors: a pattern of what DynamoDB Local says, and one of what we say, both
written `Code: message`; a response is written `OK: {json}`. We follow the service. `source` is the page of AWS's documentation about the rule that was
broken. It documents the rule, and seldom the text of the error; that is written as users of the service know it, and
has not been compared with the service.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from tests.oracle.endpoints import Answer

API = "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/"
PARTIQL = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference."


@dataclass(frozen=True, slots=True)
class Known:
    """One difference: why, where AWS documents the rule, and how both answers look."""

    why: str
    source: str
    theirs: str
    ours: str
    request: str = ""
    """A pattern of `Action {json}`. Only an entry that has one excuses an answer that is not an error."""


COUNT = "1 validation error detected: "
_VALID = "ValidationException: "
_WORDS_ON_KEYS = (
    "One of the required keys was not given a value|Invalid attribute value type"
    "|The number of conditions on the keys is invalid|Item to put in PutItem cannot be null"
    "|One or more parameter values were invalid: Type mismatch for key"
    "|The list of keys in RequestItems for BatchGetItem may not contain null or empty values"
)
_MALFORMED = "Statement wasn't well formed, can't be processed: "
_PLACED = (
    r"Unrecognized function: \w+|The first argument to SET_\w+ must equal the assignment value"
    r"|Argument to ORDER BY must be of type VariableReference\. Type: .*"
    r"|FROM clause may only contain a single table name in data manipulation statements"
)
_STATEMENTS = r"^(BatchExecuteStatement|ExecuteStatement|ExecuteTransaction) "
_FAULTS_OF_UPDATES = (
    "The document path provided in the update expression is invalid for update"
    "|The provided expression refers to an attribute that does not exist in the item"
    "|An operand in the update expression has an incorrect data type"
)

_NEWER_STATEMENTS: tuple[Known, ...] = (
    Known(
        "The service of 2026 says why a statement is not well formed.",
        PARTIQL + "statements.html",
        rf"{_VALID}{_MALFORMED}.*",
        rf"{_VALID}{_MALFORMED}.*",
    ),
    Known(
        "The kind of a statement that is an expression has the name of the newer syntax tree.",
        PARTIQL + "statements.html",
        rf"{_VALID}(Unsupported operation( in transaction\.|: \w+)|Invalid operation\. .*|{_MALFORMED}.*"
        r"|Unsupported data type for IS operator: .*)",
        rf"{_VALID}(Unsupported operation: \w+|EXISTS can only be used in ExecuteTransaction write requests\.)",
    ),
    Known(
        "More messages of 2026 end with a position: those about unknown functions, functions of sets with another first "
        "argument, what cannot be in ORDER BY, and the index that an INSERT names.",
        PARTIQL + "functions.html",
        rf"{_VALID}({_PLACED})",
        rf"{_VALID}({_PLACED}) at \d+:\d+:\d+",
    ),
    Known(
        "A type that IS does not know has the name of its class in the newer syntax tree, and the position of the operand.",
        PARTIQL + "operators.html",
        rf"{_VALID}Unsupported data type for IS operator: [A-Z_]+\. .*",
        rf"{_VALID}Unsupported data type for IS operator: \w+Type\. .*",
    ),
    Known(
        "An empty or mixed bag is told without its position.",
        PARTIQL + "data-types.html",
        rf"{_VALID}(Empty bags are not supported|Unsupported data type in Bag\. .*) at \d+:\d+:\d+",
        rf"{_VALID}(Empty bags are not supported|Unsupported data type in Bag\. .*)",
    ),
    Known(
        "A literal that cannot be stored is told with where in the value it stands.",
        PARTIQL + "data-types.html",
        rf"{_VALID}(Input collection contains duplicates|DynamoDB only supports precision .*|Number \w+flow\. .*"
        r"|Nesting Levels have exceeded supported limits)",
        rf"{_VALID}.* under root.*",
    ),
    Known(
        "ORDER BY calls what it does not take an attribute.",
        PARTIQL + "select.html",
        rf"{_VALID}Variable reference (\w+) in ORDER BY clause must be part of the primary key",
        rf"{_VALID}Attribute (\w+) in ORDER BY clause must be part of the primary key",
    ),
    Known(
        "Several partitions are put in order by the partition key first, and a Scan is not (so does dynoxide).",
        PARTIQL + "select.html",
        r"OK: .*",
        rf"{_VALID}(Must have hash key in ORDER BY clause when more than one hash key condition .*"
        r"|Must have .*hash key condition in WHERE clause when using ORDER BY clause\.)",
        _STATEMENTS,
    ),
    Known(
        "Conditions that may find an item twice are refused.",
        PARTIQL + "select.html",
        r"OK: .*",
        rf"{_VALID}Overlapping conditions with range keys are not supported in where clause",
        _STATEMENTS,
    ),
    Known(
        "An index that the table lacks is not named, and a consistent read of a global one has other words.",
        PARTIQL + "select.html",
        rf"{_VALID}(The table does not have the specified index: .*"
        r"|Consistent reads are not supported on global secondary indexes)",
        rf"{_VALID}(The table does not have the specified index"
        r"|Strongly consistent read is not supported on Global Secondary Indexes)",
    ),
    Known(
        "A batch's SELECT that does not fix its key.",
        API + "API_BatchExecuteStatement.html",
        rf"{_VALID}Only single item select is supported",
        rf"{_VALID}Select statements within BatchExecuteStatement must specify the primary key in the where clause\.",
    ),
    Known(
        "A wrong parameter is the answer to its statement of a batch.",
        API + "API_BatchExecuteStatement.html",
        rf"{_VALID}.*",
        r"OK: .*\"ValidationError\".*",
        r'^BatchExecuteStatement .*"Parameters": ',
    ),
)
"""What PartiQL of 2026 says, as users and dynoxide 3.2 show it, and DynamoDB Local 3.3 not yet."""

_NEWER_ORDERS: tuple[Known, ...] = (
    Known(
        "The service of 2026 has other words for two conditions on one key, and finds a nested path before the table.",
        API + "API_Query.html",
        rf"{_VALID}(KeyConditionExpressions .*|Key attributes must be scalars; .*)",
        rf"{_VALID}Invalid KeyConditionExpression: KeyConditionExpressions .*",
    ),
    Known(
        "The service of 2026 counts the conditions of a Query.",
        API + "API_Query.html",
        rf"{_VALID}(Query key condition not supported|Conditions can be of length 1 or 2 only)",
        rf"{_VALID}The number of query conditions \(\d+\) exceeds .*",
    ),
    Known(
        "A number far beyond the range was seen to overflow; DynamoDB Local does not convert it.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html",
        rf"{_VALID}A value provided cannot be converted into a number",
        rf"{_VALID}Number (over|under)flow\. .*",
    ),
    Known(
        "The order of the service of 2026 finds a ConditionalOperator with one condition before what is wrong in that one.",
        API + "API_PutItem.html",
        rf"{_VALID}One or more parameter values were invalid: .*",
        rf"{_VALID}ConditionalOperator can only be used when .*",
    ),
    Known(
        "The service of 2026 finds placeholders that are not used after all other faults of a Query or an update.",
        API + "API_Query.html",
        rf"{_VALID}Value provided in ExpressionAttribute(Names|Values) unused in expressions: .*",
        rf"{_VALID}(Either the KeyConditions |Filter Expression can only contain non-primary key attributes|Cannot specify ).*",
    ),
    Known(
        "The service names the Action; the quotation mark is its own.",
        API + "API_AttributeValueUpdate.html",
        rf"{_VALID}Member must satisfy enum value set: \[ADD, DELETE, PUT\]",
        rf"{_VALID}Member must satisfy enum value set: \[ADD, DELETE, PUT\]' for Action",
    ),
    Known(
        "A fault of a start key is reported as one.",
        API + "API_Scan.html",
        rf"{_VALID}(Supplied AttributeValue .*)",
        rf"{_VALID}The provided starting key is invalid: Supplied AttributeValue .*",
    ),
    Known(
        "An enum of UpdateItem was seen without the list of one.",
        API + "API_UpdateItem.html",
        rf"{_VALID}{COUNT}Value '.*' at 'return\w+' failed .*",
        rf"{_VALID}Value '.*' at 'return\w+' failed .*",
    ),
    Known(
        "The order of the service of 2026 finds a Select that contradicts the rest, and a wrong segment, before projections.",
        API + "API_Scan.html",
        rf"{_VALID}Invalid (Projection|Filter)Expression: .*",
        rf"{_VALID}(Cannot specify |Must specify |ALL_PROJECTED_ATTRIBUTES |The Segment parameter ).*",
    ),
)
"""Where DynamoDB Local has the order of checks, or the words, of before 2026."""

KNOWN_DIFFERENCES: tuple[Known, ...] = (
    *_NEWER_ORDERS,
    *_NEWER_STATEMENTS,
    Known(
        "The service counts and lists every constraint that a request's members break; "
        "DynamoDB Local tells the first in words of its own.",
        API + "CommonErrors.html",
        r"ValidationException: .*",
        r"ValidationException: \d+ validation errors? detected: .*failed to satisfy constraint: .*"
        r"|ValidationException: (1 validation error detected: )?Failed to satisfy constraint: .*",
    ),
    Known(
        "The service names the key attribute that is missing or of a wrong type, or says that the key "
        "does not match the schema; DynamoDB Local has words of its own.",
        API + "API_PutItem.html",
        rf"{_VALID}({_WORDS_ON_KEYS}).*",
        rf"{_VALID}(One or more parameter values were invalid: Missing the key \w+ in the item"
        r"|One or more parameter values were invalid: Type mismatch for key \w+ expected: [SNB] actual: \w+"
        r"|The provided key element does not match the schema)",
    ),
    Known(
        "The service names the index and the key attribute of a wrong type.",
        API + "API_PutItem.html",
        rf"{_VALID}(One or more parameter values were invalid: Type mismatch for Index Key|{_WORDS_ON_KEYS})",
        rf"{_VALID}One or more parameter values were invalid: "
        r"Type mismatch for Index Key \w+ Expected: [SNB] Actual: \w+ IndexName: \S+",
    ),
    Known(
        "The service tells an update that would spoil an index key by what it attempted.",
        API + "API_UpdateItem.html",
        rf"{_VALID}(One or more parameter values were invalid: Type mismatch for Index Key"
        rf"|One or more parameter values were invalid: Size limit exceeded|{_WORDS_ON_KEYS})",
        rf"{_VALID}The update expression attempted to update the secondary index key .*",
    ),
    Known(
        "Which of several indexes with the same key is named first is not told.",
        API + "API_PutItem.html",
        rf"{_VALID}.* cannot contain an empty string value\. IndexName: \S+, IndexKey: \w+",
        rf"{_VALID}.* cannot contain an empty string value\. IndexName: \S+, IndexKey: \w+",
    ),
    Known(
        "The service says which part of the key is too long, and the limit.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
        rf"{_VALID}(Hash primary key values must be under 2048 bytes.*|.*Size limit exceeded)",
        rf"{_VALID}One or more parameter values were invalid: "
        r"(Size of \w+|Aggregated size of all range keys) has exceeded the (maximum )?size limit of ?\d+ bytes",
    ),
    Known(
        "The service tells an unknown table in other words.",
        API + "CommonErrors.html",
        r"ResourceNotFoundException: Cannot do operations on a non-existent table",
        r"ResourceNotFoundException: Requested resource not found(: Table: \S+ not found)?",
    ),
    Known(
        "An action whose key does not fit cancels a transaction with the reason ValidationError.",
        API + "API_TransactWriteItems.html",
        r"(ValidationException|TransactionCanceledException): .*",
        r"TransactionCanceledException: Transaction cancelled, please refer cancellation reasons for "
        r"specific reasons \[((None|ValidationError|ConditionalCheckFailed)(, )?)+\] \[.*"
        r"(The provided key element does not match the schema"
        r"|Missing the key \w+ in the item|Type mismatch for (key|Index Key) .*"
        r"|size limit of ?\d+ bytes|cannot contain an empty (string|binary) value\..*"
        r"|refers to an attribute that does not exist in the item|has an incorrect data type"
        r"|is invalid for update|The update expression attempted to update .*|Item size .*has exceeded the maximum allowed size).*\]",
    ),
    Known(
        "The service shows the text that is no number.",
        API + "API_AttributeValue.html",
        rf"{_VALID}(.*: )?A value provided cannot be converted into a number.*",
        rf"{_VALID}(.*: )?The parameter cannot be converted to a numeric value.*",
    ),
    Known(
        "The service shows the set that has a duplicate, and ends the sentence.",
        API + "API_AttributeValue.html",
        r"ValidationException: (One or more parameter values were invalid: )?"
        r"Input collection (\[.*\] |of type BS )?contains duplicates\.?",
        r"ValidationException: One or more parameter values were invalid: "
        r"Input collection (\[.*\]( |of type BS ))?contains duplicates\.",
    ),
    Known(
        "The service says otherwise that a number has more than 38 digits.",
        API + "API_AttributeValue.html",
        r"ValidationException: DynamoDB only supports precision up to 38 digits",
        r"ValidationException: Attempting to store more than 38 significant digits in a Number",
    ),
    Known(
        "The service lists the names of the types in another order.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html",
        rf"{_VALID}(Invalid \w+: )?Invalid attribute type name found; type: .*",
        rf"{_VALID}(Invalid \w+: )?Invalid attribute type name found; type: .*",
    ),
    Known(
        "The service does not tell how long an expression is, except in Scan and transactions.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
        rf"{_VALID}Invalid \w+: Expression size has exceeded the maximum allowed size; expression size: \d+",
        rf"{_VALID}Invalid \w+: Expression size has exceeded the maximum allowed size;",
    ),
    Known(
        "A sum beyond the range of numbers that also has too many digits: we name the overflow.",
        API + "API_AttributeValue.html",
        rf"{_VALID}DynamoDB only supports precision up to 38 digits",
        rf"{_VALID}Number overflow\. Attempting to store a number with magnitude larger than supported range",
    ),
    Known(
        "The service says which part of an ExclusiveStartKey is wrong in other words.",
        API + "API_Query.html",
        rf"{_VALID}(Exclusive Start Key must have same size as table's key schema"
        r"|Type mismatch for attribute to update|.*The provided starting key .*)",
        rf"{_VALID}(The provided starting key is .*"
        r"|.*The AttributeValue for a key attribute cannot contain an empty .*)",
    ),
    Known(
        "The service names the key attribute that a key condition lacks.",
        API + "API_Query.html",
        rf"{_VALID}Query condition missed key schema element",
        rf"{_VALID}Query condition missed key schema element: \w+",
    ),
    Known(
        "The service tells Segment without TotalSegments in other words.",
        API + "API_Scan.html",
        rf"{_VALID}If segment is specified, total segment must also be specified",
        rf"{_VALID}The TotalSegments parameter is required but was not present in the request when "
        r"Segment parameter is present",
    ),
    Known(
        "A failed condition in a transaction has the same words as alone, without a full stop.",
        API + "API_TransactWriteItems.html",
        r"TransactionCanceledException: .* \[.*'The conditional request failed\.'.*\]",
        r"TransactionCanceledException: .* \[.*'The conditional request failed'.*\]",
    ),
    Known(
        "A write request of a batch that is neither a put nor a delete is empty, not double.",
        API + "API_BatchWriteItem.html",
        rf"{_VALID}Supplied AttributeValue has more than one datatypes set.*",
        rf"{_VALID}Supplied AttributeValue is empty.*",
    ),
    Known(
        "A token used again with another request: DynamoDB Local says nothing more.",
        API + "API_TransactWriteItems.html",
        r"IdempotentParameterMismatchException: ",
        r"IdempotentParameterMismatchException: .+",
    ),
    Known(
        "A value outside an enumeration breaks some requests in DynamoDB Local.",
        API + "CommonErrors.html",
        r"InternalFailure: .*",
        r"ValidationException: .*",
    ),
    Known(
        "The service shows which name AttributesToGet has twice.",
        API + "API_GetItem.html",
        rf"{_VALID}Cannot have two attributes with the same name",
        rf"{_VALID}One or more parameter values were invalid: Duplicate value in attribute name: .*",
    ),
    Known(
        "The service tells what ReturnValues may be.",
        API + "API_PutItem.html",
        rf"{_VALID}Return values set to invalid value",
        rf"{_VALID}ReturnValues can only be ALL_OLD or NONE",
    ),
    Known(
        "Of several faults of a legacy Query, which is told first is not documented.",
        API + "API_Query.html",
        rf"{_VALID}Either the KeyConditions or KeyConditionExpression parameter must be specified.*",
        rf"{_VALID}ConditionalOperator (cannot|can only) be used .*",
    ),
    Known(
        "Of several overlapping paths, which two are told depends on a hash in DynamoDB Local.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.UpdateExpressions.html",
        rf"{_VALID}(Invalid \w+: )?Two document paths (overlap|conflict) with each other; .*",
        rf"{_VALID}(Invalid \w+: )?Two document paths (overlap|conflict) with each other; .*",
    ),
    Known(
        "Of several faults of one update, which is told first is not documented.",
        API + "API_UpdateItem.html",
        rf"{_VALID}({_FAULTS_OF_UPDATES})",
        rf"{_VALID}({_FAULTS_OF_UPDATES})",
    ),
    Known(
        "DynamoDB Local shows a binary value as a Java object.",
        API + "API_AttributeValue.html",
        rf"{_VALID}Invalid \w+: (The BETWEEN operator .*)HeapByteBuffer.*",
        rf"{_VALID}Invalid \w+: (The BETWEEN operator .*)",
    ),
    Known(
        "SIZE is in the service's list of reserved words; DynamoDB Local lets it be a name.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html",
        rf"ConditionalCheckFailedException: .*|{_VALID}Query condition missed key schema element",
        rf"{_VALID}Invalid \w+: Attribute name is a reserved keyword; reserved keyword: size",
    ),
    Known(
        "The service's model calls the error of an INSERT of an existing item by its full name.",
        API + "API_ExecuteStatement.html",
        r"DuplicateItem: Duplicate primary key exists in table",
        r"DuplicateItemException: Duplicate primary key exists in table",
    ),
    Known(
        "Of several values of a wrong type for a key, which is told first is not documented.",
        API + "API_ExecuteStatement.html",
        rf"{_VALID}(.*Condition parameter type does not match schema type|Key attribute's data type .*)",
        rf"{_VALID}(.*Condition parameter type does not match schema type|Key attribute's data type .*)",
    ),
    Known(
        "An INSERT of an existing item cancels a transaction with the reason of the statement.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.transactions.html",
        r"TransactionCanceledException: .* \[.*'Duplicate primary key exists in table'.*\]",
        r"TransactionCanceledException: .* \[.*'Duplicate primary key exists in table'.*\]",
    ),
    Known(
        "A statement of a transaction that does not fix a key is a reason in its list.",
        API + "API_ExecuteTransaction.html",
        r"TransactionCanceledException: ValidationError Where clause does not contain a mandatory equality .*",
        r"TransactionCanceledException: .* \[.*'Where clause does not contain a mandatory equality .*",
    ),
    Known(
        "The service calls a body that is no JSON, or of other types, a SerializationException.",
        API + "CommonErrors.html",
        r"(InternalFailure|ValidationException): .*",
        r"SerializationException: .*",
    ),
    Known(
        "The service tells a wrong value of a placeholder without the placeholder, unless it is an empty set "
        "(dynoxide 3.2); DynamoDB Local has the words of before 2026.",
        API + "API_AttributeValue.html",
        rf"{_VALID}ExpressionAttributeValues contains invalid value: .* for key :\w+",
        rf"{_VALID}(?!ExpressionAttributeValues contains).*",
    ),
    Known(
        "Values without an expression: a single write does not say which expressions are missing (dynoxide 3.2).",
        API + "API_PutItem.html",
        rf"{_VALID}ExpressionAttributeValues can only be specified when using expressions: .*",
        rf"{_VALID}ExpressionAttributeValues can only be specified when using expressions",
    ),
    Known(
        "The name of an index is not a constraint: it is looked up, after the expressions have been read "
        "(dynoxide 3.2).",
        API + "API_Query.html",
        rf"{_VALID}The table does not have the specified index: .*",
        rf"{_VALID}ExpressionAttributeValues must not be empty",
    ),
    Known(
        "A ComparisonOperator that does not exist is told by a rule on conditions (dynoxide 3.2).",
        API + "API_Condition.html",
        rf"{_VALID}(Comparison type does not exist in DynamoDB|.*must be used with ComparisonOperator: .*)",
        rf"{_VALID}One or more parameter values were invalid: Invalid comparison operator",
    ),
    Known(
        "Each bad statement of a transaction has its reason, as each bad entry of TransactWriteItems has; DynamoDB "
        "Local does not go on to the conditions after a key of a wrong type.",
        API + "API_ExecuteTransaction.html",
        r"TransactionCanceledException: .*Key attribute's data type should match .*",
        r"TransactionCanceledException: .*Key attribute's data type should match .*The conditional request failed.*",
    ),
    Known(
        "An update that only removes finds nothing to do where there is no item: of DELETE, AWS says that "
        "nothing happens. DynamoDB Local and dynoxide create an item of the key alone, or refuse a path.",
        API + "API_AttributeValueUpdate.html",
        rf"OK: .*|{_VALID}The document path provided in the update expression is invalid for update",
        r'OK: \{("ConsumedCapacity".*)?\}',
        r'^UpdateItem .*("UpdateExpression": "(?![^"]* (SET|ADD) )(REMOVE|DELETE) |"Action": "DELETE")',
    ),
    Known(
        "A filter sees what an index copies, and a Scan may name what it does not (so does dynoxide). DynamoDB "
        "Local reads the table's item.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/GSI.html",
        r"OK: .*",
        r"OK: .*",
        r'^Scan (?=.*"IndexName": "(?!\w-all))(?=.*"(FilterExpression|ScanFilter)")',
    ),
    Known(
        "DynamoDB Local executes a transaction before it sees that two entries are about one item.",
        API + "API_TransactWriteItems.html",
        rf"{_VALID}({_FAULTS_OF_UPDATES}).*|TransactionCanceledException: .*",
        rf"{_VALID}Transaction request cannot include multiple operations on one item",
    ),
    Known(
        "Of a key that is asked for twice and a wrong projection, which is told first is not documented.",
        API + "API_BatchGetItem.html",
        rf"{_VALID}Provided list of item keys contains duplicates",
        rf"{_VALID}Invalid ProjectionExpression: .*",
    ),
    Known(
        "Of several wrong statements of a transaction, or reads and writes in it, which is told first is not documented.",
        API + "API_ExecuteTransaction.html",
        rf"{_VALID}(ExecuteTransaction API does not support both read and write operations in the same request\."
        r"|Validation failed in TransactStatements.*)",
        rf"{_VALID}Validation failed in TransactStatements.*",
    ),
    Known(
        "Of a legacy ADD of a type that cannot be added and a false or wrong condition, which is told first is not documented.",
        API + "API_UpdateItem.html",
        rf"ConditionalCheckFailedException: .*|{_VALID}.*ComparisonOperator \w+ is not valid for \w+ AttributeValue type",
        rf"{_VALID}One or more parameter values were invalid: ADD action is not supported for the type .*",
    ),
    Known(
        "A batch that reads and writes is refused once all its statements can be executed (so does dynoxide); "
        "DynamoDB Local looks no further than at their kinds.",
        API + "API_BatchExecuteStatement.html",
        rf"{_VALID}Read and write requests together in the same batch is not supported\.",
        r"OK: .*\"Code\": \"ValidationError\", .*",
        r"^BatchExecuteStatement ",
    ),
    Known(
        "DynamoDB Local breaks on some SELECTs whose items lack the selected attributes.",
        API + "API_ExecuteStatement.html",
        r"InternalFailure: .*",
        r"OK: .*",
        r"^(Batch)?ExecuteStatement ",
    ),
)

KNOWN_FOR_FAULTS: tuple[Known, ...] = (
    Known(
        "DynamoDB Local accepts values of other types, such as a number as a text; the service does not.",
        API + "CommonErrors.html",
        r".*",
        r"SerializationException: .*",
        r".",
    ),
    Known(
        "DynamoDB Local does not check every constraint of the service model, or checks it later.",
        API + "CommonErrors.html",
        r".*",
        r"ValidationException: .*[Ff]ailed to satisfy constraint: .*",
        r".",
    ),
    Known(
        "Empty placeholders without an expression are told; DynamoDB Local takes them as absent.",
        API + "CommonErrors.html",
        r".*",
        rf"{_VALID}ExpressionAttribute(Names|Values) can only be specified .*",
        r'"ExpressionAttribute(Names|Values)": \{\}',
    ),
    Known(
        "Whether an empty legacy parameter counts as sent is not documented; in DynamoDB Local it does not.",
        API + "API_Query.html",
        r".*",
        rf"{_VALID}Can not use both expression and non-expression parameters in the same request: .*",
        r'"(KeyConditions|QueryFilter|ScanFilter|Expected|AttributeUpdates)": \{\}|"ConditionalOperator": ""',
    ),
    Known(
        "A time belongs to AT_TIMESTAMP; DynamoDB Local 3.3 does not know that member yet, and ignores it.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetShardIterator.html",
        r".*",
        rf"{_VALID}One or more parameter values were invalid: Timestamp .*",
        r"^GetShardIterator ",
    ),
    Known(
        "A legacy value is checked with the other parameters (so does dynoxide); DynamoDB Local tests the condition first.",
        API + "API_AttributeValueUpdate.html",
        r"ConditionalCheckFailedException: .*",
        rf"{_VALID}(Supplied AttributeValue .*|The parameter cannot be converted .*|Number \w+flow\. .*|.*Input collection .*"
        r"|Attempting to store .*|.* may not be empty|Null attribute value types must have the value of true"
        r"|.*Only DELETE action is allowed when no attribute value is specified)",
        r'^UpdateItem .*"AttributeUpdates": ',
    ),
    Known(
        "An empty key is looked at when the table is found.",
        API + "API_BatchGetItem.html",
        rf"{_VALID}The list of keys in RequestItems for BatchGetItem may not contain null or empty values: .*",
        r"ResourceNotFoundException: .*",
        r"^BatchGetItem ",
    ),
    Known(
        "A malformed value or expression refuses a transaction (so does dynoxide), also after an entry whose key does "
        "not fit.",
        API + "API_TransactGetItems.html",
        r"TransactionCanceledException: (One or more parameter values were invalid: Type mismatch for key"
        r"|The number of conditions on the keys is invalid|One of the required keys was not given a value)",
        rf"{_VALID}.*",
        r"^Transact(Get|Write)Items ",
    ),
    Known(
        "A malformed parameter is told before its statement is read (so does dynoxide).",
        API + "API_BatchExecuteStatement.html",
        r"OK: .*\"Message\": \"(Statement wasn't well formed, |Invalid operation\. |Unsupported operation).*",
        rf"{_VALID}(Supplied AttributeValue .*|The parameter cannot be converted .*|Number \w+flow\. .*|.*Input collection .*"
        r"|Attempting to store .*|.* may not be empty|Null attribute value types must have the value of true)",
        r'^BatchExecuteStatement .*"Parameters": ',
    ),
    Known(
        "The maximums of on-demand throughput may be left out (dynoxide); DynamoDB Local takes them for provisioned.",
        API + "API_OnDemandThroughput.html",
        rf"{_VALID}(Table|Global Secondary Index's) read and write throughput must be at least 1, and cannot be null",
        r".*",
        r'^(Create|Update)Table .*"OnDemandThroughput": ',
    ),
    Known(
        "DynamoDB Local 3.3 ignores these parameters of tables.",
        API + "API_CreateTable.html",
        r".*",
        rf"{_VALID}.*",
        r'^(Create|Update)Table .*"(VectorIndex(es|Updates)|ReplicaUpdates|GlobalTable\w+|MultiRegionConsistency'
        r'|ResourcePolicy|Tags)": ',
    ),
    Known(
        "DynamoDB Local breaks on some wrong requests.",
        API + "CommonErrors.html",
        r"InternalFailure: .*",
        r".*",
        r".",
    ),
    Known(
        "Of an unknown table and a wrong value, which is told first: `faults.py` compares it action by action.",
        API + "CommonErrors.html",
        r"ResourceNotFoundException: .*",
        r"ValidationException: .*",
        r".",
    ),
)
"""Differences that excuse only requests into which a fault was put."""


COUNTED = Known(
    "Since the middle of 2026 the service counts an error in the parameters of a single write, or of a Select, "
    "like a broken constraint. dynoxide 3.2 does the same, and reports from users have the new words.",
    "https://github.com/ministackorg/ministack/issues/1038",
    r"ValidationException: .*",
    rf"ValidationException: {COUNT}.*",
)

NUMBER = r"Validation failed in TransactStatements\[\d+\]: "
NUMBERED = Known(
    "A transaction says which of its statements cannot be executed; DynamoDB Local does of some.",
    API + "API_ExecuteTransaction.html",
    r"ValidationException: .*",
    rf"ValidationException: {NUMBER}.*",
)

TABLE_OPERATIONS = frozenset(
    {
        *("CreateTable", "UpdateTable", "DeleteTable", "DescribeTable", "ListTables"),
        *("UpdateTimeToLive", "DescribeTimeToLive"),
    }
)


def is_own_words(operation: str, theirs: Answer, ours: Answer) -> bool:
    """Whether both refuse a request about tables with the same error: DynamoDB Local's sentences there
    are its own throughout, and only what it refuses can be compared."""
    if operation not in TABLE_OPERATIONS or 200 in (theirs[0], ours[0]):
        return False
    return bool(theirs[1]["code"] == ours[1]["code"])


def said(answer: Answer) -> str:
    """An answer as one line: an error with its code, its message, and the reasons of a cancellation."""
    status, body = answer
    if status == 200:
        return f"OK: {json.dumps(body, sort_keys=True)}"
    reasons = [reason.get("Message") for reason in body.get("CancellationReasons", [])]
    return f"{body['code']}: {body['message']}" + (f" {reasons}" if reasons else "")


def excuse(
    theirs: Answer, ours: Answer, request: str = "", among: tuple[Known, ...] = KNOWN_DIFFERENCES
) -> Known | None:
    """The known difference that explains two unlike answers to an `Action {json}`, if there is one."""
    are_errors = 200 not in (theirs[0], ours[0])
    left, right = said(theirs), said(ours)
    if are_errors and right.replace(COUNT, "", 1) == left:
        return COUNTED
    if are_errors and re.sub(NUMBER, "", right) == left:
        return NUMBERED
    if ours[0] != 200 and "failed to satisfy constraint" not in right:
        right = right.replace(COUNT, "", 1)
    rights = [right] if re.search(NUMBER, left) else [right, re.sub(NUMBER, "", right)]
    return next(
        (
            known
            for known in among
            if (re.search(known.request, request) if known.request else are_errors)
            and re.fullmatch(known.theirs, left, re.S)
            and any(re.fullmatch(known.ours, each, re.S) for each in rights)
        ),
        None,
    )
