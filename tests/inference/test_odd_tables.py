"""Tables that have little to go by, or too much: a module comes out of each, and says what it does not know."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from typing import Any

import pytest
from tests.inference.tables import create, put

import isotone
from isotone.errors import UsageError
from isotone.inference.round_trip_check import table_of

Fill = Callable[["isotone.Client"], str]


def infer(fill: Fill, **options: Any) -> isotone.Inferred:
    """The module of a table, verified; it can be imported."""
    with isotone.open(":memory:") as database:
        table = fill(database.client())
        store = isotone.connect(database)
        found = isotone.infer(store, table, verify=True, **options)
    found.load()
    return found


def notes(found: isotone.Inferred) -> str:
    return "\n".join(map(str, found.notes))


def test_an_empty_table() -> None:
    found = infer(lambda client: create(client, "empty", indexes={"GSI1": ("GSI1PK", "GSI1SK")}))
    assert (found.entities, found.items, found.is_complete) == ((), 0, True)
    assert notes(found) == "the table is empty: add an entity for each kind of item"
    assert 'empty = Table("empty", indexes={"GSI1": Global("GSI1PK", "GSI1SK")})' in found.source


def test_a_table_with_one_item() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "one")
        put(client, table, PK="USER#ann", SK="PROFILE", name="ann", age=3)
        return table

    found = infer(fill)
    assert found.is_complete
    assert 'primary = Key("USER", raw(name)).sort("PROFILE")' in found.source
    assert "it has one item, so little is known about its fields" in notes(found)


def test_a_sample_of_one_partition_has_no_constant_key() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "players")
        for kind in ("item", "task", "activity"):
            for number in (1, 2, 3):
                key = f"{kind.upper()}#{number:03}"
                put(client, table, PK="player001", SK=key, type=kind, points=number)
        return table

    source = infer(fill).source
    assert "player001" not in source
    assert "primary = Key(pk).sort(" in source


def test_binary_and_numeric_keys() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "chunks", "digest", "at", types={"digest": "B", "at": "N"})
        for number in range(5):
            digest, data = {"B": bytes([number, 255])}, {"B": b"x" * (number + 1)}
            put(client, table, digest=digest, at=number, data=data)
        return table

    found = infer(fill)
    assert found.is_complete
    assert 'Table("chunks", partition=Binary("digest"), sort=Number("at"))' in found.source
    assert "digest: Attr[bytes] = field()" in found.source
    assert "primary = Key(digest).sort(at)" in found.source


def test_values_of_several_types() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "mixed")
        for number in range(20):
            value = number if number % 2 else str(number)
            extra = {"extra": 1} if number % 3 else {}
            put(client, table, PK=f"ROW#{number}", SK="ROW", value=value, nothing=None, **extra)
        return table

    found = infer(fill)
    assert found.is_complete
    assert "value: Attr[Any] = field()" in found.source
    assert "values of several types: 10 N, 10 S" in found.source
    assert "nothing: Attr[Any] = field(default=None)" in found.source
    assert "extra: Attr[int | None] = field(default=None)" in found.source


def test_huge_items_are_looked_at_in_part() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "huge")
        for number in range(5):
            many = {"L": [{"N": str(member)} for member in range(1000)]}
            put(client, table, PK=f"DOC#{number}", SK="BODY", body="x" * 300_000, many=many)
        return table

    found = infer(fill)
    assert found.is_complete
    assert "of 5 large items only a part was looked at" in notes(found)
    assert "many: Attr[list[int]] = field()" in found.source


NAMES = {
    "find": 1,
    "to_dict": "x",
    "replace": 1,
    "field": "f",
    "raw": 2,
    "str": "s",
    "when": "w",
    "consistent": "c",
    "__schema__": "z",
    "_private": 1,
    "self": 1,
    "primary": 2,
    "Key": 1,
    "before_put": 1,
    "type_": "q",
    "None": "n",
    "class": 2,
    "a b": 3,
    "1st": 1,
    "💥": 2,
    "имя": 5,
    "date": "2020-01-01",
    "Order": 1,
    "order": 2,
    "ORDER": 3,
    "ﬁle": 4,
    "def": 5,
    "Table": "t",
    "model_dump": 1,
    "unknown_attributes": 2,
    '"quoted"': 1,
    "back\\slash": 2,
    "tab\t": 3,
    "": 4,
}


def test_names_that_python_or_the_library_has() -> None:
    names = {name: value for name, value in NAMES.items() if name}

    def fill(client: isotone.Client) -> str:
        table = create(client, "Entity")
        for number in range(4):
            put(client, table, PK=f"Entity#{number}", SK="Table", **names)
        return table

    found = infer(fill)
    assert found.is_complete
    (schema,) = table_of(found.load()).entities.values()
    declared = {each.attribute for each in schema.fields.values()}
    assert declared >= names.keys()


def test_texts_of_every_kind() -> None:
    texts = ["Zoë", "日本", "💥 boom", "a\tb", '\\"\'quote\'"""', "na#me", "{x}", "%s %d", "\u2028"]

    def fill(client: isotone.Client) -> str:
        table = create(client, "texts")
        for number, text in enumerate(texts):
            put(client, table, PK=f"ЛИЦО#{number}", SK=f"имя#{text}", name=text, number=number)
        return table

    found = infer(fill)
    assert found.is_complete
    assert 'primary = Key("ЛИЦО", raw(number)).sort("имя", raw(name))' in found.source


def test_what_is_stored_is_never_code() -> None:
    hostile = [
        'x"""\nraise SystemExit\n"""',
        "'; raise SystemExit #",
        "\\",
        'a\\"',
        "\r\n    exit()",
        "${x}",
    ]

    def fill(client: isotone.Client) -> str:
        table = create(client, "hostile")
        for place, text in enumerate(hostile):
            for number in range(12):
                attributes = {text: text, f"{text}{place}": number, "status": hostile[number % 2]}
                put(client, table, PK=f"{text}#{number}", SK=text, type=text, **attributes)
        return table

    found = infer(fill)
    assert found.items == 12 * len(hostile)
    assert len(table_of(found.load()).entities) == len(found.entities) > 0


def test_hundreds_of_kinds() -> None:
    kinds = [f"KIND{one}{other}" for one in "ABCDEFGHIJ" for other in "ABCDEFGHIJ"]

    def fill(client: isotone.Client) -> str:
        table = create(client, "kinds")
        for kind in kinds:
            for number in range(2):
                put(client, table, PK=f"{kind}#{number}", SK="X", **{f"of_{kind}": number})
        return table

    found = infer(fill)
    assert found.is_complete
    assert {entity.name.removesuffix("X").upper() for entity in found.entities} == set(kinds)


def test_keys_without_a_common_form_are_plain_fields() -> None:
    def fill(client: isotone.Client) -> str:
        table, chance = create(client, "noise"), random.Random(1)
        for number in range(60):
            partition = "".join(chance.choices(string.ascii_letters + "#|:/_- ", k=9))
            sort = "".join(chance.choices(string.printable[:95], k=chance.randint(1, 9)))
            put(client, table, PK=partition, SK=sort, number=number)
        return table

    found = infer(fill)
    assert found.is_complete
    assert 'pk: Attr[str] = field(name="PK")' in found.source
    assert "primary = Key(pk).sort(sk)" in found.source
    assert "one text without a form" in notes(found)


def test_a_few_items_of_another_form_are_left_out_and_listed() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "tagged")
        for number in range(60):
            put(client, table, PK=f"USER#{number}", SK="USER", type="user", number=number)
        put(client, table, PK="odd", SK="USER", type="user", number=1)
        return table

    found = infer(fill)
    assert not found.is_complete
    assert found.unmodelled == 1
    assert [str(finding) for finding in found.unexpected] == ["1 item: key user.primary"]
    assert "verified: 1 item: key user.primary, such as odd USER" in found.source
    assert 'because their PK has another form: 1 of 61, such as "odd"' in notes(found)
    assert 'primary = Key("USER", raw(number)).sort("USER")' in found.source


def test_kinds_with_keys_of_one_form_are_one_entity() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "events")
        for number in range(20):
            kind = "login" if number % 2 else "logout"
            put(
                client,
                table,
                PK=f"USER#{number % 4}",
                SK=f"2020-01-{number + 1:02}",
                type=kind,
                ip="1",
            )
        return table

    found = infer(fill)
    assert found.is_complete
    assert [entity.items for entity in found.entities] == [20]
    assert 'type: Attr[Literal["login", "logout"]] = field()' in found.source


def test_an_attribute_that_is_in_an_index_is_not_taken_from_another_key() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "states", indexes={"GSI1": ("group", "status")})
        put(client, table, PK="a#", SK="a#")
        put(client, table, PK="a#", SK="a#a#", status="a#a#")
        return table

    assert infer(fill).is_complete


@pytest.mark.parametrize("version", [0, -1, 2])
def test_a_version_of_another_program_is_not_one_of_an_entity(version: int) -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "versions")
        put(client, table, PK="A#1", SK="A", _v=version)
        return table

    found = infer(fill)
    assert (found.unmodelled, found.is_complete) == (1, False)
    assert "attribute '_v' must be the version of an entity" in notes(found)


def test_an_inverted_index() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "groups", indexes={"inverted": ("SK", "PK")})
        for user in ("ann", "bo", "cem"):
            put(client, table, PK=f"USER#{user}", SK=f"USER#{user}", name=user)
            for group in ("x", "y"):
                put(client, table, PK=f"USER#{user}", SK=f"GROUP#{group}", name=user, group=group)
        return table

    found = infer(fill)
    assert found.is_complete
    assert (
        'inverted = Index("inverted", "GROUP", raw(group)).sort("USER", raw(name))' in found.source
    )


def test_a_field_has_one_case_and_one_width_in_all_keys() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "users", indexes={"GSI1": ("GSI1PK", "GSI1SK")})
        for number in range(6):
            mail = f"Ann{number}@X.com"
            index = {"GSI1PK": f"MAIL#{mail.lower()}", "GSI1SK": f"USER#{number:05}"}
            put(
                client,
                table,
                PK=f"USER#{mail}",
                SK=f"{number:03}",
                mail=mail,
                number=number,
                **index,
            )
        return table

    found = infer(fill)
    assert found.is_complete
    assert "mail in another case: set both" in notes(found)
    assert "number: Attr[int] = field(max=999)" in found.source


def test_an_index_without_a_rule_has_plain_keys() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "some", indexes={"GSI1": ("GSI1PK", "GSI1SK")})
        for number in range(12):
            index = {"GSI1PK": "ALL", "GSI1SK": f"{number:03}"} if number in (1, 2, 5, 7) else {}
            put(
                client,
                table,
                PK=f"ROW#{number:03}",
                SK="ROW",
                number=number,
                text=f"t{number}",
                **index,
            )
        return table

    found = infer(fill)
    assert found.is_complete
    assert "4 of 12 items are in index GSI1, and no field says which" in notes(found)
    assert 'gsi1pk: Attr[str | None] = field(default=None, name="GSI1PK")' in found.source


def test_a_sample_is_said_to_be_one() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "large")
        for number in range(300):
            kind = {"rare": 1} if number == 299 else {}
            put(client, table, PK=f"ROW#{number:05}", SK="ROW", number=number, **kind)
        return table

    found = infer(fill, sample=100)
    assert (found.items, found.is_whole) == (100, False)
    assert "other items may have other kinds" in notes(found)
    assert found.verification is not None
    assert found.verification.items == 300
    assert infer(fill, sample=None).items == 300


@pytest.mark.parametrize("sample", [0, -1, 1.5, "all", True])
def test_a_wrong_sample_is_refused(sample: Any) -> None:
    with isotone.connect(":memory:") as store, pytest.raises(UsageError, match="sample="):
        isotone.infer(store, "none", sample=sample)


def test_a_table_that_does_not_exist_is_refused() -> None:
    with isotone.connect(":memory:") as store:
        with pytest.raises(UsageError, match="there is no table 'nope'; the tables are: none"):
            isotone.infer(store, "nope")
        with pytest.raises(UsageError, match="takes the name of a table"):
            isotone.infer(store, isotone.Table("nope"))  # type: ignore[call-overload]


# Which of several attributes a key has


def test_a_key_has_the_attribute_that_equals_it_rather_than_one_in_another_case() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "accounts")
        for name in ("Ann", "Bob", "Cem"):
            user = name.lower()
            put(client, table, PK=f"USER#{user}", SK="PROFILE", Name=name, Username=user)
        return table

    found = infer(fill)
    assert found.is_complete
    assert 'primary = Key("USER", raw(username)).sort("PROFILE")' in found.source
    assert "case=" not in found.source
    assert "guessed" not in notes(found)


def test_a_key_has_the_attribute_that_equals_it_rather_than_one_that_would_be_padded() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "parts")
        for number in (7, 12, 345):
            put(
                client,
                table,
                PK=f"PART#{number:05}",
                SK="PART",
                part_number=number,
                code=f"{number:05}",
            )
        return table

    found = infer(fill)
    assert found.is_complete
    assert 'primary = Key("PART", raw(code)).sort("PART")' in found.source


def test_a_tie_of_two_attributes_is_noted() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "accounts")
        for name in ("ann", "bob", "cem"):
            put(client, table, PK=f"ACCOUNT#{name}", SK="PROFILE", login=name, alias=name)
        return table

    found = infer(fill)
    assert found.is_complete
    chosen, other = ("login", "alias") if "raw(login)" in found.source else ("alias", "login")
    note = f"guessed: PK may have {other} here, which has the same values"
    assert f".{chosen}: {note}" in notes(found)
    assert note in " ".join(found.source.replace("#", " ").split())


def test_no_tie_is_noted_where_the_literal_names_the_attribute_or_the_values_differ() -> None:
    def fill(client: isotone.Client) -> str:
        table = create(client, "accounts")
        for number, name in enumerate(("ann", "bob", "cem")):
            values = {"login": name, "alias": name, "host": f"host {number}"}
            put(client, table, PK=f"LOGIN#{name}", SK="PROFILE", **values)
        return table

    found = infer(fill)
    assert 'primary = Key("LOGIN", raw(login))' in found.source
    assert "guessed" not in notes(found)
