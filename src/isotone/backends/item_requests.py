"""The parameters of the actions on items, as boto3's low-level client takes them.

Each `…Input` is declared once and serves three readers: an editor completes keyword arguments from it,
`parameters` compiles it into a check that runs in C, and the same module walks it to say what is wrong
in botocore's words. Member names, their order and their bounds are the service's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Required, TypedDict, TypeVar

from msgspec import Meta

T = TypeVar("T")

Name = Annotated[str, Meta(min_length=1)]
Natural = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
NonEmpty = Annotated[Sequence[T], Meta(min_length=1)]


class AttributeValue(TypedDict, total=False):
    S: str
    N: str
    B: bytes
    SS: Sequence[str]
    NS: Sequence[str]
    BS: Sequence[bytes]
    M: Mapping[str, Any]
    L: Sequence[Any]
    NULL: bool
    BOOL: bool


if TYPE_CHECKING:  # a dict that was made before the call has no type more exact
    AttributeMap = Mapping[str, AttributeValue | Mapping[str, Any]]
else:
    AttributeMap = Mapping[str, AttributeValue]


class GetItemInput(TypedDict, total=False):
    TableName: Required[Name]
    Key: Required[AttributeMap]
    AttributesToGet: NonEmpty[str]
    ConsistentRead: bool
    ReturnConsumedCapacity: str
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]


class ExpectedAttributeValue(TypedDict, total=False):
    Value: AttributeValue
    Exists: bool
    ComparisonOperator: str
    AttributeValueList: Sequence[AttributeValue]


class PutItemInput(TypedDict, total=False):
    TableName: Required[Name]
    Item: Required[AttributeMap]
    Expected: Mapping[str, ExpectedAttributeValue]
    ReturnValues: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ConditionalOperator: str
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class AttributeValueUpdate(TypedDict, total=False):
    Value: AttributeValue
    Action: str


class UpdateItemInput(TypedDict, total=False):
    TableName: Required[Name]
    Key: Required[AttributeMap]
    AttributeUpdates: Mapping[str, AttributeValueUpdate]
    Expected: Mapping[str, ExpectedAttributeValue]
    ConditionalOperator: str
    ReturnValues: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    UpdateExpression: str
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class DeleteItemInput(TypedDict, total=False):
    TableName: Required[Name]
    Key: Required[AttributeMap]
    Expected: Mapping[str, ExpectedAttributeValue]
    ConditionalOperator: str
    ReturnValues: str
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class Condition(TypedDict, total=False):
    AttributeValueList: Sequence[AttributeValue]
    ComparisonOperator: Required[str]


class QueryInput(TypedDict, total=False):
    TableName: Required[Name]
    IndexName: Name
    Select: str
    AttributesToGet: NonEmpty[str]
    Limit: Positive
    ConsistentRead: bool
    KeyConditions: Mapping[str, Condition]
    QueryFilter: Mapping[str, Condition]
    ConditionalOperator: str
    ScanIndexForward: bool
    ExclusiveStartKey: AttributeMap
    ReturnConsumedCapacity: str
    ProjectionExpression: str
    FilterExpression: str
    KeyConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap


class ScanInput(TypedDict, total=False):
    TableName: Required[Name]
    IndexName: Name
    AttributesToGet: NonEmpty[str]
    Limit: Positive
    Select: str
    ScanFilter: Mapping[str, Condition]
    ConditionalOperator: str
    ExclusiveStartKey: AttributeMap
    ReturnConsumedCapacity: str
    TotalSegments: Positive
    Segment: Natural
    ProjectionExpression: str
    FilterExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ConsistentRead: bool


class KeysAndAttributes(TypedDict, total=False):
    Keys: Required[NonEmpty[AttributeMap]]
    AttributesToGet: NonEmpty[str]
    ConsistentRead: bool
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]


class BatchGetItemInput(TypedDict, total=False):
    RequestItems: Required[Mapping[str, KeysAndAttributes]]
    ReturnConsumedCapacity: str


class PutRequestShape(TypedDict, total=False):
    Item: Required[AttributeMap]


class DeleteRequestShape(TypedDict, total=False):
    Key: Required[AttributeMap]


class WriteRequest(TypedDict, total=False):
    PutRequest: PutRequestShape
    DeleteRequest: DeleteRequestShape


class BatchWriteItemInput(TypedDict, total=False):
    RequestItems: Required[Mapping[str, NonEmpty[WriteRequest]]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str


class GetShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Name]
    ProjectionExpression: str
    ExpressionAttributeNames: Mapping[str, str]


class TransactGetItem(TypedDict, total=False):
    Get: Required[GetShape]


class TransactGetItemsInput(TypedDict, total=False):
    TransactItems: Required[NonEmpty[TransactGetItem]]
    ReturnConsumedCapacity: str


class ConditionCheckShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Name]
    ConditionExpression: Required[str]
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class PutShape(TypedDict, total=False):
    Item: Required[AttributeMap]
    TableName: Required[Name]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class DeleteShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    TableName: Required[Name]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class UpdateShape(TypedDict, total=False):
    Key: Required[AttributeMap]
    UpdateExpression: Required[str]
    TableName: Required[Name]
    ConditionExpression: str
    ExpressionAttributeNames: Mapping[str, str]
    ExpressionAttributeValues: AttributeMap
    ReturnValuesOnConditionCheckFailure: str


class TransactWriteItem(TypedDict, total=False):
    ConditionCheck: ConditionCheckShape
    Put: PutShape
    Delete: DeleteShape
    Update: UpdateShape


class TransactWriteItemsInput(TypedDict, total=False):
    TransactItems: Required[NonEmpty[TransactWriteItem]]
    ReturnConsumedCapacity: str
    ReturnItemCollectionMetrics: str
    ClientRequestToken: Name


class ExecuteStatementInput(TypedDict, total=False):
    Statement: Required[Name]
    Parameters: NonEmpty[AttributeValue]
    ConsistentRead: bool
    NextToken: Name
    ReturnConsumedCapacity: str
    Limit: Positive
    ReturnValuesOnConditionCheckFailure: str


class BatchStatementRequest(TypedDict, total=False):
    Statement: Required[Name]
    Parameters: NonEmpty[AttributeValue]
    ConsistentRead: bool
    ReturnValuesOnConditionCheckFailure: str


class BatchExecuteStatementInput(TypedDict, total=False):
    Statements: Required[NonEmpty[BatchStatementRequest]]
    ReturnConsumedCapacity: str


class ParameterizedStatement(TypedDict, total=False):
    Statement: Required[Name]
    Parameters: NonEmpty[AttributeValue]
    ReturnValuesOnConditionCheckFailure: str


class ExecuteTransactionInput(TypedDict, total=False):
    TransactStatements: Required[NonEmpty[ParameterizedStatement]]
    ClientRequestToken: Name
    ReturnConsumedCapacity: str
