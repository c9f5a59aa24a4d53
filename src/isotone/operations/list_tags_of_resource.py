"""ListTagsOfResource: a table's tags, ten to a page."""

from __future__ import annotations

from typing import Any

from isotone.engine.engine import Engine
from isotone.operations.action import Answer, action
from isotone.operations.rules.settings import check_list_tags_of_resource
from isotone.operations.shapes.settings import ListTagsOfResource
from isotone.operations.tables import table_of_arn

_PAGE = 10


@action("ListTagsOfResource")
def run(engine: Engine, request: ListTagsOfResource) -> Answer:
    check_list_tags_of_resource(request)
    with engine.reading:
        tags = list(table_of_arn(engine, request.resource_arn).schema.tags.items())
    token = request.next_token or "0"
    first = int(token) if token.isdecimal() else 0
    page = tags[first : first + _PAGE]
    answer: dict[str, Any] = {"Tags": [{"Key": key, "Value": value} for key, value in page]}
    if first + _PAGE < len(tags):
        answer["NextToken"] = str(first + _PAGE)
    return answer
