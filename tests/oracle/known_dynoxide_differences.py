"""Differences between dynoxide and the service, each with the reason for which Isotone answers otherwise.

dynoxide is compared to the letter (`python -m tests.oracle.faulty`). Where it, an observation and AWS's documentation do
not agree, an observation counts most.
"""

from __future__ import annotations

from typing import Final

from tests.oracle.known_differences import API, COUNT, Known

_VALID: Final = "ValidationException: "
_CONTENT = (
    r"(One or more parameter values were invalid: )?(Input collection .*|An \w+ set  may not be empty"
    r"|Binary sets should not be empty|Nesting Levels have exceeded .*|Empty attribute name)"
)
_IN_VALUE = (
    r"((The provided starting key is invalid|ExpressionAttributeValues contains invalid value): )?"
    rf"({_CONTENT}|Number (over|under)flow.*|The parameter cannot be converted .*|Attempting to store .*"
    r"|Supplied AttributeValue .*|One or more parameter values were invalid: Null .*)"
)
_LEVEL = r'\{"(L": \[|M": \{"m": )'
_ERRORS = API + "CommonErrors.html"
_SERDE = (
    r"(missing field `|unknown variant `|invalid type: |invalid value: |invalid base64|data did not match|expected \w+ "
    r"|invalid length)"
)
_UNDECIDED: Final = "Undecided: AWS's documentation is silent. "
OF_ITEMS: Final[tuple[Known, ...]] = (
    Known(
        "Wrong JSON types are a SerializationException, found before anything else. dynoxide's decoder reads legacy "
        "parameters leniently, finds numbers in the same pass, and calls every scalar TRUE_VALUE.",
        _ERRORS,
        r".*",
        r"SerializationException: .*",
        r".",
    ),
    Known(
        "A missing or null member that is required is a broken constraint. dynoxide shows what its JSON library says.",
        _ERRORS,
        rf"\w+Exception: .*{_SERDE}.*",
        r".*",
        r".",
    ),
    Known(
        "A write of a batch is either a put or a delete (so DynamoDB Local); dynoxide ignores one of both.",
        API + "API_WriteRequest.html",
        r".*",
        rf"{_VALID}Supplied AttributeValue has more than one datatypes set, .*",
        r'^BatchWriteItem .*("PutRequest": .*"DeleteRequest": |"DeleteRequest": .*"PutRequest": )',
    ),
    Known(
        "Undefined and unused placeholders are found before the key is compared with the table's; dynoxide looks when it "
        "evaluates the condition of an UpdateItem without an UpdateExpression.",
        API + "API_UpdateItem.html",
        rf"({_VALID}(The provided key element .*|One or more parameter values .*)|ConditionalCheckFailedException: .*"
        r"|ResourceNotFoundException: .*)",
        rf"{_VALID}{COUNT}(Invalid \w+: An expression attribute (name|value) used in expression is not defined; .*"
        r"|Value provided in \w+ unused in expressions: .*)",
        r"^UpdateItem (?!.*UpdateExpression)",
    ),
    Known(
        "An entry of a transaction is one operation; of an entry with two, the constraints of the second are not listed.",
        API + "API_TransactWriteItem.html",
        rf"{_VALID}\d+ validation errors? detected: .*'transactItems\.\d+\.member\..*",
        rf"{_VALID}{COUNT}Value '.*' at 'clientRequestToken' .*",
        r'^TransactWriteItems .*"Delete": .*"ConditionCheck": ',
    ),
    Known(
        "Placeholders of a transaction need an expression, and there must be some where one is (so DynamoDB Local).",
        API + "API_Get.html",
        r".*",
        rf"{_VALID}ExpressionAttribute(Names|Values) (must not be empty|can only be specified when using expressions.*)",
        r"^Transact",
    ),
    Known(
        "An empty value of a key refuses the whole transaction (so DynamoDB Local).",
        API + "API_TransactGetItems.html",
        r"TransactionCanceledException: .*",
        rf"{_VALID}One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty .*",
        r"^TransactGetItems ",
    ),
    Known(
        "An expression with an undefined placeholder refuses the whole transaction (so DynamoDB Local).",
        API + "API_TransactWriteItems.html",
        r"TransactionCanceledException: .*An expression attribute (name|value) used in .* is not defined; .*",
        rf"{_VALID}Invalid \w+: An expression attribute (name|value) used in .* is not defined; .*",
        r"^TransactWriteItems ",
    ),
    Known(
        "Seen in most regions; dynoxide has the answer of the others.",
        API + "API_BatchWriteItem.html",
        rf"{_VALID}The requestItems parameter is required for BatchWriteItem",
        rf"{_VALID}{COUNT}Value at 'RequestItems' failed to satisfy constraint: .*",
        r"^BatchWriteItem ",
    ),
    Known(
        "A token has at least one character; dynoxide does not look.",
        API + "API_TransactWriteItems.html",
        r".*",
        rf"{_VALID}.*Value '' at 'clientRequestToken' .*",
        r"^TransactWriteItems ",
    ),
    Known(
        "The placeholders of a transaction have the right form, then its expressions are read, then all values are used (so "
        "DynamoDB Local); dynoxide has another order.",
        API + "API_Get.html",
        rf"{_VALID}(Value provided in ExpressionAttribute\w+ unused in expressions: |Invalid \w+: ).*",
        rf"{_VALID}(ExpressionAttribute\w+ contains invalid (key|value): |Invalid \w+: |{_CONTENT}).*",
        r"^Transact",
    ),
    Known(
        "An operand of a wrong type refuses the whole transaction (so DynamoDB Local).",
        API + "API_TransactWriteItems.html",
        r"TransactionCanceledException: .*An operand in the update expression has an incorrect data type.*",
        rf"{_VALID}Invalid UpdateExpression: Incorrect operand type for operator or function; .*",
        r"^TransactWriteItems ",
    ),
    Known(
        "The first key that does not fit its table was seen to be the only reason of a cancelled transaction.",
        API + "API_TransactWriteItems.html",
        r"TransactionCanceledException: .*",
        r"TransactionCanceledException: .*('The provided key element does not match the schema'|'One or more parameter values "
        r"were invalid: (Type mismatch for key |Missing the key )[^']*').*",
        r"^TransactWriteItems ",
    ),
    Known(
        "A write of a batch that has both kinds is checked in the order of both; dynoxide sees one of them.",
        API + "API_WriteRequest.html",
        r".*",
        rf"{_VALID}{_IN_VALUE}",
        r'^BatchWriteItem .*"PutRequest": \{.*\}, "DeleteRequest"|"DeleteRequest": \{.*\}, "PutRequest"',
    ),
    Known(
        "An index that does not exist is no global one (so DynamoDB Local).",
        API + "API_Query.html",
        rf"{_VALID}Consistent reads are not supported on global secondary indexes",
        rf"{_VALID}The table does not have the specified index: .*",
        r'^(Query|Scan) .*"ConsistentRead": true',
    ),
    Known(
        "The writes of a batch and the entries of a transaction are checked in turn (so DynamoDB Local), and nesting was seen "
        "to come before an empty name in a map; dynoxide looks for empty names first.",
        API + "API_TransactWriteItems.html",
        rf"{_VALID}Empty attribute name",
        rf"{_VALID}({_CONTENT}|Item size has exceeded .*|Supplied AttributeValue has more than one .*)",
        r"^(BatchWriteItem|Transact\w+) ",
    ),
    Known(
        "All placeholders of an update are used (so DynamoDB Local); without an UpdateExpression dynoxide does not look.",
        API + "API_UpdateItem.html",
        r"OK: .*",
        rf"{_VALID}{COUNT}Value provided in ExpressionAttribute\w+ unused in expressions: .*",
        r"^UpdateItem ((?!UpdateExpression).)*$",
    ),
    Known(
        "No update changes a key (so DynamoDB Local); in a transaction dynoxide does not look.",
        API + "API_Update.html",
        r"(OK: |TransactionCanceledException: ).*",
        r"TransactionCanceledException: .*Cannot update attribute \w+. This attribute is part of the key.*",
        r"^TransactWriteItems ",
    ),
    Known(
        "A list of names has at least one; dynoxide does not look, or only after other faults.",
        API + "API_Query.html",
        r".*",
        rf"{_VALID}.*'(requestItems\.\w+\.member\.)?attributesToGet' failed to satisfy constraint.*",
        r'"AttributesToGet": \[\]',
    ),
    Known(
        "dynoxide takes no ARN for a name.",
        API + "API_GetItem.html",
        rf"{_VALID}.*regular expression pattern.*",
        r".*",
        r'"arn:',
    ),
    Known(
        "The size of an expression is in the error, but for transactions.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
        rf"{_VALID}(1 validation error detected: )?Invalid \w+: Expression size has exceeded the maximum allowed size;",
        rf"{_VALID}.*Expression size has exceeded the maximum allowed size; expression size: \d+",
        r".",
    ),
    Known(
        "LE, LT, GE, GT and BETWEEN compare a String, a Number or a Binary; dynoxide accepts any type.",
        API + "API_Condition.html",
        r".*",
        rf"{_VALID}.*ComparisonOperator \w+ is not valid for \w+ AttributeValue type",
        r".",
    ),
    Known(
        "The attributes of an item have no order in dynoxide: of several wrong ones it names any.",
        API + "API_PutItem.html",
        rf"{_VALID}({COUNT})?{_CONTENT}",
        rf"{_VALID}({COUNT})?{_CONTENT}",
        r".",
    ),
    Known(
        "A name of an attribute has at most 65,535 bytes; dynoxide does not look.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html",
        r".*",
        rf"{_VALID}.*Member must have length less than or equal to 65535.*",
        r".",
    ),
    Known(
        "A request that the newer checks cannot decode takes the older ones, which list all broken constraints: seen for "
        "ConditionalOperator and ReturnValues. dynoxide does this for some constraints only.",
        API + "CommonErrors.html",
        r".*",
        rf"{_VALID}.*",
        rf'({_LEVEL * 60}|"S": "[^"]*", "N": "[^"]*")',
    ),
    Known(
        "The token that the grammar refuses first (so DynamoDB Local); dynoxide looks for foreign characters before.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html",
        rf"{_VALID}.*(Syntax error; token: .*|Expected attribute name, got end of expression)",
        rf"{_VALID}.*Syntax error; token: .*",
        r".",
    ),
    Known(
        "The type of a value by its name (so DynamoDB Local), not by its code.",
        API + "API_AttributeValueUpdate.html",
        rf"{_VALID}.*is not supported for the type [A-Z]+",
        rf"{_VALID}.*is not supported for the type [A-Z_]+",
        r"^UpdateItem ",
    ),
    Known(
        "An undefined placeholder is named together with the expression (so DynamoDB Local).",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html",
        rf"{_VALID}An expression attribute (name|value) used in .* is not defined; .*",
        rf"{_VALID}({COUNT})?Invalid \w+: An expression attribute (name|value) used in .* is not defined; .*",
        r".",
    ),
    Known(
        "Where a required member of UpdateItem, Query or Scan is missing, all broken constraints are listed: seen for "
        "several; dynoxide does not list all.",
        API + "CommonErrors.html",
        rf"{_VALID}.*",
        rf"{_VALID}\d+ validation errors detected: .*Value null at .*",
        r"^(UpdateItem|Query|Scan) ",
    ),
    Known(
        "Which of two faults of one update is found first: the overlap, in DynamoDB Local.",
        API + "API_UpdateItem.html",
        rf"{_VALID}.*Invalid UpdateExpression: .*",
        rf"{_VALID}.*Invalid UpdateExpression: Two document paths overlap .*",
        r"^UpdateItem ",
    ),
    Known(
        "A start key that does not fit was seen to be refused by Scan with: does not match the schema.",
        API + "API_Scan.html",
        rf"{_VALID}(The provided starting key is invalid|.*Type mismatch for Index Key .*)",
        rf"{_VALID}The provided starting key is invalid: The provided key element does not match the schema",
        r"^Scan ",
    ),
    Known(
        "KeyConditions can be combined with all expressions but KeyConditionExpression (so DynamoDB Local).",
        API + "API_Query.html",
        rf"{_VALID}Can not use both .*KeyConditions.*",
        r".*",
        r"^Query ",
    ),
    Known(
        "Which expressions are missing is said as by DynamoDB Local; dynoxide takes a ProjectionExpression for one with values.",
        API + "API_Query.html",
        rf"{_VALID}.*",
        rf"{_VALID}ExpressionAttributeValues can only be specified when using expressions: .*",
        r"^(Query|Scan) ",
    ),
    Known(
        "KeyConditions without a condition: the words of DynamoDB Local.",
        API + "API_Query.html",
        rf"{_VALID}(Either the KeyConditions |{COUNT}(Cannot|Must) specify ).*",
        rf"{_VALID}Conditions must be at least length 1",
        r"^Query ",
    ),
    Known(
        "That a Query has no key condition is told before what its Select contradicts (so DynamoDB Local).",
        API + "API_Query.html",
        rf"{_VALID}{COUNT}(Cannot|Must) specify .*",
        rf"{_VALID}Either the KeyConditions or KeyConditionExpression parameter must be specified in the request\.",
        r"^Query ",
    ),
    Known(
        "A null in a map of structures is an empty structure; dynoxide takes it for absent.",
        API + "CommonErrors.html",
        r".*",
        rf"{_VALID}.*Value null at .*",
        r'"(\w+Filter|KeyConditions|RequestItems)": \{[^}]*: null',
    ),
    Known(
        "A Select that contradicts the rest was seen to be counted by Query, and not by Scan.",
        API + "API_Scan.html",
        rf"{_VALID}{COUNT}(Cannot specify|Must specify|ALL_PROJECTED_ATTRIBUTES).*",
        rf"{_VALID}(Cannot specify|Must specify|ALL_PROJECTED_ATTRIBUTES).*",
        r"^Scan ",
    ),
    Known(
        "The service shows both numbers.",
        API + "API_Scan.html",
        rf"{_VALID}The Segment parameter is zero-based and must be less than parameter TotalSegments",
        rf"{_VALID}The Segment parameter is zero-based and must be less than parameter TotalSegments: .*",
        r"^Scan ",
    ),
    Known(
        "An undefined placeholder is found before the key condition is compared with the key (so DynamoDB Local).",
        API + "API_Query.html",
        rf"{_VALID}.*",
        rf"{_VALID}Invalid KeyConditionExpression: An expression attribute value used in .* is not defined; .*",
        r"^Query ",
    ),
    Known(
        "A ReturnValues that a delete does not have is in the list of broken constraints; dynoxide leaves it out where "
        "the key is missing.",
        API + "API_DeleteItem.html",
        rf"{_VALID}.*Value null at 'key' .*",
        rf"{_VALID}.*; ReturnValues can only be ALL_OLD or NONE",
        r"^DeleteItem ",
    ),
    Known(
        "Of two bad values, the first in the document (as in all members that were seen); dynoxide goes through a start "
        "key and the values of placeholders by name.",
        API + "API_Query.html",
        rf"{_VALID}({COUNT})?{_IN_VALUE}",
        rf"{_VALID}({COUNT})?{_IN_VALUE}",
        r'"(ExclusiveStartKey|ExpressionAttributeValues)": \{.*: .*: ',
    ),
    Known(
        "Query with a wrong ConditionalOperator and a wrong Select: the operator was seen to be reported alone.",
        API + "API_Query.html",
        rf"{_VALID}{COUNT}Value '.*' at 'select' .*",
        rf"{_VALID}(Failed to satisfy constraint: .*|ConditionalOperator .*)",
        r"^Query ",
    ),
    Known(
        "A request with another number in place of an int is listed with all its broken constraints; dynoxide leaves out "
        "the ConditionalOperator of a Query.",
        API + "API_Query.html",
        r".*",
        rf"{_VALID}.*'\w*' at 'conditionalOperator'.*",
        r'^Query .*"Limit": (\d+\.\d|\d{10})',
    ),
    Known(
        "An undefined placeholder is found without any item (so DynamoDB Local); dynoxide looks when it evaluates.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.html",
        r"OK: .*\"Items\": \[\].*",
        rf"{_VALID}Invalid \w+: An expression attribute (name|value) used in .* is not defined; .*",
        r"^(Query|Scan) ",
    ),
    Known(
        _UNDECIDED
        + "A Query without a key condition is refused before its table is looked for, like all other faults of "
        "its expressions; dynoxide looks for the table before this one.",
        API + "API_Query.html",
        r"ResourceNotFoundException: .*",
        rf"{_VALID}Either the KeyConditions or KeyConditionExpression parameter must be specified .*",
        r"^Query ",
    ),
)
"""Those of the actions on items."""

_OF_TABLES: Final = (
    r"^(CreateTable|UpdateTable|DeleteTable|DescribeTable|ListTables|UpdateTimeToLive|DescribeTimeToLive|TagResource"
    r"|UntagResource|ListTagsOfResource|ListStreams|DescribeStream|GetShardIterator|GetRecords) "
)
_INVALID: Final = "One or more parameter values were invalid: "
OF_TABLES: Final[tuple[Known, ...]] = (
    Known(
        "A fraction in place of an integer is cut (so DynamoDB Local); dynoxide's decoder refuses it in its own words.",
        API + "CommonErrors.html",
        r"SerializationException: floating point `.*`",
        r".*",
        _OF_TABLES,
    ),
    Known(
        "The constraints of AWS's service model hold for every member (tests/operations/test_service_model.py). dynoxide has "
        "them for some, or words of its own.",
        API + "API_Operations.html",
        r"(?!.*validation errors? detected: ).*",
        rf"{_VALID}\d+ validation errors? detected: Value .*",
        _OF_TABLES,
    ),
    Known(
        "All broken constraints of AWS's service model are listed; dynoxide lists those that it has, in an order of its own.",
        API + "API_Operations.html",
        rf"{_VALID}\d+ validation errors? detected: .*",
        rf"{_VALID}([2-9]|\d\d) validation errors detected: Value .*",
        _OF_TABLES,
    ),
    Known(
        "Replicas and witnesses; dynoxide ignores them.",
        API + "API_UpdateTable.html",
        r".*",
        rf"{_VALID}({_INVALID}(One|Only one) of (ReplicationGroupUpdate|GlobalTableWitnessGroupUpdate)\..*|Invalid region: .*"
        r"|Update global table operation failed .*|Failed to create a the new replica .*|A witness needs .*"
        r"|Cannot add, delete, or update the local region .*|One or more replicas are updated more than once"
        r"|MultiRegionConsistency can only .*)",
        r"^UpdateTable ",
    ),
    Known(
        "Warm throughput and maximums of on-demand throughput; dynoxide ignores them, or those of indexes.",
        API + "API_WarmThroughput.html",
        r".*",
        rf"{_VALID}{_INVALID}(Requested \w+ for (WarmThroughput|OnDemandThroughput) .*|Max\w+ for OnDemandThroughput cannot .*)",
        r"^(CreateTable|UpdateTable) ",
    ),
    Known(
        "A maximum of -1 is none; dynoxide knows this in UpdateTable alone.",
        API + "API_OnDemandThroughput.html",
        rf"{_VALID}{_INVALID}Requested Max\w+ for OnDemandThroughput .* is outside of valid range",
        r".*",
        r'^CreateTable .*"Max\w+RequestUnits": -1\b',
    ),
    Known(
        "A resource policy is JSON; dynoxide ignores it.",
        API + "API_CreateTable.html",
        r".*",
        rf"{_VALID}Resource-based policy is malformed.*",
        r"^CreateTable ",
    ),
    Known(
        "Whether a stream is on, and its view type, go together (so DynamoDB Local); dynoxide chooses a view type.",
        API + "API_StreamSpecification.html",
        r"OK: .*",
        rf"{_VALID}({_INVALID}(Table is being created with a stream|If stream is being) .*|Table already has an enabled stream: .*)",
        r"^(CreateTable|UpdateTable) ",
    ),
    Known(
        "An attribute that is defined twice was seen to be named; dynoxide does not look.",
        API + "API_AttributeDefinition.html",
        r".*",
        rf"{_VALID}Attribute Name is duplicated: .*",
        r"^CreateTable ",
    ),
    Known(
        "Tags have allowed characters and prefixes, and each key once; dynoxide does not look.",
        "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Tagging.html",
        r"(OK: |ResourceNotFoundException: ).*",
        rf"{_VALID}{_INVALID}(Tag (key|value) '.*' |Duplicate tag key: ).*",
        r"^(CreateTable|TagResource) ",
    ),
    Known(
        "What is no ARN was seen to be refused with: ARNs must start with 'arn:'.",
        API + "API_TagResource.html",
        rf"{_VALID}Invalid TableArn.*",
        rf"{_VALID}{_INVALID}ARNs must start with 'arn:'.*",
        r"^(TagResource|UntagResource|ListTagsOfResource) ",
    ),
    Known(
        "An ARN of another account or of no table is no resource (ResourceNotFoundException is documented for all three "
        "actions); dynoxide ignores accounts.",
        API + "API_ListTagsOfResource.html",
        rf"(OK: |AccessDeniedException: |ResourceNotFoundException: |{_VALID}{_INVALID}Too many tags: ).*",
        r"ResourceNotFoundException: Requested resource not found: ResourcArn: .* not found",
        r"^(TagResource|UntagResource|ListTagsOfResource) ",
    ),
    Known(
        "The ARN of a stream was seen to be checked before the stream is looked up; dynoxide does not look.",
        API + "API_streams_DescribeStream.html",
        rf"(OK: |ResourceNotFoundException: |{_VALID}Invalid SequenceNumber for the shard).*",
        rf"{_VALID}Invalid StreamArn",
        r"^(ListStreams|DescribeStream|GetShardIterator) ",
    ),
    Known(
        "A Limit has a maximum: 100 of streams and shards, 1000 of records; dynoxide does not look.",
        API + "API_streams_GetRecords.html",
        r".*",
        rf"{_VALID}{_INVALID}Limit (should be less|cannot be greater) than .*",
        r"^(ListStreams|DescribeStream|GetRecords) ",
    ),
    Known(
        "What is no iterator is refused in these words by DynamoDB Local.",
        API + "API_streams_GetRecords.html",
        rf"{_VALID}Invalid shard iterator",
        rf"{_VALID}Invalid ShardIterator",
        r"^GetRecords ",
    ),
    Known(
        "A stream or a shard that does not exist is a ResourceNotFoundException; dynoxide does not look.",
        API + "API_streams_GetShardIterator.html",
        r"OK: .*",
        r"ResourceNotFoundException: .*",
        r"^(DescribeStream|GetShardIterator) ",
    ),
    Known(
        "A sequence number that is missing or malformed is refused in these words by DynamoDB Local.",
        API + "API_streams_GetShardIterator.html",
        rf"{_VALID}({_INVALID}SequenceNumber cannot be null|Invalid SequenceNumber for the shard)",
        rf"{_VALID}{_INVALID}Invalid SequenceNumber",
        r"^GetShardIterator ",
    ),
    Known(
        "Expiry of another attribute cannot be turned off, nor what is off already, nor on what is on (so DynamoDB Local).",
        API + "API_UpdateTimeToLive.html",
        r"OK: .*",
        rf"{_VALID}TimeToLive is (active on a different AttributeName: .*|already (en|dis)abled)",
        r"^UpdateTimeToLive ",
    ),
    Known(
        "The name of a table is checked as in DescribeTimeToLive, where dynoxide agrees.",
        API + "API_UpdateTimeToLive.html",
        r".*",
        rf"{_VALID}TableName must be at least 3 characters long .*",
        r"^UpdateTimeToLive ",
    ),
    Known(
        "A global index that does not exist is not found (so DynamoDB Local where it is deleted); dynoxide calls it a table.",
        API + "API_UpdateTable.html",
        r"ResourceNotFoundException: Requested resource not found: Table: .* not found",
        r"ResourceNotFoundException: Requested resource not found",
        r"^UpdateTable .*GlobalSecondaryIndexUpdates",
    ),
    Known(
        _UNDECIDED
        + "An update of a global index that does not exist, or is a local one, is not found, as a deletion.",
        API + "API_UpdateTable.html",
        rf"{_VALID}.*Action Blocked: IndexUpdate",
        r".*",
        r"^UpdateTable ",
    ),
    Known(
        "ProvisionedThroughput of an update of an index may be absent; dynoxide has an older service model.",
        API + "API_UpdateGlobalSecondaryIndexAction.html",
        rf"{_VALID}\d validation errors? detected: .*\.update\.provisionedThroughput' .*",
        r".*",
        r"^UpdateTable ",
    ),
    Known(
        _UNDECIDED + "dynoxide shows no value of a sequence number whose length is wrong.",
        API + "API_streams_GetShardIterator.html",
        rf"{_VALID}1 validation error detected: Value at 'sequenceNumber' .*",
        rf"{_VALID}1 validation error detected: Value '.*' at 'sequenceNumber' .*",
        r"^GetShardIterator ",
    ),
    Known(
        "The broken constraint is named by the whole path of its member; dynoxide leaves out a part.",
        API + "API_CreateTable.html",
        rf"{_VALID}1 validation error detected: Value .* at '(keySchema|globalSecondaryIndexes\..*)' .*",
        rf"{_VALID}1 validation error detected: Value .* at '\w+Index\w+\.\d+\.member\..*(keySchema|create\.indexName)' .*",
        r"^(CreateTable|UpdateTable) ",
    ),
    Known(
        "A start at a time needs one, which no other start has, and children have a parent (seen); dynoxide does not look.",
        API + "API_streams_GetShardIterator.html",
        r".*",
        rf"{_VALID}{_INVALID}(Timestamp (must|should not) be passed|ShardId must be passed) .*",
        r"^(DescribeStream|GetShardIterator) ",
    ),
    Known(
        "AWS's service model has a constraint that is broken before the name of the table is looked at.",
        API + "API_Operations.html",
        rf"{_VALID}1 validation error detected: Value '.*' at 'tableName' .*",
        rf"{_VALID}1 validation error detected: Value (?!.*'tableName').*",
        r"^(UpdateTable|UpdateTimeToLive) ",
    ),
    Known(
        "Rules on indexes and capacity that dynoxide does not have.",
        API + "API_UpdateTable.html",
        rf"(OK: |{_VALID}{_INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified ).*",
        rf"{_VALID}(invalid attribute, SchemaElement redefined .*|{_INVALID}ProvisionedThroughput (should not be|is not) specified .*"
        rf"|The provisioned throughput for the index .*|Given value .*|{_INVALID}ProjectionType is INCLUDE, .*"
        rf"|{_INVALID}Duplicate value in attribute name: .*)",
        r"^(CreateTable|UpdateTable) ",
    ),
    Known(
        "Replicas, witnesses, warm throughput and indexes of on-demand tables are changes, too; dynoxide counts none of them.",
        API + "API_UpdateTable.html",
        rf"{_VALID}At least one of ProvisionedThroughput, BillingMode, .* is required",
        r".*",
        r'^UpdateTable .*"(ReplicaUpdates|GlobalTableWitnessUpdates|WarmThroughput|OnDemandThroughput)"',
    ),
    Known(
        _UNDECIDED + "Which of two faults of new, changed and deleted indexes is told first.",
        API + "API_UpdateTable.html",
        rf"({_VALID}({_INVALID})?(Unknown ProjectionType|Invalid KeySchema|Some index key |ProjectionType is |Index already exists"
        r"|Both the Hash Key|Attempting to create an index|Vector indexes are only|List of VectorIndexes is empty"
        r"|Neither ReadCapacityUnits|One element in SearchSchema|One of VectorIndexUpdate\.)"
        r"|LimitExceededException: |ResourceNotFoundException: |ResourceInUseException: ).*",
        r"(?!OK: ).*",
        r"^(CreateTable|UpdateTable) .*Index",
    ),
    Known(
        "ShardFilter and ExclusiveStartShardId exclude each other; dynoxide does not look.",
        API + "API_streams_DescribeStream.html",
        r".*",
        rf"{_VALID}ShardFilter and ExclusiveStartShardId both .*",
        r"^DescribeStream ",
    ),
    Known(
        "A table that is being changed cannot be deleted. dynoxide keeps the state after an update that came before.",
        API + "API_DeleteTable.html",
        r"ResourceInUseException: .*Cannot delete table while indexes are being .*",
        r".*",
        r"^DeleteTable ",
    ),
    Known(
        _UNDECIDED + "The order of the attributes in: keys used.",
        API + "API_CreateTable.html",
        rf"{_VALID}{_INVALID}Some AttributeDefinitions are not used\..*",
        rf"{_VALID}{_INVALID}Some AttributeDefinitions are not used\..*",
        r"^CreateTable ",
    ),
    Known(
        _UNDECIDED + "Global and vector indexes are created and deleted one at a time together.",
        API + "API_UpdateTable.html",
        r"OK: .*",
        r"LimitExceededException: Subscriber limit exceeded: Only 1 online index .*",
        r"^UpdateTable .*VectorIndexUpdates",
    ),
    Known(
        "One UpdateTable creates or deletes one global index; dynoxide deletes several. DynamoDB Local agrees.",
        API + "API_UpdateTable.html",
        r".*",
        r"LimitExceededException: Subscriber limit exceeded: Only 1 online index .*",
        r'^UpdateTable .*"GlobalSecondaryIndexUpdates": \[\{"Delete": [^]]*"Delete": ',
    ),
    Known(
        "A table has no stream to disable; dynoxide does not look. DynamoDB Local agrees.",
        API + "API_UpdateTable.html",
        r"OK: .*",
        rf"{_VALID}Table has no stream to disable: .*",
        r'^UpdateTable .*"StreamEnabled": false',
    ),
    Known(
        "dynoxide does not know Disassociate, which is in the service's model.",
        API + "API_UpdateTable.html",
        r"OK: .*",
        rf"{_VALID}Table \w+ must have a stream with new and old images to have replicas",
        r'^UpdateTable .*"Disassociate"',
    ),
    Known(
        "AT_TIMESTAMP is one of the types in the service's model; dynoxide does not know it.",
        API + "API_streams_GetShardIterator.html",
        rf"{_VALID}Invalid ShardIteratorType: AT_TIMESTAMP",
        r".*",
        r"^GetShardIterator ",
    ),
    Known(
        "The words of DynamoDB Local, with the name of the present attribute.",
        API + "API_UpdateTimeToLive.html",
        rf"{_VALID}TimeToLive is already enabled with a different attribute name",
        rf"{_VALID}TimeToLive is active on a different AttributeName: current AttributeName is \w+",
        r"^UpdateTimeToLive ",
    ),
    Known(
        _UNDECIDED
        + "A maximum of on-demand throughput that is out of bounds, and a fault of a new index: which is told first.",
        API + "API_UpdateTable.html",
        rf"{_VALID}{_INVALID}Requested Max\w+ for OnDemandThroughput .* is outside of valid range",
        rf"{_VALID}({_INVALID})?(Invalid KeySchema|Some index key ).*",
        r'^UpdateTable .*"OnDemandThroughput"',
    ),
    Known(
        _UNDECIDED
        + "dynoxide finds no stream of a malformed ARN before it sees a position that is missing or that the type "
        "does not use, and one of a table after it.",
        API + "API_streams_GetShardIterator.html",
        r"ResourceNotFoundException: Requested resource not found: Stream: .*",
        rf"{_VALID}{_INVALID}(Invalid SequenceNumber|(SequenceNumber|Timestamp) (should not|must) be passed for this iterator type)",
        r"^GetShardIterator ",
    ),
    Known(
        "A stream or shard that does not exist is not found before the number is looked at (so DynamoDB Local).",
        API + "API_streams_GetShardIterator.html",
        rf"{_VALID}Invalid SequenceNumber for the shard",
        r"ResourceNotFoundException: Requested resource not found: (Stream|Shard) does not exist",
        r"^GetShardIterator ",
    ),
    Known(
        "A table without BillingMode is provisioned, and needs its units (so DynamoDB Local); dynoxide asks only where it is named.",
        API + "API_CreateTable.html",
        r".*",
        rf"{_VALID}{_INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
        r"^CreateTable ",
    ),
    Known(
        _UNDECIDED
        + "A maximum of on-demand throughput on a provisioned table, and an update of an index with two actions: "
        "which is told first.",
        API + "API_UpdateTable.html",
        rf"{_VALID}{_INVALID}Max\w+ for OnDemandThroughput cannot .*",
        rf"{_VALID}{_INVALID}(Only one|One) of GlobalSecondaryIndexUpdate\..*",
        r'^UpdateTable .*"OnDemandThroughput"',
    ),
    Known(
        _UNDECIDED
        + "A new index with a broken key, and an update of a vector index with two actions: which is told first.",
        API + "API_UpdateTable.html",
        rf"{_VALID}{_INVALID}Only one vector index action is allowed .*",
        rf"{_VALID}(Invalid KeySchema|{_INVALID}Some index key |ProjectionType ).*",
        r"^UpdateTable .*VectorIndexUpdates",
    ),
)
"""Those of the actions on tables, tags, expiry and streams."""

OF_DYNOXIDE: Final = (*OF_ITEMS, *OF_TABLES)
"""Where dynoxide is not the service; these are compared to the letter."""
