"""Rules on Query and Scan."""

from __future__ import annotations

from typing import Final

from isotone.errors import ValidationException
from isotone.operations.rules.parameters import Parameters, checker
from isotone.operations.shapes.reads import Query, Scan

_check_query: Final = checker(
    Parameters(
        expressions=("projection_expression", "filter_expression", "key_condition_expression"),
        with_values=("filter_expression", "key_condition_expression"),
        legacy=("attributes_to_get", "query_filter", "conditional_operator", "key_conditions"),
        filters=("query_filter",),
    )
)
_check_scan: Final = checker(
    Parameters(
        expressions=("projection_expression", "filter_expression"),
        with_values=("filter_expression",),
        legacy=("attributes_to_get", "scan_filter", "conditional_operator"),
        filters=("scan_filter",),
    )
)


def check_query(request: Query) -> None:
    """What Query may combine."""
    _check_query(request)


def check_scan(request: Scan) -> None:
    """What Scan may combine."""
    _check_scan(request)


def check_scan_choice(request: Scan) -> None:
    """`check_choice`, and which segment a Scan reads."""
    check_choice(request)
    _check_segment(request.segment, request.total_segments)


def check_choice(request: Query | Scan) -> None:
    """Which attributes a read chooses. The service judges the expressions before this."""
    select = request.select
    if select is None:
        return
    chosen = _chosen(request)
    if select == "SPECIFIC_ATTRIBUTES":
        if chosen is None:
            raise ValidationException(
                "Must specify the AttributesToGet or ProjectionExpression "
                "when choosing to get SPECIFIC_ATTRIBUTES"
            )
    elif chosen is not None:
        wanted = "only the Count" if select == "COUNT" else select
        raise ValidationException(f"Cannot specify the {chosen} when choosing to get {wanted}")
    if select == "ALL_PROJECTED_ATTRIBUTES" and request.index_name is None:
        raise ValidationException(
            "ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName"
        )


def _chosen(request: Query | Scan) -> str | None:
    """The parameter that names the attributes to return."""
    if request.projection_expression is not None:
        return "ProjectionExpression"
    return None if request.attributes_to_get is None else "AttributesToGet"


def _check_segment(segment: int | None, total: int | None) -> None:
    if segment is None and total is None:
        return
    if total is None:
        raise ValidationException(
            "The TotalSegments parameter is required but was not present in the request "
            "when Segment parameter is present"
        )
    if segment is None:
        raise ValidationException(
            "The Segment parameter is required but was not present in the request "
            "when parameter TotalSegments is present"
        )
    if segment >= total:
        raise ValidationException(
            "The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            f"Segment: {segment} is not less than TotalSegments: {total}"
        )
