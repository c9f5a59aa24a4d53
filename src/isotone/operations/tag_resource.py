"""TagResource: add tags to a table, or replace their values."""

from __future__ import annotations

import msgspec

from isotone import limits
from isotone.engine.engine import Engine
from isotone.errors import ValidationException
from isotone.operations.action import Answer, action
from isotone.operations.rules.settings import check_tag_resource
from isotone.operations.shapes.settings import TagResource
from isotone.operations.tables import table_of_arn


@action("TagResource")
def run(engine: Engine, request: TagResource) -> Answer:
    check_tag_resource(request)
    with engine.writing:
        schema = table_of_arn(engine, request.resource_arn).schema
        tags = {**schema.tags, **{tag.key: tag.value for tag in request.tags}}
        if len(tags) > limits.TAGS:
            raise ValidationException(
                f"One or more parameter values were invalid: Too many tags: a resource has at most {limits.TAGS}"
            )
        engine.catalog.save(msgspec.structs.replace(schema, tags=tags))
    return {}
