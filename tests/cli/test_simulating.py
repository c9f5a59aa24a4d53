"""`isotone simulate`: workloads by name and from files, the report, JSON, the check, and wrong command lines."""

import json
from pathlib import Path
from typing import Any

import pytest

from isotone.cli import main

MODULE = """
from isotone import Attr, Entity, Key, Table, field
from isotone.advisor.simulation import Workload

jingles = Table("Jingles")


class Jingle(Entity, table=jingles):
    name: Attr[str] = field()
    plays: Attr[int] = field(default=0)
    primary = Key("JINGLE", name).sort("INFO")


load = Workload("jingles", tables=[jingles])
people = load.population("listener", 1_000_000)


@load.prepare
def make(store):
    store.put(Jingle(name="ad"))


@load.action(by=people, per_day=100)
def hear(call):
    call.store.update(Jingle, Jingle.plays.add(1), name="ad")
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The name of a module with a workload, in the current directory; each test imports its own."""
    monkeypatch.chdir(tmp_path)
    name = f"jingle_load_{abs(hash(request.node.name))}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    return name


def test_the_report(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", module, "--members", "40"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("jingles: 1,000,000 × listener\nfrom a run with 40; ± is")
    assert "Jingles: JINGLE#ad gets 2,101 write units a second, and one key can have 1,000" in said
    assert "on demand" in said


def test_a_size_and_shards(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", f"{module}:load", "--members", "40", "--size", "10M", "--json"]
    assert main([*words, "--shard", "Jingles: JINGLE#ad=40"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["populations"] == {"listener": 10_000_000}
    (key,) = found["hottest_keys"]
    assert key["shards"] == 40
    assert key["peak"]["writes"] == pytest.approx(10_000_000 * 100 / 86400 * 1.8 / 40, rel=0.05)


def test_the_check(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", module, "--members", "20", "--check"]) == 0
    said = capsys.readouterr().out
    assert "checked by another run" in said
    assert "Jingles: writes a second" in said


def test_the_check_of_a_given_size(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["simulate", module, "--members", "20", "--size", "60", "--check"]
    assert main([*words, "--progress", "json", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    writes = next(each for each in found["checked"] if each["what"] == "Jingles: writes a second")
    assert writes["measured"] == pytest.approx(60 * 100 / 86400)
    low, high = writes["interval"]
    assert low <= writes["measured"] <= high


def test_progress_begins_at_once_and_ends(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", module, "--members", "20", "--progress", "json"]) == 0
    first, *_, last = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["running"] == "run 1 of 9, with 10 members"
    assert first["calls"] == 0
    assert first["seconds"] < 1
    assert first["of_calls"] > 9 * 10
    assert last["state"] == "complete"


def test_a_sample_that_is_too_small_is_said(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rare = """

@load.action(by=people, per_day=1000)
def sometimes(call):
    if call.chance.random() < 0.02:
        call.store.put(Jingle(name=call.member.id * 50))
"""
    Path(f"{module}.py").write_text(MODULE + rare, encoding="utf-8")
    assert main(["simulate", module, "--members", "20"]) == 0
    (warning,) = [line for line in capsys.readouterr().out.splitlines() if "TOO SMALL" in line]
    members = warning.rpartition("--members ")[2]
    assert int(members) > 40
    assert main(["simulate", module, "--members", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["wanted_members"] == int(members)


def test_every_figure_has_its_interval(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", module, "--members", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)

    def compared(figures: Any, intervals: Any) -> int:
        if isinstance(intervals, dict):
            return sum(compared(figures[name], each) for name, each in intervals.items())
        low, high = intervals
        assert low <= figures <= high
        return 1

    groups = [found, *found["places"], *found["hottest_keys"], found["month"]]
    assert sum(compared(each, each["intervals"]) for each in groups) == 2 + 7 + 4 + 3


INTERRUPTED = """

@load.action(by=people, per_day=1)
def interrupt(call):
    global calls
    calls += 1
    if calls == {call}:
        raise KeyboardInterrupt

calls = 0
"""


@pytest.mark.parametrize(
    ("call", "words", "said"),
    [
        (200, [], "interrupted; too few runs are finished for a forecast"),
        (1500, ["--check"], "interrupted; this is what the finished runs say"),
    ],
)
def test_an_interruption_prints_what_is_known(
    module: str, call: int, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{module}.py").write_text(MODULE + INTERRUPTED.format(call=call), encoding="utf-8")
    assert main(["simulate", module, "--members", "20", "--progress", "none", *words]) == 130
    output = capsys.readouterr()
    assert output.err == f"isotone: {said}\n"
    assert output.out.startswith("jingles: 1,000,000 × listener\n") == ("finished runs" in said)


@pytest.mark.parametrize(
    ("ending", "begin"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")]
)
def test_a_picture(
    module: str, capsys: pytest.CaptureFixture[str], ending: str, begin: bytes
) -> None:
    for _ in range(2):  # the second one replaces the first
        assert main(["simulate", module, "--members", "20", "--plot", f"load.{ending}"]) == 0
        assert Path(f"load.{ending}").read_bytes().startswith(begin)


def test_prices(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("prices.toml").write_text("region = 'mars'", encoding="utf-8")
    assert main(["simulate", module, "--prices", "prices.toml"]) == 1
    assert "prices.toml: as_of is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing_there"], "there is no module 'nothing_there'"),
        (["json"], "module 'json' declares no isotone.advisor.simulation.Workload"),
        (["{module}:other"], "has no 'other'"),
        (["{module}:people"], "not an isotone.advisor.simulation.Workload"),
        (
            ["songs.json"],
            "songs.json is not a workload; give MODULE:NAME, such as shop_load:load, or",
        ),
        (["songs.json:load"], "or a file that ends in .toml"),
        (["nothing.toml"], "the workload in nothing.toml cannot be read"),
        (["{module}", "--members", "3"], "members=3 are too few"),
    ],
)
def test_what_cannot_be_run(
    module: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("songs.json").write_text("{}", encoding="utf-8")
    assert main(["simulate", *(word.format(module=module) for word in words)]) == 1
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--size", "many"], ["--shard", "chart"]])
def test_wrong_words(module: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["simulate", module, *words])
    assert "isotone simulate --help explains the command" in capsys.readouterr().err
