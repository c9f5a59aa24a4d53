"""What Query and Scan share: which attributes come back, the filter, and the answer's form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotone.engine.metering import Meter
from isotone.engine.pages import Page, Reader
from isotone.engine.record import size_of
from isotone.engine.source import Source
from isotone.errors import ValidationException
from isotone.expressions import Condition, Projection
from isotone.operations import legacy
from isotone.operations.binding import Binding, bound
from isotone.operations.replies import add_capacity, meter_for
from isotone.operations.rules.attributes import refuse_repeated_names
from isotone.operations.shapes.reads import Query, Scan


def check_consistency(source: Source, request: Query | Scan) -> None:
    """Refuse a strongly consistent read of a global index."""
    if source.index is not None and source.index.kind == "global" and request.consistent_read:
        raise ValidationException("Consistent reads are not supported on global secondary indexes")


def projection_of(request: Query | Scan, binding: Binding) -> Projection | None:
    """What the request cuts items down to, or None for all that there is."""
    if request.attributes_to_get is not None:
        refuse_repeated_names(request.attributes_to_get)
        return legacy.projection_of(request.attributes_to_get)
    return binding.projection(request.projection_expression)


class Selection:
    """How each entry of a source becomes an item of the answer."""

    def __init__(
        self,
        source: Source,
        request: Query | Scan,
        filters: Condition | None,
        projection: Projection | None,
        binding: Binding,
    ) -> None:
        self.source = source
        self.request = request
        self.meter = meter_for(request)
        self._fetched: list[int] = []
        _check_projected(source, request, filters, projection)
        self.reader = Reader(
            limit=request.limit,
            expand=self._expander(projection),
            matches=bound(filters, binding.values),
            project=None if projection is None else projection.project,
            counting=request.select == "COUNT",
        )

    def answer(self, page: Page) -> dict[str, Any]:
        """The answer's members for a page."""
        answer: dict[str, Any] = {}
        if self.request.select != "COUNT":
            answer["Items"] = page.items
        answer["Count"] = page.count
        answer["ScannedCount"] = page.scanned
        if page.last is not None:
            answer["LastEvaluatedKey"] = self.source.last_key(page.last)
        if self.meter is not None:
            self._charge(self.meter, page)
            add_capacity(answer, self.request, self.meter)
        return answer

    def _expander(self, projection: Projection | None) -> Callable[[bytes], bytes] | None:
        """For a local index that lacks wanted attributes: the way to the table's own item."""
        index = self.source.index
        if index is None or index.kind == "global":
            return None
        if self.request.select == "ALL_ATTRIBUTES":
            return None if index.schema.projection.kind == "ALL" else self._fetch
        covered = projection is None or index.covers(projection.attributes)
        return None if covered else self._fetch

    def _fetch(self, record: bytes) -> bytes:
        whole = self.source.whole_item(record)
        self._fetched.append(size_of(whole))
        return whole

    def _charge(self, meter: Meter, page: Page) -> None:
        consistent = bool(self.request.consistent_read)
        meter.read(page.size, consistent=consistent, index=self.source.index)
        for size in self._fetched:
            meter.read(size, consistent=consistent)


def _check_projected(
    source: Source, request: Query | Scan, filters: Condition | None, projection: Projection | None
) -> None:
    """A filter sees only what the index has; a global index moreover gives only what it has."""
    index = source.index
    if index is None:
        return
    unseen = [] if filters is None else index.missing(filters.attributes)
    if unseen:
        raise ValidationException(
            f"One or more parameter values were invalid: Secondary index {index.name} "
            f"does not project one or more filter attributes: [{', '.join(unseen)}]"
        )
    if index.kind == "local":
        return
    if request.select == "ALL_ATTRIBUTES" and index.schema.projection.kind != "ALL":
        raise ValidationException(
            "One or more parameter values were invalid: Select type ALL_ATTRIBUTES is not supported "
            f"for global secondary index {index.name} because its projection type is not ALL"
        )
    missing = [] if projection is None else index.missing(projection.attributes)
    if missing:
        raise ValidationException(
            f"One or more parameter values were invalid: Global secondary index {index.name} "
            f"does not project [{', '.join(missing)}]"
        )
