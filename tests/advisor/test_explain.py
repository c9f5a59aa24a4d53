from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from xml.dom import minidom

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.advisor.tickets import Team, Ticket, places
from tests.docs.pages import page
from tests.effort import examples

import isotone
from isotone import ManualClock, Table
from isotone.errors import ApiError, UsageError, ValidationException
from isotone.server import running_server

BLUE = Ticket.team == "blue"


def measured(explained: isotone.Explanation) -> Any:
    assert explained.measured is not None
    return explained.measured


def test_a_query_of_a_model(store: isotone.Store) -> None:
    query = Ticket.primary.where(BLUE, Ticket.number.between(10, 30))
    explained = isotone.explain(store, query.filter(Ticket.urgency >= "HIGH"), run=True)
    assert explained.title == "Query of Ticket.primary: table places"
    assert explained.reads == "team == 'blue', number.between(10, 30)"
    assert [str(part) for part in explained.key_range] == [
        'PK = "TEAM#blue"',
        'SK BETWEEN "TICKET#99969" AND "TICKET#99989"',
    ]
    assert (explained.direction, explained.order) == ("forward", "number, the greatest first")
    assert (explained.estimate.items_read, explained.estimate.items_returned) == (21, 5)
    assert explained.estimate.exact
    assert explained.estimate.units == measured(explained).units == 0.5
    assert explained.is_wasteful
    assert explained.advice.startswith("an index would read no other items")
    assert explained.wasted_units == 0.38
    (scan,) = [each for each in explained.alternatives if each.name == "Scan of table places"]
    assert scan.cost is not None
    assert scan.cost.items_read == 45  # with the record of the keys
    (sparse,) = [each for each in explained.alternatives if each.name == "Ticket.waiting"]
    assert sparse.why_not.startswith("it has only entities with closed == False")


def test_the_other_direction_of_an_index(store: isotone.Store) -> None:
    query = Ticket.waiting.where(BLUE).reversed().limit(5)
    explained = isotone.explain(store, query, run=True)
    assert (explained.index, explained.direction) == ("GSI1", "backward")
    assert explained.order == "urgency, the least first"
    assert explained.estimate.items_read == measured(explained).items_read == 5
    drawn = str(explained)
    assert "↑● 9_LOW#" in drawn
    assert "GSI1  index of places, without 14 items of the table" in drawn


def test_a_key_without_values_takes_those_of_its_largest_collection(store: isotone.Store) -> None:
    explained = isotone.explain(store, Ticket.waiting)
    assert explained.reads == "team == 'blue'"
    with pytest.raises(UsageError, match="no items"):
        isotone.explain(store, Ticket.waiting, sample=0)


def test_a_read_of_one_item(store: isotone.Store) -> None:
    explained = isotone.explain(store, Ticket.primary.at(team="blue", number=7), run=True)
    assert explained.operation == "GetItem"
    assert explained.estimate.units == measured(explained).units == 0.5
    assert explained.estimate.items_returned == 1


def test_conditions_that_exclude_one_another_read_nothing(store: isotone.Store) -> None:
    explained = isotone.explain(store, Ticket.primary.where(BLUE, Ticket.number > 10**7))
    assert explained.estimate.requests == 0
    assert "exclude one another" in str(explained)


def test_a_range_without_items_is_drawn_where_it_lies(store: isotone.Store) -> None:
    query = Ticket.primary.where(BLUE, Ticket.number.between(100, 200))
    drawn = str(isotone.explain(store, query))
    lines = [line.split("│")[2].strip() for line in drawn.splitlines() if line.count("│") == 3]
    assert lines[:3] == ["A             Team    lead ann", "↓⋮ no item in the range", lines[2]]
    assert lines[2].startswith("TICKET#99959")
    assert "no item in the range" in isotone.explain(store, query)._repr_html_()


def test_a_merge_is_explained_query_by_query(store: isotone.Store) -> None:
    teams = [Ticket.primary.where(Ticket.team == team).newest_first() for team in ("blue", "red")]
    explained = isotone.explain(store, isotone.merge(*teams), run=True)
    assert [part.estimate.items_read for part in explained.parts] == [40, 3]
    assert explained.estimate.units == measured(explained).units


@pytest.mark.parametrize(
    ("statement", "operation", "read", "returned"),
    [
        ("SELECT * FROM places WHERE PK = 'TEAM#blue' AND SK > 'TICKET#99990'", "Query", 8, 8),
        ("SELECT * FROM places WHERE PK = 'TEAM#red' AND SK = 'TICKET#99998'", "GetItem", 1, 1),
        ("SELECT * FROM places WHERE urgency = 'CRITICAL'", "Scan", 45, 4),
        ("SELECT SK FROM places WHERE PK IN ['TEAM#red','TEAM#blue']", "Query", 44, 44),
        ("SELECT * FROM places.\"GSI1\" WHERE GSI1PK = 'TEAM#red'", "Query", 3, 3),
    ],
)
def test_statements_that_read(
    store: isotone.Store, statement: str, operation: str, read: int, returned: int
) -> None:
    explained = isotone.explain(store, statement, run=True)
    assert explained.operation == operation
    assert (explained.estimate.items_read, explained.estimate.items_returned) == (read, returned)
    assert measured(explained).items_returned == returned
    assert (explained.estimate.units, explained.estimate.requests) == (
        measured(explained).units,
        measured(explained).requests,
    )


def test_a_statement_with_parameters(store: isotone.Store) -> None:
    text = "SELECT * FROM places WHERE PK = ? AND urgency = ?"
    values: list[Any] = [{"S": "TEAM#blue"}, {"S": "HIGH"}]
    explained = isotone.explain(store, text, parameters=values, run=True)
    assert explained.filter == 'urgency = "HIGH"'
    assert explained.advice == "an index with the partition key PK, sorted by urgency"
    assert explained.estimate.items_returned == measured(explained).items_returned == 4
    with pytest.raises(UsageError, match="3 parameters, but the statement has 2"):
        isotone.explain(store, text, parameters=[*values, {"S": "x"}])
    with pytest.raises(ValidationException):
        isotone.explain(store, text)


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        (
            "UPDATE places SET urgency = 'HIGH' WHERE PK = 'TEAM#blue' AND SK = 'TICKET#99998'",
            {None: "replace", "GSI1": "replace", "by_lead": "none", "by_points": "none"},
        ),
        (
            "UPDATE places SET points = 5 WHERE PK = 'TEAM#blue' AND SK = 'TICKET#99998'",
            {None: "replace", "GSI1": "replace", "by_lead": "none", "by_points": "insert"},
        ),
        (
            "DELETE FROM places WHERE PK = 'TEAM#blue' AND SK = 'TICKET#99998'",
            {None: "remove", "GSI1": "remove", "by_lead": "none", "by_points": "none"},
        ),
        (
            "INSERT INTO places VALUE {'PK': 'a', 'SK': 'b', 'lead': 'ann'}",
            {None: "insert", "GSI1": "none", "by_lead": "insert", "by_points": "none"},
        ),
    ],
)
def test_statements_that_write(
    store: isotone.Store, statement: str, changes: dict[str | None, str]
) -> None:
    before = store.count(Ticket.primary.where(BLUE))
    explained = isotone.explain(store, statement)
    assert store.count(Ticket.primary.where(BLUE)) == before  # nothing was written
    assert {each.index: each.change for each in explained.writes} == changes
    assert isotone.explain(store, statement, run=True).measured is not None
    store.put(Ticket(team="blue", number=1))


def test_the_write_of_an_entity_and_its_amplification(store: isotone.Store) -> None:
    ticket = store.get(Ticket, team="blue", number=10)
    assert ticket is not None
    ticket.closed = True
    explained = isotone.explain(store, ticket, run=True)
    assert [(each.index, each.change, each.units) for each in explained.writes] == [
        (None, "replace", 1.0),
        ("GSI1", "remove", 1.0),
        ("by_lead", "none", 0.0),
        ("by_points", "none", 0.0),
    ]
    assert explained.estimate.units == measured(explained).units == 2.0


def test_a_request_of_the_store(store: isotone.Store) -> None:
    request = store.requests.update(Ticket, Ticket.urgency.set("HIGH"), team="red", number=1)
    explained = isotone.explain(store, request, run=True)
    assert explained.operation == "UpdateItem"
    assert explained.estimate.units == measured(explained).units


def test_a_condition_that_is_false_is_reported(store: isotone.Store) -> None:
    request = store.requests.create(Ticket(team="red", number=1))
    explained = isotone.explain(store, request)
    assert any("its condition is false now" in note for note in explained.notes)


def test_a_transaction_costs_twice(store: isotone.Store) -> None:
    items = [
        {"Put": {"TableName": "places", "Item": {"PK": {"S": name}, "SK": {"S": "x"}}}}
        for name in "ab"
    ]
    explained = isotone.explain(store, {"TransactItems": items}, run=True)
    assert explained.estimate.units == measured(explained).units == 4.0
    assert len(explained.parts) == 2


def test_alternatives_of_a_raw_request(store: isotone.Store) -> None:
    request = {
        "TableName": "places",
        "FilterExpression": "GSI1PK = :team",
        "ExpressionAttributeValues": {":team": {"S": "TEAM#red"}},
    }
    explained = isotone.explain(store, ("Scan", request), run=True)
    by_name = {each.name: each for each in explained.alternatives}
    assert by_name["index GSI1"].cost is not None
    assert by_name["index GSI1"].cost.items_read == 3
    assert by_name["index by_lead"].why_not == "needs lead = …"
    assert explained.advice == "index GSI1 answers the condition by its key"


@pytest.mark.parametrize(
    ("subject", "message"),
    [
        (("CreateTable", {"TableName": "x"}), "CreateTable cannot be explained"),
        (42, "42 cannot be explained"),
        ({}, "{} cannot be explained"),
        (("Query", {"TableName": "places", "KeyConditions": {}}), "write the request with expr"),
        (("Scan", {"TableName": "nothing"}), "there is no table 'nothing'"),
        (("Scan", {"TableName": "places", "IndexName": "GSI9"}), "has no index 'GSI9'"),
        (
            (
                "Query",
                {
                    "TableName": "places",
                    "KeyConditionExpression": "SK = :a",
                    "ExpressionAttributeValues": {":a": {"S": "x"}},
                },
            ),
            "not a condition on the key of places: PK, SK",
        ),
    ],
)
def test_what_cannot_be_explained_is_refused(
    store: isotone.Store, subject: Any, message: str
) -> None:
    with pytest.raises(UsageError, match=message.replace("{", r"\{").replace("}", r"\}")):
        isotone.explain(store, subject)


def test_a_part_of_the_table_gives_an_estimate(store: isotone.Store) -> None:
    store.put_many(Ticket(team="blue", number=n) for n in range(1000, 3000))
    few = isotone.explain(store, Ticket.primary.where(Ticket.team == "red"), sample=50, run=True)
    assert few.estimate.exact  # one small request has seen the whole range
    assert few.estimate.units == measured(few).units
    assert few.spent > 0
    many = isotone.explain(store, Ticket.primary.where(BLUE), sample=500, run=True)
    assert many.estimate.exact  # and so have some larger ones
    assert many.estimate.units == measured(many).units
    nothing = isotone.explain(store, Ticket.primary.scan(), sample=0, run=True)
    assert not nothing.estimate.exact
    assert "~" in str(nothing)
    assert nothing.estimate.units == pytest.approx(measured(nothing).units, rel=0.2)


def test_limits_and_other_keys_of_a_part_of_the_table(store: isotone.Store) -> None:
    store.put_many(Ticket(team="blue", number=n) for n in range(1000, 3000))
    few = isotone.explain(store, Ticket.primary.where(BLUE).limit(7), sample=100, run=True)
    assert few.estimate.items_read == measured(few).items_read == 7
    (scan,) = [each for each in few.alternatives if each.name.startswith("Scan")]
    assert scan.cost is not None
    assert scan.cost.items_read == pytest.approx(2045, abs=5)
    request = {"TableName": "places", "Segment": 0, "TotalSegments": 4}
    quarter = isotone.explain(store, ("Scan", request), sample=5_000)
    assert quarter.estimate.items_read == pytest.approx(2045 / 4, abs=2)
    assert not quarter.estimate.exact
    unknown = isotone.explain(store, Ticket.primary.where(BLUE), sample=0)
    assert "does not tell what is in the range" in unknown.estimate.basis
    everything = isotone.explain(store, Ticket.primary.scan(), sample=0).estimate
    assert everything.items_returned == everything.items_read == 2045


def test_an_engine_that_does_not_report_units(store: isotone.Store) -> None:
    class Silent:
        def execute(self, operation: str, request: Any) -> Any:
            response = store.backend.execute(operation, request)
            response.pop("ConsumedCapacity", None)
            return response

    with isotone.connect(Silent()) as silent:
        explained = isotone.explain(silent, Ticket.primary.where(BLUE), run=True)
        assert explained.estimate.units == 1.0
        assert measured(explained).basis == "the engine does not report units"


def test_as_json_and_as_html(store: isotone.Store) -> None:
    query = Ticket.primary.where(BLUE).filter(Ticket.urgency == "HIGH")
    explained = isotone.explain(store, query, run=True)
    loaded = json.loads(json.dumps(explained.to_dict()))
    assert loaded["estimate"]["items_read"] == 40
    assert loaded["drawing"]["views"][0]["collections"][0]["partition"][1]["field"] == "team"
    html = explained._repr_html_()
    assert "<svg" in html
    assert "urgency == &#x27;HIGH&#x27;" in html


def test_hostile_texts_are_escaped(store: isotone.Store) -> None:
    store.put(Ticket(team="<script>alert(1)</script>", number=1))
    query = Ticket.primary.where(Ticket.team == "<script>alert(1)</script>")
    html = isotone.explain(store, query)._repr_html_()
    assert "<script" not in html


def test_with_an_async_store() -> None:
    async def ask() -> None:
        async with isotone.aconnect() as store:
            await store.create_tables(places)
            await store.put(Ticket(team="blue", number=1))
            query = Ticket.primary.where(BLUE)
            explained = await isotone.explain(store, query, run=True)
            assert explained.estimate.units == measured(explained).units == 0.5
            drawing = await isotone.draw(store, query)
            assert "TICKET#99998" in str(drawing)

    asyncio.run(ask())


def test_over_http() -> None:
    with (
        isotone.open(":memory:") as database,
        running_server(database) as url,
        isotone.connect(url) as store,
    ):
        store.create_tables(places)
        store.put(Team(team="blue", lead="ann"))
        explained = isotone.explain(store, Team.primary.where(Team.team == "blue"), run=True)
        assert explained.estimate.units == measured(explained).units == 0.5


def test_the_page_shows_what_its_program_prints(capsys: pytest.CaptureFixture[str]) -> None:
    explain = page("docs/explain.md")
    namespace: dict[str, object] = {"__name__": "__main__"}
    exec(next(explain.blocks("python")).text, namespace)
    assert capsys.readouterr().out == next(explain.blocks("")).text


# Estimates of any data and any query equal what they cost

LETTERS = st.text("abc", min_size=1, max_size=2)
ITEMS = st.lists(
    st.fixed_dictionaries(
        {"pk": LETTERS, "sk": LETTERS, "size": st.sampled_from([0, 10, 5_000, 300_000])},
        optional={"g": LETTERS, "n": st.integers(-20, 20)},
    ),
    max_size=12,
)
RANGES = st.one_of(
    st.just(("", [])),
    st.tuples(
        st.sampled_from([" AND {s} = :a", " AND {s} < :a", " AND {s} >= :a"]),
        st.lists(LETTERS, min_size=1, max_size=1),
    ),
    st.tuples(st.just(" AND begins_with({s}, :a)"), st.lists(LETTERS, min_size=1, max_size=1)),
    st.tuples(
        st.just(" AND {s} BETWEEN :a AND :b"),
        st.lists(LETTERS, min_size=2, max_size=2).map(sorted),
    ),
)
RAW = Table(
    "raw",
    partition="pk",
    sort="sk",
    indexes={
        "by_g": isotone.Global("g", "sk", projection="KEYS_ONLY"),
        "by_n": isotone.Local(isotone.Number("n"), projection=("g",)),
    },
)


@settings(max_examples=examples(80))
@given(
    items=ITEMS,
    pk=LETTERS,
    range_=RANGES,
    index=st.sampled_from([None, "by_g"]),
    filtered=st.booleans(),
    backward=st.booleans(),
    consistent=st.booleans(),
    limit=st.none() | st.integers(1, 4),
)
def test_estimates_of_any_query_are_what_it_costs(
    items: list[dict[str, Any]],
    pk: str,
    range_: tuple[str, list[str]],
    index: str | None,
    filtered: bool,
    backward: bool,
    consistent: bool,
    limit: int | None,
) -> None:
    with isotone.connect(":memory:", clock=ManualClock(), check_keys=False) as store:
        store.create_tables(RAW)
        for given_ in items:
            item: dict[str, Any] = {
                "pk": {"S": given_["pk"]},
                "sk": {"S": given_["sk"]},
                "body": {"S": "x" * given_["size"]},
            }
            item |= {"g": {"S": given_["g"]}} if "g" in given_ else {}
            item |= {"n": {"N": str(given_["n"])}} if "n" in given_ else {}
            put = ("PutItem", {"TableName": "raw", "Item": item})
            explained = isotone.explain(store, put, run=True)
            assert explained.estimate.units == measured(explained).units
        text, operands = range_
        values = {":p": {"S": pk}} | {
            f":{name}": {"S": text} for name, text in zip("ab", operands, strict=False)
        }
        request: dict[str, Any] = {
            "TableName": "raw",
            "KeyConditionExpression": f"{'g' if index else 'pk'} = :p{text.format(s='sk')}",
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not backward,
        }
        request |= {"IndexName": index} if index else {"ConsistentRead": consistent}
        request |= {"Limit": limit} if limit else {}
        if filtered and not index:
            request["FilterExpression"] = "attribute_exists(n)"
        explained = isotone.explain(store, ("Query", request), run=True)
        estimate, cost = explained.estimate, measured(explained)
        assert estimate.exact
        assert estimate.items_read == cost.items_read
        assert estimate.items_returned == cost.items_returned
        if not (index and limit):  # entries with equal keys may come in another order
            assert estimate.units == cost.units
        if limit is None:
            assert estimate.requests == cost.requests


# What a part of a table tells


@pytest.fixture
def even() -> Iterator[isotone.Store]:
    """A table of twenty collections of 300 items."""
    with isotone.connect(":memory:", check_keys=False) as store:
        store.create_tables(places)
        for team in range(20):
            store.put_many(Ticket(team=f"t{team}", number=n) for n in range(300))
        yield store


def first_team(store: isotone.Store) -> str:
    """The team with which a scan begins."""
    first = store.first(Ticket.primary.scan())
    assert first is not None
    return first.team


def test_a_collection_that_the_sample_has_whole_is_known(even: isotone.Store) -> None:
    query = Ticket.primary.where(Ticket.team == first_team(even))
    explained = isotone.explain(even, query, sample=1000, run=True)
    assert explained.estimate.exact
    assert explained.estimate.items_read == measured(explained).items_read == 300
    assert explained.estimate.units == measured(explained).units


def test_a_collection_that_the_sample_cuts_off_is_as_large_as_the_others(
    even: isotone.Store,
) -> None:
    for team in range(20):
        query = Ticket.primary.where(Ticket.team == f"t{team}")
        cost = isotone.explain(even, query, sample=1000).estimate
        assert cost.items_read == 300


def test_placeholders_that_begin_alike_are_distinguished(even: isotone.Store) -> None:
    request = {
        "TableName": "places",
        "KeyConditionExpression": "PK = :p2 AND SK > :p",
        "FilterExpression": "points > :points",
        "ExpressionAttributeValues": {
            ":p2": {"S": "TEAM#t1"},
            ":p": {"S": "TICKET#"},
            ":points": {"N": "3"},
        },
    }
    assert isotone.explain(even, ("Query", request), sample=10).estimate.items_read > 100


@pytest.mark.parametrize("sample", [300, 5000])
@pytest.mark.parametrize("size", [None, 7])
def test_a_limit_on_results_reads_as_the_store_does(sample: int, size: int | None) -> None:
    sent: list[isotone.Observation] = []
    with isotone.connect(":memory:", observe=[isotone.at_end(sent.append)], report=None) as store:
        store.create_tables(places)
        store.put_many(
            Ticket(team="green", number=n, urgency="HIGH" if n % 5 == 0 else "LOW")
            for n in range(400)
        )
        every = Ticket.primary.where(Ticket.team == "green").filter(Ticket.urgency == "HIGH")
        query = every.limit(9) if size is None else every.limit(9).page_size(size)
        explained = isotone.explain(store, query, sample=sample, run=True)
        sent.clear()
        assert len(store.all(query)) == 9
    assert measured(explained).items_read == sum(each.scanned for each in sent)
    assert measured(explained).units == sum(each.units for each in sent)
    assert measured(explained).items_returned == explained.estimate.items_returned == 9
    if sample == 5000:
        assert explained.estimate.exact
        assert explained.estimate.items_read == measured(explained).items_read
        assert explained.estimate.units == measured(explained).units
    else:
        assert explained.estimate.items_read < 100


def test_a_statement_of_several_collections_reads_ten_items_a_page(
    even: isotone.Store,
) -> None:
    even.put_many(Ticket(team="odd", number=n) for n in range(17))
    statement = "SELECT * FROM places WHERE PK IN ['TEAM#t3', 'TEAM#odd', 'TEAM#none', 'TEAM#t4']"
    explained = isotone.explain(even, statement, sample=10_000, run=True)
    assert explained.estimate.exact
    assert explained.estimate.items_read == 617
    assert explained.estimate.requests == measured(explained).requests == 62
    assert explained.estimate.units == measured(explained).units


# Other requests


def test_a_statement_keeps_its_other_parameters(store: isotone.Store) -> None:
    request = {
        "Statement": "SELECT * FROM places WHERE PK = ?",
        "Parameters": [{"S": "TEAM#blue"}],
        "ConsistentRead": True,
        "Limit": 3,
    }
    explained = isotone.explain(store, ("ExecuteStatement", request), run=True)
    assert explained.consistent
    assert explained.estimate.items_read == measured(explained).items_read == 3
    assert explained.estimate.units == measured(explained).units == 1.0


def test_a_range_of_another_type_is_explained_without_a_fault(store: isotone.Store) -> None:
    explained = isotone.explain(store, "SELECT * FROM places WHERE PK = 'TEAM#blue' AND SK > 5")
    assert explained.estimate.items_read == 0


def test_an_insert_of_what_is_there_has_a_cost(store: isotone.Store) -> None:
    statement = "INSERT INTO places VALUE {'PK': 'TEAM#blue', 'SK': 'A'}"
    explained = isotone.explain(store, statement, run=True)
    assert "its condition is false now" in explained.notes[-1]
    assert "the condition was false" in measured(explained).basis


def test_gets_of_a_transaction_are_reported_by_their_members(store: isotone.Store) -> None:
    get = {"TableName": "places", "Key": {"PK": {"S": "TEAM#blue"}, "SK": {"S": "A"}}}
    explained = isotone.explain(store, {"TransactItems": [{"Get": get}]}, run=True)
    assert explained.title == "TransactGetItems of 1 item"
    assert measured(explained).units == explained.estimate.units == 2.0


@pytest.mark.parametrize(
    ("operation", "name"), [("Query", "TableName"), ("ExecuteStatement", "Statement")]
)
def test_a_request_without_what_it_needs_is_refused(
    store: isotone.Store, operation: str, name: str
) -> None:
    with pytest.raises(UsageError, match=f"{operation} has no {name}"):
        isotone.explain(store, (operation, {}))


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("BatchGetItem", {}),
        ("BatchGetItem", {"RequestItems": {"places": {}}}),
        ("BatchWriteItem", {"RequestItems": []}),
        ("TransactGetItems", {"TransactItems": [{"Get": {}}]}),
        ("TransactWriteItems", {"TransactItems": 5}),
        ("GetItem", {"TableName": "places"}),
        ("GetItem", {"TableName": "places", "Key": {"PK": "a", "SK": "b"}}),
        ("PutItem", {"TableName": "places", "Item": []}),
        ("Scan", {"TableName": "places", "Limit": "few"}),
        ("Query", {"TableName": "places", "KeyConditionExpression": 5}),
    ],
)
def test_a_malformed_request_is_refused_as_the_service_does(
    store: isotone.Store, operation: str, request_: Any
) -> None:
    with pytest.raises(ApiError) as asked:
        store.backend.execute(operation, request_)
    with pytest.raises(ApiError) as explained:
        isotone.explain(store, (operation, request_))
    assert (type(explained.value), str(explained.value)) == (type(asked.value), str(asked.value))


def test_control_characters_are_shown_as_text(store: isotone.Store) -> None:
    """In names of attributes, in tags, in keys: a terminal would obey them, and XML has none."""
    name = "p\x1b[31m\n"
    key = {"AttributeName": name, "KeyType": "HASH"}
    definition = {"AttributeName": name, "AttributeType": "S"}
    request = {"TableName": "odd", "KeySchema": [key], "AttributeDefinitions": [definition]}
    store.backend.execute("CreateTable", {**request, "BillingMode": "PAY_PER_REQUEST"})
    item = {name: {"S": "X#\x00\x1b"}, "_type": {"S": "Ki\x1bnd\x00"}, "at\x02": {"S": "\x03"}}
    store.backend.execute("PutItem", {"TableName": "odd", "Item": item})
    statement = f'SELECT * FROM odd WHERE "{name}" = ? AND "at\x02" = ?'
    explained = isotone.explain(store, statement, parameters=[{"S": "X#\x00\x1b"}, {"S": "\x03"}])
    assert explained.drawing is not None
    for text in (str(explained), explained.html(), explained.drawing.svg("a\x00title")):
        assert [char for char in text if ord(char) < 32 and char != "\n"] == []
    minidom.parseString(explained.drawing.svg())
