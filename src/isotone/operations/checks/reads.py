"""The checks of Query and Scan, one layer each for `orders`; the rules are in `query_and_scan`."""

from __future__ import annotations

from isotone.engine.layout import Bounds
from isotone.engine.pages import OrderedSource, segment_bounds
from isotone.errors import ValidationException
from isotone.expressions import KeyRange
from isotone.operations import legacy
from isotone.operations.checks.first_fault import Check, RefusedRequest
from isotone.operations.checks.requests import binding_of
from isotone.operations.checks.values import newer
from isotone.operations.item_validation import check_key_condition
from isotone.operations.query_and_scan import (
    INVALID_START,
    check_choice,
    check_segment,
    query_start,
    refuse_key_filter,
    scan_start,
    source_of,
    start_position,
)
from isotone.values.attribute_validation import TOO_DEEP, Item, canonical_item
from isotone.values.value_layers import check_decoded, check_nesting


def start_of(*named: str) -> Check:
    """The values of ExclusiveStartKey. The service's messages say that the fault is in a starting key."""

    def check(asked: RefusedRequest) -> None:
        start = asked.request.exclusive_start_key
        if start is None:
            return
        try:
            for value in start.values():
                check_decoded(value)
            _check_content(start)
        except ValidationException as error:
            if error.message in named:
                raise _in_start(error) from None
            raise newer(error) from None

    return check


def _check_content(start: Item) -> None:
    """Check the content of every value of a start key before the nesting of any."""
    deep = None
    for name, value in start.items():
        try:
            canonical_item({name: value})
        except ValidationException as error:
            if error.message != TOO_DEEP:
                raise
            deep = error
    if deep is not None:
        raise deep


def nesting_of_start(asked: RefusedRequest) -> None:
    """No value of ExclusiveStartKey is nested too deeply."""
    for value in (asked.document.get("ExclusiveStartKey") or {}).values():
        try:
            check_nesting(value)
        except ValidationException as error:
            raise _in_start(error) from None


def _in_start(error: ValidationException) -> ValidationException:
    return ValidationException(f"{INVALID_START}: {error.message}")


def choice_is_possible(asked: RefusedRequest) -> None:
    """The Select is possible with the attributes and the index of the request."""
    check_choice(asked.request)


def segments_fit(asked: RefusedRequest) -> None:
    """Segment and TotalSegments belong together."""
    check_segment(asked.request.segment, asked.request.total_segments)


def index_is_readable(asked: RefusedRequest) -> None:
    """The index exists, and can be read as the request asks."""
    _source(asked)


def keys_are_scalars(asked: RefusedRequest) -> None:
    """No path leads into a key attribute."""
    binding = binding_of(asked.request)
    if asked.request.filter_expression is not None:
        binding.filter(asked.request.filter_expression)
    binding.check_keys(asked.table())


# Query


def key_conditions_are_sound(asked: RefusedRequest) -> None:
    """The given KeyConditions are valid."""
    if asked.request.key_condition_expression is None and asked.request.key_conditions:
        legacy.key_conditions(asked.request.key_conditions)


def there_is_a_key_condition(asked: RefusedRequest) -> None:
    """There are KeyConditions or another key condition."""
    request = asked.request
    if request.key_condition_expression is None and request.key_conditions is None:
        legacy.key_conditions(None)


def key_conditions_are_some(asked: RefusedRequest) -> None:
    """Given KeyConditions are not empty."""
    request = asked.request
    if request.key_condition_expression is None and not request.key_conditions:
        legacy.key_conditions(request.key_conditions)


def key_condition_is_single(asked: RefusedRequest) -> None:
    """A KeyConditionExpression has one allowed condition for each attribute."""
    if asked.request.key_condition_expression is not None:
        written = binding_of(asked.request).key_condition(asked.request.key_condition_expression)
        assert written is not None
        written.check_terms()


def start_fits_query(asked: RefusedRequest) -> None:
    """The ExclusiveStartKey has the attributes of the keys, with their types."""
    if asked.request.exclusive_start_key is not None:
        start_position(_source(asked), asked.request.exclusive_start_key)


def key_condition_fits(asked: RefusedRequest) -> None:
    """The key condition is on the key of the table or the index."""
    _range(asked)


def start_is_within(asked: RefusedRequest) -> None:
    """The ExclusiveStartKey is within the range of the Query."""
    start = asked.request.exclusive_start_key
    if start is not None:
        source, wanted, bounds = _range(asked)
        query_start(source, start, wanted, bounds)


def filter_is_of_others(asked: RefusedRequest) -> None:
    """The filter uses no key attributes."""
    request = asked.request
    binding = binding_of(request)
    filters = None
    if request.filter_expression is not None:
        filters = binding.filter(request.filter_expression)
    elif request.query_filter:
        filters = legacy.filter_condition(request.query_filter, request.conditional_operator)
    if filters is not None:
        refuse_key_filter(_source(asked), filters.attributes, request)


def _source(asked: RefusedRequest) -> OrderedSource:
    return source_of(asked.engine, asked.table(), asked.request)


def _range(asked: RefusedRequest) -> tuple[OrderedSource, KeyRange, Bounds]:
    request, source = asked.request, _source(asked)
    binding = binding_of(request)
    keys = (
        legacy.key_conditions(request.key_conditions)
        if request.key_condition_expression is None
        else binding.key_condition(request.key_condition_expression)
    )
    if keys is None:
        raise ValidationException("there is no key condition")
    keyspace = source.keyspace
    wanted = keys.resolve(binding.values, keyspace.partition_names, keyspace.sort_names)
    check_key_condition(keyspace, wanted)
    return source, wanted, keyspace.bounds(wanted)


# Scan


def start_fits_scan(asked: RefusedRequest) -> None:
    """The ExclusiveStartKey has the key attributes, and is in the segment."""
    request = asked.request
    scan_start(_source(asked), request, segment_bounds(request.segment, request.total_segments))
