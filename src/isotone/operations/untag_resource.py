"""UntagResource: take tags from a table; a tag that is not there is no error."""

from __future__ import annotations

import msgspec

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.rules.settings import check_untag_resource
from isotone.operations.shapes.settings import UntagResource
from isotone.operations.tables import table_of_arn


@action("UntagResource")
def run(engine: Engine, request: UntagResource) -> Answer:
    check_untag_resource(request)
    with engine.writing:
        schema = table_of_arn(engine, request.resource_arn).schema
        tags = {key: value for key, value in schema.tags.items() if key not in request.tag_keys}
        engine.catalog.save(msgspec.structs.replace(schema, tags=tags))
    return {}
