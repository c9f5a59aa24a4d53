"""PartiQL: what each statement reads and writes, what it costs, and how several of them go together."""

from __future__ import annotations

import base64
from itertools import combinations
from typing import Any

import pytest
from tests.operations.conftest import Asker

from isotone.engine import blocks

S = dict[str, Any]


@pytest.fixture
def music(ask: Asker) -> Asker:
    """A table of songs: artist `a`, number `s`; indexed by genre `g` and length `h`, and locally by `h`."""
    ask.table(
        "Music",
        "a s:N",
        types={"g": "S", "h": "N"},
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by_genre",
                "KeySchema": [
                    {"AttributeName": "g", "KeyType": "HASH"},
                    {"AttributeName": "h", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by_length",
                "KeySchema": [
                    {"AttributeName": "a", "KeyType": "HASH"},
                    {"AttributeName": "h", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    for artist in "xyz":
        for number in range(4):
            ask(
                "PutItem",
                TableName="Music",
                Item={
                    "a": {"S": artist},
                    "s": {"N": str(number)},
                    "g": {"S": f"g{number % 2}"},
                    "h": {"N": str(10 - number)},
                    "t": {"S": f"{artist}-{number}"},
                    "m": {"M": {"p": {"N": str(number)}, "q": {"L": [{"S": "e"}, {"N": "7"}]}}},
                    "l": {"L": [{"N": "1"}, {"N": "2"}]},
                    "ss": {"SS": ["a", "b"]},
                    "n": {"NULL": True},
                    "b": {"BOOL": number == 1},
                },
            )
    return ask


def nested(levels: int) -> S:
    """A text within lists."""
    value: S = {"S": "x"}
    for _ in range(levels):
        value = {"L": [value]}
    return value


def run(ask: Asker, statement: str, *parameters: S, **more: Any) -> Any:
    if parameters:
        more["Parameters"] = [*parameters]
    return ask("ExecuteStatement", Statement=statement, **more)


def refused(ask: Asker, statement: str, *parameters: S, **more: Any) -> str:
    if parameters:
        more["Parameters"] = [*parameters]
    error = ask.refused("ExecuteStatement", Statement=statement, **more)
    return f"{error.code}: {error.message}"


def titles(ask: Asker, rest: str, *parameters: S, **more: Any) -> list[str]:
    items = run(ask, f"SELECT t FROM Music {rest}", *parameters, **more)["Items"]
    return [item["t"]["S"] for item in items]


# SELECT: what is read


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a = 'x'", "x-0 x-1 x-2 x-3"),
        ("'x' = a", "x-0 x-1 x-2 x-3"),
        ("a = 'x' AND s = 1", "x-1"),
        ("a = 'x' AND s > 1", "x-2 x-3"),
        ("a = 'x' AND 1 < s", "x-2 x-3"),
        ("a = 'x' AND s > 0 AND s < 3", "x-1 x-2"),
        ("a = 'x' AND s BETWEEN 1 AND 2", "x-1 x-2"),
        ("a = 'x' AND s NOT BETWEEN 1 AND 2", "x-0 x-3"),
        ("a = 'x' AND s IN [1, 3]", "x-1 x-3"),
        ("a = 'x' AND s NOT IN (1, 3)", "x-0 x-2"),
        ("a = 'x' AND s <> 1", "x-0 x-2 x-3"),
        ("a = 'x' AND s != 1", "x-0 x-2 x-3"),
        ("a = 'x' AND s = 1 AND s = 2", ""),
        ("a = 'x' AND a = 'y'", ""),
        ("a IN ['z', 'x'] AND s = 1", "x-1 z-1"),
        ("a IN <<'z', 'x'>> AND s = 1", "x-1 z-1"),
        ("a = 'z' OR a = 'x' AND s = 1", "x-1 z-0 z-1 z-2 z-3"),
        ("(a = 'z' OR a = 'x') AND s >= 3", "x-3 z-3"),
        ("(a = 'x' OR a = 'y') AND a IN ['y', 'z'] AND s = 0", "y-0"),
        ("a = 'x' AND NOT (s = 1 OR s = 2)", "x-0 x-3"),
        ("a = 'x' AND t = 'x-2'", "x-2"),
        ("a = 'x' AND begins_with(t, 'x-2')", "x-2"),
        ("a = 'x' AND CONTAINS(t, '-2')", "x-2"),
        ("a = 'x' AND contains(ss, 'c')", ""),
        ("a = 'x' AND size(l) = 2 AND s = 1", "x-1"),
        ("a = 'x' AND attribute_type(t, 'S') AND s = 1", "x-1"),
        ("a = 'x' AND m.p = 2", "x-2"),
        ("a = 'x' AND m['p'] = 2 AND m.q[1] = 7", "x-2"),
        ("a = 'x' AND nope IS MISSING AND s = 1", "x-1"),
        ("a = 'x' AND t IS NOT MISSING AND s = 1", "x-1"),
        ("a = 'x' AND n IS NULL AND n = NULL AND s = 1", "x-1"),
        ("a = 'x' AND nope IS NULL", ""),
        ("a = 'x' AND t IS STRING AND s IS NUMERIC AND m IS TUPLE AND l IS NOT STRUCT AND s = 1", "x-1"),
        ("a = 'x' AND b = TRUE", "x-1"),
        ("a = 'x' AND l = [1, 2] AND ss = <<'b', 'a'>> AND s = +1.0", "x-1"),
        ("a = 'x' AND m = {'p': 1, 'q': ['e', 7]}", "x-1"),
        ("a = 'x' AND s = - -1e0", "x-1"),
        ("a = 'x' AND attribute_exists(n) = true AND s = 1", "x-1"),
        ("a = 'x' AND false = attribute_not_exists(n) AND s = 1", "x-1"),
        ("a = 'x' AND attribute_exists(nope) = ? AND s = 1", ""),
        ("a = 'x' AND (t = 'x-1') = b AND s < 2", "x-0 x-1"),
        ("a = 'x' AND begins_with(t, 'x-1') IN [b, NULL] AND s = 1", "x-1"),
        ("a = 'x' AND s = 1 = true", "x-1"),
        ("a = 'x' AND attribute_exists(n) <> attribute_exists(nope) AND s = 1", "x-1"),
    ],
)  # fmt: skip
def test_a_condition_selects(music: Asker, where: str, expected: str) -> None:
    parameters = [{"BOOL": True}] * where.count("?")
    assert titles(music, f"WHERE {where}", *parameters) == expected.split()


def test_a_scan_reads_what_a_condition_leaves(music: Asker) -> None:
    assert sorted(titles(music, "WHERE s > 2")) == ["x-3", "y-3", "z-3"]
    assert sorted(titles(music, "WHERE a > 'x' AND s = 1")) == ["y-1", "z-1"]
    assert sorted(titles(music, "WHERE a = 'x' AND s = 1 OR s = 3")) == ["x-1", "x-3", "y-3", "z-3"]
    assert len(titles(music, "")) == 12


def test_several_partitions_are_read_ten_items_a_page_to_the_end(music: Asker) -> None:
    """The last one, too, which a page may begin with."""
    for number in range(4, 25):
        item = {"a": {"S": "z"}, "s": {"N": str(number)}}
        music("PutItem", TableName="Music", Item=item)
    statement = "SELECT s FROM Music WHERE a IN ['x', 'z']"
    answer = run(music, statement)
    pages = [len(answer["Items"])]
    while "NextToken" in answer:
        answer = run(music, statement, NextToken=answer["NextToken"])
        pages.append(len(answer["Items"]))
    assert pages == [10, 10, 9]


def test_order_is_that_of_the_keys(music: Asker) -> None:
    assert titles(music, "WHERE a = 'x' ORDER BY s DESC") == ["x-3", "x-2", "x-1", "x-0"]
    both = "WHERE a IN ['x', 'z'] AND s < 2"
    assert titles(music, f"{both} ORDER BY a, s") == ["x-0", "x-1", "z-0", "z-1"]
    assert titles(music, f"{both} ORDER BY a DESC") == ["z-0", "z-1", "x-0", "x-1"]
    assert titles(music, f"{both} ORDER BY a DESC, s DESC") == ["z-1", "z-0", "x-1", "x-0"]
    assert titles(music, "WHERE a = 'x' AND (t = 'x-1' OR t = 'x-3') ORDER BY s DESC") == [
        "x-3",
        "x-1",
    ]


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("a IN ['x', 'z'] ORDER BY s", "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."),
        ("a = 'x' AND s = 1 OR a = 'x' AND s = 2 ORDER BY s", "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."),
        ("a > 'x' ORDER BY s", "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."),
        ("a = 'x' OR s = 1 ORDER BY a", "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."),
    ],
)  # fmt: skip
def test_only_one_collection_is_ordered_by_its_sort_key(
    music: Asker, rest: str, message: str
) -> None:
    assert refused(music, f"SELECT t FROM Music WHERE {rest}") == f"ValidationException: {message}"


OVERLAPPING = "Overlapping conditions with range keys are not supported in where clause"


@pytest.mark.parametrize(
    "where",
    [
        "a = 'x' AND t = 'x-1' OR a = 'x' AND s = 2",
        "a = 'x' AND t <> 'x-1' OR a = 'x' AND s = 2",
        "a = 'x' OR a = 'x'",
        "a = 'x' AND s = 1 OR a = 'y' OR a = 'x' AND s = 1.0",
        "a = 'x' AND (s > 1 OR s > 2)",
        "a = 'x' AND s >= 2 OR a = 'x' AND s <= 2",
        "a = 'x' AND s BETWEEN 1 AND 2 OR a = 'x' AND s = 2",
        "a = 'x' AND (s = 1 OR t = 'x-2')",
        "a IN ['x', 'y'] AND t = 'x-1' OR a = 'y' AND s = 1",
        "a IN ['x', 'y', 'x']",
        "a = 'x' AND s IN [1, 2, 1]",
        "a = 'x' AND NOT (a <> 'x' AND t = 'x-1')",
        "a = ? OR a = ?",
    ],
)
def test_reads_that_overlap_are_refused(music: Asker, where: str) -> None:
    parameters = [{"S": "x"}] * where.count("?")
    expected = f"ValidationException: {OVERLAPPING}"
    assert refused(music, f"SELECT t FROM Music WHERE {where}", *parameters) == expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("a = 'x' AND s = 1 OR a = 'x' AND s = 2", "x-1 x-2"),
        ("a = 'x' AND s < 1 OR a = 'x' AND s >= 2", "x-0 x-2 x-3"),
        ("a = 'x' AND t = 'x-1' OR a = 'y' AND s = 2", "x-1 y-2"),
        ("a = 'x' AND (t = 'x-1' OR t = 'x-2')", "x-1 x-2"),
        ("a IN ['x', 'y'] AND (s = 1 OR s = 2)", "x-1 x-2 y-1 y-2"),
        # A condition on the sort key that is no range, or a second one, leaves the reads uncompared.
        ("a = 'x' AND s <> 1 OR a = 'x' AND s = 2", "x-0 x-2 x-3"),
        ("a = 'x' AND NOT s = 1 OR a = 'x'", "x-0 x-1 x-2 x-3"),
        ("a = 'x' AND s > 0 AND s < 3 OR a = 'x' AND s = 2", "x-1 x-2"),
    ],
)
def test_reads_that_do_not_overlap_are_joined(music: Asker, where: str, expected: str) -> None:
    assert titles(music, f"WHERE {where}") == expected.split()


def test_a_scan_may_name_a_key_twice(music: Asker) -> None:
    found = titles(music, "WHERE a = 'x' AND s = 1 OR a = 'x' AND s = 1 OR t = 'y-2'")
    assert sorted(found) == ["x-1", "y-2"]


def test_indexes_are_read(music: Asker) -> None:
    found = run(music, """SELECT t FROM "Music"."by_genre" WHERE g = 'g1' AND h < 9""")["Items"]
    assert [item["t"]["S"] for item in found] == ["x-3", "y-3", "z-3"]
    by_length = run(music, """SELECT t FROM "Music"."by_length" WHERE a = 'x' AND h > 8""")["Items"]
    assert [item["t"]["S"] for item in by_length] == ["x-1", "x-0"]
    assert refused(music, """SELECT t FROM "Music"."nope" WHERE a = 'x'""") == (
        "ValidationException: The table does not have the specified index"
    )
    assert refused(
        music, """SELECT t FROM "Music"."by_genre" WHERE g = 'g1'""", ConsistentRead=True
    ) == (
        "ValidationException: Strongly consistent read is not supported on Global Secondary Indexes"
    )


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        # A query of an index refuses a filter on what it lacks.
        ("g = 'g1' AND t = 'x-1'", "[t]"),
        ("g IN ['g1', 'g0'] AND t = 'x-1' AND b = TRUE", "[t, b]"),
        ("g = 'g1' AND NOT (t = 'x-1' OR m.p = 1)", "[t, m]"),
        # A scan, or a condition with an OR, finds it absent.
        ("t = 'x-1'", 0),
        ("t IS MISSING", 12),
        ("g > 'g1' AND t = 'x-1'", 0),
        ("g = 'g1' AND t = 'x-1' OR g = 'g0'", 6),
        ("g = 'g1' AND (t = 'x-1' OR b = TRUE)", 0),
        ("g = 'g1' AND NOT (t = 'x-1' AND b = TRUE)", 6),
        ("(g = 'g1' OR g = 'g0') AND t IS MISSING", 10),
    ],
)
def test_a_filter_on_what_an_index_lacks(music: Asker, rest: str, expected: Any) -> None:
    music(
        "UpdateTable",
        TableName="Music",
        AttributeDefinitions=[{"AttributeName": "g", "AttributeType": "S"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "keys_by_genre",
                    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "KEYS_ONLY"},
                }
            }
        ],
    )
    music.database.finish_maintenance()
    statement = f"SELECT a FROM Music.keys_by_genre WHERE {rest}"
    if isinstance(expected, int):
        assert len(run(music, statement)["Items"]) == expected
    else:
        assert refused(music, statement) == (
            "ValidationException: One or more parameter values were invalid: Secondary index "
            f"keys_by_genre does not project one or more filter attributes: {expected}"
        )


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM Games.ranking WHERE region = 'a' AND mode = 'x'",
        "SELECT * FROM Games.ranking",
        "SELECT * FROM Games.ranking WHERE region = 1",
        "SELECT COUNT(*) FROM Games.ranking",
        "SELECT * FROM Games.days WHERE region = 'a' ORDER BY nope",
    ],
)
def test_an_index_of_several_attributes_is_not_for_statements(ask: Asker, statement: str) -> None:
    def index(name: str, hashes: str, ranges: str) -> S:
        keys = [(each, "HASH") for each in hashes.split()]
        keys += [(each, "RANGE") for each in ranges.split()]
        return {
            "IndexName": name,
            "KeySchema": [{"AttributeName": each, "KeyType": kind} for each, kind in keys],
            "Projection": {"ProjectionType": "ALL"},
        }

    ask.table(
        "Games",
        "id",
        types={"region": "S", "mode": "S", "day": "N", "score": "N"},
        GlobalSecondaryIndexes=[
            index("ranking", "region mode", "day"),
            index("days", "region", "day score"),
        ],
    )
    message = (
        "PartiQL statements cannot be executed on tables with multi-attribute HASH keys "
        "or multi-attribute RANGE keys."
    )
    assert refused(ask, statement) == f"ValidationException: {message}"
    if "COUNT" not in statement:
        assert batch(ask, statement)["Responses"] == [error("ValidationError", message)]


def test_a_column_has_the_last_name_of_its_path(music: Asker) -> None:
    (found,) = run(music, "SELECT m.p, m.q[0], l[1], nope FROM Music WHERE a='x' AND s=1")["Items"]
    assert found == {"p": {"N": "1"}, "q[0]": {"S": "e"}, "l[1]": {"N": "2"}}
    assert refused(music, "SELECT m.p, l.p FROM Music") == (
        "ValidationException: Duplicate identifiers in select clause: p"
    )
    assert "Two document paths overlap" in refused(music, "SELECT m, m.p FROM Music")


def test_names_in_double_quotes_may_be_reserved(music: Asker) -> None:
    run(music, """INSERT INTO "Music" VALUE {'a': 'q', 's': 1, 'date': 'it''s', 'a"b': 2}""")
    found = run(music, """SELECT "date", "a""b" FROM Music WHERE a = 'q' AND "date" = 'it''s'""")
    assert found["Items"] == [{"date": {"S": "it's"}, 'a"b': {"N": "2"}}]
    assert "wasn't well formed" in refused(music, "SELECT date FROM Music")


def test_comments_and_a_semicolon_are_left_out(music: Asker) -> None:
    assert titles(music, "-- all of it\nWHERE a = 'x' /* but */ AND s = 1;") == ["x-1"]


def test_parameters_stand_for_values(music: Asker) -> None:
    assert titles(music, "WHERE a = ? AND s > ?", {"S": "x"}, {"N": "2"}) == ["x-3"]
    mismatch = "ValidationException: Number of parameters in request and statement don't match."
    assert refused(music, "SELECT * FROM Music WHERE a = ?") == mismatch
    assert refused(music, "INSERT INTO Music VALUE {'a': ?, 's': ?}", {"S": "x"}) == mismatch


# SELECT: pages and costs


def test_pages_lose_nothing(music: Asker) -> None:
    for rest in (
        "",
        "WHERE s < 3",
        "WHERE a = 'x' ORDER BY s DESC",
        "WHERE a IN ['x', 'y', 'z']",
        "WHERE a IN ['x', 'y', 'z'] AND s IN [1, 2] ORDER BY a DESC, s DESC",
    ):
        whole, found = [], []
        statement = f"SELECT t FROM Music {rest}"
        for limit, items in ((100, whole), (2, found)):
            answer = run(music, statement, Limit=limit)
            items += answer["Items"]
            while "NextToken" in answer:
                answer = run(music, statement, Limit=limit, NextToken=answer["NextToken"])
                items += answer["Items"]
        assert found == whole
        assert len(found) > 3


def test_limit_counts_what_was_read(music: Asker) -> None:
    answer = run(music, "SELECT t FROM Music WHERE a = 'x' AND t = 'x-3'", Limit=2)
    assert answer["Items"] == []
    assert answer["LastEvaluatedKey"] == {"a": {"S": "x"}, "s": {"N": "1"}}
    assert "NextToken" in answer


def test_a_page_of_one_item_ends_at_its_limit(music: Asker) -> None:
    statement = "SELECT t FROM Music WHERE a = 'x' AND s = 1"
    assert set(run(music, statement, Limit=2)) == {"Items"}
    answer = run(music, statement, Limit=1)
    assert answer["LastEvaluatedKey"] == {"a": {"S": "x"}, "s": {"N": "1"}}
    assert run(music, statement, Limit=1, NextToken=answer["NextToken"]) == {"Items": []}


def test_several_partition_keys_are_read_ten_items_at_a_time(music: Asker) -> None:
    answer = run(music, "SELECT t FROM Music WHERE a IN ['x', 'y', 'z']")
    assert len(answer["Items"]) == 10
    assert "NextToken" in answer
    many = ", ".join(f"'{number}'" for number in range(51))
    assert refused(music, f"SELECT t FROM Music WHERE a IN [{many}]") == (
        "ValidationException: Too many decomposed read operations for a given query."
    )


def test_a_token_belongs_to_its_statement(music: Asker) -> None:
    statement = "SELECT t FROM Music WHERE a = ?"
    token = run(music, statement, {"S": "x"}, Limit=1)["NextToken"]
    other = "ValidationException: NextToken does not match request"
    assert refused(music, statement, {"S": "y"}, NextToken=token) == other
    assert refused(music, "SELECT t FROM Music", NextToken=token) == other
    for broken in ("abc", "!", "{}", base64.b64encode(b'{"range":-1}').decode(), token[:-3]):
        assert (
            refused(music, statement, {"S": "x"}, NextToken=broken)
            == "ValidationException: Invalid NextToken"
        )


def units(ask: Asker, statement: str, **more: Any) -> Any:
    return run(ask, statement, ReturnConsumedCapacity="INDEXES", **more)["ConsumedCapacity"]


def test_a_statement_costs_what_its_operation_costs(music: Asker) -> None:
    large = {"S": "z" * 19_000}
    for artist in "xyz":
        run(music, f"UPDATE Music SET big = ? WHERE a = '{artist}' AND s = 1", large)
    total = "CapacityUnits"
    assert units(music, "SELECT t FROM Music WHERE a = 'x' AND s = 0")[total] == 0.5
    assert units(music, "SELECT t FROM Music WHERE a = 'x' AND s = 1")[total] == 2.5
    assert (
        units(music, "SELECT t FROM Music WHERE a = 'x' AND s = 1", ConsistentRead=True)[total] == 5
    )
    assert units(music, "SELECT t FROM Music WHERE a = 'x' AND s > 1")[total] == 0.5
    assert units(music, "SELECT t FROM Music WHERE a = 'x'")[total] == 2.5
    assert units(music, "SELECT t FROM Music WHERE a IN ['x', 'y'] AND s > 1")[total] == 1
    assert units(music, "SELECT t FROM Music WHERE t = 'x-1'")[total] == 7.5
    assert units(music, """SELECT t FROM "Music"."by_genre" WHERE g = 'g0'""") == {
        "TableName": "Music",
        total: 0.5,
        "Table": {total: 0},
        "GlobalSecondaryIndexes": {"by_genre": {total: 0.5}},
    }
    assert units(music, "INSERT INTO Music VALUE {'a': 'q', 's': 1}")[total] == 1
    assert units(music, "DELETE FROM Music WHERE a = 'q' AND s = 1")[total] == 1


# Writes


def item(ask: Asker, a: str = "x", s: int = 1) -> Any:
    return ask("GetItem", TableName="Music", Key={"a": {"S": a}, "s": {"N": str(s)}}).get("Item")


def test_insert_makes_an_item_once(music: Asker) -> None:
    answer = run(
        music,
        "INSERT INTO Music VALUE {'a': 'q', 's': ?, 'l': [1, 'two', [NULL]], 'm': {'k': -1.50}, "
        "'b': FALSE, 'ss': <<'a', 'b'>>, 'ns': <<1, 2.5>>, 'bytes': ?}",
        {"N": "5"},
        {"B": "aGk="},
    )
    assert answer == {"Items": []}
    assert item(music, "q", 5) == {
        "a": {"S": "q"},
        "s": {"N": "5"},
        "l": {"L": [{"N": "1"}, {"S": "two"}, {"L": [{"NULL": True}]}]},
        "m": {"M": {"k": {"N": "-1.5"}}},
        "b": {"BOOL": False},
        "ss": {"SS": ["a", "b"]},
        "ns": {"NS": ["1", "2.5"]},
        "bytes": {"B": "aGk="},
    }
    assert refused(music, "INSERT INTO Music VALUE {'a': 'q', 's': 5}") == (
        "DuplicateItemException: Duplicate primary key exists in table"
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{'a': 'q'}", "Key attribute should be present in the item: Key s"),
        (
            "{'a': 'q', 's': '1'}",
            "Key attribute's data type should match its data type in table's schema: Key s",
        ),
        ("{'a': 'q', 's': 2, 'a': 'r'}", "Duplicate keys in tuple. Key: a under root at 1:44:3"),
        ("{a: 'q'}", "Tuple keys must be of type String. Actual type: VariableReference under root at 1:26:1"),
        ("{'a': 'q', 's': 2, 'x': <<>>}", "Empty bags are not supported"),
        ("{'a': 'q', 's': 2, 'x': [?]}", "Unsupported data type: Parameter under key root.0 at 1:50:1"),
        ("{'a': 'q', 's': 2, 'x': <<>>, '': 1}", "Empty bags are not supported"),
        ("{'a': 'q', 's': 2, 'x': {'y': 1e126, 'y': 1}}", "Number overflow. Attempting to store a number with magnitude larger than supported range under root.y"),
        ("{'a': 'q', 's': 2, 'x': [1e126, t]}", "Number overflow. Attempting to store a number with magnitude larger than supported range under root[0]"),
        ("{'a': 'q', 's': 2, 'x': [t, 1e126]}", "Unsupported data type: t under key root.0 at 1:50:1"),
        ("{'a': 'q', 's': 2, '': 1, 'x': <<>>}", "Path component cannot be an empty string"),
        ("{'a': 'q', 's': 2, 'x': <<1, 'a'>>}", "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags"),
        ("{'a': 1}", "Key attribute's data type should match its data type in table's schema: Key a"),
        ("{'a': 'q', 's': 2, 'x': 1e126}", "Number overflow. Attempting to store a number with magnitude larger than supported range under root"),
        ("{'a': 'q', 's': 2, 'x': {'y': -1e-131}}", "Number underflow. Attempting to store a number with magnitude smaller than supported range under root.y"),
        ("{'a': 'q', 's': 2, 'x': [1, {'y': [1e126]}]}", "Number overflow. Attempting to store a number with magnitude larger than supported range under root[1].y[0]"),
        ("{'a': 'q', 's': 2, 'x': [<<1, 1e126>>]}", "Number overflow. Attempting to store a number with magnitude larger than supported range under root[0]"),
        ("{'a': 'q', 's': 2, 'x': 1e2147483645}", "Number overflow. Attempting to store a number with magnitude larger than supported range under root"),
        ("{'a': 'q', 's': 2, 'x': 1e2147483646}", "Number underflow. Attempting to store a number with magnitude smaller than supported range under root"),
        ("{'a': 'q', 's': 2, 'x': 1e2147483648}", "Statement wasn't well formed, can't be processed: "),
        ("{'a': 'q', 's': 2, 'x': 1.5e-2147483647}", "Statement wasn't well formed, can't be processed: "),
        ("{'a': 'q', 's': 2, 'x': 123456789012345678901234567890123456789}", "Attempting to store more than 38 significant digits in a Number under root"),
        ("{'a': 'q', 's': 2, 'x': [<<1, 2, 1.0>>]}", "One or more parameter values were invalid: Input collection [1, 2, 1.0] contains duplicates! under root[0]"),
        ("{'a': 'q', 's': 2, 'x': " + "[" * 32 + "1" + "]" * 32 + "}", "Nesting Levels have exceeded supported limits under root" + "[0]" * 32),
        ("'x'", "Unsupported format in item expression. Please use struct format {...} to express item values for insert statement. at 1:25:3"),
        ("{'a': 'q', 's': 2} RETURNING ALL OLD *", "RETURNING is not supported in INSERT"),
    ],
)  # fmt: skip
def test_an_item_that_cannot_be_inserted(music: Asker, value: str, message: str) -> None:
    assert refused(music, f"INSERT INTO Music VALUE {value}") == f"ValidationException: {message}"


def test_update_changes_an_item_that_exists(music: Asker) -> None:
    answer = run(
        music,
        "UPDATE Music SET h = h + 1 - ?, m.p = 9, l = list_append(l, [3]) "
        "SET ss = set_add(ss, <<'c'>>) REMOVE n WHERE a = 'x' AND s = 1 RETURNING ALL OLD *",
        {"N": "3"},
    )
    assert answer["Items"][0]["h"] == {"N": "9"}
    changed = item(music)
    assert changed["h"] == {"N": "7"}
    assert changed["m"]["M"]["p"] == {"N": "9"}
    assert changed["l"] == {"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]}
    assert sorted(changed["ss"]["SS"]) == ["a", "b", "c"]
    assert "n" not in changed
    failed = "ConditionalCheckFailedException: The conditional request failed"
    assert refused(music, "UPDATE Music SET t = 'q' WHERE a = 'none' AND s = 1") == failed
    assert item(music, "none") is None


@pytest.mark.parametrize(
    ("update", "returned"),
    [
        ("SET t = 'new'", None),
        ("SET t = 'new', h = h + 1 REMOVE n RETURNING MODIFIED OLD *", {"t": {"S": "x-1"}, "h": {"N": "9"}, "n": {"NULL": True}}),
        ("SET ss = set_add(ss, <<'c'>>) RETURNING MODIFIED NEW *", {"ss": {"SS": ["a", "b", "c"]}}),
    ],
)  # fmt: skip
def test_an_update_may_begin_with_from(
    music: Asker, update: str, returned: dict[str, Any] | None
) -> None:
    """`FROM table WHERE … SET …` is `UPDATE table SET … WHERE …`."""
    key = "a = 'x' AND s = ?"
    changes, returning, what = update.partition(" RETURNING")
    answer = run(music, f'FROM "Music" WHERE {key} {update}', {"N": "1"})
    assert answer["Items"] == ([] if returned is None else [returned])
    changed = item(music)
    other = run(music, f"UPDATE Music {changes} WHERE {key}{returning}{what}", {"N": "2"})
    same = item(music, s=2)
    assert len(other["Items"]) == len(answer["Items"])
    assert same.keys() == changed.keys()
    assert same["ss"] == changed["ss"]
    assert (same["t"] == changed["t"]) == ("'new'" in update)


def test_from_updates_in_batches_and_transactions(music: Asker) -> None:
    first = "FROM Music WHERE a = 'x' AND s = 1 SET t = 'new'"
    assert batch(music, f"{first} RETURNING MODIFIED NEW *")["Responses"] == [
        {"TableName": "Music", "Item": {"t": {"S": "new"}}}
    ]
    second = "FROM Music WHERE a = 'x' AND s = 2 AND t = 'other' REMOVE t"
    condition = ("ConditionalCheckFailed", "The conditional request failed")
    assert cancelled(music, first, second) == [("None", None), condition]
    assert together(music, first, second.replace("other", "x-2")) == {"Responses": []}
    assert "t" not in item(music, s=2)


def test_what_update_and_delete_return(music: Asker) -> None:
    key = "WHERE a = 'x' AND s = 1"
    assert run(music, f"UPDATE Music SET t = 'new' {key}")["Items"] == []
    assert run(music, f"UPDATE Music SET t = 'newer' {key} RETURNING MODIFIED OLD *")["Items"] == [
        {"t": {"S": "new"}}
    ]
    assert run(music, f"UPDATE Music SET m.p = 5 {key} RETURNING MODIFIED NEW *")["Items"] == [
        {"m": {"M": {"p": {"N": "5"}}}}
    ]
    assert run(music, f"UPDATE Music REMOVE nope {key} RETURNING MODIFIED OLD *")["Items"] == []
    old = item(music)
    assert run(music, f"DELETE FROM Music {key} RETURNING ALL OLD *")["Items"] == [old]
    assert run(music, f"DELETE FROM Music {key} RETURNING ALL OLD *")["Items"] == []


def test_the_rest_of_the_condition_must_hold(music: Asker) -> None:
    failed = "ConditionalCheckFailedException: The conditional request failed"
    key = "WHERE a = 'x' AND s = 1"
    assert refused(music, f"UPDATE Music SET t = 'q' {key} AND t = 'other'") == failed
    assert refused(music, f"DELETE FROM Music {key} AND t IS MISSING") == failed
    error = music.refused(
        "ExecuteStatement",
        Statement=f"DELETE FROM Music {key} AND h < 5",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    assert b'"x-1"' in bytes(error.members["Item"])
    run(music, f"UPDATE Music SET t = 'q' {key} AND (h = 9 OR h = 8) AND s < 2")
    assert item(music)["t"] == {"S": "q"}
    run(music, "DELETE FROM Music WHERE a = 'none' AND s = 1 AND t = 'other'")


@pytest.mark.parametrize(
    "where",
    ["", "WHERE a = 'x'", "WHERE a = 'x' AND s > 1", "WHERE a = 'x' OR s = 1", "WHERE a IN ['x'] AND s = 1"],
)  # fmt: skip
def test_a_write_needs_the_whole_key(music: Asker, where: str) -> None:
    expected = (
        "ValidationException: "
        "Where clause does not contain a mandatory equality on all key attributes"
    )
    assert refused(music, f"UPDATE Music SET t = 'q' {where}") == expected
    assert refused(music, f"DELETE FROM Music {where}") == expected


def test_writes_are_in_indexes_and_in_the_stream(music: Asker) -> None:
    view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    music("UpdateTable", TableName="Music", StreamSpecification=view)
    run(music, "INSERT INTO Music VALUE {'a': 'q', 's': 1, 'g': 'gq', 'h': 1}")
    run(music, "UPDATE Music SET g = 'gr' WHERE a = 'q' AND s = 1")
    assert run(music, """SELECT a FROM "Music"."by_genre" WHERE g = 'gr'""")["Items"] == [
        {"a": {"S": "q"}}
    ]
    run(music, "DELETE FROM Music WHERE a = 'q' AND s = 1")
    assert run(music, """SELECT a FROM "Music"."by_genre" WHERE g = 'gr'""")["Items"] == []
    arn = music("DescribeTable", TableName="Music")["Table"]["LatestStreamArn"]
    shards = music("DescribeStream", StreamArn=arn)["StreamDescription"]["Shards"]
    events = []
    for shard in shards:
        start = music(
            "GetShardIterator",
            StreamArn=arn,
            ShardId=shard["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        records = music("GetRecords", ShardIterator=start)["Records"]
        events += [record["eventName"] for record in records]
    assert events == ["INSERT", "MODIFY", "REMOVE"]


# What is refused


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELEC * FROM Music", "Statement wasn't well formed, can't be processed: Expected data manipulation"),
        ("SELECT * FROM Music {}", "Statement wasn't well formed, can't be processed: Unexpected token after expression"),
        *(
            (text, f"Statement wasn't well formed, can't be processed: {reason}")
            for text, reason in (
                ("SELECT FROM Music", "Expected identifier or an expression but found unexpected keyword 'from' in a select list."),
                ("SELEC t", "Unexpected token after expression"),
                ("SELECT * Music", "Expected FROM after SELECT list"),
                ("SELECT *, t FROM Music", "Other expressions may not be present in the select list when '*' is used without dot notation."),
                ("SELECT t, set FROM Music", "Expected identifier or an expression but found unexpected keyword 'set' in a select list."),
                ("SELECT user FROM Music", "Unexpected keyword"),
                ("SELECT t, * FROM Music", "Other expressions may not be present in the select list when '*' is used without dot notation."),
                ("SELECT m.q[*] FROM Music", "Invalid use of * in select list"),
                ("SELECT t AS FROM Music", "Expected identifier for AS-alias"),
                ("SELECT * FROM Music WHERE user = 1", "Unexpected keyword"),
                ("SELECT * FROM Music WHERE date = 1", "Expected date string followed by the keyword DATE, found SYMBOL"),
                ("SELECT * FROM Music WHERE;", "Unexpected term"),
                ("SELECT * FROM Music WHERE NOT", "Unexpected term"),
                ("SELECT * FROM Music WHERE a = )", "Unexpected term"),
                ("SELECT * FROM Music WHERE a = 'x' AND", "Missing right-hand side expression of infix operator"),
                ("SELECT * FROM Music WHERE a = 'x' OR", "Missing right-hand side expression of infix operator"),
                ("SELECT * FROM Music WHERE a =", "Missing right-hand side expression of infix operator"),
                ("SELECT * FROM Music WHERE a IN", "Missing right-hand side expression of infix operator"),
                ("SELECT * FROM Music WHERE IS NULL", "Unexpected operator"),
                ("SELECT * FROM Music WHERE a = LIKE", "Unexpected operator"),
                ("SELECT * FROM Music WHERE AND", "Unexpected operator"),
                ("SELECT * FROM Music WHERE s BETWEEN 1", "Expected AND keyword"),
                ("SELECT * FROM Music WHERE s BETWEEN 1 AND", "Expected expression after AND"),
                ("SELECT * FROM Music WHERE a IS", "Expected type name"),
                ("SELECT * FROM Music WHERE a IS STRING(1)", "is type argument string must have arity of 0..0"),
                ("SELECT * FROM Music WHERE a = #", ""),
                ("SELECT * FROM Music WHERE a = 1e", ""),
                ("SELECT * FROM Music WHERE a = 1e2147483648", ""),
                ("SELECT * FROM Music /* all", ""),
                ("SELEC # t", ""),
                ("SELECT * FROM Music WHERE a = 1x", "Unexpected token after expression"),
                ("FROM Music", "Expected data manipulation"),
                ("FROM Music WHERE a = 'x'", "Expected data manipulation"),
                ("FROM", "Unexpected term"),
                ("FROM Music SET t = 1 WHERE a = 'x'", "Unexpected token after expression"),
                ("INSERT", "Unexpected keyword"),
                ("INSERT INTO Music (key, a) VALUES ('x', 1)", "Unexpected keyword"),
                ("INSERT INTO Music (a) VALUES ('x', 1)", "Unexpected token after expression"),
                ("DELETE FROM", "Expected identifier for simple path"),
                ("UPDATE", "Expected identifier for simple path"),
                ("INSERT INTO", "Expected identifier for simple path"),
                ("SELECT * FROM Music WHERE t = UPDATE Music SET t = 1", "Keyword update only expected at the top level in the query"),
                ("SELECT m.size FROM Music", "Invalid path dot component"),
                ("SELECT * FROM Music WHERE a = = 1", "Unexpected operator"),
                ("SELECT * FROM Music WHERE a = 'x", ""),
                ("SELECT * FROM Music WHERE (a = 1", "Expected RIGHT_PAREN"),
                ("SELECT * FROM Music WHERE ()", "Unexpected term"),
                ("SELECT * FROM Music WHERE a IS NUMBER", "Expected type name"),
                ("SELECT * FROM Music; SELECT * FROM Music", "Unexpected token after semicolon. (Only one query is allowed.)"),
                ("SELECT * FROM Music RETURNING ALL OLD *", "Unexpected token after expression"),
                ("UPDATE Music WHERE a = 1", "Expected data manipulation"),
                ("UPDATE Music SET 't' = 1 WHERE a = 1", "Expected identifier for simple path"),
                ("UPDATE Music SET t WHERE a = 1", "Expected '='"),
                ("DELETE Music WHERE a = 1", "Expected FROM after DELETE"),
                ("DELETE FROM Music WHERE a = 1 RETURNING OLD *", "Expected ( MODIFIED | ALL ) ( NEW | OLD ) in each returning element."),
            )
        ),
        ("SELECT t AS title FROM Music", "Aliasing is not supported"),
        ("SELECT * FROM Music x", "Aliasing is not supported"),
        ("SELECT COUNT(*) FROM Music", "Unexpected path component at 1:8:5"),
        ("SELECT size(t) FROM Music", "Unexpected path component at 1:8:4"),
        ("SELECT m.* FROM Music", "Changing item's hierarchy while reading isn't supported"),
        ("SELECT VALUE t FROM Music", "Select projection doesn't support value or pivot keywords"),
        ("SELECT DISTINCT t FROM Music", "Unsupported token in expression: DISTINCT"),
        ("SELECT * FROM Music, Plain", "Only select from a single table or index is supported."),
        ("SELECT * FROM 'Music'", "Unexpected from source"),
        ("SELECT * FROM M", "Table name should be within the length [3, 255] and only contain 'a-z', 'A-Z', '0-9', '-', '_', '.'."),
        ("SELECT * FROM Music.by_genre.x", "A path may contain at most 2 components in the FROM clause"),
        ("SELECT * FROM Music WHERE a = 'x' LIMIT 1", "Unsupported clause: LIMIT at 1:41:1"),
        ("SELECT * FROM Music GROUP BY a", "Unsupported clause: GROUP BY"),
        ("SELECT * FROM Music ORDER BY a", "Must have WHERE clause in the statement when using ORDER BY clause."),
        ("SELECT * FROM Music WHERE a = 'x' ORDER BY t", "Attribute t in ORDER BY clause must be part of the primary key"),
        ("SELECT * FROM Music WHERE a = 'x' ORDER BY m.p", "Argument to ORDER BY must be of type VariableReference. Type: PATH at 1:44:1"),
        ("SELECT * FROM Music WHERE a = 'x' ORDER BY t, m.p", "Attribute t in ORDER BY clause must be part of the primary key"),
        ("SELECT * FROM Music WHERE a = 'x' ORDER BY 's'", 'Argument to ORDER BY must be of type VariableReference. Type: "s" at 1:44:3'),
        ("SELECT * FROM Music WHERE a = 'x' OR s = 1 ORDER BY s", "Must have at least one non-optional hash key condition in WHERE clause when using ORDER BY clause."),
        ("SELECT * FROM Music WHERE a", "WHERE clause must contain an expression that resolves to a boolean"),
        ("SELECT * FROM Music WHERE a = 'x' AND t", "The arguments to AND/OR must be Expressions"),
        ("SELECT * FROM Music WHERE NOT t", "The argument to NOT must be a Type or Expression"),
        ("SELECT * FROM Music WHERE t LIKE 'x%'", "Unsupported operator in Condition Expression. Operator: like"),
        ("SELECT * FROM Music WHERE s + 1 = 2", "Unsupported operator in Condition Expression. Operator: +"),
        ("SELECT * FROM Music WHERE t = MISSING", "MISSING must be compared using IS operator"),
        ("SELECT * FROM Music WHERE foo(t)", "Unrecognized function: foo at 1:27:3"),
        ("SELECT * FROM Music\nWHERE a = 'x' AND\n  EXISTS(t)", "Unrecognized function: exists at 3:3:6"),
        ("SELECT * FROM Music WHERE set_add(ss, <<'c'>>)", "Unrecognized function: set_add at 1:27:7"),
        ("SELECT * FROM Music WHERE trim(t) = 'x'", "Unrecognized function: trim at 1:27:4"),
        ("SELECT * FROM Music WHERE EXISTS(SELECT * FROM Plain)", "Unsupported token in expression: SELECT at 1:34:6"),
        ("SELECT * FROM Music WHERE attribute_exists(t) < true", "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"),
        ("SELECT * FROM Music WHERE m.q[*] = 1", "Wildcard path component like a[*].b are not supported at 1:31:1"),
        *((f"SELECT * FROM Music WHERE t IS {name}", "Unsupported operation: IsType") for name in ("INT4", "INT8", "DOUBLE PRECISION", "CHARACTER VARYING", "VARCHAR(3)", "NOT BIGINT")),
        ('SELECT * FROM ""', "Path component cannot be an empty string"),
        ('SELECT * FROM Music.""', "Path component cannot be an empty string"),
        ('DELETE FROM ""', "Path component cannot be an empty string"),
        ('SELECT m."" FROM Music', "Path component cannot be an empty string"),
        ("SELECT * FROM Music WHERE a IN []", "IN operator must have a left hand argument of type Variable Reference and right hand argument of type Seq with at least one member"),
        ("SELECT * FROM Music WHERE t IS INT", "Unsupported data type for IS operator: IntegerType. Supported data types are [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at 1:27:1"),
        ('SELECT * FROM Music WHERE "m".p IS NOT DECIMAL(3, 1)', "Unsupported data type for IS operator: DecimalType. Supported data types are [MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at 1:27:3"),
        ("SELECT * FROM Music WHERE size(t) IS NUMERIC", "The left hand side argument to IS must be a Variable Reference, Literal, or Path"),
        ("SELECT * FROM Music WHERE a = 1", "Key attribute's data type should match its data type in table's schema: Key a"),
        ("SELECT * FROM Music WHERE a = ''", "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: a"),
        ("SELECT * FROM Music WHERE a = 'x' AND a.b = 1", "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: a"),
        ("SELECT * FROM Music WHERE begins_with(t, 1)", "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N"),
        ("UPDATE Music SET a = 'y' WHERE a = 'x' AND s = 1", "One or more parameter values were invalid: Cannot update attribute a. This attribute is part of the key"),
        ("UPDATE Music SET t = t * 2 WHERE a = 'x' AND s = 1", "Unsupported operator in Update Expression. Operator: *"),
        ("UPDATE Music SET t = 1 SET t = 2 WHERE a = 'x' AND s = 1", "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: [t], path two: [t]"),
        ("UPDATE Music SET t = set_add(u, <<1>>) WHERE a = 'x' AND s = 1", "The first argument to SET_ADD must equal the assignment value at 1:22:7"),
        ("UPDATE Music SET t = set_add(t, 1) WHERE a = 'x' AND s = 1", "The second argument to SET_ADD must be a value with type SET at 1:30:1"),
        ("UPDATE Music SET t = 1 WHERE a = 'x' AND s = 1 AND s = 2", "Multiple conditions on same key s. Only single item Update/Insert/Delete are supported"),
        ('UPDATE "Music"."by_genre" SET t = 1 WHERE g = \'x\'', "This operation is not supported on an index"),
        ("DELETE FROM Music WHERE a = 'x' AND s = 1 RETURNING ALL NEW *", "Invalid returning clause: RETURNING ALL NEW *. Only RETURNING ALL OLD * is allowed in DELETE statements."),
        ("UPDATE Music.by_genre SET t = 1 WHERE foo(t)", "Unrecognized function: foo at 1:39:3"),
        ("DELETE FROM Music WHERE a = 'x' AND s = NULL", "Key value must be of type S, N, or B. Key name: s, Key type: NULL"),
        ("FROM Music WHERE a = 'x' AND s = 1 INSERT INTO t VALUE 1", "Unsupported FROM ... WHERE ... clause in INSERT statement. at 1:1:4"),
        ("UPDATE Music SET t = 1 INSERT INTO t VALUE 1 WHERE a = 'x'", "Only SET and REMOVE are supported in update expressions at this time"),
        ("SET t = 1", "Only select from a single table or index is supported."),
        ("Music", "Unsupported operation: Id"),
        ("Music.t", "Unsupported operation: Path"),
        ("-1", "Unsupported operation: Lit"),
        ("?", "Unsupported operation: Parameter"),
        ("t IS INT4", "Unsupported operation: IsType"),
        ("t = 1", "EXISTS can only be used in ExecuteTransaction write requests."),
        ("NOT EXISTS(SELECT * FROM Music)", "EXISTS can only be used in ExecuteTransaction write requests."),
        ("DROP TABLE Music", "Unsupported operation: DropTable"),
        ("EXISTS(SELECT * FROM Music WHERE a = 'x' AND s = 1)", "EXISTS can only be used in ExecuteTransaction write requests."),
    ],
)  # fmt: skip
def test_the_services_words(music: Asker, statement: str, message: str) -> None:
    assert refused(music, statement) == f"ValidationException: {message}"


# The faults of a SELECT in the order in which they are looked for: what of the statement each changes, and its message.
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"more": {"Parameters": [{"N": "abc"}]}}, "The parameter cannot be converted to a numeric value: abc"),
    ({"end": " LIMIT"}, "Statement wasn't well formed, can't be processed: Unexpected term"),
    ({"columns": "COUNT(*)"}, "Unexpected path component at 1:8:5"),
    ({"condition": "foo(t)"}, "Unrecognized function: foo"),
    ({"condition": "t = ?"}, "Number of parameters in request and statement don't match."),
    ({"index": "nope"}, "The table does not have the specified index"),
    ({"order": " ORDER BY t"}, "Attribute t in ORDER BY clause must be part of the primary key"),
    ({"key": "g = 1"}, "Key attribute's data type should match its data type in table's schema: Key g"),
    ({"key": "(g = 'x' OR g = 'x')"}, "Overlapping conditions with range keys are not supported in where clause"),
    ({"key": "g IN ['x', 'y']", "order": " ORDER BY s"}, "Must have hash key in ORDER BY clause when more than one hash key condition specified in WHERE clause."),
    ({"more": {"ConsistentRead": True}}, "Strongly consistent read is not supported on Global Secondary Indexes"),
    ({"more": {"NextToken": "abc"}}, "Invalid NextToken"),
    ({"columns": "a.b"}, "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed: Key: a"),
    ({"columns": "t"}, "One or more parameter values were invalid: Global secondary index by_g does not project [t]"),
    ({"key": "g = ''"}, "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: g"),
    ({"condition": "t = 'x'"}, "One or more parameter values were invalid: Secondary index by_g does not project one or more filter attributes: [t]"),
]  # fmt: skip


def test_the_first_fault_of_a_select_is_reported(ask: Asker) -> None:
    keys = [("g", "HASH"), ("s", "RANGE")]
    by_g = {
        "IndexName": "by_g",
        "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in keys],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    ask.table("Songs", "a", types={"g": "S", "s": "S"}, GlobalSecondaryIndexes=[by_g])
    compared = 0
    for (first, message), (second, _) in combinations(FAULTS, 2):
        if not first.keys().isdisjoint(second.keys() - {"more"}):
            continue
        sound = {"columns": "*", "index": "by_g", "key": "g = 'x'", "condition": "s > 'a'"}
        statement = "SELECT {columns} FROM Songs.{index} WHERE {key} AND {condition}{order}{end}".format_map(
            {**sound, "order": "", "end": "", **first, **second}
        )
        more = {**first.get("more", {}), **second.get("more", {})}
        answer = refused(ask, statement, **more)
        assert answer.startswith(f"ValidationException: {message}"), (statement, second)
        compared += 1
    assert compared > 80


def test_a_table_that_is_not_there(ask: Asker) -> None:
    expected = "ResourceNotFoundException: Requested resource not found"
    assert refused(ask, "SELECT * FROM Nope") == expected
    assert refused(ask, "SELECT * FROM Nope WHERE a = 'x' ORDER BY m.p") == expected
    for name in ("no", "a name", "arn:aws:dynamodb:us-east-1:000000000000:table/Nope"):
        assert refused(ask, f"INSERT INTO \"{name}\" VALUE {{'a': 1}}") == expected
    assert refused(ask, "INSERT INTO Nope VALUE {'a': 1}") == expected


# Several statements


def batch(ask: Asker, *statements: str, **more: Any) -> Any:
    entries = [{"Statement": statement} for statement in statements]
    return ask("BatchExecuteStatement", Statements=entries, **more)


def test_a_batch_reads_single_items(music: Asker) -> None:
    answer = batch(
        music,
        "SELECT m.p, t FROM Music WHERE a = 'x' AND s = 1",
        "SELECT t FROM Music WHERE a = 'none' AND s = 1",
        "SELECT t FROM Music WHERE a = 'x'",
        "SELECT t FROM Nope WHERE a = 'x'",
        "SELECT t FROM Music WHERE",
        ReturnConsumedCapacity="TOTAL",
    )
    malformed = "Statement wasn't well formed, can't be processed: Unexpected term"
    assert answer["Responses"] == [
        {"TableName": "Music", "Item": {"m": {"M": {"p": {"N": "1"}}}, "t": {"S": "x-1"}}},
        {"TableName": "Music"},
        error(
            "ValidationError",
            "Select statements within BatchExecuteStatement must specify the primary key "
            "in the where clause.",
        ),
        error("ResourceNotFound", "Requested resource not found"),
        error("ValidationError", malformed),
    ]
    assert answer["ConsumedCapacity"] == [{"TableName": "Music", "CapacityUnits": 1.0}]


def error(code: str, message: str, **more: Any) -> Any:
    return {"Error": {"Code": code, "Message": message}, **more}


def test_a_batch_writes_what_it_can(music: Asker) -> None:
    answer = batch(
        music,
        "INSERT INTO Music VALUE {'a': 'q', 's': 1}",
        "INSERT INTO Music VALUE {'a': 'x', 's': 1}",
        "UPDATE Music SET t = 'new' WHERE a = 'x' AND s = 2 RETURNING MODIFIED NEW *",
        "UPDATE Music SET t = 'new' WHERE a = 'none' AND s = 2",
        "DELETE FROM Music WHERE a = 'x'",
        "UPDATE Music SET s = 2 WHERE a = 'x' AND s = 3",
    )
    assert answer["Responses"] == [
        {"TableName": "Music"},
        error("DuplicateItem", "Duplicate primary key exists in table", TableName="Music"),
        {"TableName": "Music", "Item": {"t": {"S": "new"}}},
        error("ConditionalCheckFailed", "The conditional request failed", TableName="Music"),
        error(
            "ValidationError",
            "Where clause does not contain a mandatory equality on all key attributes",
        ),
        error(
            "ValidationError",
            "One or more parameter values were invalid: Cannot update attribute s. This attribute is part of the key",
            TableName="Music",
        ),
    ]
    assert item(music, "q") == {"a": {"S": "q"}, "s": {"N": "1"}}


@pytest.mark.parametrize(
    ("parameter", "message"),
    [
        ({"N": "abc"}, "The parameter cannot be converted to a numeric value: abc"),
        ({"N": "1e2147483648"}, "The parameter cannot be converted to a numeric value: 1e2147483648"),
        ({"L": [{"N": "1"}, {"M": {"x": {"NS": ["1", "1e-2147483648"]}}}]}, "The parameter cannot be converted to a numeric value: 1e-2147483648"),
        ({"N": "1e126"}, "Number overflow. Attempting to store a number with magnitude larger than supported range"),
        ({"N": "12e2147483645"}, "Number underflow. Attempting to store a number with magnitude smaller than supported range"),
        ({"SS": []}, "One or more parameter values were invalid: An string set  may not be empty"),
        (nested(40), "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit"),
    ],
)  # fmt: skip
def test_a_wrong_parameter_spoils_one_statement_of_a_batch(
    music: Asker, parameter: S, message: str
) -> None:
    insert = "INSERT INTO Music VALUE {'a': 'q', 's': 1, 'v': ?}"
    entries = [
        {"Statement": insert, "Parameters": [parameter]},
        {"Statement": "DELETE FROM Music WHERE a = 'x' AND s = 1"},
        {"Statement": "no statement", "Parameters": [parameter]},
    ]
    answer = music("BatchExecuteStatement", Statements=entries)
    wrong = error("ValidationError", message)
    assert answer["Responses"] == [wrong, {"TableName": "Music"}, wrong]
    assert refused(music, insert, parameter) == f"ValidationException: {message}"
    assert music.refused("ExecuteTransaction", TransactStatements=entries[:1]).message == message


def test_a_malformed_statement_does_not_make_a_batch_of_reads_a_write(
    music: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[object] = []
    begin = blocks.WriteBlock.__enter__

    def enter(writing: blocks.WriteBlock) -> None:
        entered.append(writing)
        begin(writing)

    monkeypatch.setattr(blocks.WriteBlock, "__enter__", enter)
    read = "SELECT t FROM Music WHERE a='x' AND s=1"
    answer = batch(music, read, "SELEC * FROM")
    assert answer["Responses"][0] == {"TableName": "Music", "Item": {"t": {"S": "x-1"}}}
    assert answer["Responses"][1]["Error"]["Code"] == "ValidationError"
    assert entered == []


def test_a_batch_reads_or_writes_each_item_once(music: Asker) -> None:
    read, write = "SELECT t FROM Music WHERE a='x' AND s=1", "DELETE FROM Music WHERE a='x' AND s=1"
    requests = {
        "Read and write requests together in the same batch is not supported.": (read, write),
        "Provided list of item keys contains duplicates": (write, write),
    }
    for message, statements in requests.items():
        entries = [{"Statement": statement} for statement in statements]
        assert music.refused("BatchExecuteStatement", Statements=entries).message == message
    assert item(music) is not None
    too_many = music.refused("BatchExecuteStatement", Statements=[{"Statement": read}] * 26)
    assert "Member must have length less than or equal to 25" in too_many.message


def together(ask: Asker, *statements: str, **more: Any) -> Any:
    entries = [{"Statement": statement} for statement in statements]
    return ask("ExecuteTransaction", TransactStatements=entries, **more)


def cancelled(ask: Asker, *statements: str, **more: Any) -> Any:
    entries = [{"Statement": statement} for statement in statements]
    found = ask.refused("ExecuteTransaction", TransactStatements=entries, **more)
    if found.code == "TransactionCanceledException":
        reasons = found.members["CancellationReasons"]
        return [(reason["Code"], reason.get("Message")) for reason in reasons]
    return f"{found.code}: {found.message}"


def test_a_transaction_reads_one_moment(music: Asker) -> None:
    read = "SELECT t FROM Music WHERE a = 'x' AND s = 1"
    answer = together(music, read, "SELECT t FROM Music WHERE a = 'none' AND s = 1")
    assert answer == {"Responses": [{"Item": {"t": {"S": "x-1"}}}, {}]}
    assert together(music, read, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"] == [
        {"TableName": "Music", "CapacityUnits": 2.0, "ReadCapacityUnits": 2.0}
    ]
    assert cancelled(music, read, "SELECT t FROM Music WHERE a = 'x'") == (
        "ValidationException: Validation failed in TransactStatements[1]: Select statements within "
        "ExecuteTransaction must specify the primary key in the where clause."
    )
    assert cancelled(music, read, """SELECT t FROM "Music"."by_genre" WHERE g = 'g'""") == (
        "ValidationException: Validation failed in TransactStatements[1]: "
        "Reads on indices are not supported within transactions."
    )


def test_a_transaction_writes_all_or_nothing(music: Asker) -> None:
    insert = "INSERT INTO Music VALUE {'a': 'q', 's': 1}"
    check = "EXISTS(SELECT * FROM Music WHERE a = 'x' AND s = 1 AND t = 'x-1')"
    update = "UPDATE Music SET t = 'new' WHERE a = 'y' AND s = 1"
    failing = "EXISTS(SELECT * FROM Music WHERE a = 'x' AND s = 2 AND t = 'x-1')"
    condition = ("ConditionalCheckFailed", "The conditional request failed")
    assert cancelled(music, insert, failing, update) == [("None", None), condition, ("None", None)]
    assert item(music, "q") is None
    assert together(music, insert, check, update) == {"Responses": []}
    assert item(music, "y")["t"] == {"S": "new"}
    assert cancelled(music, update, insert) == [
        ("None", None),
        ("DuplicateItem", "Duplicate primary key exists in table"),
    ]


def test_a_token_runs_a_transaction_once(music: Asker) -> None:
    update = "UPDATE Music SET h = h + 1 WHERE a = 'x' AND s = 1"
    for _ in range(2):
        together(music, update, ClientRequestToken="once")
    assert item(music)["h"] == {"N": "10"}
    other = "UPDATE Music SET h = h + 2 WHERE a = 'x' AND s = 1"
    assert "IdempotentParameterMismatch" in cancelled(music, other, ClientRequestToken="once")


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (
            ("SELECT t FROM Music WHERE a = 'x' AND s = 1", "DELETE FROM Music WHERE a = 'x' AND s = 1"),
            "ExecuteTransaction API does not support both read and write operations in the same request.",
        ),
        (
            ("EXISTS(SELECT * FROM Music WHERE a = 'x' AND s = 1)",),
            "Validation failed in TransactStatements[0]: EXISTS() must contain a single item read with additional condition",
        ),
        (
            ("DELETE FROM Music WHERE a = 'x' AND s = 1 RETURNING ALL OLD *",),
            "Validation failed in TransactStatements[0]: RETURNING clause is not supported in ExecuteTransaction.",
        ),
        (
            ("DELETE FROM Music WHERE a = 'x' AND s = 1", "UPDATE Music SET t = 1 WHERE a = 'x' AND s = 1"),
            "Transaction request cannot include multiple operations on one item",
        ),
        (
            ("EXISTS(SELECT * FROM Music WHERE a = 'x' AND s = 1 AND s = 2)",),
            "Multiple conditions on same key s. Only single item Update/Insert/Delete are supported",
        ),
        (
            ("DELETE FROM Music WHERE a = 'x' AND",),
            "Validation failed in TransactStatements[0]: Statement wasn't well formed, can't be processed: Missing right-hand side expression of infix operator",
        ),
        (
            ("DELETE FROM Music WHERE a = 'x' AND s = 1", "Music"),
            "Validation failed in TransactStatements[1]: Unsupported operation: Id",
        ),
        (
            ("SELECT t FROM Music WHERE a = 'x' AND t = 'x-1' OR a = 'x' AND s = 2",),
            f"Validation failed in TransactStatements[0]: {OVERLAPPING}",
        ),
    ],
)  # fmt: skip
def test_what_a_transaction_refuses(music: Asker, statements: Any, message: str) -> None:
    assert cancelled(music, *statements) == f"ValidationException: {message}"
