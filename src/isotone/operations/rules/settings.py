"""Rules on tags."""

from __future__ import annotations

import re
from typing import Final

from isotone.errors import ValidationException
from isotone.operations.grammar import NAME_PATTERN
from isotone.operations.shapes.settings import ListTagsOfResource, TagResource, UntagResource

_TABLE_ARN: Final = re.compile(rf"arn:[a-z-]+:dynamodb:[a-z0-9-]+:[0-9]+:table/{NAME_PATTERN}")


def check_tag_resource(request: TagResource) -> None:
    """That there are tags, for a table."""
    _check_arn(request.resource_arn)
    if not request.tags:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")


def check_untag_resource(request: UntagResource) -> None:
    """That there are keys of tags, for a table."""
    _check_arn(request.resource_arn)
    if not request.tag_keys:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")


def check_list_tags_of_resource(request: ListTagsOfResource) -> None:
    """That the ARN could be a table's."""
    _check_arn(request.resource_arn)


def _check_arn(arn: str) -> None:
    if not _TABLE_ARN.fullmatch(arn):
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
