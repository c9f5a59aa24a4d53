"""Building blocks of request structures: member types with AWS's constraints (TableName …), enums (ReturnValues …).

Attributes are in snake case (`request.table_name` is `TableName`); an absent member is None. A constraint is part of
the annotation: msgspec enforces it while decoding, and `request_grammar` reads it to explain a refusal. The values of
an enum are in the order in which the service prints them.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from msgspec import Meta, Struct

_ACRONYMS: Final = {"sse": "SSE", "kms": "KMS"}


def member_name(attribute: str) -> str:
    """AWS's name of a member: `sse_type` is `SSEType`, but `s3_sse_algorithm` is `S3SseAlgorithm`."""
    words = attribute.rstrip("_").split("_")
    acronyms = {} if words[0] == "s3" else _ACRONYMS
    return "".join(acronyms.get(word, word.capitalize()) for word in words)


class ApiStructure(Struct, frozen=True, gc=False, rename=member_name):
    """A structure of the API: unknown members are ignored and null means absent, as on the service."""

    is_strict: ClassVar[bool] = False
    """Whether JSON is read with the rules of `strict_json`."""


# An attribute value stays as it is in JSON; `values.canonical_item` checks it.
AttributeValue: TypeAlias = dict[str, Any]
AttributeName: TypeAlias = Annotated[str, Meta(max_length=65535)]
AttributeMap: TypeAlias = dict[AttributeName, AttributeValue]
AttributeNames: TypeAlias = Annotated[list[AttributeName], Meta(min_length=1)]

# Data-plane calls take a name or an ARN; `checks.members` and `table_lookup.table_name` check it.
TableName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1024, extra={"checked": "if empty"})
]
# The table name in an entry of a transaction has a separate layer.
EntryTableName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1024, extra={"checked": "by a layer"})
]
# Actions with the older checks list faults in a name together with those of other members.
ListedTableName: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1024, extra={"checked": "as a name"})
]
_NAME: Final = "[a-zA-Z0-9_.-]"
NAME_PATTERN: Final = f"{_NAME}+"
"""The characters of table, index and backup names."""

# Control-plane calls check the name last, with their own messages.
ControlTableName: TypeAlias = Annotated[
    str,
    Meta(pattern=rf"^({_NAME}{{3,255}}\Z|arn:)", max_length=1024, extra={"checked": "last"}),
]
# CreateTable lists faults in a name together with those of other members.
NewTableName: TypeAlias = Annotated[
    str,
    Meta(pattern=rf"^({_NAME}{{3,255}}\Z|arn:)", max_length=1024, extra={"checked": "as a name"}),
]
ResourceArn: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1283)]
RevisionId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]
EntityName: TypeAlias = Annotated[
    str, Meta(min_length=3, max_length=255, pattern=rf"^{NAME_PATTERN}\Z")
]
IndexName: TypeAlias = EntityName
# A read looks up any name, but clients refuse names that are shorter than an index name may be.
IndexNameOfRead: TypeAlias = Annotated[str, Meta(extra={"min_length_of_clients": 3})]
BackupName: TypeAlias = EntityName
BackupArn: TypeAlias = Annotated[str, Meta(min_length=37, max_length=1024)]
KeyAttributeName: TypeAlias = Annotated[str, Meta(min_length=1, max_length=255)]

Flag: TypeAlias = bool
Long: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
PositiveLong: TypeAlias = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Timestamp: TypeAlias = float
"""Seconds since the Unix epoch."""
Double: TypeAlias = Annotated[float, Meta(extra={"java": "Double"})]
PositiveInteger: TypeAlias = Annotated[int, Meta(ge=1, le=2**31 - 1)]

ExpressionNames: TypeAlias = dict[str, AttributeName]
ExpressionValues: TypeAlias = dict[str, AttributeValue]

ApproximateCreationDateTimePrecision: TypeAlias = Literal["MILLISECOND", "MICROSECOND"]
AttributeAction: TypeAlias = Literal["ADD", "DELETE", "PUT"]
BillingMode: TypeAlias = Literal["PROVISIONED", "PAY_PER_REQUEST"]
# Legacy conditions are checked as a whole: see `legacy`. The older checks list a wrong ConditionalOperator.
ComparisonOperator: TypeAlias = str
ConditionalOperator: TypeAlias = Annotated[str, Meta(extra={"enum": ("OR", "AND")})]
ContributorInsightsAction: TypeAlias = Literal["ENABLE", "DISABLE"]
ContributorInsightsMode: TypeAlias = Literal["ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"]
KeyType: TypeAlias = Literal["HASH", "RANGE"]
ProjectionType: TypeAlias = Literal["ALL", "INCLUDE", "KEYS_ONLY"]
ReturnConsumedCapacity: TypeAlias = Literal["INDEXES", "TOTAL", "NONE"]
ReturnItemCollectionMetrics: TypeAlias = Literal["SIZE", "NONE"]
ReturnValue: TypeAlias = Literal["ALL_NEW", "UPDATED_OLD", "ALL_OLD", "NONE", "UPDATED_NEW"]
ReturnValuesOnConditionCheckFailure: TypeAlias = Literal["ALL_OLD", "NONE"]
ScalarAttributeType: TypeAlias = Literal["B", "N", "S"]
Select: TypeAlias = Literal[
    "SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"
]
SearchSchemaElementType: TypeAlias = Literal["HASH", "INLINE_FILTER"]
SSEType: TypeAlias = Literal["AES256", "KMS"]
StreamViewType: TypeAlias = Literal["NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"]
TableClass: TypeAlias = Literal["STANDARD", "STANDARD_INFREQUENT_ACCESS"]
VectorDistanceFunction: TypeAlias = Literal["COSINE", "DOT_PRODUCT", "EUCLIDEAN"]


class Condition(ApiStructure, frozen=True, kw_only=True):
    """A legacy comparison of one attribute (KeyConditions, QueryFilter, ScanFilter)."""

    attribute_value_list: list[AttributeValue] | None = None
    comparison_operator: ComparisonOperator


class ExpectedAttributeValue(ApiStructure, frozen=True):
    """A legacy condition of a write on one attribute (Expected)."""

    value: AttributeValue | None = None
    exists: Flag | None = None
    comparison_operator: ComparisonOperator | None = None
    attribute_value_list: list[AttributeValue] | None = None


class AttributeValueUpdate(ApiStructure, frozen=True):
    """A legacy change of one attribute (AttributeUpdates)."""

    value: AttributeValue | None = None
    action: AttributeAction | None = None


TagKey = Annotated[str, Meta(min_length=1, max_length=128)]


class Tag(ApiStructure, frozen=True):
    """A name and a value that a user attaches to a table."""

    key: TagKey
    value: Annotated[str, Meta(max_length=256)]
