"""Each command on a file: what it prints, how it exits, what it says when it cannot."""

from __future__ import annotations

import errno
import json
import re
import shlex
import subprocess
import sys
import time
from itertools import groupby
from pathlib import Path
from urllib.request import urlopen

import apsw
import pytest

import isotone as package
from isotone.cli.program import COMMANDS, command_of, overview, parser_of
from isotone.cli.tables import size_text
from isotone.server import running_server


def lines(text):
    return text.rstrip("\n").split("\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented(name, isotone):
    command = command_of(name)
    assert name in overview()
    assert COMMANDS[name].summary in overview()
    assert len(command.summary) > 20
    assert f"isotone {name}" in command.examples
    helped = isotone(name, "--help")
    assert helped.code == 0
    assert command.summary.splitlines()[0] in helped.out
    assert "examples:" in helped.out
    assert all(action.help or action.metavar == "TABLE" for action in parser_of(name)._actions)


@pytest.mark.parametrize("words", [(), ("help",), ("--help",), ("-h",)])
def test_without_a_command_all_are_listed(isotone, words):
    outcome = isotone(*words)
    assert outcome == (0, overview(), "")


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_are_command_lines_that_parse(name):
    for line in command_of(name).examples.strip().splitlines():
        words = shlex.split(re.split("   +", line)[0])
        for is_separator, command in groupby(words, {"|", "&&", ">"}.__contains__):
            first, *rest = command
            if not is_separator and first == "isotone":
                assert parser_of(rest[0]).parse_args(rest[1:]) is not None


def test_an_unknown_command_is_guessed(isotone):
    assert isotone("qeury") == (
        2,
        "",
        "isotone: there is no command 'qeury'; did you mean query?\n",
    )
    assert isotone("xyz").err.endswith("isotone --help lists all commands\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("get", "the following arguments are required: FILE_OR_URL, TABLE, KEY; isotone get"),
        (
            "serve --port x",
            "argument --port: 'x' is not a port; write 0 (any free one) to 65535; isotone serve",
        ),
        ("serve --nope", "unrecognized arguments: --nope; isotone serve"),
    ],
)
def test_wrong_arguments_are_explained_in_one_sentence(isotone, words, said):
    assert isotone(*words.split()) == (2, "", f"isotone: {said} --help explains the command\n")


def test_version(isotone):
    assert f"isotone {package.__version__}\n" in isotone("version").out
    assert isotone("version", "--short").out == package.__version__ + "\n"
    assert isotone("--version") == isotone("version")
    assert json.loads(isotone("--version", "--json").out)["isotone"] == package.__version__
    assert isotone("version", "--short", "--json").out == f'"{package.__version__}"\n'


def test_an_item_comes_back_as_it_was_written(isotone, shop):
    item = (
        '{"customer": "böb 😀", "placed_at": "x", "n": 1234567890.123456789012345678, '
        '"none": null, "yes": true, "list": [1, "a", {}], "tags": {"SS": ["a", "b"]}, '
        '"raw": {"B": "aGVsbG8="}, "map": {"S": {"S": "x"}, "T": 1}}'
    )
    assert isotone("put", shop, "Orders", item) == (0, "", "")
    line = isotone("get", shop, "Orders", "böb 😀", "x", "--line")
    assert json.loads(line.out) == json.loads(item.replace('{"S": "x"}', '"x"'))
    assert "1234567890.123456789012345678" in line.out
    assert isotone("get", shop, "Orders", "böb 😀", "x").out.startswith('{\n  "')


def test_getting_what_is_not_there(isotone, shop):
    assert isotone("get", shop, "Orders", "ann", "never") == (
        1,
        "",
        "isotone: table Orders has no such item\n",
    )


def test_a_key_with_a_value_missing(isotone, shop):
    outcome = isotone("get", shop, "Orders", "ann")
    assert outcome.code == 1
    assert (
        "a key of table Orders has 2 values: customer (S) · placed_at (S); you gave 1"
        in outcome.err
    )


def test_put_new_refuses_to_replace(isotone, shop):
    item = '{"customer": "ann", "placed_at": "2026-01-01"}'
    outcome = isotone("put", shop, "Orders", item, "--new")
    assert outcome.code == 1
    assert outcome.err.startswith("isotone: ConditionalCheckFailedException: ")
    assert isotone("put", shop, "Orders", item.replace("ann", "bob"), "--new").code == 0


def test_what_the_service_refuses_is_reported_in_its_words(isotone, shop):
    outcome = isotone("put", shop, "Orders", '{"customer": "ann"}')
    assert outcome == (
        1,
        "",
        "isotone: ValidationException: One or more parameter values were invalid: "
        "Missing the key placed_at in the item\n",
    )


def test_delete_prints_what_was_there(isotone, shop):
    outcome = isotone("delete", shop, "Orders", "placed_at=2026-01-01", "customer=ann")
    assert json.loads(outcome.out)["total"] == 1.5
    assert isotone("delete", shop, "Orders", "ann", "2026-01-01").code == 1


def test_query_shows_a_table(isotone, shop):
    outcome = isotone("query", shop, "Orders", "customer=ann", "placed_at < 2026-01-03")
    assert lines(outcome.out) == [
        "customer  placed_at   total  status",
        "────────  ──────────  ─────  ──────",
        "ann       2026-01-01    1.5  PAID",
        "ann       2026-01-02    2.5  OPEN",
        "2 items (0.5 units)",
    ]


def test_query_reverse_and_limit(isotone, shop):
    outcome = isotone("query", shop, "Orders", "customer=ann", "--reverse", "--limit", 2)
    assert [line.split()[1] for line in lines(outcome.out)[2:4]] == ["2026-01-05", "2026-01-04"]
    assert "there are more" in outcome.out


def test_query_finds_its_index_and_says_what_a_filter_wastes(isotone, shop):
    outcome = isotone("query", shop, "Orders", "status=PAID", "total", ">", "2")
    assert lines(outcome.out)[0].split()[:2] == ["status", "placed_at"]
    assert lines(outcome.out)[-1] == "2 items (3 read, 0.5 units, index by_status)"


def test_json_forms(isotone, shop):
    array = json.loads(isotone("query", shop, "Orders", "customer=ann", "--format", "json").out)
    rows = isotone("query", shop, "Orders", "customer=ann", "--format", "jsonl").out
    assert [json.loads(line) for line in lines(rows)] == array
    assert [item["placed_at"] for item in array] == [f"2026-01-{day:02}" for day in range(1, 6)]
    assert isotone("query", shop, "Orders", "customer=no", "--format", "json").out == "[]\n"
    assert isotone("query", shop, "Orders", "customer=no", "--format", "jsonl").out == ""
    limited = isotone("scan", shop, "Orders", "--format", "jsonl", "--limit", 2)
    assert len(lines(limited.out)) == 2
    assert limited.err == "the first 2 items; --all shows everything\n"


def test_scan_filters(isotone, shop):
    outcome = isotone("scan", shop, "Orders", "total between 2 and 4", "--format", "jsonl")
    assert sorted(json.loads(line)["total"] for line in lines(outcome.out)) == [2.5, 3.5]
    assert len(lines(isotone("scan", shop, "Orders", "--index", "by_status").out)) == 8


def test_a_query_without_a_partition_key_teaches(isotone, shop):
    outcome = isotone("query", shop, "Orders", "total=3")
    assert outcome.code == 1
    assert "customer=… (the table) or status=… (index by_status)" in outcome.err


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_a_limit_is_positive(isotone, shop, limit):
    assert isotone("scan", shop, "Orders", "--limit", limit).code == 1


def test_more_items_than_one_page_or_batch(isotone, shop, tmp_path, monkeypatch):
    file = tmp_path / "items.jsonl"
    written = [{"customer": "many", "placed_at": f"{n:04}", "pad": "x" * 900} for n in range(2500)]
    file.write_text("\n\n".join(map(json.dumps, written)))
    outcome = isotone("put", shop, "Orders", f"@{file}")
    assert outcome.out == "2,500 items written to Orders\n"
    everything = isotone("query", shop, "Orders", "customer=many", "--all", "--format", "jsonl")
    assert [json.loads(line) for line in lines(everything.out)] == written
    last = ("placed_at >= 2490", "pad exists")
    filtered = isotone("scan", shop, "Orders", *last, "--format", "jsonl", "--limit", 10)
    assert len(lines(filtered.out)) == 10


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        ('[{"customer": "c", "placed_at": "1"}, {"customer": "c", "placed_at": "2"}]', 2),
        ('{"customer": "c", "placed_at": "1"}\n{"customer": "c", "placed_at": "2"}\n', 2),
        ('{\n  "customer": "c",\n  "placed_at": "1"\n}\n', 1),
    ],
)
def test_put_reads_arrays_lines_and_single_items(isotone, shop, tmp_path, text, count):
    (tmp_path / "in.json").write_text(text)
    assert isotone("put", shop, "Orders", f"@{tmp_path / 'in.json'}").out.startswith(
        f"{count} item"
    )


def test_put_names_the_line_that_is_wrong(isotone, shop, tmp_path):
    (tmp_path / "in.json").write_text('{"customer": "c", "placed_at": "1"}\n{oops}\n')
    outcome = isotone("put", shop, "Orders", f"@{tmp_path / 'in.json'}")
    assert outcome.code == 1
    assert outcome.err.startswith("isotone: line 2: this is not JSON")


def test_put_of_a_file_that_is_not_there(isotone, shop):
    assert "cannot read nope.json" in isotone("put", shop, "Orders", "@nope.json").err


def test_cells_do_not_disturb_the_terminal(isotone, shop):
    item = {"customer": "evil", "placed_at": "\x1b[2J\n", "long": "y" * 100}
    isotone("put", shop, "Orders", json.dumps(item))
    row = lines(isotone("query", shop, "Orders", "customer=evil").out)[2]
    assert row.split() == ["evil", "\\x1b[2J\\n", "y" * 47 + "…"]


def test_wide_characters_are_aligned(isotone, shop):
    for name in ("漢字", "é", "e\u0301"):
        isotone("put", shop, "Orders", json.dumps({"customer": "w", "placed_at": name, "z": "|"}))
    # In UTF-8 order: a letter with its accent apart, one character, two characters of double width.
    table = lines(isotone("query", shop, "Orders", "customer=w").out)[2:-1]
    assert [row.index("|") for row in table] == [22, 21, 19]


def test_tables_are_listed(isotone, shop):
    header, _, row = lines(isotone("tables", shop).out)
    assert header.split() == ["table", "key", "indexes", "items", "size"]
    (described,) = json.loads(isotone("tables", shop, "--json").out)
    expected = (
        f"Orders  customer (S) · placed_at (S)  by_status  5  {described['TableSizeBytes']} B"
    )
    assert row.split() == expected.split()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (1536, "1.5 KB"), (5 << 50, "5120.0 TB")],
)
def test_sizes_are_short(size, text):
    assert size_text(size) == text


def test_a_table_is_described(isotone, shop):
    out = isotone("describe", shop, "Orders").out
    assert re.search(r"^index by_status +status \(S\) · placed_at \(S\) +everything +5 ", out, re.M)
    assert "billing: PAY_PER_REQUEST" in out
    assert json.loads(isotone("describe", shop, "Orders", "--json").out)["ItemCount"] == 5


def test_a_table_that_is_not_there(isotone, shop):
    assert isotone("scan", shop, "Nope") == (
        1,
        "",
        "isotone: there is no table Nope; tables here: Orders\n",
    )


def test_creating_with_types(isotone, tmp_path):
    file = tmp_path / "games.db"
    index = "--index=by_score=game,score:N"
    assert isotone("create", file, "Scores", "game", "at:B", index).code == 0
    described = json.loads(isotone("describe", file, "Scores", "--json").out)
    types = {a["AttributeName"]: a["AttributeType"] for a in described["AttributeDefinitions"]}
    assert types == {"game": "S", "at": "B", "score": "N"}
    assert "ResourceInUseException" in isotone("create", file, "Scores", "game").err
    assert "is not an index" in isotone("create", file, "Others", "id", "--index=oops").err
    assert "two types, S and N" in isotone("create", file, "Others", "id", "--index=i=id:N").err
    for wrong in ("id:X", "id:", ":N", "id:SS"):
        assert "is not a key attribute" in isotone("create", file, "Others", wrong).err
    assert "is not a key attribute" in isotone("create", file, "Others", "id", "--index=i=at:Y").err
    assert isotone("create", file, "Colons", "shop:id:S").code == 0
    assert "shop:id (S)" in isotone("tables", file).out


def test_any_request_can_be_sent(isotone, shop):
    outcome = isotone(
        "call",
        shop,
        "GetItem",
        '{"TableName": "Orders", "Key": {"customer": '
        '{"S": "ann"}, "placed_at": {"S": "2026-01-01"}}}',
    )
    assert json.loads(outcome.out)["Item"]["total"] == {"N": "1.5"}
    assert isotone("call", shop, "ListTables").code == 0
    assert "there is no action 'Nonsense'" in isotone("call", shop, "Nonsense").err
    assert "not a JSON object" in isotone("call", shop, "ListTables", "[1]").err


def test_call_reads_all_pages_of_a_query_or_scan(isotone, shop):
    with package.open(shop) as database:
        for number in range(12):  # more than the 1 MB of a page
            item = {"customer": {"S": "bob"}, "placed_at": {"S": f"{number:02}"}}
            item["text"] = {"S": "x" * 200_000}
            database.execute("PutItem", {"TableName": "Orders", "Item": item})
    key = {":c": {"S": "bob"}}
    query = {"TableName": "Orders", "KeyConditionExpression": "customer = :c"}
    request = json.dumps({**query, "ExpressionAttributeValues": key})
    found = isotone("call", shop, "Query", request, "--all")
    placed = [json.loads(each)["placed_at"]["S"] for each in lines(found.out)]
    assert placed == [f"{number:02}" for number in range(12)]
    assert json.loads(isotone("call", shop, "Query", request).out)["Count"] < 12
    assert "GetItem is neither" in isotone("call", shop, "GetItem", "{}", "--all").err
    counting = isotone("call", shop, "Scan", '{"TableName": "Orders", "Select": "COUNT"}', "--all")
    assert (counting.code, counting.out) == (1, "")
    assert "--all prints items, and a COUNT has none" in counting.err


def test_a_file_that_is_not_there_is_not_made(isotone, tmp_path):
    outcome = isotone("tables", tmp_path / "nope.db")
    assert outcome.code == 1
    assert "does not exist" in outcome.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("scan {shop} Orders --bogus", 2),  # refused by the parser
        ("scan {shop} Orders --limit many", 2),
        ("scan {shop}", 2),
        ("scan {shop} Orders --limit 0", 1),  # refused by the command
        ("scan {shop} Lost", 1),
        ("scan lost.db Orders", 1),
        ("simulate lost", 1),
        ("diff lost.db {shop}", 2),  # these have 1 for what they find
        ("lint lost.db", 2),
        ("verify lost {shop}", 2),
        ("rewrite lost {shop} --dry-run", 2),
    ],
)
def test_exit_codes_are_those_of_the_page(isotone, shop, monkeypatch, words, code):
    monkeypatch.chdir(shop.parent)
    assert isotone(*words.format(shop=shop).split()).code == code


@pytest.mark.parametrize("command", ["tables", "check", "serve"])
def test_a_file_of_something_else_is_left_alone(isotone, tmp_path, command):
    file = tmp_path / "notes.txt"
    file.write_text("not a database, by any means")
    outcome = isotone(command, file)
    assert outcome.code == 1
    assert "is not an Isotone file" in outcome.out + outcome.err
    assert "Traceback" not in outcome.err
    assert file.read_text() == "not a database, by any means"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("songs.py", "or where a module is wanted its name, songs\n"),
        ("songs.JSON", "into which `isotone import` writes the items of such a file\n"),
        ("songs.csv", "into which `isotone import` writes the items of such a file\n"),
        ("songs.jsonl.gz", "into which `isotone import` writes the items of such a file\n"),
        ("songs", "or of a file that does not exist yet\n"),
    ],
)
@pytest.mark.parametrize("words", [["tables"], ["explain", "WHAT"], ["backup", "copy.db"]])
def test_a_file_of_another_kind_is_answered_with_what_the_command_takes(
    isotone, tmp_path, words, name, advice
):
    file = tmp_path / name
    file.write_text("not a database")
    code, out, err = isotone(words[0], file, *words[1:])
    assert (code, out) == (1, "")
    assert f"{file} is not an Isotone file" in err
    assert err.endswith(f"give the path of an Isotone database, {advice}")


@pytest.mark.parametrize("url", ["http://", "ftp://localhost", "http://localhost:x"])
def test_an_address_that_is_none(isotone, url):
    assert re.search("is not (a server's|an) address", isotone("tables", url).err)


def test_nobody_at_the_address(isotone):
    outcome = isotone("tables", "http://127.0.0.1:1")
    assert outcome.code == 1
    assert "cannot connect to http://127.0.0.1:1" in outcome.err


def test_commands_work_on_a_server_as_on_a_file(isotone, shop):
    commands = [
        ("tables",),
        ("describe", "Orders"),
        ("query", "Orders", "customer=ann"),
        ("query", "Orders", "status=PAID", "--format", "json"),
        ("get", "Orders", "ann", "2026-01-01"),
        ("get", "Orders", "ann", "never"),
        ("put", "Orders", '{"customer": "ann"}'),
        ("call", "Nonsense"),
        ("scan", "Nope"),
    ]
    on_file = [isotone(command, shop, *words) for command, *words in commands]
    with package.open(shop) as database, running_server(database) as url:
        assert [isotone(command, url, *words) for command, *words in commands] == on_file


def test_check_of_a_sound_file(isotone, shop):
    assert isotone("check", shop) == (0, f"{shop}: all is well (5 items)\n", "")
    assert isotone("check", shop, "--quiet") == (0, "", "")
    assert isotone("check", "nope.db").code == 1


def test_check_of_some_tables_by_some_processes(isotone, shop):
    whole = isotone("check", shop, "--progress", "json", "--json")
    assert json.loads(whole.out)["items"] == 5
    reports = [json.loads(line) for line in lines(whole.err)]
    assert {"command", "state", "seconds", "items", "entries", "of_entries"} == reports[0].keys()
    end = reports[-1]
    assert (end["state"], end["items"], end["problems"]) == ("complete", 5, 0)
    for extra in ([], ["--processes", "1"], ["--processes", "2"]):
        one = isotone("check", shop, "--table", "Orders", *extra)
        assert one == (0, f"{shop}: all is well in Orders (5 items)\n", "")
    assert isotone("check", shop, "--table", "Orders", "--table", "Nope") == (
        1,
        "",
        "isotone: there is no table Nope: Orders can be checked\n",
    )
    assert isotone("check", shop, "--processes", "0") == (
        1,
        "",
        "isotone: 0 processes cannot check a file: give 1 or more\n",
    )


def test_check_of_a_file_whose_tables_cannot_be_read(isotone, shop):
    connection = apsw.Connection(str(shop))
    for tree, where in (("catalog", "instr(value, 'Orders')"), ("t1", "key >= x''")):
        connection.execute(
            f"UPDATE tree_{tree} SET value = x'00'"
            f" WHERE key = (SELECT min(key) FROM tree_{tree} WHERE {where})"
        )
        assert connection.changes() == 1
    connection.close()
    outcome = isotone("check", shop)
    assert outcome.code == 1
    found = lines(outcome.out)
    assert re.fullmatch("entry [0-9a-f]+ of tree catalog is damaged", found[0])
    assert re.fullmatch("entry [0-9a-f]+ of tree t1 is damaged", found[1])
    assert found[2].startswith(f"the tables of {shop} cannot be opened: ")
    advice = f"restore a backup, or save what can be read: isotone repair {shop} NEW_FILE"
    assert found[3:] == [f"{shop}: 3 problems; {advice}"]


def test_check_of_a_broken_file(isotone, shop):
    connection = apsw.Connection(str(shop))
    trees = [
        row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
    ]
    for tree in trees:
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{tree}")')]
        count = connection.execute(f'SELECT count(*) FROM "{tree}"').fetchone()[0]
        if count == 5:
            key = columns[0]
            connection.execute(
                f'DELETE FROM "{tree}" WHERE "{key}" = (SELECT min("{key}") FROM "{tree}")'
            )
            break
    connection.close()
    outcome = isotone("check", shop)
    assert outcome.code == 1
    assert re.search(r": \d+ problems?; restore a backup, .*\n$", outcome.out)
    assert "`isotone check`" not in outcome.out
    assert re.search(
        r"table Orders: its count is 5 items of \d+ bytes, but there are 4 readable", outcome.out
    )


def loaded_by(program: str, modules: set[str]) -> str:
    """Which of these modules a program has loaded when it ends."""
    program = f"import sys; {program}; print(sorted({modules} & set(sys.modules)))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return lines(ran.stdout)[-1]


def test_a_command_that_needs_no_database_does_not_load_it():
    program = "from isotone.cli import main; main(['version', '--short'])"
    modules = {"isotone.engine", "apsw", "asyncio", "boto3", "msgspec"}
    assert loaded_by(program, modules) == "[]"


def test_a_server_starts_without_the_modelling_library():
    assert loaded_by("import isotone.cli.serving", {"isotone.model", "boto3"}) == "[]"


def test_python_m_isotone_is_the_command():
    started = time.monotonic()
    ran = subprocess.run(
        [sys.executable, "-m", "isotone", "version", "--short"], capture_output=True
    )
    assert ran.stdout.decode() == package.__version__ + "\n"
    assert time.monotonic() - started < 5


def test_a_reader_that_has_seen_enough(shop):
    command = f'"{sys.executable}" -m isotone scan "{shop}" Orders --format jsonl | head -n 1'
    ran = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert ran.stderr == ""
    assert len(lines(ran.stdout)) == 1


def test_an_action_that_is_misspelled(isotone, shop):
    told = "isotone: there is no action {!r}; {}\n"
    assert isotone("call", shop, "listtables").err == told.format(
        "listtables", "did you mean ListTables?"
    )
    assert isotone("call", shop, "Xyzzy").err == told.format(
        "Xyzzy", "write one such as DescribeTable"
    )


def test_tables_are_described_once(isotone, shop):
    with package.open(shop) as database, running_server(database) as url:
        assert isotone("tables", url).code == 0
        with urlopen(f"{url}/metrics") as page:
            metrics = page.read().decode()
    assert 'isotone_requests_total{action="DescribeTable"} 1\n' in metrics


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [("model", "--output", "/dev/full")])
def test_a_file_that_cannot_be_written_is_named(isotone, shop, words):
    command, *options = words
    outcome = isotone(command, shop, "Orders", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.endswith("isotone: /dev/full: No space left on device\n")


def test_each_damaged_entry_is_listed_once_without_the_advice_to_check(isotone, shop):
    connection = apsw.Connection(str(shop))
    connection.execute("UPDATE tree_i2 SET value = x'00', key_sum = x'00000000'")
    assert connection.changes() == 5
    connection.close()
    *problems, last = lines(isotone("check", shop).out)
    damaged = [each for each in problems if "is damaged" in each]
    assert len(damaged) == len(set(damaged)) == 5
    for each in damaged:
        assert re.fullmatch(
            "the entry of item {.*} in index by_status of table Orders is damaged: it is not as it was written",
            each,
        )
    assert last.startswith(f"{shop}: {len(problems)} problems; ")


@pytest.mark.parametrize("name", ["diff", "lint", "rewrite", "verify"])
def test_where_1_says_that_something_was_found_an_error_of_the_system_is_2(
    isotone, monkeypatch, name
):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device", "orders.undo")

    monkeypatch.setitem(
        sys.modules[command_of(name).run.__module__].DEFINITIONS,
        name,
        command_of(name)._replace(run=full),
    )
    outcome = isotone(name, "shop", "shop.db")
    assert outcome == (2, "", "isotone: orders.undo: No space left on device\n")
