"""Every observation agrees in memory, on a file and over HTTP; the runner notices what does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.observed import __main__ as command
from tests.observed.endpoints import Asked, AtAddress, InProcess, Reply
from tests.observed.matching import matches
from tests.observed.observations import Observation, areas, expanded
from tests.observed.running import Run

import isotone
from isotone.server import running_server

DIFFERENT: Final[dict[str, str]] = {}
"""Why Isotone does not answer as observed, by the name of the observation."""

AREAS: Final = areas()
BUCKET: Final = "observed"


@pytest.fixture(scope="module", params=["memory", "file", "HTTP"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder: Path = tmp_path_factory.mktemp("observed")
    buckets = folder / "buckets"
    (buckets / BUCKET).mkdir(parents=True)
    if request.param != "HTTP":
        path = ":memory:" if request.param == "memory" else str(folder / "observed.db")
        yield from _running(InProcess(path, str(buckets)))
        return
    with isotone.open(":memory:", s3=buckets) as database, running_server(database) as url:
        yield from _running(AtAddress(url))


def _running(asked: Asked) -> Iterator[Run]:
    run = Run(asked, {"bucket": BUCKET})
    yield run
    run.close()
    left = asked.ask("ListTables", b"{}").body["TableNames"]
    asked.close()
    assert left == []


@pytest.mark.parametrize("area", AREAS)
def test_area(run: Run, area: str) -> None:
    verdicts = [run.verdict(observation) for observation in AREAS[area]]
    refuted = {verdict.observation.name: verdict for verdict in verdicts if verdict.is_bad}
    known = {each.name for each in AREAS[area]} & DIFFERENT.keys()
    wrong = [str(verdict) for name, verdict in refuted.items() if name not in known]
    assert not wrong, "\n" + "\n".join(wrong)
    applicable = {each.observation.name for each in verdicts if each.state != "not applicable"}
    assert known & applicable <= refuted.keys(), "these agree now"


def test_names_are_unique() -> None:
    names = [each.name for observations in AREAS.values() for each in observations]
    assert sorted(set(names)) == sorted(names)
    assert DIFFERENT.keys() <= set(names)


ANSWERED: Final = Reply(200, {}, {"Item": {"a": {"SS": ["x", "y"]}, "b": {"BOOL": True}}, "L": [1]})
REFUSED: Final = Reply(400, {"a": "b"}, {"__type": "x#Wrong", "message": "one {two} 3", "More": 1})


@pytest.mark.parametrize(
    ("expected", "reply", "fits"),
    [
        ({"response": {}}, ANSWERED, True),
        ({"response": {"Item": {"a": {"SS": ["y", "x"]}}}}, ANSWERED, True),
        ({"response": {"Item": {"a": {"SS": ["x"]}}}}, ANSWERED, False),
        ({"response": {"Item": {"b": {"BOOL": 1}}}}, ANSWERED, False),
        ({"response": {"Item": None}}, ANSWERED, False),
        ({"response": {"Other": None, "L": [1]}}, ANSWERED, True),
        ({"response": {"L": [1, 2]}}, ANSWERED, False),
        ({"response": {"Other": {}}}, ANSWERED, False),
        ({"response": {}}, REFUSED, False),
        ({"error": "Wrong"}, ANSWERED, False),
        ({"error": "Wrong"}, REFUSED, True),
        ({"error": "Other"}, REFUSED, False),
        ({"error": "Wrong", "message": "one {two} 3"}, REFUSED, True),
        ({"error": "Wrong", "message": "one {ANY} 3"}, REFUSED, True),
        ({"error": "Wrong", "message": "one {two}"}, REFUSED, False),
        ({"error": "Wrong", "More": 2}, REFUSED, False),
        ({"error": "Wrong", "status": 500}, REFUSED, False),
        ({"status": 400, "headers": {"a": "b", "c": None}}, REFUSED, True),
        ({"status": 400, "headers": {"a": None}}, REFUSED, False),
    ],
)
def test_an_answer_is_compared(expected: dict[str, Any], reply: Reply, fits: bool) -> None:
    assert matches(expected, reply) is fits


def test_generators_expand() -> None:
    wrapped = expanded({"{NEST}": [2, {"L": ["{INNER}"]}, {"S": "{NAME}"}]}, {"NAME": "x"})
    assert wrapped == {"L": [{"L": [{"S": "x"}]}]}
    assert expanded({"{EACH}": [2, {"p": "{I}{J}"}]}, {}) == [{"p": "1{J}"}, {"p": "2{J}"}]
    assert expanded({"{MERGE}": {"{EACH}": [2, {"p{I}": 0}]}}, {}) == {"p1": 0, "p2": 0}
    assert expanded({"{JOIN}": ["a", {"{REPEAT}": ["bc", 2]}]}, {}) == "abcbc"


def _observation(**members: Any) -> Observation:
    usual = {"name": "it", "seen": "2026-09", "regions": "most", "request": ["ListTables", {}]}
    return msgspec.convert({**usual, **members}, Observation)


def test_the_command_reports_what_differs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = _observation(answer={"error": "Nothing"})
    monkeypatch.setattr(command, "areas", lambda: {"area": [wrong]})
    with isotone.open(":memory:") as database, running_server(database) as url:
        assert command.main([url]) == 1
    assert "differs: it" in capsys.readouterr().out


def test_the_command_chooses_and_lists(capsys: pytest.CaptureFixture[str]) -> None:
    area, observations = next(iter(AREAS.items()))
    assert command.main(["--list", "--area", area, "--name", observations[0].name]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    with pytest.raises(SystemExit):
        command.main(["--list", "--area", "nowhere"])


def test_what_needs_something_else_is_not_applicable() -> None:
    asked = InProcess()
    run = Run(asked)
    for members in ({"needs": ["bucket"]}, {"answer": {"status": 200}}):
        verdict = run.verdict(_observation(**{"answer": {}, **members}))
        assert verdict.state == "not applicable"
    asked.close()


def test_a_step_that_fails_is_reported() -> None:
    asked = InProcess()
    given = [["DescribeTable", {"TableName": "absent"}]]
    verdict = Run(asked).verdict(_observation(given=given, answer={"response": {}}))
    asked.close()
    assert verdict.state == "not prepared"
    assert "ResourceNotFoundException" in verdict.said


def test_an_answer_without_what_the_next_step_needs_is_reported() -> None:
    asked = InProcess()
    given = [["ListTables", {}, {"save": {"arn": "LatestStreamArn"}}]]
    verdict = Run(asked).verdict(_observation(given=given, answer={"response": {}}))
    asked.close()
    assert verdict.state == "not prepared"
    assert "answered no LatestStreamArn" in verdict.said
