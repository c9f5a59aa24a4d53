"""TagResource, UntagResource and ListTagsOfResource; also checks the tags of CreateTable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.engine.table_schema import TableSchema
from isotone.errors import ValidationException
from isotone.operations.action import NO_BODY, ActionRule, Answer, action
from isotone.operations.item_validation import INVALID
from isotone.operations.request_members import NAME_PATTERN, ApiStructure, ResourceArn, Tag, TagKey
from isotone.operations.table_lookup import check_arn, table_of_arn


class TagResource(ApiStructure, frozen=True):
    """Add or replace tags."""

    resource_arn: ResourceArn
    tags: list[Tag]


class UntagResource(ApiStructure, frozen=True):
    """Remove tags."""

    resource_arn: ResourceArn
    tag_keys: list[TagKey]


class ListTagsOfResource(ApiStructure, frozen=True):
    """Ask for a table's tags."""

    resource_arn: ResourceArn
    next_token: str | None = None


_TABLE_ARN: Final = re.compile(rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/{NAME_PATTERN}")
# Letters, digits and spaces of any script, and some punctuation.
_is_allowed: Final = re.compile(r"[\w\s+\-=.:/@]*").fullmatch
_RESERVED: Final = "aws:"


# Rules on tags


def check_tags(tags: Iterable[Tag]) -> None:
    """Refuse tags with invalid characters, with AWS's own prefix, or with the same key twice."""
    seen: set[str] = set()
    for tag in tags:
        for kind, text in (("key", tag.key), ("value", tag.value)):
            if not _is_allowed(text):
                raise ValidationException(
                    f"{INVALID}Tag {kind} '{text}' has a character that is not allowed: use letters, "
                    "digits, spaces and + - = . _ : / @"
                )
        if tag.key.lower().startswith(_RESERVED):
            raise ValidationException(
                f"{INVALID}Tag key '{tag.key}' begins with {_RESERVED}, which is reserved"
            )
        if tag.key in seen:
            raise ValidationException(f"{INVALID}Duplicate tag key: {tag.key}")
        seen.add(tag.key)


def check_tag_count(count: int) -> None:
    """Refuse more tags than a table may have."""
    if count > limits.TAGS:
        raise ValidationException(f"{INVALID}Too many tags: tag limit is {limits.TAGS}")


TAGS_ARE_VALID: Final = ActionRule(
    "a tag with foreign characters, with the prefix aws:, or that is twice",
    lambda request: check_tags(request.tags or ()),
)
"""The rule on the tags of a request, each in turn."""


# Actions

Requested: TypeAlias = TagResource | UntagResource | ListTagsOfResource


def _check_arn(request: Requested) -> None:
    arn = request.resource_arn
    check_arn(arn)
    if not _TABLE_ARN.fullmatch(arn):
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")


def _check_some(request: TagResource) -> None:
    if not request.tags:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")


def _check_some_keys(request: UntagResource) -> None:
    if not request.tag_keys:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")


def _tagged(engine: Engine, request: Requested) -> TableSchema:
    return table_of_arn(engine, request.resource_arn).schema


def _with_tags(engine: Engine, request: TagResource) -> dict[str, str]:
    """The tags of the table with those of the request, if they are not too many."""
    tags = {**_tagged(engine, request).tags, **{tag.key: tag.value for tag in request.tags}}
    check_tag_count(len(tags))
    return tags


_ARN: Final = ActionRule("a ResourceArn that is not that of a table", _check_arn)
_TABLE: Final = ActionRule("no such table", _tagged)


@action(
    "TagResource",
    before=(_ARN, ActionRule("no tags", _check_some), TAGS_ARE_VALID),
    writing=(_TABLE, ActionRule("too many tags", _with_tags)),
)
def tag_resource(engine: Engine, request: TagResource) -> Answer:
    """Add tags to a table, or replace their values."""
    tags = _with_tags(engine, request)
    engine.catalog.save(msgspec.structs.replace(_tagged(engine, request), tags=tags))
    return NO_BODY


@action(
    "UntagResource",
    before=(_ARN, ActionRule("no keys of tags", _check_some_keys)),
    writing=(_TABLE,),
)
def untag_resource(engine: Engine, request: UntagResource) -> Answer:
    """Remove tags from a table; a missing tag is not an error."""
    schema = _tagged(engine, request)
    tags = {key: value for key, value in schema.tags.items() if key not in request.tag_keys}
    engine.catalog.save(msgspec.structs.replace(schema, tags=tags))
    return NO_BODY


@action("ListTagsOfResource", before=(_ARN,), reading=(_TABLE,))
def list_tags_of_resource(engine: Engine, request: ListTagsOfResource) -> Answer:
    """All tags of a table; like the service, always in one page."""
    tags = _tagged(engine, request).tags
    return {"Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}
